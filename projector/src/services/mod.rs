//! The services, one file or folder each.

pub mod accounts;
pub mod aviation;
pub mod awards;
pub mod cadence;
pub mod catalysts;
pub mod coverage;
pub mod deliveries;
pub mod exclusions;
pub mod filings;
pub mod labs;
pub mod names;
pub mod parcels;
pub mod payments;
pub mod phrases;
pub mod recalls;
pub mod receipts;
pub mod research;
pub mod watches;

use schemas::topics::{self, Topic, TopicKind};

use fold::service::Service;

/// Applies a macro to each service's type: THE LIST of services. `$act!(Type)` is called once per service.
#[macro_export]
macro_rules! for_each_service {
    ($act:ident) => {
        $act!($crate::services::accounts::Accounts);
        $act!($crate::services::aviation::Aviation);
        $act!($crate::services::awards::Awards);
        $act!($crate::services::cadence::Cadence);
        $act!($crate::services::catalysts::Catalysts);
        $act!($crate::services::coverage::Coverage);
        $act!($crate::services::deliveries::Deliveries);
        $act!($crate::services::exclusions::Exclusions);
        $act!($crate::services::filings::Filings);
        $act!($crate::services::labs::Labs);
        $act!($crate::services::names::Names);
        $act!($crate::services::parcels::Parcels);
        $act!($crate::services::payments::Payments);
        $act!($crate::services::phrases::Phrases);
        $act!($crate::services::recalls::Recalls);
        $act!($crate::services::receipts::Receipts);
        $act!($crate::services::research::Research);
        $act!($crate::services::watches::Watches);
    };
}

/// Whether a service decides from the records of a topic.
#[must_use]
pub fn reads(service: &str, topic: &Topic) -> bool {
    macro_rules! decides_from {
        ($service:ty) => {
            if <$service as Service>::NAME == service {
                return <$service as Service>::INPUTS.iter().any(|input| input.name == topic.name);
            }
        };
    }
    for_each_service!(decides_from);
    false
}

/// Returns the topics that the engine's view indexes: facts, commands, rejected records, and the changes that another service decides from.
#[must_use]
pub fn indexed_topics() -> Vec<&'static Topic> {
    let read_changes = links().into_iter().map(|(_, input)| input);
    topics::ALL
        .iter()
        .filter(|topic| match topic.kind {
            TopicKind::Facts | TopicKind::Commands | TopicKind::Rejects => true,
            TopicKind::Changes => read_changes.clone().any(|input| input == topic.name),
            TopicKind::Imports => false,
        })
        .collect()
}

/// Returns which service decides from which change topic, as the name of its own change topic and that of the input.
fn links() -> Vec<(&'static str, &'static str)> {
    let mut links = Vec::new();
    macro_rules! link {
        ($service:ty) => {
            let inputs = <$service as Service>::INPUTS.iter().filter(|input| input.kind == TopicKind::Changes);
            links.extend(inputs.map(|input| (<$service as Service>::CHANGES.name, input.name)));
        };
    }
    for_each_service!(link);
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a change topic that depends on itself, directly or through others.
    fn circle<'a>(links: &[(&'a str, &'a str)]) -> Option<&'a str> {
        links.iter().map(|(service, _)| *service).find(|service| {
            let mut reached = vec![*service];
            let mut n = 0;
            while let Some(from) = reached.get(n).copied() {
                for (_, input) in links.iter().filter(|(of, _)| *of == from) {
                    if input == service {
                        return true;
                    }
                    if !reached.contains(input) {
                        reached.push(input);
                    }
                }
                n += 1;
            }
            false
        })
    }

    /// Proves that no service decides from changes that depend on its own.
    #[test]
    fn services_form_no_circle() {
        assert_eq!(circle(&[("a", "b"), ("b", "c"), ("d", "c")]), None);
        assert_eq!(circle(&[("d", "a"), ("a", "b"), ("b", "c"), ("c", "a")]), Some("a"));
        assert_eq!(circle(&[("a", "a")]), Some("a"));
        assert_eq!(circle(&links()), None);
    }
}

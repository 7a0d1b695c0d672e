//! Which services a process projects: those that are enabled, those of the engine and receipts, and those whose changes one of them decides from.

use projector::runtime::ProjectedService;
use schemas::topics::TopicKind;
use schemas::views::receipts::TABLES as RECEIPTS;

use crate::{names, projected_services};

/// The services of a process.
pub struct Selection {
    /// What the projector runs, in the order of the names.
    pub projected: Vec<ProjectedService>,
    /// The services that are disabled, in the order of the names.
    pub disabled: Vec<Disabled>,
}

/// A service that is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disabled {
    /// The name of the service.
    pub service: &'static str,
    /// The service that decides from its changes, so that it is projected, but not served; `None` if it is not projected either.
    pub needed_by: Option<&'static str>,
}

/// Selects the services of a process. Receipts are projected in any case: every signature of the engine is made by their decider.
#[must_use]
pub fn selected(is_enabled: impl Fn(&str) -> bool) -> Selection {
    let listed: Vec<&'static str> = names().collect();
    let is_own = |name: &str| !listed.contains(&name) || name == RECEIPTS.view.name;
    let all = projected_services();
    let chosen = |service: &&ProjectedService| is_own(service.def.view.name) || is_enabled(service.def.view.name);
    let mut projected: Vec<ProjectedService> = all.iter().filter(chosen).copied().collect();
    let mut needed = Vec::new();
    let mut n = 0;
    while let Some(reader) = projected.get(n).copied() {
        for input in reader.def.inputs.iter().filter(|input| input.kind == TopicKind::Changes) {
            let is_known = projected.iter().any(|known| known.def.changes.name == input.name);
            let writer = all.iter().find(|service| service.def.changes.name == input.name).filter(|_| !is_known);
            if let Some(writer) = writer {
                needed.push((writer.def.view.name, reader.def.view.name));
                projected.push(*writer);
            }
        }
        n += 1;
    }
    projected.sort_unstable_by_key(|service| service.def.view.name);
    let disabled = listed.iter().copied().filter(|name| !is_enabled(name)).map(|service| {
        let needed_by = needed.iter().find(|(writer, _)| *writer == service).map(|(_, reader)| *reader);
        Disabled { service, needed_by }
    });
    Selection { disabled: disabled.filter(|disabled| disabled.service != RECEIPTS.view.name).collect(), projected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projected(selection: &Selection) -> Vec<&'static str> {
        selection.projected.iter().map(|service| service.def.view.name).collect()
    }

    /// Proves that a disabled service is not projected, unless another one decides from its changes, and that the services of the engine and receipts are.
    #[test]
    fn disabled_services_are_not_projected() {
        let all = selected(|_| true);
        assert_eq!((projected(&all).len(), all.disabled), (projected_services().len(), Vec::new()));

        let none = selected(|_| false);
        assert_eq!(projected(&none), ["accounts", "deliveries", "payments", "receipts", "watches"]);
        assert_eq!(none.disabled.len(), names().count() - 1);
        assert!(none.disabled.iter().all(|disabled| disabled.needed_by.is_none()), "{:?}", none.disabled);

        let some = selected(|name| name != "awards" && name != "labs");
        assert!(projected(&some).contains(&"awards") && !projected(&some).contains(&"labs"), "{:?}", projected(&some));
        let awards = Disabled { service: "awards", needed_by: Some("exclusions") };
        assert_eq!(some.disabled, [awards, Disabled { service: "labs", needed_by: None }]);
        assert!(projected(&some).is_sorted());

        let without = selected(|name| name != "awards" && name != "exclusions");
        assert!(!projected(&without).contains(&"awards"), "{:?}", projected(&without));
    }
}

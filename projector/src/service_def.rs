//! What the projector knows of each service that it runs: its view, and the topics that it reads and writes. The list of services is handed to it.

use fold::service::Service;
use schemas::tables::ViewDef;
use schemas::topics::{self, Topic, TopicKind};

/// A service: its view and its topics.
#[derive(Clone, Copy, Debug)]
pub struct ServiceDef {
    /// The tables of the service. The view has the name of the service.
    pub view: &'static ViewDef,
    /// The topics that the service decides from.
    pub inputs: &'static [Topic],
    /// The change topic of the service.
    pub changes: &'static Topic,
}

impl ServiceDef {
    /// The definition of a service.
    #[must_use]
    pub const fn of<S: Service>() -> Self {
        Self { view: S::VIEW, inputs: S::INPUTS, changes: S::CHANGES }
    }

    /// Whether the service decides from the records of a topic.
    #[must_use]
    pub fn reads(&self, topic: &Topic) -> bool {
        self.inputs.iter().any(|input| input.name == topic.name)
    }
}

/// Returns the topics that the engine's view indexes: facts, commands, rejected records, and the changes that another service decides from.
#[must_use]
pub fn indexed_topics(services: &[ServiceDef]) -> Vec<&'static Topic> {
    topics::ALL
        .iter()
        .filter(|topic| match topic.kind {
            TopicKind::Facts | TopicKind::Commands | TopicKind::Rejects => true,
            TopicKind::Changes => services.iter().any(|service| service.reads(topic)),
            TopicKind::Imports => false,
        })
        .collect()
}

/// Returns a service's change topic that depends on itself, directly or through the changes of other services; `None` if there is none.
#[must_use]
pub fn circle(services: &[ServiceDef]) -> Option<&'static str> {
    let changes = |service: &ServiceDef| service.inputs.iter().filter(|input| input.kind == TopicKind::Changes).map(|input| input.name);
    let links: Vec<(&str, &str)> =
        services.iter().flat_map(|service| changes(service).map(|input| (service.changes.name, input)).collect::<Vec<_>>()).collect();
    circle_of(&links)
}

/// Returns a change topic that depends on itself. A link names a service's change topic and an input of the service.
fn circle_of<'a>(links: &[(&'a str, &'a str)]) -> Option<&'a str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a service that decides from changes which depend on its own is found.
    #[test]
    fn circles_are_found() {
        assert_eq!(circle_of(&[("a", "b"), ("b", "c"), ("d", "c")]), None);
        assert_eq!(circle_of(&[("d", "a"), ("a", "b"), ("b", "c"), ("c", "a")]), Some("a"));
        assert_eq!(circle_of(&[("a", "a")]), Some("a"));
    }
}

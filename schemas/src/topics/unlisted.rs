//! The change topics of services whose code is complete and tested, but which are not in the list of services. No log creates them. To list a service,
//! move its topic to [`super::ALL`] and its schema from [`avro::UNLISTED`](crate::avro::UNLISTED) to [`avro::ALL`](crate::avro::ALL), and add it to
//! [`views::SERVICES`](crate::views::SERVICES), to `for_each_service!` of the projector and to the registrations of the API; `cargo xtask tidy` and the
//! tests then name what is missing: settings, tables for CQL, and documents.

use super::{Topic, TopicKind};

/// The phrases service's changes.
pub const CHANGES_PHRASES: Topic = Topic { name: "changes.phrases", kind: TopicKind::Changes, partitions: 1, private: false };

/// The topics of this module.
pub const ALL: &[Topic] = &[CHANGES_PHRASES];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{avro, topics, views};

    /// Proves that each topic of this module has a schema and is in no list of what a process creates, writes or serves.
    #[test]
    fn unlisted_topics_are_in_no_list() {
        assert!(ALL.iter().map(|topic| topic.name).eq(avro::UNLISTED.iter().map(|text| text.topic)));
        for topic in ALL {
            assert!(avro::Encoder::new(topic.name).is_ok(), "{}", topic.name);
            assert_eq!(topics::by_name(topic.name), None);
            assert!(avro::ALL.iter().all(|text| text.topic != topic.name), "{}", topic.name);
            assert!(views::SERVICES.iter().all(|view| topic.name.strip_prefix("changes.") != Some(view.name)), "{}", topic.name);
        }
    }
}

//! The feed of a service with one kind of record, which follows from the rules of the service.

use fold::records::Rules;
use schemas::topics::Topic;

use super::Source;
use super::query::Feed;
use super::redaction::Redaction;
use super::source::SAMPLE_DAYS;

/// The feed of a service with one kind of record. It follows from the [`Rules`] of the service; an implementation states only what differs.
pub trait RecordFeed: Rules {
    /// The topics of facts whose upstreams determine how complete the service is.
    const FACTS: &'static [Topic] = Self::INPUTS;
    /// How callers below some tier see the records, if not whole.
    const REDACTION: Option<Redaction> = None;
    /// How many days back callers without a key see; `None`: everything, or the redacted form of it.
    const SAMPLE_DAYS: Option<i64> = if Self::REDACTION.is_some() { None } else { Some(SAMPLE_DAYS) };
    /// The field of an answer that holds the changes.
    const LIST: &'static str = "changes";

    /// The feed of the service's changes under a filter.
    const FEED: Feed = Feed {
        source: Source {
            sample_days: Self::SAMPLE_DAYS,
            redaction: Self::REDACTION,
            ..Source::of_records(Self::TABLES, Self::CHANGES, Self::FACTS)
        },
        tables: Self::TABLES,
        list: Self::LIST,
    };
}

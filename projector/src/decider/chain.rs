//! The changes of a chain: how each is encoded, read back, and which rows it writes.

use bytes::Bytes;
use event_log::{Append, Headers, Record, Stored};
use proofs::hash::Hash32;
use schemas::avro;
use schemas::change::{Change, Through};
use schemas::clock::{day_of, rfc3339};
use schemas::position::Seq;
use schemas::tables::Write;
use view_store::Checkpoint;

use crate::Error;
use fold::service::{Draft, Service};

/// The size of most records as JSON, in bytes.
const RECORD_BYTES: usize = 2_048;

/// A change of service `S`.
pub type ChangeOf<S> = Change<<S as Service>::Record, <S as Service>::Note>;

/// A draft with the two parts that only the decider adds: the content of a `through` change, and the reason of a parked input.
pub(super) type PendingDraft<S> = (Draft<<S as Service>::Record, <S as Service>::Note>, Option<Through>, String);

/// The end of the chain, which the next change extends.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) seq: Seq,
    pub(super) hash: Hash32,
    pub(super) recorded_at: i64,
}

/// A change as read from the log.
pub(super) struct Logged<S: Service> {
    pub(super) change: ChangeOf<S>,
    pub(super) value: Bytes,
    pub(super) hash: Hash32,
}

/// A decided change, encoded, with its writes.
pub(super) struct Decided<S: Service> {
    pub(super) change: ChangeOf<S>,
    pub(super) value: Bytes,
    pub(super) hash: Hash32,
    /// The record after the change, as JSON.
    pub(super) record: Vec<u8>,
    pub(super) writes: Vec<Write>,
}

impl<S: Service> Decided<S> {
    pub(super) fn link(&self) -> Link {
        Link { seq: self.change.seq, hash: self.hash, recorded_at: self.change.recorded_at }
    }

    /// Creates the log record of the change.
    pub(super) fn record(&self) -> Append {
        let Self { change, value, hash, .. } = self;
        let kind = format!("highwater.{}.{}", S::NAME, change.event.as_str());
        let headers = Headers::cloud_event(&hash.to_string(), &kind, &format!("/{}", S::NAME), &rfc3339(change.recorded_at));
        let record = Record { key: Bytes::from(change.id.clone()), value: value.clone(), headers, at_ms: change.recorded_at };
        Append { topic: S::CHANGES, partition: 0, record }
    }
}

/// Returns the writes of a change, ordered by its seq.
pub(super) fn writes_of<S: Service>(change: &ChangeOf<S>, record: &[u8]) -> Vec<Write> {
    S::apply(change, record).into_iter().map(|write| write.at(change.seq.stored())).collect()
}

/// Returns the record after a change as JSON; empty if the change has none.
pub(super) fn record_json<S: Service>(change: &ChangeOf<S>) -> Result<Vec<u8>, Error> {
    match &change.after {
        Some(record) => {
            let mut out = Vec::with_capacity(RECORD_BYTES);
            serde_json::to_writer(&mut out, record).map_err(|source| Error::Row { table: S::RECORDS.name, source })?;
            Ok(out)
        }
        None => Ok(Vec::new()),
    }
}

/// Returns the feed element of a change, the JSON that readers see: event, seq, time, change details, whether it is late news, and record.
pub(super) fn element<S: Service>(change: &ChangeOf<S>, record: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(record.len() + 96);
    let (event, recorded_at) = (change.event.as_str(), rfc3339(change.recorded_at));
    let head = format!(r#"{{"event":"{event}","seq":{},"recordedAt":"{recorded_at}""#, change.seq);
    out.extend_from_slice(head.as_bytes());
    if let Some(after) = &change.after {
        let details = S::change_details(after, change);
        let backfill = S::backfill(after, &details, change, day_of(change.recorded_at));
        let details = serde_json::to_vec(&details).map_err(|source| Error::Row { table: S::FEED.name, source })?;
        // The details are an object, whose members become members of the element.
        if let [b'{', members @ .., b'}'] = details.as_slice()
            && !members.is_empty()
        {
            out.push(b',');
            out.extend_from_slice(members);
        }
        if let Some(backfill) = backfill {
            out.extend_from_slice(format!(r#","backfill":{backfill}"#).as_bytes());
        }
    }
    out.extend_from_slice(br#","record":"#);
    out.extend_from_slice(record);
    out.push(b'}');
    Ok(out)
}

/// Decodes a log record and returns its change if it extends the chain after change `seq` with that hash.
///
/// # Errors
/// When a newer version of the program wrote the record: if it were passed over, this version would append another change in its place.
pub(super) fn extends<S: Service>(stored: &Stored, seq: Seq, hash: Hash32) -> Result<Option<ChangeOf<S>>, Error> {
    match avro::decode::<ChangeOf<S>>(S::CHANGES.name, &stored.record.value) {
        Ok(change) => Ok(change.extends(seq, hash).then_some(change)),
        Err(source @ avro::Error::UnknownFingerprint(_)) if stored.record.headers.is_event() => Err(Error::Refused(format!(
            "a newer version of this program wrote the change at {}/0 offset {} ({source}), and this is version {}: start the newer version",
            S::CHANGES.name,
            stored.offset,
            env!("CARGO_PKG_VERSION"),
        ))),
        // Anything else in the topic is no change.
        Err(_) => Ok(None),
    }
}

/// Returns the hash of the last change that a checkpoint covers; zeros if it covers none.
pub(super) fn last_hash<S: Service>(checkpoint: &Checkpoint) -> Result<Hash32, Error> {
    match checkpoint.hash.as_str() {
        "" => Ok(Hash32::ZERO),
        hash => Hash32::from_hex(hash).ok_or_else(|| Error::CheckpointHash { view: S::VIEW.name, hash: hash.to_owned() }),
    }
}

pub(super) fn value_error<S: Service>(source: avro::Error) -> Error {
    Error::Value { topic: S::CHANGES.name.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use fold::testing;
    use schemas::change::ChangeKind;
    use schemas::views::recalls::{Recall, RecallChange};

    use super::*;
    use recalls::rules::Recalls;

    fn element_of(event: ChangeKind, record: Recall) -> String {
        let change = RecallChange { seq: Seq(7), ..testing::change(event, record.id.clone(), [None, Some(record)]) };
        String::from_utf8(element::<Recalls>(&change, br#"{"id":"FDA:1"}"#).unwrap()).unwrap()
    }

    /// Proves that a change tells when its record's link leads to another site, and has no more members if it does not.
    #[test]
    fn changes_mark_links_to_other_sites() {
        let head = r#"{"event":"new","seq":7,"recordedAt":"1970-01-01T00:00:00.000Z""#;
        let record = r#""record":{"id":"FDA:1"}}"#;
        let element_with =
            |url: &str| element_of(ChangeKind::New, Recall { id: "FDA:1".to_owned(), url: url.to_owned(), ..Recall::default() });
        assert_eq!(element_with("https://www.fda.gov/1"), format!("{head},{record}"));
        assert_eq!(element_with("https://fda.gov.evil.example/1"), format!(r#"{head},"urlNote":"not on the agency's own site",{record}"#));
    }

    /// Proves that a change is marked if it records an old recall first, and that any other change is written as it was before marks existed.
    #[test]
    fn changes_mark_late_news() {
        for (event, date, mark) in [
            (ChangeKind::New, "1969-11-01", r#","backfill":true"#),
            (ChangeKind::New, "1969-11-02", ""),
            (ChangeKind::New, "", ""),
            (ChangeKind::Modified, "1969-01-01", ""),
        ] {
            let record = Recall { id: "FDA:1".to_owned(), date: date.to_owned(), ..Recall::default() };
            let head = format!(r#"{{"event":"{}","seq":7,"recordedAt":"1970-01-01T00:00:00.000Z""#, event.as_str());
            assert_eq!(element_of(event, record), format!(r#"{head}{mark},"record":{{"id":"FDA:1"}}}}"#), "{event:?} {date}");
        }
    }
}

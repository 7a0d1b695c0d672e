//! What the tests of the records of services have in common.

#![expect(clippy::unwrap_used, reason = "a test that meets an error here fails by panicking")]

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::avro::{self, Encoder};
use crate::change::{ChangeKind, Input, Through};
use crate::hash::Hash32;
use crate::position::{LogOffset, Seq};
use crate::views::records::{Note, NoteRow, RecordChange};

/// Fails unless a change with a value in every field reads back as written.
///
/// # Panics
/// When it does not.
pub fn assert_change_reads_back<R>(topic: &'static str, id: &str, before: R, after: R)
where
    R: Debug + PartialEq + Serialize + DeserializeOwned,
{
    let change = RecordChange {
        seq: Seq(2),
        prev_hash: Hash32::of(b"x"),
        event: ChangeKind::Modified,
        id: id.to_owned(),
        recorded_at: 5,
        input: Input { topic: "grants".into(), partition: 3, offset: Some(LogOffset(9)) },
        following: 1,
        before_seq: Seq(1),
        before_since: Seq(1),
        after: Some(after),
        before: Some(before),
        note: Some(Note { rows: vec![NoteRow { key: "k".into(), value: "{}".into() }] }),
        through: Some(Through { upstream: "nih_reporter".into(), through_date: "2026-01-01".into(), finished_at: 1 }),
        reason: "r".into(),
    };
    let framed = Encoder::new(topic).unwrap().encode(&change).unwrap();
    assert_eq!(avro::decode::<RecordChange<R>>(topic, &framed).unwrap(), change);
}

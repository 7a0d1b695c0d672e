//! What the tests of the records of services, and of the commands, have in common.

#![expect(clippy::unwrap_used, reason = "a test that meets an error here fails by panicking")]

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::avro::{self, Encoder};
use crate::change::{ChangeKind, Input, Through};
use crate::event::Command;
use crate::position::{LogOffset, Seq};
use crate::views::records::{RecordChange, RememberedRow, RememberedRows};
use proofs::hash::Hash32;

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
        note: Some(RememberedRows { rows: vec![RememberedRow { key: "k".into(), value: "{}".into() }] }),
        through: Some(Through { upstream: "nih_reporter".into(), through_date: "2026-01-01".into(), finished_at: 1 }),
        reason: "r".into(),
    };
    let framed = Encoder::new(topic).unwrap().encode(&change).unwrap();
    assert_eq!(avro::decode::<RecordChange<R>>(topic, &framed).unwrap(), change);
}

/// Fails unless the stored form of a command has its own fields and no others, a change of each of them changes the canonical form, and the stored form
/// reads back. `whole` is the verb of the command and a value of every field; `own` are the names of its own fields.
///
/// # Panics
/// When it does not.
pub fn assert_own_fields<C>(whole: &Value, own: &[&str])
where
    C: Command + Debug + PartialEq + DeserializeOwned,
{
    let command: C = serde_json::from_value(whole.clone()).unwrap();
    let verb = command.verb();
    assert_eq!(whole["verb"], verb);
    let written = serde_json::to_value(&command).unwrap();
    for (name, value) in whole.as_object().unwrap() {
        let is_own = name == "verb" || own.contains(&name.as_str());
        assert_eq!(written[name] == *value, is_own, "{verb} {name}");
        let mut changed = whole.clone();
        changed[name] = if value.is_number() { json!(8) } else { json!("other") };
        let changed: C = serde_json::from_value(changed).unwrap();
        assert_eq!(changed.canonical() != command.canonical(), is_own, "{verb} {name}");
    }
    assert_eq!(serde_json::from_value::<C>(written).unwrap(), command);
}

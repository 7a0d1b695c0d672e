//! What the tests of the kinds of facts have in common.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::avro::{self, Encoder};
use crate::event::{Fact, FactKind};
use crate::facts::{self, FactData};
use proofs::hash::Hash32;

/// Fails unless a change of any field changes the canonical form, except of the named fields, whose change does not.
pub(crate) fn assert_all_fields_are_hashed<R>(canonical: impl Fn(&R) -> Vec<u8>, except: &[&str])
where
    R: Default + Serialize + DeserializeOwned,
{
    let empty = serde_json::to_value(R::default()).unwrap();
    for (name, value) in empty.as_object().unwrap() {
        let mut changed = empty.clone();
        changed[name] = match value {
            Value::String(_) => json!("x"),
            Value::Array(_) => json!(["x"]),
            // Zero is a known number, unlike `null`.
            Value::Null => json!(0),
            Value::Number(_) => json!(1),
            _ => json!(true),
        };
        let record: R = serde_json::from_value(changed).unwrap();
        assert_eq!(canonical(&record) == canonical(&R::default()), except.contains(&name.as_str()), "{name}");
    }
}

/// Fails unless a record reads back as it is written.
pub(crate) fn assert_reads_back<R>(record: R, data: &FactData)
where
    R: Debug + PartialEq + DeserializeOwned,
{
    let fact = Fact {
        id: Hash32::ZERO,
        kind: FactKind::Observed,
        key: "a/b",
        version: 1,
        prev_hash: Hash32::ZERO,
        content_hash: Hash32::ZERO,
        upstream: "a",
        observed_at: 5,
        superseded_by: "",
        data: Some(data),
        run: None,
    };
    let topic = data.topic().name;
    let bytes = facts::encode(&mut Encoder::new(topic).unwrap(), fact).unwrap();
    assert_eq!(avro::decode::<Fact<R>>(topic, &bytes).unwrap().data, Some(record));
}

/// Returns a record with a value in every field, which says which field it is.
pub(crate) fn with_every_field<R>() -> R
where
    R: Default + Serialize + DeserializeOwned,
{
    let mut value = serde_json::to_value(R::default()).unwrap();
    for (name, field) in value.as_object_mut().unwrap() {
        *field = match field {
            Value::String(_) => json!(format!("the {name}")),
            Value::Array(_) => json!([format!("a {name}"), format!("b {name}")]),
            Value::Null | Value::Number(_) => json!(7),
            _ => json!(true),
        };
    }
    serde_json::from_value(value).unwrap()
}

//! What callers below some tier see of a service's records: a redacted form, and only for a while.
//!
//! A record type states both ([`Redact`]), its service's [`Source`](super::Source) names the type, and every reader of records or changes asks
//! [`Source::redaction_for`](super::Source::redaction_for) before it shows one. Promise: what a redaction returns contains no other value of the record than
//! its redacted form, and no id.

use bytes::Bytes;
use operation::Operation;
use operation::problem::Problem;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use schemas::views::records::{Record, Redact};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::free::FreeWindow;

/// Turns JSON into its redacted form; `None` if it is not within the free window.
type Redactor = fn(&[u8], FreeWindow) -> serde_json::Result<Option<Value>>;

/// How the records of a service are shown to callers below some tier.
#[derive(Clone, Copy, Debug)]
pub struct Redaction {
    /// The lowest tier whose callers see the whole records.
    pub whole_from: Tier,
    /// For how many days back callers below that tier see changes.
    pub days: i64,
    /// See [`Redact::IDS_ARE_PUBLIC`].
    pub ids_are_public: bool,
    /// See [`Redact::NOTE`].
    note: Option<&'static str>,
    record: Redactor,
    change: Redactor,
    form: fn(&[u8]) -> serde_json::Result<Value>,
    by_id: fn(&[u8]) -> serde_json::Result<bool>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// A change as the feed stores it, without its details.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "R: DeserializeOwned"))]
struct StoredChange<R> {
    event: String,
    seq: u64,
    recorded_at: String,
    backfill: Option<bool>,
    record: R,
}

/// A change as it is shown in redacted form.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RedactedChange<T> {
    event: String,
    seq: u64,
    recorded_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    backfill: Option<bool>,
    record: T,
}

impl Redaction {
    /// The redaction of a type of record.
    #[must_use]
    pub const fn of<R: Redact>() -> Self {
        let (whole_from, days, note, ids_are_public) = (R::WHOLE_FROM, R::FREE_DAYS, R::NOTE, R::IDS_ARE_PUBLIC);
        Self {
            whole_from,
            days,
            ids_are_public,
            note,
            record: record::<R>,
            change: change::<R>,
            form: form::<R>,
            by_id: by_id::<R>,
            schema: schema::<R>,
        }
    }

    /// The redacted form of a stored record, which is given as JSON. `None` if it is not within the free window.
    ///
    /// # Errors
    /// `internal` if the record cannot be decoded.
    pub fn record(&self, record: &[u8], window: FreeWindow) -> Result<Option<Value>, Problem> {
        (self.record)(record, window).map_err(unreadable)
    }

    /// The redacted form of a record, whether or not it is free: only to compare it with another version.
    ///
    /// # Errors
    /// `internal` if the record cannot be decoded.
    pub fn form(&self, record: &[u8]) -> Result<Value, Problem> {
        (self.form)(record).map_err(unreadable)
    }

    /// Whether callers who see the redacted form may ask for a record by its id, see [`Redact::is_shown_by_id`].
    ///
    /// # Errors
    /// `internal` if the record cannot be decoded.
    pub fn is_shown_by_id(&self, record: &[u8]) -> Result<bool, Problem> {
        (self.by_id)(record).map_err(unreadable)
    }

    /// The redacted form of a change, which is given as JSON as the feed stores it. `None` if it is not within the free window.
    ///
    /// # Errors
    /// `internal` if the change cannot be decoded.
    pub fn change(&self, change: &[u8], window: FreeWindow) -> Result<Option<Bytes>, Problem> {
        Ok((self.change)(change, window).map_err(unreadable)?.map(|value| Bytes::from(value.to_string())))
    }

    /// The JSON schema of the redacted form of a record.
    #[must_use]
    pub fn schema(&self) -> Value {
        operation::schema::output_of(self.schema)
    }

    /// Adds the redacted form to the answer of an operation, wherever it has a change with its record: any object with the properties `seq` and
    /// `record`. Such an object needs no `id`.
    pub fn add_to(&self, operation: &mut Operation) {
        let redacted = self.schema();
        add_to(&mut operation.output, &redacted);
        add_to(&mut operation.named_output.schema, &redacted);
        for named in operation.named_output.types.values_mut() {
            add_to(named, &redacted);
        }
    }

    /// The note for callers who get the redacted form.
    #[must_use]
    pub fn note(&self) -> String {
        if let Some(note) = self.note {
            return note.to_owned();
        }
        let (tier, days) = (self.whole_from.as_str(), self.days);
        format!(
            "below tier {tier}, records of the last {days} days are shown in a redacted form; a key of tier {tier} or above shows all of them whole"
        )
    }
}

fn record<R: Redact>(record: &[u8], window: FreeWindow) -> serde_json::Result<Option<Value>> {
    let record: R = serde_json::from_slice(record)?;
    if is_shown(&record, window) { serde_json::to_value(record.redacted()).map(Some) } else { Ok(None) }
}

fn form<R: Redact>(record: &[u8]) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_slice::<R>(record)?.redacted())
}

fn by_id<R: Redact>(record: &[u8]) -> serde_json::Result<bool> {
    Ok(serde_json::from_slice::<R>(record)?.is_shown_by_id())
}

fn change<R: Redact>(change: &[u8], window: FreeWindow) -> serde_json::Result<Option<Value>> {
    let StoredChange::<R> { event, seq, recorded_at, backfill, record } = serde_json::from_slice(change)?;
    if !is_shown(&record, window) {
        return Ok(None);
    }
    serde_json::to_value(RedactedChange { event, seq, recorded_at, backfill, record: record.redacted() }).map(Some)
}

fn add_to(schema: &mut Value, redacted: &Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get_mut("properties")
                && properties.contains_key("seq")
                && let Some(record) = properties.get_mut("record")
            {
                let whole = record.take();
                *record = json!({ "anyOf": [whole, redacted] });
                if let Some(Value::Array(required)) = fields.get_mut("required") {
                    required.retain(|name| name != "id");
                }
            }
            // A redacted form has no `seq` of its own, so a record that was changed is not changed again.
            fields.values_mut().for_each(|value| add_to(value, redacted));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| add_to(item, redacted)),
        _ => {}
    }
}

/// Whether callers below the tier see a record. Lists leave withdrawn records out; changes and single records show one if its redacted form says so.
fn is_shown<R: Redact>(record: &R, window: FreeWindow) -> bool {
    (R::MARKS_UNLISTED || Record::is_listed(record)) && window.shows(record)
}

fn schema<R: Redact>(generator: &mut SchemaGenerator) -> Schema {
    R::Redacted::json_schema(generator)
}

fn unreadable(error: serde_json::Error) -> Problem {
    tracing::error!(%error, "a stored record cannot be redacted");
    Problem::new(ErrorCode::Internal, "a stored record cannot be read")
}

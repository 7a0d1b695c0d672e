//! What callers below some tier see of a service's records: a redacted form, and only for a while.
//!
//! A record type states both ([`Redact`]), its service's [`Source`](super::Source) names the type, and every reader of records or changes asks
//! [`Source::redaction_for`](super::Source::redaction_for) before it shows one. Promise: what a redaction returns contains no other value of the record than its redacted
//! form, and no id.

use bytes::Bytes;
use jiff::civil::Date;
use operation::problem::Problem;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use schemas::views::records::{Record, Redact};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Turns JSON into its redacted form; `None` if it is not shown on that day.
type Redactor = fn(&[u8], Date) -> serde_json::Result<Option<Value>>;

/// How the records of a service are shown to callers below some tier.
#[derive(Clone, Copy, Debug)]
pub struct Redaction {
    /// The lowest tier whose callers see the whole records.
    pub whole_from: Tier,
    /// For how many days back callers below that tier see changes.
    pub days: i64,
    /// See [`Redact::NOTE`].
    note: Option<&'static str>,
    record: Redactor,
    change: Redactor,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// A change as the feed stores it, without its details.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "R: DeserializeOwned"))]
struct StoredChange<R> {
    event: String,
    seq: u64,
    recorded_at: String,
    record: R,
}

/// A change as it is shown in redacted form.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RedactedChange<T> {
    event: String,
    seq: u64,
    recorded_at: String,
    record: T,
}

impl Redaction {
    /// The redaction of a type of record.
    #[must_use]
    pub const fn of<R: Redact>() -> Self {
        let (whole_from, days, note) = (R::WHOLE_FROM, R::FREE_DAYS, R::NOTE);
        Self { whole_from, days, note, record: record::<R>, change: change::<R>, schema: schema::<R> }
    }

    /// The redacted form of a stored record, which is given as JSON. `None` if it is not shown on that day.
    ///
    /// # Errors
    /// `internal` if the record cannot be decoded.
    pub fn record(&self, record: &[u8], today: Date) -> Result<Option<Value>, Problem> {
        (self.record)(record, today).map_err(unreadable)
    }

    /// The redacted form of a change, which is given as JSON as the feed stores it. `None` if it is not shown on that day.
    ///
    /// # Errors
    /// `internal` if the change cannot be decoded.
    pub fn change(&self, change: &[u8], today: Date) -> Result<Option<Bytes>, Problem> {
        Ok((self.change)(change, today).map_err(unreadable)?.map(|value| Bytes::from(value.to_string())))
    }

    /// The JSON schema of the redacted form of a record.
    #[must_use]
    pub fn schema(&self) -> Value {
        operation::schema::output_of(self.schema)
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

fn record<R: Redact>(record: &[u8], today: Date) -> serde_json::Result<Option<Value>> {
    let record: R = serde_json::from_slice(record)?;
    if is_shown(&record, today) { serde_json::to_value(record.redacted()).map(Some) } else { Ok(None) }
}

fn change<R: Redact>(change: &[u8], today: Date) -> serde_json::Result<Option<Value>> {
    let StoredChange::<R> { event, seq, recorded_at, record } = serde_json::from_slice(change)?;
    if !is_shown(&record, today) {
        return Ok(None);
    }
    serde_json::to_value(RedactedChange { event, seq, recorded_at, record: record.redacted() }).map(Some)
}

/// Whether callers below the tier see a record. Lists leave withdrawn records out.
fn is_shown<R: Redact>(record: &R, today: Date) -> bool {
    Record::is_listed(record) && record.is_free(today)
}

fn schema<R: Redact>(generator: &mut SchemaGenerator) -> Schema {
    R::Redacted::json_schema(generator)
}

fn unreadable(error: serde_json::Error) -> Problem {
    tracing::error!(%error, "a stored record cannot be redacted");
    Problem::new(ErrorCode::Internal, "a stored record cannot be read")
}

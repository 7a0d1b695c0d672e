//! What a filtered feed shows: a filter of one service's changes, and how its changes are found without reading all.

use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::views::records::{Record, normal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use view_store::feed::Page;

use super::position::Position;
use operation::context::Context;
use operation::problem::Problem;

/// One change as the feed has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "R: DeserializeOwned"))]
pub struct Element<R: ChangeRecord> {
    /// `new` or `modified`.
    pub event: String,
    /// Number of the change within the service.
    pub seq: u64,
    /// When it was recorded, RFC 3339 in UTC.
    pub recorded_at: String,
    /// What the change shows in addition to the record.
    #[serde(flatten)]
    pub details: R::Details,
    /// The record after it.
    pub record: R,
}

/// The changes of a page.
///
/// # Errors
/// `internal` for what cannot be read.
pub fn elements<R: ChangeRecord + DeserializeOwned>(page: &Page) -> Result<Vec<Element<R>>, Problem> {
    let parts: Vec<&[u8]> = page.parts.iter().map(AsRef::as_ref).collect();
    let list = [b"[", parts.join(b",".as_slice()).as_slice(), b"]"].concat();
    serde_json::from_slice(&list).map_err(|error| {
        tracing::error!(%error, "a page of changes cannot be read");
        Problem::new(ErrorCode::Internal, "stored changes cannot be read")
    })
}

/// Terms of which a change that fits has at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One of these values.
    Exact(&'static str, Vec<String>),
    /// A value that contains this text.
    Part(&'static str, String),
    /// A value that begins with one of these.
    Prefix(&'static str, Vec<String>),
}

/// A filter of one service's changes. Its fields in their order are its canonical form, so those that say nothing are left out when it is
/// written.
pub trait Filter: Serialize + DeserializeOwned + Clone + Default + PartialEq + Send + Sync + 'static {
    /// The records it looks at.
    type Record: Record;

    /// Whether a change fits.
    fn fits(&self, change: &Element<Self::Record>) -> bool;

    /// How changes that fit are found, each way by itself; the first that is selective enough is taken. None: all are looked at.
    fn wanted(&self) -> Vec<Wanted>;

    /// Looks up what the filter means at a position, which is no part of its canonical form; a note where that is nothing.
    ///
    /// # Errors
    /// When the feed cannot be read.
    fn look_up(&mut self, _ctx: &Context, _at: &Position) -> impl Future<Output = Result<Option<String>, Problem>> + Send {
        std::future::ready(Ok(None))
    }

    /// A value of a dimension that may stand for any: changes under it are looked at beside those of the values found.
    fn beside(&self, _dimension: &str) -> Option<&'static str> {
        None
    }

    /// This filter, with the fields that it leaves out as another has them.
    ///
    /// # Errors
    /// `internal`, which does not happen: both are of one kind.
    fn over(&self, base: &Self) -> Result<Self, Problem> {
        let unwritten = |error: serde_json::Error| {
            tracing::error!(%error, "a filter cannot be written");
            Problem::new(ErrorCode::Internal, "the filter could not be read")
        };
        let mut merged = serde_json::to_value(base).map_err(unwritten)?;
        if let (Value::Object(merged), Value::Object(own)) = (&mut merged, serde_json::to_value(self).map_err(unwritten)?) {
            merged.extend(own);
        }
        serde_json::from_value(merged).map_err(unwritten)
    }

    /// The canonical form; empty for the filter that lets all pass.
    fn canonical(&self) -> String {
        if *self == Self::default() { String::new() } else { serde_json::to_string(self).unwrap_or_default() }
    }

    /// The filter of a canonical form; `None` if it is none of this version's.
    fn of_canonical(text: &str) -> Option<Self> {
        if text.is_empty() { Some(Self::default()) } else { serde_json::from_str(text).ok() }
    }
}

/// Whether a value contains a text that was asked for, as terms are compared.
#[must_use]
pub fn contains(value: &str, part: &str) -> bool {
    normal(value).contains(&normal(part))
}

/// Whether a value is one that was asked for, as terms are compared.
#[must_use]
pub fn is_one_of(value: &str, wanted: &[String]) -> bool {
    let value = normal(value);
    wanted.iter().any(|wanted| normal(wanted) == value)
}

/// Whether all words of a text occur in one of some texts or another, each as a word or the beginning of one, whatever their case.
#[must_use]
pub fn has_words(texts: &[&str], wanted: &str) -> bool {
    let split = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let words: Vec<String> = texts.iter().flat_map(|text| split(text)).collect();
    split(wanted).iter().all(|wanted| words.iter().any(|word| word.starts_with(wanted)))
}

/// Reads an element of the feed.
pub(crate) fn read<R: ChangeRecord + DeserializeOwned>(element: &[u8]) -> Result<Element<R>, Problem> {
    serde_json::from_slice(element).map_err(|error| {
        tracing::error!(%error, "a change in the feed cannot be read");
        Problem::new(ErrorCode::Internal, "a stored change cannot be read")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how values are compared with what was asked for.
    #[test]
    fn comparisons() {
        assert!(contains("ACME  Holdings", "me hold") && !contains("ACME", "acme corp"));
        assert!(is_one_of("8-K", &["10-k".into(), "8-k".into()]) && !is_one_of("8-K/A", &["8-K".into()]));
        assert!(has_words(&["Cloud migration", "Phase II"], "PHASE mig") && !has_words(&["Cloud"], "loud"));
    }
}

//! What every page of the server has in common.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Field, Object};
use crate::{Stream, UpstreamError, json, text};

/// An answer of any endpoint.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) results: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) page_metadata: Object<PageMetadata<'a>>,
    #[serde(borrow)]
    pub(super) messages: Field<'a>,
    #[serde(borrow)]
    pub(super) detail: Field<'a>,
    /// Present in the answer to a request for one award.
    #[serde(borrow)]
    pub(super) generated_unique_award_id: Field<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageMetadata<'a> {
    #[serde(borrow)]
    pub(super) page: Field<'a>,
    #[serde(borrow, rename = "hasNext")]
    pub(super) has_next: Field<'a>,
    #[serde(borrow)]
    pub(super) last_record_unique_id: Field<'a>,
    #[serde(borrow)]
    pub(super) last_record_sort_value: Field<'a>,
}

/// The paging information of an answer.
#[derive(Debug, Default)]
pub(super) struct Paging {
    /// The page number, if the answer has one.
    pub(super) page: Option<u32>,
    pub(super) has_next: bool,
    /// The id and sort value for continuing beyond the numbered pages; always both.
    pub(super) after: Option<(u64, String)>,
}

/// The number of rows in each group of award types.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts<'a> {
    #[serde(borrow)]
    pub(super) contracts: Field<'a>,
    #[serde(borrow)]
    pub(super) idvs: Field<'a>,
}

/// The kind of an answer. It is recognised by its form, not by the request, so that a rejected record can be read again on its own.
pub(super) enum Content<'a> {
    Counts(Counts<'a>),
    Award(&'a RawValue),
    Rows(Vec<&'a RawValue>),
    Nothing,
}

impl<'a> Envelope<'a> {
    pub(super) fn read(stream: &Stream, status: u16, body: &'a str) -> Result<Self, UpstreamError> {
        let Object(read) = serde_json::from_str(body).map_err(|error| json::not_json(stream.name, body, &error))?;
        let envelope: Self = read.ok_or_else(|| json::later(stream.name, "a JSON value that is not an object"))?;
        if status != 200 {
            let words = text::cut(text::clean(envelope.detail.text()), 300);
            let reason = format!("refused by the upstream (status {status}): {words}");
            return Err(UpstreamError::Stop { stream: stream.name, field: "filters".to_owned(), reason });
        }
        Ok(envelope)
    }

    /// Checks the server's messages. If a filter was not used, the result is too large, so the whole answer is refused.
    pub(super) fn warnings(&self, stream: &Stream) -> Result<Vec<String>, UpstreamError> {
        let mut warnings = Vec::new();
        for message in self.messages.list() {
            let lower = message.to_ascii_lowercase();
            let message = text::cut(message, 300);
            if ["not used", "unused", "ignored", "unknown filter", "not supported"].iter().any(|words| lower.contains(words)) {
                return Err(UpstreamError::Stop {
                    stream: stream.name,
                    field: "filters".to_owned(),
                    reason: format!("the server says: {message}"),
                });
            }
            // This message is part of every answer.
            if !lower.contains("earliest date of 2007-10-01") {
                warnings.push(format!("the server says: {message}"));
            }
        }
        Ok(warnings)
    }

    pub(super) fn content(&self, body: &'a str) -> Content<'a> {
        let Some(results) = self.results else {
            let is_award = !self.generated_unique_award_id.text().is_empty();
            return serde_json::from_str(body).ok().filter(|_| is_award).map_or(Content::Nothing, Content::Award);
        };
        match results.get().as_bytes().first() {
            Some(b'[') => serde_json::from_str(results.get()).map_or(Content::Nothing, Content::Rows),
            Some(b'{') => serde_json::from_str(results.get()).map_or(Content::Nothing, Content::Counts),
            _ => Content::Nothing,
        }
    }

    pub(super) fn paging(&self) -> Paging {
        let Some(metadata) = &self.page_metadata.0 else { return Paging::default() };
        let id = metadata.last_record_unique_id.text().parse().ok();
        let value = Some(metadata.last_record_sort_value.text().to_owned()).filter(|value| !value.is_empty() && value.len() <= 200);
        Paging { page: metadata.page.text().parse().ok(), has_next: metadata.has_next.flag(), after: id.zip(value) }
    }
}

//! A document as the server sends it, and what identifies it.

use jiff::civil::Date;
use proofs::hash::Hash32;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::drift::FieldCounts;
use crate::json::Field;
use crate::text;

const TITLE_CHARS_MAX: usize = 1_000;

pub(super) const ABSTRACT_CHARS_MAX: usize = 4_000;

const DATES_BYTES_MAX: usize = 8_000;

pub(super) const LIST_MAX: usize = 50;

/// The fields that every document must have.
pub(super) struct Identity {
    pub(super) number: String,
    pub(super) title: String,
    pub(super) published: Date,
}

pub(super) fn short_hash(text: &str) -> String {
    Hash32::of(text.as_bytes()).to_string().chars().take(16).collect()
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DocumentPage<'a> {
    #[serde(borrow)]
    pub(super) count: Field<'a>,
    #[serde(borrow)]
    pub(super) next_page_url: Field<'a>,
    #[serde(borrow)]
    pub(super) results: Option<Vec<&'a RawValue>>,
}

pub(super) type FieldCheck = fn(&Document<'_>) -> bool;

pub(super) const EXPECTED: &[(&str, FieldCheck)] = &[
    ("document_number", |document| document.document_number.is_text()),
    ("title", |document| document.title.is_text()),
    ("publication_date", |document| document.publication_date.is_text()),
    ("html_url", |document| document.html_url.is_text()),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Document<'a> {
    #[serde(borrow)]
    pub(super) document_number: Field<'a>,
    #[serde(borrow)]
    pub(super) title: Field<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Field<'a>,
    #[serde(borrow)]
    pub(super) action: Field<'a>,
    #[serde(borrow)]
    pub(super) dates: Field<'a>,
    #[serde(borrow, rename = "abstract")]
    pub(super) summary: Field<'a>,
    #[serde(borrow)]
    pub(super) publication_date: Field<'a>,
    #[serde(borrow)]
    pub(super) html_url: Field<'a>,
    #[serde(borrow)]
    pub(super) docket_ids: Field<'a>,
    #[serde(borrow)]
    pub(super) effective_on: Field<'a>,
    #[serde(borrow)]
    pub(super) citation: Field<'a>,
    #[serde(borrow)]
    pub(super) correction_of: Field<'a>,
    #[serde(borrow)]
    pub(super) raw_text_url: Field<'a>,
}

impl Document<'_> {
    /// Counts the mapped fields.
    pub(super) fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("document_number", self.document_number.is_filled()),
            ("title", self.title.is_filled()),
            ("type", self.kind.is_filled()),
            ("action", self.action.is_filled()),
            ("dates", self.dates.is_filled()),
            ("abstract", self.summary.is_filled()),
            ("publication_date", self.publication_date.is_filled()),
            ("html_url", self.html_url.is_filled()),
            ("docket_ids", self.docket_ids.is_filled()),
        ]);
    }
}

/// Reads the fields that a document must have. The error names the document and the field.
pub(super) fn identity(document: &Document<'_>, today: Date) -> Result<Identity, (String, String)> {
    let number = text::number(document.document_number.text());
    let reference = number.clone().unwrap_or_else(|| text::cut(document.title.clean(), 100));
    let missing = |field: &str| (reference.clone(), format!("{field} is absent or not readable"));
    let title = text::cut(document.title.clean(), TITLE_CHARS_MAX);
    let published = text::date(document.publication_date.text()).filter(|day| text::is_plausible(*day, today));
    if document.dates.text().len() > DATES_BYTES_MAX {
        return Err((reference, format!("dates has more than {DATES_BYTES_MAX} bytes")));
    }
    Ok(Identity {
        number: number.ok_or_else(|| missing("document_number"))?,
        title: Some(title).filter(|title| !title.is_empty()).ok_or_else(|| missing("title"))?,
        published: published.ok_or_else(|| missing("publication_date"))?,
    })
}

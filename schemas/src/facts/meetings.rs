//! A notice of a meeting, as a journal published it.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// A notice of a meeting of an advisory committee. Texts are trimmed and white space is collapsed, except in `dates`; `""` means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MeetingFact {
    /// The stream: `federal_register.fda`.
    pub stream: String,
    /// The number of the document, `2026-16245`. An amendment is a document of its own.
    pub number: String,
    /// Title.
    pub title: String,
    /// Type of the document: `Notice`.
    pub kind: String,
    /// What the document does: `Notice.`
    pub action: String,
    /// The text about dates exactly as the journal publishes it; a hash of it is published.
    pub dates: String,
    /// The beginning of the abstract; at most 4,000 characters.
    pub summary: String,
    /// Day of publication, `YYYY-MM-DD`.
    pub published: String,
    /// Ids of the dockets, sorted: `FDA-2026-N-4321`.
    pub docket_ids: Vec<String>,
    /// Absolute https URL of the document.
    pub url: String,
}

impl MeetingFact {
    /// Returns the canonical form for the content hash, with every field.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{FactData, testing};

    /// Proves that a change of any field changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(MeetingFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record = MeetingFact {
            stream: "a".into(),
            number: "b".into(),
            title: "c".into(),
            kind: "d".into(),
            action: "e".into(),
            dates: "  f ".into(),
            summary: "g".into(),
            published: "h".into(),
            docket_ids: vec!["i".into(), "j".into()],
            url: "k".into(),
        };
        let data = FactData::Meeting(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

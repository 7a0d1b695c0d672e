//! A document about airworthiness directives, as a journal published it.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// A rule that adds, replaces or corrects airworthiness directives. Texts are trimmed and white space is collapsed; `""` means unknown. What the
/// text says is decided by the services that read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DirectiveFact {
    /// The stream: `federal_register.ads` or `faa_drs`.
    pub stream: String,
    /// The number of the document, `2026-17553`. Before 2016 some numbers were used twice, on different days. In `faa_drs` that of the directive, `78-10-03`.
    pub number: String,
    /// Title: `Airworthiness Directives; Piper Aircraft, Inc. Airplanes`.
    pub title: String,
    /// What the document does: `Final rule; correction.`
    pub action: String,
    /// The beginning of the abstract.
    pub summary: String,
    /// Day of publication, `YYYY-MM-DD`.
    pub published: String,
    /// The effective date that the journal gives, `YYYY-MM-DD`; empty if it gives none.
    pub effective_on: String,
    /// Ids of the dockets, sorted.
    pub docket_ids: Vec<String>,
    /// Where the document is in the journal: `91 FR 62307`.
    pub citation: String,
    /// The number of the document that this one corrects.
    pub correction_of: String,
    /// Absolute https URL of the document.
    pub url: String,
    /// The regulatory text, cleaned; at most 64 KiB.
    pub text: String,
    /// Whether the text is longer than what is kept.
    pub is_cut: bool,
    /// The makes that the upstream lists.
    pub makes: Vec<String>,
    /// The models that the upstream lists, in its order: it splits a model with a comma in two.
    pub models: Vec<String>,
    /// The kinds of products that the upstream lists: `Aircraft`, `Engine`, `Propeller`, `Appliance`.
    pub product_types: Vec<String>,
    /// The number of the directive that replaces this one, as the upstream says.
    pub superseded_by: String,
}

impl DirectiveFact {
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
        testing::assert_all_fields_are_hashed(DirectiveFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record = DirectiveFact {
            stream: "a".into(),
            number: "b".into(),
            title: "c".into(),
            action: "d".into(),
            summary: "e".into(),
            published: "f".into(),
            effective_on: "g".into(),
            docket_ids: vec!["h".into(), "i".into()],
            citation: "j".into(),
            correction_of: "k".into(),
            url: "l".into(),
            text: "m\n\nn".into(),
            is_cut: true,
            makes: vec!["o".into()],
            models: vec!["p".into(), "q".into()],
            product_types: vec!["r".into()],
            superseded_by: "s".into(),
        };
        let data = FactData::Directive(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

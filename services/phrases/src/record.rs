//! The rows of the phrases service: one record per phrase whose label was ever other than FLAT.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use schemas::details::ChangeRecord;
use schemas::suppression::{Hides, PHRASE, RECORD};
use schemas::views::records::{Record, Term};

/// A phrase with its label. A change of the record is a change of the label; the numbers are those of that moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Phrase {
    /// The id of the record, which does not show the phrase.
    pub id: String,
    /// The phrase in its normal form.
    pub phrase: String,
    /// `RISING`, `WARMING`, `FLAT` or `COOLING`. RISING with a multiple below 3 was WARMING by its stories, and page views lifted it.
    pub label: String,
    /// The length of the window, in hours.
    pub window: i64,
    /// `(count + 2) / (baseline + 2)`, to three decimals.
    pub multiple: f64,
    /// The stories of the window with the phrase, at most 3 of one author.
    pub count: i64,
    /// How many are usual, to three decimals.
    pub baseline: f64,
    /// When the label began: the end of the window, RFC 3339.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub since: String,
    /// The highest count of any window since the label was last FLAT.
    pub peak: i64,
    /// True if the phrase is hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// What a change of a phrase shows in addition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PhraseDetails {
    /// The label before the change.
    pub previous_label: Cow<'static, str>,
}

/// The label of a phrase that has no record.
pub const FLAT: &str = "FLAT";

impl ChangeRecord for Phrase {
    type Details = PhraseDetails;
}

impl Record for Phrase {
    const SEARCHED: &'static [&'static str] = &["phrase"];

    fn id(&self) -> &str {
        &self.id
    }

    fn terms(&self) -> Vec<Term> {
        [Term::new("phrase", &self.phrase), Term::new("label", &self.label)].into_iter().flatten().collect()
    }
}

/// Says what a change of a phrase means.
#[must_use]
pub fn details(before: Option<&Phrase>) -> PhraseDetails {
    PhraseDetails { previous_label: before.map_or(Cow::Borrowed(FLAT), |before| Cow::Owned(before.label.clone())) }
}

const HIDES: &[Hides] =
    &[Hides { kind: &PHRASE, field: "phrase", hidden: &["phrase"] }, Hides { kind: &RECORD, field: "id", hidden: &["phrase"] }];

schemas::record_tables!("phrases", hides: HIDES);

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::suppressed_keys::SuppressedKeys;
    use schemas::views::testing;

    /// Proves that a suppressed phrase hides itself and the phrases that contain it as whole words, and no other.
    #[test]
    fn phrases_that_contain_a_suppressed_one_are_hidden() {
        let keys = SuppressedKeys::new([(&PHRASE, PHRASE.normalize("J. O'Brien").unwrap())]);
        for (phrase, is_hidden) in [
            ("j obrien", true),
            ("ask j obrien", true),
            ("j obrien says no", true),
            ("obrien", false),
            ("j obriens", false),
            ("aj obrien", false),
        ] {
            let row = serde_json::json!({ "record": Phrase { phrase: phrase.into(), ..Phrase::default() } }).to_string();
            assert_eq!(keys.hide(TABLES.view, row.as_bytes()).unwrap().is_some(), is_hidden, "{phrase}");
        }
    }

    /// Proves that a change with a value in every field reads back as written.
    #[test]
    fn changes_read_back() {
        let record = Phrase {
            id: "00ff".into(),
            phrase: "agent mesh".into(),
            label: "RISING".into(),
            window: 24,
            multiple: 3.667,
            count: 9,
            baseline: 1.0,
            since: "2026-11-20T14:00:00Z".into(),
            peak: 12,
            suppressed: false,
        };
        let before = Phrase { label: "WARMING".into(), ..record.clone() };
        testing::assert_change_reads_back("changes.phrases", &record.id.clone(), before.clone(), record);
        assert_eq!(details(Some(&before)).previous_label, "WARMING");
        assert_eq!(details(None).previous_label, FLAT);
    }
}

//! `GET /api/check`: whether a name is free, with the similar marks of the register.

use marks::Verdict;
use operation::problem::Problem;
use operation::{Definition, Price};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clearance::{compare, notes};
use super::filter::Filter;
use super::name_arguments::{ClassList, read_name};
use super::similar::{SimilarMark, Versions, explained};
use super::watchable_feed::Names;
use crate::rules::NamesRules;
use clearance::{Counts, OtherCounts};
use feed::RecordFeed;
use reads::read::{Read, Reader};

/// How many similar marks an answer shows by default.
const MARKS_DEFAULT: usize = 20;

/// Arguments of `check_name`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The name: at least one letter or digit.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// International classes of goods and services, at most 5. Only marks of these classes count; without one, or with an empty list, all do.
    #[serde(default)]
    pub class: ClassList,
    /// How many similar marks to show at most.
    #[serde(default = "marks_default")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: usize,
}

fn marks_default() -> usize {
    MARKS_DEFAULT
}

/// Whether a name is free.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameCheck {
    /// `LIKELY_AVAILABLE`, `CAUTION` or `LIKELY_TAKEN`.
    #[schemars(extend("enum" = ["LIKELY_AVAILABLE", "CAUTION", "LIKELY_TAKEN"]))]
    pub verdict: &'static str,
    /// Whether the verdict is `LIKELY_AVAILABLE`.
    pub available: bool,
    /// How many marks of the classes are similar.
    pub counts: Counts,
    /// The similar marks, by tier, then by the letters that differ, then by serial number.
    pub similar_marks: Vec<SimilarMark>,
    /// What the answer is not.
    pub disclaimer: String,
    /// The name as it was given.
    pub name: String,
    /// The name as it was compared: in capitals, without accents, signs and legal words.
    pub normalized: String,
    /// The classes that count; empty for all.
    pub classes: Vec<u8>,
    /// How many marks of other classes are similar; only if classes were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_class_counts: Option<OtherCounts>,
    /// The marks that were compared.
    pub corpus: ComparedCorpus,
    /// The versions of the rules and of their words.
    #[serde(flatten)]
    pub versions: Versions,
}

/// The marks that a name was compared with.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedCorpus {
    /// The number of marks in the register, dead ones included.
    pub marks: u64,
    /// The number of live marks.
    pub live_marks: u64,
    /// The last day of the register that is recorded completely; empty before the first.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
}

/// What every answer says.
fn disclaimer(through_date: &str) -> String {
    let recorded = if through_date.is_empty() { "that are recorded so far".to_owned() } else { format!("as of {through_date}") };
    format!(
        "Not legal advice. Live US applications and registrations {recorded} were compared by spelling and sound; meaning, designs, goods, \
            common-law, state and foreign rights are not covered."
    )
}

impl Read for Arguments {
    type Service = Names;
    type Answer = NameCheck;

    fn definition() -> Definition {
        Definition {
            name: "check_name",
            path: "/api/check",
            summary: "Whether a name is likely to be free as a US trademark, with the similar marks and the rule that found each.",
            when: "Use it before choosing a name, with the classes of the goods and services if they are known.",
            description: "Live marks count, and marks of unknown status one tier lower; dead ones do not. `exact`: the same letters. `strong`: other \
                order, plural, few letters or the same sound, descriptive words ignored. `partial`: a part in common. LIKELY_TAKEN needs an \
                exact mark, CAUTION a strong one, or with `class` one that contains the whole name. Partial marks alone leave a name \
                LIKELY_AVAILABLE. `rule` and `why` say how each mark was found.",
            price: Price::Free,
            errors: &[ErrorCode::AsOfInvalid],
            example: json!({ "name": "Lutexal", "class": [9] }),
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Names>) -> Result<NameCheck, Problem> {
        let name = read_name(&self.name)?;
        let mut at = reader.at.clone();
        let (found, lag) = compare(reader.context(), &mut at, &name, &self.class, reader.is_current()).await?;
        reader.at = at;
        notes(&name, &found, lag).into_iter().for_each(|note| reader.note(note));
        let through_date = reader.completeness().await?.through_date;
        // Of a limit that is above the number of marks nothing is left out, and no note says so.
        let shown = reader.rows(self.limit.min(found.hits.len()));
        let ids: Vec<String> = found.hits.iter().take(shown).map(|(_, hit)| format!("{:08}", hit.serial)).collect();
        let records = NamesRules::FEED.records_by_id(&reader.at, &ids).await?;
        let mut similar_marks = Vec::with_capacity(records.len());
        for ((tier, hit), record) in found.hits.iter().zip(records) {
            let Some(record) = record else { continue };
            let similarity = explained(&name, &record, *tier, hit.rule);
            similar_marks.push(SimilarMark::new(record, similarity));
        }
        Ok(NameCheck {
            verdict: found.verdict.as_str(),
            available: found.verdict == Verdict::LikelyAvailable,
            counts: found.counts,
            similar_marks,
            disclaimer: disclaimer(&through_date),
            normalized: name.normal(),
            name: self.name,
            classes: self.class.numbers().to_vec(),
            other_class_counts: (!self.class.is_empty()).then_some(found.other_counts),
            corpus: ComparedCorpus { marks: found.corpus.marks, live_marks: found.corpus.live_marks, through_date },
            versions: Versions::current(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the words of the disclaimer, with the last complete day of the register, and before the first one.
    #[test]
    fn disclaimers() {
        let words = "were compared by spelling and sound; meaning, designs, goods, common-law, state and foreign rights are not covered.";
        for (through_date, recorded) in [("2026-11-19", "as of 2026-11-19"), ("", "that are recorded so far")] {
            let expected = format!("Not legal advice. Live US applications and registrations {recorded} {words}");
            assert_eq!(disclaimer(through_date), expected);
        }
    }
}

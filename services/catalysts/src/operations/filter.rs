//! The filter of catalysts. Feeds, saved filters and watches use its fields.

use std::collections::BTreeSet;

use crate::record::{Catalyst, DRUG_LETTERS, KINDS, READOUT, TABLES};
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::records::normal;
use serde::{Deserialize, Serialize};

use feed::filter::{self, Field, Fields, TermQuery};
use feed::position::Position;
use feed::text_field;
use operation::context::Context;
use operation::problem::Problem;
use reads::numbers::numbers_of_trial;
use texts::folding::folded_words;
use texts::tickers::{names_ticker, tickers};

/// The phases of trials, as the registry names them.
pub(crate) const PHASES: [&str; 5] = ["EARLY_PHASE1", "PHASE1", "PHASE2", "PHASE3", "PHASE4"];

/// A filter of catalysts: an event matches if it matches every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// Ticker of the company in any spelling: BRK-B, also brk.b, NYSE: BRK/B. Of several tickers each counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 60))]
    pub ticker: Option<String>,
    /// Words of a drug's name: every word must begin a word of the name. One of them has at least three letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 100))]
    pub drug: Option<String>,
    /// Number of a trial, also an older one: NCT04207047.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub trial: Option<String>,
    /// Kind of event: readout, pdufa, adcom.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub kind: Option<String>,
    /// Phase of a trial: PHASE3. A trial of two phases has both.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub phase: Option<String>,
    /// The numbers of the trial, older ones too, which `look_up` sets.
    #[serde(skip)]
    pub(crate) numbers: Vec<String>,
    /// Whether to include late news: events whose last day was more than 30 days before they were recorded. By default it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

/// Whether every word of a query begins a word of a drug's name.
pub(crate) fn names_drug(drug: &str, query: &str) -> bool {
    let names = folded_words(drug);
    folded_words(query).iter().all(|word| names.iter().any(|name| name.starts_with(word)))
}

/// Checks a text that names tickers, and returns them as the regulator writes them: capitals, with a dash before the class of shares. Commas separate
/// several.
///
/// # Errors
/// `parameter-invalid`.
pub(crate) fn ticker(parameter: &'static str, text: &str) -> Result<String, Problem> {
    let named = tickers(text);
    if named.is_empty() {
        return Err(Problem::parameter(parameter, format!("{text:?} is not a ticker: 1 to 10 letters, digits, dots and dashes")));
    }
    Ok(named.join(", "))
}

/// Checks the words of a drug's name, and returns the letters that select the list to search: the first ones of the longest word.
///
/// # Errors
/// `parameter-invalid` if no word is long enough.
pub(crate) fn drug_letters(parameter: &'static str, text: &str) -> Result<String, Problem> {
    let longest = folded_words(text).into_iter().max_by_key(|word| word.chars().count()).unwrap_or_default();
    if longest.chars().count() < DRUG_LETTERS {
        return Err(Problem::parameter(parameter, format!("{text:?} has no word of at least {DRUG_LETTERS} letters or digits")));
    }
    Ok(longest.chars().take(DRUG_LETTERS).collect())
}

impl filter::Filter for Filter {
    type Record = Catalyst;

    const FIELDS: Fields<Self> = &[
        text_field!(ticker)
            .read_by(ticker)
            .unset_if_blank()
            .selecting(|record, ticker| names_ticker(&record.ticker, &tickers(ticker)))
            .found_by(2, |filter| filter.ticker.as_deref().map(|ticker| TermQuery::Exact("ticker", written(ticker))))
            .with_codes("ticker"),
        text_field!(kind).one_of(&KINDS).unset_if_blank().equal_to(|record| &record.kind).found_by_term(5, "kind"),
        text_field!(phase)
            .one_of(&PHASES)
            .unset_if_blank()
            .selecting(|record, phase| record.phases().any(|one| one == phase))
            .found_by_term(4, "phase"),
        text_field!(trial)
            .read_by(|_, text| Ok(text.trim().to_ascii_uppercase()))
            .unset_if_blank()
            .selecting_by(|filter, record| filter.trial.as_deref().is_none_or(|trial| is_of_trial(record, trial, &filter.numbers)))
            .found_by(1, |filter| {
                filter.trial.as_ref().map(|trial| TermQuery::Exact("trial", filter.numbers.iter().chain([trial]).cloned().collect()))
            })
            .with_codes("trial"),
        text_field!(drug)
            .read_by(drug)
            .unset_if_blank()
            .selecting(|record, drug| names_drug(&record.drug, drug))
            .found_by(3, |filter| Some(TermQuery::Exact("drug", vec![drug_letters("drug", filter.drug.as_deref()?).ok()?])))
            .with_names("drugname"),
        Field::<Self, Catalyst>::backfill(|filter| filter.include_backfill),
    ];

    fn contradiction(&self) -> Option<String> {
        let kind = self.kind.as_deref().filter(|kind| *kind != READOUT)?;
        let field = filter::first_given(&[("trial", self.trial.is_some()), ("phase", self.phase.is_some())])?;
        Some(format!("no event can match: `{field}` matches readouts only, `kind` {kind} none of them"))
    }

    async fn look_up(&mut self, _: &Context, at: &Position, _: Seq) -> Result<Option<String>, Problem> {
        if let Some(trial) = &self.trial {
            self.numbers = numbers_of_trial(&TABLES, at, trial).await?;
        }
        Ok(None)
    }
}

/// Whether a record is of a trial: by its number, or by one of its numbers, older ones too.
fn is_of_trial(record: &Catalyst, trial: &str, numbers: &[String]) -> bool {
    record.trial_id.eq_ignore_ascii_case(trial) || numbers.contains(&record.trial_id)
}

/// Checks the words of a drug's name, and returns them as terms are written.
///
/// # Errors
/// `parameter-invalid` if no word is long enough.
fn drug(parameter: &'static str, text: &str) -> Result<String, Problem> {
    let drug = normal(text);
    drug_letters(parameter, &drug)?;
    Ok(drug)
}

/// The ways in which records write the tickers of a text.
fn written(ticker: &str) -> Vec<String> {
    let both = |symbol: String| BTreeSet::from([symbol.replace('-', "."), symbol]);
    tickers(ticker).iter().flat_map(|symbol| both(symbol.to_lowercase())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;
    use feed::testing::filters::{assert_refuses, assert_takes, filter_of};
    use serde_json::json;

    /// Proves that every condition counts, and that spellings of one value are the same filter.
    #[test]
    fn conditions() {
        let record = Catalyst {
            kind: "readout".into(),
            ticker: "BRK-B".into(),
            drug: "Acme-101 (bolunib)".into(),
            phase: "PHASE2/PHASE3".into(),
            trial_id: "NCT00000001".into(),
            ..Catalyst::default()
        };
        let takes = [
            (json!({}), true),
            (json!({"ticker": "brk.b", "kind": "Readout", "phase": "phase3", "trial": "nct00000001", "drug": "BOLU acme"}), true),
            (json!({"ticker": "BRK"}), false),
            (json!({"ticker": "NYSE: BRK/B"}), true),
            (json!({"ticker": "$brk.a, (BRK B)"}), true),
            (json!({"drug": "olunib"}), false),
            (json!({"drug": "b\u{f3}lunib"}), true),
            (json!({"kind": "pdufa"}), false),
            (json!({"phase": "PHASE4"}), false),
            (json!({"trial": "NCT00000002"}), false),
        ];
        assert_takes::<Filter>(&record, takes);
        for spelling in ["brk.b", "BRK-B", "(BRK/B)", "NYSE:BRK.B"] {
            assert_eq!(filter_of::<Filter>(&json!({ "ticker": spelling })).unwrap().canonical(), r#"{"ticker":"BRK-B"}"#, "{spelling}");
        }
    }

    /// Proves that a filter says so if it wants a trial or a phase of events that have none.
    #[test]
    fn events_without_a_trial() {
        for (filter, is_noted) in [
            (json!({"kind": "PDUFA", "trial": "NCT00000001"}), true),
            (json!({"kind": "adcom", "phase": "PHASE3"}), true),
            (json!({"kind": "readout", "trial": "NCT00000001", "phase": "PHASE3"}), false),
            (json!({"kind": "pdufa", "ticker": "ACME"}), false),
            (json!({"phase": "PHASE3"}), false),
        ] {
            assert_eq!(filter_of::<Filter>(&filter).unwrap().contradiction().is_some(), is_noted, "{filter}");
        }
    }

    /// Proves that bad values are refused with the field and the nearest known value.
    #[test]
    fn refusals() {
        assert_refuses::<Filter>([
            (json!({"kind": "readot"}), "kind", "readout"),
            (json!({"phase": "PHASE33"}), "phase", "PHASE3"),
            (json!({"ticker": "!?"}), "ticker", "not a ticker"),
            (json!({"drug": "a b c"}), "drug", "3 letters"),
        ]);
    }

    /// Proves how changes are found by terms.
    #[test]
    fn terms() {
        let filter: Filter = filter_of(&json!({"drug": "bolunib", "ticker": "ACME"})).unwrap();
        let exact = |dimension, value: &str| TermQuery::Exact(dimension, vec![value.to_owned()]);
        assert_eq!(filter.term_queries(), [exact("ticker", "acme"), exact("drug", "bol")]);
    }
}

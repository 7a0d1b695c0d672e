//! The filter of catalysts. Feeds, saved filters and watches use its fields.

use std::collections::BTreeSet;

use crate::record::{Catalyst, DRUG_LETTERS, KINDS, TABLES};
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::records::normal;
use serde::{Deserialize, Serialize};

use crate::Change;
use feed::filter::{self, Named, TermQuery};
use feed::position::Position;
use operation::context::Context;
use operation::problem::Problem;
use reads::numbers::numbers_of_trial;
use schemas::folding::folded_words;
use schemas::names::hint;
use schemas::tickers::{names_ticker, tickers};

/// The phases of trials, as the registry names them.
const PHASES: [&str; 5] = ["EARLY_PHASE1", "PHASE1", "PHASE2", "PHASE3", "PHASE4"];

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
    /// Whether changes match that record something only now that happened long ago: an event whose last day was more than 30 days before. By default they do not,
    /// because they are no news.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

impl Filter {
    /// Whether an event matches the filter.
    #[must_use]
    pub fn takes(&self, record: &Catalyst) -> bool {
        let is = |wanted: &Option<String>, fits: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(fits);
        is(&self.ticker, &|ticker| names_ticker(&record.ticker, &tickers(ticker)))
            && is(&self.drug, &|drug| names_drug(&record.drug, drug))
            && is(&self.trial, &|trial| record.trial_id.eq_ignore_ascii_case(trial) || self.numbers.contains(&record.trial_id))
            && is(&self.kind, &|kind| record.kind == kind)
            && is(&self.phase, &|phase| record.phases().any(|one| one == phase))
    }
}

/// The ids that a number can mean: those of a trial's readout by any of its numbers, or a text as ids are written.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn ids_of(at: &Position, text: &str) -> Result<Vec<String>, Problem> {
    let trials = numbers_of_trial(&TABLES, at, text).await?;
    Ok(trials.iter().map(|number| format!("ctgov:{number}")).chain([text.trim().to_lowercase()]).collect())
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

/// Checks a phase, in any case.
///
/// # Errors
/// `parameter-invalid`, naming the nearest known phase.
pub(crate) fn phase(parameter: &'static str, text: &str) -> Result<String, Problem> {
    known(parameter, &text.trim().to_ascii_uppercase(), &PHASES)
}

/// Checks a kind, in any case.
///
/// # Errors
/// `parameter-invalid`, naming the nearest known kind.
pub(crate) fn kind(parameter: &'static str, text: &str) -> Result<String, Problem> {
    known(parameter, &text.trim().to_ascii_lowercase(), &KINDS)
}

fn known(parameter: &'static str, text: &str, all: &[&'static str]) -> Result<String, Problem> {
    let found = all.iter().find(|known| **known == text).map(|known| (*known).to_owned());
    found.ok_or_else(|| Problem::parameter(parameter, format!("{text:?} is none of {}{}", all.join(", "), hint(text, all.iter().copied()))))
}

impl filter::Filter for Filter {
    type Record = Catalyst;

    const NAMED: &'static [Named] = &[Named::code("ticker", "ticker"), Named::code("trial", "trial"), Named::name("drug", "drugname")];

    fn normalize(mut self) -> Result<Self, Problem> {
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        self.ticker = given(self.ticker).map(|text| ticker("ticker", &text)).transpose()?;
        self.kind = given(self.kind).map(|text| kind("kind", &text)).transpose()?;
        self.phase = given(self.phase).map(|text| phase("phase", &text)).transpose()?;
        self.trial = given(self.trial).map(|text| text.trim().to_ascii_uppercase());
        self.drug = given(self.drug).map(|text| normal(&text));
        if let Some(drug) = &self.drug {
            drug_letters("drug", drug)?;
        }
        Ok(self)
    }

    fn matches(&self, change: &Change) -> bool {
        self.takes(&change.record)
    }

    async fn look_up(&mut self, _: &Context, at: &Position, _: Seq) -> Result<Option<String>, Problem> {
        if let Some(trial) = &self.trial {
            self.numbers = numbers_of_trial(&TABLES, at, trial).await?;
        }
        Ok(None)
    }

    fn includes_backfill(&self) -> bool {
        self.include_backfill
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        let exact = |dimension: &'static str, value: Option<String>| value.map(|value| TermQuery::Exact(dimension, vec![value]));
        let letters = self.drug.as_deref().and_then(|drug| drug_letters("drug", drug).ok());
        // The most selective search first.
        [
            self.trial.as_ref().map(|trial| TermQuery::Exact("trial", self.numbers.iter().chain([trial]).cloned().collect())),
            self.ticker.as_deref().map(|ticker| TermQuery::Exact("ticker", written(ticker))),
            exact("drug", letters),
            exact("phase", self.phase.as_deref().map(normal)),
            exact("kind", self.kind.clone()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
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
    use serde_json::json;

    fn of(json: serde_json::Value) -> Result<Filter, Problem> {
        serde_json::from_value::<Filter>(json).unwrap().normalize()
    }

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
        for (filter, fits) in [
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
        ] {
            assert_eq!(of(filter.clone()).unwrap().takes(&record), fits, "{filter}");
        }
        for spelling in ["brk.b", "BRK-B", "(BRK/B)", "NYSE:BRK.B"] {
            assert_eq!(of(json!({ "ticker": spelling })).unwrap().canonical(), r#"{"ticker":"BRK-B"}"#, "{spelling}");
        }
    }

    /// Proves that bad values are refused with the field and the nearest known value.
    #[test]
    fn refusals() {
        for (filter, field, part) in [
            (json!({"kind": "readot"}), "kind", "readout"),
            (json!({"phase": "PHASE33"}), "phase", "PHASE3"),
            (json!({"ticker": "!?"}), "ticker", "not a ticker"),
            (json!({"drug": "a b c"}), "drug", "3 letters"),
        ] {
            let problem = of(filter.clone()).unwrap_err();
            assert!(problem.detail.contains(part), "{filter}: {problem:?}");
            assert_eq!(problem.parameter, field, "{filter}");
        }
    }

    /// Proves how changes are found by terms.
    #[test]
    fn terms() {
        let filter = of(json!({"drug": "bolunib", "ticker": "ACME"})).unwrap();
        let exact = |dimension, value: &str| TermQuery::Exact(dimension, vec![value.to_owned()]);
        assert_eq!(filter.term_queries(), [exact("ticker", "acme"), exact("drug", "bol")]);
    }
}

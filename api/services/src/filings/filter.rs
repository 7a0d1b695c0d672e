//! Which filings a feed, a list or a watch shows.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use schemas::facts::filings::base_form;
use schemas::position::Seq;
use schemas::views::filings::Filing;
use serde::{Deserialize, Serialize};

use super::{Change, FEED};
use feed::filter::{self, TermQuery, is_one_of};
use feed::position::Position;
use feed::query::newest;
use operation::context::Context;
use operation::problem::Problem;

/// Trades that are looked at for the companies of a ticker.
const TICKER_TRADES: usize = 50;

/// Filings that fit all of what is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// Form types; `8-K` takes `8-K/A` as well, `8-K/A` only amendments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub form: Vec<String>,
    /// Ticker, as insiders' filings name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 12))]
    pub ticker: Option<String>,
    /// The filer, with or without leading zeros.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub cik: Option<String>,
    /// Item code of an 8-K: 5.02.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 5))]
    pub item: Option<String>,
    /// The least event score, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub min_event_score: Option<i64>,
    /// Companies that the ticker stands for, once they are looked up.
    #[serde(skip)]
    pub(crate) companies: Vec<String>,
}

impl Filter {
    /// The filter with the filer's number in full.
    ///
    /// # Errors
    /// When it is no number.
    pub fn checked(mut self) -> Result<Self, Problem> {
        self.cik = self.cik.map(|cik| padded(&cik)).transpose()?;
        self.form = self.form.iter().map(|form| form.trim().to_uppercase()).filter(|form| !form.is_empty()).collect();
        self.form.sort_unstable();
        self.form.dedup();
        self.ticker = self.ticker.map(|ticker| ticker.trim().to_uppercase());
        Ok(self)
    }

    /// Whether a filing fits.
    #[must_use]
    pub fn takes(&self, record: &Filing) -> bool {
        record.kind == "filing"
            && (self.form.is_empty()
                || is_one_of(&record.form, &self.form)
                || self.form.iter().any(|form| !form.ends_with("/A") && base_form(form) == record.base_form))
            && self.cik.as_deref().is_none_or(|cik| record.cik == cik)
            && (self.ticker.is_none() || self.companies.contains(&record.cik))
            && self.item.as_deref().is_none_or(|item| record.items.iter().any(|one| one == item))
            && self.min_event_score.is_none_or(|least| record.event_score >= least)
    }
}

impl filter::Filter for Filter {
    type Record = Filing;

    fn matches(&self, change: &Change) -> bool {
        self.takes(&change.record)
    }

    async fn look_up(&mut self, ctx: &Context, at: &Position) -> Result<Option<String>, Problem> {
        let Some(ticker) = self.ticker.clone() else { return Ok(None) };
        self.companies = companies_of(ctx, at, &ticker).await?;
        Ok(self
            .companies
            .is_empty()
            .then(|| format!("no company is known by the ticker {ticker}: tickers are learnt from insiders' filings")))
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        let mut out = Vec::new();
        if let Some(cik) = &self.cik {
            out.push(TermQuery::Exact("cik", vec![cik.clone()]));
        }
        if self.ticker.is_some() {
            out.push(TermQuery::Exact("cik", self.companies.clone()));
        }
        if let Some(item) = &self.item {
            out.push(TermQuery::Exact("item", vec![item.clone()]));
        }
        match self.form.as_slice() {
            [] => {}
            forms if forms.iter().all(|form| form.ends_with("/A")) => out.push(TermQuery::Exact("form", forms.to_vec())),
            forms if !forms.iter().any(|form| form.ends_with("/A")) => {
                out.push(TermQuery::Exact("base", forms.iter().map(|form| base_form(form).to_owned()).collect()));
            }
            _ => {}
        }
        out
    }
}

/// A filer's number as records have it: 10 digits.
///
/// # Errors
/// When it is none.
pub fn padded(cik: &str) -> Result<String, Problem> {
    let digits = cik.trim();
    if digits.is_empty() || digits.len() > 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::parameter("cik", format!("cik: {cik:?} is no number of up to 10 digits")));
    }
    Ok(format!("{digits:0>10}"))
}

/// Changes of trades in a company's securities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Trades {
    /// The companies; empty for any.
    pub(super) companies: Vec<String>,
    /// The ticker; empty for any.
    pub(super) ticker: String,
}

impl filter::Filter for Trades {
    type Record = Filing;

    fn matches(&self, change: &Change) -> bool {
        change.record.kind == "trade"
            && (self.companies.is_empty() || self.companies.contains(&change.record.cik))
            && (self.ticker.is_empty() || change.record.ticker.eq_ignore_ascii_case(&self.ticker))
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        if !self.companies.is_empty() {
            return vec![TermQuery::Exact("cik", self.companies.clone())];
        }
        if !self.ticker.is_empty() {
            return vec![TermQuery::Exact("ticker", vec![self.ticker.clone()])];
        }
        vec![TermQuery::Exact("kind", vec!["trade".to_owned()])]
    }
}

/// What is said of a ticker that nobody has named.
pub(super) fn unknown_ticker(ticker: &str) -> String {
    format!("no company is known by the ticker {ticker}: tickers are learnt from insiders' filings")
}

/// The companies that a ticker stands for, as insiders' filings say up to a position.
///
/// # Errors
/// When the feed cannot be read.
pub(super) async fn companies_of(ctx: &Context, at: &Position, ticker: &str) -> Result<Vec<String>, Problem> {
    let trades = Trades { ticker: ticker.to_owned(), ..Trades::default() };
    let found = newest(ctx, &FEED, at, &trades, Seq(0), TICKER_TRADES).await?;
    let companies: BTreeSet<String> = found.changes.into_iter().map(|change| change.record.cik).collect();
    Ok(companies.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;

    /// Proves which filings fit which conditions, and how these are found.
    #[test]
    fn conditions() {
        let filing = Filing {
            kind: "filing".into(),
            form: "8-K/A".into(),
            base_form: "8-K".into(),
            cik: "0000000007".into(),
            items: vec!["5.02".into()],
            event_score: 50,
            ..Filing::default()
        };
        let of = |json: serde_json::Value| -> Filter { serde_json::from_value::<Filter>(json).unwrap().checked().unwrap() };
        for (json, fits) in [
            (serde_json::json!({}), true),
            (serde_json::json!({"form": ["8-k"], "cik": "7", "item": "5.02", "minEventScore": 50}), true),
            (serde_json::json!({"form": ["8-K/A"]}), true),
            (serde_json::json!({"form": ["10-K", "4"]}), false),
            (serde_json::json!({"minEventScore": 51}), false),
            (serde_json::json!({"ticker": "x"}), false),
        ] {
            assert_eq!(of(json.clone()).takes(&filing), fits, "{json}");
        }
        assert_eq!(of(serde_json::json!({"form": ["8-K/A"]})).term_queries(), [TermQuery::Exact("form", vec!["8-K/A".into()])]);
        assert_eq!(of(serde_json::json!({"form": ["8-K", "10-K/A"]})).term_queries(), []);
        assert_eq!(padded("320193").unwrap(), "0000320193");
        for wrong in ["", "x", "12345678901", "-1"] {
            assert_eq!(padded(wrong).unwrap_err().parameter, "cik", "{wrong}");
        }
        let trade = Filing { kind: "trade".into(), ..filing };
        assert!(!Filter::default().takes(&trade));
    }
}

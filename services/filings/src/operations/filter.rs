//! The filter of filings. Feeds, lists, digests, saved filters and watches use its fields.

use std::collections::BTreeSet;

use crate::filing_events::WEIGHTS;
use crate::record::Filing;
use schemars::JsonSchema;
use schemas::facts::filings::base_form;
use schemas::names::hint;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use texts::tickers::{names_ticker, spellings, tickers};
use texts::values::USUAL_FORMS;

use crate::rules::FilingsRules;
use feed::RecordFeed;
use feed::filter::{self, Criteria, Element, Field, Fields, Named, TermQuery, is_one_of};
use feed::names::values_of;
use feed::position::Position;
use feed::query::newest;
use feed::text_field;
use operation::context::Context;
use operation::problem::Problem;
use reads::numbers::read_cik;

/// How many form types a filter has at most.
pub(crate) const FORMS_MAX: usize = 20;
/// How many trades are read to find the companies of a ticker.
const TICKER_TRADES: usize = 50;
/// How many spellings of a ticker are looked up.
const SPELLINGS_MAX: usize = 48;

/// A filter of filings: a filing matches if it matches every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// Form types: `8-K` matches `8-K/A` as well, `8-K/A` only amendments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub form: Vec<String>,
    /// Ticker in any spelling: BRK-B, also brk.b, NYSE: BRK/B. Of several tickers each counts. Tickers are learnt from insiders' filings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 60))]
    pub ticker: Option<String>,
    /// The number (CIK) of the filer, exact, with or without leading zeros.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub cik: Option<String>,
    /// Item code of an 8-K.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = WEIGHTS.item_codes()))]
    pub item: Option<String>,
    /// The smallest event score: 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub min_event_score: Option<i64>,
    /// Whether to include late news: filings of more than 30 days before they were recorded. By default it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
    /// The companies of the ticker, which `look_up` sets.
    #[serde(skip)]
    pub(crate) companies: Vec<String>,
}

impl filter::Filter for Filter {
    type Record = Filing;

    const NAMED: &'static [Named] = &[Named::code("ticker", "ticker"), Named::code("cik", "cik")];

    const FIELDS: Fields<Self> = &[
        text_field!(cik).read_by(read_cik).equal_to(|record| &record.cik).found_by_term(1, "cik"),
        text_field!(ticker)
            .read_by(checked_ticker)
            .selecting_by(|filter, record| filter.ticker.is_none() || filter.companies.contains(&record.cik))
            .found_by(2, |filter| filter.ticker.as_ref().map(|_| TermQuery::Exact("cik", filter.companies.clone()))),
        text_field!(item).left_as_given().selecting(|record, item| record.items.iter().any(|one| one == item)).found_by_term(3, "item"),
        Field::<Self, Filing>::new("form")
            .selecting_by(|filter, record| filter.form.is_empty() || is_of_forms(record, &filter.form))
            .found_by(4, |filter| forms_query(&filter.form)),
        Field::<Self, Filing>::new("minEventScore")
            .selecting_by(|filter, record| filter.min_event_score.is_none_or(|least| record.event_score >= least)),
        Field::<Self, Filing>::backfill(|filter| filter.include_backfill),
    ];

    fn normalize(mut self) -> Result<Self, Problem> {
        self.read_fields()?;
        self.form = self.form.iter().map(|form| form.trim().to_uppercase()).filter(|form| !form.is_empty()).collect();
        self.form.sort_unstable();
        self.form.dedup();
        Ok(self)
    }

    fn resolves(&self, field: &str) -> Option<bool> {
        (field == "ticker").then_some(!self.companies.is_empty())
    }

    fn contradiction(&self) -> Option<String> {
        let item = self.item.as_ref().filter(|_| !self.form.is_empty() && !self.form.iter().any(|form| form.starts_with("8-K")))?;
        Some(format!("no filing can match: only a form 8-K has the item {item}"))
    }

    fn matches(&self, change: &Element<Filing>) -> bool {
        change.record.kind == "filing" && self.takes(&change.record)
    }

    async fn look_up(&mut self, ctx: &Context, at: &Position, after: Seq) -> Result<Option<String>, Problem> {
        let notes = unknown_forms(ctx, at, after, &self.form).await?;
        if let Some(ticker) = self.ticker.clone() {
            self.companies = companies_of(ctx, at, after, &ticker).await?;
        }
        Ok(Some(notes.join("; ")).filter(|notes| !notes.is_empty()))
    }
}

/// Whether a filing has one of the form types: `8-K` is that of `8-K/A` as well.
fn is_of_forms(record: &Filing, forms: &[String]) -> bool {
    is_one_of(&record.form, forms) || forms.iter().any(|form| !form.ends_with("/A") && base_form(form) == record.base_form)
}

/// The query that finds filings of the form types; `None` if amendments alone and others are wanted together.
fn forms_query(forms: &[String]) -> Option<TermQuery> {
    let amendments = forms.iter().filter(|form| form.ends_with("/A")).count();
    match amendments {
        _ if forms.is_empty() => None,
        0 => Some(TermQuery::Exact("base", forms.iter().map(|form| base_form(form).to_owned()).collect())),
        _ if amendments == forms.len() => Some(TermQuery::Exact("form", forms.to_vec())),
        _ => None,
    }
}

/// Changes of trades in the securities of any issuer.
pub(crate) fn trades<'a>() -> Criteria<'a, Filing> {
    trades_found_by(TermQuery::Exact("kind", vec!["trade".to_owned()]))
}

/// Changes of trades in the securities of one issuer, by its number.
pub(crate) fn trades_of_company(cik: &str) -> Criteria<'_, Filing> {
    trades_found_by(TermQuery::Exact("cik", vec![cik.to_owned()])).and(move |change| change.record.cik == cik)
}

/// Changes of trades in the securities of some issuers, by their numbers.
pub(crate) fn trades_of_companies(companies: &[String]) -> Criteria<'_, Filing> {
    trades_found_by(TermQuery::Exact("cik", companies.to_vec())).and(move |change| companies.contains(&change.record.cik))
}

/// Checks a text that names tickers. It stays as it is given, in capitals: a cursor is bound to it.
fn checked_ticker(parameter: &'static str, text: &str) -> Result<String, Problem> {
    if tickers(text).is_empty() {
        return Err(Problem::parameter(parameter, format!("{parameter}: {text:?} does not name a ticker")));
    }
    Ok(text.trim().to_uppercase())
}

/// The spellings of some tickers in the index: the usual ones, and those of filers.
async fn recorded_spellings(ctx: &Context, at: &Position, wanted: &[String]) -> Result<Vec<String>, Problem> {
    let known = values_of::<Filing>(ctx, &FilingsRules::FEED.source, FilingsRules::FEED.tables, at, "ticker").await?;
    let letters: Vec<String> = wanted.iter().filter_map(|ticker| ticker.split('-').next()).map(str::to_lowercase).collect();
    let is_of_filer = |value: &&str| letters.iter().any(|letters| value.contains(letters.as_str())) && names_ticker(value, wanted);
    let of_filers = known.iter().filter(is_of_filer).map(str::to_owned);
    let usual = wanted.iter().flat_map(|ticker| spellings(ticker));
    let mut all = Vec::new();
    for spelling in of_filers.chain(usual) {
        if all.len() < SPELLINGS_MAX && !all.contains(&spelling) {
            all.push(spelling);
        }
    }
    Ok(all)
}

fn trades_found_by<'a>(wanted: TermQuery) -> Criteria<'a, Filing> {
    Criteria::new(vec![wanted], |change: &Element<Filing>| change.record.kind == "trade")
}

/// Notes about forms that are neither usual nor recorded after a seq, with the nearest usual ones. New forms appear, so none is refused.
///
/// # Errors
/// When the feed cannot be read.
async fn unknown_forms(ctx: &Context, at: &Position, after: Seq, forms: &[String]) -> Result<Vec<String>, Problem> {
    let is_known = if after > Seq(0) { "shown to this tier" } else { "known" };
    let mut notes = Vec::new();
    for form in forms.iter().filter(|form| !USUAL_FORMS.contains(&base_form(form))) {
        let of_form = Criteria::new(vec![TermQuery::Exact("base", vec![base_form(form).to_owned()])], |change: &Element<Filing>| {
            change.record.kind == "filing" && change.record.base_form.eq_ignore_ascii_case(base_form(form))
        });
        if newest(ctx, &FilingsRules::FEED, at, of_form, after, 1).await?.changes.is_empty() {
            notes.push(format!("no filing of form {form:?} is {is_known}{}", hint(form, USUAL_FORMS)));
        }
    }
    Ok(notes)
}

/// The companies with one of the tickers that a text names, according to insiders' filings after a seq and up to a position.
///
/// # Errors
/// When the feed cannot be read.
pub(crate) async fn companies_of(ctx: &Context, at: &Position, after: Seq, ticker: &str) -> Result<Vec<String>, Problem> {
    let wanted = tickers(ticker);
    let spelled = TermQuery::Exact("ticker", recorded_spellings(ctx, at, &wanted).await?);
    let of_ticker = trades_found_by(spelled).and(|change| names_ticker(&change.record.ticker, &wanted));
    let found = newest(ctx, &FilingsRules::FEED, at, of_ticker, after, TICKER_TRADES).await?;
    let companies: BTreeSet<String> = found.changes.into_iter().map(|change| change.record.cik).collect();
    Ok(companies.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;
    use feed::testing::filters::{assert_takes, filter_of};

    /// Proves which filings match which conditions, and how they are found.
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
        let filter_from = |json: serde_json::Value| filter_of::<Filter>(&json).unwrap();
        let takes = [
            (serde_json::json!({}), true),
            (serde_json::json!({"form": ["8-k"], "cik": "7", "item": "5.02", "minEventScore": 50}), true),
            (serde_json::json!({"form": ["8-K/A"]}), true),
            (serde_json::json!({"form": ["10-K", "4"]}), false),
            (serde_json::json!({"minEventScore": 51}), false),
            (serde_json::json!({"ticker": "x"}), false),
        ];
        assert_takes::<Filter>(&filing, takes);
        assert_eq!(filter_from(serde_json::json!({"form": ["8-K/A"]})).term_queries(), [TermQuery::Exact("form", vec!["8-K/A".into()])]);
        assert_eq!(filter_from(serde_json::json!({"form": ["8-K", "10-K/A"]})).term_queries(), []);
        assert_eq!(filter_from(serde_json::json!({"cik": "320193"})).cik.as_deref(), Some("0000320193"));
        for wrong in ["", "x", "12345678901", "-1"] {
            let filter = Filter { cik: Some(wrong.into()), ..Filter::default() };
            assert_eq!(filter.normalize().unwrap_err().parameter, "cik", "{wrong}");
        }
        for (ticker, canonical) in [("brk.b", "BRK.B"), (" NYSE: xyz ", "NYSE: XYZ"), ("GOOG/GOOGL", "GOOG/GOOGL")] {
            assert_eq!(filter_from(serde_json::json!({ "ticker": ticker })).ticker.as_deref(), Some(canonical), "a cursor is bound to it");
        }
        let no_ticker = Filter { ticker: Some("!?".into()), ..Filter::default() };
        assert_eq!(no_ticker.normalize().unwrap_err().parameter, "ticker");
        let is_matched = |record: &Filing| {
            let change = serde_json::json!({"event": "new", "seq": 1, "recordedAt": "", "record": record});
            Filter::default().matches(&serde_json::from_value::<Element<Filing>>(change).unwrap())
        };
        assert!(is_matched(&filing) && !is_matched(&Filing { kind: "trade".into(), ..filing.clone() }));
    }
}

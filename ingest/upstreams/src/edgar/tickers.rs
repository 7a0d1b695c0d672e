//! `edgar.tickers`: the list of companies with ticker symbols, one document. A company may have many (units, warrants, preferred shares).

use std::collections::BTreeMap;

use schemas::facts::FactData;
use schemas::facts::statements::StatementFact;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{BACK_OFF, COMPANY_CHARS_MAX, ORIGIN, cik};
use crate::drift::FieldCounts;
use crate::json::{self, Field, Records};
use crate::{Answer, Observation, Page, Request, Stream, UpstreamError, text};

/// The longest ticker, in bytes.
const TICKER_BYTES_MAX: usize = 10;
/// One company has at most this many; the largest known number is 27.
const TICKERS_MAX: usize = 200;

/// There is only one request, so the cursor is empty.
#[derive(Serialize, Deserialize)]
pub(super) struct Cursor {}

pub(super) fn request() -> Request {
    Request { back_off: Some(&BACK_OFF), ..json::request(ORIGIN, "/files/company_tickers.json") }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    cik_str: Field<'a>,
    #[serde(borrow)]
    ticker: Field<'a>,
    #[serde(borrow)]
    title: Field<'a>,
}

type FieldCheck = fn(&Row<'_>) -> bool;

const EXPECTED: &[(&str, FieldCheck)] =
    &[("cik_str", |row| row.cik_str.is_integer()), ("ticker", |row| row.ticker.is_text()), ("title", |row| row.title.is_text())];

pub(super) fn map(stream: &Stream, answer: &Answer) -> Result<Page, UpstreamError> {
    let mut warnings = Vec::new();
    let body = json::body_text(&answer.body, &mut warnings);
    let rows: BTreeMap<String, &RawValue> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
    if rows.is_empty() {
        return Err(json::later(stream.name, "the list of companies is empty"));
    }
    // The rows are numbered. The first row of a company has its name.
    let mut rows: Vec<(u64, &RawValue)> = rows.into_iter().map(|(number, row)| (number.parse().unwrap_or(u64::MAX), row)).collect();
    rows.sort_by_key(|(number, _)| *number);
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    let mut fields = FieldCounts::default();
    let mut companies: BTreeMap<String, StatementFact> = BTreeMap::new();
    let (read, rejects) = Records::of_list(rows).map(stream.name, EXPECTED, |row: &Row<'_>| {
        fields.count([("ticker", row.ticker.is_filled()), ("title", row.title.is_filled())]);
        let reference = text::cut(format!("{} {}", row.cik_str.clean(), row.ticker.clean()), 60);
        let missing = |field: &str| (reference.clone(), format!("{field} is absent or not readable"));
        let cik = cik(row.cik_str.text()).ok_or_else(|| missing("cik_str"))?;
        let ticker = ticker(row.ticker.text()).ok_or_else(|| missing("ticker"))?;
        Ok((cik, ticker, text::cut(row.title.clean(), COMPANY_CHARS_MAX)))
    })?;
    for (cik, ticker, company) in read {
        let fact = companies.entry(cik.clone()).or_insert_with(|| StatementFact {
            stream: stream.name.to_owned(),
            cik,
            company,
            ..StatementFact::default()
        });
        if fact.tickers.len() < TICKERS_MAX && !fact.tickers.contains(&ticker) {
            fact.tickers.push(ticker);
        }
    }
    let observations = companies.into_values().map(|mut fact| {
        fact.tickers.sort();
        Observation::new(format!("{}/{}", stream.name, fact.cik), FactData::Statement(Box::new(fact)))
    });
    Ok(Page { observations: observations.collect(), rejects, warnings, fields, ..Page::default() })
}

/// Checks a ticker: capitals, digits, dots and dashes (`BRK-B`).
fn ticker(text: &str) -> Option<String> {
    let ticker = text.trim().to_ascii_uppercase();
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    ((1..=TICKER_BYTES_MAX).contains(&ticker.len()) && ticker.bytes().all(is_part)).then_some(ticker)
}

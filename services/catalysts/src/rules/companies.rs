//! Which ticker a company has. A name matches the regulator's list only if the normal forms are equal, or if the data file of aliases names
//! it. There is no other rule: without a match the ticker is empty.

use std::collections::{BTreeMap, BTreeSet};

use schemas::key;
use schemas::position::Seq;
use schemas::tables::Write;
use serde::{Deserialize, Serialize};
use texts::company_names::{alias_ticker, normal_form};

use crate::record::TABLES;

/// Begins the keys of what is known under names.
const NAMES: &str = "company/";
/// Begins the keys of what is known of CIKs.
const CIKS: &str = "cik/";
/// How many records of one company are decided again when its tickers move.
const RECORDS_MAX: usize = 2_000;

/// What is known under the normal form of a name: the companies of the regulator's list with this name, and the records that name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Tickers of each company, by CIK.
    pub listed: BTreeMap<String, Vec<String>>,
    /// Ids of the records of companies with this name.
    pub records: BTreeSet<String>,
}

impl Named {
    /// Whether nothing is known any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.records.is_empty()
    }

    /// Adds the id of a record, unless there are too many.
    pub fn add(&mut self, id: &str) {
        if self.records.len() < RECORDS_MAX {
            self.records.insert(id.to_owned());
        }
    }

    /// Returns CIK and ticker of the company with a name: of several tickers the shortest without a dash.
    #[must_use]
    pub fn ticker(&self, name: &str) -> (String, String) {
        let all = self.listed.iter().flat_map(|(cik, tickers)| tickers.iter().map(move |ticker| (cik, ticker)));
        match all.min_by_key(|(_, ticker)| rank(ticker)) {
            Some((cik, ticker)) => (cik.clone(), ticker.clone()),
            None => (String::new(), alias_ticker(name).unwrap_or_default().to_owned()),
        }
    }
}

/// What is known of a company of the regulator's list, by its CIK.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listed {
    /// The name of the filer; empty if the list does not have it.
    pub title: String,
    /// The tickers of the filer, sorted.
    pub tickers: Vec<String>,
    /// Ids of the records of this filer.
    pub records: BTreeSet<String>,
}

impl Listed {
    /// Returns the ticker of the company; empty if it has none.
    #[must_use]
    pub fn ticker(&self) -> String {
        self.tickers.iter().min_by_key(|ticker| rank(ticker)).cloned().unwrap_or_default()
    }
}

/// The order of preference of tickers.
fn rank(ticker: &str) -> (bool, usize, &str) {
    (ticker.contains('-'), ticker.len(), ticker)
}

/// Returns the key of what is known under a name; `None` for a name without words.
#[must_use]
pub fn name_key(name: &str) -> Option<String> {
    let form = normal_form(name);
    (!form.is_empty()).then(|| format!("{NAMES}{form}"))
}

/// Returns the key of what is known of a CIK.
#[must_use]
pub fn cik_key(cik: &str) -> String {
    format!("{CIKS}{cik}")
}

/// Returns the entry of the index that a row of decision state writes: what is known under a name or of a CIK from a seq on. Answers as of an earlier time read
/// the last entry up to their seq.
pub(super) fn index(key: &str, value: &str, seq: Seq) -> Vec<Write> {
    let is_of_company = key.starts_with(NAMES) || key.starts_with(CIKS);
    // Of a row that was deleted nothing is known.
    let known = if value.is_empty() { "{}" } else { value };
    let write = || Write::put(TABLES.terms, key![key, 0_i64, seq], known.to_owned().into());
    is_of_company.then(write).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which of several tickers a company has, and that a name without a match has none.
    #[test]
    fn tickers() {
        let mut named = Named::default();
        assert_eq!(named.ticker("Acme Bio, Inc."), (String::new(), String::new()));
        assert_eq!(named.ticker("Janssen Research & Development, LLC").1, "JNJ");
        assert_eq!(named.ticker("Genentech, Inc.").1, "");
        named.listed.insert("0000000002".into(), vec!["ACME-WT".into(), "ACMEW".into(), "ACME".into(), "ZZZZ".into()]);
        assert_eq!(named.ticker("Acme Bio, Inc."), ("0000000002".into(), "ACME".into()));
        named.listed.insert("0000000001".into(), vec!["AC-A".into()]);
        assert_eq!(named.ticker("Acme Bio").1, "ACME");
        let listed = Listed { tickers: vec!["CTA-PA".into(), "CTA-PB".into()], ..Listed::default() };
        assert_eq!((listed.ticker(), Listed::default().ticker()), ("CTA-PA".into(), String::new()));
        assert_eq!((name_key("--"), name_key("Acme Inc")), (None, Some("company/ACME".into())));
    }
}

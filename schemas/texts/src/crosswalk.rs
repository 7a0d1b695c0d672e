//! The crosswalk: which recipients of federal awards are the parents of which companies with ticker symbols, and since when. Upstreams ask for its
//! companies and parents only, and the exclusions service compares them.
//!
//! It contains no pair that no public document shows. A name alone is no such document.

use std::sync::LazyLock;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::data_file::{DataEntry, DataFile, ShownFile};
use crate::tickers::tickers;

/// How sure a pair is. Pairs below medium are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// A name is all that speaks for it.
    Low,
    /// One document shows it.
    Medium,
    /// A document shows it, and nothing is known that speaks against it.
    High,
}

impl Confidence {
    /// The word of it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A recipient that is the parent of a company's recipients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parent {
    /// Unique entity id.
    pub uei: String,
    /// The id by which USAspending selects the awards of all its recipients.
    pub recipient_id: String,
    /// The first day on which it is the parent.
    pub valid_from: Date,
    /// The last day on which it is; empty if it still is.
    pub valid_to: String,
}

impl Parent {
    /// Whether it is the parent from the first to the last day of a window, all days as `YYYY-MM-DD`.
    #[must_use]
    pub fn is_valid(&self, first: &str, last: &str) -> bool {
        // Days in this form are in the order of their texts.
        *self.valid_from.to_string() <= *first && (self.valid_to.is_empty() || last <= self.valid_to.as_str())
    }
}

/// A company.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Company {
    /// The ticker symbol of the company.
    pub ticker: String,
    /// The number of the company with the securities regulator: 10 digits.
    pub cik: String,
    /// The name of the company.
    pub company: String,
    /// The day of the year on which its fiscal year ends, `MM-DD`. Years of 52 and 53 weeks end a few days before or after it.
    pub fiscal_year_end: String,
    /// How sure it is that the parents are its own.
    pub confidence: Confidence,
    /// Whether it is a company of the demo, of which no real upstream is asked.
    #[serde(default)]
    pub is_simulated: bool,
    /// The parents of recipients that belong to the company.
    pub parents: Vec<Parent>,
    /// Days of mergers and spin-offs after which its figures are of another group, sorted.
    pub mergers: Vec<String>,
}

impl Company {
    /// The first and the last day of its fiscal year that ends in a year, by [`Self::fiscal_year_end`].
    #[must_use]
    pub fn fiscal_year(&self, year: i16) -> Option<(Date, Date)> {
        let (month, day) = self.fiscal_year_end.split_once('-')?;
        let (month, day): (i8, i8) = (month.parse().ok()?, day.parse().ok()?);
        let end = |year: i16| {
            Date::new(year, month, 1).ok().map(|first| first.with().day(day.min(first.days_in_month())).build().unwrap_or(first))
        };
        Some((end(year - 1)?.tomorrow().ok()?, end(year)?))
    }
}

impl DataEntry for Company {
    fn name(&self) -> &str {
        &self.ticker
    }

    fn values(&self) -> &[String] {
        &self.mergers
    }
}

static FILE: LazyLock<DataFile<Company>> = LazyLock::new(|| DataFile::parse(include_str!("crosswalk.json")).unwrap_or_default());

/// The version of the file.
#[must_use]
pub fn version() -> u32 {
    FILE.version
}

/// The companies of the demo, or the real ones.
pub fn companies(is_simulated: bool) -> impl Iterator<Item = &'static Company> {
    FILE.entries.iter().filter(move |company| company.is_simulated == is_simulated)
}

/// The company with a number.
#[must_use]
pub fn by_cik(cik: &str) -> Option<&'static Company> {
    FILE.entries.iter().find(|company| company.cik == cik)
}

/// The company with a ticker symbol, however it is written.
#[must_use]
pub fn by_ticker(ticker: &str) -> Option<&'static Company> {
    let asked = tickers(ticker);
    FILE.entries.iter().find(|company| asked.contains(&company.ticker))
}

/// The companies of which a recipient is a parent.
pub fn by_parent(uei: &str) -> impl Iterator<Item = &'static Company> {
    FILE.entries.iter().filter(move |company| company.parents.iter().any(|parent| parent.uei == uei))
}

/// The file as documents show it: each company with its parents.
#[must_use]
pub fn shown() -> ShownFile {
    let values = |company: &Company| {
        let own = [format!("cik {}", company.cik), format!("confidence {}", company.confidence.as_str())];
        own.into_iter().chain(company.parents.iter().map(|parent| format!("parent {} from {}", parent.uei, parent.valid_from))).collect()
    };
    let entries = FILE.entries.iter().map(|company| (company.ticker.clone(), values(company))).collect();
    ShownFile { entries, ..FILE.shown("crosswalk") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::civil::date;

    use super::*;

    /// Proves that the file keeps the rules of data files, that numbers, ids and days have their form, that no number occurs twice, and that only
    /// simulated companies have numbers that the regulator has not given out.
    #[test]
    fn the_file() {
        let file: DataFile<Company> = DataFile::parse(include_str!("crosswalk.json")).unwrap();
        file.check().unwrap();
        let mut ciks = BTreeSet::new();
        for company in &file.entries {
            let name = &company.ticker;
            assert!(
                company.cik.len() == 10 && company.cik.bytes().all(|byte| byte.is_ascii_digit()) && ciks.insert(&company.cik),
                "{name}"
            );
            assert_eq!(company.is_simulated, company.cik.starts_with("09999999"), "{name}");
            assert_eq!(company.is_simulated, company.company.ends_with("(simulated)"), "{name}");
            assert!(company.fiscal_year(2025).is_some() && !company.parents.is_empty(), "{name}");
            assert_eq!(tickers(name), [name.as_str()]);
            for parent in &company.parents {
                assert!(parent.uei.len() == 12 && parent.recipient_id.len() == 38 && parent.recipient_id.ends_with("-P"), "{name}");
                assert!(parent.valid_to.is_empty() || parent.valid_to.parse::<Date>().is_ok(), "{name}");
            }
        }
    }

    /// Proves how companies are found, and which days their fiscal years have.
    #[test]
    fn companies_and_years() {
        let found = by_ticker(" lmt ").unwrap();
        assert_eq!((found.cik.as_str(), by_cik("0000936468")), ("0000936468", Some(found)));
        assert_eq!(by_parent("ZFN2JJXBLZT3").map(|company| company.ticker.as_str()).collect::<Vec<_>>(), ["LMT"]);
        assert_eq!((by_ticker("NOSUCH"), by_ticker(""), by_cik("")), (None, None, None));
        assert_eq!(found.fiscal_year(2024), Some((date(2024, 1, 1), date(2024, 12, 31))));
        let february = Company { fiscal_year_end: "02-29".to_owned(), ..found.clone() };
        assert_eq!(february.fiscal_year(2025), Some((date(2024, 3, 1), date(2025, 2, 28))));
    }

    /// Proves that a parent is valid for a window only if it is for all of its days.
    #[test]
    fn valid_windows() {
        let parent_until = |valid_to: &str| Parent {
            uei: String::new(),
            recipient_id: String::new(),
            valid_from: date(2020, 4, 3),
            valid_to: valid_to.to_owned(),
        };
        for (valid_to, first, last, is_valid) in [
            ("", "2020-04-03", "2021-04-02", true),
            ("", "2020-04-02", "2021-04-02", false),
            ("2024-09-27", "2023-09-28", "2024-09-27", true),
            ("2024-09-27", "2023-09-28", "2024-09-28", false),
        ] {
            assert_eq!(parent_until(valid_to).is_valid(first, last), is_valid, "{valid_to} {first} {last}");
        }
    }
}

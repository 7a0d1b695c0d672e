//! The rows of the filings service: filings, one record per filer, and trades that company insiders reported.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use schemas::details::{ChangeRecord, NoDetails};
use schemas::facts::insider_trades::Owner;
use schemas::news::{FILING_NEWS_DAYS, News};
use schemas::suppression::{Hides, PERSON, RECORD};
use schemas::views::records::{Record, Term};

/// A filing of one filer, or one trade of an insider, as readers see it. `""` and empty lists mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "RecordedFiling")]
pub struct Filing {
    /// `filing/ACCESSION/CIK`, or `trade/ACCESSION/TABLE/ROW`.
    pub id: String,
    /// `filing` or `trade`.
    pub kind: String,
    /// Form type as published.
    pub form: String,
    /// The form without its amendment suffix, under one name if it was renamed.
    pub base_form: String,
    /// Filing date, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filing_date: String,
    /// Name of the filer; for a trade that of the issuer.
    pub company: String,
    /// CIK of the filer, for a trade that of the issuer: 10 digits.
    pub cik: String,
    /// Accession number.
    pub accession: String,
    /// URL of the filing's page.
    pub url: String,

    /// Filing: item codes of an 8-K in their order.
    pub items: Vec<String>,
    /// Filing: the item with the highest score.
    pub top_item: String,
    /// Filing: what that item is about.
    pub top_label: String,
    /// Filing: score of its items, 0 to 100.
    pub event_score: i64,
    /// Filing: the roles of the filer in it.
    pub roles: Vec<String>,
    /// Filing: the day or period that it reports on.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub report_date: String,
    /// Filing: accession number of the filing that this one amends.
    pub amends: String,

    /// Trade: the issuer's ticker.
    pub ticker: String,
    /// Trade: the reporting owners.
    pub owners: Vec<Owner>,
    /// Trade: the security that was traded.
    pub security: String,
    /// Trade: day of the trade, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub trade_date: String,
    /// Trade: transaction code: `P` and `S` are open-market trades, `A`, `M`, `F`, `G` … are not.
    pub code: String,
    /// Trade: `A` acquired, `D` disposed.
    pub acquired_disposed: String,
    /// Trade: number of shares, a decimal number.
    pub shares: String,
    /// Trade: price per share in dollars, a decimal number.
    pub price: String,
    /// Trade: number of shares held after the trade.
    pub shares_after: String,
    /// Trade: ownership, `D` direct, `I` indirect.
    pub ownership: String,
    /// Trade: whether it was made under a trading plan.
    pub planned: bool,

    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

impl ChangeRecord for Filing {
    type Details = NoDetails;

    fn is_in_tables(&self) -> bool {
        self.is_listed()
    }

    /// By the filing date.
    fn news(&self) -> Option<News> {
        News::of_text(&self.filing_date, FILING_NEWS_DAYS)
    }
}

impl Record for Filing {
    const SEARCHED: &'static [&'static str] = &["ticker", "cik"];

    fn id(&self) -> &str {
        &self.id
    }

    fn terms(&self) -> Vec<Term> {
        let owners = self.owners.iter().map(|owner| Term::new("owner", &owner.cik));
        let items = self.items.iter().map(|item| Term::new("item", item));
        [
            Term::new("kind", &self.kind),
            Term::new("cik", &self.cik),
            Term::new("form", &self.form),
            Term::new("base", &self.base_form),
            Term::new("ticker", &self.ticker),
        ]
        .into_iter()
        .chain(owners)
        .chain(items)
        .flatten()
        .collect()
    }
}

/// What is hidden of a suppressed person: as an insider, the name and the number that leads to it; as a filer, the same. Of a suppressed record all of
/// them are hidden. Ids keep the number of the filer: they are addresses, and the accession number in them leads to the same public document.
const HIDES: &[Hides] = &[
    Hides { kind: &PERSON, field: "owners.name", hidden: &["owners.name", "owners.cik"] },
    Hides { kind: &PERSON, field: "company", hidden: &["company", "cik"] },
    Hides { kind: &RECORD, field: "id", hidden: &["owners", "company", "cik"] },
];

schemas::record_tables!("filings", hides: HIDES);

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use schemas::suppressed_keys::SuppressedKeys;

    /// Proves that a suppressed insider is hidden as a filer as well, and that the company whose shares were traded is not.
    #[test]
    fn suppressed_persons_are_hidden_as_filers() {
        let keys = SuppressedKeys::new([(&PERSON, PERSON.normalize("Ann Oak").unwrap())]);
        let shown = |record: &Filing| {
            let row = serde_json::json!({ "record": record }).to_string();
            let hidden = keys.hide(TABLES.view, row.as_bytes()).unwrap();
            let row: serde_json::Value = serde_json::from_slice(&hidden.unwrap_or_else(|| row.into_bytes())).unwrap();
            serde_json::from_value::<Filing>(row["record"].clone()).unwrap()
        };
        let filed = Filing { id: "filing/1/7".into(), company: "OAK ANN".into(), cik: "7".into(), form: "144".into(), ..Filing::default() };
        let expected = Filing { company: String::new(), cik: String::new(), suppressed: true, ..filed.clone() };
        assert_eq!(shown(&filed), expected);
        let owner = Owner { name: "Oak Ann".into(), cik: "7".into(), ..Owner::default() };
        let trade = Filing { company: "ACME".into(), cik: "9".into(), owners: vec![owner], ..Filing::default() };
        let seen = shown(&trade);
        assert_eq!((seen.company.as_str(), seen.cik.as_str(), seen.owners[0].cik.as_str()), ("ACME", "9", ""));
        let other = Filing { company: "Oak Holdings".into(), ..filed };
        assert_eq!(shown(&other), other);
    }

    /// Proves that filings and trades are late by their filing date, whatever the day of the trade.
    #[test]
    fn late_filings() {
        for (kind, filed, traded, is_late) in [
            ("filing", "2026-10-24", "", true),
            ("filing", "2026-10-25", "", false),
            ("trade", "2026-11-20", "2020-01-01", false),
            ("trade", "2001-11-20", "2001-11-19", true),
            ("filing", "", "", false),
        ] {
            let record = Filing { kind: kind.into(), filing_date: filed.into(), trade_date: traded.into(), ..Filing::default() };
            assert_eq!(record.is_backfill(&NoDetails {}, true, date(2026, 11, 24)), is_late, "{kind} {filed}");
        }
    }
}

//! The filings service's rows: filings, one record a filer, and the trades that insiders reported.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::records::{Record, Term};
use crate::facts::insider_trades::Owner;

/// A filing of one filer, or one trade of an insider, as readers see it. `""` and empty lists stand for unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Filing {
    /// `filing/ACCESSION/CIK`, or `trade/ACCESSION/TABLE/ROW`.
    pub id: String,
    /// `filing` or `trade`.
    pub kind: String,
    /// Form type as published.
    pub form: String,
    /// Without its amendment mark, under one name for all its names.
    pub base_form: String,
    /// Filing date, `YYYY-MM-DD`.
    pub filing_date: String,
    /// The filer's name; of a trade the issuer's.
    pub company: String,
    /// The filer; of a trade the issuer: 10 digits.
    pub cik: String,
    /// Accession number.
    pub accession: String,
    /// Page.
    pub url: String,

    /// Filing: item codes of an 8-K in their order.
    pub items: Vec<String>,
    /// Filing: the item that weighs most.
    pub top_item: String,
    /// Filing: what that item is.
    pub top_label: String,
    /// Filing: how much its items weigh, 0 to 100.
    pub event_score: i64,
    /// Filing: what the filer is in it.
    pub roles: Vec<String>,
    /// Filing: the day or period reported.
    pub report_date: String,
    /// Filing: accession number of the filing that this one amends.
    pub amends: String,

    /// Trade: the issuer's ticker.
    pub ticker: String,
    /// Trade: who reports it.
    pub owners: Vec<Owner>,
    /// Trade: what was traded.
    pub security: String,
    /// Trade: its day, `YYYY-MM-DD`.
    pub trade_date: String,
    /// Trade: `P` bought on the market, `S` sold there, `A`, `M`, `F`, `G` … otherwise.
    pub code: String,
    /// Trade: `A` acquired, `D` disposed.
    pub acquired_disposed: String,
    /// Trade: how many, a decimal number.
    pub shares: String,
    /// Trade: price of one in dollars, a decimal number.
    pub price: String,
    /// Trade: how many are held after it.
    pub shares_after: String,
    /// Trade: `D` held directly, `I` indirectly.
    pub ownership: String,
    /// Trade: made under a plan of before.
    pub planned: bool,
}

impl Record for Filing {
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

crate::record_tables!("filings");

//! A trade that a company insider reported on form 3, 4 or 5.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};
use texts::dollars::Dollars;

/// One transaction row of an ownership document, or the filing itself if it has no transactions (`table` is `none`, `row` is 0): form 3
/// lists holdings, which are not trades. Strings are trimmed, white space collapsed; `""` means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InsiderTradeFact {
    /// The stream: `edgar.ownership`.
    #[serde(rename = "door")]
    pub stream: String,
    /// Accession number. With `table` and `row` it identifies the trade.
    pub accession: String,
    /// `nonDerivative`, `derivative`, or `none`.
    pub table: String,
    /// Number of the transaction in its table: 1, 2, 3 …; holdings are not counted.
    pub row: i64,
    /// The form: `3`, `4`, `5`, or one of them with `/A`.
    pub form: String,
    /// Whether the filing amends an earlier one. An amendment does not remove that filing's trades.
    pub amendment: bool,
    /// Filing date `YYYY-MM-DD`.
    pub filing_date: String,
    /// On an amendment, the day of the filing that it amends.
    pub original_date: String,
    /// The day of the earliest transaction reported, or of the event (form 3).
    pub period_of_report: String,
    /// CIK of the issuer: 10 digits. A trade belongs to its issuer, in whichever list it was found.
    pub issuer_cik: String,
    /// Name of the issuer.
    pub issuer_name: String,
    /// Ticker of the issuer, in capitals; empty if it has none.
    pub issuer_symbol: String,
    /// The reporting owners, in the document's order: several for one trade when a fund and its manager file together.
    pub owners: Vec<Owner>,
    /// The security that was traded.
    pub security: String,
    /// Day of the trade, `YYYY-MM-DD`.
    pub date: String,
    /// Transaction code: `P` and `S` are open-market trades, `A`, `M`, `F`, `G` … are not. Empty if the row has none.
    pub code: String,
    /// `A` acquired, `D` disposed. It differs from the transaction code.
    pub acquired_disposed: String,
    /// Number of shares, as a decimal number.
    pub shares: String,
    /// Price per share in dollars, as a decimal number; empty if there is only a footnote. 0 is normal for grants and gifts.
    pub price: String,
    /// Number of shares held after the trade.
    pub shares_after: String,
    /// Ownership: `D` direct, `I` indirect.
    pub ownership: String,
    /// The nature of indirect ownership.
    pub ownership_nature: String,
    /// The underlying security of a derivative.
    pub underlying: String,
    /// Whether the filing names a trading plan (rule 10b5-1).
    pub planned: bool,
}

/// A reporting owner of a trade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// CIK of the owner: 10 digits.
    pub cik: String,
    /// Name of the owner, a person or a company.
    pub name: String,
    /// Whether the owner is a director.
    pub director: bool,
    /// Whether the owner is an officer.
    pub officer: bool,
    /// Whether the owner holds more than ten percent.
    pub ten_percent: bool,
    /// Whether the owner has another relationship to the issuer.
    pub other: bool,
    /// Title of the officer, or description of the other relationship.
    pub title: String,
}

impl InsiderTradeFact {
    /// Returns the canonical form that is hashed. Each owner contributes seven values to the field `owners`.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }

    /// Whether the fact is a trade, not a filing without trades.
    #[must_use]
    pub fn is_trade(&self) -> bool {
        self.row > 0
    }

    /// Returns shares times price, if both are known. The result is meaningless where the price is that of a depositary receipt
    /// and the number that of ordinary shares.
    #[must_use]
    pub fn value(&self) -> Option<Dollars> {
        Dollars::product(&self.shares, &self.price)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Proves that every field is hashed, also those of owners: changing it changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        let changed = |value: &Value| match value {
            Value::String(_) => json!("x"),
            Value::Number(_) => json!(1),
            Value::Bool(_) => json!(true),
            _ => json!([{"cik": "x"}]),
        };
        let empty = serde_json::to_value(InsiderTradeFact::default()).unwrap();
        for (name, value) in empty.as_object().unwrap() {
            let mut other = empty.clone();
            other[name] = changed(value);
            let fact: InsiderTradeFact = serde_json::from_value(other).unwrap();
            assert_ne!(fact.canonical(), InsiderTradeFact::default().canonical(), "{name}");
        }
        let canonical_of =
            |owner: Value| InsiderTradeFact { owners: vec![serde_json::from_value(owner).unwrap()], ..Default::default() }.canonical();
        let owner = serde_json::to_value(Owner::default()).unwrap();
        let mut forms: Vec<_> =
            owner.as_object().unwrap().iter().map(|(name, value)| canonical_of(json!({ name.as_str(): changed(value) }))).collect();
        forms.push(canonical_of(owner));
        let all = forms.len();
        forms.sort();
        forms.dedup();
        assert_eq!(forms.len(), all);
    }

    /// Proves that a value needs both factors, and that a price of 0 counts as known.
    #[test]
    fn value_needs_shares_and_price() {
        let value_of =
            |shares: &str, price: &str| InsiderTradeFact { shares: shares.into(), price: price.into(), ..Default::default() }.value();
        assert_eq!(
            (value_of("200", "1.5"), value_of("200", "0"), value_of("200", ""), value_of("", "1")),
            (Some(Dollars { cents: 30_000 }), Some(Dollars { cents: 0 }), None, None)
        );
    }
}

//! A trade that an insider reported on form 3, 4 or 5.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::canonical::Canonical;

/// One transaction row of an ownership document, or, for a filing without any, the filing itself (`table` is `none`, `row` 0): a form 3
/// lists holdings, which are no trades. Strings are trimmed, white space collapsed; `""` stands for unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InsiderTradeFact {
    /// Which stream: `edgar.ownership`.
    #[serde(rename = "door")]
    pub stream: String,
    /// Accession number. With `table` and `row` it is the trade's identity.
    pub accession: String,
    /// `nonDerivative`, `derivative`, or `none`.
    pub table: String,
    /// Number of the transaction in its table: 1, 2, 3 …; holdings are not counted.
    pub row: i64,
    /// `3`, `4`, `5`, or one of them with `/A`.
    pub form: String,
    /// Whether it amends an earlier filing; it does not take back that filing's trades.
    pub amendment: bool,
    /// Filing date `YYYY-MM-DD`.
    pub filing_date: String,
    /// On an amendment, the day of the filing that it amends.
    pub original_date: String,
    /// The day of the earliest transaction reported, or of the event (form 3).
    pub period_of_report: String,
    /// The issuer: 10 digits. A trade belongs to it, whosever list it was read from.
    pub issuer_cik: String,
    /// Its name.
    pub issuer_name: String,
    /// Its ticker, in capitals; empty when it has none.
    pub issuer_symbol: String,
    /// Who reports, in the document's order: several for one trade when a fund and its manager file together.
    pub owners: Vec<Owner>,
    /// What was traded.
    pub security: String,
    /// Day of the trade `YYYY-MM-DD`.
    pub date: String,
    /// Transaction code: `P` and `S` are market decisions, `A`, `M`, `F`, `G` … are not. Empty when the row has none.
    pub code: String,
    /// `A` acquired, `D` disposed. Not the same as the code.
    pub acquired_disposed: String,
    /// How many, as a decimal number.
    pub shares: String,
    /// Price of one in dollars, as a decimal number; empty when there is only a footnote. 0 is normal for grants and gifts.
    pub price: String,
    /// How many are held after the trade.
    pub shares_after: String,
    /// `D` held directly, `I` indirectly.
    pub ownership: String,
    /// How they are held indirectly.
    pub ownership_nature: String,
    /// What a derivative is worth in.
    pub underlying: String,
    /// The filing names a trading plan made beforehand (rule 10b5-1).
    pub planned: bool,
}

/// Who reports a trade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// 10 digits.
    pub cik: String,
    /// Name; a company may be an owner, too.
    pub name: String,
    /// A director.
    pub director: bool,
    /// An officer.
    pub officer: bool,
    /// Holds more than a tenth.
    pub ten_percent: bool,
    /// Something else.
    pub other: bool,
    /// Title of the officer, or what else it is.
    pub title: String,
}

impl InsiderTradeFact {
    /// The canonical form that is hashed. An owner is seven values of the field `owners`.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let Self {
            stream,
            accession,
            table,
            row,
            form,
            amendment,
            filing_date,
            original_date,
            period_of_report,
            issuer_cik,
            issuer_name,
            issuer_symbol,
            owners,
            security,
            date,
            code,
            acquired_disposed,
            shares,
            price,
            shares_after,
            ownership,
            ownership_nature,
            underlying,
            planned,
        } = self;
        let row = if *row == 0 { String::new() } else { row.to_string() };
        let flag = |flag: bool| if flag { "true" } else { "" };
        let owners = owners.iter().flat_map(|owner| {
            let Owner { cik, name, director, officer, ten_percent, other, title } = owner;
            [&**cik, name, flag(*director), flag(*officer), flag(*ten_percent), flag(*other), title]
        });
        Canonical::default()
            .text("door", stream)
            .text("accession", accession)
            .text("table", table)
            .text("row", &row)
            .text("form", form)
            .flag("amendment", *amendment)
            .text("filingDate", filing_date)
            .text("originalDate", original_date)
            .text("periodOfReport", period_of_report)
            .text("issuerCik", issuer_cik)
            .text("issuerName", issuer_name)
            .text("issuerSymbol", issuer_symbol)
            .list("owners", owners)
            .text("security", security)
            .text("date", date)
            .text("code", code)
            .text("acquiredDisposed", acquired_disposed)
            .text("shares", shares)
            .text("price", price)
            .text("sharesAfter", shares_after)
            .text("ownership", ownership)
            .text("ownershipNature", ownership_nature)
            .text("underlying", underlying)
            .flag("planned", *planned)
            .bytes()
    }

    /// Whether it is a trade, not a filing without any.
    #[must_use]
    pub fn is_trade(&self) -> bool {
        self.row > 0
    }

    /// Shares times price in dollars, when both are known. Absurd where a price is that of a depositary receipt and the number that of
    /// ordinary shares.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        let (shares, price): (f64, f64) = (self.shares.parse().ok()?, self.price.parse().ok()?);
        Some(shares * price).filter(|value| value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Proves that every field counts, an owner's too: changing any one of them changes the canonical form.
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
        let of = |owner: Value| InsiderTradeFact { owners: vec![serde_json::from_value(owner).unwrap()], ..Default::default() }.canonical();
        let owner = serde_json::to_value(Owner::default()).unwrap();
        let mut forms: Vec<_> =
            owner.as_object().unwrap().iter().map(|(name, value)| of(json!({ name.as_str(): changed(value) }))).collect();
        forms.push(of(owner));
        let all = forms.len();
        forms.sort();
        forms.dedup();
        assert_eq!(forms.len(), all);
    }

    /// Proves that a value needs both its factors, and that a price of 0 is one.
    #[test]
    fn values() {
        let of = |shares: &str, price: &str| InsiderTradeFact { shares: shares.into(), price: price.into(), ..Default::default() }.value();
        assert_eq!((of("200", "1.5"), of("200", "0"), of("200", ""), of("", "1")), (Some(300.0), Some(0.0), None, None));
    }
}

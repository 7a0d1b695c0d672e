//! Filings and insider trades in answers. The fields of the public contract come first, in its order.

use crate::record::Filing;
use schemars::JsonSchema;
use schemas::facts::insider_trades::Owner;
use serde::Serialize;
use texts::dollars::Dollars;

/// A filing of one filer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Filing")]
pub struct Filed {
    /// Form type: `8-K`, `10-Q/A`.
    pub form: String,
    /// Filing date, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filing_date: String,
    /// Name of the filer.
    pub company: String,
    /// The number (CIK) of the filer: 10 digits.
    pub cik: String,
    /// The item of an 8-K with the highest score; empty for other forms.
    pub top_item: String,
    /// The title of that item.
    pub top_label: String,
    /// The score of the filing, 0 to 100: that of its highest item, or of its form.
    pub event_score: i64,
    /// The URL of the filing's page.
    pub url: String,
    /// Accession number.
    pub accession: String,
    /// All items of an 8-K, in their order.
    pub items: Vec<String>,
    /// The filer's roles in the filing: Filer, Subject, Issuer, Reporting, Filed by.
    pub roles: Vec<String>,
    /// The day or period reported, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub report_date: String,
    /// Accession number of the filing that this one amends.
    pub amends: String,
    /// True if names are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

impl From<Filing> for Filed {
    fn from(record: Filing) -> Self {
        Self {
            form: record.form,
            filing_date: record.filing_date,
            company: record.company,
            cik: record.cik,
            top_item: record.top_item,
            top_label: record.top_label,
            event_score: record.event_score,
            url: record.url,
            accession: record.accession,
            items: record.items,
            roles: record.roles,
            report_date: record.report_date,
            amends: record.amends,
            suppressed: record.suppressed,
        }
    }
}

/// A change of a filing.
pub type Changed = feed::answer_changes::Changed<Filed>;

/// A trade that insiders reported, or an insiders' filing without a trade (form 3).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trade {
    /// `3`, `4`, `5`, or one of them with `/A`.
    pub form: String,
    /// Filing date, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filing_date: String,
    /// The issuer's name.
    pub company: String,
    /// The number (CIK) of the issuer: 10 digits.
    pub cik: String,
    /// The issuer's ticker.
    pub ticker: String,
    /// The insiders who report the trade; several if, for example, a fund and its manager file together.
    pub owners: Vec<Owner>,
    /// Day of the trade, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// The transaction code: `P` bought or `S` sold on the market; `A`, `M`, `F`, `G` … are not market decisions.
    pub code: String,
    /// `A` acquired, `D` disposed.
    pub acquired_disposed: String,
    /// The number of shares; null if unknown.
    pub shares: Option<f64>,
    /// The price of a share in dollars; null if the filing has only a footnote.
    pub price: Option<f64>,
    /// Shares times price; null if one of them is unknown.
    pub value: Option<Dollars>,
    /// The security that was traded.
    pub security: String,
    /// The number of shares held after the trade.
    pub shares_after: Option<f64>,
    /// `D` held directly, `I` indirectly.
    pub ownership: String,
    /// Whether the trade was made under an earlier plan (rule 10b5-1).
    pub planned: bool,
    /// Accession number.
    pub accession: String,
    /// The URL of the filing's page.
    pub url: String,
    /// True if names are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

impl From<Filing> for Trade {
    fn from(record: Filing) -> Self {
        // Adding zero makes a negative zero positive.
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number + 0.0);
        Self {
            form: record.form,
            filing_date: record.filing_date,
            company: record.company,
            cik: record.cik,
            ticker: record.ticker,
            owners: record.owners,
            date: record.trade_date,
            code: record.code,
            acquired_disposed: record.acquired_disposed,
            shares: number(&record.shares),
            price: number(&record.price),
            value: Dollars::product(&record.shares, &record.price),
            security: record.security,
            shares_after: number(&record.shares_after),
            ownership: record.ownership,
            planned: record.planned,
            accession: record.accession,
            url: record.url,
            suppressed: record.suppressed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a filing and a trade say that names are hidden, and nothing if none are.
    #[test]
    fn hidden_names_are_said() {
        for suppressed in [true, false] {
            let record = Filing { suppressed, ..Filing::default() };
            let shown = [serde_json::to_value(Filed::from(record.clone())).unwrap(), serde_json::to_value(Trade::from(record)).unwrap()];
            let said = shown.map(|record| record.get("suppressed").and_then(serde_json::Value::as_bool));
            assert_eq!(said, [suppressed.then_some(true); 2]);
        }
    }
}

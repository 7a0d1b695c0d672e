//! Filings and insider trades as readers get them: the contract's fields first, in its order.

use schemars::JsonSchema;
use schemas::facts::filing_events::WEIGHTS;
use schemas::facts::filings::FilingFact;
use schemas::facts::insider_trades::Owner;
use schemas::views::filings::Filing;
use serde::Serialize;

use feed::query::Item;

/// A filing of one filer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filed {
    /// Form type: `8-K`, `10-Q/A`.
    pub form: String,
    /// Filing date, YYYY-MM-DD.
    pub filing_date: String,
    /// Name of the filer.
    pub company: String,
    /// The filer: 10 digits.
    pub cik: String,
    /// The item of an 8-K that weighs most; empty for other forms.
    pub top_item: String,
    /// What that item is.
    pub top_label: String,
    /// How much the filing weighs, 0 to 100: by its heaviest item, or by its form.
    pub event_score: i64,
    /// Its page.
    pub url: String,
    /// Accession number.
    pub accession: String,
    /// All items of an 8-K, in their order.
    pub items: Vec<String>,
    /// What the filer is in it: Filer, Subject, Issuer, Reporting, Filed by.
    pub roles: Vec<String>,
    /// The day or period reported, YYYY-MM-DD.
    pub report_date: String,
    /// Accession number of the filing that this one amends.
    pub amends: String,
}

impl From<Filing> for Filed {
    fn from(record: Filing) -> Self {
        let Filing {
            form,
            filing_date,
            company,
            cik,
            top_item,
            top_label,
            event_score,
            url,
            accession,
            items,
            roles,
            report_date,
            amends,
            ..
        } = record;
        Self { form, filing_date, company, cik, top_item, top_label, event_score, url, accession, items, roles, report_date, amends }
    }
}

impl From<&FilingFact> for Filed {
    /// A filing as the regulator shows it now.
    fn from(fact: &FilingFact) -> Self {
        let event = WEIGHTS.event(&fact.base_form, &fact.items);
        Self {
            form: fact.form.clone(),
            filing_date: fact.filing_date.clone(),
            company: fact.company.clone(),
            cik: fact.cik.clone(),
            top_item: event.item,
            top_label: event.label,
            event_score: event.score,
            url: fact.url(),
            accession: fact.accession.clone(),
            items: fact.items.clone(),
            roles: fact.roles.clone(),
            report_date: fact.report_date.clone(),
            amends: String::new(),
        }
    }
}

/// A change of a filing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The filing after it.
    #[serde(flatten)]
    pub filing: Filed,
    /// What happened: `new` or `modified`; `added` or `removed` where a changed filter did it.
    pub event: String,
    /// Number of the change within the service.
    pub seq: u64,
    /// When it was recorded, RFC 3339 in UTC.
    pub recorded_at: String,
    /// The filing before it, where `before` was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Filed>,
}

impl From<Item<Filing>> for Changed {
    fn from(item: Item<Filing>) -> Self {
        let Item { change, before } = item;
        Self {
            filing: change.record.into(),
            event: change.event,
            seq: change.seq,
            recorded_at: change.recorded_at,
            before: before.map(Filed::from),
        }
    }
}

/// A trade that insiders reported, or a filing of theirs without any (form 3).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trade {
    /// `3`, `4`, `5`, or one of them with `/A`.
    pub form: String,
    /// Filing date, YYYY-MM-DD.
    pub filing_date: String,
    /// The issuer's name.
    pub company: String,
    /// The issuer: 10 digits.
    pub cik: String,
    /// The issuer's ticker.
    pub ticker: String,
    /// Who reports it; several for one trade when a fund and its manager file together.
    pub owners: Vec<Owner>,
    /// Day of the trade, YYYY-MM-DD.
    pub date: String,
    /// `P` bought and `S` sold on the market; `A`, `M`, `F`, `G` … are no market decisions.
    pub code: String,
    /// `A` acquired, `D` disposed.
    pub acquired_disposed: String,
    /// How many; null where it is not told.
    pub shares: Option<f64>,
    /// Price of one in dollars; null where there is only a footnote.
    pub price: Option<f64>,
    /// Shares times price; null where one of them is not told.
    pub value: Option<f64>,
    /// What was traded.
    pub security: String,
    /// How many are held after it.
    pub shares_after: Option<f64>,
    /// `D` held directly, `I` indirectly.
    pub ownership: String,
    /// Made under a plan of before (rule 10b5-1).
    pub planned: bool,
    /// Accession number.
    pub accession: String,
    /// The filing's page.
    pub url: String,
}

impl From<Filing> for Trade {
    fn from(record: Filing) -> Self {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let (shares, price) = (number(&record.shares), number(&record.price));
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
            shares,
            price,
            value: shares.zip(price).map(|(shares, price)| shares * price).filter(|value| value.is_finite()),
            security: record.security,
            shares_after: number(&record.shares_after),
            ownership: record.ownership,
            planned: record.planned,
            accession: record.accession,
            url: record.url,
        }
    }
}

//! `GET /v1/filing_digest`: the material events, insider trades and registrations of the last days, of one company or of all.

use crate::record::Filing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clusters::{Cluster, clusters, clusters_are};
use super::filter::{Filter, companies_of};
use super::records::{Filed, Trade};
use super::watchable_feed::Filings;
use feed::filter::{Criteria, Element, TermQuery, includes_backfill};
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Completeness, Period, Read, Reader, Window};

/// Forms that register securities, without `/A`.
const REGISTRATIONS: &[&str] =
    &["S-1", "S-3", "S-4", "S-8", "S-11", "F-1", "F-3", "F-4", "F-10", "10-12B", "10-12G", "20FR12B", "8-A12B", "8-A12G", "N-2"];
/// How many records of each kind an answer holds at most.
const ROWS_MAX: usize = 25;

/// Arguments of `filing_digest`: those of the filter. Without a ticker the digest covers all companies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The numbers of records by kind.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Current reports (8-K).
    pub material_events: usize,
    /// Trades and other reports of insiders.
    pub insider_activity: usize,
    /// Registrations of securities.
    pub registrations: usize,
}

/// The filings of the last days.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The ticker, as given; empty without one.
    pub ticker: String,
    /// The filing dates of the digest.
    #[serde(flatten)]
    pub period: Period,
    /// How many records there are.
    pub counts: Counts,
    /// Current reports (8-K), the highest event score first.
    pub material_events: Vec<Filed>,
    /// Insiders' trades, the last recorded first.
    pub insider_activity: Vec<Trade>,
    /// Clusters of insiders of one issuer who traded alike.
    pub clusters: Vec<Cluster>,
    /// New registrations of securities, the last recorded first.
    pub registrations: Vec<Filed>,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
}

/// What descriptions of operations say about filings that are recorded late.
macro_rules! late_filings {
    () => {
        "Filings that were recorded more than 30 days after their filing date are late news and left out, which the note says; `includeBackfill=true` \
         includes them. "
    };
}
pub(crate) use late_filings;

impl Read for Arguments {
    type Service = Filings;
    type Answer = Digest;

    const FILTER: &'static [&'static str] = &["ticker", "includeBackfill"];
    const HAS_DAYS: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "filing_digest",
            path: "/v1/filing_digest",
            summary: "Material events (8-K), insider trades with clusters and new registrations of the last days.",
            when: "Use it for a summary of a period.",
            description: concat!(
                "Days are filing dates. ",
                late_filings!(),
                clusters_are!(),
                " Without a ticker the newest few thousand filings are read, and the note says so if there are more."
            ),
            example: json!({ "days": 7 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Filings>) -> Result<Digest, Problem> {
        let window = reader.window(0).await?;
        let ticker = filter.ticker.clone().unwrap_or_default();
        let mut companies = None;
        if !ticker.is_empty() {
            companies = Some(companies_of(reader.context(), &reader.at, reader.after(), &ticker).await?);
        }
        let changes = reader.count(material(companies.as_deref()), window.before).await?;
        let changes = of_days(&filter, &window, changes, reader);
        // The current state of a filing counts, also if it changed within the window.
        let mut records = reader.current(changes).await?;
        records.retain(|record| record.filing_date >= window.period.from && is_material(record));
        let (trades, filings): (Vec<Filing>, Vec<Filing>) = records.into_iter().partition(|record| record.kind == "trade");
        let clusters = clusters(trades.iter());
        let (mut events, registrations): (Vec<Filing>, Vec<Filing>) = filings.into_iter().partition(|record| record.base_form == "8-K");
        events.sort_by(|a, b| (b.event_score, &b.filing_date, &a.id).cmp(&(a.event_score, &a.filing_date, &b.id)));
        let counts = Counts { material_events: events.len(), insider_activity: trades.len(), registrations: registrations.len() };
        let rows = reader.rows(ROWS_MAX);
        Ok(Digest {
            ticker,
            period: window.period,
            counts,
            material_events: events.into_iter().take(rows).map(Filed::from).collect(),
            insider_activity: trades.into_iter().take(rows).map(Trade::from).collect(),
            clusters,
            registrations: registrations.into_iter().take(rows).map(Filed::from).collect(),
            completeness: reader.completeness().await?,
        })
    }
}

/// The changes of filings of the days of a window, without late news unless the filter includes them. A note says how many are left out.
pub(crate) fn of_days(
    filter: &Filter,
    window: &Window,
    mut changes: Vec<Element<Filing>>,
    reader: &mut Reader<Filings>,
) -> Vec<Element<Filing>> {
    changes.retain(|change| change.record.filing_date >= window.period.from);
    let all = changes.len();
    changes.retain(|change| includes_backfill(filter) || !change.is_backfill());
    reader.note_backfill(all - changes.len());
    changes
}

/// Changes of the kinds of records that a digest holds, of some companies or of all.
fn material(companies: Option<&[String]>) -> Criteria<'_, Filing> {
    let all_forms = || ["8-K", "3", "4", "5"].iter().chain(REGISTRATIONS).map(|form| (*form).to_owned()).collect();
    let wanted = companies.map_or_else(|| TermQuery::Exact("base", all_forms()), |companies| TermQuery::Exact("cik", companies.to_vec()));
    Criteria::new(vec![wanted], move |change: &Element<Filing>| {
        companies.is_none_or(|companies| companies.contains(&change.record.cik)) && is_material(&change.record)
    })
}

/// Whether a digest holds a record of this kind.
fn is_material(record: &Filing) -> bool {
    record.kind == "trade" || record.base_form == "8-K" || REGISTRATIONS.contains(&record.base_form.as_str())
}

//! `GET /v1/leads`: whole leads, for a paid key or a payment.

use crate::record::lexicon::LEXICON;
use crate::record::{FREE_DAYS, Lead, Sample, list};
use schemars::JsonSchema;
use schemas::views::records::Redact;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filter;
use super::sample;
use super::watchable_feed::{Labs, ShownLead};
use feed::filter::Filter as _;
use feed::places::{Ranked, Segment, Selects, Walk};
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price};
use reads::read::{Completeness, LeadsPage, Read, Reader};
use schemas::error_code::ErrorCode;

/// The price of a call of the lead feed in millionths of a US dollar.
const LEADS_MICROS: u64 = 20_000;
/// How many rows a preview shows.
const PREVIEW_ROWS: usize = 3;
/// What every answer says about leads.
const DISCLAIMER: &str = "Derived from public NIH award records; not a statement of intent to purchase.";

/// Why a lead is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The investigator has no earlier project on record.
    NewLab,
    /// The investigator has an earlier project on record.
    NewProject,
    /// The award pays for an instrument.
    Instrument,
    /// Too little is on record about the investigator.
    UnknownPi,
}

impl Signal {
    fn as_str(self) -> &'static str {
        match self {
            Self::NewLab => "new_lab",
            Self::NewProject => "new_project",
            Self::Instrument => "instrument",
            Self::UnknownPi => "unknown_pi",
        }
    }
}

/// Arguments of `lab_lead_feed`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// How many days back, today included: leads with a notice of award on one of these days.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 365))]
    pub days: i64,
    /// The smallest amount in dollars.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub min_amount: f64,
    /// Only leads with this signal.
    pub signal: Option<Signal>,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

fn days_default() -> i64 {
    30
}

/// A page of leads.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Leads {
    /// What the page says about itself.
    #[serde(flatten)]
    pub page: LeadsPage,
    /// The leads, newest notice of award first, ties by id.
    pub leads: Vec<ShownLead>,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
    /// The rule that decides categories: `lexicon/` and the version of the data file, whose phrases `/categories` lists.
    pub rule: String,
    /// What a lead is not.
    pub disclaimer: &'static str,
}

/// The free preview of a page.
#[derive(Serialize)]
struct Preview {
    leads: Vec<Sample>,
    total: Option<u64>,
}

impl Arguments {
    /// Whether a lead fits the arguments and the filter.
    #[expect(clippy::cast_precision_loss, reason = "dollars of one award are far below 2^53")]
    fn selects(&self, filter: &Filter, lead: &Lead) -> bool {
        lead.amount as f64 >= self.min_amount && self.signal.is_none_or(|signal| lead.signal == signal.as_str()) && filter.takes(lead)
    }

    /// What `after` belongs to, next to the list.
    fn bound(&self, filter: &Filter) -> String {
        format!("{}/{}/{:?}/{}", self.days, self.min_amount, self.signal, filter.canonical())
    }

    /// The page that the arguments ask for.
    async fn page(&self, filter: &Filter, limit: usize, reader: &Reader<Labs>) -> Result<Ranked<Lead>, Problem> {
        let list = list(filter.category.as_deref(), filter.state.as_deref());
        let part = Segment::newest_first(&reader.at.last_days(self.days));
        let listed = Filter { category: filter.category.clone(), state: filter.state.clone(), ..Filter::default() };
        let bound = self.bound(filter);
        let fits = |lead: &Lead| self.selects(filter, lead);
        let is_listed_only = self.min_amount <= 0.0 && self.signal.is_none() && *filter == listed;
        let selects: Option<Selects<'_, Lead>> = if is_listed_only { None } else { Some(&fits) };
        let walk = Walk { list: &list, part, filter: &bound, limit, after: self.after.as_deref() };
        reader.ranked(walk, selects).await
    }
}

impl Read for Arguments {
    type Service = Labs;
    type Answer = Leads;

    const FILTER: &'static [&'static str] = &["category", "state", "org", "pi", "activity"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "lab_lead_feed",
            path: "/v1/leads",
            summary: "Newly funded laboratories with the likely category of purchases and a spend window, newest first.",
            when: "Use it to find who has new money for laboratory equipment, and when.",
            description: "All filters must fit. A lead names the phrases that decided its category (`categoryEvidence`: rule and phrases are those \
                of `/categories`), why it has its `signal`, and when the money is likely to be spent; that spending peaks in the first 90 days \
                is an assumption. Leads that the funder took back are left out; `changes` has them. Unpaid calls get the payment terms with a \
                preview: the first 3 rows as `/sample` shows them, and the `total` of the last 14 days, for `category` and `state` alone. Page with \
                `after`.",
            price: Price::PerCall { micros: LEADS_MICROS, free_from: SAVED_ITEMS_MIN_TIER },
            list: "leads",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "state": "CA", "days": 90, "limit": 10 }),
            aliases: &[("minAmount", "min_amount")],
            ..Definition::read()
        }
    }

    /// What a preview shows and counts is selected by category and state only: everything else is hidden.
    async fn preview(self, filter: Filter, reader: &mut Reader<Labs>) -> Result<Option<Value>, Problem> {
        let list = list(filter.category.as_deref(), filter.state.as_deref());
        reader.check_after(&list, &self.bound(&filter), self.after.as_deref())?;
        let found = sample::rows(&filter, reader).await?;
        reader.note(format!(
            "this preview has the leads of the last {FREE_DAYS} days by `category` and `state` alone; the answer that is paid for has those that are asked \
                for, and can be empty"
        ));
        let preview = Preview { leads: found.records.iter().take(PREVIEW_ROWS).map(Redact::redacted).collect(), total: found.total };
        Ok(serde_json::to_value(preview).ok())
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Labs>) -> Result<Leads, Problem> {
        let limit = reader.limit();
        let Ranked { items, total, next } = self.page(&filter, limit, reader).await?;
        Ok(Leads {
            page: reader.leads_page(items.len(), total, next).await?,
            leads: items.into_iter().map(ShownLead::from).collect(),
            completeness: reader.completeness().await?,
            rule: format!("lexicon/{}", LEXICON.version),
            disclaimer: DISCLAIMER,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a lead must fit the signal, the amount and every field of the filter, and that arguments name a signal as leads do.
    #[test]
    fn leads_are_selected() {
        let lead = Lead {
            signal: "new_lab".into(),
            amount: 300_000,
            pi: "Ada I Quill".into(),
            org: "RIVERTON HOSPITAL".into(),
            activity_code: "R01".into(),
            ..Lead::default()
        };
        for (arguments, filter, fits) in [
            (json!({}), json!({}), true),
            (json!({"signal": "new_lab", "min_amount": 300_000}), json!({"pi": "quill", "activity": "r01", "org": "Riverton"}), true),
            (json!({"signal": "instrument"}), json!({}), false),
            (json!({"min_amount": 300_001}), json!({}), false),
            (json!({}), json!({"pi": "other"}), false),
            (json!({"signal": "new_lab"}), json!({"activity": "R21"}), false),
        ] {
            let given: Arguments = serde_json::from_value(arguments.clone()).unwrap();
            let wanted = serde_json::from_value::<Filter>(filter.clone()).unwrap().normalize().unwrap();
            assert_eq!(given.selects(&wanted, &lead), fits, "{arguments} {filter}");
        }
        for signal in ["new_lab", "new_project", "instrument", "unknown_pi"] {
            let given: Arguments = serde_json::from_value(json!({ "signal": signal })).unwrap();
            assert_eq!(given.signal.map(Signal::as_str), Some(signal));
        }
        assert!(serde_json::from_value::<Arguments>(json!({ "signal": "old_lab" })).is_err());
    }
}

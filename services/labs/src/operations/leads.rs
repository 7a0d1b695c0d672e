//! `GET /v1/leads`: whole leads, for a paid key or a payment.

use crate::record::lexicon::LEXICON;
use crate::record::{Lead, Sample, list};
use schemars::JsonSchema;
use schemas::views::records::Redact;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filter;
use super::followed::{Labs, ShownLead};
use super::sample;
use crate::LEADS_MICROS;
use feed::places::{Ranked, Segment, Selects, Walk};
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price};
use reads::read::{Completeness, Read, Reader};
use schemas::error_code::ErrorCode;

/// How many rows a preview shows.
const PREVIEW_ROWS: usize = 3;
/// What every answer says about leads.
const DISCLAIMER: &str = "Derived from public NIH award records; not a statement of intent to purchase.";

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
    /// Day of the last refresh, YYYY-MM-DD; empty before the first.
    pub updated: String,
    /// The number of leads in this answer.
    pub count: usize,
    /// How many leads match, over all pages; null if they are more than 2,000.
    pub total: Option<u64>,
    /// Send it as `after` to get the next page; null on the last one.
    pub next: Option<String>,
    /// The tier of the caller's key; `free` without a key.
    pub tier: &'static str,
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
    /// The page that the arguments ask for.
    async fn page(&self, filter: &Filter, limit: usize, reader: &Reader<Labs>) -> Result<Ranked<Lead>, Problem> {
        let list = list(filter.category.as_deref(), filter.state.as_deref());
        let part = Segment::newest_first(&reader.at.last_days(self.days));
        let bound = format!("{}/{}", self.days, self.min_amount);
        #[expect(clippy::cast_precision_loss, reason = "dollars of one award are far below 2^53")]
        let is_large = |lead: &Lead| lead.amount as f64 >= self.min_amount;
        let selects: Option<Selects<'_, Lead>> = if self.min_amount > 0.0 { Some(&is_large) } else { None };
        let walk = Walk { list: &list, part, filter: &bound, limit, after: self.after.as_deref() };
        reader.ranked(walk, selects).await
    }
}

impl Read for Arguments {
    type Service = Labs;
    type Answer = Leads;

    const FILTER: &'static [&'static str] = &["category", "state"];
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

    /// Days and amounts are hidden, so neither `days` nor `min_amount` selects what a preview shows and counts.
    async fn preview(self, filter: Filter, reader: &mut Reader<Labs>) -> Result<Option<Value>, Problem> {
        let found = sample::rows(&filter, reader).await?;
        let preview = Preview { leads: found.records.iter().take(PREVIEW_ROWS).map(Redact::redacted).collect(), total: found.total };
        Ok(serde_json::to_value(preview).ok())
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Labs>) -> Result<Leads, Problem> {
        let limit = reader.limit();
        let Ranked { items, total, next } = self.page(&filter, limit, reader).await?;
        Ok(Leads {
            updated: reader.updated().await?,
            count: items.len(),
            total,
            next,
            tier: reader.tier(),
            leads: items.into_iter().map(ShownLead::from).collect(),
            completeness: reader.completeness().await?,
            rule: format!("lexicon/{}", LEXICON.version),
            disclaimer: DISCLAIMER,
        })
    }
}

//! Over-assessed parcels: `GET /api/leads`, redacted without a paid key; its tool `overassessment_leads`, paid per call.

use crate::record::{Parcel, RedactedParcel};
use feed::filter::Filter as _;
use feed::places::Ranked;
use operation::problem::Problem;
use operation::{Definition, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use schemas::views::records::Redact;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::counts::{self, Counts};
use super::filter::Filter;
use super::lead::{LeadRow, OverLead, check_after, page};
use super::watchable_feed::Parcels;
use super::{DISCLAIMER, LEADS_MICROS, rule};
use reads::read::{Difference, Read, Reader, Tool, order_by_shown};

/// The most rows without a paid key.
const REDACTED_ROWS_MAX: usize = 10;
/// The rows of a preview.
const PREVIEW_ROWS: usize = 3;

/// Arguments of `leads`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Where to continue: the `next` of an earlier answer to the same query. Without a paid key there is none.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

/// What a page of over-assessed parcels says about itself. Answers flatten it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OverLeadsPage {
    /// Day of the last refresh, YYYY-MM-DD; empty before the first.
    pub updated: String,
    counts: Counts,
    /// How many parcels match, over all pages.
    pub total: i64,
    /// The number of parcels in this answer.
    pub count: usize,
    /// The tier of the caller's key; `free` without a key.
    pub tier: &'static str,
    /// The rule and the version of the data file of classes, which `/docs` shows.
    pub rule: String,
    /// What leads are not.
    pub disclaimer: &'static str,
}

/// Over-assessed parcels, whole or redacted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ParcelLeads")]
pub struct Leads {
    /// What the page says about itself.
    #[serde(flatten)]
    pub page: OverLeadsPage,
    /// The county of `cycle` and `pay_url`.
    #[serde(skip)]
    pub county: String,
    /// The latest cycle of the county, `2026-mailed`; empty before the first. The county is the one that is given, or that of `township` or `class`, else Cook
    /// County. A row names the cycle of its own neighbourhood or township.
    pub cycle: String,
    /// Send it as `after` to get the next page; null on the last one and without a paid key.
    pub next: Option<String>,
    /// The parcels, the largest `r` first, ties by PIN.
    pub leads: Vec<LeadRow>,
    /// Where whole rows can be bought per call, with the same `township`, `class` and `minTier`.
    pub pay_url: String,
}

/// Over-assessed parcels, whole.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PaidParcelLeads")]
pub struct PaidLeads {
    /// What the page says about itself.
    #[serde(flatten)]
    pub page: OverLeadsPage,
    /// The county.
    pub county: String,
    /// The latest cycle of the county, `2026-mailed`; empty before the first.
    pub cycle: String,
    /// Send it as `after` to get the next page; null on the last one.
    pub next: Option<String>,
    /// The parcels, the largest `r` first, ties by PIN.
    #[schemars(with = "Vec<OverLead>")]
    pub leads: Vec<LeadRow>,
}

impl From<Leads> for PaidLeads {
    fn from(answer: Leads) -> Self {
        let Leads { page, county, cycle, next, leads, pay_url: _ } = answer;
        Self { page, county, cycle, next, leads }
    }
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = Leads;

    const FILTER: &'static [&'static str] = &["county", "township", "class", "minTier"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "leads",
            path: "/api/leads",
            summary: "Commercial and industrial parcels that are assessed higher than sold parcels of their class around them, the largest difference first.",
            description: "`r` is the ratio of the parcel, its implied market value divided by the price of its own arm's-length sale, divided by the median of \
                its peers: sold parcels of the class in the neighbourhood, or in the township where those are fewer than 30. Without a sale the value \
                per square foot is compared, where a floor area is published: of homes of Allegheny County. `high`: `r` from 1.25 on \
                and a dispersion (`cod`) of at most 15; `medium` from 1.10, `low` from 1.05. Medians change only when a cycle closes. Other classes \
                are listed with `class`. Without a key of tier pro: true counts, and at most 10 rows without PIN, address and evidence.",
            list: "leads",
            surface: Surface::Route,
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "minTier": "medium", "limit": 10 }),
            aliases: &[("min_tier", "minTier")],
            ..Definition::read()
        }
    }

    async fn preview(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Option<Value>, Problem> {
        check_after(reader, &filter, self.after.as_deref())?;
        let counts = Counts::read(reader.context(), &reader.at, &filter).await?;
        let found = redacted(reader, &filter, PREVIEW_ROWS).await?;
        let leads = found.items.iter().map(Redact::redacted).collect();
        reader.note(filter.contradiction());
        Ok(serde_json::to_value(Preview { total: counts.total(), counts, leads }).ok())
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Leads, Problem> {
        let is_redacted = reader.is_limited();
        check_after(reader, &filter, self.after.as_deref())?;
        reader.note_first_page(self.after.as_deref());
        let limit = reader.limit();
        let counts = Counts::read(reader.context(), &reader.at, &filter).await?;
        if counts.total() > 0 {
            reader.redaction();
        } else if is_redacted {
            reader.note_empty_for_all();
        }
        let found =
            if is_redacted { redacted(reader, &filter, limit).await? } else { page(reader, &filter, limit, self.after.as_deref()).await? };
        let county = filter.county().unwrap_or(texts::cook::COUNTY);
        reader.note(other_counties_note(&counts, county));
        let base_url = reader.context().settings.services.get("parcels").map_or("", |own| own.base_url.as_str());
        Ok(Leads {
            cycle: counts::cycle(&reader.at, county).await?.cycle,
            county: county.to_owned(),
            next: found.next.filter(|_| !is_redacted),
            pay_url: pay_url(base_url, county, &filter),
            page: OverLeadsPage {
                updated: reader.updated().await?,
                total: counts.total(),
                counts,
                count: found.items.len(),
                tier: reader.tier(),
                rule: rule(),
                disclaimer: DISCLAIMER,
            },
            leads: found.items.into_iter().map(|parcel| LeadRow::new(parcel, is_redacted)).collect(),
        })
    }
}

/// The tool sells whole rows, of one county.
impl Tool for Arguments {
    type ToolAnswer = PaidLeads;

    const TOOL_DIFFERENCES: &'static [Difference] = &[
        Difference::Required("county"),
        Difference::Described { argument: "after", description: "Where to continue: the `next` of an earlier answer to the same query." },
    ];
    const ABOUT_ARGUMENTS: &'static str = "Arguments of the tool `overassessment_leads`.";

    fn tool() -> Definition {
        Definition {
            name: "overassessment_leads",
            summary: "Commercial parcels of a county that are assessed higher than their sold peers, with the evidence, the largest difference first.",
            when: "Use it to find owners whose property tax is worth an appeal.",
            surface: Surface::Tool,
            example: json!({ "county": "cook-il", "minTier": "medium", "limit": 10 }),
            ..paid_definition()
        }
    }
}

/// What the tool and the route of payments have in common.
pub(super) fn paid_definition() -> Definition {
    Definition {
        description: "Each row names its ratio, the median, number and dispersion of its peers, the sale or floor area by which it is compared and the row at \
            the publisher. Without `class`: commercial and industrial parcels. Unpaid calls get the payment terms with a preview: the counts, and 3 rows \
            without PIN, address and evidence. Page with `after`. Public-record inference, not an appraisal.",
        list: "leads",
        price: Price::PerCall { micros: LEADS_MICROS, free_from: Tier::Pro },
        errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
        aliases: &[("min_tier", "minTier")],
        ..Definition::read()
    }
}

/// Where the rows that a filter takes can be bought. Its values are codes and words of closed lists, which a query has as they are.
fn pay_url(base_url: &str, county: &str, filter: &Filter) -> String {
    let fields = [("township", &filter.township), ("class", &filter.class), ("minTier", &filter.min_tier)];
    let fields: String = fields.iter().filter_map(|(name, value)| Some(format!("&{name}={}", value.as_deref()?))).collect();
    format!("{base_url}/x402/pay?county={county}{fields}")
}

/// Says that `cycle` and `payUrl` are those of one county, if parcels of another one match as well.
fn other_counties_note(counts: &Counts, county: &str) -> Option<String> {
    let others: Vec<&str> =
        counts.by_county.iter().filter(|(name, count)| name.as_str() != county && **count > 0).map(|(name, _)| name.as_str()).collect();
    let hint =
        || format!("`cycle` and `payUrl` are those of {county}; parcels of {} match as well, ask for that `county`", others.join(", "));
    (!others.is_empty()).then(hint)
}

/// The free preview of the paid answer.
#[derive(Serialize)]
struct Preview {
    counts: Counts,
    total: i64,
    leads: Vec<RedactedParcel>,
}

/// The first leads, in the order of their redacted form, so that neither the order nor a larger `limit` tells which is first.
async fn redacted(reader: &Reader<Parcels>, filter: &Filter, limit: usize) -> Result<Ranked<Parcel>, Problem> {
    let mut found = page(reader, filter, REDACTED_ROWS_MAX, None).await?;
    order_by_shown(&mut found.items);
    found.items.truncate(limit);
    Ok(found)
}

//! `GET /api/recalls`: recalls of all agencies, filtered.

use crate::operations::search::Search;
use bytes::Bytes;
use feed::Feeds;
use jiff::tz::TimeZone;
use operation::context::Part;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use schemas::views::recalls::{AGENCIES, RECORD_FIELDS, Recall};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::SOURCE;
use super::rows::{Filter, ListPage, ListPlace, listed};
use super::search::words::{Keyword, query_words};
use feed::cursor;
use feed::etag::{etag, matches_etag};
use feed::history::shallow_note;
use feed::position::{day_argument, day_text, lagging, position};
use operation::known_values::known_value;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Form, Method, Operation, Price, Surface};
use schemas::details::{RECALL_SITES, url_note};

const LIMIT_MAX: usize = 300;
/// The version of the answer's form. It changes whenever the same position is answered with other bytes.
const RENDERING: &str = "5";

/// The kind of product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Food.
    Food,
    /// Drugs and medical devices.
    Drugs,
    /// Vehicles, tyres and equipment, but not child seats.
    Vehicles,
    /// Consumer products.
    Products,
    /// Products for infants or children.
    Baby,
}

impl Category {
    fn as_str(self) -> &'static str {
        match self {
            Self::Food => "food",
            Self::Drugs => "drugs",
            Self::Vehicles => "vehicles",
            Self::Products => "products",
            Self::Baby => "baby",
        }
    }
}

/// Arguments of `search_recalls`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Only this category. Products for infants or children are in `baby`, not in another category.
    pub category: Option<Category>,
    /// Only recalls that this agency issued, alone or with others. A recall of several agencies then shows the title, URL and date of this
    /// agency's notice.
    #[schemars(extend("enum" = AGENCIES))]
    pub agency: Option<String>,
    /// The first recall date, YYYY-MM-DD, inclusive.
    pub from: Option<String>,
    /// The last recall date, YYYY-MM-DD, inclusive.
    pub to: Option<String>,
    /// Words that must all occur in title, brand or hazard, in any case, with or without accents, each as a word or the beginning of one; or
    /// the number of a recall: 26V360000, Z-0315-2026.
    #[schemars(length(min = 1, max = 200))]
    pub keyword: Option<String>,
    /// How many recalls to return at most.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 300))]
    pub limit: usize,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
    /// The `next` of an earlier answer, with the same other arguments, to get the recalls that follow. `limit` may differ.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

/// A recall.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Recall")]
pub struct ListedRecall {
    /// Issuing agency: CPSC, FDA, NHTSA, USDA. Of a recall of several agencies that of `id`, or the one that is asked for.
    pub agency: String,
    /// food, drugs, vehicles, products or baby.
    pub category: String,
    /// Title of the notice.
    pub title: String,
    /// Brand or firm.
    pub brand: String,
    /// Why it was recalled.
    pub hazard: String,
    /// Recall date, YYYY-MM-DD; empty if the agency gives no plausible date.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// URL of the agency's notice.
    pub url: String,
    /// What the consumer receives or should do.
    pub remedy: String,
    /// Id of the record, `AGENCY:number`: the smallest of its numbers if several agencies' notices are one record.
    pub id: String,
    /// All agencies that issued it, sorted.
    pub agencies: Vec<String>,
    /// A warning; only if `url` does not lead to a site of the agencies.
    #[serde(rename = "urlNote", skip_serializing_if = "Option::is_none")]
    pub url_note: Option<&'static str>,
}

impl From<Recall> for ListedRecall {
    fn from(recall: Recall) -> Self {
        let Recall { agency, category, title, brand, hazard, date, url, remedy, id, agencies, .. } = recall;
        let url_note = url_note(&url, &RECALL_SITES);
        Self { agency, category, title, brand, hazard, date, url, remedy, id, agencies, url_note }
    }
}

/// The feed response.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Feed {
    /// Date of the last refresh, YYYY-MM-DD; empty before the first.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub updated: String,
    /// The number of recalls in this answer.
    pub count: usize,
    /// The caller's tier: `free` without a key, too, because the same limits apply.
    pub tier: &'static str,
    /// The names of the fields of the public contract, in order. A recall has further fields after them.
    pub schema: [&'static str; 8],
    /// The recalls, newest first, ties by identity.
    pub recalls: Vec<ListedRecall>,
    /// Send it as `after` to get the recalls that follow; only if some do. All pages show the state of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Why the answer has no recalls; only if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "search_recalls",
        method: Method::Get,
        path: "/api/recalls",
        summary: "Product recalls of CPSC, FDA, NHTSA and USDA, newest first, filtered by category, agency, date and words.",
        when: "Use it for any question about recalls of a product, brand or agency.",
        description: "One record for each real-world recall, sorted by recall date, newest first, ties by identity. All filters must fit. \
            `keyword`: every word of it must occur in title, brand or hazard, ignoring case and accents, as a word or the beginning of one; there is \
            no stemming. At most 300 recalls an answer: page with `after`. Withdrawn recalls are left out. A recall that several agencies \
            announced is one record; with `agency` it shows the title, URL and date of that agency's own notice, and `from` and `to` apply to that date.",
        price: Price::Free,
        surface: Surface::Both,
        counted: true,
        list: "recalls",
        errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid, ErrorCode::Unavailable],
        example: json!({ "category": "food", "agency": "FDA", "limit": 10 }),
        aliases: &[("q", "keyword")],
    };
    Operation::define::<Arguments, Feed, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let filter = filter(&arguments)?;
    let limit = arguments.limit;
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Problem::parameter("limit", format!("{limit} is not between 1 and {LIMIT_MAX}")));
    }
    let keyword = arguments.keyword.as_deref().map(query_words).transpose()?;
    let mut at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let words = keyword.as_ref().map_or_else(String::new, Keyword::text);
    let search = to_json(&(filter.category, filter.agency, &filter.from, &filter.to, &words, &arguments.as_of))?;
    let search = format!("list\n{}", String::from_utf8_lossy(&search));
    let after =
        arguments.after.as_deref().map(|text| cursor::read_place::<ListPlace>(&ctx.secrets, SOURCE.service, &search, text)).transpose()?;
    if let Some((seq, _)) = &after {
        // The pages after the first show the same state.
        if *seq > at.last {
            return Err(lagging());
        }
        at.seq = *seq;
    }
    let after = after.map(|(_, place)| place);
    let tier = call.caller.tier.max(Tier::Free).as_str();
    let etag = etag(
        &*at.view,
        &[
            RENDERING,
            "search_recalls",
            &at.seq.0.to_string(),
            filter.category.unwrap_or_default(),
            filter.agency.unwrap_or_default(),
            filter.from.as_deref().unwrap_or_default(),
            filter.to.as_deref().unwrap_or_default(),
            &words,
            arguments.after.as_deref().unwrap_or_default(),
            &limit.to_string(),
            tier,
            call.form.as_str(),
        ],
    );
    if matches_etag(call.if_none_match.as_deref(), &etag) {
        return Ok(Answer { body: Body::NotModified, etag, next_cursor: String::new(), has_more: false, status: 200 });
    }
    let ListPage { recalls, next } = match keyword {
        Some(keyword) => Search::of(ctx).find(ctx, &at, keyword, &filter, after.as_ref(), limit).await?,
        None => {
            // The lists also hold recalls that are announced for a later date.
            let month_max = i64::from(ctx.clock.now().to_zoned(TimeZone::UTC).year() + 2) * 12 - 1;
            listed(at.view.as_ref(), &filter, at.seq, after.as_ref(), limit, month_max).await?
        }
    };
    let recalls: Vec<ListedRecall> = recalls.into_iter().map(ListedRecall::from).collect();
    let next = next.map(|place| cursor::encode_place(&ctx.secrets, SOURCE.service, at.seq, &search, &place));
    let next_cursor = next.clone().unwrap_or_default();
    let note = recalls.is_empty().then(|| empty_note(at.seq, &arguments, &filter)).flatten();
    let body = if call.form == Form::Lines {
        Body::Lines { items: recalls.iter().map(to_json).collect::<Result<_, _>>()?, older: None, note }
    } else {
        let standing = Feeds::of(ctx).completeness(&SOURCE, at.view.as_ref(), at.seq, at.last).await?;
        let updated = if standing.finished_at_ms == 0 { String::new() } else { day_text(standing.finished_at_ms) };
        Body::Parts(vec![to_json(&Feed { updated, count: recalls.len(), tier, schema: RECORD_FIELDS, recalls, next, note })?])
    };
    Ok(Answer { body, etag, next_cursor, has_more: false, status: 200 })
}

/// Why an answer has no recalls; `None` for a page after the last one and an answer without a filter.
fn empty_note(seq: Seq, arguments: &Arguments, filter: &Filter) -> Option<String> {
    if seq == Seq(0) {
        return shallow_note(None, 0).map(str::to_owned);
    }
    if arguments.after.is_some() {
        return None;
    }
    let given = [
        ("category", filter.category),
        ("agency", filter.agency),
        ("from", filter.from.as_deref()),
        ("to", filter.to.as_deref()),
        ("keyword", arguments.keyword.as_deref()),
    ];
    let given: Vec<(&str, &str)> = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    match given.as_slice() {
        [] => None,
        [(name @ ("category" | "agency" | "keyword"), value)] => Some(format!("nothing recorded has the {name} {value:?}")),
        all => {
            let all: Vec<String> = all.iter().map(|(name, value)| format!("{name} {value:?}")).collect();
            Some(format!("nothing recorded fits {}", all.join(", ")))
        }
    }
}

/// The filter of the arguments.
fn filter(arguments: &Arguments) -> Result<Filter, Problem> {
    let date = |name: &'static str, text: &Option<String>| {
        text.as_deref().map(|text| day_argument(name, text).map(|day| day.to_string())).transpose()
    };
    let (from, to) = (date("from", &arguments.from)?, date("to", &arguments.to)?);
    if let (Some(from), Some(to)) = (&from, &to)
        && from > to
    {
        return Err(Problem::parameter("from", format!("{from} is after {to}, which is given as to")));
    }
    let agency = arguments.agency.as_deref().map(|given| known_value("agency", given, &AGENCIES)).transpose()?;
    Ok(Filter { category: arguments.category.map(Category::as_str), agency, from, to })
}

fn to_json<T: Serialize>(value: &T) -> Result<Bytes, Problem> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written as JSON");
        Problem::new(ErrorCode::Internal, "the answer could not be written")
    })
}

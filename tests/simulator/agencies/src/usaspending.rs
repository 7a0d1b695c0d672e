//! USAspending: searches for awards and for actions, both with POST and both with counts; one award, its actions, and the date of the last
//! load. Contracts and vehicles only.
//!
//! Actions are added each business day: some are new awards, most are modifications of older ones. Actions of the Department of Defense are
//! published ninety days late. A few actions are corrected under the same number. As in the real service, transactions of equal rank have
//! no order, so two pages may show one of them twice and another one never. The sums by recipient are of the companies with annual reports only. Not
//! simulated: other categories, recipients, downloads.

mod award;
mod detail;
mod filters;
mod words;

use std::cmp::Ordering;
use std::rc::Rc;

use jiff::civil::Date;
use serde_json::{Map, Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::{Fault, Plan};
use simulated_world::json::order;
use simulated_world::query::decoded;
use simulated_world::random::{Random, mix};
use simulated_world::world::World;

use self::detail::{dollars, slug};
use crate::annual;
use award::{Action, Award};

/// Rows per page, and how many rows can be paged through.
const LIMIT_MAX: u64 = 100;
const WINDOW_MAX: u64 = 50_000;
/// Actions of one award per page.
const ACTIONS_LIMIT_MAX: u64 = 5_000;
const EARLIEST: &str = "For searches, time period start and end dates are currently limited to an earliest date of 2007-10-01.  For data going \
    back to 2000-10-01, use either the Custom Award Download feature on the website or one of our download or bulk_download API endpoints as \
    listed on https://api.usaspending.gov/docs/endpoints. ";
const API: &str = "/api/v2/";

/// The endpoint of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A search for awards.
    Awards,
    /// The number of awards of a search.
    AwardCount,
    /// A search for actions.
    Transactions,
    /// The number of actions of a search.
    TransactionCount,
    /// Sums by recipient.
    Recipients,
    /// The award that the path names.
    Award,
    /// The actions of an award.
    Actions,
    /// The day of the last update.
    LastUpdated,
}

impl Route {
    /// The endpoint of a path; `None` for a path of another upstream.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        Some(match path.strip_prefix(API)? {
            "search/spending_by_award/" => Self::Awards,
            "search/spending_by_award_count/" => Self::AwardCount,
            "search/spending_by_transaction/" => Self::Transactions,
            "search/spending_by_transaction_count/" => Self::TransactionCount,
            "search/spending_by_category/recipient/" => Self::Recipients,
            "transactions/" => Self::Actions,
            "awards/last_updated/" => Self::LastUpdated,
            other => return id_of(other).map(|_| Self::Award),
        })
    }

    /// The name of the stream that reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Transactions | Self::TransactionCount => "usaspending.transactions",
            Self::Award | Self::Actions => "usaspending.details",
            Self::Recipients => "usaspending.totals",
            _ => "usaspending.awards",
        }
    }

    /// The field that the schema faults change by default.
    #[must_use]
    pub fn date_field(self) -> &'static str {
        match self {
            Self::Transactions | Self::TransactionCount => "Action Date",
            Self::Award | Self::Actions => "action_date",
            Self::Recipients => "amount",
            _ => "Last Modified Date",
        }
    }

    /// Whether it is requested with POST.
    #[must_use]
    pub fn takes_body(self) -> bool {
        !matches!(self, Self::Award | Self::LastUpdated)
    }
}

fn id_of(rest: &str) -> Option<&str> {
    rest.strip_prefix("awards/")?.strip_suffix('/').filter(|id| !id.is_empty() && !id.contains('/'))
}

/// Answers a request.
#[must_use]
pub fn answer(world: &World, route: Route, path: &str, body: &[u8], plan: &Plan) -> Answer {
    let answered = match route {
        Route::LastUpdated => Ok(json!({"last_updated": world.today.strftime("%m/%d/%Y").to_string()})),
        Route::Award => one(world, path),
        _ => match serde_json::from_slice::<Value>(body) {
            Ok(request @ Value::Object(_)) => posted(world, route, &request, plan),
            _ => Err((400, json!({"detail": "JSON parse error - the body is not a JSON object"}))),
        },
    };
    match answered {
        Ok(mut body) => {
            match body.get_mut("results") {
                Some(results) => plan.schema.apply(results),
                None => plan.schema.apply(&mut body),
            }
            Answer::json(body.to_string().into_bytes())
        }
        Err((status, body)) => Answer { status, ..Answer::json(body.to_string().into_bytes()) },
    }
}

/// An answer, or an error status with its message.
type Outcome = Result<Value, (u16, Value)>;

fn wrong(words: &str) -> (u16, Value) {
    (422, json!({ "detail": words }))
}

fn one(world: &World, path: &str) -> Outcome {
    let id = path.strip_prefix(API).and_then(id_of).map(decoded).unwrap_or_default();
    match award::all(world).find(|award| is_called(award, &id)) {
        Some(award) => Ok(detail::award(&award)),
        None => Err((404, json!({"detail": format!("No Award found with: '{id}'")}))),
    }
}

fn is_called(award: &Award, id: &str) -> bool {
    award.id() == id || award.internal_id().to_string() == id
}

fn posted(world: &World, route: Route, request: &Value, plan: &Plan) -> Outcome {
    match route {
        Route::Actions => return actions(world, request),
        Route::Recipients => return recipients(world, request),
        _ => {}
    }
    let Some(filters) = request.get("filters").filter(|filters| filters.is_object()) else {
        return Err(wrong("Missing value: 'filters' is a required field"));
    };
    let mut messages = vec![EARLIEST.to_owned()];
    let unknown = filters::unknown(filters);
    if !unknown.is_empty() {
        let names = unknown.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        messages.push(format!(
            "The following filters from the request were not used: {{{names}}}. See https://api.usaspending.gov/docs/endpoints for a list of \
             appropriate filters"
        ));
    }
    let is_awards = matches!(route, Route::Awards | Route::AwardCount);
    let rows = if plan.has(Fault::Outage) { Vec::new() } else { rows(world, filters, is_awards) };
    if matches!(route, Route::AwardCount | Route::TransactionCount) {
        let vehicles = rows.iter().filter(|row| row.award.is_vehicle()).count();
        let results = json!({
            "contracts": rows.len() - vehicles, "idvs": vehicles, "grants": 0, "loans": 0, "direct_payments": 0, "other": 0,
        });
        return Ok(json!({"results": results, "messages": messages}));
    }
    filters::check_types(filters).map_err(|words| (422, words))?;
    let page = Page::of(request, route)?;
    Ok(page.answer(world, rows, is_awards, plan, &messages))
}

/// A search result: an award, and the action if actions are searched.
struct Row {
    award: Rc<Award>,
    action: Option<Action>,
}

fn rows(world: &World, request: &Value, is_awards: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for award in award::all(world) {
        if is_awards {
            if filters::fits_award(&award, request) {
                rows.push(Row { award: Rc::new(award), action: None });
            }
            continue;
        }
        let actions: Vec<Action> = award.actions.iter().filter(|action| filters::fits_action(&award, action, request)).cloned().collect();
        if !actions.is_empty() {
            let award = Rc::new(award);
            rows.extend(actions.into_iter().map(|action| Row { award: Rc::clone(&award), action: Some(action) }));
        }
    }
    rows
}

impl Row {
    /// Returns a field by its name in the search; null for an unknown one.
    fn field(&self, name: &str) -> Value {
        let award = &self.award;
        let [naics, naics_words, psc, psc_words, description] = award.work;
        if let Some(action) = &self.action {
            match name {
                "Action Date" => return json!(action.day.to_string()),
                "Action Type" => return json!(action.letter),
                "Mod" => return json!(action.number),
                "Transaction Amount" => return json!(dollars(action.cents)),
                "Transaction Description" => return json!(description),
                "Award Type" => return json!(award.words),
                "naics_code" => return json!(naics),
                "naics_description" => return json!(naics_words),
                // These fields can be filtered by, but actions do not have them.
                "Last Modified Date" | "Award Amount" | "Start Date" | "End Date" => return Value::Null,
                _ => {}
            }
        }
        let day = |day: Date| json!(day.to_string());
        match name {
            "Award ID" => json!(award.piid),
            "Recipient Name" => json!(award.recipient.name),
            "Recipient UEI" => json!(award.recipient.uei),
            "recipient_id" => json!(detail::hash(award.recipient.uei, 'C')),
            "Awarding Agency" | "Funding Agency" => json!(award.agency.top.0),
            "Awarding Agency Code" => json!(award.agency.top.1),
            "Awarding Sub Agency" | "Funding Sub Agency" => json!(award.agency.sub.0),
            "Description" => json!(description),
            "Last Modified Date" => day(award.latest().modified),
            "Base Obligation Date" => day(award.signed()),
            "Start Date" => day(award.start),
            "End Date" if !award.is_vehicle() => day(award.end),
            "Last Date to Order" if award.is_vehicle() => day(award.end),
            "Award Amount" => json!(dollars(award.cents())),
            "Contract Award Type" => json!(award.words),
            "NAICS" => json!({"code": naics, "description": naics_words}),
            "PSC" => json!({"code": psc, "description": psc_words}),
            "Recipient Location" | "Primary Place of Performance" => detail::place(award),
            _ => Value::Null,
        }
    }

    fn to_json(&self, fields: &[&str]) -> Value {
        let mut out: Map<String, Value> = fields.iter().map(|name| ((*name).to_owned(), self.field(name))).collect();
        out.insert("internal_id".to_owned(), json!(self.award.internal_id()));
        out.insert("generated_internal_id".to_owned(), json!(self.award.id()));
        if self.action.is_none() {
            out.insert("awarding_agency_id".to_owned(), json!(800));
            out.insert("agency_slug".to_owned(), json!(slug(self.award.agency.top.0)));
        }
        Value::Object(out)
    }

    /// Returns a number that is unique among all rows.
    fn number(&self) -> u64 {
        let action = self.action.as_ref().and_then(|action| action.number.trim_start_matches('P').parse().ok()).unwrap_or(0);
        mix(self.award.internal_id()) ^ action
    }
}

/// The requested page, fields and order.
struct Page<'a> {
    fields: Vec<&'a str>,
    sort: &'a str,
    is_descending: bool,
    limit: u64,
    number: u64,
    /// The id and the sort value after which the page begins, with key-based paging.
    after: Option<(u64, &'a str)>,
}

impl<'a> Page<'a> {
    fn of(request: &'a Value, route: Route) -> Result<Self, (u16, Value)> {
        let fields: Vec<&str> = request["fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if fields.is_empty() {
            return Err(wrong("Missing value: 'fields' is a required field"));
        }
        let sort = match request["sort"].as_str() {
            Some(sort) => sort,
            None if route == Route::Awards => fields[0],
            None => return Err(wrong("Missing value: 'sort' is a required field")),
        };
        if !fields.contains(&sort) {
            return Err((400, json!({"detail": format!("Sort value not found in requested fields: '{sort}'")})));
        }
        let (limit, number) = sized(request, LIMIT_MAX)?;
        let (id, value) = (request["last_record_unique_id"].as_u64(), request["last_record_sort_value"].as_str());
        if id.is_some() != value.is_some() {
            return Err(wrong("last_record_unique_id and last_record_sort_value are both needed, or neither"));
        }
        // Transactions cannot be paged beyond the window.
        let after = id.zip(value).filter(|_| route == Route::Awards);
        if after.is_none() && limit * number > WINDOW_MAX {
            return Err(wrong(&format!("Page #{number} with limit {limit} is over the maximum result limit {WINDOW_MAX}.")));
        }
        Ok(Self { fields, sort, is_descending: request["order"] != "asc", limit, number, after })
    }

    fn answer(&self, world: &World, rows: Vec<Row>, is_awards: bool, plan: &Plan, messages: &[String]) -> Value {
        let rows = self.sorted(rows, is_awards);
        let start = match self.after {
            Some((id, value)) => self.start_after(&rows, id, value),
            None => plan.start((self.number - 1) * self.limit, self.limit),
        };
        let end = self.after.map_or(self.number * self.limit, |_| start + self.limit);
        let has_next = end < rows.len() as u64;
        let page: Vec<&Row> = rows.iter().skip(start as usize).take(self.limit as usize).collect();
        let shown = page.iter().filter(|row| !plan.vanishes(Random::new(world.seed, 103, row.number())));
        let results: Vec<Value> = shown.map(|row| row.to_json(&self.fields)).collect();
        let metadata = if is_awards {
            let last = page.last();
            json!({
                "page": self.number, "hasNext": has_next, "last_record_unique_id": last.map(|row| row.award.internal_id()),
                "last_record_sort_value": last.map(|row| sort_value(&row.field(self.sort))),
            })
        } else {
            json!({
                "page": self.number, "next": has_next.then_some(self.number + 1), "previous": (self.number > 1).then(|| self.number - 1),
                "hasNext": has_next, "hasPrevious": self.number > 1,
            })
        };
        json!({"limit": self.limit, "results": results, "page_metadata": metadata, "messages": messages})
    }

    /// Returns how many rows come before a page with key-based paging. No row needs to have the id: then the sort value alone decides.
    fn start_after(&self, rows: &[Row], id: u64, value: &str) -> u64 {
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        let is_before = |row: &&Row| {
            let (own, given) = (number(&sort_value(&row.field(self.sort))), number(value));
            if self.is_descending { own > given } else { own < given }
        };
        let at = rows.iter().position(|row| row.award.internal_id() == id).map(|at| at + 1);
        at.unwrap_or_else(|| rows.iter().take_while(is_before).count()) as u64
    }

    fn sorted(&self, mut rows: Vec<Row>, is_awards: bool) -> Vec<Row> {
        rows.sort_by_cached_key(|row| mix(row.number() ^ self.number));
        let mut keyed: Vec<(Value, Row)> = rows.into_iter().map(|row| (row.field(self.sort), row)).collect();
        keyed.sort_by(|(one_key, one), (other_key, other)| {
            let ordered = match order(one_key, other_key) {
                Ordering::Equal if is_awards => one.award.internal_id().cmp(&other.award.internal_id()),
                ordered => ordered,
            };
            if self.is_descending { ordered.reverse() } else { ordered }
        });
        keyed.into_iter().map(|(_, row)| row).collect()
    }
}

/// Reads limit and number of a page.
fn sized(request: &Value, limit_max: u64) -> Result<(u64, u64), (u16, Value)> {
    let whole = |name: &str, default: u64| request.get(name).map_or(Some(default), Value::as_u64).filter(|number| *number > 0);
    let (Some(limit), Some(number)) = (whole("limit", 10), whole("page", 1)) else {
        return Err(wrong("Field 'limit' and field 'page' are whole numbers above min '1'"));
    };
    if limit > limit_max {
        return Err(wrong(&format!("Field 'limit' value '{limit}' is above max '{limit_max}'")));
    }
    Ok((limit, number.min(WINDOW_MAX)))
}

/// Returns the sort value of the last row for key-based paging: dates in milliseconds, numbers with a decimal point.
fn sort_value(field: &Value) -> String {
    let day = field.as_str().and_then(|text| text.parse::<Date>().ok());
    let at = day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok());
    match (at, field.as_f64()) {
        (Some(at), _) => at.timestamp().as_millisecond().to_string(),
        (None, Some(number)) => format!("{number:?}"),
        (None, None) => field.as_str().unwrap_or_default().to_owned(),
    }
}

/// Handles the list of actions of one award.
fn actions(world: &World, request: &Value) -> Outcome {
    let Some(id) = request.get("award_id").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned)) else {
        return Err(wrong("Missing value: 'award_id' is a required field"));
    };
    let (limit, number) = sized(request, ACTIONS_LIMIT_MAX)?;
    let found = award::all(world).find(|award| is_called(award, &id));
    let mut all: Vec<Value> = found.iter().flat_map(|award| award.actions.iter().map(|action| detail::action(award, action))).collect();
    let sort = request["sort"].as_str().unwrap_or("action_date");
    all.sort_by(|one, other| order(&one[sort], &other[sort]));
    if request["order"] != "asc" {
        all.reverse();
    }
    let has_next = (all.len() as u64) > limit * number;
    let results: Vec<Value> = all.into_iter().skip(((number - 1) * limit) as usize).take(limit as usize).collect();
    Ok(json!({
        "page_metadata": {
            "page": number, "next": has_next.then_some(number + 1), "previous": (number > 1).then(|| number - 1), "hasNext": has_next,
            "hasPrevious": number > 1,
        },
        "results": results,
    }))
}

/// Handles the sums by recipient.
fn recipients(world: &World, request: &Value) -> Outcome {
    let filters = &request["filters"];
    filters::check_types(filters).map_err(|words| (422, words))?;
    let (limit, number) = sized(request, LIMIT_MAX)?;
    let all = annual::recipients(world, filters);
    let has_next = (all.len() as u64) > limit * number;
    let results: Vec<Value> = all.into_iter().skip(((number - 1) * limit) as usize).take(limit as usize).collect();
    Ok(json!({
        "category": "recipient", "spending_level": request["spending_level"], "limit": limit,
        "page_metadata": {
            "page": number, "next": has_next.then_some(number + 1), "previous": (number > 1).then(|| number - 1), "hasNext": has_next,
            "hasPrevious": number > 1,
        },
        "results": results, "messages": [EARLIEST],
    }))
}

//! NIH RePORTER: one search endpoint with POST. A record is an award of one fiscal year. Unknown criteria are silently ignored.
//!
//! Records are added each business day. They have no modification date, though some amounts are amended in place. Unless the records are
//! sorted by id, those with equal rank change their order with each answer.

mod cast;
mod project;

use std::cmp::Ordering;

use self::project::DAILY;
use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::{Fault, Plan};
use simulated_world::json::order;
use simulated_world::random::{Random, mix};
use simulated_world::world::World;

const LIMIT_MAX: u64 = 500;
const LIMIT_DEFAULT: u64 = 50;
const OFFSET_MAX: u64 = 14_999;
/// The duration of two weekly refreshes.
const NEWLY_ADDED_DAYS: i64 = 14;

/// The path of the search.
pub const PATH: &str = "/v2/projects/search";

/// Handles a search. `build` is the number of the answer.
#[must_use]
pub fn answer(world: &World, body: &[u8], plan: &Plan, build: u64) -> Answer {
    let Ok(request @ Value::Object(_)) = serde_json::from_slice::<Value>(body) else { return refusal("the body is not a JSON object") };
    let whole = |name: &str, default: u64| request.get(name).map_or(Some(default), Value::as_u64);
    let (Some(limit), Some(offset)) = (whole("limit", LIMIT_DEFAULT), whole("offset", 0)) else {
        return refusal("limit and offset must be whole numbers");
    };
    if limit > LIMIT_MAX || offset > OFFSET_MAX {
        return refusal(&format!("limit must not exceed {LIMIT_MAX}, offset must not exceed {OFFSET_MAX}"));
    }
    let criteria = request.get("criteria").unwrap_or(&Value::Null);
    let (sort_field, sort_order) = (text(&request, "/sort_field"), text(&request, "/sort_order"));
    let mut all: Vec<Value> = if plan.has(Fault::Outage) { Vec::new() } else { found(world, criteria) };
    sort(&mut all, sort_field, sort_order.eq_ignore_ascii_case("desc"), build);
    let total = all.len();
    let start = usize::try_from(plan.start(offset, limit)).unwrap_or(usize::MAX);
    let page = all.into_iter().skip(start).take(usize::try_from(limit).unwrap_or(0));
    let results: Vec<Value> = page
        .filter(|record| !plan.vanishes(Random::new(world.seed, DAILY.kind, number(record))))
        .map(|record| {
            let mut record = chosen(record, &request);
            plan.schema.apply(&mut record);
            record
        })
        .collect();
    let search = format!("{:016x}", mix(world.seed ^ build));
    let body = json!({
        "meta": {
            "search_id": search, "total": total, "offset": offset, "limit": limit, "sort_field": sort_field, "sort_order": sort_order,
            "sorted_by_relevance": false, "properties": {"URL": format!("https:/reporter.nih.gov/search/{search}/projects")},
        },
        "results": results,
    });
    Answer::json(body.to_string().into_bytes())
}

fn refusal(message: &str) -> Answer {
    Answer { status: 400, ..Answer::json(json!({ "message": message }).to_string().into_bytes()) }
}

/// Returns the records that match the criteria, oldest first.
fn found(world: &World, criteria: &Value) -> Vec<Value> {
    let day = |pointer: &str| text(criteria, pointer).get(..10).and_then(|day| day.parse().ok());
    let (from, to): (Option<Date>, Option<Date>) = (day("/date_added/from_date"), day("/date_added/to_date"));
    let newly = flag(criteria, "newly_added_projects_only").then(|| world.today.saturating_sub(NEWLY_ADDED_DAYS.days()));
    let from = from.max(newly).unwrap_or(Date::MIN);
    let places = DAILY.places(world, from.max(Date::constant(2000, 1, 1)), to.unwrap_or(Date::MAX));
    let records = places.map(|place| project::record(world, place)).chain(cast::records(world));
    records.filter(|record| fits(record, criteria)).collect()
}

fn number(record: &Value) -> u64 {
    record.get("appl_id").and_then(Value::as_u64).unwrap_or(0)
}

fn sort(records: &mut [Value], field: &str, is_descending: bool, build: u64) {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let names = records.first().and_then(Value::as_object).map(|record| record.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    // Accepts both `award_amount` and `AwardAmount`.
    let Some(name) = names.into_iter().find(|name| plain(name) == plain(field)) else {
        records.sort_by_key(|record| mix(number(record) ^ build));
        return;
    };
    records.sort_by(|one, other| {
        let by_field = order(&one[&name], &other[&name]);
        let by_field = if is_descending { by_field.reverse() } else { by_field };
        match by_field {
            Ordering::Equal => mix(number(one) ^ build).cmp(&mix(number(other) ^ build)),
            decided => decided,
        }
    });
}

/// Returns the requested fields, unknown ones as null; all fields if none are requested.
fn chosen(record: Value, request: &Value) -> Value {
    let Some(names) = request.get("include_fields").and_then(Value::as_array).filter(|names| !names.is_empty()) else { return record };
    let names = names.iter().filter_map(Value::as_str).map(snake);
    let fields = names.map(|name| {
        let value = record[&name].clone();
        (name, value)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Converts `AgencyIcAdmin` to `agency_ic_admin`.
fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for (at, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn flag(criteria: &Value, name: &str) -> bool {
    criteria.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Returns the list of a criterion; `None` if it is empty.
fn list<'a>(criteria: &'a Value, name: &str) -> Option<&'a Vec<Value>> {
    criteria.get(name).and_then(Value::as_array).filter(|list| !list.is_empty())
}

/// Whether a record matches all criteria.
fn fits(record: &Value, criteria: &Value) -> bool {
    let is_part = !record["subproject_id"].is_null();
    if is_part && flag(criteria, "exclude_subprojects") || !is_part && flag(criteria, "sub_project_only") {
        return false;
    }
    if flag(criteria, "include_active_projects") && record["is_active"] == false {
        return false;
    }
    let numbers = [("appl_ids", "/appl_id"), ("fiscal_years", "/fiscal_year")];
    let texts = [
        ("agencies", "/agency_ic_admin/abbreviation"),
        ("org_states", "/organization/org_state"),
        ("org_cities", "/organization/org_city"),
        ("org_countries", "/organization/org_country"),
        ("org_names_exact_match", "/organization/org_name"),
        ("dept_types", "/organization/dept_type"),
        ("organization_type", "/organization_type/name"),
        ("activity_codes", "/activity_code"),
        ("award_types", "/award_type"),
        ("opportunity_numbers", "/opportunity_number"),
    ];
    let dates = ["award_notice_date", "project_start_date", "project_end_date", "date_added"];
    numbers
        .iter()
        .all(|(name, pointer)| list(criteria, name).is_none_or(|list| record.pointer(pointer).is_some_and(|own| list.contains(own))))
        && texts.iter().all(|(name, pointer)| {
            let own = text(record, pointer);
            any(criteria, name, |wanted| !own.is_empty() && wanted.eq_ignore_ascii_case(own))
        })
        && any(criteria, "org_names", |wanted| holds(text(record, "/organization/org_name"), wanted))
        && any(criteria, "project_nums", |wanted| matches(text(record, "/project_num"), wanted))
        && dates.iter().all(|name| is_within(text(record, &format!("/{name}")), criteria.get(*name)))
        && is_of_amount(record, criteria.get("award_amount_range"))
        && is_of_people(record, criteria)
        && has_words(record, criteria.get("advanced_text_search"))
}

/// Whether one of the texts of a criterion matches, if it has any.
fn any(criteria: &Value, name: &str, is_one: impl Fn(&str) -> bool) -> bool {
    list(criteria, name).is_none_or(|list| list.iter().filter_map(Value::as_str).any(is_one))
}

fn holds(text: &str, wanted: &str) -> bool {
    text.to_ascii_lowercase().contains(&wanted.to_ascii_lowercase())
}

/// Matches a project number; a star stands for any part.
fn matches(own: &str, wanted: &str) -> bool {
    let parts: Vec<&str> = wanted.split('*').collect();
    let [first, .., last] = parts.as_slice() else { return own.eq_ignore_ascii_case(wanted) };
    own.starts_with(first) && own.ends_with(last) && parts.iter().all(|part| own.contains(part))
}

fn is_within(own: &str, range: Option<&Value>) -> bool {
    let Some(range) = range.filter(|range| range.is_object()) else { return true };
    let (own, from, to) = (own.get(..10), text(range, "/from_date"), text(range, "/to_date"));
    own.is_some_and(|own| own >= from && (to.is_empty() || own <= to))
}

fn is_of_amount(record: &Value, range: Option<&Value>) -> bool {
    let Some(range) = range.filter(|range| range.is_object()) else { return true };
    let bound = |name: &str| range.get(name).and_then(Value::as_f64);
    let own = record["award_amount"].as_f64();
    own.is_some_and(|own| bound("min_amount").is_none_or(|least| own >= least) && bound("max_amount").is_none_or(|most| own <= most))
}

fn is_of_people(record: &Value, criteria: &Value) -> bool {
    let people = record["principal_investigators"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_named = |person: &Value, wanted: &Value| {
        let holds_if = |pointer: &str, wanted: &str| wanted.is_empty() || holds(text(person, pointer), wanted);
        holds_if("/full_name", text(wanted, "/any_name").trim())
            && holds_if("/first_name", text(wanted, "/first_name"))
            && holds_if("/last_name", text(wanted, "/last_name"))
    };
    list(criteria, "pi_names").is_none_or(|names| names.iter().any(|wanted| people.iter().any(|person| is_named(person, wanted))))
        && list(criteria, "pi_profile_ids").is_none_or(|ids| people.iter().any(|person| ids.contains(&person["profile_id"])))
}

/// Matches words in title, abstract and terms: all of them with `and`, one of them with `or`. An advanced search is treated as `and` of its
/// words.
fn has_words(record: &Value, search: Option<&Value>) -> bool {
    let Some(search) = search.filter(|search| !text(search, "/search_text").is_empty()) else { return true };
    let fields = text(search, "/search_field");
    let fields = if fields.is_empty() || fields == "all" { "projecttitle,abstracttext,terms" } else { fields };
    let own: String = [("projecttitle", "/project_title"), ("abstracttext", "/abstract_text"), ("terms", "/pref_terms")]
        .into_iter()
        .filter(|(name, _)| fields.contains(name))
        .map(|(_, pointer)| text(record, pointer).to_ascii_lowercase() + "\n")
        .collect();
    let request = text(search, "/search_text").to_ascii_lowercase().replace(['"', '(', ')'], " ");
    let mut words = request.split_whitespace().filter(|word| !matches!(*word, "and" | "or"));
    if text(search, "/operator") == "or" { words.any(|word| own.contains(word)) } else { words.all(|word| own.contains(word)) }
}

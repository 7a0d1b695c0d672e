//! The filters of the searches.

use jiff::civil::Date;
use serde_json::{Value, json};

use super::award::{Action, Award};

/// The earliest date that can be searched.
pub(super) const FIRST_DAY: Date = Date::constant(2007, 10, 1);
const KNOWN: &[&str] = &[
    "award_type_codes",
    "time_period",
    "naics_codes",
    "psc_codes",
    "agencies",
    "recipient_search_text",
    "award_ids",
    "award_amounts",
    "keywords",
    "place_of_performance_locations",
    "recipient_locations",
    "set_aside_type_codes",
    "extent_competed_type_codes",
    "award_unique_id",
];
const GROUPS: &[(&str, &[&str])] = &[
    ("contracts", &["A", "B", "C", "D"]),
    ("idvs", &["IDV_A", "IDV_B", "IDV_B_A", "IDV_B_B", "IDV_B_C", "IDV_C", "IDV_D", "IDV_E"]),
    ("grants", &["02", "03", "04", "05"]),
    ("loans", &["07", "08"]),
    ("other_financial_assistance", &["09", "11"]),
    ("direct_payments", &["06", "10"]),
];

/// Returns the names of unknown filters.
pub(super) fn unknown(filters: &Value) -> Vec<&str> {
    let names = filters.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    names.filter(|name| !KNOWN.contains(name)).collect()
}

/// Checks the requested types, which must be of one group.
pub(super) fn check_types(filters: &Value) -> Result<(), Value> {
    let codes: Vec<&str> = texts(filters, "award_type_codes").collect();
    if codes.is_empty() {
        return Err(json!({"detail": "Missing value: 'filters|award_type_codes' is a required field"}));
    }
    let is_group = |(_, group): &(&str, &[&str])| codes.iter().all(|code| group.contains(code));
    if GROUPS.iter().any(is_group) {
        return Ok(());
    }
    let words = "'award_type_codes' must only contain types from one group.";
    let groups: serde_json::Map<_, _> = GROUPS.iter().map(|(name, codes)| ((*name).to_owned(), json!(codes))).collect();
    Err(json!({"detail": words, "message": words, "award_type_groups": groups}))
}

/// Returns the texts of a filter.
fn texts<'a>(filters: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    filters.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a list filter matches or is absent.
fn any(filters: &Value, name: &str, mut fits: impl FnMut(&Value) -> bool) -> bool {
    filters.get(name).and_then(Value::as_array).is_none_or(|list| list.is_empty() || list.iter().any(&mut fits))
}

/// Whether an award matches a search for awards.
pub(super) fn fits_award(award: &Award, filters: &Value) -> bool {
    any(filters, "time_period", |period| Period::of(period).is_some_and(|period| period.has_award(award)))
        && any(filters, "award_amounts", |range| is_between(award.cents(), range))
        && fits(award, filters)
}

/// Whether an action matches a search for transactions.
pub(super) fn fits_action(award: &Award, action: &Action, filters: &Value) -> bool {
    any(filters, "time_period", |period| Period::of(period).is_some_and(|period| period.has_action(award, action)))
        && any(filters, "award_amounts", |range| is_between(action.cents, range))
        && fits(award, filters)
}

fn fits(award: &Award, filters: &Value) -> bool {
    let holds = |own: &str, wanted: &Value| wanted.as_str().is_some_and(|wanted| own.to_lowercase().contains(&wanted.to_lowercase()));
    any(filters, "award_type_codes", |code| code == award.code)
        && is_of_code(award.work[0], filters.get("naics_codes"))
        && is_of_code(award.work[2], filters.get("psc_codes"))
        && any(filters, "agencies", |agency| is_of_agency(award, agency))
        && any(filters, "recipient_search_text", |wanted| {
            holds(award.recipient.name, wanted) || holds(award.recipient.uei, wanted) || holds(award.recipient.parent.0, wanted)
        })
        && any(filters, "award_ids", |wanted| {
            let wanted = wanted.as_str().unwrap_or_default();
            // In quotation marks the whole number must match.
            wanted.strip_prefix('"').and_then(|id| id.strip_suffix('"')).map_or_else(|| award.piid.contains(wanted), |id| award.piid == id)
        })
        && any(filters, "keywords", |wanted| {
            holds(award.work[1], wanted) || holds(award.work[4], wanted) || holds(award.recipient.name, wanted)
        })
        && any(filters, "place_of_performance_locations", |place| is_at(award, place))
        && any(filters, "recipient_locations", |place| is_at(award, place))
        && any(filters, "set_aside_type_codes", |code| code == super::detail::set_aside(award))
        && any(filters, "extent_competed_type_codes", |code| code == super::detail::extent_competed(award))
        && filters.get("award_unique_id").and_then(Value::as_str).is_none_or(|id| award.id() == id)
}

/// Whether a code begins with a required prefix and with none of the excluded ones. A plain list is a list of required prefixes.
fn is_of_code(own: &str, wanted: Option<&Value>) -> bool {
    let Some(wanted) = wanted else { return true };
    let begins = |list: &Value| {
        let codes = list.as_array().into_iter().flatten();
        // Product codes come as paths of a hierarchy.
        codes.filter_map(|code| code.as_array().map_or(code.as_str(), |path| path.last()?.as_str())).any(|code| own.starts_with(code))
    };
    if wanted.is_array() {
        return begins(wanted);
    }
    let has = |name: &str| wanted.get(name).filter(|list| list.as_array().is_some_and(|list| !list.is_empty()));
    has("require").is_none_or(begins) && !has("exclude").is_some_and(begins)
}

fn is_of_agency(award: &Award, wanted: &Value) -> bool {
    let own = if wanted["tier"] == "subtier" { award.agency.sub.0 } else { award.agency.top.0 };
    wanted["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(own))
}

fn is_at(award: &Award, place: &Value) -> bool {
    place["country"].as_str().is_none_or(|country| country == "USA")
        && place["state"].as_str().is_none_or(|state| state == award.recipient.state.0)
}

fn is_between(cents: i64, range: &Value) -> bool {
    let dollars = super::dollars(cents);
    let bound = |name: &str| range.get(name).and_then(Value::as_f64);
    bound("lower_bound").is_none_or(|least| dollars >= least) && bound("upper_bound").is_none_or(|most| dollars <= most)
}

/// A range of days, and which date it refers to.
struct Period<'a> {
    from: Date,
    to: Date,
    by: &'a str,
}

impl<'a> Period<'a> {
    fn of(period: &'a Value) -> Option<Self> {
        let day = |name: &str| period[name].as_str()?.parse::<Date>().ok();
        let by = period["date_type"].as_str().unwrap_or_default();
        Some(Self { from: day("start_date")?.max(FIRST_DAY), to: day("end_date")?, by })
    }

    fn has(&self, day: Date) -> bool {
        day >= self.from && day <= self.to
    }

    /// Each date of an award is that of its latest action, or of its base.
    fn has_award(&self, award: &Award) -> bool {
        let latest = award.latest();
        match self.by {
            "last_modified_date" => self.has(latest.modified),
            "date_signed" | "new_awards_only" => self.has(award.signed()),
            "action_date" => self.has(latest.day),
            // Without a date type the start and end refer to different dates.
            _ => latest.day >= self.from && award.signed() <= self.to,
        }
    }

    fn has_action(&self, award: &Award, action: &Action) -> bool {
        match self.by {
            "last_modified_date" => self.has(action.modified),
            "date_signed" => self.has(award.signed()),
            "new_awards_only" => self.has(action.day) && self.has(award.signed()),
            _ => self.has(action.day),
        }
    }
}

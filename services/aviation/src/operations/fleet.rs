//! Aircraft as their owners describe them, and the assessment of one: the directives that may apply and when each is next due. Pure arithmetic over
//! the directives that were read.

use std::collections::{BTreeMap, BTreeSet};

use directives::{Aircraft, Due, Hours, Record, ResolvedAircraft, Usage, due};
use jiff::civil::Date;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};

use super::compared::{Compared, ResolvedNames};
use super::match_ads::DirectiveMatch;
use reads::number::Number;

/// The longest tail number, in characters.
const TAIL_CHARS_MAX: usize = 10;

/// A record of compliance with a directive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComplianceRecord {
    /// The number of the directive.
    #[schemars(length(min = 1, max = 20))]
    pub ad: String,
    /// The day, YYYY-MM-DD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 10, max = 10))]
    pub date: Option<String>,
    /// Time in service then, in hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 200_000))]
    pub hours: Option<f64>,
    /// Cycles or landings then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000_000))]
    pub cycles: Option<u32>,
    /// Whether a terminating action was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminated: bool,
}

/// An aircraft of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetItem {
    /// Tail number: letters, digits and dashes.
    #[schemars(length(min = 1, max = 10), regex(pattern = "^[A-Za-z0-9-]+$"))]
    pub tail: String,
    /// The make.
    #[schemars(length(min = 1, max = 80))]
    pub make: String,
    /// The model.
    #[schemars(length(min = 1, max = 80))]
    pub model: String,
    /// Time in service, in hours.
    #[serde(rename = "hoursTIS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 200_000))]
    pub hours_tis: Option<f64>,
    /// The serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub serial: Option<String>,
    /// Cycles or landings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000_000))]
    pub cycles: Option<u32>,
    /// The make of the engine; it needs `engineModel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub engine_make: Option<String>,
    /// The model of the engine. Without `engineMake` the directives of all makes that name it are found, and none whose models could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub engine_model: Option<String>,
    /// Time in service of the engine, in hours; that of the aircraft if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 200_000))]
    pub engine_hours: Option<f64>,
    /// The make of the propeller; it needs `propModel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub prop_make: Option<String>,
    /// The model of the propeller. Without `propMake` the directives of all makes that name it are found, and none whose models could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub prop_model: Option<String>,
    /// What was complied with, at most once per directive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub compliance: Vec<ComplianceRecord>,
}

/// An aircraft whose description was checked.
pub struct CheckedItem {
    /// The description.
    pub item: FleetItem,
    /// The make and model of the aircraft, its engine and its propeller, resolved.
    pub aircraft: ResolvedAircraft,
    records: BTreeMap<String, Record>,
    hours: Option<Hours>,
    engine_hours: Option<Hours>,
}

/// When a directive is next due.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextDue {
    /// `DUE_UNKNOWN`, `OVERDUE`, `DUE_SOON` (at most 50 hours, 50 cycles or 30 days), `NOT_DUE`, `DONE`, `TERMINATED` or `CLOSED`.
    pub status: &'static str,
    /// The hours at which it is due; null if no limit in hours can be computed.
    pub by_hours: Option<Number>,
    /// The cycles or landings at which it is due; null if no limit in cycles can be computed.
    pub by_cycles: Option<i64>,
    /// The day on which it is due; null if no limit in days can be computed.
    pub by_date: Option<String>,
    /// Hours left; negative when they have passed.
    pub hours_left: Option<Number>,
    /// Cycles or landings left; negative when they have passed.
    pub cycles_left: Option<i64>,
    /// Days left; negative when they have passed.
    pub days_left: Option<i32>,
    /// What the answer is based on.
    pub basis: String,
}

/// A directive that may apply to an aircraft, with when it is next due.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AssessedDirective {
    /// The directive.
    #[serde(flatten)]
    pub directive: DirectiveMatch,
    /// When it is next due.
    pub due: NextDue,
}

/// How many directives have each status.
pub type StatusCounts = BTreeMap<&'static str, usize>;

/// What the directives mean for one aircraft.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Assessment {
    /// Tail number.
    pub tail: String,
    /// The make as it was given.
    pub make: String,
    /// The model as it was given.
    pub model: String,
    /// How make and model were understood.
    pub resolved: ResolvedNames,
    /// Time in service, in hours; null if it was not given.
    #[serde(rename = "hoursTIS")]
    pub hours_tis: Option<Number>,
    /// The directives, newest effective date first, then by number.
    pub directives: Vec<AssessedDirective>,
    /// How many directives have each status.
    pub counts: StatusCounts,
}

/// The problem of a field of an aircraft.
fn refused(at: usize, field: &str, reason: &str) -> Problem {
    Problem::new(ErrorCode::BodyInvalid, format!("aircraft[{at}].{field}: {reason}")).about("aircraft")
}

/// Reads hours. The error names the field.
fn hours_of(at: usize, field: &str, hours: Option<f64>) -> Result<Option<Hours>, Problem> {
    let read = |hours: f64| Hours::new(hours).ok_or_else(|| refused(at, field, "is not between 0 and 200,000"));
    hours.map(read).transpose()
}

/// Make and model of an engine or a propeller: of a model without a make it is empty, a make needs a model.
fn pair<'a>(at: usize, field: &str, make: Option<&'a str>, model: Option<&'a str>) -> Result<Option<(&'a str, &'a str)>, Problem> {
    match (make, model) {
        (make, Some(model)) => Ok(Some((make.unwrap_or_default(), model))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(refused(at, field, "is needed with its make")),
    }
}

/// Checks the aircraft of a request: each field, and that no tail number is given twice.
///
/// # Errors
/// `body-invalid`, naming the aircraft and the field.
pub fn check_items(items: Vec<FleetItem>) -> Result<Vec<CheckedItem>, Problem> {
    let mut tails = BTreeSet::new();
    let mut checked = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        let is_tail = |tail: &str| {
            (1..=TAIL_CHARS_MAX).contains(&tail.len()) && tail.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if !is_tail(&item.tail) {
            return Err(refused(at, "tail", "must be 1 to 10 letters, digits and dashes"));
        }
        if !tails.insert(item.tail.to_ascii_uppercase()) {
            return Err(refused(at, "tail", "is given twice"));
        }
        for (field, name) in [("make", &item.make), ("model", &item.model)] {
            if directives::compact_form(name).is_empty() {
                return Err(refused(at, field, "has neither a letter nor a digit"));
            }
        }
        checked.push(CheckedItem::new(at, item)?);
    }
    Ok(checked)
}

impl CheckedItem {
    fn new(at: usize, item: FleetItem) -> Result<Self, Problem> {
        let aircraft = ResolvedAircraft::new(&Aircraft {
            make: &item.make,
            model: &item.model,
            serial: item.serial.as_deref(),
            engine: pair(at, "engineModel", item.engine_make.as_deref(), item.engine_model.as_deref())?,
            propeller: pair(at, "propModel", item.prop_make.as_deref(), item.prop_model.as_deref())?,
        });
        let mut records = BTreeMap::new();
        for given in &item.compliance {
            let date = match &given.date {
                None => None,
                Some(date) => {
                    Some(date.parse::<Date>().map_err(|_| refused(at, "compliance", &format!("{date:?} is not a day YYYY-MM-DD")))?)
                }
            };
            let hours = hours_of(at, "compliance", given.hours)?;
            let record = Record { date, hours, cycles: given.cycles, is_terminated: given.terminated };
            let number = normal_number(&given.ad);
            if number.is_empty() {
                return Err(refused(at, "compliance", &format!("{:?} is not the number of a directive", given.ad)));
            }
            if records.insert(number, record).is_some() {
                return Err(refused(at, "compliance", &format!("names {:?} twice", given.ad)));
            }
        }
        let (hours, engine_hours) = (hours_of(at, "hoursTIS", item.hours_tis)?, hours_of(at, "engineHours", item.engine_hours)?);
        Ok(Self { aircraft, records, hours, engine_hours, item })
    }

    /// Assesses the directives that may apply to the aircraft, on a day.
    #[must_use]
    pub fn assess(&self, found: Vec<Compared>, today: Date) -> Assessment {
        let mut counts = StatusCounts::new();
        let mut directives = Vec::with_capacity(found.len());
        for compared in found {
            let due = self.due(&compared, today);
            *counts.entry(due.status).or_default() += 1;
            directives.push(AssessedDirective { directive: DirectiveMatch::from(compared), due });
        }
        Assessment {
            tail: self.item.tail.clone(),
            make: self.item.make.clone(),
            model: self.item.model.clone(),
            resolved: ResolvedNames::of(&self.aircraft.airframe),
            hours_tis: self.hours(),
            directives,
            counts,
        }
    }

    /// Time in service, in hours; `None` if it was not given.
    #[must_use]
    pub fn hours(&self) -> Option<Number> {
        self.hours.map(hours_number)
    }

    /// When a directive was last complied with: the day, and the hours then.
    #[must_use]
    pub fn last_done(&self, ad_number: &str) -> (Option<Date>, Option<Number>) {
        let record = self.records.get(&normal_number(ad_number));
        (record.and_then(|record| record.date), record.and_then(|record| record.hours).map(hours_number))
    }

    /// When a directive is next due on the aircraft.
    #[must_use]
    pub fn due(&self, compared: &Compared, today: Date) -> NextDue {
        let record = self.records.get(&normal_number(&compared.record.ad_number));
        let is_engine = compared.record.product == "engine";
        let hours = if is_engine { self.engine_hours.or(self.hours) } else { self.hours };
        let usage = Usage { hours, cycles: self.item.cycles, date: today };
        NextDue::of(due(&compared.stored.directive, record, &usage, compared.record.is_superseded()))
    }
}

impl NextDue {
    fn of(due: Due) -> Self {
        Self {
            status: due.status.as_str(),
            by_hours: due.by_hours.map(hours_number),
            by_cycles: due.by_cycles,
            by_date: due.by_date.map(|day| day.to_string()),
            hours_left: due.hours_left.map(Number::hundredths),
            cycles_left: due.cycles_left,
            days_left: due.days_left,
            basis: due.basis,
        }
    }
}

fn hours_number(hours: Hours) -> Number {
    Number::hundredths(hours.hundredths())
}

/// The number of a directive in the form in which numbers are compared: without `AD`, dashes and blanks, in capitals. `ad 87-20-03 r2` is `872003R2`.
fn normal_number(number: &str) -> String {
    let compact: String = number.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect();
    let compact = compact.strip_prefix("AD").unwrap_or(&compact);
    // Some lists write the years of the last century with four digits: `1987-20-03R2`.
    let is_long = compact.len() >= 8 && compact.bytes().take(8).all(|byte| byte.is_ascii_digit());
    compact.strip_prefix("19").filter(|_| is_long).unwrap_or(compact).to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use directives::StoredDirective;
    use jiff::civil::date;
    use schemas::views::aviation::AirworthinessDirective;
    use serde_json::{Value, json};

    use super::*;

    fn item(tail: &str) -> FleetItem {
        FleetItem { tail: tail.to_owned(), make: "Piper".to_owned(), model: "PA-28-140".to_owned(), ..FleetItem::default() }
    }

    /// Proves that the number of a directive is found in every spelling, and that other numbers stay others.
    #[test]
    fn numbers_of_directives() {
        for spelling in ["87-20-03 R2", "AD 87-20-03 R2", "1987-20-03R2", "ad87-20-03r2", "AD-87-20-03  R2", "87\u{2011}20\u{2011}03 R2"] {
            assert_eq!(normal_number(spelling), "872003R2", "{spelling}");
        }
        let others = ["87-20-03", "1987-20-03", "87-20-03 R1", "87-20-30 R2"].map(normal_number);
        assert!(others.iter().all(|other| other != "872003R2"), "{others:?}");
    }

    /// The directive whose actions recur at intervals of hours, cycles and months, as an assessment answers it.
    fn assessed(item: FleetItem) -> Value {
        let limit = |value: i64, unit: &str, group: i64| json!({ "kind": "recurring", "value": value, "unit": unit, "anchor": "last_done", "joiner": "FIRST", "group": group });
        let model = json!({ "name": "PA-28-140", "form": "PA28140", "series": "PA28", "role": "applies", "span": "PA-28-140" });
        let record = json!({
            "id": "2026-15-05", "adNumber": "2026-15-05", "makes": ["PIPER"], "product": "aircraft", "layout": "lettered", "models": [model],
            "recurring": "yes", "status": "current", "scope": "all", "limits": [limit(100, "landings", 1), limit(12, "calendar_months", 1)],
        });
        let record: AirworthinessDirective = serde_json::from_value(record).unwrap();
        let stored = StoredDirective::of(&record);
        let checked = check_items(vec![item]).unwrap().remove(0);
        let outcome = directives::compare(&stored.directive, &checked.aircraft);
        let compared = Compared { record: Arc::new(record), stored: Arc::new(stored), outcome };
        let assessment = checked.assess(vec![compared], date(2026, 11, 20));
        serde_json::to_value(assessment).unwrap()
    }

    /// Proves that a limit in landings is due at the record's landings and the interval, with what is left, and that each is null where the record or
    /// the aircraft does not say its landings.
    #[test]
    fn due_in_cycles() {
        let done = |cycles: Option<u32>| ComplianceRecord {
            ad: "2026-15-05".to_owned(),
            date: Some("2026-03-10".to_owned()),
            cycles,
            ..ComplianceRecord::default()
        };
        for (now, record, expected) in [
            (Some(1_062), Some(1_000), json!(["DUE_SOON", 1_100, 38])),
            (Some(1_101), Some(1_000), json!(["OVERDUE", 1_100, -1])),
            (Some(1_010), Some(1_000), json!(["NOT_DUE", 1_100, 90])),
            (None, Some(1_000), json!(["DUE_UNKNOWN", 1_100, null])),
            (Some(1_010), None, json!(["DUE_UNKNOWN", null, null])),
        ] {
            let answer = assessed(FleetItem { cycles: now, compliance: vec![done(record)], ..item("N1") });
            let due = &answer["directives"][0]["due"];
            assert_eq!(json!([due["status"], due["byCycles"], due["cyclesLeft"]]), expected, "{now:?} {record:?}");
            assert_eq!((&due["byDate"], &due["byHours"]), (&json!("2027-03-31"), &Value::Null));
        }
    }

    /// Proves which descriptions are refused, with the aircraft and the field in the detail.
    #[test]
    fn refused_items() {
        let twice = ComplianceRecord { ad: "2011-10-09".to_owned(), ..ComplianceRecord::default() };
        for (items, field) in [
            (vec![item("=HYPERLINK")], "aircraft[0].tail"),
            (vec![item("")], "aircraft[0].tail"),
            (vec![item("N1"), item("n1")], "aircraft[1].tail"),
            (vec![FleetItem { make: "--".to_owned(), ..item("N1") }], "aircraft[0].make"),
            (vec![FleetItem { hours_tis: Some(-1.0), ..item("N1") }], "aircraft[0].hoursTIS"),
            (vec![FleetItem { engine_make: Some("Lycoming".to_owned()), ..item("N1") }], "aircraft[0].engineModel"),
            (
                vec![FleetItem {
                    compliance: vec![twice.clone(), ComplianceRecord { ad: "AD 2011-10-09".to_owned(), ..twice }],
                    ..item("N1")
                }],
                "compliance",
            ),
            (
                vec![FleetItem {
                    compliance: vec![ComplianceRecord { ad: "AD --".to_owned(), ..ComplianceRecord::default() }],
                    ..item("N1")
                }],
                "not the number of a directive",
            ),
        ] {
            let Err(problem) = check_items(items) else { panic!("{field} was accepted") };
            assert!(problem.detail.contains(field), "{} names {field}", problem.detail);
        }
        assert_eq!(check_items(vec![item("N1"), item("N-2")]).unwrap().len(), 2);
        // The model of an engine alone is enough.
        let engine = FleetItem { engine_model: Some("O-320-E2A".to_owned()), ..item("N1") };
        let engine = check_items(vec![engine]).unwrap().remove(0).aircraft.engine.unwrap();
        assert_eq!((engine.makes.is_empty(), engine.form.as_str()), (true, "O320E2A"));
    }
}

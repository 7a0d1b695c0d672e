//! Aircraft as their owners describe them, and the assessment of one: the directives that may apply and when each is next due. Pure arithmetic over
//! the directives that were read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use directives::{Aircraft, DoneWork, Hours, Product, ResolvedAircraft, Usage, due};
use jiff::civil::Date;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::comparisons::{Compared, ResolvedNames};
use super::directive_match::DirectiveMatch;
use super::next_due::{NextDue, hours_number};
use super::shared_directive::normal_number;
use reads::number::Number;
use reads::read::text_around;

/// The longest tail number, in characters.
const TAIL_CHARS_MAX: usize = 10;
/// How many bytes the JSON of an assessment has at most without its directives, unless its names have many signs that JSON escapes.
const ASSESSMENT_BYTES: usize = 1_024;
/// The most numbers that a note repeats.
const NUMBERS_SHOWN_MAX: usize = 5;

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
    records: BTreeMap<String, DoneWork>,
    hours: Option<Hours>,
    engine_hours: Option<Hours>,
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
    let path = format!("aircraft.{at}.{field}");
    Problem::new(ErrorCode::BodyInvalid, format!("{path}: {reason}")).about(path)
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
    let (mut checked, mut resolved) = (Vec::with_capacity(items.len()), ResolvedItems::new());
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
        checked.push(CheckedItem::new(at, item, &mut resolved)?);
    }
    Ok(checked)
}

/// The names of an item: make and model of the aircraft, the engine and the propeller.
type Names = [(Option<String>, Option<String>); 3];

/// The aircraft of a request without serial numbers, by their names: each is resolved once.
type ResolvedItems = HashMap<Names, ResolvedAircraft>;

impl CheckedItem {
    fn new(at: usize, item: FleetItem, resolved: &mut ResolvedItems) -> Result<Self, Problem> {
        let engine = pair(at, "engineModel", item.engine_make.as_deref(), item.engine_model.as_deref())?;
        let propeller = pair(at, "propModel", item.prop_make.as_deref(), item.prop_model.as_deref())?;
        let owned = |pair: Option<(&str, &str)>| (pair.map(|(make, _)| make.to_owned()), pair.map(|(_, model)| model.to_owned()));
        let names = [owned(Some((item.make.as_str(), item.model.as_str()))), owned(engine), owned(propeller)];
        let aircraft = resolved
            .entry(names)
            .or_insert_with(|| ResolvedAircraft::new(&Aircraft { make: &item.make, model: &item.model, serial: None, engine, propeller }));
        let aircraft = aircraft.with_serial(item.serial.as_deref());
        let mut records = BTreeMap::new();
        for given in &item.compliance {
            let date = match &given.date {
                None => None,
                Some(date) => {
                    Some(date.parse::<Date>().map_err(|_| refused(at, "compliance", &format!("{date:?} is not a day YYYY-MM-DD")))?)
                }
            };
            let hours = hours_of(at, "compliance", given.hours)?;
            let record = DoneWork { date, hours, cycles: given.cycles, is_terminated: given.terminated };
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

    /// When each directive is next due on the aircraft, in their order.
    #[must_use]
    pub fn dues(&self, found: &[Compared], today: Date) -> Vec<NextDue> {
        found.iter().map(|compared| self.due(compared, today)).collect()
    }

    /// How many bytes the JSON of an assessment with some directives has, about.
    #[must_use]
    pub fn assessment_bytes(found: &[Compared]) -> usize {
        ASSESSMENT_BYTES + found.iter().map(Compared::bytes).sum::<usize>()
    }

    /// Adds the JSON of the aircraft's [`Assessment`] to a text. `dues` says when each directive is next due.
    pub fn write_assessment(&self, found: &[Compared], dues: &[NextDue], out: &mut Vec<u8>) {
        let assessment = Assessment {
            tail: self.item.tail.clone(),
            make: self.item.make.clone(),
            model: self.item.model.clone(),
            resolved: ResolvedNames::of(&self.aircraft.airframe),
            hours_tis: self.hours(),
            directives: Vec::new(),
            counts: counts_of(dues),
        };
        let fields = match json!(assessment) {
            Value::Object(fields) => fields,
            _ => return,
        };
        let (before, after) = text_around(&fields, "directives");
        out.extend_from_slice(before.as_bytes());
        out.push(b'[');
        for (at, (compared, due)) in found.iter().zip(dues).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            compared.write(Some(due), out);
        }
        out.push(b']');
        out.extend_from_slice(after.as_bytes());
    }

    /// Time in service, in hours; `None` if it was not given.
    #[must_use]
    pub fn hours(&self) -> Option<Number> {
        self.hours.map(hours_number)
    }

    /// When the directive with a number in the form in which numbers are compared was last complied with: the day, and the hours then.
    #[must_use]
    pub fn last_done(&self, normal_number: &str) -> (Option<Date>, Option<Number>) {
        let record = self.records.get(normal_number);
        (record.and_then(|record| record.date), record.and_then(|record| record.hours).map(hours_number))
    }

    /// The numbers of its records of compliance that no directive has of those that may apply to it, as they were given.
    #[must_use]
    pub fn unmatched(&self, found: &[Compared]) -> Vec<&str> {
        if self.item.compliance.is_empty() {
            return Vec::new();
        }
        let known: HashSet<&str> = found.iter().map(|one| one.directive.normal_number.as_str()).collect();
        let given = self.item.compliance.iter().map(|record| record.ad.as_str());
        given.filter(|number| !known.contains(normal_number(number).as_str())).collect()
    }

    /// When a directive is next due on the aircraft.
    #[must_use]
    pub fn due(&self, compared: &Compared, today: Date) -> NextDue {
        let directive = &*compared.directive;
        let record = self.records.get(&directive.normal_number);
        let is_engine = directive.product() == Product::Engine;
        let hours = if is_engine { self.engine_hours.or(self.hours) } else { self.hours };
        let usage = Usage { hours, cycles: self.item.cycles, date: today };
        NextDue::of(due(&directive.stored.directive, record, &usage, directive.is_superseded))
    }
}

/// What an answer says of records of compliance that no directive has, given the name of their field: a misspelt number must not look like work that was
/// never done. `None` without such records.
pub(crate) fn unmatched_note(field: &str, numbers: &[&str]) -> Option<String> {
    let shown: Vec<String> = numbers.iter().take(NUMBERS_SHOWN_MAX).map(|number| format!("{number:?}")).collect();
    let more = numbers.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!numbers.is_empty()).then(|| format!("{field}: no directive that may apply has the number {}{more}", shown.join(", ")))
}

/// How many directives have each status.
#[must_use]
pub fn counts_of(dues: &[NextDue]) -> StatusCounts {
    let mut counts = StatusCounts::new();
    for due in dues {
        *counts.entry(due.status).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use feed::derived_lists::Derived as _;
    use jiff::civil::date;
    use schemas::views::aviation::AirworthinessDirective;

    use super::super::comparisons::span;
    use super::super::shared_directive::SharedDirective;

    use super::*;

    fn item(tail: &str) -> FleetItem {
        FleetItem { tail: tail.to_owned(), make: "Piper".to_owned(), model: "PA-28-140".to_owned(), ..FleetItem::default() }
    }

    fn compared(record: AirworthinessDirective, checked: &CheckedItem) -> Compared {
        let directive = SharedDirective::of(record);
        let outcome = directives::compare(&directive.stored.directive, &checked.aircraft);
        Compared::new(Arc::new(directive), outcome)
    }

    /// Proves that the text of an assessment is the value of the answer as its schema describes it, byte for byte, for directives with all fields and with
    /// texts that JSON escapes.
    #[test]
    fn texts_of_assessments() {
        let record = |number: &str, serials: &str| {
            let model =
                json!({ "name": "PA-28-140", "form": "PA28140", "series": "PA28", "role": "applies", "span": "PA-28-140 \"\u{e9}\"\n" });
            let serials =
                json!([{ "ranges": [{ "from": serials, "to": "9999" }], "isComplete": true, "models": [0], "span": "serial numbers" }]);
            let limit =
                json!({ "kind": "recurring", "value": 12, "unit": "calendar_months", "anchor": "last_done", "joiner": "", "group": 1 });
            let record = json!({
                "id": number, "adNumber": number, "title": "t \\ \u{1f}", "makes": ["PIPER"], "product": "aircraft", "layout": "lettered",
                "models": [model], "serials": serials, "recurring": "yes", "status": "current", "scope": "certain", "limits": [limit],
                "effectiveDate": "2026-08-24", "supersedes": ["2011-10-09"], "unsafeCondition": "u", "url": "https://a.example/?a=1&b=2",
            });
            serde_json::from_value::<AirworthinessDirective>(record).unwrap()
        };
        let done = ComplianceRecord { ad: "2026-15-05".to_owned(), date: Some("2026-03-10".to_owned()), ..ComplianceRecord::default() };
        let given = FleetItem { serial: Some("4001".to_owned()), hours_tis: Some(1_262.5), compliance: vec![done], ..item("N1") };
        let checked = check_items(vec![given]).unwrap().remove(0);
        let records = [record("2026-15-05", "4000"), record("2026-15-06", "5000")];
        let found: Vec<Compared> = records.iter().map(|record| compared(record.clone(), &checked)).collect();
        let dues = checked.dues(&found, date(2026, 11, 20));
        let mut text = Vec::with_capacity(CheckedItem::assessment_bytes(&found));
        let capacity = text.capacity();
        checked.write_assessment(&found, &dues, &mut text);
        assert_eq!(text.capacity(), capacity, "the text grew while it was written");
        let directives = records.into_iter().zip(found.iter().zip(dues)).map(|(record, (compared, due))| {
            let (outcome, span) = ((**compared.outcome).clone(), span(&compared.directive, &compared.outcome).to_owned());
            let directive = DirectiveMatch {
                verdict: outcome.verdict,
                reasons: outcome.reasons,
                cannot_decide: outcome.cannot_decide,
                span,
                ..DirectiveMatch::of(record)
            };
            AssessedDirective { directive, due }
        });
        let directives: Vec<AssessedDirective> = directives.collect();
        assert_eq!((directives[0].due.status, directives[1].due.status), ("NOT_DUE", "DUE_UNKNOWN"));
        let expected = Assessment {
            tail: "N1".to_owned(),
            make: "Piper".to_owned(),
            model: "PA-28-140".to_owned(),
            resolved: ResolvedNames::of(&checked.aircraft.airframe),
            hours_tis: Some(Number::hundredths(126_250)),
            directives,
            counts: [("DUE_UNKNOWN", 1), ("NOT_DUE", 1)].into(),
        };
        assert_eq!(String::from_utf8(text).unwrap(), json!(expected).to_string());
    }

    /// Proves that records of compliance for which there is no directive are named as they were given, in any spelling of those that there are.
    #[test]
    fn records_without_a_directive() {
        let done = |ad: &str| ComplianceRecord { ad: ad.to_owned(), ..ComplianceRecord::default() };
        let numbers = ["AD 2026-15-05", "2026-15-50", "87-20-03", "87-20-04", "87-20-05", "87-20-06", "87-20-07"];
        let given = FleetItem { compliance: numbers.map(done).into(), ..item("N1") };
        let checked = check_items(vec![given]).unwrap().remove(0);
        let record = json!({ "id": "2026-15-05", "adNumber": "2026-15-05", "makes": ["PIPER"], "product": "aircraft" });
        let found = [compared(serde_json::from_value(record).unwrap(), &checked)];
        assert_eq!(checked.unmatched(&found), numbers[1..]);
        let note = unmatched_note("lastDone", &numbers[1..]).unwrap();
        assert!(note.starts_with("lastDone: no directive that may apply has the number \"2026-15-50\", \"87-20-03\""), "{note}");
        assert!(note.ends_with("\"87-20-06\" and 1 more") && unmatched_note("lastDone", &[]).is_none(), "{note}");
    }

    /// Proves that aircraft of one request with the same names are resolved alike but for their serial numbers, and others by their own names.
    #[test]
    fn items_are_resolved_by_their_names() {
        let with = |tail: &str, serial: &str| FleetItem { serial: Some(serial.to_owned()), ..item(tail) };
        let engine = FleetItem { engine_model: Some("O-320-E2A".to_owned()), ..item("N3") };
        let checked = check_items(vec![with("N1", " 4001 "), with("N2", " "), engine]).unwrap();
        let serials: Vec<Option<&str>> = checked.iter().map(|one| one.aircraft.serial.as_deref()).collect();
        assert_eq!(serials, [Some("4001"), None, None]);
        for one in &checked {
            let alone = check_items(vec![one.item.clone()]).unwrap().remove(0);
            assert_eq!(one.aircraft, alone.aircraft);
        }
        assert!(checked[2].aircraft.engine.is_some() && checked[1].aircraft.engine.is_none());
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
        let checked = check_items(vec![item]).unwrap().remove(0);
        let found = [compared(record, &checked)];
        let mut text = Vec::new();
        checked.write_assessment(&found, &checked.dues(&found, date(2026, 11, 20)), &mut text);
        serde_json::from_slice(&text).unwrap()
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
            (vec![item("=HYPERLINK")], "aircraft.0.tail"),
            (vec![item("")], "aircraft.0.tail"),
            (vec![item("N1"), item("n1")], "aircraft.1.tail"),
            (vec![FleetItem { make: "--".to_owned(), ..item("N1") }], "aircraft.0.make"),
            (vec![FleetItem { hours_tis: Some(-1.0), ..item("N1") }], "aircraft.0.hoursTIS"),
            (vec![FleetItem { engine_make: Some("Lycoming".to_owned()), ..item("N1") }], "aircraft.0.engineModel"),
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

//! One study of the registry, as it stands on a day: what it began as, and what its updates so far made of it.

use std::cell::OnceCell;

use jiff::civil::Date;
use serde_json::{Value, json};

use super::DAILY;
use crate::chance::Dice;
use crate::days::{Place, after, business_day_after, last_business_day};
use crate::science::{COLLABORATORS, INSTITUTIONS, SITES_ABROAD, SPONSORS, SUBJECTS, Subject};
use crate::world::{World, day_before};

/// After so many updates nothing comes any more.
const UPDATES_MAX: u64 = 60;
/// A study that says nothing for so long is of unknown status.
const SILENT_DAYS: i64 = 730;
const REASONS: &[&str] =
    &["Slow accrual", "Business decision, not related to safety", "Lack of funding", "Futility at the interim analysis"];

/// A study.
pub(super) struct Study {
    pub(super) nct_id: String,
    /// A number under which it was registered before.
    pub(super) alias: Option<String>,
    pub(super) first_posted: Date,
    pub(super) updated: Date,
    place: Place,
    dice: Dice,
    state: State,
    today: Date,
    value: OnceCell<Value>,
}

/// What moves.
struct State {
    status: &'static str,
    last_known: Option<&'static str>,
    why_stopped: Option<&'static str>,
    /// Days by which the end was put off.
    late: u64,
    sites: u64,
    enrollment: u64,
    completed: Option<Date>,
    results: Option<Date>,
}

impl Study {
    pub(super) fn of(world: &World, place: Place) -> Self {
        let (dice, number) = (DAILY.dice(world, place), place.number());
        let (state, updated) = State::on(world.today, place, dice);
        let alias = dice.once_in(1, 40).then(|| format!("NCT{:08}", 5_000_000 + number));
        let (nct_id, first_posted) = (format!("NCT{:08}", 7_000_000 + number), place.day);
        Self { nct_id, alias, first_posted, updated, place, dice, state, today: world.today, value: OnceCell::new() }
    }

    /// What says whether a fault strikes it.
    pub(super) fn dice(&self) -> Dice {
        self.dice
    }

    /// The whole record. What is empty is left out.
    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| pruned(self.record()).unwrap_or(Value::Null))
    }

    fn subject(&self) -> &'static Subject {
        self.dice.choose(2, SUBJECTS)
    }

    fn record(&self) -> Value {
        let (dice, state) = (self.dice, &self.state);
        let kind = kind_of(dice);
        let (sponsor, class) = sponsor(dice);
        let (condition, (treatment_kind, treatment)) =
            (dice.pick(5, self.subject().conditions), *dice.choose(6, self.subject().treatments));
        let brief = match dice.below(7, 4) {
            0 => format!("{treatment} for {condition} \\[{}\\]", dice.pick(8, &["HARBOR", "SUMMIT", "LANTERN"])),
            1 => format!("Study of {treatment} in Participants With {condition}"),
            2 => format!("{treatment} Versus Standard of Care in {condition}"),
            _ => format!("Long-Term Outcomes of {treatment} in {condition}"),
        };
        let collaborators: Vec<Value> =
            COLLABORATORS.iter().enumerate().filter(|(at, _)| dice.once_in(10 + *at as u64, 4)).map(|(_, one)| named(*one)).collect();
        let is_randomized = kind == "INTERVENTIONAL" && dice.once_in(9, 2);
        let placebo = is_randomized.then(|| json!({"type": "DRUG", "name": "Placebo", "armGroupLabels": ["Control"]}));
        let interventions: Vec<Value> =
            [Some(json!({"type": treatment_kind, "name": treatment, "armGroupLabels": ["Treatment"]})), placebo]
                .into_iter()
                .flatten()
                .collect();
        json!({
            "protocolSection": {
                "identificationModule": {
                    "nctId": self.nct_id,
                    "nctIdAliases": self.alias.iter().collect::<Vec<_>>(),
                    "orgStudyIdInfo": {"id": format!("ST-{}", self.place.number())},
                    "organization": {"fullName": sponsor, "class": class},
                    "briefTitle": brief,
                    "officialTitle": format!("A {} Study of {treatment} in Patients With {condition}", if is_randomized { "Randomized" } else { "Prospective" }),
                    "acronym": dice.once_in(14, 5).then(|| dice.pick(8, &["HARBOR", "SUMMIT", "LANTERN"])),
                },
                "statusModule": self.status(),
                "sponsorCollaboratorsModule": {
                    "responsibleParty": {"type": "SPONSOR"}, "leadSponsor": named((sponsor, class)), "collaborators": collaborators,
                },
                "descriptionModule": {
                    "briefSummary": format!(
                        "This study asks whether {treatment} helps people with {condition}.\n\nIt belongs to the field of {}.",
                        self.subject().terms[0].to_lowercase(),
                    ),
                },
                "conditionsModule": {"conditions": [condition], "keywords": self.subject().terms},
                "designModule": {
                    "studyType": kind,
                    "phases": phases(dice, kind, treatment_kind),
                    "designInfo": {"allocation": is_randomized.then_some("RANDOMIZED")},
                    "enrollmentInfo": {
                        "count": state.enrollment, "type": if state.completed.is_some() { "ACTUAL" } else { "ESTIMATED" },
                    },
                },
                "armsInterventionsModule": {"armGroups": [{"label": "Treatment", "type": "EXPERIMENTAL"}], "interventions": interventions},
                "outcomesModule": {"primaryOutcomes": [{"measure": format!("Change in {condition}"), "timeFrame": "52 weeks"}]},
                "eligibilityModule": {
                    "sex": "ALL", "minimumAge": if dice.once_in(15, 6) { "2 Years" } else { "18 Years" }, "healthyVolunteers": false,
                    "stdAges": ["ADULT", "OLDER_ADULT"],
                },
                "contactsLocationsModule": {"locations": self.sites()},
            },
            "derivedSection": {"miscInfoModule": {"versionHolder": last_business_day(self.today).to_string()}},
            "hasResults": state.results.is_some(),
        })
    }

    fn status(&self) -> Value {
        let (dice, state) = (self.dice, &self.state);
        let begun = state.status != "NOT_YET_RECRUITING" && state.status != "WITHDRAWN";
        let start = start(self.place, dice);
        let primary = after(start, 150 + dice.below(20, 700) + state.late);
        let ended = |planned: Date| state.completed.map_or((planned, "ESTIMATED"), |day| (day_before(day, 30), "ACTUAL"));
        let (primary, primary_type) = ended(primary);
        let (completion, completion_type) = ended(after(primary, 30 + dice.below(21, 200)));
        let moment = |tag: u64, day: Date, kind: &str| {
            // Some know no more than the month, and a few do not say whether it is meant or done.
            let date = if dice.once_in(tag, 4) { day.strftime("%Y-%m").to_string() } else { day.to_string() };
            json!({"date": date, "type": (!dice.once_in(tag + 1, 20)).then_some(kind)})
        };
        let posted = |day: Date| json!({"date": day.to_string(), "type": "ACTUAL"});
        json!({
            "statusVerifiedDate": self.updated.strftime("%Y-%m").to_string(),
            "overallStatus": state.status,
            "lastKnownStatus": state.last_known,
            "whyStopped": state.why_stopped,
            "startDateStruct": moment(30, start, if begun { "ACTUAL" } else { "ESTIMATED" }),
            "primaryCompletionDateStruct": moment(32, primary, primary_type),
            "completionDateStruct": moment(34, completion, completion_type),
            "studyFirstSubmitDate": day_before(self.first_posted, 6).to_string(),
            "studyFirstPostDateStruct": posted(self.first_posted),
            "resultsFirstPostDateStruct": state.results.map(posted),
            "lastUpdateSubmitDate": day_before(self.updated, 3).to_string(),
            "lastUpdatePostDateStruct": posted(self.updated),
        })
    }

    fn sites(&self) -> Vec<Value> {
        let status = (self.state.status == "RECRUITING").then_some("RECRUITING");
        (0..self.state.sites)
            .map(|site| {
                let tag = 60 + site;
                if self.dice.once_in(tag + 100, 5) {
                    let (facility, city, country, lat, lon) = *self.dice.choose(tag, SITES_ABROAD);
                    return json!({"facility": facility, "status": status, "city": city, "country": country, "geoPoint": {"lat": lat, "lon": lon}});
                }
                let home = self.dice.choose(tag, INSTITUTIONS);
                json!({
                    "facility": home.name, "status": status, "city": home.city, "state": home.state.1, "zip": home.postal_code,
                    "country": "United States",
                })
            })
            .collect()
    }
}

impl State {
    /// The state on a day, and the day of the last update.
    fn on(today: Date, place: Place, dice: Dice) -> (Self, Date) {
        let is_access = kind_of(dice) == "EXPANDED_ACCESS";
        let status = match start(place, dice) > place.day {
            _ if is_access => "AVAILABLE",
            true => "NOT_YET_RECRUITING",
            false => "RECRUITING",
        };
        let (sites, enrollment) = (dice.below(16, 6), 20 + dice.below(17, 600));
        let (last_known, why_stopped, completed, results) = (None, None, None, None);
        let mut state = Self { status, last_known, why_stopped, late: 0, sites, enrollment, completed, results };
        let mut updated = place.day;
        if dice.once_in(18, 30) {
            if updated < day_before(today, SILENT_DAYS) && !is_access {
                (state.last_known, state.status) = (Some(state.status), "UNKNOWN");
            }
            return (state, updated);
        }
        for update in 0..UPDATES_MAX {
            let day = business_day_after(updated, 10 + dice.below(200 + update, 60));
            if day > today || state.is_final() {
                break;
            }
            state.update(day, dice, 300 + update);
            updated = day;
        }
        (state, updated)
    }

    fn is_final(&self) -> bool {
        matches!(self.status, "TERMINATED" | "WITHDRAWN" | "NO_LONGER_AVAILABLE") || self.results.is_some()
    }

    fn update(&mut self, day: Date, dice: Dice, tag: u64) {
        match dice.below(tag, 6) {
            0..2 => self.advance(day, dice, tag + 1_000),
            2..4 => self.late += 60 + dice.below(tag + 2_000, 120),
            4 => self.sites += 1,
            _ => self.enrollment += 10,
        }
    }

    fn advance(&mut self, day: Date, dice: Dice, tag: u64) {
        let mut stopped = |status| {
            self.why_stopped = Some(dice.pick(tag + 1, REASONS));
            status
        };
        self.status = match self.status {
            "AVAILABLE" => "NO_LONGER_AVAILABLE",
            "NOT_YET_RECRUITING" if dice.once_in(tag, 12) => stopped("WITHDRAWN"),
            "RECRUITING" if dice.once_in(tag, 10) => stopped("TERMINATED"),
            "RECRUITING" if dice.once_in(tag, 9) => stopped("SUSPENDED"),
            "NOT_YET_RECRUITING" | "SUSPENDED" => {
                self.why_stopped = None;
                "RECRUITING"
            }
            "RECRUITING" => "ACTIVE_NOT_RECRUITING",
            "ACTIVE_NOT_RECRUITING" => {
                self.completed = Some(day);
                "COMPLETED"
            }
            status => {
                self.results = Some(day);
                status
            }
        };
    }
}

fn start(place: Place, dice: Dice) -> Date {
    day_before(after(place.day, dice.below(19, 120)), 60)
}

fn kind_of(dice: Dice) -> &'static str {
    match dice.below(3, 40) {
        0 => "EXPANDED_ACCESS",
        1..9 => "OBSERVATIONAL",
        _ => "INTERVENTIONAL",
    }
}

fn sponsor(dice: Dice) -> (&'static str, &'static str) {
    *dice.choose(4, SPONSORS)
}

fn named((name, class): (&str, &str)) -> Value {
    json!({"name": name, "class": class})
}

/// The phases, of which there may be two; none where they do not apply.
fn phases(dice: Dice, kind: &str, treatment: &str) -> Vec<&'static str> {
    if kind != "INTERVENTIONAL" {
        return Vec::new();
    }
    if !matches!(treatment, "DRUG" | "BIOLOGICAL" | "GENETIC") {
        return vec!["NA"];
    }
    let all: [&[&str]; 7] = [&["PHASE1"], &["PHASE1", "PHASE2"], &["PHASE2"], &["PHASE2"], &["PHASE3"], &["PHASE4"], &["EARLY_PHASE1"]];
    dice.choose(22, &all).to_vec()
}

/// The value without what is empty; `None` when that is all.
fn pruned(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(pruned).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(fields) => {
            let fields: serde_json::Map<_, _> = fields.into_iter().filter_map(|(name, field)| Some((name, pruned(field)?))).collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        value => Some(value),
    }
}

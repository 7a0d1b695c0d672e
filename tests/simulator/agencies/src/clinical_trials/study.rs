//! One study of the registry on a given day: its initial content and its updates so far.

use std::cell::OnceCell;

use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::days::{Daily, DayPosition, after, business_day_after, last_business_day};
use simulated_world::random::Random;
use simulated_world::world::{World, day_before};

use crate::science::{COLLABORATORS, INSTITUTIONS, SITES_ABROAD, SPONSORS, SUBJECTS, Subject};

/// How many studies are added.
pub(super) const DAILY: Daily = Daily { kind: 101, a_day: 5 };

/// After this many updates the study no longer changes.
const UPDATES_MAX: u64 = 60;
/// A study without updates for this long has the status unknown.
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
    place: DayPosition,
    random: Random,
    state: State,
    today: Date,
    value: OnceCell<Value>,
}

/// The properties that updates change.
struct State {
    status: &'static str,
    last_known: Option<&'static str>,
    why_stopped: Option<&'static str>,
    /// By how many days the end was postponed.
    late: u64,
    sites: u64,
    enrollment: u64,
    completed: Option<Date>,
    results: Option<Date>,
}

impl Study {
    pub(super) fn of(world: &World, place: DayPosition) -> Self {
        let (random, number) = (DAILY.random(world, place), place.number());
        let (state, updated) = State::on(world.today, place, random);
        let alias = random.once_in(1, 40).then(|| format!("NCT{:08}", 5_000_000 + number));
        let (nct_id, first_posted) = (format!("NCT{:08}", 7_000_000 + number), place.day);
        Self { nct_id, alias, first_posted, updated, place, random, state, today: world.today, value: OnceCell::new() }
    }

    /// Changes the whole record, for a study with a part to play. It was last updated on a day.
    pub(super) fn replace(&mut self, updated: Date, change: impl FnOnce(&mut Value)) {
        (self.alias, self.updated) = (None, updated);
        let mut value = self.record();
        change(&mut value);
        self.value = OnceCell::from(pruned(value).unwrap_or(Value::Null));
    }

    /// The value that determines whether a fault applies.
    pub(super) fn random(&self) -> Random {
        self.random
    }

    /// Builds the whole record without empty fields.
    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| pruned(self.record()).unwrap_or(Value::Null))
    }

    fn subject(&self) -> &'static Subject {
        self.random.choose(2, SUBJECTS)
    }

    fn record(&self) -> Value {
        let (random, state) = (self.random, &self.state);
        let kind = kind_of(random);
        let (sponsor, class) = sponsor(random);
        let (condition, (treatment_kind, treatment)) =
            (random.pick(5, self.subject().conditions), *random.choose(6, self.subject().treatments));
        let brief = match random.below(7, 4) {
            0 => format!("{treatment} for {condition} \\[{}\\]", random.pick(8, &["HARBOR", "SUMMIT", "LANTERN"])),
            1 => format!("Study of {treatment} in Participants With {condition}"),
            2 => format!("{treatment} Versus Standard of Care in {condition}"),
            _ => format!("Long-Term Outcomes of {treatment} in {condition}"),
        };
        let collaborators: Vec<Value> =
            COLLABORATORS.iter().enumerate().filter(|(at, _)| random.once_in(10 + *at as u64, 4)).map(|(_, one)| named(*one)).collect();
        let is_randomized = kind == "INTERVENTIONAL" && random.once_in(9, 2);
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
                    "acronym": random.once_in(14, 5).then(|| random.pick(8, &["HARBOR", "SUMMIT", "LANTERN"])),
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
                    "phases": phases(random, kind, treatment_kind),
                    "designInfo": {"allocation": is_randomized.then_some("RANDOMIZED")},
                    "enrollmentInfo": {
                        "count": state.enrollment, "type": if state.completed.is_some() { "ACTUAL" } else { "ESTIMATED" },
                    },
                },
                "armsInterventionsModule": {"armGroups": [{"label": "Treatment", "type": "EXPERIMENTAL"}], "interventions": interventions},
                "outcomesModule": {"primaryOutcomes": [{"measure": format!("Change in {condition}"), "timeFrame": "52 weeks"}]},
                "eligibilityModule": {
                    "sex": "ALL", "minimumAge": if random.once_in(15, 6) { "2 Years" } else { "18 Years" }, "healthyVolunteers": false,
                    "stdAges": ["ADULT", "OLDER_ADULT"],
                },
                "contactsLocationsModule": {"locations": self.sites()},
            },
            "derivedSection": {"miscInfoModule": {"versionHolder": last_business_day(self.today).to_string()}},
            "hasResults": state.results.is_some(),
        })
    }

    fn status(&self) -> Value {
        let (random, state) = (self.random, &self.state);
        let begun = state.status != "NOT_YET_RECRUITING" && state.status != "WITHDRAWN";
        let start = start(self.place, random);
        let primary = after(start, 150 + random.below(20, 700) + state.late);
        let ended = |planned: Date| state.completed.map_or((planned, "ESTIMATED"), |day| (day_before(day, 30), "ACTUAL"));
        let (primary, primary_type) = ended(primary);
        let (completion, completion_type) = ended(after(primary, 30 + random.below(21, 200)));
        let moment = |tag: u64, day: Date, kind: &str| {
            // Some dates have only a month, and a few do not say whether they are actual or estimated.
            let date = if random.once_in(tag, 4) { day.strftime("%Y-%m").to_string() } else { day.to_string() };
            json!({"date": date, "type": (!random.once_in(tag + 1, 20)).then_some(kind)})
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
                if self.random.once_in(tag + 100, 5) {
                    let (facility, city, country, lat, lon) = *self.random.choose(tag, SITES_ABROAD);
                    return json!({"facility": facility, "status": status, "city": city, "country": country, "geoPoint": {"lat": lat, "lon": lon}});
                }
                let home = self.random.choose(tag, INSTITUTIONS);
                json!({
                    "facility": home.name, "status": status, "city": home.city, "state": home.state.1, "zip": home.postal_code,
                    "country": "United States",
                })
            })
            .collect()
    }
}

impl State {
    /// Returns the state on a day, and the day of the last update.
    fn on(today: Date, place: DayPosition, random: Random) -> (Self, Date) {
        let is_access = kind_of(random) == "EXPANDED_ACCESS";
        let status = match start(place, random) > place.day {
            _ if is_access => "AVAILABLE",
            true => "NOT_YET_RECRUITING",
            false => "RECRUITING",
        };
        let (sites, enrollment) = (random.below(16, 6), 20 + random.below(17, 600));
        let (last_known, why_stopped, completed, results) = (None, None, None, None);
        let mut state = Self { status, last_known, why_stopped, late: 0, sites, enrollment, completed, results };
        let mut updated = place.day;
        if random.once_in(18, 30) {
            if updated < day_before(today, SILENT_DAYS) && !is_access {
                (state.last_known, state.status) = (Some(state.status), "UNKNOWN");
            }
            return (state, updated);
        }
        for update in 0..UPDATES_MAX {
            let day = business_day_after(updated, 10 + random.below(200 + update, 60));
            if day > today || state.is_final() {
                break;
            }
            state.update(day, random, 300 + update);
            updated = day;
        }
        (state, updated)
    }

    fn is_final(&self) -> bool {
        matches!(self.status, "TERMINATED" | "WITHDRAWN" | "NO_LONGER_AVAILABLE") || self.results.is_some()
    }

    fn update(&mut self, day: Date, random: Random, tag: u64) {
        match random.below(tag, 6) {
            0..2 => self.advance(day, random, tag + 1_000),
            2..4 => self.late += 60 + random.below(tag + 2_000, 120),
            4 => self.sites += 1,
            _ => self.enrollment += 10,
        }
    }

    fn advance(&mut self, day: Date, random: Random, tag: u64) {
        let mut stopped = |status| {
            self.why_stopped = Some(random.pick(tag + 1, REASONS));
            status
        };
        self.status = match self.status {
            "AVAILABLE" => "NO_LONGER_AVAILABLE",
            "NOT_YET_RECRUITING" if random.once_in(tag, 12) => stopped("WITHDRAWN"),
            "RECRUITING" if random.once_in(tag, 10) => stopped("TERMINATED"),
            "RECRUITING" if random.once_in(tag, 9) => stopped("SUSPENDED"),
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

fn start(place: DayPosition, random: Random) -> Date {
    day_before(after(place.day, random.below(19, 120)), 60)
}

fn kind_of(random: Random) -> &'static str {
    match random.below(3, 40) {
        0 => "EXPANDED_ACCESS",
        1..9 => "OBSERVATIONAL",
        _ => "INTERVENTIONAL",
    }
}

fn sponsor(random: Random) -> (&'static str, &'static str) {
    *random.choose(4, SPONSORS)
}

fn named((name, class): (&str, &str)) -> Value {
    json!({"name": name, "class": class})
}

/// Returns the phases, of which there may be two; none where they do not apply.
fn phases(random: Random, kind: &str, treatment: &str) -> Vec<&'static str> {
    if kind != "INTERVENTIONAL" {
        return Vec::new();
    }
    if !matches!(treatment, "DRUG" | "BIOLOGICAL" | "GENETIC") {
        return vec!["NA"];
    }
    let all: [&[&str]; 7] = [&["PHASE1"], &["PHASE1", "PHASE2"], &["PHASE2"], &["PHASE2"], &["PHASE3"], &["PHASE4"], &["EARLY_PHASE1"]];
    random.choose(22, &all).to_vec()
}

/// Removes empty fields from a value; `None` if nothing remains.
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

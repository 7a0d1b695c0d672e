//! What is known of the permits for construction on a parcel, and whether the value of its building has risen since.
//!
//! The facts about a permit of a parcel are kept together, from the assessor and from the city, whose number the assessor repeats. A project is finished when the
//! assessed value of the building is higher in a later year of assessment than in that of the issue.

use std::collections::BTreeMap;

use crate::record::permit::{Building, Permit};
use jiff::civil::Date;
use property::permits::{is_major, job_code};
use schemas::facts::parcels::ParcelFact;
use schemas::facts::permits::PermitFact;
use serde::{Deserialize, Serialize};
use texts::masked_text::masked_work;

/// The projects that are kept of a parcel, those that were issued last.
const PROJECTS_MAX: usize = 50;
/// The facts that are kept of a project.
const FACTS_MAX: usize = 6;
/// The newest years of assessment of which the value of the building is kept.
const YEARS_MAX: usize = 8;
/// A larger amount is a mistake: the assessor cannot enter it.
const AMOUNT_MAX: i64 = 2_147_483_647;
/// What the streams of the assessor begin with.
const ASSESSOR: &str = "cook.";
/// What the streams of cities begin with: Chicago, and Pittsburgh in Allegheny County.
const CITIES: [&str; 2] = ["chicago.", "allegheny."];
/// The statuses of the city that end a permit.
const CITY_CLOSED: [&str; 5] = ["COMPLETE", "COMPLETED", "CANCELLED", "CANCELED", "REVOKED"];
/// The status of the assessor that ends a permit.
const CLOSED: &str = "CLOSED";
/// How the city calls permits for new construction.
const CITY_NEW: &str = "NEW CONSTRUCTION";

/// The facts about a project, by their keys.
pub(super) type Facts = BTreeMap<String, PermitFact>;

/// What is known of the projects on a parcel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Permits {
    /// The assessed value of the building by year; 0 for a parcel without one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    buildings: BTreeMap<i64, i64>,
    /// The projects by the number of their permit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) projects: BTreeMap<String, Facts>,
}

/// Whether a stream is that of a city.
pub(super) fn is_of_city(stream: &str) -> bool {
    CITIES.iter().any(|city| stream.starts_with(city))
}

/// The number by which facts are of one project: that of the city or village, which the assessor repeats.
pub(super) fn number(fact: &PermitFact) -> String {
    let number = if fact.local_number.is_empty() { &fact.number } else { &fact.local_number };
    number.replace('/', " ")
}

impl Permits {
    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the value of the building of a year, at the last stage that has values.
    pub(super) fn build(&mut self, fact: &ParcelFact) {
        let stages = [(fact.board, fact.board_building), (fact.certified, fact.certified_building), (fact.mailed, fact.mailed_building)];
        match stages.into_iter().find(|(total, _)| total.is_some()) {
            Some((_, building)) => _ = self.buildings.insert(fact.year, building.unwrap_or_default()),
            None => _ = self.buildings.remove(&fact.year),
        }
        while self.buildings.len() > YEARS_MAX {
            self.buildings.pop_first();
        }
    }

    /// Takes a fact about a project, without names of persons. One that has another number now leaves the project of its number before.
    pub(super) fn take(&mut self, key: &str, fact: &PermitFact) {
        self.remove(key);
        let facts = self.projects.entry(number(fact)).or_default();
        facts.insert(key.to_owned(), PermitFact { description: masked_work(&fact.description), ..fact.clone() });
        drop_earliest(facts, FACTS_MAX, |fact| fact.issued.clone());
        drop_earliest(&mut self.projects, PROJECTS_MAX, |facts| facts.values().map(|fact| fact.issued.clone()).max().unwrap_or_default());
    }

    /// Forgets a fact.
    pub(super) fn remove(&mut self, key: &str) {
        self.projects.retain(|_, facts| {
            facts.remove(key);
            !facts.is_empty()
        });
    }

    /// The value of the building around the issue of a permit and now.
    fn building(&self, issued: Option<Date>) -> Building {
        let Some(issued) = issued else { return Building::default() };
        let year = i64::from(issued.year());
        let before = self.buildings.range(..=year).next_back().or_else(|| self.buildings.range(year..).next());
        let Some((base_year, base)) = before.map(|(year, value)| (*year, *value)) else { return Building::default() };
        let risen_in = self.buildings.range(base_year + 1..).find(|(_, value)| **value > base).map(|(year, _)| *year);
        let latest = self.buildings.last_key_value();
        Building {
            year: Some(base_year),
            value: Some(base),
            latest_year: latest.map(|(year, _)| *year),
            latest_value: latest.map(|(_, value)| *value),
            risen_in,
        }
    }

    /// The job code of a finished project, and the months from its issue to January of the first year of assessment with a higher value; `None` if it is not
    /// finished, or the value when it was issued is not known.
    pub(super) fn case(&self, number: &str) -> Option<(String, i64)> {
        let permit = self.permit(self.projects.get(number)?, number);
        let issued = permit.issued_on().filter(|_| permit.assessable && !permit.job_code.is_empty())?;
        let year = i64::from(issued.year());
        let risen_in = permit.building.risen_in.filter(|_| permit.building.year.is_some_and(|base| base <= year))?;
        let months = (risen_in - year) * 12 + 1 - i64::from(issued.month());
        (months > 0).then_some((permit.job_code, months))
    }

    /// The permit of a project.
    pub(super) fn permit(&self, facts: &Facts, number: &str) -> Permit {
        let latest = |is_own: fn(&str) -> bool| {
            let own = facts.iter().filter(|(_, fact)| is_own(&fact.stream));
            own.max_by_key(|(key, fact)| (&fact.issued, *key)).map(|(_, fact)| fact)
        };
        let (assessor, city) = (latest(|stream| stream.starts_with(ASSESSOR)), latest(is_of_city));
        let both = || [assessor, city].into_iter().flatten();
        let first = |text: fn(&PermitFact) -> &String| both().map(text).find(|text| !text.is_empty()).cloned().unwrap_or_default();
        let is_city_new = city.is_some_and(|fact| fact.permit_type.to_uppercase().contains(CITY_NEW));
        let judged = assessor.filter(|fact| !fact.assessable.is_empty());
        let is_status =
            |fact: Option<&PermitFact>, closed: &[&str]| fact.is_some_and(|fact| closed.contains(&fact.status.to_uppercase().as_str()));
        let reported = both().find_map(|fact| fact.amount);
        let issued = first(|fact| &fact.issued);
        let mut streams: Vec<String> = facts.values().map(|fact| fact.stream.clone()).collect();
        streams.sort_unstable();
        streams.dedup();
        let mut permit = Permit {
            number: number.to_owned(),
            streams,
            status: first(|fact| &fact.status),
            city_status: city.map(|fact| fact.status.clone()).unwrap_or_default(),
            closed: is_status(assessor, &[CLOSED]) || is_status(city, &CITY_CLOSED),
            assessable: judged.map_or(is_city_new, |fact| fact.assessable.to_uppercase().starts_with('A')),
            major: is_city_new || assessor.is_some_and(is_major),
            job_code: job_code(assessor, city),
            amount: reported.filter(|amount| *amount <= AMOUNT_MAX),
            // Facts that older versions kept can have names.
            description: masked_work(&first(|fact| &fact.description)),
            municipality: first(|fact| &fact.municipality),
            parcels: both().filter_map(|fact| fact.parcels).max(),
            building: self.building(issued.parse().ok()),
            issued,
            ..Permit::default()
        };
        let has_judgement = judged.is_some();
        permit.remarks = remarks(&permit, &both().collect::<Vec<_>>(), has_judgement, reported);
        permit
    }
}

/// Drops the entries with the least ranks until so many are left.
pub(super) fn drop_earliest<T>(entries: &mut BTreeMap<String, T>, most: usize, rank: impl Fn(&T) -> String) {
    while entries.len() > most {
        let first = entries.iter().min_by_key(|(key, entry)| (rank(entry), *key)).map(|(key, _)| key.clone());
        entries.remove(&first.unwrap_or_default());
    }
}

/// What else to know about a permit.
fn remarks(permit: &Permit, facts: &[&PermitFact], has_judgement: bool, reported: Option<i64>) -> Vec<String> {
    let mut remarks = Vec::new();
    if facts.iter().all(|fact| fact.is_pin_padded) {
        remarks
            .push("the publisher names the building only, by 10 digits; the parcel is taken to be the one that ends with 0000".to_owned());
    }
    if permit.assessable && !has_judgement {
        remarks.push("the assessor has not said that it is assessable; the city calls it new construction".to_owned());
    }
    if reported.is_some() && permit.amount.is_none() {
        remarks.push(format!("the reported amount is above {AMOUNT_MAX} dollars and taken to be a mistake"));
    }
    let issued_in = permit.issued_on().map(|day| i64::from(day.year()));
    match (permit.building.year, issued_in) {
        (None, _) => remarks.push("no assessed value of the building is recorded, so a rise cannot be seen".to_owned()),
        (Some(year), Some(issued)) if year > issued => {
            remarks.push(format!("the first recorded value of the building is that of {year}: an earlier rise cannot be seen"));
        }
        _ => {}
    }
    remarks
}

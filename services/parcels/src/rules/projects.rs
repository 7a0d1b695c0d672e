//! Projects: the records of permits for construction, and how long projects of a job code take.
//!
//! The months from the issue of a permit until the value of the building rises are counted for each job code; the median of at least 30 finished projects is the
//! length of its window. Nothing depends on today: readers compute windows.

use std::collections::{BTreeMap, BTreeSet};

use crate::county::County;
use crate::record::Parcel;
use crate::record::permit::{Median, Permit, medians_name, permit_id};
use schemas::facts::permits::PermitFact;
use texts::masked_text::masked_work;
use texts::owner_names::without_recipient;
use texts::{allegheny, cook};

use super::permits::{is_of_city, number};
use super::roll::Roll;
use super::state::ParcelsRules;
use fold::records::{DecisionRow, State};
use fold::service::Undecided;

/// The median of a job code needs so many cases.
const CASES_MIN: i64 = 30;
/// The stream of permits of the City of Pittsburgh.
const PITTSBURGH: &str = "allegheny.pli";
/// The most job codes with a median.
const CODES_MAX: usize = 500;

/// The record of a project of a parcel; `None` if nothing is known of it.
fn record(roll: &Roll, pin: &str, number: &str) -> Option<Parcel> {
    let facts = roll.permits.projects.get(number)?;
    let permit = roll.permits.permit(facts, number);
    let text = |text: fn(&PermitFact) -> &String| facts.values().map(text).find(|text| !text.is_empty()).cloned().unwrap_or_default();
    let published = || cook::township_code(&text(|fact| &fact.township)).unwrap_or_default().to_owned();
    let township_code = roll.area().map_or_else(published, |area| area.township);
    let address = without_recipient(&text(|fact| &fact.address));
    let class = roll.class().unwrap_or_default().to_owned();
    let county = County::of_pin(pin);
    let (class_label, township) = match (&roll.details, county) {
        (Some(details), _) => (details.use_label.clone(), details.municipality.clone()),
        // Its assessment is not known yet.
        (None, County::Allegheny) => (String::new(), String::new()),
        (None, County::Cook) => (cook::class_label(&class).to_owned(), cook::township_name(&township_code).unwrap_or_default().to_owned()),
    };
    Some(Parcel {
        id: permit_id(county.name(), pin, number),
        pin: pin.to_owned(),
        county: county.name().to_owned(),
        class_label,
        class,
        township,
        township_code,
        address: if address.is_empty() { roll.shown_address() } else { address },
        url: url(county, pin, &permit),
        permit: Some(Box::new(permit)),
        ..Parcel::default()
    })
}

/// The row of a permit at the publisher.
fn url(county: County, pin: &str, permit: &Permit) -> String {
    let number = permit.number.replace(' ', "%20");
    let is_city_alone = permit.streams.iter().all(|stream| is_of_city(stream));
    match county {
        County::Allegheny => format!(
            "https://data.wprdc.org/api/3/action/datastore_search?resource_id=f4d1177a-f597-4c32-8cbf-7885f56253f6&filters=%7B%22permit_id%22%3A%22{number}%22%7D"
        ),
        County::Cook if is_city_alone => format!("https://data.cityofchicago.org/resource/ydr8-5enu.json?permit_={number}"),
        County::Cook => format!("https://datacatalog.cookcountyil.gov/resource/6yjf-dfxs.json?pin={pin}"),
    }
}

/// The record that a fact about a permit changes.
pub(super) fn read(fact: &PermitFact) -> DecisionRow {
    DecisionRow::Record(permit_id(County::of_pin(&fact.pin).name(), &fact.pin, &number(fact)))
}

/// The parcel of a fact about a permit, by its key: `STREAM/PIN/NUMBER`.
pub(super) fn pin_of(key: &str) -> Option<&str> {
    let (stream, rest) = key.split_once('/')?;
    let (pin, _) = rest.split_once('/').filter(|_| stream.ends_with(".permits") || stream == PITTSBURGH)?;
    [cook::PIN_DIGITS, allegheny::PIN_CHARS].contains(&pin.len()).then_some(pin)
}

/// Decides the records of the projects of a parcel again, and counts those that are finished.
pub(super) fn decide(state: &mut State<'_, ParcelsRules>, pin: &str, before: &Roll, now: &Roll) -> Result<(), Undecided> {
    let numbers = before.permits.projects.keys().chain(now.permits.projects.keys());
    let numbers: BTreeSet<&String> = numbers.collect();
    for number in numbers {
        let (old, new) = (before.permits.case(number), now.permits.case(number));
        if old != new {
            count(state, old, -1)?;
            count(state, new, 1)?;
        }
        match record(now, pin, number) {
            Some(record) => state.put(record)?,
            None => {
                let Some(mut record) = state.record(&permit_id(County::of_pin(pin).name(), pin, number))? else { continue };
                if let Some(permit) = &mut record.permit {
                    permit.withdrawn = true;
                    // A record of an older version can have names.
                    permit.description = masked_work(&permit.description);
                }
                state.put(record)?;
            }
        }
    }
    Ok(())
}

/// Counts a finished project, and sets the median of its job code.
fn count(state: &mut State<'_, ParcelsRules>, case: Option<(String, i64)>, change: i64) -> Result<(), Undecided> {
    let Some((code, months)) = case else { return Ok(()) };
    let key = format!("cases/{}/{code}", cook::COUNTY);
    let mut cases: BTreeMap<i64, i64> = state.get(&key)?.unwrap_or_default();
    *cases.entry(months).or_default() += change;
    cases.retain(|_, count| *count > 0);
    state.remember(&key, Some(&cases).filter(|cases| !cases.is_empty()))?;
    let median = median(&cases);
    let name = medians_name(cook::COUNTY);
    let mut medians: BTreeMap<String, Median> = state.get(&name)?.unwrap_or_default();
    // The number of cases alone is no reason to write the row again: it has a version for each change.
    if medians.get(&code).map(|known| known.months) == median.map(|median| median.months) {
        return Ok(());
    }
    match median {
        Some(median) if medians.len() < CODES_MAX || medians.contains_key(&code) => _ = medians.insert(code, median),
        Some(_) => return Ok(()),
        None => _ = medians.remove(&code),
    }
    state.remember(&name, Some(&medians))
}

/// The median of the months of cases, rounded up; `None` for fewer than 30.
fn median(cases: &BTreeMap<i64, i64>) -> Option<Median> {
    let total: i64 = cases.values().sum();
    let at = |place: i64| {
        let mut passed = 0;
        cases.iter().find(|(_, count)| {
            passed += **count;
            passed > place
        })
    };
    let ((low, _), (high, _)) = at((total - 1) / 2).zip(at(total / 2)).filter(|_| total >= CASES_MIN)?;
    Some(Median { months: (low + high + 1) / 2, cases: total })
}

#[cfg(test)]
mod tests;

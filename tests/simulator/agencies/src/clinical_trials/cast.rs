//! Studies with a part to play: trials of one company that are stopped, withdrawn, completed or postponed on a known day after the start,
//! one that is stopped from the beginning, and two whose date is only a month.

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::days::{A_DAY_MAX, DayPosition, after, business_day_after};
use simulated_world::world::{World, day_before};

use super::study::Study;
use crate::edgar::BIOTECHS;

/// The days from the start to the next business day on which the registry shows the changes.
const CHANGED_DAYS: u64 = 3;
/// The days from registration to the start.
const POSTED_DAYS: i64 = 40;

/// A study: its title, and what the registry says about it before and after the day of the changes.
struct Part {
    title: &'static str,
    status: [&'static str; 2],
    /// The end of data taking, in days after the start; from the day of the changes on this many months later.
    primary_days: u64,
    later_months: i64,
    /// Whether the end is given as a month.
    is_month: bool,
}

const fn part(title: &'static str, status: [&'static str; 2], primary_days: u64) -> Part {
    Part { title, status, primary_days, later_months: 0, is_month: false }
}

const PARTS: &[Part] = &[
    part("Calderinib in a Trial That Is Stopped", ["RECRUITING", "TERMINATED"], 90),
    part("Calderinib in a Trial That Never Enrolls", ["NOT_YET_RECRUITING", "WITHDRAWN"], 120),
    part("Calderinib in a Trial That Is Paused", ["RECRUITING", "SUSPENDED"], 150),
    part("Calderinib in a Trial That Is Completed", ["ACTIVE_NOT_RECRUITING", "COMPLETED"], 60),
    Part { later_months: 3, ..part("Calderinib in a Trial That Is Postponed", ["RECRUITING", "RECRUITING"], 75) },
    Part { is_month: true, ..part("Calderinib in a Trial That Ends in a Month", ["RECRUITING", "RECRUITING"], 200) },
    Part { is_month: true, ..part("Calderinib in a Trial That Ends Soon", ["RECRUITING", "RECRUITING"], 25) },
    part("Calderinib in a Trial That Was Stopped", ["TERMINATED", "TERMINATED"], 100),
];

/// Returns the studies as the registry shows them today.
pub(super) fn all(world: &World) -> impl Iterator<Item = Study> {
    PARTS.iter().enumerate().map(|(index, part)| study(world, index as u64, part)).chain(of_rounds(world))
}

/// The ends of data taking of the study of rounds, in days after the start: each round moves it to the next one of so many.
const ROUND_DAYS: u64 = 300;
const ROUNDS_MAX: u64 = 60;

/// Returns the study whose date each round moves; none before the first round.
fn of_rounds(world: &World) -> Option<Study> {
    let last = world.rounds.last()?;
    let index = PARTS.len() as i64;
    let place = DayPosition { day: day_before(world.first_today, POSTED_DAYS + index), index: A_DAY_MAX - 1 };
    let primary_days = ROUND_DAYS + world.rounds.len() as u64 % ROUNDS_MAX;
    let part = part("Calderinib in a Trial That Is Rescheduled Often", ["RECRUITING", "RECRUITING"], primary_days);
    let mut study = Study::of(world, place);
    study.replace(last.day, |value| change(value, world.first_today, last.day, &part, false));
    Some(study)
}

fn study(world: &World, index: u64, part: &Part) -> Study {
    // The last number of a day, which no other study has.
    let place = DayPosition { day: day_before(world.first_today, POSTED_DAYS + index as i64), index: A_DAY_MAX - 1 };
    let changed_on = business_day_after(world.first_today, CHANGED_DAYS);
    let is_changed = world.today >= changed_on;
    let moves = part.status[0] != part.status[1] || part.later_months > 0;
    let updated = if is_changed && moves { changed_on } else { place.day };
    let mut study = Study::of(world, place);
    study.replace(updated, |value| change(value, world.first_today, updated, part, is_changed));
    study
}

fn change(value: &mut Value, first: Date, updated: Date, part: &Part, is_changed: bool) {
    let status = part.status[usize::from(is_changed)];
    let later = if is_changed { part.later_months } else { 0 };
    let primary = after(first, part.primary_days).saturating_add(later.months());
    let (primary, kind) = if status == "COMPLETED" { (day_before(updated, 10), "ACTUAL") } else { (primary, "ESTIMATED") };
    let primary = if part.is_month { primary.strftime("%Y-%m").to_string() } else { primary.to_string() };
    let protocol = &mut value["protocolSection"];
    protocol["identificationModule"]["nctIdAliases"] = json!([]);
    protocol["identificationModule"]["briefTitle"] = json!(part.title);
    protocol["sponsorCollaboratorsModule"]["leadSponsor"] = json!({"name": BIOTECHS[0].sponsor, "class": "INDUSTRY"});
    protocol["designModule"]["studyType"] = json!("INTERVENTIONAL");
    protocol["designModule"]["phases"] = json!(["PHASE3"]);
    protocol["armsInterventionsModule"]["interventions"] = json!([
        {"type": "DRUG", "name": "Placebo", "armGroupLabels": ["Control"]},
        {"type": "DRUG", "name": "Calderinib", "armGroupLabels": ["Treatment"]},
    ]);
    let stopped = matches!(status, "TERMINATED" | "WITHDRAWN" | "SUSPENDED").then_some("Business decision, not related to safety");
    let dates = &mut protocol["statusModule"];
    dates["overallStatus"] = json!(status);
    dates["lastKnownStatus"] = Value::Null;
    dates["whyStopped"] = json!(stopped);
    dates["primaryCompletionDateStruct"] = json!({"date": primary, "type": kind});
    dates["completionDateStruct"] = json!({"date": after(first, part.primary_days + 200).to_string(), "type": "ESTIMATED"});
    dates["resultsFirstPostDateStruct"] = Value::Null;
    value["hasResults"] = json!(false);
}

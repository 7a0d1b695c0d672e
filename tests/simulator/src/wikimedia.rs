//! Wikimedia: the most read pages of the English Wikipedia on a day. A list appears on the next morning; every eleventh day it takes two days
//! longer. Some pages have equal views and share a rank; some are no articles.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan};
use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::{Fault, Plan};
use simulated_world::random::Random;
use simulated_world::world::{World, brand, capitalised};

/// What the paths of lists begin with.
const PATH: &str = "/api/rest_v1/metrics/pageviews/top/en.wikipedia/all-access/";
/// When a list appears, in hours after the end of its day.
const SHOWN_AFTER_HOURS: i64 = 6;
/// How much longer a late list takes.
const LATE_HOURS: i64 = 48;
/// The rows of a list.
const ROWS_MAX: u64 = 1_000;
/// Pages of every day, with their share of the views in a thousand.
const ALWAYS: &[(&str, u64)] = &[
    ("Main_Page", 1_000),
    ("Special:Search", 300),
    ("Baahubali_2:_The_Conclusion", 40),
    ("Wikipedia:Featured_pictures", 30),
    ("-", 25),
    (".xxx", 22),
    ("User_talk:Example", 20),
    ("AC/DC", 18),
    ("Beyoncé", 17),
    ("Special:Book", 16),
    ("Portal:Current_events", 15),
    ("“Heroes”_(David_Bowie_album)", 14),
    ("東京", 13),
];

/// Whether a path is that of a list.
pub(crate) fn is_list(path: &str) -> bool {
    path.starts_with(PATH)
}

/// Answers the request for a day's list.
pub(crate) fn answer(world: &World, path: &str, at_ms: i64, plan: &Plan) -> Answer {
    let parts: Vec<i16> = path.trim_start_matches(PATH).split('/').filter_map(|part| part.parse().ok()).collect();
    let day = match parts.as_slice() {
        [year, month, day] => Date::new(*year, i8::try_from(*month).unwrap_or(0), i8::try_from(*day).unwrap_or(0)).ok(),
        _ => None,
    };
    let Some(day) = day.filter(|day| is_shown(*day, at_ms) && !plan.has(Fault::Outage)) else { return not_yet() };
    let rows = rows(world, day).into_iter().map(|(article, views, rank)| {
        let mut row = json!({"article": article, "views": views, "rank": rank});
        plan.schema.apply(&mut row);
        row
    });
    let rows: Vec<Value> = rows.collect();
    let body = json!({"items": [{
        "project": "en.wikipedia", "access": "all-access",
        "year": format!("{:04}", day.year()), "month": format!("{:02}", day.month()), "day": format!("{:02}", day.day()),
        "articles": rows,
    }]});
    Answer::json(body.to_string().into_bytes())
}

fn not_yet() -> Answer {
    let body = json!({
        "type": "https://mediawiki.org/wiki/HyperSwitch/errors/not_found", "title": "Not found.", "method": "get",
        "detail": "The date(s) you used are valid, but we either do not have data for those date(s), or the project you asked for is not loaded yet.",
    });
    Answer { status: 404, content_type: Some("application/problem+json"), ..Answer::json(body.to_string().into_bytes()) }
}

/// Whether the list of a day is there at a time.
fn is_shown(day: Date, at_ms: i64) -> bool {
    let Ok(end) = day.saturating_add(1.day()).to_zoned(TimeZone::UTC) else { return false };
    let number = end.timestamp().as_second() / 86_400;
    let late = if number % 11 == 4 { LATE_HOURS } else { 0 };
    let shown = end.timestamp().saturating_add(SignedDuration::from_hours(SHOWN_AFTER_HOURS + late));
    shown.is_ok_and(|shown| at_ms >= shown.as_millisecond())
}

/// The rows of a day: title, views, rank.
fn rows(world: &World, day: Date) -> Vec<(String, u64, u64)> {
    let of_day = Random::new(world.seed, 311, u64::from(day.day_of_year().unsigned_abs()) + 1_000 * u64::from(day.year().unsigned_abs()));
    let mut rows: Vec<(String, u64)> = Vec::new();
    for (at, (article, share)) in (0_u64..).zip(ALWAYS) {
        rows.push(((*article).to_owned(), share * 4_000 + of_day.below(at, 2_000)));
    }
    for number in 0..world.articles - ALWAYS.len() as u64 {
        let random = Random::new(world.seed, 312, number);
        let article = format!("{}_{}", brand(random, 0).replace(' ', "_"), number + 1);
        // Rounded, so that some are equal.
        rows.push((article, (50_000 / (number / 8 + 2) + of_day.below(1_000 + number, 900)) / 10 * 10 + 100));
    }
    for burst in world.script.bursts.iter().filter(|burst| burst.views > 0) {
        let first = day_of(burst.from_ms);
        let last = day_of(burst.from_ms + burst.hours * 3_600_000);
        if (first..=last).contains(&day) {
            rows.push((capitalised(&burst.phrase.replace(' ', "_")), burst.views));
        }
    }
    rows.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    rows.truncate(usize::try_from(ROWS_MAX).unwrap_or(usize::MAX));
    let mut ranked: Vec<(String, u64, u64)> = Vec::with_capacity(rows.len());
    for (place, (article, views)) in (1_u64..).zip(rows) {
        // Equal views share a rank, and the next one is left out.
        let rank = ranked.last().filter(|(_, before, _)| *before == views).map_or(place, |(_, _, rank)| *rank);
        ranked.push((article, views, rank));
    }
    ranked
}

fn day_of(at_ms: i64) -> Date {
    jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default().to_zoned(TimeZone::UTC).date()
}

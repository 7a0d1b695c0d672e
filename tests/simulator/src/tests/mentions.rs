//! The sites of stories and page views: what every answer has, and what callers add.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::date;
use schemas::clock::Clock;
use serde_json::Value;

use crate::{Burst, Options, ShownStory, Simulator};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// 2026-11-20T22:00:00Z.
const NOW_MS: i64 = 1_795_212_000_000;

fn simulator(at_ms: i64) -> Arc<Simulator> {
    let clock = Clock::Fixed(jiff::Timestamp::from_millisecond(at_ms).unwrap());
    Simulator::new(Options { clock, today: date(2026, 11, 20), ..Options::default() })
}

fn search(sim: &Simulator, from_ms: i64, to_ms: i64) -> Value {
    let query =
        format!("tags=story&numericFilters=created_at_i%3E%3D{}%2Ccreated_at_i%3C{}&hitsPerPage=1000", from_ms / 1_000, to_ms / 1_000);
    serde_json::from_slice(&sim.answer("/api/v1/search_by_date", &query).unwrap().body).unwrap()
}

/// The stories of some days until now as they are shown.
fn stories(at_ms: i64, days: i64) -> Vec<ShownStory> {
    simulator(at_ms).stories(at_ms - days * DAY_MS, at_ms)
}

/// Proves that about 1,200 stories are published on a day, more in the daytime, and that no word of the background rises on any day.
#[test]
fn the_background_is_steady() {
    let all = stories(NOW_MS, 28);
    assert!((1_000 * 28..1_300 * 28).contains(&all.len()), "{}", all.len());
    let mut by_day: BTreeMap<&str, BTreeMap<i64, u32>> = BTreeMap::new();
    let lower: Vec<(i64, String)> = all.iter().map(|story| ((NOW_MS - story.created_ms) / DAY_MS, story.title.to_lowercase())).collect();
    for (day, title) in &lower {
        for word in title.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3) {
            *by_day.entry(word).or_default().entry(*day).or_default() += 1;
        }
    }
    let risen: Vec<_> = by_day
        .iter()
        .filter(|(_, days)| {
            let mean = f64::from(days.values().sum::<u32>()) / 28.0;
            days.values().any(|count| (f64::from(*count) + 2.0) / (mean + 2.0) >= 4.0)
        })
        .collect();
    assert!(by_day.len() > 500 && risen.is_empty(), "{risen:?}");
}

/// Proves that titles have entities, quotation marks and other scripts, that URLs are missing or null, that `nbHits` jumps, and that the
/// records have the fields of the search.
#[test]
fn answers_have_every_form() {
    let sim = simulator(NOW_MS);
    let answers: Vec<Value> = (0..96).map(|hour| search(&sim, NOW_MS - (hour + 1) * HOUR_MS, NOW_MS - hour * HOUR_MS)).collect();
    let hits: Vec<&Value> = answers.iter().flat_map(|answer| answer["hits"].as_array().unwrap()).collect();
    let titles: Vec<&str> = hits.iter().map(|hit| hit["title"].as_str().unwrap()).collect();
    for mark in ["&#x2F;", "&amp;", "&lt;", "“", "’", "用", "компилятор"] {
        assert!(titles.iter().any(|title| title.contains(mark)), "{mark}");
    }
    assert!(hits.iter().any(|hit| hit.get("url").is_none()) && hits.iter().any(|hit| hit.get("url").is_some_and(Value::is_null)));
    let jumps = answers.iter().filter(|answer| answer["nbHits"] != answer["hits"].as_array().unwrap().len()).count();
    assert!(
        jumps > 3
            && answers
                .iter()
                .all(|answer| answer["nbHits"] == answer["hits"].as_array().unwrap().len() || answer["exhaustiveNbHits"] == false)
    );
    assert_eq!(sim.answer("/api/v1/search_by_date", "tags=story").unwrap().status, 400);
}

/// Proves that with time some stories are indexed late, some disappear, some get another title, and points move; and that some are dated in
/// the future.
#[test]
fn stories_change_with_time() {
    let by_id = |at_ms: i64| -> BTreeMap<u64, ShownStory> {
        let to_ms = NOW_MS + HOUR_MS;
        simulator(at_ms).stories(NOW_MS - DAY_MS, to_ms).into_iter().map(|story| (story.id, story)).collect()
    };
    let (first, later) = (by_id(NOW_MS), by_id(NOW_MS + 8 * HOUR_MS));
    let both: Vec<(&ShownStory, &ShownStory)> = first.iter().filter_map(|(id, story)| Some((story, later.get(id)?))).collect();
    let is_ahead = |at_ms: i64| !simulator(at_ms).stories(at_ms + 1, at_ms + HOUR_MS).is_empty();
    assert!((0..48).any(|step| is_ahead(NOW_MS - step * HOUR_MS / 2)), "of the future");
    assert!(later.values().any(|story| story.created_ms < NOW_MS && !first.contains_key(&story.id)), "late");
    assert!(both.len() < first.len(), "gone");
    assert!(both.iter().any(|(one, other)| one.title != other.title) && both.iter().any(|(one, other)| one.points != other.points));
    assert!(both.iter().all(|(one, other)| (one.created_ms, &one.author, &one.url) == (other.created_ms, &other.author, &other.url)));
}

/// Proves that a burst has the stories and authors that were asked for in its hours, that an hour can be fuller than an answer, that a silence
/// has no stories and an outage no answers, and that stories can be removed and edited.
#[test]
fn callers_add_events() {
    let sim = simulator(NOW_MS);
    let from_ms = NOW_MS - 10 * HOUR_MS;
    let burst =
        |phrase: &str, authors: u64, views: u64| Burst { phrase: phrase.to_owned(), from_ms, hours: 5, stories: 20, authors, views };
    sim.add_burst(burst("agent mesh", 8, 250_000));
    sim.add_burst(burst("buy tokens", 1, 0));
    let of_phrase = |phrase: &str| -> Vec<ShownStory> {
        sim.stories(NOW_MS - DAY_MS, NOW_MS).into_iter().filter(|story| story.title.to_lowercase().contains(phrase)).collect()
    };
    let authors = |phrase: &str| of_phrase(phrase).iter().map(|story| story.author.clone()).collect::<BTreeSet<_>>().len();
    assert_eq!((of_phrase("agent mesh").len(), authors("agent mesh")), (20, 8));
    assert_eq!((of_phrase("buy tokens").len(), authors("buy tokens")), (20, 1));
    let burst = of_phrase("agent mesh");
    assert!(burst.iter().all(|story| (from_ms..from_ms + 5 * HOUR_MS).contains(&story.created_ms)));
    assert_eq!(burst.iter().map(|story| story.id).collect::<BTreeSet<_>>().len(), 20);
    sim.remove_story(burst[0].id);
    sim.edit_story(burst[1].id, "Something else");
    assert_eq!(of_phrase("agent mesh").len(), 18);

    sim.add_flood(NOW_MS - 30 * HOUR_MS);
    let full = search(&sim, NOW_MS - 30 * HOUR_MS, NOW_MS - 29 * HOUR_MS);
    assert!(full["hits"].as_array().unwrap().len() == 1_000 && full["nbHits"].as_u64() > Some(1_200));
    sim.add_silence(NOW_MS - 40 * HOUR_MS, 6);
    assert!(sim.stories(NOW_MS - 40 * HOUR_MS, NOW_MS - 34 * HOUR_MS).is_empty());
    sim.add_outage(NOW_MS - HOUR_MS, 6);
    assert_eq!(sim.answer("/api/v1/search_by_date", "numericFilters=created_at_i>=0,created_at_i<1").unwrap().status, 503);
}

/// Proves that a list of page views has ties that share a rank, pages of other namespaces, titles with a colon and the article of a burst; and
/// that it appears on the next morning, or two days later.
#[test]
fn page_views() {
    let list =
        |sim: &Simulator, day: &str| sim.answer(&format!("/api/rest_v1/metrics/pageviews/top/en.wikipedia/all-access/{day}"), "").unwrap();
    let sim = simulator(NOW_MS);
    sim.add_burst(Burst {
        phrase: "agent mesh".to_owned(),
        from_ms: NOW_MS - 3 * DAY_MS,
        hours: 24,
        stories: 20,
        authors: 8,
        views: 250_000,
    });
    let shown = list(&sim, "2026/11/17");
    assert_eq!(shown.status, 200);
    let body: Value = serde_json::from_slice(&shown.body).unwrap();
    let rows = body["items"][0]["articles"].as_array().unwrap();
    let titles: Vec<&str> = rows.iter().map(|row| row["article"].as_str().unwrap()).collect();
    for title in ["Main_Page", "Special:Search", "Baahubali_2:_The_Conclusion", "Agent_mesh"] {
        assert!(titles.contains(&title), "{title}");
    }
    assert!(rows.len() >= 600 && rows.windows(2).any(|pair| pair[0]["rank"] == pair[1]["rank"] && pair[0]["views"] == pair[1]["views"]));
    assert_eq!((list(&sim, "2026/11/20").status, list(&sim, "2026/13/45").status), (404, 404));
    let days: Vec<u16> = (1..=18).map(|day| list(&sim, &format!("2026/11/{day:02}")).status).collect();
    assert!(days.iter().all(|status| *status == 200), "{days:?}");
    let late = (0..11).filter(|day| {
        let sim = simulator(NOW_MS + day * DAY_MS);
        list(&sim, &(date(2026, 11, 19).saturating_add(jiff::Span::new().days(*day))).strftime("%Y/%m/%d").to_string()).status == 404
    });
    assert_eq!(late.count(), 1);
}

//! Facts about mentions: what a run of each hour finds of the simulated sites of stories and page views.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemas::clock::{Clock, SimulatedClock};
use serde_json::Value;
use simulator::{Burst, ShownStory};
use upstreams::Settings;

use crate::engine::{Engine, SimulatedUpstreams};

const HOUR_MS: i64 = 3_600_000;

/// The newest fact of each key.
async fn newest(engine: &Engine) -> (BTreeMap<String, Value>, Vec<Value>) {
    let facts = engine.export("mentions", false).await;
    (facts.iter().map(|fact| (fact["key"].as_str().unwrap().to_owned(), fact["data"].clone())).collect(), facts)
}

fn decoded(title: &str) -> String {
    [("&#x2F;", "/"), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")]
        .iter()
        .fold(title.to_owned(), |title, (entity, sign)| title.replace(entity, sign))
}

/// Proves that runs of every hour find exactly the stories that the site shows, through late, edited and removed stories, an hour with more
/// stories than an answer shows, an author who repeats himself, six hours without answers and six without stories; that the fact of an hour
/// follows those of its stories and is repeated only when their number changes; and that points that move append nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let first: Timestamp = "2026-11-18T00:05:00Z".parse().unwrap();
    let clock = SimulatedClock::new(first, Clock::Fixed(first));
    let simulated = SimulatedUpstreams::with_stories(5, 200, Clock::Simulated(clock), 400).await;
    let engine = Engine::open(dir.path(), Clock::Simulated(clock)).await;
    let settings = Settings { window_days: 2, backfill_days: 1, ..simulated.settings() };
    let at = |hour: i64| first + SignedDuration::from_hours(hour);
    let sim = &simulated.sim;
    sim.add_outage(at(10).as_millisecond(), 6);
    sim.add_silence(at(20).as_millisecond() / HOUR_MS * HOUR_MS, 6);
    sim.add_flood(at(30).as_millisecond());
    let burst = |phrase: &str, authors| Burst {
        phrase: phrase.to_owned(),
        from_ms: at(34).as_millisecond(),
        hours: 5,
        stories: 20,
        authors,
        views: 90_000,
    };
    sim.add_burst(burst("agent mesh", 8));
    sim.add_burst(burst("buy tokens", 1));
    for hour in 0..=48 {
        clock.move_to(at(hour));
        // A failing run takes seconds, so not every hour of the outage has one.
        let has_run = !(10..16).contains(&hour) || hour % 5 == 0;
        for outcome in if has_run { engine.run("hacker_news", &settings).await } else { Vec::new() } {
            assert_eq!(outcome.is_err(), (10..16).contains(&hour), "hour {hour}: {outcome:?}");
        }
        if hour == 37 {
            let stories = sim.stories(at(34).as_millisecond(), at(37).as_millisecond());
            let story_about = |phrase: &str| stories.iter().find(|story| story.title.to_lowercase().contains(phrase)).unwrap().id;
            sim.remove_story(story_about("agent mesh"));
            sim.edit_story(story_about("buy tokens"), "Sold tokens &amp; more");
        }
    }
    engine.wait_projected().await;
    let (newest, facts) = newest(&engine).await;

    // The last run read two days again, so what it found is what the site shows.
    let (from_ms, to_ms) = (at(0).as_millisecond() / HOUR_MS * HOUR_MS, at(49).as_millisecond() / HOUR_MS * HOUR_MS);
    let shown: BTreeMap<String, ShownStory> =
        sim.stories(from_ms, to_ms).into_iter().map(|story| (format!("hacker_news/{}", story.id), story)).collect();
    let of_hours = |data: &&Value| data["kind"] == "doc" && data["removed"] != true && data["hour"].as_str() >= Some("2026-11-18T00");
    let found: BTreeMap<&String, &Value> = newest.iter().filter(|(_, data)| of_hours(data)).collect();
    assert!(found.len() > 1_700, "{}", found.len());
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), shown.keys().collect::<Vec<_>>());
    for (key, story) in &shown {
        let data = found[key];
        assert_eq!((&data["title"], &data["author"]), (&decoded(&story.title).into(), &story.author.clone().into()), "{key}");
        assert_eq!(data["url"].as_str().unwrap_or_default(), story.url.as_deref().unwrap_or_default());
    }
    assert!(newest.values().filter(|data| data["removed"] == true).count() > 5, "removed stories");
    assert!(found.values().any(|data| data["title"] == "Sold tokens & more"));

    // Each hour has the number of its stories, as of its last reading.
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    found.values().for_each(|data| *counts.entry(data["hour"].as_str().unwrap()).or_default() += 1);
    for hour in 0..47 {
        let name = at(hour).strftime("%Y-%m-%dT%H").to_string();
        let data = &newest[&format!("hacker_news/hour/{name}")];
        let docs = counts.get(name.as_str()).copied().unwrap_or_default();
        assert_eq!((data["docs"].as_i64().unwrap_or_default(), data["complete"] == true), (docs, docs > 0), "{name}");
        assert_eq!(docs == 0, (20..26).contains(&hour), "{name}");
    }
    assert!(counts.values().any(|count| *count > 1_000));

    // In the log an hour follows its stories, and no fact of a published story repeats the one before but for its points.
    let mut first_hours: BTreeMap<&str, usize> = BTreeMap::new();
    let mut before: BTreeMap<&str, Value> = BTreeMap::new();
    for (place, fact) in facts.iter().enumerate() {
        let (key, mut data) = (fact["key"].as_str().unwrap(), fact["data"].clone());
        if data["kind"] == "hour" {
            first_hours.entry(fact["data"]["hour"].as_str().unwrap()).or_insert(place);
        }
        data["points"] = Value::Null;
        assert_ne!(before.insert(key, data.clone()), Some(data), "{key}");
    }
    let early = facts.iter().take(first_hours["2026-11-18T07"]).filter(|fact| fact["data"]["hour"] == "2026-11-18T07");
    assert!(early.count() > 10, "the stories of an hour come before its fact");
    assert!(engine.export("rejected", true).await.is_empty());
    engine.close().await;
}

/// Proves that the lists of page views are read when they appear, one of them two days late, and that each has the fact of its day.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_list_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let first: Timestamp = "2026-11-01T09:25:00Z".parse().unwrap();
    let clock = SimulatedClock::new(first, Clock::Fixed(first));
    let simulated = SimulatedUpstreams::start(5, 60, Clock::Simulated(clock)).await;
    let engine = Engine::open(dir.path(), Clock::Simulated(clock)).await;
    let settings = Settings { backfill_days: 1, ..simulated.settings() };
    let mut throughs = Vec::new();
    for day in 0..14 {
        clock.move_to(first + SignedDuration::from_hours(24 * day));
        for outcome in engine.run("wikimedia", &settings).await {
            throughs.push(outcome.unwrap().run.through_date);
        }
    }
    engine.wait_projected().await;
    let (newest, _) = newest(&engine).await;
    let days: Vec<&Value> = newest.values().filter(|data| data["kind"] == "day").collect();
    assert_eq!(days.len(), 14);
    assert!(days.iter().all(|day| day["articles"].as_i64() > Some(40) && day["total"].as_i64() > Some(1_000_000)), "{days:?}");
    let articles: Vec<&str> = newest.values().filter_map(|data| data["article"].as_str()).filter(|article| !article.is_empty()).collect();
    assert!(articles.contains(&"Baahubali_2:_The_Conclusion") && !articles.iter().any(|article| article.starts_with("Special:")));
    // While a list is missing, the days after it do not count as complete.
    throughs.dedup();
    assert!(throughs.len() < 14 && throughs.last().is_some_and(|through| through == "2026-11-13"), "{throughs:?}");
    engine.close().await;
}

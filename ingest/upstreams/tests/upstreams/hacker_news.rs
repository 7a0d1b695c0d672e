//! Upstream `hacker_news`: which hours a run reads, in which parts, which stories are removed, and the mapping of its answers.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemas::facts::FactData;
use schemas::facts::mentions::MentionFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{Answer, Page, Settings, UpstreamError, Window};

use crate::common::*;

const STREAM: &str = "hacker_news";

fixture_tests!(STREAM);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Returns the facts of a page.
pub(crate) fn mentions(page: &Page) -> Vec<&MentionFact> {
    let records = page.observations.iter().map(|observation| match &observation.data {
        FactData::Mention(fact) => &**fact,
        other => panic!("no mention: {other:?}"),
    });
    records.collect()
}

/// The site: its stories by id, each with its time in seconds and its title. Answers show them as the search does.
#[derive(Default)]
struct Site {
    stories: BTreeMap<u64, (i64, String)>,
    settings: Settings,
    memory: UpstreamCursor,
    requests: Vec<(i64, i64)>,
}

impl Site {
    fn new() -> Self {
        Self { settings: Settings { window_days: 2, backfill_days: 1, ..settings() }, ..Self::default() }
    }

    fn post(&mut self, id: u64, time: &str) {
        self.stories.insert(id, (at(time).as_second(), format!("Story {id}")));
    }

    fn hits(&self, from: i64, to: i64) -> Vec<Value> {
        let of_range = self.stories.iter().filter(|(_, (created_s, _))| (from..to).contains(created_s));
        of_range
            .map(|(id, (created_s, title))| {
                json!({"objectID": id.to_string(), "title": title, "author": "a", "points": id % 50, "created_at_i": created_s,
                    "url": format!("https://example.org/{id}")})
            })
            .collect()
    }

    fn answer(&self, from: i64, to: i64) -> Value {
        let mut hits = self.hits(from, to);
        let count = hits.len();
        hits.truncate(1_000);
        json!({"hits": hits, "nbHits": count, "exhaustiveNbHits": true})
    }

    /// Runs at a time to the end; `change` may change the answers.
    fn run_with(&mut self, now: &str, mut change: impl FnMut(i64, Value) -> Value) -> Vec<Page> {
        let (upstream, stream) = stream(STREAM);
        let window = Window { from: None, to: TODAY };
        let mut cursor = upstream.start_after(stream, &window, &self.settings, &self.memory, at(now));
        let mut pages = Vec::new();
        self.requests.clear();
        while upstream.has_request(stream, &cursor) {
            let path = upstream.request(stream, &cursor, &self.settings).unwrap().path;
            let bound = |sign: &str| path.split_once(sign).unwrap().1.split(['%', '&']).next().unwrap().parse::<i64>().unwrap();
            let (from, to) = (bound("created_at_i%3E%3D"), bound("created_at_i%3C"));
            self.requests.push((from, to));
            assert!(self.requests.len() < 20_000, "the run does not end");
            let answer = change(from, self.answer(from, to));
            let page = upstream.map_at(stream, &cursor, &ok(answer.to_string()), at(now)).unwrap();
            cursor = page.next.clone().unwrap();
            pages.push(page);
        }
        self.memory = upstream.remember(stream, &cursor);
        pages
    }

    fn run(&mut self, now: &str) -> Vec<Page> {
        self.run_with(now, |_, answer| answer)
    }

    /// The hours of the last run's requests, counted back from an hour.
    fn hours_back(&self, now: &str) -> Vec<i64> {
        self.requests.iter().map(|(from, _)| (at(now).as_second() - from).div_euclid(3_600)).collect()
    }
}

/// The facts of hours: hour, stories, complete.
fn hours(pages: &[Page]) -> Vec<(String, i64, bool)> {
    let facts = pages.iter().flat_map(mentions).filter(|fact| fact.kind == "hour");
    facts.map(|fact| (fact.hour.clone(), fact.docs, fact.complete)).collect()
}

fn removed(pages: &[Page]) -> Vec<(String, String)> {
    let facts = pages.iter().flat_map(mentions).filter(|fact| fact.removed);
    facts.map(|fact| (fact.id.clone(), fact.hour.clone())).collect()
}

/// Proves the form of a request.
#[test]
fn request() {
    assert_eq!(
        path(STREAM, &start(STREAM, &window())),
        "/api/v1/search_by_date?tags=story&numericFilters=created_at_i%3E%3D1767225600%2Ccreated_at_i%3C1767229200&hitsPerPage=1000"
    );
}

/// Proves that the first run reads the days of the settings hour by hour, that later runs read the last two hours again, that the first run
/// of a day reads two days again, and that a run after an outage of six hours continues where the last one ended.
#[test]
fn hours_that_are_read() {
    let mut site = Site::new();
    site.run("2026-09-10T10:05:00Z");
    assert_eq!(site.hours_back("2026-09-10T10:00:00Z"), (0..=24).rev().collect::<Vec<_>>());
    site.run("2026-09-10T10:10:00Z");
    assert_eq!(site.hours_back("2026-09-10T10:00:00Z"), [2, 1, 0]);
    site.run("2026-09-10T11:05:00Z");
    assert_eq!(site.hours_back("2026-09-10T11:00:00Z"), [2, 1, 0]);
    site.run("2026-09-10T18:05:00Z");
    assert_eq!(site.hours_back("2026-09-10T18:00:00Z"), (0..=8).rev().collect::<Vec<_>>());
    site.run("2026-09-11T00:05:00Z");
    assert_eq!(site.hours_back("2026-09-11T00:00:00Z"), (0..=48).rev().collect::<Vec<_>>());
    site.run("2026-09-11T01:05:00Z");
    assert_eq!(site.hours_back("2026-09-11T01:00:00Z"), [2, 1, 0]);
}

/// Proves that an hour has a fact, after the facts of its stories, once it is two hours old; that a published story that is indexed late moves its
/// number; and that an hour without stories is not complete.
#[test]
fn hours_become_final() {
    let mut site = Site::new();
    site.post(1, "2026-09-10T08:10:00Z");
    site.post(2, "2026-09-10T09:10:00Z");
    site.post(3, "2026-09-10T10:01:00Z");
    let pages = site.run("2026-09-10T10:05:00Z");
    let expected = [("2026-09-10T07".to_owned(), 0, false), ("2026-09-10T08".to_owned(), 1, true)];
    assert_eq!(hours(&pages)[21..], expected);
    let kinds: Vec<&str> =
        pages.iter().flat_map(mentions).filter(|fact| fact.hour.as_str() >= "2026-09-10T08").map(|fact| &*fact.kind).collect();
    assert_eq!(kinds, ["doc", "hour", "doc", "doc"]);
    assert_eq!(pages.last().unwrap().through.unwrap().to_string(), "2026-09-10");
    assert_eq!(hours(&site.run("2026-09-10T10:59:59Z")), [("2026-09-10T08".to_owned(), 1, true)]);
    site.post(4, "2026-09-10T08:50:00Z");
    assert_eq!(hours(&site.run("2026-09-10T11:00:00Z")), [("2026-09-10T09".to_owned(), 1, true)]);
    assert_eq!(hours(&site.run("2026-09-11T00:05:00Z"))[32], ("2026-09-10T08".to_owned(), 2, true));
}

/// Proves that a published story that disappears is removed by the next complete reading of its hour, once, and that it may come back.
#[test]
fn stories_that_disappear() {
    let mut site = Site::new();
    (1..=5).for_each(|id| site.post(id, "2026-09-10T09:10:00Z"));
    site.run("2026-09-10T10:05:00Z");
    let gone = site.stories.remove(&3).unwrap();
    let pages = site.run("2026-09-10T11:05:00Z");
    assert_eq!((removed(&pages), hours(&pages)[0].1), (vec![("3".to_owned(), "2026-09-10T09".to_owned())], 4));
    let fact = pages.iter().flat_map(mentions).find(|fact| fact.removed).unwrap();
    assert_eq!((&*fact.title, &*fact.author, &*fact.url, &*fact.published_at), ("", "", "", ""));
    assert_eq!(removed(&site.run("2026-09-10T11:10:00Z")), []);
    site.stories.insert(3, gone);
    assert!(site.run("2026-09-11T00:05:00Z").iter().flat_map(mentions).any(|fact| fact.id == "3" && !fact.removed));
    // A day later it is still known, and missed.
    site.stories.remove(&3);
    assert_eq!(removed(&site.run("2026-09-12T00:05:00Z")), [("3".to_owned(), "2026-09-10T09".to_owned())]);
}

/// Proves that an answer which lacks most of an hour's stories, or fewer than it counts, removes none and leaves the hour incomplete, and
/// that the next answer mends it.
#[test]
fn doubtful_answers_remove_nothing() {
    let mut site = Site::new();
    (1..=10).for_each(|id| site.post(id, "2026-09-10T09:10:00Z"));
    site.run("2026-09-10T10:05:00Z");
    let nine = at("2026-09-10T09:00:00Z").as_second();
    let cut = |counted: Option<usize>| {
        move |from: i64, mut answer: Value| {
            if from == nine {
                answer["hits"].as_array_mut().unwrap().truncate(4);
                answer["nbHits"] = json!(counted.unwrap_or(4));
            }
            answer
        }
    };
    for counted in [None, Some(10)] {
        let pages = site.run_with("2026-09-10T11:05:00Z", cut(counted));
        assert_eq!((removed(&pages), &hours(&pages)[0]), (vec![], &("2026-09-10T09".to_owned(), 4, false)));
        assert!(pages[0].incomplete.as_ref().is_some_and(|gap| gap.what.starts_with("2026-09-10T09: ")), "{:?}", pages[0].incomplete);
    }
    let pages = site.run("2026-09-10T11:30:00Z");
    assert_eq!((removed(&pages), &hours(&pages)[0]), (vec![], &("2026-09-10T09".to_owned(), 10, true)));
}

/// Proves that a published story that can no longer be read is rejected and not taken as removed, with and without a readable id.
#[test]
fn rejected_stories_are_not_gone() {
    let mut site = Site::new();
    (1..=10).for_each(|id| site.post(id, "2026-09-10T09:10:00Z"));
    site.run("2026-09-10T10:05:00Z");
    for (field, docs, complete) in [("title", 10, true), ("objectID", 9, false)] {
        let pages = site.run_with("2026-09-10T11:05:00Z", |_, mut answer| {
            if let Some(hit) = answer["hits"].get_mut(3) {
                hit[field] = json!(null);
            }
            answer
        });
        assert_eq!((removed(&pages), &hours(&pages)[0]), (vec![], &("2026-09-10T09".to_owned(), docs, complete)), "{field}");
        assert_eq!(pages.iter().map(|page| page.rejects.len()).sum::<usize>(), 1, "{field}");
    }
}

/// Proves that `nbHits` that jumps as an estimate changes nothing.
#[test]
fn counts_that_jump() {
    let mut site = Site::new();
    (1..=10).for_each(|id| site.post(id, "2026-09-10T09:10:00Z"));
    site.run("2026-09-10T10:05:00Z");
    for jump in [7, 10, 13, 999] {
        let pages = site.run_with("2026-09-10T11:05:00Z", |_, mut answer| {
            answer["nbHits"] = json!(jump);
            answer["exhaustiveNbHits"] = json!(false);
            answer
        });
        assert_eq!((removed(&pages), &hours(&pages)[0]), (vec![], &("2026-09-10T09".to_owned(), 10, true)), "{jump}");
    }
}

/// Proves that an hour with more stories than an answer shows is read in parts, that all of them are found once, and that a count which never
/// fits ends after a bounded number of requests with an incomplete hour.
#[test]
fn full_hours_are_read_in_parts() {
    let mut site = Site::new();
    let nine = at("2026-09-10T09:00:00Z");
    for id in 0..2_500_u64 {
        let second = i64::try_from(id).unwrap() * 3_600 / 2_500;
        site.post(id + 1, &(nine + SignedDuration::from_secs(second)).to_string());
    }
    site.run("2026-09-10T10:05:00Z");
    let pages = site.run("2026-09-10T11:05:00Z");
    let parts: Vec<(i64, i64)> = site.requests.iter().map(|(from, to)| (from - nine.as_second(), to - nine.as_second())).collect();
    assert_eq!(parts[..7], [(0, 3_600), (0, 1_800), (0, 900), (900, 1_800), (1_800, 3_600), (1_800, 2_700), (2_700, 3_600)]);
    assert_eq!(hours(&pages), [("2026-09-10T09".to_owned(), 2_500, true)]);
    let mut ids: Vec<&str> = pages.iter().flat_map(mentions).filter(|fact| fact.kind == "doc").map(|fact| &*fact.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), removed(&pages)), (2_500, vec![]));

    let pages = site.run_with("2026-09-10T11:05:00Z", |_, mut answer| {
        answer["nbHits"] = json!(5_000);
        answer
    });
    assert!(site.requests.len() < 3 * 80 && !hours(&pages)[0].2, "{} requests", site.requests.len());
}

/// Proves that a published story dated in the future is published when it was seen, and later at its own time, within the same hour.
#[test]
fn stories_of_the_future() {
    let mut site = Site::new();
    site.post(1, "2026-09-10T10:40:00Z");
    let published = |pages: &[Page]| {
        let fact = pages.iter().flat_map(mentions).find(|fact| fact.id == "1").unwrap();
        (fact.published_at.clone(), fact.hour.clone())
    };
    let hour = "2026-09-10T10".to_owned();
    assert_eq!(published(&site.run("2026-09-10T10:05:00Z")), ("2026-09-10T10:05:00Z".to_owned(), hour.clone()));
    assert_eq!(published(&site.run("2026-09-10T11:05:00Z")), ("2026-09-10T10:40:00Z".to_owned(), hour));
}

/// Proves that points that move change no content, and that a title that is edited does.
#[test]
fn points_and_titles() {
    let content = |title: &str, points: i64| {
        let body = json!([{"objectID": "7", "title": title, "author": "a", "created_at_i": 1_789_000_000, "points": points}]);
        let (upstream, stream) = stream(STREAM);
        let page = upstream.map(stream, &upstream.start(stream, &window(), &settings()), &ok(body.to_string()), TODAY).unwrap();
        (page.observations[0].data.canonical(), mentions(&page)[0].points)
    };
    let (first, moved, edited) = (content("A title", 5), content("A title", 50), content("A title [pdf]", 50));
    assert!(first.0 == moved.0 && first.1 == Some(5) && moved.1 == Some(50));
    assert_ne!(moved.0, edited.0);
}

/// Proves that an interrupted run continues at its checkpoint and still finds what disappeared meanwhile.
#[test]
fn interrupted_runs_continue() {
    let mut site = Site::new();
    (1..=5).for_each(|id| site.post(id, "2026-09-10T09:10:00Z"));
    site.run("2026-09-10T10:05:00Z");
    site.stories.remove(&2);
    let (upstream, stream) = stream(STREAM);
    let first = upstream.start_after(stream, &Window { from: None, to: TODAY }, &site.settings, &site.memory, at("2026-09-10T11:05:00Z"));
    let resumed = upstream.resume(stream, &UpstreamCursor(first.0.clone()));
    let nine = at("2026-09-10T09:00:00Z").as_second();
    let page = upstream.map_at(stream, &resumed, &ok(site.answer(nine, nine + 3_600).to_string()), at("2026-09-10T15:00:00Z")).unwrap();
    assert_eq!(removed(std::slice::from_ref(&page)), [("2".to_owned(), "2026-09-10T09".to_owned())]);
}

/// Proves that items of the site's own API are read: text posts, removed ones, those that are no stories, and those that cannot be read.
#[test]
fn items_of_the_sites_own_api() {
    let (upstream, stream) = stream(STREAM);
    let body = json!([
        {"by": "pelican", "descendants": 3, "id": 9_934_323, "kids": [1], "score": 14, "text": "", "time": 1_437_633_378, "title": "Time-Series &amp; more",
            "type": "story", "url": "http://www.example.org/a"},
        {"by": "owl", "id": 9_934_324, "score": 2, "text": "Words", "time": 1_437_633_400, "title": "Ask HN: Why?", "type": "story", "url": ""},
        {"deleted": true, "id": 9_934_325, "time": 1_437_633_500, "type": "story"},
        {"dead": true, "by": "x", "id": 9_934_326, "time": 1_437_633_500, "title": "Buy", "type": "story"},
        {"by": "owl", "id": 9_934_327, "parent": 9_934_323, "text": "A comment", "time": 1_437_633_600, "type": "comment"},
        null,
        {"id": 9_934_328, "type": "story"}
    ]);
    let cursor = upstream.start(stream, &window(), &settings());
    let page = upstream.map(stream, &cursor, &ok(body.to_string()), TODAY).unwrap();
    let facts: Vec<_> =
        mentions(&page).into_iter().map(|fact| (&*fact.id, &*fact.title, &*fact.domain, &*fact.hour, fact.removed)).collect();
    let expected = [
        ("9934323", "Time-Series & more", "example.org", "2015-07-23T06", false),
        ("9934324", "Ask HN: Why?", "", "2015-07-23T06", false),
        ("9934325", "", "", "2015-07-23T06", true),
        ("9934326", "", "", "2015-07-23T06", true),
    ];
    assert_eq!(facts, expected);
    assert_eq!(
        page.rejects.iter().map(|reject| reject.reason.as_str()).collect::<Vec<_>>(),
        ["the record is not an object", "created_at_i is absent or not a time since the site opened"]
    );
}

/// Proves that a rejected story is mapped again from its stored bytes.
#[test]
fn rejected_stories_are_mapped_again() {
    let (upstream, stream) = stream(STREAM);
    let page = fixture(STREAM, "records_not_readable").unwrap();
    let reject = page.rejects.iter().find(|reject| reject.reference == "46000104").unwrap();
    let mended = String::from_utf8(reject.raw.clone()).unwrap().replace("\"title\": null", "\"title\": \"A title\"");
    let cursor = upstream.start(stream, &window(), &settings());
    let again = upstream.map(stream, &cursor, &ok(upstream.single(stream, mended.as_bytes())), TODAY).unwrap();
    assert_eq!((again.observations[0].key.as_str(), mentions(&again)[0].title.as_str()), ("hacker_news/46000104", "A title"));
}

/// Proves that an answer without stories in the form of the search is refused, and that a filter which is ignored stops the stream.
#[test]
fn answers_that_are_refused() {
    for case in ["broken", "bot_wall", "no_hits"] {
        assert!(matches!(fixture(STREAM, case), Err(UpstreamError::Later { .. })), "{case}");
    }
    let hits: Vec<Value> =
        (0..600).map(|id| json!({"objectID": id.to_string(), "title": "T", "author": "a", "created_at_i": 1_700_000_000 + id})).collect();
    let error = map(STREAM, json!({"hits": hits, "nbHits": 600}).to_string()).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "objectID" || field == "numericFilters"));
    let renamed: Vec<Value> =
        (0..30).map(|id| json!({"objectID": id.to_string(), "name": "T", "author": "a", "created_at_i": 1_767_225_600})).collect();
    let error = map(STREAM, json!({"hits": renamed, "nbHits": 30}).to_string()).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "title"));
    let answer = Answer { status: 200, link: None, body: vec![0xff, 0xfe, b'['].into() };
    assert!(map_at(STREAM, &start(STREAM, &window()), &answer).is_err());
}

//! Tests of what facts mean for phrases: hours of stories, played through `decide`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use schemas::key;
use schemas::tables::Datum;
use serde::de::DeserializeOwned;
use velocity::calendar::{day_text, hour_text, time};
use velocity::gram_rows::GramRows;
use velocity::hours::Hours;
use velocity::label::Label;
use velocity::measure::{Question, Scale};
use velocity::mentions::{Mention, Mentions, PAIRS_MAX, Poster};
use velocity::rows::{BOARD_KEY, Board, DocRow, record_id};
use velocity::words::is_blocked;

use super::*;
use fold::service::Service;
use fold::testing::{self, Folded};

/// 2026-09-01T00.
const START: i64 = 496_728;

/// The service in memory, given facts.
#[derive(Default)]
struct World {
    folded: Folded<Phrases>,
    /// The stories that are there: id to hour, author and title.
    docs: BTreeMap<u32, (i64, String, String)>,
    next_id: u32,
}

impl World {
    fn decide(&mut self, key: String, kind: FactKind, data: Option<MentionFact>) {
        self.folded.decide(&Fact { upstream: "hacker_news".into(), ..testing::fact(key, kind, 0, data) });
    }

    fn doc(&mut self, id: u32, hour: i64, author: &str, title: &str) {
        self.docs.insert(id, (hour, author.to_owned(), title.to_owned()));
        let data = MentionFact {
            stream: "hacker_news".into(),
            kind: kind::DOC.into(),
            id: id.to_string(),
            title: title.into(),
            author: author.into(),
            domain: format!("{author}.example"),
            url: format!("https://{author}.example/{id}"),
            published_at: time(hour),
            hour: hour_text(hour),
            ..MentionFact::default()
        };
        self.decide(format!("hacker_news/{id}"), FactKind::Observed, Some(data));
    }

    fn story(&mut self, hour: i64, author: &str, title: &str) -> u32 {
        self.next_id += 1;
        self.doc(self.next_id, hour, author, title);
        self.next_id
    }

    fn removed(&mut self, id: u32) {
        let (hour, ..) = self.docs.remove(&id).unwrap();
        let data = MentionFact {
            stream: "hacker_news".into(),
            kind: kind::DOC.into(),
            id: id.to_string(),
            hour: hour_text(hour),
            removed: true,
            ..MentionFact::default()
        };
        self.decide(format!("hacker_news/{id}"), FactKind::Observed, Some(data));
    }

    fn hour(&mut self, hour: i64, docs: i64, complete: bool) {
        let data = MentionFact {
            stream: "hacker_news".into(),
            kind: kind::HOUR.into(),
            hour: hour_text(hour),
            docs,
            complete,
            ..MentionFact::default()
        };
        self.decide(format!("hacker_news/hour/{}", hour_text(hour)), FactKind::Observed, Some(data));
    }

    fn views(&mut self, day: i64, article: &str, views: i64) {
        let data = MentionFact { kind: kind::VIEWS.into(), day: day_text(day), article: article.into(), views, ..MentionFact::default() };
        self.decide(format!("wikimedia/{}/{article}", day_text(day)), FactKind::Observed, Some(data));
    }

    fn end_of_views(&mut self, day: i64) {
        let data = MentionFact { kind: kind::DAY.into(), day: day_text(day), ..MentionFact::default() };
        self.decide(format!("wikimedia/day/{}", day_text(day)), FactKind::Observed, Some(data));
    }

    /// The phrase and the label of each change, in order.
    fn changes(&self) -> Vec<(&str, &str)> {
        let records = self.folded.changes_of_records().filter_map(|change| change.after.as_ref());
        records.map(|record| (record.phrase.as_str(), record.label.as_str())).collect()
    }

    /// The labels of a phrase, in the order of its changes.
    fn labels(&self, phrase: &str) -> Vec<&str> {
        self.changes().into_iter().filter(|(changed, _)| *changed == phrase).map(|(_, label)| label).collect()
    }

    /// Drops the facts and all changes but the last one: those of months take too much memory. What is left cannot be rebuilt.
    fn drop_history(&mut self) {
        let last = self.folded.changes.pop();
        self.folded.changes = last.into_iter().collect();
        self.folded.facts.clear();
    }

    fn state<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.folded.state(key)
    }

    fn record(&self, phrase: &str) -> Option<Phrase> {
        let row = self.folded.rows.get(&(TABLES.records.name, key![record_id(phrase)]))?;
        Some(Phrases::read_row(row).unwrap().0)
    }

    fn label(&self, phrase: &str) -> String {
        self.record(phrase).map_or_else(|| "FLAT".to_owned(), |record| record.label)
    }

    fn mentions(&self, phrase: &str) -> Mentions {
        GramRows { row: self.state(&gram_key(phrase)), recent: self.state(&recent_key(phrase)) }.mentions().unwrap()
    }

    /// The rows of decision state whose keys begin with a text.
    fn rows<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = (&'a str, &'a Bytes)> {
        self.folded.table(TABLES.state).filter_map(move |(key, row)| match key.first() {
            Some(Datum::Text(key)) if key.starts_with(begin) => Some((key.as_str(), row)),
            _ => None,
        })
    }

    fn keys(&self, begin: &str) -> Vec<String> {
        self.rows(begin).map(|(key, _)| key.to_owned()).collect()
    }

    fn bytes(&self, begin: &str) -> usize {
        self.rows(begin).map(|(_, row)| row.len()).sum()
    }

    fn longest(&self, begin: &str) -> usize {
        self.rows(begin).map(|(_, row)| row.len()).max().unwrap_or_default()
    }

    /// Hours of quiet: ten stories each about nothing in particular.
    fn quiet(&mut self, hours: std::ops::Range<i64>) {
        hours.for_each(|hour| self.hour(hour, 10, true));
    }
}

/// Proves that a burst of several authors rises when its hour is complete and not before, keeps its peak, and is flat when it is over, with one change
/// for each label.
#[test]
fn a_burst_rises_and_ends() {
    let mut world = World::default();
    world.quiet(START..START + 360);
    for n in 0..6 {
        world.story(START + 360 + n % 2, &format!("a{n}"), "The Agent-Mesh is here");
    }
    assert_eq!(world.label("agent mesh"), "FLAT");
    world.quiet(START + 360..START + 362);
    let record = world.record("agent mesh").unwrap();
    assert_eq!((record.label.as_str(), record.count, record.baseline, record.peak), ("RISING", 6, 0.0, 6));
    assert_eq!((record.multiple, record.since.as_str(), record.window), (4.0, time(START + 362).as_str(), 24));
    // Only the longest of phrases with the same count is on the board.
    let board: Board = world.state(BOARD_KEY).unwrap();
    assert_eq!((board.hour, board.phrases), (START + 361, vec!["agent mesh is here".to_owned(), "the agent mesh is".to_owned()]));
    world.quiet(START + 362..START + 400);
    let record = world.record("agent mesh").unwrap();
    assert_eq!((record.label.as_str(), record.peak), ("FLAT", 6));
    assert_eq!(world.labels("agent mesh"), ["WARMING", "RISING", "WARMING", "FLAT"]);
    assert_eq!(world.state::<Board>(BOARD_KEY).unwrap().phrases, Vec::<String>::new());
}

/// Proves that a phrase that cools in the middle of a day is labelled on the days that follow too, though no list of stories names it any more: it is flat
/// again when its past is as quiet.
#[test]
fn a_phrase_that_cools_is_flat_again() {
    let mut world = World::default();
    for day in 0..16 {
        for hour in 1..4 {
            world.story(START + day * 24 + hour, &format!("a{hour}"), "Weekly digest");
        }
        world.quiet(START + day * 24..START + (day + 1) * 24);
    }
    // The last story has less than two others within 24 hours.
    world.story(START + 16 * 24 + 2, "a1", "Weekly digest");
    let cools = START + 17 * 24 + 2;
    world.quiet(START + 16 * 24..cools);
    assert_eq!(world.label("weekly digest"), "FLAT");
    world.quiet(cools..cools + 1);
    assert_eq!(world.label("weekly digest"), "COOLING");
    world.quiet(cools + 1..START + 30 * 24);
    assert_eq!(world.labels("weekly digest"), ["COOLING", "FLAT"]);
}

/// Proves that twenty stories of one author change no label, and that blocked words have none.
#[test]
fn one_author_and_blocked_words_have_no_label() {
    let mut world = World::default();
    world.quiet(START..START + 360);
    for n in 0..20 {
        world.story(START + 360, "spammer", "Buy my widget");
        world.story(START + 360, &format!("a{n}"), &format!("Show HN: {n} 2026"));
    }
    world.quiet(START + 360..START + 361);
    assert_eq!(world.mentions("my widget").window(START + 360, 24).count, 3);
    assert_eq!(world.mentions("show hn").window(START + 360, 24).count, 20);
    assert_eq!(world.changes(), []);
}

/// Proves that a removed story and an edited title take their phrases back: all rows of phrases are as if the story had never been there.
#[test]
fn removed_and_edited_stories_are_taken_back() {
    let mut world = World::default();
    world.quiet(START..START + 30);
    world.story(START + 28, "a", "Agent mesh and networks");
    let before: Vec<(String, Mentions)> =
        ["agent", "mesh", "agent mesh", "networks"].map(|gram| (gram.to_owned(), world.mentions(gram))).into();
    let keys = world.keys("g/");
    let one = world.story(START + 29, "b", "Agent mesh again");
    let other = world.story(START + 29, "c", "Something else");
    assert_eq!(world.mentions("agent mesh").window(START + 29, 24).count, 2);
    world.doc(one, START + 29, "b", "Renamed entirely");
    assert_eq!((world.mentions("agent mesh").window(START + 29, 24).count, world.mentions("renamed").window(START + 29, 24).count), (1, 1));
    world.removed(one);
    world.removed(other);
    assert_eq!(world.keys("g/"), keys);
    for (gram, row) in before {
        assert_eq!(world.mentions(&gram), row, "{gram}");
    }
    // A removed story that comes again counts again, and one that was never seen is no error.
    world.doc(one, START + 29, "b", "Agent mesh again");
    assert_eq!(world.mentions("agent mesh").window(START + 29, 24).count, 2);
    world.docs.insert(9_999, (START, String::new(), String::new()));
    world.removed(9_999);
}

/// Proves that an hour that comes late, or several at once after an outage, are each decided: the clock waits until then and no label cools.
#[test]
fn late_hours_are_decided() {
    let mut world = World::default();
    let usual = |world: &mut World, hour: i64| {
        world.story(hour, &format!("a{hour}"), "Rust news");
        world.hour(hour, 10, true);
    };
    (START..START + 380).for_each(|hour| usual(&mut world, hour));
    assert_eq!(world.label("rust news"), "FLAT");
    let clock = |world: &World| world.state::<Clock>(CLOCK_KEY).unwrap().newest;
    // Six hours are missing: their stories come before any of their hours.
    for hour in START + 380..START + 386 {
        for n in 0..2 {
            world.story(hour, &format!("b{hour}{n}"), "Outage report");
        }
    }
    assert_eq!((clock(&world), world.label("outage report"), world.changes().len()), (START + 379, "FLAT".to_owned(), 0));
    world.hour(START + 385, 12, true);
    assert_eq!((clock(&world), world.label("outage report").as_str()), (START + 385, "RISING"));
    let until_now = world.changes().len();
    // An earlier hour that comes now adds its stories to the window, and the phrases are labelled again.
    for n in 0..30 {
        world.story(START + 384, &format!("c{n}"), "Late arrival");
    }
    assert_eq!(world.label("late arrival"), "FLAT");
    for hour in START + 380..START + 385 {
        world.hour(hour, 12, true);
    }
    assert_eq!((clock(&world), world.label("late arrival").as_str(), world.label("rust news").as_str()), (START + 385, "RISING", "FLAT"));
    assert!(world.changes().len() > until_now);
    // An hour that is not complete moves nothing.
    world.hour(START + 386, 1_000, false);
    assert_eq!(clock(&world), START + 385);
}

/// Proves that page views lift a phrase that warms, once their day is complete, and nothing else.
#[test]
fn views_confirm() {
    let mut world = World::default();
    let day = START / 24;
    for day in day..day + 15 {
        world.views(day, "Main_topic", 500);
        if day % 2 == 0 {
            world.views(day, "Agent_mesh", 600);
        }
        world.end_of_views(day);
    }
    world.quiet(START..START + 360);
    for n in 0..3 {
        world.story(START + 360, &format!("a{n}"), "Agent mesh");
    }
    world.quiet(START + 360..START + 361);
    assert_eq!(world.label("agent mesh"), "WARMING");
    world.views(day + 15, "Agent_mesh", 9_000);
    world.views(day + 15, "Main_topic", 500);
    world.quiet(START + 361..START + 362);
    assert_eq!(world.label("agent mesh"), "WARMING");
    world.end_of_views(day + 15);
    world.quiet(START + 362..START + 363);
    assert_eq!((world.label("agent mesh").as_str(), world.label("mesh").as_str()), ("RISING", "WARMING"));
    world.folded.assert_rebuilds();
}

/// Proves that nothing remains of phrases that nobody mentions for 31 days, and that lists of earlier days are deleted.
#[test]
fn the_state_is_bounded() {
    let mut world = World::default();
    world.quiet(START..START + 24);
    for n in 0..5 {
        world.story(START + 20, &format!("a{n}"), "Forgotten phrase");
        world.story(START + 20, &format!("b{n}"), "Lasting phrase");
    }
    for day in 1..40 {
        world.story(START + day * 24, "c", "Lasting phrase");
        world.quiet(START + day * 24..START + (day + 1) * 24);
    }
    assert!(world.mentions("forgotten phrase").is_empty() && !world.mentions("lasting phrase").is_empty());
    assert_eq!(world.keys("g/").len(), 3);
    assert!(world.keys("d/").len() <= 33 * 24 && !world.keys("d/").is_empty());
    assert_eq!(world.keys(&format!("d/{}", START + 20)), Vec::<String>::new());
    assert_eq!(world.keys(&format!("k/{}/", START / 24)), Vec::<String>::new());
}

/// Proves that the state does not grow with the history: after 50 days of stories with words of their own it has the rows that it had after 36, but for
/// the stories themselves and one row for each day. So its size is that of 31 days, whatever the rate.
#[test]
fn the_state_does_not_grow() {
    let mut world = World::default();
    let mut sizes = Vec::new();
    for hour in START..START + 50 * 24 {
        world.story(hour, &format!("a{}", hour % 50), &format!("w{hour} x{hour} topic"));
        world.hour(hour, 1, true);
        if [36 * 24, 50 * 24].contains(&(hour + 1 - START)) {
            sizes.push(["g/", "d/", "k/"].map(|begin| world.keys(begin).len()));
        }
    }
    // Of 31 days: five phrases of each hour's own and the one of all hours, a list of each hour's stories, and the lists of days.
    assert_eq!(sizes[0], sizes[1]);
    assert_eq!((sizes[1][0], sizes[1][1]), (5 * 31 * 24 + 1, 31 * 24));
}

/// The words of a title in the test of 90 days.
const TITLE_WORDS: usize = 8;

/// The rows of phrases at some time.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    rows: usize,
    bytes: usize,
    longest: usize,
}

/// The rows of phrases after 45 and after 90 days of titles of eight words, few of which are frequent.
fn sizes_of_phrases(stories_an_hour: u32) -> [Size; 2] {
    let (mut world, mut random) = (World::default(), StdRng::seed_from_u64(12));
    let mut sizes = [Size::default(); 2];
    for hour in START..START + 90 * 24 {
        for _ in 0..stories_an_hour {
            let word = |random: &mut StdRng| format!("w{}", (random.random::<f64>().powi(4) * 20_000.0).floor());
            let title: Vec<String> = (0..TITLE_WORDS).map(|_| word(&mut random)).collect();
            world.story(hour, &format!("a{}", random.random_range(0..3_000)), &title.join(" "));
        }
        world.hour(hour, i64::from(stories_an_hour), true);
        world.drop_history();
        for (size, days) in sizes.iter_mut().zip([45, 90]) {
            if hour + 1 == START + days * 24 {
                let longest = world.longest("g/").max(world.longest("r/"));
                *size = Size { rows: world.keys("g/").len(), bytes: world.bytes("g/") + world.bytes("r/"), longest };
            }
        }
    }
    sizes
}

/// Proves the bound of the state after 90 days: it is that of 45 days, there are no more rows than the stories of 31 days have phrases, and five times as many
/// stories give at most five times the bytes. So ten times the stories of the site, 500 an hour, give at most 100 times those of 5 an hour, which this prints.
#[test]
fn ninety_days_are_bounded() {
    let ([_, few], [earlier, many]) = std::thread::scope(|scope| {
        let few = scope.spawn(|| sizes_of_phrases(1));
        let many = sizes_of_phrases(5);
        (few.join().unwrap(), many)
    });
    println!("1 an hour: {few:?}\n5 an hour: {many:?}, after 45 days {earlier:?}");
    println!("500 an hour: at most {} bytes", many.bytes * 100);
    // Phrases of one to four words of each story of 31 days.
    let phrases_of_a_story = 4 * TITLE_WORDS - 6;
    assert!(many.rows <= 5 * 31 * 24 * phrases_of_a_story, "{many:?}");
    assert!(many.bytes.abs_diff(earlier.bytes) <= many.bytes / 20, "{earlier:?} {many:?}");
    assert!(many.bytes <= 5 * few.bytes, "{few:?} {many:?}");
    // The longest row holds the authors of 77 hours, and the number of stories of each hour of 31 days, as text that is a third longer.
    let (author_bytes, hour_bytes) = (10, 5);
    assert!(many.longest <= (77 * PAIRS_MAX * author_bytes + 31 * 24 * hour_bytes) * 4 / 3, "{many:?}");
}

/// Proves that views are deleted when no list has had the article for 35 days, also after days whose lists never came, and that those of an article that is
/// listed again remain.
#[test]
fn views_of_earlier_articles_are_deleted() {
    let mut world = World::default();
    let day = START / 24;
    for ago in 0..120 {
        // Of some days there is no list.
        if ago % 40 < 36 {
            world.views(day + ago, &format!("Article_{ago}"), 900);
            world.views(day + ago, "Lasting_article", 500);
            world.end_of_views(day + ago);
        }
    }
    let lists = world.keys("a/");
    let days: BTreeSet<&str> = lists.iter().filter_map(|key| key.split('/').nth(1)).collect();
    assert_eq!((days.len(), days.first().copied()), (35, Some(&*(day + 81).to_string())));
    let kept = world.keys("v/");
    let is_kept = |title: &str| kept.contains(&views_key(title));
    assert_eq!((kept.len(), is_kept("lasting article"), is_kept("article 80"), is_kept("article 81")), (36, true, false, true), "{kept:?}");
    let row: ViewsRow = world.state(&views_key("lasting article")).unwrap();
    assert_eq!(row.days.0.len(), 35, "{row:?}");
}

/// Proves for random stories, with edits and removals, that every label equals the one computed from all stories, that rows hold the same
/// counts, and that no change repeats a label.
#[test]
fn labels_equal_a_count_of_all_stories() {
    let mut random = StdRng::seed_from_u64(8);
    let words = ["alpha", "beta", "gamma", "delta", "the", "of", "mesh", "agent"];
    let mut world = World::default();
    let mut hours = Hours::default();
    for hour in START..START + 24 * 18 {
        let ago = hour - START;
        let stories = random.random_range(0..4) + if ago % 200 > 180 { 4 } else { 0 };
        for _ in 0..stories {
            let length = random.random_range(1..5);
            let title: Vec<&str> = (0..length).filter_map(|_| words.choose(&mut random).copied()).collect();
            world.story(hour, &format!("a{}", random.random_range(0..12)), &title.join(" "));
        }
        let ids: Vec<u32> = world.docs.keys().rev().take(60).copied().collect();
        if let (Some(id), 0) = (ids.choose(&mut random), random.random_range(0..3)) {
            world.removed(*id);
        }
        if let (Some(id), 0) = (ids.choose(&mut random).filter(|id| world.docs.contains_key(id)), random.random_range(0..3)) {
            let (at, author, _) = world.docs[id].clone();
            let title = words.sample(&mut random, 2).copied().collect::<Vec<_>>().join(" ");
            world.doc(*id, at, &author, &title);
        }
        let n = i64::from(random.random_range(20..60_u32));
        hours.set(hour, Hour { stories: n, is_complete: true });
        world.hour(hour, n, true);
        if ago < 24 * 6 || ago % 7 != 0 {
            continue;
        }
        let mut by_gram: HashMap<String, Vec<Mention>> = HashMap::new();
        for (at, author, title) in world.docs.values() {
            let poster = Poster::new(author, &format!("{author}.example"));
            for gram in grams(&normal(title)) {
                by_gram.entry(gram.to_owned()).or_default().push(Mention { hour: *at, poster });
            }
        }
        let scale = Scale::new(&hours, hour, Question::default());
        for (gram, mentions) in by_gram {
            let (row, mentions) = (world.mentions(&gram), Mentions::of(mentions));
            assert_eq!(scale.measure(&row), scale.measure(&mentions), "{gram} at {ago}");
            let measure = scale.measure(&mentions);
            if measure.counted.count > 0 && !is_blocked(&gram) {
                assert_eq!(world.label(&gram), measure.label().as_str(), "{gram} at {ago}: {measure:?}");
            }
        }
    }
    let labels = [Label::Rising, Label::Warming, Label::Cooling, Label::Flat]
        .map(|label| world.changes().iter().filter(|(_, known)| *known == label.as_str()).count());
    assert!(labels.iter().all(|changes| *changes > 0), "{labels:?}");
    let mut last: HashMap<&str, &str> = HashMap::new();
    for (phrase, label) in world.changes() {
        assert_ne!(last.insert(phrase, label).unwrap_or("FLAT"), label, "{phrase}");
    }
}

/// Proves that the stories of an hour, in any order, give the same rows.
#[test]
fn the_order_of_stories_does_not_matter() {
    let mut random = StdRng::seed_from_u64(9);
    let mut stories: Vec<(u32, String, &str)> = (1..40)
        .map(|id| (id, format!("a{}", id % 7), *["Agent mesh", "Mesh of agents", "The agent", "Nothing"].choose(&mut random).unwrap()))
        .collect();
    let rows_of = |stories: &[(u32, String, &str)]| {
        let mut world = World::default();
        world.quiet(START..START + 48);
        for (id, author, title) in stories {
            world.doc(*id, START + 48, author, title);
        }
        world.hour(START + 48, 39, true);
        let state: Vec<(String, Bytes)> = world.rows("").map(|(key, row)| (key.to_owned(), row.clone())).collect();
        (state, world.folded.records())
    };
    let expected = rows_of(&stories);
    stories.shuffle(&mut random);
    assert_eq!(rows_of(&stories), expected);
}

/// Proves which entries of the index a story writes, and that an edited or removed one is marked where it is not any more.
#[test]
fn stories_are_indexed() {
    let entries_of = |row: &DocRow| -> Vec<String> {
        let writes = index::entries("doc/7", &serde_json::to_string(row).unwrap(), Seq(3));
        let text = |write: &Write| {
            let posting = velocity::rows::Posting::from_bytes(write.value.as_ref().unwrap()).unwrap();
            format!("{:?} {}{}", write.key, if posting.is_removed { "-" } else { "+" }, posting.id)
        };
        let mut texts: Vec<String> = writes.iter().map(text).collect();
        texts.sort_unstable();
        texts
    };
    let row = DocRow { hour: 170, title: "Agent mesh".into(), ..DocRow::default() };
    let entry = |term: &str, bucket: i64, sign: char| format!("[Text(\"{term}\"), Int({bucket}), Int(3)] {sign}7");
    assert_eq!(
        entries_of(&row),
        [entry("docs", 170, '+'), entry("gram/agent mesh", 1, '+'), entry("gram/agent", 1, '+'), entry("gram/mesh", 1, '+')]
    );
    // Stories with a longer phrase are found by two of its words.
    let longer = entries_of(&DocRow { hour: 170, title: "Agent mesh for all".into(), ..DocRow::default() });
    let is_found = |phrase: &str| longer.contains(&entry(&format!("gram/{phrase}"), 1, '+'));
    assert!(longer.len() == 5 && is_found("agent mesh") && is_found("mesh for") && !is_found("agent mesh for"), "{longer:?}");
    let before = Some(velocity::rows::Before { hour: 170, words: "agent net".into() });
    let edited = DocRow { before: before.clone(), ..row.clone() };
    assert_eq!(
        entries_of(&edited).iter().filter(|text| text.ends_with("-7")).cloned().collect::<Vec<_>>(),
        [entry("gram/agent net", 1, '-'), entry("gram/net", 1, '-')]
    );
    let removed = DocRow { hour: 170, removed: true, before, ..DocRow::default() };
    assert_eq!(entries_of(&removed).len(), 4);
    assert!(entries_of(&removed).iter().all(|text| text.ends_with("-7")));
    assert_eq!(index::entries("g/agent", "\"\"", Seq(3)), []);
    assert_eq!(index::entries("hour", "[170,12,true]", Seq(3)).len(), 1);
}

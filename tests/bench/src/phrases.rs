//! The phrases service: phrases that rise and the velocity of one, compared with PostgreSQL, which has the phrases of each story in an array with a GIN
//! index; the load of 90 days of stories, and an hour of 5,000 further ones.
//!
//! Titles are drawn from a word model in which few words are frequent. Each day two phrases burst for six hours. `--records` is the number of stories:
//! 108,000 are as many as the site has.

use std::collections::HashSet;

use phrases::record::TABLES;
use rand::RngExt;
use rand::rngs::StdRng;
use schemas::facts::FactData;
use schemas::facts::mentions::{MentionFact, kind};
use schemas::topics::MENTIONS;

use velocity::calendar::{HOUR_MS, hour_text, time};
use velocity::grams::{grams, normal};
use velocity::rows::record_id;

use crate::asker::{Asker, Streamed};
use crate::lists::{self, Kind, MoreRows, PeerRows, Sides, text};
use crate::loads::{self, LaterFacts, Loaded, Observed, Plan};
use crate::names::coined;
use crate::report::{figure, heading, latency, number, percentile, ratio, run_child};
use crate::sample;
use crate::start_time::started_ms;
use crate::{Failure, Settings};

/// The mode of `serve-child`.
pub(crate) const MODE: &str = "phrases";
const SERVICE: Loaded = Loaded { service: "phrases", tables: &TABLES, topics: &[MENTIONS], inputs: &[MENTIONS], before: &[] };
const VELOCITY: &str = "velocity";
const RISING: &str = "rising";
const KINDS: [Kind; 1] = [Kind { name: VELOCITY, about: "the velocity of a phrase in 24 hours", p99_ms_max: 3.0 }];
/// Measured without the peer, which remembers no answers and takes a second for each. It is asked next to questions that nobody has asked before.
const KNOWN: [Kind; 1] = [Kind { name: RISING, about: "phrases that rise, known from an earlier question", p99_ms_max: 5.0 }];
/// The stories of a phrase by window; the phrases of the newest window with those of 14 windows before.
const QUERIES: [&str; 2] = [
    "select json_build_object('window', w, 'stories', count(*), 'authors', count(distinct author))::text
     from (select ($2::text::int - hour) / 24 as w, author from stories where phrases @> array[$1::text]) found where w < 15 group by w",
    "with newest as (
        select phrase, count(*) as c from stories, unnest(phrases) phrase where hour > $1::text::int - 24 group by phrase having count(*) >= 3
     )
     select json_build_object('phrase', phrase, 'count', c, 'before', before)::text from (
        select phrase, c, (select count(*) / 14.0 from stories where phrases @> array[phrase] and hour <= $1::text::int - 24 and hour > $1::text::int - 360) as before
        from newest) found order by (c + 2) / (before + 2) desc, c desc, phrase limit 25",
];
const DAYS: u64 = 90;
const HOURS: u64 = DAYS * 24;
/// The row of a phrase remains so many hours after its last story.
const ROW_HOURS: u64 = 31 * 24;
/// The words of the model.
const WORDS: f64 = 40_000.0;
/// Bursts of a day, and the stories of one.
const BURSTS: u64 = 2;
const BURST_STORIES: u64 = 12;
const BURST_HOURS: u64 = 6;
/// The stories of a later hour, their name in the report of the load, and the limit of their seconds.
const HOUR_STORIES: u64 = 5_000;
const HOUR: &str = "hour_s";
const HOUR_S_MAX: f64 = 2.0;
/// The stories of a year, and the limit of the seconds of their load.
const YEAR_STORIES: f64 = 440_000.0;
const YEAR_S_MAX: f64 = 600.0;
const COLD_MS_MAX: f64 = 150.0;
/// Questions that nobody has asked before. The peer is asked once for so many of them.
const COLD: u64 = 40;
const COLD_PER_PEER: u64 = 8;
/// Different paths of a kind.
const QUESTIONS: u64 = 2_000;
/// What sets the random numbers of stories, words and bursts apart.
const STORY: u64 = 10;
const WORD: u64 = 11;
const BURST: u64 = 12;
const QUESTION: u64 = 13;

/// Fills an engine with stories, then compares.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let world = World::of(settings);
    heading(&format!("phrases: {} stories in {DAYS} days, one connection", world.stories_until(HOURS)));
    let loaded = run_child(settings, "phrases-child", &[])?;
    loads::report(&loaded);
    figure("phrases of the last 31 days, each with a row", world.newest_phrases());
    if number(&loaded, "appended") > 0.0 {
        let seconds = (number(&loaded, "heads_s") + number(&loaded, "decide_s")) * YEAR_STORIES / world.stories_until(HOURS) as f64;
        ratio("440,000 stories of a year loaded, then decided, seconds", seconds, seconds <= YEAR_S_MAX, "<= 600");
    }
    loads::report_later(&loaded, HOUR, "an hour of 5,000 stories decided, seconds", HOUR_S_MAX);
    let stories = || {
        let rows = (0..HOURS + 1).flat_map(|hour| world.stories(hour)).map(|story| {
            let title = normal(&story.title);
            let mut phrases = grams(&title);
            phrases.sort_unstable();
            phrases.dedup();
            let list = format!("{{\"{}\"}}", phrases.join("\",\""));
            vec![story.id, world.number(story.hour).to_string(), story.author, list]
        });
        Box::new(rows) as Box<dyn Iterator<Item = Vec<String>>>
    };
    let rows = PeerRows {
        table: "labels",
        definition: "id text primary key, body text",
        columns: &|record| Some(vec![text(record, "id"), record.to_string()]),
        indexes: &[],
        also: &[MoreRows {
            table: "stories",
            definition: "id text primary key, hour int, author text, phrases text[]",
            rows: &stories,
            indexes: &["create index on stories using gin (phrases)", "create index on stories (hour)"],
        }],
        queries: &QUERIES,
    };
    let sides = lists::start_sides(settings, SERVICE, &loaded, MODE, &rows)?;
    lists::compare(settings, &KINDS, &sides.api, sides.peer.as_ref())?;
    lists::compare(settings, &KNOWN, &sides.api, None)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(ask_cold(settings, &sides))?;
    loads::memory("peak memory of the API's process, MiB", sides.api.memory_mib()?);
    Ok(())
}

/// Asks for the phrases that rise by a multiple that nobody asked for before, so that all phrases of the window are counted.
async fn ask_cold(settings: &Settings, sides: &Sides) -> Result<(), Failure> {
    let own = Asker::new(&sides.api, sides.api.texts("keys"))?;
    let peer = sides.peer.as_ref().map(|peer| Asker::new(peer, Vec::new())).transpose()?;
    let peer_path = sides.api.texts(&format!("{RISING} peer")).into_iter().next().unwrap_or_default();
    let (mut cold, mut theirs): (Vec<Streamed>, Vec<Streamed>) = (Vec::new(), Vec::new());
    let asked = if settings.is_quick { COLD / 8 } else { COLD };
    for n in 0..asked {
        let multiple = 1.5 + n as f64 / 100.0;
        cold.push(own.get(0, &format!("/phrases/v1/rising?min_multiple={multiple:.2}")).await?);
        if let Some(peer) = peer.as_ref().filter(|_| n.is_multiple_of(COLD_PER_PEER)) {
            theirs.push(peer.get(0, &peer_path).await?);
        }
    }
    let whole = |all: &[Streamed]| all.iter().map(|one| one.whole).collect::<Vec<f64>>();
    latency("rising, not asked before", &whole(&cold));
    if peer.is_some() {
        latency("rising, PostgreSQL", &whole(&theirs));
    }
    let p99 = percentile(whole(&cold), 0.99) * 1e3;
    ratio("rising, not asked before, p99 ms", p99, p99 <= COLD_MS_MAX, "<= 150");
    Ok(())
}

/// `phrases-child`: loads the stories of all hours, then those of a further hour.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let world = World::of(settings);
    let later: LaterFacts = Box::new(world.facts(HOURS));
    loads::child(settings, SERVICE, Plan { facts: facts(settings), later: vec![(HOUR, later)], redecides: false })
}

/// The stories of all hours but the later one, one for each record.
pub(crate) fn facts(settings: &Settings) -> impl Iterator<Item = Observed> + use<> {
    let world = World::of(settings);
    (0..HOURS).flat_map(move |hour| world.facts(hour))
}

/// Serves the phrases that `phrases-child` decided.
pub(crate) async fn serve(settings: &Settings) -> Result<(), Failure> {
    let world = World::of(settings);
    let newest = world.number(HOURS);
    let velocity = (0..QUESTIONS).filter_map(|n| {
        let mut random = sample::random(QUESTION, n);
        let hour = random.random_range(HOURS - 24 * 14..HOURS);
        let title = normal(&world.stories(hour).next()?.title);
        let phrases = grams(&title);
        let phrase = phrases.get(random.random_range(0..phrases.len().max(1)))?.replace(' ', "%20");
        Some((format!("/phrases/v1/velocity?phrase={phrase}"), format!("/0?{phrase}&{newest}")))
    });
    let rising = vec![("/phrases/v1/rising".to_owned(), format!("/1?{newest}"))];
    lists::serve_own(settings, SERVICE, vec![(VELOCITY, velocity.collect()), (RISING, rising)]).await
}

/// All stories.
#[derive(Clone, Copy)]
struct World {
    records: u64,
    /// The number of the first hour.
    first: i64,
}

/// A story.
struct Story {
    id: String,
    /// The hour, from 0 on.
    hour: u64,
    title: String,
    author: String,
    domain: String,
}

impl World {
    /// The last of the hours, which is the later one, ended an hour before the run began.
    fn of(settings: &Settings) -> Self {
        let now = started_ms().div_euclid(HOUR_MS);
        Self { records: settings.records.max(HOURS), first: now - 2 - i64::try_from(HOURS).unwrap_or(0) }
    }

    /// The number of an hour since 1970.
    fn number(&self, hour: u64) -> i64 {
        self.first + i64::try_from(hour).unwrap_or(0)
    }

    /// How many stories there are before an hour.
    fn stories_until(&self, hour: u64) -> u64 {
        self.records * hour / HOURS
    }

    /// How many phrases the stories of the last 31 days have.
    fn newest_phrases(self) -> usize {
        let mut phrases = HashSet::new();
        for story in (HOURS - ROW_HOURS..HOURS).flat_map(|hour| self.stories(hour)) {
            let title = normal(&story.title);
            phrases.extend(grams(&title).into_iter().map(record_id));
        }
        phrases.len()
    }

    /// The stories of an hour.
    fn stories(self, hour: u64) -> impl Iterator<Item = Story> {
        let first = self.stories_until(hour);
        let last = if hour < HOURS { self.stories_until(hour + 1) } else { first + HOUR_STORIES };
        (first..last).map(move |n| story(n, hour))
    }

    /// The facts of an hour: its stories, then the hour itself.
    fn facts(self, hour: u64) -> impl Iterator<Item = Observed> {
        let name = hour_text(self.number(hour));
        let at_ms = (self.number(hour) + 1) * HOUR_MS;
        let published_at = time(self.number(hour));
        let of_story = {
            let name = name.clone();
            move |story: Story| {
                let fact = MentionFact {
                    stream: "hacker_news".to_owned(),
                    kind: kind::DOC.to_owned(),
                    url: format!("https://{}/{}", story.domain, story.id),
                    id: story.id.clone(),
                    title: story.title,
                    author: story.author,
                    domain: story.domain,
                    published_at: published_at.clone(),
                    hour: name.clone(),
                    points: Some(1),
                    ..MentionFact::default()
                };
                Observed::at(format!("hacker_news/{}", story.id), FactData::Mention(Box::new(fact)), at_ms)
            }
        };
        let docs = i64::try_from(self.stories(hour).count()).unwrap_or(0);
        let whole = MentionFact {
            stream: "hacker_news".to_owned(),
            kind: kind::HOUR.to_owned(),
            hour: name.clone(),
            docs,
            complete: true,
            ..MentionFact::default()
        };
        let whole = Observed::at(format!("hacker_news/hour/{name}"), FactData::Mention(Box::new(whole)), at_ms);
        self.stories(hour).map(of_story).chain([whole])
    }
}

/// Draws a story. In the last hours of a day, some stories have a phrase of that day's bursts.
fn story(n: u64, hour: u64) -> Story {
    let mut random = sample::random(STORY, n);
    let words = random.random_range(5..=9);
    let mut title: Vec<String> = (0..words).map(|_| word(&mut random)).collect();
    let (day, of_day) = (hour / 24, hour % 24);
    if of_day >= 24 - BURST_HOURS && random.random_range(0..BURST_HOURS * 4) < BURSTS * BURST_STORIES / BURST_HOURS {
        let burst = day * BURSTS + random.random_range(0..BURSTS);
        let mut own = sample::random(BURST, burst);
        title.insert(1, format!("{} {}", coined(&mut own), coined(&mut own)));
    }
    Story {
        id: (40_000_000 + n).to_string(),
        hour,
        title: title.join(" "),
        author: format!("author{}", random.random_range(0..8_000)),
        domain: format!("site{}.example", random.random_range(0..5_000)),
    }
}

/// Draws a word: the k-th word is about as frequent as 1 / k.
fn word(random: &mut StdRng) -> String {
    let rank = WORDS.powf(random.random_range(0.0..1.0)) as u64;
    coined(&mut sample::random(WORD, rank)).to_lowercase()
}

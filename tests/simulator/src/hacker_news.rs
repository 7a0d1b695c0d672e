//! Hacker News: the search for stories by date. Which stories there are follows from the seed, the time and what a caller has added: bursts
//! of a phrase, hours with more stories than an answer shows, outages, hours without stories, removed and edited stories.
//!
//! Of their own accord some stories are indexed late, some are dated in the future, some disappear, some get another title, and the points of
//! all of them move. `nbHits` is an estimate now and then. A round lets stories about a phrase appear in an hour that is read again, or disappear from it.

mod titles;
mod words;

use serde::Serialize;
use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::{Fault, Plan};
use simulated_world::query::Query;
use simulated_world::random::Random;
use simulated_world::script::Burst;
use simulated_world::world::{World, capitalised};

use titles::{name, phrase_of, title};

/// The path of the search.
pub(crate) const PATH: &str = "/api/v1/search_by_date";
const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;
/// The most stories of an answer.
const HITS_MAX: usize = 1_000;
/// The most hours that one query looks through.
const HOURS_MAX: i64 = 24 * 60;
/// Ids of an hour: those of ordinary stories, of a flood, and of bursts.
const IDS_PER_HOUR: u64 = 16_384;
const FIRST_OF_FLOOD: u64 = 500;
const FIRST_OF_BURSTS: u64 = 2_000;
const IDS_PER_BURST: u64 = 100;
const FIRST_OF_ROUNDS: u64 = 16_000;
/// A round changes the stories of the hour that began so many hours before its own hour: the newest one that a reader takes as final, and reads again.
const ROUND_HOURS_AGO: i64 = 2;
/// How many stories about a phrase such an hour has, by turns: so many that the phrase rises, and so few that it does not. A reader believes without more
/// proof that the difference has disappeared.
const ROUND_STORIES: [u64; 2] = [4, 2];
/// After these turns the hour has another phrase, so that the label of a phrase rises and falls once. The phrases of an hour are as far from each other as
/// those of so many hours.
const HOURS_BETWEEN_PHRASES: i64 = 31 * 24;
/// Ids of an hour for stories of rounds.
const IDS_OF_ROUNDS: u64 = IDS_PER_HOUR - FIRST_OF_ROUNDS;
/// The first author of these stories.
const AUTHORS_OF_ROUNDS: u64 = 900_000;
/// How many stories a flood adds to an hour.
const FLOOD_STORIES: u64 = 1_300;
/// How many authors and sites there are besides those of bursts.
const AUTHORS: u64 = 900;
const SITES: u64 = 350;

/// A published story as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownStory {
    /// The id of the story.
    pub id: u64,
    /// When it was published by its own account, in milliseconds since 1970.
    pub created_ms: i64,
    /// The title of the story, with entities as it is sent.
    pub title: String,
    /// Who posted it.
    pub author: String,
    /// What it links to; `None` for a text post.
    pub url: Option<String>,
    /// The points of the story.
    pub points: u64,
}

/// The stories that are shown at a time, of those published from `from_ms` to before `to_ms`, the newest first.
pub(crate) fn shown(world: &World, from_ms: i64, to_ms: i64, at_ms: i64) -> Vec<ShownStory> {
    let hours = from_ms.div_euclid(HOUR_MS)..=(to_ms - 1).div_euclid(HOUR_MS).min(from_ms.div_euclid(HOUR_MS) + HOURS_MAX);
    let mut stories: Vec<ShownStory> = hours.flat_map(|hour| of_hour(world, hour, at_ms)).collect();
    stories.retain(|story| (from_ms..to_ms).contains(&story.created_ms));
    stories.sort_by_key(|story| std::cmp::Reverse((story.created_ms, story.id)));
    stories
}

/// How many ordinary stories an hour has: fewer at night and at weekends.
fn ordinary(world: &World, hour: i64) -> u64 {
    let random = Random::new(world.seed, 300, hour.unsigned_abs());
    let (of_day, day) = (hour.rem_euclid(24), hour.div_euclid(24));
    let share = if (6..22).contains(&of_day) { 115 } else { 70 };
    // 1970 began on a Thursday.
    let share = if matches!(day.rem_euclid(7), 2 | 3) { share * 7 / 10 } else { share };
    let mean = world.stories_a_day * share / 100;
    // A sum of three draws varies about as much as chance does.
    (mean * 85 / 100 + (0..3).map(|tag| random.below(tag, mean / 10 + 24)).sum::<u64>() - 20.min(mean / 2)) / 24
}

fn of_hour(world: &World, hour: i64, at_ms: i64) -> Vec<ShownStory> {
    let script = &world.script;
    let start_ms = hour * HOUR_MS;
    let is_silent = script.silences.iter().any(|(from, to)| (*from..*to).contains(&start_ms));
    if is_silent || start_ms > at_ms + HOUR_MS {
        return Vec::new();
    }
    let flood = if script.floods.contains(&hour) { FLOOD_STORIES } else { 0 };
    let numbers = (0..ordinary(world, hour)).chain(FIRST_OF_FLOOD..FIRST_OF_FLOOD + flood);
    let mut stories: Vec<ShownStory> = numbers.filter_map(|number| ordinary_story(world, hour, number, at_ms)).collect();
    for (at, burst) in script.bursts.iter().enumerate() {
        stories.extend(of_burst(world, burst, at as u64, hour, at_ms));
    }
    stories.extend(of_rounds(world, hour, at_ms));
    stories.retain(|story| !script.removed.contains(&story.id));
    for story in &mut stories {
        if let Some(title) = script.edited.get(&story.id) {
            story.title.clone_from(title);
        }
    }
    stories
}

fn id(hour: i64, number: u64) -> u64 {
    hour.unsigned_abs() * IDS_PER_HOUR + number
}

fn ordinary_story(world: &World, hour: i64, number: u64, at_ms: i64) -> Option<ShownStory> {
    let id = id(hour, number);
    let random = Random::new(world.seed, 301, id);
    let created_ms = hour * HOUR_MS + (random.below(0, 3_600) * 1_000) as i64;
    // Some are indexed late, a few only after hours, and some have a clock that is ahead.
    let shown_from_ms = created_ms
        + match random.below(1_000, 200) {
            0 => 3 * HOUR_MS,
            1..9 => (5 + random.below(1_001, 45)) as i64 * MINUTE_MS,
            9..13 => -10 * MINUTE_MS,
            _ => 0,
        };
    let is_gone = random.once_in(1_002, 60) && at_ms >= created_ms + (40 + random.below(1_003, 200)) as i64 * MINUTE_MS;
    if at_ms < shown_from_ms || is_gone {
        return None;
    }
    let mut title = title(random);
    if random.once_in(1_004, 50) && at_ms >= created_ms + (30 + random.below(1_005, 400)) as i64 * MINUTE_MS {
        title.push_str(if random.once_in(1_006, 2) { " (2019)" } else { " [pdf]" });
    }
    let author = author(world.seed, random.below(1_007, AUTHORS));
    let url = (!random.once_in(1_008, 8)).then(|| format!("https://{}/{id}", site(world.seed, random.below(1_009, SITES))));
    Some(ShownStory { id, created_ms, title, author, url, points: points(random, created_ms, at_ms) })
}

fn of_burst(world: &World, burst: &Burst, at: u64, hour: i64, at_ms: i64) -> Vec<ShownStory> {
    let step_ms = burst.hours.max(1) * HOUR_MS / i64::try_from(burst.stories.max(1)).unwrap_or(i64::MAX);
    let hours = burst.from_ms.div_euclid(HOUR_MS)..=(burst.from_ms + burst.hours * HOUR_MS).div_euclid(HOUR_MS);
    if !hours.contains(&hour) {
        return Vec::new();
    }
    let of_hour = (0..burst.stories).filter_map(|n| {
        let created_ms = (burst.from_ms + step_ms * n as i64 + step_ms / 2) / 1_000 * 1_000;
        (created_ms.div_euclid(HOUR_MS) == hour && created_ms <= at_ms).then_some((n, created_ms))
    });
    let stories = of_hour.take(IDS_PER_BURST as usize).map(|(n, created_ms)| {
        let id = id(hour, FIRST_OF_BURSTS + at % 140 * IDS_PER_BURST + n % IDS_PER_BURST);
        let random = Random::new(world.seed, 302, id);
        let who = n % burst.authors.max(1);
        ShownStory {
            id,
            created_ms,
            title: about(random, &burst.phrase),
            author: author(world.seed, 10_000 + at * 1_000 + who),
            url: Some(format!("https://{}/{id}", site(world.seed, 10_000 + at * 1_000 + who))),
            points: points(random, created_ms, at_ms),
        }
    });
    stories.collect()
}

/// The stories about a phrase of an hour, as the rounds in the hour two hours later left them; none without such a round. Each of these rounds moves the
/// label of a phrase: the first one lets it rise, the second one ends that, and the third one begins with another phrase.
fn of_rounds(world: &World, hour: i64, at_ms: i64) -> Vec<ShownStory> {
    let rounds = world.rounds.iter().filter(|round| round.at_ms.div_euclid(HOUR_MS) == hour + ROUND_HOURS_AGO).count();
    let Some(last) = rounds.checked_sub(1) else { return Vec::new() };
    let (turn, earlier_phrases) = (last % ROUND_STORIES.len(), (last / ROUND_STORIES.len()) as u64);
    let phrase = phrase_of(hour + earlier_phrases as i64 * HOURS_BETWEEN_PHRASES);
    let stories = (0..ROUND_STORIES[turn]).map(|number| {
        let of_hour = (earlier_phrases * ROUND_STORIES[0] + number) % IDS_OF_ROUNDS;
        let (id, who) = (id(hour, FIRST_OF_ROUNDS + of_hour), AUTHORS_OF_ROUNDS + number);
        let (random, created_ms) = (Random::new(world.seed, 302, id), hour * HOUR_MS + 10 * (1 + number as i64) * MINUTE_MS);
        ShownStory {
            id,
            created_ms,
            title: about(random, &phrase),
            author: author(world.seed, who),
            url: Some(format!("https://{}/{id}", site(world.seed, who))),
            points: points(random, created_ms, at_ms),
        }
    });
    stories.collect()
}

/// The title of a story about a phrase.
fn about(random: Random, phrase: &str) -> String {
    let form = ["{} explained", "Why {} matters", "A first look at {}", "{} in practice", "Show HN: {} for everyone", "Ask HN: {}?"];
    let phrase = if random.once_in(1, 2) { capitalised(phrase) } else { phrase.to_owned() };
    random.pick(0, &form).replace("{}", &phrase)
}

fn author(seed: u64, number: u64) -> String {
    format!("{}{}", name(Random::new(seed, 303, number), 0).to_lowercase(), number % 1_000)
}

fn site(seed: u64, number: u64) -> String {
    format!("{}{}.example", name(Random::new(seed, 304, number), 0).to_lowercase(), number % 1_000)
}

/// Points grow for half a day.
fn points(random: Random, created_ms: i64, at_ms: i64) -> u64 {
    let hours = (at_ms - created_ms).div_euclid(HOUR_MS).clamp(0, 12).unsigned_abs();
    1 + hours * random.below(2_000, 6) * random.below(2_001, 5)
}

/// Answers a search.
pub(crate) fn answer(world: &World, query: &Query<'_>, at_ms: i64, plan: &Plan) -> Answer {
    if plan.has(Fault::Outage) || world.script.outages.iter().any(|(from, to)| (*from..*to).contains(&at_ms)) {
        return Answer::html(503, "Service Unavailable");
    }
    let filters = query.get("numericFilters").unwrap_or_default();
    let bound =
        |sign: &str| filters.split(',').find_map(|filter| filter.strip_prefix("created_at_i")?.strip_prefix(sign)?.parse::<i64>().ok());
    let (Some(from), Some(to)) = (bound(">="), bound("<")) else {
        let message = json!({"message": "invalid numericFilters", "status": 400});
        return Answer { status: 400, ..Answer::json(message.to_string().into_bytes()) };
    };
    let mut stories = shown(world, from.saturating_mul(1_000), to.saturating_mul(1_000), at_ms);
    stories.retain(|story| !plan.vanishes(Random::new(world.seed, 305, story.id)));
    let asked = query.get("hitsPerPage").and_then(|asked| asked.parse().ok()).unwrap_or(20_usize).clamp(1, HITS_MAX);
    let total = stories.len() as u64;
    // The count is an estimate now and then, and jumps between requests.
    let random = Random::new(world.seed, 306, from.unsigned_abs() ^ (at_ms / MINUTE_MS).unsigned_abs());
    let is_estimate = random.once_in(0, 6);
    let counted = if is_estimate { (total + random.below(1, 8)).saturating_sub(3) } else { total };
    let hits: Vec<Value> = stories
        .iter()
        .take(asked)
        .map(|story| {
            let mut hit = hit(story);
            plan.schema.apply(&mut hit);
            hit
        })
        .collect();
    let body = json!({
        "exhaustiveNbHits": !is_estimate, "hits": hits, "hitsPerPage": asked, "nbHits": counted, "nbPages": 1, "page": 0,
        "params": query.raw, "processingTimeMS": 1 + random.below(2, 9), "query": "",
    });
    Answer::json(body.to_string().into_bytes())
}

fn hit(story: &ShownStory) -> Value {
    let at = jiff::Timestamp::from_millisecond(story.created_ms).unwrap_or_default();
    let mut hit = json!({
        "_highlightResult": {"title": {"matchLevel": "none", "matchedWords": [], "value": story.title}},
        "_tags": ["story", format!("author_{}", story.author), format!("story_{}", story.id)],
        "author": story.author,
        "created_at": at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "created_at_i": story.created_ms / 1_000,
        "num_comments": story.points / 3,
        "objectID": story.id.to_string(),
        "points": story.points,
        "story_id": story.id,
        "title": story.title,
        "updated_at": "2026-01-01T00:00:00Z",
    });
    // A text post has no url, and in an older form null.
    match &story.url {
        Some(url) => hit["url"] = json!(url),
        None if story.id.is_multiple_of(2) => hit["url"] = Value::Null,
        None => {}
    }
    hit
}

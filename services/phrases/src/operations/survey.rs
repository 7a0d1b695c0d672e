//! The phrases that rise. For the default question decisions have listed them; for any other one all phrases of the window are counted.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use feed::position::Position;
use futures_util::future::try_join_all;
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use velocity::measure::{MULTIPLE_DEFAULT, Measure, Question, WINDOW_DEFAULT, longest_only};

use super::answer::Velocity;
use super::counting::{Counts, PHRASES_MAX, count};
use super::index::stories_of_hours;
use super::ledger::Ledger;
use super::measured_phrases::{Measured, Shared, measure, with_views};
use super::newest::Newest;
use super::samples::is_hidden;

/// The most stories that are counted. Windows beyond them count as not complete.
const STORIES_MAX: usize = 400_000;
/// The most phrases that are shown.
const SHOWN_MAX: usize = 200;
/// How many surveys a process keeps.
const SURVEYS_MAX: usize = 12;
/// How many counts a process keeps.
const COUNTS_MAX: usize = 4;
/// How many hours are read before the number of stories is checked.
const HOURS_A_READ: i64 = 96;

/// What a survey is kept by: generation and rendition, because the titles that it shows can be hidden, seq, window and multiple.
type SurveyKey = ((u64, u64), Seq, i64, u64);
/// What counts are kept by: generation, seq and window. They serve all multiples.
type CountsKey = (u64, Seq, i64);

/// The surveys and counts that a process keeps.
#[derive(Default)]
struct Surveys {
    surveys: Newest<SurveyKey, Arc<Survey>, SURVEYS_MAX>,
    counts: Newest<CountsKey, Arc<(Counts, Vec<String>)>, COUNTS_MAX>,
}

impl Part for Surveys {}

/// The phrases of a window that rise.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// The phrases that are RISING or WARMING, in the order of answers, at most 200. Of phrases that contain each other with equal counts the
    /// longest.
    phrases: Vec<RisingPhrase>,
    /// What was left out.
    pub(crate) notes: Vec<String>,
}

/// A phrase that rises.
#[derive(Debug)]
struct RisingPhrase {
    measured: Measured,
    /// What answers at the newest position show, once one showed it: its stories are read only then.
    shown: OnceLock<Velocity>,
}

impl RisingPhrase {
    async fn shown(&self, at: &Position, ledger: &Ledger, question: Question) -> Result<Velocity, Problem> {
        // An earlier position shows no story that is gone by now, so what was shown there is not kept.
        let is_newest = at.seq == at.last;
        if let Some(shown) = self.shown.get().filter(|_| is_newest) {
            return Ok(shown.clone());
        }
        let shown = self.measured.shown(at, ledger, question).await?;
        Ok(if is_newest { self.shown.get_or_init(|| shown).clone() } else { shown })
    }
}

impl Survey {
    /// The first phrases, without those that operators suppressed. They are left out last, so that the parts of a suppressed phrase do not take its place.
    pub(crate) async fn shown(&self, at: &Position, ledger: &Ledger, question: Question, limit: usize) -> Result<Vec<Velocity>, Problem> {
        let shown = self.phrases.iter().filter(|found| !is_hidden(&*at.view, &found.measured.phrase)).take(limit);
        try_join_all(shown.map(|found| found.shown(at, ledger, question))).await
    }
}

/// Returns the phrases that rise at a position.
pub(crate) async fn survey(ctx: &Context, at: &Position, ledger: &Shared, question: Question) -> Result<Arc<Survey>, Problem> {
    let surveys = Surveys::of(ctx);
    let generation = (at.view.generation(), at.view.rendition());
    let place = (generation, at.seq, question.window_hours, question.min_multiple.to_bits());
    if let Some(known) = surveys.surveys.get(&place) {
        return Ok(known);
    }
    let (found, notes) = if question == Question::default() {
        (measure(ledger, ledger.board().await?, question).await?, Vec::new())
    } else {
        let counts = counts(ctx, at, ledger, question.window_hours).await?;
        let (counts, notes) = &*counts;
        let rising = counts.phrases.iter().map(|(phrase, measure)| (phrase, measure.with_multiple(question.min_multiple)));
        let rising: Vec<(String, Measure)> =
            rising.filter(|(_, measure)| measure.label().is_up()).map(|(phrase, measure)| (phrase.clone(), measure)).collect();
        (with_views(ledger, rising, question).await?, notes.clone())
    };
    let mut found = listed(found);
    if is_narrower(question) {
        let usual = listed(measure(ledger, ledger.board().await?, Question::default()).await?);
        let usual: HashSet<&str> = usual.iter().map(|one| one.phrase.as_str()).collect();
        found.retain(|one| usual.contains(one.phrase.as_str()));
    }
    let phrases = found.into_iter().map(|measured| RisingPhrase { measured, shown: OnceLock::new() }).collect();
    let survey = Arc::new(Survey { phrases, notes });
    surveys.surveys.put(place, Arc::clone(&survey));
    Ok(survey)
}

/// The phrases that are shown, in their order.
fn listed(mut found: Vec<Measured>) -> Vec<Measured> {
    found.retain(|found| found.label().is_up());
    found.sort_by(Measured::is_before);
    let mut found = longest_only(found, |found| (found.phrase.as_str(), found.measure.counted.count));
    found.truncate(SHOWN_MAX);
    found
}

/// Whether a question can only have phrases of the default one: a larger multiple for the same window. Decisions list the phrases of rows, which leave
/// some of long titles out; without them a larger multiple could show more.
fn is_narrower(question: Question) -> bool {
    question.window_hours == WINDOW_DEFAULT && question.min_multiple > MULTIPLE_DEFAULT
}

/// Counts all phrases of the window: those that rise by some multiple, and what was left out.
async fn counts(ctx: &Context, at: &Position, ledger: &Shared, window_hours: i64) -> Result<Arc<(Counts, Vec<String>)>, Problem> {
    let surveys = Surveys::of(ctx);
    let place = (at.view.generation(), at.seq, window_hours);
    if let Some(known) = surveys.counts.get(&place) {
        return Ok(known);
    }
    let covered = ledger.covered();
    let (mut stories, mut upto, mut notes) = (Vec::new(), *covered.end(), Vec::new());
    let mut first = upto + 1;
    while first > *covered.start() && stories.len() < STORIES_MAX {
        first = (upto - HOURS_A_READ + 1).max(*covered.start());
        stories.extend(stories_of_hours(at, first..=upto).await?);
        upto = first - 1;
    }
    if first > *covered.start() {
        notes.push(format!("only the newest {STORIES_MAX} stories were counted, so that the oldest windows are left out of the baseline"));
    }
    let (hours, newest, current) = (ledger.hours.since(first), ledger.newest, ledger.current());
    // Hundreds of thousands of phrases take long and must not block other tasks.
    let counted = tokio::task::spawn_blocking(move || count(&stories, &hours, newest, &current, window_hours)).await;
    let counts = counted.map_err(|error| {
        tracing::error!(%error, "counting phrases panicked");
        Problem::new(ErrorCode::Internal, "the phrases could not be counted")
    })?;
    if counts.is_cut {
        notes.push(format!("only the {PHRASES_MAX} phrases with the highest counts were measured"));
    }
    let counts = Arc::new((counts, notes));
    surveys.counts.put(place, Arc::clone(&counts));
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use feed::testing::{World, value};
    use fold::records::Rules;
    use reads::read::operation;
    use schemas::key;
    use schemas::suppression::{PHRASE, SuppressionRow};
    use schemas::tables::Write;
    use schemas::views::accounts::{SUPPRESSIONS, VIEW as ACCOUNTS};
    use serde_json::json;
    use velocity::calendar::{DAY_HOURS, HOUR_MS};
    use velocity::hours::{DayRow, Hour};
    use velocity::mentions::Mentions;
    use velocity::rows::{BOARD_KEY, Board, CLOCK_KEY, Clock, DocRow, day_key, doc_key, gram_key, record_id};
    use view_store::feed::FeedTail;
    use view_store::{Checkpoint, View, ViewStore};

    use super::*;
    use crate::operations::addresses::ids_of;
    use crate::operations::rising;
    use crate::operations::velocity::Arguments as VelocityArguments;
    use crate::record::TABLES;
    use crate::rules::PhrasesRules;

    const NEWEST: i64 = 480_000;

    fn row(key: &str, value: &impl serde::Serialize) -> Write {
        Write::put(TABLES.state, key![key], Bytes::from(serde_json::to_vec(value).unwrap()))
    }

    fn checkpoint(seq: u64) -> Checkpoint {
        Checkpoint { seq: Seq(seq), ..Checkpoint::default() }
    }

    /// A view in which five stories have the phrase `agent mesh`, which nobody mentioned before.
    async fn with_stories(world: &World) -> Arc<dyn View> {
        let view = world.store.live(TABLES.view).await.unwrap();
        let mut writes = Vec::new();
        for day in NEWEST.div_euclid(DAY_HOURS) - 15..=NEWEST.div_euclid(DAY_HOURS) {
            let mut hours = DayRow::default();
            for hour in (0..DAY_HOURS).filter(|hour| day * DAY_HOURS + hour <= NEWEST) {
                hours.insert(hour, Hour { stories: 50, is_complete: true });
            }
            writes.push(row(&day_key(day), &hours));
        }
        let mut mentions = Vec::new();
        for n in 1..=5_u32 {
            let title = if n == 5 { "Agent mesh of Ann Oak".to_owned() } else { format!("Agent mesh {n}") };
            let doc = DocRow { hour: NEWEST - 1, author: n, domain: n, title, ..DocRow::default() };
            let key = doc_key(&n.to_string());
            writes.extend(PhrasesRules::index(&key, &serde_json::to_string(&doc).unwrap(), Seq(n.into())));
            writes.push(row(&key, &doc));
            mentions.push(doc.mention());
        }
        writes.push(row(&gram_key("agent mesh"), &Mentions::of(mentions)));
        writes.push(row(CLOCK_KEY, &Clock { newest: NEWEST, ..Clock::default() }));
        writes.push(row(BOARD_KEY, &Board { hour: NEWEST, phrases: vec!["agent mesh".to_owned()] }));
        let mut tail = FeedTail::empty();
        (1..=5).for_each(|seq| tail.push(Seq(seq), HOUR_MS, None).unwrap());
        writes.extend(tail.take_writes(TABLES.feed));
        view.commit(writes, &checkpoint(5)).await.unwrap();
        view
    }

    /// Proves that the stories of a rising phrase are those that are there now and that operators do not hide, also if an earlier answer showed others.
    #[tokio::test]
    async fn kept_surveys_show_no_story_that_is_gone_or_hidden() {
        let world = World::new().await;
        let (view, ctx) = (with_stories(&world).await, world.context((NEWEST + 1) * HOUR_MS));
        let titles = async |view: &Arc<dyn View>, last: u64| {
            let now = ctx.clock.now();
            let at = Position { view: Arc::clone(view), seq: Seq(5), last: Seq(last), now, clock_time: now };
            let ledger = Ledger::of(&ctx, &at, WINDOW_DEFAULT).await.unwrap().unwrap();
            let survey = survey(&ctx, &at, &ledger, Question::default()).await.unwrap();
            let shown = survey.shown(&at, &ledger, Question::default(), 10).await.unwrap();
            assert_eq!(shown.iter().map(|one| one.phrase.as_str()).collect::<Vec<_>>(), ["agent mesh"]);
            shown[0].samples.iter().map(|sample| sample.title.clone()).collect::<Vec<_>>()
        };
        for _ in 0..2 {
            assert_eq!(titles(&view, 5).await, ["Agent mesh of Ann Oak", "Agent mesh 4", "Agent mesh 3"]);
        }
        hide(&world, &["Ann Oak"]).await;
        let without = ctx.store.live(TABLES.view).await.unwrap();
        assert_eq!(titles(&without, 5).await, ["Agent mesh 4", "Agent mesh 3", "Agent mesh 2"]);
        let removed = row(&doc_key("4"), &DocRow { hour: NEWEST - 1, removed: true, ..DocRow::default() });
        view.commit(vec![removed], &checkpoint(6)).await.unwrap();
        assert_eq!(titles(&without, 6).await, ["Agent mesh 3", "Agent mesh 2", "Agent mesh 1"]);
        assert_eq!(titles(&view, 6).await, ["Agent mesh of Ann Oak", "Agent mesh 3", "Agent mesh 2"]);
    }

    /// Hides phrases on request.
    async fn hide(world: &World, phrases: &[&str]) {
        let row = Bytes::from(serde_json::to_vec(&SuppressionRow::default()).unwrap());
        let hidden =
            phrases.iter().map(|phrase| Write::put(&SUPPRESSIONS, key![PHRASE.name, PHRASE.normalize(phrase).unwrap()], row.clone()));
        world.store.live(&ACCOUNTS).await.unwrap().commit(hidden.collect(), &checkpoint(1)).await.unwrap();
    }

    /// Proves that answers say how many phrases are hidden, the same whatever they are asked for: a phrase that rises in one window, or by one multiple, counts
    /// as one that rises in none.
    #[tokio::test]
    async fn the_number_of_hidden_phrases_does_not_tell_when_they_rise() {
        let world = World::new().await;
        with_stories(&world).await;
        let ctx = world.context((NEWEST + 1) * HOUR_MS);
        let rising = async |arguments: serde_json::Value| {
            let found = value(&ctx, &operation::<rising::Arguments>(), arguments).await;
            (found["count"].as_u64().unwrap(), found["note"].as_str().unwrap_or_default().to_owned())
        };
        let (count, note) = rising(json!({})).await;
        assert!(count == 1 && !note.contains("hidden"), "{count} {note}");
        hide(&world, &["agent mesh", "quiet words"]).await;
        for arguments in
            [json!({}), json!({ "min_multiple": 20 }), json!({ "window_hours": 72 }), json!({ "window_hours": 6, "min_multiple": 1.5 })]
        {
            let (count, note) = rising(arguments.clone()).await;
            assert!(
                count == 0 && note.contains("phrases, rising or not, that are hidden on request and left out: 2"),
                "{arguments}: {count} {note}"
            );
        }
    }

    /// Proves that the window ends with the last hour that was read completely, however long ago that was: while no stories come, counts and labels remain, and
    /// a note says until when stories have been read.
    #[tokio::test]
    async fn outages_change_no_label() {
        let world = World::new().await;
        with_stories(&world).await;
        let velocity = async |hours_later: i64| {
            let ctx = world.context((NEWEST + 1 + hours_later) * HOUR_MS);
            value(&ctx, &operation::<VelocityArguments>(), json!({ "phrase": "agent mesh" })).await
        };
        let now = velocity(0).await;
        assert_eq!((&now["label"], &now["count"]), (&json!("RISING"), &json!(5)), "{now}");
        for (hours_later, has_note) in [(0, false), (3, false), (4, true), (24 * 20, true)] {
            let answer = velocity(hours_later).await;
            for field in ["label", "count", "baseline", "multiple", "window", "updated"] {
                assert_eq!(answer[field], now[field], "{field} after {hours_later} hours");
            }
            let note = answer["note"].as_str().unwrap_or_default();
            assert_eq!(note.contains("stories have been read completely until"), has_note, "{hours_later}: {note}");
        }
    }

    /// Proves that a phrase that operators hide is in no survey, and that its record is not found by its words.
    #[tokio::test]
    async fn hidden_phrases_are_not_found() {
        let world = World::new().await;
        let (view, ctx) = (with_stories(&world).await, world.context((NEWEST + 1) * HOUR_MS));
        let now = ctx.clock.now();
        let position = |view: &Arc<dyn View>| Position { view: Arc::clone(view), seq: Seq(5), last: Seq(5), now, clock_time: now };
        let shown = async |at: &Position| {
            let ledger = Ledger::of(&ctx, at, WINDOW_DEFAULT).await.unwrap().unwrap();
            let survey = survey(&ctx, at, &ledger, Question::default()).await.unwrap();
            survey.shown(at, &ledger, Question::default(), 10).await.unwrap().len()
        };
        let at = position(&view);
        assert_eq!(shown(&at).await, 1);
        for text in ["agent mesh", "Agent Mesh", "agent-mesh", " AGENT  MESH "] {
            assert_eq!(ids_of(&at, text), [text.trim().to_lowercase(), record_id("agent mesh")], "{text:?}");
        }
        assert_eq!(ids_of(&at, "00FF00FF00FF00FF")[0], "00ff00ff00ff00ff");
        assert_eq!(ids_of(&at, "--"), ["--"], "no phrase");
        hide(&world, &["agent mesh"]).await;
        let at = position(&ctx.store.live(TABLES.view).await.unwrap());
        assert_eq!((shown(&at).await, ids_of(&at, "Agent-Mesh")), (0, vec!["agent-mesh".to_owned()]));
        assert_eq!(ids_of(&at, "agent net"), ["agent net".to_owned(), record_id("agent net")]);
    }

    /// Proves which questions show only phrases that the default one shows.
    #[test]
    fn narrower_questions() {
        for (window_hours, min_multiple, expected) in [(24, 10.0, true), (24, 3.0, false), (24, 2.0, false), (48, 10.0, false)] {
            assert_eq!(is_narrower(Question { window_hours, min_multiple }), expected, "{window_hours} {min_multiple}");
        }
    }
}

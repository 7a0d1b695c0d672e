//! The phrases that rise. For the default question decisions have listed them; for any other one all phrases of the window are counted.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use feed::position::Position;
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use velocity::grams::all_grams;
use velocity::hours::Hours;
use velocity::label::COUNT_MIN;
use velocity::measure::{MULTIPLE_DEFAULT, Measure, Question, Scale, WINDOW_DEFAULT, longest_only};
use velocity::mentions::{Mention, Mentions};
use velocity::rows::Posting;
use velocity::words::is_blocked;

use super::answer::Velocity;
use super::index::stories_of_hours;
use super::measured::{Measured, Shared, measure, shown, with_views};

/// The most stories that are counted. Windows beyond them count as not complete.
const STORIES_MAX: usize = 400_000;
/// The most phrases that are measured: those with the highest counts.
const PHRASES_MAX: usize = 30_000;
/// The most phrases that are shown.
const SHOWN_MAX: usize = 200;
/// How many surveys a process keeps.
const SURVEYS_MAX: usize = 12;
/// How many hours are read before the number of stories is checked.
const HOURS_A_READ: i64 = 96;

/// What a survey is kept by: generation, seq, window and multiple.
type Place = (u64, Seq, i64, u64);

/// The surveys that a process keeps.
#[derive(Default)]
struct Surveys(Mutex<Vec<(Place, Arc<Survey>)>>);

impl Part for Surveys {}

/// The phrases of a window that rise.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// The phrases that are RISING or WARMING, in the order of answers, at most 200. Of phrases that contain each other with equal counts the
    /// longest.
    pub(crate) phrases: Vec<Velocity>,
    /// What was left out.
    pub(crate) notes: Vec<String>,
}

/// Returns the phrases that rise at a position.
pub(crate) async fn survey(ctx: &Context, at: &Position, ledger: &Shared, question: Question) -> Result<Arc<Survey>, Problem> {
    let surveys = Surveys::of(ctx);
    let place = (at.view.generation(), at.seq, question.window_hours, question.min_multiple.to_bits());
    let known = |all: &[(Place, Arc<Survey>)]| all.iter().find(|(of, _)| *of == place).map(|(_, survey)| Arc::clone(survey));
    if let Some(known) = known(&surveys.0.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(known);
    }
    let (found, notes) = if question == Question::default() {
        (measure(ledger, ledger.board().await?, question).await?, Vec::new())
    } else {
        count(at, ledger, question).await?
    };
    let mut found = listed(found);
    if is_narrower(question) {
        let usual = listed(measure(ledger, ledger.board().await?, Question::default()).await?);
        let usual: HashSet<&str> = usual.iter().map(|one| one.phrase.as_str()).collect();
        found.retain(|one| usual.contains(one.phrase.as_str()));
    }
    let survey = Arc::new(Survey { phrases: shown(at, ledger, &found, question).await?, notes });
    let mut all = surveys.0.lock().unwrap_or_else(PoisonError::into_inner);
    all.truncate(SURVEYS_MAX - 1);
    all.insert(0, (place, Arc::clone(&survey)));
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

/// Measures all phrases of the window: those that may rise, and what was left out.
async fn count(at: &Position, ledger: &Shared, question: Question) -> Result<(Vec<Measured>, Vec<String>), Problem> {
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
    let counted = tokio::task::spawn_blocking(move || measures(&stories, &hours, newest, &current, question)).await;
    let (measures, is_cut) = counted.map_err(|error| {
        tracing::error!(%error, "counting phrases panicked");
        Problem::new(ErrorCode::Internal, "the phrases could not be counted")
    })?;
    if is_cut {
        notes.push(format!("only the {PHRASES_MAX} phrases with the highest counts were measured"));
    }
    Ok((with_views(ledger, measures, question).await?, notes))
}

/// Measures the phrases of the current window with enough stories: those that rise, and whether some were left out.
fn measures(
    stories: &[Posting],
    hours: &Hours,
    newest: i64,
    current: &std::ops::RangeInclusive<i64>,
    question: Question,
) -> (Vec<(String, Measure)>, bool) {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for story in stories.iter().filter(|story| current.contains(&story.mention.hour)) {
        for gram in all_grams(&story.words) {
            *counts.entry(gram).or_default() += 1;
        }
    }
    let mut wanted: Vec<(&str, u64)> = counts.into_iter().filter(|(gram, count)| *count >= COUNT_MIN && !is_blocked(gram)).collect();
    let is_cut = wanted.len() > PHRASES_MAX;
    if is_cut {
        wanted.sort_unstable_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        wanted.truncate(PHRASES_MAX);
    }
    let mut mentions: HashMap<&str, Vec<Mention>> = wanted.into_iter().map(|(gram, _)| (gram, Vec::new())).collect();
    for story in stories {
        for gram in all_grams(&story.words) {
            if let Some(mentions) = mentions.get_mut(gram) {
                mentions.push(story.mention);
            }
        }
    }
    let scale = Scale::new(hours, newest, question);
    let measured = mentions.into_iter().map(|(gram, mentions)| (gram.to_owned(), scale.measure(&Mentions::of(mentions))));
    // Page views lift no label from FLAT.
    (measured.filter(|(_, measure)| measure.label().is_up()).collect(), is_cut)
}

#[cfg(test)]
mod tests {
    use velocity::hours::Hour;
    use velocity::mentions::Poster;

    use super::*;

    /// Proves which questions show only phrases that the default one shows.
    #[test]
    fn narrower_questions() {
        for (window_hours, min_multiple, expected) in [(24, 10.0, true), (24, 3.0, false), (24, 2.0, false), (48, 10.0, false)] {
            assert_eq!(is_narrower(Question { window_hours, min_multiple }), expected, "{window_hours} {min_multiple}");
        }
    }

    /// Proves that a phrase of four words at the end of titles of 16 words is counted in each of them.
    #[test]
    fn long_phrases_are_counted_in_long_titles() {
        let (newest, mut hours) = (1_000, Hours::default());
        (0..=newest).for_each(|hour| hours.set(hour, Hour { stories: 50, is_complete: true }));
        let story = |author: u32| Posting {
            mention: Mention { hour: newest - i64::from(author), poster: Poster { author, domain: author } },
            is_removed: false,
            id: author.to_string(),
            words: (0..12).map(|word| format!("w{author}x{word} ")).collect::<String>() + "our new agent mesh",
        };
        let stories: Vec<Posting> = (1..=9).map(story).collect();
        let question = Question::default();
        let (found, is_cut) = measures(&stories, &hours, newest, &(newest - question.window_hours + 1..=newest), question);
        let counted = found.iter().find(|(phrase, _)| phrase == "our new agent mesh").map(|(_, measure)| measure.counted.count);
        assert_eq!((counted, is_cut), (Some(9), false));
    }
}

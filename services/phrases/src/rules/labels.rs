//! The labels of phrases when an hour is complete.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::record::{FLAT, Phrase};
use velocity::calendar::{DAY_HOURS, hour_of, time};
use velocity::hours::{DayRow, Hours};
use velocity::label::{Label, confirmed};
use velocity::measure::{MULTIPLE_DEFAULT, Measure, Question, Scale, WINDOW_DEFAULT, longest_only, thousandths};
use velocity::mentions::{KEPT_HOURS, Mentions};
use velocity::rows::{
    BOARD_KEY, BOARD_MAX, Board, CANDIDATE_PARTS, Clock, LOWEST_KEY, LowestRow, ViewsRow, candidate_part, candidates_key, day_key,
    record_id, views_key,
};
use velocity::views::newest_day;

use super::{Rows, add_to_list, gram_rows};
use fold::service::Undecided;
use fold::undecided::all;

/// How many days before the day of the newest hour the windows reach.
pub(super) const DAYS_READ: i64 = 15;
/// The phrases of so many days before are labelled too: those that cool have fewer mentions than on the days before.
const CANDIDATE_DAYS: i64 = 2;
/// After a gap the phrases of at most so many days are labelled.
const CANDIDATE_DAYS_MAX: i64 = 31;

/// A phrase that may have a label.
struct Candidate {
    phrase: String,
    mentions: Mentions,
    record: Option<Phrase>,
    measure: Measure,
    label: Label,
}

impl Candidate {
    /// Whether its label differs from the recorded one.
    fn is_changed(&self) -> bool {
        self.label.as_str() != self.record.as_ref().map_or(FLAT, |record| record.label.as_str())
    }
}

/// Labels the phrases at the newest hour: those with three mentions in some 24 hours of these days, and those whose label is not FLAT.
pub(super) fn decide(state: &mut Rows<'_>, clock: &mut Clock) -> Result<(), Undecided> {
    let (newest, today) = (clock.newest, clock.newest.div_euclid(DAY_HOURS));
    let mut hours = Hours::default();
    let days: Vec<Option<DayRow>> = all((today - DAYS_READ..=today).map(|day| state.get(&day_key(day))))?;
    for (day, row) in (today - DAYS_READ..).zip(days) {
        hours.add_day(day, &row.unwrap_or_default());
    }
    let scale = Scale::new(&hours, newest, Question { window_hours: WINDOW_DEFAULT, min_multiple: MULTIPLE_DEFAULT });
    let first = clock.labelled_day.min(today - CANDIDATE_DAYS).max(today - CANDIDATE_DAYS_MAX);
    let lists = (first..=today).flat_map(|day| (0..CANDIDATE_PARTS).map(move |part| candidates_key(day, part)));
    let lists: Vec<Option<BTreeSet<String>>> = all(lists.map(|key| state.get(&key)))?;
    let phrases: BTreeSet<String> = lists.into_iter().flatten().flatten().collect();
    let mut candidates = all(phrases.into_iter().map(|phrase| {
        // All rows are named before any is missed.
        let (mentions, record) = (gram_rows::read_mentions(state, &phrase), state.unchanged_record(&record_id(&phrase)));
        let mentions = mentions?;
        let measure = scale.measure(&mentions);
        Ok(Candidate { phrase, mentions, record: record?, label: measure.label(), measure })
    }))?;
    confirm(state, today, &mut candidates)?;
    // A phrase whose label is not FLAT is on the list of each day, so that the days that follow label it too, whether it is mentioned or not.
    let is_new_day = today > clock.labelled_day;
    let active = candidates.iter().filter(|one| one.label != Label::Flat && (is_new_day || one.is_changed()));
    all(active.map(|one| add_to_list(state, &candidates_key(today, candidate_part(&one.phrase)), &one.phrase)))?;
    clock.labelled_day = clock.labelled_day.max(today);
    for candidate in candidates.iter().filter(|one| one.is_changed()) {
        state.put(record_of(candidate, newest))?;
    }
    remember_board(state, newest, candidates)
}

/// Lifts phrases that warm where page views rise.
fn confirm(state: &mut Rows<'_>, today: i64, candidates: &mut [Candidate]) -> Result<(), Undecided> {
    let lowest: LowestRow = state.get(LOWEST_KEY)?.unwrap_or_default();
    let Some(day) = newest_day(&lowest.days, today) else { return Ok(()) };
    let warming: Vec<&mut Candidate> = candidates.iter_mut().filter(|candidate| candidate.label == Label::Warming).collect();
    let rows: Vec<Option<ViewsRow>> = all(warming.iter().map(|candidate| state.get(&views_key(&candidate.phrase))))?;
    for (candidate, row) in warming.into_iter().zip(rows) {
        let views = row.and_then(|row| row.days.measure(day, &lowest.days, MULTIPLE_DEFAULT));
        candidate.label = confirmed(candidate.label, views.map(|views| views.label));
    }
    Ok(())
}

/// The record of a phrase whose label changed.
fn record_of(candidate: &Candidate, newest: i64) -> Phrase {
    let Candidate { phrase, mentions, record, measure, label } = candidate;
    let count = measure.counted.count;
    // The hours since the label was last FLAT.
    let since = record.as_ref().filter(|record| record.label != FLAT).and_then(|record| hour_of(record.since.get(..13)?));
    let since = since.map_or(newest, |since| since.max(newest - KEPT_HOURS));
    let peak = (since..=newest).map(|hour| mentions.window(hour, WINDOW_DEFAULT).count).max().unwrap_or(count).max(count);
    let before = record.as_ref().filter(|record| record.label != FLAT).map_or(0, |record| record.peak);
    Phrase {
        id: record_id(phrase),
        phrase: phrase.clone(),
        label: label.as_str().to_owned(),
        window: WINDOW_DEFAULT,
        multiple: measure.rank_multiple(),
        count: int(count),
        baseline: thousandths(measure.baseline.unwrap_or_default()),
        since: time(newest + 1),
        peak: int(peak).max(before),
        suppressed: false,
    }
}

/// Remembers the phrases that rise, in the order of the answer.
fn remember_board(state: &mut Rows<'_>, newest: i64, candidates: Vec<Candidate>) -> Result<(), Undecided> {
    let mut rising: Vec<Candidate> = candidates.into_iter().filter(|candidate| candidate.label.is_up()).collect();
    rising.sort_by(|a, b| {
        let rank = |one: &Candidate| Reverse(one.measure.counted.count);
        b.measure.rank_multiple().total_cmp(&a.measure.rank_multiple()).then_with(|| (rank(a), &a.phrase).cmp(&(rank(b), &b.phrase)))
    });
    let rising = longest_only(rising, |one| (one.phrase.as_str(), one.measure.counted.count));
    let phrases = rising.into_iter().take(BOARD_MAX).map(|one| one.phrase).collect();
    state.remember(BOARD_KEY, Some(&Board { hour: newest, phrases }))
}

fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

//! Deletes what is too old, so that the state stays bounded: the mentions of phrases that nobody has mentioned for 31 days, the views of articles that
//! no list has had for 35 days, and lists of earlier days. What is remembered of a story itself remains.

use std::collections::BTreeSet;

use velocity::calendar::DAY_HOURS;
use velocity::grams::{grams, normal};
use velocity::rows::{
    ARTICLE_PARTS, CANDIDATE_PARTS, Clock, DOC_PARTS, DocRow, ViewsRow, articles_key, candidates_key, doc_key, doc_list_key, open_day_key,
    views_key,
};
use velocity::views::KEPT_DAYS;

use super::{Rows, gram_rows};
use fold::service::Undecided;
use fold::undecided::all;

/// The mentions of a story are deleted when so many hours have passed.
pub(super) const DELETED_AFTER_HOURS: i64 = 31 * DAY_HOURS;
/// The most hours of stories that one decision deletes. Those that remain are deleted with the next hours.
const HOURS_MAX: i64 = 3;
/// Each day of page views also prunes what so many days before it left, because the list of a day may never come.
const MISSED_DAYS_MAX: i64 = 10;

/// Deletes the mentions of the stories of hours that are old enough now.
pub(super) fn decide(state: &mut Rows<'_>, clock: &mut Clock) -> Result<(), Undecided> {
    let (from, upto) = (clock.pruned + 1, (clock.newest - DELETED_AFTER_HOURS).min(clock.pruned + HOURS_MAX));
    if from > upto {
        return Ok(());
    }
    let lists: Vec<String> = (from..=upto).flat_map(|hour| (0..DOC_PARTS).map(move |part| doc_list_key(hour, part))).collect();
    let docs: Vec<Option<BTreeSet<String>>> = all(lists.iter().map(|key| state.get(key)))?;
    let is_listed: Vec<bool> = docs.iter().map(Option::is_some).collect();
    let docs = all(docs.into_iter().flatten().flatten().map(|id| state.get::<DocRow>(&doc_key(&id))))?;
    // The phrases of a title that was edited away have no mention of the story any more.
    let titles: Vec<String> = docs.into_iter().flatten().map(|doc| normal(&doc.title)).collect();
    let phrases: BTreeSet<&str> = titles.iter().flat_map(|title| grams(title)).collect();
    let rows = all(phrases.iter().map(|phrase| gram_rows::read(state, phrase)))?;
    for (phrase, before) in phrases.into_iter().zip(rows) {
        let rows = before.settled(clock.newest).ok_or_else(|| gram_rows::damaged(phrase))?;
        gram_rows::remember(state, phrase, &before, &rows)?;
    }
    for (key, _) in lists.iter().zip(is_listed).filter(|(_, is_listed)| *is_listed) {
        state.remember::<BTreeSet<String>>(key, None)?;
    }
    for day in from.div_euclid(DAY_HOURS)..upto.div_euclid(DAY_HOURS) + 1 {
        // The last hour of a day takes the day's lists with it.
        if (from..=upto).contains(&(day * DAY_HOURS + DAY_HOURS - 1)) {
            let keys: Vec<String> = (0..CANDIDATE_PARTS).map(|part| candidates_key(day, part)).chain([open_day_key(day)]).collect();
            let known = all(keys.iter().map(|key| state.get::<serde_json::Value>(key)))?;
            for (key, _) in keys.iter().zip(known).filter(|(_, known)| known.is_some()) {
                state.remember::<()>(key, None)?;
            }
        }
    }
    clock.pruned = upto;
    Ok(())
}

/// Deletes the views of articles that no list has had since so many days before a complete day, and the lists of those days.
pub(super) fn views(state: &mut Rows<'_>, day: i64) -> Result<(), Undecided> {
    let last = day - KEPT_DAYS;
    let days = last - MISSED_DAYS_MAX..=last;
    let lists: Vec<String> = days.flat_map(|day| (0..ARTICLE_PARTS).map(move |part| articles_key(day, part))).collect();
    let listed: Vec<Option<BTreeSet<String>>> = all(lists.iter().map(|key| state.get(key)))?;
    let phrases: BTreeSet<&String> = listed.iter().flatten().flatten().collect();
    let rows = all(phrases.iter().map(|phrase| state.get::<ViewsRow>(&views_key(phrase))))?;
    for (phrase, row) in phrases.into_iter().zip(rows) {
        if row.is_some_and(|row| row.days.0.keys().all(|day| *day <= last)) {
            state.remember::<ViewsRow>(&views_key(phrase), None)?;
        }
    }
    for (key, _) in lists.iter().zip(&listed).filter(|(_, listed)| listed.is_some()) {
        state.remember::<BTreeSet<String>>(key, None)?;
    }
    Ok(())
}

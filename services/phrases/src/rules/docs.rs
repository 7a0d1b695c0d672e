//! What a story means for the counts of its phrases.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use schemas::facts::mentions::MentionFact;
use velocity::calendar::DAY_HOURS;
use velocity::grams::{grams, normal};
use velocity::mentions::{Mention, Poster};
use velocity::rows::{Before, CLOCK_KEY, Clock, DocRow, candidate_part, candidates_key, doc_key, doc_list_key, doc_part};
use velocity::words::is_blocked;

use super::{Rows, add_to_list, gram_rows, hour};
use fold::service::Undecided;
use fold::undecided::all;

/// Adds a story, edits it, or takes it back.
pub(super) fn decide(state: &mut Rows<'_>, data: &MentionFact) -> Result<(), Undecided> {
    if data.removed {
        return remove(state, &data.id);
    }
    let Poster { author, domain } = Poster::new(&data.author, &data.domain);
    let row = DocRow {
        hour: hour(&data.hour)?,
        author,
        domain,
        title: data.title.clone(),
        url: data.url.clone(),
        published_at: data.published_at.clone(),
        removed: false,
        before: None,
    };
    replace(state, &data.id, row)
}

/// Takes a story back. One that was never seen changes nothing.
pub(super) fn remove(state: &mut Rows<'_>, id: &str) -> Result<(), Undecided> {
    match state.get::<DocRow>(&doc_key(id))? {
        Some(before) if !before.removed => replace(state, id, DocRow { hour: before.hour, removed: true, ..DocRow::default() }),
        _ => Ok(()),
    }
}

/// Replaces what is remembered of a story, and updates the mentions of the phrases that it had and has.
fn replace(state: &mut Rows<'_>, id: &str, row: DocRow) -> Result<(), Undecided> {
    let clock: Clock = state.get(CLOCK_KEY)?.unwrap_or_default();
    let before = state.get::<DocRow>(&doc_key(id))?.filter(|before| !before.removed);
    let (words_before, words) = (before.as_ref().map(|before| normal(&before.title)).unwrap_or_default(), normal(&row.title));
    let earlier = before.as_ref().map(|before| (before.mention(), phrases(&words_before)));
    let now = (!row.removed).then(|| (row.mention(), phrases(&words)));
    update(state, &clock, earlier.as_ref(), now.as_ref())?;
    if !row.removed && row.hour > clock.pruned {
        add_to_list(state, &doc_list_key(row.hour, doc_part(id)), id)?;
    }
    let before = before.map(|before| Before { hour: before.hour, words: words_before });
    state.remember(&doc_key(id), Some(&DocRow { before, ..row }))
}

fn phrases(words: &str) -> BTreeSet<String> {
    grams(words).into_iter().map(str::to_owned).collect()
}

/// A mention, and the phrases that it is one of.
type Story = (Mention, BTreeSet<String>);

/// Takes the mentions of a story before its change back, and adds those after it.
fn update(state: &mut Rows<'_>, clock: &Clock, earlier: Option<&Story>, now: Option<&Story>) -> Result<(), Undecided> {
    let mention_with =
        |story: Option<&Story>, phrase: &String| story.filter(|(_, phrases)| phrases.contains(phrase)).map(|(mention, _)| *mention);
    let touched: BTreeSet<&String> = [earlier, now].into_iter().flatten().flat_map(|(_, phrases)| phrases).collect();
    let touched: Vec<&String> = touched.into_iter().filter(|phrase| mention_with(earlier, phrase) != mention_with(now, phrase)).collect();
    let rows = all(touched.iter().map(|phrase| gram_rows::read(state, phrase)))?;
    let newest = (clock.newest != 0).then_some(clock.newest);
    let mut candidates = Vec::new();
    for (phrase, before) in touched.iter().zip(rows) {
        let (taken, added) = (mention_with(earlier, phrase), mention_with(now, phrase));
        let replaced = before.replace(taken, added, newest).ok_or_else(|| gram_rows::damaged(phrase))?;
        gram_rows::remember(state, phrase, &before, &replaced.rows)?;
        if let Some(mention) = added.filter(|_| replaced.has_run && !is_blocked(phrase)) {
            candidates.push((*phrase, mention.hour.div_euclid(DAY_HOURS)));
        }
    }
    all(candidates.into_iter().map(|(phrase, day)| add_candidate(state, day, phrase)))?;
    Ok(())
}

/// Adds a phrase to those that may have a label on a day. Most are there already, which the text of the row shows: decoding the list takes much longer.
fn add_candidate(state: &mut Rows<'_>, day: i64, phrase: &str) -> Result<(), Undecided> {
    let key = candidates_key(day, candidate_part(phrase));
    let list: Option<Box<RawValue>> = state.get(&key)?;
    // A phrase has no sign that JSON escapes.
    if list.is_some_and(|list| list.get().contains(&format!("\"{phrase}\""))) { Ok(()) } else { add_to_list(state, &key, phrase) }
}

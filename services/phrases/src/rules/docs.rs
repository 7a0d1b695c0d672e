//! What a story means for the counts of its phrases.

use std::collections::BTreeSet;

use schemas::facts::mentions::MentionFact;
use velocity::calendar::DAY_HOURS;
use velocity::grams::{grams, normal};
use velocity::label::COUNT_MIN;
use velocity::measure::WINDOW_DEFAULT;
use velocity::mentions::{Mention, Mentions, Poster};
use velocity::rows::{Before, CLOCK_KEY, Clock, DocRow, candidate_part, candidates_key, doc_key, doc_list_key, doc_part, gram_key};
use velocity::words::is_blocked;

use super::{Rows, add_to_list, hour};
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
    match state.source::<DocRow>(&doc_key(id))? {
        Some(before) if !before.removed => replace(state, id, DocRow { hour: before.hour, removed: true, ..DocRow::default() }),
        _ => Ok(()),
    }
}

/// Replaces what is remembered of a story, and updates the mentions of the phrases that it had and has.
fn replace(state: &mut Rows<'_>, id: &str, row: DocRow) -> Result<(), Undecided> {
    let clock: Clock = state.source(CLOCK_KEY)?.unwrap_or_default();
    let before = state.source::<DocRow>(&doc_key(id))?.filter(|before| !before.removed);
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
    let of = |story: Option<&Story>, phrase: &String| story.filter(|(_, phrases)| phrases.contains(phrase)).map(|(mention, _)| *mention);
    let touched: BTreeSet<&String> = [earlier, now].into_iter().flatten().flat_map(|(_, phrases)| phrases).collect();
    let touched: Vec<&String> = touched.into_iter().filter(|phrase| of(earlier, phrase) != of(now, phrase)).collect();
    let rows = all(touched.iter().map(|phrase| state.source::<Mentions>(&gram_key(phrase))))?;
    // Before the first complete hour nothing is too old.
    let newest_known = if clock.newest == 0 { None } else { Some(clock.newest) };
    let mut candidates = Vec::new();
    for (phrase, row) in touched.iter().zip(rows) {
        let is_known = row.is_some();
        let row = row.unwrap_or_default();
        let mut changed = row.clone();
        if let Some(mention) = of(earlier, phrase) {
            changed.remove(mention, newest_known.unwrap_or(mention.hour));
        }
        if let Some(mention) = of(now, phrase) {
            changed.add(mention, newest_known.unwrap_or(mention.hour));
            if changed.has_run(mention.hour, WINDOW_DEFAULT, COUNT_MIN) && !is_blocked(phrase) {
                candidates.push(((*phrase).clone(), mention.hour.div_euclid(DAY_HOURS)));
            }
        }
        if changed != row {
            state.remember(&gram_key(phrase), (!changed.is_empty()).then_some(&changed))?;
        } else if is_known && changed.is_empty() {
            state.remember::<Mentions>(&gram_key(phrase), None)?;
        }
    }
    all(candidates.iter().map(|(phrase, day)| add_to_list(state, &candidates_key(*day, candidate_part(phrase)), phrase)))?;
    Ok(())
}

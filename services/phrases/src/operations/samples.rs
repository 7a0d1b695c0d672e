//! The newest stories with a phrase.

use std::collections::HashSet;

use crate::record::Phrase;
use feed::position::Position;
use feed::suppression::without_hidden;
use operation::problem::Problem;
use velocity::grams::{contains, key_of, normal};
use velocity::rows::{DocRow, doc_key, gram_term, record_id, week};
use view_store::View;

use super::answer::Sample;
use super::index::{newest_postings, with_phrase};
use super::ledger::{Ledger, rows};

/// The most stories that are shown.
const SAMPLES_MAX: usize = 3;
/// How many entries of the index one read returns.
const PAGE_ENTRIES: usize = 64;
/// How many reads search the stories of one week.
const PAGES_MAX: usize = 8;

/// Whether operators hide a phrase, or a part of a text, both in their normal form.
pub(crate) fn is_hidden(view: &dyn View, text: &str) -> bool {
    let record = || Phrase { id: record_id(text), phrase: text.to_owned(), ..Phrase::default() };
    view.rendition() != 0 && without_hidden(view, record()).is_none_or(|record| record.suppressed)
}

/// Returns the newest stories of the current window whose titles contain a phrase in its normal form. A story that is gone by now is left out,
/// also as of an earlier time, and so is one whose title has a phrase that operators hide.
pub(crate) async fn samples(at: &Position, ledger: &Ledger, phrase: &str) -> Result<Vec<Sample>, Problem> {
    let Some(key) = key_of(phrase) else { return Ok(Vec::new()) };
    let current = ledger.current();
    let mut out = Vec::new();
    if key != phrase {
        let mut found = with_phrase(at, phrase, current).await?;
        found.sort_by(|a, b| (b.mention.hour, &b.id).cmp(&(a.mention.hour, &a.id)));
        let ids: Vec<String> = found.into_iter().take(PAGE_ENTRIES).map(|posting| posting.id).collect();
        out.extend(shown(at, phrase, ids).await?);
        out.truncate(SAMPLES_MAX);
        return Ok(out);
    }
    let (term, mut seen) = (gram_term(key), HashSet::new());
    for bucket in (week(*current.start())..=week(*current.end())).rev() {
        let mut upto = at.seq;
        for _ in 0..PAGES_MAX {
            let page = newest_postings(at, &term, bucket, upto, PAGE_ENTRIES).await?;
            let is_last = page.len() < PAGE_ENTRIES;
            let next = page.last().map(|(seq, _)| seq.previous());
            // The newest entry of a story says what is known of it.
            let page = page.into_iter().map(|(_, posting)| posting).filter(|posting| seen.insert(posting.id.clone()));
            let ids = page.filter(|posting| !posting.is_removed && current.contains(&posting.mention.hour)).map(|posting| posting.id);
            out.extend(shown(at, phrase, ids.collect()).await?);
            if out.len() >= SAMPLES_MAX {
                out.truncate(SAMPLES_MAX);
                return Ok(out);
            }
            match next.filter(|_| !is_last) {
                Some(next) => upto = next,
                None => break,
            }
        }
    }
    Ok(out)
}

/// The stories that are still there and whose titles still contain the phrase, in the order of the ids.
async fn shown(at: &Position, phrase: &str, ids: Vec<String>) -> Result<Vec<Sample>, Problem> {
    let mut out = Vec::new();
    for part in ids.chunks(2 * SAMPLES_MAX) {
        let keys: Vec<String> = part.iter().map(|id| doc_key(id)).collect();
        let docs = rows::<DocRow>(at, &keys).await?.into_iter().flatten().filter(|doc| !doc.removed);
        let docs = docs.filter(|doc| {
            let title = normal(&doc.title);
            contains(&title, phrase) && !is_hidden(&*at.view, &title)
        });
        out.extend(docs.map(|doc| Sample { title: doc.title, url: doc.url, published_at: doc.published_at }));
        if out.len() >= SAMPLES_MAX {
            break;
        }
    }
    Ok(out)
}

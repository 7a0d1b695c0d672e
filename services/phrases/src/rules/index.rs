//! The entries of the index that rows of decision state write, see [`velocity::rows`].

use std::collections::BTreeSet;

use crate::record::TABLES;
use bytes::Bytes;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Write;
use serde::Serialize;
use serde::de::DeserializeOwned;
use velocity::grams::{grams, has_exact_row, normal};
use velocity::mentions::{Mention, Poster};
use velocity::rows::{
    BOARD_KEY, BOARD_TERM, Board, DOCS_TERM, DayEntry, DocRow, HOUR_KEY, HOURS_TERM, HourEntry, LOWEST_KEY, LOWEST_TERM, LowestRow,
    Posting, ViewsRow, gram_term, views_term, week, week_of_day,
};

/// Returns the entries that a row writes.
pub(super) fn entries(key: &str, value: &str, seq: Seq) -> Vec<Write> {
    if let Some(id) = key.strip_prefix("doc/") {
        return read::<DocRow>(value).map(|row| story(id, &row, seq)).unwrap_or_default();
    }
    if let Some(phrase) = key.strip_prefix("v/") {
        let entry = read::<ViewsRow>(value).and_then(|row| Some((row.day, *row.days.0.get(&row.day)?)));
        return entry.and_then(|entry: DayEntry| json(&views_term(phrase), week_of_day(entry.0), seq, &entry)).into_iter().collect();
    }
    let entry = match key {
        HOUR_KEY => read::<HourEntry>(value).and_then(|entry| json(HOURS_TERM, week(entry.0), seq, &entry)),
        BOARD_KEY => read::<Board>(value).and_then(|board| json(BOARD_TERM, week(board.hour), seq, &board)),
        LOWEST_KEY => read::<LowestRow>(value).and_then(|row| {
            let entry: DayEntry = (row.day, *row.days.get(&row.day)?);
            json(LOWEST_TERM, week_of_day(row.day), seq, &entry)
        }),
        _ => None,
    };
    entry.into_iter().collect()
}

/// The entries of a story: under each of its phrases by which stories are found, and under all stories. What it was before is marked as removed where it
/// is not any more.
fn story(id: &str, row: &DocRow, seq: Seq) -> Vec<Write> {
    let words = normal(&row.title);
    let phrases: BTreeSet<&str> = if row.removed { BTreeSet::new() } else { keys(&words).collect() };
    let entry = |term: String, bucket: i64, mention: Mention, is_removed: bool, words: &str| {
        let posting = Posting { mention, is_removed, id: id.to_owned(), words: words.to_owned() };
        Write::put(TABLES.terms, key![term, bucket, seq], Bytes::from(posting.to_bytes()))
    };
    let mut out = Vec::with_capacity(phrases.len() + 1);
    if let Some(before) = &row.before {
        let mention = Mention { hour: before.hour, poster: Poster::default() };
        let bucket = week(before.hour);
        let is_gone = |phrase: &&str| !phrases.contains(phrase) || bucket != week(row.hour);
        out.extend(keys(&before.words).filter(is_gone).map(|gram| entry(gram_term(gram), bucket, mention, true, "")));
        if row.removed || before.hour != row.hour {
            out.push(entry(DOCS_TERM.to_owned(), before.hour, mention, true, ""));
        }
    }
    if !row.removed {
        out.extend(phrases.iter().map(|gram| entry(gram_term(gram), week(row.hour), row.mention(), false, "")));
        out.push(entry(DOCS_TERM.to_owned(), row.hour, row.mention(), false, &words));
    }
    out
}

/// The phrases of a title by which stories are found, see [`velocity::grams::key_of`]: those of one or two words. No read uses an entry of a longer one.
fn keys(title: &str) -> impl Iterator<Item = &str> {
    grams(title).into_iter().filter(|phrase| has_exact_row(phrase))
}

/// Reads a row; `None` if it was deleted. A row is what this version wrote, so it can be read.
fn read<T: DeserializeOwned>(value: &str) -> Option<T> {
    serde_json::from_str(value).ok()
}

fn json(term: &str, bucket: i64, seq: Seq, value: &impl Serialize) -> Option<Write> {
    let value = serde_json::to_vec(value).ok()?;
    Some(Write::put(TABLES.terms, key![term, bucket, seq], Bytes::from(value)))
}

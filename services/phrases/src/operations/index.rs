//! The index of stories, hours and page views, read as of a position: see [`velocity::rows`].

use std::collections::HashMap;

use crate::record::TABLES;
use feed::position::Position;
use futures_util::future::try_join_all;
use operation::context::{seq_column, store_problem, stored};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use serde::de::DeserializeOwned;
use velocity::grams::{contains, key_of};
use velocity::mentions::Mention;
use velocity::rows::{DOCS_TERM, Posting, gram_term, week};
use view_store::Range;

/// How many entries one read returns.
const PAGE_ENTRIES: usize = 1_000;
/// How many partitions are read at once.
const READS: usize = 32;

/// The bytes of the entries of a term in one bucket up to a position, oldest first, each with its seq.
async fn raw(at: &Position, term: &str, bucket: i64) -> Result<Vec<(Seq, bytes::Bytes)>, Problem> {
    let (mut out, mut after) = (Vec::new(), None);
    loop {
        let range = Range { prefix: key![term, bucket], after: after.take(), from: None, limit: PAGE_ENTRIES, reverse: false };
        let rows = at.view.range(TABLES.terms, range).await.map_err(store_problem)?;
        let is_last = rows.len() < PAGE_ENTRIES;
        after = rows.last().map(|(key, _)| key.clone());
        for (key, value) in rows {
            let seq = seq_column(TABLES.terms, &key, 2)?;
            if seq > at.seq {
                return Ok(out);
            }
            out.push((seq, value));
        }
        if is_last {
            return Ok(out);
        }
    }
}

/// The entries of a term in some buckets up to a position, decoded from JSON: bucket by bucket, oldest first.
pub(crate) async fn entries<T: DeserializeOwned>(
    at: &Position,
    term: &str,
    buckets: std::ops::RangeInclusive<i64>,
) -> Result<Vec<T>, Problem> {
    let pages = try_join_all(buckets.map(|bucket| raw(at, term, bucket))).await?;
    pages.iter().flatten().map(|(_, value)| stored(TABLES.terms, value)).collect()
}

/// The newest entries of a term in a bucket up to a seq, newest first.
async fn newest(at: &Position, term: &str, bucket: i64, upto: Seq, limit: usize) -> Result<Vec<(Seq, bytes::Bytes)>, Problem> {
    let from = Some(key![term, bucket, upto]);
    let range = Range { prefix: key![term, bucket], after: None, from, limit, reverse: true };
    let rows = at.view.range(TABLES.terms, range).await.map_err(store_problem)?;
    rows.into_iter().map(|(key, value)| Ok((seq_column(TABLES.terms, &key, 2)?, value))).collect()
}

/// The newest entries about stories of a term in a bucket up to a seq, newest first.
pub(crate) async fn newest_postings(
    at: &Position,
    term: &str,
    bucket: i64,
    upto: Seq,
    limit: usize,
) -> Result<Vec<(Seq, Posting)>, Problem> {
    newest(at, term, bucket, upto, limit).await?.into_iter().map(|(seq, value)| Ok((seq, posting(&value)?))).collect()
}

fn posting(value: &[u8]) -> Result<Posting, Problem> {
    Posting::from_bytes(value).ok_or_else(|| {
        tracing::error!(table = TABLES.terms.name, "an entry of the index cannot be decoded");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}

/// The stories of a term in some buckets as they were at a position, without those that are gone. The last entry of a story counts.
async fn stories(at: &Position, term: &str, buckets: impl Iterator<Item = i64>) -> Result<Vec<(Seq, Posting)>, Problem> {
    let buckets: Vec<i64> = buckets.collect();
    let mut out = Vec::new();
    for part in buckets.chunks(READS) {
        for entries in try_join_all(part.iter().map(|bucket| raw(at, term, *bucket))).await? {
            let mut last: HashMap<String, (Seq, Posting)> = HashMap::with_capacity(entries.len());
            for (seq, value) in entries {
                let posting = posting(&value)?;
                last.insert(posting.id.clone(), (seq, posting));
            }
            out.extend(last.into_values().filter(|(_, posting)| !posting.is_removed));
        }
    }
    Ok(out)
}

/// The stories of some hours, with their titles.
pub(crate) async fn stories_of_hours(at: &Position, hours: std::ops::RangeInclusive<i64>) -> Result<Vec<Posting>, Problem> {
    Ok(stories(at, DOCS_TERM, hours).await?.into_iter().map(|(_, posting)| posting).collect())
}

/// The mentions of a phrase in some hours.
pub(crate) async fn mentions(at: &Position, phrase: &str, hours: std::ops::RangeInclusive<i64>) -> Result<Vec<Mention>, Problem> {
    let found = with_phrase(at, phrase, hours).await?;
    Ok(found.into_iter().map(|posting| posting.mention).collect())
}

/// The stories of some hours that contain a phrase.
pub(crate) async fn with_phrase(at: &Position, phrase: &str, hours: std::ops::RangeInclusive<i64>) -> Result<Vec<Posting>, Problem> {
    let Some(key) = key_of(phrase) else { return Ok(Vec::new()) };
    let found = stories(at, &gram_term(key), week(*hours.start())..=week(*hours.end())).await?;
    let found: Vec<(Seq, Posting)> = found.into_iter().filter(|(_, posting)| hours.contains(&posting.mention.hour)).collect();
    if key == phrase {
        return Ok(found.into_iter().map(|(_, posting)| posting).collect());
    }
    // The change that wrote the entry wrote the title of the story, too.
    let keys: Vec<_> = found.iter().map(|(seq, posting)| key![DOCS_TERM, posting.mention.hour, *seq]).collect();
    let titles = at.view.get_many(TABLES.terms, &keys).await.map_err(store_problem)?;
    let mut out = Vec::new();
    for ((_, posting_of_key), title) in found.into_iter().zip(titles) {
        if let Some(title) = title
            && contains(&posting(&title)?.words, phrase)
        {
            out.push(posting_of_key);
        }
    }
    Ok(out)
}

//! A whole table in key order, out of a database that keeps its partitions in the order of their hashes.
//!
//! Rows are read by ranges of tokens, a few at once, sorted in memory and, beyond a bound, in runs on disk that are merged while they are
//! read. The files have no name and go with the scan.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::sync::Arc;

use ::scylla::response::PagingState;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use schemas::tables::{Key, Table};

use super::session::{Cell, unavailable};
use super::view::ScyllaView;
use crate::key::{decode, encode_prefix, encode_whole};
use crate::store::{Error, Scan, Span};

/// Ranges of tokens a table that does not fit one answer is read by.
const RANGES: i64 = 64;
/// How many of them at once.
const RANGES_AT_ONCE: usize = 4;
/// Keys and values held in memory.
const SORTED_BYTES_MAX: usize = 64 << 20;

/// One stretch of one table.
pub(super) struct ScyllaScan {
    view: Arc<ScyllaView>,
    table: &'static Table,
    /// What is to be read, until it is.
    span: Option<Span>,
    sorted: Sorted,
}

impl ScyllaScan {
    pub(super) fn new(view: Arc<ScyllaView>, table: &'static Table, span: Span) -> Self {
        Self { view, table, span: Some(span), sorted: Sorted::new(SORTED_BYTES_MAX) }
    }

    async fn read(&mut self, span: Span) -> Result<(), Error> {
        let encoded = |key: &Option<Key>| key.as_ref().map(|key| encode_prefix(self.table, key)).transpose();
        let (from, to) = (encoded(&span.from)?, encoded(&span.to)?);
        let inside = |key: &[u8]| from.as_deref().is_none_or(|from| key >= from) && to.as_deref().is_none_or(|to| key < to);
        let (first, more) = self.view.scan_page(self.table, None, PagingState::start()).await?;
        if more.is_none() {
            return self.take(first, &inside).await;
        }
        drop(first);
        // Each begins where the one before it ends; no row has the smallest number as its token.
        let bound = |n: i64| if n == RANGES { i64::MAX } else { i64::MIN.wrapping_add(n.wrapping_mul(i64::MAX / RANGES * 2)) };
        let bounds = (0..RANGES).map(|n| (bound(n), bound(n + 1)));
        let view = Arc::clone(&self.view);
        let table = self.table;
        let (pages, mut arrived) = tokio::sync::mpsc::channel(RANGES_AT_ONCE);
        let reading = async move {
            let mut ranges = stream::iter(bounds.map(|bounds| read_range(Arc::clone(&view), table, bounds, pages.clone())))
                .buffer_unordered(RANGES_AT_ONCE);
            while let Some(read) = ranges.next().await {
                read?;
            }
            Ok::<(), Error>(())
        };
        let taking = async {
            while let Some(page) = arrived.recv().await {
                self.take(page, &inside).await?;
            }
            Ok(())
        };
        let ((), ()) = tokio::try_join!(reading, taking)?;
        Ok(())
    }

    async fn take(&mut self, rows: Vec<(Key, Bytes)>, inside: &(impl Fn(&[u8]) -> bool + Sync)) -> Result<(), Error> {
        for (key, value) in rows {
            let key = encode_whole(self.table, &key)?;
            if inside(&key) {
                self.sorted.push(key, value);
            }
        }
        if self.sorted.is_full() {
            self.on_disk(|sorted| sorted.spill()).await?;
        }
        Ok(())
    }

    /// Does what may wait for the disk on a thread that may.
    async fn on_disk<T: Send + 'static>(&mut self, act: impl FnOnce(&mut Sorted) -> io::Result<T> + Send + 'static) -> Result<T, Error> {
        let mut sorted = std::mem::replace(&mut self.sorted, Sorted::new(SORTED_BYTES_MAX));
        let done = tokio::task::spawn_blocking(move || {
            let done = act(&mut sorted);
            (sorted, done)
        });
        let failed = |error: io::Error| unavailable("cannot sort rows in the folder for temporary files".to_owned(), error);
        let (sorted, done) = done.await.map_err(|lost| failed(lost.into()))?;
        self.sorted = sorted;
        done.map_err(failed)
    }
}

type Page = Vec<(Key, Bytes)>;

async fn read_range(
    view: Arc<ScyllaView>,
    table: &'static Table,
    (begin, end): (i64, i64),
    pages: tokio::sync::mpsc::Sender<Page>,
) -> Result<(), Error> {
    let mut at = PagingState::start();
    loop {
        let (rows, more) = view.scan_page(table, Some([Cell::Int(begin), Cell::Int(end)]), at).await?;
        if pages.send(rows).await.is_err() {
            return Ok(());
        }
        match more {
            Some(more) => at = more,
            None => return Ok(()),
        }
    }
}

#[async_trait]
impl Scan for ScyllaScan {
    async fn next(&mut self, rows_max: usize) -> Result<Vec<(Key, Bytes)>, Error> {
        if let Some(span) = self.span.take() {
            if let Err(error) = self.read(span).await {
                // Who asks again gets nothing, not a part.
                self.sorted = Sorted::new(SORTED_BYTES_MAX);
                return Err(error);
            }
            self.on_disk(Sorted::finish).await?;
        }
        let rows = if self.sorted.runs.is_empty() {
            self.sorted.take_from_memory(rows_max)
        } else {
            self.on_disk(move |sorted| sorted.take(rows_max)).await?
        };
        rows.into_iter().map(|(key, value)| Ok((decode(self.table, &key)?, value))).collect()
    }
}

/// Rows sorted by their encoded keys: pushed, then finished, then taken.
struct Sorted {
    bytes_max: usize,
    bytes: usize,
    /// While pushing: in no order. After that: backwards, so that the first is taken from the end.
    rows: Vec<(Vec<u8>, Bytes)>,
    runs: Vec<BufReader<File>>,
    /// The first row of each run, and of memory (numbered behind the runs).
    heads: BinaryHeap<Reverse<Head>>,
}

/// Key, place it came from, value; compared by the first two, as no key is there twice.
type Head = (Vec<u8>, usize, Bytes);

impl Sorted {
    fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, rows: Vec::new(), runs: Vec::new(), heads: BinaryHeap::new() }
    }

    fn push(&mut self, key: Vec<u8>, value: Bytes) {
        self.bytes += key.len() + value.len();
        self.rows.push((key, value));
    }

    fn is_full(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Writes what is in memory as a sorted run.
    fn spill(&mut self) -> io::Result<()> {
        self.rows.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut out = BufWriter::new(tempfile::tempfile()?);
        for (key, value) in self.rows.drain(..) {
            for part in [&key[..], &value[..]] {
                let length = u32::try_from(part.len()).map_err(|_| io::Error::other("a row of more than 4 GiB"))?;
                out.write_all(&length.to_be_bytes())?;
                out.write_all(part)?;
            }
        }
        self.bytes = 0;
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        self.runs.push(BufReader::new(file));
        Ok(())
    }

    /// All rows are there.
    fn finish(&mut self) -> io::Result<()> {
        self.rows.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        if !self.runs.is_empty() {
            for from in 0..=self.runs.len() {
                self.refill(from)?;
            }
        }
        Ok(())
    }

    fn take_from_memory(&mut self, rows_max: usize) -> Vec<(Vec<u8>, Bytes)> {
        let kept = self.rows.len().saturating_sub(rows_max);
        self.rows.drain(kept..).rev().collect()
    }

    fn take(&mut self, rows_max: usize) -> io::Result<Vec<(Vec<u8>, Bytes)>> {
        let mut out = Vec::new();
        while out.len() < rows_max {
            let Some(Reverse((key, from, value))) = self.heads.pop() else { break };
            out.push((key, value));
            self.refill(from)?;
        }
        Ok(out)
    }

    /// Takes the next row of a run, or of memory, among the heads.
    fn refill(&mut self, from: usize) -> io::Result<()> {
        let next = match self.runs.get_mut(from) {
            Some(run) => read_row(run)?,
            None => self.rows.pop(),
        };
        if let Some((key, value)) = next {
            self.heads.push(Reverse((key, from, value)));
        }
        Ok(())
    }
}

fn read_row(run: &mut BufReader<File>) -> io::Result<Option<(Vec<u8>, Bytes)>> {
    let mut length = [0; 4];
    match run.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut key = vec![0; u32::from_be_bytes(length) as usize];
    run.read_exact(&mut key)?;
    run.read_exact(&mut length)?;
    let mut value = vec![0; u32::from_be_bytes(length) as usize];
    run.read_exact(&mut value)?;
    Ok(Some((key, Bytes::from(value))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Lcg;

    /// Proves that rows come out in key order with their own values, whether they fitted memory or went to runs on disk.
    #[test]
    fn sorts_in_memory_and_on_disk() {
        for bytes_max in [usize::MAX, 2_000, 10] {
            let (mut sorted, mut lcg) = (Sorted::new(bytes_max), Lcg::new(3));
            let mut expected: Vec<Vec<u8>> = (0..500).map(|_| lcg.next().to_be_bytes()[..1 + lcg.below(7)].to_vec()).collect();
            expected.sort();
            expected.dedup();
            let mut shuffled = expected.clone();
            shuffled.sort_by_key(|key| key.iter().map(|byte| u32::from(*byte)).sum::<u32>());
            for key in shuffled {
                let value = Bytes::from([b"v", &key[..]].concat());
                sorted.push(key, value);
                if sorted.is_full() {
                    sorted.spill().unwrap();
                }
            }
            sorted.finish().unwrap();
            assert_eq!(sorted.runs.is_empty(), bytes_max == usize::MAX);
            let mut found = Vec::new();
            loop {
                let rows = if sorted.runs.is_empty() { sorted.take_from_memory(7) } else { sorted.take(7).unwrap() };
                if rows.is_empty() {
                    break;
                }
                found.extend(rows.into_iter().map(|(key, value)| {
                    assert_eq!(&value[1..], &key[..]);
                    key
                }));
            }
            assert_eq!(found, expected);
        }
    }
}

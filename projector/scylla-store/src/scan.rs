//! Reads a whole table in key order from a database that stores partitions in the order of their hashes.
//!
//! Rows are read by ranges of tokens, a few at once, and sorted in memory. Above a limit they are sorted in runs on disk, which are merged
//! while they are read. The files have no name and disappear with the scan.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use schemas::tables::{Key, Table};
use scylla::response::PagingState;
use view_store::key::{decode, encode_prefix, encode_whole};
use view_store::store::{Error, Scan, Span};

use crate::session::{Cell, unavailable};

/// The number of token ranges by which a table is read that does not fit one answer.
const RANGES: i64 = 64;
/// How many token ranges are read at once.
const RANGES_AT_ONCE: usize = 4;
/// The most bytes of keys and values that are held in memory.
const SORTED_BYTES_MAX: usize = 64 << 20;

/// A page of rows, unordered, and where the next page starts; `None` after the last page.
pub(crate) type ScanPage = (Vec<(Key, Bytes)>, Option<PagingState>);

/// The source of the pages that a scan reads.
#[async_trait]
pub(crate) trait PageSource: Send + Sync {
    /// Returns a page of the whole table, or of the partitions between two tokens, unordered.
    async fn scan_page(&self, table: &'static Table, tokens: Option<[Cell<'static>; 2]>, at: PagingState) -> Result<ScanPage, Error>;
}

/// One section of one table.
pub(crate) struct ScyllaScan {
    source: Arc<dyn PageSource>,
    table: &'static Table,
    /// The section to read, until it was read.
    span: Option<Span>,
    sorted: Sorted,
}

impl ScyllaScan {
    pub(crate) fn new(source: Arc<dyn PageSource>, table: &'static Table, span: Span) -> Self {
        Self { source, table, span: Some(span), sorted: Sorted::new(SORTED_BYTES_MAX) }
    }

    async fn read(&mut self, span: Span) -> Result<(), Error> {
        let encoded = |key: &Option<Key>| key.as_ref().map(|key| encode_prefix(self.table, key)).transpose();
        let (from, to) = (encoded(&span.from)?, encoded(&span.to)?);
        let inside = |key: &[u8]| from.as_deref().is_none_or(|from| key >= from) && to.as_deref().is_none_or(|to| key < to);
        let (first, more) = self.source.scan_page(self.table, None, PagingState::start()).await?;
        if more.is_none() {
            return self.take(first, &inside).await;
        }
        drop(first);
        // Each range starts where the previous one ends; no row has the lowest number as its token.
        let bound = |n: i64| if n == RANGES { i64::MAX } else { i64::MIN.wrapping_add(n.wrapping_mul(i64::MAX / RANGES * 2)) };
        let bounds = (0..RANGES).map(|n| (bound(n), bound(n + 1)));
        let source = Arc::clone(&self.source);
        let table = self.table;
        let (pages, mut arrived) = tokio::sync::mpsc::channel(RANGES_AT_ONCE);
        let reading = async move {
            let mut ranges = stream::iter(bounds.map(|bounds| read_range(Arc::clone(&source), table, bounds, pages.clone())))
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

    /// Runs work that may block on the disk on a thread for blocking work.
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
    source: Arc<dyn PageSource>,
    table: &'static Table,
    (begin, end): (i64, i64),
    pages: tokio::sync::mpsc::Sender<Page>,
) -> Result<(), Error> {
    let mut at = PagingState::start();
    loop {
        let (rows, more) = source.scan_page(table, Some([Cell::Int(begin), Cell::Int(end)]), at).await?;
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
                // After an error, further calls return nothing rather than a part.
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

/// Rows sorted by their encoded keys: first pushed, then finished, then taken.
struct Sorted {
    bytes_max: usize,
    bytes: usize,
    /// While pushing: unordered. Afterwards: in reverse order, so that the first is taken from the end.
    rows: Vec<(Vec<u8>, Bytes)>,
    runs: Vec<BufReader<File>>,
    /// The first row of each run, and of memory (numbered after the runs).
    heads: BinaryHeap<Reverse<Head>>,
}

/// Key, source, value; compared by the first two, because keys are unique.
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

    /// Writes the rows in memory as a sorted run.
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

    /// Ends pushing and starts taking.
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
        let remaining = self.rows.len().saturating_sub(rows_max);
        self.rows.drain(remaining..).rev().collect()
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

    /// Adds the next row of a run, or of memory, to the heads.
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
    use rand::rngs::StdRng;
    use rand::{Rng as _, RngExt as _, SeedableRng as _};

    use super::*;

    /// Proves that rows come out in key order with their own values, whether they fit in memory or were written to runs on disk.
    #[test]
    fn sorts_in_memory_and_on_disk() {
        for bytes_max in [usize::MAX, 2_000, 10] {
            let (mut sorted, mut random) = (Sorted::new(bytes_max), StdRng::seed_from_u64(3));
            let mut expected: Vec<Vec<u8>> =
                (0..500).map(|_| random.next_u64().to_be_bytes()[..random.random_range(1..8_usize)].to_vec()).collect();
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

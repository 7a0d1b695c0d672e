//! Packing, page joins, and times.

use std::time::Duration;

use schemas::tables::{TableKind, ValueKind, ViewDef};

use super::*;
use crate::contract::Random;
use crate::embedded::{EmbeddedStore, Options};
use crate::store::{Checkpoint, ViewStore};

static FEED: Table = Table { name: "tested_feed", key: FEED_KEY, partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
static DEF: ViewDef = ViewDef { name: "tested", tables: &[&FEED], hides: &[] };
/// Two full blocks, a block of which nothing is shown, a full one, an open one.
const CHANGES: u64 = BLOCK * 9 / 2;
const BLOCK: u64 = FEED_BLOCK_LEN as u64;

/// Change `seq` as readers get it; every fifth is not shown, nor is any of the third block.
fn element(seq: u64) -> Option<String> {
    let shown = !seq.is_multiple_of(5) && block_of(Seq(seq)) != 2;
    shown.then(|| format!("{{\"seq\":{seq},\"x\":\"{}\"}}", "y".repeat(usize::try_from(seq % 50).unwrap())))
}

/// Ten changes share a time.
fn recorded_at(seq: u64) -> i64 {
    i64::try_from(seq / 10).unwrap() * 1_000
}

fn push(tail: &mut FeedTail, seq: u64) {
    tail.push(Seq(seq), recorded_at(seq), element(seq).as_deref().map(str::as_bytes)).unwrap();
}

async fn filled(dir: &std::path::Path) -> (Arc<EmbeddedStore>, Arc<dyn View>) {
    let store = EmbeddedStore::open(dir, Options::default()).unwrap();
    let view = store.live(&DEF).await.unwrap();
    let mut tail = FeedTail::empty();
    let mut random = Random::new(3);
    let mut seq = 0;
    while seq < CHANGES {
        let last = (seq + 1 + random.below(80) as u64).min(CHANGES);
        let touched = block_of(Seq(last)) - block_of(Seq(seq + 1)) + 1;
        for next in seq + 1..=last {
            push(&mut tail, next);
        }
        seq = last;
        let writes = tail.take_writes(&FEED);
        assert_eq!(writes.len() as u64, touched, "one write a touched block");
        assert!(tail.take_writes(&FEED).is_empty());
        view.commit(writes, &Checkpoint { seq: Seq(seq), ..Checkpoint::default() }).await.unwrap();
        if random.below(3) == 0 {
            // As after a restart.
            tail = FeedTail::load(view.as_ref(), &FEED, Seq(seq)).await.unwrap();
        }
    }
    (store, view)
}

fn seqs_of(page: &Page) -> Vec<u64> {
    assert!(page.parts.iter().all(|part| !part.is_empty()));
    let json = [b"[".as_slice(), &page.parts.join(&b','), b"]"].concat();
    let elements: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    elements.iter().map(|element| element["seq"].as_u64().unwrap()).collect()
}

/// Proves that a block of another version is refused by its number.
#[test]
fn other_versions_are_refused() {
    let mut tail = FeedTail::empty();
    push(&mut tail, 1);
    let mut bytes = tail.take_writes(&FEED).remove(0).value.unwrap().to_vec();
    bytes[0] = 1;
    let content = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..content]).to_be_bytes();
    bytes[content..].copy_from_slice(&checksum);
    let error = FeedBlock::decode(Bytes::from(bytes)).unwrap_err().to_string();
    assert!(error.contains("version 1"), "{error}");
}

/// Proves that a block returns what was packed, for any run, without copying, and that damage to any byte is detected.
#[test]
fn blocks_read_back() {
    let mut tail = FeedTail::empty();
    for seq in 1..=7 {
        push(&mut tail, seq);
    }
    let bytes = tail.take_writes(&FEED).remove(0).value.unwrap();
    let block = FeedBlock::decode(bytes.clone()).unwrap();
    assert_eq!((block.first_seq(), block.len(), block.recorded_at(6), block.size_bytes()), (Seq(1), 7, 0, bytes.len()));
    assert_eq!((block.last_seq(), block.element(Seq(8)), block.element(Seq(5)), block.recorded_at_seq(Seq(0))), (Seq(7), None, None, None));
    for from in 0..=8 {
        for to in from..=9 {
            let expected: Vec<String> = (from + 1..=to.min(7)).filter_map(|seq| element(seq as u64)).collect();
            let found = block.elements(from, to);
            assert_eq!(found, expected.join(","));
            assert!(found.is_empty() || bytes.as_ptr_range().contains(&found.as_ptr()), "the bytes are shared");
        }
        assert_eq!(block.shown(from), from < 7 && element(from as u64 + 1).is_some());
    }
    for at in 0..bytes.len() {
        let mut broken = bytes.to_vec();
        broken[at] ^= 1;
        assert!(FeedBlock::decode(Bytes::from(broken)).is_err());
        assert!(FeedBlock::decode(bytes.slice(..at)).is_err());
    }
}

/// Proves that the tail refuses gaps, steps back and times that go back, and that repeating changes gives the same bytes.
#[test]
fn tail_takes_only_what_follows() {
    let mut tail = FeedTail::empty();
    assert!(tail.push(Seq(0), 0, None).is_err());
    assert!(tail.push(Seq(2), 0, None).is_err());
    let last = BLOCK + 30;
    for seq in 1..=last {
        push(&mut tail, seq);
    }
    let next = last + 1;
    assert_eq!(tail.next_seq(), Seq(next));
    assert!(tail.push(Seq(next + 1), recorded_at(next + 1), None).is_err());
    assert!(tail.push(Seq(BLOCK), recorded_at(BLOCK), None).is_err());
    assert!(tail.push(Seq(next), 0, None).is_err());
    let first = tail.take_writes(&FEED);
    assert_eq!(first.len(), 2);
    for seq in last - 20..=last {
        push(&mut tail, seq);
    }
    assert_eq!(tail.take_writes(&FEED), first[1..]);
    let mut again = FeedTail::from_block(first[1].value.clone()).unwrap();
    push(&mut again, next);
    push(&mut tail, next);
    assert_eq!(tail.take_writes(&FEED), again.take_writes(&FEED));
}

/// Proves that pages of any limit from any position join without a gap or a repeat, show everything shown, and stay within their limit.
#[tokio::test]
async fn pages_join() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, view) = filled(dir.path()).await;
    let reader = FeedReader::new(Arc::clone(&view), &FEED, Arc::new(FeedCache::new(20_000)));
    let whole = FEED_BLOCK_LEN;
    let around_a_block = [(whole - 1, 3, CHANGES - 1), (whole, 0, BLOCK * 3), (whole + 1, BLOCK, CHANGES)];
    for (limit, start, upto) in
        [(1, BLOCK * 2 - 10, BLOCK * 3 + 40), (7, 0, CHANGES), (1_000, 0, CHANGES)].into_iter().chain(around_a_block)
    {
        let mut at = start;
        let mut seen = Vec::new();
        while at < upto {
            let page = reader.page(Seq(at), Seq(upto), limit).await.unwrap();
            assert_eq!(page, read_page(view.as_ref(), &FEED, Seq(at), Seq(upto), limit).await.unwrap());
            assert_eq!(page.from, Seq(at + 1));
            assert!(page.to > Seq(at) && page.to <= Seq(upto));
            assert_eq!(page.last_recorded_at_ms, recorded_at(page.to.0));
            let seqs = seqs_of(&page);
            assert_eq!(seqs.len(), page.shown);
            assert!(page.shown <= limit);
            assert!(seqs.iter().all(|seq| (page.from..=page.to).contains(&Seq(*seq))));
            let examined_max = (limit.div_ceil(FEED_BLOCK_LEN) + 1) * FEED_BLOCK_LEN;
            assert!(page.to.since(Seq(at)) <= examined_max as u64);
            seen.extend(seqs);
            at = page.to.0;
        }
        let expected: Vec<u64> = (start + 1..=upto).filter(|seq| element(*seq).is_some()).collect();
        assert_eq!(seen, expected, "limit {limit}");
    }
    let nothing = reader.page(Seq(CHANGES), Seq(CHANGES), 10).await.unwrap();
    assert_eq!(nothing, Page { from: Seq(CHANGES + 1), to: Seq(CHANGES), ..Page::default() });
    assert_eq!(reader.page(Seq(0), Seq(9), 0).await.unwrap().to, Seq(0));
    assert!(reader.page(Seq(CHANGES - 10), Seq(CHANGES + 1), 1_000).await.is_err(), "beyond the end is damage, not a short page");
    assert!(reader.page(Seq(u64::MAX - 1), Seq(u64::MAX), 1_000).await.is_err());
}

/// Proves that the seq at a time is the last one recorded by then, for every time, and never beyond the limit given.
#[tokio::test]
async fn seq_at_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, view) = filled(dir.path()).await;
    let reader = FeedReader::new(Arc::clone(&view), &FEED, Arc::new(FeedCache::default()));
    for upto in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, BLOCK * 3 - 7, CHANGES] {
        for at_ms in (-1_000..recorded_at(CHANGES) + 2_000).step_by(500) {
            let expected = (1..=upto).rfind(|seq| recorded_at(*seq) <= at_ms).unwrap_or(0);
            assert_eq!(seq_at(view.as_ref(), &FEED, at_ms, Seq(upto)).await.unwrap(), Seq(expected), "{at_ms} {upto}");
            assert_eq!(reader.recent_seq_at(at_ms, Seq(upto)).await.unwrap(), Seq(expected), "{at_ms} {upto}");
        }
    }
}

/// Proves that the seq at a time near the end is found without reading the blocks at the beginning.
#[tokio::test]
async fn recent_times_are_found_from_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, view) = filled(dir.path()).await;
    let cache = Arc::new(FeedCache::default());
    let reader = FeedReader::new(view, &FEED, Arc::clone(&cache));
    assert_eq!(reader.recent_seq_at(recorded_at(CHANGES), Seq(CHANGES)).await.unwrap(), Seq(CHANGES));
    assert_eq!(cache.size_bytes(), 0, "only the open block is read, which is not cached");
    assert_eq!(reader.seq_at(recorded_at(CHANGES), Seq(CHANGES)).await.unwrap(), Seq(CHANGES));
    assert!(cache.size_bytes() > 0);
}

/// Proves that the cache holds only full blocks, within its size, and evicts rarely used ones first.
#[tokio::test]
async fn cache_respects_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, view) = filled(dir.path()).await;
    let cache = Arc::new(FeedCache::default());
    let reader = FeedReader::new(Arc::clone(&view), &FEED, Arc::clone(&cache));
    reader.page(Seq(CHANGES - 10), Seq(CHANGES), 10).await.unwrap();
    assert_eq!(cache.size_bytes(), 0, "the open block is not cached");
    let first = reader.block(Seq(1)).await.unwrap();
    let again = reader.block(Seq(BLOCK)).await.unwrap();
    assert!(Arc::ptr_eq(&first, &again), "a full block is cached");

    let size = first.size_bytes();
    let small = FeedCache::new(size * 5 / 2);
    for number in 0..10 {
        small.put(("t", 1, 0, number), Arc::clone(&first));
        assert!(small.get(&("t", 1, 0, 0)).is_some(), "it is used repeatedly");
        assert!(small.size_bytes() <= size * 2);
    }
    assert_eq!((1..10).filter(|number| small.get(&("t", 1, 0, *number)).is_some()).count(), 1);
    let none = FeedCache::new(0);
    none.put(("t", 1, 0, 0), first);
    assert_eq!(none.size_bytes(), 0);
}

/// Proves that a page follows a commit that a waiting reader was woken by.
#[tokio::test]
async fn a_woken_reader_finds_the_change() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, view) = filled(dir.path()).await;
    let mut tail = FeedTail::load(view.as_ref(), &FEED, Seq(CHANGES)).await.unwrap();
    push(&mut tail, CHANGES + 1);
    let seen = view.checkpoint().await.unwrap();
    let next = Checkpoint { seq: Seq(CHANGES + 1), ..Checkpoint::default() };
    let reader = tokio::time::timeout(Duration::from_secs(300), async {
        let now = view.wait_past(&seen).await.unwrap();
        read_page(view.as_ref(), &FEED, seen.seq, now.seq, 10).await.unwrap()
    });
    let (page, committed) = tokio::join!(reader, view.commit(tail.take_writes(&FEED), &next));
    committed.unwrap();
    assert_eq!(seqs_of(&page.unwrap()), [CHANGES + 1]);
}

//! The view store on CQL compared with the driver alone, on one node: commits of rows, reads by key, pages of changes and pages of lists.
//!
//! The driver makes the same prepared requests with the same concurrency, alternating with the store, which writes its own rows to the same
//! tables. The difference is the store's checks, grouping, checkpoints and decoding.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Datum, Key, Table, TableKind, ValueKind, ViewDef, Write, int, int_desc, text};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla_store::ScyllaStore;
use tokio::task::JoinSet;
use view_store::feed::{FEED_BLOCK_LEN, FEED_KEY, FeedTail, read_page};
use view_store::{Checkpoint, Range, View, ViewStore};

use crate::report::{figure, heading, median, ratio};
use crate::{Failure, Settings, servers};

/// Rows of one commit.
const BATCH_ROWS: i64 = 500;
/// Concurrent requests; the store uses the same number for a commit.
const CONCURRENT_REQUESTS: usize = 128;
/// Concurrent pages of changes.
const CONCURRENT_PAGES: usize = 32;
/// Changes in a page.
const PAGE_CHANGES: usize = 200;
/// Changes in the feed.
const FEED_CHANGES: u64 = 20_000;
/// Records in the list.
const LISTED: i64 = 10_000;
/// Records in a page of the list.
const PAGE_RECORDS: usize = 50;
/// Entries read for a page of the list, as in the API: some may be outdated.
const PAGE_ENTRIES: usize = PAGE_RECORDS + 32;
/// Concurrent pages of the list; each reads all its records concurrently.
const CONCURRENT_LISTS: usize = 8;
/// Rows written in one round of each side.
const ROUND_ROWS: i64 = 20 * BATCH_ROWS;

static ROWS: Table =
    Table { name: "bench_rows", key: &[text("id")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
static FEED: Table = Table { name: "bench_feed", key: FEED_KEY, partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
/// A table like those of the recalls' lists.
static LIST: Table = Table {
    name: "bench_list",
    key: &[text("list"), int_desc("month"), int_desc("day"), text("id"), int("since")],
    partition_columns: 2,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};
static DEF: ViewDef = ViewDef { name: "bench", tables: &[&ROWS, &FEED, &LIST], hides: &[] };
/// The only list, and its month.
const LIST_NAME: &str = "*/*";
const LIST_MONTH: i64 = 2026 * 12;

/// Runs the benchmark on the node at `address`.
pub(crate) fn run(settings: &Settings, address: &str) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(compare(settings, address))
}

async fn compare(settings: &Settings, address: &str) -> Result<(), Failure> {
    heading("CQL: the view store against the driver alone");
    let keyspace = engines::unique("bench");
    let store = ScyllaStore::open(servers::store_options(address, &keyspace)).await?;
    let driver = Arc::new(engines::driver(address).await?);
    let compared = rounds(settings, &store, &driver, &keyspace).await;
    engines::remove_keyspace(&driver, &keyspace).await?;
    compared
}

async fn rounds(settings: &Settings, store: &Arc<ScyllaStore>, driver: &Arc<Session>, keyspace: &str) -> Result<(), Failure> {
    let view = store.live(&DEF).await?;
    fill(&*view).await?;
    let theirs = Arc::new(Driver::prepare(driver, keyspace).await?);
    let (mut rows, mut points, mut pages, mut lists) = (Pair::default(), Pair::default(), Pair::default(), Pair::default());
    for round in 0..settings.rounds {
        let begin = LISTED + i64::try_from(round)? * 2 * ROUND_ROWS;
        rows.ours.push(commit_rows(&*view, begin).await?);
        rows.theirs.push(insert_rows(&theirs, begin + ROUND_ROWS).await?);
        points.ours.push(repeat(settings.seconds, CONCURRENT_REQUESTS, |n| our_point(Arc::clone(&view), n)).await?);
        points.theirs.push(repeat(settings.seconds, CONCURRENT_REQUESTS, |n| driver_point(Arc::clone(&theirs), n)).await?);
        pages.ours.push(repeat(settings.seconds, CONCURRENT_PAGES, |n| our_page(Arc::clone(&view), n)).await?);
        pages.theirs.push(repeat(settings.seconds, CONCURRENT_PAGES, |n| driver_page(Arc::clone(&theirs), n)).await?);
        lists.ours.push(repeat(settings.seconds, CONCURRENT_LISTS, |n| our_list(Arc::clone(&view), n)).await?);
        lists.theirs.push(repeat(settings.seconds, CONCURRENT_LISTS, |n| driver_list(Arc::clone(&theirs), n)).await?);
    }
    rows.show("rows committed");
    points.show("rows read by key");
    pages.show("pages of 200 changes, with the checkpoint");
    lists.show("pages of 50 records of a list, with the checkpoint");
    Ok(())
}

/// Rates of both sides in each round.
#[derive(Default)]
struct Pair {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Pair {
    fn show(self, what: &str) {
        let of_both = self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs).collect();
        figure(&format!("{what}, a second"), format!("{:.0}", median(self.ours)));
        figure("  the driver alone", format!("{:.0}", median(self.theirs)));
        let value = median(of_both);
        ratio("  ours / the driver's", value, value >= 0.5, ">= 0.5");
    }
}

/// The driver with the store's statements.
struct Driver {
    session: Arc<Session>,
    insert: PreparedStatement,
    row: PreparedStatement,
    block: PreparedStatement,
    list: PreparedStatement,
}

impl Driver {
    async fn prepare(session: &Arc<Session>, keyspace: &str) -> Result<Self, Failure> {
        let list = "SELECT list, month, day, id, since, value";
        let begin = "list = ? AND month = ? AND day <= ?";
        Ok(Self {
            session: Arc::clone(session),
            insert: session.prepare(format!("INSERT INTO {keyspace}.bench_rows_g1 (id, value) VALUES (?, ?) USING TIMESTAMP ?")).await?,
            row: session.prepare(format!("SELECT value FROM {keyspace}.bench_rows_g1 WHERE id = ?")).await?,
            block: session.prepare(format!("SELECT value FROM {keyspace}.bench_feed_g1 WHERE block = ?")).await?,
            list: session.prepare(format!("{list} FROM {keyspace}.bench_list_g1 WHERE {begin} LIMIT ?")).await?,
        })
    }
}

fn value() -> Bytes {
    Bytes::from(format!(r#"{{"seq":1,"record":"{}"}}"#, "x".repeat(375)))
}

/// Writes the rows that are read: the records of the list, its entries, and the feed.
async fn fill(view: &dyn View) -> Result<(), Failure> {
    for begin in (0..LISTED).step_by(usize::try_from(BATCH_ROWS)?) {
        let writes = (begin..begin + BATCH_ROWS).flat_map(|n| {
            let entry = key![LIST_NAME, LIST_MONTH, day_of(n), n.to_string(), n + 1];
            let listed = Write::put(&LIST, entry, Bytes::from_static(br#"{"until":0}"#));
            [Write::put(&ROWS, key![n.to_string()], value()).at(n + 1), listed.at(n + 1)]
        });
        let seq = u64::try_from(begin)? + 1;
        view.commit(writes.collect(), &Checkpoint { seq: Seq(seq), ..Checkpoint::default() }).await?;
    }
    let mut tail = FeedTail::empty();
    let element = value();
    for seq in 1..=FEED_CHANGES {
        tail.push(Seq(seq), 1, Some(&element))?;
        if seq % 1_000 == 0 {
            let seq = u64::try_from(LISTED)? + seq;
            view.commit(tail.take_writes(&FEED), &Checkpoint { seq: Seq(seq), ..Checkpoint::default() }).await?;
        }
    }
    Ok(())
}

/// Spreads records over days.
fn day_of(n: i64) -> i64 {
    n / 30
}

async fn commit_rows(view: &dyn View, begin: i64) -> Result<f64, Failure> {
    let started = Instant::now();
    for at in (begin..begin + ROUND_ROWS).step_by(usize::try_from(BATCH_ROWS)?) {
        let writes = (at..at + BATCH_ROWS).map(|n| Write::put(&ROWS, key![n.to_string()], value()).at(at + 1)).collect();
        let seq = FEED_CHANGES + u64::try_from(LISTED + at)? + 1;
        view.commit(writes, &Checkpoint { seq: Seq(seq), ..Checkpoint::default() }).await?;
    }
    Ok(ROUND_ROWS as f64 / started.elapsed().as_secs_f64())
}

async fn insert_rows(driver: &Arc<Driver>, begin: i64) -> Result<f64, Failure> {
    let value = String::from_utf8(value().to_vec())?;
    let started = Instant::now();
    let mut under_way = JoinSet::new();
    for n in begin..begin + ROUND_ROWS {
        while under_way.len() >= CONCURRENT_REQUESTS {
            under_way.join_next().await.transpose()?.transpose()?;
        }
        let (driver, value) = (Arc::clone(driver), value.clone());
        under_way.spawn(async move { driver.session.execute_unpaged(&driver.insert, (n.to_string(), value, n + 1)).await.map(|_| ()) });
    }
    while let Some(done) = under_way.join_next().await {
        done??;
    }
    Ok(ROUND_ROWS as f64 / started.elapsed().as_secs_f64())
}

/// Runs an action repeatedly with the given concurrency for some seconds; returns the number per second.
async fn repeat<F>(seconds: u64, concurrency: usize, act: impl Fn(u64) -> F) -> Result<f64, Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let (started, limit) = (Instant::now(), Duration::from_secs(seconds));
    let (mut under_way, mut done, mut next) = (JoinSet::new(), 0_u32, 0);
    while started.elapsed() < limit {
        while under_way.len() < concurrency {
            next += 1;
            under_way.spawn(act(next));
        }
        if let Some(one) = under_way.join_next().await {
            one??;
            done += 1;
        }
    }
    let rate = f64::from(done) / started.elapsed().as_secs_f64();
    while let Some(one) = under_way.join_next().await {
        one??;
    }
    Ok(rate)
}

/// Returns the key of the row that the n-th read gets.
fn row_of(n: u64) -> String {
    (n * 37 % LISTED.unsigned_abs()).to_string()
}

async fn our_point(view: Arc<dyn View>, n: u64) -> Result<(), Failure> {
    let key: Key = key![row_of(n)];
    view.get(&ROWS, &key).await?.ok_or("a row is missing")?;
    Ok(())
}

async fn driver_point(driver: Arc<Driver>, n: u64) -> Result<(), Failure> {
    let answer = driver.session.execute_unpaged(&driver.row, (row_of(n),)).await?.into_rows_result()?;
    answer.first_row::<(String,)>()?;
    Ok(())
}

/// Returns the start of the n-th page: the start of a block, so that both sides read the same blocks.
fn page_begin(n: u64) -> u64 {
    let pages = FEED_CHANGES / PAGE_CHANGES as u64;
    n * 7 % pages * PAGE_CHANGES as u64
}

async fn our_page(view: Arc<dyn View>, n: u64) -> Result<(), Failure> {
    let upto = view.checkpoint().await?.seq.min(Seq(FEED_CHANGES));
    let page = read_page(&*view, &FEED, Seq(page_begin(n)), upto, PAGE_CHANGES).await?;
    if page.shown == PAGE_CHANGES { Ok(()) } else { Err("a page is short".into()) }
}

async fn driver_page(driver: Arc<Driver>, n: u64) -> Result<(), Failure> {
    let first = i64::try_from(page_begin(n) / FEED_BLOCK_LEN as u64)?;
    for block in first..first + i64::try_from(PAGE_CHANGES / FEED_BLOCK_LEN)? {
        let answer = driver.session.execute_unpaged(&driver.block, (block,)).await?.into_rows_result()?;
        answer.first_row::<(Bytes,)>()?;
    }
    Ok(())
}

/// Returns the day at which the n-th page of the list begins; a whole page follows.
fn list_begin(n: u64) -> i64 {
    let days = day_of(LISTED - i64::try_from(PAGE_ENTRIES).unwrap_or_default()) - 1;
    day_of(LISTED) - i64::try_from(n * 7).unwrap_or_default() % days
}

async fn our_list(view: Arc<dyn View>, n: u64) -> Result<(), Failure> {
    view.checkpoint().await?;
    let prefix = key![LIST_NAME, LIST_MONTH];
    let from = Some(key![LIST_NAME, LIST_MONTH, list_begin(n)]);
    let range = Range { prefix, after: None, from, limit: PAGE_ENTRIES, reverse: false };
    let entries = view.range(&LIST, range).await?;
    let mut ids: Vec<Key> = Vec::with_capacity(PAGE_RECORDS);
    for (key, _) in entries.into_iter().take(PAGE_RECORDS) {
        let [_, _, _, Datum::Text(id), _] = key.as_slice() else { return Err("an entry has an unexpected key".into()) };
        ids.push(key![id.as_str()]);
    }
    let rows = view.get_many(&ROWS, &ids).await?;
    if rows.iter().flatten().count() == PAGE_RECORDS { Ok(()) } else { Err("a page of the list is short".into()) }
}

async fn driver_list(driver: Arc<Driver>, n: u64) -> Result<(), Failure> {
    let bound = (LIST_NAME, LIST_MONTH, list_begin(n), i32::try_from(PAGE_ENTRIES)?);
    let answer = driver.session.execute_unpaged(&driver.list, bound).await?.into_rows_result()?;
    let mut ids = Vec::with_capacity(PAGE_RECORDS);
    for row in answer.rows::<(String, i64, i64, String, i64, String)>()?.take(PAGE_RECORDS) {
        ids.push(row?.3);
    }
    let gets = ids.into_iter().map(|id| driver.session.execute_unpaged(&driver.row, (id,)));
    let mut rows = 0;
    for answer in futures_util::future::try_join_all(gets).await? {
        answer.into_rows_result()?.first_row::<(String,)>()?;
        rows += 1;
    }
    if rows == PAGE_RECORDS { Ok(()) } else { Err("a page of the list is short".into()) }
}

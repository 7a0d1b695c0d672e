//! The view store on CQL against the driver alone, on one node: rows committed, rows read by key, pages of changes read.
//!
//! The driver does the same requests with the same number under way; what the store adds is checking, grouping, checkpoints and decoding.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Key, Table, TableKind, ValueKind, ViewDef, Write, text};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;
use tokio::task::JoinSet;
use view_store::feed::{FEED_BLOCK_LEN, FEED_KEY, FeedTail, read_page};
use view_store::scylla::Options;
use view_store::{Checkpoint, ScyllaStore, View, ViewStore};

use crate::report::{figure, heading, median, ratio};
use crate::{Failure, Settings};

/// Rows of one commit.
const BATCH_ROWS: i64 = 500;
/// Requests under way, the store's own number for a commit.
const UNDER_WAY: usize = 128;
/// Pages under way.
const PAGES_UNDER_WAY: usize = 32;
/// Changes in a page.
const PAGE_CHANGES: usize = 200;
/// Changes in the feed.
const FEED_CHANGES: u64 = 20_000;

static ROWS: Table =
    Table { name: "bench_rows", key: &[text("id")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
static FEED: Table = Table { name: "bench_feed", key: FEED_KEY, partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
static DEF: ViewDef = ViewDef { name: "bench", tables: &[&ROWS, &FEED] };

/// Runs it on the node at `address`.
pub(crate) fn run(settings: &Settings, address: &str) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(compare(settings, address))
}

async fn compare(settings: &Settings, address: &str) -> Result<(), Failure> {
    heading("CQL: the view store against the driver alone");
    let keyspace = format!("bench_{}", std::process::id());
    let options = Options { contact_points: vec![address.to_owned()], keyspace: keyspace.clone(), ..Options::default() };
    let store = ScyllaStore::open(options).await?;
    let view = store.live(&DEF).await?;
    let driver = Arc::new(SessionBuilder::new().known_node(address).build().await?);
    fill_feed(&*view).await?;
    let mut rounds = Rounds::default();
    for round in 0..settings.rounds {
        let begin = i64::try_from(round)? * BATCH_ROWS * 20;
        rounds.ours.push(commit_rows(&*view, begin).await?);
        rounds.driver.push(insert_rows(&driver, &keyspace, begin).await?);
        rounds.our_points.push(repeat(settings.seconds, UNDER_WAY, |n| our_point(Arc::clone(&view), n)).await?);
        let select = Arc::new(driver.prepare(format!("SELECT value FROM {keyspace}.bench_rows_g1 WHERE id = ?")).await?);
        rounds
            .driver_points
            .push(repeat(settings.seconds, UNDER_WAY, |n| driver_point(Arc::clone(&driver), Arc::clone(&select), n)).await?);
        rounds.our_pages.push(repeat(settings.seconds, PAGES_UNDER_WAY, |n| our_page(Arc::clone(&view), n)).await?);
        let select = Arc::new(driver.prepare(format!("SELECT value FROM {keyspace}.bench_feed_g1 WHERE block = ?")).await?);
        rounds
            .driver_pages
            .push(repeat(settings.seconds, PAGES_UNDER_WAY, |n| driver_page(Arc::clone(&driver), Arc::clone(&select), n)).await?);
    }
    driver.query_unpaged(format!("DROP KEYSPACE {keyspace}"), ()).await?;
    for (what, ours, driver) in [
        ("rows committed", rounds.ours, rounds.driver),
        ("rows read by key", rounds.our_points, rounds.driver_points),
        ("pages of 200 changes, with the checkpoint", rounds.our_pages, rounds.driver_pages),
    ] {
        let of_both = ours.iter().zip(&driver).map(|(ours, driver)| ours / driver).collect();
        figure(&format!("{what}, a second"), format!("{:.0}", median(ours)));
        figure("  the driver alone", format!("{:.0}", median(driver)));
        let value = median(of_both);
        ratio("  ours / the driver's", value, value >= 0.5, ">= 0.5");
    }
    Ok(())
}

/// Rates of each round.
#[derive(Default)]
struct Rounds {
    ours: Vec<f64>,
    driver: Vec<f64>,
    our_points: Vec<f64>,
    driver_points: Vec<f64>,
    our_pages: Vec<f64>,
    driver_pages: Vec<f64>,
}

fn value() -> Bytes {
    Bytes::from(format!(r#"{{"seq":1,"record":"{}"}}"#, "x".repeat(375)))
}

async fn fill_feed(view: &dyn View) -> Result<(), Failure> {
    let mut tail = FeedTail::empty();
    let element = value();
    for seq in 1..=FEED_CHANGES {
        tail.push(Seq(seq), 1, Some(&element))?;
        if seq % 1_000 == 0 {
            view.commit(tail.take_writes(&FEED), &Checkpoint { seq, ..Checkpoint::default() }).await?;
        }
    }
    Ok(())
}

async fn commit_rows(view: &dyn View, begin: i64) -> Result<f64, Failure> {
    let started = Instant::now();
    for batch in 0..20 {
        let at = begin + batch * BATCH_ROWS;
        let writes = (at..at + BATCH_ROWS).map(|n| Write::put(&ROWS, key![n.to_string()], value()).at(at + 1)).collect();
        let seq = FEED_CHANGES + u64::try_from(at)? + 1;
        view.commit(writes, &Checkpoint { seq, ..Checkpoint::default() }).await?;
    }
    Ok(10_000.0 / started.elapsed().as_secs_f64())
}

async fn insert_rows(driver: &Arc<Session>, keyspace: &str, begin: i64) -> Result<f64, Failure> {
    let insert = format!("INSERT INTO {keyspace}.bench_rows_g1 (id, value) VALUES (?, ?) USING TIMESTAMP ?");
    let insert = Arc::new(driver.prepare(insert).await?);
    let value = String::from_utf8(value().to_vec())?;
    let started = Instant::now();
    let mut under_way = JoinSet::new();
    for n in begin..begin + 10_000 {
        while under_way.len() >= UNDER_WAY {
            under_way.join_next().await.transpose()?.transpose()?;
        }
        let (driver, insert, value) = (Arc::clone(driver), Arc::clone(&insert), value.clone());
        under_way.spawn(async move { driver.execute_unpaged(&insert, (n.to_string(), value, n + 1)).await.map(|_| ()) });
    }
    while let Some(done) = under_way.join_next().await {
        done??;
    }
    Ok(10_000.0 / started.elapsed().as_secs_f64())
}

/// Does an act over and over, so many at once, for some seconds; answers how many a second.
async fn repeat<F>(seconds: u64, at_once: usize, act: impl Fn(u64) -> F) -> Result<f64, Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let (started, limit) = (Instant::now(), Duration::from_secs(seconds));
    let (mut under_way, mut done, mut next) = (JoinSet::new(), 0_u32, 0);
    while started.elapsed() < limit {
        while under_way.len() < at_once {
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

async fn our_point(view: Arc<dyn View>, n: u64) -> Result<(), Failure> {
    let key: Key = key![(n % 10_000).to_string()];
    view.get(&ROWS, &key).await?.ok_or("a row is missing")?;
    Ok(())
}

async fn driver_point(driver: Arc<Session>, select: Arc<PreparedStatement>, n: u64) -> Result<(), Failure> {
    let answer = driver.execute_unpaged(&select, ((n % 10_000).to_string(),)).await?.into_rows_result()?;
    answer.first_row::<(String,)>()?;
    Ok(())
}

/// Where the page of a turn begins: at the beginning of a block, so that both read the same blocks.
fn page_begin(n: u64) -> u64 {
    let pages = FEED_CHANGES / PAGE_CHANGES as u64;
    n * 7 % pages * PAGE_CHANGES as u64
}

async fn our_page(view: Arc<dyn View>, n: u64) -> Result<(), Failure> {
    let upto = Seq(view.checkpoint().await?.seq.min(FEED_CHANGES));
    let page = read_page(&*view, &FEED, Seq(page_begin(n)), upto, PAGE_CHANGES).await?;
    if page.shown == PAGE_CHANGES { Ok(()) } else { Err("a page is short".into()) }
}

async fn driver_page(driver: Arc<Session>, select: Arc<PreparedStatement>, n: u64) -> Result<(), Failure> {
    let first = i64::try_from(page_begin(n) / FEED_BLOCK_LEN as u64)?;
    for block in first..first + i64::try_from(PAGE_CHANGES / FEED_BLOCK_LEN)? {
        let answer = driver.execute_unpaged(&select, (block,)).await?.into_rows_result()?;
        answer.first_row::<(Bytes,)>()?;
    }
    Ok(())
}

//! A poll of a store with 100,000 variants of which one in a thousand has changed since the poll before: from the first request to the last
//! row, compared with PostgreSQL, which reads the same pages as JSON and finds the changed variants by a join.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use cadence::record::TABLES;
use schemas::topics::STOCK;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio_postgres::Client;
use upstreams::shopify::{Options, Store};
use warp::Filter;

use crate::child_server::json_response;
use crate::engine::Engine;
use crate::report::{figure, line, number, processor_s, ratio, run_child};
use crate::{Failure, Settings, pages, postgres, webhooks};

const BASE_URL: &str = "BENCH_BASE_URL";
const HOST: &str = "large.example";
/// Products of the store, each with five variants.
const PRODUCTS: u64 = 20_000;
const VARIANTS: u64 = 5;
/// Products on a page.
const PAGE_PRODUCTS: u64 = 250;
/// One variant of this many has changed at the second poll.
const CHANGED_OF: u64 = 1_000;
const CPU_S_MAX: f64 = 2.0;

/// Serves the pages, polls them in a separate process, and lets PostgreSQL read the same.
pub(super) fn run(settings: &Settings, runtime: &Runtime, cluster: &postgres::Cluster) -> Result<(), Failure> {
    let polls = [pages_of(false), pages_of(true)];
    let bytes: usize = polls[1].iter().map(Bytes::len).sum();
    figure("a poll: variants", PRODUCTS * VARIANTS);
    figure("... pages", polls[1].len());
    figure("... MB", format!("{:.0}", bytes as f64 / 1e6));
    let peer_s = runtime.block_on(peer(cluster.socket(), &polls))?;
    let base_url = runtime.block_on(serve(polls))?;
    let result = run_child(settings, "cadence-poll-child", &[(BASE_URL, base_url)])?;
    let cpu_s = number(&result, "cpu_s");
    figure("... facts of variants", number(&result, "facts"));
    figure("... seconds to the last row", format!("{:.2}", number(&result, "seconds")));
    figure("... PostgreSQL, s", format!("{peer_s:.2}"));
    ratio("a poll: processor time, s", cpu_s, cpu_s <= CPU_S_MAX, "<= 2");
    ratio("a poll: processor time / PostgreSQL", cpu_s / peer_s, cpu_s <= peer_s, "<= 1");
    Ok(())
}

/// The pages of the first or the second poll, in the form of a store.
fn pages_of(is_second: bool) -> Vec<Bytes> {
    let products: Vec<u64> = (0..PRODUCTS).collect();
    let page = |numbers: &[u64]| {
        let list: Vec<String> = numbers.iter().map(|number| product(*number, is_second)).collect();
        Bytes::from(format!("{{\"products\":[{}]}}", list.join(",")))
    };
    products.chunks(usize::try_from(PAGE_PRODUCTS).unwrap_or(usize::MAX)).map(page).collect()
}

fn product(number: u64, is_second: bool) -> String {
    let id = 8_200_000_000_000 + number;
    let mut variants = String::new();
    for at in 0..VARIANTS {
        let variant = number * VARIANTS + at;
        let available = variant.is_multiple_of(3) != (is_second && variant.is_multiple_of(CHANGED_OF));
        let comma = if at > 0 { "," } else { "" };
        // Writing to a text cannot fail.
        let _ = write!(
            variants,
            r#"{comma}{{"id":{},"title":"Size {at}","option1":"Size {at}","option2":null,"option3":null,"sku":"SKU-{variant}","requires_shipping":true,"taxable":true,"featured_image":null,"available":{available},"price":"120.00","grams":500,"compare_at_price":null,"position":{},"product_id":{id},"created_at":"2026-01-02T03:04:05-05:00","updated_at":"2026-09-01T00:00:00-04:00"}}"#,
            45_000_000_000_000 + variant,
            at + 1,
        );
    }
    format!(
        r#"{{"id":{id},"title":"Trail Runner {number:06}","handle":"trail-runner-{number:06}","body_html":"<p>Made with care &amp; attention.</p>","published_at":"2026-01-02T03:04:05-05:00","created_at":"2026-01-02T03:04:05-05:00","updated_at":"2026-09-01T00:00:00-04:00","vendor":"Maker {}","product_type":"Shoes","tags":["new","sale"],"variants":[{variants}],"images":[],"options":[{{"name":"Size","position":1,"values":[]}}]}}"#,
        number % 50,
    )
}

/// Serves the pages of the first poll; those of the second one after a request for `/next`. Returns the address.
async fn serve([first, second]: [Vec<Bytes>; 2]) -> Result<String, Failure> {
    let (polls, is_second) = (Arc::new([first, second]), Arc::new(AtomicBool::new(false)));
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    let route = warp::path::full().and(query).and_then(move |path: warp::path::FullPath, query: String| {
        let (polls, is_second) = (Arc::clone(&polls), Arc::clone(&is_second));
        async move {
            let [first, second] = &*polls;
            let body = match path.as_str() {
                "/products.json" => {
                    let page = query.split('&').find_map(|pair| pair.strip_prefix("page=")?.parse::<usize>().ok()).unwrap_or(1);
                    let shown = if is_second.load(Ordering::Relaxed) { second } else { first };
                    shown.get(page - 1).cloned().unwrap_or_else(|| Bytes::from_static(b"{\"products\":[]}"))
                }
                "/next" => {
                    is_second.store(true, Ordering::Relaxed);
                    Bytes::from_static(b"{}")
                }
                _ => Bytes::from_static(b"{}"),
            };
            Ok::<_, Infallible>(json_response(body))
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(warp::serve(route).incoming(listener).run());
    Ok(address)
}

/// `cadence-poll-child`: polls the store twice; measures the second poll.
pub(crate) fn child(_settings: &Settings) -> Result<(), Failure> {
    let base_url = std::env::var(BASE_URL)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let dir = tempfile::tempdir()?;
        let engine = Engine::open(dir.path()).await?;
        let upstream = upstreams::by_name("shopify").ok_or("no such upstream")?;
        // An interval of 0: every run polls the store.
        let store = Store { host: HOST.to_owned(), niche: "large".to_owned(), interval_s: 0 };
        let settings = upstreams::Settings {
            own: upstreams::OwnOptions::new(Options { stores: vec![store], ..Options::default() }),
            ..pages::settings(Some(base_url.clone()))
        };
        let sync = async || {
            for outcome in engine.runner.sync(upstream, &settings).await? {
                outcome?;
            }
            let live = engine.store.live(TABLES.view).await?;
            view_store::engine::wait_past(&*live, &STOCK, 0, engine.log.end(&STOCK, 0).await?).await?;
            Ok::<_, Failure>(engine.log.end(&STOCK, 0).await?.0)
        };
        let facts_before = sync().await?;
        webhooks::client()?.get(format!("{base_url}/next")).send().await?;
        let (started, cpu_before) = (Instant::now(), number(&processor_s(), "total"));
        let facts = sync().await?;
        let (seconds, cpu_s) = (started.elapsed().as_secs_f64(), number(&processor_s(), "total") - cpu_before);
        engine.close().await?;
        Ok::<_, Failure>(json!({ "seconds": seconds, "cpu_s": cpu_s, "facts": facts - facts_before }))
    })?;
    line(&result.to_string());
    Ok(())
}

/// Reads both polls into PostgreSQL; returns the seconds of the second one. One backend process works, so they are processor time.
async fn peer(socket: &Path, polls: &[Vec<Bytes>; 2]) -> Result<f64, Failure> {
    let client = postgres::connect(socket).await?;
    client
        .batch_execute(
            "set max_parallel_workers_per_gather = 0; create table stock (id bigint primary key, product bigint, title text, available bool);
            create table restocked (id bigint, poll int, available bool); create unlogged table pages (body jsonb)",
        )
        .await?;
    let mut seconds = 0.0;
    for pages in polls {
        seconds = read(&client, pages).await?;
    }
    Ok(seconds)
}

async fn read(client: &Client, pages: &[Bytes]) -> Result<f64, Failure> {
    let started = Instant::now();
    client.batch_execute("truncate pages").await?;
    let insert = client.prepare("insert into pages select $1::text::jsonb").await?;
    for page in pages {
        client.execute(&insert, &[&std::str::from_utf8(page)?]).await?;
    }
    client
        .batch_execute(
            "with shown as (
                select (v ->> 'id')::bigint as id, (p ->> 'id')::bigint as product, p ->> 'title' as title, (v ->> 'available')::bool as available
                from pages, jsonb_array_elements(body -> 'products') p, jsonb_array_elements(p -> 'variants') v
            ), changed as (
                select shown.* from shown left join stock using (id) where stock.available is distinct from shown.available
            ), kept as (insert into restocked select id, 0, available from changed)
            insert into stock select * from changed on conflict (id) do update set available = excluded.available",
        )
        .await?;
    Ok(started.elapsed().as_secs_f64())
}

//! The peer: the same restocks in PostgreSQL, and the same questions as queries with window functions.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cadence::forecast::SPREAD_DEFAULT;
use serde_json::json;
use surfaces::server::listen;
use tokio_postgres::Client;
use warp::Filter;

use super::series;
use crate::child_server::json_response;
use crate::report::line;
use crate::{Failure, Settings, postgres};

/// Times are days since the first poll. `student` has the quantile 0.90 of Student's distribution by degrees of freedom.
const SCHEMA: &str = "
create table items (n bigint primary key, niche text, title text, words tsvector);
create table restocks (n bigint, at double precision);
create table student (df int primary key, q double precision);
insert into student values (2, 1.8856), (3, 1.6377), (4, 1.5332), (5, 1.4759), (6, 1.4398), (7, 1.4149), (8, 1.3968), (9, 1.3830),
    (10, 1.3722), (11, 1.3634), (12, 1.3562), (13, 1.3502);
create function window_of(k bigint, m double precision, v double precision, side int) returns double precision language sql stable as $$
    select exp(m + side * q * sqrt(((k - 1) * coalesce(v, 0) + 2 * spread_of() * spread_of()) / (k + 1)) * sqrt(1 + 1.0 / k)) + side * 0.5
    from student where df = k + 1 $$;";

/// What an item's best match is, its forecast, and other matches.
const PREDICT: &str = "
with found as materialized (
    select n, title, (select count(*) from restocks r where r.n = i.n) as events from items i
    where niche = $1 and words @@ to_tsquery('simple', $2) order by events desc, title limit 6
), top as (select n, title, events from found order by events desc, title limit 1),
gaps as (
    select at, ln(at - lag(at) over (order by at)) as g, row_number() over (order by at desc) as k from restocks where n = (select n from top)
), sums as (select count(g) as k, avg(g) as m, var_samp(g) as v, max(at) as last from gaps where k <= 12)
select json_build_object('item', title, 'events', events, 'from', last + window_of(sums.k, m, v, -1), 'centre', last + exp(m),
    'to', last + window_of(sums.k, m, v, 1), 'alternatives', (select json_agg(found.title) from found))::text from top, sums";

/// The fifty items of a niche that are restocked most often.
const BOARD: &str = "
with own as (select n, title from items where niche = $1),
gaps as (
    select n, at, at - lag(at) over w as g, row_number() over (partition by n order by at desc) as k
    from restocks join own using (n) window w as (partition by n order by at)
), ranks as (
    select n, count(*) filter (where at >= 30) as restocks, max(at) as last, percentile_cont(0.5) within group (order by g) filter (where k <= 12) as median
    from gaps group by n
)
select json_agg(x)::text from (
    select title, restocks, round(restocks * 30 / 90.0, 2) as per_month, median, last from own left join ranks using (n)
    order by per_month desc nulls last, median nulls last, n limit 50) x";

/// Every forecast from the fifth gap on, compared with the restock that followed.
const SCORE: &str = "
with g as (select n, at, at - lag(at) over (partition by n order by at) as gap from restocks),
f as (
    select gap, count(gap) over p as k, avg(ln(gap)) over p as m, var_samp(ln(gap)) over p as v
    from g window p as (partition by n order by at rows between 12 preceding and 1 preceding)
)
select count(*), avg((gap between
    exp(m - w) - 0.5 and exp(m + w) + 0.5)::int)::double precision from (
        select gap, m, q * sqrt(((k - 1) * coalesce(v, 0) + 2 * spread_of() * spread_of()) / (k + 1)) * sqrt(1 + 1.0 / k) as w
        from f join student on df = k + 1 where k >= 4) x";

/// Copies all restocks into tables; returns their number.
pub(super) async fn fill(settings: &Settings, socket: &Path) -> Result<u64, Failure> {
    let client = postgres::connect(socket).await?;
    let spread = format!(
        "create function spread_of() returns double precision language sql immutable as $$ select {SPREAD_DEFAULT}::double precision $$;"
    );
    client.batch_execute(&format!("{spread}{SCHEMA}")).await?;
    let (mut items, mut restocks) = (String::new(), String::new());
    for item in 0..series::items(settings) {
        let title = series::title(item);
        items.push_str(&format!("{item}\tn{}\t{title}\n", series::niche_of(item)));
        for day in series::restock_days(item) {
            restocks.push_str(&format!("{item}\t{}\n", day as f64 - 0.5));
        }
    }
    let mut rows = 0;
    for (table, text) in [("items (n, niche, title)", items), ("restocks", restocks)] {
        // COPY reads a file on the server's side.
        let path = socket.join("rows.tsv");
        std::fs::write(&path, text)?;
        rows = client.execute(&format!("copy {table} from '{}'", path.display()), &[]).await?;
        std::fs::remove_file(&path)?;
    }
    let index =
        "update items set words = to_tsvector('simple', title); create index on items using gin (words); create index on items (niche);
        create index on restocks (n, at)";
    // Statements that run together are one transaction, which cannot contain `vacuum`.
    for statement in [index, "vacuum analyze items", "vacuum analyze restocks", "checkpoint"] {
        client.batch_execute(statement).await?;
    }
    Ok(rows)
}

/// Scores all past forecasts; returns their number and the share that held.
pub(super) async fn score(socket: &Path) -> Result<(i64, f64), Failure> {
    let client = postgres::connect(socket).await?;
    // One process, as the other side uses one thread.
    client.batch_execute("set max_parallel_workers_per_gather = 0").await?;
    let row = client.query_one(SCORE, &[]).await?;
    Ok((row.get(0), row.get(1)))
}

/// Serves boards and predictions until the process is killed.
pub(super) async fn serve(socket: &Path) -> Result<(), Failure> {
    let client = postgres::connect(socket).await?;
    let (predict, board) = (client.prepare(PREDICT).await?, client.prepare(BOARD).await?);
    let shared = Arc::new((client, predict, board));
    let route = warp::path::param().and(warp::query::raw()).and_then(move |kind: String, query: String| {
        let shared = Arc::clone(&shared);
        async move {
            let (client, predict, board) = &*shared;
            let statement = if kind == "board" { board } else { predict };
            Ok::<_, Infallible>(json_response(answer(client, statement, kind == "board", &query).await))
        }
    });
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    line(&json!({ "address": listener.local_addr()?.to_string() }).to_string());
    warp::serve(route).incoming(listener).run().await;
    Ok(())
}

/// Answers a question; an empty answer if it cannot.
async fn answer(client: &Client, statement: &tokio_postgres::Statement, is_board: bool, query: &str) -> Bytes {
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap_or_default();
    let niche = value("niche=");
    let words: Vec<String> = value("query=").split("%20").map(|word| format!("{word}:*")).collect();
    let words = words.join(" & ");
    let row = if is_board { client.query_one(statement, &[&niche]).await } else { client.query_one(statement, &[&niche, &words]).await };
    row.map_or_else(|_| Bytes::new(), |row| Bytes::from(row.get::<_, Option<String>>(0).unwrap_or_default()))
}

//! Pages of the simulated upstreams, rendered before the measurement and served from files by a separate process.
//!
//! Only the streams of recalls with JSON answers are used: NHTSA's flat file is an archive, and EDGAR's answers are indexes and XML, which
//! cannot be compared with a JSON parser. The number of grants, trials and awards does not depend on the number of records.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use upstreams::{Answer, Stream, Upstream, Window};
use warp::Filter;

use crate::report::{line, spawn};
use crate::start_time::today;
use crate::{Failure, Settings};

/// Returns the streams whose pages are used.
pub(crate) fn streams() -> impl Iterator<Item = (&'static dyn Upstream, &'static Stream)> {
    let simulated = simulator::UPSTREAMS.iter().filter_map(|name| upstreams::by_name(name));
    let all = simulated.flat_map(|upstream| upstream.manifest().streams.iter().map(move |stream| (upstream, stream)));
    all.filter(|(_, stream)| *stream.topic == schemas::topics::RECALLS && !stream.name.starts_with("nhtsa.flat"))
}

/// Returns the settings of the upstreams for the engine.
pub(crate) fn settings(base_url: Option<String>) -> upstreams::Settings {
    upstreams::Settings {
        base_url,
        api_key: None,
        user_agent: "highwater-bench/0.1".to_owned(),
        requests_per_second: 1e6,
        window_days: 365,
        backfill_days: 0,
        own: upstreams::OwnOptions::default(),
    }
}

fn dir_of(settings: &Settings) -> PathBuf {
    settings.dir.join(format!("pages-{}", settings.records))
}

/// Renders all pages, unless an earlier run of the same day did; returns their files.
pub(crate) fn prepare(settings: &Settings) -> Result<Vec<PathBuf>, Failure> {
    let dir = dir_of(settings);
    if let Ok(index) = read_index(&dir)
        && index.get("today").and_then(Value::as_str) == Some(today().to_string().as_str())
    {
        return Ok(pages_of(&index).map(|page| dir.join(text(page, "file"))).collect());
    }
    line(&format!("rendering the pages of {} records", settings.records));
    std::fs::create_dir_all(&dir)?;
    let world =
        simulator::Simulator::new(simulator::Options { records: settings.records, today: today(), ..simulator::Options::default() });
    let (mut index, mut files) = (Vec::new(), Vec::new());
    let own = self::settings(None);
    for (upstream, stream) in streams() {
        let mut next = Some(upstream.start(stream, &Window { from: None, to: today() }, &own));
        while let Some(cursor) = next.take() {
            let request = upstream.request(stream, &cursor, &own)?;
            let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
            let answer = world.answer(path, query).ok_or_else(|| format!("the simulator does not know {path}"))?;
            let file = format!("{:06}.json", files.len());
            std::fs::write(dir.join(&file), &answer.body)?;
            files.push(dir.join(&file));
            index.push(json!({ "path": request.path, "file": file, "status": answer.status, "link": answer.link }));
            let answer = Answer { status: answer.status, link: answer.link, body: Bytes::from(answer.body) };
            next = upstream.map(stream, &cursor, &answer, today())?.next;
        }
    }
    std::fs::write(dir.join("index.json"), serde_json::to_vec(&json!({ "today": today().to_string(), "pages": index }))?)?;
    Ok(files)
}

fn read_index(dir: &Path) -> Result<Value, Failure> {
    Ok(serde_json::from_slice(&std::fs::read(dir.join("index.json"))?)?)
}

fn pages_of(index: &Value) -> impl Iterator<Item = &Value> {
    index.get("pages").and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(page: &'a Value, name: &str) -> &'a str {
    page.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Serves the pages in a separate process; returns the process and its address.
pub(crate) fn serve(settings: &Settings) -> Result<(Child, String), Failure> {
    let mut child = spawn(settings, "pages-child", &[])?;
    let mut address = String::new();
    if let Some(output) = child.stdout.take() {
        std::io::BufReader::new(output).read_line(&mut address)?;
    }
    Ok((child, format!("http://{}", address.trim())))
}

/// `pages-child`: serves until it is killed.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let dir = dir_of(settings);
    let index = read_index(&dir)?;
    let pages: HashMap<String, Value> = pages_of(&index).map(|page| (text(page, "path").to_owned(), page.clone())).collect();
    let (dir, pages) = (Arc::new(dir), Arc::new(pages));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async move {
        let query = warp::query::raw().or(warp::any().map(String::new)).unify();
        let route = warp::path::full().and(query).and_then(move |path: warp::path::FullPath, query: String| {
            let (dir, pages) = (Arc::clone(&dir), Arc::clone(&pages));
            async move {
                let request = if query.is_empty() { path.as_str().to_owned() } else { format!("{}?{query}", path.as_str()) };
                Ok::<_, Infallible>(answer(&dir, pages.get(&request)).unwrap_or_else(|| not_found(&request)))
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        line(&listener.local_addr()?.to_string());
        warp::serve(route).incoming(listener).run().await;
        Ok(())
    })
}

fn answer(dir: &Path, page: Option<&Value>) -> Option<Response<Bytes>> {
    let page = page?;
    let status = u16::try_from(page.get("status")?.as_u64()?).ok()?;
    let body = std::fs::read(dir.join(text(page, "file"))).ok()?;
    let mut builder = Response::builder().status(status).header("content-type", "application/json; charset=utf-8");
    if let Some(link) = page.get("link").and_then(Value::as_str) {
        builder = builder.header("link", link);
    }
    builder.body(Bytes::from(body)).ok()
}

fn not_found(request: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(format!("no page was rendered for {request}")));
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}

//! Ingest of simulated pages, from the first request to the last row, compared with parsing the same bytes by serde_json; then the time to
//! open the data again.

use std::path::PathBuf;
use std::time::Instant;

use schemas::topics::{CHANGES_RECALLS, RECALLS};
use serde_json::{Value, json};
use upstreams::http::Client;

use crate::engine::Engine;
use crate::report::{figure, heading, line, median, memory_mib, number, processor_s, ratio, run_child};
use crate::{Failure, Settings, pages};

const BASE_URL: &str = "BENCH_BASE_URL";

/// Returns the directory of the engine's data, which `replay` and `page` read.
pub(crate) fn data_dir(settings: &Settings) -> PathBuf {
    settings.dir.join(format!("data-{}", settings.records))
}

/// Creates the data unless an earlier benchmark did.
pub(crate) fn prepare(settings: &Settings) -> Result<(), Failure> {
    if !data_dir(settings).join("complete").exists() {
        ingest(settings)?;
    }
    Ok(())
}

fn ingest(settings: &Settings) -> Result<Value, Failure> {
    pages::prepare(settings)?;
    let data = data_dir(settings);
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    let (mut server, base_url) = pages::serve(settings)?;
    let result = run_child(settings, "ingest-child", &[(BASE_URL, base_url)]);
    server.kill()?;
    server.wait()?;
    let result = result?;
    std::fs::write(data.join("complete"), result.to_string())?;
    Ok(result)
}

/// Parses, ingests, and parses again.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("ingest: pages of {} simulated records, runner and projector in one process", settings.records));
    let files = pages::prepare(settings)?;
    let mut parses = vec![parse(&files)?, parse(&files)?];
    let result = ingest(settings)?;
    parses.extend([parse(&files)?, parse(&files)?]);
    let bytes: u64 = files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|file| file.len()).sum();
    let (parse_s, ingest_s) = (median(parses), number(&result, "seconds"));
    let (facts, changes) = (number(&result, "facts"), number(&result, "changes"));
    figure("pages", files.len());
    figure("bytes of pages, MB", format!("{:.0}", bytes as f64 / 1e6));
    figure("facts appended", facts);
    figure("changes decided", changes);
    figure("parse to serde_json::Value, s", format!("{parse_s:.2}"));
    figure("ingest until the last row, s", format!("{ingest_s:.2}"));
    figure("... facts appended after, s", format!("{:.2}", number(&result, "appended_s")));
    figure("facts per second, to the last row", format!("{:.0}", facts / ingest_s));
    let cpu = result.get("cpu").cloned().unwrap_or_default();
    figure("processor time of the engine, s", format!("{:.1}", number(&cpu, "total")));
    figure("... us a fact", format!("{:.1}", number(&cpu, "total") * 1e6 / facts.max(1.0)));
    for (name, seconds) in cpu.get("threads").and_then(Value::as_object).into_iter().flatten() {
        figure(&format!("... threads {name}, s"), format!("{:.1}", seconds.as_f64().unwrap_or_default()));
    }
    let memory = number(&result, "memory_mib");
    figure("disk, MB", format!("{:.0}", disk_bytes(&data_dir(settings))? as f64 / 1e6));
    ratio("ingest / parse", ingest_s / parse_s, ingest_s <= 2.5 * parse_s, "<= 2.5");
    ratio("peak memory, MiB", memory, memory < 300.0, "< 300");
    if std::env::var_os("BENCH_HEADS_ALONE").is_some() {
        return Ok(());
    }
    let opened = run_child(settings, "open-child", &[])?;
    figure("opening after a clean stop, s", format!("{:.2}", number(&opened, "seconds")));
    figure("... peak memory, MiB", format!("{:.0}", number(&opened, "memory_mib")));
    Ok(())
}

/// Parses all pages; returns the seconds, without the time of reading the files.
fn parse(files: &[PathBuf]) -> Result<f64, Failure> {
    let mut seconds = 0.0;
    for file in files {
        let body = std::fs::read(file)?;
        let started = Instant::now();
        let value: Value = serde_json::from_slice(&body)?;
        drop(std::hint::black_box(value));
        seconds += started.elapsed().as_secs_f64();
    }
    Ok(seconds)
}

fn disk_bytes(dir: &std::path::Path) -> Result<u64, Failure> {
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        sum += if kind.is_dir() { disk_bytes(&entry.path())? } else { kind.len() };
    }
    Ok(sum)
}

/// `ingest-child`: ingests all streams from a server of pages, the streams of one upstream one after another. With `BENCH_HEADS_ALONE` set
/// there are no deciders.
pub(crate) fn child(settings: &Settings) -> Result<(), Failure> {
    let base_url = std::env::var(BASE_URL)?;
    let deciders = std::env::var_os("BENCH_HEADS_ALONE").is_none();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let engine = Engine::open_with(&data_dir(settings), deciders).await?;
        let started = Instant::now();
        let runs = upstreams::ALL.iter().map(|upstream| {
            let (runner, settings) = (std::sync::Arc::clone(&engine.runner), pages::settings(Some(base_url.clone())));
            tokio::spawn(async move {
                let client = Client::new(&settings)?;
                for (_, stream) in pages::streams().filter(|(own, _)| own.manifest().name == upstream.manifest().name) {
                    runner.sync_stream(*upstream, stream, &client, &settings).await?;
                }
                Ok::<_, Failure>(())
            })
        });
        for run in runs.collect::<Vec<_>>() {
            run.await??;
        }
        let appended_s = started.elapsed().as_secs_f64();
        if deciders {
            engine.wait_projected().await?;
        }
        let seconds = started.elapsed().as_secs_f64();
        let (memory_mib, cpu) = (memory_mib(std::process::id())?, processor_s());
        let mut facts = 0;
        for partition in 0..RECALLS.partitions {
            facts += engine.log.end(&RECALLS, partition).await?.0;
        }
        let changes = engine.log.end(&CHANGES_RECALLS, 0).await?.0;
        engine.close().await?;
        Ok::<_, Failure>(json!({
            "seconds": seconds, "appended_s": appended_s, "memory_mib": memory_mib, "cpu": cpu, "facts": facts, "changes": changes,
        }))
    })?;
    line(&result.to_string());
    Ok(())
}

/// `open-child`: opens the data and closes it.
pub(crate) fn open_child(settings: &Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let started = Instant::now();
        let engine = Engine::open(&data_dir(settings)).await?;
        engine.wait_projected().await?;
        let (seconds, memory_mib) = (started.elapsed().as_secs_f64(), memory_mib(std::process::id())?);
        engine.close().await?;
        Ok::<_, Failure>(json!({ "seconds": seconds, "memory_mib": memory_mib }))
    })?;
    line(&result.to_string());
    Ok(())
}

//! The first load of large archives: unpacking and mapping one, and ingesting it, compared with unpacking and parsing it alone with `zip` and
//! `quick-xml`. `--records` is the number of case files, each of 7 KB like a real one.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use schemas::position::UpstreamCursor;
use schemas::topics::MARKS;
use serde_json::{Value, json};
use upstreams::http::Client;
use upstreams::{Settings as UpstreamSettings, Stream, Upstream};
use warp::Filter;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::engine::Engine;
use crate::report::{figure, heading, line, median, memory_mib, number, ratio, run_child};
use crate::{Failure, Settings};

const FILE: &str = "apc18840407-20251231-01.zip";
const STREAM: &str = "uspto_trademarks.annual";
/// The flags of a case file, all of which real records have.
const FLAGS: usize = 55;
const MAPPED_MIN: f64 = 0.5;
const MEMORY_MIB_MAX: f64 = 500.0;

fn archive(settings: &Settings) -> PathBuf {
    settings.dir.join(format!("{}-{FILE}", settings.records))
}

fn upstream() -> Result<(&'static dyn Upstream, &'static Stream), Failure> {
    let upstream = upstreams::by_name("uspto_trademarks").ok_or("no such upstream")?;
    let stream = upstream.manifest().streams.iter().find(|stream| stream.name == STREAM).ok_or("no such stream")?;
    Ok((upstream, stream))
}

/// Compares mapping and ingest with parsing alone.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("archives: one archive of {} case files", settings.records));
    let path = archive(settings);
    if !path.exists() {
        write(&path, settings.records)?;
    }
    let (mut alone, mut mapped, mut memory, mut bytes) = (Vec::new(), Vec::new(), 0.0_f64, 0);
    for _ in 0..settings.rounds.min(3) {
        let result = run_child(settings, "map-archive-child", &[])?;
        mapped.push(number(&result, "seconds"));
        memory = memory.max(number(&result, "memory_mib"));
        let started = Instant::now();
        bytes = parse_alone(&path)?;
        alone.push(started.elapsed().as_secs_f64());
    }
    let (alone, mapped, records) = (median(alone), median(mapped), settings.records as f64);
    figure("packed, MB", format!("{:.0}", std::fs::metadata(&path)?.len() as f64 / 1e6));
    figure("unpacked, MB", format!("{:.0}", bytes as f64 / 1e6));
    figure("unpack and parse alone, records/s", format!("{:.0}", records / alone));
    figure("unpack and map, records/s", format!("{:.0}", records / mapped));
    figure("unpack and map, MB/s", format!("{:.0}", bytes as f64 / 1e6 / mapped));
    ratio("speed of mapping / parsing alone", alone / mapped, alone / mapped >= MAPPED_MIN, ">= 0.5");
    ratio("peak memory of mapping, MiB", memory, memory < 64.0, "< 64");
    let loaded = run_child(settings, "load-archive-child", &[])?;
    let seconds = number(&loaded, "seconds");
    figure("from the archive to the last fact, records/s", format!("{:.0}", records / seconds));
    ratio("speed of loading / parsing alone", alone / seconds, alone / seconds >= MAPPED_MIN, ">= 0.5");
    let memory = number(&loaded, "memory_mib");
    ratio("peak memory of loading, MiB", memory, memory < MEMORY_MIB_MAX, "< 500");
    Ok(())
}

/// Writes an archive.
fn write(path: &Path, records: u64) -> Result<(), Failure> {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated).large_file(true);
    let mut zip = ZipWriter::new(BufWriter::new(File::create(path)?));
    zip.start_file(FILE.replace(".zip", ".xml"), options)?;
    zip.write_all(b"<?xml version=\"1.0\"?><trademark-applications-daily><application-information><file-segments><action-keys>\n")?;
    let mut random = StdRng::seed_from_u64(25);
    let flags: String = (0..FLAGS)
        .map(|flag| format!("            <filing-basis-current-{flag:02}a-in>F</filing-basis-current-{flag:02}a-in>\n"))
        .collect();
    for index in 0..records {
        let word = |random: &mut StdRng, length: usize| -> String {
            (0..length).map(|_| char::from(b'A' + random.random_range(0..26_u8))).collect()
        };
        let (length, class) = (random.random_range(4..12), random.random_range(1..46));
        let events: String = (1..=random.random_range(6..18))
            .map(|number| {
                format!(
                    "<case-file-event-statement><code>{}</code><type>I</type><description-text>NOTICE OF {} E-MAILED</description-text>\
                     <date>20{:02}0{}1{}</date><number>{number}</number></case-file-event-statement>\n",
                    word(&mut random, 4),
                    word(&mut random, 12),
                    random.random_range(0..26),
                    random.random_range(1..10),
                    random.random_range(0..10),
                )
            })
            .collect();
        write!(
            zip,
            "<case-file>\n<serial-number>{:08}</serial-number>\n<registration-number>0000000</registration-number>\n\
             <transaction-date>20251101</transaction-date>\n<case-file-header><filing-date>20230310</filing-date><status-code>630</status-code>\
             <status-date>20230314</status-date><mark-identification>{}</mark-identification><mark-drawing-code>4</mark-drawing-code>\n{flags}\
             </case-file-header><case-file-statements><case-file-statement><type-code>GS{class:03}1</type-code><text>Goods, namely {}</text>\
             </case-file-statement></case-file-statements>\n<case-file-event-statements>{events}</case-file-event-statements><classifications>\
             <classification><international-code>{class:03}</international-code><status-code>6</status-code><status-date>20230314</status-date>\
             </classification></classifications><case-file-owners><case-file-owner><entry-number>1</entry-number><party-type>10</party-type>\
             <party-name>{} LLC</party-name></case-file-owner></case-file-owners>\n</case-file>\n",
            60_000_000 + index,
            word(&mut random, length),
            word(&mut random, 60),
            word(&mut random, 9),
        )?;
    }
    zip.write_all(b"</action-keys></file-segments></application-information></trademark-applications-daily>")?;
    zip.finish()?.flush()?;
    Ok(())
}

/// Unpacks an archive and reads its events, and does nothing with them. Returns the unpacked length.
fn parse_alone(path: &Path) -> Result<u64, Failure> {
    let mut zip = zip::ZipArchive::new(BufReader::new(File::open(path)?))?;
    let mut reader = Reader::from_reader(BufReader::with_capacity(256 << 10, zip.by_index(0)?));
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        if matches!(std::hint::black_box(reader.read_event_into(&mut buffer)?), Event::Eof) {
            return Ok(reader.buffer_position());
        }
    }
}

/// `map-archive-child`: maps all records of the archive.
pub(crate) fn map_child(settings: &Settings) -> Result<(), Failure> {
    let (upstream, stream) = upstream()?;
    let cursor = json!({"v": 1, "step": "read", "set": "18840407-20251231", "parts": [1], "file": FILE});
    let started = Instant::now();
    let mut pages = upstream.open(stream, &UpstreamCursor(cursor.to_string()), File::open(archive(settings))?, Timestamp::now())?;
    let mut records = 0;
    while records < settings.records {
        let page = pages.next_page()?;
        if page.observations.is_empty() {
            return Err("the archive has too few records".into());
        }
        records += page.observations.len() as u64;
    }
    let result = json!({"seconds": started.elapsed().as_secs_f64(), "memory_mib": memory_mib(std::process::id())?});
    line(&result.to_string());
    Ok(())
}

/// `load-archive-child`: ingests the archive from a server until the last fact is in the latest-version index and decided.
pub(crate) fn load_child(settings: &Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let list = json!({"bulkDataProductBag": [{"productFileBag": {"fileDataBag": [{"fileName": FILE}]}}]});
        let list = warp::path!("api" / "v1" / "datasets" / "products" / String).map(move |_| warp::reply::json(&list));
        let file = warp::path!("api" / "v1" / "datasets" / "products" / "files" / ..).and(warp::fs::file(archive(settings)));
        let listener = surfaces::server::listen(std::net::SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let server = tokio::spawn(warp::serve(list.or(file)).incoming(listener).run());
        let dir = tempfile::tempdir_in(&settings.dir)?;
        let engine = Engine::open(dir.path()).await?;
        let (upstream, stream) = upstream()?;
        let own = UpstreamSettings { api_key: Some("bench".to_owned()), ..crate::pages::settings(Some(base_url)) };
        let started = Instant::now();
        let outcome = Arc::clone(&engine.runner).sync_stream(upstream, stream, &Client::new(&own)?, &own).await?;
        let seconds = started.elapsed().as_secs_f64();
        let mut facts = 0;
        for partition in 0..MARKS.partitions {
            facts += engine.log.end(&MARKS, partition).await?.0;
        }
        if outcome.run.appended != i64::try_from(settings.records)? {
            return Err::<Value, Failure>(format!("{} of {} records were appended", outcome.run.appended, settings.records).into());
        }
        let memory_mib = memory_mib(std::process::id())?;
        server.abort();
        engine.close().await?;
        Ok(json!({"seconds": seconds, "facts": facts, "memory_mib": memory_mib}))
    })?;
    line(&result.to_string());
    Ok(())
}

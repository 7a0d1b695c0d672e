//! Durable appends through the embedded log, compared with writing and syncing the same bytes to a plain file.

use std::fs::File;
use std::io::Write as _;
use std::time::Instant;

use bytes::Bytes;
use event_log::embedded::{EmbeddedLog, Options};
use event_log::{Append, EventLog, Headers, Record};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use schemas::topics::RECALLS;

use crate::report::{figure, heading, median, ratio};
use crate::{Failure, Settings};

const BATCH: usize = 500;
const RECORD_BYTES: usize = 300;
/// Batches in one round of each side.
const BATCHES: usize = 100;

/// Alternates appends with plain writes.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("append: {BATCH} records of {RECORD_BYTES} bytes per batch, each batch durable, {BATCHES} batches per round"));
    let dir = tempfile::tempdir_in(&settings.dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let log = EmbeddedLog::open(&dir.path().join("log"), Options::default())?;
    let mut file = File::create(dir.path().join("plain"))?;
    let values: Vec<Bytes> = (0..BATCH as u64).map(|seed| Bytes::from(noise(seed))).collect();
    let (mut plain, mut ours, mut worst) = (Vec::new(), Vec::new(), 0.0_f64);
    // The first round of each side is a warm-up and is not counted.
    for round in 0..=settings.rounds {
        let started = Instant::now();
        for _ in 0..BATCHES {
            file.write_all(&values.concat())?;
            file.sync_data()?;
        }
        let plain_s = started.elapsed().as_secs_f64();
        let started = Instant::now();
        for _ in 0..BATCHES {
            let at = Instant::now();
            runtime.block_on(log.append(batch(&values)))?;
            worst = worst.max(at.elapsed().as_secs_f64());
        }
        let ours_s = started.elapsed().as_secs_f64();
        if round > 0 {
            plain.push(plain_s);
            ours.push(ours_s);
        }
    }
    runtime.block_on(log.close())?;
    let events = (BATCH * BATCHES) as f64;
    let (plain, ours) = (median(plain), median(ours));
    figure("write + fdatasync, us per event", format!("{:.2}", plain / events * 1e6));
    figure("append, us per event", format!("{:.2}", ours / events * 1e6));
    figure("append, events a second", format!("{:.0}", events / ours));
    figure("append, the slowest batch, ms", format!("{:.1}", worst * 1e3));
    ratio("append / (write + fdatasync)", plain / ours, plain / ours >= 0.4, ">= 0.4");
    Ok(())
}

fn batch(values: &[Bytes]) -> Vec<Append> {
    let record = |(i, value): (usize, &Bytes)| Append {
        topic: &RECALLS,
        partition: u32::try_from(i).unwrap_or(0) % RECALLS.partitions,
        record: Record { key: Bytes::new(), value: value.clone(), headers: Headers::default(), at_ms: 0 },
    };
    values.iter().enumerate().map(record).collect()
}

/// Returns bytes that do not compress.
fn noise(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; RECORD_BYTES];
    StdRng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

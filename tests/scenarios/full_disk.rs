//! The disk of the embedded log and store fills up under load: writers pause with one error, reads are answered, and everything continues without a
//! restart when space is free again.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use engines::SmallDisk;
use serde_json::{Value, json};

use crate::engine::{SimulatedUpstreams, fixed_clock};
use crate::process::{Server, highwater, send, stdout, wait_for, with_default_call_times, with_services};

/// How long the processor is measured while the disk is full.
const MEASURED: Duration = Duration::from_secs(4);
/// The most of one core that a process may use while it waits for space.
const WAITING_CORES_MAX: f64 = 0.3;
/// Callers that issue receipts all the time.
const WRITERS: u64 = 4;
/// A second try, because the disk may fill up during a write or between two.
const ROUNDS: usize = 3;
/// Clock ticks of the system in a second, as `/proc` counts them.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the processor time that a process has used, in seconds.
fn processor_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS_PER_SECOND
}

/// Returns the value of a metric without labels.
fn metric(server: &Server, name: &str) -> Option<f64> {
    let metrics = server.metrics()?;
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Proves on a small file system, under load and several times, that a full disk loses no acknowledged receipt, that reads are answered meanwhile, also with
/// a key, that the metrics on which the alerts fire say so, that the process is idle while it waits, and that it continues by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disks_pause_writers() {
    let Some(disk) = engines::or_skip(SmallDisk::mount(192), "a server on a small file system") else { return };
    let (memory, data) = (tempfile::tempdir().unwrap(), disk.path().join("data"));
    let simulated = SimulatedUpstreams::start(5, 60, fixed_clock()).await;
    let command = |arguments: &[&str]| {
        let mut command = highwater(&data, &simulated.base_url, arguments);
        with_services(&mut command, &["recalls", "receipts"]).env("HIGHWATER_CHECKPOINTS__MEMORY", memory.path().join("signer"));
        command.env("HIGHWATER_DISK__RESERVE_MIB", "16").env("HIGHWATER_DISK__LOW_MIB", "32");
        // Writers are refused while the disk is full.
        with_default_call_times(&mut command);
        command
    };
    stdout(command(&["ingest", "fsis", "--once"]));
    let key = stdout(command(&["keys", "mint", "--tier", "fleet_plus"])).trim().to_owned();
    let errors = Arc::new(Mutex::new(BTreeMap::<String, u64>::new()));
    let heard = Arc::clone(&errors);
    let server = Server::try_start(command(&["serve"]), move |line| {
        assert!(!line.contains("panicked at"), "{line}");
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        if line["level"] == "ERROR" {
            *heard.lock().unwrap().entry(line["fields"]["message"].to_string()).or_default() += 1;
        }
    });
    let server = server.unwrap();
    wait_for("readiness", || (server.get("/readyz", "")?.0 == 200).then_some(()));

    let (address, stop) = (server.address, Arc::new(AtomicBool::new(false)));
    let (refused, acknowledged) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
    let writers = (0..WRITERS).map(|writer| {
        let (key, stop, refused, acknowledged) = (key.clone(), Arc::clone(&stop), Arc::clone(&refused), Arc::clone(&acknowledged));
        thread::spawn(move || {
            for number in 0_u64.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let agent = format!("agent-{writer}");
                let body = json!({ "action": "pay", "agent_id": agent, "inputs": { "number": number }, "outputs": {} }).to_string();
                let headers = [("x-api-key", key.as_str()), ("idempotency-key", &format!("{writer}-{number}"))];
                let answer = send(address, "POST", "/receipts/v1/issue", &headers, &body);
                match answer.status {
                    201 => {
                        let receipt: Value = serde_json::from_slice(&answer.body).unwrap();
                        acknowledged.lock().unwrap().push(receipt["receipt"]["id"].as_str().unwrap().to_owned());
                    }
                    status => {
                        assert_eq!(status, 503, "{}", String::from_utf8_lossy(&answer.body));
                        refused.fetch_add(1, Ordering::Relaxed);
                        // As a client does after `Retry-After`.
                        thread::sleep(Duration::from_millis(200));
                    }
                }
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for round in 0..ROUNDS {
        let before = acknowledged.lock().unwrap().len();
        wait_for("receipts", || (acknowledged.lock().unwrap().len() >= before + 20).then_some(()));
        let refused_before = refused.load(Ordering::Relaxed);
        disk.fill().unwrap();
        wait_for("a refused receipt", || (refused.load(Ordering::Relaxed) > refused_before).then_some(()));
        wait_for("the metrics on which the alerts fire", || {
            // The reserve was freed for this: take it, too, so that the disk stays full.
            disk.fill().unwrap();
            let are_down = ["engine_log_up", "engine_store_up"].map(|name| metric(&server, name)) == [Some(0.0); 2];
            let is_low = metric(&server, "engine_disk_free_bytes")? < metric(&server, "engine_disk_low_bytes")?;
            (are_down && is_low && server.get("/readyz", "")?.0 == 503).then_some(())
        });
        let (started, used) = (Instant::now(), processor_seconds(server.id()));
        let mut reads = 0;
        while started.elapsed() < MEASURED {
            assert_eq!(server.get("/recalls/api/recalls?limit=1", &key).unwrap().0, 200, "round {round}: reads are answered");
            reads += 1;
            thread::sleep(Duration::from_millis(200));
        }
        let cores = (processor_seconds(server.id()) - used) / started.elapsed().as_secs_f64();
        println!("round {round}: {cores:.2} cores while the disk was full, {reads} reads");
        assert!(!crate::process::is_timed() || cores < WAITING_CORES_MAX, "round {round}: {cores} cores while it waits");
        disk.free().unwrap();
        wait_for("readiness", || (server.get("/readyz", "")?.0 == 200).then_some(()));
        wait_for("the metrics", || {
            (["engine_log_up", "engine_store_up"].map(|name| metric(&server, name)) == [Some(1.0); 2]).then_some(())
        });
    }
    stop.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let acknowledged = acknowledged.lock().unwrap().clone();
    for id in &acknowledged {
        assert_eq!(server.get(&format!("/receipts/v1/verify/{id}"), &key).unwrap().0, 200, "receipt {id}");
    }
    println!(
        "{} receipts acknowledged, {} refused, errors {:?}",
        acknowledged.len(),
        refused.load(Ordering::Relaxed),
        errors.lock().unwrap()
    );
    let full = errors.lock().unwrap().iter().filter(|(message, _)| message.contains("writers pause")).map(|(_, count)| *count).sum::<u64>();
    assert_eq!(full, ROUNDS as u64, "each full disk is one error: {:?}", errors.lock().unwrap());
    assert_eq!(server.terminate().code(), Some(0));
    let checked = stdout(command(&["fsck"]));
    assert!(!checked.contains("FAULT") && !checked.contains("not equal"), "{checked}");
}

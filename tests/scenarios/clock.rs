//! A wrong clock: nothing is appended under it, reads are answered, and an operator can accept it.

use std::path::Path;
use std::process::Command;

use crate::engine::{NOW, SimulatedUpstreams, fixed_clock};
use crate::process::{Server, fix_clock, highwater, run, stderr_of_failure, stdout, wait_for};

fn command(data: &Path, simulated: &SimulatedUpstreams, now: &str, arguments: &[&str]) -> Command {
    let mut command = highwater(data, &simulated.base_url, arguments);
    fix_clock(&mut command, now);
    command
}

/// The last records are from ten minutes after the first: a clock at the first is then too early.
const LATER: &str = "2026-11-20T12:10:00Z";
const YEARS_LATER: &str = "2036-11-20T12:00:00Z";

/// Proves that a start under a clock that is ten minutes before or ten years after the last record appends nothing, answers reads, says why and how the
/// clock is accepted, and appends once it is accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_clocks_append_nothing_until_they_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let simulated = SimulatedUpstreams::start(3, 60, fixed_clock()).await;
    stdout(command(&data, &simulated, NOW, &["ingest", "fsis", "--once"]));
    stdout(command(&data, &simulated, LATER, &["keys", "mint", "--tier", "pro"]));
    let records = |status: &str| -> String { status.lines().filter(|line| line.starts_with("topic ")).collect::<Vec<_>>().join("\n") };
    let status = |now: &str| String::from_utf8(run(command(&data, &simulated, now, &["status"])).stdout).unwrap();
    let before = records(&status(LATER));
    for (now, direction) in [(NOW, "10 minutes before"), (YEARS_LATER, "3652 days after")] {
        let server = Server::start(command(&data, &simulated, now, &["serve"]));
        let reason = wait_for("the refusal", || {
            let (status, body) = server.get("/readyz", "")?;
            let body = String::from_utf8(body).unwrap();
            (status == 503 && body.contains(direction)).then_some(body)
        });
        assert!(reason.contains("clock.accepted_last_record"), "{reason}");
        wait_for("an answer to a read", || (server.get("/recalls/api/recalls?limit=1", "")?.0 == 200).then_some(()));
        wait_for("the metric", || {
            let metrics = server.metrics()?;
            metrics.lines().any(|line| line == "engine_log_up 0").then_some(())
        });
        let refused = stderr_of_failure(command(&data, &simulated, now, &["keys", "mint", "--tier", "pro"]));
        assert!(refused.contains(direction), "{refused}");
        assert!(status(now).contains(direction), "status names what is wrong");
        assert_eq!(server.terminate().code(), Some(0));
        assert_eq!(records(&status(LATER)), before, "nothing was appended at {now}");
    }
    // The word of the message: the time of the last record.
    let mut mint = command(&data, &simulated, NOW, &["keys", "mint", "--tier", "pro"]);
    mint.env("HIGHWATER_CLOCK__ACCEPTED_LAST_RECORD", "2026-11-20T12:10:00.000Z");
    stdout(mint);
    assert_ne!(records(&status(LATER)), before);
}

//! The history of a still demo, simulated once for all tests that need one: simulating it takes longer than most of these tests. Each test gets a copy,
//! which it may change, and starts the demo on it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use crate::child::wait_rarely;
use crate::process::{NOWHERE, Server, binary, copy_dir, highwater, wait_for, with_services};

/// The time at which the history ends: before the tests that continue it, on the same day.
const END: &str = "2026-11-20T11:00:00Z";

/// The longest time until the history is complete: several times what it takes next to two other tests, and less than the test below may take.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(840);

/// The arguments of a demo that continues the history. Each day, and each start, reads every recall again, so there are fewer than in a demo by default: as
/// many as one answer lists.
pub(crate) const STILL: &[&str] = &["demo", "--still", "--records", "300"];

/// A demo that continues the history in a data directory, with some of the services only: it starts sooner.
pub(crate) fn still_with(data: &Path, served: &[&str]) -> Command {
    let mut command = highwater(data, NOWHERE, STILL);
    with_services(&mut command, served);
    command
}

/// Copies the history of a demo to a directory; returns the data directory in it, on which a demo is started with [`STILL`].
pub(crate) fn copy_to(dir: &Path) -> PathBuf {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-history");
    fs::create_dir_all(&shared).unwrap();
    // The other tests are other processes.
    let lock = File::create(shared.join("lock")).unwrap();
    lock.lock().unwrap();
    let (history, made_by) = (shared.join("history"), shared.join("made-by"));
    if fs::read_to_string(&made_by).ok() != Some(program()) {
        drop(fs::remove_file(&made_by));
        drop(fs::remove_dir_all(&history));
        let simulated = simulate();
        copy_dir(simulated.path(), &history);
        fs::write(&made_by, program()).unwrap();
    }
    copy_dir(&history.join("."), dir);
    dir.join("data")
}

/// Proves that a still demo finishes its history and signs it. This test begins before those that copy the history (.config/nextest.toml), so that they need
/// not wait for it.
#[test]
fn is_simulated() {
    let dir = tempfile::tempdir().unwrap();
    let days = fs::read_to_string(copy_to(dir.path()).join("demo-days")).unwrap();
    assert_eq!(days.split_whitespace().nth(1), END.split_once('T').map(|(day, _)| day), "the next day to simulate is the present one");
}

/// Identifies the program that makes the history, and how it is called.
fn program() -> String {
    let path = PathBuf::from(binary());
    let file = fs::metadata(&path).unwrap();
    let changed = file.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    format!("{} {} {} {STILL:?}", path.display(), file.len(), changed.as_nanos())
}

/// Runs a demo in a new directory until it has its history, its first receipt and checkpoints. Many files are synced, so it is where temporary files are.
fn simulate() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut command = highwater(&dir.path().join("data"), NOWHERE, STILL);
    command.env("HIGHWATER_CLOCK__START", END);
    let server = Server::start(command);
    wait_rarely(HISTORY_TIMEOUT, "the end of the history", || server.signs().then_some(()));
    // A slow demo is ready before its changes are in a signed checkpoint.
    wait_for("a checkpoint of the recalls", || (server.get("/recalls/checkpoint", "")?.0 == 200).then_some(()));
    assert_eq!(server.terminate().code(), Some(0));
    dir
}

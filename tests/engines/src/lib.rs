//! Real servers for tests: `ops/engines` starts them at the first call, and all tests of a machine share them.
//!
//! A test gets an address that answers, or the reason why there is none. Under `CI=true` a missing server is a failure; elsewhere the test
//! prints what was not run and why, and ends. `ops/test` starts the servers before the tests, passes their addresses and stops them at the end.
//! Servers that a test starts keep running; `ops/engines down` stops them. Tests use names of
//! their own ([`unique`]) and remove what they created under them, because a node becomes slower with each keyspace ([`remove_keyspace`],
//! [`remove_topics`]). A test that kills servers starts its own ([`own`]).

pub mod own;
mod removal;
mod small_disk;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use self::removal::{driver, remove_keyspace, remove_topics};
pub use self::small_disk::SmallDisk;

/// A server's address, or the reason why there is none.
pub type ServerAddress = Result<String, String>;

/// Returns `host:port` of a Kafka broker. `HIGHWATER_TEST_KAFKA` names a running one.
pub fn kafka() -> ServerAddress {
    static ADDRESS: OnceLock<ServerAddress> = OnceLock::new();
    ADDRESS.get_or_init(|| find_or_start("kafka", "HIGHWATER_TEST_KAFKA", "kafka://")).clone()
}

/// Returns `host:port` of a CQL node. `HIGHWATER_TEST_CQL` names a running one.
pub fn cql() -> ServerAddress {
    static ADDRESS: OnceLock<ServerAddress> = OnceLock::new();
    ADDRESS.get_or_init(|| find_or_start("cql", "HIGHWATER_TEST_CQL", "scylla://")).clone()
}

/// Returns the address of a schema registry, `http://…`. `HIGHWATER_TEST_REGISTRY` names a running one.
pub fn registry() -> ServerAddress {
    static ADDRESS: OnceLock<ServerAddress> = OnceLock::new();
    ADDRESS.get_or_init(|| find_or_start("registry", "HIGHWATER_TEST_REGISTRY", "registry: ")).clone()
}

/// Returns the server, or `None` after reporting that `test` was not run and why: on standard error, and in the file that
/// `HIGHWATER_NOT_RUN` names, from which `ops/test` prints its summary.
///
/// # Panics
/// Under `CI=true`, where a missing server is a failure.
#[must_use]
pub fn or_skip<T>(found: Result<T, String>, test: &str) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(reason) => {
            assert!(std::env::var("CI").is_err(), "{test} cannot run: {reason}");
            report_not_run(test, &reason);
            None
        }
    }
}

/// Reports on standard error that a test did not run, and adds that to the file that `HIGHWATER_NOT_RUN` names.
///
/// # Panics
/// When the file cannot be written.
#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
pub fn report_not_run(test: &str, reason: &str) {
    let line = format!("NOT RUN: {test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("HIGHWATER_NOT_RUN") {
        let written = File::options().create(true).append(true).open(path).and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "HIGHWATER_NOT_RUN: {written:?}");
    }
}

/// Returns a name that no other test has used: letters, digits and underscores, beginning with `prefix`.
#[must_use]
pub fn unique(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{prefix}_{:x}_{:x}_{}", since.as_millis(), std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn find_or_start(engine: &str, variable: &str, scheme: &str) -> ServerAddress {
    if let Ok(address) = std::env::var(variable) {
        return Ok(address);
    }
    prerequisites()?;
    // A server that runs already is left as it is.
    let said = engines(&[vec!["up", "--only", engine], made_for("tests")].concat())?;
    let address = said.lines().find_map(|line| line.strip_prefix(scheme));
    address.map(str::to_owned).ok_or_else(|| format!("ops/engines up --only {engine} named no address"))
}

/// Returns the purpose of new servers for `ops/engines`: in CI only tests use them, elsewhere benchmarks may, too.
fn made_for(purpose: &str) -> Vec<&str> {
    if std::env::var_os("CI").is_some() { vec!["--for", purpose] } else { Vec::new() }
}

/// Checks what starting servers requires.
fn prerequisites() -> Result<(), String> {
    for (program, package) in [("java", "default-jdk-headless"), ("mvn", "maven")] {
        if Command::new(program).arg("-version").output().is_err() {
            return Err(format!("{program} is missing (apt-get install {package})"));
        }
    }
    Ok(())
}

/// Calls ops/engines; returns its standard output.
fn engines(arguments: &[&str]) -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/engines");
    let output = Command::new(&script).args(arguments).output().map_err(|error| format!("ops/engines: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("ops/engines {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

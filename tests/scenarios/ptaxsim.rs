//! A copy of the database file PTAXSIM on this machine, read by sync runs.

use std::path::Path;

use ingest::Outcome;
use rusqlite::Connection;
use schemas::topics::PARCELS;
use upstreams::cook::Options;
use upstreams::{OwnOptions, Settings};

use crate::engine::{Engine, fixed_clock, settings};

const STREAM: &str = "cook.ptaxsim";
const TABLE: &str = "CREATE TABLE pin (year int, pin varchar(14), class varchar(3), exe_homeowner int, exe_senior int, exe_freeze int, \
    exe_longtime_homeowner int, exe_disabled int, exe_vet_returning int, exe_vet_dis_lt50 int, exe_vet_dis_50_69 int, exe_vet_dis_ge70 int, \
    PRIMARY KEY (year, pin));";

/// The statement that adds a row whose exemption of a homeowner has an amount.
fn row(year: i64, pin: &str, class: &str, amount: i64) -> String {
    format!("INSERT INTO pin VALUES ({year}, '{pin}', '{class}', {amount}, 0, 0, 0, 0, 0, 0, 0, 0);")
}

fn execute(path: &Path, statements: &str) {
    Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

/// Proves that a run appends a fact of each row, that the next one appends what changed, that a damaged file fails the run and leaves what is known, and that
/// a server without the file finishes its runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_read_by_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ptaxsim.db");
    execute(&path, &(TABLE.to_owned() + &row(2023, "16012160010000", "100", 10_000) + &row(2024, "16012160010000", "203", 0)));
    let engine = Engine::open_with(&dir.path().join("data"), fixed_clock(), &["recalls"]).await;
    let options = |path: &Path| OwnOptions::new(Options { ptaxsim_path: path.to_owned() });
    let settings_with = |path: Option<&Path>| Settings { own: path.map(options).unwrap_or_default(), ..settings("http://127.0.0.1:1") };
    let cook = upstreams::by_name("cook").unwrap();
    let run = async |settings: Settings| engine.runner.sync_streams(cook, &settings, &[STREAM]).await.unwrap().remove(0);
    let counts = |outcome: Outcome| (outcome.run.pages, outcome.run.seen, outcome.run.appended);

    assert_eq!(counts(run(settings_with(None)).await.unwrap()), (0, 0, 0));
    assert_eq!(counts(run(settings_with(Some(path.as_path()))).await.unwrap()), (1, 1, 1));
    execute(&path, &(row(2024, "16012160020000", "313", 10_000) + "UPDATE pin SET exe_senior = 5000;"));
    assert_eq!(counts(run(settings_with(Some(path.as_path()))).await.unwrap()), (1, 2, 2));
    std::fs::write(&path, "no database ".repeat(200)).unwrap();
    let failed = ingest::reason(&run(settings_with(Some(path.as_path()))).await.unwrap_err());
    assert!(failed.contains("the file is no SQLite database"), "{failed}");
    let facts = engine.export(PARCELS.name, false).await;
    let keys: Vec<&str> = facts.iter().map(|fact| fact["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["cook.ptaxsim/160121600100002024", "cook.ptaxsim/160121600100002024", "cook.ptaxsim/160121600200002024"]);
    engine.close().await;
}

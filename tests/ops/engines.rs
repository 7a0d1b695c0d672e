//! `ops/engines clean`, with processes that it takes for servers.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::file;

/// Records a process in its folder as ops/engines does, and becomes the server: the functions, the program and its arguments are given.
const RECORD: &str = r#". "$1"; shift; echo "$$ $(started_at $$)" > process; exec "$@""#;
/// What a server does here: it says that it runs, and ends with this test, which holds its input.
const SERVE: &str = "echo; read -r line";

/// Returns a process as a run of tests, in the form of ops/engines.
fn run_of(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap();
    format!("{pid}-{start}")
}

/// Starts a server with a folder below `dir`, where there is a program `java`. It belongs to a run, unless that is empty.
fn start(dir: &Path, folder: &str, run: &str) -> Child {
    let (java, folder) = (dir.join("java"), dir.join(folder));
    fs::create_dir(&folder).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", RECORD, "bash"]).arg(file("ops/engine-files/processes.sh")).arg(java).args(["-c", SERVE]);
    command.arg(format!("-Dhighwater.engines.folder={}", folder.display()));
    if !run.is_empty() {
        command.arg(format!("-Dhighwater.engines.run={run}"));
    }
    let mut server = command.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    server
}

/// Proves that a server is stopped if its folder is deleted, replaced by another one or names another server, or if its run has ended; and that a server of
/// a run that exists, and one that belongs to no run, are not.
#[test]
fn servers_that_nobody_needs_are_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let path = |folder: &str| dir.path().join(folder);
    symlink("/bin/sh", path("java")).unwrap();
    let mut ended = Command::new("true").spawn().unwrap();
    let ended_run = run_of(ended.id());
    ended.wait().unwrap();
    let needed = [start(dir.path(), "of-no-run", ""), start(dir.path(), "of-this-run", &run_of(std::process::id()))];
    let orphaned = [("of-an-ended-run", &*ended_run), ("deleted", ""), ("replaced", ""), ("of-another", "")];
    let orphans = orphaned.map(|(folder, run)| (folder, start(dir.path(), folder, run)));
    fs::remove_dir_all(path("deleted")).unwrap();
    fs::rename(path("replaced"), path("moved")).unwrap();
    fs::create_dir(path("replaced")).unwrap();
    fs::copy(path("moved/process"), path("replaced/process")).unwrap();
    fs::copy(path("of-no-run/process"), path("of-another/process")).unwrap();

    let cleaned = Command::new(file("ops/engines")).arg("clean").output().unwrap();
    assert!(cleaned.status.success(), "{}", String::from_utf8_lossy(&cleaned.stderr));
    for (folder, mut server) in orphans {
        assert_eq!(server.wait().unwrap().signal(), Some(9), "{folder}");
    }
    for mut server in needed {
        assert!(server.try_wait().unwrap().is_none());
        server.kill().unwrap();
        server.wait().unwrap();
    }
}

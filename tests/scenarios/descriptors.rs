//! A limit on open files that is too low.

use std::process::{Command, Stdio};

use crate::process::{highwater, stderr_of_failure};

/// Proves that a server which may open too few files refuses to start, with the number that it needs, and leaves no data directory.
#[test]
fn too_few_descriptors_are_refused_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let plain = highwater(&data, "http://127.0.0.1:1", &["serve"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 300; exec \"$0\" serve"]).arg(plain.get_program()).current_dir(dir.path());
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let message = stderr_of_failure(limited);
    assert!(message.contains("may open 300 files") && message.contains("at least 640"), "{message}");
    assert!(!data.exists());
}

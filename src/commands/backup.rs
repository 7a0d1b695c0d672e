//! `highwater backup`: writes a backup of the log and of the keys and secrets that belong to it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event_log::backup::{BackupFile, LeftOut, Plan, SEGMENT_BYTES, back_up};
use schemas::clock::rfc3339;
use serde::{Deserialize, Serialize};

use crate::config::{Config, LogBackend, StoreBackend};
use crate::data_dir;
use crate::engine::Engine;
use crate::failure::{Failure, failure};
use crate::output::Output;

/// The arguments of a backup. Its paths are absolute, because the serving process may have another working directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BackupArguments {
    /// The directory of the backup.
    pub(crate) dir: PathBuf,
    /// An older backup of the same log.
    pub(crate) base: Option<PathBuf>,
    /// Whether private keys and secrets are left out.
    pub(crate) without_keys: bool,
}

/// Files of the data directory that every backup holds, if they exist.
const PUBLIC_FILES: [&str; 3] = ["key-checks", "real", "simulated"];

/// Writes a backup.
pub(super) async fn run(engine: &Arc<Engine>, arguments: BackupArguments, output: &dyn Output) -> Result<(), Failure> {
    let config = &engine.config;
    let BackupArguments { dir, base, without_keys } = arguments;
    check(config, &dir)?;
    let keys = if without_keys { Vec::new() } else { key_places(config) };
    let sources = || sources(&config.sections.data_dir, &keys);
    let plan = Plan {
        dir: &dir,
        base: base.as_deref(),
        sources: &sources,
        left_out: left_out(config, without_keys),
        segment_bytes: SEGMENT_BYTES,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: rfc3339(engine.parts.clock.now_ms()),
    };
    let left_out = plan.left_out.clone();
    let progress = |done, total| {
        output.progress("backup", done, total);
        !output.is_closed()
    };
    let written = back_up(&*engine.log, plan, progress).await.map_err(failure)?;
    if let Some(began) = &written.interrupted {
        output.note(&format!("the backup that began at {began} was interrupted; {} of its segments are used", written.resumed));
    }
    for file in &written.files {
        output.line(format!("file\t{file}").as_bytes());
    }
    for LeftOut { what, reason } in &left_out {
        output.line(format!("left out\t{what}\t{reason}").as_bytes());
    }
    let segments = [("written", written.written), ("kept", written.kept + written.resumed), ("linked", written.linked)];
    let segments: Vec<String> = segments.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let sizes = format!("bytes {}\tbytes written {}", written.bytes, written.bytes_written);
    output.line(format!("backup {}\trecords {}\tsegments {}\t{sizes}", dir.display(), written.records, segments.join(" ")).as_bytes());
    if !without_keys {
        output.note("the backup holds private keys and the secrets of accounts: protect it like the data directory");
    }
    Ok(())
}

/// Refuses what a backup cannot be made of, or into.
fn check(config: &Config, dir: &Path) -> Result<(), Failure> {
    if config.sections.log != LogBackend::Embedded {
        let advice = "the log is not embedded: write a copy with `highwater export all --format records` (ops/docs/guides/back-up-and-restore.md), or take snapshots of the disks of all brokers at one moment";
        return Err(Failure::new(advice));
    }
    let resolved = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned());
    let (own, target) = (resolved(&config.sections.data_dir), resolved(dir));
    if target.starts_with(&own) || own.starts_with(&target) {
        let reason =
            format!("{} and the data directory {} contain each other: name a directory elsewhere", target.display(), own.display());
        return Err(Failure::new(reason));
    }
    Ok(())
}

/// Where private keys and secrets are: the name in the backup, and the file or directory.
fn key_places(config: &Config) -> Vec<(&'static str, PathBuf)> {
    vec![
        ("master.key", data_dir::master_key(config)),
        ("receipt-keys", data_dir::receipt_keys_dir(config)),
        ("secrets", config.sections.data_dir.join("secrets")),
        ("witness.key", data_dir::witness_key(config)),
    ]
}

/// Lists the files that the backup holds.
fn sources(data_dir: &Path, keys: &[(&str, PathBuf)]) -> io::Result<Vec<BackupFile>> {
    let mut sources = Vec::new();
    let public = PUBLIC_FILES.iter().map(|name| (*name, data_dir.join(name)));
    for (name, path) in public.chain(keys.iter().cloned()) {
        if path.is_file() {
            sources.push(BackupFile { name: name.to_owned(), path });
        } else if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                let path = entry?.path();
                // A file that is being replaced has a temporary name with this ending.
                if path.is_file()
                    && path.extension().is_none_or(|extension| extension != "new")
                    && let Some(file) = path.file_name().and_then(|name| name.to_str())
                {
                    sources.push(BackupFile { name: format!("{name}/{file}"), path });
                }
            }
        }
    }
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(sources)
}

/// What a backup does not hold, with the reason.
fn left_out(config: &Config, without_keys: bool) -> Vec<LeftOut> {
    let entry = |what: &str, reason: &str| LeftOut { what: what.to_owned(), reason: reason.to_owned() };
    let mut left_out = vec![
        entry(
            "signer's memory",
            "an old memory would claim that nothing was signed since; after a restore the signer compares the log with the memory in its place",
        ),
        entry("views", "they are rebuilt from the log at the first start"),
        entry("usage counters", "they start again"),
        entry("cache", "it is built again"),
    ];
    if without_keys {
        left_out
            .push(entry("master.key", "left out on request; without it API keys and cursors are refused and the server does not start"));
        left_out.push(entry("receipt-keys", "left out on request; without them no receipt and no checkpoint is signed"));
        left_out.push(entry("secrets", "left out on request; without them the URLs of webhooks cannot be read"));
        left_out.push(entry("witness.key", "left out on request; without it other logs need the verifier key of a new witness"));
    } else if config.sections.store != StoreBackend::Embedded {
        left_out.push(entry("secrets of accounts", "they are in the database: `highwater accounts export-secrets` prints them"));
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that files and directories are listed with their names in the backup, without temporary files, and that missing ones are passed over.
    #[test]
    fn sources_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["data", "data/secrets", "keys"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for file in ["data/key-checks", "data/other", "data/secrets/a.value", "data/secrets/b.value.new", "keys/first.key"] {
            fs::write(dir.path().join(file), file).unwrap();
        }
        let data = dir.path().join("data");
        let keys =
            [("receipt-keys", dir.path().join("keys")), ("secrets", data.join("secrets")), ("witness.key", data.join("witness.key"))];
        let names: Vec<String> = sources(&data, &keys).unwrap().into_iter().map(|source| source.name).collect();
        assert_eq!(names, ["key-checks", "receipt-keys/first.key", "secrets/a.value"]);
        let names: Vec<String> = sources(&data, &[]).unwrap().into_iter().map(|source| source.name).collect();
        assert_eq!(names, ["key-checks"]);
    }
}

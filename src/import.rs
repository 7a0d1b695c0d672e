//! `highwater import`: copies records from files into the configured log, while leases keep all other processes from appending.

use std::error::Error as StdError;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use event_log::transfer::{self, Archive};
use schemas::clock::Clock;
use view_store::ViewStore;
use view_store::lease::Lease;

use crate::config::Config;
use crate::output::Output;
use crate::{backend, data_dir};

/// Copies the records of some files into the configured log.
///
/// # Errors
/// A file cannot be read or does not fit the log, another process uses the log, or the log or the store fails.
pub(crate) async fn import(config: &Config, files: &[PathBuf], output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    let _lock = data_dir::lock(&config.sections.data_dir)?;
    // All headers are read before the first record, so that a file that does not fit is refused before anything is appended.
    let files = files.to_vec();
    let archives = tokio::task::spawn_blocking(move || files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>()).await??;
    let (clock, holder) = (config.clock(), format!("import-{}-{}", std::process::id(), Clock::System.now_ms()));
    let space = backend::watch_space(config);
    let log = backend::open_log(config, space.clone()).await?;
    let store = backend::open_store(config, &*log, false, space).await?;
    let names = projector::runtime::leases(services::defs()).into_iter().chain(ingest::runner::leases());
    let mut leases: Vec<Lease> = names.map(|name| Lease::new(&store, name, &holder)).collect();
    let result = async {
        renew(&mut leases).await?;
        let progress = |done, total| output.progress("import", done, total);
        tokio::select! {
            outcome = transfer::import(&*log, archives, clock.now_ms(), progress) => Ok::<_, Box<dyn StdError>>(outcome?),
            lost = keep_renewed(&*store, &mut leases) => Err(lost),
        }
    };
    let result = result.await;
    for lease in &mut leases {
        lease.release().await;
    }
    store.close().await?;
    log.close().await?;
    let transfer::Outcome { appended, passed } = result?;
    output.note(&format!("{appended} records appended, {passed} were already there"));
    let key = data_dir::master_key(config);
    if !key.exists() {
        output.note(&format!(
            "before you serve, copy the master key of the exported log to {}: without it all existing API keys and cursors are refused",
            key.display()
        ));
    }
    Ok(())
}

fn open(path: &Path) -> Result<Archive, transfer::Error> {
    let file = path.display().to_string();
    let from: Box<dyn Read + Send> = if file == "-" {
        Box::new(std::io::stdin())
    } else {
        let opened = File::open(path);
        Box::new(opened.map_err(|error| transfer::Error::NoArchive { file: file.clone(), reason: error.to_string() })?)
    };
    Archive::open(&file, from)
}

/// Takes or renews all leases under which processes append to the log.
async fn renew(leases: &mut [Lease]) -> Result<(), Box<dyn StdError>> {
    for lease in leases {
        if !lease.renew().await? {
            let name = lease.name();
            let reason = format!(
                "another process ingests or projects on this log and store (it holds the lease {name}): stop all nodes; the leases of a process that crashed expire within half a minute"
            );
            return Err(reason.into());
        }
    }
    Ok(())
}

/// Renews all leases until that fails, and returns the error.
async fn keep_renewed(store: &dyn ViewStore, leases: &mut [Lease]) -> Box<dyn StdError> {
    loop {
        tokio::time::sleep(store.lease_length() / 3).await;
        if let Err(error) = renew(leases).await {
            return error;
        }
    }
}

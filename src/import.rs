//! `highwater import`: opens the files and the configured log, and holds everybody else off while records are copied.

use std::error::Error as StdError;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use event_log::transfer::{self, Archive};
use schemas::clock::Clock;
use view_store::lease::{LEASE, Lease};

use crate::config::Config;
use crate::output::Output;
use crate::{backend, engine};

/// Copies the records of some files into the configured log.
pub(crate) async fn import(config: &Config, files: &[PathBuf], output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    let dir = PathBuf::from(config.text("data_dir"));
    let _lock = engine::take_directory(&dir)?;
    // All headers before the first record: what does not fit is refused before anything is appended.
    let files = files.to_vec();
    let archives = tokio::task::spawn_blocking(move || files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>()).await??;
    let (clock, holder) = (config.clock()?, format!("import-{}-{}", std::process::id(), Clock::System.now_ms()));
    let log = backend::log(config, &dir).await?;
    let store = backend::store(config, &dir).await?;
    let names = projector::runtime::leases().into_iter().chain(ingest::runner::leases());
    let mut leases: Vec<Lease> = names.map(|name| Lease::new(&store, name, &holder)).collect();
    let result = async {
        renew(&mut leases).await?;
        let progress = |done, total| output.progress(done, total);
        tokio::select! {
            outcome = transfer::import(&*log, archives, clock.now_ms(), progress) => Ok::<_, Box<dyn StdError>>(outcome?),
            lost = keep(&mut leases) => Err(lost),
        }
    };
    let result = result.await;
    for lease in &mut leases {
        lease.release().await;
    }
    store.close().await?;
    log.close().await?;
    let transfer::Outcome { appended, passed } = result?;
    output.note(&format!("{appended} records appended, {passed} were there already"));
    let key = engine::master_key(config, &dir);
    if !key.exists() {
        output.note(&format!(
            "copy the master key of the log that this came from to {} before anything is served: its keys and cursors rest on it",
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

/// Takes or renews the leases of all who append to the log.
async fn renew(leases: &mut [Lease]) -> Result<(), Box<dyn StdError>> {
    for lease in leases {
        if !lease.renew().await? {
            let name = lease.name();
            let reason = format!(
                "somebody projects or ingests on this log and store (lease {name} is held): stop all nodes; what a dead process held ends within half a minute"
            );
            return Err(reason.into());
        }
    }
    Ok(())
}

/// Renews all again and again; answers why that cannot go on.
async fn keep(leases: &mut [Lease]) -> Box<dyn StdError> {
    loop {
        tokio::time::sleep(LEASE / 3).await;
        if let Err(error) = renew(leases).await {
            return error;
        }
    }
}

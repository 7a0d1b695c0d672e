//! The embedded log, the log on Kafka and the schema registry, and what copies logs: the contract, damage, full disks, backups and transfers.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod backup;
mod contents;
mod damage;
mod embedded;
mod full_disk;
mod kafka;
mod registry;
mod transfer;

/// After what time something that should occur has failed to: long enough for a busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

/// Waits for a future; panics with what it waited for after a time limit.
async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not occur within {PATIENCE:?}"))
}

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

//! The engine end to end: upstreams played by the simulator at one end, facts, changes and feeds at the other. One story a file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod account;
mod bad_input;
mod chance;
mod change_checkpoints;
mod cluster;
mod commands;
mod conformance;
mod connection;
mod crash;
mod cross_account;
mod cursors;
mod engine;
mod faults;
mod fed;
mod framing;
mod fuzz;
mod gate;
mod hostile;
mod live;
mod loopback;
mod lost_servers;
mod model;
mod moving;
mod past;
mod pauses;
mod payments;
mod played;
mod process;
mod raw_requests;
mod reader;
mod rebuild;
mod receipt_owners;
mod receipts;
mod restored_backup;
mod rivals;
mod secrets;
mod secure_servers;
mod shared_refusals;
mod stream;
mod twice;
mod unchanged;
mod watches;
mod webhooks;
mod witnesses;

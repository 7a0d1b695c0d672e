//! The engine end to end: simulated upstreams at one end; facts, changes and feeds at the other. Each file holds related scenarios.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod api;
mod as_of;
mod avro_framing;
mod bad_input;
mod change_checkpoints;
mod cluster;
mod commands;
mod concurrent_processes;
mod conformance;
mod connection;
mod crash;
mod cross_account;
mod cursors;
mod double_delivery;
mod engine;
mod expected_changes;
mod faults;
mod fuzz;
mod gate;
mod hostile;
mod live_answers;
mod loopback;
mod migration;
mod model;
mod paused_processes;
mod payments;
mod process;
mod random;
mod raw_requests;
mod reader;
mod rebuild;
mod receipt_owners;
mod receipts;
mod restored_backup;
mod secrets;
mod secure_servers;
mod server_outages;
mod signing_refusals;
mod simulated_streams;
mod stream;
mod unchanged_data;
mod watches;
mod webhooks;
mod witnesses;

//! The engine end to end: upstreams played by the simulator at one end, facts, changes and feeds at the other. One story a file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod account;
mod bad_input;
mod chance;
mod cluster;
mod commands;
mod crash;
mod engine;
mod faults;
mod framing;
mod gate;
mod lost_servers;
mod moving;
mod pauses;
mod played;
mod process;
mod reader;
mod rebuild;
mod rivals;
mod secure_servers;
mod twice;
mod unchanged;

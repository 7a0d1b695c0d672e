//! The engine end to end: upstreams played by the simulator at one end, facts, changes and feeds at the other. One story a file.

mod account;
mod commands;
mod crash;
mod engine;
mod process;
mod rebuild;
mod rivals;
mod unchanged;

//! `highwater`: the command line program. It reads the configuration, starts the roles, and prints results. All other work is in the crates.

mod api_settings;
mod backend;
mod cli;
mod commands;
mod config;
mod control;
mod data_dir;
mod demo;
mod engine;
mod failure;
mod hardening;
mod health;
mod help;
mod import;
mod key_checks;
mod logging;
mod output;
mod projection_wait;
mod restore;
mod role;
mod serve;
mod sync_supervisor;
mod verify;
mod witnesses;

use std::process::ExitCode;

/// The memory allocator: faster than that of the C library with many small rows, and returns the memory of a batch to the system.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cli::main()
}

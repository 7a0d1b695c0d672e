//! `highwater`: the command line. It reads the configuration, wires the roles together and shows what they say; nothing else.

mod api_settings;
mod backend;
mod cli;
mod commands;
mod config;
mod control;
mod demo;
mod engine;
mod hardening;
mod health;
mod import;
mod logging;
mod output;
mod turns;
mod verify;
mod waiting;
mod witnesses;

use std::process::ExitCode;

/// Faster than the C library's under many small rows, and gives back what a batch has used.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cli::main()
}

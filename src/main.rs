//! `highwater`: the command line. It reads the configuration, wires the roles together and shows what they say; nothing else.

mod cli;
mod commands;
mod config;
mod control;
mod demo;
mod engine;
mod output;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}

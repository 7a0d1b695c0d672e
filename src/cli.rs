//! The command line. Scripts depend on its commands and arguments.

mod arguments;
mod documents;

use std::error::Error as StdError;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use self::arguments::{Cli, CliCommand, Sources};
use crate::commands::{BackupArguments, Command, StatusFormat, SuppressionCommand};
use crate::config::{Config, Flags, LogBackend, StoreBackend};
use crate::output::{Output, Terminal};
use crate::role::Role;
use crate::{control, data_dir, demo, hardening, import, logging, restore, serve, verify};

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    let cli = arguments::parse();
    let terminal = Terminal::new();
    let result = run(cli, Arc::clone(&terminal));
    let written = terminal.flush().map_err(|error| format!("standard output could not be written: {error}").into());
    match result.and(written) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal.note(&format!("highwater: {}", ingest::reason(&*error)));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli, terminal: Arc<Terminal>) -> Result<(), Box<dyn StdError>> {
    let Cli { sources: Sources { config: file, data_dir }, command } = cli;
    if data_dir.is_some() && !command.has_data_dir() {
        return Err("--data-dir has no effect on this command, which uses no data directory".into());
    }
    // These need no settings, so a configuration that cannot be used does not stop them.
    match &command {
        CliCommand::Completions { shell } => {
            documents::completions(*shell, &*terminal);
            return Ok(());
        }
        CliCommand::Man { command, dir } => return documents::man(command, dir.as_deref(), &*terminal),
        CliCommand::Verify { old: Some(old), new: Some(new), proof, pubkey, witness, .. } => {
            return verify::verify_checkpoints(old, new, proof.as_deref(), pubkey, witness, &*terminal);
        }
        CliCommand::Verify { file, pubkey, .. } => return verify::verify(&file.clone().unwrap_or_default(), pubkey, &*terminal),
        _ => {}
    }
    let flags = Flags { data_dir, listen: command.listen() };
    let config = Config::load(file.as_deref(), std::env::vars(), &flags)?;
    logging::start(&config)?;
    hardening::log_panics();
    hardening::create_private_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let creates_data_dir = command.creates_data_dir();
    let mut output_file = None;
    let command = match command {
        CliCommand::Serve { role, .. } => {
            let is_embedded = config.sections.log == LogBackend::Embedded || config.sections.store == StoreBackend::Embedded;
            if role != Role::All && is_embedded {
                let reason = "a single role needs a log and a store that several processes can share, but the embedded ones belong to one process: set log and store to servers, or use --role all";
                return Err(reason.into());
            }
            return runtime.block_on(serve::serve(config, role));
        }
        CliCommand::Demo { still, records, seed, .. } => return runtime.block_on(demo::demo(config, still, records, seed)),
        CliCommand::Simulate(options) => return runtime.block_on(demo::simulate(options)),
        CliCommand::Import { files } => return runtime.block_on(import::import(&config, &files, &*terminal)),
        // Handled above.
        CliCommand::Completions { .. } | CliCommand::Man { .. } | CliCommand::Verify { .. } => return Ok(()),
        CliCommand::Ingest { upstreams, once: _ } => Command::Ingest { upstreams },
        CliCommand::Restore { backup, check } => return runtime.block_on(restore::restore(&config, &backup, check, &*terminal)),
        CliCommand::Backup { dir, base, without_keys } => {
            // The serving process may have another working directory.
            let base = base.map(std::path::absolute).transpose()?;
            Command::Backup(BackupArguments { dir: std::path::absolute(dir)?, base, without_keys })
        }
        CliCommand::Fsck { repair } => Command::Fsck { repair },
        CliCommand::Replay { rejected: true, .. } => Command::ReplayRejected,
        CliCommand::Replay { parked: true, .. } => Command::ReplayParked,
        CliCommand::Replay { view, .. } => Command::Replay { view: view.unwrap_or_default() },
        CliCommand::Redecide { service } => Command::Redecide { service },
        CliCommand::Keys { command } => Command::Keys(command),
        CliCommand::Accounts { command } => Command::Accounts(command),
        CliCommand::Suppress { key } => {
            Command::Suppressions(SuppressionCommand::Suppress { kind: key.kind, key: key.key, reason: key.reason })
        }
        CliCommand::Unsuppress { key } => {
            Command::Suppressions(SuppressionCommand::Unsuppress { kind: key.kind, key: key.key, reason: key.reason })
        }
        CliCommand::Suppressions => Command::Suppressions(SuppressionCommand::List),
        CliCommand::Webhooks { command } => Command::Webhooks(command),
        CliCommand::Receipts { command } => Command::Receipts(command),
        CliCommand::ReceiptKeys { command } => Command::ReceiptKeys(command),
        CliCommand::Export { topic, format, all, current, output } => {
            output_file = output;
            Command::Export { topic, format, all, current }
        }
        CliCommand::Digest { view, history, at } => Command::Digest { view, history, at },
        CliCommand::Status { json: true, sizes } => Command::Status { format: StatusFormat::Json, sizes },
        CliCommand::Status { json: false, sizes } if terminal.is_terminal() => Command::Status { format: StatusFormat::Table, sizes },
        CliCommand::Status { json: false, sizes } => Command::Status { format: StatusFormat::Lines, sizes },
    };
    command.check()?;
    if !creates_data_dir {
        data_dir::check_exists(&config)?;
    }
    if let Some(path) = &output_file {
        terminal.write_to(private_file(path)?)?;
    }
    let output: Arc<dyn Output> = terminal;
    let result = runtime.block_on(async {
        // A serving process holds the data directory, so it runs the command. Without one, this process does.
        match control::send_command(&config, &command, &*output).await? {
            Some(result) => result.map_err(Into::into),
            None => serve::run_command(config, command, output).await,
        }
    });
    if let (Err(_), Some(path)) = (&result, &output_file) {
        // An incomplete file would prevent the next attempt.
        std::fs::remove_file(path)?;
    }
    result
}

/// Creates a file that only its owner can read, because topics can hold private records.
fn private_file(path: &Path) -> Result<File, Box<dyn StdError>> {
    let created = File::options().write(true).create_new(true).mode(0o600).open(path);
    created.map_err(|error| format!("{} cannot be created: {error}", path.display()).into())
}

//! The command line. Scripts depend on its commands and arguments.

use std::error::Error as StdError;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};

use crate::commands::{AccountsCommand, Command, KeysCommand, ReceiptKeysCommand, ReceiptsCommand, WebhooksCommand};
use crate::config::{Config, LogBackend, StoreBackend};
use crate::output::{Output, Terminal};
use crate::role::Role;
use crate::{control, demo, hardening, import, logging, serve, verify};

/// Public records as change feeds: polls upstreams, stores every change in a log, and serves feeds over REST and MCP.
#[derive(Parser)]
#[command(name = "highwater", version)]
struct Cli {
    /// The configuration file. Default: highwater.toml in the working directory.
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Runs all roles, or one role.
    Serve {
        /// The role.
        #[arg(long, value_enum, default_value = "all")]
        role: Role,
    },
    /// Serves all services with data from simulated upstreams. Needs no network.
    Demo {
        /// Changes nothing after the start.
        #[arg(long)]
        still: bool,
        /// The number of simulated recalls.
        #[arg(long, default_value_t = 2_000)]
        records: u64,
        /// The seed of the simulation.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Serves only simulated upstreams, for tests. Set the upstreams' base_url to its address.
    Simulate(demo::Simulate),
    /// Syncs one upstream now. Exits with 0, or with 1 and the reason.
    Ingest {
        /// The upstream.
        upstream: String,
        /// Syncs once, and waits until the appended records are projected.
        #[arg(long, required = true)]
        once: bool,
    },
    /// Rebuilds a view from its changes in new rows, then replaces the live rows.
    Replay {
        /// The view, or `all`.
        #[arg(required_unless_present_any = ["rejected", "parked"])]
        view: Option<String>,
        /// Maps rejected records again instead.
        #[arg(long)]
        rejected: bool,
        /// Decides parked inputs again instead.
        #[arg(long)]
        parked: bool,
    },
    /// Decides all facts of a service again, and appends the differences as changes.
    Redecide {
        /// The service.
        service: String,
    },
    /// Creates, lists, rotates and revokes API keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Erases accounts, and exports and imports their secrets.
    #[command(subcommand)]
    Accounts(AccountsCommand),
    /// Assigns owners to chains of receipts.
    #[command(subcommand)]
    Receipts(ReceiptsCommand),
    /// Creates, lists and changes the keys that sign receipts.
    #[command(subcommand)]
    ReceiptKeys(ReceiptKeysCommand),
    /// Lists, resends and resumes webhooks of all accounts.
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// Writes a topic to standard output.
    Export {
        /// The topic: a fact topic, or changes.SERVICE. With --format records also `all`.
        topic: String,
        /// ndjson, csv or parquet for the records in a readable form; records for a lossless copy that `import` reads.
        #[arg(long, default_value = "ndjson")]
        format: String,
        /// Exports the records of sync runs, too.
        #[arg(long)]
        all: bool,
        /// Writes to this file instead, which must not exist. Only its owner can read it.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Copies records that `export --format records` wrote into this log, at the same offsets. Records that are already there are skipped. No other
    /// process may use the log meanwhile.
    Import {
        /// The files; `-` is standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Prints a hash of the records of a view.
    Digest {
        /// The view.
        view: String,
        /// Includes the history of the records.
        #[arg(long)]
        history: bool,
        /// Hashes the records as of this seq.
        #[arg(long, conflicts_with = "history")]
        at: Option<u64>,
    },
    /// Verifies a receipt, or a list of an agent's receipts, offline. With --old and --new: verifies that one signed checkpoint of a tree continues
    /// another. Exits with 0 if valid, with 1 if not.
    Verify {
        /// The receipt as JSON; `-` is standard input.
        #[arg(required_unless_present = "old", conflicts_with = "old")]
        file: Option<PathBuf>,
        /// The issuer's public key, which must have signed. Can be repeated for an issuer with several keys.
        #[arg(long, value_name = "HEX")]
        pubkey: Vec<String>,
        /// The older checkpoint, a signed note.
        #[arg(long, value_name = "FILE", requires = "new", requires = "pubkey")]
        old: Option<PathBuf>,
        /// The newer checkpoint of the same tree.
        #[arg(long, value_name = "FILE", requires = "old")]
        new: Option<PathBuf>,
        /// The proof between them as JSON: the answer of `/receipts/v1/consistency?from=OLDSIZE&to=NEWSIZE`; `-` is standard input. Not needed for
        /// two checkpoints of the same size.
        #[arg(long, value_name = "FILE", requires = "old")]
        proof: Option<PathBuf>,
        /// The verifier key of a witness (NAME+ID+KEY): it must have cosigned the newer checkpoint. Can be repeated; then all of
        /// these witnesses must have cosigned.
        #[arg(long, value_name = "VKEY", requires = "old")]
        witness: Vec<String>,
    },
    /// Shows the progress of upstreams, topics, views and services.
    Status,
}

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
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
    let config = Config::load(cli.config.as_deref(), std::env::vars())?;
    logging::start(&config)?;
    hardening::log_panics();
    hardening::create_private_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut output_file = None;
    let command = match cli.command {
        CliCommand::Serve { role } => {
            let is_embedded = config.sections.log == LogBackend::Embedded || config.sections.store == StoreBackend::Embedded;
            if role != Role::All && is_embedded {
                let reason = "a single role needs a log and a store that several processes can share, but the embedded ones belong to one process: set log and store to servers, or use --role all";
                return Err(reason.into());
            }
            return runtime.block_on(serve::serve(config, role));
        }
        CliCommand::Demo { still, records, seed } => return runtime.block_on(demo::demo(config, still, records, seed)),
        CliCommand::Simulate(options) => return runtime.block_on(demo::simulate(options)),
        CliCommand::Ingest { upstream, once: _ } => Command::Ingest { upstream },
        CliCommand::Replay { rejected: true, .. } => Command::ReplayRejected,
        CliCommand::Replay { parked: true, .. } => Command::ReplayParked,
        CliCommand::Replay { view, .. } => Command::Replay { view: view.unwrap_or_default() },
        CliCommand::Redecide { service } => Command::Redecide { service },
        CliCommand::Keys(command) => Command::Keys(command),
        CliCommand::Accounts(command) => Command::Accounts(command),
        CliCommand::Webhooks(command) => Command::Webhooks(command),
        CliCommand::Receipts(command) => Command::Receipts(command),
        CliCommand::ReceiptKeys(command) => Command::ReceiptKeys(command),
        CliCommand::Export { topic, format, all, output } => {
            output_file = output;
            Command::Export { topic, format, all }
        }
        CliCommand::Import { files } => return runtime.block_on(import::import(&config, &files, &*terminal)),
        CliCommand::Digest { view, history, at } => Command::Digest { view, history, at },
        CliCommand::Verify { old: Some(old), new: Some(new), proof, pubkey, witness, .. } => {
            return verify::verify_checkpoints(&old, &new, proof.as_deref(), &pubkey, &witness, &*terminal);
        }
        CliCommand::Verify { file, pubkey, .. } => return verify::verify(&file.unwrap_or_default(), &pubkey, &*terminal),
        CliCommand::Status => Command::Status,
    };
    command.check()?;
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

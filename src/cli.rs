//! The command line as others script against it.

use std::error::Error as StdError;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand, ValueEnum};

use crate::backend::is_shared;
use crate::commands::{AccountsCommand, Command, KeysCommand, ReceiptKeysCommand, ReceiptsCommand, WebhooksCommand};
use crate::config::Config;
use crate::output::{Output, Terminal};
use crate::{control, demo, engine, hardening, import, logging, verify};

/// Public records as change feeds: ingests upstreams, keeps every change in a log, serves feeds over REST and MCP.
#[derive(Parser)]
#[command(name = "highwater", version)]
struct Cli {
    /// Configuration file, instead of highwater.toml.
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

/// What a process does. Any number of each may run on a shared log and store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything.
    All,
    /// Polls upstreams and appends facts.
    Ingest,
    /// Keeps the heads, decides, applies.
    Project,
    /// Serves readers; holds nothing but caches.
    Api,
}

impl Role {
    /// Whether a process of this role does what `other` is for.
    pub(crate) fn is(self, other: Self) -> bool {
        self == Self::All || self == other
    }
}

#[derive(Subcommand)]
enum Verb {
    /// Runs everything, or one role.
    Serve {
        /// Which role.
        #[arg(long, value_enum, default_value = "all")]
        role: Role,
    },
    /// Serves with simulated upstreams inside: works offline, shows every service with data.
    Demo {
        /// Nothing changes after the start.
        #[arg(long)]
        still: bool,
        /// How many recalls the simulated agencies have.
        #[arg(long, default_value_t = 2_000)]
        records: u64,
        /// The seed of everything simulated.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Plays the upstreams alone, for tests: point base_url of the upstreams at it.
    Simulate(demo::Simulate),
    /// Runs one upstream now; exit 0, or 1 with the reason.
    Ingest {
        /// The upstream.
        upstream: String,
        /// Once, and return when what it appended is projected.
        #[arg(long, required = true)]
        once: bool,
    },
    /// Applies all changes of a view again, beside the live rows, and swaps.
    Replay {
        /// The view, or `all`.
        #[arg(required_unless_present_any = ["rejected", "parked"])]
        view: Option<String>,
        /// Takes rejected records again.
        #[arg(long)]
        rejected: bool,
        /// Takes parked inputs again.
        #[arg(long)]
        parked: bool,
    },
    /// Decides a service's facts again and appends the differences.
    Redecide {
        /// The service.
        service: String,
    },
    /// API keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Accounts, which keys belong to.
    #[command(subcommand)]
    Accounts(AccountsCommand),
    /// Chains of receipts.
    #[command(subcommand)]
    Receipts(ReceiptsCommand),
    /// Keys that receipts are signed with.
    #[command(subcommand)]
    ReceiptKeys(ReceiptKeysCommand),
    /// Webhooks, whosever they are.
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// Writes a topic to standard output.
    Export {
        /// The topic: a fact topic, or changes.SERVICE; with --format records, `all` are all.
        topic: String,
        /// ndjson, csv or parquet: what chains, for people and programs; records: everything as it stands, for `import`.
        #[arg(long, default_value = "ndjson")]
        format: String,
        /// Runs, too.
        #[arg(long)]
        all: bool,
        /// A file instead, which must not be there; only its owner may read it.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Copies records that `export --format records` wrote into this log, at the same offsets; what is there already is passed. Nothing else
    /// may run on the log meanwhile.
    Import {
        /// The files; `-` is standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Prints a hash over a view's records.
    Digest {
        /// The view.
        view: String,
        /// Over all rows, history included.
        #[arg(long)]
        history: bool,
        /// As they stood at this seq.
        #[arg(long, conflicts_with = "history")]
        at: Option<u64>,
    },
    /// Checks a receipt, or an agent's receipts as they were listed, without asking anybody; exit 0 if valid, 1 if not. With --old and --new:
    /// whether one signed checkpoint of a tree continues another; exit 0 if so, 1 if not.
    Verify {
        /// The receipt as JSON; `-` is standard input.
        #[arg(required_unless_present = "old", conflicts_with = "old")]
        file: Option<PathBuf>,
        /// The issuer's public key: it must have signed. May be given for each of its keys.
        #[arg(long, value_name = "HEX")]
        pubkey: Vec<String>,
        /// A checkpoint that was kept: a signed note.
        #[arg(long, value_name = "FILE", requires = "new", requires = "pubkey")]
        old: Option<PathBuf>,
        /// A later checkpoint of the same tree.
        #[arg(long, value_name = "FILE", requires = "old")]
        new: Option<PathBuf>,
        /// The proof between both as JSON, the answer of `/receipts/v1/consistency?from=OLDSIZE&to=NEWSIZE`; `-` is standard input. Not needed for
        /// two checkpoints of one size.
        #[arg(long, value_name = "FILE", requires = "old")]
        proof: Option<PathBuf>,
        /// The verifier key of a witness (NAME+ID+KEY): it must have cosigned the new checkpoint. May be given for several witnesses, all of which
        /// must have.
        #[arg(long, value_name = "VKEY", requires = "old")]
        witness: Vec<String>,
    },
    /// Shows upstreams, lag, depth and rejects.
    Status,
}

/// An error and its causes, as one line.
pub(crate) fn words(error: &(dyn StdError + 'static)) -> String {
    ingest::reason(error)
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
            terminal.note(&format!("highwater: {}", words(&*error)));
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
    let mut written = None;
    let command = match cli.verb {
        Verb::Serve { role } => {
            if role != Role::All && !(is_shared(&config, "log") && is_shared(&config, "store")) {
                let reason = "one role alone needs a log and a store that others reach: the embedded ones belong to one process; set log and store, or use --role all";
                return Err(reason.into());
            }
            return runtime.block_on(engine::serve(config, role));
        }
        Verb::Demo { still, records, seed } => return runtime.block_on(demo::demo(config, still, records, seed)),
        Verb::Simulate(options) => return runtime.block_on(demo::simulate(options)),
        Verb::Ingest { upstream, once: _ } => Command::Ingest { upstream },
        Verb::Replay { rejected: true, .. } => Command::ReplayRejected,
        Verb::Replay { parked: true, .. } => Command::ReplayParked,
        Verb::Replay { view, .. } => Command::Replay { view: view.unwrap_or_default() },
        Verb::Redecide { service } => Command::Redecide { service },
        Verb::Keys(command) => Command::Keys(command),
        Verb::Accounts(command) => Command::Accounts(command),
        Verb::Webhooks(command) => Command::Webhooks(command),
        Verb::Receipts(command) => Command::Receipts(command),
        Verb::ReceiptKeys(command) => Command::ReceiptKeys(command),
        Verb::Export { topic, format, all, output } => {
            written = output;
            Command::Export { topic, format, all }
        }
        Verb::Import { files } => return runtime.block_on(import::import(&config, &files, &*terminal)),
        Verb::Digest { view, history, at } => Command::Digest { view, history, at },
        Verb::Verify { old: Some(old), new: Some(new), proof, pubkey, witness, .. } => {
            return verify::verify_continues(&old, &new, proof.as_deref(), &pubkey, &witness, &*terminal);
        }
        Verb::Verify { file, pubkey, .. } => return verify::verify(&file.unwrap_or_default(), &pubkey, &*terminal),
        Verb::Status => Command::Status,
    };
    command.check()?;
    if let Some(path) = &written {
        terminal.write_to(private_file(path)?)?;
    }
    let output: Arc<dyn Output> = terminal;
    let result = runtime.block_on(async {
        // A running process holds the data directory; it is asked. Otherwise this process does it by itself.
        match control::ask(&config, &command, &*output).await? {
            Some(result) => result.map_err(Into::into),
            None => engine::run_command(config, command, output).await,
        }
    });
    if let (Err(_), Some(path)) = (&result, &written) {
        // Half a file would stand in the way of the next try.
        std::fs::remove_file(path)?;
    }
    result
}

/// Makes a file that only its owner may read: topics may be private.
fn private_file(path: &Path) -> Result<File, Box<dyn StdError>> {
    let made = File::options().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|error| format!("{} cannot be made: {error}", path.display()).into())
}

/// An address from configuration or flags.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("\"{text}\" is no address and port, as in 127.0.0.1:8080"))
}

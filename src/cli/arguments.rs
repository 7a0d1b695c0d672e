//! The commands with their arguments, help and examples.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Arg, Args, Command as ClapCommand, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::commands::{AccountsCommand, KeysCommand, ReceiptKeysCommand, ReceiptsCommand, WebhooksCommand, values};
use crate::config::socket_address;
use crate::demo;
use crate::help::{KnownValues, examples};
use crate::role::Role;

/// Public records as change feeds: polls upstreams, stores every change in a log, and serves feeds over REST and MCP.
#[derive(Parser)]
#[command(name = "highwater", version, after_help = examples![
    "highwater demo",
    "highwater serve --config /etc/highwater.toml",
    "highwater status --data-dir /var/lib/highwater",
])]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) sources: Sources,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Where the settings and the data come from.
#[derive(Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Sources {
    /// The configuration file. Default: highwater.toml in the working directory.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The data directory. Overrides data_dir of the configuration.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// A key, and why it is suppressed or no longer.
#[derive(Args)]
pub(crate) struct KeyArguments {
    /// The kind of the key.
    #[arg(value_parser = KnownValues(values::key_kinds))]
    pub(crate) kind: String,
    /// The key: the name of a person or company, a phrase, the host name of a shop, or SERVICE/ID of a record.
    pub(crate) key: String,
    /// Why, for operators. It stays in the log, so write no personal data into it.
    pub(crate) reason: String,
}

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Runs all roles, or one role.
    ///
    /// Creates the data directory if there is none.
    #[command(after_help = examples![
        "highwater serve",
        "highwater serve --data-dir /var/lib/highwater --listen 0.0.0.0:8080",
        "highwater serve --role api --config api.toml",
    ])]
    Serve {
        /// The role.
        #[arg(long, value_enum, default_value = "all")]
        role: Role,
        /// The address and port of the HTTP listener. Overrides listen of the configuration.
        #[arg(long, value_name = "ADDR", value_parser = socket_address)]
        listen: Option<SocketAddr>,
    },
    /// Serves all services with data from simulated upstreams. Needs no network.
    ///
    /// Creates the data directory if there is none. Calls without a key from this machine have no daily limit.
    #[command(after_help = examples!["highwater demo", "highwater demo --still --records 500 --data-dir /tmp/demo --listen 127.0.0.1:9090"])]
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
        /// The address and port of the HTTP listener. Overrides listen of the configuration.
        #[arg(long, value_name = "ADDR", value_parser = socket_address)]
        listen: Option<SocketAddr>,
    },
    /// Serves only simulated upstreams, for tests.
    ///
    /// Set upstreams_base_url to its address.
    #[command(after_help = examples![
        "highwater simulate --listen 127.0.0.1:9000",
        "highwater simulate --listen 127.0.0.1:0 --change between-runs --fault 500=0.1",
    ])]
    Simulate(demo::Simulate),
    /// Syncs upstreams now, one after another.
    ///
    /// Waits after each until its appended records are projected. One that cannot be read does not stop the next ones. Exits with 0, or with 1 and the
    /// reasons. Creates the data directory if there is none.
    #[command(after_help = examples!["highwater ingest cpsc fsis", "highwater ingest openfda --data-dir /var/lib/highwater"])]
    Ingest {
        /// The upstreams.
        #[arg(required = true, value_name = "UPSTREAM", value_parser = KnownValues(values::upstreams))]
        upstreams: Vec<String>,
        /// Has no effect: an ingest always syncs once. For scripts of earlier versions.
        #[arg(long, hide = true)]
        once: bool,
    },
    /// Rebuilds a view from its changes in new rows, then replaces the live rows.
    #[command(after_help = examples!["highwater replay recalls", "highwater replay all", "highwater replay --rejected", "highwater replay --parked"])]
    Replay {
        /// The view, or `all`.
        #[arg(required_unless_present_any = ["rejected", "parked"], value_parser = KnownValues(values::views_or_all))]
        view: Option<String>,
        /// Maps rejected records again instead.
        #[arg(long)]
        rejected: bool,
        /// Decides parked inputs again instead.
        #[arg(long)]
        parked: bool,
    },
    /// Writes a backup of the log, the keys and the secrets of accounts into a directory.
    ///
    /// Works next to a running server, which writes it: the backup is the state of the log at one moment. A backup into the same directory writes only what
    /// is new. An interrupted one is resumed when the command is repeated; until then the previous backup remains. Prints the files that it holds, what it
    /// leaves out and why, and a line with the counts.
    #[command(after_help = examples!["highwater backup /backups/highwater", "highwater backup /backups/tuesday --base /backups/monday"])]
    Backup {
        /// The directory: empty, or with a backup of this log.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// An older backup of this log, on the same file system: its full segments become hard links in the new one. They are never changed.
        #[arg(long, value_name = "DIR")]
        base: Option<PathBuf>,
        /// Leaves out the master key, the receipt keys, the secrets of accounts and the witness key. A restore needs them from elsewhere.
        #[arg(long)]
        without_keys: bool,
    },
    /// Writes a new data directory from a backup.
    ///
    /// The data directory must be empty or missing. Every file of the backup is compared with its checksum before it is used. An interrupted restore
    /// continues when the command is repeated, and nothing else uses the directory until it is complete. The views are rebuilt at the first start.
    #[command(after_help = examples!["highwater restore /backups/highwater --data-dir /var/lib/highwater", "highwater restore /backups/highwater --check"])]
    Restore {
        /// The directory of the backup.
        #[arg(value_name = "DIR")]
        backup: PathBuf,
        /// Only verifies the backup. Writes nothing.
        #[arg(long)]
        check: bool,
    },
    /// Checks the log, the receipts, the signed trees and the views.
    ///
    /// Reads every record of the log, verifies every receipt and its chain, compares the trees that the log makes with those that were signed, and every
    /// row of every view with the one that the log makes. Prints a line for each topic, tree and view, and a line FAULT for each fault. Exits with 0 if
    /// there is none, with 1 otherwise. Works next to a running server; it needs space for a second copy of each view.
    #[command(after_help = examples!["highwater fsck", "highwater fsck --repair"])]
    Fsck {
        /// Replaces views that differ from the log.
        #[arg(long)]
        repair: bool,
    },
    /// Decides all facts of a service again, and appends the differences as changes.
    #[command(after_help = examples!["highwater redecide recalls"])]
    Redecide {
        /// The service.
        #[arg(value_parser = KnownValues(values::services))]
        service: String,
    },
    /// Creates, lists, rotates and revokes API keys.
    ///
    /// Creates the data directory if there is none.
    #[command(after_help = examples!["highwater keys mint --tier business", "highwater keys list"])]
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Erases accounts, and exports and imports their secrets.
    #[command(after_help = examples!["highwater accounts erase acct_1", "highwater accounts export-secrets > secrets.tsv"])]
    Accounts {
        #[command(subcommand)]
        command: AccountsCommand,
    },
    /// Hides fields of records from all readers, for example the name of a person who asks for it.
    ///
    /// A person is named as records show the name; case, accents, punctuation and the order of the words do not matter, but each further
    /// spelling is a key of its own. A company is hidden in all spellings of its legal form, or with any form if the key has none. A record is SERVICE/ID. The
    /// log keeps the fields, so hashes stay valid and unsuppress shows them again.
    #[command(after_help = examples![
        "highwater suppress person \"Susanne I Wells\" \"request of the person\"",
        "highwater suppress company \"Blue Mesa Freight LLC\" \"on request\"",
        "highwater suppress record labs/nih:11223344 \"wrong person\"",
    ])]
    Suppress {
        #[command(flatten)]
        key: KeyArguments,
    },
    /// Shows the fields again that suppress hid.
    #[command(after_help = examples!["highwater unsuppress person \"Susanne I Wells\" \"suppressed by mistake\""])]
    Unsuppress {
        #[command(flatten)]
        key: KeyArguments,
    },
    /// Lists the suppressed keys: the kind, the key, since when, and the reason.
    #[command(after_help = examples!["highwater suppressions"])]
    Suppressions,
    /// Assigns owners to chains of receipts.
    #[command(after_help = examples!["highwater receipts assign-owner billing-agent-1 acct_1", "highwater receipts assign-owner --all-paid"])]
    Receipts {
        #[command(subcommand)]
        command: ReceiptsCommand,
    },
    /// Creates, lists and changes the keys that sign receipts.
    #[command(after_help = examples!["highwater receipt-keys new", "highwater receipt-keys list"])]
    ReceiptKeys {
        #[command(subcommand)]
        command: ReceiptKeysCommand,
    },
    /// Lists, resends and resumes webhooks of all accounts.
    #[command(after_help = examples!["highwater webhooks list", "highwater webhooks replay wl_1 --after 1200"])]
    Webhooks {
        #[command(subcommand)]
        command: WebhooksCommand,
    },
    /// Writes a topic, or the current records of a service, to standard output.
    #[command(after_help = examples![
        "highwater export changes.recalls | head -n 1",
        "highwater export recalls --current --format parquet --output recalls.parquet",
        "highwater export all --format records --output log.avro",
    ])]
    Export {
        /// The topic: a fact topic, or changes.SERVICE. With --format records also `all`. With --current a service.
        #[arg(value_parser = KnownValues(values::exported))]
        topic: String,
        /// ndjson, csv or parquet for the records in a readable form; records for a lossless copy that `import` reads.
        #[arg(long, default_value = "ndjson", value_parser = KnownValues(values::formats))]
        format: String,
        /// Exports the records of sync runs, too.
        #[arg(long)]
        all: bool,
        /// Exports the current records of a service instead, with a typed column for each field.
        #[arg(long, conflicts_with = "all")]
        current: bool,
        /// Writes to this file instead, which must not exist. Only its owner can read it.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Copies records that `export --format records` wrote into this log.
    ///
    /// Records keep their offsets; those that are already there are skipped. No other process may use the log meanwhile. Creates the data directory if
    /// there is none.
    #[command(after_help = examples!["highwater import log.avro", "highwater import - < log.avro"])]
    Import {
        /// The files; `-` is standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Prints a hash of the records of a view.
    #[command(after_help = examples!["highwater digest recalls", "highwater digest recalls --at 1200"])]
    Digest {
        /// The view.
        #[arg(value_parser = KnownValues(values::services))]
        view: String,
        /// Includes the history of the records.
        #[arg(long)]
        history: bool,
        /// Hashes the records as of this seq.
        #[arg(long, conflicts_with = "history")]
        at: Option<u64>,
    },
    /// Verifies receipts, documents with their hash, or that one signed checkpoint continues another, offline.
    ///
    /// The file holds a receipt, a list of an agent's receipts, an artifact of exclusions, a record of catalysts, or an answer with such records. With --old
    /// and --new two checkpoints of a tree are compared. Exits with 0 if valid, with 1 if not or if there is nothing to verify.
    #[command(after_help = examples![
        "highwater verify receipt.json --pubkey 5f0c7b71e22f5a3a6e0a7b1d0e5cbe1f5b1a6e1d9a3c4b5d6e7f8091a2b3c4d5",
        "highwater verify artifact.json",
        "highwater verify --old old.txt --new new.txt --proof proof.json --pubkey 5f0c7b71e22f5a3a6e0a7b1d0e5cbe1f5b1a6e1d9a3c4b5d6e7f8091a2b3c4d5",
    ])]
    Verify {
        /// The receipt or document as JSON; `-` is standard input.
        #[arg(required_unless_present = "old", conflicts_with = "old")]
        file: Option<PathBuf>,
        /// The issuer's public key, 64 hex digits, which must have signed. Can be repeated for an issuer with several keys.
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
    /// Shows what needs attention, and the progress of upstreams, topics, views and services.
    ///
    /// Exits with 1 if the newest run of an enabled upstream failed, an input is parked, or receipts or checkpoints are not signed. On a terminal it prints
    /// tables, otherwise one line of fields separated by tabs for each item.
    #[command(after_help = examples!["highwater status", "highwater status --json", "highwater status --sizes"])]
    Status {
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
        /// Shows the bytes of each topic, too, and how many a year adds at the rate of the last 24 hours. Both are estimated from samples of the records.
        #[arg(long)]
        sizes: bool,
    },
    /// Prints a script that completes commands and arguments in a shell.
    #[command(after_help = examples![
        "highwater completions bash > /etc/bash_completion.d/highwater",
        "highwater completions zsh > /usr/local/share/zsh/site-functions/_highwater",
    ])]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Prints the man page of the program or of one command.
    #[command(after_help = examples!["highwater man | man -l -", "highwater man keys mint", "highwater man --dir /usr/local/share/man/man1"])]
    Man {
        /// The words of the command.
        #[arg(conflicts_with = "dir")]
        command: Vec<String>,
        /// Writes the pages of all commands into this directory instead.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

impl CliCommand {
    /// Whether the command creates a data directory that does not exist. For all others a missing one is an error.
    pub(crate) fn creates_data_dir(&self) -> bool {
        matches!(
            self,
            Self::Serve { .. } | Self::Demo { .. } | Self::Ingest { .. } | Self::Keys { .. } | Self::Import { .. } | Self::Restore { .. }
        )
    }

    /// Whether the command has a data directory.
    pub(crate) fn has_data_dir(&self) -> bool {
        !matches!(self, Self::Simulate(_) | Self::Verify { .. } | Self::Completions { .. } | Self::Man { .. })
    }

    /// The listener's address, if a flag sets it.
    pub(crate) fn listen(&self) -> Option<SocketAddr> {
        match self {
            Self::Serve { listen, .. } | Self::Demo { listen, .. } => *listen,
            _ => None,
        }
    }
}

/// The commands that have no data directory: `--data-dir` is left out of their help.
const WITHOUT_DATA_DIR: [&str; 4] = ["completions", "man", "simulate", "verify"];

/// The definition of the command line.
pub(crate) fn command() -> ClapCommand {
    WITHOUT_DATA_DIR.into_iter().fold(Cli::command(), |command, name| {
        let hidden = Arg::new("data_dir").long("data-dir").value_name("DIR").value_parser(clap::value_parser!(PathBuf)).hide(true);
        command.mut_subcommand(name, |of_name| of_name.arg(hidden))
    })
}

/// Parses the arguments of this process. Ends it after help and after an error of usage.
pub(crate) fn parse() -> Cli {
    let parsed = Cli::from_arg_matches(&command().get_matches());
    parsed.unwrap_or_else(|error| error.exit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands without subcommands, each with its words.
    fn leaves(command: &ClapCommand, words: &[&str]) -> Vec<(Vec<String>, ClapCommand)> {
        let below: Vec<&ClapCommand> = command.get_subcommands().filter(|sub| sub.get_name() != "help").collect();
        if below.is_empty() {
            return vec![(words.iter().map(|word| (*word).to_owned()).collect(), command.clone())];
        }
        below.into_iter().flat_map(|sub| leaves(sub, &[words, &[sub.get_name()]].concat())).collect()
    }

    /// The example lines in the help of a command.
    fn examples_of(command: &ClapCommand) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        help.lines().filter_map(|line| Some(line.strip_prefix("  ")?.to_owned())).collect()
    }

    /// Proves that the help of every command has examples, and that the command line accepts each of them as that command.
    #[test]
    fn every_command_has_examples_that_parse() {
        let root = command();
        let found = leaves(&root, &[]);
        assert!(found.len() > 20, "{}", found.len());
        for (words, leaf) in found {
            let examples = examples_of(&leaf);
            assert!(!examples.is_empty(), "{words:?} has no examples");
            for example in examples {
                let line = example.split([',', '|', '>', '<', '#']).next().unwrap();
                let quoted: Vec<&str> = line.split('"').collect();
                let arguments = quoted
                    .iter()
                    .enumerate()
                    .flat_map(|(at, part)| if at % 2 == 1 { vec![*part] } else { part.split_whitespace().collect() });
                let arguments: Vec<&str> = arguments.collect();
                assert_eq!(arguments[1..=words.len()], words[..], "{example}");
                // Arguments that name files to read are checked when they are parsed.
                let reads_file = words.last().is_some_and(|word| word == "import-secrets");
                let parsed = command().try_get_matches_from(&arguments);
                assert!(parsed.is_ok() || reads_file, "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    /// Proves that help lists the known values of an argument, that the data directory is a flag of every command that has one, before and after the
    /// command, and that an unknown value is left to the command, which suggests the nearest one.
    #[test]
    fn values_and_flags() {
        let help = |name: &str| command().find_subcommand_mut(name).unwrap().render_long_help().to_string();
        assert!(help("ingest").contains("cpsc") && help("replay").contains("all") && help("export").contains("changes.recalls"));
        let mut built = command();
        built.build();
        for sub in built.get_subcommands_mut().filter(|sub| sub.get_name() != "help") {
            let (name, text) = (sub.get_name().to_owned(), sub.render_long_help().to_string());
            assert_eq!(text.contains("--data-dir"), !WITHOUT_DATA_DIR.contains(&name.as_str()), "{name}");
        }
        let parse = |arguments: &[&str]| Cli::try_parse_from(arguments).unwrap();
        for arguments in [["highwater", "--data-dir", "d", "status"], ["highwater", "status", "--data-dir", "d"]] {
            assert_eq!(parse(&arguments).sources.data_dir, Some("d".into()), "{arguments:?}");
        }
        assert_eq!(parse(&["highwater", "keys", "list", "--data-dir", "d"]).sources.data_dir, Some("d".into()));
        assert!(matches!(parse(&["highwater", "ingest", "cpcs"]).command, CliCommand::Ingest { upstreams, .. } if upstreams == ["cpcs"]));
        assert!(
            matches!(parse(&["highwater", "ingest", "cpsc", "fsis"]).command, CliCommand::Ingest { upstreams, .. } if upstreams == ["cpsc", "fsis"])
        );
        assert!(Cli::try_parse_from(["highwater", "ingest", "--once"]).is_err());
        assert!(matches!(parse(&["highwater", "ingest", "cpsc", "--once"]).command, CliCommand::Ingest { once: true, .. }));
    }

    /// Proves that the commands without a data directory are the ones whose help leaves the flag out.
    #[test]
    fn commands_without_a_data_directory() {
        for (arguments, has_data_dir) in [
            (&["highwater", "simulate", "--listen", "127.0.0.1:0"][..], false),
            (&["highwater", "verify", "receipt.json"], false),
            (&["highwater", "completions", "bash"], false),
            (&["highwater", "man"], false),
            (&["highwater", "status"], true),
            (&["highwater", "import", "file"], true),
        ] {
            let command = Cli::try_parse_from(arguments).unwrap().command;
            assert_eq!(command.has_data_dir(), has_data_dir, "{arguments:?}");
            assert_eq!(WITHOUT_DATA_DIR.contains(&arguments[1]), !has_data_dir, "{arguments:?}");
        }
    }
}

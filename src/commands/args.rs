//! The commands with their arguments, as the command line parses them and the control socket carries them.

use std::fmt;

use clap::Subcommand;
use event_log::transfer;
use schemas::names;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use table_file::Format;

use super::backup::BackupArguments;
use super::suppressions::SuppressionCommand;
use crate::failure::Failure;
use crate::help::{KnownValues, examples};

/// A command that needs an engine: that of a running process, or one opened for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Syncs upstreams now, one after another.
    Ingest { upstreams: Vec<String> },
    /// Rebuilds a view from its changes.
    Replay { view: String },
    /// Writes a backup.
    Backup(BackupArguments),
    /// Checks the log and the views.
    Fsck { repair: bool },
    /// Maps rejected records again.
    ReplayRejected,
    /// Decides parked inputs again.
    ReplayParked,
    /// Decides all facts of a service again.
    Redecide { service: String },
    /// API keys.
    Keys(KeysCommand),
    /// Accounts.
    Accounts(AccountsCommand),
    /// Chains of receipts.
    Receipts(ReceiptsCommand),
    /// Keys that sign receipts.
    ReceiptKeys(ReceiptKeysCommand),
    /// Suppressed keys.
    Suppressions(SuppressionCommand),
    /// Webhooks.
    Webhooks(WebhooksCommand),
    /// Writes out a topic.
    Export {
        topic: String,
        format: String,
        all: bool,
        #[serde(default)]
        current: bool,
    },
    /// Hashes a view.
    Digest { view: String, history: bool, at: Option<u64> },
    /// Shows what needs attention, and the progress of upstreams, topics and views.
    Status { format: StatusFormat, sizes: bool },
}

/// The form of what `status` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StatusFormat {
    /// Aligned tables, for a terminal.
    Table,
    /// A line of fields separated by tabs for each item, for scripts.
    Lines,
    /// One JSON object.
    Json,
}

/// The known values of arguments.
pub(crate) mod values {
    use super::{ALL, Format, RECORDS, Tier, transfer};

    /// The upstreams.
    pub(crate) fn upstreams() -> Vec<&'static str> {
        upstreams::ALL.iter().map(|upstream| upstream.manifest().name).collect()
    }

    /// The services, which are the views.
    pub(crate) fn services() -> Vec<&'static str> {
        ::services::views().iter().map(|view| view.name).collect()
    }

    /// The views and the word for all of them.
    pub(crate) fn views_or_all() -> Vec<&'static str> {
        [services(), vec![ALL]].concat()
    }

    /// The topics that can be exported.
    pub(crate) fn topics() -> Vec<&'static str> {
        transfer::topics().map(|topic| topic.name).collect()
    }

    /// The topics that can be exported, and the word for all of them.
    pub(crate) fn topics_or_all() -> Vec<&'static str> {
        [topics(), vec![ALL]].concat()
    }

    /// The services whose current records can be exported.
    pub(crate) fn services_with_tables() -> Vec<&'static str> {
        let with_tables = ::services::registered().iter().filter(|registration| registration.table.is_some());
        with_tables.map(|registration| registration.service.name).collect()
    }

    /// What can be exported: topics, services, and the word for all topics.
    pub(crate) fn exported() -> Vec<&'static str> {
        let mut names = topics_or_all();
        for service in services_with_tables() {
            if !names.contains(&service) {
                names.push(service);
            }
        }
        names
    }

    /// The formats of an export.
    pub(crate) fn formats() -> Vec<&'static str> {
        Format::NAMES.into_iter().chain([RECORDS]).collect()
    }

    /// The kinds of keys that can be suppressed.
    pub(crate) fn key_kinds() -> Vec<&'static str> {
        schemas::suppression::KINDS.iter().map(|kind| kind.name).collect()
    }

    /// The tiers of keys.
    pub(crate) fn tiers() -> Vec<&'static str> {
        Tier::ALL.into_iter().filter(|tier| *tier != Tier::Anonymous).map(Tier::as_str).collect()
    }
}

/// The export format that `import` reads.
pub(super) const RECORDS: &str = "records";
/// All topics of an export, or all views of a replay.
pub(super) const ALL: &str = "all";
/// The longest reason of a declared restore, in bytes.
const RESTORE_REASON_BYTES_MAX: usize = 500;

/// Commands on API keys.
#[derive(Clone, Debug, Serialize, Deserialize, Subcommand)]
pub(crate) enum KeysCommand {
    /// Creates a key and prints only the key; it is not shown again.
    #[command(after_help = examples!["highwater keys mint --tier business"])]
    Mint {
        /// The tier.
        #[arg(long, value_parser = KnownValues(values::tiers))]
        tier: String,
    },
    /// Lists keys with their ids, tiers and times.
    #[command(after_help = examples!["highwater keys list"])]
    List,
    /// Creates a new key that replaces an old one, and prints only the new key. The old key works for one more day.
    #[command(after_help = examples!["highwater keys rotate key_1"])]
    Rotate {
        /// The id of the old key.
        id: String,
    },
    /// Ends a key immediately.
    #[command(after_help = examples!["highwater keys revoke key_1"])]
    Revoke {
        /// The id of the key.
        id: String,
    },
}

/// Commands on accounts.
#[derive(Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum AccountsCommand {
    /// Erases an account: ends its keys, deletes its filters and watches, and destroys the secret that its addresses are encrypted with.
    #[command(after_help = examples!["highwater accounts erase acct_1"])]
    Erase {
        /// The id of the account or of one of its keys, or of a watch that was bought without a key.
        id: String,
    },
    /// Prints the secrets that accounts' addresses are encrypted with. No log and no export contains them: keep them as safe as the master key.
    #[command(after_help = examples!["highwater accounts export-secrets > secrets.tsv"])]
    ExportSecrets,
    /// Imports secrets that `export-secrets` printed. A secret that was erased, there or here, stays erased.
    #[command(after_help = examples!["highwater accounts import-secrets secrets.tsv"])]
    ImportSecrets {
        /// The file with the secrets.
        #[arg(value_name = "FILE", value_parser = read_file)]
        secrets: String,
    },
}

impl fmt::Debug for AccountsCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Erase { .. } => "Erase",
            Self::ExportSecrets => "ExportSecrets",
            Self::ImportSecrets { .. } => "ImportSecrets",
        })
    }
}

/// Reads the file that an argument names.
fn read_file(path: &str) -> Result<String, std::io::Error> {
    std::fs::read_to_string(path)
}

/// Commands on the keys that sign receipts.
#[derive(Clone, Debug, Serialize, Deserialize, Subcommand)]
pub(crate) enum ReceiptKeysCommand {
    /// Creates a key and prints its public key. The key is not used until `receipt-keys use`.
    #[command(after_help = examples!["highwater receipt-keys new"])]
    New,
    /// Signs with a key from now on. Copy its file to all nodes with the role project first.
    #[command(after_help = examples!["highwater receipt-keys use 5f0c7b71e22f5a3a6e0a7b1d0e5cbe1f5b1a6e1d9a3c4b5d6e7f8091a2b3c4d5"])]
    Use {
        /// The public key, 64 hex digits.
        public_key: String,
    },
    /// Lists the keys that sign or signed; the current one is last.
    #[command(after_help = examples!["highwater receipt-keys list"])]
    List,
    /// Declares that a backup was restored: creates a key that signs from now on, with the reason, and bars the previous key. Needed when the
    /// signer refuses to sign because the log is older than what was signed.
    #[command(after_help = examples!["highwater receipt-keys restore --reason \"disk lost, backup of last night\""])]
    Restore {
        /// The reason, which readers see with the key at /receipts/pubkey.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// Commands on chains of receipts.
#[derive(Clone, Debug, Serialize, Deserialize, Subcommand)]
pub(crate) enum ReceiptsCommand {
    /// Assigns an owner to a chain that has none, and prints the owner. Such a chain is older than the record of owners, and nobody can append to
    /// it until then; or it has no receipts yet, and only the owner can append to it from then on.
    #[command(after_help = examples!["highwater receipts assign-owner billing-agent-1 acct_1", "highwater receipts assign-owner --all-paid"])]
    AssignOwner {
        /// The agent of the chain.
        #[arg(required_unless_present = "all_paid", conflicts_with = "all_paid")]
        agent_id: Option<String>,
        /// An account (`acct_...`) or a payer's address (`0x...`). Without it the payer of the chain's first receipt becomes the owner.
        owner: Option<String>,
        /// Assigns every chain with receipts and without an owner to the payer of its first receipt. Prints a line for each: the agent and the
        /// owner, or the agent and why the chain could not be assigned.
        #[arg(long)]
        all_paid: bool,
    },
}

/// Commands on webhooks.
#[derive(Clone, Debug, Serialize, Deserialize, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// Lists all webhooks with the last seq that each acknowledged. Failing webhooks come first.
    #[command(after_help = examples!["highwater webhooks list"])]
    List,
    /// Sends one message again, now.
    #[command(after_help = examples!["highwater webhooks resend wl_1 msg_1"])]
    Resend {
        /// The id of the webhook.
        id: String,
        /// The `webhook-id` of the message.
        message: String,
    },
    /// Resumes a webhook, also a disabled one.
    #[command(after_help = examples!["highwater webhooks replay wl_1", "highwater webhooks replay wl_1 --after 1200 --upto 1300"])]
    Replay {
        /// The id of the webhook.
        id: String,
        /// Delivers the changes after this seq again. A seq from before the webhook was registered is refused.
        #[arg(long)]
        after: Option<Seq>,
        /// The last seq that is delivered again; then the webhook resumes where it was.
        #[arg(long, requires = "after")]
        upto: Option<Seq>,
    },
}

impl Command {
    /// Refuses unknown names before anything is opened.
    ///
    /// # Errors
    /// The first argument that cannot be used.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Ingest { upstreams } => upstreams.iter().try_for_each(|upstream| check_known("upstream", upstream, &values::upstreams())),
            Self::Replay { view } => check_known("view", view, &values::views_or_all()),
            Self::Redecide { service } => check_known("service", service, &values::services()),
            Self::Digest { view, .. } => check_known("view", view, &values::services()),
            Self::Export { topic, format, current: true, .. } => check_current(topic, format),
            Self::Export { topic, format, all, current: false } => check_export(topic, format, *all),
            Self::Keys(KeysCommand::Mint { tier }) => tier_of(tier).map(|_| ()),
            Self::ReceiptKeys(ReceiptKeysCommand::Restore { reason })
                if reason.trim().is_empty() || reason.len() > RESTORE_REASON_BYTES_MAX || reason.chars().any(char::is_control) =>
            {
                Err(Failure::new(format!("--reason must be one line of 1 to {RESTORE_REASON_BYTES_MAX} bytes")))
            }
            _ => Ok(()),
        }
    }
}

fn check_export(topic: &str, format: &str, all: bool) -> Result<(), Failure> {
    let is_records = format == RECORDS;
    if is_records && all {
        return Err(Failure::new("--all cannot be used with --format records, which always exports all records"));
    }
    check_known("topic", topic, &if is_records { values::topics_or_all() } else { values::topics() })?;
    check_known("format", format, &values::formats())
}

fn check_current(service: &str, format: &str) -> Result<(), Failure> {
    check_known("service", service, &values::services_with_tables())?;
    check_known("format", format, &Format::NAMES)
}

/// The tier of that name, if keys of it can be created.
pub(super) fn tier_of(name: &str) -> Result<Tier, Failure> {
    Tier::from_name(name).filter(|tier| *tier != Tier::Anonymous).ok_or_else(|| unknown("tier", name, &values::tiers()))
}

fn check_known(what: &str, name: &str, known: &[&str]) -> Result<(), Failure> {
    if known.contains(&name) { Ok(()) } else { Err(unknown(what, name, known)) }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Failure {
    Failure::new(format!("unknown {what} \"{name}\"{} (known: {})", names::hint(name, known.iter().copied()), known.join(", ")))
}

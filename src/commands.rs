//! The commands that work beside a running process and by themselves: the same code, whoever runs it.

mod receipts;

use operation::signing_state::SigningState;
use std::fmt;
use std::sync::Arc;

use access::{Access, ErasedAccount, unused_until, webhook};
use clap::Subcommand;
use event_log::transfer;
use operation::context::Part;
use projector::export::{self, Format};
use projector::rebuild::Progress;
use schemas::clock::rfc3339;
use schemas::names;
use schemas::topics::{self, Topic, TopicKind};
use schemas::views;
use schemas::views::accounts::Tier;
use schemas::views::engine::{RUNS, RunRow, VIEW as ENGINE_VIEW};
use serde::{Deserialize, Serialize};
use upstreams::Upstream;
use webhooks::operate;
use webhooks::operations::DeliveryStatus;

use crate::engine::Engine;
use crate::output::Output;
use crate::waiting::telling;
use crate::witnesses;

/// A command, as it goes over the control socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Run an upstream now.
    Ingest { upstream: String },
    /// Apply all changes of a view again.
    Replay { view: String },
    /// Take rejected records again.
    ReplayRejected,
    /// Take parked inputs again.
    ReplayParked,
    /// Decide a service's facts again.
    Redecide { service: String },
    /// Keys.
    Keys(KeysCommand),
    /// Accounts.
    Accounts(AccountsCommand),
    /// Receipts.
    Receipts(ReceiptsCommand),
    /// Keys of receipts.
    ReceiptKeys(ReceiptKeysCommand),
    /// Webhooks.
    Webhooks(WebhooksCommand),
    /// Write a topic out.
    Export { topic: String, format: String, all: bool },
    /// Hash a view.
    Digest { view: String, history: bool, at: Option<u64> },
    /// Tell how things stand.
    Status,
}

/// The format that moves topics.
const RECORDS: &str = "records";
/// The longest reason of a declared restore, in bytes.
const RESTORE_REASON_BYTES_MAX: usize = 500;
/// All topics.
const ALL: &str = "all";

/// What can be done with keys.
#[derive(Clone, Debug, Serialize, Deserialize, Subcommand)]
pub(crate) enum KeysCommand {
    /// Makes a key and prints it alone; it is shown only once.
    Mint {
        /// free, pro, business, fleet, fleet_plus.
        #[arg(long)]
        tier: String,
    },
    /// Lists keys by id, tier and times.
    List,
    /// Makes a new key for an old one, which works a day longer; prints the new one alone.
    Rotate {
        /// Id of the old key.
        id: String,
    },
    /// Ends a key.
    Revoke {
        /// Its id.
        id: String,
    },
}

/// What can be done with accounts.
#[derive(Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum AccountsCommand {
    /// Forgets an account: ends its keys, deletes its filters and watches, and destroys what their addresses are sealed with.
    Erase {
        /// Its id, or that of one of its keys.
        id: String,
    },
    /// Prints the secrets that accounts' addresses are sealed with, which no log and no export holds: keep them as safe as the master key.
    ExportSecrets,
    /// Takes secrets that were printed elsewhere. One that was erased, there or here, stays erased.
    ImportSecrets {
        /// The file that holds them.
        #[arg(value_name = "FILE", value_parser = contents)]
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

/// What a file holds.
fn contents(path: &str) -> Result<String, std::io::Error> {
    std::fs::read_to_string(path)
}

/// What can be done with the keys that receipts are signed with.
#[derive(Clone, Debug, Serialize, Deserialize, Subcommand)]
pub(crate) enum ReceiptKeysCommand {
    /// Makes a key and prints its public half; it signs nothing yet.
    New,
    /// Has a key sign from now on. Copy its file to all nodes that decide first.
    Use {
        /// The public key, 64 hex digits.
        public_key: String,
    },
    /// Lists the keys that sign or signed, the present one last.
    List,
    /// Declares that a backup was restored: makes a key that signs from now on, with the reason, and bars the one before. Needed where the
    /// signer refuses to sign because the log is older than what was signed.
    Restore {
        /// Why, for readers: it is shown with the key at /receipts/pubkey.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// What can be done with receipt chains.
#[derive(Clone, Debug, Serialize, Deserialize, Subcommand)]
pub(crate) enum ReceiptsCommand {
    /// Assigns the owner of a chain that has none, and prints the owner: a chain that is older than the record of owners, to which nobody can append
    /// until then, or one without receipts, to which nobody else can append from then on.
    AssignOwner {
        /// The agent whose chain it is.
        #[arg(required_unless_present = "all_paid", conflicts_with = "all_paid")]
        agent_id: Option<String>,
        /// An account (`acct_...`) or a payer's address (`0x...`). Without it the chain goes to whoever paid for its first receipt.
        owner: Option<String>,
        /// Assigns every chain with receipts and without an owner to whoever paid for its first receipt. Prints a line for each: the agent and the
        /// owner, or the agent and why it could not be assigned.
        #[arg(long)]
        all_paid: bool,
    },
}

/// What can be done with webhooks.
#[derive(Clone, Debug, Serialize, Deserialize, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// Lists them with how far each has been told, those that fail first.
    List,
    /// Posts one message again, now.
    Resend {
        /// The webhook's id.
        id: String,
        /// `webhook-id` of the message.
        message: String,
    },
    /// Has a webhook go on, also one that was disabled.
    Replay {
        /// Its id.
        id: String,
        /// Told again what comes after this change.
        #[arg(long)]
        after: Option<u64>,
        /// The last change that is told again; behind it, it goes on where it stood.
        #[arg(long, requires = "after")]
        upto: Option<u64>,
    },
}

/// Why a command failed, in one line.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

fn failure<E: std::error::Error + 'static>(error: E) -> Failure {
    Failure(ingest::reason(&error))
}

/// Writes bytes out until nobody reads them any more.
fn written(output: &dyn Output) -> impl FnMut(&[u8]) -> bool + Send {
    |bytes| {
        output.bytes(bytes);
        !output.is_closed()
    }
}

fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Failure {
    let list: Vec<&str> = known.clone().into_iter().collect();
    Failure(format!("unknown {what} \"{name}\"{} (known: {})", names::hint(name, known), list.join(", ")))
}

fn service_names() -> impl Iterator<Item = &'static str> + Clone {
    views::SERVICES.iter().map(|view| view.name)
}

fn tier_of(name: &str) -> Result<Tier, Failure> {
    let with_keys = || Tier::ALL.into_iter().filter(|tier| *tier != Tier::Anonymous).map(Tier::as_str);
    Tier::from_name(name).filter(|tier| *tier != Tier::Anonymous).ok_or_else(|| unknown("tier", name, with_keys().collect::<Vec<_>>()))
}

impl Command {
    /// Refuses unknown names before anything is opened or asked.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Ingest { upstream } if upstreams::by_name(upstream).is_none() => {
                Err(unknown("upstream", upstream, upstreams::ALL.iter().map(|upstream| upstream.manifest().name).collect::<Vec<_>>()))
            }
            Self::Replay { view } if view != "all" && !service_names().any(|name| name == view) => {
                Err(unknown("view", view, service_names().chain(["all"])))
            }
            Self::Redecide { service } if !service_names().any(|name| name == service) => Err(unknown("service", service, service_names())),
            Self::Digest { view, .. } if !service_names().any(|name| name == view) => Err(unknown("view", view, service_names())),
            Self::Export { format, all: true, .. } if format == RECORDS => {
                Err(Failure::new("--all is for listings: records are all that there are"))
            }
            Self::Export { topic, format, .. } => {
                let known = transfer::topics().map(|topic| topic.name);
                let is_all = topic == ALL && format == RECORDS;
                if !is_all && !known.clone().any(|known| known == topic) {
                    return Err(unknown("topic", topic, known.chain((format == RECORDS).then_some(ALL))));
                }
                let is_known = format == RECORDS || Format::from_name(format).is_some();
                is_known.then_some(()).ok_or_else(|| unknown("format", format, Format::NAMES.into_iter().chain([RECORDS])))
            }
            Self::Keys(KeysCommand::Mint { tier }) => tier_of(tier).map(|_| ()),
            Self::ReceiptKeys(ReceiptKeysCommand::Restore { reason })
                if reason.trim().is_empty() || reason.len() > RESTORE_REASON_BYTES_MAX || reason.chars().any(char::is_control) =>
            {
                Err(Failure(format!("--reason must be one line of 1 to {RESTORE_REASON_BYTES_MAX} bytes")))
            }
            _ => Ok(()),
        }
    }

    /// Runs it.
    pub(crate) async fn run(self, engine: &Arc<Engine>, output: &dyn Output) -> Result<(), Failure> {
        self.check()?;
        match self {
            Self::Ingest { upstream } => run_upstream(engine, &upstream, output).await,
            Self::Replay { view } => replay(engine, &view, output).await,
            Self::ReplayRejected => replay_rejected(engine, output).await,
            Self::ReplayParked => {
                for service in engine.projector.services() {
                    let taken = service.retry_parked().await.map_err(failure)?;
                    let left = service.parked().await.map_err(failure)?;
                    output.note(&format!("{}: {taken} taken again, {left} still parked", service.name()));
                }
                Ok(())
            }
            Self::Redecide { service } => {
                wait_caught_up(engine, output).await?;
                let service = engine.projector.service(&service).map_err(failure)?;
                let appended = with_progress(output, |progress| async move { service.redecide(&progress).await }).await?;
                output.note(&format!("{}: {appended} changes appended", service.name()));
                Ok(())
            }
            Self::Keys(command) => keys(engine, command, output).await,
            Self::Accounts(command) => accounts(engine, command, output).await,
            Self::Webhooks(command) => webhooks(engine, command, output).await,
            Self::Receipts(ReceiptsCommand::AssignOwner { agent_id, owner, all_paid }) => {
                wait_caught_up(engine, output).await?;
                if all_paid {
                    receipts::assign_all_paid(engine, output).await
                } else {
                    receipts::assign_owner(engine, agent_id, owner, output).await
                }
            }
            Self::ReceiptKeys(command) => receipts::receipt_keys(engine, command, output).await,
            Self::Export { topic, format, .. } if format == RECORDS => {
                // What is not decided yet would be decided anew where it arrives.
                wait_caught_up(engine, output).await?;
                let asked: Vec<&'static Topic> = transfer::topics().filter(|known| topic == ALL || topic == known.name).collect();
                let mut write = written(output);
                transfer::export(&*engine.log, &asked, |done, total| output.progress(done, total), &mut write).await.map_err(failure)
            }
            Self::Export { topic, format, all } => {
                wait_caught_up(engine, output).await?;
                let (Some(topic), Some(format)) = (topics::by_name(&topic), Format::from_name(&format)) else { return Ok(()) };
                let mut write = written(output);
                export::export(&engine.parts, topic, format, all, &mut write).await.map_err(failure)
            }
            Self::Digest { view, history, at } => {
                wait_caught_up(engine, output).await?;
                let digest = engine
                    .projector
                    .service(&view)
                    .map_err(failure)?
                    .digest(history, at.map(schemas::position::Seq))
                    .await
                    .map_err(failure)?;
                output.line(digest.to_string().as_bytes());
                Ok(())
            }
            Self::Status => status(engine, output).await,
        }
    }
}

/// Waits until what is in the log is projected.
async fn wait_caught_up(engine: &Engine, output: &dyn Output) -> Result<(), Failure> {
    let caught_up = async {
        for topic in schemas::topics::fact_topics() {
            engine.wait_projected(topic).await.map_err(|error| Failure(ingest::reason(&*error)))?;
        }
        Ok(())
    };
    telling(engine, output, caught_up).await
}

/// Runs something that tells its progress, and passes that on.
async fn with_progress<T, F>(output: &dyn Output, work: impl FnOnce(Progress) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, projector::Error>>,
{
    let (sender, mut seen) = tokio::sync::watch::channel((0, 0));
    let progress: Progress = Arc::new(move |done, total| {
        sender.send_replace((done, total));
    });
    let mut work = std::pin::pin!(work(progress));
    loop {
        tokio::select! {
            result = &mut work => return result.map_err(failure),
            Ok(()) = seen.changed() => {
                let (done, total) = *seen.borrow_and_update();
                output.progress(done, total);
            }
        }
    }
}

async fn run_upstream(engine: &Arc<Engine>, name: &str, output: &dyn Output) -> Result<(), Failure> {
    let Some(upstream) = upstreams::by_name(name) else { return Ok(()) };
    let settings = engine.upstream_settings(name).map_err(failure)?;
    let ran_and_projected = async {
        let results = engine.runner.sync(upstream, &settings).await.map_err(failure)?;
        for stream in upstream.manifest().streams {
            engine.wait_projected(stream.topic).await.map_err(|error| Failure(ingest::reason(&*error)))?;
        }
        Ok(results)
    };
    let results = telling(engine, output, ran_and_projected).await?;
    let mut failed = Vec::new();
    for result in results {
        match result {
            Ok(outcome) => {
                let run = outcome.run;
                let words = format!("{}: {} seen, {} appended, {} rejected", outcome.stream, run.seen, run.appended, run.rejected);
                output.note(&if run.reason.is_empty() { words } else { format!("{words}; {}", run.reason) });
            }
            Err(error) => failed.push(ingest::reason(&error)),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure(failed.join("; "))) }
}

async fn replay(engine: &Arc<Engine>, view: &str, output: &dyn Output) -> Result<(), Failure> {
    for service in engine.projector.services().iter().filter(|service| view == "all" || service.name() == view) {
        let applied = with_progress(output, |progress| async move { service.replay(&progress).await }).await?;
        output.note(&format!("{}: {applied} changes applied", service.name()));
    }
    Ok(())
}

/// Maps the rejected records again from the bytes that were kept.
async fn replay_rejected(engine: &Arc<Engine>, output: &dyn Output) -> Result<(), Failure> {
    for (name, raw) in export::read_rejected(&engine.parts).await.map_err(failure)? {
        let stream_of = |upstream: &&'static dyn Upstream| upstream.manifest().streams.iter().find(|stream| stream.name == name);
        let Some((upstream, stream)) = upstreams::ALL.iter().find_map(|upstream| Some((*upstream, stream_of(upstream)?))) else {
            output.note(&format!("{name}: no upstream of this version has this stream"));
            continue;
        };
        let settings = engine.upstream_settings(upstream.manifest().name).map_err(failure)?;
        let kept = raw.len();
        let taken_and_projected = async {
            let taken = engine.runner.retry_rejected(upstream, stream, &settings, raw).await.map_err(failure)?;
            engine.wait_projected(stream.topic).await.map_err(|error| Failure(ingest::reason(&*error)))?;
            Ok(taken)
        };
        let taken = telling(engine, output, taken_and_projected).await?;
        output.note(&format!("{name}: {kept} kept, {taken} taken now"));
    }
    Ok(())
}

async fn keys(engine: &Arc<Engine>, command: KeysCommand, output: &dyn Output) -> Result<(), Failure> {
    let (context, access) = (&engine.context, Access::of(&engine.context));
    let refused = |problem: operation::problem::Problem| Failure(problem.detail);
    match command {
        KeysCommand::Mint { tier } => {
            let minted = access.mint(context, tier_of(&tier)?, "").await.map_err(refused)?;
            output.line(minted.key.reveal().as_bytes());
            output.note(&format!("id {}; the key is shown only this once", minted.row.id));
        }
        KeysCommand::List => {
            for key in access.list(context).await.map_err(refused)? {
                let until = unused_until(&key);
                let ends = if key.ends_at == 0 { "never".to_owned() } else { rfc3339(key.ends_at) };
                let used = if key.last_used_at == 0 { "never".to_owned() } else { rfc3339(key.last_used_at) };
                let (minted, account) = (rfc3339(key.minted_at), key.account);
                let mut line = format!("{}\t{}\tminted {minted}\tends {ends}\tlast used {used}\tof {account}", key.id, key.tier);
                if let Some(until) = until.filter(|_| key.ends_at == 0) {
                    let verb = if until <= context.clock.now_ms() { "expired" } else { "expires unless used by" };
                    line += &format!("\t{verb} {}", rfc3339(until));
                }
                output.line(line.as_bytes());
            }
        }
        KeysCommand::Rotate { id } => {
            let rotated = access.rotate(context, &id).await.map_err(refused)?;
            output.line(rotated.minted.key.reveal().as_bytes());
            output.note(&format!("id {}; the old key works until {}", rotated.minted.row.id, rfc3339(rotated.old.ends_at)));
        }
        KeysCommand::Revoke { id } => {
            access.revoke(context, &id).await.map_err(refused)?;
            output.note(&format!("{id} is revoked"));
        }
    }
    Ok(())
}

async fn accounts(engine: &Engine, command: AccountsCommand, output: &dyn Output) -> Result<(), Failure> {
    let context = &engine.context;
    let refused = |problem: operation::problem::Problem| Failure(problem.detail);
    match command {
        AccountsCommand::Erase { id } => {
            let ErasedAccount { account, keys, saved_items } = Access::of(context).erase(context, &id).await.map_err(refused)?;
            output.note(&format!("{account} is erased: {keys} keys, {saved_items} filters and watches"));
        }
        AccountsCommand::ExportSecrets => {
            for (account, secret) in webhook::account_secrets(context).await.map_err(refused)? {
                output.line(format!("{account}\t{secret}").as_bytes());
            }
        }
        AccountsCommand::ImportSecrets { secrets } => {
            // One that is refused keeps no other out.
            let (mut taken, mut wrong) = (0, Vec::new());
            for (at, line) in secrets.lines().enumerate() {
                let Some((account, secret)) = line.split_once('\t') else {
                    wrong.push(format!("line {} is no account and its secret", at + 1));
                    continue;
                };
                match webhook::import_account_secret(context, account, secret).await {
                    Ok(()) => taken += 1,
                    Err(problem) => wrong.push(problem.detail),
                }
            }
            output.note(&format!("{taken} secrets taken"));
            if !wrong.is_empty() {
                return Err(Failure(wrong.join("; ")));
            }
        }
    }
    Ok(())
}

async fn webhooks(engine: &Engine, command: WebhooksCommand, output: &dyn Output) -> Result<(), Failure> {
    let context = &engine.context;
    let refused = |problem: operation::problem::Problem| Failure(problem.detail);
    match command {
        WebhooksCommand::List => {
            for at in operate::list(context).await.map_err(refused)? {
                let DeliveryStatus { state, told, delivered, skipped, failing_since, reason, .. } = DeliveryStatus::from(&at);
                let failing = if failing_since.is_empty() { String::new() } else { format!("\tfailing since {failing_since}: {reason}") };
                let line = format!(
                    "{}\t{}\t{}\t{state}\ttold {told}\t{delivered} delivered\t{skipped} skipped{failing}",
                    at.id, at.service, at.account
                );
                output.line(line.as_bytes());
            }
        }
        WebhooksCommand::Resend { id, message } => {
            let posted = operate::resend_message(context, &services::matchers(), &id, &message).await.map_err(refused)?;
            if !posted.taken {
                return Err(Failure(posted.reason));
            }
            output.note(&format!("{message} was taken, status {}", posted.status));
        }
        WebhooksCommand::Replay { id, after, upto } => {
            let standing = operate::replay_from(context, &id, after, upto).await.map_err(refused)?;
            output.note(&format!("{id} goes on after change {}", standing.delivered_seq));
        }
    }
    Ok(())
}

async fn status(engine: &Arc<Engine>, output: &dyn Output) -> Result<(), Failure> {
    let view = engine.store.live(&ENGINE_VIEW).await.map_err(failure)?;
    let now_ms = engine.parts.clock.now_ms();
    for upstream in upstreams::ALL {
        for stream in upstream.manifest().streams {
            let row = view.get(&RUNS, &schemas::key![stream.name]).await.map_err(failure)?;
            let line = match row.map(|row| serde_json::from_slice::<RunRow>(&row)).transpose().map_err(failure)? {
                None => "never run".to_owned(),
                Some(RunRow { kind, at_ms, run, last_finished_at_ms, .. }) => {
                    let age_s = now_ms.saturating_sub(last_finished_at_ms) / 1_000;
                    let finished = match last_finished_at_ms {
                        0 => "never".to_owned(),
                        at => format!("{} ({age_s} s ago)", rfc3339(at)),
                    };
                    let reason = if run.reason.is_empty() { String::new() } else { format!(" ({})", run.reason) };
                    format!(
                        "{kind} {}\tlast finished {finished}\tseen {}\tappended {}\trejected {}{reason}",
                        rfc3339(at_ms),
                        run.seen,
                        run.appended,
                        run.rejected
                    )
                }
            };
            output.line(format!("upstream {}\t{line}", stream.name).as_bytes());
        }
    }
    let heads = view.checkpoint().await.map_err(failure)?;
    for topic in topics::ALL {
        let mut records = 0;
        let mut lag = 0;
        for partition in 0..topic.partitions {
            let end = engine.log.end(topic, partition).await.map_err(failure)?;
            records += end.0;
            if matches!(topic.kind, TopicKind::Facts | TopicKind::Commands) {
                lag += end.0.saturating_sub(heads.position(topic, partition).0);
            }
        }
        output.line(format!("topic {}\trecords {records}\tlag {lag}", topic.name).as_bytes());
    }
    for lag in projector::lag::measure(&engine.parts).await.map_err(failure)? {
        output.line(format!("view {}\tlag {}\tseconds {}", lag.view, lag.events, lag.seconds).as_bytes());
    }
    // What the processes that sign the trees refuse, if this is none of them.
    engine.participant().exchange(&engine.context).await.map_err(|problem| Failure(problem.detail))?;
    if let Some(refusal) = receipts::signing_refusal(engine).await {
        output.line(format!("signing of receipts and checkpoints\trefused: {}", refusal.reason()).as_bytes());
    }
    for (service, reason) in SigningState::of(&engine.context).refused_trees().0 {
        output.line(format!("signing of checkpoints of {service}\trefused: {reason}").as_bytes());
    }
    for line in witnesses::status_lines(&engine.context).await.map_err(|problem| Failure(problem.detail))? {
        output.line(line.as_bytes());
    }
    for service in engine.projector.services() {
        let checkpoint = service.checkpoint().await.map_err(failure)?;
        let parked = service.parked().await.map_err(failure)?;
        let recorded = if checkpoint.seq == 0 { "never".to_owned() } else { rfc3339(checkpoint.recorded_at_ms) };
        output.line(format!("service {}\tseq {}\trecorded {recorded}\tparked {parked}", service.name(), checkpoint.seq).as_bytes());
    }
    Ok(())
}

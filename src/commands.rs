//! Runs commands on an engine. The same code runs in a serving process, which receives commands over its control socket, and in a process that
//! the command line starts.

mod accounts;
mod args;
mod backup;
mod fsck;
mod keys;
mod progress;
mod receipts;
mod status;
mod suppressions;
mod webhooks;

use std::sync::Arc;

use event_log::transfer;
use projector::export;
use schemas::position::Seq;
use schemas::topics::{self, Topic};
use table_file::Format;
use upstreams::Upstream;
use upstreams::shopify::Options as ShopifyOptions;

use args::{ALL, RECORDS};
pub(crate) use args::{AccountsCommand, Command, KeysCommand, ReceiptKeysCommand, ReceiptsCommand, StatusFormat, WebhooksCommand, values};
pub(crate) use backup::BackupArguments;
use progress::{with_progress, with_sync_progress};
pub(crate) use suppressions::SuppressionCommand;

use crate::engine::Engine;
use crate::failure::{Failure, failure};
use crate::output::Output;
use crate::projection_wait::{wait_caught_up, wait_served, with_reports};
use crate::sync_supervisor;

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// The reason why it failed, as one line.
    pub(crate) async fn run(self, engine: &Arc<Engine>, output: &dyn Output) -> Result<(), Failure> {
        self.run_to_end(engine, output).await.map_err(|failure| failure.with_hidden_cause(|| engine.write_refusal()))
    }

    async fn run_to_end(self, engine: &Arc<Engine>, output: &dyn Output) -> Result<(), Failure> {
        self.check()?;
        if !matches!(self, Self::Backup(_) | Self::Status { .. } | Self::Replay { .. }) {
            wait_served(engine, output).await?;
        }
        match self {
            Self::Ingest { upstreams } => ingest_upstreams(engine, &upstreams, output).await,
            Self::Replay { view } => replay(engine, &view, output).await,
            Self::Backup(arguments) => backup::run(engine, arguments, output).await,
            Self::Fsck { repair } => fsck::run(engine, repair, output).await,
            Self::ReplayRejected => replay_rejected(engine, output).await,
            Self::ReplayParked => replay_parked(engine, output).await,
            Self::Redecide { service } => redecide(engine, &service, output).await,
            Self::Keys(command) => keys::run(engine, command, output).await,
            Self::Accounts(command) => accounts::run(engine, command, output).await,
            Self::Suppressions(command) => suppressions::run(engine, command, output).await,
            Self::Webhooks(command) => webhooks::run(engine, command, output).await,
            Self::Receipts(command) => receipts::run(engine, command, output).await,
            Self::ReceiptKeys(command) => receipts::run_keys(engine, command, output).await,
            Self::Export { topic, format, current: true, .. } => export_current(engine, &topic, &format, output).await,
            Self::Export { topic, format, all, current: false } => export(engine, &topic, &format, all, output).await,
            Self::Digest { view, history, at } => {
                engine.check_projected(&view)?;
                wait_caught_up(engine, output).await?;
                let service = engine.projector.service(&view).map_err(failure)?;
                let digest = service.digest(history, at.map(Seq)).await.map_err(failure)?;
                output.line(digest.to_string().as_bytes());
                Ok(())
            }
            Self::Status { format, sizes } => status::run(engine, format, sizes, output).await,
        }
    }
}

/// Syncs upstreams one after another, also after streams of one could not be read. Stops when nobody reads the output any more.
///
/// # Errors
/// The streams that could not be read; or the first failure that is not of a stream, as of the log or the projection, without the next upstreams.
async fn ingest_upstreams(engine: &Arc<Engine>, names: &[String], output: &dyn Output) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for upstream in names.iter().filter_map(|name| upstreams::by_name(name)) {
        if output.is_closed() {
            break;
        }
        failures.extend(ingest_upstream(engine, upstream, output).await?);
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::new(failures.join("; "))) }
}

/// Why a sync of stores requested nothing.
const NO_STORE_DUE: &str = "no store is due: each is polled when its interval_s has passed since its last poll";

/// Syncs an upstream, and waits until what it appended is projected. Returns why streams could not be read.
async fn ingest_upstream(engine: &Arc<Engine>, upstream: &'static dyn Upstream, output: &dyn Output) -> Result<Vec<String>, Failure> {
    let settings = engine.upstream_settings(upstream.manifest().name).map_err(failure)?;
    let synced_and_projected = async {
        let results = engine.runner.sync(upstream, &settings).await.map_err(failure)?;
        for stream in upstream.manifest().streams {
            engine.wait_projected(stream.topic).await.map_err(|error| Failure::from_error(&*error))?;
        }
        Ok(results)
    };
    let mut failures = Vec::new();
    let synced_and_projected = with_sync_progress(engine, output, upstream, synced_and_projected);
    let results = with_reports(engine, output, synced_and_projected).await?;
    if engine.is_serving {
        sync_supervisor::log_finished(&results);
    }
    for result in results {
        match result {
            Ok(outcome) => {
                let run = outcome.run;
                let counts = format!("{}: {} seen, {} appended, {} rejected", outcome.stream, run.seen, run.appended, run.rejected);
                let has_stores = settings.own.get::<ShopifyOptions>().is_some_and(|options| !options.stores.is_empty());
                let is_no_store_due = run.pages == 0 && has_stores;
                let reason = if is_no_store_due { NO_STORE_DUE } else { run.reason.as_str() };
                output.note(&if reason.is_empty() { counts } else { format!("{counts}; {reason}") });
            }
            Err(error) => failures.push(ingest::reason(&error)),
        }
    }
    Ok(failures)
}

async fn replay(engine: &Arc<Engine>, view: &str, output: &dyn Output) -> Result<(), Failure> {
    engine.check_projected(view)?;
    for service in engine.projector.services().iter().filter(|service| view == ALL || service.name() == view) {
        let task = format!("replay {}", service.name());
        let applied = with_progress(output, &task, |progress| async move { service.replay(&progress).await }).await?;
        output.note(&format!("{}: {applied} changes applied", service.name()));
    }
    Ok(())
}

/// Maps rejected records again, from the bytes that were stored with the rejection.
async fn replay_rejected(engine: &Arc<Engine>, output: &dyn Output) -> Result<(), Failure> {
    for (name, records) in export::read_rejected(&engine.parts).await.map_err(failure)? {
        let stream_of = |upstream: &&'static dyn Upstream| upstream.manifest().streams.iter().find(|stream| stream.name == name);
        let Some((upstream, stream)) = upstreams::ALL.iter().find_map(|upstream| Some((*upstream, stream_of(upstream)?))) else {
            output.note(&format!("{name}: no upstream of this version has this stream"));
            continue;
        };
        let settings = engine.upstream_settings(upstream.manifest().name).map_err(failure)?;
        let rejected = records.len();
        let accepted_and_projected = async {
            let accepted = engine.runner.retry_rejected(upstream, stream, &settings, records).await.map_err(failure)?;
            engine.wait_projected(stream.topic).await.map_err(|error| Failure::from_error(&*error))?;
            Ok(accepted)
        };
        let accepted = with_reports(engine, output, accepted_and_projected).await?;
        output.note(&format!("{name}: {rejected} rejected records, {accepted} accepted now"));
    }
    Ok(())
}

async fn replay_parked(engine: &Arc<Engine>, output: &dyn Output) -> Result<(), Failure> {
    for service in engine.projector.services() {
        let retried = service.retry_parked().await.map_err(failure)?;
        let parked = service.parked().await.map_err(failure)?;
        output.note(&format!("{}: {retried} retried, {parked} still parked", service.name()));
    }
    Ok(())
}

async fn redecide(engine: &Arc<Engine>, service: &str, output: &dyn Output) -> Result<(), Failure> {
    engine.check_projected(service)?;
    wait_caught_up(engine, output).await?;
    let service = engine.projector.service(service).map_err(failure)?;
    let task = format!("redecide {}", service.name());
    let appended = with_progress(output, &task, |progress| async move { service.redecide(&progress).await }).await?;
    output.note(&format!("{}: {appended} changes appended", service.name()));
    Ok(())
}

async fn export(engine: &Engine, topic: &str, format: &str, all: bool, output: &dyn Output) -> Result<(), Failure> {
    // An import decides undecided facts again, possibly with other results, so none may be left.
    wait_caught_up(engine, output).await?;
    let task = format!("export {topic}");
    let progress = |done, total| output.progress(&task, done, total);
    let mut write = |bytes: &[u8]| {
        output.bytes(bytes);
        !output.is_closed()
    };
    if format == RECORDS {
        let topics: Vec<&'static Topic> = transfer::topics().filter(|known| topic == ALL || topic == known.name).collect();
        return transfer::export(&*engine.log, &topics, progress, &mut write).await.map_err(failure);
    }
    let (Some(topic), Some(format)) = (topics::by_name(topic), Format::from_name(format)) else { return Ok(()) };
    export::export(&engine.parts, topic, format, all, progress, &mut write).await.map_err(failure)
}

/// Exports the current records of a service.
async fn export_current(engine: &Engine, service: &str, format: &str, output: &dyn Output) -> Result<(), Failure> {
    engine.check_projected(service)?;
    wait_caught_up(engine, output).await?;
    let registration = services::registered().iter().find(|registration| registration.service.name == service);
    let (Some(table), Some(format)) = (registration.and_then(|found| found.table.as_ref()), Format::from_name(format)) else {
        return Ok(());
    };
    let task = format!("export {service}");
    let mut write = |bytes: &[u8]| {
        output.bytes(bytes);
        !output.is_closed()
    };
    let mut rows = table.current(&*engine.context.store, engine.context.clock.today()).await.map_err(failure)?;
    let total = rows.remaining();
    let mut writer = table_file::writer(format, table.columns(), &mut write).map_err(failure)?;
    loop {
        let batch = rows.next().await.map_err(failure)?;
        if batch.is_empty() {
            break;
        }
        for row in batch {
            if !writer.row(row).map_err(failure)? {
                return Ok(());
            }
        }
        output.progress(&task, total - rows.remaining(), total);
    }
    writer.finish().map_err(failure)
}

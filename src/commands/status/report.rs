//! Collects the status. Its JSON is what `highwater status --json` prints.

use event_log::volume::volume;
use operation::context::Part;
use operation::signing_state::SigningState;
use schemas::clock::rfc3339;
use schemas::reason::reason;
use schemas::topics::{self, TopicKind};
use schemas::views::engine::{RUNS, RunRow, VIEW as ENGINE_VIEW};
use serde::Serialize;
use services::Disabled;
use transparency::witness::{self, CosignatureStatus};
use view_store::View;

use super::super::receipts;
use crate::engine::{Engine, enabled_upstreams};
use crate::failure::{Failure, failure};
use crate::health::BEHIND_LOG_MAX_MS;
use crate::witnesses;

/// The days of a year.
const DAYS_A_YEAR: u64 = 365;

/// The status. Times are RFC 3339, or empty if there is none.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// Whether nothing is stopped or parked.
    #[serde(rename = "ok")]
    pub(super) is_ok: bool,
    /// What is stopped or parked, a sentence each.
    pub(super) problems: Vec<String>,
    pub(super) upstreams: Vec<Stream>,
    pub(super) topics: Vec<TopicSize>,
    pub(super) views: Vec<ViewLag>,
    /// Why the log or the view store accepts nothing, and a clock that is before the last record.
    pub(super) unavailable: Vec<String>,
    /// Views that are not served while they are rebuilt.
    pub(super) rebuilt_views: Vec<RebuiltView>,
    pub(super) refused_signatures: Vec<RefusedSignature>,
    pub(super) witnesses: Vec<Cosignature>,
    /// The verifier key of this process as a witness; empty if it is none.
    pub(super) witness_key: String,
    pub(super) services: Vec<ServiceProgress>,
    pub(super) disabled_services: Vec<DisabledService>,
}

/// The last run of a stream.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stream {
    pub(super) stream: &'static str,
    /// Whether its upstream runs by schedule.
    pub(super) enabled: bool,
    /// The newest event of the run: `run_started`, `run_marked`, `run_finished` or `run_failed`; empty if there was no run.
    pub(super) state: String,
    /// When that event was recorded.
    pub(super) at: String,
    pub(super) last_finished: String,
    /// Seconds since then; null if no run has finished.
    pub(super) last_finished_age_s: Option<i64>,
    pub(super) seen: i64,
    pub(super) appended: i64,
    pub(super) rejected: i64,
    /// How many of the rejected records were rejected before, with the same bytes.
    pub(super) known_rejected: i64,
    /// Why the run failed, or a note about it.
    pub(super) reason: String,
}

/// The size of a topic.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TopicSize {
    pub(super) topic: &'static str,
    pub(super) records: u64,
    /// Records that are not in the latest-version index yet.
    pub(super) lag: u64,
    /// The bytes of its records as they were appended, by samples; left out unless they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// The bytes that a year adds, at the rate of the last 24 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_a_year: Option<u64>,
}

/// How far a view is behind the log.
#[derive(Debug, Serialize)]
pub(super) struct ViewLag {
    pub(super) view: &'static str,
    pub(super) lag: u64,
    /// Seconds since the oldest record that the view has not passed was appended.
    pub(super) seconds: u64,
}

/// A view that is not served while it is rebuilt.
#[derive(Debug, Serialize)]
pub(super) struct RebuiltView {
    pub(super) view: &'static str,
    pub(super) reason: String,
}

/// What the signer refuses to sign.
#[derive(Debug, Serialize)]
pub(super) struct RefusedSignature {
    /// The service whose checkpoints are not signed; empty if receipts and all checkpoints are not.
    pub(super) service: String,
    pub(super) reason: String,
}

/// What a witness has cosigned.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cosignature {
    pub(super) witness: String,
    pub(super) service: &'static str,
    /// Leaves of the newest checkpoint.
    pub(super) checkpoint: u64,
    /// Leaves of the newest checkpoint that it cosigned; null if it cosigned none.
    pub(super) cosigned: Option<u64>,
    pub(super) cosigned_at: String,
    pub(super) behind: bool,
    pub(super) reason: String,
}

/// The progress of a service.
#[derive(Debug, Serialize)]
pub(super) struct ServiceProgress {
    pub(super) service: &'static str,
    pub(super) seq: u64,
    /// When the last change was recorded.
    pub(super) recorded: String,
    pub(super) parked: u64,
}

/// A service that is disabled.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DisabledService {
    pub(super) service: &'static str,
    /// The service that decides from its changes, for which it is projected; empty if it is not projected.
    pub(super) needed_by: &'static str,
}

impl Report {
    /// Collects the status of an engine.
    pub(super) async fn collect(engine: &Engine) -> Result<Self, Failure> {
        let view = engine.store.live_to_project(&ENGINE_VIEW).await.map_err(failure)?;
        let mut report = Self {
            upstreams: streams(engine, &*view).await?,
            topics: topics(engine, &*view).await?,
            refused_signatures: refused_signatures(engine).await?,
            witnesses: witness::status(&engine.context).await?.into_iter().map(Cosignature::from).collect(),
            witness_key: witnesses::own_key(&engine.context).unwrap_or_default(),
            unavailable: unavailable(engine).await,
            disabled_services: engine.disabled.iter().map(DisabledService::from).collect(),
            rebuilt_views: engine.store.rebuilding().into_iter().map(|(view, reason)| RebuiltView { view, reason }).collect(),
            ..Self::default()
        };
        for lag in projector::lag::measure(&engine.parts).await.map_err(failure)? {
            report.views.push(ViewLag { view: lag.view, lag: lag.events, seconds: lag.seconds });
        }
        for service in engine.projector.services() {
            let checkpoint = service.checkpoint().await.map_err(failure)?;
            let parked = service.parked().await.map_err(failure)? as u64;
            let seq = checkpoint.seq.0;
            let recorded = if seq == 0 { String::new() } else { rfc3339(checkpoint.recorded_at_ms) };
            report.services.push(ServiceProgress { service: service.name(), seq, recorded, parked });
        }
        report.conclude();
        Ok(report)
    }

    /// Adds the bytes of topics.
    pub(super) async fn add_sizes(&mut self, engine: &Engine) -> Result<(), Failure> {
        let now_ms = engine.parts.clock.now_ms();
        for (size, topic) in self.topics.iter_mut().zip(topics::ALL) {
            let volume = volume(&*engine.log, topic, now_ms).await.map_err(failure)?;
            (size.bytes, size.bytes_a_year) = (Some(volume.bytes), Some(volume.day_bytes.saturating_mul(DAYS_A_YEAR)));
        }
        Ok(())
    }

    /// Names what needs attention.
    pub(super) fn conclude(&mut self) {
        let failed = self.upstreams.iter().filter(|stream| stream.enabled && stream.has_failed());
        let failed = failed.map(|Stream { stream, reason, .. }| format!("the newest run of {stream} failed: {reason}"));
        let parked = self.services.iter().filter(|service| service.parked > 0);
        let parked = parked.map(|ServiceProgress { service, parked, .. }| format!("{parked} keys of {service} are parked"));
        let refused = self.refused_signatures.iter().map(|RefusedSignature { service, reason }| match service.as_str() {
            "" => format!("receipts and checkpoints are not signed: {reason}"),
            service => format!("checkpoints of {service} are not signed: {reason}"),
        });
        let rebuilt = self.rebuilt_views.iter();
        let rebuilt = rebuilt.map(|RebuiltView { view, reason }| format!("view {view} is being rebuilt from the log: {reason}"));
        let unavailable = self.unavailable.iter().cloned();
        self.problems = unavailable.chain(failed).chain(parked).chain(refused).chain(rebuilt).collect();
        self.is_ok = self.problems.is_empty();
    }
}

impl From<&Disabled> for DisabledService {
    fn from(disabled: &Disabled) -> Self {
        Self { service: disabled.service, needed_by: disabled.needed_by.unwrap_or_default() }
    }
}

impl Stream {
    /// Whether the newest run failed.
    pub(super) fn has_failed(&self) -> bool {
        self.state == "run_failed"
    }
}

/// Why the log or the view store accepts nothing, and why recorded times do not advance.
async fn unavailable(engine: &Engine) -> Vec<String> {
    let log = engine.log.ready().await.err().map(|error| format!("the log accepts nothing: {}", reason(&error)));
    let store = engine.store.ready().await.err().map(|error| format!("the view store accepts nothing: {}", reason(&error)));
    let behind = engine.clock_guard.behind_ms().filter(|(behind_ms, _)| *behind_ms > BEHIND_LOG_MAX_MS).map(|(behind_ms, last_ms)| {
        format!("recorded times do not advance: the clock is {} s before the last record ({})", behind_ms / 1_000, rfc3339(last_ms))
    });
    log.into_iter().chain(store).chain(behind).collect()
}

/// The last run of each stream.
async fn streams(engine: &Engine, view: &dyn View) -> Result<Vec<Stream>, Failure> {
    let now_ms = engine.parts.clock.now_ms();
    let enabled: Vec<&str> = enabled_upstreams(&engine.config).map(|upstream| upstream.manifest().name).collect();
    let mut all = Vec::new();
    for manifest in upstreams::ALL.iter().map(|upstream| upstream.manifest()) {
        for stream in manifest.streams {
            let row = view.get(&RUNS, &schemas::key![stream.name]).await.map_err(failure)?;
            let row: Option<RunRow> = row.map(|row| serde_json::from_slice(&row)).transpose().map_err(failure)?;
            let stream = Stream { stream: stream.name, enabled: enabled.contains(&manifest.name), ..Stream::default() };
            all.push(match row {
                Some(row) => stream.with_run(row, now_ms),
                None => stream,
            });
        }
    }
    Ok(all)
}

impl Stream {
    fn with_run(self, RunRow { kind, at_ms, run, last_finished_at_ms, .. }: RunRow, now_ms: i64) -> Self {
        let has_finished = last_finished_at_ms != 0;
        Self {
            state: kind,
            at: rfc3339(at_ms),
            last_finished: if has_finished { rfc3339(last_finished_at_ms) } else { String::new() },
            last_finished_age_s: has_finished.then(|| now_ms.saturating_sub(last_finished_at_ms) / 1_000),
            seen: run.seen,
            appended: run.appended,
            rejected: run.rejected,
            known_rejected: run.known_rejected,
            reason: run.reason,
            ..self
        }
    }
}

async fn topics(engine: &Engine, view: &dyn View) -> Result<Vec<TopicSize>, Failure> {
    let heads = view.checkpoint().await.map_err(failure)?;
    let mut all = Vec::new();
    for topic in topics::ALL {
        let (mut records, mut lag) = (0, 0);
        for partition in 0..topic.partitions {
            let end = engine.log.end(topic, partition).await.map_err(failure)?;
            records += end.0;
            if matches!(topic.kind, TopicKind::Facts | TopicKind::Commands) {
                lag += end.0.saturating_sub(heads.position(topic, partition).0);
            }
        }
        all.push(TopicSize { topic: topic.name, records, lag, bytes: None, bytes_a_year: None });
    }
    Ok(all)
}

/// What the signer refuses to sign, also if another process is the signer.
async fn refused_signatures(engine: &Engine) -> Result<Vec<RefusedSignature>, Failure> {
    engine.participant().exchange(&engine.context).await?;
    let all = receipts::signing_refusal(engine).await;
    let all = all.map(|refusal| RefusedSignature { service: String::new(), reason: refusal.reason().to_owned() });
    let trees = SigningState::of(&engine.context).refused_trees().0;
    Ok(all.into_iter().chain(trees.into_iter().map(|(service, reason)| RefusedSignature { service, reason })).collect())
}

impl From<CosignatureStatus> for Cosignature {
    fn from(CosignatureStatus { witness, service, size, cosigned, is_current, reason }: CosignatureStatus) -> Self {
        let at_ms = |(_, time_s): (u64, u64)| i64::try_from(time_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
        Self {
            witness,
            service,
            checkpoint: size,
            cosigned: cosigned.map(|(leaves, _)| leaves),
            cosigned_at: cosigned.map(|cosigned| rfc3339(at_ms(cosigned))).unwrap_or_default(),
            behind: !is_current,
            reason,
        }
    }
}

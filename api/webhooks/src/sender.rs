//! The sender: scans the changes of services for the targets, claims messages, posts them, and records the outcomes.
//!
//! It works in rounds: the outcomes and claims of all targets are appended together and awaited together, so that the cost of a round does not
//! depend on the number of targets. The state of a target is always read back from the log's own fold, never assumed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use access::append::append_commands;
use futures_util::{StreamExt as _, stream};
use operation::context::{Context, RetrySchedule, store_problem};
use operation::metrics;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::tables::ViewDef;
use schemas::topics::DELIVERIES;
use schemas::views::deliveries::{self, Attempt, Delivery, DeliveryCommand, DeliveryRequest, State, message_id};
use schemas::views::{accounts, engine, watches};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use view_store::Checkpoint;
use view_store::lease::Lease;

use super::post::DeliveryOutcome;
use super::schedule;
use super::targets::{Target, TargetChanges, Targets};
use crate::matchers::{Matchers, NextMessage, WatchMatcher};
use crate::post::poster;

/// How often a standby sender tries to take over the delivery lease, and how often the active sender runs a round without being woken.
const LEASE_POLL_INTERVAL: Duration = Duration::from_secs(4);
/// How many messages may be in flight and how many may be queued. Healthy targets, whose last message was accepted, have their own slots, so that
/// they do not wait for failing targets.
const HEALTHY_CONCURRENCY: (usize, usize) = (384, 1_152);
const FAILING_CONCURRENCY: (usize, usize) = (96, 288);
/// How many messages to slow receivers may be in flight in addition. With all of these, a process uses half of its usual limit of file descriptors.
const SLOW_CONCURRENCY: usize = 192;
/// How many messages are claimed per round.
const CLAIMS_PER_ROUND_MAX: usize = 2_000;
/// How many targets are searched for their next message at the same time.
const CONCURRENT_SEARCHES_MAX: usize = 16;
/// The pause after a round, and after a round that failed.
const ROUND_PAUSE: Duration = Duration::from_millis(20);
const FAILED_ROUND_PAUSE: Duration = Duration::from_secs(1);
/// The shortest pause before the next round while due messages wait for a slot.
const NO_SLOT_PAUSE: Duration = Duration::from_millis(100);
/// How long a new sender waits for the commands of earlier ones: less than the lease lasts.
const EARLIER_COMMANDS_TIMEOUT: Duration = Duration::from_secs(4);
/// How long one round scans new changes.
const SCAN_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a target is left out after an internal error, in milliseconds.
const BACK_OFF_MS: i64 = 15_000;
/// A target that takes longer than this to answer shares slots with failing targets.
const SLOW_RESPONSE: Duration = Duration::from_secs(2);
/// How long shutdown waits for messages in flight. A message without a response by then is sent again at the next start.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends webhooks until the server stops, while this process holds the lease.
pub async fn run(ctx: Arc<Context>, matchers: Matchers, holder: String) {
    let mut lease = Lease::new(&ctx.store, "webhooks".to_owned(), &holder);
    let views = views_of(&matchers);
    loop {
        // After a start, and after damage, views are first completed from the log.
        tokio::select! {
            () = ctx.store.served(&views) => {}
            () = ctx.stopped() => break,
        }
        let sent = async {
            if lease.renew().await.map_err(store_problem)? {
                Sender::open(&ctx, &matchers).await?.run(&mut lease).await;
            }
            Ok::<(), Problem>(())
        };
        if let Err(problem) = sent.await {
            tracing::warn!(reason = problem.detail, "webhooks cannot be sent, will retry");
        }
        // Only the lease holder reports the state of the targets.
        metrics::set_webhook_targets(0, 0, 0, 0, 0);
        tokio::select! {
            () = tokio::time::sleep(LEASE_POLL_INTERVAL) => {}
            () = ctx.stopped() => break,
        }
    }
    lease.release().await;
}

/// The names of the views that a sender reads.
fn views_of(matchers: &Matchers) -> Vec<&'static str> {
    let own = [engine::VIEW.name, accounts::VIEW.name, watches::TABLES.view.name, deliveries::TABLES.view.name];
    matchers.all().iter().map(|matcher| matcher.source().view.name).chain(own).collect()
}

/// Waits until the commands that another sender appended, or this process before it was killed, are decided. Otherwise a message whose outcome is
/// recorded, but not decided yet, would be sent again, and its second outcome would change nothing.
async fn wait_for_earlier_commands(ctx: &Context) -> Result<(), Problem> {
    let unavailable = |detail: &str| Problem::new(ErrorCode::Unavailable, detail.to_owned()).retry_after(1);
    let end = ctx.log.end(&DELIVERIES, 0).await.map_err(|error| {
        tracing::debug!(error = &error as &dyn std::error::Error, "the end of the topic of deliveries cannot be read");
        unavailable("the log cannot be read now")
    })?;
    let passed = |at: &Checkpoint| at.position(&DELIVERIES, 0) >= end;
    let waited = ctx.wait_for(deliveries::TABLES.view, EARLIER_COMMANDS_TIMEOUT, passed).await?;
    waited.map(drop).ok_or_else(|| unavailable("commands of an earlier sender are not projected yet"))
}

/// The watches of one service, and the last change that was scanned for all of them.
struct ServiceScan {
    matcher: Box<dyn WatchMatcher>,
    seen: Seq,
}

/// The result of a delivery attempt, and how long it took.
struct DeliveryResult {
    id: String,
    message: String,
    /// `None` if an internal error prevented the attempt.
    outcome: Option<DeliveryOutcome>,
    duration: Duration,
}

/// Slots for messages in flight, and the queue before them. A target that finds the queue full is tried again in a later round.
struct DeliverySlots {
    in_flight: Arc<Semaphore>,
    queue: Arc<Semaphore>,
}

impl DeliverySlots {
    fn new((in_flight, queued): (usize, usize)) -> Self {
        Self { in_flight: Arc::new(Semaphore::new(in_flight)), queue: Arc::new(Semaphore::new(in_flight + queued)) }
    }
}

struct Sender {
    ctx: Arc<Context>,
    targets: Targets,
    scans: Vec<ServiceScan>,
    matchers: Matchers,
    /// The outcomes of messages that are to be recorded.
    outcomes: Vec<(String, DeliveryCommand)>,
    results: mpsc::UnboundedReceiver<DeliveryResult>,
    result_sender: mpsc::UnboundedSender<DeliveryResult>,
    healthy: DeliverySlots,
    failing: DeliverySlots,
    slow: Arc<Semaphore>,
    in_flight: JoinSet<()>,
    woken: Arc<Notify>,
    /// Tasks that notify `woken`; dropped with the sender.
    _wakers: JoinSet<()>,
}

impl Sender {
    async fn open(ctx: &Arc<Context>, matchers: &Matchers) -> Result<Self, Problem> {
        // Fails early if nothing can be posted from here, before anything is claimed.
        poster(ctx).await?;
        wait_for_earlier_commands(ctx).await?;
        let targets = Targets::read(ctx).await?;
        let mut scans = Vec::new();
        for matcher in matchers.all() {
            let view = ctx.live(matcher.source().view).await?;
            let seen = view.checkpoint().await.map_err(store_problem)?.seq;
            scans.push(ServiceScan { matcher, seen });
        }
        let (woken, mut wakers) = (Arc::new(Notify::new()), JoinSet::new());
        let views = scans.iter().map(|scan| scan.matcher.source().view).chain([watches::TABLES.view, deliveries::TABLES.view]);
        for view in views.collect::<Vec<&'static ViewDef>>() {
            wakers.spawn(wake_on_changes(Arc::clone(ctx), view, Arc::clone(&woken)));
        }
        let (result_sender, results) = mpsc::unbounded_channel();
        Ok(Self {
            ctx: Arc::clone(ctx),
            targets,
            scans,
            matchers: matchers.clone(),
            outcomes: Vec::new(),
            results,
            result_sender,
            healthy: DeliverySlots::new(HEALTHY_CONCURRENCY),
            failing: DeliverySlots::new(FAILING_CONCURRENCY),
            slow: Arc::new(Semaphore::new(SLOW_CONCURRENCY)),
            in_flight: JoinSet::new(),
            woken,
            _wakers: wakers,
        })
    }

    /// Sends until the lease is lost or the server stops.
    async fn run(mut self, lease: &mut Lease) {
        let ctx = Arc::clone(&self.ctx);
        loop {
            // If the log or the store is unavailable, outcomes are held in memory and nothing is sent.
            let round = async {
                if !lease.renew().await.map_err(store_problem)? {
                    return Ok(false);
                }
                tokio::select! {
                    round = self.run_round() => round.map(|()| true),
                    () = lease.lost() => Ok(false),
                }
            };
            let is_done = match round.await {
                Ok(true) => true,
                Ok(false) => return,
                Err::<bool, Problem>(problem) => {
                    tracing::warn!(reason = problem.detail, "webhooks cannot be sent, will retry");
                    false
                }
            };
            tokio::select! {
                () = tokio::time::sleep(if is_done { ROUND_PAUSE } else { FAILED_ROUND_PAUSE }) => {}
                () = ctx.stopped() => break,
            }
            if !is_done {
                continue;
            }
            let wait = self.next_due().min(LEASE_POLL_INTERVAL);
            tokio::select! {
                () = self.woken.notified() => {}
                result = self.results.recv() => self.take_results(result),
                () = tokio::time::sleep(wait) => {}
                () = ctx.stopped() => break,
            }
        }
        let finished = async { while self.in_flight.join_next().await.is_some() {} };
        // Messages without a recorded outcome are sent again after the restart.
        drop(tokio::time::timeout(SHUTDOWN_TIMEOUT, finished).await);
        if let Err(problem) = self.record(Vec::new()).await {
            tracing::warn!(reason = problem.detail, "webhook outcomes are not recorded; the messages will be sent again");
        }
    }

    async fn run_round(&mut self) -> Result<(), Problem> {
        self.targets.follow(&self.ctx).await?;
        self.update_matchers();
        self.scan_changes().await?;
        let claims = self.next_claims().await;
        self.record(claims).await?;
        self.send_due();
        self.update_metrics();
        Ok(())
    }

    /// Adds new targets to the matchers and removes deleted targets.
    fn update_matchers(&mut self) {
        let TargetChanges { added, removed } = std::mem::take(&mut self.targets.changed);
        for watch in added {
            if !self.ctx.settings.serves(&watch.service) {
                tracing::debug!(id = watch.id, service = watch.service, "a webhook waits: its service is disabled");
                self.targets.all.remove(&watch.id);
                continue;
            }
            let scan = self.scans.iter_mut().find(|scan| scan.matcher.source().service == watch.service);
            if !scan.is_some_and(|scan| scan.matcher.add(&watch)) {
                tracing::error!(id = watch.id, service = watch.service, "a watch with a webhook cannot be read");
                self.targets.all.remove(&watch.id);
            }
        }
        for id in removed {
            for scan in &mut self.scans {
                scan.matcher.remove(&id);
            }
        }
    }

    /// Scans new changes of the services, for a limited time.
    async fn scan_changes(&mut self) -> Result<(), Problem> {
        let begun = Instant::now();
        for ServiceScan { matcher, seen } in &mut self.scans {
            let view = self.ctx.live(matcher.source().view).await?;
            let upto = view.checkpoint().await.map_err(store_problem)?.seq;
            while *seen < upto {
                if begun.elapsed() > SCAN_TIME_MAX {
                    self.woken.notify_one();
                    return Ok(());
                }
                let targets = &self.targets.all;
                let is_waiting = |id: &str| targets.get(id).is_some_and(|target| !target.may_have_changes);
                // Changes of one service that cannot be read must not stop the other services.
                let Ok((matching, to)) = matcher.matching_watches(&self.ctx, Arc::clone(&view), *seen, upto, &is_waiting).await else {
                    break;
                };
                for id in matching {
                    if let Some(target) = self.targets.all.get_mut(&id) {
                        target.scanned = target.scanned.max(*seen);
                        target.may_have_changes = true;
                    }
                }
                *seen = to;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Finds the next messages of the targets that have none in flight.
    async fn next_claims(&mut self) -> Vec<(String, DeliveryCommand)> {
        let now_ms = self.ctx.clock.now_ms();
        let is_due = |target: &Target| {
            let is_free = target.at.state == State::Idle && !target.sending;
            target.may_have_changes && is_free && target.back_off_until <= now_ms && !target.is_early(now_ms)
        };
        let mut waiting: Vec<(String, String, Seq, Option<Seq>)> = self
            .targets
            .all
            .iter()
            .filter(|(_, target)| is_due(target))
            .map(|(id, target)| (id.clone(), target.watch.service.clone(), target.delivered_seq(), target.range_end()))
            .collect();
        if waiting.len() > CLAIMS_PER_ROUND_MAX {
            // A random start, so that every target gets a turn.
            let first = rand::random_range(0..waiting.len());
            waiting.rotate_left(first);
            waiting.truncate(CLAIMS_PER_ROUND_MAX);
            self.woken.notify_one();
        }
        let (ctx, all) = (&self.ctx, &self.scans);
        let searches = waiting.into_iter().map(|(id, service, delivered_seq, end)| async move {
            let Some(ServiceScan { matcher, seen }) = all.iter().find(|scan| scan.matcher.source().service == service) else {
                return (id, delivered_seq, Ok(NextMessage::NoneUpTo(delivered_seq)));
            };
            let upto = end.unwrap_or(*seen);
            let next =
                if delivered_seq < upto { matcher.next(ctx, &id, delivered_seq, upto).await } else { Ok(NextMessage::NoneUpTo(upto)) };
            (id, *seen, next)
        });
        let found: Vec<(String, Seq, Result<NextMessage, Problem>)> =
            stream::iter(searches).buffer_unordered(CONCURRENT_SEARCHES_MAX).collect().await;
        let mut claims = Vec::new();
        for (id, seen, next) in found {
            let Some(target) = self.targets.all.get_mut(&id) else { continue };
            let turn = Some(target.at.turn);
            match next {
                Ok(NextMessage::NoneUpTo(to)) if target.range_end().is_some_and(|end| to >= end) => {
                    let passed = DeliveryRequest::Passed { upto: target.at.range_end, turn };
                    claims.push((id, command_for(&target.at, passed)));
                }
                Ok(NextMessage::NoneUpTo(to)) => {
                    target.scanned = to;
                    target.may_have_changes = to < seen;
                    if target.may_have_changes {
                        self.woken.notify_one();
                    }
                }
                Ok(NextMessage::Span(first, last)) => {
                    let after = Seq(first.0.saturating_sub(1));
                    let claim = DeliveryRequest::Claim { message: message_id(&id, after, last), after, upto: last, turn };
                    claims.push((id, command_for(&target.at, claim)));
                }
                Ok(NextMessage::NotBefore(due_ms)) => target.not_before = Some((target.delivered_seq(), due_ms)),
                // The reason was logged where the error happened.
                Err(_) => target.back_off_until = now_ms + BACK_OFF_MS,
            }
        }
        claims
    }

    /// Takes the results of delivery attempts.
    fn take_results(&mut self, result: Option<DeliveryResult>) {
        let (mut next, now_ms) = (result, self.ctx.clock.now_ms());
        while let Some(DeliveryResult { id, message, outcome, duration }) = next {
            if let Some(target) = self.targets.all.get_mut(&id) {
                target.slow = duration > SLOW_RESPONSE;
                match outcome.filter(|outcome| !matches!(outcome, DeliveryOutcome::NotSent(_))) {
                    Some(outcome) => {
                        metrics::count_delivery(&target.watch.service, outcome.label());
                        let request =
                            outcome_request(&self.ctx.settings.webhook_retries, &target.at, message, &outcome, now_ms, rand::random());
                        self.outcomes.push((id, command_for(&target.at, request)));
                    }
                    None => (target.sending, target.back_off_until) = (false, now_ms + BACK_OFF_MS),
                }
            }
            next = self.results.try_recv().ok();
        }
    }

    /// Appends claims and outcomes, and reads the state changes that follow from them.
    async fn record(&mut self, claims: Vec<(String, DeliveryCommand)>) -> Result<(), Problem> {
        let next = self.results.try_recv().ok();
        self.take_results(next);
        if claims.is_empty() && self.outcomes.is_empty() {
            return Ok(());
        }
        // One command per target: a target with a claim is idle, a target with an outcome is not. Outcomes are held until they are recorded.
        let all: Vec<(String, DeliveryCommand)> = self.outcomes.iter().cloned().chain(claims).collect();
        let applied = append_commands(&self.ctx, deliveries::TABLES.view, &all).await?;
        let mut outcomes = applied.iter();
        self.outcomes.retain(|_| !outcomes.next().is_some_and(|is_applied| *is_applied));
        let mut recorded = Vec::with_capacity(all.len());
        for ((id, command), _) in all.into_iter().zip(applied).filter(|(_, is_applied)| *is_applied) {
            let Some(target) = self.targets.all.get_mut(&id) else { continue };
            let (verb, attempt) = (command.request.verb().to_owned(), command.request.attempt());
            target.sending &= attempt.is_none();
            tracing::debug!(id, verb, status = attempt.map_or(0, |attempt| attempt.status), "webhook command recorded");
            recorded.push((id, verb, target.at.clone()));
        }
        self.targets.follow(&self.ctx).await?;
        self.update_matchers();
        let now_ms = self.ctx.clock.now_ms();
        for (id, verb, before) in recorded {
            if let Some(target) = self.targets.all.get_mut(&id).filter(|target| target.at == before) {
                tracing::error!(id, verb, "a recorded command did not change the webhook's state, will retry later");
                target.back_off_until = now_ms + BACK_OFF_MS;
            }
        }
        // Claims and messages that are possible now should not wait for the next poll.
        self.woken.notify_one();
        Ok(())
    }

    /// Starts posting the messages that are due.
    fn send_due(&mut self) {
        while let Some(ended) = self.in_flight.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "webhook delivery task failed");
            }
        }
        let now_ms = self.ctx.clock.now_ms();
        let due = self.targets.all.iter().filter_map(|(id, target)| Some((due_at(target)?, id.clone())));
        let mut due: Vec<(i64, String)> = due.filter(|(due_at, _)| *due_at <= now_ms).collect();
        // Longest-waiting first.
        due.sort_unstable();
        for (_, id) in due {
            let Some(target) = self.targets.all.get_mut(&id) else { continue };
            let is_healthy = target.at.failing_since == 0 && !target.slow;
            let DeliverySlots { in_flight, queue } = if is_healthy { &self.healthy } else { &self.failing };
            let Ok(queued) = Arc::clone(queue).try_acquire_owned() else { continue };
            target.sending = true;
            let may_send = Arc::clone(in_flight);
            let (ctx, matchers, result_sender, at) =
                (Arc::clone(&self.ctx), self.matchers.clone(), self.result_sender.clone(), target.at.clone());
            let (watch, gone, slow) = (Arc::clone(&target.watch), Arc::clone(&target.gone), Arc::clone(&self.slow));
            self.in_flight.spawn(async move {
                let Ok(mut slot) = may_send.acquire_owned().await else { return };
                if gone.load(Ordering::Relaxed) {
                    return;
                }
                let begun = Instant::now();
                let mut posted = std::pin::pin!(async {
                    let Some(body) = matchers.matcher_of(&watch)?.body(&ctx, &watch, &at).await? else {
                        return Ok(DeliveryOutcome::Empty);
                    };
                    poster(&ctx).await?.send(&ctx, &watch, &at.message, body).await
                });
                let outcome = match tokio::time::timeout(SLOW_RESPONSE, &mut posted).await {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        // A slow delivery moves to a slot for slow deliveries, if one is free.
                        if let Ok(slow_slot) = slow.try_acquire_owned() {
                            slot = slow_slot;
                        }
                        posted.await
                    }
                };
                drop((slot, queued));
                let outcome =
                    outcome.inspect_err(|problem| tracing::warn!(id, reason = problem.detail, "a webhook message could not be rendered"));
                drop(result_sender.send(DeliveryResult {
                    id,
                    message: at.message.clone(),
                    outcome: outcome.ok(),
                    duration: begun.elapsed(),
                }));
            });
        }
    }

    /// How long until the next message is due. A message that is already due waits for a slot, and its release wakes the sender.
    fn next_due(&self) -> Duration {
        let now_ms = self.ctx.clock.now_ms();
        let due = self.targets.all.values().filter_map(due_at).min();
        let wait = due.map(|due_at| u64::try_from(due_at.saturating_sub(now_ms)).unwrap_or(0));
        wait.map_or(LEASE_POLL_INTERVAL, |wait| Duration::from_millis(wait).max(NO_SLOT_PAUSE))
    }

    /// Updates the metrics of the targets.
    fn update_metrics(&self) {
        let (mut failing, mut disabled, mut oldest_ms) = (0, 0, 0);
        let now_ms = self.ctx.clock.now_ms();
        for Target { at, .. } in self.targets.all.values() {
            if at.state == State::Claimed {
                oldest_ms = oldest_ms.max(now_ms.saturating_sub(at.claimed_at));
            }
            match at.state {
                State::Disabled => disabled += 1,
                _ if at.failing_since != 0 => failing += 1,
                _ => {}
            }
        }
        let oldest_s = usize::try_from(oldest_ms / 1_000).unwrap_or(0);
        metrics::set_webhook_targets(1, self.targets.all.len() - failing - disabled, failing, disabled, oldest_s);
    }
}

/// When a target's message is to be sent next, if it has one.
fn due_at(target: &Target) -> Option<i64> {
    let is_waiting = target.at.state == State::Claimed && !target.sending;
    is_waiting.then(|| target.at.due_at.max(target.back_off_until))
}

/// A command for the account and service of a target.
fn command_for(at: &Delivery, request: DeliveryRequest) -> DeliveryCommand {
    DeliveryCommand { account: at.account.clone(), service: at.service.clone(), request }
}

/// The request that records the outcome of an attempt to send a message.
fn outcome_request(
    retries: &RetrySchedule,
    at: &Delivery,
    message: String,
    outcome: &DeliveryOutcome,
    now_ms: i64,
    random: f64,
) -> DeliveryRequest {
    let attempt = Attempt { message, status: i64::from(outcome.status()), reason: outcome.reason() };
    let ended = |why: String| Attempt { reason: format!("{}; {why}", attempt.reason), ..attempt.clone() };
    let retry_after = match outcome {
        DeliveryOutcome::Accepted(_) => return DeliveryRequest::Delivered(attempt),
        DeliveryOutcome::Gone => return DeliveryRequest::Disabled(attempt),
        DeliveryOutcome::Empty => return DeliveryRequest::Skipped(attempt),
        DeliveryOutcome::Rejected(_, retry_after) => *retry_after,
        DeliveryOutcome::NoResponse(_) | DeliveryOutcome::NotSent(_) => None,
    };
    let failing_ms = u64::try_from(now_ms - at.failing_at(now_ms)).unwrap_or_default();
    if Duration::from_millis(failing_ms) >= retries.disable_after {
        let hours = retries.disable_after.as_secs() / 3_600;
        return DeliveryRequest::Disabled(ended(format!("no message was accepted for {hours} hours")));
    }
    match schedule::pause(retries, at.attempts + 1, retry_after, random) {
        Some(pause) => {
            let due_at = now_ms.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX));
            DeliveryRequest::Failed { attempt, due_at }
        }
        None => DeliveryRequest::Skipped(ended(format!("skipped after {} attempts", at.attempts + 1))),
    }
}

/// Wakes the sender whenever a view changes.
async fn wake_on_changes(ctx: Arc<Context>, view: &'static ViewDef, woken: Arc<Notify>) {
    loop {
        let moved = async {
            let live = ctx.live(view).await?;
            let mut at = live.checkpoint().await.map_err(store_problem)?;
            loop {
                woken.notify_one();
                at = live.wait_past(&at).await.map_err(store_problem)?;
            }
        };
        let Err::<std::convert::Infallible, Problem>(_) = moved.await;
        // The view has a new generation, or the store is unavailable: try again.
        tokio::time::sleep(LEASE_POLL_INTERVAL / 4).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which command follows from each outcome: delivered, failed, skipped, disabled.
    #[test]
    fn outcomes() {
        const FIVE_DAYS_MS: i64 = 5 * 86_400_000;
        let at = Delivery { attempts: 1, failing_since: 1_000, attempted_at: FIVE_DAYS_MS, ..Delivery::default() };
        let request_after = |at: &Delivery, outcome: DeliveryOutcome, now_ms: i64| {
            outcome_request(&RetrySchedule::default(), at, "msg_1".to_owned(), &outcome, now_ms, 0.5)
        };
        let attempt = |status: i64, reason: &str| Attempt { message: "msg_1".to_owned(), status, reason: reason.to_owned() };
        assert_eq!(request_after(&at, DeliveryOutcome::Accepted(204), 5), DeliveryRequest::Delivered(attempt(204, "")));
        assert!(matches!(request_after(&at, DeliveryOutcome::Gone, 5), DeliveryRequest::Disabled(_)));
        assert!(matches!(request_after(&at, DeliveryOutcome::Empty, 5), DeliveryRequest::Skipped(_)));
        let due_at = |outcome: DeliveryOutcome| match request_after(&at, outcome, 5) {
            DeliveryRequest::Failed { due_at, attempt } => (attempt.status, due_at),
            request => panic!("{request:?}"),
        };
        assert_eq!(due_at(DeliveryOutcome::Rejected(503, Some(Duration::from_secs(60)))), (503, 60_005));
        let huge = DeliveryOutcome::Rejected(503, Some(Duration::from_secs(u64::MAX)));
        assert_eq!(due_at(huge), (503, 24 * 3_600_000 + 5), "a pause of any size is a day at most");
        assert_eq!(due_at(DeliveryOutcome::NoResponse("no")), (0, 20_005));
        let last = request_after(&Delivery { attempts: 12, ..at.clone() }, DeliveryOutcome::NoResponse("no"), 5);
        assert!(matches!(last, DeliveryRequest::Skipped(_)), "{last:?}");
        assert_eq!(
            request_after(&at, DeliveryOutcome::Rejected(500, None), 1_000 + FIVE_DAYS_MS),
            DeliveryRequest::Disabled(attempt(500, "the receiver answered 500; no message was accepted for 120 hours"))
        );
    }
}

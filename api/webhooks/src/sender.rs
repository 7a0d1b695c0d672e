//! The sender: looks at what services' changes mean for the targets, claims messages, has them posted, and records what became of them.
//!
//! It goes round: outcomes and claims of all targets are appended together and waited for together, so that a round costs the same however many
//! there are. What a target waits for is read back from the log's own fold, never assumed.

use crate::post::poster;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use schemas::position::Seq;
use schemas::tables::ViewDef;
use schemas::views::deliveries::{self, CLAIM, DELIVERED, DISABLED, Delivery, DeliveryCommand, FAILED, PASSED, SKIPPED, State, message_id};
use schemas::views::watches;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use view_store::lease::Lease;

use super::post::Said;
use super::schedule;
use super::targets::{Moved, Target, Targets};
use crate::matchers::{Matchers, Next, WatchMatcher};
use access::append::commands;
use operation::context::{Context, store_problem};
use operation::metrics;
use operation::problem::Problem;

/// How often a process that does not send looks whether it should, and one that does wakes without being woken.
const LOOKED_EVERY: Duration = Duration::from_secs(4);
/// Messages under way, and those that stand in line for a place: to targets that took the last one, and to those that did not. The ones do not wait
/// for the others.
const WELL: (usize, usize) = (384, 1_152);
const FAILING: (usize, usize) = (96, 288);
/// Messages that a target is slow to answer, beside them: with all of these a process has half of the descriptors that it usually may have.
const LINGERING_MAX: usize = 192;
/// Messages claimed in one round.
const CLAIMED_AT_ONCE: usize = 2_000;
/// Targets whose next message is looked for at once.
const LOOKED_FOR_AT_ONCE: usize = 16;
/// Between a round and the next one, and after one that failed.
const ROUND_PAUSE: Duration = Duration::from_millis(20);
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// How soon a round may follow one that left due messages without a place, if nobody leaves one.
const NO_PLACE_PAUSE: Duration = Duration::from_millis(100);
/// How long one round looks at what is new.
const LOOKED_FOR: Duration = Duration::from_secs(1);
/// How long a target is left alone after something of ours went wrong, in milliseconds.
const ASIDE_MS: i64 = 15_000;
/// A target that takes longer to answer no longer shares places with those that do not.
const SLOW: Duration = Duration::from_secs(2);
/// How long a stop waits for messages under way. One that is not answered by then is sent again at the next start.
const FINISHED_WITHIN: Duration = Duration::from_secs(5);

/// Sends until the server stops, while no other process does.
pub async fn run(ctx: Arc<Context>, matchers: Matchers, holder: String) {
    let mut lease = Lease::new(&ctx.store, "webhooks".to_owned(), &holder);
    loop {
        let sent = async {
            if lease.renew().await.map_err(store_problem)? {
                Sender::open(&ctx, &matchers).await?.run(&mut lease).await;
            }
            Ok::<(), Problem>(())
        };
        if let Err(problem) = sent.await {
            tracing::warn!(reason = problem.detail, "webhooks are not sent now");
        }
        // Whoever sends shows how they stand.
        metrics::targets(0, 0, 0, 0, 0);
        tokio::select! {
            () = tokio::time::sleep(LOOKED_EVERY) => {}
            () = ctx.stopped() => break,
        }
    }
    lease.release().await;
}

/// One service's watches, and the last change that was looked at for all of them.
struct Looked {
    matcher: Box<dyn WatchMatcher>,
    seen: Seq,
}

/// What a target said to a message, and how long it took.
struct Answered {
    id: String,
    message: String,
    /// Nothing where something of ours went wrong before it was asked.
    said: Option<Said>,
    took: Duration,
}

/// Places of messages under way, and the line before them: whoever finds no room in it is looked at again in a later round.
struct Places {
    under_way: Arc<Semaphore>,
    line: Arc<Semaphore>,
}

impl Places {
    fn new((under_way, in_line): (usize, usize)) -> Self {
        Self { under_way: Arc::new(Semaphore::new(under_way)), line: Arc::new(Semaphore::new(under_way + in_line)) }
    }
}

struct Sender {
    ctx: Arc<Context>,
    targets: Targets,
    looked: Vec<Looked>,
    matchers: Matchers,
    /// What became of messages, to be recorded.
    outcomes: Vec<(String, DeliveryCommand)>,
    answered: mpsc::UnboundedReceiver<Answered>,
    answers: mpsc::UnboundedSender<Answered>,
    well: Places,
    failing: Places,
    may_linger: Arc<Semaphore>,
    under_way: JoinSet<()>,
    woken: Arc<Notify>,
    /// Wake it; end with it.
    _wakers: JoinSet<()>,
}

impl Sender {
    async fn open(ctx: &Arc<Context>, matchers: &Matchers) -> Result<Self, Problem> {
        // Whether anything can be posted from here is found out before anything is claimed.
        poster(ctx).await?;
        let targets = Targets::read(ctx).await?;
        let mut looked = Vec::new();
        for matcher in matchers.all() {
            let view = ctx.live(matcher.source().view).await?;
            let seen = Seq(view.checkpoint().await.map_err(store_problem)?.seq);
            looked.push(Looked { matcher, seen });
        }
        let (woken, mut wakers) = (Arc::new(Notify::new()), JoinSet::new());
        let views = looked.iter().map(|looked| looked.matcher.source().view).chain([watches::TABLES.view, deliveries::TABLES.view]);
        for view in views.collect::<Vec<&'static ViewDef>>() {
            wakers.spawn(wake(Arc::clone(ctx), view, Arc::clone(&woken)));
        }
        let (answers, answered) = mpsc::unbounded_channel();
        Ok(Self {
            ctx: Arc::clone(ctx),
            targets,
            looked,
            matchers: matchers.clone(),
            outcomes: Vec::new(),
            answered,
            answers,
            well: Places::new(WELL),
            failing: Places::new(FAILING),
            may_linger: Arc::new(Semaphore::new(LINGERING_MAX)),
            under_way: JoinSet::new(),
            woken,
            _wakers: wakers,
        })
    }

    /// Sends until the lease is lost or the server stops.
    async fn run(mut self, lease: &mut Lease) {
        let ctx = Arc::clone(&self.ctx);
        loop {
            // Log and store may be away for a while: what was said meanwhile is kept, and nothing is sent.
            let gone_round = async {
                if !lease.renew().await.map_err(store_problem)? {
                    return Ok(false);
                }
                tokio::select! {
                    round = self.round() => round.map(|()| true),
                    () = lease.lost() => Ok(false),
                }
            };
            let is_done = match gone_round.await {
                Ok(true) => true,
                Ok(false) => return,
                Err::<bool, Problem>(problem) => {
                    tracing::warn!(reason = problem.detail, "webhooks are not sent now");
                    false
                }
            };
            tokio::select! {
                () = tokio::time::sleep(if is_done { ROUND_PAUSE } else { FAILED_PAUSE }) => {}
                () = ctx.stopped() => break,
            }
            if !is_done {
                continue;
            }
            let wait = self.next_due().min(LOOKED_EVERY);
            tokio::select! {
                () = self.woken.notified() => {}
                answer = self.answered.recv() => self.take(answer),
                () = tokio::time::sleep(wait) => {}
                () = ctx.stopped() => break,
            }
        }
        let finished = async { while self.under_way.join_next().await.is_some() {} };
        // What was not answered, or not recorded, in time is sent again.
        drop(tokio::time::timeout(FINISHED_WITHIN, finished).await);
        if let Err(problem) = self.record(Vec::new()).await {
            tracing::warn!(reason = problem.detail, "what became of messages to webhooks is not recorded");
        }
    }

    async fn round(&mut self) -> Result<(), Problem> {
        self.targets.follow(&self.ctx).await?;
        self.know();
        self.look().await?;
        let claims = self.claims().await;
        self.record(claims).await?;
        self.send();
        self.show();
        Ok(())
    }

    /// Adds new targets to the matchers and removes those that are gone.
    fn know(&mut self) {
        let Moved { come, gone } = std::mem::take(&mut self.targets.moved);
        for kept in come {
            let looked = self.looked.iter_mut().find(|looked| looked.matcher.source().service == kept.service);
            if !looked.is_some_and(|looked| looked.matcher.add(&kept)) {
                tracing::error!(id = kept.id, service = kept.service, "a watch with a webhook cannot be read");
                self.targets.all.remove(&kept.id);
            }
        }
        for id in gone {
            for looked in &mut self.looked {
                looked.matcher.remove(&id);
            }
        }
    }

    /// Looks at what came in the services, for a while.
    async fn look(&mut self) -> Result<(), Problem> {
        let begun = Instant::now();
        for Looked { matcher, seen } in &mut self.looked {
            let view = self.ctx.live(matcher.source().view).await?;
            let upto = Seq(view.checkpoint().await.map_err(store_problem)?.seq);
            while *seen < upto {
                if begun.elapsed() > LOOKED_FOR {
                    self.woken.notify_one();
                    return Ok(());
                }
                let targets = &self.targets.all;
                let waits = |id: &str| targets.get(id).is_some_and(|target| !target.behind);
                // What one service has that cannot be read keeps no other waiting.
                let Ok((concerned, to)) = matcher.concerned(&self.ctx, Arc::clone(&view), *seen, upto, &waits).await else { break };
                for id in concerned {
                    if let Some(target) = self.targets.all.get_mut(&id) {
                        target.looked = target.looked.max(*seen);
                        target.behind = true;
                    }
                }
                *seen = to;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// The next messages of those targets that wait for none.
    async fn claims(&mut self) -> Vec<(String, DeliveryCommand)> {
        let now_ms = self.ctx.clock.now_ms();
        let is_due = |target: &Target| target.behind && target.at.state == State::Idle && !target.sending && target.aside_until <= now_ms;
        let mut waiting: Vec<(String, String, Seq, Option<Seq>)> = self
            .targets
            .all
            .iter()
            .filter(|(_, target)| is_due(target))
            .map(|(id, target)| (id.clone(), target.kept.service.clone(), target.told(), target.range_end()))
            .collect();
        if waiting.len() > CLAIMED_AT_ONCE {
            // All have their turn.
            let first = rand::random_range(0..waiting.len());
            waiting.rotate_left(first);
            waiting.truncate(CLAIMED_AT_ONCE);
            self.woken.notify_one();
        }
        let (ctx, all) = (&self.ctx, &self.looked);
        let looked_for = waiting.into_iter().map(|(id, service, told, end)| async move {
            let Some(Looked { matcher, seen }) = all.iter().find(|looked| looked.matcher.source().service == service) else {
                return (id, told, Ok(Next::Nothing(told)));
            };
            let upto = end.unwrap_or(*seen);
            let next = if told < upto { matcher.next(ctx, &id, told, upto).await } else { Ok(Next::Nothing(upto)) };
            (id, *seen, next)
        });
        let found: Vec<(String, Seq, Result<Next, Problem>)> =
            stream::iter(looked_for).buffer_unordered(LOOKED_FOR_AT_ONCE).collect().await;
        let mut claims = Vec::new();
        for (id, seen, next) in found {
            let Some(target) = self.targets.all.get_mut(&id) else { continue };
            let made = DeliveryCommand { turn: target.at.turn + 1, ..own(&target.at) };
            match next {
                Ok(Next::Nothing(to)) if target.range_end().is_some_and(|end| to >= end) => {
                    let passed = DeliveryCommand { verb: PASSED.to_owned(), upto: target.at.range_end, ..made };
                    claims.push((id, passed));
                }
                Ok(Next::Nothing(to)) => {
                    target.looked = to;
                    target.behind = to < seen;
                    if target.behind {
                        self.woken.notify_one();
                    }
                }
                Ok(Next::Message(first, last)) => {
                    let [before, last] = [first.0.saturating_sub(1), last.0].map(|seq| i64::try_from(seq).unwrap_or(i64::MAX));
                    let message = message_id(&id, before, last);
                    let claim = DeliveryCommand { verb: CLAIM.to_owned(), message, after: before, upto: last, ..made };
                    claims.push((id, claim));
                }
                // The reason is logged where it was found.
                Err(_) => target.aside_until = now_ms + ASIDE_MS,
            }
        }
        claims
    }

    /// Takes what targets said.
    fn take(&mut self, answer: Option<Answered>) {
        let (mut next, now_ms) = (answer, self.ctx.clock.now_ms());
        while let Some(Answered { id, message, said, took }) = next {
            if let Some(target) = self.targets.all.get_mut(&id) {
                target.slow = took > SLOW;
                match said.filter(|said| !matches!(said, Said::Unasked(_))) {
                    Some(said) => {
                        metrics::posted(&target.kept.service, said.outcome());
                        self.outcomes.push((id, DeliveryCommand { message, ..became(&target.at, &said, now_ms, rand::random()) }));
                    }
                    None => (target.sending, target.aside_until) = (false, now_ms + ASIDE_MS),
                }
            }
            next = self.answered.try_recv().ok();
        }
    }

    /// Appends claims and outcomes, and reads on in what they moved.
    async fn record(&mut self, claims: Vec<(String, DeliveryCommand)>) -> Result<(), Problem> {
        let next = self.answered.try_recv().ok();
        self.take(next);
        if claims.is_empty() && self.outcomes.is_empty() {
            return Ok(());
        }
        // One command a target: what is claimed is idle, and what has an outcome is not. Outcomes stay here until they are recorded.
        let all: Vec<(String, DeliveryCommand)> = self.outcomes.iter().cloned().chain(claims).collect();
        let taken = commands(&self.ctx, deliveries::TABLES.view, &all).await?;
        let mut outcomes = taken.iter();
        self.outcomes.retain(|_| !outcomes.next().is_some_and(|is_taken| *is_taken));
        let mut recorded = Vec::with_capacity(all.len());
        for ((id, command), _) in all.into_iter().zip(taken).filter(|(_, is_taken)| *is_taken) {
            let Some(target) = self.targets.all.get_mut(&id) else { continue };
            if command.verb != CLAIM && command.verb != PASSED {
                target.sending = false;
            }
            tracing::debug!(id, verb = command.verb, status = command.status, "a message to a webhook");
            recorded.push((id, command.verb, target.at.clone()));
        }
        self.targets.follow(&self.ctx).await?;
        self.know();
        let now_ms = self.ctx.clock.now_ms();
        for (id, verb, before) in recorded {
            if let Some(target) = self.targets.all.get_mut(&id).filter(|target| target.at == before) {
                tracing::error!(id, verb, "what was recorded of a webhook moved nothing; it is left alone for a while");
                target.aside_until = now_ms + ASIDE_MS;
            }
        }
        // What can be claimed or sent now need not wait.
        self.woken.notify_one();
        Ok(())
    }

    /// Has the messages posted that are due.
    fn send(&mut self) {
        while let Some(ended) = self.under_way.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a message to a webhook was given up");
            }
        }
        let now_ms = self.ctx.clock.now_ms();
        let due = self.targets.all.iter().filter_map(|(id, target)| Some((due_at(target)?, id.clone())));
        let mut due: Vec<(i64, String)> = due.filter(|(due_at, _)| *due_at <= now_ms).collect();
        // Who has waited longest comes first.
        due.sort_unstable();
        for (_, id) in due {
            let Some(target) = self.targets.all.get_mut(&id) else { continue };
            let is_well = target.at.failing_since == 0 && !target.slow;
            let Places { under_way, line } = if is_well { &self.well } else { &self.failing };
            let Ok(in_line) = Arc::clone(line).try_acquire_owned() else { continue };
            target.sending = true;
            let may_send = Arc::clone(under_way);
            let (ctx, matchers, answers, at) = (Arc::clone(&self.ctx), self.matchers.clone(), self.answers.clone(), target.at.clone());
            let (kept, gone, may_linger) = (Arc::clone(&target.kept), Arc::clone(&target.gone), Arc::clone(&self.may_linger));
            self.under_way.spawn(async move {
                let Ok(mut place) = may_send.acquire_owned().await else { return };
                if gone.load(Ordering::Relaxed) {
                    return;
                }
                let begun = Instant::now();
                let mut posted = std::pin::pin!(async {
                    let body = matchers.body(&ctx, &kept, &at).await?;
                    poster(&ctx).await?.send(&ctx, &kept, &at.message, body).await
                });
                let said = match tokio::time::timeout(SLOW, &mut posted).await {
                    Ok(said) => said,
                    Err(_) => {
                        // Whoever takes longer keeps no other from its place while there are places to linger.
                        if let Ok(linger) = may_linger.try_acquire_owned() {
                            place = linger;
                        }
                        posted.await
                    }
                };
                drop((place, in_line));
                let said = said.inspect_err(|problem| tracing::warn!(id, reason = problem.detail, "a message could not be made"));
                drop(answers.send(Answered { id, message: at.message.clone(), said: said.ok(), took: begun.elapsed() }));
            });
        }
    }

    /// How long until a message is due. One that is due already finds no place: whoever leaves one says so.
    fn next_due(&self) -> Duration {
        let now_ms = self.ctx.clock.now_ms();
        let due = self.targets.all.values().filter_map(due_at).min();
        let wait = due.map(|due_at| u64::try_from(due_at.saturating_sub(now_ms)).unwrap_or(0));
        wait.map_or(LOOKED_EVERY, |wait| Duration::from_millis(wait).max(NO_PLACE_PAUSE))
    }

    /// Shows how the targets stand.
    fn show(&self) {
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
        metrics::targets(1, self.targets.all.len() - failing - disabled, failing, disabled, oldest_s);
    }
}

/// When a target's message is due, if one is to be sent.
fn due_at(target: &Target) -> Option<i64> {
    let waits = target.at.state == State::Claimed && !target.sending;
    waits.then(|| target.at.due_at.max(target.aside_until))
}

/// A command about a target.
fn own(at: &Delivery) -> DeliveryCommand {
    DeliveryCommand { account: at.account.clone(), service: at.service.clone(), ..DeliveryCommand::default() }
}

/// What follows from what a target said.
fn became(at: &Delivery, said: &Said, now_ms: i64, chance: f64) -> DeliveryCommand {
    let attempted = DeliveryCommand { status: i64::from(said.status()), reason: said.reason(), ..own(at) };
    let verb = |verb: &str, reason: Option<&str>| {
        let reason = reason.map_or_else(|| attempted.reason.clone(), |why| format!("{}; {why}", attempted.reason));
        DeliveryCommand { verb: verb.to_owned(), reason, ..attempted.clone() }
    };
    let asked = match said {
        Said::Taken(_) => return verb(DELIVERED, None),
        Said::Gone => return verb(DISABLED, None),
        Said::Refused(_, asked) => *asked,
        Said::Nothing(_) | Said::Unasked(_) => None,
    };
    if now_ms - at.failing_at(now_ms) >= schedule::FAILING_MAX_MS {
        return verb(DISABLED, Some("nothing was taken for five days"));
    }
    match schedule::pause(at.attempts + 1, asked, chance) {
        Some(pause) => {
            let due_at = now_ms.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX));
            DeliveryCommand { due_at, ..verb(FAILED, None) }
        }
        None => verb(SKIPPED, Some("passed over after three days")),
    }
}

/// Wakes the sender whenever a view moves.
async fn wake(ctx: Arc<Context>, view: &'static ViewDef, woken: Arc<Notify>) {
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
        // Another generation, or a store that is away: looked at again.
        tokio::time::sleep(LOOKED_EVERY / 4).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what follows from each answer: taken, later, passed over, disabled.
    #[test]
    fn outcomes() {
        let at = Delivery { attempts: 1, failing_since: 1_000, attempted_at: schedule::FAILING_MAX_MS, ..Delivery::default() };
        let of = |at: &Delivery, said: Said, now_ms: i64| became(at, &said, now_ms, 0.5);
        assert_eq!(of(&at, Said::Taken(204), 5).verb, DELIVERED);
        assert_eq!(of(&at, Said::Gone, 5).verb, DISABLED);
        let failed = of(&at, Said::Refused(503, Some(Duration::from_secs(60))), 5);
        assert_eq!((failed.verb.as_str(), failed.status, failed.due_at), (FAILED, 503, 60_005));
        let huge = of(&at, Said::Refused(503, Some(Duration::from_secs(u64::MAX))), 5);
        assert_eq!(huge.due_at, 24 * 3_600_000 + 5, "a pause of any size is a day at most");
        assert_eq!(of(&at, Said::Nothing("no"), 5).due_at, 20_005);
        assert_eq!(of(&Delivery { attempts: 12, ..at.clone() }, Said::Nothing("no"), 5).verb, SKIPPED);
        let ended = of(&at, Said::Refused(500, None), 1_000 + schedule::FAILING_MAX_MS);
        assert_eq!((ended.verb.as_str(), ended.reason.as_str()), (DISABLED, "it answered 500; nothing was taken for five days"));
    }
}

//! The sender: looks at what services' changes mean for the targets, claims messages, has them posted, and records what became of them.
//!
//! It goes round: outcomes and claims of all targets are appended together and waited for together, so that a round costs the same however many
//! there are. What a target waits for is read back from the log's own fold, never assumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use schemas::position::Seq;
use schemas::tables::ViewDef;
use schemas::views::deliveries::{self, CLAIM, DELIVERED, DISABLED, Delivery, DeliveryCommand, FAILED, SKIPPED, State, message_id};
use schemas::views::watches::{self, Kept};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use view_store::lease::Lease;

use super::lanes::{self, Lane, Next};
use super::post::{Message, Poster, Said};
use super::schedule;
use super::sign::SigningSecret;
use super::targets::{Moved, Target, Targets};
use crate::access::append::commands;
use crate::access::webhook::Sealing;
use crate::context::{Context, store_problem};
use crate::problem::Problem;
use crate::surfaces::metrics;

/// How often a process that does not send looks whether it should, and one that does wakes without being woken.
const LOOKED_EVERY: Duration = Duration::from_secs(4);
/// Messages under way to targets that took the last one, and to those that did not: the ones do not wait for the others.
const UNDER_WAY_MAX: usize = 512;
const UNDER_WAY_FAILING_MAX: usize = 128;
/// Messages claimed in one round.
const CLAIMED_AT_ONCE: usize = 2_000;
/// Targets whose next message is looked for at once.
const LOOKED_FOR_AT_ONCE: usize = 16;
/// How long a stop waits for messages under way. One that is not answered by then is sent again at the next start.
const FINISHED_WITHIN: Duration = Duration::from_secs(5);

/// Sends until the server stops, while no other process does.
pub async fn run(ctx: Arc<Context>, holder: String) {
    let poster = match Poster::new(ctx.settings.private_targets) {
        Ok(poster) => poster,
        Err(error) => return tracing::error!(%error, "webhooks are not sent: TLS cannot be set up"),
    };
    let mut lease = Lease::new(&ctx.store, "webhooks".to_owned(), &holder);
    loop {
        let sent = async {
            if lease.renew().await.map_err(store_problem)? {
                Sender::open(&ctx, poster.clone()).await?.run(&mut lease).await?;
            }
            Ok::<(), Problem>(())
        };
        if let Err(problem) = sent.await {
            tracing::warn!(reason = problem.detail, "webhooks are not sent now");
        }
        // Whoever sends shows how they stand.
        metrics::targets(0, 0, 0, 0);
        tokio::select! {
            () = tokio::time::sleep(LOOKED_EVERY) => {}
            () = ctx.stopped() => break,
        }
    }
    lease.release().await;
}

/// One service's lane, and the last change that was looked at for all of its targets.
struct Looked {
    lane: Box<dyn Lane>,
    seen: Seq,
}

struct Sender {
    ctx: Arc<Context>,
    poster: Poster,
    targets: Targets,
    lanes: Vec<Looked>,
    /// What became of messages, to be recorded.
    outcomes: Vec<(String, DeliveryCommand)>,
    answered: mpsc::UnboundedReceiver<(String, String, Said)>,
    answers: mpsc::UnboundedSender<(String, String, Said)>,
    may_send: Arc<Semaphore>,
    may_send_again: Arc<Semaphore>,
    under_way: JoinSet<()>,
    woken: Arc<Notify>,
    /// Wake it; end with it.
    _wakers: JoinSet<()>,
}

impl Sender {
    async fn open(ctx: &Arc<Context>, poster: Poster) -> Result<Self, Problem> {
        let (targets, moved) = Targets::read(ctx).await?;
        let mut lanes = Vec::new();
        for lane in lanes::all() {
            let view = ctx.live(lane.source().view).await?;
            let seen = Seq(view.checkpoint().await.map_err(store_problem)?.seq);
            lanes.push(Looked { lane, seen });
        }
        let (woken, mut wakers) = (Arc::new(Notify::new()), JoinSet::new());
        let views = lanes.iter().map(|looked| looked.lane.source().view).chain([watches::TABLES.view, deliveries::TABLES.view]);
        for view in views.collect::<Vec<&'static ViewDef>>() {
            wakers.spawn(wake(Arc::clone(ctx), view, Arc::clone(&woken)));
        }
        let (answers, answered) = mpsc::unbounded_channel();
        let mut this = Self {
            ctx: Arc::clone(ctx),
            poster,
            targets,
            lanes,
            outcomes: Vec::new(),
            answered,
            answers,
            may_send: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
            may_send_again: Arc::new(Semaphore::new(UNDER_WAY_FAILING_MAX)),
            under_way: JoinSet::new(),
            woken,
            _wakers: wakers,
        };
        this.know(moved);
        Ok(this)
    }

    /// Sends until the lease is lost or the server stops.
    async fn run(mut self, lease: &mut Lease) -> Result<(), Problem> {
        let ctx = Arc::clone(&self.ctx);
        loop {
            if !lease.renew().await.map_err(store_problem)? {
                return Ok(());
            }
            self.round().await?;
            let wait = self.next_due().min(LOOKED_EVERY);
            tokio::select! {
                () = self.woken.notified() => {}
                answer = self.answered.recv() => self.take(answer),
                () = tokio::time::sleep(wait) => {}
                () = ctx.stopped() => break,
            }
        }
        let finished = async { while self.under_way.join_next().await.is_some() {} };
        // What was not answered in time is sent again.
        drop(tokio::time::timeout(FINISHED_WITHIN, finished).await);
        self.record(Vec::new()).await
    }

    async fn round(&mut self) -> Result<(), Problem> {
        let moved = self.targets.follow(&self.ctx).await?;
        self.know(moved);
        self.look().await?;
        let claims = self.claims().await?;
        self.record(claims).await?;
        self.send();
        self.show();
        Ok(())
    }

    /// Tells the lanes which targets there are.
    fn know(&mut self, moved: Moved) {
        let lane_of = |lanes: &mut [Looked], service: &str| lanes.iter().position(|looked| looked.lane.source().service == service);
        for kept in moved.come {
            let known = lane_of(&mut self.lanes, &kept.service).is_some_and(|at| self.lanes[at].lane.add(&kept));
            if !known {
                tracing::error!(id = kept.id, service = kept.service, "a watch with a webhook cannot be read");
                self.targets.all.remove(&kept.id);
            }
        }
        for id in moved.gone {
            for looked in &mut self.lanes {
                looked.lane.remove(&id);
            }
        }
    }

    /// Looks at what came in the services.
    async fn look(&mut self) -> Result<(), Problem> {
        for Looked { lane, seen } in &mut self.lanes {
            let view = self.ctx.live(lane.source().view).await?;
            let upto = Seq(view.checkpoint().await.map_err(store_problem)?.seq);
            while *seen < upto {
                let (concerned, to) = lane.concerned(&self.ctx, Arc::clone(&view), *seen, upto).await?;
                for id in concerned {
                    if let Some(target) = self.targets.all.get_mut(&id).filter(|target| !target.behind) {
                        target.looked = target.looked.max(*seen);
                        target.behind = true;
                    }
                }
                *seen = to;
            }
        }
        Ok(())
    }

    /// The next messages of those targets that wait for none.
    async fn claims(&mut self) -> Result<Vec<(String, DeliveryCommand)>, Problem> {
        let waiting: Vec<(String, String, Seq)> = self
            .targets
            .all
            .iter()
            .filter(|(_, target)| target.behind && target.at.state == State::Idle && !target.sending)
            .take(CLAIMED_AT_ONCE)
            .map(|(id, target)| (id.clone(), target.kept.service.clone(), target.told()))
            .collect();
        let (ctx, lanes) = (&self.ctx, &self.lanes);
        let looked_for = waiting.into_iter().map(|(id, service, told)| async move {
            let Some(Looked { lane, seen }) = lanes.iter().find(|looked| looked.lane.source().service == service) else {
                return Ok((id, told, Next::Nothing(told)));
            };
            let next = lane.next(ctx, &id, told, *seen).await?;
            Ok::<_, Problem>((id, *seen, next))
        });
        let found: Vec<Result<(String, Seq, Next), Problem>> =
            stream::iter(looked_for).buffer_unordered(LOOKED_FOR_AT_ONCE).collect().await;
        let mut claims = Vec::new();
        for found in found {
            let (id, seen, next) = found?;
            let Some(target) = self.targets.all.get_mut(&id) else { continue };
            match next {
                Next::Nothing(to) => {
                    target.looked = to;
                    target.behind = to < seen;
                    if target.behind {
                        self.woken.notify_one();
                    }
                }
                Next::Upto(upto) => {
                    let upto = i64::try_from(upto.0).unwrap_or(i64::MAX);
                    let claim = DeliveryCommand { verb: CLAIM.to_owned(), after: target.at.done, upto, ..own(&target.at) };
                    let message = message_id(&id, claim.after, upto);
                    claims.push((id, DeliveryCommand { message, ..claim }));
                }
            }
        }
        Ok(claims)
    }

    /// Takes what a target said.
    fn take(&mut self, answer: Option<(String, String, Said)>) {
        let mut next = answer;
        while let Some((id, message, said)) = next {
            if let Some(target) = self.targets.all.get(&id) {
                metrics::posted(&target.kept.service, &said);
                let now_ms = self.ctx.clock.now_ms();
                self.outcomes.push((id, DeliveryCommand { message, ..became(&target.at, &said, now_ms, rand::random()) }));
            }
            next = self.answered.try_recv().ok();
        }
    }

    /// Appends claims and outcomes, and reads on in what they moved.
    async fn record(&mut self, claims: Vec<(String, DeliveryCommand)>) -> Result<(), Problem> {
        let next = self.answered.try_recv().ok();
        self.take(next);
        let outcomes = std::mem::take(&mut self.outcomes);
        if claims.is_empty() && outcomes.is_empty() {
            return Ok(());
        }
        // One command a target: what is claimed is idle, and what has an outcome is not.
        let all: Vec<(String, DeliveryCommand)> = outcomes.into_iter().chain(claims).collect();
        let taken = match commands(&self.ctx, deliveries::TABLES.view, &all).await {
            Ok(taken) => taken,
            Err(problem) => {
                // Outcomes are kept for the next time; claims are made anew.
                self.outcomes = all.into_iter().filter(|(_, command)| command.verb != CLAIM).collect();
                return Err(problem);
            }
        };
        let moved = self.targets.follow(&self.ctx).await?;
        self.know(moved);
        for ((id, command), is_taken) in all.into_iter().zip(taken) {
            if command.verb == CLAIM {
                continue;
            }
            if is_taken {
                if let Some(target) = self.targets.all.get_mut(&id) {
                    target.sending = false;
                }
            } else {
                self.outcomes.push((id, command));
            }
        }
        // What can be claimed or sent now need not wait.
        self.woken.notify_one();
        Ok(())
    }

    /// Has the messages posted that are due.
    fn send(&mut self) {
        while self.under_way.try_join_next().is_some() {}
        let now_ms = self.ctx.clock.now_ms();
        for (id, target) in &mut self.targets.all {
            let at = &target.at;
            if at.state != State::Claimed || at.due_at > now_ms || target.sending {
                continue;
            }
            target.sending = true;
            let message = Outgoing { kept: Arc::clone(&target.kept), at: at.clone(), gone: Arc::clone(&target.gone) };
            let may_send = if at.failing_since == 0 { &self.may_send } else { &self.may_send_again };
            let (ctx, poster, answers, may_send) = (Arc::clone(&self.ctx), self.poster.clone(), self.answers.clone(), Arc::clone(may_send));
            let id = id.clone();
            self.under_way.spawn(async move {
                let Ok(_permit) = may_send.acquire_owned().await else { return };
                if message.gone.load(Ordering::Relaxed) {
                    return;
                }
                let said = match message.post(&ctx, &poster).await {
                    Ok(said) => said,
                    Err(problem) => {
                        tracing::warn!(id, reason = problem.detail, "a message could not be made");
                        Said::Nothing("the message could not be made")
                    }
                };
                drop(answers.send((id, message.at.message, said)));
            });
        }
    }

    /// How long until a message is due.
    fn next_due(&self) -> Duration {
        let now_ms = self.ctx.clock.now_ms();
        let waits = |target: &&Target| target.at.state == State::Claimed && !target.sending;
        let due = self.targets.all.values().filter(waits).map(|target| target.at.due_at.saturating_sub(now_ms)).min();
        due.map_or(LOOKED_EVERY, |rest_ms| Duration::from_millis(u64::try_from(rest_ms).unwrap_or(0)))
    }

    /// Shows how the targets stand.
    fn show(&self) {
        let (mut failing, mut disabled, mut oldest_ms) = (0, 0, 0);
        let now_ms = self.ctx.clock.now_ms();
        for target in self.targets.all.values() {
            if target.at.state == State::Claimed {
                let since = if target.at.failing_since == 0 { target.at.due_at } else { target.at.failing_since };
                oldest_ms = oldest_ms.max(now_ms.saturating_sub(since));
            }
            match target.at.state {
                State::Disabled => disabled += 1,
                _ if target.at.failing_since != 0 => failing += 1,
                _ => {}
            }
        }
        let oldest_s = usize::try_from(oldest_ms / 1_000).unwrap_or(0);
        metrics::targets(self.targets.all.len() - failing - disabled, failing, disabled, oldest_s);
    }
}

/// A message that is to be posted.
struct Outgoing {
    kept: Arc<Kept>,
    at: Delivery,
    gone: Arc<AtomicBool>,
}

impl Outgoing {
    async fn post(&self, ctx: &Context, poster: &Poster) -> Result<Said, Problem> {
        let Some(sealing) = Sealing::of(ctx, &self.kept.account).await? else {
            return Ok(Said::Nothing("its address was sealed with a secret that is not here"));
        };
        let Some((to, secrets)) = sealing.open(&self.kept.id, &self.kept.webhook).zip(secrets(&sealing, &self.kept, ctx.clock.now_ms()))
        else {
            return Ok(Said::Nothing("its address was sealed with a secret that is not here"));
        };
        let span = |seq: i64| Seq(u64::try_from(seq).unwrap_or(0));
        let body = lanes::body(ctx, &self.kept, span(self.at.done), span(self.at.upto)).await?;
        Ok(poster.post(&to, Message { id: &self.at.message, body, secrets: &secrets }, ctx.clock.now_ms() / 1_000).await)
    }
}

/// What signs a target's messages now.
pub(crate) fn secrets(sealing: &Sealing, kept: &Kept, now_ms: i64) -> Option<Vec<SigningSecret>> {
    let mut secrets = vec![sealing.open_secret(&kept.id, &kept.secret)?];
    if kept.old_secret_until > now_ms {
        secrets.extend(sealing.open_secret(&kept.id, &kept.old_secret));
    }
    Some(secrets)
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
        Said::Nothing(_) => None,
    };
    if at.failing_since != 0 && now_ms - at.failing_since >= schedule::FAILING_MAX_MS {
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
        let at = Delivery { attempts: 1, failing_since: 1_000, ..Delivery::default() };
        let of = |at: &Delivery, said: Said, now_ms: i64| became(at, &said, now_ms, 0.5);
        assert_eq!(of(&at, Said::Taken(204), 5).verb, DELIVERED);
        assert_eq!(of(&at, Said::Gone, 5).verb, DISABLED);
        let failed = of(&at, Said::Refused(503, Some(Duration::from_secs(60))), 5);
        assert_eq!((failed.verb.as_str(), failed.status, failed.due_at), (FAILED, 503, 60_005));
        assert_eq!(of(&at, Said::Nothing("no"), 5).due_at, 20_005);
        assert_eq!(of(&Delivery { attempts: 12, ..at.clone() }, Said::Nothing("no"), 5).verb, SKIPPED);
        let ended = of(&at, Said::Refused(500, None), 1_000 + schedule::FAILING_MAX_MS);
        assert_eq!((ended.verb.as_str(), ended.reason.as_str()), (DISABLED, "it answered 500; nothing was taken for five days"));
    }
}

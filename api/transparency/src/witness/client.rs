//! Asks the configured witnesses to cosign our checkpoints (`add-checkpoint`) after they are published: no checkpoint waits for a witness, and no
//! witness for another one.

use crate::witness::Witnessing;
use operation::context::Part;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use schemas::views::receipts::{SignedCheckpoint, TABLES as RECEIPTS};
use tokio::sync::watch;
use view_store::lease::Lease;

use super::cosignatures;
use super::remote::Witness;
use super::{Pair, Standing, served_trees};
use crate::prover::SignedTree;
use crate::trees;
use operation::context::{Context, store_problem};
use operation::metrics::{self, RoundTask};
use operation::problem::Problem;

/// A witness is asked again about a checkpoint that it cosigned after this time, because the time of a cosignature shows how old the tree can be.
const REFRESH_INTERVAL: Duration = Duration::from_secs(3_600);
/// The longest pause after failed requests. The first pause is at most a second, and each next one twice as long.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// The newest signed checkpoint of a tree, for the tasks that ask witnesses about it.
type NewestSender = watch::Sender<Option<SignedCheckpoint>>;

/// The pause after a number of consecutive failures. `chance` is a random number between 0 and 1.
fn pause(failures: u32, chance: f64) -> Duration {
    let longest = Duration::from_secs(1 << failures.saturating_sub(1).min(20)).min(PAUSE_MAX);
    longest.mul_f64(0.5 + chance / 2.0)
}

/// Asks a witness to cosign a checkpoint unless it did so recently. Returns how long the cosignature remains current.
async fn ask(ctx: &Context, witness: &Witness, tree: &dyn SignedTree, sealed: &SignedCheckpoint) -> Result<Duration, String> {
    let failed = |problem: Problem| problem.detail;
    let now_s = u64::try_from(ctx.clock.now_ms() / 1_000).unwrap_or(0);
    let known = cosignatures::read(ctx, tree.service()).await.map_err(failed)?.0.remove(&witness.key.to_string());
    if let Some(known) = known.as_ref().filter(|known| known.note == sealed.note) {
        let age = Duration::from_secs(now_s.saturating_sub(known.time_s));
        if let Some(left) = REFRESH_INTERVAL.checked_sub(age).filter(|left| !left.is_zero()) {
            return Ok(left);
        }
    }
    let cosignature = witness.cosign(ctx, tree, sealed, known.map_or(0, |known| known.size)).await?;
    cosignatures::store(ctx, tree.service(), witness, &cosignature).await.map_err(failed)?;
    tracing::debug!(witness = witness.name(), service = tree.service(), size = cosignature.size, "a witness cosigned a checkpoint");
    Ok(REFRESH_INTERVAL)
}

/// Asks one witness about one tree, whenever there is a new checkpoint. Never returns.
async fn follow(ctx: &Context, witness: &Witness, tree: &dyn SignedTree, mut newest: watch::Receiver<Option<SignedCheckpoint>>) {
    let pair: Pair = (tree.service(), witness.name().to_owned());
    let mut failures = 0_u32;
    loop {
        let sealed = newest.borrow_and_update().clone();
        let Some(sealed) = sealed else {
            if newest.changed().await.is_err() {
                // The task that reads checkpoints has ended, and ends this one as well.
                return std::future::pending().await;
            }
            continue;
        };
        match ask(ctx, witness, tree, &sealed).await {
            Ok(good_for) => {
                failures = 0;
                if !Witnessing::of(ctx).set_standing(&pair, |standing| *standing = Standing::default()).is_empty() {
                    tracing::info!(witness = witness.name(), service = tree.service(), "a witness cosigns again");
                }
                tokio::time::sleep(ctx.settings.rounds.witnesses).await;
                // Continue when there is a new checkpoint, or when the cosignature must be renewed.
                let _ = tokio::time::timeout(good_for, newest.changed()).await;
            }
            Err(reason) => {
                failures = failures.saturating_add(1);
                if Witnessing::of(ctx).set_standing(&pair, |standing| standing.reason.clone_from(&reason)) != reason {
                    let (witness, service) = (witness.name(), tree.service());
                    tracing::warn!(witness, service, reason, "a witness did not cosign a checkpoint, will retry");
                }
                tokio::time::sleep(pause(failures, rand::random())).await;
            }
        }
    }
}

/// Reads the newest checkpoints of all trees again and again, and updates the metric of each witness. Never returns.
async fn look(ctx: &Context, trees: &[(Arc<dyn SignedTree>, NewestSender)]) {
    let mut is_failing = false;
    loop {
        // After a start, and after damage, the views that hold checkpoints are first completed from the log.
        ctx.store.served(&[RECEIPTS.view.name, trees::VIEW.name]).await;
        let began = tokio::time::Instant::now();
        let mut failed = None;
        for (tree, newest) in trees {
            if let Err(problem) = look_at(ctx, &**tree, newest).await {
                failed = Some(problem);
            }
        }
        if let Some(problem) = failed.as_ref().filter(|_| !is_failing) {
            tracing::warn!(reason = problem.detail, "checkpoints for witnesses cannot be read, will retry");
        }
        is_failing = failed.is_some();
        metrics::count_round(RoundTask::Witnesses);
        tokio::time::sleep_until(began + ctx.settings.rounds.witnesses).await;
    }
}

/// Passes on the newest checkpoint of a tree, and updates for how long it has lacked the cosignature of each witness.
async fn look_at(ctx: &Context, tree: &dyn SignedTree, newest: &NewestSender) -> Result<(), Problem> {
    let sealed = tree.open(ctx).await?.sealed().await?;
    newest.send_if_modified(|current| {
        let is_new = *current != sealed;
        current.clone_from(&sealed);
        is_new
    });
    let Some(sealed) = sealed else { return Ok(()) };
    let (row, _) = cosignatures::read(ctx, tree.service()).await?;
    for witness in &Witnessing::of(ctx).asked {
        let is_current = row.get(&witness.key.to_string()).is_some_and(|known| known.note == sealed.note);
        let pair: Pair = (tree.service(), witness.name().to_owned());
        let mut behind = Duration::ZERO;
        Witnessing::of(ctx).set_standing(&pair, |standing| {
            let since = standing.behind_since.unwrap_or_else(Instant::now);
            standing.behind_since = (!is_current).then_some(since);
            behind = standing.behind_since.map_or(Duration::ZERO, |since| since.elapsed());
        });
        metrics::set_witness_behind(witness.name(), tree.service(), Some(behind.as_secs()));
    }
    Ok(())
}

/// Asks all witnesses about all trees until the server stops. One process at a time does this.
pub async fn run(ctx: Arc<Context>, holder: String) {
    let witnessing = Witnessing::of(&ctx);
    if witnessing.asked.is_empty() {
        return;
    }
    let mut lease = Lease::new(&ctx.store, "witnesses/ask".to_owned(), &holder);
    let asking = async {
        loop {
            match lease.renew().await.map_err(store_problem) {
                Ok(true) => {
                    ask_all(&ctx, &mut lease).await;
                    // Another process asks now, and updates the metrics.
                    for tree in served_trees(&ctx) {
                        witnessing.asked.iter().for_each(|witness| metrics::set_witness_behind(witness.name(), tree.service(), None));
                    }
                }
                Ok(false) => {}
                Err(problem) => tracing::warn!(reason = problem.detail, "the lease to ask witnesses cannot be taken, will retry"),
            }
            tokio::time::sleep(lease.renewal_interval()).await;
        }
    };
    tokio::select! {
        () = asking => {}
        () = ctx.stopped() => {}
    }
    lease.release().await;
}

/// Asks all witnesses about all trees while the lease is held.
async fn ask_all(ctx: &Context, lease: &mut Lease) {
    let trees: Vec<_> = served_trees(ctx).into_iter().map(|tree| (tree, watch::Sender::new(None))).collect();
    let witnessing = Witnessing::of(ctx);
    let mut following = Vec::new();
    for (tree, newest) in &trees {
        following.extend(witnessing.asked.iter().map(|witness| follow(ctx, witness, &**tree, newest.subscribe())));
    }
    tokio::select! {
        _ = join_all(following) => {}
        () = look(ctx, &trees) => {}
        () = lease.lost() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the pause doubles with each failure, is at most five minutes, and varies by half of itself.
    #[test]
    fn pauses() {
        let seconds = |failures: u32| (pause(failures, 0.0).as_secs_f64(), pause(failures, 1.0).as_secs_f64());
        assert_eq!(seconds(1), (0.5, 1.0));
        assert_eq!(seconds(4), (4.0, 8.0));
        assert_eq!(seconds(10), (150.0, 300.0));
        assert_eq!(seconds(u32::MAX), (150.0, 300.0));
    }
}

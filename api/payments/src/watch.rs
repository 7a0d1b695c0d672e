//! Follows up payments of which nobody knows what became: those that were claimed or refused, until they are settled or can no longer be.
//!
//! A payment is looked up once, when its time is over: by then the chain has its transfer, or never will. Many are looked up by one request. A
//! buyer who sends a payment again has it looked up at once, see [`super::sale`]. One process at a time does this, by a lease. It follows the
//! payments' own changes, from a week ago on.

use crate::Payments;
use operation::context::Part;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemas::position::Seq;
use schemas::views::payments::{Payment, State, TABLES};
use view_store::feed::seq_at;
use view_store::lease::Lease;

use super::chain::{Chain, Found, Head};
use super::sale::{LATE, SPENT, lapse, lease_of, record_settled};
use feed::filter::Element;
use feed::private::{end, read_on};
use operation::context::{Context, store_problem};
use operation::metrics;
use operation::problem::Problem;

/// How often the changes are followed, and the chain is asked for its time while payments are open.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How long after its last moment (milliseconds) a payment lapses where no chain says so.
const LATE_MS: i64 = 60_000;
/// How far back the payments are read that nobody may know of: the chain's node may have been away as long.
const LOOKED_BACK_MS: i64 = 7 * 86_400_000;
/// The most payments looked up by one request. Half as many after a request that failed, as often as that happens.
const BATCH_MAX: usize = 100;
/// After how long a payment is looked up again of which the node did not say; twice as long each time.
const RETRY_MIN_MS: i64 = 5_000;
const RETRY_MAX_MS: i64 = 600_000;
/// The reason of payments that lapse by the clock.
const UNKNOWN: &str = "nobody knows whether it was settled while it was valid: no node of the chain is configured";

/// Follows up payments until the server stops.
pub async fn run(ctx: Arc<Context>, holder: String) {
    let mut lease = Lease::new(&ctx.store, "payments/watch".to_owned(), &holder);
    let mut open = Open::default();
    loop {
        let turn = async {
            if lease.renew().await.map_err(store_problem)? {
                return open.look(&ctx).await;
            }
            open = Open::default();
            metrics::payments_overdue(0);
            Ok(())
        };
        tokio::select! {
            looked = turn => {
                if let Err(problem) = looked {
                    tracing::warn!(reason = problem.detail, "payments could not be followed up, will retry");
                }
            }
            () = ctx.stopped() => break,
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
            () = ctx.stopped() => break,
        }
    }
    lease.release().await;
}

/// A payment that is neither settled nor lapsed.
struct Pending {
    payment: Payment,
    /// How often in a row the node did not say what became of it.
    failures: u32,
    /// Not looked up before: milliseconds since 1970.
    next_look_ms: i64,
}

/// The payments that are neither settled nor lapsed.
#[derive(Default)]
struct Open {
    /// The last change read; `None` before the first.
    after: Option<Seq>,
    payments: BTreeMap<String, Pending>,
    /// How often batches were halved.
    halvings: u32,
}

impl Open {
    async fn look(&mut self, ctx: &Context) -> Result<(), Problem> {
        self.follow(ctx).await?;
        let now_ms = ctx.clock.now_ms();
        let is_over = |payment: &Payment| payment.valid_before.saturating_mul(1_000).saturating_add(LATE_MS) < now_ms;
        metrics::payments_overdue(self.payments.values().filter(|pending| is_over(&pending.payment)).count());
        let payments = Payments::of(ctx);
        let chain = payments.chain.as_ref();
        let (on_chain, others): (Vec<&Payment>, Vec<&Payment>) =
            self.payments.values().map(|pending| &pending.payment).partition(|payment| chain.is_some_and(|chain| chain.has(payment)));
        for payment in others.into_iter().filter(|payment| is_over(payment)) {
            if is_free(ctx, payment).await? {
                lapse(ctx, payment, UNKNOWN).await?;
            }
        }
        match chain {
            // A node that does not say is logged where it is asked.
            Some(chain) if !on_chain.is_empty() => match chain.head().await {
                Ok(head) => self.look_up(ctx, chain, head).await,
                Err(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Looks up on the chain what became of the payments whose time is over by the chain's own clock.
    async fn look_up(&mut self, ctx: &Context, chain: &Chain, head: Head) -> Result<(), Problem> {
        let now_ms = ctx.clock.now_ms();
        let mut due: BTreeMap<String, Vec<Payment>> = BTreeMap::new();
        for Pending { payment, next_look_ms, .. } in self.payments.values() {
            let is_over = u64::try_from(payment.valid_before).unwrap_or(0) <= head.time_s;
            if is_over && *next_look_ms <= now_ms && chain.has(payment) && is_free(ctx, payment).await? {
                due.entry(payment.asset.to_ascii_lowercase()).or_default().push(payment.clone());
            }
        }
        for payments in due.values() {
            let mut rest = payments.as_slice();
            while !rest.is_empty() {
                let (batch, further) = rest.split_at(rest.len().min(batch_size(self.halvings)));
                let Ok(found) = chain.find_all(head, &batch.iter().collect::<Vec<_>>()).await else {
                    // One payment may make the answer too large: it is found by halves, and the others go on without it.
                    self.halvings = self.halvings.saturating_add(1);
                    if let [payment] = batch {
                        self.put_off(payment, now_ms);
                    }
                    return Ok(());
                };
                self.halvings = self.halvings.saturating_sub(1);
                rest = further;
                for (payment, found) in batch.iter().zip(found) {
                    match found {
                        Ok(Found::Paid(transfer)) => {
                            tracing::info!(payment = payment.id, "a payment turned out to be settled");
                            record_settled(ctx, payment, &transfer).await?;
                        }
                        Ok(Found::Spent) => lapse(ctx, payment, SPENT).await?,
                        Ok(Found::Late) => lapse(ctx, payment, LATE).await?,
                        Ok(Found::Nothing) => {}
                        Err(why) => {
                            tracing::warn!(payment = payment.id, why, "the chain's node does not say what became of a payment, will retry");
                            self.put_off(payment, now_ms);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Has a payment looked up again later.
    fn put_off(&mut self, payment: &Payment, now_ms: i64) {
        if let Some(pending) = self.payments.get_mut(&payment.id) {
            pending.next_look_ms = now_ms.saturating_add(pause_ms(pending.failures));
            pending.failures = pending.failures.saturating_add(1);
        }
    }

    /// Follows the changes.
    async fn follow(&mut self, ctx: &Context) -> Result<(), Problem> {
        let mut after = match self.after {
            Some(after) => after,
            None => {
                let (view, upto) = end(ctx, &TABLES).await?;
                seq_at(view.as_ref(), TABLES.feed, ctx.clock.now_ms() - LOOKED_BACK_MS, upto).await.map_err(store_problem)?
            }
        };
        while let Some((changes, to)) = read_on::<Payment>(ctx, &TABLES, after).await? {
            for Element { record, .. } in changes {
                // What was settled before this node followed the payments is not counted again.
                if record.state == State::Settled && self.after.is_some() {
                    metrics::settled(&record.service, record.amount);
                }
                match record.state {
                    State::Claimed | State::Refused => {
                        let pending = Pending { payment: record, failures: 0, next_look_ms: 0 };
                        drop(self.payments.insert(pending.payment.id.clone(), pending));
                    }
                    State::Settled | State::Lapsed => drop(self.payments.remove(&record.id)),
                }
            }
            after = to;
        }
        self.after = Some(after);
        Ok(())
    }
}

/// Whether no process settles a payment now: one that does finds out what became of it.
async fn is_free(ctx: &Context, payment: &Payment) -> Result<bool, Problem> {
    let holder = ctx.store.coordination().holder(&lease_of(&payment.id)).await.map_err(store_problem)?;
    Ok(holder.is_none())
}

/// How many payments one request looks up.
fn batch_size(halvings: u32) -> usize {
    BATCH_MAX.checked_shr(halvings).unwrap_or(0).max(1)
}

/// How long a payment is not looked up after so many failures before this one, in milliseconds.
fn pause_ms(failures: u32) -> i64 {
    RETRY_MIN_MS.saturating_mul(1_i64.checked_shl(failures.min(20)).unwrap_or(1)).min(RETRY_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that batches shrink to one payment and no further, and that pauses grow to their limit and no further.
    #[test]
    fn failures_slow_down() {
        assert_eq!([0, 1, 6, 7, 64, u32::MAX].map(batch_size), [100, 50, 1, 1, 1, 1]);
        assert_eq!([0, 1, 6, 7, 64, u32::MAX].map(pause_ms), [5_000, 10_000, 320_000, 600_000, 600_000, 600_000]);
    }
}

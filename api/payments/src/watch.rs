//! Follows up payments of which nobody knows what became: those that were claimed or refused, until they are settled or can no longer be.
//!
//! A payment is looked up once, a minute after its time is over: by then the chain has its transfer, or never will. Many are looked up by one request.
//! A buyer who sends a payment again has it looked up at once, see [`super::sale`]. One process at a time does this, by a lease, also where nothing is
//! sold any more. It follows the payments' own changes, from a day ago on; older payments that are still open are found by a sweep through all
//! payments, some hundred rows at a time. What is not known then is looked up again, the older the payment, the less often.

use crate::Payments;
use operation::context::Part;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemas::position::Seq;
use schemas::views::payments::{Payment, State, TABLES};
use schemas::views::records::Row;
use view_store::feed::seq_at;
use view_store::lease::Lease;
use view_store::store::{Scan, Span};

use super::chain::{Block, Chain, Found};
use super::sale::{LATE, SPENT, lapse, lease_of, record_settled};
use feed::filter::Element;
use feed::private::{end, read_on};
use operation::context::{Context, store_problem, stored};
use operation::metrics;
use operation::problem::Problem;

/// How often the changes are followed, and the chain is asked for its time while payments are open.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How long after its last moment (milliseconds) a payment lapses where no chain says so.
const LATE_MS: i64 = 60_000;
/// How far back changes of payments are read at the start. Older payments that are open are found by the sweep.
const FOLLOWED_BACK_MS: i64 = DAY_MS;
/// Rows of payments read at one look.
const SWEPT_ROWS_MAX: usize = 500;
/// The pause between the end of a sweep through all payments and the next one.
const SWEEP_INTERVAL_MS: i64 = 3_600_000;
/// Open payments held in memory before the sweep waits.
const OPEN_MAX: usize = 10_000;
/// The longest time between the first and the last claim that one request looks up, in milliseconds.
const BATCH_SPAN_MS: i64 = 3_600_000;
/// The most payments looked up by one request. Half as many after a request that failed, as often as that happens.
const BATCH_MAX: usize = 100;
/// After how long a payment is looked up again of which the node did not say; twice as long each time.
const RETRY_MIN_MS: i64 = 5_000;
/// The longest such pause of a payment that was claimed less than a day ago, less than a week ago, and before that, in milliseconds.
const RETRY_MAX_MS: [i64; 3] = [600_000, 3_600_000, 6 * 3_600_000];
const DAY_MS: i64 = 86_400_000;
const WEEK_MS: i64 = 7 * DAY_MS;
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
    /// How often in a row it was not known what became of it.
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
    sweep: Sweep,
}

/// The search of all payments for open ones that were claimed before the changes were followed: some rows at each look.
#[derive(Default)]
struct Sweep {
    /// The rest of the rows; `None` between two sweeps.
    rows: Option<Box<dyn Scan>>,
    /// When the next sweep begins: milliseconds since 1970.
    next_ms: i64,
}

impl Sweep {
    /// The open payments among the next rows.
    async fn next(&mut self, ctx: &Context) -> Result<Vec<Payment>, Problem> {
        let now_ms = ctx.clock.now_ms();
        if self.rows.is_none() && self.next_ms <= now_ms {
            self.rows = Some(ctx.live(TABLES.view).await?.scan(TABLES.records, Span::default()));
        }
        let Some(scan) = &mut self.rows else { return Ok(Vec::new()) };
        let rows = match scan.next(SWEPT_ROWS_MAX).await {
            Ok(rows) => rows,
            Err(error) => {
                // The view may have been built anew: the next look begins again.
                self.rows = None;
                return Err(store_problem(error));
            }
        };
        if rows.is_empty() {
            (self.rows, self.next_ms) = (None, now_ms.saturating_add(SWEEP_INTERVAL_MS));
        }
        let payments = rows.iter().map(|(_, bytes)| stored::<Row<Payment>>(TABLES.records, bytes).map(|row| row.record));
        let is_open = |payment: &Result<Payment, Problem>| payment.as_ref().map_or(true, |payment| payment.state.is_open());
        payments.filter(is_open).collect()
    }
}

impl Open {
    async fn look(&mut self, ctx: &Context) -> Result<(), Problem> {
        self.follow(ctx).await?;
        if self.payments.len() < OPEN_MAX {
            for payment in self.sweep.next(ctx).await? {
                self.insert(payment);
            }
        }
        let now_ms = ctx.clock.now_ms();
        let is_over = |payment: &Payment| payment.valid_before.saturating_mul(1_000).saturating_add(LATE_MS) < now_ms;
        metrics::payments_overdue(self.payments.values().filter(|pending| is_over(&pending.payment)).count());
        let payments = Payments::of(ctx);
        let chain = payments.chain.as_ref();
        let (on_chain, others): (Vec<&Payment>, Vec<&Payment>) =
            self.payments.values().map(|pending| &pending.payment).partition(|payment| chain.is_some_and(|chain| chain.has(payment)));
        let mut lapsed = Vec::new();
        for payment in others.into_iter().filter(|payment| is_over(payment)) {
            if is_free(ctx, payment).await? {
                lapse(ctx, payment, UNKNOWN).await?;
                lapsed.push(payment.id.clone());
            }
        }
        let is_any_on_chain = !on_chain.is_empty();
        self.payments.retain(|id, _| !lapsed.contains(id));
        match chain {
            // A node that does not say is logged where it is asked.
            Some(chain) if is_any_on_chain => match chain.head().await {
                Ok(head) => self.look_up(ctx, chain, &head).await,
                Err(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Looks up on the chain what became of the payments whose time is over by the chain's own clock, those that were claimed last first.
    async fn look_up(&mut self, ctx: &Context, chain: &Chain, head: &Block) -> Result<(), Problem> {
        let now_ms = ctx.clock.now_ms();
        let mut due: BTreeMap<String, Vec<Payment>> = BTreeMap::new();
        for Pending { payment, next_look_ms, .. } in self.payments.values() {
            let is_over = head.is_late_for(payment.valid_before);
            if is_over && *next_look_ms <= now_ms && chain.has(payment) && is_free(ctx, payment).await? {
                due.entry(payment.asset.to_ascii_lowercase()).or_default().push(payment.clone());
            }
        }
        for mut payments in due.into_values() {
            payments.sort_unstable_by_key(|payment| Reverse(payment.claimed_at));
            let mut rest = payments.as_slice();
            while let Some(newest) = rest.first() {
                let is_near = |payment: &&Payment| newest.claimed_at.saturating_sub(payment.claimed_at) <= BATCH_SPAN_MS;
                let size = rest.iter().take(batch_size(self.halvings)).take_while(is_near).count().max(1);
                let (batch, further) = rest.split_at(size);
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
                        Ok(Found::Unknown) => {
                            self.put_off(payment, now_ms);
                            continue;
                        }
                        Err(why) => {
                            tracing::warn!(payment = payment.id, why, "the chain's node does not say what became of a payment, will retry");
                            self.put_off(payment, now_ms);
                            continue;
                        }
                    }
                    self.payments.remove(&payment.id);
                }
            }
        }
        Ok(())
    }

    /// Has a payment looked up again later.
    fn put_off(&mut self, payment: &Payment, now_ms: i64) {
        if let Some(pending) = self.payments.get_mut(&payment.id) {
            let age_ms = now_ms.saturating_sub(payment.claimed_at);
            pending.next_look_ms = now_ms.saturating_add(pause_ms(pending.failures, age_ms));
            pending.failures = pending.failures.saturating_add(1);
        }
    }

    /// Takes an open payment in, unless it is already there.
    fn insert(&mut self, payment: Payment) {
        self.payments.entry(payment.id.clone()).or_insert(Pending { payment, failures: 0, next_look_ms: 0 });
    }

    /// Follows the changes.
    async fn follow(&mut self, ctx: &Context) -> Result<(), Problem> {
        let mut after = match self.after {
            Some(after) => after,
            None => {
                let (view, upto) = end(ctx, &TABLES).await?;
                seq_at(view.as_ref(), TABLES.feed, ctx.clock.now_ms() - FOLLOWED_BACK_MS, upto).await.map_err(store_problem)?
            }
        };
        while let Some((changes, to)) = read_on::<Payment>(ctx, &TABLES, after).await? {
            for Element { record, .. } in changes {
                // What was settled before this node followed the payments is not counted again.
                if record.state == State::Settled && self.after.is_some() {
                    metrics::settled(&record.service, record.amount);
                }
                if record.state.is_open() { self.insert(record) } else { drop(self.payments.remove(&record.id)) }
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

/// How long a payment that was claimed some milliseconds ago is not looked up after so many failures before this one, in milliseconds.
fn pause_ms(failures: u32, age_ms: i64) -> i64 {
    let [day, week, older] = RETRY_MAX_MS;
    let pause_max_ms = match age_ms {
        ..DAY_MS => day,
        DAY_MS..=WEEK_MS => week,
        _ => older,
    };
    RETRY_MIN_MS.saturating_mul(1_i64.checked_shl(failures.min(20)).unwrap_or(1)).min(pause_max_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that batches shrink to one payment and no further, and that pauses grow to their limit and no further, which is larger for older claims.
    #[test]
    fn failures_slow_down() {
        assert_eq!([0, 1, 6, 7, 64, u32::MAX].map(batch_size), [100, 50, 1, 1, 1, 1]);
        let pauses = |age_ms: i64| [0, 1, 6, 7, 12, 13, 64, u32::MAX].map(|failures| pause_ms(failures, age_ms));
        assert_eq!(pauses(0), [5_000, 10_000, 320_000, 600_000, 600_000, 600_000, 600_000, 600_000]);
        assert_eq!(pauses(2 * DAY_MS)[3..], [640_000, 3_600_000, 3_600_000, 3_600_000, 3_600_000]);
        assert_eq!(pauses(100 * DAY_MS)[3..], [640_000, 20_480_000, 21_600_000, 21_600_000, 21_600_000]);
    }
}

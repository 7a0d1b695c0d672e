//! Follows up payments whose outcome is unknown: claimed or refused payments, until they are settled or have lapsed.
//!
//! A payment is looked up on the chain once, a minute after it expired: by then the chain either has its transfer, or never will. Many payments are
//! looked up with one request. If a buyer sends a payment again, it is looked up immediately, see [`super::sale`]. A lease ensures that one process
//! at a time does this, even if payments are disabled now. The process follows the changes of payments, starting one day ago; older open payments
//! are found by a sweep through all payments, some hundred rows at a time. A failed look-up is retried; the older the payment, the less often.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use feed::filter::Element;
use feed::internal::{latest_seq, read_next};
use operation::context::Part;
use operation::context::{Context, store_problem, stored};
use operation::metrics::{self, RoundTask};
use operation::problem::Problem;
use schemas::clock::DAY_MS;
use schemas::position::Seq;
use schemas::views::engine;
use schemas::views::payments::{Payment, State, TABLES};
use schemas::views::records::Row;
use view_store::feed::seq_at;
use view_store::lease::Lease;
use view_store::store::{Scan, Span};

use super::chain::{AuthorizationUse, Block, Chain};
use super::sale::{LATE, SPENT, lapse, lease_of, record_settled};
use crate::Payments;

/// How long after its expiry (in milliseconds) a payment lapses if no chain node is configured.
const LATE_MS: i64 = 60_000;
/// How far back changes are read at the start. Older open payments are found by the sweep.
const CHANGES_BACK_MS: i64 = DAY_MS;
/// How many rows of payments the sweep reads per round.
const SWEPT_ROWS_MAX: usize = 500;
/// The pause between two sweeps.
const SWEEP_INTERVAL_MS: i64 = 3_600_000;
/// The most open payments in memory. With more, the sweep waits.
const OPEN_MAX: usize = 10_000;
/// The longest time between the first and the last claim that one request looks up, in milliseconds.
const BATCH_SPAN_MS: i64 = 3_600_000;
/// The most payments in one look-up request. It is halved after each request that fails.
const BATCH_MAX: usize = 100;
/// The pause after the first failed look-up of a payment; it is doubled each time.
const RETRY_MIN_MS: i64 = 5_000;
/// The longest such pause for a payment that was claimed less than a day ago, less than a week ago, and earlier, in milliseconds.
const RETRY_MAX_MS: [i64; 3] = [600_000, 3_600_000, 6 * 3_600_000];
const WEEK_MS: i64 = 7 * DAY_MS;
/// The reason of payments that lapse without a look-up.
const UNKNOWN: &str = "it is unknown whether it was settled while it was valid, because no chain node is configured";

/// Follows up payments until the server stops.
pub async fn run(ctx: Arc<Context>, holder: String) {
    let mut lease = Lease::new(&ctx.store, "payments/watch".to_owned(), &holder);
    let (mut open, round_interval) = (Open::default(), Payments::of(&ctx).round());
    loop {
        let round = async {
            // After a start, and after damage, views are first completed from the log.
            ctx.store.served(&[engine::VIEW.name, TABLES.view.name]).await;
            if lease.renew().await.map_err(store_problem)? {
                return open.run_round(&ctx).await;
            }
            open = Open::default();
            metrics::set_payments_overdue(0);
            Ok(())
        };
        tokio::select! {
            result = round => {
                metrics::count_round(RoundTask::Payments);
                if let Err(problem) = result {
                    tracing::warn!(reason = problem.detail, "payments could not be followed up, will retry");
                }
            }
            () = ctx.stopped() => break,
        }
        tokio::select! {
            () = tokio::time::sleep(round_interval) => {}
            () = ctx.stopped() => break,
        }
    }
    lease.release().await;
}

/// A payment that is neither settled nor lapsed.
struct Pending {
    payment: Payment,
    /// The number of consecutive look-ups that failed.
    failures: u32,
    /// The time of the next look-up: milliseconds since 1970.
    next_lookup_ms: i64,
}

/// All payments that are neither settled nor lapsed.
#[derive(Default)]
struct Open {
    /// The last change read; `None` before the first.
    after: Option<Seq>,
    payments: BTreeMap<String, Pending>,
    /// How often the batch size was halved.
    halvings: u32,
    sweep: Sweep,
}

/// The search through all payments for open ones that are older than the changes that were read: some rows per round.
#[derive(Default)]
struct Sweep {
    /// The remaining rows; `None` between two sweeps.
    rows: Option<Box<dyn Scan>>,
    /// When the next sweep starts: milliseconds since 1970.
    next_ms: i64,
}

impl Sweep {
    /// Reads the next rows and returns the open payments among them.
    async fn next(&mut self, ctx: &Context) -> Result<Vec<Payment>, Problem> {
        let now_ms = ctx.clock.now_ms();
        if self.rows.is_none() && self.next_ms <= now_ms {
            self.rows = Some(ctx.live(TABLES.view).await?.scan(TABLES.records, Span::default()));
        }
        let Some(scan) = &mut self.rows else { return Ok(Vec::new()) };
        let rows = match scan.next(SWEPT_ROWS_MAX).await {
            Ok(rows) => rows,
            Err(error) => {
                // The view may have been rebuilt: the next round starts a new sweep.
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
    async fn run_round(&mut self, ctx: &Context) -> Result<(), Problem> {
        self.read_changes(ctx).await?;
        if self.payments.len() < OPEN_MAX {
            for payment in self.sweep.next(ctx).await? {
                self.insert(payment);
            }
        }
        let now_ms = ctx.clock.now_ms();
        let is_over = |payment: &Payment| payment.valid_before.saturating_mul(1_000).saturating_add(LATE_MS) < now_ms;
        metrics::set_payments_overdue(self.payments.values().filter(|pending| is_over(&pending.payment)).count());
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
            // A failed request to the node is logged there.
            Some(chain) if is_any_on_chain => match chain.head().await {
                Ok(head) => self.look_up(ctx, chain, &head).await,
                Err(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Looks up expired payments on the chain, by the chain's own clock, most recently claimed first.
    async fn look_up(&mut self, ctx: &Context, chain: &Chain, head: &Block) -> Result<(), Problem> {
        let now_ms = ctx.clock.now_ms();
        let mut due: BTreeMap<String, Vec<Payment>> = BTreeMap::new();
        for Pending { payment, next_lookup_ms, .. } in self.payments.values() {
            let is_over = head.is_late_for(payment.valid_before);
            if is_over && *next_lookup_ms <= now_ms && chain.has(payment) && is_free(ctx, payment).await? {
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
                    // One payment may make the response too large. It is isolated by halving the batches, and the others are looked up without it.
                    self.halvings = self.halvings.saturating_add(1);
                    if let [payment] = batch {
                        self.schedule_retry(payment, now_ms);
                    }
                    return Ok(());
                };
                self.halvings = self.halvings.saturating_sub(1);
                rest = further;
                for (payment, found) in batch.iter().zip(found) {
                    match found {
                        Ok(AuthorizationUse::Paid(transfer)) => {
                            tracing::info!(payment = payment.id, "an open payment is settled on the chain");
                            record_settled(ctx, payment, &transfer).await?;
                        }
                        Ok(AuthorizationUse::Spent) => lapse(ctx, payment, SPENT).await?,
                        Ok(AuthorizationUse::Late) => lapse(ctx, payment, LATE).await?,
                        Ok(AuthorizationUse::Unknown) => {
                            self.schedule_retry(payment, now_ms);
                            continue;
                        }
                        Err(reason) => {
                            tracing::warn!(payment = payment.id, reason, "a payment could not be looked up on the chain, will retry");
                            self.schedule_retry(payment, now_ms);
                            continue;
                        }
                    }
                    self.payments.remove(&payment.id);
                }
            }
        }
        Ok(())
    }

    /// Schedules the next look-up of a payment.
    fn schedule_retry(&mut self, payment: &Payment, now_ms: i64) {
        if let Some(pending) = self.payments.get_mut(&payment.id) {
            let age_ms = now_ms.saturating_sub(payment.claimed_at);
            pending.next_lookup_ms = now_ms.saturating_add(pause_ms(pending.failures, age_ms));
            pending.failures = pending.failures.saturating_add(1);
        }
    }

    /// Adds an open payment, unless it is known.
    fn insert(&mut self, payment: Payment) {
        self.payments.entry(payment.id.clone()).or_insert(Pending { payment, failures: 0, next_lookup_ms: 0 });
    }

    /// Reads the changes of payments.
    async fn read_changes(&mut self, ctx: &Context) -> Result<(), Problem> {
        let mut after = match self.after {
            Some(after) => after,
            None => {
                let (view, upto) = latest_seq(ctx, &TABLES).await?;
                seq_at(view.as_ref(), TABLES.feed, ctx.clock.now_ms() - CHANGES_BACK_MS, upto).await.map_err(store_problem)?
            }
        };
        while let Some((changes, to)) = read_next::<Payment>(ctx, &TABLES, after).await? {
            for Element { record, .. } in changes {
                // Payments that were settled before this process followed the changes are not counted again.
                if record.state == State::Settled && self.after.is_some() {
                    metrics::count_settled(&record.service, record.amount);
                }
                if record.state.is_open() { self.insert(record) } else { drop(self.payments.remove(&record.id)) }
            }
            after = to;
        }
        self.after = Some(after);
        Ok(())
    }
}

/// Whether no process is settling a payment now. A process that does finds out its outcome.
async fn is_free(ctx: &Context, payment: &Payment) -> Result<bool, Problem> {
    let holder = ctx.store.coordination().holder(&lease_of(&payment.id)).await.map_err(store_problem)?;
    Ok(holder.is_none())
}

/// How many payments one request looks up.
fn batch_size(halvings: u32) -> usize {
    BATCH_MAX.checked_shr(halvings).unwrap_or(0).max(1)
}

/// The pause before the next look-up, in milliseconds, after the given number of earlier failures, for a payment of the given age.
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

    /// Proves that batches shrink to one payment, and that pauses grow up to a limit that is larger for older payments.
    #[test]
    fn failures_slow_down() {
        assert_eq!([0, 1, 6, 7, 64, u32::MAX].map(batch_size), [100, 50, 1, 1, 1, 1]);
        let pauses = |age_ms: i64| [0, 1, 6, 7, 12, 13, 64, u32::MAX].map(|failures| pause_ms(failures, age_ms));
        assert_eq!(pauses(0), [5_000, 10_000, 320_000, 600_000, 600_000, 600_000, 600_000, 600_000]);
        assert_eq!(pauses(2 * DAY_MS)[3..], [640_000, 3_600_000, 3_600_000, 3_600_000, 3_600_000]);
        assert_eq!(pauses(100 * DAY_MS)[3..], [640_000, 20_480_000, 21_600_000, 21_600_000, 21_600_000]);
    }
}

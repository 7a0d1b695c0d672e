//! Looks after payments of which nobody knows what became: those that were claimed or refused, until they are settled or can no longer be.
//!
//! One process at a time does, by a lease. It follows the payments' own changes, from a week ago on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemas::position::Seq;
use schemas::views::payments::{Payment, State, TABLES};
use view_store::feed::seq_at;
use view_store::lease::Lease;

use super::chain::Found;
use super::sale::{lapse, lease_of, settled};
use crate::context::{Context, store_problem};
use crate::feed::filter::Element;
use crate::feed::private::{end, read_on};
use crate::problem::Problem;
use crate::surfaces::metrics;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// How long after its last moment a payment is given up, where no chain says so.
const LATE_MS: i64 = 60_000;
/// How far back the payments are read that nobody may know of: the chain's node may have been away as long.
const LOOKED_BACK_MS: i64 = 7 * 86_400_000;
/// Looks after payments until the server stops.
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
                    tracing::warn!(reason = problem.detail, "payments could not be looked after");
                }
            }
            () = ctx.stopped() => break,
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = ctx.stopped() => break,
        }
    }
    lease.release().await;
}

/// The payments that are neither settled nor lapsed.
#[derive(Default)]
struct Open {
    /// The last change read; `None` before the first.
    after: Option<Seq>,
    payments: BTreeMap<String, Payment>,
}

impl Open {
    async fn look(&mut self, ctx: &Context) -> Result<(), Problem> {
        self.follow(ctx).await?;
        let is_over = |payment: &&Payment| payment.valid_before.saturating_mul(1_000).saturating_add(LATE_MS) < ctx.clock.now_ms();
        metrics::payments_overdue(self.payments.values().filter(is_over).count());
        let payments: Vec<Payment> = self.payments.values().cloned().collect();
        for payment in payments {
            // Whoever brings it forward finds out by himself.
            if ctx.store.coordination().holder(&lease_of(&payment.id)).await.map_err(store_problem)?.is_none() {
                find_out(ctx, &payment).await?;
            }
        }
        Ok(())
    }

    /// Reads on in the changes.
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
                // What was settled before this node looked after them is not counted again.
                if record.state == State::Settled && self.after.is_some() {
                    metrics::settled(&record.service, record.amount);
                }
                match record.state {
                    State::Claimed | State::Refused => drop(self.payments.insert(record.id.clone(), record)),
                    State::Settled | State::Lapsed => drop(self.payments.remove(&record.id)),
                }
            }
            after = to;
        }
        self.after = Some(after);
        Ok(())
    }
}

/// Finds out what became of a payment, if that can be known by now.
async fn find_out(ctx: &Context, payment: &Payment) -> Result<(), Problem> {
    let Some(chain) = &ctx.payments.chain else {
        if payment.valid_before.saturating_mul(1_000).saturating_add(LATE_MS) < ctx.clock.now_ms() {
            lapse(ctx, payment, "nobody knows whether it was settled while it was valid: no node of the chain is configured").await?;
        }
        return Ok(());
    };
    match chain.find(payment).await {
        Ok(Found::Paid(transaction)) => {
            tracing::info!(payment = payment.id, "a payment turned out to be settled");
            settled(ctx, payment, &transaction).await?;
        }
        Ok(Found::Spent) => lapse(ctx, payment, "its nonce was used for another transfer").await?,
        Ok(Found::Late) => lapse(ctx, payment, "it was not settled while it was valid").await?,
        Ok(Found::Nothing) | Err(_) => {}
    }
    Ok(())
}

//! The webhooks to deliver to, with the delivery state of each, kept current from the changes of watches and deliveries.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feed::filter::Element;
use feed::internal::{latest_seq, read_next};
use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use schemas::key;
use schemas::position::Seq;
use schemas::views::deliveries::{self, Delivery};
use schemas::views::records::Row;
use schemas::views::watches::{self, SavedItem, kind};
use view_store::store::Span;

/// How many rows are read per page.
const PAGE: usize = 500;

/// A watch with a webhook, and its delivery state.
pub(super) struct Target {
    pub(super) watch: Arc<SavedItem>,
    pub(super) at: Delivery,
    /// No change after `at.done` and up to this one is selected by the watch.
    pub(super) scanned: Seq,
    /// Whether a change after `scanned` may be selected by the watch.
    pub(super) may_have_changes: bool,
    /// Whether a message is in flight, or its outcome is being recorded.
    pub(super) sending: bool,
    /// When delivery is tried again after an internal error, milliseconds since 1970.
    pub(super) back_off_until: i64,
    /// Whether the last attempt took long.
    pub(super) slow: bool,
    /// The `seq` of the change that `at` was read from.
    seq: Seq,
    /// Set when the watch is deleted: messages that are queued are not sent.
    pub(super) gone: Arc<AtomicBool>,
}

impl Target {
    /// The last change that was delivered, skipped, or not selected.
    pub(super) fn delivered_seq(&self) -> Seq {
        self.scanned.max(self.at.done)
    }

    /// The last change of the range that is replayed, if one is.
    pub(super) fn range_end(&self) -> Option<Seq> {
        Some(self.at.range_end).filter(|end| *end != Seq(0))
    }

    /// Applies a change of the delivery state.
    fn apply(&mut self, at: Delivery, seq: Seq) {
        // Rows may be newer than the changes that are read.
        if seq <= self.seq {
            return;
        }
        self.seq = seq;
        // It is replayed from another position, or the replayed range ended.
        if at.turn != self.at.turn || at.range_end != self.at.range_end {
            self.scanned = at.done;
            self.may_have_changes = true;
        }
        self.at = at;
    }
}

/// All targets, and the positions up to which their changes were read.
#[derive(Default)]
pub(super) struct Targets {
    pub(super) all: HashMap<String, Target>,
    /// The targets that were added or removed since the matchers were updated.
    pub(super) changed: TargetChanges,
    watches: Seq,
    deliveries: Seq,
}

/// Targets that were added or removed.
#[derive(Default)]
pub(super) struct TargetChanges {
    pub(super) added: Vec<Arc<SavedItem>>,
    pub(super) removed: Vec<String>,
}

impl Targets {
    /// Reads all targets from the rows.
    pub(super) async fn read(ctx: &Context) -> Result<Self, Problem> {
        let mut this = Self::default();
        // The positions are read first, so that changes made in the meantime are read again.
        let (view, watches) = latest_seq(ctx, &watches::TABLES).await?;
        let (_, deliveries) = latest_seq(ctx, &deliveries::TABLES).await?;
        (this.watches, this.deliveries) = (watches, deliveries);
        let mut scan = view.scan(watches::TABLES.records, Span::default());
        loop {
            let rows = scan.next(PAGE).await.map_err(store_problem)?;
            if rows.is_empty() {
                return Ok(this);
            }
            // A row that cannot be read must not stop the others.
            let watch =
                rows.iter().filter_map(|(_, bytes)| stored::<Row<SavedItem>>(watches::TABLES.records, bytes).ok()).map(|row| row.record);
            this.add(ctx, watch.filter(is_target).collect()).await?;
        }
    }

    /// Applies the changes of watches and deliveries that were made since the last call.
    pub(super) async fn follow(&mut self, ctx: &Context) -> Result<(), Problem> {
        while let Some((changes, to)) = read_next::<SavedItem>(ctx, &watches::TABLES, self.watches).await? {
            let (targets, others): (Vec<SavedItem>, Vec<SavedItem>) = changes.into_iter().map(|change| change.record).partition(is_target);
            self.add(ctx, targets).await?;
            for SavedItem { id, .. } in others {
                if let Some(target) = self.all.remove(&id) {
                    target.gone.store(true, Ordering::Relaxed);
                    self.changed.added.retain(|added| added.id != id);
                    self.changed.removed.push(id);
                }
            }
            self.watches = to;
        }
        while let Some((changes, to)) = read_next::<Delivery>(ctx, &deliveries::TABLES, self.deliveries).await? {
            for Element { record, seq, .. } in changes {
                if let Some(target) = self.all.get_mut(&record.id) {
                    target.apply(record, seq);
                }
            }
            self.deliveries = to;
        }
        Ok(())
    }

    /// Adds targets, or replaces their watches.
    async fn add(&mut self, ctx: &Context, all: Vec<SavedItem>) -> Result<(), Problem> {
        let keys: Vec<_> = all.iter().map(|watch| key![watch.id.as_str()]).collect();
        let states = ctx.live(deliveries::TABLES.view).await?;
        let known = states.get_many(deliveries::TABLES.records, &keys).await.map_err(store_problem)?;
        for (watch, known) in all.into_iter().zip(known) {
            let watch = Arc::new(watch);
            self.changed.removed.retain(|id| *id != watch.id);
            self.changed.added.push(Arc::clone(&watch));
            if let Some(target) = self.all.get_mut(&watch.id) {
                target.watch = watch;
                continue;
            }
            let row = match known.map(|bytes| stored::<Row<Delivery>>(deliveries::TABLES.records, &bytes)) {
                Some(Ok(row)) => row,
                // Where it was is not known. From the beginning, everything would be sent again.
                Some(Err(_)) => continue,
                None => Row { seq: Seq(0), since: Seq(0), record: new_delivery(&watch) },
            };
            let target = Target {
                scanned: row.record.done,
                at: row.record,
                may_have_changes: true,
                sending: false,
                back_off_until: 0,
                slow: false,
                seq: row.seq,
                gone: Arc::default(),
                watch,
            };
            self.all.insert(target.watch.id.clone(), target);
        }
        Ok(())
    }
}

/// The state of a target to which nothing was sent yet.
fn new_delivery(watch: &SavedItem) -> Delivery {
    let (id, account, service) = (watch.id.clone(), watch.account.clone(), watch.service.clone());
    Delivery { id, account, service, done: watch.after, ..Delivery::default() }
}

fn is_target(watch: &SavedItem) -> bool {
    watch.kind == kind::WATCH && !watch.gone && !watch.webhook.is_empty()
}

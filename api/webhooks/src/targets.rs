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
    /// The last change that was delivered when the next message was found, and when that message is due, milliseconds since 1970.
    pub(super) not_before: Option<(Seq, i64)>,
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

    /// Whether the next message is known not to be due yet.
    pub(super) fn is_early(&self, now_ms: i64) -> bool {
        self.not_before.is_some_and(|(after, due_ms)| after == self.delivered_seq() && now_ms < due_ms)
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
            // Of several changes of one watch the last one counts: a renewal may have added the webhook that the watch did not have before.
            let latest: HashMap<String, SavedItem> = changes.into_iter().map(|change| (change.record.id.clone(), change.record)).collect();
            let (targets, others): (Vec<SavedItem>, Vec<SavedItem>) = latest.into_values().partition(is_target);
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
                not_before: None,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use feed::testing::{START_MS, World};
    use schemas::clock::rfc3339;
    use serde_json::json;
    use view_store::feed::FeedTail;
    use view_store::{Checkpoint, View, ViewStore};

    use super::*;

    /// The view of the watches, whose changes a test commits.
    struct WatchChanges {
        view: Arc<dyn View>,
        tail: FeedTail,
        at: Checkpoint,
    }

    impl WatchChanges {
        async fn commit(&mut self, watch: &SavedItem) {
            self.at.seq = self.at.seq.next();
            let element = json!({ "event": "modified", "seq": self.at.seq, "recordedAt": rfc3339(START_MS), "record": watch });
            self.tail.push(self.at.seq, START_MS, Some(element.to_string().as_bytes())).unwrap();
            self.view.commit(self.tail.take_writes(watches::TABLES.feed), &self.at).await.unwrap();
        }
    }

    fn watch(id: &str, webhook: &str, until: i64) -> SavedItem {
        SavedItem { id: id.to_owned(), kind: kind::WATCH.to_owned(), webhook: webhook.to_owned(), until, ..SavedItem::default() }
    }

    fn deleted(id: &str) -> SavedItem {
        SavedItem { gone: true, ..watch(id, "", 0) }
    }

    /// The webhooks of watches, by id.
    fn webhooks<'a>(watches: impl Iterator<Item = &'a SavedItem>) -> BTreeMap<String, (String, i64)> {
        watches.map(|watch| (watch.id.clone(), (watch.webhook.clone(), watch.until))).collect()
    }

    /// Proves that the targets, and what the matchers learn of them, are the latest states of the watches, however many changes are read at once: a
    /// webhook that a renewal adds is a target, a changed one is replaced, and a deleted watch is none.
    #[tokio::test]
    async fn targets_are_the_latest_states() {
        let history = [
            watch("added_later", "", 1),
            watch("changed", "first", 0),
            watch("added_later", "own", 2),
            watch("never_added", "", 1),
            watch("changed", "second", 0),
            watch("added_later", "own", 3),
            watch("deleted", "own", 0),
            SavedItem { kind: kind::FILTER.to_owned(), ..watch("filter", "", 0) },
            deleted("deleted"),
            watch("added_and_deleted", "", 1),
            watch("added_and_deleted", "own", 2),
            deleted("added_and_deleted"),
        ];
        let world = World::new().await;
        let ctx = world.context(START_MS);
        let view = world.store.live(watches::TABLES.view).await.unwrap();
        let mut changes = WatchChanges { view, tail: FeedTail::empty(), at: Checkpoint::default() };
        // Each reader reads so many changes at once; the matchers have the watches next to it.
        let mut readers: Vec<_> = (1..=history.len()).map(|count| (count, Targets::default(), BTreeMap::new())).collect();
        let mut expected: BTreeMap<&str, &SavedItem> = BTreeMap::new();
        for (number, change) in (1..).zip(&history) {
            changes.commit(change).await;
            expected.insert(&change.id, change);
            expected.retain(|_, watch| is_target(watch));
            let expected = webhooks(expected.values().copied());
            for (count, targets, matched) in readers.iter_mut().filter(|(count, ..)| number % count == 0 || number == history.len()) {
                targets.follow(&ctx).await.unwrap();
                let TargetChanges { added, removed } = std::mem::take(&mut targets.changed);
                matched.extend(webhooks(added.iter().map(|watch| &**watch)));
                matched.retain(|id, _| !removed.contains(id));
                let found = webhooks(targets.all.values().map(|target| &*target.watch));
                assert_eq!((&found, &*matched), (&expected, &expected), "after {number} changes, {count} at once");
            }
        }
    }
}

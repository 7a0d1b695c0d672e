//! The targets, as the changes of watches and deliveries have them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemas::key;
use schemas::position::Seq;
use schemas::views::deliveries::{self, Delivery};
use schemas::views::records::Row;
use schemas::views::watches::{self, SavedItem, kind};
use view_store::store::Span;

use super::matchers::seq;
use feed::filter::Element;
use feed::private::{end, read_on};
use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;

/// Rows read at once.
const PAGE: usize = 500;

/// A watch with a webhook, and how far it has been told.
pub(super) struct Target {
    pub(super) kept: Arc<SavedItem>,
    pub(super) at: Delivery,
    /// Nothing above `at.done` and up to here is for it.
    pub(super) looked: Seq,
    /// Whether something above `looked` may be for it that was there already when its service's changes were looked at.
    pub(super) behind: bool,
    /// A message is being sent, or what was said to it is being recorded.
    pub(super) sending: bool,
    /// Left alone until then, milliseconds since 1970: something of ours went wrong.
    pub(super) aside_until: i64,
    /// Its last attempt took long.
    pub(super) slow: bool,
    /// The change that `at` is of.
    seq: u64,
    /// It is deleted: what waits to be sent is not.
    pub(super) gone: Arc<AtomicBool>,
}

impl Target {
    /// The last change that it needs not be told.
    pub(super) fn told(&self) -> Seq {
        self.looked.max(done(&self.at))
    }

    /// The last change of the range that it is told again, if it is.
    pub(super) fn range_end(&self) -> Option<Seq> {
        Some(seq(self.at.range_end)).filter(|end| *end != Seq(0))
    }

    /// Takes in how far it has been told.
    fn moved(&mut self, at: Delivery, seq: u64) {
        // Rows may be ahead of the place from which changes are read.
        if seq <= self.seq {
            return;
        }
        self.seq = seq;
        // Told again from another place, or a range ended.
        if at.turn != self.at.turn || at.range_end != self.at.range_end {
            self.looked = done(&at);
            self.behind = true;
        }
        self.at = at;
    }
}

fn done(at: &Delivery) -> Seq {
    seq(at.done)
}

/// All targets, and where their changes have been read to.
#[derive(Default)]
pub(super) struct Targets {
    pub(super) all: HashMap<String, Target>,
    /// Which came and went since somebody asked.
    pub(super) moved: Moved,
    watches: Seq,
    deliveries: Seq,
}

/// Which targets came and went.
#[derive(Default)]
pub(super) struct Moved {
    pub(super) come: Vec<Arc<SavedItem>>,
    pub(super) gone: Vec<String>,
}

impl Targets {
    /// All targets as the rows have them.
    pub(super) async fn read(ctx: &Context) -> Result<Self, Problem> {
        let mut this = Self::default();
        // The positions first: what is changed meanwhile is read again.
        let (view, watches) = end(ctx, &watches::TABLES).await?;
        let (_, deliveries) = end(ctx, &deliveries::TABLES).await?;
        (this.watches, this.deliveries) = (watches, deliveries);
        let mut scan = view.scan(watches::TABLES.records, Span::default());
        loop {
            let rows = scan.next(PAGE).await.map_err(store_problem)?;
            if rows.is_empty() {
                return Ok(this);
            }
            // One that cannot be read keeps no other waiting.
            let kept =
                rows.iter().filter_map(|(_, bytes)| stored::<Row<SavedItem>>(watches::TABLES.records, bytes).ok()).map(|row| row.record);
            this.take(ctx, kept.filter(is_target).collect()).await?;
        }
    }

    /// Reads on in the changes of watches and deliveries.
    pub(super) async fn follow(&mut self, ctx: &Context) -> Result<(), Problem> {
        while let Some((changes, to)) = read_on::<SavedItem>(ctx, &watches::TABLES, self.watches).await? {
            let (targets, others): (Vec<SavedItem>, Vec<SavedItem>) = changes.into_iter().map(|change| change.record).partition(is_target);
            self.take(ctx, targets).await?;
            for SavedItem { id, .. } in others {
                if let Some(target) = self.all.remove(&id) {
                    target.gone.store(true, Ordering::Relaxed);
                    self.moved.come.retain(|come| come.id != id);
                    self.moved.gone.push(id);
                }
            }
            self.watches = to;
        }
        while let Some((changes, to)) = read_on::<Delivery>(ctx, &deliveries::TABLES, self.deliveries).await? {
            for Element { record, seq, .. } in changes {
                if let Some(target) = self.all.get_mut(&record.id) {
                    target.moved(record, seq);
                }
            }
            self.deliveries = to;
        }
        Ok(())
    }

    /// Knows targets, or knows them better.
    async fn take(&mut self, ctx: &Context, all: Vec<SavedItem>) -> Result<(), Problem> {
        let keys: Vec<_> = all.iter().map(|kept| key![kept.id.as_str()]).collect();
        let states = ctx.live(deliveries::TABLES.view).await?;
        let known = states.get_many(deliveries::TABLES.records, &keys).await.map_err(store_problem)?;
        for (kept, known) in all.into_iter().zip(known) {
            let kept = Arc::new(kept);
            self.moved.gone.retain(|id| *id != kept.id);
            self.moved.come.push(Arc::clone(&kept));
            if let Some(target) = self.all.get_mut(&kept.id) {
                target.kept = kept;
                continue;
            }
            let row = known.and_then(|bytes| stored::<Row<Delivery>>(deliveries::TABLES.records, &bytes).ok()).unwrap_or_else(|| Row {
                seq: 0,
                record: Delivery {
                    id: kept.id.clone(),
                    account: kept.account.clone(),
                    service: kept.service.clone(),
                    done: kept.after,
                    ..Delivery::default()
                },
            });
            let target = Target {
                looked: done(&row.record),
                at: row.record,
                behind: true,
                sending: false,
                aside_until: 0,
                slow: false,
                seq: u64::try_from(row.seq).unwrap_or(0),
                gone: Arc::default(),
                kept,
            };
            self.all.insert(target.kept.id.clone(), target);
        }
        Ok(())
    }
}

fn is_target(kept: &SavedItem) -> bool {
    kept.kind == kind::WATCH && !kept.gone && !kept.webhook.is_empty()
}

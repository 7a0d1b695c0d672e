//! The targets, as the changes of watches and deliveries have them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::topics::{self, Topic};
use schemas::views::deliveries::{self, Delivery};
use schemas::views::records::{RecordTables, Row};
use schemas::views::watches::{self, Kept, kind};
use serde::de::DeserializeOwned;
use view_store::View;
use view_store::store::Span;

use crate::context::{Context, store_problem};
use crate::feed::Source;
use crate::feed::filter::{Element, elements};
use crate::problem::Problem;

/// Rows, or changes, read at once.
const PAGE: usize = 500;

const WATCHES: Source = own("watches", &watches::TABLES, &topics::CHANGES_WATCHES, &[topics::ACCOUNTS]);
const DELIVERIES: Source = own("deliveries", &deliveries::TABLES, &topics::CHANGES_DELIVERIES, &[topics::DELIVERIES]);

const fn own(service: &'static str, tables: &RecordTables, topic: &'static Topic, facts: &'static [Topic]) -> Source {
    Source { service, view: tables.view, feed: tables.feed, through: tables.through, topic, facts, sample_days: None }
}

/// A watch with a webhook, and how far it has been told.
pub(super) struct Target {
    pub(super) kept: Arc<Kept>,
    pub(super) at: Delivery,
    /// Nothing above `at.done` and up to here is for it.
    pub(super) looked: Seq,
    /// Whether something above `looked` may be for it that was there already when its service's changes were looked at.
    pub(super) behind: bool,
    /// A message is being sent.
    pub(super) sending: bool,
    /// It is deleted: what waits to be sent is not.
    pub(super) gone: Arc<AtomicBool>,
}

impl Target {
    /// The last change that it needs not be told.
    pub(super) fn told(&self) -> Seq {
        self.looked.max(done(&self.at))
    }

    /// Takes in how far it has been told.
    fn moved(&mut self, at: Delivery) {
        // Told again from an earlier place.
        if at.done < self.at.done {
            self.looked = done(&at);
            self.behind = true;
        }
        self.at = at;
    }
}

pub(super) fn done(at: &Delivery) -> Seq {
    Seq(u64::try_from(at.done).unwrap_or(0))
}

/// All targets, and where their changes have been read to.
#[derive(Default)]
pub(super) struct Targets {
    pub(super) all: HashMap<String, Target>,
    watches: Seq,
    deliveries: Seq,
}

/// Which targets came and went.
#[derive(Default)]
pub(super) struct Moved {
    pub(super) come: Vec<Arc<Kept>>,
    pub(super) gone: Vec<String>,
}

impl Targets {
    /// All targets as the rows have them.
    pub(super) async fn read(ctx: &Context) -> Result<(Self, Moved), Problem> {
        let mut this = Self::default();
        // The positions first: what is changed meanwhile is read again.
        let (view, watches) = at(ctx, &WATCHES).await?;
        let (states, deliveries) = at(ctx, &DELIVERIES).await?;
        (this.watches, this.deliveries) = (watches, deliveries);
        let (mut moved, mut scan) = (Moved::default(), view.scan(watches::TABLES.records, Span::default()));
        loop {
            let rows = scan.next(PAGE).await.map_err(store_problem)?;
            if rows.is_empty() {
                break;
            }
            let kept = rows.iter().map(|(_, bytes)| row::<Kept>(bytes)).collect::<Result<Vec<_>, _>>()?;
            let kept: Vec<Kept> = kept.into_iter().filter(is_target).collect();
            let keys: Vec<_> = kept.iter().map(|kept| key![kept.id.as_str()]).collect();
            let known = states.get_many(deliveries::TABLES.records, &keys).await.map_err(store_problem)?;
            for (kept, known) in kept.into_iter().zip(known) {
                let known = known.map(|bytes| row::<Delivery>(&bytes)).transpose()?;
                moved.come.push(this.take(kept, known));
            }
        }
        Ok((this, moved))
    }

    /// Reads on in the changes of watches and deliveries.
    pub(super) async fn follow(&mut self, ctx: &Context) -> Result<Moved, Problem> {
        let mut moved = Moved::default();
        while let Some(changes) = read_on::<Kept>(ctx, &WATCHES, &mut self.watches).await? {
            for Element { record: kept, .. } in changes {
                if is_target(&kept) {
                    moved.gone.retain(|id| *id != kept.id);
                    let at = self.all.get(&kept.id).map(|target| target.at.clone());
                    moved.come.push(self.take(kept, at));
                } else if let Some(target) = self.all.remove(&kept.id) {
                    target.gone.store(true, Ordering::Relaxed);
                    moved.come.retain(|come| come.id != kept.id);
                    moved.gone.push(kept.id);
                }
            }
        }
        while let Some(changes) = read_on::<Delivery>(ctx, &DELIVERIES, &mut self.deliveries).await? {
            for Element { record, .. } in changes {
                if let Some(target) = self.all.get_mut(&record.id) {
                    target.moved(record);
                }
            }
        }
        Ok(moved)
    }

    /// Knows a target, or knows it better.
    fn take(&mut self, kept: Kept, at: Option<Delivery>) -> Arc<Kept> {
        let at = at.unwrap_or_else(|| Delivery {
            id: kept.id.clone(),
            account: kept.account.clone(),
            service: kept.service.clone(),
            done: kept.after,
            ..Delivery::default()
        });
        let kept = Arc::new(kept);
        let looked = done(&at);
        let target = self.all.entry(kept.id.clone()).or_insert_with(|| Target {
            kept: Arc::clone(&kept),
            at,
            looked,
            behind: true,
            sending: false,
            gone: Arc::default(),
        });
        target.kept = Arc::clone(&kept);
        kept
    }
}

fn is_target(kept: &Kept) -> bool {
    kept.kind == kind::WATCH && !kept.gone && !kept.webhook.is_empty()
}

async fn at(ctx: &Context, source: &Source) -> Result<(Arc<dyn View>, Seq), Problem> {
    let view = ctx.live(source.view).await?;
    let at = Seq(view.checkpoint().await.map_err(store_problem)?.seq);
    Ok((view, at))
}

/// The next changes after a place, which moves; `None` at the end.
async fn read_on<R: DeserializeOwned>(ctx: &Context, source: &Source, after: &mut Seq) -> Result<Option<Vec<Element<R>>>, Problem> {
    let (view, upto) = at(ctx, source).await?;
    if *after >= upto {
        return Ok(None);
    }
    let page = ctx.feeds.reader(source, view).page(*after, upto, PAGE).await.map_err(store_problem)?;
    *after = Seq(page.to);
    elements(&page).map(Some)
}

fn row<R: DeserializeOwned>(bytes: &[u8]) -> Result<R, Problem> {
    serde_json::from_slice::<Row<R>>(bytes).map(|row| row.record).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Problem {
    tracing::error!(%error, "a target's row or change cannot be read");
    Problem::new(ErrorCode::Internal, "a stored row cannot be read")
}

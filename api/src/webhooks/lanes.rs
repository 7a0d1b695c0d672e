//! What each service has to tell: which targets a run of new changes concerns, where a target's next message ends, and what it says.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::deliveries::Delivery;
use schemas::views::recalls::Recall;
use schemas::views::watches::Kept;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use view_store::View;

use crate::context::{Context, store_problem};
use crate::feed::Source;
use crate::feed::filter::{Element, Filter, elements};
use crate::feed::position::position;
use crate::feed::query::Item;
use crate::feed::select::{Selection, Way};
use crate::problem::Problem;
use crate::services::awards::followed::Awards;
use crate::services::common::followed::Followed;
use crate::services::filings::followed::Filings;
use crate::services::recalls;
use crate::services::recalls::list::Record;
use crate::services::research::followed::Research;

/// Changes read at once.
const PAGE: usize = 200;

/// What a target is told next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The first and the last change of its message.
    Told(Seq, Seq),
    /// Nothing up to here.
    Nothing(Seq),
}

/// One service.
#[async_trait]
pub(super) trait Lane: Send + Sync {
    /// Where its changes are.
    fn source(&self) -> Source;

    /// Knows a target from now on; false for one whose filter cannot be read.
    fn add(&mut self, kept: &Kept) -> bool;

    /// Knows a target no more.
    fn remove(&mut self, id: &str);

    /// Which of the targets that wait a page of changes above `after`, up to `upto`, concerns, and the last change of that page.
    async fn concerned(
        &self,
        ctx: &Context,
        view: Arc<dyn View>,
        after: Seq,
        upto: Seq,
        waits: &(dyn for<'a> Fn(&'a str) -> bool + Sync),
    ) -> Result<(Vec<String>, Seq), Problem>;

    /// What a target is told next of the changes above `after` and up to `upto`.
    async fn next(&self, ctx: &Context, id: &str, after: Seq, upto: Seq) -> Result<Next, Problem>;

    /// What a message says.
    async fn body(&self, ctx: &Context, kept: &Kept, message: &Delivery) -> Result<Bytes, Problem>;
}

/// The services whose watches have webhooks.
pub(super) fn all() -> Vec<Box<dyn Lane>> {
    vec![Box::new(Of::<Awards>::new()), Box::new(Of::<Filings>::new()), Box::new(OfRecalls::default()), Box::new(Of::<Research>::new())]
}

/// What the message under way to a watch says.
///
/// # Errors
/// When the watch or the changes cannot be read.
pub(crate) async fn body(ctx: &Context, kept: &Kept, message: &Delivery) -> Result<Bytes, Problem> {
    let lane = all().into_iter().find(|lane| lane.source().service == kept.service).ok_or_else(|| odd(&kept.id))?;
    lane.body(ctx, kept, message).await
}

/// A message's body, by what a watch names.
pub trait Named: Followed {
    /// How many changes one message tells at most.
    const CHANGES_MAX: usize;

    /// What is posted.
    fn message(named: Self::Named, changes: Vec<Self::Shown>) -> Value;
}

/// A service whose changes are filtered.
struct Of<S: Named> {
    filters: BTreeMap<String, S::Filter>,
    service: PhantomData<S>,
}

impl<S: Named> Of<S> {
    fn new() -> Self {
        Self { filters: BTreeMap::new(), service: PhantomData }
    }

    /// The changes above `after` that fit, and up to where these are all. Where the view stands below `upto`, it is waited for by asking again.
    async fn find(ctx: &Context, filter: &S::Filter, after: Seq, upto: Seq) -> Result<(Vec<Changed<S>>, Seq), Problem> {
        let at = position(ctx, &S::FEED.source, None).await?;
        if at.seq < upto {
            return Err(Problem::new(ErrorCode::Unavailable, "the view stands behind what was read of it before").retry_after(1));
        }
        let filters = std::slice::from_ref(filter);
        let selection = Selection::new(ctx, &S::FEED.source, S::FEED.tables, &at, filters).await?;
        let found = selection.find(after, upto, S::CHANGES_MAX, Way::Forwards).await?;
        Ok((found.changes, Seq(found.to)))
    }
}

type Changed<S> = Element<<<S as Followed>::Filter as Filter>::Record>;

#[async_trait]
impl<S: Named> Lane for Of<S> {
    fn source(&self) -> Source {
        S::FEED.source
    }

    fn add(&mut self, kept: &Kept) -> bool {
        let filter = S::Filter::of_canonical(&kept.filter);
        filter.map(|filter| self.filters.insert(kept.id.clone(), filter)).is_some()
    }

    fn remove(&mut self, id: &str) {
        self.filters.remove(id);
    }

    async fn concerned(
        &self,
        ctx: &Context,
        view: Arc<dyn View>,
        after: Seq,
        upto: Seq,
        waits: &(dyn for<'a> Fn(&'a str) -> bool + Sync),
    ) -> Result<(Vec<String>, Seq), Problem> {
        if self.filters.is_empty() {
            return Ok((Vec::new(), upto));
        }
        let (changes, to) = page::<<S::Filter as Filter>::Record>(ctx, &S::FEED.source, view, after, upto).await?;
        let is_told = |filter: &S::Filter| changes.iter().any(|change| filter.fits(change));
        let concerned = self.filters.iter().filter(|(id, filter)| waits(id) && is_told(filter));
        Ok((concerned.map(|(id, _)| id.clone()).collect(), to))
    }

    async fn next(&self, ctx: &Context, id: &str, after: Seq, upto: Seq) -> Result<Next, Problem> {
        let Some(filter) = self.filters.get(id) else { return Ok(Next::Nothing(upto)) };
        let (changes, to) = Self::find(ctx, filter, after, upto).await?;
        let told = changes.first().zip(changes.last());
        Ok(told.map_or(Next::Nothing(to), |(first, last)| Next::Told(Seq(first.seq), Seq(last.seq))))
    }

    async fn body(&self, ctx: &Context, kept: &Kept, message: &Delivery) -> Result<Bytes, Problem> {
        let (filter, named) =
            S::Filter::of_canonical(&kept.filter).zip(serde_json::from_str(&kept.entity).ok()).ok_or_else(|| odd(&kept.id))?;
        let (mut after, upto, mut changes) = (seq(message.done), seq(message.upto), Vec::new());
        while after < upto {
            let (found, to) = Self::find(ctx, &filter, after, upto).await?;
            changes.extend(found);
            after = to;
        }
        if changes.is_empty() {
            return Err(odd(&kept.id));
        }
        let shown = changes.into_iter().map(|change| Item { change, before: None }.into()).collect();
        Ok(Bytes::from(S::message(named, shown).to_string()))
    }
}

/// A change by its number as rows have it.
pub(super) fn seq(number: i64) -> Seq {
    Seq(u64::try_from(number).unwrap_or(0))
}

/// The recalls: every target is told of each new one.
#[derive(Default)]
struct OfRecalls {
    targets: std::collections::BTreeSet<String>,
}

impl OfRecalls {
    /// The first new recall of a page.
    async fn first(&self, ctx: &Context, after: Seq, upto: Seq) -> Result<(Option<Element<Recall>>, Seq), Problem> {
        let view = ctx.live(recalls::SOURCE.view).await?;
        let (changes, to) = page::<Recall>(ctx, &recalls::SOURCE, view, after, upto).await?;
        Ok((changes.into_iter().find(is_new), to))
    }
}

fn is_new(change: &Element<Recall>) -> bool {
    change.event == "new"
}

#[async_trait]
impl Lane for OfRecalls {
    fn source(&self) -> Source {
        recalls::SOURCE
    }

    fn add(&mut self, kept: &Kept) -> bool {
        self.targets.insert(kept.id.clone());
        true
    }

    fn remove(&mut self, id: &str) {
        self.targets.remove(id);
    }

    async fn concerned(
        &self,
        ctx: &Context,
        view: Arc<dyn View>,
        after: Seq,
        upto: Seq,
        waits: &(dyn for<'a> Fn(&'a str) -> bool + Sync),
    ) -> Result<(Vec<String>, Seq), Problem> {
        if self.targets.is_empty() {
            return Ok((Vec::new(), upto));
        }
        let (changes, to) = page::<Recall>(ctx, &recalls::SOURCE, view, after, upto).await?;
        let all = self.targets.iter().filter(|id| changes.iter().any(is_new) && waits(id));
        Ok((all.cloned().collect(), to))
    }

    async fn next(&self, ctx: &Context, _: &str, after: Seq, upto: Seq) -> Result<Next, Problem> {
        let (first, to) = self.first(ctx, after, upto).await?;
        Ok(first.map_or(Next::Nothing(to), |first| Next::Told(Seq(first.seq), Seq(first.seq))))
    }

    async fn body(&self, ctx: &Context, kept: &Kept, message: &Delivery) -> Result<Bytes, Problem> {
        let (told, _) = self.first(ctx, seq(message.done), seq(message.upto)).await?;
        let told = told.ok_or_else(|| odd(&kept.id))?;
        // A time that is the same each time it is sent; that of the attempt is in its head.
        let body = json!({ "event": "recalls.new", "deliveredAt": told.recorded_at, "recall": Record::from(told.record) });
        Ok(Bytes::from(body.to_string()))
    }
}

/// A page of a service's changes, and the last one that it covers.
async fn page<R: DeserializeOwned>(
    ctx: &Context,
    source: &Source,
    view: Arc<dyn View>,
    after: Seq,
    upto: Seq,
) -> Result<(Vec<Element<R>>, Seq), Problem> {
    let page = ctx.feeds.reader(source, view).page(after, upto, PAGE).await.map_err(store_problem)?;
    Ok((elements(&page)?, Seq(page.to)))
}

fn odd(id: &str) -> Problem {
    tracing::error!(id, "a watch cannot be read");
    Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
}

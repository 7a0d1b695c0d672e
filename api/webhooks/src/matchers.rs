//! Watch matchers: which watches of a service a change concerns, where the next message of a watch ends, and what it says.
//!
//! A service that has watches states a [`Subscribed`] feed; its registration hands [`matcher`] of it to the sender.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use feed::filter::{Element, Filter, elements};
use feed::followed::Followed;
use feed::position::position;
use feed::query::Item;
use feed::select::{Selection, Way};
use feed::{Feeds, Source};
use operation::context::{Context, Part, store_problem};
use operation::problem::Problem;
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::deliveries::Delivery;
use schemas::views::watches::SavedItem;
use serde::de::DeserializeOwned;
use serde_json::Value;
use view_store::View;

/// Changes read at once.
const PAGE: usize = 200;

/// What the next message of a watch covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The first and the last change of the message.
    Message(Seq, Seq),
    /// No change up to this one is for the watch.
    Nothing(Seq),
}

/// The watches of one service that have a webhook, and which changes each of them selects.
#[async_trait]
pub trait WatchMatcher: Send + Sync {
    /// Where the service's changes are.
    fn source(&self) -> Source;

    /// Adds a watch; false for one whose filter cannot be read.
    fn add(&mut self, kept: &SavedItem) -> bool;

    /// Removes a watch.
    fn remove(&mut self, id: &str);

    /// The waiting watches that a page of changes above `after` and up to `upto` concerns, and the last change of that page.
    ///
    /// # Errors
    /// When the changes cannot be read.
    async fn concerned(
        &self,
        ctx: &Context,
        view: Arc<dyn View>,
        after: Seq,
        upto: Seq,
        waits: &(dyn for<'a> Fn(&'a str) -> bool + Sync),
    ) -> Result<(Vec<String>, Seq), Problem>;

    /// The next message of a watch, out of the changes above `after` and up to `upto`.
    ///
    /// # Errors
    /// When the changes cannot be read.
    async fn next(&self, ctx: &Context, id: &str, after: Seq, upto: Seq) -> Result<Next, Problem>;

    /// The body of a message.
    ///
    /// # Errors
    /// When the watch or the changes cannot be read.
    async fn body(&self, ctx: &Context, kept: &SavedItem, message: &Delivery) -> Result<Bytes, Problem>;
}

/// Makes the matcher of a service, without any watch.
pub type NewMatcher = fn() -> Box<dyn WatchMatcher>;

/// The matchers of all services whose watches have webhooks.
#[derive(Clone)]
pub struct Matchers(Arc<[NewMatcher]>);

impl Matchers {
    /// Those of the registered services.
    #[must_use]
    pub fn new(all: Vec<NewMatcher>) -> Self {
        Self(all.into())
    }

    /// A fresh matcher of each service.
    pub(crate) fn all(&self) -> Vec<Box<dyn WatchMatcher>> {
        self.0.iter().map(|new| new()).collect()
    }

    /// The body of a watch's message.
    ///
    /// # Errors
    /// When the watch or the changes cannot be read.
    pub(crate) async fn body(&self, ctx: &Context, kept: &SavedItem, message: &Delivery) -> Result<Bytes, Problem> {
        let matcher = self.all().into_iter().find(|matcher| matcher.source().service == kept.service);
        matcher.ok_or_else(|| unreadable(&kept.id))?.body(ctx, kept, message).await
    }
}

/// Changes, and the last one up to which these are all.
pub type Found<R> = Result<(Vec<Element<R>>, Seq), Problem>;

/// The feed of a service as webhooks deliver it.
pub trait Subscribed: Send + Sync + 'static {
    /// Which changes a watch selects.
    type Subscription: Send + Sync;
    /// The record of a change.
    type Record: ChangeRecord + DeserializeOwned + Send + Sync;

    /// Where the changes are.
    const SOURCE: Source;

    /// The changes that a watch selects; `None` where that cannot be read.
    fn subscription(kept: &SavedItem) -> Option<Self::Subscription>;

    /// Whether a change is selected.
    fn selects(subscription: &Self::Subscription, change: &Element<Self::Record>) -> bool;

    /// The selected changes above `after` that fit into one message, and up to where these are all.
    fn find(ctx: &Context, subscription: &Self::Subscription, after: Seq, upto: Seq) -> impl Future<Output = Found<Self::Record>> + Send;

    /// The message; `None` where the watch cannot be read.
    fn message(kept: &SavedItem, changes: Vec<Element<Self::Record>>) -> Option<Value>;
}

/// The matcher of a service's feed, without any watch.
#[must_use]
pub fn matcher<S: Subscribed>() -> Box<dyn WatchMatcher> {
    Box::new(MatcherOf::<S> { subscriptions: BTreeMap::new(), service: PhantomData })
}

struct MatcherOf<S: Subscribed> {
    subscriptions: BTreeMap<String, S::Subscription>,
    service: PhantomData<S>,
}

#[async_trait]
impl<S: Subscribed> WatchMatcher for MatcherOf<S> {
    fn source(&self) -> Source {
        S::SOURCE
    }

    fn add(&mut self, kept: &SavedItem) -> bool {
        S::subscription(kept).map(|subscription| self.subscriptions.insert(kept.id.clone(), subscription)).is_some()
    }

    fn remove(&mut self, id: &str) {
        self.subscriptions.remove(id);
    }

    async fn concerned(
        &self,
        ctx: &Context,
        view: Arc<dyn View>,
        after: Seq,
        upto: Seq,
        waits: &(dyn for<'a> Fn(&'a str) -> bool + Sync),
    ) -> Result<(Vec<String>, Seq), Problem> {
        if self.subscriptions.is_empty() {
            return Ok((Vec::new(), upto));
        }
        let (changes, to) = page::<S::Record>(ctx, &S::SOURCE, view, after, upto).await?;
        let is_selected = |subscription: &S::Subscription| changes.iter().any(|change| S::selects(subscription, change));
        let concerned = self.subscriptions.iter().filter(|(id, subscription)| waits(id) && is_selected(subscription));
        Ok((concerned.map(|(id, _)| id.clone()).collect(), to))
    }

    async fn next(&self, ctx: &Context, id: &str, after: Seq, upto: Seq) -> Result<Next, Problem> {
        let Some(subscription) = self.subscriptions.get(id) else { return Ok(Next::Nothing(upto)) };
        let (changes, to) = S::find(ctx, subscription, after, upto).await?;
        let ends = changes.first().zip(changes.last());
        Ok(ends.map_or(Next::Nothing(to), |(first, last)| Next::Message(Seq(first.seq), Seq(last.seq))))
    }

    async fn body(&self, ctx: &Context, kept: &SavedItem, message: &Delivery) -> Result<Bytes, Problem> {
        let subscription = S::subscription(kept).ok_or_else(|| unreadable(&kept.id))?;
        let (mut after, upto, mut changes) = (seq(message.done), seq(message.upto), Vec::new());
        while after < upto {
            let (found, to) = S::find(ctx, &subscription, after, upto).await?;
            changes.extend(found);
            after = to;
        }
        let message = if changes.is_empty() { None } else { S::message(kept, changes) };
        Ok(Bytes::from(message.ok_or_else(|| unreadable(&kept.id))?.to_string()))
    }
}

/// The messages of a service whose feed can be filtered.
pub trait WatchMessages: Followed {
    /// How many changes one message carries at most.
    const CHANGES_MAX: usize;

    /// The body of a message, from what the watch names and the changes.
    fn message(named: Self::Named, changes: Vec<Self::Shown>) -> Value;
}

impl<S: WatchMessages> Subscribed for S {
    type Subscription = S::Filter;
    type Record = <S::Filter as Filter>::Record;

    const SOURCE: Source = S::FEED.source;

    fn subscription(kept: &SavedItem) -> Option<S::Filter> {
        S::Filter::of_canonical(&kept.filter)
    }

    fn selects(filter: &S::Filter, change: &Element<Self::Record>) -> bool {
        filter.fits(change)
    }

    /// Fails while the view is behind `upto`, so that the sender asks again.
    async fn find(ctx: &Context, filter: &S::Filter, after: Seq, upto: Seq) -> Found<Self::Record> {
        let at = position(ctx, &S::FEED.source, None).await?;
        if at.seq < upto {
            return Err(Problem::new(ErrorCode::Unavailable, "the view is behind what was read of it before").retry_after(1));
        }
        let selection = Selection::new(ctx, &S::FEED.source, S::FEED.tables, &at, std::slice::from_ref(filter)).await?;
        let found = selection.find(after, upto, S::CHANGES_MAX, Way::Forwards).await?;
        Ok((found.changes, Seq(found.to)))
    }

    fn message(kept: &SavedItem, changes: Vec<Element<Self::Record>>) -> Option<Value> {
        let named = serde_json::from_str(&kept.entity).ok()?;
        Some(<S as WatchMessages>::message(named, changes.into_iter().map(|change| Item { change, before: None }.into()).collect()))
    }
}

/// The `seq` of a stored row.
pub(crate) fn seq(number: i64) -> Seq {
    Seq(u64::try_from(number).unwrap_or(0))
}

/// A page of a service's changes, and the last one that it covers.
///
/// # Errors
/// When the feed cannot be read.
pub async fn page<R: ChangeRecord + DeserializeOwned>(
    ctx: &Context,
    source: &Source,
    view: Arc<dyn View>,
    after: Seq,
    upto: Seq,
) -> Found<R> {
    let page = Feeds::of(ctx).reader(source, view).page(after, upto, PAGE).await.map_err(store_problem)?;
    Ok((elements(&page)?, Seq(page.to)))
}

fn unreadable(id: &str) -> Problem {
    tracing::error!(id, "a watch cannot be read");
    Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
}

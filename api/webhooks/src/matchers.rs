//! Watch matchers: decide which watches a change concerns, where the next message of a watch ends, and render the message.
//!
//! A service that supports watches implements [`WebhookFeed`]; its registration passes the result of [`matcher`] to the sender.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use feed::answer_changes::shown;
use feed::filter::{Element, Filter, elements};
use feed::position::position;
use feed::select::{Direction, Selection};
use feed::watchable::WatchableFeed;
use feed::{Feeds, Source};
use operation::context::{Context, Part, store_problem};
use operation::problem::Problem;
use schemas::clock::{DAY_MS, rfc3339};
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::deliveries::Delivery;
use schemas::views::watches::SavedItem;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use view_store::View;

/// How many changes are read per page.
const PAGE: usize = 200;

/// The result of a search for the next message of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextMessage {
    /// The first and the last change of the next message.
    Span(Seq, Seq),
    /// No change up to this one is selected by the watch.
    NoneUpTo(Seq),
    /// Changes are selected, but the day on which they were recorded is not over: the message is due at this time, milliseconds since 1970.
    NotBefore(i64),
}

/// The watches of one service that have a webhook, and the changes that each of them selects.
#[async_trait]
pub trait WatchMatcher: Send + Sync {
    /// The feed that the changes are read from.
    fn source(&self) -> Source;

    /// Adds a watch. Returns false if its filter cannot be read.
    fn add(&mut self, watch: &SavedItem) -> bool;

    /// Removes a watch.
    fn remove(&mut self, id: &str);

    /// Reads one page of changes after `after`, up to `upto`. Returns the ids of the watches that `is_waiting` accepts and that select a change of the
    /// page, and the last change that the page covers.
    ///
    /// # Errors
    /// When the changes cannot be read.
    async fn matching_watches(
        &self,
        ctx: &Context,
        view: Arc<dyn View>,
        after: Seq,
        upto: Seq,
        is_waiting: &(dyn for<'a> Fn(&'a str) -> bool + Sync),
    ) -> Result<(Vec<String>, Seq), Problem>;

    /// Finds the next message of a watch among the changes after `after`, up to `upto`.
    ///
    /// # Errors
    /// When the changes cannot be read.
    async fn next(&self, ctx: &Context, id: &str, after: Seq, upto: Seq) -> Result<NextMessage, Problem>;

    /// Renders the body of a message; `None` if the watch selects none of its changes any more, because what it asks for was suppressed.
    ///
    /// # Errors
    /// When the watch or the changes cannot be read.
    async fn body(&self, ctx: &Context, watch: &SavedItem, message: &Delivery) -> Result<Option<Bytes>, Problem>;
}

/// Creates the matcher of a service, without any watches.
pub type NewMatcher = fn() -> Box<dyn WatchMatcher>;

/// The matchers of all services whose watches can have webhooks.
#[derive(Clone)]
pub struct Matchers(Arc<[NewMatcher]>);

impl Matchers {
    /// Collects the matchers of the registered services.
    #[must_use]
    pub fn new(all: Vec<NewMatcher>) -> Self {
        Self(all.into())
    }

    /// Creates a new matcher for each service.
    pub(crate) fn all(&self) -> Vec<Box<dyn WatchMatcher>> {
        self.0.iter().map(|new| new()).collect()
    }

    /// Creates a matcher of the service of a watch.
    ///
    /// # Errors
    /// `unavailable` if the service is not served here, or its watches have no webhooks.
    pub(crate) fn matcher_of(&self, watch: &SavedItem) -> Result<Box<dyn WatchMatcher>, Problem> {
        let matcher = self.all().into_iter().find(|matcher| matcher.source().service == watch.service);
        matcher.ok_or_else(|| {
            Problem::new(ErrorCode::Unavailable, format!("no webhooks of {} are sent here: it is not served", watch.service))
        })
    }
}

/// Selected changes, and the last change up to which they are complete.
pub type MatchingChanges<R> = Result<(Vec<Element<R>>, Seq), Problem>;

/// The feed of a service, as webhooks deliver it.
pub trait WebhookFeed: Send + Sync + 'static {
    /// The parsed filter of a watch.
    type Subscription: Send + Sync;
    /// The record type of a change.
    type Record: ChangeRecord + DeserializeOwned + Send + Sync;

    /// The feed that the changes are read from.
    const SOURCE: Source;

    /// Parses the filter of a watch; `None` if it cannot be read.
    fn subscription(watch: &SavedItem) -> Option<Self::Subscription>;

    /// Whether the changes of a day (UTC) are sent when the day is over, each message with changes of one day. Otherwise they are sent as they are recorded.
    const IS_DAILY: bool = false;

    /// Whether a subscription asks for late news as well; see [`Element::is_backfill`]. Others are never sent any.
    fn includes_backfill(_subscription: &Self::Subscription) -> bool {
        false
    }

    /// Whether a subscription selects a change, be it news or not.
    fn selects(subscription: &Self::Subscription, change: &Element<Self::Record>) -> bool;

    /// Keys of a subscription: it only selects changes that have one of them among their own keys. `None` if it must be compared with every change.
    fn subscription_keys(_subscription: &Self::Subscription) -> Option<Vec<u64>> {
        None
    }

    /// The keys of a change, by which the subscriptions that may select it are found.
    fn change_keys(_change: &Element<Self::Record>) -> Vec<u64> {
        Vec::new()
    }

    /// Finds the selected changes after `after` that fit into one message, and the last change up to which they are complete.
    fn find(
        ctx: &Context,
        subscription: &Self::Subscription,
        after: Seq,
        upto: Seq,
    ) -> impl Future<Output = MatchingChanges<Self::Record>> + Send;

    /// The watch as its owner named what it watches, where that is not what is stored; `None` where it is.
    ///
    /// # Errors
    /// When what it names cannot be read.
    fn shown_watch(_ctx: &Context, _watch: &SavedItem) -> impl Future<Output = Result<Option<SavedItem>, Problem>> + Send {
        std::future::ready(Ok(None))
    }

    /// Renders the message; `None` if the watch cannot be read.
    fn message(watch: &SavedItem, changes: Vec<Element<Self::Record>>) -> Option<Value>;
}

/// Creates the matcher of a service's feed, without any watches.
#[must_use]
pub fn matcher<S: WebhookFeed>() -> Box<dyn WatchMatcher> {
    Box::new(MatcherOf::<S> {
        watches: BTreeMap::new(),
        by_key: HashMap::new(),
        places: Vec::new(),
        free: Vec::new(),
        without_keys: BTreeSet::new(),
    })
}

/// A watch, parsed.
struct Watched<S: WebhookFeed> {
    subscription: S::Subscription,
    /// The keys by which changes find the watch, and its place; `None` if it is compared with every change.
    keys: Option<(Vec<u64>, u32)>,
    end: End,
}

/// The end of a watch: the last time of recording whose changes it selects, RFC 3339 in UTC; `None` if it has no end.
struct End(Option<String>);

impl End {
    fn of(watch: &SavedItem) -> Self {
        Self((watch.until != 0).then(|| rfc3339(watch.until)))
    }

    /// Whether a change was recorded before the end. Times of recording have one format, so that their texts are in the order of time.
    fn covers<R: ChangeRecord>(&self, change: &Element<R>) -> bool {
        self.0.as_ref().is_none_or(|end| change.recorded_at <= *end)
    }
}

struct MatcherOf<S: WebhookFeed> {
    watches: BTreeMap<String, Watched<S>>,
    /// The places of watches by their keys.
    by_key: HashMap<u64, Vec<u32>>,
    /// The ids of watches by their places; `None` is a place that is free. A watch has hundreds of keys, so that a place takes less memory than an id.
    places: Vec<Option<String>>,
    /// The places that are free.
    free: Vec<u32>,
    /// The ids of watches that are compared with every change.
    without_keys: BTreeSet<String>,
}

impl<S: WebhookFeed> MatcherOf<S> {
    /// Returns a free place for a watch.
    fn take_place(&mut self, id: &str) -> u32 {
        let id = Some(id.to_owned());
        if let Some(free) = self.free.pop()
            && let Some(place) = self.places.get_mut(free as usize)
        {
            *place = id;
            return free;
        }
        self.places.push(id);
        // A process has fewer watches than places.
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }

    fn selects(&self, id: &str, change: &Element<S::Record>) -> bool {
        self.watches
            .get(id)
            .is_some_and(|watch| is_sent::<S>(&watch.subscription, &watch.end, change) && S::selects(&watch.subscription, change))
    }
}

/// Whether a watch that selects a change sends it: it was recorded before the end of the watch, and it is news or late news is asked for.
fn is_sent<S: WebhookFeed>(subscription: &S::Subscription, end: &End, change: &Element<S::Record>) -> bool {
    end.covers(change) && (S::includes_backfill(subscription) || !change.is_backfill())
}

#[async_trait]
impl<S: WebhookFeed> WatchMatcher for MatcherOf<S> {
    fn source(&self) -> Source {
        S::SOURCE
    }

    fn add(&mut self, watch: &SavedItem) -> bool {
        self.remove(&watch.id);
        let Some(subscription) = S::subscription(watch) else { return false };
        let keys = S::subscription_keys(&subscription).map(|keys| {
            let place = self.take_place(&watch.id);
            for key in &keys {
                self.by_key.entry(*key).or_default().push(place);
            }
            (keys, place)
        });
        if keys.is_none() {
            self.without_keys.insert(watch.id.clone());
        }
        self.watches.insert(watch.id.clone(), Watched { subscription, keys, end: End::of(watch) });
        true
    }

    fn remove(&mut self, id: &str) {
        let Some(watch) = self.watches.remove(id) else { return };
        self.without_keys.remove(id);
        let Some((keys, place)) = watch.keys else { return };
        for key in keys {
            if let Some(places) = self.by_key.get_mut(&key) {
                places.retain(|known| *known != place);
                if places.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
        if let Some(free) = self.places.get_mut(place as usize) {
            *free = None;
            self.free.push(place);
        }
    }

    async fn matching_watches(
        &self,
        ctx: &Context,
        view: Arc<dyn View>,
        after: Seq,
        upto: Seq,
        is_waiting: &(dyn for<'a> Fn(&'a str) -> bool + Sync),
    ) -> Result<(Vec<String>, Seq), Problem> {
        if self.watches.is_empty() {
            return Ok((Vec::new(), upto));
        }
        let (changes, to) = page::<S::Record>(ctx, &S::SOURCE, view, after, upto).await?;
        let mut concerned: BTreeSet<&str> = BTreeSet::new();
        let compared = self.without_keys.iter().filter(|id| is_waiting(id));
        concerned.extend(compared.filter(|id| changes.iter().any(|change| self.selects(id, change))).map(String::as_str));
        if !self.by_key.is_empty() {
            for change in &changes {
                let keys = S::change_keys(change);
                let mut places: Vec<u32> = keys.iter().filter_map(|key| self.by_key.get(key)).flatten().copied().collect();
                places.sort_unstable();
                places.dedup();
                for id in places.iter().filter_map(|place| self.places.get(*place as usize)?.as_deref()) {
                    if !concerned.contains(id) && is_waiting(id) && self.selects(id, change) {
                        concerned.insert(id);
                    }
                }
            }
        }
        Ok((concerned.into_iter().map(str::to_owned).collect(), to))
    }

    async fn next(&self, ctx: &Context, id: &str, after: Seq, upto: Seq) -> Result<NextMessage, Problem> {
        let Some(watch) = self.watches.get(id) else { return Ok(NextMessage::NoneUpTo(upto)) };
        let (mut changes, to) = S::find(ctx, &watch.subscription, after, upto).await?;
        changes.retain(|change| is_sent::<S>(&watch.subscription, &watch.end, change));
        if S::IS_DAILY
            && let Some(due_ms) = keep_first_day(&mut changes, ctx.clock.now_ms())
        {
            return Ok(NextMessage::NotBefore(due_ms));
        }
        let ends = changes.first().zip(changes.last());
        Ok(ends.map_or(NextMessage::NoneUpTo(to), |(first, last)| NextMessage::Span(first.seq, last.seq)))
    }

    async fn body(&self, ctx: &Context, watch: &SavedItem, message: &Delivery) -> Result<Option<Bytes>, Problem> {
        let subscription = S::subscription(watch).ok_or_else(|| unreadable(&watch.id))?;
        let end = End::of(watch);
        let (mut after, upto, mut changes) = (message.done, message.upto, Vec::new());
        while after < upto {
            let (found, to) = S::find(ctx, &subscription, after, upto).await?;
            changes.extend(found.into_iter().filter(|change| is_sent::<S>(&subscription, &end, change)));
            after = to;
        }
        if changes.is_empty() {
            return Ok(None);
        }
        let shown = S::shown_watch(ctx, watch).await?;
        let message = S::message(shown.as_ref().unwrap_or(watch), changes).ok_or_else(|| unreadable(&watch.id))?;
        Ok(Some(Bytes::from(message.to_string())))
    }
}

/// The member that holds the kind and the value of a watched entity; see [`WatchableFeed::ENTITY_KINDS`].
const KIND_AND_VALUE: &str = "entity";

/// The messages of a service whose feed can be filtered.
pub trait WatchMessages: WatchableFeed {
    /// What a message reports, in its member `event`.
    const EVENT: &'static str;
    /// What a message says about the limits of its contents, in its member `disclaimer`.
    const DISCLAIMER: Option<&'static str> = None;
    /// The most changes that one message carries.
    const CHANGES_MAX: usize = 20;
    /// See [`WebhookFeed::IS_DAILY`].
    const IS_DAILY: bool = false;

    /// Returns the object with all members of a message but `event` and `disclaimer`. By default these are `changes` and the members of the watched entity;
    /// an entity with a kind and a value is the member `watch`.
    fn members(entity: Self::WatchedEntity, changes: Vec<Self::Shown>) -> Value {
        let mut members = json!(entity);
        if let Some(members) = members.as_object_mut() {
            let named = if Self::ENTITY_KINDS.is_empty() { None } else { members.remove(KIND_AND_VALUE) };
            members.extend(named.map(|named| ("watch".to_owned(), named)));
            members.insert("changes".to_owned(), json!(changes));
        }
        members
    }

    /// Renders the body of a message from the watched entity and the selected changes.
    fn message(entity: Self::WatchedEntity, changes: Vec<Self::Shown>) -> Value {
        let mut message = Self::members(entity, changes);
        if let Some(members) = message.as_object_mut() {
            members.insert("event".to_owned(), Value::from(Self::EVENT));
            members.extend(Self::DISCLAIMER.map(|text| ("disclaimer".to_owned(), Value::from(text))));
        }
        message
    }
}

impl<S: WatchMessages> WebhookFeed for S {
    type Subscription = S::Filter;
    type Record = <S::Filter as Filter>::Record;

    const SOURCE: Source = S::FEED.source;
    const IS_DAILY: bool = <S as WatchMessages>::IS_DAILY;

    fn subscription(watch: &SavedItem) -> Option<S::Filter> {
        S::Filter::from_canonical(&watch.filter)
    }

    fn includes_backfill(filter: &S::Filter) -> bool {
        feed::filter::includes_backfill(filter)
    }

    fn selects(filter: &S::Filter, change: &Element<Self::Record>) -> bool {
        filter.matches(change)
    }

    async fn find(ctx: &Context, filter: &S::Filter, after: Seq, upto: Seq) -> MatchingChanges<Self::Record> {
        find::<S>(ctx, filter, after, upto, S::CHANGES_MAX).await
    }

    async fn shown_watch(ctx: &Context, watch: &SavedItem) -> Result<Option<SavedItem>, Problem> {
        let stored = serde_json::from_str(&watch.entity).map_err(|_| unreadable(&watch.id))?;
        let shown = S::shown_entity(ctx, &watch.account, stored).await?;
        let entity = serde_json::to_string(&shown).map_err(|_| unreadable(&watch.id))?;
        Ok(Some(SavedItem { entity, ..watch.clone() }))
    }

    fn message(watch: &SavedItem, changes: Vec<Element<Self::Record>>) -> Option<Value> {
        let entity = serde_json::from_str(&watch.entity).ok()?;
        Some(<S as WatchMessages>::message(entity, shown(changes)))
    }
}

/// Leaves those of some changes in their order that were recorded on the day of the first one, in UTC. Returns when that day is over, if it is not.
fn keep_first_day<R: ChangeRecord>(changes: &mut Vec<Element<R>>, now_ms: i64) -> Option<i64> {
    // Times of recording have one format, so that their texts are in the order of time.
    let day = |text: &str| text.get(..10).unwrap_or_default().to_owned();
    let first = day(&changes.first()?.recorded_at);
    changes.retain(|change| day(&change.recorded_at) == first);
    (first >= day(&rfc3339(now_ms))).then_some((now_ms.div_euclid(DAY_MS) + 1) * DAY_MS)
}

/// Finds the changes after `after` that a filter selects, at most `changes_max`, and the last change up to which they are complete.
///
/// # Errors
/// `unavailable` while the view is behind `upto`, so that the sender retries later; when the changes cannot be read.
pub async fn find<S: WatchableFeed>(
    ctx: &Context,
    filter: &S::Filter,
    after: Seq,
    upto: Seq,
    changes_max: usize,
) -> MatchingChanges<<S::Filter as Filter>::Record> {
    let at = position(ctx, &S::FEED.source, None).await?;
    if at.seq < upto {
        return Err(Problem::new(ErrorCode::Unavailable, "the view lags behind an earlier read of it").retry_after(1));
    }
    let mut filter = Cow::Borrowed(filter);
    if filter.needs_look_up() {
        filter.to_mut().look_up(ctx, &at, Seq(0)).await?;
    }
    let selection = Selection::new(ctx, &S::FEED.source, S::FEED.tables, &at, vec![filter.news()]).await?;
    let found = selection.find(after, upto, changes_max, Direction::Forwards).await?;
    Ok((found.changes, found.to))
}

/// Reads a page of a service's changes, and returns the last change that the page covers, too.
///
/// # Errors
/// When the feed cannot be read.
pub async fn page<R: ChangeRecord + DeserializeOwned>(
    ctx: &Context,
    source: &Source,
    view: Arc<dyn View>,
    after: Seq,
    upto: Seq,
) -> MatchingChanges<R> {
    let page = Feeds::of(ctx).reader(source, view).page(after, upto, PAGE).await.map_err(store_problem)?;
    Ok((elements(&page)?, page.to))
}

fn unreadable(id: &str) -> Problem {
    tracing::error!(id, "a watch cannot be read");
    Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
}

#[cfg(test)]
#[path = "matchers_tests.rs"]
mod tests;

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
use schemas::views::watches::SavedItem;
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
    fn add(&mut self, kept: &SavedItem) -> bool;

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
    async fn body(&self, ctx: &Context, kept: &SavedItem, message: &Delivery) -> Result<Bytes, Problem>;
}

/// The services whose watches have webhooks.
pub(super) fn all() -> Vec<Box<dyn Lane>> {
    vec![Box::new(Of::<Awards>::new()), Box::new(Of::<Filings>::new()), Box::new(Of::<NewRecalls>::new()), Box::new(Of::<Research>::new())]
}

/// What the message under way to a watch says.
///
/// # Errors
/// When the watch or the changes cannot be read.
pub(crate) async fn body(ctx: &Context, kept: &SavedItem, message: &Delivery) -> Result<Bytes, Problem> {
    let lane = all().into_iter().find(|lane| lane.source().service == kept.service).ok_or_else(|| odd(&kept.id))?;
    lane.body(ctx, kept, message).await
}

/// Changes, and the last one up to which these are all.
type Found<R> = Result<(Vec<Element<R>>, Seq), Problem>;

/// What a service tells its targets.
trait Told: Send + Sync + 'static {
    /// Which changes a target is told of.
    type Wish: Send + Sync;
    /// What the changes are of.
    type Record: DeserializeOwned + Send + Sync;

    /// Where the changes are.
    const SOURCE: Source;

    /// What a watch wishes for; `None` where that cannot be read.
    fn wish(kept: &SavedItem) -> Option<Self::Wish>;

    /// Whether a change is wished for.
    fn fits(wish: &Self::Wish, change: &Element<Self::Record>) -> bool;

    /// The changes wished for above `after`, of one message at most, and up to where these are all.
    fn find(ctx: &Context, wish: &Self::Wish, after: Seq, upto: Seq) -> impl Future<Output = Found<Self::Record>> + Send;

    /// What is posted; `None` where the watch cannot be read.
    fn message(kept: &SavedItem, changes: Vec<Element<Self::Record>>) -> Option<Value>;
}

/// The lane of a service.
struct Of<S: Told> {
    wishes: BTreeMap<String, S::Wish>,
    service: PhantomData<S>,
}

impl<S: Told> Of<S> {
    fn new() -> Self {
        Self { wishes: BTreeMap::new(), service: PhantomData }
    }
}

#[async_trait]
impl<S: Told> Lane for Of<S> {
    fn source(&self) -> Source {
        S::SOURCE
    }

    fn add(&mut self, kept: &SavedItem) -> bool {
        S::wish(kept).map(|wish| self.wishes.insert(kept.id.clone(), wish)).is_some()
    }

    fn remove(&mut self, id: &str) {
        self.wishes.remove(id);
    }

    async fn concerned(
        &self,
        ctx: &Context,
        view: Arc<dyn View>,
        after: Seq,
        upto: Seq,
        waits: &(dyn for<'a> Fn(&'a str) -> bool + Sync),
    ) -> Result<(Vec<String>, Seq), Problem> {
        if self.wishes.is_empty() {
            return Ok((Vec::new(), upto));
        }
        let (changes, to) = page::<S::Record>(ctx, &S::SOURCE, view, after, upto).await?;
        let is_told = |wish: &S::Wish| changes.iter().any(|change| S::fits(wish, change));
        let concerned = self.wishes.iter().filter(|(id, wish)| waits(id) && is_told(wish));
        Ok((concerned.map(|(id, _)| id.clone()).collect(), to))
    }

    async fn next(&self, ctx: &Context, id: &str, after: Seq, upto: Seq) -> Result<Next, Problem> {
        let Some(wish) = self.wishes.get(id) else { return Ok(Next::Nothing(upto)) };
        let (changes, to) = S::find(ctx, wish, after, upto).await?;
        let told = changes.first().zip(changes.last());
        Ok(told.map_or(Next::Nothing(to), |(first, last)| Next::Told(Seq(first.seq), Seq(last.seq))))
    }

    async fn body(&self, ctx: &Context, kept: &SavedItem, message: &Delivery) -> Result<Bytes, Problem> {
        let wish = S::wish(kept).ok_or_else(|| odd(&kept.id))?;
        let (mut after, upto, mut changes) = (seq(message.done), seq(message.upto), Vec::new());
        while after < upto {
            let (found, to) = S::find(ctx, &wish, after, upto).await?;
            changes.extend(found);
            after = to;
        }
        let said = if changes.is_empty() { None } else { S::message(kept, changes) };
        Ok(Bytes::from(said.ok_or_else(|| odd(&kept.id))?.to_string()))
    }
}

/// A message's body, by what a watch names.
pub trait Named: Followed {
    /// How many changes one message tells at most.
    const CHANGES_MAX: usize;

    /// What is posted.
    fn message(named: Self::Named, changes: Vec<Self::Shown>) -> Value;
}

/// A service whose changes are filtered.
impl<S: Named> Told for S {
    type Wish = S::Filter;
    type Record = <S::Filter as Filter>::Record;

    const SOURCE: Source = S::FEED.source;

    fn wish(kept: &SavedItem) -> Option<S::Filter> {
        S::Filter::of_canonical(&kept.filter)
    }

    fn fits(wish: &S::Filter, change: &Element<Self::Record>) -> bool {
        wish.fits(change)
    }

    /// Where the view stands below `upto`, it is waited for by asking again.
    async fn find(ctx: &Context, wish: &S::Filter, after: Seq, upto: Seq) -> Found<Self::Record> {
        let at = position(ctx, &S::FEED.source, None).await?;
        if at.seq < upto {
            return Err(Problem::new(ErrorCode::Unavailable, "the view stands behind what was read of it before").retry_after(1));
        }
        let selection = Selection::new(ctx, &S::FEED.source, S::FEED.tables, &at, std::slice::from_ref(wish)).await?;
        let found = selection.find(after, upto, S::CHANGES_MAX, Way::Forwards).await?;
        Ok((found.changes, Seq(found.to)))
    }

    fn message(kept: &SavedItem, changes: Vec<Element<Self::Record>>) -> Option<Value> {
        let named = serde_json::from_str(&kept.entity).ok()?;
        Some(<S as Named>::message(named, changes.into_iter().map(|change| Item { change, before: None }.into()).collect()))
    }
}

/// The recalls: every target is told of each new one.
struct NewRecalls;

impl Told for NewRecalls {
    type Wish = ();
    type Record = Recall;

    const SOURCE: Source = recalls::SOURCE;

    fn wish(_: &SavedItem) -> Option<()> {
        Some(())
    }

    fn fits((): &(), change: &Element<Recall>) -> bool {
        change.event == "new"
    }

    async fn find(ctx: &Context, wish: &(), after: Seq, upto: Seq) -> Found<Recall> {
        let view = ctx.live(recalls::SOURCE.view).await?;
        let (changes, to) = page::<Recall>(ctx, &recalls::SOURCE, view, after, upto).await?;
        let first = changes.into_iter().find(|change| Self::fits(wish, change));
        let to = first.as_ref().map_or(to, |first| Seq(first.seq));
        Ok((first.into_iter().collect(), to))
    }

    fn message(_: &SavedItem, changes: Vec<Element<Recall>>) -> Option<Value> {
        let told = changes.into_iter().next()?;
        // A time that is the same each time it is sent; that of the attempt is in its head.
        Some(json!({ "event": "recalls.new", "deliveredAt": told.recorded_at, "recall": Record::from(told.record) }))
    }
}

/// A change by its number as rows have it.
pub(super) fn seq(number: i64) -> Seq {
    Seq(u64::try_from(number).unwrap_or(0))
}

/// A page of a service's changes, and the last one that it covers.
async fn page<R: DeserializeOwned>(ctx: &Context, source: &Source, view: Arc<dyn View>, after: Seq, upto: Seq) -> Found<R> {
    let page = ctx.feeds.reader(source, view).page(after, upto, PAGE).await.map_err(store_problem)?;
    Ok((elements(&page)?, Seq(page.to)))
}

fn odd(id: &str) -> Problem {
    tracing::error!(id, "a watch cannot be read");
    Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
}

//! Watches with an end, which a service sells: by x402 to anyone, or within the limit of a paid tier. The operations are `/api/watch` and its MCP tools.
//!
//! A buyer without an account gets a token, which alone opens the watch. The matches are those of other watches: they are found in the service's changes
//! when somebody asks for them, and a webhook is sent the same. A change that is recorded after the end matches nothing.

pub mod cancel;
pub mod create;
pub mod list;
pub mod matches;
mod sold_watches;
pub mod state;

use std::marker::PhantomData;

use feed::Source;
use feed::filter::{Element, Filter};
use operation::context::Context;
use schemas::clock::rfc3339;
use schemas::position::Seq;
use schemas::views::watches::SavedItem;
use serde_json::{Map, Value};
use webhooks::matchers::{self, MatchingChanges, WebhookFeed, matcher};
use webhooks::operations::{self as webhook_operations, WebhookAccess, WebhookConfig};

pub use self::sold_watches::{FREE_FROM, SoldWatches, TimedWatch};
use self::sold_watches::{filter, owned};
use crate::registration::Bundle;

/// The operations, with the matcher that delivers to webhooks.
#[must_use]
pub fn operations<S: SoldWatches>() -> Bundle {
    let paths = [
        "/api/watch/{id}/deliveries",
        "/api/watch/{id}/ping",
        "/api/watch/{id}/replay",
        "/api/watch/{id}/resend",
        "/api/watch/{id}",
        "/api/watch/{id}/messages/{message}",
    ];
    let config = WebhookConfig { service: S::FEED.source.service, access: WebhookAccess::Owner, matcher: matcher::<Sold<S>>, paths };
    let own = vec![
        create::operation::<S>(),
        list::operation::<S>(),
        state::operation::<S>(),
        matches::route::<S>(),
        matches::tool::<S>(),
        cancel::route::<S>(),
        cancel::tool::<S>(),
    ];
    Bundle::watches(own.into_iter().chain(webhook_operations::operations(config)).collect(), matcher::<Sold<S>>)
}

/// The messages of watches that are sold.
struct Sold<S>(PhantomData<S>);

impl<S: SoldWatches> WebhookFeed for Sold<S> {
    type Subscription = (S::Filter, S::Prepared);
    type Record = <S::Filter as Filter>::Record;

    const SOURCE: Source = S::FEED.source;

    fn subscription(watch: &SavedItem) -> Option<Self::Subscription> {
        let filter = S::Filter::from_canonical(&watch.filter)?;
        let prepared = S::prepare(&filter);
        Some((filter, prepared))
    }

    fn includes_backfill((filter, _): &Self::Subscription) -> bool {
        feed::filter::includes_backfill(filter)
    }

    fn selects((_, prepared): &Self::Subscription, change: &Element<Self::Record>) -> bool {
        S::selects(prepared, change)
    }

    fn subscription_keys((_, prepared): &Self::Subscription) -> Option<Vec<u64>> {
        S::filter_keys(prepared)
    }

    fn change_keys(change: &Element<Self::Record>) -> Vec<u64> {
        S::change_keys(change)
    }

    async fn find(ctx: &Context, (filter, _): &Self::Subscription, after: Seq, upto: Seq) -> MatchingChanges<Self::Record> {
        matchers::find::<S>(ctx, filter, after, upto, S::CHANGES_MAX).await
    }

    fn message(watch: &SavedItem, changes: Vec<Element<Self::Record>>) -> Option<Value> {
        let (_, prepared) = Self::subscription(watch)?;
        let mut of_watch = S::in_message(&serde_json::from_str(&watch.entity).ok()?);
        of_watch.insert("id".to_owned(), watch.id.as_str().into());
        of_watch.insert("until".to_owned(), rfc3339(watch.until).into());
        let matches: Vec<S::Match> = changes.into_iter().filter_map(|change| S::matched(&prepared, change)).collect();
        let mut message = Map::new();
        message.insert("event".to_owned(), S::EVENT.into());
        message.insert("watch".to_owned(), of_watch.into());
        message.insert(S::MESSAGE_LIST.to_owned(), serde_json::to_value(matches).ok()?);
        Some(message.into())
    }
}

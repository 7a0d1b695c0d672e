//! Watches with an end, which a service sells: by x402 to anyone, or within the limit of a paid tier. The operations are `/api/watch` and its MCP tools.
//!
//! A buyer without an account gets a token, which alone opens the watch. The matches are those of other watches: they are found in the service's changes
//! when somebody asks for them, and a webhook is sent the same. A change that is recorded after the end matches nothing.

pub mod cancel;
pub mod create;
pub mod list;
pub mod matches;
pub mod state;

use std::marker::PhantomData;

use access::saved::SavedItems;
use access::token::WatchToken;
use access::webhook::Sealing;
use feed::Source;
use feed::filter::{Element, Filter};
use feed::watchable::WatchableFeed;
use operation::context::Context;
use operation::problem::Problem;
use operation::schema::Repeated;
use operation::{Answer, Call};
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use schemas::views::watches::SavedItem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use webhooks::matchers::{self, Found, WebhookFeed, matcher};
use webhooks::operations::{self as webhook_operations, WebhookAccess, WebhookConfig};

use crate::registration::Bundle;

/// The lowest tier whose keys create watches without paying.
pub const FREE_FROM: Tier = Tier::Pro;

/// A feed whose watches are sold for a time.
pub trait SoldWatches: WatchableFeed {
    /// A change that a watch selects, as readers receive it.
    type Match: Serialize + JsonSchema + Send + 'static;
    /// A filter that is prepared for comparisons with many changes.
    type Prepared: Send + Sync + 'static;

    /// The name of the operation that creates a watch.
    const OPERATION: &'static str;
    /// What the operation does, in one sentence.
    const SUMMARY: &'static str;
    /// When an agent uses the operation, in one sentence.
    const WHEN: &'static str;
    /// What the watch selects and what it costs to renew it, in Markdown.
    const DESCRIPTION: &'static str;
    /// The price in millionths of a US dollar.
    const MICROS: u64;
    /// For how many calendar months a watch is active.
    const MONTHS: i64;
    /// The event of a message to a webhook.
    const EVENT: &'static str;
    /// The field of a message that holds the matches.
    const MESSAGE_LIST: &'static str;
    /// The most changes that one message carries.
    const CHANGES_MAX: usize;
    /// Other names of the fields of the watched entity, each with the name that is shown.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];

    /// The text by which a second request for the same is recognized: it renews the watch.
    fn renewed_by(entity: &Self::WatchedEntity) -> String;

    /// The fields of the watched entity in a message to a webhook.
    fn in_message(entity: &Self::WatchedEntity) -> Map<String, Value>;

    /// Prepares a filter for comparisons with many changes.
    fn prepare(filter: &Self::Filter) -> Self::Prepared;

    /// A change as readers receive it; `None` if the filter does not select it.
    fn matched(prepared: &Self::Prepared, change: Element<<Self::Filter as Filter>::Record>) -> Option<Self::Match>;

    /// Whether a filter selects a change.
    fn selects(prepared: &Self::Prepared, change: &Element<<Self::Filter as Filter>::Record>) -> bool;

    /// The free preview that is shown with the payment terms.
    ///
    /// # Errors
    /// When it cannot be computed. The terms are sent without a preview.
    fn preview(call: Call, entity: Self::WatchedEntity) -> impl Future<Output = Result<Answer, Problem>> + Send;

    /// See [`WebhookFeed::subscription_keys`].
    fn filter_keys(_prepared: &Self::Prepared) -> Option<Vec<u64>> {
        None
    }

    /// See [`WebhookFeed::change_keys`].
    fn change_keys(_change: &Element<<Self::Filter as Filter>::Record>) -> Vec<u64> {
        Vec::new()
    }
}

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

/// A watch with an end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TimedWatch")]
pub struct TimedWatch<N> {
    /// The id of the watch.
    pub id: String,
    /// What is watched.
    #[serde(flatten)]
    #[schemars(with = "Repeated<N>")]
    pub named: N,
    /// When the watch was created, RFC 3339 in UTC. Changes that were recorded before do not match.
    #[schemars(with = "proofs::json_type::Time")]
    pub from: String,
    /// When the watch ends, RFC 3339 in UTC. Changes that are recorded later do not match. The watch can be read for 30 more days.
    #[schemars(with = "proofs::json_type::Time")]
    pub until: String,
    /// Whether the watch has not ended.
    pub active: bool,
    /// The host of the webhook; the rest of the URL is never shown. Left out if there is no webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_host: Option<String>,
    /// The token that opens the watch without a key, in the header `X-Watch-Token`. Only the answer that creates a watch for a caller without a key has
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The secret that signs the messages, as Standard Webhooks define it. Only the answer that sets the webhook has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Where the watch is read.
    pub url: String,
}

impl<N: DeserializeOwned> TimedWatch<N> {
    async fn of(ctx: &Context, service: &str, item: &SavedItem) -> Result<Self, Problem> {
        let named = entity(item)?;
        let webhook_host = match item.webhook.as_str() {
            "" => None,
            // Empty if it was sealed under another master key, or can no longer be read.
            _ => Some(Sealing::load(ctx, &item.account).await?.map_or_else(String::new, |sealing| sealing.host(item))),
        };
        let base_url = ctx.settings.services.get(service).map_or("", |own| own.base_url.as_str());
        Ok(Self {
            id: item.id.clone(),
            named,
            from: rfc3339(item.made_at),
            until: rfc3339(item.until),
            active: item.is_active(ctx.clock.now_ms()),
            webhook_host,
            token: None,
            secret: None,
            url: format!("{base_url}/api/watch/{}", item.id),
        })
    }
}

/// What a watch names.
fn entity<N: DeserializeOwned>(item: &SavedItem) -> Result<N, Problem> {
    serde_json::from_str(&item.entity).map_err(|error| {
        tracing::error!(%error, id = item.id, "a watch cannot be read");
        unreadable()
    })
}

/// The filter of a watch.
fn filter<F: Filter>(item: &SavedItem) -> Result<F, Problem> {
    F::from_canonical(&item.filter).ok_or_else(|| {
        tracing::error!(id = item.id, "the filter of a watch cannot be read");
        unreadable()
    })
}

fn unreadable() -> Problem {
    Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
}

/// The watches that a call may read: those of its token, or those of its account.
fn owned<'a, S: SoldWatches>(call: &'a Call, token: Option<&str>) -> Result<SavedItems<'a>, Problem> {
    let token = WatchToken::of_call(call.watch_token.as_deref(), token)?;
    SavedItems::of_owner(call, S::FEED.source.service, token.as_ref())
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
        filter.includes_backfill()
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

    async fn find(ctx: &Context, (filter, _): &Self::Subscription, after: Seq, upto: Seq) -> Found<Self::Record> {
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

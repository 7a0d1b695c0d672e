//! What a service defines of the watches that it sells, and how they are read.

use access::saved_items::SavedItems;
use access::token::WatchToken;
use access::webhook::Sealing;
use feed::filter::{Element, Filter};
use feed::watchable::WatchableFeed;
use operation::context::Context;
use operation::problem::Problem;
use operation::schema::Repeated;
use operation::{Answer, Call};
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use schemas::views::watches::SavedItem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

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

    /// What a watch names after a renewal: what the request gives, and what it leaves out as the active watch has it.
    fn renewed(given: Self::WatchedEntity, active: Self::WatchedEntity) -> Self::WatchedEntity;

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

    /// See [`webhooks::matchers::WebhookFeed::subscription_keys`].
    fn filter_keys(_prepared: &Self::Prepared) -> Option<Vec<u64>> {
        None
    }

    /// See [`webhooks::matchers::WebhookFeed::change_keys`].
    fn change_keys(_change: &Element<<Self::Filter as Filter>::Record>) -> Vec<u64> {
        Vec::new()
    }
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
    pub(super) async fn of(ctx: &Context, service: &str, item: &SavedItem) -> Result<Self, Problem> {
        let named = watched_entity(item)?;
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
///
/// # Errors
/// `internal` if it cannot be read.
pub(super) fn watched_entity<N: DeserializeOwned>(item: &SavedItem) -> Result<N, Problem> {
    serde_json::from_str(&item.entity).map_err(|error| {
        tracing::error!(%error, id = item.id, "a watch cannot be read");
        unreadable()
    })
}

/// The filter of a watch.
pub(super) fn filter<F: Filter>(item: &SavedItem) -> Result<F, Problem> {
    F::from_canonical(&item.filter).ok_or_else(|| {
        tracing::error!(id = item.id, "the filter of a watch cannot be read");
        unreadable()
    })
}

fn unreadable() -> Problem {
    Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
}

/// The watches that a call may read: those of its token, or those of its account.
pub(super) fn owned<'a, S: SoldWatches>(call: &'a Call, token: Option<&str>) -> Result<SavedItems<'a>, Problem> {
    let token = WatchToken::of_call(call.watch_token.as_deref(), token)?;
    SavedItems::of_owner(call, S::FEED.source.service, token.as_ref())
}

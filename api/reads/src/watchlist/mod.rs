//! Watches: what an account follows in a service. The matches of a watch are not stored. They are found in the service's changes when somebody asks
//! for them, in the same way as the feed finds the changes of a filter, and a webhook is sent the same matches.
//!
//! Every watch has the same rows and goes through the functions here, whether a service lets accounts choose what they watch (`/v1/watchlist`) or
//! offers one kind of watch with a webhook (the recalls' `/api/webhook`).

pub mod create;
pub mod delete;
pub mod get;
pub mod list;

use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::watches::SavedItem;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::list_page::ListPage;
use access::saved_items::{NewWatch, SavedItems, WatchWithSecret};
use access::sign::SigningSecret;
use access::webhook::{Sealing, Webhook};
use feed::Source;
use feed::position::position;
use feed::watchable::WatchableFeed;
use operation::Call;
use operation::problem::Problem;
use operation::schema::Repeated;

/// The note of a repeated request. Like a key, a secret is in one answer only.
const SECRET_WAS_SHOWN: &str = "the secret was shown once, in the first answer to this request; if it is lost, make another one by `update_webhook` with `rotateSecret`";

/// A watch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Watch")]
pub struct Watch<N> {
    /// The id of the watch.
    pub id: String,
    /// What is watched.
    #[serde(flatten)]
    #[schemars(with = "Repeated<N>")]
    pub named: N,
    /// The host of the webhook; the rest of the URL is never shown. Left out if there is no webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_host: Option<String>,
    /// The secret that signs the messages, as Standard Webhooks define it. Only the answer that creates the watch has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// When the watch was created, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub made_at: String,
    /// The last change of the service before the watch: only changes with a higher `seq` match.
    pub after: Seq,
    /// What to know about the watch: values that nothing recorded has, or that the secret was shown before. Only answers to the request that creates the
    /// watch have a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A request for a new watch.
pub struct Request<N> {
    /// What is watched.
    pub named: N,
    /// The filter that selects its matches, in canonical form.
    pub filter: String,
    /// The webhook, with the secret that signs its messages.
    pub webhook: Option<(Webhook, SigningSecret)>,
    /// The secret as the request gives it, if it does.
    pub secret: Option<String>,
}

/// Creates a watch of the caller. Changes that readers could see before do not match it.
///
/// # Errors
/// `limit-reached`; `unavailable` when it is not projected in time.
pub async fn create<N: Serialize + DeserializeOwned>(call: &Call, source: &Source, request: Request<N>) -> Result<Watch<N>, Problem> {
    let entity = serde_json::to_string(&request.named).map_err(|error| {
        tracing::error!(%error, "a watch cannot be written");
        Problem::new(ErrorCode::Internal, "the watch could not be saved")
    })?;
    let after = position(&call.context, source, None).await?.last;
    let saved = SavedItems::watches(call, source.service);
    let given = request.secret.unwrap_or_default();
    let new = NewWatch { entity, filter: request.filter, webhook: request.webhook, given_secret: given, after };
    let WatchWithSecret { item, secret } = saved.create(new).await?;
    let sealing = saved.sealing().await?;
    let note = (secret.is_none() && !item.webhook.is_empty()).then(|| SECRET_WAS_SHOWN.to_owned());
    let secret = secret.map(|secret| secret.reveal());
    Ok(Watch { secret, note, ..Watch::of(&item, sealing.as_ref())? })
}

/// A page of the caller's watches in a service, the last created first, and the value of `next`.
///
/// # Errors
/// `parameter-invalid` for an `after` that no answer gave; when the rows cannot be read.
pub async fn list<N: DeserializeOwned>(
    call: &Call,
    service: &'static str,
    page: &ListPage,
) -> Result<(Vec<Watch<N>>, Option<String>), Problem> {
    let saved = SavedItems::watches(call, service);
    let (all, sealing) = (saved.list().await?, saved.sealing().await?);
    let (kept, next) = page.newest_first(all, place)?;
    Ok((kept.iter().map(|kept| Watch::of(kept, sealing.as_ref())).collect::<Result<_, _>>()?, next))
}

/// The place of a watch in the order of creation.
fn place(kept: &SavedItem) -> (i64, &str) {
    (kept.made_at, &kept.id)
}

/// Deletes a watch of the caller. Returns its id.
///
/// # Errors
/// `not-found` when the account has no such watch in the service; `unavailable` when it is not projected in time.
pub async fn delete(call: &Call, service: &'static str, id: &str) -> Result<String, Problem> {
    let saved = SavedItems::watches(call, service);
    let kept = saved.watch(id).await?;
    saved.delete(&kept).await?;
    Ok(kept.id)
}

impl<N> Watch<N> {
    /// The watch as the caller named what it watches.
    async fn shown<S: WatchableFeed<WatchedEntity = N>>(self, call: &Call) -> Result<Self, Problem> {
        let named = S::shown_entity(&call.context, &call.caller.account, self.named).await?;
        Ok(Self { named, ..self })
    }
}

impl<N: DeserializeOwned> Watch<N> {
    fn of(kept: &SavedItem, sealing: Option<&Sealing>) -> Result<Self, Problem> {
        let named = serde_json::from_str(&kept.entity).map_err(|error| {
            tracing::error!(%error, id = kept.id, "a watch cannot be read");
            Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
        })?;
        // Empty if it was sealed under another master key, or can no longer be read.
        let host = || sealing.map_or_else(String::new, |sealing| sealing.host(kept));
        let webhook_host = (!kept.webhook.is_empty()).then(host);
        Ok(Self { id: kept.id.clone(), named, webhook_host, secret: None, made_at: rfc3339(kept.made_at), after: kept.after, note: None })
    }
}

//! `PATCH …/{id}`: another address, or another secret.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Place, target};
use crate::access::kept::Shelf;
use crate::access::webhook::Webhook;
use crate::operation::{Answer, Call, Method, Operation, Price, Words};
use crate::problem::Problem;
use crate::webhooks::sign::SigningSecret;

/// Arguments of `update_webhook`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Arguments {
    /// Its id.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Where to deliver from now on: an https URL without user name or password.
    #[schemars(length(min = 1, max = 2000), extend("writeOnly" = true))]
    pub webhook: Option<String>,
    /// What to sign with from now on: `whsec_` and 24 to 64 bytes in base64. The secret before signs beside it for a day.
    #[schemars(length(min = 1, max = 200), extend("writeOnly" = true))]
    pub secret: Option<String>,
    /// A new secret, made here, likewise.
    #[serde(default)]
    pub rotate_secret: bool,
}

/// What was changed.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Updated {
    /// Its id.
    pub id: String,
    /// The host that it is delivered to.
    pub webhook_host: String,
    /// The new secret, shown this once; left out where it is as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation(place: Place, path: &'static str) -> Operation {
    let words = Words {
        name: "update_webhook",
        method: Method::Patch,
        path,
        summary: "Gives a webhook another address, or another secret.",
        description: "For a day after a secret was replaced each message is signed with both: `webhook-signature` holds two signatures, and one that \
            verifies is enough. What is under way is sent to the new address at the next attempt.",
        price: Price::Tier(place.tier),
        tool: true,
        counted: true,
        list: "",
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567", "rotateSecret": true }),
        aliases: &[],
    };
    Operation::define::<Arguments, Updated, _, _>(words, move |call, arguments| answer(call, arguments, place))
}

async fn answer(call: Call, arguments: Arguments, place: Place) -> Result<Answer, Problem> {
    let Arguments { id, webhook, secret, rotate_secret } = arguments;
    let webhook = webhook.map(|url| Webhook::checked(&url, call.context.settings.private_targets)).transpose();
    let webhook = webhook.map_err(|reason| Problem::parameter("webhook", format!("webhook: {reason}")))?;
    let secret = match secret {
        Some(_) if rotate_secret => return Err(Problem::parameter("rotateSecret", "give `secret` or `rotateSecret`, not both")),
        Some(text) => Some(SigningSecret::parse(&text).map_err(|reason| Problem::parameter("secret", format!("secret: {reason}")))?),
        None => rotate_secret.then(SigningSecret::random),
    };
    if webhook.is_none() && secret.is_none() {
        return Err(Problem::new(ErrorCode::ParameterInvalid, "nothing is to be changed: give `webhook`, `secret` or `rotateSecret`"));
    }
    let kept = target(&call, place, &id).await?;
    let shelf = Shelf::watches(&call, place.service);
    let kept = shelf.retarget(&kept, webhook.as_ref(), secret.as_ref()).await?;
    let opened = shelf.sealing().await?.and_then(|sealing| sealing.open(&kept.id, &kept.webhook));
    let webhook_host = opened.map_or_else(String::new, |webhook| webhook.host().to_owned());
    Answer::json(&Updated { id: kept.id, webhook_host, secret: secret.map(|secret| secret.reveal()) })
}

//! `PATCH …/{id}`: changes the URL or the secret of a webhook.

use access::saved_items::WatchWithSecret;
use access::sign::SigningSecret;
use access::webhook::Sealing;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{WebhookConfig, target};
use crate::parse::parse_target;

/// Arguments of `update_webhook`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Arguments {
    /// Id of the webhook.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// The new URL to deliver to: an https URL without user name or password.
    #[schemars(length(min = 1, max = 2000), extend("writeOnly" = true))]
    pub webhook: Option<String>,
    /// The new signing secret: `whsec_` and 24 to 64 bytes in base64. For a day, messages are signed with the previous secret, too.
    #[schemars(length(min = 1, max = 200), extend("writeOnly" = true))]
    pub secret: Option<String>,
    /// Whether to create a new signing secret. For a day, messages are signed with the previous secret, too.
    #[serde(default)]
    pub rotate_secret: bool,
}

/// The webhook after the update.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Updated {
    /// Id of the webhook.
    pub id: String,
    /// The host that messages are delivered to.
    pub webhook_host: String,
    /// The new secret, shown only in this response; left out if the secret did not change, and for a repeated request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Defines the operation.
#[must_use]
pub fn operation(config: WebhookConfig, path: &'static str) -> Operation {
    let definition = Definition {
        name: "update_webhook",
        method: Method::Patch,
        path,
        summary: "Changes the URL or the secret of a webhook.",
        description: "For a day after a secret was replaced, each message is signed with both secrets: `webhook-signature` holds several signatures, and one \
                    valid signature is enough. With an `Idempotency-Key`, a repeated request changes nothing and does not show the secret again, and another request is refused. A message in flight is sent to the new URL at the \
                    next attempt.",
        price: config.price(),
        errors: &[ErrorCode::NotFound, ErrorCode::IdempotencyMismatch],
        example: json!({ "id": "watch_0123456789abcdef01234567", "rotateSecret": true }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Updated, _, _>(definition, move |call, arguments| answer(call, arguments, config))
}

async fn answer(call: Call, arguments: Arguments, config: WebhookConfig) -> Result<Answer, Problem> {
    let Arguments { id, webhook, secret, rotate_secret } = arguments;
    let ctx = &call.context;
    let given = [webhook.clone().unwrap_or_default(), secret.clone().unwrap_or_default()];
    let new_secret = match secret {
        Some(_) if rotate_secret => return Err(Problem::parameter("rotateSecret", "give `secret` or `rotateSecret`, not both")),
        secret => {
            secret.map(|text| SigningSecret::parse(&text).map_err(|reason| Problem::parameter("secret", format!("secret: {reason}"))))
        }
    };
    let new_secret = new_secret.transpose()?;
    if webhook.is_none() && new_secret.is_none() && !rotate_secret {
        return Err(Problem::new(ErrorCode::ParameterInvalid, "nothing to change: give `webhook`, `secret` or `rotateSecret`"));
    }
    let watch = target(&call, config, &id).await?;
    let webhook = match webhook {
        Some(url) => Some(parse_target(ctx, "webhook", &url).await?),
        None => None,
    };
    let watches = config.owned(&call)?;
    let sealing = Sealing::load_or_create(ctx, &watch.account).await?;
    // If the account's secret was lost, the old signing secret cannot be read, and a new one is needed.
    let is_lost = sealing.open_secret(&watch.id, &watch.secret).is_none();
    let secret = new_secret.or_else(|| (rotate_secret || is_lost).then(SigningSecret::random));
    let given = [given[0].as_str(), given[1].as_str(), if rotate_secret { "rotate" } else { "" }];
    let WatchWithSecret { item, secret } = watches.retarget(&watch, &sealing, webhook.as_ref(), secret.as_ref(), given).await?;
    let webhook_host = sealing.host(&item);
    Answer::json(&Updated { id: item.id, webhook_host, secret: secret.map(|secret| secret.reveal()) })
}

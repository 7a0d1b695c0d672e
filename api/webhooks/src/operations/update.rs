//! `PATCH …/{id}`: another address, or another secret.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Place, target};
use crate::requested::target_of;
use access::kept::Shelf;
use access::sign::SigningSecret;
use access::webhook::Sealing;
use operation::problem::Problem;
use operation::{Answer, Call, Method, Operation, Price, Words};

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
        description: "For a day after a secret was replaced each message is signed with both: `webhook-signature` holds several signatures, and one that \
            verifies is enough. With an `Idempotency-Key` a repeated request changes nothing again. What is under way is sent to the new address at the next attempt.",
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
    let ctx = &call.context;
    let given = match secret {
        Some(_) if rotate_secret => return Err(Problem::parameter("rotateSecret", "give `secret` or `rotateSecret`, not both")),
        secret => {
            secret.map(|text| SigningSecret::parse(&text).map_err(|reason| Problem::parameter("secret", format!("secret: {reason}"))))
        }
    };
    let given = given.transpose()?;
    if webhook.is_none() && given.is_none() && !rotate_secret {
        return Err(Problem::new(ErrorCode::ParameterInvalid, "nothing is to be changed: give `webhook`, `secret` or `rotateSecret`"));
    }
    let kept = target(&call, place, &id).await?;
    let webhook = match webhook {
        Some(url) => Some(target_of(ctx, "webhook", &url).await?),
        None => None,
    };
    let shelf = Shelf::watches(&call, place.service);
    let sealing = Sealing::made(ctx, &kept.account).await?;
    // Where the secret is lost that the present one was sealed with, the new address needs a new one.
    let is_lost = sealing.open_secret(&kept.id, &kept.secret).is_none();
    let secret = given.or_else(|| (rotate_secret || is_lost).then(|| SigningSecret::of(shelf.chance(&kept.id))));
    let kept = shelf.retarget(&kept, &sealing, webhook.as_ref(), secret.as_ref()).await?;
    let webhook_host = sealing.host(&kept);
    Answer::json(&Updated { id: kept.id, webhook_host, secret: secret.map(|secret| secret.reveal()) })
}

//! `POST /api/keys`: mints a free key.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::FreeKey;
use crate::operation::{Answer, Call, Method, Operation, Price, Words};
use crate::problem::Problem;

/// Arguments of `create_key`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Your e-mail address. Only a keyed hash of it is kept.
    #[schemars(length(min = 3, max = 254))]
    pub email: String,
}

/// A new key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Created {
    /// The key. It is shown this once; keep it. Empty in the answer to a repeated request.
    pub api_key: String,
    /// The key's id, by which it is rotated or revoked.
    pub key_id: String,
    /// The account that owns it.
    pub account: String,
    /// Its tier.
    pub tier: String,
    /// Why no key is shown, in the answer to a repeated request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// What the answer to a repeated request says.
const SHOWN_ONCE: &str =
    "The key was shown once, in the first answer to this request. If it is lost, make another one with another Idempotency-Key.";

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Words {
        name: "create_key",
        method: Method::Post,
        path: "/api/keys",
        summary: "Mints a free API key: calls are counted by key, and no longer by address.",
        description: "No card, no confirmation. Send the key as `X-API-Key`, as `Authorization: Bearer`, or as the query parameter \
            `api_key`. An IPv4 address, or an IPv6 /48, mints at most 20 keys a UTC day. A free key expires after 90 days without use. With an \
            `Idempotency-Key` a repeated request mints nothing: on the same UTC day it is answered 200 with the same `key_id`, an empty \
            `api_key` and a `note`, since a key is shown once.",
        price: Price::Free,
        tool: false,
        counted: false,
        list: "",
        errors: &[ErrorCode::RateLimited, ErrorCode::Unavailable],
        example: json!({ "email": "you@example.org" }),
        aliases: &[],
    };
    Operation::define::<Arguments, Created, _, _>(words, answer)
}

pub(crate) async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let free = ctx.access.mint_free(ctx, &arguments.email, call.caller.address, call.idempotency_key.as_deref()).await?;
    let (status, api_key, row, note) = match free {
        FreeKey::Minted(minted) => (201, minted.key.reveal().to_owned(), minted.row, None),
        FreeKey::Repeated(row) => (200, String::new(), row, Some(SHOWN_ONCE)),
    };
    let created = Created { api_key, key_id: row.id, account: row.account, tier: row.tier, note };
    Ok(Answer { status, ..Answer::json(&created)? })
}

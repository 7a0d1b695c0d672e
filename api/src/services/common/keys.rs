//! `POST /api/keys`: mints a free key.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::operation::{Answer, Call, Method, Operation, Price, Words};
use crate::problem::Problem;

/// Arguments of `create_key`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Your e-mail address. Only a keyed hash of it is kept, to limit how many keys it may have.
    #[schemars(length(min = 3, max = 254))]
    pub email: String,
}

/// A new key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Created {
    /// The key. It is shown this once; keep it.
    pub api_key: String,
    /// The key's id, by which it is rotated or revoked.
    pub key_id: String,
    /// The account that owns it.
    pub account: String,
    /// Its tier.
    pub tier: String,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Words {
        name: "create_key",
        method: Method::Post,
        path: "/api/keys",
        summary: "Mints a free API key: calls are counted by key, and no longer by address.",
        description: "No card, no confirmation. Send the key as `X-API-Key`, as `Authorization: Bearer`, or as the query parameter \
            `api_key`. An e-mail address has at most 10 keys, an address on the network mints at most 20 a day. With an \
            `Idempotency-Key` a repeated request gets the same key again, on the same UTC day.",
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

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let minted = ctx.access.mint_free(ctx, &arguments.email, call.caller.address, call.idempotency_key.as_deref()).await?;
    let created =
        Created { api_key: minted.key.reveal().to_owned(), key_id: minted.row.id, account: minted.row.account, tier: minted.row.tier };
    Ok(Answer { status: 201, ..Answer::json(&created)? })
}

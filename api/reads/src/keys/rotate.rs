//! `POST /api/account/keys/{id}/rotate`: replaces a key of an account.

use access::{Access, RotatedAccountKey};
use operation::context::Part;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ShownKey;
use super::free::Created;

/// For how many hours a replaced key still works, if the request does not say so.
const OVERLAP_HOURS_DEFAULT: i64 = 24;

/// Arguments of `rotate_key`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The id of the key.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// For how many hours the old key still works; 0 ends it at once.
    #[serde(rename = "overlapHours", default = "overlap_default")]
    #[schemars(range(min = 0, max = 168))]
    pub overlap_hours: i64,
}

fn overlap_default() -> i64 {
    OVERLAP_HOURS_DEFAULT
}

/// A new key, and the key that it replaces.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Rotated {
    /// The new key.
    #[serde(flatten)]
    pub created: Created,
    /// The old key; `endsAt` says until when it works.
    pub replaced: ShownKey,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "rotate_key",
        method: Method::Post,
        path: "/api/account/keys/{id}/rotate",
        summary: "Replaces a key of the account by a new one, which works at once; the old one ends after a day, or when the request says so.",
        description: "The new key is shown once and has the tier and the account of the old one. A key is replaced once: its end is not postponed by a second \
            rotation, and `revoke_key` ends it earlier. With an `Idempotency-Key` a repeated request replaces nothing: the answer is 200 with the same \
            `key_id`, an empty `api_key` and a `note`; send it with a key that still works. Rotations count as created keys, of which an account has at most \
            50 a UTC day. Counts against no quota.",
        price: Price::Tier(Tier::Free),
        surface: Surface::Route,
        counted: false,
        errors: &[
            ErrorCode::NotFound,
            ErrorCode::IdempotencyMismatch,
            ErrorCode::LimitReached,
            ErrorCode::RateLimited,
            ErrorCode::Unavailable,
        ],
        example: json!({ "id": "key_0123456789abcdef01234567", "overlapHours": 24 }),
        aliases: &[("overlap_hours", "overlapHours")],
        ..Definition::read()
    };
    Operation::define::<Arguments, Rotated, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let (overlap_s, once) = (arguments.overlap_hours * 3_600, call.idempotency_key.as_deref());
    let RotatedAccountKey { new, old } = Access::of(ctx).rotate_own(ctx, &call.caller, &arguments.id, overlap_s, once).await?;
    let replaced = ShownKey::of(&old, &call.caller.key_id, ctx.clock.now_ms());
    let (status, created) = Created::of(new);
    Ok(Answer { status, ..Answer::json(&Rotated { created, replaced })? })
}

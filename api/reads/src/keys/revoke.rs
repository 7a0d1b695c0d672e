//! `DELETE /api/account/keys/{id}`: revokes a key of an account.

use access::Access;
use operation::context::Part;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ShownKey;

/// The note in the answer after which no key of the account works for long.
const NO_KEY_LEFT: &str = "No other key of this account works without an end. Its saved filters, watches and webhooks remain, but only the operator of this \
                           server can mint a key that opens them.";

/// Arguments of `revoke_key`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The id of the key.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Whether the key is revoked although it is the last one of the account that works and has no end.
    #[serde(default)]
    pub last: bool,
}

/// A revoked key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Revoked {
    /// The key.
    pub revoked: ShownKey,
    /// How many other keys of the account work and have no end.
    pub working: usize,
    /// What it means that there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "revoke_key",
        method: Method::Delete,
        path: "/api/account/keys/{id}",
        summary: "Revokes a key of the account. It stops working at once, on other nodes within five seconds.",
        description: "The last key that works and has no end is revoked only with `last=true`, since nobody could reach the account with a key any more. A \
            repeated request changes nothing and returns the same. Counts against no quota.",
        price: Price::Tier(Tier::Free),
        surface: Surface::Route,
        counted: false,
        errors: &[ErrorCode::NotFound, ErrorCode::Unavailable],
        example: json!({ "id": "key_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Revoked, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let (ctx, caller) = (&call.context, &call.caller);
    let revoked = Access::of(ctx).revoke_own(ctx, caller, &arguments.id, arguments.last).await?;
    let shown = ShownKey::of(&revoked.row, &caller.key_id, ctx.clock.now_ms());
    Answer::json(&Revoked { revoked: shown, working: revoked.working, note: (revoked.working == 0).then_some(NO_KEY_LEFT) })
}

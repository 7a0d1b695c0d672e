//! `POST /api/account/keys`: creates another key of an account.

use access::Access;
use operation::context::Part;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::Deserialize;
use serde_json::json;

use super::free::Created;

/// Arguments of `create_another_key`: none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "create_another_key",
        method: Method::Post,
        path: "/api/account/keys",
        summary: "Creates another key of the account of the request's key, for another program or person.",
        description: "The key has the tier of the request's key and shares the quota, the saved filters, the watches and the webhooks of its account. It is \
            shown once. At most 50 keys of an account work at the same time; it creates at most 50 keys a UTC day, and 1,000 in total. With an \
            `Idempotency-Key` a repeated request creates no second key: the answer is 200 with the same `key_id`, an empty `api_key` and a `note`. Counts \
            against no quota.",
        price: Price::Tier(Tier::Free),
        surface: Surface::Route,
        counted: false,
        errors: &[ErrorCode::LimitReached, ErrorCode::RateLimited, ErrorCode::Unavailable],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<Arguments, Created, _, _>(words, answer)
}

async fn answer(call: Call, _: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let (status, created) = Created::of(Access::of(ctx).mint_another(ctx, &call.caller, call.idempotency_key.as_deref()).await?);
    Ok(Answer { status, ..Answer::json(&created)? })
}

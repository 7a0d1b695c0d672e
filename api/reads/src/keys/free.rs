//! `POST /api/keys`: creates a free key.

use access::Access;
use operation::context::Part;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use access::MintOutcome;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Surface};

/// Arguments of `create_key`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Your e-mail address. Only a keyed hash of it is stored.
    #[schemars(length(min = 3, max = 254))]
    pub email: String,
}

/// A new key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Created {
    /// The key. No later answer shows it, so save it. Empty in the answer to a repeated request.
    pub api_key: String,
    /// The id of the key, to rotate or revoke it.
    pub key_id: String,
    /// The account that owns the key.
    pub account: String,
    /// The tier of the key.
    pub tier: String,
    /// Why the answer to a repeated request shows no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

impl Created {
    /// The answer to a request for a key, with its HTTP status. It shows the key only if this request created it.
    pub(crate) fn of(outcome: MintOutcome) -> (u16, Self) {
        let (status, api_key, row, note) = match outcome {
            MintOutcome::Minted(minted) => (201, minted.key.reveal().to_owned(), minted.row, None),
            MintOutcome::Repeated(row) => (200, String::new(), row, Some(SHOWN_ONCE)),
        };
        (status, Self { api_key, key_id: row.id, account: row.account, tier: row.tier, note })
    }
}

/// The note in the answer to a repeated request.
const SHOWN_ONCE: &str =
    "The key was shown once, in the first answer to this request. If it is lost, make another one with another Idempotency-Key.";

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "create_key",
        method: Method::Post,
        path: "/api/keys",
        summary: "Creates a free API key. Its calls are counted by key instead of by address.",
        description: "No card, no confirmation. Send the key as `X-API-Key`, as `Authorization: Bearer`, or as the query parameter \
            `api_key`. An IPv4 address, or an IPv6 /48, can create at most 20 keys a UTC day. A free key expires after 90 days without use. With an \
            `Idempotency-Key` a repeated request creates no second key: on the same UTC day the answer is 200 with the same `key_id`, an empty \
            `api_key` and a `note`, because a key is shown only once.",
        surface: Surface::Route,
        counted: false,
        errors: &[ErrorCode::IdempotencyMismatch, ErrorCode::RateLimited, ErrorCode::Unavailable],
        example: json!({ "email": "you@example.org" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Created, _, _>(words, answer)
}

pub(crate) async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let free = Access::of(ctx).mint_free(ctx, &arguments.email, call.caller.address, call.idempotency_key.as_deref()).await?;
    let (status, created) = Created::of(free);
    Ok(Answer { status, ..Answer::json(&created)? })
}

#[cfg(test)]
mod tests {
    use access::Credentials;
    use feed::testing::accounts::world;
    use feed::testing::{ask, call, text, value};
    use schemas::views::accounts::Tier;

    use super::*;

    /// Proves that the operation answers 201 with a key that works, answers a repeated request 200 without the key, and names an invalid address.
    #[tokio::test]
    async fn create_key() {
        let (_world, ctx) = world().await;
        let operation = operation();
        let created = value(&ctx, &operation, json!({ "email": "ann@example.org" })).await;
        let credentials = Credentials { key: created["api_key"].as_str().map(str::to_owned) };
        let address = call(&ctx).caller.address;
        assert!(Access::of(&ctx).admit(&ctx, credentials, address, &operation, false).await.is_ok());
        assert_eq!((&created["tier"], &created["note"]), (&json!("free"), &json!(null)));
        let arguments = Arguments { email: "eve@example.org".to_owned() };
        let repeated = async || {
            let call = Call { idempotency_key: Some("once".to_owned()), ..call(&ctx) };
            let answer = answer(call, arguments.clone()).await.unwrap();
            (answer.status, serde_json::from_str::<serde_json::Value>(&text(answer)).unwrap())
        };
        let (first, second) = (repeated().await, repeated().await);
        assert_eq!((first.0, second.0, &second.1["api_key"]), (201, 200, &json!("")));
        for member in ["key_id", "account", "tier"] {
            assert_eq!(first.1[member], second.1[member]);
        }
        assert!(second.1["note"].as_str().unwrap().contains("shown once"), "{}", second.1);
        let other = Call { idempotency_key: Some("once".to_owned()), ..call(&ctx) };
        let problem = answer(other, Arguments { email: "mallory@example.org".to_owned() }).await.unwrap_err();
        assert_eq!(problem.code, ErrorCode::IdempotencyMismatch, "another request with the key");
        assert_eq!(ask(&ctx, &operation, json!({ "email": "bob@example.org" })).await.unwrap().status, 201);
        assert_eq!(ask(&ctx, &operation, json!({ "email": "nobody" })).await.unwrap_err().parameter, "email");
        assert_eq!(call(&ctx).caller.tier, Tier::Anonymous);
    }
}

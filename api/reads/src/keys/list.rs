//! `GET /api/account/keys`: the keys of an account.

use access::{Access, KeyState, key_state};
use operation::context::Part;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::Serialize;
use serde_json::json;

use super::ShownKey;
use crate::list_page::ListPage;

/// The keys of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Keys {
    /// The account.
    pub account: String,
    /// How many of all its keys work and have no end.
    pub working: usize,
    /// The keys, the newest first.
    pub keys: Vec<ShownKey>,
    /// Send it as `after` to get the keys created before these; null if there are no more.
    pub next: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "list_keys",
        path: "/api/account/keys",
        summary: "The keys of the account of the request's key, also those that ended, the newest first.",
        description: "A key itself is stored nowhere and shown in no list; `endsWith` has its last four characters. Keys that an older version of this \
            server created are listed once they are used, or after `highwater replay accounts`. Counts against no quota.",
        price: Price::Tier(Tier::Free),
        surface: Surface::Route,
        counted: false,
        list: "keys",
        errors: &[ErrorCode::Unavailable],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<ListPage, Keys, _, _>(words, answer)
}

async fn answer(call: Call, page: ListPage) -> Result<Answer, Problem> {
    let (ctx, caller) = (&call.context, &call.caller);
    let (all, now_ms) = (Access::of(ctx).account_keys(ctx, caller).await?, ctx.clock.now_ms());
    let working = all.iter().filter(|row| key_state(row, now_ms) == KeyState::Working).count();
    let (rows, next) = page.newest_first(all, |row| (row.minted_at, row.id.as_str()))?;
    let keys = rows.iter().map(|row| ShownKey::of(row, &caller.key_id, now_ms)).collect();
    Answer::json(&Keys { account: caller.account.clone(), working, keys, next })
}

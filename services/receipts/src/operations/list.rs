//! `GET /v1/list`: an agent's chain, newest first.

use schemars::JsonSchema;
use schemas::views::receipts::state_key;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Receipts;
use operation::document_receipt::ShownReceipt;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};

const LIMIT: i64 = 50;

/// Arguments of `list_receipts`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The agent whose chain is listed.
    #[schemars(length(min = 1, max = 200))]
    pub agent_id: String,
    /// How many receipts to return at most; by default 50.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// The `next` of an earlier answer, to get older receipts: those before this position in the chain.
    #[schemars(range(min = 1))]
    pub after: Option<i64>,
}

/// Part of an agent's chain.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Receipted {
    /// The owner of the chain: an account (`acct_…`) or a payer's address (`0x…`). Empty if there are no receipts, or if the owner is not known.
    pub owner: String,
    /// The receipts, newest first.
    pub receipts: Vec<ShownReceipt>,
    /// Send it as `after` to get older receipts; null at the start of the chain.
    pub next: Option<i64>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "list_receipts",
        method: Method::Get,
        path: "/v1/list",
        summary: "An agent's receipts, newest first.",
        when: "Use it to see what an agent did.",
        description: "An agent without receipts has an empty list. Positions have no gaps, so a missing receipt would be noticed.",
        price: Price::Free,
        surface: Surface::Both,
        counted: true,
        list: "receipts",
        errors: &[],
        example: json!({ "agent_id": "billing-agent-1", "limit": 10 }),
        aliases: &[("before", "after")],
    };
    Operation::define::<Arguments, Receipted, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let receipts = Receipts::now(&call.context).await?;
    let chain = receipts.chain(&arguments.agent_id).await?;
    let newest = arguments.after.map_or(chain.length, |after| chain.length.min(after - 1));
    let oldest = (newest - arguments.limit.unwrap_or(LIMIT)).max(0) + 1;
    let places: Vec<String> = (oldest..=newest).rev().map(|seq| state_key::position(&arguments.agent_id, seq)).collect();
    let ids: Vec<String> = receipts.remembered(&places).await?.into_iter().flatten().collect();
    let shown = receipts.get_many(&ids).await?.into_iter().map(ShownReceipt::from).collect();
    Answer::json(&Receipted { owner: chain.owner(), receipts: shown, next: (oldest > 1).then_some(oldest) })
}

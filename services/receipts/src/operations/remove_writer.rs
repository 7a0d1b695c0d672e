//! `DELETE /v1/chains/{agent_id}/writers/{writer}`: revokes the permission of an account or payer to append to a chain.

use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use schemas::views::receipts::WriterChange;
use serde_json::json;

use super::chain::{WriterArguments, Writers, change_writer, owned, shown};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "remove_chain_writer",
        method: Method::Delete,
        path: "/v1/chains/{agent_id}/writers/{writer}",
        summary: "Revokes the permission of an account or payer to append to a receipt chain that your account owns.",
        description: "Receipts that were issued to the writer remain in the chain, and a payment that was claimed before still gets its receipt. The owner cannot be \
            removed.",
        price: Price::Tier(Tier::Free),
        surface: Surface::Route,
        errors: &[ErrorCode::ChainForbidden, ErrorCode::NotFound],
        example: json!({ "agent_id": "billing-agent-1", "writer": "acct_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<WriterArguments, Writers, _, _>(words, answer)
}

async fn answer(call: Call, arguments: WriterArguments) -> Result<Answer, Problem> {
    let (agent_id, writer) = arguments.read()?;
    if !owned(&call, &agent_id).await?.writers.contains(&writer) {
        return Err(Problem::new(ErrorCode::NotFound, "the chain has no such writer").about("writer"));
    }
    shown(agent_id.clone(), change_writer(&call, WriterChange::Remove, &agent_id, &writer).await?)
}

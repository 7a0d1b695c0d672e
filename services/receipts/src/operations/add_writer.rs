//! `POST /v1/chains/{agent_id}/writers`: allows another account or payer to append to a chain.

use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use schemas::views::receipts::{WRITERS_PER_CHAIN_MAX, WriterChange};
use serde_json::json;

use super::chain::{WriterArguments, Writers, change_writer, owned, shown};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price, Surface};

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "add_chain_writer",
        method: Method::Post,
        path: "/v1/chains/{agent_id}/writers",
        summary: "Allows another account or payer to append to a receipt chain that your account owns.",
        description: "A chain has at most 20 writers besides its owner. Receipts that a writer is issued carry the writer in `issuedTo`; the chain \
            stays the owner's. Naming a writer again changes nothing. A chain whose owner is a payer has no account that could call this: it has \
            no further writers.",
        price: Price::Tier(Tier::Free),
        surface: Surface::Route,
        errors: &[ErrorCode::ChainForbidden, ErrorCode::NotFound, ErrorCode::LimitReached],
        example: json!({ "agent_id": "billing-agent-1", "writer": "acct_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<WriterArguments, Writers, _, _>(words, answer)
}

async fn answer(call: Call, arguments: WriterArguments) -> Result<Answer, Problem> {
    let (agent_id, writer) = arguments.read()?;
    let mut chain = owned(&call, &agent_id).await?;
    if !chain.permits(&writer) {
        if chain.writers.len() < WRITERS_PER_CHAIN_MAX {
            chain = change_writer(&call, WriterChange::Add, &agent_id, &writer).await?;
        }
        // Another call may have added the last writer that the limit allows.
        if !chain.permits(&writer) {
            return Err(Problem::new(ErrorCode::LimitReached, format!("a chain has at most {WRITERS_PER_CHAIN_MAX} writers: remove one")));
        }
    }
    Ok(Answer { status: 201, ..shown(agent_id, chain)? })
}

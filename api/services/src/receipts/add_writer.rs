//! `POST /v1/chains/{agent_id}/writers`: lets a further account or payer append to a chain.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use schemas::views::receipts::{ADD_WRITER, WRITERS_PER_CHAIN_MAX};
use serde::Deserialize;
use serde_json::json;

use super::chain::{Writers, change_writer, check_name, owned, read_writer, shown};
use operation::problem::Problem;
use operation::{Answer, Call, Method, Operation, Price, Words};

/// Arguments of `add_chain_writer`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The agent whose chain it is.
    #[schemars(length(min = 1, max = 200))]
    pub agent_id: String,
    /// Who may append from now on: the id of an account (`acct_` and 24 hex digits) or a payer's address (`0x` and 40 hex digits).
    #[schemars(length(min = 1, max = 64))]
    pub writer: String,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Words {
        name: "add_chain_writer",
        method: Method::Post,
        path: "/v1/chains/{agent_id}/writers",
        summary: "Lets a further account or payer append to a receipt chain that your account owns.",
        description: "A chain has at most 20 writers besides its owner. Receipts that a writer is issued carry the writer in `issuedTo`; the chain \
            stays the owner's. Naming a writer again changes nothing. A chain whose owner is a payer has no account that could call this: it has \
            no further writers.",
        price: Price::Tier(Tier::Free),
        tool: false,
        counted: true,
        list: "",
        errors: &[ErrorCode::ChainForbidden, ErrorCode::NotFound, ErrorCode::LimitReached],
        example: json!({ "agent_id": "billing-agent-1", "writer": "acct_0123456789abcdef01234567" }),
        aliases: &[],
    };
    Operation::define::<Arguments, Writers, _, _>(words, answer)
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let Arguments { agent_id, writer } = arguments;
    check_name("agent_id", &agent_id)?;
    let writer = read_writer(&writer)?;
    let mut chain = owned(&call, &agent_id).await?;
    if !chain.permits(&writer) {
        if chain.writers.len() < WRITERS_PER_CHAIN_MAX {
            chain = change_writer(&call, ADD_WRITER, &agent_id, &writer).await?;
        }
        // Another call may have named the last one that there is room for.
        if !chain.permits(&writer) {
            return Err(Problem::new(ErrorCode::LimitReached, format!("a chain has at most {WRITERS_PER_CHAIN_MAX} writers: remove one")));
        }
    }
    Ok(Answer { status: 201, ..shown(agent_id, chain)? })
}

//! Who may append to the receipt chain of an agent: its owner, and the accounts and payers that the owner named.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::payments::{Payment, State, TABLES as PAYMENTS};
use schemas::views::receipts::{
    ASSIGN_OWNER, AppendRefusal, ChainEnd, ChainOwner, ReceiptCommand, RequestOutcome, TABLES, is_caller, may_append, source,
};
use serde::Serialize;

use super::Receipts;
use crate::access::append::{self, Once};
use crate::context::Context;
use crate::feed::filter::Element;
use crate::feed::private::read_on;
use crate::operation::{Answer, Call};
use crate::problem::Problem;

/// Who may append to a chain, as its owner is shown it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Writers {
    /// The agent whose chain it is.
    pub agent_id: String,
    /// The owner: an account (`acct_…`) or a payer's address (`0x…`).
    pub owner: String,
    /// Further accounts and payers that may append to the chain, in the order in which they were named.
    pub writers: Vec<String>,
}

/// An agent's chain: who owns it, and how many receipts it has.
pub(super) struct Chain {
    owner: Option<ChainOwner>,
    /// How many receipts it has.
    pub(super) length: i64,
}

impl Chain {
    /// The owner of a chain that has receipts; empty while it has none, or if the owner is not known.
    pub(super) fn owner(&self) -> String {
        self.owner.as_ref().filter(|_| self.length > 0).map(|owner| owner.owner.clone()).unwrap_or_default()
    }
}

impl Receipts {
    /// What is known of an agent's chain.
    pub(super) async fn chain(&self, agent_id: &str) -> Result<Chain, Problem> {
        let (owner, last) = tokio::try_join!(self.one(source::owner(agent_id)), self.one::<ChainEnd>(source::agent(agent_id)))?;
        Ok(Chain { owner, length: last.unwrap_or_default().seq })
    }

    /// What a request, or a payment, has come to; `None` if it is not decided.
    pub(super) async fn outcome(&self, request: &str) -> Result<Option<RequestOutcome>, Problem> {
        self.one(source::request(request)).await
    }

    /// Refuses a caller who may not append to a chain as it is now. The decision about the command itself may still be another one.
    pub(super) async fn check_may_append(&self, agent_id: &str, caller: &str) -> Result<(), Problem> {
        let Chain { owner, length } = self.chain(agent_id).await?;
        may_append(owner.as_ref(), length, caller).map_err(|refused| forbidden(agent_id, refused))
    }
}

/// The answer to a caller who may not append to a chain.
pub(super) fn forbidden(agent_id: &str, refused: AppendRefusal) -> Problem {
    let words = format!("agent_id: {refused}; no receipt is issued to you under \"{agent_id}\"");
    Problem::new(ErrorCode::ChainForbidden, words).about("agent_id")
}

/// Refuses a name that is blank or holds control characters.
///
/// # Errors
/// `parameter-invalid` with the parameter.
pub(super) fn check_name(parameter: &str, text: &str) -> Result<(), Problem> {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(Problem::parameter(parameter, format!("{parameter}: is empty, or holds control characters")));
    }
    Ok(())
}

/// Reads the id of an account, or a payer's address in either case.
///
/// # Errors
/// `parameter-invalid`.
pub(super) fn read_writer(text: &str) -> Result<String, Problem> {
    let lower = text.to_ascii_lowercase();
    is_caller(&lower).then_some(lower).ok_or_else(|| {
        let words = "writer: is neither an account (acct_ and 24 hex digits) nor a payer's address (0x and 40 hex digits)";
        Problem::parameter("writer", words)
    })
}

/// The chain of an agent, if the caller's account owns it.
///
/// # Errors
/// `not-found` if it has no receipts; `chain-forbidden` if it does not belong to the account.
pub(super) async fn owned(call: &Call, agent_id: &str) -> Result<ChainOwner, Problem> {
    let Chain { owner, length } = Receipts::now(&call.context).await?.chain(agent_id).await?;
    if length == 0 {
        return Err(Problem::new(ErrorCode::NotFound, "this agent has no receipts").about("agent_id"));
    }
    owner.filter(|owner| !call.caller.account.is_empty() && owner.owner == call.caller.account).ok_or_else(|| {
        let words = "agent_id: its receipt chain does not belong to the account of this key";
        Problem::new(ErrorCode::ChainForbidden, words).about("agent_id")
    })
}

/// Sends a command of the owner's about a further writer, and answers who may append then.
///
/// # Errors
/// `unavailable` while it is not projected; as [`owned`].
pub(super) async fn change_writer(call: &Call, verb: &str, agent_id: &str, writer: &str) -> Result<ChainOwner, Problem> {
    let command = ReceiptCommand {
        verb: verb.to_owned(),
        agent_id: agent_id.to_owned(),
        caller: call.caller.account.clone(),
        writer: writer.to_owned(),
        ..ReceiptCommand::default()
    };
    append::command(&call.context, TABLES.view, &source::owner(agent_id), Once::No, &command).await?;
    owned(call, agent_id).await
}

/// The answer with a chain's writers.
pub(super) fn shown(agent_id: String, chain: ChainOwner) -> Result<Answer, Problem> {
    Answer::json(&Writers { agent_id, owner: chain.owner, writers: chain.writers })
}

/// Names the owner of a chain that was begun before chains had owners: `owner`, or who paid for its first receipt. Answers the owner.
///
/// # Errors
/// Why it cannot be assigned.
pub async fn assign_owner(ctx: &Context, agent_id: &str, owner: Option<&str>) -> Result<String, Problem> {
    let receipts = Receipts::now(ctx).await?;
    let chain = receipts.chain(agent_id).await?;
    let refused = |words: String| Problem::new(ErrorCode::ParameterInvalid, words);
    if chain.length == 0 {
        return Err(refused(format!("the agent {agent_id:?} has no receipts: its chain will belong to the first caller it is issued to")));
    }
    if let Some(known) = chain.owner {
        return Err(refused(format!("the chain of {agent_id:?} belongs to {}", known.owner)));
    }
    let owner = match owner.map(str::to_ascii_lowercase) {
        Some(owner) if is_caller(&owner) => owner,
        Some(owner) => {
            return Err(refused(format!("{owner:?} is neither acct_ and 24 hex digits nor 0x and 40 hex digits")));
        }
        None => first_payer(ctx, &receipts, agent_id).await?.ok_or_else(|| {
            refused(format!("the first receipt of {agent_id:?} was issued with a key, and the log does not say whose: name the owner"))
        })?,
    };
    let command =
        ReceiptCommand { verb: ASSIGN_OWNER.to_owned(), agent_id: agent_id.to_owned(), caller: owner.clone(), ..ReceiptCommand::default() };
    append::command(ctx, TABLES.view, &source::owner(agent_id), Once::No, &command).await?;
    let assigned = Receipts::now(ctx).await?.chain(agent_id).await?.owner();
    if assigned == owner { Ok(owner) } else { Err(refused(format!("the chain of {agent_id:?} belongs to {assigned}"))) }
}

/// Who paid for the first receipt of a chain; `None` if it was not paid for.
async fn first_payer(ctx: &Context, receipts: &Receipts, agent_id: &str) -> Result<Option<String>, Problem> {
    let Some(first) = receipts.one::<String>(source::position(agent_id, 1)).await? else { return Ok(None) };
    let mut after = Seq(0);
    while let Some((changes, to)) = read_on::<Payment>(ctx, &PAYMENTS, after).await? {
        for Element { record, .. } in changes {
            let effect = serde_json::from_str::<ReceiptCommand>(&record.effect);
            if record.state == State::Settled
                && effect.is_ok_and(|effect| effect.agent_id == agent_id)
                && receipts.outcome(&record.id).await? == Some(RequestOutcome::Issued(first.clone()))
            {
                return Ok(Some(record.payer));
            }
        }
        after = to;
    }
    Ok(None)
}

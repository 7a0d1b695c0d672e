//! Who may append to the receipt chain of an agent: its owner, and the accounts and payers that the owner named.

use std::collections::BTreeMap;

use proofs::receipt::Receipt;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::payments::{Payment, State, TABLES as PAYMENTS};
use schemas::views::receipts::{
    AppendRefusal, ChainEnd, ChainOwner, ReceiptCommand, RequestOutcome, TABLES, WriterChange, WriterRequest, is_caller, may_append,
    state_key,
};
use serde::{Deserialize, Serialize};
use texts::folding::{is_composed, is_invisible};

use crate::Receipts;
use access::append::{self, CommandPolicy};
use feed::filter::Element;
use feed::internal::read_next;
use operation::context::Context;
use operation::document_receipt::SERVICE_AGENT_PREFIX;
use operation::problem::Problem;
use operation::redaction::PREFIX;
use operation::{Answer, Call};

/// The owner and the writers of a chain, as its owner sees them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Writers {
    /// The agent of the chain.
    pub agent_id: String,
    /// The owner: an account (`acct_…`) or a payer's address (`0x…`).
    pub owner: String,
    /// Further accounts and payers that may append to the chain, in the order in which they were named.
    pub writers: Vec<String>,
}

/// Arguments of `add_chain_writer` and `remove_chain_writer`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriterArguments {
    /// The agent of the chain.
    #[schemars(length(min = 1, max = 200))]
    pub agent_id: String,
    /// The writer: the id of an account (`acct_` and 24 hex digits) or a payer's address (`0x` and 40 hex digits).
    #[schemars(length(min = 1, max = 64))]
    pub writer: String,
}

impl WriterArguments {
    /// The checked agent and writer.
    ///
    /// # Errors
    /// `parameter-invalid`.
    pub(crate) fn read(self) -> Result<(String, String), Problem> {
        check_name("agent_id", &self.agent_id)?;
        let writer = read_writer(&self.writer)?;
        Ok((self.agent_id, writer))
    }
}

/// An agent's chain: who owns it, and how many receipts it has.
pub(crate) struct Chain {
    owner: Option<ChainOwner>,
    /// The number of its receipts.
    pub(crate) length: i64,
}

impl Chain {
    /// The owner of a chain that has receipts or was assigned; empty while it is only reserved, or if the owner is not known.
    pub(crate) fn owner(&self) -> String {
        self.owner.as_ref().filter(|owner| self.length > 0 || owner.is_assigned).map(|owner| owner.owner.clone()).unwrap_or_default()
    }
}

impl Receipts {
    /// Reads the chain of an agent.
    pub(crate) async fn chain(&self, agent_id: &str) -> Result<Chain, Problem> {
        let (owner, last) = tokio::try_join!(self.one(state_key::owner(agent_id)), self.one::<ChainEnd>(state_key::agent(agent_id)))?;
        Ok(Chain { owner, length: last.unwrap_or_default().seq })
    }

    /// The receipt of a request, or why it is refused.
    ///
    /// # Errors
    /// `unavailable` while it is not issued yet.
    pub(crate) async fn receipt_of(&self, request: &str) -> Result<Result<Receipt, AppendRefusal>, Problem> {
        let receipt = match self.outcome(request).await? {
            Some(RequestOutcome::Issued(id)) => self.get(&id).await?,
            Some(RequestOutcome::Refused { refused }) => return Ok(Err(refused)),
            Some(RequestOutcome::Reserved { .. }) | None => None,
        };
        let not_yet = || Problem::new(ErrorCode::Unavailable, "the receipt is not issued yet; ask again").retry_after(1);
        receipt.map(Ok).ok_or_else(not_yet)
    }

    /// The decision about a request or a payment; `None` if it is not decided.
    pub(crate) async fn outcome(&self, request: &str) -> Result<Option<RequestOutcome>, Problem> {
        self.one(state_key::request(request)).await
    }

    /// Refuses a caller who may not append to the chain in its current state, and a new chain under a name that can look like another one. The later
    /// decision about the command can still differ.
    pub(crate) async fn check_may_append(&self, agent_id: &str, caller: &str) -> Result<(), Problem> {
        let Chain { owner, length } = self.chain(agent_id).await?;
        if owner.is_none() && length == 0 {
            check_new_name(agent_id)?;
        }
        may_append(owner.as_ref(), length, caller).map_err(|refused| forbidden(agent_id, refused))
    }
}

/// The answer to a caller who may not append to a chain.
pub(crate) fn forbidden(agent_id: &str, refused: AppendRefusal) -> Problem {
    let words = format!("agent_id: {refused}; no receipt is issued to you under \"{agent_id}\"");
    Problem::new(ErrorCode::ChainForbidden, words).about("agent_id")
}

/// Refuses the agent id of a new receipt that is no name, or that is reserved for the receipts of services.
///
/// # Errors
/// `parameter-invalid` for `agent_id`.
pub(crate) fn check_agent(agent_id: &str) -> Result<(), Problem> {
    check_name("agent_id", agent_id)?;
    if agent_id.starts_with(SERVICE_AGENT_PREFIX) {
        let words =
            format!("agent_id: names that begin with `{SERVICE_AGENT_PREFIX}` are reserved for receipts over the documents of this server");
        return Err(Problem::parameter("agent_id", words));
    }
    Ok(())
}

/// Refuses a name that is blank, holds control characters, or contains an API key, which would be published with the receipt.
///
/// # Errors
/// `parameter-invalid` with the parameter.
pub(crate) fn check_name(parameter: &str, text: &str) -> Result<(), Problem> {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(Problem::parameter(parameter, format!("{parameter}: is empty, or holds control characters")));
    }
    if text.contains(PREFIX) {
        return Err(Problem::parameter(parameter, format!("{parameter}: contains an API key; receipts are public, so revoke that key")));
    }
    Ok(())
}

/// Refuses a name for a new chain that people cannot tell from another one. Chains that have such a name already continue.
///
/// # Errors
/// `parameter-invalid`.
fn check_new_name(agent_id: &str) -> Result<(), Problem> {
    let fault = if agent_id.trim() != agent_id || agent_id.contains("  ") {
        "begins or ends with a blank, or has two in a row"
    } else if agent_id.chars().any(is_invisible) {
        "has a character that is not visible"
    } else if !is_composed(agent_id) {
        "has a letter whose accent is a character of its own; send it in normal form NFC"
    } else {
        return Ok(());
    };
    Err(Problem::parameter("agent_id", format!("agent_id: {fault}, so it can look like the name of another chain")))
}

/// Reads the id of an account, or a payer's address in either case.
///
/// # Errors
/// `parameter-invalid`.
fn read_writer(text: &str) -> Result<String, Problem> {
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
pub(crate) async fn owned(call: &Call, agent_id: &str) -> Result<ChainOwner, Problem> {
    let Chain { owner, length } = Receipts::now(&call.context).await?.chain(agent_id).await?;
    if length == 0 && !owner.as_ref().is_some_and(|owner| owner.is_assigned) {
        return Err(Problem::new(ErrorCode::NotFound, "this agent has no receipts").about("agent_id"));
    }
    owner.filter(|owner| !call.caller.account.is_empty() && owner.owner == call.caller.account).ok_or_else(|| {
        let words = "agent_id: its receipt chain does not belong to the account of this key";
        Problem::new(ErrorCode::ChainForbidden, words).about("agent_id")
    })
}

/// Sends a command of the owner about a writer, and returns who may append afterwards.
///
/// # Errors
/// `unavailable` while it is not projected; as [`owned`].
pub(crate) async fn change_writer(call: &Call, change: WriterChange, agent_id: &str, writer: &str) -> Result<ChainOwner, Problem> {
    let (caller, writer) = (call.caller.account.clone(), writer.to_owned());
    let command = ReceiptCommand::Writer(WriterRequest { change, agent_id: agent_id.to_owned(), caller, writer });
    append::append_command(&call.context, TABLES.view, &state_key::owner(agent_id), CommandPolicy::Always, &command).await?;
    owned(call, agent_id).await
}

/// The answer with a chain's writers.
pub(crate) fn shown(agent_id: String, chain: ChainOwner) -> Result<Answer, Problem> {
    Answer::json(&Writers { agent_id, owner: chain.owner, writers: chain.writers })
}

/// Names the owner of a chain that has none, because it was begun before chains had owners or has no receipts: `owner`, or who paid for its first
/// receipt. Answers the owner.
///
/// # Errors
/// Why it cannot be assigned.
pub async fn assign_owner(ctx: &Context, agent_id: &str, owner: Option<&str>) -> Result<String, Problem> {
    check_name("agent_id", agent_id)?;
    let receipts = Receipts::now(ctx).await?;
    let chain = receipts.chain(agent_id).await?;
    if agent_id.chars().count() > AGENT_ID_CHARS_MAX {
        return Err(refused(format!("agent_id: is longer than {AGENT_ID_CHARS_MAX} characters")));
    }
    if let Some(known) = chain.owner {
        return Err(refused(match known.reservations {
            1.. if chain.length == 0 => format!("the chain of {agent_id:?} is reserved for a payment of {}", known.owner),
            _ => format!("the chain of {agent_id:?} belongs to {}", known.owner),
        }));
    }
    let owner = match owner.map(str::to_ascii_lowercase) {
        Some(owner) if is_caller(&owner) => owner,
        Some(owner) => {
            return Err(refused(format!("{owner:?} is neither acct_ and 24 hex digits nor 0x and 40 hex digits")));
        }
        None if chain.length == 0 => return Err(refused(format!("the agent {agent_id:?} has no receipts: name the owner"))),
        None => {
            let first: Option<String> = receipts.one(state_key::position(agent_id, 1)).await?;
            let chains = first.map(|first| (first, agent_id.to_owned())).into_iter().collect();
            let (mut paid, _) = find_payers(ctx, &receipts, chains).await?;
            let Some((_, payer)) = paid.pop() else { return Err(refused(format!("{agent_id:?}: {NOT_PAID}: name the owner"))) };
            payer
        }
    };
    assign(ctx, agent_id, owner).await
}

/// The longest name of an agent that `issue_receipt` accepts, in characters.
const AGENT_ID_CHARS_MAX: usize = 200;

/// Why the owner of a chain is not known.
const NOT_PAID: &str = "its first receipt was issued with a key, and the log does not say whose";

fn refused(words: String) -> Problem {
    Problem::new(ErrorCode::ParameterInvalid, words)
}

/// Records the owner of a chain that has none.
async fn assign(ctx: &Context, agent_id: &str, owner: String) -> Result<String, Problem> {
    let command = ReceiptCommand::AssignOwner { agent_id: agent_id.to_owned(), owner: owner.clone() };
    append::append_command(ctx, TABLES.view, &state_key::owner(agent_id), CommandPolicy::Always, &command).await?;
    let assigned = Receipts::now(ctx).await?.chain(agent_id).await?.owner();
    if assigned == owner { Ok(owner) } else { Err(refused(format!("the chain of {agent_id:?} belongs to {assigned}"))) }
}

/// Assigns each chain with receipts and without an owner to whoever paid for its first receipt. Answers of each such chain its agent, and its owner or
/// why it could not be assigned.
///
/// # Errors
/// When what is stored cannot be read.
pub async fn assign_all_paid(ctx: &Context) -> Result<Vec<(String, Result<String, String>)>, Problem> {
    let receipts = Receipts::now(ctx).await?;
    let (mut chains, mut after) = (BTreeMap::new(), Seq(0));
    while let Some((changes, to)) = read_next::<Receipt>(ctx, &TABLES, after).await? {
        for Element { record, .. } in changes {
            let agent_id = record.body.agent_id;
            if record.body.seq == 1 && receipts.chain(&agent_id).await?.owner.is_none() {
                chains.insert(record.id, agent_id);
            }
        }
        after = to;
    }
    let (paid, others) = find_payers(ctx, &receipts, chains).await?;
    let mut assigned = Vec::new();
    for (agent_id, payer) in paid {
        let owner = assign(ctx, &agent_id, payer).await.map_err(|problem| problem.detail);
        assigned.push((agent_id, owner));
    }
    let others = others.into_values().map(|agent_id| (agent_id, Err(NOT_PAID.to_owned())));
    Ok(assigned.into_iter().chain(others).collect())
}

/// Chains by the id of their first receipt: the agent of each.
type ByFirstReceipt = BTreeMap<String, String>;

/// Who paid for the first receipts of some chains: of each that was paid for its agent and the payer, and the chains that were not.
async fn find_payers(
    ctx: &Context,
    receipts: &Receipts,
    mut chains: ByFirstReceipt,
) -> Result<(Vec<(String, String)>, ByFirstReceipt), Problem> {
    let (mut paid, mut after) = (Vec::new(), Seq(0));
    while !chains.is_empty() {
        let Some((changes, to)) = read_next::<Payment>(ctx, &PAYMENTS, after).await? else { break };
        for Element { record, .. } in changes.into_iter().filter(|change| change.record.state == State::Settled) {
            if record.service == TABLES.view.name
                && let Some(RequestOutcome::Issued(issued)) = receipts.outcome(&record.id).await?
                && let Some(agent_id) = chains.remove(&issued)
            {
                paid.push((agent_id, record.payer));
            }
        }
        after = to;
    }
    Ok((paid, chains))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which names can begin a chain: not those that look like another name, while other letters, emoji and single blanks can.
    #[test]
    fn names_of_new_chains() {
        for name in ["agent", "Agent 7", "caf\u{e9}", "\u{4ee3}\u{7406}", "\u{1f98a}", "a.b-c_d/e@f", "\u{43f}\u{43e}\u{441}\u{442}"] {
            assert_eq!(check_new_name(name), Ok(()), "{name:?}");
        }
        let lookalikes = [
            " agent",
            "agent ",
            "a  b",
            "a\u{a0}b",
            "agent\u{200b}",
            "ag\u{ad}ent",
            "\u{feff}agent",
            "a\u{202e}b",
            "cafe\u{301}",
            "a\u{fe0f}",
            "\u{3164}",
            "a\u{e0041}",
        ];
        for name in lookalikes {
            let refused = check_new_name(name).unwrap_err();
            assert_eq!((refused.code, refused.parameter.as_str()), (ErrorCode::ParameterInvalid, "agent_id"), "{name:?}");
        }
    }
}

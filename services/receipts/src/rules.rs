//! Receipts: each request gets the next position in its agent's chain, and is signed. Ed25519 is deterministic, so that every decider
//! creates the same receipt and a chain cannot fork.
//!
//! A chain belongs to the first caller who is issued a receipt of it, an account or a payer. Only the owner, and writers that the owner
//! adds, may append. For a paid receipt this is decided with the claim, which reserves the chain, so that it is known before money moves.

use proofs::hash::Hash32;
use proofs::receipt::{Body, Receipt, Refusal, SignedReceipt, TYPE, VERSION, hash_text};
use proofs::tree;
use schemas::avro;
use schemas::clock::rfc3339;
use schemas::event::Fact;
use schemas::topics::{CHANGES_RECEIPTS, PAYMENTS, RECEIPTS, Topic};
use schemas::views::payments::{PaymentCommand, TransferKeys, transfer_keys};
use schemas::views::receipts::{
    ChainEnd, ChainOwner, IssueRequest, PublicKey, ReceiptCommand, RequestOutcome, SignedCheckpoint, SigningHistory, TABLES,
    WRITERS_PER_CHAIN_MAX, WriterChange, WriterRequest, may_append, state_key,
};
use schemas::views::records::RecordTables;

use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;
use fold::transfers::claim_transfer;

/// The receipts service.
pub type Receipts = Records<ReceiptsRules>;

/// What a fact of one of the two input topics means for receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    action: Action,
    /// For a settled payment: the keys of the transfer that paid, see [`transfer_keys`].
    transfer: TransferKeys,
}

/// What is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// Nothing: a payment for another service, or a step of a payment that does not concern receipts.
    Nothing,
    /// A command on the `receipts` topic.
    Command(ReceiptCommand),
    /// A claimed payment reserves a position in a chain.
    Reserve(IssueRequest),
    /// A settled payment has bought a receipt.
    IssuePaid {
        issue: IssueRequest,
        /// Whether the receipt was claimed by a version that did not record callers.
        is_older_claim: bool,
    },
    /// A payment has lapsed, and its reservation ends.
    Release,
}

impl From<ReceiptCommand> for Request {
    fn from(command: ReceiptCommand) -> Self {
        Self { action: Action::Command(command), transfer: TransferKeys::default() }
    }
}

/// The rules of the receipts service.
pub struct ReceiptsRules;

impl Rules for ReceiptsRules {
    type Fact = Request;
    type Record = Receipt;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[RECEIPTS, PAYMENTS];
    const CHANGES: &'static Topic = &CHANGES_RECEIPTS;
    // With another order of the two input topics, each chain would differ, and so would the signed tree.
    const FINAL: bool = true;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<Request>, avro::Error> {
        if topic.name == PAYMENTS.name {
            let read = |command: PaymentCommand| request_of_payment(&command);
            return avro::decode(topic.name, value).map(|fact: Fact<PaymentCommand>| fact.map(read));
        }
        avro::decode(topic.name, value).map(|fact: Fact<ReceiptCommand>| fact.map(Request::from))
    }

    fn reads(fact: &Fact<Request>) -> Vec<DecisionRow> {
        let Some(Request { action, transfer }) = fact.observed() else { return Vec::new() };
        let chain_rows = |agent: &str| [state_key::owner(agent), state_key::agent(agent)];
        let issue_rows = |issue: &IssueRequest| {
            let own = [state_key::SIGNING.to_owned(), state_key::TREE.to_owned(), state_key::request(&fact.key)];
            own.into_iter().chain(chain_rows(&issue.agent_id)).collect()
        };
        let keys = match action {
            Action::Nothing | Action::Command(ReceiptCommand::Unknown { .. }) => Vec::new(),
            Action::Command(ReceiptCommand::Checkpoint(_)) => vec![state_key::CHECKPOINT.to_owned()],
            Action::Command(ReceiptCommand::Key { .. } | ReceiptCommand::Memory { .. }) => vec![state_key::SIGNING.to_owned()],
            Action::Command(ReceiptCommand::Issue(issue)) | Action::IssuePaid { issue, .. } => issue_rows(issue),
            Action::Command(ReceiptCommand::Writer(WriterRequest { agent_id, .. }) | ReceiptCommand::AssignOwner { agent_id, .. }) => {
                chain_rows(agent_id).to_vec()
            }
            Action::Reserve(issue) => std::iter::once(state_key::request(&fact.key)).chain(chain_rows(&issue.agent_id)).collect(),
            Action::Release => vec![state_key::request(&fact.key)],
        };
        keys.into_iter().chain(transfer.all().map(str::to_owned)).map(DecisionRow::State).collect()
    }

    fn signs(fact: &Fact<Request>) -> bool {
        let action = fact.observed().map(|request| &request.action);
        matches!(action, Some(Action::Command(ReceiptCommand::Issue(_)) | Action::IssuePaid { .. }))
    }

    fn is_confirmed(key: &str) -> bool {
        state_key::is_chain_state(key)
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<Request>) -> Result<(), Undecided> {
        // The payments service applies the same rule, also to payments for other services: a transfer that has paid for one answer pays for
        // no other.
        let transfer = fact.data.as_ref().map(|request| request.transfer.clone()).unwrap_or_default();
        if !claim_transfer(state, &fact.key, &transfer)? {
            // The payment lapses, and its reservation ends.
            return release(state, fact);
        }
        let Some(Request { action, .. }) = fact.observed() else { return Ok(()) };
        match action {
            Action::Nothing => Ok(()),
            Action::Command(command) => apply_command(state, fact, command),
            Action::Reserve(issue) => reserve(state, fact, issue),
            Action::IssuePaid { issue: request, is_older_claim } => issue(state, fact, request, *is_older_claim),
            Action::Release => release(state, fact),
        }
    }
}

/// Applies a command on the `receipts` topic.
fn apply_command(state: &mut State<'_, ReceiptsRules>, fact: &Fact<Request>, command: &ReceiptCommand) -> Result<(), Undecided> {
    match command {
        ReceiptCommand::Issue(request) => issue(state, fact, request, false),
        ReceiptCommand::Checkpoint(signed) => {
            let last = state.get::<SignedCheckpoint>(state_key::CHECKPOINT)?.unwrap_or_default();
            // If two processes signed at the same time, the larger tree contains the smaller one.
            if signed.size <= last.size { Ok(()) } else { state.remember(state_key::CHECKPOINT, Some(signed)) }
        }
        ReceiptCommand::Key { public_key, reason } => {
            let mut signing = state.get::<SigningHistory>(state_key::SIGNING)?.unwrap_or_default();
            if signing.keys.last().is_some_and(|key| key.public_key_hex == *public_key) {
                return Ok(());
            }
            // A key that signs again keeps the memory that was recorded for it.
            let before = signing.keys.iter().find(|key| key.public_key_hex == *public_key);
            let memory = before.map(|key| key.memory.clone()).unwrap_or_default();
            signing.keys.push(PublicKey { public_key_hex: public_key.clone(), since: fact.observed_at, reason: reason.clone(), memory });
            state.remember(state_key::SIGNING, Some(&signing))
        }
        ReceiptCommand::Memory { public_key, memory } => name_memory(state, public_key, memory),
        ReceiptCommand::Writer(request) => set_writer(state, request),
        ReceiptCommand::AssignOwner { agent_id, owner } => assign_owner(state, agent_id, owner),
        ReceiptCommand::Unknown { verb } if verb.is_empty() => Ok(()),
        ReceiptCommand::Unknown { verb } => Err(Undecided::Poison(format!("verb {verb} is unknown"))),
    }
}

/// Returns what a payment command means for receipts: a reservation for a claim, the claimed request for a settlement, the end of the
/// reservation for a lapsed payment; otherwise nothing.
fn request_of_payment(command: &PaymentCommand) -> Request {
    match command {
        PaymentCommand::Claim(claim) if claim.service == ReceiptsRules::NAME => {
            let action = match paid_action(&claim.effect, &claim.payer) {
                Action::IssuePaid { issue, .. } => Action::Reserve(issue),
                _ => Action::Nothing,
            };
            Request { action, transfer: TransferKeys::default() }
        }
        PaymentCommand::Settled(settlement) if settlement.service == ReceiptsRules::NAME => {
            let transfer = transfer_keys(settlement).unwrap_or_default();
            Request { action: paid_action(&settlement.effect, &settlement.payer), transfer }
        }
        PaymentCommand::Lapsed { .. } => Request { action: Action::Release, transfer: TransferKeys::default() },
        _ => Request { action: Action::Nothing, transfer: TransferKeys::default() },
    }
}

/// Returns what a payer paid for. Only receipts are sold.
fn paid_action(effect: &str, payer: &str) -> Action {
    match serde_json::from_str(effect) {
        Ok(ReceiptCommand::Issue(mut issue)) => {
            // Claims of older versions do not name the payer in the request; the payment does.
            let is_older_claim = issue.caller.is_empty();
            if is_older_claim {
                payer.clone_into(&mut issue.caller);
            }
            Action::IssuePaid { issue, is_older_claim }
        }
        Ok(command @ ReceiptCommand::Unknown { .. }) => Action::Command(command),
        // An unreadable request was paid for: its unknown verb parks it, so that it is not lost.
        Ok(_) | Err(_) => Action::Command(ReceiptCommand::Unknown { verb: "unreadable".to_owned() }),
    }
}

/// Returns the owner of an agent's chain, and its end.
fn load_chain(state: &mut State<'_, ReceiptsRules>, agent: &str) -> Result<(Option<ChainOwner>, ChainEnd), Undecided> {
    let owner = state.get(&state_key::owner(agent))?;
    let last = state.get(&state_key::agent(agent))?;
    Ok((owner, last.unwrap_or_else(|| ChainEnd { hash: hash_text(&Hash32::ZERO), ..ChainEnd::default() })))
}

/// Issues the receipt of a request, if its caller may append to the chain.
fn issue(
    state: &mut State<'_, ReceiptsRules>,
    fact: &Fact<Request>,
    command: &IssueRequest,
    is_older_claim: bool,
) -> Result<(), Undecided> {
    let request = state_key::request(&fact.key);
    let is_reserved = match state.get(&request)? {
        // A request gets one receipt, however often it is sent.
        Some(RequestOutcome::Issued(_) | RequestOutcome::Refused { .. }) => return Ok(()),
        Some(RequestOutcome::Reserved { reserved }) => reserved == command.agent_id,
        None => false,
    };
    let (owner, last) = load_chain(state, &command.agent_id)?;
    // A permission checked at the claim remains valid: a writer who was removed meanwhile has paid. A claim of a version without owners was
    // permitted by that version, if no owner is known.
    let is_admitted = is_reserved || (is_older_claim && owner.is_none());
    if !is_admitted && let Err(refused) = may_append(owner.as_ref(), last.seq, &command.caller) {
        return state.remember(&request, Some(&RequestOutcome::Refused { refused }));
    }
    let signing = state.get::<SigningHistory>(state_key::SIGNING)?.unwrap_or_default();
    let Some(key) = signing.keys.last() else {
        return Err(Undecided::Blocked(
            "no receipt can be signed: no key was ever named; start `highwater serve`, which makes one".to_owned(),
        ));
    };
    // All rows are read before the signature is created, because a row that has not been fetched restarts the decision.
    let place = next_leaf_position(state)?;
    let body = Body {
        kind: TYPE.to_owned(),
        version: VERSION,
        action: command.action.clone(),
        agent_id: command.agent_id.clone(),
        inputs_hash: command.inputs_hash.clone(),
        outputs_hash: command.outputs_hash.clone(),
        // The clock may go back; within a chain the time does not. Times in this form are in the order of their texts.
        issued_at: rfc3339(fact.observed_at).max(last.issued_at),
        seq: last.seq + 1,
        prev_hash: last.hash,
        issuer: command.issuer.clone(),
        issued_to: Some(command.caller.clone()).filter(|caller| !caller.is_empty()),
        metadata_hash: command.metadata_hash.clone(),
    };
    match state.keys().refusal() {
        Some(Refusal::Wait(reason) | Refusal::Conflict(reason)) => return Err(Undecided::Blocked(reason)),
        Some(Refusal::Park(reason)) => return Err(Undecided::Poison(reason)),
        None => {}
    }
    let SignedReceipt { receipt, canonical } = state.keys().sign(&key.public_key_hex, body).ok_or_else(|| {
        let public = &key.public_key_hex;
        Undecided::Blocked(format!("the receipt key {public} is not on this node: copy its file into receipt_keys_dir"))
    })?;
    let last = ChainEnd { seq: receipt.body.seq, hash: receipt.content_hash.clone(), issued_at: receipt.body.issued_at.clone() };
    state.remember(&state_key::agent(&command.agent_id), Some(&last))?;
    state.remember(&state_key::position(&command.agent_id, last.seq), Some(&receipt.id))?;
    state.remember(&request, Some(&RequestOutcome::Issued(receipt.id.clone())))?;
    record_owner(state, command, owner)?;
    append_leaf(state, place, &receipt.id, &canonical)?;
    state.add(receipt);
    Ok(())
}

/// Records the owner of a chain that now has a receipt, if the owner is known and was not recorded.
fn record_owner(state: &mut State<'_, ReceiptsRules>, command: &IssueRequest, owner: Option<ChainOwner>) -> Result<(), Undecided> {
    let now = match &owner {
        Some(owner) => ChainOwner { reservations: 0, ..owner.clone() },
        None if command.caller.is_empty() => return Ok(()),
        None => ChainOwner { owner: command.caller.clone(), ..ChainOwner::default() },
    };
    if owner.as_ref() == Some(&now) {
        return Ok(());
    }
    state.remember(&state_key::owner(&command.agent_id), Some(&now))
}

/// Decides with a claim whether its payment may append to the chain. The first claim for a chain without receipts reserves the chain for
/// its payer.
fn reserve(state: &mut State<'_, ReceiptsRules>, fact: &Fact<Request>, command: &IssueRequest) -> Result<(), Undecided> {
    let request = state_key::request(&fact.key);
    if state.get::<RequestOutcome>(&request)?.is_some() {
        return Ok(());
    }
    let (owner, last) = load_chain(state, &command.agent_id)?;
    if let Err(refused) = may_append(owner.as_ref(), last.seq, &command.caller) {
        return state.remember(&request, Some(&RequestOutcome::Refused { refused }));
    }
    if last.seq == 0 {
        let owner = owner.unwrap_or_else(|| ChainOwner { owner: command.caller.clone(), ..ChainOwner::default() });
        let reserved = ChainOwner { reservations: owner.reservations + 1, ..owner };
        state.remember(&state_key::owner(&command.agent_id), Some(&reserved))?;
    }
    state.remember(&request, Some(&RequestOutcome::Reserved { reserved: command.agent_id.clone() }))
}

/// Ends the reservation of a lapsed payment. A chain without receipts and other reservations is free again.
fn release(state: &mut State<'_, ReceiptsRules>, fact: &Fact<Request>) -> Result<(), Undecided> {
    let request = state_key::request(&fact.key);
    let agent = match state.get(&request)? {
        None | Some(RequestOutcome::Issued(_)) => return Ok(()),
        Some(RequestOutcome::Refused { .. }) => return state.remember::<RequestOutcome>(&request, None),
        Some(RequestOutcome::Reserved { reserved }) => reserved,
    };
    let (owner, last) = load_chain(state, &agent)?;
    if let Some(owner) = owner.filter(|_| last.seq == 0) {
        let left = ChainOwner { reservations: owner.reservations - 1, ..owner };
        state.remember(&state_key::owner(&agent), Some(&left).filter(|left| left.reservations > 0 || left.is_assigned))?;
    }
    state.remember::<RequestOutcome>(&request, None)
}

/// Adds or removes a writer of a chain. Only the owner's command has an effect.
fn set_writer(state: &mut State<'_, ReceiptsRules>, request: &WriterRequest) -> Result<(), Undecided> {
    let WriterRequest { change, agent_id, caller, writer } = request;
    let key = state_key::owner(agent_id);
    let Some(mut chain) = state.get::<ChainOwner>(&key)? else { return Ok(()) };
    let is_named = chain.permits(writer);
    let is_changed = match change {
        WriterChange::Add => !is_named && chain.writers.len() < WRITERS_PER_CHAIN_MAX,
        WriterChange::Remove => is_named && chain.owner != *writer,
    };
    if chain.owner != *caller || !is_changed {
        return Ok(());
    }
    match change {
        WriterChange::Add => chain.writers.push(writer.clone()),
        WriterChange::Remove => chain.writers.retain(|known| known != writer),
    }
    state.remember(&key, Some(&chain))
}

/// Records the id of the signer's memory of a key. A key keeps the memory that was recorded first.
fn name_memory(state: &mut State<'_, ReceiptsRules>, public_key: &str, memory: &str) -> Result<(), Undecided> {
    let mut signing = state.get::<SigningHistory>(state_key::SIGNING)?.unwrap_or_default();
    let mut is_changed = false;
    for key in signing.keys.iter_mut().filter(|key| key.public_key_hex == public_key && key.memory.is_empty()) {
        memory.clone_into(&mut key.memory);
        is_changed = !key.memory.is_empty();
    }
    if is_changed { state.remember(state_key::SIGNING, Some(&signing)) } else { Ok(()) }
}

/// Assigns the owner of a chain from before chains had owners, or of one without receipts. A chain that has an owner keeps it, and so does one
/// that a payment reserves.
fn assign_owner(state: &mut State<'_, ReceiptsRules>, agent_id: &str, owner: &str) -> Result<(), Undecided> {
    let (known, last) = load_chain(state, agent_id)?;
    if known.is_some() || owner.is_empty() {
        return Ok(());
    }
    let assigned = ChainOwner { owner: owner.to_owned(), is_assigned: last.seq == 0, ..ChainOwner::default() };
    state.remember(&state_key::owner(agent_id), Some(&assigned))
}

/// The position of the next leaf of the tree, with the siblings that it is hashed with.
struct LeafPosition {
    index: u64,
    siblings: Vec<Hash32>,
}

fn next_leaf_position(state: &mut State<'_, ReceiptsRules>) -> Result<LeafPosition, Undecided> {
    let index = state.get(state_key::TREE)?.unwrap_or(0);
    let hash = |place: u64| {
        let hash: Option<String> = state.get(&state_key::hash(place))?;
        hash.and_then(|hash| Hash32::from_hex(&hash)).ok_or_else(|| Undecided::Poison(format!("hash {place} of the tree is missing")))
    };
    let siblings = tree::siblings(index).map(hash).collect::<Result<_, _>>()?;
    Ok(LeafPosition { index, siblings })
}

/// Appends a receipt to the tree as its next leaf.
fn append_leaf(state: &mut State<'_, ReceiptsRules>, place: LeafPosition, id: &str, canonical: &[u8]) -> Result<(), Undecided> {
    let LeafPosition { index, siblings } = place;
    for (place, hash) in tree::new_hashes(index, tree::leaf(canonical), &siblings) {
        state.remember(&state_key::hash(place), Some(&hash.to_string()))?;
    }
    state.remember(&state_key::leaf(id), Some(&index))?;
    state.remember(&state_key::entry(index), Some(&id))?;
    state.remember(state_key::TREE, Some(&(index + 1)))
}

#[cfg(test)]
mod tests;

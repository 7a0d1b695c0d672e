//! Receipts: each request gets the next position in its agent's chain, and is signed. Ed25519 is deterministic, so that every decider
//! creates the same receipt and a chain cannot fork.
//!
//! A chain belongs to the first caller who is issued a receipt of it, an account or a payer. Only the owner, and writers that the owner
//! adds, may append. For a paid receipt this is decided with the claim, which reserves the chain, so that it is known before money moves.

use schemas::avro;
use schemas::clock::rfc3339;
use schemas::event::{Fact, FactKind};
use schemas::hash::Hash32;
use schemas::receipt::{Body, Receipt, Refusal, SignedReceipt, TYPE, VERSION, hash_text};
use schemas::topics::{CHANGES_RECEIPTS, PAYMENTS, RECEIPTS, Topic};
use schemas::tree;
use schemas::views::payments::{CLAIM, LAPSED, PaymentCommand, SETTLED, transfer_keys};
use schemas::views::receipts::{
    ADD_WRITER, ASSIGN_OWNER, CHECKPOINT, ChainEnd, ChainOwner, ISSUE, KEY, MEMORY, PublicKey, RELEASE, REMOVE_WRITER, RESERVE,
    ReceiptCommand, RequestOutcome, SignedCheckpoint, SigningHistory, TABLES, WRITERS_PER_CHAIN_MAX, may_append, source,
};
use schemas::views::records::RecordTables;

use super::payments::claim_transfer;
use super::records::{Read, Records, Rules, State};
use crate::service::Undecided;

/// The receipts service.
pub type Receipts = Records<ReceiptsRules>;

/// The rules of the receipts service.
pub struct ReceiptsRules;

impl Rules for ReceiptsRules {
    type Fact = ReceiptCommand;
    type Record = Receipt;

    const NAME: &'static str = "receipts";
    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[RECEIPTS, PAYMENTS];
    const CHANGES: &'static Topic = &CHANGES_RECEIPTS;
    // With another order of the two input topics, each chain would differ, and so would the signed tree.
    const FINAL: bool = true;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<ReceiptCommand>, avro::Error> {
        if topic.name == PAYMENTS.name {
            let read = |command: PaymentCommand| ReceiptCommand {
                transfer: transfer_keys(&command).unwrap_or_default(),
                ..command_of_payment(&command)
            };
            return avro::decode(topic.name, value).map(|fact: Fact<PaymentCommand>| fact.map(read));
        }
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<ReceiptCommand>) -> Vec<Read> {
        let Some(command) = own_command(fact) else { return Vec::new() };
        let chain_rows = || [source::owner(&command.agent_id), source::agent(&command.agent_id)];
        let sources = match command.verb.as_str() {
            CHECKPOINT => vec![source::CHECKPOINT.to_owned()],
            KEY | MEMORY => vec![source::SIGNING.to_owned()],
            ISSUE => {
                let own = [source::SIGNING.to_owned(), source::TREE.to_owned(), source::request(&fact.key)];
                own.into_iter().chain(chain_rows()).collect()
            }
            RESERVE => std::iter::once(source::request(&fact.key)).chain(chain_rows()).collect(),
            RELEASE => vec![source::request(&fact.key)],
            _ => chain_rows().to_vec(),
        };
        sources.into_iter().chain(command.transfer.all().map(str::to_owned)).map(Read::Source).collect()
    }

    fn signs(fact: &Fact<ReceiptCommand>) -> bool {
        own_command(fact).is_some_and(|command| command.verb == ISSUE)
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<ReceiptCommand>) -> Result<(), Undecided> {
        // The payments service applies the same rule, also to payments for other services: a transfer that has paid for one answer pays for
        // no other.
        let transfer = fact.data.as_ref().map(|command| command.transfer.clone()).unwrap_or_default();
        if !claim_transfer(state, &fact.key, &transfer)? {
            // The payment lapses, and its reservation ends.
            return release(state, fact);
        }
        let Some(command) = own_command(fact) else { return Ok(()) };
        match command.verb.as_str() {
            ISSUE => issue(state, fact, command),
            CHECKPOINT => {
                let last = state.source::<SignedCheckpoint>(source::CHECKPOINT)?.unwrap_or_default();
                // If two processes signed at the same time, the larger tree contains the smaller one.
                if command.size <= last.size {
                    return Ok(());
                }
                state.remember(
                    source::CHECKPOINT,
                    Some(&SignedCheckpoint { size: command.size, note: command.note.clone(), public_key_hex: command.public_key.clone() }),
                )
            }
            KEY => {
                let mut signing = state.source::<SigningHistory>(source::SIGNING)?.unwrap_or_default();
                if signing.keys.last().is_some_and(|key| key.public_key_hex == command.public_key) {
                    return Ok(());
                }
                // A key that signs again keeps the memory that was recorded for it.
                let before = signing.keys.iter().find(|key| key.public_key_hex == command.public_key);
                let memory = before.map(|key| key.memory.clone()).unwrap_or_default();
                signing.keys.push(PublicKey {
                    public_key_hex: command.public_key.clone(),
                    since: fact.observed_at,
                    reason: command.reason.clone(),
                    memory,
                });
                state.remember(source::SIGNING, Some(&signing))
            }
            MEMORY => name_memory(state, command),
            RESERVE => reserve(state, fact, command),
            RELEASE => release(state, fact),
            ADD_WRITER | REMOVE_WRITER => set_writer(state, command),
            ASSIGN_OWNER => assign_owner(state, command),
            verb => Err(Undecided::Poison(format!("verb {verb} is unknown"))),
        }
    }
}

/// Returns the receipt command that a payment command implies: a reservation for a claim, the claimed request for a settlement, the end of
/// the reservation for a lapsed payment; otherwise a command without a verb.
fn command_of_payment(command: &PaymentCommand) -> ReceiptCommand {
    if command.verb == LAPSED {
        return ReceiptCommand { verb: RELEASE.to_owned(), ..ReceiptCommand::default() };
    }
    if command.service != ReceiptsRules::NAME || ![CLAIM, SETTLED].contains(&command.verb.as_str()) {
        return ReceiptCommand::default();
    }
    // An unreadable request was paid for: its unknown verb parks it, so that it is not lost.
    let unreadable = |_| ReceiptCommand { verb: "unreadable".to_owned(), ..ReceiptCommand::default() };
    let mut effect: ReceiptCommand = serde_json::from_str(&command.effect).unwrap_or_else(unreadable);
    if effect.caller.is_empty() {
        // Claims of older versions do not name the payer in the request; the payment does.
        effect.caller.clone_from(&command.payer);
        effect.is_older_claim = true;
    }
    match command.verb.as_str() {
        CLAIM if effect.verb == ISSUE => ReceiptCommand { verb: RESERVE.to_owned(), ..effect },
        CLAIM => ReceiptCommand::default(),
        _ => effect,
    }
}

fn own_command(fact: &Fact<ReceiptCommand>) -> Option<&ReceiptCommand> {
    fact.data.as_ref().filter(|command| fact.kind == FactKind::Observed && !command.verb.is_empty())
}

/// Returns the owner of an agent's chain, and its end.
fn load_chain(state: &mut State<'_, ReceiptsRules>, agent: &str) -> Result<(Option<ChainOwner>, ChainEnd), Undecided> {
    let owner = state.source(&source::owner(agent))?;
    let last = state.source(&source::agent(agent))?;
    Ok((owner, last.unwrap_or_else(|| ChainEnd { seq: 0, hash: hash_text(&Hash32::ZERO) })))
}

fn issue(state: &mut State<'_, ReceiptsRules>, fact: &Fact<ReceiptCommand>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let request = source::request(&fact.key);
    let is_reserved = match state.source(&request)? {
        // A request gets one receipt, however often it is sent.
        Some(RequestOutcome::Issued(_) | RequestOutcome::Refused { .. }) => return Ok(()),
        Some(RequestOutcome::Reserved { reserved }) => reserved == command.agent_id,
        None => false,
    };
    let (owner, last) = load_chain(state, &command.agent_id)?;
    // A permission checked at the claim remains valid: a writer who was removed meanwhile has paid. A claim of a version without owners was
    // permitted by that version, if no owner is known.
    let is_admitted = is_reserved || (command.is_older_claim && owner.is_none());
    if !is_admitted && let Err(refused) = may_append(owner.as_ref(), last.seq, &command.caller) {
        return state.remember(&request, Some(&RequestOutcome::Refused { refused }));
    }
    let signing = state.source::<SigningHistory>(source::SIGNING)?.unwrap_or_default();
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
        issued_at: rfc3339(fact.observed_at),
        seq: last.seq + 1,
        prev_hash: last.hash,
        issuer: command.issuer.clone(),
        issued_to: Some(command.caller.clone()).filter(|caller| !caller.is_empty()),
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
    let last = ChainEnd { seq: receipt.body.seq, hash: receipt.content_hash.clone() };
    state.remember(&source::agent(&command.agent_id), Some(&last))?;
    state.remember(&source::position(&command.agent_id, last.seq), Some(&receipt.id))?;
    state.remember(&request, Some(&RequestOutcome::Issued(receipt.id.clone())))?;
    record_owner(state, command, owner)?;
    append_leaf(state, place, &receipt.id, &canonical)?;
    state.add(receipt);
    Ok(())
}

/// Records the owner of a chain that now has a receipt, if the owner is known and was not recorded.
fn record_owner(state: &mut State<'_, ReceiptsRules>, command: &ReceiptCommand, owner: Option<ChainOwner>) -> Result<(), Undecided> {
    let now = match &owner {
        Some(owner) => ChainOwner { reservations: 0, ..owner.clone() },
        None if command.caller.is_empty() => return Ok(()),
        None => ChainOwner { owner: command.caller.clone(), ..ChainOwner::default() },
    };
    if owner.as_ref() == Some(&now) {
        return Ok(());
    }
    state.remember(&source::owner(&command.agent_id), Some(&now))
}

/// Decides with a claim whether its payment may append to the chain. The first claim for a chain without receipts reserves the chain for
/// its payer.
fn reserve(state: &mut State<'_, ReceiptsRules>, fact: &Fact<ReceiptCommand>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let request = source::request(&fact.key);
    if state.source::<RequestOutcome>(&request)?.is_some() {
        return Ok(());
    }
    let (owner, last) = load_chain(state, &command.agent_id)?;
    if let Err(refused) = may_append(owner.as_ref(), last.seq, &command.caller) {
        return state.remember(&request, Some(&RequestOutcome::Refused { refused }));
    }
    if last.seq == 0 {
        let owner = owner.unwrap_or_else(|| ChainOwner { owner: command.caller.clone(), ..ChainOwner::default() });
        let reserved = ChainOwner { reservations: owner.reservations + 1, ..owner };
        state.remember(&source::owner(&command.agent_id), Some(&reserved))?;
    }
    state.remember(&request, Some(&RequestOutcome::Reserved { reserved: command.agent_id.clone() }))
}

/// Ends the reservation of a lapsed payment. A chain without receipts and other reservations is free again.
fn release(state: &mut State<'_, ReceiptsRules>, fact: &Fact<ReceiptCommand>) -> Result<(), Undecided> {
    let request = source::request(&fact.key);
    let agent = match state.source(&request)? {
        None | Some(RequestOutcome::Issued(_)) => return Ok(()),
        Some(RequestOutcome::Refused { .. }) => return state.remember::<RequestOutcome>(&request, None),
        Some(RequestOutcome::Reserved { reserved }) => reserved,
    };
    let (owner, last) = load_chain(state, &agent)?;
    if let Some(owner) = owner.filter(|_| last.seq == 0) {
        let left = ChainOwner { reservations: owner.reservations - 1, ..owner };
        state.remember(&source::owner(&agent), Some(&left).filter(|left| left.reservations > 0 || left.is_assigned))?;
    }
    state.remember::<RequestOutcome>(&request, None)
}

/// Adds or removes a writer of a chain. Only the owner's command has an effect.
fn set_writer(state: &mut State<'_, ReceiptsRules>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let key = source::owner(&command.agent_id);
    let Some(mut chain) = state.source::<ChainOwner>(&key)? else { return Ok(()) };
    let is_named = chain.permits(&command.writer);
    let is_changed = match command.verb.as_str() {
        ADD_WRITER => !is_named && chain.writers.len() < WRITERS_PER_CHAIN_MAX,
        _ => is_named && chain.owner != command.writer,
    };
    if chain.owner != command.caller || !is_changed {
        return Ok(());
    }
    if command.verb == ADD_WRITER {
        chain.writers.push(command.writer.clone());
    } else {
        chain.writers.retain(|writer| *writer != command.writer);
    }
    state.remember(&key, Some(&chain))
}

/// Records the id of the signer's memory of a key. A key keeps the memory that was recorded first.
fn name_memory(state: &mut State<'_, ReceiptsRules>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let mut signing = state.source::<SigningHistory>(source::SIGNING)?.unwrap_or_default();
    let mut is_changed = false;
    for key in signing.keys.iter_mut().filter(|key| key.public_key_hex == command.public_key && key.memory.is_empty()) {
        key.memory.clone_from(&command.memory);
        is_changed = !key.memory.is_empty();
    }
    if is_changed { state.remember(source::SIGNING, Some(&signing)) } else { Ok(()) }
}

/// Assigns the owner of a chain from before chains had owners, or of one without receipts. A chain that has an owner keeps it, and so does one
/// that a payment reserves.
fn assign_owner(state: &mut State<'_, ReceiptsRules>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let (owner, last) = load_chain(state, &command.agent_id)?;
    if owner.is_some() || command.caller.is_empty() {
        return Ok(());
    }
    let assigned = ChainOwner { owner: command.caller.clone(), is_assigned: last.seq == 0, ..ChainOwner::default() };
    state.remember(&source::owner(&command.agent_id), Some(&assigned))
}

/// The position of the next leaf of the tree, with the siblings that it is hashed with.
struct LeafPosition {
    index: u64,
    siblings: Vec<Hash32>,
}

fn next_leaf_position(state: &mut State<'_, ReceiptsRules>) -> Result<LeafPosition, Undecided> {
    let index = state.source(source::TREE)?.unwrap_or(0);
    let hash = |place: u64| {
        let hash: Option<String> = state.source(&source::hash(place))?;
        hash.and_then(|hash| Hash32::from_hex(&hash)).ok_or_else(|| Undecided::Poison(format!("hash {place} of the tree is missing")))
    };
    let siblings = tree::siblings(index).map(hash).collect::<Result<_, _>>()?;
    Ok(LeafPosition { index, siblings })
}

/// Appends a receipt to the tree as its next leaf.
fn append_leaf(state: &mut State<'_, ReceiptsRules>, place: LeafPosition, id: &str, canonical: &[u8]) -> Result<(), Undecided> {
    let LeafPosition { index, siblings } = place;
    for (place, hash) in tree::new_hashes(index, tree::leaf(canonical), &siblings) {
        state.remember(&source::hash(place), Some(&hash.to_string()))?;
    }
    state.remember(&source::leaf(id), Some(&index))?;
    state.remember(&source::entry(index), Some(&id))?;
    state.remember(source::TREE, Some(&(index + 1)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use schemas::key;
    use schemas::receipt::{SigningKeys, check};
    use schemas::tables::Write;
    use schemas::views::payments::TransferKeys;
    use schemas::views::receipts::AppendRefusal;

    use super::*;
    use crate::rows::Rows;
    use crate::service::Service;

    const OWNED_BY_ANOTHER: RequestOutcome = RequestOutcome::Refused { refused: AppendRefusal::OwnedByAnother };

    fn by(verb: &str, agent: &str, caller: &str) -> ReceiptCommand {
        ReceiptCommand { verb: verb.to_owned(), agent_id: agent.to_owned(), caller: caller.to_owned(), ..ReceiptCommand::default() }
    }

    /// A cache of rows to which decisions are applied in turn.
    struct Decisions {
        rows: Rows,
        at_ms: i64,
    }

    impl Decisions {
        fn new(seeds: &[u8]) -> (Self, Vec<String>) {
            let keys = SigningKeys::default();
            let public = seeds.iter().map(|seed| keys.add(&[*seed; 32])).collect();
            (Self { rows: Rows::signing(Arc::new(keys)), at_ms: 0 }, public)
        }

        /// Decides a request and applies its decision state.
        fn ask(&mut self, request: &str, command: ReceiptCommand) -> Result<Option<Receipt>, Undecided> {
            self.decide(request, command).map(|(receipt, _)| receipt)
        }

        /// Decides a request. Returns the receipt, and whether there was any change.
        fn decide(&mut self, request: &str, command: ReceiptCommand) -> Result<(Option<Receipt>, bool), Undecided> {
            self.at_ms += 1;
            let fact = Fact {
                id: Hash32::ZERO,
                kind: FactKind::Observed,
                key: request.to_owned(),
                version: 1,
                prev_hash: Hash32::ZERO,
                content_hash: Hash32::ZERO,
                upstream: "api".to_owned(),
                observed_at: self.at_ms,
                superseded_by: String::new(),
                data: Some(command),
                run: None,
            };
            let drafts = loop {
                match Receipts::decide(&mut self.rows, &fact) {
                    // A row that was not fetched does not exist in this test.
                    Err(Undecided::Miss) => {
                        for (table, key) in self.rows.take_missing() {
                            self.rows.write(Write::delete(table, key));
                        }
                    }
                    decided => break decided?,
                }
            };
            for row in drafts.iter().flat_map(|draft| &draft.note).flat_map(|note| &note.rows) {
                let key = key![row.key.as_str()];
                self.rows.write(match row.value.as_str() {
                    "" => Write::delete(TABLES.sources, key),
                    value => Write::put(TABLES.sources, key, Bytes::from(value.to_owned())),
                });
            }
            let is_changed = !drafts.is_empty();
            Ok((drafts.into_iter().find_map(|draft| draft.after), is_changed))
        }

        /// Issues with a command of a version without owners, which names no caller.
        fn issue(&mut self, request: &str, agent: &str) -> Result<Option<Receipt>, Undecided> {
            self.ask(request, by(ISSUE, agent, ""))
        }

        fn issue_to(&mut self, request: &str, agent: &str, caller: &str) -> Option<Receipt> {
            self.ask(request, by(ISSUE, agent, caller)).unwrap()
        }

        /// Decides a command about the payment of `payer` for a receipt of an agent.
        fn pay(&mut self, verb: &str, payment: &str, agent: &str, payer: &str) -> Option<Receipt> {
            // As the API writes it: the command for a lapsed payment does not say what it was for.
            let effect = serde_json::to_string(&by(ISSUE, agent, payer)).unwrap();
            let of_payment = PaymentCommand { verb: verb.to_owned(), ..PaymentCommand::default() };
            let of_payment = match verb {
                LAPSED => of_payment,
                _ => PaymentCommand { service: ReceiptsRules::NAME.to_owned(), effect, payer: payer.to_owned(), ..of_payment },
            };
            self.ask(payment, command_of_payment(&of_payment)).unwrap()
        }

        fn row<T: serde::de::DeserializeOwned>(&mut self, source: &str) -> Option<T> {
            self.rows.get_json(TABLES.sources, &key![source]).ok().flatten()
        }

        fn owner(&mut self, agent: &str) -> Option<String> {
            self.row(&source::owner(agent)).map(|chain: ChainOwner| chain.owner)
        }

        fn outcome(&mut self, request: &str) -> Option<RequestOutcome> {
            self.row(&source::request(request))
        }

        fn key(&mut self, public: &str) {
            let command = ReceiptCommand { verb: KEY.to_owned(), public_key: public.to_owned(), ..ReceiptCommand::default() };
            assert_eq!(self.ask("key", command), Ok(None));
        }
    }

    /// Proves that each agent's receipts are numbered and chained, that a request gets one receipt, and that a new key signs from its event
    /// on.
    #[test]
    fn receipts_are_chained() {
        let (mut decisions, public) = Decisions::new(&[1, 2]);
        decisions.key(&public[0]);
        let first = decisions.issue("r1", "a").unwrap().unwrap();
        assert_eq!((first.body.seq, first.body.prev_hash.as_str()), (1, hash_text(&Hash32::ZERO).as_str()));
        assert_eq!(decisions.issue("r1", "a"), Ok(None));
        let other = decisions.issue("r2", "b").unwrap().unwrap();
        decisions.key(&public[1]);
        let second = decisions.issue("r3", "a").unwrap().unwrap();
        assert_eq!((other.body.seq, second.body.seq, &second.body.prev_hash), (1, 2, &first.content_hash));
        assert_eq!((&first.signature.public_key_hex, &second.signature.public_key_hex), (&public[0], &public[1]));
        for receipt in [first, other, second] {
            assert!(check(&serde_json::to_value(&receipt).unwrap()).all());
        }
    }

    /// Proves that the log records one memory of a key: the first one, only for keys that it knows, also after the key signs again.
    #[test]
    fn a_key_keeps_the_memory_that_was_named_first() {
        let (mut decisions, public) = Decisions::new(&[1, 2]);
        let memory = |public: &str, id: &str| ReceiptCommand { public_key: public.to_owned(), memory: id.to_owned(), ..by(MEMORY, "", "") };
        assert_eq!(decisions.decide("memory", memory(&public[0], "m1")), Ok((None, false)), "an unknown key");
        decisions.key(&public[0]);
        for (id, is_changed) in [("", false), ("m1", true), ("m2", false)] {
            assert_eq!(decisions.decide("memory", memory(&public[0], id)), Ok((None, is_changed)), "{id}");
        }
        decisions.key(&public[1]);
        decisions.key(&public[0]);
        let named: Vec<String> = decisions.row::<SigningHistory>(source::SIGNING).unwrap().keys.into_iter().map(|key| key.memory).collect();
        assert_eq!(named, ["m1", "", "m1"]);
    }

    /// Proves that a transfer pays for one receipt: neither another payment with the same transfer nor the same payment gets a second one.
    #[test]
    fn a_transfer_pays_once() {
        let (mut decisions, public) = Decisions::new(&[1]);
        decisions.key(&public[0]);
        let keys = |key: &str, older_key: &str| TransferKeys { key: key.to_owned(), older_key: older_key.to_owned() };
        let paid = |key: &str, older_key: &str| {
            let transfer = keys(key, older_key);
            ReceiptCommand { verb: ISSUE.to_owned(), agent_id: "a".to_owned(), transfer, ..ReceiptCommand::default() }
        };
        assert_eq!(decisions.ask("pay_1", paid("transfer/n/0x1/7", "")).unwrap().unwrap().body.seq, 1);
        assert_eq!(decisions.ask("pay_2", paid("transfer/n/0x1/receipt/1", "transfer/n/0x1/7")), Ok(None));
        assert_eq!(decisions.ask("pay_1", paid("transfer/n/0x1/7", "")), Ok(None));
        assert_eq!(decisions.ask("pay_3", paid("transfer/n/0x1/receipt/3", "transfer/n/0x1/9")).unwrap().unwrap().body.seq, 2);
        // Without a node of the chain no transfer is known.
        assert_eq!(decisions.ask("pay_4", paid("", "")).unwrap().unwrap().body.seq, 3);
        // A payment for another service has no effect here, but its transfer is recorded.
        assert_eq!(
            decisions.ask("pay_5", ReceiptCommand { transfer: keys("transfer/n/0x2/receipt/1", ""), ..ReceiptCommand::default() }),
            Ok(None)
        );
        assert_eq!(decisions.ask("pay_6", paid("transfer/n/0x2/receipt/1", "transfer/n/0x2/8")), Ok(None));
    }

    /// Proves that nothing is issued while signing is refused: requests wait, or are parked after a declared restore.
    #[test]
    fn nothing_is_issued_while_signing_is_refused() {
        let (mut decisions, public) = Decisions::new(&[1]);
        decisions.key(&public[0]);
        let refuse = |decisions: &Decisions, refusal| decisions.rows.keys().set_refusal(refusal);
        refuse(&decisions, Some(Refusal::Wait("older".to_owned())));
        assert_eq!(decisions.issue("r1", "a"), Err(Undecided::Blocked("older".to_owned())));
        assert_eq!(decisions.rows.keys().sign_bytes(&public[0], b"anything"), None);
        refuse(&decisions, Some(Refusal::Park("restored".to_owned())));
        assert_eq!(decisions.issue("r1", "a"), Err(Undecided::Poison("restored".to_owned())));
        refuse(&decisions, None);
        assert_eq!(decisions.issue("r1", "a").unwrap().unwrap().body.seq, 1);
    }

    /// Proves that nothing is issued and nothing is parked without a key or without its file: requests wait.
    #[test]
    fn nothing_is_issued_without_a_key() {
        let (mut decisions, _) = Decisions::new(&[]);
        assert!(matches!(decisions.issue("r1", "a"), Err(Undecided::Blocked(_))));
        decisions.key("ab");
        assert!(matches!(decisions.issue("r1", "a"), Err(Undecided::Blocked(reason)) if reason.contains("ab")));
    }

    /// Proves that a chain belongs to the first caller who is issued a receipt, that another caller's command gets none and does not change
    /// the chain, and that each receipt names the caller.
    #[test]
    fn the_first_caller_owns_the_chain() {
        let (mut decisions, public) = Decisions::new(&[1]);
        decisions.key(&public[0]);
        let first = decisions.issue_to("r1", "a", "acct_1").unwrap();
        assert_eq!((first.body.issued_to.as_deref(), decisions.owner("a").as_deref()), (Some("acct_1"), Some("acct_1")));
        assert!(check(&serde_json::to_value(&first).unwrap()).all());
        let last: Option<ChainEnd> = decisions.row(&source::agent("a"));
        for (request, stranger) in [("r2", "acct_2"), ("r3", "")] {
            assert_eq!((decisions.issue_to(request, "a", stranger), decisions.outcome(request)), (None, Some(OWNED_BY_ANOTHER)));
        }
        assert_eq!(decisions.pay(SETTLED, "p1", "a", "0x01"), None, "a payment by another caller is refused, too");
        assert_eq!((decisions.row(&source::agent("a")), decisions.outcome("p1")), (last, Some(OWNED_BY_ANOTHER)));
        assert_eq!(decisions.issue_to("r2", "a", "acct_2"), None, "a refused request remains refused");
        let second = decisions.issue_to("r4", "a", "acct_1").unwrap();
        assert_eq!((second.body.seq, &second.body.prev_hash), (2, &first.content_hash));
    }

    /// Proves that the first claim reserves a chain: a second payer is refused before anything is settled, whichever payment settles first;
    /// that the reservation ends when all its payments have lapsed; and that this does not permit a refused payment.
    #[test]
    fn a_claim_reserves_the_chain() {
        let (mut decisions, public) = Decisions::new(&[1]);
        decisions.key(&public[0]);
        let reserved = Some(RequestOutcome::Reserved { reserved: "a".to_owned() });
        for (payment, payer) in [("p1", "0x01"), ("p2", "0x02"), ("p3", "0x01")] {
            assert_eq!(decisions.pay(CLAIM, payment, "a", payer), None);
        }
        let outcomes = ["p1", "p2", "p3"].map(|payment| decisions.outcome(payment));
        assert_eq!(outcomes, [reserved.clone(), Some(OWNED_BY_ANOTHER), reserved.clone()]);
        assert_eq!(decisions.issue_to("r1", "a", "acct_1"), None, "a request with an API key is refused meanwhile");
        assert_eq!(decisions.pay(SETTLED, "p2", "a", "0x02"), None);

        decisions.pay(LAPSED, "p1", "", "");
        decisions.pay(CLAIM, "p4", "a", "0x02");
        assert_eq!((decisions.outcome("p1"), decisions.outcome("p4")), (None, Some(OWNED_BY_ANOTHER)), "p3 still reserves it");
        decisions.pay(LAPSED, "p3", "", "");
        assert_eq!(decisions.owner("a"), None);
        assert_eq!(decisions.outcome("p4"), Some(OWNED_BY_ANOTHER));
        decisions.pay(CLAIM, "p5", "a", "0x02");
        let first = decisions.pay(SETTLED, "p5", "a", "0x02").unwrap();
        assert_eq!((first.body.issued_to.as_deref(), decisions.owner("a").as_deref()), (Some("0x02"), Some("0x02")));
        // A payment that lapsed and is then settled finds the chain owned by another caller.
        assert_eq!((decisions.pay(SETTLED, "p1", "a", "0x01"), decisions.outcome("p1")), (None, Some(OWNED_BY_ANOTHER)));
        // A lapsed payment of the owner does not affect a chain with receipts.
        decisions.pay(CLAIM, "p6", "a", "0x02");
        decisions.pay(LAPSED, "p6", "", "");
        assert_eq!(decisions.owner("a").as_deref(), Some("0x02"));
    }

    /// Proves that a claim for another service, and a lapsed payment without a reservation, publish nothing.
    #[test]
    fn payments_for_other_services_have_no_effect() {
        let (mut decisions, _) = Decisions::new(&[]);
        let claim = |service: &str, effect: &str| PaymentCommand {
            verb: CLAIM.to_owned(),
            service: service.to_owned(),
            effect: effect.to_owned(),
            ..PaymentCommand::default()
        };
        for command in [claim("research", "{}"), claim("receipts", "no JSON"), PaymentCommand { verb: LAPSED.to_owned(), ..claim("", "") }]
        {
            assert_eq!(decisions.decide("p1", command_of_payment(&command)), Ok((None, false)), "{command:?}");
        }
    }

    /// Proves that only the owner adds writers, 20 at most, that they append under their own name until they are removed, and that an
    /// accepted claim gets its receipt although its payer was removed meanwhile.
    #[test]
    fn only_the_owner_adds_writers() {
        let (mut decisions, public) = Decisions::new(&[1]);
        decisions.key(&public[0]);
        decisions.issue_to("r1", "a", "acct_1").unwrap();
        let set = |decisions: &mut Decisions, verb: &str, caller: &str, writer: &str| {
            let command = ReceiptCommand { writer: writer.to_owned(), ..by(verb, "a", caller) };
            decisions.decide("owner/a", command).unwrap().1
        };
        assert!(!set(&mut decisions, ADD_WRITER, "acct_2", "acct_2"), "only the owner");
        assert!(set(&mut decisions, ADD_WRITER, "acct_1", "acct_2") && set(&mut decisions, ADD_WRITER, "acct_1", "0x01"));
        assert!(!set(&mut decisions, ADD_WRITER, "acct_1", "acct_2") && !set(&mut decisions, ADD_WRITER, "acct_2", "acct_3"));
        let second = decisions.issue_to("r2", "a", "acct_2").unwrap();
        assert_eq!(
            (second.body.seq, second.body.issued_to.as_deref(), decisions.owner("a").as_deref()),
            (2, Some("acct_2"), Some("acct_1"))
        );
        decisions.pay(CLAIM, "p1", "a", "0x01");
        assert!(set(&mut decisions, REMOVE_WRITER, "acct_1", "0x01") && set(&mut decisions, REMOVE_WRITER, "acct_1", "acct_2"));
        assert!(!set(&mut decisions, REMOVE_WRITER, "acct_1", "acct_1"), "the owner remains");
        assert_eq!(decisions.issue_to("r3", "a", "acct_2"), None);
        assert_eq!(decisions.pay(SETTLED, "p1", "a", "0x01").unwrap().body.seq, 3);
        decisions.pay(CLAIM, "p2", "a", "0x01");
        assert_eq!(decisions.outcome("p2"), Some(OWNED_BY_ANOTHER));
        let added = (0..30).filter(|number| set(&mut decisions, ADD_WRITER, "acct_1", &format!("acct_w{number}"))).count();
        assert_eq!(added, WRITERS_PER_CHAIN_MAX);
    }

    /// Proves that a chain from before chains had owners accepts only commands of that time until an operator assigns its owner, who then
    /// has the usual rights; and that a chain with an owner cannot be assigned.
    #[test]
    fn chains_from_before_owners() {
        let (mut decisions, public) = Decisions::new(&[1]);
        decisions.key(&public[0]);
        let old = decisions.issue("r1", "a").unwrap().unwrap();
        assert_eq!((old.body.issued_to, decisions.owner("a")), (None, None));
        assert_eq!(decisions.issue("r2", "a").unwrap().unwrap().body.seq, 2);
        let unknown = Some(RequestOutcome::Refused { refused: AppendRefusal::OwnerUnknown });
        assert_eq!((decisions.issue_to("r3", "a", "acct_1"), decisions.outcome("r3")), (None, unknown.clone()));
        decisions.pay(CLAIM, "p1", "a", "0x01");
        assert_eq!(decisions.outcome("p1"), unknown);
        assert_eq!(decisions.decide("owner/a", by(ASSIGN_OWNER, "a", "")), Ok((None, false)));
        decisions.ask("owner/a", by(ASSIGN_OWNER, "a", "acct_1")).unwrap();
        decisions.ask("owner/a", by(ASSIGN_OWNER, "a", "acct_2")).unwrap();
        assert_eq!(decisions.owner("a").as_deref(), Some("acct_1"));
        assert_eq!(decisions.issue_to("r4", "a", "acct_1").unwrap().body.seq, 3);
        // A payment that an older version claimed: the request does not name the payer, the settlement does.
        let settled = |agent: &str| PaymentCommand {
            verb: SETTLED.to_owned(),
            service: "receipts".to_owned(),
            effect: serde_json::to_string(&by(ISSUE, agent, "")).unwrap(),
            payer: "0x01".to_owned(),
            ..PaymentCommand::default()
        };
        assert_eq!(decisions.ask("p2", command_of_payment(&settled("c"))).unwrap().unwrap().body.issued_to.as_deref(), Some("0x01"));
        // The same for a chain with receipts, because it is paid for. A chain with an owner refuses it.
        decisions.issue("r5", "d").unwrap();
        let second = decisions.ask("p3", command_of_payment(&settled("d"))).unwrap().unwrap();
        assert_eq!((second.body.seq, second.body.issued_to.as_deref()), (2, Some("0x01")));
        assert_eq!(decisions.ask("p4", command_of_payment(&settled("a"))), Ok(None));
    }

    /// Proves that an assigned chain without receipts remains its owner's, also after a payment for it has lapsed, and that a chain which a payment
    /// reserves cannot be assigned.
    #[test]
    fn a_chain_without_receipts_is_assigned() {
        let (mut decisions, public) = Decisions::new(&[1]);
        decisions.key(&public[0]);
        decisions.ask("owner/a", by(ASSIGN_OWNER, "a", "0x01")).unwrap();
        assert_eq!((decisions.issue_to("r1", "a", "acct_2"), decisions.outcome("r1")), (None, Some(OWNED_BY_ANOTHER)));
        decisions.pay(CLAIM, "p1", "a", "0x01");
        decisions.pay(LAPSED, "p1", "a", "0x01");
        assert_eq!(decisions.owner("a").as_deref(), Some("0x01"));
        assert_eq!(decisions.issue_to("r2", "a", "0x01").unwrap().body.seq, 1);
        decisions.pay(CLAIM, "p2", "b", "0x01");
        assert_eq!(decisions.decide("owner/b", by(ASSIGN_OWNER, "b", "acct_1")), Ok((None, false)));
        decisions.pay(LAPSED, "p2", "b", "0x01");
        assert_eq!(decisions.owner("b"), None);
    }
}

//! Receipts: a request gets the next place in its agent's chain, and is signed. Key and text make the signature, so whoever decides makes the
//! same receipt: a chain cannot fork.
//!
//! A chain belongs to the first caller it issues to, an account or a payer; only the owner, and whom the owner names, may append. Of payments the
//! claim decides it: an admitted claim reserves the chain, so that it is known before money moves whether the payment buys a receipt.

use schemas::avro;
use schemas::clock::rfc3339;
use schemas::event::{Fact, FactKind};
use schemas::hash::Hash32;
use schemas::receipt::{Body, Receipt, Refusal, SignedReceipt, TYPE, VERSION, hash_text};
use schemas::topics::{CHANGES_RECEIPTS, PAYMENTS, RECEIPTS, Topic};
use schemas::tree;
use schemas::views::payments::{CLAIM, LAPSED, PaymentCommand, SETTLED, transfer_key};
use schemas::views::receipts::{
    ADD_WRITER, ASSIGN_OWNER, CHECKPOINT, ChainEnd, ChainOwner, ISSUE, KEY, PublicKey, RELEASE, REMOVE_WRITER, RESERVE, ReceiptCommand,
    RequestOutcome, SignedCheckpoint, SigningHistory, TABLES, WRITERS_PER_CHAIN_MAX, may_append, source,
};
use schemas::views::records::RecordTables;

use super::payments::claim_transfer;
use super::records::{Read, Records, Rules, State};
use crate::service::Undecided;

/// The two folds of the receipts.
pub type Receipts = Records<ReceiptsRules>;

/// What the service states.
pub struct ReceiptsRules;

impl Rules for ReceiptsRules {
    type Fact = ReceiptCommand;
    type Record = Receipt;

    const NAME: &'static str = "receipts";
    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[RECEIPTS, PAYMENTS];
    const CHANGES: &'static Topic = &CHANGES_RECEIPTS;
    // In another order of its two topics each chain would be another one, and so would the tree that was signed.
    const FINAL: bool = true;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<ReceiptCommand>, avro::Error> {
        if topic.name == PAYMENTS.name {
            let read =
                |command: PaymentCommand| ReceiptCommand { transfer: transfer_key(&command).unwrap_or_default(), ..ordered(&command) };
            return avro::decode(topic.name, value).map(|fact: Fact<PaymentCommand>| fact.map(read));
        }
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<ReceiptCommand>) -> Vec<Read> {
        let Some(command) = own(fact) else { return Vec::new() };
        let of_chain = || [source::owner(&command.agent_id), source::agent(&command.agent_id)];
        let sources = match command.verb.as_str() {
            CHECKPOINT => vec![source::CHECKPOINT.to_owned()],
            KEY => vec![source::SIGNING.to_owned()],
            ISSUE => {
                let own = [source::SIGNING.to_owned(), source::TREE.to_owned(), source::request(&fact.key)];
                own.into_iter().chain(of_chain()).collect()
            }
            RESERVE => std::iter::once(source::request(&fact.key)).chain(of_chain()).collect(),
            RELEASE => vec![source::request(&fact.key)],
            _ => of_chain().to_vec(),
        };
        let transfer = Some(command.transfer.clone()).filter(|transfer| !transfer.is_empty());
        sources.into_iter().chain(transfer).map(Read::Source).collect()
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<ReceiptCommand>) -> Result<(), Undecided> {
        // The payments decide likewise, also of payments for other services: a transfer that has paid for one answer pays for no other.
        let transfer = fact.data.as_ref().map_or("", |command| command.transfer.as_str());
        if !claim_transfer(state, &fact.key, transfer)? {
            // The payment lapses, and what it reserved ends with it.
            return release(state, fact);
        }
        let Some(command) = own(fact) else { return Ok(()) };
        match command.verb.as_str() {
            ISSUE => issue(state, fact, command),
            CHECKPOINT => {
                let last = state.source::<SignedCheckpoint>(source::CHECKPOINT)?.unwrap_or_default();
                // Two who signed at once: the larger tree holds the smaller one.
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
                signing.keys.push(PublicKey {
                    public_key_hex: command.public_key.clone(),
                    since: fact.observed_at,
                    reason: command.reason.clone(),
                });
                state.remember(source::SIGNING, Some(&signing))
            }
            RESERVE => reserve(state, fact, command),
            RELEASE => release(state, fact),
            ADD_WRITER | REMOVE_WRITER => set_writer(state, command),
            ASSIGN_OWNER => assign_owner(state, command),
            verb => Err(Undecided::Poison(format!("verb {verb} is unknown"))),
        }
    }
}

/// What a payment orders of this service: with the claim a place in a chain, once it is settled the receipt that was claimed with it, once it has
/// lapsed the end of its reservation; else a command without a verb.
fn ordered(command: &PaymentCommand) -> ReceiptCommand {
    if command.verb == LAPSED {
        return ReceiptCommand { verb: RELEASE.to_owned(), ..ReceiptCommand::default() };
    }
    if command.service != ReceiptsRules::NAME || ![CLAIM, SETTLED].contains(&command.verb.as_str()) {
        return ReceiptCommand::default();
    }
    // One that does not read is put aside under its unknown verb, not passed by: it is paid for.
    let unreadable = |_| ReceiptCommand { verb: "unreadable".to_owned(), ..ReceiptCommand::default() };
    let mut effect: ReceiptCommand = serde_json::from_str(&command.effect).unwrap_or_else(unreadable);
    if effect.caller.is_empty() {
        // An effect that an older version claimed does not name the payer; the payment does.
        effect.caller.clone_from(&command.payer);
        effect.is_older_claim = true;
    }
    match command.verb.as_str() {
        CLAIM if effect.verb == ISSUE => ReceiptCommand { verb: RESERVE.to_owned(), ..effect },
        CLAIM => ReceiptCommand::default(),
        _ => effect,
    }
}

fn own(fact: &Fact<ReceiptCommand>) -> Option<&ReceiptCommand> {
    fact.data.as_ref().filter(|command| fact.kind == FactKind::Observed && !command.verb.is_empty())
}

/// What is known of an agent's chain: its owner, and where it ends.
fn chain(state: &mut State<'_, ReceiptsRules>, agent: &str) -> Result<(Option<ChainOwner>, ChainEnd), Undecided> {
    let owner = state.source(&source::owner(agent))?;
    let last = state.source(&source::agent(agent))?;
    Ok((owner, last.unwrap_or_else(|| ChainEnd { seq: 0, hash: hash_text(&Hash32::ZERO) })))
}

fn issue(state: &mut State<'_, ReceiptsRules>, fact: &Fact<ReceiptCommand>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let request = source::request(&fact.key);
    let is_reserved = match state.source(&request)? {
        // A request gets one receipt, however often it is made.
        Some(RequestOutcome::Issued(_) | RequestOutcome::Refused { .. }) => return Ok(()),
        Some(RequestOutcome::Reserved { reserved }) => reserved == command.agent_id,
        None => false,
    };
    let (owner, last) = chain(state, &command.agent_id)?;
    // What was admitted with the claim stays admitted: a writer whose permission ended meanwhile has paid. A payment that a version before owners
    // claimed was admitted by it, where no owner is known.
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
    // All that is read is read before the signature is made: a row that is not at hand begins the decision again.
    let place = next_place(state)?;
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
        Some(Refusal::Wait(reason)) => return Err(Undecided::Blocked(reason)),
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
    own_chain(state, command, owner)?;
    append_leaf(state, place, &receipt.id, &canonical)?;
    state.add(receipt);
    Ok(())
}

/// Remembers who owns a chain that has a receipt now, where that is known and was not remembered.
fn own_chain(state: &mut State<'_, ReceiptsRules>, command: &ReceiptCommand, owner: Option<ChainOwner>) -> Result<(), Undecided> {
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

/// Decides with a claim whether its payment may append to the chain. The first one for a chain without receipts reserves the chain for its payer.
fn reserve(state: &mut State<'_, ReceiptsRules>, fact: &Fact<ReceiptCommand>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let request = source::request(&fact.key);
    if state.source::<RequestOutcome>(&request)?.is_some() {
        return Ok(());
    }
    let (owner, last) = chain(state, &command.agent_id)?;
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

/// Ends what a payment that has lapsed reserved. A chain without receipts that no other payment reserves is free again.
fn release(state: &mut State<'_, ReceiptsRules>, fact: &Fact<ReceiptCommand>) -> Result<(), Undecided> {
    let request = source::request(&fact.key);
    let agent = match state.source(&request)? {
        None | Some(RequestOutcome::Issued(_)) => return Ok(()),
        Some(RequestOutcome::Refused { .. }) => return state.remember::<RequestOutcome>(&request, None),
        Some(RequestOutcome::Reserved { reserved }) => reserved,
    };
    let (owner, last) = chain(state, &agent)?;
    if let Some(owner) = owner.filter(|_| last.seq == 0) {
        let left = ChainOwner { reservations: owner.reservations - 1, ..owner };
        state.remember(&source::owner(&agent), Some(&left).filter(|left| left.reservations > 0))?;
    }
    state.remember::<RequestOutcome>(&request, None)
}

/// Lets a further caller append to a chain, or ends that. A command of anybody but the owner moves nothing.
fn set_writer(state: &mut State<'_, ReceiptsRules>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let key = source::owner(&command.agent_id);
    let Some(mut chain) = state.source::<ChainOwner>(&key)? else { return Ok(()) };
    let is_named = chain.permits(&command.writer);
    let is_moved = match command.verb.as_str() {
        ADD_WRITER => !is_named && chain.writers.len() < WRITERS_PER_CHAIN_MAX,
        _ => is_named && chain.owner != command.writer,
    };
    if chain.owner != command.caller || !is_moved {
        return Ok(());
    }
    if command.verb == ADD_WRITER {
        chain.writers.push(command.writer.clone());
    } else {
        chain.writers.retain(|writer| *writer != command.writer);
    }
    state.remember(&key, Some(&chain))
}

/// Names the owner of a chain that was begun before chains had owners. A chain with an owner keeps it.
fn assign_owner(state: &mut State<'_, ReceiptsRules>, command: &ReceiptCommand) -> Result<(), Undecided> {
    let (owner, last) = chain(state, &command.agent_id)?;
    if owner.is_some() || last.seq == 0 || command.caller.is_empty() {
        return Ok(());
    }
    let assigned = ChainOwner { owner: command.caller.clone(), ..ChainOwner::default() };
    state.remember(&source::owner(&command.agent_id), Some(&assigned))
}

/// Where the tree goes on.
struct Place {
    index: u64,
    siblings: Vec<Hash32>,
}

fn next_place(state: &mut State<'_, ReceiptsRules>) -> Result<Place, Undecided> {
    let index = state.source(source::TREE)?.unwrap_or(0);
    let hash = |place: u64| {
        let hash: Option<String> = state.source(&source::hash(place))?;
        hash.and_then(|hash| Hash32::from_hex(&hash)).ok_or_else(|| Undecided::Poison(format!("hash {place} of the tree is missing")))
    };
    let siblings = tree::siblings(index).map(hash).collect::<Result<_, _>>()?;
    Ok(Place { index, siblings })
}

/// Makes a receipt the tree's next leaf.
fn append_leaf(state: &mut State<'_, ReceiptsRules>, place: Place, id: &str, canonical: &[u8]) -> Result<(), Undecided> {
    let Place { index, siblings } = place;
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
    use schemas::views::receipts::AppendRefusal;

    use super::*;
    use crate::rows::Rows;
    use crate::service::Service;

    const OWNED_BY_ANOTHER: RequestOutcome = RequestOutcome::Refused { refused: AppendRefusal::OwnedByAnother };

    fn by(verb: &str, agent: &str, caller: &str) -> ReceiptCommand {
        ReceiptCommand { verb: verb.to_owned(), agent_id: agent.to_owned(), caller: caller.to_owned(), ..ReceiptCommand::default() }
    }

    /// Rows that requests move, one after the other.
    struct Moved {
        rows: Rows,
        at_ms: i64,
    }

    impl Moved {
        fn new(seeds: &[u8]) -> (Self, Vec<String>) {
            let keys = SigningKeys::default();
            let public = seeds.iter().map(|seed| keys.add(&[*seed; 32])).collect();
            (Self { rows: Rows::signing(Arc::new(keys)), at_ms: 0 }, public)
        }

        /// Decides a request and takes in what it moves.
        fn ask(&mut self, request: &str, command: ReceiptCommand) -> Result<Option<Receipt>, Undecided> {
            self.decide(request, command).map(|(receipt, _)| receipt)
        }

        /// Decides a request; the receipt, and whether anything was moved.
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
                    // A row that is not at hand is one that is not there.
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
            let is_moved = !drafts.is_empty();
            Ok((drafts.into_iter().find_map(|draft| draft.after), is_moved))
        }

        /// A command of a version before owners: it names no caller.
        fn issue(&mut self, request: &str, agent: &str) -> Result<Option<Receipt>, Undecided> {
            self.ask(request, by(ISSUE, agent, ""))
        }

        fn issue_to(&mut self, request: &str, agent: &str, caller: &str) -> Option<Receipt> {
            self.ask(request, by(ISSUE, agent, caller)).unwrap()
        }

        /// Decides a command about a payment by `payer` for a receipt of an agent.
        fn pay(&mut self, verb: &str, payment: &str, agent: &str, payer: &str) -> Option<Receipt> {
            // As the API writes them: that a payment has lapsed is told without what it was for.
            let effect = serde_json::to_string(&by(ISSUE, agent, payer)).unwrap();
            let of_payment = PaymentCommand { verb: verb.to_owned(), ..PaymentCommand::default() };
            let of_payment = match verb {
                LAPSED => of_payment,
                _ => PaymentCommand { service: ReceiptsRules::NAME.to_owned(), effect, payer: payer.to_owned(), ..of_payment },
            };
            self.ask(payment, ordered(&of_payment)).unwrap()
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

    /// Proves that each agent's receipts count up and name the one before, that a request gets one, and that a new key signs from its event on.
    #[test]
    fn chains() {
        let (mut moved, public) = Moved::new(&[1, 2]);
        moved.key(&public[0]);
        let first = moved.issue("r1", "a").unwrap().unwrap();
        assert_eq!((first.body.seq, first.body.prev_hash.as_str()), (1, hash_text(&Hash32::ZERO).as_str()));
        assert_eq!(moved.issue("r1", "a"), Ok(None));
        let other = moved.issue("r2", "b").unwrap().unwrap();
        moved.key(&public[1]);
        let second = moved.issue("r3", "a").unwrap().unwrap();
        assert_eq!((other.body.seq, second.body.seq, &second.body.prev_hash), (1, 2, &first.content_hash));
        assert_eq!((&first.signature.public_key_hex, &second.signature.public_key_hex), (&public[0], &public[1]));
        for receipt in [first, other, second] {
            assert!(check(&serde_json::to_value(&receipt).unwrap()).all());
        }
    }

    /// Proves that a transfer pays for one receipt: another payment that names it gets none, and the first one none a second time.
    #[test]
    fn a_transfer_pays_once() {
        let (mut moved, public) = Moved::new(&[1]);
        moved.key(&public[0]);
        let paid = |transfer: &str| {
            let transfer = transfer.to_owned();
            ReceiptCommand { verb: ISSUE.to_owned(), agent_id: "a".to_owned(), transfer, ..ReceiptCommand::default() }
        };
        assert_eq!(moved.ask("pay_1", paid("transfer/n/0x1/7")).unwrap().unwrap().body.seq, 1);
        assert_eq!(moved.ask("pay_2", paid("transfer/n/0x1/7")), Ok(None));
        assert_eq!(moved.ask("pay_1", paid("transfer/n/0x1/7")), Ok(None));
        assert_eq!(moved.ask("pay_3", paid("transfer/n/0x1/9")).unwrap().unwrap().body.seq, 2);
        // Without a node of the chain no transfer is known.
        assert_eq!(moved.ask("pay_4", paid("")).unwrap().unwrap().body.seq, 3);
        // A payment for another service orders nothing here, and its transfer is taken all the same.
        assert_eq!(moved.ask("pay_5", ReceiptCommand { transfer: "transfer/n/0x2/1".to_owned(), ..ReceiptCommand::default() }), Ok(None));
        assert_eq!(moved.ask("pay_6", paid("transfer/n/0x2/1")), Ok(None));
    }

    /// Proves that while signing is refused nothing is issued: requests wait, or are parked once a restore was declared.
    #[test]
    fn nothing_while_signing_is_refused() {
        let (mut moved, public) = Moved::new(&[1]);
        moved.key(&public[0]);
        let refuse = |moved: &Moved, refusal| moved.rows.keys().set_refusal(refusal);
        refuse(&moved, Some(Refusal::Wait("older".to_owned())));
        assert_eq!(moved.issue("r1", "a"), Err(Undecided::Blocked("older".to_owned())));
        assert_eq!(moved.rows.keys().sign_bytes(&public[0], b"anything"), None);
        refuse(&moved, Some(Refusal::Park("restored".to_owned())));
        assert_eq!(moved.issue("r1", "a"), Err(Undecided::Poison("restored".to_owned())));
        refuse(&moved, None);
        assert_eq!(moved.issue("r1", "a").unwrap().unwrap().body.seq, 1);
    }

    /// Proves that without a key, or without its file, nothing is issued and nothing is put aside: requests wait.
    #[test]
    fn nothing_without_a_key() {
        let (mut moved, _) = Moved::new(&[]);
        assert!(matches!(moved.issue("r1", "a"), Err(Undecided::Blocked(_))));
        moved.key("ab");
        assert!(matches!(moved.issue("r1", "a"), Err(Undecided::Blocked(reason)) if reason.contains("ab")));
    }

    /// Proves that a chain belongs to the first caller it issues to, that another caller's command gets no receipt and leaves the chain as it was,
    /// and that each receipt names whom it was issued to.
    #[test]
    fn the_first_caller_owns_the_chain() {
        let (mut moved, public) = Moved::new(&[1]);
        moved.key(&public[0]);
        let first = moved.issue_to("r1", "a", "acct_1").unwrap();
        assert_eq!((first.body.issued_to.as_deref(), moved.owner("a").as_deref()), (Some("acct_1"), Some("acct_1")));
        assert!(check(&serde_json::to_value(&first).unwrap()).all());
        let last: Option<ChainEnd> = moved.row(&source::agent("a"));
        for (request, stranger) in [("r2", "acct_2"), ("r3", "")] {
            assert_eq!((moved.issue_to(request, "a", stranger), moved.outcome(request)), (None, Some(OWNED_BY_ANOTHER)));
        }
        assert_eq!(moved.pay(SETTLED, "p1", "a", "0x01"), None, "not even if somebody else brought the payment to the chain");
        assert_eq!((moved.row(&source::agent("a")), moved.outcome("p1")), (last, Some(OWNED_BY_ANOTHER)));
        assert_eq!(moved.issue_to("r2", "a", "acct_2"), None, "a refused request stays refused");
        let second = moved.issue_to("r4", "a", "acct_1").unwrap();
        assert_eq!((second.body.seq, &second.body.prev_hash), (2, &first.content_hash));
    }

    /// Proves that the first claim for a chain reserves it: of two payers one is refused before anything is settled, whoever settles first; that a
    /// reservation ends when its payments have lapsed, and not before; and that a payment which is refused is not admitted by that.
    #[test]
    fn a_claim_reserves_the_chain() {
        let (mut moved, public) = Moved::new(&[1]);
        moved.key(&public[0]);
        let reserved = Some(RequestOutcome::Reserved { reserved: "a".to_owned() });
        for (payment, payer) in [("p1", "0x01"), ("p2", "0x02"), ("p3", "0x01")] {
            assert_eq!(moved.pay(CLAIM, payment, "a", payer), None);
        }
        let outcomes = ["p1", "p2", "p3"].map(|payment| moved.outcome(payment));
        assert_eq!(outcomes, [reserved.clone(), Some(OWNED_BY_ANOTHER), reserved.clone()]);
        assert_eq!(moved.issue_to("r1", "a", "acct_1"), None, "nor does a key get in between");
        assert_eq!(moved.pay(SETTLED, "p2", "a", "0x02"), None);

        moved.pay(LAPSED, "p1", "", "");
        moved.pay(CLAIM, "p4", "a", "0x02");
        assert_eq!((moved.outcome("p1"), moved.outcome("p4")), (None, Some(OWNED_BY_ANOTHER)), "p3 reserves it still");
        moved.pay(LAPSED, "p3", "", "");
        assert_eq!(moved.owner("a"), None);
        assert_eq!(moved.outcome("p4"), Some(OWNED_BY_ANOTHER));
        moved.pay(CLAIM, "p5", "a", "0x02");
        let first = moved.pay(SETTLED, "p5", "a", "0x02").unwrap();
        assert_eq!((first.body.issued_to.as_deref(), moved.owner("a").as_deref()), (Some("0x02"), Some("0x02")));
        // What has lapsed and is settled all the same finds the chain taken.
        assert_eq!((moved.pay(SETTLED, "p1", "a", "0x01"), moved.outcome("p1")), (None, Some(OWNED_BY_ANOTHER)));
        // A payment of the owner that lapses takes nothing away from a chain with receipts.
        moved.pay(CLAIM, "p6", "a", "0x02");
        moved.pay(LAPSED, "p6", "", "");
        assert_eq!(moved.owner("a").as_deref(), Some("0x02"));
    }

    /// Proves that a claim of another service, and a payment that reserved nothing and lapses, publish nothing.
    #[test]
    fn payments_for_other_things_move_nothing() {
        let (mut moved, _) = Moved::new(&[]);
        let claim = |service: &str, effect: &str| PaymentCommand {
            verb: CLAIM.to_owned(),
            service: service.to_owned(),
            effect: effect.to_owned(),
            ..PaymentCommand::default()
        };
        for command in [claim("research", "{}"), claim("receipts", "no JSON"), PaymentCommand { verb: LAPSED.to_owned(), ..claim("", "") }]
        {
            assert_eq!(moved.decide("p1", ordered(&command)), Ok((None, false)), "{command:?}");
        }
    }

    /// Proves that the owner alone names further writers, 20 at most, that they append under their own name and no longer once they are removed,
    /// and that a claim which was admitted gets its receipt although its payer was removed meanwhile.
    #[test]
    fn writers() {
        let (mut moved, public) = Moved::new(&[1]);
        moved.key(&public[0]);
        moved.issue_to("r1", "a", "acct_1").unwrap();
        let set = |moved: &mut Moved, verb: &str, caller: &str, writer: &str| {
            let command = ReceiptCommand { writer: writer.to_owned(), ..by(verb, "a", caller) };
            moved.decide("owner/a", command).unwrap().1
        };
        assert!(!set(&mut moved, ADD_WRITER, "acct_2", "acct_2"), "only the owner");
        assert!(set(&mut moved, ADD_WRITER, "acct_1", "acct_2") && set(&mut moved, ADD_WRITER, "acct_1", "0x01"));
        assert!(!set(&mut moved, ADD_WRITER, "acct_1", "acct_2") && !set(&mut moved, ADD_WRITER, "acct_2", "acct_3"));
        let second = moved.issue_to("r2", "a", "acct_2").unwrap();
        assert_eq!((second.body.seq, second.body.issued_to.as_deref(), moved.owner("a").as_deref()), (2, Some("acct_2"), Some("acct_1")));
        moved.pay(CLAIM, "p1", "a", "0x01");
        assert!(set(&mut moved, REMOVE_WRITER, "acct_1", "0x01") && set(&mut moved, REMOVE_WRITER, "acct_1", "acct_2"));
        assert!(!set(&mut moved, REMOVE_WRITER, "acct_1", "acct_1"), "the owner stays");
        assert_eq!(moved.issue_to("r3", "a", "acct_2"), None);
        assert_eq!(moved.pay(SETTLED, "p1", "a", "0x01").unwrap().body.seq, 3);
        moved.pay(CLAIM, "p2", "a", "0x01");
        assert_eq!(moved.outcome("p2"), Some(OWNED_BY_ANOTHER));
        let added = (0..30).filter(|number| set(&mut moved, ADD_WRITER, "acct_1", &format!("acct_w{number}"))).count();
        assert_eq!(added, WRITERS_PER_CHAIN_MAX);
    }

    /// Proves that a chain which was begun before chains had owners goes on for commands of that time alone, until an operator assigns its owner, who
    /// then has it like any other; and that no chain which has an owner, or no receipts, is assigned.
    #[test]
    fn chains_from_before_owners() {
        let (mut moved, public) = Moved::new(&[1]);
        moved.key(&public[0]);
        let old = moved.issue("r1", "a").unwrap().unwrap();
        assert_eq!((old.body.issued_to, moved.owner("a")), (None, None));
        assert_eq!(moved.issue("r2", "a").unwrap().unwrap().body.seq, 2);
        let unknown = Some(RequestOutcome::Refused { refused: AppendRefusal::OwnerUnknown });
        assert_eq!((moved.issue_to("r3", "a", "acct_1"), moved.outcome("r3")), (None, unknown.clone()));
        moved.pay(CLAIM, "p1", "a", "0x01");
        assert_eq!(moved.outcome("p1"), unknown);
        for (agent, owner) in [("a", ""), ("b", "acct_1")] {
            assert_eq!(moved.decide("owner/a", by(ASSIGN_OWNER, agent, owner)), Ok((None, false)));
        }
        moved.ask("owner/a", by(ASSIGN_OWNER, "a", "acct_1")).unwrap();
        moved.ask("owner/a", by(ASSIGN_OWNER, "a", "acct_2")).unwrap();
        assert_eq!(moved.owner("a").as_deref(), Some("acct_1"));
        assert_eq!(moved.issue_to("r4", "a", "acct_1").unwrap().body.seq, 3);
        // A payment that an older version claimed: the effect does not name the payer, the settlement does.
        let settled = |agent: &str| PaymentCommand {
            verb: SETTLED.to_owned(),
            service: "receipts".to_owned(),
            effect: serde_json::to_string(&by(ISSUE, agent, "")).unwrap(),
            payer: "0x01".to_owned(),
            ..PaymentCommand::default()
        };
        assert_eq!(moved.ask("p2", ordered(&settled("c"))).unwrap().unwrap().body.issued_to.as_deref(), Some("0x01"));
        // Also where the chain has receipts: it is paid for. A chain that has an owner meanwhile is closed to it.
        moved.issue("r5", "d").unwrap();
        let second = moved.ask("p3", ordered(&settled("d"))).unwrap().unwrap();
        assert_eq!((second.body.seq, second.body.issued_to.as_deref()), (2, Some("0x01")));
        assert_eq!(moved.ask("p4", ordered(&settled("a"))), Ok(None));
    }
}

//! Receipts: a request gets the next place in its agent's chain, and is signed. Key and text make the signature, so whoever decides makes the
//! same receipt: a chain cannot fork.

use schemas::avro;
use schemas::clock::rfc3339;
use schemas::event::{Fact, FactKind};
use schemas::hash::Hash32;
use schemas::receipt::{Body, Receipt, Refusal, Signed, TYPE, VERSION, hash_text};
use schemas::topics::{CHANGES_RECEIPTS, PAYMENTS, RECEIPTS, Topic};
use schemas::tree;
use schemas::views::payments::{PaymentCommand, SETTLED};
use schemas::views::receipts::{CHECKPOINT, ISSUE, KEY, Last, PublicKey, ReceiptCommand, Sealed, Signing, TABLES, source};
use schemas::views::records::RecordTables;

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
            return avro::decode(topic.name, value).map(|fact: Fact<PaymentCommand>| fact.map(|command: PaymentCommand| ordered(&command)));
        }
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<ReceiptCommand>) -> Vec<Read> {
        let Some(command) = own(fact) else { return Vec::new() };
        if command.verb == CHECKPOINT {
            return vec![Read::Source(source::CHECKPOINT.to_owned())];
        }
        let mut reads = vec![Read::Source(source::SIGNING.to_owned()), Read::Source(source::TREE.to_owned())];
        if command.verb == ISSUE {
            reads.push(Read::Source(source::agent(&command.agent_id)));
            reads.push(Read::Source(source::request(&fact.key)));
        }
        reads
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<ReceiptCommand>) -> Result<(), Undecided> {
        let Some(command) = own(fact) else { return Ok(()) };
        match command.verb.as_str() {
            ISSUE => issue(state, fact, command),
            CHECKPOINT => {
                let last = state.source::<Sealed>(source::CHECKPOINT)?.unwrap_or_default();
                // Two who signed at once: the larger tree holds the smaller one.
                if command.size <= last.size {
                    return Ok(());
                }
                state.remember(
                    source::CHECKPOINT,
                    Some(&Sealed { size: command.size, note: command.note.clone(), public_key_hex: command.public_key.clone() }),
                )
            }
            KEY => {
                let mut signing = state.source::<Signing>(source::SIGNING)?.unwrap_or_default();
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
            verb => Err(Undecided::Poison(format!("verb {verb} is unknown"))),
        }
    }
}

/// What a payment orders of this service: once it is settled, the receipt that was claimed with it; else a command without a verb.
fn ordered(command: &PaymentCommand) -> ReceiptCommand {
    if command.verb != SETTLED || command.service != ReceiptsRules::NAME {
        return ReceiptCommand::default();
    }
    // One that does not read is put aside under its unknown verb, not passed by: it is paid for.
    let unreadable = |_| ReceiptCommand { verb: "unreadable".to_owned(), ..ReceiptCommand::default() };
    serde_json::from_str(&command.effect).unwrap_or_else(unreadable)
}

fn own(fact: &Fact<ReceiptCommand>) -> Option<&ReceiptCommand> {
    fact.data.as_ref().filter(|command| fact.kind == FactKind::Observed && !command.verb.is_empty())
}

fn issue(state: &mut State<'_, ReceiptsRules>, fact: &Fact<ReceiptCommand>, command: &ReceiptCommand) -> Result<(), Undecided> {
    // A request gets one receipt, however often it is made.
    if state.source::<String>(&source::request(&fact.key))?.is_some() {
        return Ok(());
    }
    let signing = state.source::<Signing>(source::SIGNING)?.unwrap_or_default();
    let Some(key) = signing.keys.last() else {
        return Err(Undecided::Blocked(
            "no receipt can be signed: no key was ever named; start `highwater serve`, which makes one".to_owned(),
        ));
    };
    let last = state.source::<Last>(&source::agent(&command.agent_id))?;
    let last = last.unwrap_or_else(|| Last { seq: 0, hash: hash_text(&Hash32::ZERO) });
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
    };
    match state.keys().refusal() {
        Some(Refusal::Wait(reason)) => return Err(Undecided::Blocked(reason)),
        Some(Refusal::Park(reason)) => return Err(Undecided::Poison(reason)),
        None => {}
    }
    let Signed { receipt, canonical } = state.keys().sign(&key.public_key_hex, body).ok_or_else(|| {
        let public = &key.public_key_hex;
        Undecided::Blocked(format!("the receipt key {public} is not on this node: copy its file into receipt_keys_dir"))
    })?;
    let last = Last { seq: receipt.body.seq, hash: receipt.content_hash.clone() };
    state.remember(&source::agent(&command.agent_id), Some(&last))?;
    state.remember(&source::position(&command.agent_id, last.seq), Some(&receipt.id))?;
    state.remember(&source::request(&fact.key), Some(&receipt.id))?;
    plant(state, place, &receipt.id, &canonical)?;
    state.add(receipt);
    Ok(())
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
fn plant(state: &mut State<'_, ReceiptsRules>, place: Place, id: &str, canonical: &[u8]) -> Result<(), Undecided> {
    let Place { index, siblings } = place;
    for (place, hash) in tree::added(index, tree::leaf(canonical), &siblings) {
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

    use super::*;
    use crate::rows::Rows;
    use crate::service::Service;

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
                self.rows.write(Write::put(TABLES.sources, key![row.key.as_str()], Bytes::from(row.value.clone())));
            }
            Ok(drafts.into_iter().find_map(|draft| draft.after))
        }

        fn issue(&mut self, request: &str, agent: &str) -> Result<Option<Receipt>, Undecided> {
            let command = ReceiptCommand { verb: ISSUE.to_owned(), agent_id: agent.to_owned(), ..ReceiptCommand::default() };
            self.ask(request, command)
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
}

//! Tests of the receipts service: chains, owners, payments, keys.

use proofs::receipt::check;
use schemas::event::FactKind;
use schemas::views::payments::{Claim, Settlement, TransferKeys};
use schemas::views::receipts::AppendRefusal;

use super::*;
use fold::testing::{self, Folded};

/// The verbs of payment commands.
const CLAIM: &str = "claim";
const SETTLED: &str = "settled";
const LAPSED: &str = "lapsed";

const OWNED_BY_ANOTHER: RequestOutcome = RequestOutcome::Refused { refused: AppendRefusal::OwnedByAnother };

fn issue_by(agent: &str, caller: &str) -> ReceiptCommand {
    ReceiptCommand::Issue(IssueRequest { agent_id: agent.to_owned(), caller: caller.to_owned(), ..IssueRequest::default() })
}

fn assign(agent: &str, owner: &str) -> ReceiptCommand {
    ReceiptCommand::AssignOwner { agent_id: agent.to_owned(), owner: owner.to_owned() }
}

/// The service in memory, which is asked for one thing after another.
struct Decisions {
    folded: Folded<Receipts>,
    at_ms: i64,
}

impl Decisions {
    fn new(seeds: &[u8]) -> (Self, Vec<String>) {
        let folded = Folded::<Receipts>::default();
        let public = seeds.iter().map(|seed| folded.keys.add(&[*seed; 32])).collect();
        (Self { folded, at_ms: 0 }, public)
    }

    /// Decides a request. Returns the receipt.
    fn ask(&mut self, request: &str, command: impl Into<Request>) -> Result<Option<Receipt>, Undecided> {
        self.decide(request, command).map(|(receipt, _)| receipt)
    }

    /// Decides a request. Returns the receipt, and whether there was any change.
    fn decide(&mut self, request: &str, command: impl Into<Request>) -> Result<(Option<Receipt>, bool), Undecided> {
        self.at_ms += 1;
        let fact = testing::fact(request, FactKind::Observed, self.at_ms, Some(command.into()));
        let before = self.folded.changes.len();
        self.folded.try_decide(&Fact { upstream: "api".to_owned(), ..fact })?;
        let changes = &self.folded.changes[before..];
        Ok((changes.iter().find_map(|change| change.after.clone()), !changes.is_empty()))
    }

    /// Issues with a command of a version without owners, which names no caller.
    fn issue(&mut self, request: &str, agent: &str) -> Result<Option<Receipt>, Undecided> {
        self.ask(request, issue_by(agent, ""))
    }

    fn issue_to(&mut self, request: &str, agent: &str, caller: &str) -> Option<Receipt> {
        self.ask(request, issue_by(agent, caller)).unwrap()
    }

    /// Decides a command about the payment of `payer` for a receipt of an agent.
    fn pay(&mut self, verb: &str, payment: &str, agent: &str, payer: &str) -> Option<Receipt> {
        // As the API writes it: the command for a lapsed payment does not say what it was for.
        let effect = serde_json::to_string(&issue_by(agent, payer)).unwrap();
        let (service, payer) = (ReceiptsRules::NAME.to_owned(), payer.to_owned());
        let of_payment = match verb {
            CLAIM => PaymentCommand::Claim(Box::new(Claim { service, effect, payer, ..Claim::default() })),
            SETTLED => PaymentCommand::Settled(Box::new(Settlement { service, effect, payer, ..Settlement::default() })),
            _ => PaymentCommand::Lapsed { reason: String::new() },
        };
        self.ask(payment, request_of_payment(&of_payment)).unwrap()
    }

    fn owner(&self, agent: &str) -> Option<String> {
        self.folded.state(&state_key::owner(agent)).map(|chain: ChainOwner| chain.owner)
    }

    fn outcome(&self, request: &str) -> Option<RequestOutcome> {
        self.folded.state(&state_key::request(request))
    }

    fn key(&mut self, public: &str) {
        let command = ReceiptCommand::Key { public_key: public.to_owned(), reason: String::new() };
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
    let memory = |public: &str, id: &str| ReceiptCommand::Memory { public_key: public.to_owned(), memory: id.to_owned() };
    assert_eq!(decisions.decide("memory", memory(&public[0], "m1")), Ok((None, false)), "an unknown key");
    decisions.key(&public[0]);
    for (id, is_changed) in [("", false), ("m1", true), ("m2", false)] {
        assert_eq!(decisions.decide("memory", memory(&public[0], id)), Ok((None, is_changed)), "{id}");
    }
    decisions.key(&public[1]);
    decisions.key(&public[0]);
    let named: Vec<String> =
        decisions.folded.state::<SigningHistory>(state_key::SIGNING).unwrap().keys.into_iter().map(|key| key.memory).collect();
    assert_eq!(named, ["m1", "", "m1"]);
}

/// Proves that a transfer pays for one receipt: neither another payment with the same transfer nor the same payment gets a second one.
#[test]
fn a_transfer_pays_once() {
    let (mut decisions, public) = Decisions::new(&[1]);
    decisions.key(&public[0]);
    let keys = |key: &str, older_key: &str| TransferKeys { key: key.to_owned(), older_key: older_key.to_owned() };
    let paid = |key: &str, older_key: &str| {
        let issue = IssueRequest { agent_id: "a".to_owned(), ..IssueRequest::default() };
        Request { action: Action::IssuePaid { issue, is_older_claim: false }, transfer: keys(key, older_key) }
    };
    assert_eq!(decisions.ask("pay_1", paid("transfer/n/0x1/7", "")).unwrap().unwrap().body.seq, 1);
    assert_eq!(decisions.ask("pay_2", paid("transfer/n/0x1/receipt/1", "transfer/n/0x1/7")), Ok(None));
    assert_eq!(decisions.ask("pay_1", paid("transfer/n/0x1/7", "")), Ok(None));
    assert_eq!(decisions.ask("pay_3", paid("transfer/n/0x1/receipt/3", "transfer/n/0x1/9")).unwrap().unwrap().body.seq, 2);
    // Without a node of the chain no transfer is known.
    assert_eq!(decisions.ask("pay_4", paid("", "")).unwrap().unwrap().body.seq, 3);
    // A payment for another service has no effect here, but its transfer is recorded.
    assert_eq!(decisions.ask("pay_5", Request { action: Action::Nothing, transfer: keys("transfer/n/0x2/receipt/1", "") }), Ok(None));
    assert_eq!(decisions.ask("pay_6", paid("transfer/n/0x2/receipt/1", "transfer/n/0x2/8")), Ok(None));
}

/// Proves that nothing is issued while signing is refused: requests wait, or are parked after a declared restore.
#[test]
fn nothing_is_issued_while_signing_is_refused() {
    let (mut decisions, public) = Decisions::new(&[1]);
    decisions.key(&public[0]);
    let refuse = |decisions: &Decisions, refusal| decisions.folded.keys.set_refusal(refusal);
    refuse(&decisions, Some(Refusal::Wait("older".to_owned())));
    assert_eq!(decisions.issue("r1", "a"), Err(Undecided::Blocked("older".to_owned())));
    assert_eq!(decisions.folded.keys.sign_bytes(&public[0], b"anything"), None);
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
    let last: Option<ChainEnd> = decisions.folded.state(&state_key::agent("a"));
    for (request, stranger) in [("r2", "acct_2"), ("r3", "")] {
        assert_eq!((decisions.issue_to(request, "a", stranger), decisions.outcome(request)), (None, Some(OWNED_BY_ANOTHER)));
    }
    assert_eq!(decisions.pay(SETTLED, "p1", "a", "0x01"), None, "a payment by another caller is refused, too");
    assert_eq!((decisions.folded.state(&state_key::agent("a")), decisions.outcome("p1")), (last, Some(OWNED_BY_ANOTHER)));
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
    let claim = |service: &str, effect: &str| {
        PaymentCommand::Claim(Box::new(Claim { service: service.to_owned(), effect: effect.to_owned(), ..Claim::default() }))
    };
    for command in [claim("research", "{}"), claim("receipts", "no JSON"), PaymentCommand::Lapsed { reason: String::new() }] {
        assert_eq!(decisions.decide("p1", request_of_payment(&command)), Ok((None, false)), "{command:?}");
    }
}

/// Proves that only the owner adds writers, 20 at most, that they append under their own name until they are removed, and that an
/// accepted claim gets its receipt although its payer was removed meanwhile.
#[test]
fn only_the_owner_adds_writers() {
    let (mut decisions, public) = Decisions::new(&[1]);
    decisions.key(&public[0]);
    decisions.issue_to("r1", "a", "acct_1").unwrap();
    let set = |decisions: &mut Decisions, change: WriterChange, caller: &str, writer: &str| {
        let (agent_id, caller, writer) = ("a".to_owned(), caller.to_owned(), writer.to_owned());
        decisions.decide("owner/a", ReceiptCommand::Writer(WriterRequest { change, agent_id, caller, writer })).unwrap().1
    };
    assert!(!set(&mut decisions, WriterChange::Add, "acct_2", "acct_2"), "only the owner");
    assert!(set(&mut decisions, WriterChange::Add, "acct_1", "acct_2") && set(&mut decisions, WriterChange::Add, "acct_1", "0x01"));
    assert!(!set(&mut decisions, WriterChange::Add, "acct_1", "acct_2") && !set(&mut decisions, WriterChange::Add, "acct_2", "acct_3"));
    let second = decisions.issue_to("r2", "a", "acct_2").unwrap();
    assert_eq!((second.body.seq, second.body.issued_to.as_deref(), decisions.owner("a").as_deref()), (2, Some("acct_2"), Some("acct_1")));
    decisions.pay(CLAIM, "p1", "a", "0x01");
    assert!(set(&mut decisions, WriterChange::Remove, "acct_1", "0x01") && set(&mut decisions, WriterChange::Remove, "acct_1", "acct_2"));
    assert!(!set(&mut decisions, WriterChange::Remove, "acct_1", "acct_1"), "the owner remains");
    assert_eq!(decisions.issue_to("r3", "a", "acct_2"), None);
    assert_eq!(decisions.pay(SETTLED, "p1", "a", "0x01").unwrap().body.seq, 3);
    decisions.pay(CLAIM, "p2", "a", "0x01");
    assert_eq!(decisions.outcome("p2"), Some(OWNED_BY_ANOTHER));
    let added = (0..30).filter(|number| set(&mut decisions, WriterChange::Add, "acct_1", &format!("acct_w{number}"))).count();
    assert_eq!(added, WRITERS_PER_CHAIN_MAX);
    decisions.folded.assert_rebuilds();
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
    assert_eq!(decisions.decide("owner/a", assign("a", "")), Ok((None, false)));
    decisions.ask("owner/a", assign("a", "acct_1")).unwrap();
    decisions.ask("owner/a", assign("a", "acct_2")).unwrap();
    assert_eq!(decisions.owner("a").as_deref(), Some("acct_1"));
    assert_eq!(decisions.issue_to("r4", "a", "acct_1").unwrap().body.seq, 3);
    // A payment that an older version claimed: the request does not name the payer, the settlement does.
    let settled = |agent: &str| {
        PaymentCommand::Settled(Box::new(Settlement {
            service: "receipts".to_owned(),
            effect: serde_json::to_string(&issue_by(agent, "")).unwrap(),
            payer: "0x01".to_owned(),
            ..Settlement::default()
        }))
    };
    assert_eq!(decisions.ask("p2", request_of_payment(&settled("c"))).unwrap().unwrap().body.issued_to.as_deref(), Some("0x01"));
    // The same for a chain with receipts, because it is paid for. A chain with an owner refuses it.
    decisions.issue("r5", "d").unwrap();
    let second = decisions.ask("p3", request_of_payment(&settled("d"))).unwrap().unwrap();
    assert_eq!((second.body.seq, second.body.issued_to.as_deref()), (2, Some("0x01")));
    assert_eq!(decisions.ask("p4", request_of_payment(&settled("a"))), Ok(None));
}

/// Proves that an assigned chain without receipts remains its owner's, also after a payment for it has lapsed, and that a chain which a payment
/// reserves cannot be assigned.
#[test]
fn a_chain_without_receipts_is_assigned() {
    let (mut decisions, public) = Decisions::new(&[1]);
    decisions.key(&public[0]);
    decisions.ask("owner/a", assign("a", "0x01")).unwrap();
    assert_eq!((decisions.issue_to("r1", "a", "acct_2"), decisions.outcome("r1")), (None, Some(OWNED_BY_ANOTHER)));
    decisions.pay(CLAIM, "p1", "a", "0x01");
    decisions.pay(LAPSED, "p1", "a", "0x01");
    assert_eq!(decisions.owner("a").as_deref(), Some("0x01"));
    assert_eq!(decisions.issue_to("r2", "a", "0x01").unwrap().body.seq, 1);
    decisions.pay(CLAIM, "p2", "b", "0x01");
    assert_eq!(decisions.decide("owner/b", assign("b", "acct_1")), Ok((None, false)));
    decisions.pay(LAPSED, "p2", "b", "0x01");
    assert_eq!(decisions.owner("b"), None);
}

/// Proves that `issuedAt` does not go back within a chain when the clock does, and that other chains are not concerned.
#[test]
fn issued_at_does_not_go_back() {
    let (mut decisions, public) = Decisions::new(&[1]);
    decisions.ask("key", ReceiptCommand::Key { public_key: public[0].clone(), reason: String::new() }).unwrap();
    decisions.at_ms = 5_000;
    let first = decisions.ask("r1", issue_by("a", "acct_1")).unwrap().unwrap();
    decisions.at_ms = 1_000;
    let second = decisions.ask("r2", issue_by("a", "acct_1")).unwrap().unwrap();
    let other = decisions.ask("r3", issue_by("b", "acct_1")).unwrap().unwrap();
    assert_eq!((first.body.issued_at.as_str(), second.body.issued_at.as_str()), ("1970-01-01T00:00:05.001Z", "1970-01-01T00:00:05.001Z"));
    assert_eq!(other.body.issued_at, "1970-01-01T00:00:01.002Z");
    decisions.at_ms = 6_000;
    assert_eq!(decisions.ask("r4", issue_by("a", "acct_1")).unwrap().unwrap().body.issued_at, "1970-01-01T00:00:06.001Z");
}

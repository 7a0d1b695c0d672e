//! Tests of the watches service: filters, fleets, watches, ends, purchases.

use schemas::event::FactKind;
use schemas::position::Seq;
use schemas::views::accounts::NewKey;
use schemas::views::payments::{Claim, Settlement};

use super::*;
use fold::rows::Rows;
use fold::service::Service;
use fold::testing::{self, Folded};

/// The service in memory, which gets one command after another.
#[derive(Default)]
struct Decisions {
    folded: Folded<Watches>,
    at_ms: i64,
}

impl Decisions {
    /// Decides a command and applies its result. Returns the item if the command changed it.
    fn command(&mut self, command: &ItemCommand) -> Option<SavedItem> {
        self.command_of("i", command)
    }

    /// Does the same for a command with a subject of its own.
    fn command_of(&mut self, subject: &str, command: &ItemCommand) -> Option<SavedItem> {
        self.at_ms += 1;
        self.request(subject, Request::Command(command.clone()), self.at_ms)
    }

    /// Decides what a settled payment bought, at a time.
    fn purchase(&mut self, payment: &str, command: &ItemCommand, transaction: &str, at_ms: i64) -> Option<SavedItem> {
        self.at_ms += 1;
        let effect = serde_json::to_string(&AccountCommand::Item(command.clone())).unwrap();
        let transaction = transaction.to_owned();
        let settlement =
            Settlement { service: "awards".to_owned(), effect, transaction, receipt_log_index: Some(0), ..Settlement::default() };
        self.request(payment, Request::from(PaymentCommand::Settled(Box::new(settlement))), at_ms)
    }

    /// Decides a request, which reads the rows that it named, and makes one change at most.
    fn request(&mut self, subject: &str, request: Request, at_ms: i64) -> Option<SavedItem> {
        let before = self.folded.changes.len();
        self.folded.decide(&Fact { key: subject.to_owned(), ..fact(request, at_ms) });
        let changes = &self.folded.changes[before..];
        assert!(changes.len() <= 1 && self.folded.repeats == 0, "{changes:?}");
        changes.first().and_then(|change| change.after.clone())
    }

    /// Returns the ids of an account's items.
    fn saved_ids(&self, account: &str, kind: &str) -> Vec<String> {
        self.folded.state(&saved_items_key(account, "awards", kind)).unwrap_or_default()
    }
}

fn fact<T>(data: T, at_ms: i64) -> Fact<T> {
    Fact { upstream: "api".to_owned(), ..testing::fact("i", FactKind::Observed, at_ms, Some(data)) }
}

const SAVE_FILTER: &str = "save_filter";
const DELETE_FILTER: &str = "delete_filter";
const WATCH: &str = "watch";
const UNWATCH: &str = "unwatch";
const RETARGET: &str = "retarget";
const SAVE_FLEET: &str = "save_fleet";
const DELETE_FLEET: &str = "delete_fleet";

fn command(verb: &str, id: &str, account: &str, filter: &str) -> ItemCommand {
    let (filter, webhook) = (filter.to_owned(), "sealed".to_owned());
    let request = match verb {
        SAVE_FILTER => ItemRequest::SaveFilter { name: "mine".to_owned(), filter, limit: 2 },
        WATCH => ItemRequest::Watch(NewWatch { filter, webhook, limit: 2, ..NewWatch::default() }),
        RETARGET => ItemRequest::Retarget { webhook, secret: String::new() },
        DELETE_FILTER => ItemRequest::DeleteFilter,
        SAVE_FLEET => ItemRequest::SaveFleet { contents: filter, limit: 2 },
        DELETE_FLEET => ItemRequest::DeleteFleet,
        _ => ItemRequest::Unwatch,
    };
    ItemCommand { item_id: id.to_owned(), account: account.to_owned(), service: "awards".to_owned(), once: None, request }
}

/// Proves how a filter changes: saved, saved again without and with a difference, deleted, and saved again.
#[test]
fn filters_are_saved_and_deleted() {
    let mut decisions = Decisions::default();
    let first = decisions.command(&command(SAVE_FILTER, "f1", "a", "x")).unwrap();
    assert_eq!((first.kind.as_str(), first.made_at, first.changed_at, first.gone), (kind::FILTER, 1, 1, false));
    assert_eq!(decisions.command(&command(SAVE_FILTER, "f1", "a", "x")), None);
    let second = decisions.command(&command(SAVE_FILTER, "f1", "a", "y")).unwrap();
    assert_eq!((second.filter.as_str(), second.made_at, second.changed_at), ("y", 1, 3));
    let gone = decisions.command(&command(DELETE_FILTER, "f1", "a", "")).unwrap();
    assert_eq!((gone.gone, gone.filter.as_str(), gone.name.as_str(), gone.account.as_str()), (true, "", "", "a"));
    assert_eq!(decisions.saved_ids("a", kind::FILTER), Vec::<String>::new());
    assert_eq!(decisions.command(&command(DELETE_FILTER, "f1", "a", "")), None);
    assert_eq!(decisions.command(&command(SAVE_FILTER, "f1", "a", "z")).map(|again| (again.made_at, again.gone)), Some((6, false)));
    assert_eq!(decisions.saved_ids("a", kind::FILTER), ["f1"]);
}

/// Proves how a fleet changes: stored, stored again without and with a difference, deleted, and stored again; that a deleted one keeps nothing of its
/// contents, that neither another account nor a command about another kind of item changes it, and that fleets have their own limit.
#[test]
fn fleets_are_saved_and_deleted() {
    let mut decisions = Decisions::default();
    let first = decisions.command(&command(SAVE_FLEET, "f1", "a", "x")).unwrap();
    assert_eq!((first.kind.as_str(), first.entity.as_str(), first.name.as_str(), first.filter.as_str()), (kind::FLEET, "x", "", ""));
    assert_eq!(decisions.command(&command(SAVE_FLEET, "f1", "a", "x")), None);
    let second = decisions.command(&command(SAVE_FLEET, "f1", "a", "y")).unwrap();
    assert_eq!((second.entity.as_str(), second.made_at, second.changed_at), ("y", 1, 3));
    for other in [
        command(SAVE_FLEET, "f1", "b", "z"),
        command(DELETE_FLEET, "f1", "b", ""),
        command(SAVE_FILTER, "f1", "a", "z"),
        command(DELETE_FILTER, "f1", "a", ""),
        command(UNWATCH, "f1", "a", ""),
        command(RETARGET, "f1", "a", ""),
    ] {
        assert_eq!(decisions.command(&other), None, "{other:?}");
    }
    let gone = decisions.command(&command(DELETE_FLEET, "f1", "a", "")).unwrap();
    assert_eq!((gone.gone, gone.entity.as_str(), gone.account.as_str()), (true, "", "a"));
    assert_eq!(decisions.command(&command(DELETE_FLEET, "f1", "a", "")), None);
    assert_eq!(decisions.command(&command(SAVE_FILTER, "f1", "a", "z")), None, "the id is that of a fleet");
    let again = decisions.command(&command(SAVE_FLEET, "f1", "a", "x")).unwrap();
    assert_eq!((again.gone, again.entity.as_str(), decisions.saved_ids("a", kind::FLEET)), (false, "x", vec!["f1".to_owned()]));
    for (verb, id, account, is_made) in
        [(SAVE_FLEET, "f2", "a", true), (SAVE_FLEET, "f3", "a", false), (SAVE_FILTER, "s1", "a", true), (SAVE_FLEET, "f4", "b", true)]
    {
        assert_eq!(decisions.command(&command(verb, id, account, "x")).is_some(), is_made, "{verb} {id} of {account}");
    }
}

/// Proves how a watch changes: it is created once, a deleted one remains deleted and has no URL, and commands of another account have
/// no effect.
#[test]
fn watches_are_created_once() {
    let mut decisions = Decisions::default();
    assert_eq!(
        decisions.command(&command(WATCH, "w1", "a", "x")).map(|made| (made.kind, made.webhook)),
        Some(("watch".into(), "sealed".into()))
    );
    assert_eq!(decisions.command(&command(WATCH, "w1", "a", "y")), None);
    let stranger = ItemCommand { service: "filings".to_owned(), ..command(UNWATCH, "w1", "a", "") };
    for other in [command(UNWATCH, "w1", "b", ""), stranger, command(DELETE_FILTER, "w1", "a", ""), command(UNWATCH, "w2", "a", "")] {
        assert_eq!(decisions.command(&other), None, "{other:?}");
    }
    assert_eq!(decisions.command(&command(UNWATCH, "w1", "a", "")).map(|gone| (gone.gone, gone.webhook)), Some((true, String::new())));
    assert_eq!(decisions.command(&command(WATCH, "w1", "a", "x")), None);
    assert_eq!(decisions.saved_ids("a", kind::WATCH), Vec::<String>::new());
}

/// Proves that no more items exist than the tier allows, by kind and account, and that deleting one makes room.
#[test]
fn no_more_than_the_tier_allows() {
    let mut decisions = Decisions::default();
    let made =
        |decisions: &mut Decisions, verb: &str, id: &str, account: &str| decisions.command(&command(verb, id, account, "x")).is_some();
    for (verb, id, account, is_made) in [
        (WATCH, "w1", "a", true),
        (WATCH, "w2", "a", true),
        (WATCH, "w3", "a", false),
        (SAVE_FILTER, "f1", "a", true),
        (WATCH, "w4", "b", true),
        (UNWATCH, "w1", "a", true),
        (WATCH, "w3", "a", true),
        (WATCH, "w5", "a", false),
    ] {
        assert_eq!(made(&mut decisions, verb, id, account), is_made, "{verb} {id} of {account}");
    }
    assert_eq!(decisions.saved_ids("a", kind::WATCH), ["w2", "w3"]);
    let request = ItemRequest::Watch(NewWatch { limit: 3, ..NewWatch::default() });
    let third = ItemCommand { request, ..command(WATCH, "w5", "a", "") };
    assert_eq!(decisions.command(&third).map(|made| made.id), Some("w5".into()));
}

/// Proves that commands about keys have no effect here, nor those about filters on the accounts service; and that a command without an
/// owner is parked.
#[test]
fn commands_about_keys_are_ignored() {
    let mut rows = Rows::default();
    let mint = fact(Request::from(AccountCommand::Mint(NewKey { account: "a".to_owned(), ..NewKey::default() })), 1);
    assert_eq!((Watches::reads(&mint), Watches::decide(&mut rows, &mint)), (Vec::new(), Ok(Vec::new())));
    for verb in [SAVE_FILTER, DELETE_FILTER, SAVE_FLEET, DELETE_FLEET, WATCH, UNWATCH, RETARGET] {
        let of_item = fact(AccountCommand::Item(command(verb, "i", "a", "")), 1);
        let accounts = super::super::accounts::Accounts::decide(&mut rows, &of_item);
        assert!(accounts.is_ok_and(|drafts| drafts.is_empty()), "{verb}");
        let nobody = fact(Request::Command(command(verb, "i", "", "")), 1);
        assert!(matches!(Watches::decide(&mut rows, &nobody), Err(Undecided::Poison(_))), "{verb}");
    }
}

/// Proves that an idempotency key is good for the first request that uses it, also after its item is deleted, and for no other request.
#[test]
fn an_idempotency_key_belongs_to_one_request() {
    let mut decisions = Decisions::default();
    let once = |command: ItemCommand| ItemCommand { once: Some("k".to_owned()), ..command };
    let watch = once(command(WATCH, "w1", "a", "x"));
    assert!(decisions.command_of("w1", &watch).is_some());
    assert_eq!(decisions.command_of("w2", &once(command(WATCH, "w2", "a", "y"))), None, "another request with the key");
    assert_eq!(decisions.saved_ids("a", kind::WATCH), ["w1"]);
    assert!(decisions.command_of("w1", &command(UNWATCH, "w1", "a", "")).is_some());
    assert_eq!(decisions.command_of("w1", &watch), None, "the same request again");
    assert_eq!(decisions.command_of("w2", &once(command(WATCH, "w2", "a", "y"))), None);
    let other = ItemCommand { once: Some("l".to_owned()), ..command(WATCH, "w2", "a", "y") };
    assert!(decisions.command_of("w2", &other).is_some(), "another key");
}

const DAY_MS: i64 = 24 * 3600 * 1000;
/// 2026-11-20T00:00:00Z, and the same day of the next two years.
const YEARS: [i64; 3] = [20_777 * DAY_MS, 21_142 * DAY_MS, 21_508 * DAY_MS];

fn yearly(id: &str, owner: &str, webhook: &str) -> ItemCommand {
    let new = NewWatch {
        name: "acme/9".to_owned(),
        filter: "x".to_owned(),
        webhook: webhook.to_owned(),
        secret: webhook.to_owned(),
        after: Seq(5),
        limit: 1,
        months: Some(12),
        ..NewWatch::default()
    };
    ItemCommand { request: ItemRequest::Watch(new), ..command(WATCH, id, owner, "") }
}

/// Proves that a settled payment creates its watch once, however often the settlement is recorded; that another payment renews it by 12 calendar months
/// from its end; that a claim alone has no effect; and that a transfer that paid for one watch pays for no other.
#[test]
fn payments_buy_watches_once() {
    let mut decisions = Decisions::default();
    let owner = "token_1";
    let new = yearly("w1", owner, "url");
    let effect = serde_json::to_string(&AccountCommand::Item(new.clone())).unwrap();
    let claim = PaymentCommand::Claim(Box::new(Claim { service: "awards".to_owned(), effect, ..Claim::default() }));
    assert_eq!(decisions.request("pay_1", Request::from(claim), YEARS[0]), None, "nothing is settled yet");
    let made = decisions.purchase("pay_1", &new, "0xa", YEARS[0]).unwrap();
    assert_eq!(
        (made.account.as_str(), made.made_at, made.until, made.after, made.name.as_str()),
        (owner, YEARS[0], YEARS[1], Seq(5), "acme/9")
    );
    for transaction in ["0xa", "0xb"] {
        assert_eq!(decisions.purchase("pay_1", &new, transaction, YEARS[0] + 1), None, "the same payment again");
    }
    assert_eq!(decisions.purchase("pay_2", &yearly("w2", owner, ""), "0xa", YEARS[0] + 1), None, "the same transfer again");

    let renewal = yearly("w1", owner, "");
    let renewed = decisions.purchase("pay_3", &renewal, "0xc", YEARS[0] + 40 * DAY_MS).unwrap();
    assert_eq!((renewed.until, renewed.webhook.as_str(), renewed.made_at), (YEARS[2], "url", YEARS[0]), "from its end, with its webhook");
    assert_eq!(decisions.purchase("pay_3", &renewal, "0xc", YEARS[1]), None, "a payment renews once");
    let other = decisions.purchase("pay_4", &yearly("w1", owner, "new"), "0xd", YEARS[2] + DAY_MS).unwrap();
    assert_eq!(Some(other.until), months_after(YEARS[2] + DAY_MS, 12), "after its end, the time since then is not sold");
    assert_eq!((other.webhook.as_str(), other.old_secrets.len()), ("new", 1), "a renewal may name another webhook");
    assert_eq!(decisions.purchase("pay_5", &yearly("w1", "token_2", ""), "0xe", YEARS[0]), None, "a watch of another owner");

    assert!(decisions.command(&command(UNWATCH, "w1", owner, "")).is_some_and(|gone| gone.gone && gone.until == 0));
    assert_eq!(decisions.purchase("pay_6", &renewal, "0xf", YEARS[1]), None, "a deleted watch remains deleted");
    assert_eq!(decisions.saved_ids(owner, kind::WATCH), Vec::<String>::new());
}

/// Proves that no tier limits purchases, that a watch which has ended makes room for another, and that one that can no longer be read is not listed.
#[test]
fn ended_watches_make_room() {
    let mut decisions = Decisions::default();
    for (payment, id) in [("pay_1", "w1"), ("pay_2", "w2")] {
        assert!(decisions.purchase(payment, &yearly(id, "a", ""), payment, YEARS[0]).is_some(), "{id}");
    }
    let by_key =
        |decisions: &mut Decisions, id: &str, at_ms: i64| decisions.request(id, Request::Command(yearly(id, "a", "")), at_ms).is_some();
    assert!(!by_key(&mut decisions, "w3", YEARS[1]), "the limit is one active watch");
    assert!(by_key(&mut decisions, "w3", YEARS[1] + 1));
    assert_eq!(decisions.saved_ids("a", kind::WATCH), ["w1", "w2", "w3"], "they can still be read");
    assert!(!by_key(&mut decisions, "w4", YEARS[1] + 40 * DAY_MS));
    assert!(by_key(&mut decisions, "w3", YEARS[1] + 40 * DAY_MS), "a renewal needs no room");
    assert!(decisions.purchase("pay_5", &yearly("w5", "a", ""), "pay_5", YEARS[1] + 40 * DAY_MS).is_some());
    assert_eq!(decisions.saved_ids("a", kind::WATCH), ["w3", "w5"]);
}

/// Proves that an effect of another kind buys no watch, that one which cannot be read is parked, and that a deletion holds if it is decided before the
/// purchase, as it may be when all decisions are made again.
#[test]
fn purchases_in_any_order() {
    let settled = |effect: &str| {
        let settlement = Settlement { effect: effect.to_owned(), ..Settlement::default() };
        Request::from(PaymentCommand::Settled(Box::new(settlement)))
    };
    for effect in ["", "{}", r#"{"verb":"issue"}"#, "[]"] {
        assert_eq!(settled(effect), Request::Nothing, "{effect}");
    }
    let damaged = fact(settled(r#"{"verb":"watch","after":-1}"#), 1);
    assert!(matches!(Watches::decide(&mut Rows::default(), &damaged), Err(Undecided::Poison(_))));

    let mut decisions = Decisions::default();
    assert_eq!(decisions.command(&command(UNWATCH, "w1", "a", "")), None);
    assert_eq!(decisions.purchase("pay_1", &yearly("w1", "a", ""), "0xa", YEARS[0]), None);
}

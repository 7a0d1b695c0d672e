//! Saved items: commands become saved filters, watches and fleets. The ids of an account's items are remembered in a row, so that listing them
//! needs no search and the tier's limit holds for concurrent requests, too.
//!
//! A watch can be bought: the command is part of the payment, and takes effect in the event that says that the payment is settled, once. The owner
//! of a bought watch is an account, or the holder of a token.

use std::collections::BTreeMap;

use schemas::avro;
use schemas::event::Fact;
use schemas::topics::{ACCOUNTS, CHANGES_WATCHES, PAYMENTS, Topic};
use schemas::views::accounts::{AccountCommand, ItemCommand, ItemRequest, NewWatch};
use schemas::views::payments::{PaymentCommand, TransferKeys, transfer_keys};
use schemas::views::records::RecordTables;
use schemas::views::watches::{
    Bought, OldSecret, SavedItem, TABLES, bought_key, deleted_key, ends_key, is_readable, kind, months_after, once_key, saved_items_key,
};
use serde_json::Value;

use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;
use fold::transfers::claim_transfer;

/// The most replaced secrets that sign alongside the current one.
const OLD_SECRETS_MAX: usize = 3;
/// How long a replaced secret signs alongside the current one, in milliseconds.
const SECRET_OVERLAP_MS: i64 = 24 * 3600 * 1000;

/// The watches service.
pub type Watches = Records<WatchesRules>;

/// What a fact of one of the two input topics means for saved items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Nothing: a command about keys, or a step of a payment that buys no watch.
    Nothing,
    /// A command on the `accounts` topic.
    Command(ItemCommand),
    /// A settled payment has bought a watch.
    Purchase {
        /// The command that takes effect.
        command: ItemCommand,
        /// The keys of the transfer that paid, see [`transfer_keys`].
        transfer: TransferKeys,
    },
    /// A settled payment has bought a watch that this version cannot read.
    Unreadable(String),
}

impl From<AccountCommand> for Request {
    fn from(command: AccountCommand) -> Self {
        match command {
            AccountCommand::Item(command) => Self::Command(command),
            // The accounts service decides commands about keys.
            _ => Self::Nothing,
        }
    }
}

impl From<PaymentCommand> for Request {
    fn from(command: PaymentCommand) -> Self {
        let PaymentCommand::Settled(settlement) = command else { return Self::Nothing };
        // Other services sell answers, which have no effect, and other effects.
        let Ok(effect) = serde_json::from_str::<Value>(&settlement.effect) else { return Self::Nothing };
        if effect.get("verb").and_then(Value::as_str) != Some(kind::WATCH) {
            return Self::Nothing;
        }
        match serde_json::from_value(effect) {
            Ok(AccountCommand::Item(command)) => Self::Purchase { command, transfer: transfer_keys(&settlement).unwrap_or_default() },
            Ok(_) => Self::Unreadable("the effect of a payment is not about a watch".to_owned()),
            Err(error) => Self::Unreadable(format!("the watch that a payment bought cannot be read: {error}")),
        }
    }
}

/// The rules of the watches service.
pub struct WatchesRules;

impl Rules for WatchesRules {
    type Fact = Request;
    type Record = SavedItem;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[ACCOUNTS, PAYMENTS];
    const CHANGES: &'static Topic = &CHANGES_WATCHES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<Request>, avro::Error> {
        if topic.name == PAYMENTS.name {
            return avro::decode(topic.name, value).map(|fact: Fact<PaymentCommand>| fact.map(Request::from));
        }
        avro::decode(topic.name, value).map(|fact: Fact<AccountCommand>| fact.map(Request::from))
    }

    fn reads(fact: &Fact<Request>) -> Vec<DecisionRow> {
        let (command, more) = match fact.observed() {
            Some(Request::Command(command)) => (command, command.once.iter().map(|once| once_key(once)).collect()),
            Some(Request::Purchase { command, transfer }) => {
                (command, transfer.all().map(str::to_owned).chain([bought_key(&fact.key)]).collect::<Vec<String>>())
            }
            Some(Request::Nothing | Request::Unreadable(_)) | None => return Vec::new(),
        };
        let own = [DecisionRow::Record(command.item_id.clone()), DecisionRow::State(saved_ids_key(command))];
        let of_watch = [ends_key(&command.account, &command.service), deleted_key(&command.item_id)];
        let of_watch = of_watch.into_iter().filter(|_| kind_of(&command.request) == kind::WATCH);
        own.into_iter().chain(of_watch.chain(more).map(DecisionRow::State)).collect()
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<Request>) -> Result<(), Undecided> {
        let command = match fact.observed() {
            Some(Request::Command(command) | Request::Purchase { command, .. }) => command,
            Some(Request::Unreadable(reason)) => return Err(Undecided::Poison(reason.clone())),
            Some(Request::Nothing) | None => return Ok(()),
        };
        if [&command.item_id, &command.account, &command.service].iter().any(|text| text.is_empty()) {
            return Err(Undecided::Poison("a command without an item, an account or a service".to_owned()));
        }
        let known = state.record(&command.item_id)?;
        if known.as_ref().is_some_and(|known| (&known.account, &known.service) != (&command.account, &command.service)) {
            return Ok(());
        }
        if let Some(Request::Purchase { transfer, .. }) = fact.observed() {
            return buy(state, fact, command, transfer, known);
        }
        if let Some(once) = &command.once {
            let first: Option<String> = state.get(&once_key(once))?;
            match first {
                // The idempotency key belongs to another request.
                Some(first) if first != fact.key => return Ok(()),
                Some(_) => {}
                None => state.remember(&once_key(once), Some(&fact.key))?,
            }
        }
        let at_ms = fact.observed_at;
        match (&command.request, known) {
            (ItemRequest::SaveFilter { .. } | ItemRequest::SaveFleet { .. }, Some(known)) if known.kind != kind_of(&command.request) => {
                Ok(())
            }
            (ItemRequest::SaveFilter { filter, .. }, Some(known)) if !known.gone => {
                if known.filter == *filter {
                    return Ok(());
                }
                state.put(SavedItem { filter: filter.clone(), changed_at: at_ms, ..known })
            }
            (ItemRequest::SaveFilter { name, filter, limit }, _) => {
                let item = SavedItem { name: name.clone(), filter: filter.clone(), ..new_item(command, at_ms) };
                create(state, command, item, Some(*limit))
            }
            (ItemRequest::SaveFleet { contents, .. }, Some(known)) if !known.gone => {
                if known.entity == *contents {
                    return Ok(());
                }
                state.put(SavedItem { entity: contents.clone(), changed_at: at_ms, ..known })
            }
            (ItemRequest::SaveFleet { contents, limit }, _) => {
                let item = SavedItem { entity: contents.clone(), ..new_item(command, at_ms) };
                create(state, command, item, Some(*limit))
            }
            (ItemRequest::Watch(new), known) => watch(state, command, new, known, at_ms, Some(new.limit)),
            (ItemRequest::Retarget { webhook, secret }, Some(known)) if !known.gone && known.kind == kind::WATCH => {
                state.put(retargeted(known, webhook, secret, at_ms))
            }
            (ItemRequest::DeleteFilter | ItemRequest::DeleteFleet | ItemRequest::Unwatch, Some(known))
                if !known.gone && known.kind == kind_of(&command.request) =>
            {
                let mut ids = saved_ids(state, command)?;
                ids.retain(|id| *id != command.item_id);
                state.remember(&saved_ids_key(command), Some(&ids).filter(|ids| !ids.is_empty()))?;
                if known.until != 0 {
                    let mut ends = ends(state, command)?;
                    ends.remove(&known.id);
                    remember_ends(state, command, &ends)?;
                }
                let SavedItem { id, kind, account, service, made_at, .. } = known;
                state.put(SavedItem { id, kind, account, service, made_at, changed_at: at_ms, gone: true, ..SavedItem::default() })
            }
            (ItemRequest::Unwatch, None) => state.remember(&deleted_key(&command.item_id), Some(&true)),
            // A missing item cannot be changed or deleted.
            (ItemRequest::Retarget { .. } | ItemRequest::DeleteFilter | ItemRequest::DeleteFleet | ItemRequest::Unwatch, _) => Ok(()),
        }
    }
}

/// Creates or renews the watch that a settled payment has bought. A payment has one effect, and a transfer pays for one payment, by the rule of the
/// payments service.
fn buy(
    state: &mut State<'_, WatchesRules>,
    fact: &Fact<Request>,
    command: &ItemCommand,
    transfer: &TransferKeys,
    known: Option<SavedItem>,
) -> Result<(), Undecided> {
    let ItemRequest::Watch(new) = &command.request else { return Ok(()) };
    let key = bought_key(&fact.key);
    let is_decided = state.get::<Bought>(&key)?.is_some();
    if !claim_transfer(state, &fact.key, transfer)? || is_decided {
        return Ok(());
    }
    state.remember(&key, Some(&Bought { watch: command.item_id.clone() }))?;
    watch(state, command, new, known, fact.observed_at, None)
}

/// Creates a watch, or renews it if it is active and has an end. A watch is never created twice, also after its deletion.
fn watch(
    state: &mut State<'_, WatchesRules>,
    command: &ItemCommand,
    new: &NewWatch,
    known: Option<SavedItem>,
    at_ms: i64,
    limit: Option<i64>,
) -> Result<(), Undecided> {
    let NewWatch { name, filter, entity, webhook, secret, after, limit: _, months } = new;
    let end_after = |from_ms: i64| match months {
        None => Ok(0),
        Some(months) => months_after(from_ms, *months).ok_or_else(|| Undecided::Poison(format!("there is no time in {months} months"))),
    };
    let Some(known) = known else {
        if state.get::<bool>(&deleted_key(&command.item_id))?.is_some() {
            return Ok(());
        }
        let item = SavedItem {
            name: name.clone(),
            filter: filter.clone(),
            entity: entity.clone(),
            webhook: webhook.clone(),
            secret: secret.clone(),
            after: *after,
            until: end_after(at_ms)?,
            ..new_item(command, at_ms)
        };
        return create(state, command, item, limit);
    };
    if months.is_none() || known.until == 0 || known.gone || known.kind != kind::WATCH {
        return Ok(());
    }
    // Money may arrive after the end; then the time since the end is not sold.
    let until = end_after(known.until.max(at_ms))?;
    let mut ends = ends(state, command)?;
    ends.insert(known.id.clone(), until);
    remember_ends(state, command, &ends)?;
    let renewed = SavedItem { filter: filter.clone(), entity: entity.clone(), until, ..retargeted(known, webhook, secret, at_ms) };
    state.put(renewed)
}

/// Returns a watch with another webhook, another secret, or both; `""` leaves one as it is. The replaced secret signs alongside the new one for a time.
fn retargeted(known: SavedItem, webhook: &str, secret: &str, at_ms: i64) -> SavedItem {
    let mut changed = SavedItem { changed_at: at_ms, ..known };
    if !webhook.is_empty() {
        webhook.clone_into(&mut changed.webhook);
    }
    if !secret.is_empty() {
        let replaced = std::mem::replace(&mut changed.secret, secret.to_owned());
        changed.old_secrets.retain(|old| old.until > at_ms);
        if !replaced.is_empty() {
            changed.old_secrets.insert(0, OldSecret { secret: replaced, until: at_ms + SECRET_OVERLAP_MS });
        }
        changed.old_secrets.truncate(OLD_SECRETS_MAX);
    }
    changed
}

/// Creates an item, unless the account has as many active ones of its kind as its tier allows; `None` for no limit.
fn create(state: &mut State<'_, WatchesRules>, command: &ItemCommand, item: SavedItem, limit: Option<i64>) -> Result<(), Undecided> {
    let mut ids = saved_ids(state, command)?;
    let (id, at_ms, until) = (item.id.clone(), item.made_at, item.until);
    let mut ends = if item.kind == kind::WATCH { ends(state, command)? } else { BTreeMap::new() };
    let known_ends = ends.len();
    // Watches that can no longer be read are not listed any more.
    ids.retain(|id| ends.get(id).is_none_or(|until| is_readable(*until, at_ms)));
    ends.retain(|_, until| is_readable(*until, at_ms));
    let active = ids.iter().filter(|id| ends.get(*id).is_none_or(|until| at_ms <= *until)).count();
    if limit.is_some_and(|limit| i64::try_from(active).is_ok_and(|active| active >= limit)) {
        return Ok(());
    }
    if until != 0 || ends.len() != known_ends {
        ends.extend(Some((id.clone(), until)).filter(|_| until != 0));
        remember_ends(state, command, &ends)?;
    }
    ids.push(id);
    state.remember(&saved_ids_key(command), Some(&ids))?;
    state.put(item)
}

/// Returns the ends of the account's watches that have one.
fn ends(state: &mut State<'_, WatchesRules>, command: &ItemCommand) -> Result<BTreeMap<String, i64>, Undecided> {
    Ok(state.get(&ends_key(&command.account, &command.service))?.unwrap_or_default())
}

fn remember_ends(state: &mut State<'_, WatchesRules>, command: &ItemCommand, ends: &BTreeMap<String, i64>) -> Result<(), Undecided> {
    state.remember(&ends_key(&command.account, &command.service), Some(ends).filter(|ends| !ends.is_empty()))
}

fn kind_of(request: &ItemRequest) -> &'static str {
    match request {
        ItemRequest::Watch(_) | ItemRequest::Unwatch | ItemRequest::Retarget { .. } => kind::WATCH,
        ItemRequest::SaveFilter { .. } | ItemRequest::DeleteFilter => kind::FILTER,
        ItemRequest::SaveFleet { .. } | ItemRequest::DeleteFleet => kind::FLEET,
    }
}

fn saved_ids_key(command: &ItemCommand) -> String {
    saved_items_key(&command.account, &command.service, kind_of(&command.request))
}

/// Returns the ids of the account's items of the command's kind.
fn saved_ids(state: &mut State<'_, WatchesRules>, command: &ItemCommand) -> Result<Vec<String>, Undecided> {
    Ok(state.get(&saved_ids_key(command))?.unwrap_or_default())
}

/// Returns a new item with the fields that all kinds share.
fn new_item(command: &ItemCommand, at_ms: i64) -> SavedItem {
    SavedItem {
        id: command.item_id.clone(),
        kind: kind_of(&command.request).to_owned(),
        account: command.account.clone(),
        service: command.service.clone(),
        made_at: at_ms,
        changed_at: at_ms,
        ..SavedItem::default()
    }
}

#[cfg(test)]
mod tests;

//! Saved items: commands become saved filters and watches. The ids of an account's items are remembered in a row, so that listing them
//! needs no search and the tier's limit holds for concurrent requests, too.

use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::topics::{ACCOUNTS, CHANGES_WATCHES, Topic};
use schemas::views::accounts::{AccountCommand, ItemCommand, ItemRequest, NewWatch};
use schemas::views::records::RecordTables;
use schemas::views::watches::{OldSecret, SavedItem, TABLES, kind, once_key, saved_items_key};

use super::records::{Read, Records, Rules, State};
use crate::service::Undecided;

/// The most replaced secrets that sign alongside the current one.
const OLD_SECRETS_MAX: usize = 3;
/// How long a replaced secret signs alongside the current one, in milliseconds.
const SECRET_OVERLAP_MS: i64 = 24 * 3600 * 1000;

/// The watches service.
pub type Watches = Records<WatchesRules>;

/// The rules of the watches service.
pub struct WatchesRules;

impl Rules for WatchesRules {
    type Fact = AccountCommand;
    type Record = SavedItem;

    const NAME: &'static str = "watches";
    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[ACCOUNTS];
    const CHANGES: &'static Topic = &CHANGES_WATCHES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<AccountCommand>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<AccountCommand>) -> Vec<Read> {
        let Some(command) = own_command(fact) else { return Vec::new() };
        let once = command.once.iter().map(|once| Read::Source(once_key(once)));
        [Read::Record(command.item_id.clone()), Read::Source(saved_ids_key(command))].into_iter().chain(once).collect()
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<AccountCommand>) -> Result<(), Undecided> {
        // The accounts service decides commands about keys.
        let Some(command) = own_command(fact) else { return Ok(()) };
        if [&command.item_id, &command.account, &command.service].iter().any(|text| text.is_empty()) {
            return Err(Undecided::Poison("a command without an item, an account or a service".to_owned()));
        }
        let known = state.record(&command.item_id)?;
        if known.as_ref().is_some_and(|known| (&known.account, &known.service) != (&command.account, &command.service)) {
            return Ok(());
        }
        if let Some(once) = &command.once {
            let first: Option<String> = state.source(&once_key(once))?;
            match first {
                // The idempotency key belongs to another request.
                Some(first) if first != fact.key => return Ok(()),
                Some(_) => {}
                None => state.remember(&once_key(once), Some(&fact.key))?,
            }
        }
        let at_ms = fact.observed_at;
        match (&command.request, known) {
            // A watch is never created twice, also after its deletion; a filter is replaced by the one last saved under its name.
            (ItemRequest::Watch(_), Some(_)) => Ok(()),
            (ItemRequest::SaveFilter { filter, .. }, Some(known)) if !known.gone => {
                if known.filter == *filter {
                    return Ok(());
                }
                state.put(SavedItem { filter: filter.clone(), changed_at: at_ms, ..known })
            }
            (ItemRequest::SaveFilter { name, filter, limit }, _) => {
                let item = SavedItem { name: name.clone(), filter: filter.clone(), ..new_item(command, at_ms) };
                create(state, command, item, *limit)
            }
            (ItemRequest::Watch(NewWatch { filter, entity, webhook, secret, after, limit }), None) => {
                let item = SavedItem {
                    filter: filter.clone(),
                    entity: entity.clone(),
                    webhook: webhook.clone(),
                    secret: secret.clone(),
                    after: *after,
                    ..new_item(command, at_ms)
                };
                create(state, command, item, *limit)
            }
            (ItemRequest::Retarget { webhook, secret }, Some(known)) if !known.gone && known.kind == kind::WATCH => {
                let mut changed = SavedItem { changed_at: at_ms, ..known };
                if !webhook.is_empty() {
                    changed.webhook.clone_from(webhook);
                }
                if !secret.is_empty() {
                    let replaced = std::mem::replace(&mut changed.secret, secret.clone());
                    changed.old_secrets.retain(|old| old.until > at_ms);
                    if !replaced.is_empty() {
                        changed.old_secrets.insert(0, OldSecret { secret: replaced, until: at_ms + SECRET_OVERLAP_MS });
                    }
                    changed.old_secrets.truncate(OLD_SECRETS_MAX);
                }
                state.put(changed)
            }
            (ItemRequest::DeleteFilter | ItemRequest::Unwatch, Some(known)) if !known.gone && known.kind == kind_of(&command.request) => {
                let mut ids = saved_ids(state, command)?;
                ids.retain(|id| *id != command.item_id);
                state.remember(&saved_ids_key(command), Some(&ids).filter(|ids| !ids.is_empty()))?;
                let SavedItem { id, kind, account, service, made_at, .. } = known;
                state.put(SavedItem { id, kind, account, service, made_at, changed_at: at_ms, gone: true, ..SavedItem::default() })
            }
            // A missing item cannot be changed or deleted.
            (ItemRequest::Retarget { .. } | ItemRequest::DeleteFilter | ItemRequest::Unwatch, _) => Ok(()),
        }
    }
}

/// Creates an item, unless the account has as many of its kind as its tier allows.
fn create(state: &mut State<'_, WatchesRules>, command: &ItemCommand, item: SavedItem, limit: i64) -> Result<(), Undecided> {
    let mut ids = saved_ids(state, command)?;
    if i64::try_from(ids.len()).is_ok_and(|count| count < limit) {
        ids.push(command.item_id.clone());
        state.remember(&saved_ids_key(command), Some(&ids))?;
        state.put(item)?;
    }
    Ok(())
}

/// Returns the command of a fact; `None` if it is about keys, which the accounts service decides.
fn own_command(fact: &Fact<AccountCommand>) -> Option<&ItemCommand> {
    match fact.data.as_ref().filter(|_| fact.kind == FactKind::Observed)? {
        AccountCommand::Item(command) => Some(command),
        _ => None,
    }
}

fn kind_of(request: &ItemRequest) -> &'static str {
    match request {
        ItemRequest::Watch(_) | ItemRequest::Unwatch | ItemRequest::Retarget { .. } => kind::WATCH,
        ItemRequest::SaveFilter { .. } | ItemRequest::DeleteFilter => kind::FILTER,
    }
}

fn saved_ids_key(command: &ItemCommand) -> String {
    saved_items_key(&command.account, &command.service, kind_of(&command.request))
}

/// Returns the ids of the account's items of the command's kind.
fn saved_ids(state: &mut State<'_, WatchesRules>, command: &ItemCommand) -> Result<Vec<String>, Undecided> {
    Ok(state.source(&saved_ids_key(command))?.unwrap_or_default())
}

/// Returns a new item with the fields that filters and watches share.
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
mod tests {
    use bytes::Bytes;
    use schemas::hash::Hash32;
    use schemas::key;
    use schemas::position::Seq;
    use schemas::tables::Write;
    use schemas::views::accounts::NewKey;
    use schemas::views::records::Row;

    use super::*;
    use crate::rows::Rows;
    use crate::service::Service;

    /// A cache of rows to which commands are applied in turn.
    #[derive(Default)]
    struct Decisions {
        rows: Rows,
        seq: Seq,
    }

    impl Decisions {
        /// Decides a command and applies its result. Returns the item if the command changed it.
        fn command(&mut self, command: &ItemCommand) -> Option<SavedItem> {
            self.command_of("i", command)
        }

        /// Does the same for a command with a subject of its own.
        fn command_of(&mut self, subject: &str, command: &ItemCommand) -> Option<SavedItem> {
            self.seq = self.seq.next();
            let fact = Fact { key: subject.to_owned(), ..fact(AccountCommand::Item(command.clone()), self.seq.stored()) };
            for (table, key) in Watches::reads(&fact) {
                if self.rows.get(table, &key).is_err() {
                    self.rows.write(Write::delete(table, key));
                }
            }
            let drafts = Watches::decide(&mut self.rows, &fact).unwrap();
            assert!(drafts.len() <= 1, "{drafts:?}");
            let draft = drafts.into_iter().next()?;
            for note in draft.note.iter().flat_map(|note| &note.rows) {
                let key = key![note.key.as_str()];
                self.rows.write(match note.value.as_str() {
                    "" => Write::delete(TABLES.sources, key),
                    value => Write::put(TABLES.sources, key, Bytes::from(value.to_owned())),
                });
            }
            let after = draft.after?;
            let row = serde_json::to_vec(&Row { seq: self.seq, since: Seq(0), record: after.clone() }).unwrap();
            self.rows.write(Write::put(TABLES.records, key![after.id.as_str()], Bytes::from(row)));
            Some(after)
        }

        /// Returns the ids of an account's items.
        fn saved_ids(&mut self, account: &str, kind: &str) -> Vec<String> {
            self.rows.get_json(TABLES.sources, &key![saved_items_key(account, "awards", kind)]).unwrap().unwrap_or_default()
        }
    }

    fn fact(command: AccountCommand, at_ms: i64) -> Fact<AccountCommand> {
        Fact {
            id: Hash32::ZERO,
            kind: FactKind::Observed,
            key: "i".to_owned(),
            version: 1,
            prev_hash: Hash32::ZERO,
            content_hash: Hash32::ZERO,
            upstream: "api".to_owned(),
            observed_at: at_ms,
            superseded_by: String::new(),
            data: Some(command),
            run: None,
        }
    }

    const SAVE_FILTER: &str = "save_filter";
    const DELETE_FILTER: &str = "delete_filter";
    const WATCH: &str = "watch";
    const UNWATCH: &str = "unwatch";
    const RETARGET: &str = "retarget";

    fn command(verb: &str, id: &str, account: &str, filter: &str) -> ItemCommand {
        let (filter, webhook) = (filter.to_owned(), "sealed".to_owned());
        let request = match verb {
            SAVE_FILTER => ItemRequest::SaveFilter { name: "mine".to_owned(), filter, limit: 2 },
            WATCH => ItemRequest::Watch(NewWatch { filter, webhook, limit: 2, ..NewWatch::default() }),
            RETARGET => ItemRequest::Retarget { webhook, secret: String::new() },
            DELETE_FILTER => ItemRequest::DeleteFilter,
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
        let mint = fact(AccountCommand::Mint(NewKey { account: "a".to_owned(), ..NewKey::default() }), 1);
        assert_eq!((Watches::reads(&mint), Watches::decide(&mut rows, &mint)), (Vec::new(), Ok(Vec::new())));
        for verb in [SAVE_FILTER, DELETE_FILTER, WATCH, UNWATCH, RETARGET] {
            let fact = fact(AccountCommand::Item(command(verb, "i", "a", "")), 1);
            let accounts = super::super::accounts::Accounts::decide(&mut rows, &fact);
            assert!(accounts.is_ok_and(|drafts| drafts.is_empty()), "{verb}");
            let nobody = self::fact(AccountCommand::Item(command(verb, "i", "", "")), 1);
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
}

//! Accounts: commands become API keys. `mint` creates a key, `rotate` replaces one, `revoke` ends one, and `erase`
//! ends one and removes the hash of its e-mail address. `suppress` and `unsuppress` change the table of suppressed keys.

use bytes::Bytes;
use schemas::avro;
use schemas::change::{Change, ChangeKind};
use schemas::event::{Command as _, Fact};
use schemas::key;
use schemas::position::Seq;
use schemas::suppression::{KeyKind, Suppression, SuppressionRow};
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::{ACCOUNTS, CHANGES_ACCOUNTS, Topic};
use schemas::views::accounts::{
    AccountCommand, ApiKey, BY_ACCOUNT, BY_EMAIL, BY_HASH, FEED, KEYS, KEYS_HISTORY, NewKey, PARKED, Row, SUPPRESSIONS, Tier, VIEW, hour_of,
};

use fold::rows::Rows;
use fold::service::{Draft, Service, Undecided};

/// How long a rotated key remains valid if the command does not say so, in seconds.
const ROTATION_OVERLAP_S: i64 = 24 * 3600;

/// The accounts service.
pub struct Accounts;

impl Service for Accounts {
    type Fact = AccountCommand;
    type Record = ApiKey;
    type Note = AccountCommand;

    const NAME: &'static str = "accounts";
    const VIEW: &'static ViewDef = &VIEW;
    const INPUTS: &'static [Topic] = &[ACCOUNTS];
    const CHANGES: &'static Topic = &CHANGES_ACCOUNTS;
    const FEED: &'static Table = &FEED;
    const RECORDS: &'static Table = &KEYS;
    const PARKED: &'static Table = &PARKED;
    const DECISION_TABLES: &'static [&'static Table] = &[&KEYS];

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<AccountCommand>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<AccountCommand>) -> Vec<(&'static Table, Key)> {
        own_command(fact).and_then(key_of).map(|id| (&KEYS, key![id])).into_iter().collect()
    }

    fn decide(rows: &mut Rows, fact: &Fact<AccountCommand>) -> Result<Vec<Draft<ApiKey, AccountCommand>>, Undecided> {
        let Some(command) = own_command(fact) else { return Ok(Vec::new()) };
        if let AccountCommand::Suppress(suppression) | AccountCommand::Unsuppress(suppression) = command {
            return match row_key(suppression) {
                Some(_) => Ok(vec![noted(command)]),
                None => Err(Undecided::Poison(format!("{:?} is no key of a kind {}", suppression.key, suppression.kind))),
            };
        }
        let Some(id) = key_of(command) else {
            return Err(Undecided::Poison(format!("verb {} is unknown", command.verb())));
        };
        let before: Option<Row> = rows.get_json(&KEYS, &key![id])?;
        match (command, before) {
            (AccountCommand::Mint(new), None) => {
                if Tier::from_name(&new.tier).is_none_or(|tier| tier == Tier::Anonymous) {
                    return Err(Undecided::Poison(format!("tier {} is not one that a key can have", new.tier)));
                }
                Ok(vec![new_draft(new_key(new, fact.observed_at), command)])
            }
            // A key has one successor: a key that is already ending is not rotated again, and its end is not postponed.
            (AccountCommand::Rotate { successor, overlap_s, .. }, Some(row)) if row.record.ends_at == 0 => {
                let mut ended = row.record.clone();
                let overlap_ms = overlap_s.unwrap_or(ROTATION_OVERLAP_S).max(0).saturating_mul(1_000);
                ended.ends_at = fact.observed_at.saturating_add(overlap_ms).max(1);
                let successor = ApiKey {
                    account: ended.account.clone(),
                    tier: ended.tier.clone(),
                    email_hash: ended.email_hash.clone(),
                    ..new_key(successor, fact.observed_at)
                };
                Ok(vec![modified(row, ended, command), new_draft(successor, command)])
            }
            (AccountCommand::Revoke(_), Some(row)) if is_live(&row.record, fact.observed_at) => {
                let ended = ApiKey { ends_at: fact.observed_at.max(1), ..row.record.clone() };
                Ok(vec![modified(row, ended, command)])
            }
            (AccountCommand::Erase(_), Some(row)) if is_live(&row.record, fact.observed_at) || !row.record.email_hash.is_empty() => {
                let mut erased = ApiKey { email_hash: String::new(), ..row.record.clone() };
                if is_live(&erased, fact.observed_at) {
                    erased.ends_at = fact.observed_at.max(1);
                }
                Ok(vec![modified(row, erased, command)])
            }
            (AccountCommand::Used { .. }, Some(row)) if row.record.last_used_at < hour_of(fact.observed_at) => {
                let used = ApiKey { last_used_at: hour_of(fact.observed_at), ..row.record.clone() };
                Ok(vec![modified(row, used, command)])
            }
            // A late command has no effect: a key minted twice, a key that has ended or is unknown, a use that is already recorded.
            _ => Ok(Vec::new()),
        }
    }

    fn apply(change: &Change<ApiKey, AccountCommand>, record: &[u8]) -> Vec<Write> {
        let Some(after) = &change.after else {
            return change.note.as_ref().and_then(|note| suppression(note, change)).into_iter().collect();
        };
        let mut writes = vec![Write::put(&KEYS, key![after.id.as_str()], row_json(change.seq, record))];
        writes.push(Write::put(&BY_ACCOUNT, key![after.account.as_str(), after.id.as_str()], Bytes::new()));
        if let Some(before) = &change.before {
            if let Ok(bytes) = serde_json::to_vec(before) {
                writes.push(Write::put(&KEYS_HISTORY, key![after.id.as_str(), change.before_seq], row_json(change.before_seq, &bytes)));
            }
            if before.email_hash != after.email_hash {
                // Older versions wrote this row; an erased account must not leave it behind.
                writes.push(Write::delete(&BY_EMAIL, key![before.email_hash.as_str(), after.id.as_str()]));
            }
        } else {
            let id = Bytes::from(after.id.clone());
            writes.push(Write::put(&BY_HASH, key![after.key_hash.as_str()], id));
        }
        writes
    }

    /// Keys that have ended are current records, too.
    fn is_listed(_: &ApiKey) -> bool {
        true
    }

    fn digest_row(value: &Bytes) -> Option<Bytes> {
        let row: Row = serde_json::from_slice(value).ok()?;
        serde_json::to_vec(&row.record).ok().map(Bytes::from)
    }

    fn read_row(value: &[u8]) -> Result<(ApiKey, Seq, Seq), serde_json::Error> {
        serde_json::from_slice(value).map(|row: Row| (row.record, row.seq, Seq(0)))
    }

    fn difference(id: &str, before: Option<(ApiKey, Seq, Seq)>, after: Option<ApiKey>) -> Option<Draft<ApiKey, AccountCommand>> {
        let after = after?;
        if before.as_ref().is_some_and(|(before, _, _)| *before == after) {
            return None;
        }
        let event = if before.is_some() { ChangeKind::Modified } else { ChangeKind::New };
        let (before, before_seq, before_since) = before.map_or((None, Seq(0), Seq(0)), |(record, seq, since)| (Some(record), seq, since));
        Some(Draft { event, id: id.to_owned(), after: Some(after), before, before_seq, before_since, note: None })
    }

    fn remember(_: &'static Table, _: &Key, _: Option<&Bytes>) -> Result<Option<Draft<ApiKey, AccountCommand>>, serde_json::Error> {
        // Keys are the only rows that decisions read.
        Ok(None)
    }
}

/// Returns the command of a fact; `None` if it is about filters and watches, which the watches service decides.
fn own_command(fact: &Fact<AccountCommand>) -> Option<&AccountCommand> {
    fact.observed().filter(|command| !matches!(command, AccountCommand::Item(_)))
}

/// Returns the id of the key that a command is about; `None` for an unknown command.
fn key_of(command: &AccountCommand) -> Option<&str> {
    match command {
        AccountCommand::Mint(new) => Some(&new.id),
        AccountCommand::Revoke(key) | AccountCommand::Erase(key) => Some(&key.key_id),
        AccountCommand::Rotate { key_id, .. } | AccountCommand::Used { key_id } => Some(key_id),
        AccountCommand::Item(_) | AccountCommand::Suppress(_) | AccountCommand::Unsuppress(_) | AccountCommand::Unknown { .. } => None,
    }
}

/// The key of the row of a suppressed key; `None` if this version does not know the kind, or if the key is none of that kind.
fn row_key(suppression: &Suppression) -> Option<Key> {
    let kind = KeyKind::from_name(&suppression.kind)?;
    Some(key![kind.name, kind.normalize(&suppression.key)?.as_str()])
}

/// What a command that suppresses a key, or takes that back, writes.
fn suppression(command: &AccountCommand, change: &Change<ApiKey, AccountCommand>) -> Option<Write> {
    match command {
        AccountCommand::Suppress(suppression) => {
            let row = SuppressionRow { key: suppression.key.clone(), reason: suppression.reason.clone(), since: change.recorded_at };
            Some(Write::put(&SUPPRESSIONS, row_key(suppression)?, Bytes::from(serde_json::to_vec(&row).ok()?)))
        }
        AccountCommand::Unsuppress(suppression) => Some(Write::delete(&SUPPRESSIONS, row_key(suppression)?)),
        _ => None,
    }
}

fn noted(command: &AccountCommand) -> Draft<ApiKey, AccountCommand> {
    Draft {
        event: ChangeKind::Noted,
        id: String::new(),
        after: None,
        before: None,
        before_seq: Seq(0),
        before_since: Seq(0),
        note: Some(command.clone()),
    }
}

fn is_live(key: &ApiKey, at_ms: i64) -> bool {
    key.ends_at == 0 || key.ends_at > at_ms
}

fn new_key(new: &NewKey, at_ms: i64) -> ApiKey {
    ApiKey {
        id: new.id.clone(),
        key_hash: new.key_hash.clone(),
        account: new.account.clone(),
        tier: new.tier.clone(),
        email_hash: new.email_hash.clone(),
        minted_at: at_ms,
        ends_at: 0,
        last_used_at: 0,
        key_end: new.key_end.clone(),
    }
}

fn new_draft(key: ApiKey, command: &AccountCommand) -> Draft<ApiKey, AccountCommand> {
    let id = key.id.clone();
    Draft {
        event: ChangeKind::New,
        id,
        after: Some(key),
        before: None,
        before_seq: Seq(0),
        before_since: Seq(0),
        note: Some(command.clone()),
    }
}

fn modified(row: Row, after: ApiKey, command: &AccountCommand) -> Draft<ApiKey, AccountCommand> {
    Draft {
        event: ChangeKind::Modified,
        id: after.id.clone(),
        after: Some(after),
        before: Some(row.record),
        before_seq: row.seq,
        before_since: Seq(0),
        note: Some(command.clone()),
    }
}

fn row_json(seq: Seq, record: &[u8]) -> Bytes {
    let mut out = format!(r#"{{"seq":{seq},"record":"#).into_bytes();
    out.extend_from_slice(record);
    out.push(b'}');
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use fold::testing;
    use schemas::event::FactKind;

    use super::*;

    fn change(event: ChangeKind, after: ApiKey, before: Option<ApiKey>) -> Change<ApiKey, AccountCommand> {
        let before_seq = Seq(u64::from(before.is_some()));
        Change { seq: Seq(2), before_seq, ..testing::change(event, after.id.clone(), [before, Some(after)]) }
    }

    /// Proves that minting a key writes no row by e-mail, and that erasing it deletes the row that an older version wrote.
    #[test]
    fn keys_by_email_are_deleted_and_not_written() {
        let minted = ApiKey { id: "k".to_owned(), key_hash: "h".to_owned(), email_hash: "e".to_owned(), ..ApiKey::default() };
        let by_email = |writes: Vec<Write>| writes.into_iter().filter(|write| write.table.name == BY_EMAIL.name).collect::<Vec<_>>();
        let made = Accounts::apply(&change(ChangeKind::New, minted.clone(), None), b"{}");
        assert!(by_email(made).is_empty());
        let erased = ApiKey { email_hash: String::new(), ..minted.clone() };
        let deleted = by_email(Accounts::apply(&change(ChangeKind::Modified, erased, Some(minted)), b"{}"));
        assert_eq!(deleted.iter().map(|write| (&write.key, write.value.is_none())).collect::<Vec<_>>(), [(&key!["e", "k"], true)]);
    }

    fn fact_at(observed_at: i64, command: AccountCommand) -> Fact<AccountCommand> {
        Fact { upstream: "api".to_owned(), ..testing::fact("subject", FactKind::Observed, observed_at, Some(command)) }
    }

    /// Proves that a replaced key works as long as the command says, or a day, that its successor has its account and tier, and that both are in the index
    /// of their account.
    #[test]
    fn a_replaced_key_has_an_end() {
        let old = ApiKey { id: "old".to_owned(), account: "acct".to_owned(), tier: "pro".to_owned(), ..ApiKey::default() };
        for (overlap_s, ends_at) in [(None, 86_400_005), (Some(0), 5), (Some(3_600), 3_600_005), (Some(-1), 5)] {
            let mut rows = Rows::default();
            let row = serde_json::to_vec(&Row { seq: Seq(1), record: old.clone() }).unwrap();
            rows.write(Write::put(&KEYS, key!["old"], Bytes::from(row)));
            let successor = NewKey { id: "new".to_owned(), key_end: "ab1Z".to_owned(), ..NewKey::default() };
            let rotate = AccountCommand::Rotate { key_id: "old".to_owned(), overlap_s, successor };
            let drafts = Accounts::decide(&mut rows, &fact_at(5, rotate)).unwrap();
            let after: Vec<&ApiKey> = drafts.iter().filter_map(|draft| draft.after.as_ref()).collect();
            let [ended, new] = after.as_slice() else { panic!("{drafts:?}") };
            assert_eq!((ended.ends_at, new.ends_at), (ends_at, 0), "{overlap_s:?}");
            assert_eq!((new.account.as_str(), new.tier.as_str(), new.key_end.as_str()), ("acct", "pro", "ab1Z"));
            for (kind, key_row, before) in [(ChangeKind::Modified, *ended, Some(old.clone())), (ChangeKind::New, *new, None)] {
                let writes = Accounts::apply(&change(kind, key_row.clone(), before), b"{}");
                assert!(writes.iter().any(|write| write.table.name == BY_ACCOUNT.name && write.key == key!["acct", key_row.id.as_str()]));
            }
        }
    }

    /// Proves that suppressing a key writes its row under the normalized key, that taking it back deletes that row whatever its spelling, and that a
    /// command about a kind that this version does not know is not decided.
    #[test]
    fn suppressed_keys_are_rows() {
        let command = |verb: fn(Suppression) -> AccountCommand, kind: &str, key: &str| {
            verb(Suppression { kind: kind.to_owned(), key: key.to_owned(), reason: "on request".to_owned() })
        };
        let fact = |command: AccountCommand| fact_at(5, command);
        let mut writes = Vec::new();
        for (verb, key) in
            [(AccountCommand::Suppress as fn(Suppression) -> AccountCommand, "OAK, Ann"), (AccountCommand::Unsuppress, "ann oak")]
        {
            let drafts = Accounts::decide(&mut Rows::default(), &fact(command(verb, "person", key))).unwrap();
            let [draft] = drafts.as_slice() else { panic!("{drafts:?}") };
            let noted = Change { note: draft.note.clone(), after: None, recorded_at: 7, ..change(draft.event, ApiKey::default(), None) };
            writes.extend(Accounts::apply(&noted, b"null"));
        }
        let row: SuppressionRow = serde_json::from_slice(writes[0].value.as_ref().unwrap()).unwrap();
        assert_eq!(row, SuppressionRow { key: "OAK, Ann".to_owned(), reason: "on request".to_owned(), since: 7 });
        assert!(writes.iter().all(|write| write.key == key!["person", "ann oak"]) && writes[1].value.is_none(), "{writes:?}");
        let unknown = Accounts::decide(&mut Rows::default(), &fact(command(AccountCommand::Suppress, "planet", "x")));
        assert!(matches!(unknown, Err(Undecided::Poison(_))));
    }
}

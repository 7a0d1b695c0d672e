//! For tests: a world in which a small projector applies the commands on accounts.

use std::sync::Arc;

use bytes::Bytes;
use event_log::EventLog;
use operation::context::Context;
use schemas::avro::decode;
use schemas::event::Fact;
use schemas::key;
use schemas::position::{LogOffset, Seq};
use schemas::suppression::{KeyKind, SuppressionRow};
use schemas::tables::{Key as RowKey, Table, Write};
use schemas::topics::ACCOUNTS;
use schemas::views::accounts::{self, AccountCommand, ApiKey, NewKey, Row, hour_of};
use schemas::views::engine::{self, HeadRow};
use view_store::{Checkpoint, View, ViewStore};

use super::{START_MS, World};

/// A world whose accounts are projected, and a context at a fixed time.
pub async fn world() -> (World, Arc<Context>) {
    let world = World::new().await;
    tokio::spawn(fold(world.log.clone(), world.store.clone()));
    let ctx = world.context(START_MS);
    (world, ctx)
}

/// Applies commands to the rows of the engine and the accounts, until it is dropped.
async fn fold(log: Arc<dyn EventLog>, store: Arc<dyn ViewStore>) {
    let (heads, rows) = (store.live(&engine::VIEW).await.unwrap(), store.live(&accounts::VIEW).await.unwrap());
    let mut next = LogOffset(0);
    loop {
        for stored in log.read(&ACCOUNTS, 0, next, 100, 1 << 20).await.unwrap() {
            let fact: Fact<AccountCommand> = decode(ACCOUNTS.name, &stored.record.value).unwrap();
            let head_key = key![ACCOUNTS.name, fact.key.as_str()];
            let head = heads
                .get(&engine::HEADS, &head_key)
                .await
                .unwrap()
                .map(|bytes| HeadRow::from_bytes(&bytes).unwrap().head)
                .unwrap_or_default();
            next = stored.offset.next();
            let at = Checkpoint { positions: [("accounts/0".to_owned(), next)].into(), ..Checkpoint::default() };
            if !fact.chains(ACCOUNTS.name, &head) {
                let place = key![ACCOUNTS.name, 0_i64, stored.offset];
                heads.commit(vec![put(&engine::DROPPED, place, Vec::new())], &at).await.unwrap();
                rows.commit(Vec::new(), &at).await.unwrap();
                continue;
            }
            let head = HeadRow { head: fact.head(), gone: false, observed_at: fact.observed_at, next: LogOffset(0) }.to_bytes();
            heads.commit(vec![put(&engine::HEADS, head_key, head)], &at).await.unwrap();
            let writes = apply(rows.as_ref(), fact.data.unwrap(), fact.observed_at).await;
            rows.commit(writes, &at).await.unwrap();
        }
        log.wait_past(&ACCOUNTS, 0, next).await.unwrap();
    }
}

fn put(table: &'static Table, key: RowKey, value: Vec<u8>) -> Write {
    Write::put(table, key, Bytes::from(value))
}

fn key_of(bytes: &[u8]) -> serde_json::Result<ApiKey> {
    serde_json::from_slice(bytes).map(|row: Row| row.record)
}

async fn apply(view: &dyn View, command: AccountCommand, at_ms: i64) -> Vec<Write> {
    let put_key = |record: &ApiKey| {
        put(&accounts::KEYS, key![record.id.as_str()], serde_json::to_vec(&Row { seq: Seq(1), record: record.clone() }).unwrap())
    };
    let made = |new: &NewKey| ApiKey {
        id: new.id.clone(),
        key_hash: new.key_hash.clone(),
        account: new.account.clone(),
        tier: new.tier.clone(),
        email_hash: new.email_hash.clone(),
        minted_at: at_ms,
        ends_at: 0,
        last_used_at: 0,
        key_end: new.key_end.clone(),
    };
    let index = |new: &NewKey| {
        let by_account = put(&accounts::BY_ACCOUNT, key![new.account.as_str(), new.id.as_str()], Vec::new());
        [put(&accounts::BY_HASH, key![new.key_hash.as_str()], new.id.as_bytes().to_vec()), by_account]
    };
    let old = async |id: &str| {
        let row = view.get(&accounts::KEYS, &key![id]).await.unwrap();
        row.map(|bytes| key_of(&bytes).unwrap())
    };
    let ended = async |id: &str, ends_at: i64| ApiKey { ends_at, ..old(id).await.unwrap() };
    match command {
        // As in the projector: the first key that is minted under an id remains.
        AccountCommand::Mint(new) if old(&new.id).await.is_some() => Vec::new(),
        AccountCommand::Mint(new) => index(&new).into_iter().chain([put_key(&made(&new))]).collect(),
        AccountCommand::Rotate { key_id, overlap_s, successor } => {
            let ended = ended(&key_id, at_ms + overlap_s.unwrap_or(86_400) * 1_000).await;
            index(&successor).into_iter().chain([put_key(&ended), put_key(&made(&successor))]).collect()
        }
        AccountCommand::Revoke(key) => vec![put_key(&ended(&key.key_id, at_ms).await)],
        AccountCommand::Erase(key) => vec![put_key(&ApiKey { email_hash: String::new(), ..ended(&key.key_id, at_ms).await })],
        AccountCommand::Used { key_id } => vec![put_key(&ApiKey { last_used_at: hour_of(at_ms), ..old(&key_id).await.unwrap() })],
        AccountCommand::Suppress(given) => {
            let kind = KeyKind::from_name(&given.kind).unwrap();
            let row_key = key![kind.name, kind.normalize(&given.key).unwrap().as_str()];
            let row = SuppressionRow { key: given.key, reason: given.reason, since: at_ms };
            vec![put(&accounts::SUPPRESSIONS, row_key, serde_json::to_vec(&row).unwrap())]
        }
        AccountCommand::Item(_) | AccountCommand::Unsuppress(_) | AccountCommand::Unknown { .. } => panic!("{command:?}"),
    }
}

//! Leases, counters and stored values, changed one at a time.
//!
//! One process owns the data directory, so that a mutex makes the calls linearizable. Leases belong to tasks of this process and are held
//! in memory: they end with the process. Counters are rows in a keyspace of their own; every change is handed to the operating system
//! before the call returns, so that it survives a kill of the process. Values are rows there, too, and synced; reading one takes no lock.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fjall::{Keyspace, PersistMode};

use super::database::Core;
use super::failure::{closed, engine, lost_task, unpoisoned};
use crate::counter::{self, Counter};
use crate::store::{Coordination, Error};

/// How many counters each `add_to_counter` examines, to delete expired ones.
const SWEEP_ROWS: usize = 16;
const TABLE: &str = "coordination";
const COUNTER: u8 = b'c';
const VALUE: u8 = b'k';

/// The holder of a lease, and when it expires.
struct Lease {
    holder: String,
    until: Instant,
}

/// The coordination rows of an embedded store.
#[derive(Clone)]
pub(super) struct Rows {
    core: Arc<RwLock<Option<Arc<Core>>>>,
    leases: Arc<Mutex<HashMap<String, Lease>>>,
    /// Held during every read and write of a counter; contains the key after which the next sweep continues.
    sweep: Arc<Mutex<Vec<u8>>>,
}

impl Rows {
    pub(super) fn new(core: Arc<RwLock<Option<Arc<Core>>>>) -> Self {
        Self { core, leases: Arc::default(), sweep: Arc::new(Mutex::new(vec![COUNTER])) }
    }

    /// Returns the open store. A closed store has no holders.
    fn open(&self) -> Result<Arc<Core>, Error> {
        unpoisoned(self.core.read()).clone().ok_or_else(closed)
    }

    /// Runs a change on a thread that may block on the disk. The change completes even if the caller is cancelled.
    async fn run<T, F>(&self, change: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Core, &mut Vec<u8>) -> Result<T, Error> + Send + 'static,
    {
        let rows = self.clone();
        tokio::task::spawn_blocking(move || {
            let core = rows.open()?;
            let mut sweep = unpoisoned(rows.sweep.lock());
            change(&core, &mut sweep)
        })
        .await
        .map_err(lost_task)?
    }
}

#[async_trait]
impl Coordination for Rows {
    async fn lease(&self, name: &str, holder: &str, ttl: Duration) -> Result<bool, Error> {
        self.open()?;
        let (mut leases, now) = (unpoisoned(self.leases.lock()), Instant::now());
        if leases.get(name).is_some_and(|lease| lease.until > now && lease.holder != holder) {
            return Ok(false);
        }
        leases.insert(name.to_owned(), Lease { holder: holder.to_owned(), until: now + ttl });
        Ok(true)
    }

    async fn holder(&self, name: &str) -> Result<Option<String>, Error> {
        self.open()?;
        let leases = unpoisoned(self.leases.lock());
        Ok(leases.get(name).filter(|lease| lease.until > Instant::now()).map(|lease| lease.holder.clone()))
    }

    async fn release(&self, name: &str, holder: &str) -> Result<(), Error> {
        self.open()?;
        let mut leases = unpoisoned(self.leases.lock());
        if leases.get(name).is_some_and(|lease| lease.holder == holder) {
            leases.remove(name);
        }
        Ok(())
    }

    async fn add_to_counter(&self, name: &str, amount: i64, max: i64, now_ms: i64, expires_ms: i64) -> Result<i64, Error> {
        let key = row_key(COUNTER, name)?;
        self.run(move |core, sweep| {
            let (added, next) = counter::take(read_counter(&core.coordination, &key)?, amount, max, now_ms, expires_ms);
            let expired = expired(&core.coordination, sweep, now_ms, &key)?;
            if added == 0 && expired.is_empty() {
                return Ok(0);
            }
            write(core, PersistMode::Buffer, |batch| {
                for key in expired {
                    batch.remove(&core.coordination, key);
                }
                match next {
                    _ if added == 0 => {}
                    None => batch.remove(&core.coordination, key),
                    Some(Counter { expires_ms, used }) => {
                        let mut value = expires_ms.to_be_bytes().to_vec();
                        value.extend_from_slice(&used.to_be_bytes());
                        batch.insert(&core.coordination, key, value);
                    }
                }
            })?;
            Ok(added)
        })
        .await
    }

    async fn value(&self, name: &str) -> Result<Option<String>, Error> {
        // Reads without the lock, concurrently with changes: a visible value is synced, and every webhook message reads one.
        read_value(&self.open()?.coordination, &row_key(VALUE, name)?)
    }

    async fn store_if_absent(&self, name: &str, value: &str) -> Result<String, Error> {
        if let Some(stored) = self.value(name).await? {
            return Ok(stored);
        }
        let (key, value) = (row_key(VALUE, name)?, value.to_owned());
        self.run(move |core, _| {
            if let Some(stored) = read_value(&core.coordination, &key)? {
                return Ok(stored);
            }
            write(core, PersistMode::SyncAll, |batch| batch.insert(&core.coordination, key, value.as_str()))?;
            Ok(value)
        })
        .await
    }

    async fn store(&self, name: &str, value: &str) -> Result<(), Error> {
        let (key, value) = (row_key(VALUE, name)?, value.to_owned());
        self.run(move |core, _| write(core, PersistMode::SyncAll, |batch| batch.insert(&core.coordination, key, value))).await
    }

    async fn compare_and_store(&self, name: &str, current: Option<&str>, value: &str) -> Result<bool, Error> {
        let (key, current, value) = (row_key(VALUE, name)?, current.map(str::to_owned), value.to_owned());
        self.run(move |core, _| {
            if read_value(&core.coordination, &key)? != current {
                return Ok(false);
            }
            write(core, PersistMode::SyncAll, |batch| batch.insert(&core.coordination, key, value))?;
            Ok(true)
        })
        .await
    }

    async fn values(&self) -> Result<Vec<(String, String)>, Error> {
        self.run(|core, _| {
            let rows = core.coordination.prefix([VALUE]).map(|row| {
                let (key, value) = row.into_inner().map_err(|error| engine("read", TABLE, error))?;
                Ok((text(key.get(1..).unwrap_or_default())?, text(&value)?))
            });
            rows.collect()
        })
        .await
    }
}

fn read_value(keyspace: &Keyspace, key: &[u8]) -> Result<Option<String>, Error> {
    keyspace.get(key).map_err(|error| engine("read", TABLE, error))?.map(|value| text(&value)).transpose()
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    let reason = "a row is not valid UTF-8".to_owned();
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Error::Damaged { table: TABLE.to_owned(), reason })
}

/// Examines the next few counters after the last sweep, and returns the expired ones except `but`.
fn expired(keyspace: &Keyspace, sweep: &mut Vec<u8>, now_ms: i64, but: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut out = Vec::new();
    let mut last = None;
    let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Excluded(sweep.as_slice()), Bound::Excluded(&[COUNTER + 1]));
    let mut seen = 0;
    for row in keyspace.range::<&[u8], _>(bounds).take(SWEEP_ROWS) {
        let (key, value) = row.into_inner().map_err(|error| engine("sweep", TABLE, error))?;
        seen += 1;
        if split_time(&value).is_none_or(|(expires_ms, _)| expires_ms < now_ms) && &*key != but {
            out.push(key.to_vec());
        }
        last = Some(key.to_vec());
    }
    *sweep = last.filter(|_| seen == SWEEP_ROWS).unwrap_or_else(|| vec![COUNTER]);
    Ok(out)
}

/// Writes one batch, which is handed to the operating system or synced.
fn write(core: &Core, mode: PersistMode, fill: impl FnOnce(&mut fjall::OwnedWriteBatch)) -> Result<(), Error> {
    let mut batch = core.db.batch().durability(Some(mode));
    fill(&mut batch);
    batch.commit().map_err(|error| engine("write", TABLE, error))
}

/// Reads a row: its time, and the remaining bytes.
fn read(keyspace: &Keyspace, key: &[u8]) -> Result<Option<(i64, Vec<u8>)>, Error> {
    let Some(value) = keyspace.get(key).map_err(|error| engine("read", TABLE, error))? else { return Ok(None) };
    let (at, rest) = split_time(&value).ok_or_else(damaged)?;
    Ok(Some((at, rest.to_vec())))
}

fn read_counter(keyspace: &Keyspace, key: &[u8]) -> Result<Option<Counter>, Error> {
    let Some((expires_ms, rest)) = read(keyspace, key)? else { return Ok(None) };
    let used: [u8; 8] = rest.try_into().map_err(|_| damaged())?;
    Ok(Some(Counter { expires_ms, used: i64::from_be_bytes(used) }))
}

fn split_time(value: &[u8]) -> Option<(i64, &[u8])> {
    let (time, rest) = value.split_first_chunk::<8>()?;
    Some((i64::from_be_bytes(*time), rest))
}

fn damaged() -> Error {
    Error::Damaged { table: TABLE.to_owned(), reason: "a row is too short".to_owned() }
}

fn row_key(kind: u8, name: &str) -> Result<Vec<u8>, Error> {
    const NAME_BYTES_MAX: usize = 4_096;
    if name.len() > NAME_BYTES_MAX {
        return Err(Error::Unavailable {
            what: format!("a coordination row's name is {} bytes long, {NAME_BYTES_MAX} at most", name.len()),
            source: None,
        });
    }
    let mut key = Vec::with_capacity(name.len() + 1);
    key.push(kind);
    key.extend_from_slice(name.as_bytes());
    Ok(key)
}

//! Leases, counters and stored values, changed one at a time.
//!
//! One process owns the data directory, so that a mutex makes the calls linearizable. Leases belong to tasks of this process and are held
//! in memory: they end with the process. They count real time instead of the configured clock, because under a fixed clock no lease would end. Counters are
//! rows in a keyspace of their own; every change is handed to the operating system before the call returns, so that it survives a kill of the process. While
//! the disk is full they are counted in memory, so that callers are still answered. Values are files of their own (`values.rs`).

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fjall::{Keyspace, PersistMode};

use super::database::{Batch, Core};
use super::failure::{closed, engine, lost_task, unpoisoned};
use super::names::COORDINATION;
use super::seal::Seal;
use super::values::Values;
use crate::counter::{self, Counter};
use crate::store::{Coordination, Error};

/// How many counters each `add_to_counter` examines, to delete expired ones.
const SWEEP_ROWS: usize = 16;
/// How many counters are held in memory while the disk is full.
const UNWRITTEN_MAX: usize = 100_000;
const COUNTER: u8 = b'c';

/// The holder of a lease, and when it expires.
struct Lease {
    holder: String,
    until: Instant,
}

/// The state of counting.
struct Counting {
    /// The key after which the next sweep continues.
    sweep: Vec<u8>,
    /// The counters that could not be written, because the disk is full; the rows of these keys are older.
    unwritten: HashMap<Vec<u8>, Counter>,
}

/// The coordination rows of an embedded store.
#[derive(Clone)]
pub(super) struct Rows {
    core: Arc<RwLock<Option<Arc<Core>>>>,
    leases: Arc<Mutex<HashMap<String, Lease>>>,
    /// Held during every read and write of a counter.
    counting: Arc<Mutex<Counting>>,
    values: Arc<Values>,
}

impl Rows {
    pub(super) fn new(core: Arc<RwLock<Option<Arc<Core>>>>, values: Values) -> Self {
        Self {
            core,
            leases: Arc::default(),
            counting: Arc::new(Mutex::new(Counting { sweep: vec![COUNTER], unwritten: HashMap::new() })),
            values: Arc::new(values),
        }
    }

    /// Returns the open store. A closed store has no holders.
    fn open(&self) -> Result<Arc<Core>, Error> {
        unpoisoned(self.core.read()).clone().ok_or_else(closed)
    }

    /// Reads or changes values on a thread that may block on the disk. A change completes even if the caller is cancelled.
    async fn with_values<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Values) -> Result<T, Error> + Send + 'static,
    {
        self.open()?;
        let values = Arc::clone(&self.values);
        tokio::task::spawn_blocking(move || work(&values)).await.map_err(lost_task)?
    }

    /// Runs a change on a thread that may block on the disk. The change completes even if the caller is cancelled.
    async fn run<T, F>(&self, change: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Core, &mut Counting) -> Result<T, Error> + Send + 'static,
    {
        let rows = self.clone();
        tokio::task::spawn_blocking(move || {
            let core = rows.open()?;
            let mut counting = unpoisoned(rows.counting.lock());
            change(&core, &mut counting)
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
        self.run(move |core, counting| {
            let current = match counting.unwritten.get(&key) {
                Some(counter) => Some(*counter),
                None => read_counter(&core.coordination, &key)?,
            };
            let (added, next) = counter::take(current, amount, max, now_ms, expires_ms);
            if core.options.space.as_ref().is_some_and(|space| space.check().is_err()) {
                return Ok(counting.count_in_memory(key, added, next, now_ms));
            }
            let expired = expired(&core.coordination, &mut counting.sweep, now_ms, &key)?;
            if added == 0 && expired.is_empty() {
                return Ok(0);
            }
            let mut batch = Batch::new(&core.db, PersistMode::Buffer);
            for key in expired {
                batch.remove(&core.coordination, &key);
            }
            let put = |batch: &mut Batch, key: &[u8], Counter { expires_ms, used }: Counter| {
                let mut value = expires_ms.to_be_bytes().to_vec();
                value.extend_from_slice(&used.to_be_bytes());
                batch.put_sealed(&core.coordination, Seal::new(COORDINATION), key, &value);
            };
            // The disk was full before, and has space now.
            for (other, counter) in counting.unwritten.iter().filter(|(other, _)| **other != key) {
                put(&mut batch, other, *counter);
            }
            match next {
                _ if added == 0 => {}
                None => batch.remove(&core.coordination, &key),
                Some(counter) => put(&mut batch, &key, counter),
            }
            match core.commit(batch, |_, _| ()) {
                Ok(()) => {
                    counting.unwritten.clear();
                    Ok(added)
                }
                Err(error) if core.options.space.as_ref().is_some_and(|space| space.explains(&error)) => {
                    Ok(counting.count_in_memory(key, added, next, now_ms))
                }
                Err(error) => Err(engine("write", COORDINATION, error)),
            }
        })
        .await
    }

    async fn value(&self, name: &str) -> Result<Option<String>, Error> {
        let name = name.to_owned();
        self.with_values(move |values| values.get(&name)).await
    }

    async fn store_if_absent(&self, name: &str, value: &str) -> Result<String, Error> {
        let (name, value) = (name.to_owned(), value.to_owned());
        let given = value.clone();
        let stored = self.with_values(move |values| values.change(&name, |stored| stored.is_none().then_some(value))).await?;
        Ok(stored.unwrap_or(given))
    }

    async fn store(&self, name: &str, value: &str) -> Result<(), Error> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.with_values(move |values| values.change(&name, |_| Some(value)).map(drop)).await
    }

    async fn compare_and_store(&self, name: &str, current: Option<&str>, value: &str) -> Result<bool, Error> {
        let (name, current, value) = (name.to_owned(), current.map(str::to_owned), value.to_owned());
        self.with_values(move |values| {
            let mut is_stored = false;
            values.change(&name, |stored| {
                is_stored = stored == current.as_deref();
                is_stored.then_some(value)
            })?;
            Ok(is_stored)
        })
        .await
    }

    async fn values(&self) -> Result<Vec<(String, String)>, Error> {
        self.with_values(Values::all).await
    }
}

impl Counting {
    /// Counts in memory, and returns how much was added: 0 if too many counters are in memory, so that callers are limited rather than not counted.
    fn count_in_memory(&mut self, key: Vec<u8>, added: i64, next: Option<Counter>, now_ms: i64) -> i64 {
        if self.unwritten.len() >= UNWRITTEN_MAX {
            self.unwritten.retain(|_, counter| counter.expires_ms >= now_ms);
        }
        if added == 0 || (self.unwritten.len() >= UNWRITTEN_MAX && !self.unwritten.contains_key(&key)) {
            return 0;
        }
        // Without a counter the row, if there is one, counts nothing any more.
        self.unwritten.insert(key, next.unwrap_or(Counter { expires_ms: 0, used: 0 }));
        added
    }
}

/// Examines the next few counters after the last sweep, and returns the expired ones except `but`.
fn expired(keyspace: &Keyspace, sweep: &mut Vec<u8>, now_ms: i64, but: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut out = Vec::new();
    let mut last = None;
    let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Excluded(sweep.as_slice()), Bound::Excluded(&[COUNTER + 1]));
    let mut seen = 0;
    for row in keyspace.range::<&[u8], _>(bounds).take(SWEEP_ROWS) {
        let (key, value) = row.into_inner().map_err(|error| engine("sweep", COORDINATION, error))?;
        seen += 1;
        if split_time(&value).is_none_or(|(expires_ms, _)| expires_ms < now_ms) && &*key != but {
            out.push(key.to_vec());
        }
        last = Some(key.to_vec());
    }
    *sweep = last.filter(|_| seen == SWEEP_ROWS).unwrap_or_else(|| vec![COUNTER]);
    Ok(out)
}

/// Reads a row: its time, and the remaining bytes.
fn read(keyspace: &Keyspace, key: &[u8]) -> Result<Option<(i64, Vec<u8>)>, Error> {
    let Some(value) = keyspace.get(key).map_err(|error| engine("read", COORDINATION, error))? else { return Ok(None) };
    let value = Seal::new(COORDINATION).open(key, value).ok_or_else(damaged)?;
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
    Error::Damaged {
        table: COORDINATION.to_owned(),
        reason: "a counter differs from what was written; restart the process, which rebuilds the store".to_owned(),
    }
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

//! Leases, counters and stored values by lightweight transactions: read, decide, write if the row is unchanged, otherwise try again. A
//! lease expires by the database's time to live and does not depend on this node's clock.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use scylla::value::{CqlValue, Row};
use view_store::counter::{self, Counter};
use view_store::store::{Coordination, Error};

use crate::session::{Cell, Cql, Failure, int_of, text_of};

/// The most attempts of a call. Each failed attempt means that another caller succeeded.
const ATTEMPTS_MAX: u32 = 60;
/// The longest pause between two attempts.
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(60);
/// How long the database stores a counter after its expiry: clocks of nodes differ, and tests may stop a clock.
const COUNTER_TTL_MARGIN_S: i64 = 3_600;
/// The longest time to live that CQL accepts: twenty years.
const TTL_MAX_S: i64 = 630_000_000;
/// The number of locks by name that serialize the callers of one process, so that they do not conflict with each other.
const LOCKS: usize = 64;

/// Leases, counters and values of one keyspace.
pub(crate) struct Rows {
    cql: Arc<Cql>,
    turns: [tokio::sync::Mutex<()>; LOCKS],
}

impl Rows {
    pub(crate) fn new(cql: Arc<Cql>) -> Self {
        Self { cql, turns: std::array::from_fn(|_| tokio::sync::Mutex::default()) }
    }

    async fn lock(&self, name: &str) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let turn = usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default();
        self.turns[turn].lock().await
    }

    async fn read(&self, table: &str, columns: &str, name: &str) -> Result<Option<Row>, Error> {
        let select = format!("SELECT {columns} FROM {}.{table} WHERE name = ?", self.cql.keyspace());
        Ok(self.cql.rows(&select, &[Cell::Text(name)], 1).await?.into_iter().next())
    }

    async fn counter(&self, name: &str) -> Result<Option<Counter>, Error> {
        let Some(row) = self.read("counters", "used, expires_ms", name).await? else { return Ok(None) };
        let [used, expires_ms]: [Option<CqlValue>; 2] = row.columns.try_into().map_err(|_| unexpected_columns())?;
        Ok(int_of(used).zip(int_of(expires_ms)).map(|(used, expires_ms)| Counter { expires_ms, used }))
    }
}

fn unexpected_columns() -> Error {
    Error::Damaged { table: "coordination".to_owned(), reason: "a row has other columns".to_owned() }
}

/// Whether a conditional write took effect; `None` if that is unknown.
fn is_applied(applied: Result<bool, Failure>) -> Result<Option<bool>, Error> {
    match applied {
        Ok(applied) => Ok(Some(applied)),
        Err(Failure::Unknown(_)) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

async fn pause(tries: u32) {
    tokio::time::sleep(RETRY_PAUSE_MAX.min(Duration::from_millis(u64::from(tries) * 2))).await;
}

fn contended(name: &str) -> Error {
    Error::Unavailable { what: format!("coordination row {name} is changed by others all the time"), source: None }
}

#[async_trait]
impl Coordination for Rows {
    async fn lease(&self, name: &str, holder: &str, ttl: Duration) -> Result<bool, Error> {
        let (keyspace, ttl) = (self.cql.keyspace(), lease_ttl(ttl));
        let _turn = self.lock(name).await;
        for tries in 0..ATTEMPTS_MAX {
            let applied = match self.holder(name).await? {
                Some(by) if by != holder => return Ok(false),
                Some(_) => {
                    let update = format!("UPDATE {keyspace}.leases USING TTL ? SET holder = ? WHERE name = ? IF holder = ?");
                    self.cql.applied(&update, &[ttl, Cell::Text(holder), Cell::Text(name), Cell::Text(holder)]).await
                }
                None => {
                    // An INSERT would create a row marker with a time to live of its own, which renewals do not change.
                    let update = format!("UPDATE {keyspace}.leases USING TTL ? SET holder = ? WHERE name = ? IF holder = null");
                    self.cql.applied(&update, &[ttl, Cell::Text(holder), Cell::Text(name)]).await
                }
            };
            if is_applied(applied)? == Some(true) {
                return Ok(true);
            }
            pause(tries).await;
        }
        Err(contended(name))
    }

    async fn holder(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(row) = self.read("leases", "holder", name).await? else { return Ok(None) };
        let [holder]: [Option<CqlValue>; 1] = row.columns.try_into().map_err(|_| unexpected_columns())?;
        Ok(text_of(holder))
    }

    async fn release(&self, name: &str, holder: &str) -> Result<(), Error> {
        let delete = format!("DELETE FROM {}.leases WHERE name = ? IF holder = ?", self.cql.keyspace());
        // If another process holds the lease, or none does, there is nothing to release.
        self.cql.applied(&delete, &[Cell::Text(name), Cell::Text(holder)]).await?;
        Ok(())
    }

    async fn add_to_counter(&self, name: &str, amount: i64, max: i64, now_ms: i64, expires_ms: i64) -> Result<i64, Error> {
        let keyspace = self.cql.keyspace();
        let _turn = self.lock(name).await;
        for tries in 0..ATTEMPTS_MAX {
            let current = self.counter(name).await?;
            let (added, next) = counter::take(current, amount, max, now_ms, expires_ms);
            if added == 0 {
                return Ok(0);
            }
            let applied = match (current, next) {
                (None, None) => return Ok(0),
                (None, Some(next)) => {
                    let insert =
                        format!("INSERT INTO {keyspace}.counters (name, used, expires_ms) VALUES (?, ?, ?) IF NOT EXISTS USING TTL ?");
                    let values = [Cell::Text(name), Cell::Int(next.used), Cell::Int(next.expires_ms), counter_ttl(next, now_ms)];
                    self.cql.applied(&insert, &values).await
                }
                (Some(current), Some(next)) => {
                    let update = format!(
                        "UPDATE {keyspace}.counters USING TTL ? SET used = ?, expires_ms = ? WHERE name = ? IF used = ? AND expires_ms = ?"
                    );
                    let (used, expires_ms) = (Cell::Int(current.used), Cell::Int(current.expires_ms));
                    let values =
                        [counter_ttl(next, now_ms), Cell::Int(next.used), Cell::Int(next.expires_ms), Cell::Text(name), used, expires_ms];
                    self.cql.applied(&update, &values).await
                }
                (Some(current), None) => {
                    let delete = format!("DELETE FROM {keyspace}.counters WHERE name = ? IF used = ? AND expires_ms = ?");
                    self.cql.applied(&delete, &[Cell::Text(name), Cell::Int(current.used), Cell::Int(current.expires_ms)]).await
                }
            };
            match applied {
                Ok(true) => return Ok(added),
                // Adding twice grants too little, but giving back twice would grant too much.
                Err(failure @ Failure::Unknown(_)) if amount < 0 => return Err(failure.into()),
                Ok(false) | Err(Failure::Unknown(_)) => pause(tries).await,
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(contended(name))
    }

    async fn value(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(row) = self.read("kept", "value", name).await? else { return Ok(None) };
        let [value]: [Option<CqlValue>; 1] = row.columns.try_into().map_err(|_| unexpected_columns())?;
        Ok(text_of(value))
    }

    async fn store_if_absent(&self, name: &str, value: &str) -> Result<String, Error> {
        let insert = format!("INSERT INTO {}.kept (name, value) VALUES (?, ?) IF NOT EXISTS", self.cql.keyspace());
        let _turn = self.lock(name).await;
        for tries in 0..ATTEMPTS_MAX {
            if let Some(stored) = self.value(name).await? {
                return Ok(stored);
            }
            if is_applied(self.cql.applied(&insert, &[Cell::Text(name), Cell::Text(value)]).await)? == Some(true) {
                return Ok(value.to_owned());
            }
            pause(tries).await;
        }
        Err(contended(name))
    }

    async fn store(&self, name: &str, value: &str) -> Result<(), Error> {
        let keyspace = self.cql.keyspace();
        let update = format!("UPDATE {keyspace}.kept SET value = ? WHERE name = ? IF value = ?");
        for tries in 0..ATTEMPTS_MAX {
            let current = self.store_if_absent(name, value).await?;
            let values = [Cell::Text(value), Cell::Text(name), Cell::Text(&current)];
            if current == value || is_applied(self.cql.applied(&update, &values).await)? == Some(true) {
                return Ok(());
            }
            pause(tries).await;
        }
        Err(contended(name))
    }

    async fn compare_and_store(&self, name: &str, current: Option<&str>, value: &str) -> Result<bool, Error> {
        let keyspace = self.cql.keyspace();
        let (insert, update) = (
            format!("INSERT INTO {keyspace}.kept (name, value) VALUES (?, ?) IF NOT EXISTS"),
            format!("UPDATE {keyspace}.kept SET value = ? WHERE name = ? IF value = ?"),
        );
        let _turn = self.lock(name).await;
        for tries in 0..ATTEMPTS_MAX {
            let applied = match current {
                None => self.cql.applied(&insert, &[Cell::Text(name), Cell::Text(value)]).await,
                Some(current) => self.cql.applied(&update, &[Cell::Text(value), Cell::Text(name), Cell::Text(current)]).await,
            };
            if let Some(applied) = is_applied(applied)? {
                // An earlier attempt whose result is unknown may have stored it.
                return Ok(applied || tries > 0 && self.value(name).await?.as_deref() == Some(value));
            }
            pause(tries).await;
        }
        Err(contended(name))
    }

    async fn values(&self) -> Result<Vec<(String, String)>, Error> {
        let select = format!("SELECT name, value FROM {}.kept ", self.cql.keyspace());
        let pair = |row: Row| {
            let [name, value]: [Option<CqlValue>; 2] = row.columns.try_into().map_err(|_| unexpected_columns())?;
            text_of(name).zip(text_of(value)).ok_or_else(unexpected_columns)
        };
        self.cql.rows(&select, &[], usize::MAX).await?.into_iter().map(pair).collect()
    }
}

/// Returns the time to live of a lease. The database counts whole seconds, including the current one.
fn lease_ttl(ttl: Duration) -> Cell<'static> {
    let ttl_s = i64::try_from(ttl.as_secs()).unwrap_or(TTL_MAX_S).saturating_add(2).min(TTL_MAX_S);
    Cell::Small(i32::try_from(ttl_s).unwrap_or(i32::MAX))
}

/// Returns the time to live of a counter.
fn counter_ttl(counter: Counter, now_ms: i64) -> Cell<'static> {
    let rest_s = counter.expires_ms.saturating_sub(now_ms) / 1_000;
    let ttl_s = rest_s.saturating_add(COUNTER_TTL_MARGIN_S).clamp(1, TTL_MAX_S);
    Cell::Small(i32::try_from(ttl_s).unwrap_or(i32::MAX))
}

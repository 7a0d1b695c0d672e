//! The view store on a CQL database: ScyllaDB, or any other with lightweight transactions. Any number of processes share a keyspace.
//!
//! An acknowledged commit is on a quorum of replicas, rows before the checkpoint. Late or repeated writes change nothing, because every
//! write has the position of its cause as its timestamp. Generations, leases and counters change only by lightweight transactions.
//! README.md describes the path of one row.

mod checkpoint;
mod coordination;
mod generations;
mod options;
mod poll_schedule;
mod scan;
mod session;
mod tables;
mod tls;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use schemas::tables::ViewDef;
use view_store::store::{Coordination, Error, View, ViewStore};

use self::generations::Generations;
pub use self::options::Options;
use self::session::{Cell, Cql, Failure, int_of, text_of, unpoisoned};
pub use self::tables::{definition, own_definitions};
use self::view::ScyllaView;

/// The version of everything in a keyspace.
const SCHEMA_VERSION: u32 = 1;

/// The timeout of the readiness check.
const READY_MAX: Duration = Duration::from_secs(2);

/// The generations of one view that this process holds.
#[derive(Default)]
struct Slot {
    live: Option<Arc<ScyllaView>>,
    rebuilt: Option<Arc<ScyllaView>>,
}

/// The view store on a CQL database.
pub struct ScyllaStore {
    cql: Arc<Cql>,
    drop_after: Duration,
    lease_length: Duration,
    clock_offset_ms: i64,
    slots: RwLock<HashMap<&'static str, Slot>>,
    /// Recently replaced generations: (view, generation). Their tables are dropped after [`Options::drop_after`].
    in_grace: Arc<RwLock<HashSet<(&'static str, u64)>>>,
    /// Held while generations are opened, created or swapped.
    changing: tokio::sync::Mutex<()>,
    coordination: coordination::Rows,
}

impl ScyllaStore {
    /// Connects, and creates the keyspace and the tables outside of views where they are missing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if no contact point answers within some seconds, the credentials are refused, an option is invalid, or the
    /// keyspace was created by a newer program.
    pub async fn open(options: Options) -> Result<Arc<Self>, Error> {
        check(&options)?;
        let cql = Arc::new(Cql::connect(&options).await?);
        make_keyspace(&cql, &options).await?;
        Ok(Arc::new(Self {
            coordination: coordination::Rows::new(Arc::clone(&cql)),
            cql,
            drop_after: options.drop_after,
            lease_length: options.lease_length,
            clock_offset_ms: options.clock_offset_ms,
            slots: RwLock::default(),
            in_grace: Arc::default(),
            changing: tokio::sync::Mutex::default(),
        }))
    }

    fn late(&self) -> Error {
        let what = format!("the CQL database at {} does not answer within {} s", self.cql.place(), READY_MAX.as_secs());
        Error::Unavailable { what, source: None }
    }

    fn cached_live(&self, def: &'static ViewDef) -> Option<Arc<ScyllaView>> {
        unpoisoned(self.slots.read()).get(def.name)?.live.clone().filter(|view| !view.is_ended())
    }

    /// Returns the row of a view and its live generation; the caller holds `changing`.
    async fn open_live(&self, def: &'static ViewDef) -> Result<(Generations, Arc<ScyllaView>), Error> {
        let row = loop {
            if let Some(row) = generations::read(&self.cql, def.name).await? {
                break row;
            }
            // The tables are created before the row, so that readers of the row find them.
            generations::make_tables(&self.cql, def, 1).await?;
            generations::begin(&self.cql, def.name).await?;
        };
        if let Some(view) = self.cached_live(def).filter(|view| view.generation() == row.live) {
            return Ok((row, view));
        }
        // A newer program may have a table that this generation does not have yet.
        generations::make_tables(&self.cql, def, row.live).await?;
        let view = ScyllaView::new(&self.cql, def, row.live);
        let replaced = unpoisoned(self.slots.write()).entry(def.name).or_default().live.replace(Arc::clone(&view));
        if let Some(replaced) = replaced {
            replaced.retire();
        }
        Ok((row, view))
    }

    /// Drops generations that no row names and that no reader of this process may still hold.
    async fn drop_leftovers(&self, def: &'static ViewDef, row: Generations) -> Result<(), Error> {
        for generation in generations::with_tables(&self.cql, def).await? {
            let is_needed =
                row.holds(generation) || generation > row.last || unpoisoned(self.in_grace.read()).contains(&(def.name, generation));
            if !is_needed {
                generations::drop_tables(&self.cql, def, generation).await?;
            }
        }
        Ok(())
    }

    /// Drops a replaced generation after [`Options::drop_after`]. If the process ends before, the next rebuild does it.
    fn drop_later(&self, def: &'static ViewDef, generation: u64, view: Option<Arc<ScyllaView>>) {
        unpoisoned(self.in_grace.write()).insert((def.name, generation));
        let (cql, in_grace, after) = (Arc::clone(&self.cql), Arc::clone(&self.in_grace), self.drop_after);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            unpoisoned(in_grace.write()).remove(&(def.name, generation));
            if cql.is_closed() {
                return;
            }
            if let Some(view) = view {
                view.set_dropped();
            }
            if let Err(error) = generations::drop_tables(&cql, def, generation).await {
                let error = schemas::reason::reason(&error);
                tracing::warn!(view = def.name, generation, error, "cannot drop an old generation, the next rebuild will");
            }
        });
    }
}

/// Refuses options that no database would accept, with a clear message.
fn check(options: &Options) -> Result<(), Error> {
    let name = options.keyspace.as_bytes();
    let fits = name.len() <= 48
        && name.first().is_some_and(u8::is_ascii_lowercase)
        && name.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_');
    let refused = |what: String| Err(Error::Unavailable { what, source: None });
    if !fits {
        return refused(format!("\"{}\" is not a valid keyspace: a lower-case letter, then letters, digits, _", options.keyspace));
    }
    if options.contact_points.is_empty() {
        return refused("no contact point of the CQL database is given".to_owned());
    }
    if options.replication_factor == 0 {
        return refused("a replication factor of 0 stores nothing".to_owned());
    }
    Ok(())
}

async fn make_keyspace(cql: &Cql, options: &Options) -> Result<(), Error> {
    let keyspace = &options.keyspace;
    let there = cql.rows("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?", &[Cell::Text(keyspace)], 1).await?;
    if there.is_empty() {
        let create = format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': {}}}",
            options.replication_factor
        );
        // ScyllaDB's tablets support lightweight transactions only in its newest releases, and other databases do not know the option.
        match cql.define(&format!("{create} AND tablets = {{'enabled': false}}")).await {
            Ok(()) => {}
            Err(Failure::Other(error)) if cql.is_closed() => return Err(error),
            Err(_) => cql.define(&create).await?,
        }
        cql.refresh().await?;
    }
    let there = generations::table_names(cql).await?;
    let prefix = format!("{keyspace}.");
    // `meta` is created and checked first, so that nothing is changed in a keyspace of a newer program.
    for (name, columns, _) in &tables::OWN {
        if !there.contains(*name) {
            cql.define(&tables::create_own(&prefix, name, columns)).await?;
        }
        if *name == "meta" {
            check_version(cql).await?;
        }
    }
    Ok(())
}

async fn check_version(cql: &Cql) -> Result<(), Error> {
    let keyspace = cql.keyspace();
    let insert = format!("INSERT INTO {keyspace}.meta (name, value) VALUES ('schema_version', ?) IF NOT EXISTS");
    let version = SCHEMA_VERSION.to_string();
    cql.applied(&insert, &[Cell::Text(&version)]).await?;
    let select = format!("SELECT value FROM {keyspace}.meta WHERE name = 'schema_version'");
    let row = cql.rows(&select, &[], 1).await?.into_iter().next();
    let stored = row.and_then(|row| text_of(row.columns.into_iter().next().flatten())).unwrap_or_default();
    match stored.parse::<u32>() {
        Ok(SCHEMA_VERSION) => Ok(()),
        Ok(newer) if newer > SCHEMA_VERSION => Err(Error::Unavailable {
            what: format!(
                "keyspace {keyspace} has schema version {newer}, this program knows {SCHEMA_VERSION}: use a newer program, or another keyspace"
            ),
            source: None,
        }),
        _ => Err(Error::Damaged { table: "meta".to_owned(), reason: format!("the schema version of keyspace {keyspace} is \"{stored}\"") }),
    }
}

#[async_trait]
impl ViewStore for ScyllaStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn lease_length(&self) -> Duration {
        self.lease_length
    }

    async fn live(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        if let Some(view) = self.cached_live(def) {
            return Ok(view);
        }
        let _changing = self.changing.lock().await;
        Ok(self.open_live(def).await?.1)
    }

    async fn begin_rebuild(&self, def: &'static ViewDef) -> Result<Arc<dyn View>, Error> {
        let _changing = self.changing.lock().await;
        let row = loop {
            let (row, _) = self.open_live(def).await?;
            let next = Generations { rebuilt: row.last + 1, last: row.last + 1, ..row };
            if generations::change(&self.cql, def.name, row, next).await? {
                break next;
            }
        };
        let leftover = unpoisoned(self.slots.write()).entry(def.name).or_default().rebuilt.take();
        if let Some(leftover) = leftover {
            leftover.set_dropped();
        }
        self.drop_leftovers(def, row).await?;
        generations::make_tables(&self.cql, def, row.rebuilt).await?;
        let view = ScyllaView::new(&self.cql, def, row.rebuilt);
        unpoisoned(self.slots.write()).entry(def.name).or_default().rebuilt = Some(Arc::clone(&view));
        Ok(view)
    }

    async fn swap(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error> {
        let (def, generation) = (rebuilt.def(), rebuilt.generation());
        let _changing = self.changing.lock().await;
        let old = loop {
            let gone = || Error::Gone { view: def.name.to_owned(), generation };
            let row = generations::read(&self.cql, def.name).await?.ok_or_else(gone)?;
            if row.live == generation {
                return Ok(());
            }
            if row.rebuilt != generation {
                return Err(gone());
            }
            if generations::change(&self.cql, def.name, row, Generations { live: generation, rebuilt: 0, ..row }).await? {
                break row.live;
            }
        };
        let replaced = {
            let mut slots = unpoisoned(self.slots.write());
            let slot = slots.entry(def.name).or_default();
            let rebuilt = slot.rebuilt.take().filter(|view| view.generation() == generation);
            std::mem::replace(&mut slot.live, rebuilt)
        };
        if let Some(replaced) = &replaced {
            replaced.retire();
        }
        self.drop_later(def, old, replaced.filter(|view| view.generation() == old));
        Ok(())
    }

    async fn discard(&self, rebuilt: &Arc<dyn View>) -> Result<(), Error> {
        let (def, generation) = (rebuilt.def(), rebuilt.generation());
        let _changing = self.changing.lock().await;
        loop {
            let row = generations::read(&self.cql, def.name).await?;
            // A later rebuild, also of another process, drops the earlier one by itself.
            let Some(row) = row.filter(|row| row.rebuilt == generation) else { return Ok(()) };
            if generations::change(&self.cql, def.name, row, Generations { rebuilt: 0, ..row }).await? {
                break;
            }
        }
        let discarded =
            unpoisoned(self.slots.write()).get_mut(def.name).and_then(|slot| slot.rebuilt.take_if(|view| view.generation() == generation));
        if let Some(discarded) = discarded {
            discarded.set_dropped();
        }
        generations::drop_tables(&self.cql, def, generation).await
    }

    fn coordination(&self) -> &dyn Coordination {
        &self.coordination
    }

    async fn ready(&self) -> Result<(), Error> {
        // Any row will do; this one is small and local.
        let query = generations::read(&self.cql, "any");
        tokio::time::timeout(READY_MAX, query).await.map_err(|_| self.late())?.map(|_| ())
    }

    async fn now_ms(&self) -> Result<Option<i64>, Error> {
        let select = "SELECT toUnixTimestamp(now()) FROM system.local";
        let query = self.cql.rows(select, &[], 1);
        let row = tokio::time::timeout(READY_MAX, query).await.map_err(|_| self.late())??.into_iter().next();
        let now_ms = row.and_then(|row| int_of(row.columns.into_iter().next().flatten()));
        let none =
            || Error::Unavailable { what: format!("the CQL database at {} does not say what time it is", self.cql.place()), source: None };
        now_ms.map(|now_ms| Some(now_ms.saturating_add(self.clock_offset_ms))).ok_or_else(none)
    }

    async fn close(&self) -> Result<(), Error> {
        if self.cql.is_closed() {
            return Ok(());
        }
        let _changing = self.changing.lock().await;
        self.cql.close();
        let slots: Vec<Slot> = unpoisoned(self.slots.write()).drain().map(|(_, slot)| slot).collect();
        for view in slots.iter().flat_map(|slot| [&slot.live, &slot.rebuilt]).flatten() {
            view.retire();
        }
        Ok(())
    }
}

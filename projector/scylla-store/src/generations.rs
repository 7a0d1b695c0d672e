//! Which generation of a view is live, and the tables of each. Changed only by lightweight transactions: of two processes that swap or
//! rebuild at the same time, one succeeds and the other gets an error.

use std::collections::BTreeSet;

use schemas::tables::ViewDef;
use view_store::store::Error;

use crate::checkpoint::{self, number};
use crate::session::{Cell, Cql, Failure, int_of, text_of};
use crate::tables;

/// The row of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generations {
    /// The generation that readers get.
    pub(crate) live: u64,
    /// The generation that is being rebuilt; 0 for none.
    pub(crate) rebuilt: u64,
    /// The highest number that was assigned.
    pub(crate) last: u64,
}

impl Generations {
    /// Whether a generation may still get commits.
    pub(crate) fn holds(&self, generation: u64) -> bool {
        self.live == generation || self.rebuilt == generation
    }
}

/// Reads the row of a view; `None` before its first generation.
pub(crate) async fn read(cql: &Cql, view: &str) -> Result<Option<Generations>, Error> {
    let select = format!("SELECT live, rebuilt, last FROM {}.generations WHERE view_name = ?", cql.keyspace());
    let Some(row) = cql.rows(&select, &[Cell::Text(view)], 1).await?.into_iter().next() else { return Ok(None) };
    let mut numbers = row.columns.into_iter().map(|column| int_of(column).and_then(|number| u64::try_from(number).ok()));
    match (numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten()) {
        (Some(live), Some(rebuilt), Some(last)) => Ok(Some(Generations { live, rebuilt, last })),
        _ => Err(Error::Damaged { table: "generations".to_owned(), reason: format!("the row of view {view} is incomplete") }),
    }
}

/// Creates the row of a view with generation 1, unless there is one.
pub(crate) async fn begin(cql: &Cql, view: &str) -> Result<(), Failure> {
    let insert = format!("INSERT INTO {}.generations (view_name, live, rebuilt, last) VALUES (?, 1, 0, 1) IF NOT EXISTS", cql.keyspace());
    cql.applied(&insert, &[Cell::Text(view)]).await.map(|_| ())
}

/// Changes the row of a view if it is unchanged since it was read, and returns whether it was.
pub(crate) async fn change(cql: &Cql, view: &str, from: Generations, to: Generations) -> Result<bool, Failure> {
    let update = format!(
        "UPDATE {}.generations SET live = ?, rebuilt = ?, last = ? WHERE view_name = ? IF live = ? AND rebuilt = ? AND last = ?",
        cql.keyspace()
    );
    let column = |generation| number(generation).map_err(Failure::Other);
    let (to_live, to_rebuilt, to_last) = (column(to.live)?, column(to.rebuilt)?, column(to.last)?);
    let (live, rebuilt, last) = (column(from.live)?, column(from.rebuilt)?, column(from.last)?);
    cql.applied(&update, &[to_live, to_rebuilt, to_last, Cell::Text(view), live, rebuilt, last]).await
}

/// Returns the names of all tables in the keyspace.
pub(crate) async fn table_names(cql: &Cql) -> Result<BTreeSet<String>, Error> {
    let select = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
    let rows = cql.rows(select, &[Cell::Text(cql.keyspace())], usize::MAX).await?;
    Ok(rows.into_iter().filter_map(|row| text_of(row.columns.into_iter().next().flatten())).collect())
}

/// Creates the missing tables of a generation.
pub(crate) async fn make_tables(cql: &Cql, def: &ViewDef, generation: u64) -> Result<(), Error> {
    let there = table_names(cql).await?;
    let keyspace = format!("{}.", cql.keyspace());
    for table in def.tables.iter().filter(|table| !there.contains(&tables::name(table, generation))) {
        cql.define(&tables::create(&keyspace, table, generation)).await?;
    }
    Ok(())
}

/// Returns the generations of a view that have tables.
pub(crate) async fn with_tables(cql: &Cql, def: &ViewDef) -> Result<BTreeSet<u64>, Error> {
    let there = table_names(cql).await?;
    let of_table = |name: &String| def.tables.iter().find_map(|table| tables::generation_of(table, name));
    Ok(there.iter().filter_map(of_table).collect())
}

/// Drops a generation: its tables and its checkpoint.
pub(crate) async fn drop_tables(cql: &Cql, def: &ViewDef, generation: u64) -> Result<(), Error> {
    for table in def.tables {
        let name = tables::name(table, generation);
        cql.define(&format!("DROP TABLE IF EXISTS {}.{name}", cql.keyspace())).await?;
        cql.forget(&name);
    }
    Ok(checkpoint::forget(cql, def.name, generation).await?)
}

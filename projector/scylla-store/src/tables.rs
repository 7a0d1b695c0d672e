//! Tables in CQL: definitions, statements, and ranges as queries.
//!
//! A table of generation N is `<table>_gN`, with the key columns under their names and one column `value`. The definitions of generation 1
//! are checked in as `schemas/cql/highwater.cql`, for people; a test compares them with what is generated here.

use std::cmp::Ordering;

use schemas::tables::{Column, ColumnType, Datum, Key, Order, Table, TableKind, ValueKind, ViewDef};
use view_store::key::{bad_key, encode_prefix, encode_whole};
use view_store::store::{Error, Range};

use crate::session::Cell;

/// The tables outside of views: name, definition and purpose.
pub(crate) const OWN: [(&str, &str, &str); 6] = [
    (
        "meta",
        "name text,\n    value text,\n    PRIMARY KEY (name)",
        "The version of this keyspace: `schema_version` covers everything in it.",
    ),
    (
        "generations",
        "view_name text,\n    live bigint,\n    rebuilt bigint,\n    last bigint,\n    PRIMARY KEY (view_name)",
        "The live generation of each view, the one that is being rebuilt (0: none), and the highest number assigned. Changed by IF alone.",
    ),
    (
        "checkpoints",
        "view_name text,\n    generation bigint,\n    name text,\n    value text,\n    PRIMARY KEY ((view_name, generation), name)",
        "The checkpoint of each generation: `changes` (JSON) and the next offset of each `topic/partition`. Written after the rows.",
    ),
    (
        "leases",
        "name text,\n    holder text,\n    PRIMARY KEY (name)",
        "The holder of each lease, while the row exists: written with a time to live, changed by IF alone.",
    ),
    (
        "counters",
        "name text,\n    used bigint,\n    expires_ms bigint,\n    PRIMARY KEY (name)",
        "How much of each limit is used, and when that expires (milliseconds since 1970). Changed by IF alone; rows expire.",
    ),
    (
        "kept",
        "name text,\n    value text,\n    PRIMARY KEY (name)",
        "Small values that no rebuild restores: secrets that encrypt webhook URLs, the signer's memory, cosignatures. Changed by IF alone.",
    ),
];

/// Returns the definition of a table outside of views. `keyspace` ends with a dot, or is empty.
pub(crate) fn create_own(keyspace: &str, name: &str, columns: &str) -> String {
    format!("CREATE TABLE IF NOT EXISTS {keyspace}{name} (\n    {columns}\n)")
}

/// Returns the name of a table in one generation.
pub(crate) fn name(table: &Table, generation: u64) -> String {
    format!("{}_g{generation}", table.name)
}

/// Returns the generation in a table's name.
pub(crate) fn generation_of(table: &Table, name: &str) -> Option<u64> {
    name.strip_prefix(table.name)?.strip_prefix("_g")?.parse().ok()
}

/// Returns the definition of a table. `keyspace` ends with a dot, or is empty.
pub(crate) fn create(keyspace: &str, table: &Table, generation: u64) -> String {
    let mut out = format!("CREATE TABLE IF NOT EXISTS {keyspace}{} (\n", name(table, generation));
    for column in table.key {
        let ty = match column.ty {
            ColumnType::Text => "text",
            ColumnType::Int => "bigint",
        };
        out.push_str(&format!("    {} {ty},\n", column.name));
    }
    let value = match table.value {
        ValueKind::Text => "text",
        ValueKind::Bytes => "blob",
    };
    let (partition, clustering) = table.key.split_at(table.partition_columns);
    let key: Vec<String> = std::iter::once(format!("({})", names(partition))).chain(clustering.iter().map(|c| c.name.to_owned())).collect();
    out.push_str(&format!("    value {value},\n    PRIMARY KEY ({})\n)", key.join(", ")));
    if clustering.iter().any(|column| column.order == Order::Desc) {
        out.push_str(&format!(" WITH CLUSTERING ORDER BY ({})", orders(clustering, false)));
    }
    out
}

/// Returns a definition as it is checked in: of generation 1, without a keyspace, with a comment for people.
#[must_use]
pub fn definition(view: &ViewDef, table: &Table) -> String {
    let what = match table.kind {
        TableKind::Current => "current rows",
        TableKind::History => "earlier versions of rows",
        TableKind::Derived => "derived from other tables, or internal to the engine",
    };
    let value = match table.value {
        ValueKind::Text => "`value` is text, usually JSON",
        ValueKind::Bytes => "`value` is packed bytes",
    };
    format!("-- View {}: {what}; {value}.\n{};\n", view.name, create("", table, 1))
}

/// Returns the definitions of all tables outside of views, as they are checked in, by name.
#[must_use]
pub fn own_definitions() -> Vec<(&'static str, String)> {
    let text = |name, columns, what| format!("-- {what}\n{};\n", create_own("", name, columns));
    OWN.iter().map(|(name, columns, what)| (*name, text(name, columns, what))).collect()
}

/// The statements on one table of one generation.
pub(crate) struct Statements {
    table: &'static Table,
    /// Keyspace and name of the table.
    full_name: String,
    pub(crate) insert: String,
    pub(crate) delete: String,
    pub(crate) get: String,
    /// Reads the whole table.
    pub(crate) all: String,
    /// Reads the partitions whose token is above one bound and not above another.
    pub(crate) tokens: String,
}

impl Statements {
    pub(crate) fn new(keyspace: &str, table: &'static Table, generation: u64) -> Self {
        let full_name = format!("{keyspace}.{}", name(table, generation));
        let columns = names(table.key);
        let marks = vec!["?"; table.key.len() + 1].join(", ");
        let whole = equal(table.key);
        let token = format!("token({})", names(&table.key[..table.partition_columns]));
        Self {
            insert: format!("INSERT INTO {full_name} ({columns}, value) VALUES ({marks}) USING TIMESTAMP ?"),
            delete: format!("DELETE FROM {full_name} USING TIMESTAMP ? WHERE {whole}"),
            get: format!("SELECT value FROM {full_name} WHERE {whole}"),
            all: format!("SELECT {columns}, value FROM {full_name} "),
            tokens: format!("SELECT {columns}, value FROM {full_name} WHERE {token} > ? AND {token} <= ?"),
            table,
            full_name,
        }
    }

    /// Returns the query of one step of a range, which ends with `LIMIT ?`.
    pub(crate) fn step(&self, step: &Step, reverse: bool) -> String {
        let columns = self.table.key;
        let mut out = format!("SELECT {}, value FROM {} WHERE {}", names(columns), self.full_name, equal(&columns[..step.equal.len()]));
        if let Some((operator, _)) = &step.beyond {
            out.push_str(&format!(" AND {} {operator} ?", columns[step.equal.len()].name));
        }
        let clustering = &columns[self.table.partition_columns..];
        if reverse && !clustering.is_empty() {
            out.push_str(&format!(" ORDER BY {}", orders(clustering, true)));
        }
        out.push_str(" LIMIT ?");
        out
    }
}

fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}

fn equal(columns: &[Column]) -> String {
    columns.iter().map(|column| format!("{} = ?", column.name)).collect::<Vec<_>>().join(" AND ")
}

fn orders(columns: &[Column], reverse: bool) -> String {
    let order = |column: &Column| if (column.order == Order::Asc) == reverse { "DESC" } else { "ASC" };
    columns.iter().map(|column| format!("{} {}", column.name, order(column))).collect::<Vec<_>>().join(", ")
}

/// One query of a range: rows that share the leading columns and are beyond a value in the next column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) equal: Key,
    pub(crate) beyond: Option<(&'static str, Datum)>,
}

impl Step {
    /// Returns the bound values of the query, without the limit.
    pub(crate) fn cells(&self) -> Vec<Cell<'_>> {
        self.equal.iter().chain(self.beyond.as_ref().map(|(_, datum)| datum)).map(cell).collect()
    }
}

/// Returns a range as queries, in the order of reading. The columns after the prefix may have different orders, which no single comparison
/// of CQL can express. The first query therefore reads the rows that share all but the last column of the start key, the next one those
/// that share all but the last two, and so on.
pub(crate) fn steps(table: &Table, range: &Range) -> Result<Vec<Step>, Error> {
    encode_prefix(table, &range.prefix)?;
    if range.prefix.len() < table.partition_columns {
        return Err(bad_key(table, format!("a range names {} of {} partition columns", range.prefix.len(), table.partition_columns)));
    }
    if unkeyed(table, &range.prefix) {
        return Ok(Vec::new());
    }
    let whole = || vec![Step { equal: range.prefix.clone(), beyond: None }];
    let (start, inclusive) = match (&range.after, &range.from) {
        (Some(after), _) => {
            encode_whole(table, after)?;
            (after, false)
        }
        (None, Some(from)) => {
            encode_prefix(table, from)?;
            (from, true)
        }
        (None, None) => return Ok(whole()),
    };
    let shared = start.len().min(range.prefix.len());
    let mut order = table
        .key
        .iter()
        .zip(start.iter().zip(&range.prefix[..shared]))
        .fold(Ordering::Equal, |order, (column, (s, p))| order.then(if column.order == Order::Asc { s.cmp(p) } else { p.cmp(s) }));
    if range.reverse {
        order = order.reverse();
    }
    match order {
        Ordering::Less => return Ok(whole()),
        Ordering::Greater => return Ok(Vec::new()),
        Ordering::Equal if start.len() == shared && inclusive => return Ok(whole()),
        Ordering::Equal => {}
    }
    let steps = (shared..start.len()).rev().map(|at| {
        let rising = (table.key[at].order == Order::Asc) != range.reverse;
        let operator = match (rising, inclusive && at + 1 == start.len()) {
            (true, true) => ">=",
            (true, false) => ">",
            (false, true) => "<=",
            (false, false) => "<",
        };
        Step { equal: start[..at].to_vec(), beyond: Some((operator, start[at].clone())) }
    });
    Ok(steps.collect())
}

/// Whether no row can have this key: CQL accepts no empty text as a whole partition key.
pub(crate) fn unkeyed(table: &Table, key: &[Datum]) -> bool {
    table.partition_columns == 1 && matches!(key.first(), Some(Datum::Text(text)) if text.is_empty())
}

/// Returns the bound value of a key column.
pub(crate) fn cell(datum: &Datum) -> Cell<'_> {
    match datum {
        Datum::Text(text) => Cell::Text(text),
        Datum::Int(int) => Cell::Int(*int),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the generation in a table's name is read back.
    #[test]
    fn names_state_the_generation() {
        for table in schemas::views::engine::VIEW.tables {
            assert_eq!(generation_of(table, &name(table, 12)), Some(12));
        }
    }
}

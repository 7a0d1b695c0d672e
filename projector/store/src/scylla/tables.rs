//! Tables as CQL: definitions, statements, and ranges as queries.
//!
//! A table of generation N is `<table>_gN`, with the key's columns under their names and one column `value`. The definitions of
//! generation 1 are checked in under `schemas/cql/`, for people; a test holds them against what is made here.

use std::cmp::Ordering;

use schemas::tables::{Column, ColumnType, Datum, Key, Order, Table, TableKind, ValueKind, ViewDef};

use super::session::Cell;
use crate::key::{bad_key, encode_prefix, encode_whole};
use crate::store::{Error, Range};

/// What is beside the views: its name, its definition, and what it is for.
pub(super) const OWN: [(&str, &str, &str); 6] = [
    (
        "meta",
        "name text,\n    value text,\n    PRIMARY KEY (name)",
        "What this keyspace is: `schema_version`, the version of everything in it.",
    ),
    (
        "generations",
        "view_name text,\n    live bigint,\n    rebuilt bigint,\n    last bigint,\n    PRIMARY KEY (view_name)",
        "Which generation of a view is live, which one is being rebuilt (0: none), and the last number given. Changed by IF alone.",
    ),
    (
        "checkpoints",
        "view_name text,\n    generation bigint,\n    name text,\n    value text,\n    PRIMARY KEY ((view_name, generation), name)",
        "How far each generation has come: `changes` (JSON) and the next offset of each `topic/partition`. Written after the rows.",
    ),
    (
        "leases",
        "name text,\n    holder text,\n    PRIMARY KEY (name)",
        "Who may do what, while the row lives: written with a time to live, changed by IF alone.",
    ),
    (
        "counters",
        "name text,\n    used bigint,\n    expires_ms bigint,\n    PRIMARY KEY (name)",
        "How much of a limit is taken, until when it counts (milliseconds since 1970). Changed by IF alone; rows expire.",
    ),
    (
        "kept",
        "name text,\n    value text,\n    PRIMARY KEY (name)",
        "Small values that no log holds and that no rebuild brings back: what accounts' addresses are sealed with. Changed by IF alone.",
    ),
];

/// The definition of a table beside the views. `keyspace` ends with a point, or is empty.
pub(super) fn create_own(keyspace: &str, name: &str, columns: &str) -> String {
    format!("CREATE TABLE IF NOT EXISTS {keyspace}{name} (\n    {columns}\n)")
}

/// A table's name in one generation.
pub(super) fn name(table: &Table, generation: u64) -> String {
    format!("{}_g{generation}", table.name)
}

/// The generation that a table's name speaks of.
pub(super) fn generation_of(table: &Table, name: &str) -> Option<u64> {
    name.strip_prefix(table.name)?.strip_prefix("_g")?.parse().ok()
}

/// A table's definition. `keyspace` ends with a point, or is empty.
pub(super) fn create(keyspace: &str, table: &Table, generation: u64) -> String {
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

/// A definition as it is checked in: of generation 1, in no keyspace, with a line for people.
#[must_use]
pub fn definition(view: &ViewDef, table: &Table) -> String {
    let what = match table.kind {
        TableKind::Current => "rows as they stand",
        TableKind::History => "rows as they stood before",
        TableKind::Derived => "derived from the others, or of the engine alone",
    };
    let value = match table.value {
        ValueKind::Text => "`value` is text, JSON as a rule",
        ValueKind::Bytes => "`value` is packed bytes",
    };
    format!("-- View {}: {what}; {value}. Made by the program, here for people.\n{};\n", view.name, create("", table, 1))
}

/// The definitions of all tables beside the views, as they are checked in, by name.
#[must_use]
pub fn own_definitions() -> Vec<(&'static str, String)> {
    let text = |name, columns, what| format!("-- {what} Made by the program, here for people.\n{};\n", create_own("", name, columns));
    OWN.iter().map(|(name, columns, what)| (*name, text(name, columns, what))).collect()
}

/// The statements on one table of one generation.
pub(super) struct Statements {
    table: &'static Table,
    /// Keyspace and name.
    full_name: String,
    pub(super) insert: String,
    pub(super) delete: String,
    pub(super) get: String,
    /// The whole table.
    pub(super) all: String,
    /// The partitions whose token is above one bound and not above another.
    pub(super) tokens: String,
}

impl Statements {
    pub(super) fn new(keyspace: &str, table: &'static Table, generation: u64) -> Self {
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

    /// The query of one step of a range, ending in `LIMIT ?`.
    pub(super) fn step(&self, step: &Step, reverse: bool) -> String {
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

/// One query of a range: rows that share the leading columns and lie beyond a value in the next one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) equal: Key,
    pub(super) beyond: Option<(&'static str, Datum)>,
}

impl Step {
    /// What its query binds, without the limit.
    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        self.equal.iter().chain(self.beyond.as_ref().map(|(_, datum)| datum)).map(cell).collect()
    }
}

/// A range as queries, in the order of reading. The columns after the prefix may run in different directions, which no one
/// comparison of CQL follows; so first come the rows that share all but the last column of where it starts, then all but the last
/// two, and so on.
pub(super) fn steps(table: &Table, range: &Range) -> Result<Vec<Step>, Error> {
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

/// Whether no row can have this key: CQL takes no empty text for the whole of a partition key.
pub(super) fn unkeyed(table: &Table, key: &[Datum]) -> bool {
    table.partition_columns == 1 && matches!(key.first(), Some(Datum::Text(text)) if text.is_empty())
}

/// A key's value to bind.
pub(super) fn cell(datum: &Datum) -> Cell<'_> {
    match datum {
        Datum::Text(text) => Cell::Text(text),
        Datum::Int(int) => Cell::Int(*int),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Proves that the checked-in definitions are what the program makes; where they are not, they are written anew and the test fails.
    #[test]
    fn definitions_are_checked_in() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/cql");
        fs::create_dir_all(&dir).unwrap();
        let of_views = schemas::views::all().flat_map(|view| view.tables.iter().map(|table| (table.name, definition(view, table))));
        let expected: Vec<(&str, String)> = of_views.chain(own_definitions()).collect();
        let mut stale = Vec::new();
        for (name, text) in &expected {
            let path = dir.join(format!("{name}.cql"));
            if fs::read_to_string(&path).ok().as_ref() != Some(text) {
                fs::write(&path, text).unwrap();
                stale.push(format!("{name}.cql is written anew"));
            }
        }
        for entry in fs::read_dir(&dir).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            if !expected.iter().any(|(name, _)| file == format!("{name}.cql")) {
                stale.push(format!("{file} belongs to no table"));
            }
        }
        assert!(stale.is_empty(), "{stale:?}");
    }

    /// Proves that every table's name fits the 48 characters that all databases take, up to generation 9,999, and is unique.
    #[test]
    fn names_fit() {
        let mut names: Vec<&str> = OWN.iter().map(|(name, ..)| *name).collect();
        for table in schemas::views::all().flat_map(|view| view.tables) {
            assert!(name(table, 9_999).len() <= 48, "{}", table.name);
            assert_eq!(generation_of(table, &name(table, 12)), Some(12));
            names.push(table.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

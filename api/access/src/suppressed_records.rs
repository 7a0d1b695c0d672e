//! How many records a suppressed key hides, so that a misspelt key is noticed, and which key hides what one does not reach.

use std::collections::HashSet;

use operation::context::{Context, Part as _, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::suppressed_keys::{MERGED_INTO, SuppressedKeys};
use schemas::suppression::{Hides, RECORD};
use schemas::tables::{Datum, Table, TableKind, ViewDef};
use view_store::store::Span;

use crate::suppression::{ServiceViews, SuppressedKey};

/// How many rows are read at once.
const ROWS_AT_ONCE: usize = 1_000;

/// How many records of each service that is served have a version, current or earlier, of which a key hides fields. Reads every version of every record of
/// the services that the key can concern.
///
/// # Errors
/// When rows cannot be read.
pub async fn count(ctx: &Context, key: &SuppressedKey) -> Result<Vec<(&'static str, usize)>, Problem> {
    let keys = SuppressedKeys::new([(key.kind, key.normal.clone())]);
    let record = key.normal.split_once('/').filter(|_| key.kind.name == RECORD.name);
    let mut counts = Vec::new();
    for def in ServiceViews::of(ctx).0.iter().copied().filter(|def| keys.concern(def) && ctx.settings.serves(def.name)) {
        if record.is_none_or(|(service, _)| service == def.name) {
            // A service can also compare other fields with the id of a record: then it is not one row that is hidden.
            let is_by_id = def.hides.iter().filter(|hides| hides.kind.name == RECORD.name).all(|hides| hides.field == "id");
            let only = record.map(|(_, id)| id).filter(|_| is_by_id);
            counts.push((def.name, count_in(ctx, &keys, def, only).await?));
        }
    }
    Ok(counts)
}

/// How many records of a view, or whether the one with an id, lose fields.
async fn count_in(ctx: &Context, keys: &SuppressedKeys, def: &'static ViewDef, only: Option<&str>) -> Result<usize, Problem> {
    // The rows as they are stored: those that readers see lack what is compared.
    let view = ctx.store.live_to_project(def).await.map_err(store_problem)?;
    let mut ids = HashSet::new();
    for table in def.tables.iter().copied().filter(|table| table.kind != TableKind::Derived) {
        let mut scan = view.scan(table, Span { from: only.map(|id| key![id]), to: None });
        loop {
            let rows = scan.next(if only.is_some() { 1 } else { ROWS_AT_ONCE }).await.map_err(store_problem)?;
            for (row_key, row) in &rows {
                let is_hidden = keys.hide(def, row).map_err(|error| unreadable(table, &error))?.is_some();
                if let (true, Some(Datum::Text(id))) = (is_hidden, row_key.first()) {
                    ids.insert(id.clone());
                }
            }
            // Rows of one record are next to each other.
            if rows.is_empty() || only.is_some() {
                break;
            }
        }
    }
    Ok(ids.len())
}

/// The key of the record that the record of a key is a part of; `None` if it is a part of none. The other parts of that record name it and not each other, so
/// that only its key hides them.
///
/// # Errors
/// When the row cannot be read.
pub async fn merged_into(ctx: &Context, key: &SuppressedKey) -> Result<Option<String>, Problem> {
    let Some((service, id)) = key.normal.split_once('/').filter(|_| key.kind.name == RECORD.name) else { return Ok(None) };
    let is_compared = |hides: &Hides| hides.kind.name == RECORD.name && hides.field == MERGED_INTO;
    let views: &'static [&'static ViewDef] = ServiceViews::of(ctx).0;
    let is_of_service = |def: &ViewDef| def.name == service && ctx.settings.serves(def.name) && def.hides.iter().any(is_compared);
    let Some(def) = views.iter().copied().find(|def| is_of_service(def)) else { return Ok(None) };
    let Some(table) = def.tables.iter().copied().find(|table| table.kind == TableKind::Current) else { return Ok(None) };
    // The row as it is stored: the one that readers see lacks the id.
    let view = ctx.store.live_to_project(def).await.map_err(store_problem)?;
    let Some(row) = view.get(table, &key![id]).await.map_err(store_problem)? else { return Ok(None) };
    let row: serde_json::Value = serde_json::from_slice(&row).map_err(|error| unreadable(table, &error))?;
    let whole = row.pointer(&format!("/record/{MERGED_INTO}")).and_then(serde_json::Value::as_str).filter(|id| !id.is_empty());
    Ok(whole.map(|id| format!("{service}/{id}")))
}

fn unreadable(table: &Table, error: &serde_json::Error) -> Problem {
    tracing::error!(%error, table = table.name, "a row with suppressed fields cannot be read");
    Problem::new(ErrorCode::Internal, "a stored row cannot be read")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use feed::testing::accounts::world;
    use schemas::suppression::{KeyKind, PERSON, SuppressionRow};
    use schemas::tables::Write;
    use schemas::views::records::RecordTables;
    use serde_json::{Value, json};
    use view_store::{Checkpoint, ViewStore};

    use super::*;
    use crate::testing::{VIEWS, filings, labs, parts};

    /// Proves that records are counted by what they hold in any version, in each service that names persons, once each; and that a key that names
    /// nothing counts none.
    #[tokio::test]
    async fn hidden_records_are_counted() {
        let (world, ctx) = world().await;
        let ctx = Arc::into_inner(ctx).unwrap().with(ServiceViews(VIEWS));
        let row = |record: Value| Bytes::from(json!({ "seq": 1, "record": record }).to_string());
        let put = |table: &'static Table, key, record| Write::put(table, key, row(record));
        let lead = |id: &str, pi: &str| json!({ "id": id, "pi": pi });
        let labs_rows = vec![
            put(labs::TABLES.records, key!["nih:1"], lead("nih:1", "Ann Oak")),
            put(labs::TABLES.records, key!["nih:2"], lead("nih:2", "Bo Elm")),
            put(labs::TABLES.history, key!["nih:2", 7_i64], lead("nih:2", "OAK, ANN")),
            put(labs::TABLES.history, key!["nih:2", 5_i64], lead("nih:2", "OAK, ANN")),
        ];
        let trade = json!({ "id": "trade/1", "owners": [{ "name": "Ox Inc" }, { "name": "Oak Ann" }] });
        let filing_rows = vec![put(filings::TABLES.records, key!["trade/1"], trade)];
        for (view, rows) in [(labs::TABLES.view, labs_rows), (filings::TABLES.view, filing_rows)] {
            world.store.live(view).await.unwrap().commit(rows, &Checkpoint::default()).await.unwrap();
        }
        let counted = async |kind: &'static KeyKind, key: &str| {
            let key = SuppressedKey { kind, normal: kind.normalize(key).unwrap(), row: SuppressionRow::default() };
            count(&ctx, &key).await.unwrap().into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>()
        };
        assert_eq!(counted(&PERSON, "ann oak").await, [("filings", 1), ("labs", 2)]);
        assert_eq!(counted(&PERSON, "bo elm").await, [("labs", 1)]);
        assert_eq!(counted(&PERSON, "ann oaks").await, []);
        assert_eq!(counted(&RECORD, "labs/nih:2").await, [("labs", 1)]);
        assert_eq!((counted(&RECORD, "labs/nih:3").await, counted(&RECORD, "labs/nih:").await), (Vec::new(), Vec::new()));
        crate::suppression::suppress(&ctx, "person", "Ann Oak", "on request").await.unwrap();
        assert_eq!(counted(&PERSON, "ann oak").await, [("filings", 1), ("labs", 2)], "what is hidden already is counted");
    }

    /// Proves that the key of a part of a record leads to the key of that record, and other keys to none.
    #[tokio::test]
    async fn a_part_leads_to_the_whole() {
        static PARTS: [&ViewDef; 2] = [labs::TABLES.view, parts::TABLES.view];
        let (world, ctx) = world().await;
        let ctx = Arc::into_inner(ctx).unwrap().with(ServiceViews(&PARTS));
        let put = |tables: &RecordTables, record: Value| {
            let row = Bytes::from(json!({ "seq": 1, "record": record }).to_string());
            Write::put(tables.records, key![record["id"].as_str().unwrap()], row)
        };
        let rows = vec![
            put(&parts::TABLES, json!({ "id": "a:1", "mergedInto": "a:2" })),
            put(&parts::TABLES, json!({ "id": "a:2", "mergedInto": "" })),
        ];
        let of_others = vec![put(&labs::TABLES, json!({ "id": "a:1", "mergedInto": "a:2" }))];
        for (view, rows) in [(parts::TABLES.view, rows), (labs::TABLES.view, of_others)] {
            world.store.live(view).await.unwrap().commit(rows, &Checkpoint::default()).await.unwrap();
        }
        let whole = async |kind: &'static KeyKind, key: &str| {
            merged_into(&ctx, &SuppressedKey { kind, normal: key.to_owned(), row: SuppressionRow::default() }).await.unwrap()
        };
        assert_eq!(whole(&RECORD, "parts/a:1").await.as_deref(), Some("parts/a:2"));
        for (kind, key) in [(&RECORD, "parts/a:2"), (&RECORD, "parts/a:3"), (&RECORD, "labs/a:1"), (&PERSON, "parts/a:1")] {
            assert_eq!(whole(kind, key).await, None, "{key}");
        }
    }
}

//! The tables of every view on CQL: their checked-in definitions, their names, and a real node that creates them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use schemas::tables::ViewDef;
use schemas::views::{engine, trees};
use view_store::scylla::{Options, definition, own_definitions};
use view_store::store::Span;
use view_store::{Checkpoint, ScyllaStore, ViewStore};

/// Every view: the engine's own, that of the trees, and those of the services.
fn all_views() -> impl Iterator<Item = &'static ViewDef> {
    [&engine::VIEW, &trees::VIEW].into_iter().chain(services::views().iter().copied())
}

/// Proves that the checked-in definitions match what the program generates. Where they do not, they are rewritten and the test fails.
#[test]
fn definitions_are_checked_in() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/cql");
    fs::create_dir_all(&dir).unwrap();
    let of_views = all_views().flat_map(|view| view.tables.iter().map(|table| (table.name, definition(view, table))));
    let expected: Vec<(&str, String)> = of_views.chain(own_definitions()).collect();
    let mut stale = Vec::new();
    for (name, text) in &expected {
        let path = dir.join(format!("{name}.cql"));
        if fs::read_to_string(&path).ok().as_ref() != Some(text) {
            fs::write(&path, text).unwrap();
            stale.push(format!("{name}.cql was rewritten"));
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

/// Proves that the name of every table is unique and fits the 48 characters that all databases accept, up to generation 9,999.
#[test]
fn names_fit() {
    let mut names: Vec<&str> = own_definitions().into_iter().map(|(name, _)| name).collect();
    for table in all_views().flat_map(|view| view.tables) {
        assert!(format!("{}_g9999", table.name).len() <= 48, "{}", table.name);
        names.push(table.name);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Proves that the database accepts every table of every view: all names and types are valid.
#[tokio::test]
async fn all_views_are_created() {
    let Some(address) = engines::or_skip(engines::cql(), "the views on CQL") else { return };
    let options = Options {
        contact_points: vec![address],
        keyspace: engines::unique("views"),
        drop_after: Duration::from_secs(5),
        ..Options::default()
    };
    let store = ScyllaStore::open(options).await.unwrap();
    for def in all_views() {
        let view = store.live(def).await.unwrap();
        assert_eq!(view.checkpoint().await.unwrap(), Checkpoint::default());
        for table in def.tables {
            assert!(view.scan(table, Span::default()).next(10).await.unwrap().is_empty(), "{}", table.name);
        }
    }
}

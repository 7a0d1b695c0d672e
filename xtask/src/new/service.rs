//! Plans a new service: a crate with its record, rules and operations, its schema and tables, and its entry in every list. It works without changes: one
//! record per fact, filtered by stream. Cargo adds the crate to its lock file when it runs next.

use super::{Name, add_topic, braced, filled, modules, topic_of_facts};
use crate::layout::{self, Topic};
use crate::tree::{Plan, Tree};
use crate::{Error, edit};

/// The template of the schema of its changes.
const SCHEMA: &str = include_str!("../../templates/service/schema.avsc");
/// The template of the manifest of its crate.
const MANIFEST: &str = include_str!("../../templates/service/Cargo.toml.txt");
/// The templates of the sources of its crate.
const SOURCES: &[(&str, &str)] = &[
    ("lib", include_str!("../../templates/service/lib.rs.txt")),
    ("operations/filter", include_str!("../../templates/service/filter.rs.txt")),
    ("operations/mod", include_str!("../../templates/service/operations.rs.txt")),
    ("operations/watchable_feed", include_str!("../../templates/service/watchable_feed.rs.txt")),
    ("record", include_str!("../../templates/service/record.rs.txt")),
    ("rules", include_str!("../../templates/service/rules.rs.txt")),
];

/// Plans the files of a new service that reads the facts of `topic`.
///
/// # Errors
/// When the name is invalid or taken, the topic does not exist, or a file cannot be extended.
pub fn service<'a>(tree: &'a Tree, name: &str, topic: &str) -> Result<Plan<'a>, Error> {
    let crates = layout::crates(tree.must("Cargo.toml")?);
    let known =
        [modules(tree, "schemas/src/views/"), modules(tree, "projector/src/services/"), modules(tree, "services/"), crates].concat();
    let name = Name::new("a service", name, &known)?;
    let facts = topic_of_facts(tree, topic)?;
    let kinds = layout::kinds(tree.must(layout::KINDS)?);
    let kind = kinds.iter().find(|kind| kind.constant == facts.constant);
    let kind = kind.ok_or_else(|| Error::Form { path: layout::KINDS.to_owned(), reason: format!("has no kind of {}", facts.name) })?;
    let record = name.record();
    let whole = name.whole("Service", &[&record]);
    if tree.files().any(|(path, text)| path.ends_with(".avsc") && text.contains(&format!("\"name\": \"{record}Change\""))) {
        return Err(Error::Refused(format!("another service's schema is named {record}Change already")));
    }
    let changes = format!("CHANGES_{}", name.upper);
    let values = [
        ("snake", name.snake.as_str()),
        ("Camel", &whole),
        ("Title", &super::capitalised(&name.snake.replace('_', " "))),
        ("Record", &record),
        ("CHANGES", &changes),
        ("FACTS", &facts.constant),
        ("facts", &facts.name),
        ("module", &kind.module),
        ("Fact", &kind.record),
        ("topics_and_type", &braced(&[&changes, &facts.constant, "Topic"])),
        ("record_and_tables", &braced(&[&record, "TABLES"])),
    ];
    let mut plan = Plan::new(tree);
    plan.create(format!("schemas/avro/changes.{}.avsc", name.snake), filled(SCHEMA, &values))?;
    for (file, text) in SOURCES {
        plan.create(format!("services/{}/src/{file}.rs", name.snake), filled(text, &values))?;
    }
    tables(&mut plan, tree, &name)?;
    lists(&mut plan, &name, &whole)?;
    plan.create(format!("services/{}/Cargo.toml", name.snake), filled(MANIFEST, &values))?;
    let topic =
        Topic { constant: changes.clone(), name: format!("changes.{}", name.snake), kind: "Changes".to_owned(), private: false, line: 0 };
    // The documents have one row for the changes of every service.
    add_topic(&mut plan, tree, &topic, &filled("/// The @snake@ service's changes.", &values), &[])?;
    Ok(plan)
}

/// Adds the definitions of its tables in CQL: those of another service of the same form, with its own name, in the order of the views' names.
fn tables(plan: &mut Plan<'_>, tree: &Tree, name: &Name) -> Result<(), Error> {
    let text = tree.must(layout::TABLES)?;
    let mut definitions: Vec<&str> = text.trim_end().split("\n\n").collect();
    let has_table = |table: &str| text.contains(&format!("EXISTS {table}_g1 ("));
    // A new service has no ranked lists.
    let is_model = |view: &&str| has_table(&format!("{view}_terms")) && !has_table(&format!("{view}_places"));
    let model = definitions.iter().find_map(|definition| view_of(definition).filter(is_model));
    let model = model.ok_or_else(|| Error::Form { path: layout::TABLES.to_owned(), reason: "has no service of records".to_owned() })?;
    let with_name = |definition: &str| {
        let definition = definition.replacen(&format!("-- View {model}:"), &format!("-- View {}:", name.snake), 1);
        definition.replacen(&format!("EXISTS {model}"), &format!("EXISTS {}", name.snake), 1)
    };
    let of_model = definitions.iter().filter(|definition| view_of(definition) == Some(model));
    let new: Vec<String> = of_model.map(|definition| with_name(definition)).collect();
    if let Some(taken) = new.iter().filter_map(|definition| table_of(definition)).find(|table| has_table(table)) {
        return Err(Error::Refused(format!("a table named \"{taken}\" exists already")));
    }
    let next = definitions.iter().position(|definition| view_of(definition).is_some_and(|view| view > name.snake.as_str()));
    let after_last = || definitions.iter().rposition(|definition| view_of(definition).is_some()).map_or(0, |last| last + 1);
    let at = next.unwrap_or_else(after_last);
    definitions.splice(at..at, new.iter().map(String::as_str));
    plan.edit(layout::TABLES, |_| Ok(definitions.join("\n\n") + "\n"))
}

/// Returns the view that a definition belongs to. Tables outside of views have none.
fn view_of(definition: &str) -> Option<&str> {
    definition.strip_prefix("-- View ")?.split_once(':').map(|(view, _)| view)
}

/// Returns the name of the table that a definition creates, without its generation.
fn table_of(definition: &str) -> Option<&str> {
    definition.split_once("EXISTS ")?.1.split_once("_g1 (").map(|(table, _)| table)
}

/// Adds the service to every list.
fn lists(plan: &mut Plan<'_>, name: &Name, whole: &str) -> Result<(), Error> {
    let place = |items: &[&str]| items.iter().filter(|item| layout::module(item) < name.snake.as_str()).count();
    let item = format!("listed::<{0}::rules::{whole}>({0}::service)", name.snake);
    plan.edit(layout::SERVICES.0, |text| edit::item(text, layout::SERVICES.1, &item, place))?;
    let dependency = format!("{0} = {{ path = \"../{0}\" }}", name.snake);
    plan.edit(layout::SERVICES_MANIFEST, |text| edit::line(text, &dependency, layout::dependency))
}

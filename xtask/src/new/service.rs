//! Plans a new service: a crate with its record, rules and operations, its schema and tables, and its entry in every list. It works without changes: one
//! record per fact, filtered by stream.

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
    ("operations/followed", include_str!("../../templates/service/followed.rs.txt")),
    ("operations/mod", include_str!("../../templates/service/operations.rs.txt")),
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
        ("topics", &braced(&[&changes, &facts.constant])),
        ("topics_and_type", &braced(&[&changes, &facts.constant, "Topic"])),
        ("record_and_tables", &braced(&[&record, "TABLES"])),
    ];
    let mut plan = Plan::new(tree);
    plan.create(format!("schemas/avro/changes.{}.avsc", name.snake), filled(SCHEMA, &values))?;
    let manifest = filled(MANIFEST, &values);
    for (file, text) in SOURCES {
        plan.create(format!("services/{}/src/{file}.rs", name.snake), filled(text, &values))?;
    }
    tables(&mut plan, tree, &name)?;
    lists(&mut plan, &name, &whole)?;
    plan.edit(layout::LOCK, |text| edit::lock(text, &name.snake, &manifest, "services"))?;
    plan.create(format!("services/{}/Cargo.toml", name.snake), manifest)?;
    let topic =
        Topic { constant: changes.clone(), name: format!("changes.{}", name.snake), kind: "Changes".to_owned(), private: false, line: 0 };
    // The documents have one row for the changes of every service.
    add_topic(&mut plan, tree, &topic, &filled("/// The @snake@ service's changes.", &values), &[])?;
    Ok(plan)
}

/// Adds the CQL definitions of its tables: those of another service of the same form, with its own name.
fn tables(plan: &mut Plan<'_>, tree: &Tree, name: &Name) -> Result<(), Error> {
    let is_of = |text: &str, view: &str| text.starts_with(&format!("-- View {view}:"));
    let of_terms = |(path, text): (&str, &str)| {
        let view = path.strip_prefix("schemas/cql/")?.strip_suffix("_terms.cql")?;
        // A new service has no ranked lists.
        let has_lists = tree.text(&format!("schemas/cql/{view}_places.cql")).is_some();
        (is_of(text, view) && !has_lists).then(|| view.to_owned())
    };
    let model = tree.files().find_map(of_terms);
    let model = model.ok_or_else(|| Error::Form { path: "schemas/cql".to_owned(), reason: "has no service of records".to_owned() })?;
    for (path, text) in tree.files().filter(|(_, text)| is_of(text, &model)) {
        let Some(table) = path.strip_prefix("schemas/cql/").and_then(|file| file.strip_prefix(model.as_str())) else { continue };
        let text = text.replacen(&format!("-- View {model}:"), &format!("-- View {}:", name.snake), 1);
        let text = text.replacen(&format!("EXISTS {model}"), &format!("EXISTS {}", name.snake), 1);
        plan.create(format!("schemas/cql/{}{table}", name.snake), text)?;
    }
    Ok(())
}

/// Adds the service to every list.
fn lists(plan: &mut Plan<'_>, name: &Name, whole: &str) -> Result<(), Error> {
    let place = |items: &[&str]| items.iter().filter(|item| layout::module(item) < name.snake.as_str()).count();
    let item = format!("listed::<{0}::rules::{whole}>({0}::service)", name.snake);
    plan.edit(layout::SERVICES.0, |text| edit::item(text, layout::SERVICES.1, &item, place))?;
    let dependency = format!("{0} = {{ path = \"../{0}\" }}", name.snake);
    plan.edit(layout::SERVICES_MANIFEST, |text| edit::line(text, &dependency, layout::dependency))
}

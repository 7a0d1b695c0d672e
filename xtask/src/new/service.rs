//! A new service of plain records: its rows, its schema, its fold, its answers, and its place in every list. It works as written: one
//! record a fact, found by its door.

use super::{Asked, Name, add_topic, braced, filled, modules, topic_of_facts};
use crate::rooms::{self, Topic};
use crate::tree::{Plan, Tree};
use crate::{Error, edit};

/// The record and its tables.
const VIEW: &str = include_str!("../../templates/service/view.rs.txt");
/// The schema of its changes.
const SCHEMA: &str = include_str!("../../templates/service/schema.avsc");
/// What a fact means for it.
const FOLD: &str = include_str!("../../templates/service/fold.rs.txt");
/// What readers ask of it, one file each.
const ANSWERS: &[(&str, &str)] = &[
    ("mod", include_str!("../../templates/service/mod.rs.txt")),
    ("records", include_str!("../../templates/service/records.rs.txt")),
    ("filter", include_str!("../../templates/service/filter.rs.txt")),
    ("changes_since", include_str!("../../templates/service/changes_since.rs.txt")),
];

/// The files that a new service takes.
///
/// # Errors
/// When the name or the topic cannot be, or a file cannot be added to.
pub fn service<'a>(tree: &'a Tree, asked: &Asked) -> Result<Plan<'a>, Error> {
    let known =
        [modules(tree, "schemas/src/views/"), modules(tree, "projector/src/services/"), modules(tree, "api/src/services/")].concat();
    let name = Name::new("a service", &asked.name, &known)?;
    let wanted = asked.topic.as_deref().ok_or_else(|| Error::Refused("of which facts? --topic TOPIC".to_owned()))?;
    let facts = topic_of_facts(tree, wanted)?;
    let kinds = rooms::kinds(tree.must(rooms::KINDS)?);
    let kind = kinds.iter().find(|kind| kind.constant == facts.constant);
    let kind = kind.ok_or_else(|| Error::Form { path: rooms::KINDS.to_owned(), reason: format!("holds no kind of {}", facts.name) })?;
    let record = name.record();
    let whole = name.whole("Service", &[&record]);
    if tree.files().any(|(path, text)| path.ends_with(".avsc") && text.contains(&format!("\"name\": \"{record}Change\""))) {
        return Err(Error::Refused(format!("another service's changes are called {record}Change already")));
    }
    let mut uses = [
        format!("use schemas::views::{}::{};", name.snake, braced(&[&record, "TABLES"])),
        "use schemas::views::records::RecordTables;".to_owned(),
    ];
    uses.sort_unstable();
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
        ("view_uses", &uses.join("\n")),
    ];
    let mut plan = Plan::new(tree);
    plan.create(format!("schemas/src/views/{}.rs", name.snake), filled(VIEW, &values))?;
    plan.create(format!("schemas/avro/changes.{}.avsc", name.snake), filled(SCHEMA, &values))?;
    plan.create(format!("projector/src/services/{}.rs", name.snake), filled(FOLD, &values))?;
    for (file, text) in ANSWERS {
        plan.create(format!("api/src/services/{}/{file}.rs", name.snake), filled(text, &values))?;
    }
    tables(&mut plan, tree, &name)?;
    lists(&mut plan, &name, &whole)?;
    let topic =
        Topic { constant: changes.clone(), name: format!("changes.{}", name.snake), kind: "Changes".to_owned(), private: false, line: 0 };
    let rows = [
        filled("| `changes.@snake@` | what the facts mean for the @snake@ service | 1 | as a whole |", &values),
        filled("| `changes.@snake@` | the record's id | 1 | changes: what the facts mean for the @snake@ service, in one order |", &values),
    ];
    add_topic(&mut plan, tree, &topic, &filled("/// The @snake@ service's changes.", &values), [&rows[0], &rows[1]])?;
    Ok(plan)
}

/// The definitions of its tables as a person sees them: those of another service of records, under its name.
fn tables(plan: &mut Plan<'_>, tree: &Tree, name: &Name) -> Result<(), Error> {
    let is_of = |text: &str, view: &str| text.starts_with(&format!("-- View {view}:"));
    let of_terms = |(path, text): (&str, &str)| {
        let view = path.strip_prefix("schemas/cql/")?.strip_suffix("_terms.cql")?;
        is_of(text, view).then(|| view.to_owned())
    };
    let model = tree.files().find_map(of_terms);
    let model = model.ok_or_else(|| Error::Form { path: "schemas/cql".to_owned(), reason: "holds no service of records".to_owned() })?;
    for (path, text) in tree.files().filter(|(_, text)| is_of(text, &model)) {
        let Some(table) = path.strip_prefix("schemas/cql/").and_then(|file| file.strip_prefix(model.as_str())) else { continue };
        let text = text.replacen(&format!("-- View {model}:"), &format!("-- View {}:", name.snake), 1);
        let text = text.replacen(&format!("EXISTS {model}"), &format!("EXISTS {}", name.snake), 1);
        plan.create(format!("schemas/cql/{}{table}", name.snake), text)?;
    }
    Ok(())
}

/// Its place in every list.
fn lists(plan: &mut Plan<'_>, name: &Name, whole: &str) -> Result<(), Error> {
    let module = format!("pub mod {};", name.snake);
    let place = |items: &[&str]| items.iter().filter(|item| rooms::module(item) < name.snake.as_str()).count();
    plan.edit(rooms::VIEWS.0, |text| {
        let item = format!("{}::TABLES.view", name.snake);
        let with = edit::line(text, &module, super::upstream::module_line)?;
        edit::item(&with, rooms::VIEWS.1, &item, place)
    })?;
    plan.edit(rooms::FOLDS, |text| {
        let with = edit::line(text, &module, super::upstream::module_line)?;
        edit::line(&with, &format!("        $act!($crate::services::{}::{whole});", name.snake), rooms::fold)
    })?;
    plan.edit(rooms::SERVICES.0, |text| {
        let with = edit::line(text, &module, super::upstream::module_line)?;
        edit::item(&with, rooms::SERVICES.1, &format!("{}::service()", name.snake), place)
    })?;
    plan.edit(rooms::SETTINGS, |text| edit::section(text, "services", &name.snake, &[("enabled", "true"), ("base_url", "\"\"")]))
}

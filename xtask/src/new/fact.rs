//! Plans a new kind of fact: its record, schema and topic.

use super::{Name, add_topic, filled, modules};
use crate::layout::{self, Topic};
use crate::tree::{Plan, Tree};
use crate::{Error, edit};

/// The template of the record: stream and number; further fields are still to be written.
const MODULE: &str = include_str!("../../templates/fact/module.rs.txt");
/// The template of the schema.
const SCHEMA: &str = include_str!("../../templates/fact/schema.avsc");

/// Adds the files of a new kind of fact. Returns the constant of its topic.
pub(super) fn kind(plan: &mut Plan<'_>, tree: &Tree, given: &str) -> Result<String, Error> {
    let name = Name::new("a kind of fact", given, &modules(tree, "schemas/src/facts/"))?;
    let topic = Topic { constant: name.upper.clone(), name: name.snake.clone(), kind: "Facts".to_owned(), private: false, line: 0 };
    let values = [("snake", name.snake.as_str()), ("One", &name.one)];
    let is_taken = tree.files().any(|(path, text)| path.ends_with(".avsc") && text.contains(&filled("\"name\": \"@One@Event\"", &values)));
    if is_taken {
        return Err(Error::Refused(filled("another topic's schema is named @One@Event already", &values)));
    }
    plan.create(format!("schemas/src/facts/{}.rs", name.snake), filled(MODULE, &values))?;
    plan.create(format!("schemas/avro/{}.avsc", name.snake), filled(SCHEMA, &values))?;
    plan.edit(layout::KINDS, |text| {
        let with = edit::line(text, &format!("pub mod {};", name.snake), edit::module_line)?;
        let line = format!("    {}({}::{}Fact) = {};", name.one, name.snake, name.one, name.upper);
        edit::line(&with, &line, layout::kind_module)
    })?;
    let rows = [
        filled("| `@snake@` | facts: records of kind `@snake@` as upstreams published them, and runs | 4 | per key |", &values),
        filled("| `@snake@` | `STREAM/NUMBER` | 4 | facts: records of kind `@snake@` as upstreams published them, and runs |", &values),
    ];
    let comment = filled("/// Records of kind `@snake@` as upstreams published them.", &values);
    add_topic(plan, tree, &topic, &comment, &rows)?;
    Ok(topic.constant)
}

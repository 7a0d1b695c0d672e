//! A new kind of fact: its record, its schema, its topic.

use super::{Name, add_topic, filled, modules};
use crate::rooms::{self, Topic};
use crate::tree::{Plan, Tree};
use crate::{Error, edit};

/// The record: who says it, and its number there; the rest is still to be written.
const MODULE: &str = include_str!("../../templates/fact/module.rs.txt");
/// Its schema.
const SCHEMA: &str = include_str!("../../templates/fact/schema.avsc");

/// Adds the files of a new kind of fact; answers its topic's constant.
pub(super) fn kind(plan: &mut Plan<'_>, tree: &Tree, given: &str) -> Result<String, Error> {
    let name = Name::new("a kind of fact", given, &modules(tree, "schemas/src/facts/"))?;
    let topic = Topic { constant: name.upper.clone(), name: name.snake.clone(), kind: "Facts".to_owned(), private: false, line: 0 };
    let values = [("snake", name.snake.as_str()), ("One", &name.one)];
    let is_taken = tree.files().any(|(path, text)| path.ends_with(".avsc") && text.contains(&filled("\"name\": \"@One@Event\"", &values)));
    if is_taken {
        return Err(Error::Refused(filled("another topic's record is called @One@Event already", &values)));
    }
    plan.create(format!("schemas/src/facts/{}.rs", name.snake), filled(MODULE, &values))?;
    plan.create(format!("schemas/avro/{}.avsc", name.snake), filled(SCHEMA, &values))?;
    plan.edit(rooms::KINDS, |text| {
        let with = edit::line(text, &format!("pub mod {};", name.snake), super::upstream::module_line)?;
        let line = format!("    {}({}::{}Fact) = {};", name.one, name.snake, name.one, name.upper);
        edit::line(&with, &line, rooms::kind_module)
    })?;
    let rows = [
        filled("| `@snake@` | facts: records of kind `@snake@` as upstreams published them, and runs | 4 | per key |", &values),
        filled("| `@snake@` | `DOOR/NUMBER` | 4 | facts: records of kind `@snake@` as upstreams published them, and runs |", &values),
    ];
    let words = filled("/// Records of kind `@snake@` as upstreams published them.", &values);
    add_topic(plan, tree, &topic, &words, [&rows[0], &rows[1]])?;
    Ok(topic.constant)
}

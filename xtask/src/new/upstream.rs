//! A new upstream: its module, its place in THE LIST and in the settings, its tests and the pages that they read.

use super::{Asked, Name, fact, filled, modules, topic_of_facts};
use crate::tree::{Plan, Tree};
use crate::{Error, edit, rooms};

/// The module: one door, described; what it asks and maps is still to be written, and it says so.
const MODULE: &str = include_str!("../../templates/upstream/module.rs.txt");
/// The tests that every upstream owes.
const TESTS: &str = include_str!("../../templates/upstream/tests.rs.txt");
/// The pages that every upstream shows, to be filled in.
const PAGES: &[(&str, &str)] = &[
    ("ordinary", include_str!("../../templates/upstream/ordinary.json")),
    ("empty", include_str!("../../templates/upstream/empty.json")),
    ("broken", include_str!("../../templates/upstream/broken.json.txt")),
];

/// The files that a new upstream takes.
///
/// # Errors
/// When the name or the topic cannot be, or a file cannot be added to.
pub fn upstream<'a>(tree: &'a Tree, asked: &Asked) -> Result<Plan<'a>, Error> {
    let name = Name::new("an upstream", &asked.name, &modules(tree, "ingest/upstreams/src/"))?;
    let mut plan = Plan::new(tree);
    let constant = match (&asked.topic, &asked.new_topic) {
        (Some(topic), None) => topic_of_facts(tree, topic)?.constant,
        (None, Some(kind)) => fact::kind(&mut plan, tree, kind)?,
        (Some(_), Some(_)) => return Err(Error::Refused("--topic or --new-topic, not both".to_owned())),
        (None, None) => {
            return Err(Error::Refused("of which kind of fact? --topic TOPIC, or --new-topic KIND for one that is new".to_owned()));
        }
    };
    let values = [("snake", name.snake.as_str()), ("Camel", &name.whole("Upstream", &[])), ("TOPIC", &constant)];
    plan.create(format!("ingest/upstreams/src/{}.rs", name.snake), filled(MODULE, &values))?;
    plan.edit(rooms::UPSTREAMS.0, |text| {
        let with = edit::line(text, &format!("pub mod {};", name.snake), module_line)?;
        let item = filled("&@snake@::@Camel@", &values);
        edit::item(&with, rooms::UPSTREAMS.1, &item, |items| {
            items.iter().filter(|known| rooms::module(known) < name.snake.as_str()).count()
        })
    })?;
    plan.edit(rooms::SETTINGS, |text| edit::section(text, "upstreams", &name.snake, SETTINGS))?;
    plan.create(format!("ingest/upstreams/tests/upstreams/{}.rs", name.snake), filled(TESTS, &values))?;
    plan.edit("ingest/upstreams/tests/upstreams/main.rs", |text| edit::line(text, &format!("mod {};", name.snake), module_line))?;
    for (case, page) in PAGES {
        plan.create(format!("tests/fixtures/{}/{case}.json", name.snake), *page)?;
        let expected = format!("{{\n  \"stop\": \"{}: field map: is not written yet\"\n}}\n", name.snake);
        plan.create(format!("tests/fixtures/{}/{case}.expected.json", name.snake), expected)?;
    }
    Ok(plan)
}

/// Its settings. It is switched on by whoever has written it.
const SETTINGS: &[(&str, &str)] = &[
    ("enabled", "false"),
    ("base_url", "\"\""),
    ("schedule", "\"0 25 5 * * *\""),
    ("api_key", "\"\""),
    ("user_agent", "\"highwater/0.1 (public record feeds)\""),
    ("requests_per_second", "1.0"),
    ("window_days", "14"),
];

/// The module that a line declares.
pub(super) fn module_line(line: &str) -> Option<&str> {
    ["pub(crate) ", "pub "].iter().find_map(|seen| line.strip_prefix(seen)).unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';')
}

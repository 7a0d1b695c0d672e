//! Plans a new upstream: its module, its entry in THE LIST and in the settings, its tests and their fixtures.

use super::{FactTopic, Name, fact, filled, modules, topic_of_facts};
use crate::tree::{Plan, Tree};
use crate::{Error, edit, layout};

/// The template of the module: one stream with its description. Request and mapping are still to be written, and stop the stream.
const MODULE: &str = include_str!("../../templates/upstream/module.rs.txt");
/// The template of the tests that every upstream needs.
const TESTS: &str = include_str!("../../templates/upstream/tests.rs.txt");
/// The fixtures that every upstream needs, to be filled in.
const PAGES: &[(&str, &str)] = &[
    ("ordinary", include_str!("../../templates/upstream/ordinary.json")),
    ("empty", include_str!("../../templates/upstream/empty.json")),
    ("broken", include_str!("../../templates/upstream/broken.json.txt")),
];

/// Plans the files of a new upstream with facts of `topic`.
///
/// # Errors
/// When the name is invalid or taken, the topic does not exist (or exists, for a new one), or a file cannot be extended.
pub fn upstream<'a>(tree: &'a Tree, name: &str, topic: FactTopic<'_>) -> Result<Plan<'a>, Error> {
    let name = Name::new("an upstream", name, &modules(tree, "ingest/upstreams/src/"))?;
    let mut plan = Plan::new(tree);
    let constant = match topic {
        FactTopic::Existing(topic) => topic_of_facts(tree, topic)?.constant,
        FactTopic::New(kind) => fact::kind(&mut plan, tree, kind)?,
    };
    let values = [("snake", name.snake.as_str()), ("Camel", &name.whole("Upstream", &[])), ("TOPIC", &constant)];
    plan.create(format!("ingest/upstreams/src/{}.rs", name.snake), filled(MODULE, &values))?;
    plan.edit(layout::UPSTREAMS.0, |text| {
        let with = edit::line(text, &format!("pub mod {};", name.snake), edit::module_line)?;
        let item = filled("&@snake@::@Camel@", &values);
        edit::item(&with, layout::UPSTREAMS.1, &item, |items| {
            items.iter().filter(|known| layout::module(known) < name.snake.as_str()).count()
        })
    })?;
    plan.edit(layout::SETTINGS, |text| edit::section(text, "upstreams", &name.snake, SETTINGS))?;
    plan.create(format!("ingest/upstreams/tests/upstreams/{}.rs", name.snake), filled(TESTS, &values))?;
    plan.edit("ingest/upstreams/tests/upstreams/main.rs", |text| edit::line(text, &format!("mod {};", name.snake), edit::module_line))?;
    for (case, page) in PAGES {
        plan.create(format!("tests/fixtures/{}/{case}.json", name.snake), *page)?;
        let expected = format!("{{\n  \"stop\": \"{}: field map: is not written yet\"\n}}\n", name.snake);
        plan.create(format!("tests/fixtures/{}/{case}.expected.json", name.snake), expected)?;
    }
    Ok(plan)
}

/// Its settings. It is disabled until it is written.
const SETTINGS: &[(&str, &str)] = &[
    ("enabled", "false"),
    ("base_url", "\"\""),
    ("schedule", "\"0 25 5 * * *\""),
    ("api_key", "\"\""),
    ("user_agent", "\"\""),
    ("requests_per_second", "1.0"),
    ("window_days", "14"),
];

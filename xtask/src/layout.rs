//! The layout of the repository: where the lists of topics, kinds of facts, upstreams and services are, and how to read them.

use crate::Error;
use crate::tree::Tree;

/// THE LIST of upstreams.
pub const UPSTREAMS: (&str, &str) = ("ingest/upstreams/src/lib.rs", "pub static ALL: &[&dyn Upstream] =");
/// THE LIST of topics, one per line of a macro.
pub const TOPICS: &str = "schemas/src/topics.rs";
/// THE LIST of services.
pub const SERVICES: (&str, &str) = ("services/list/src/lib.rs", "fn list() -> Vec<Listed>");
/// The manifest of the crate with THE LIST of services, which depends on each.
pub const SERVICES_MANIFEST: &str = "services/list/Cargo.toml";
/// The definitions of all tables in CQL.
pub const TABLES: &str = "schemas/cql/highwater.cql";
/// The kinds of facts, one per line of a macro.
pub const KINDS: &str = "schemas/src/facts/mod.rs";
/// The default settings, which document every setting.
pub const SETTINGS: &str = "src/default.toml";
/// The table of public errors.
pub const CODES: &str = "schemas/src/error_code.rs";
/// The documents that list topics, and which topics have a row of their own in them.
pub const TOPIC_PAGES: &[(&str, HasRow)] = &[
    // One row is about the changes of every service that readers see.
    ("ops/docs/contributing/architecture.md", |topic| topic.kind != "Changes" || topic.private),
    ("ops/docs/reference/topics.md", |topic| topic.kind != "Changes" && !topic.private),
];

/// Whether a topic has a row of its own in a document.
pub type HasRow = fn(&Topic) -> bool;

/// A list found in a source text.
#[derive(Debug)]
pub struct List<'a> {
    /// The line of its opening bracket, from 1.
    pub line: usize,
    /// The byte offset after the opening bracket, and that of the closing one.
    pub(crate) open: usize,
    pub(crate) close: usize,
    /// The text between the brackets.
    pub(crate) inner: &'a str,
}

impl<'a> List<'a> {
    /// The items, each with its line.
    pub fn items(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        let (mut depth, mut line, inner) = (0_i32, self.line, self.inner);
        let parts = inner.split_inclusive(move |c: char| {
            depth += i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
            c == ',' && depth == 0
        });
        let lines = parts.map(move |part| {
            let above = part.chars().take_while(|c| c.is_whitespace()).filter(|c| *c == '\n').count();
            let item = (line + above, part.trim().trim_end_matches(','));
            line += part.matches('\n').count();
            item
        });
        lines.filter(|(_, item)| !item.is_empty())
    }
}

/// Finds the first list in brackets after `head`.
///
/// # Errors
/// When there is none.
pub fn list<'a>(text: &'a str, head: &str) -> Result<List<'a>, String> {
    let missing = || format!("has no \"{head}\"");
    let after = text.find(head).ok_or_else(missing)? + head.len();
    let rest = text.get(after..).unwrap_or_default();
    let open = after + rest.find('[').ok_or_else(missing)? + 1;
    let inner = text.get(open..).unwrap_or_default();
    let mut depth = 1;
    let end = inner.find(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth == 0
    });
    let inner = inner.get(..end.ok_or_else(missing)?).unwrap_or_default();
    let line = 1 + text.get(..open).unwrap_or_default().matches('\n').count();
    Ok(List { line, open, close: open + inner.len(), inner })
}

/// Returns the module of a list item: `awards` for `&awards::Awards`, and for a service, `listed::<awards::rules::Awards>(awards::service)`.
#[must_use]
pub fn module(item: &str) -> &str {
    item.trim_start_matches('&').trim_start_matches("listed::<").split("::").next().unwrap_or_default()
}

/// Returns the name at the start of a table row.
#[must_use]
pub fn row_name(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name)
}

/// A topic, read from its line in the macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The constant's name, `GRANTS`.
    pub constant: String,
    /// The topic's name, `grants`.
    pub name: String,
    /// The variant of `TopicKind`, `Facts`.
    pub kind: String,
    /// Whether the topic is private.
    pub private: bool,
    /// The line, from 1.
    pub line: usize,
}

/// Reads a line like `GRANTS = Facts { name: "grants", partitions: 4, private: false };`, whose number is given.
#[must_use]
pub fn topic(number: usize, line: &str) -> Option<Topic> {
    let (constant, value) = line.trim().strip_suffix(" };")?.split_once(" = ")?;
    let (kind, fields) = value.split_once(" { name: \"")?;
    let (name, fields) = fields.split_once("\", partitions: ")?;
    let (_, private) = fields.split_once(", private: ")?;
    Some(Topic { constant: constant.to_owned(), name: name.to_owned(), kind: kind.to_owned(), private: private == "true", line: number })
}

/// Reads the topics, in the order of THE LIST.
///
/// # Errors
/// When there are none.
pub fn topics(tree: &Tree) -> Result<Vec<Topic>, Error> {
    let lines = tree.must(TOPICS)?.lines().enumerate();
    let topics: Vec<Topic> = lines.filter_map(|(at, line)| topic(at + 1, line)).collect();
    if topics.is_empty() {
        return Err(Error::Form { path: TOPICS.to_owned(), reason: "has no topics".to_owned() });
    }
    Ok(topics)
}

/// A kind of fact, read from its line in the macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The module of the kind, which has the topic's name.
    pub module: String,
    /// The record's type, `GrantFact`.
    pub record: String,
    /// The topic's constant, `GRANTS`.
    pub constant: String,
    /// The line, from 1.
    pub line: usize,
}

/// Returns the module of a macro line like `Grant(grants::GrantFact) = GRANTS;`.
#[must_use]
pub fn kind_module(line: &str) -> Option<&str> {
    let (variant, rest) = line.trim().strip_suffix(';')?.split_once('(')?;
    let (module, record) = rest.split_once(") = ").and_then(|(path, _)| path.split_once("::"))?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_word(variant) && is_word(module) && is_word(record)).then_some(module)
}

/// Reads the kinds of facts, in the order of the file.
#[must_use]
pub fn kinds(text: &str) -> Vec<Kind> {
    let read = |(at, line): (usize, &str)| {
        let module = kind_module(line)?;
        let (path, constant) = line.trim().strip_suffix(';')?.split_once(") = ")?;
        let (_, record) = path.split_once("::")?;
        Some(Kind { module: module.to_owned(), record: record.to_owned(), constant: constant.to_owned(), line: at + 1 })
    };
    text.lines().enumerate().filter_map(read).collect()
}

/// Returns the name of the crate on a line of a manifest that states a dependency.
#[must_use]
pub fn dependency(line: &str) -> Option<&str> {
    const OF_PACKAGE: [&str; 4] = ["edition", "license", "rust-version", "version"];
    let is_dependency = line.contains(" = { ") || line.ends_with(".workspace = true");
    line.split(['.', ' ']).next().filter(|name| is_dependency && !OF_PACKAGE.contains(name))
}

/// Reads the names of the third-party and own crates that the workspace's manifest lists.
#[must_use]
pub fn crates(manifest: &str) -> Vec<&str> {
    let section = manifest.split_once("[workspace.dependencies]\n").map_or("", |(_, rest)| rest);
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = ").map(|(name, _)| name)).collect()
}

/// Reads the codes of public errors, each with its line and status.
#[must_use]
pub fn codes(text: &str) -> Vec<(usize, &str, u16)> {
    text.lines()
        .enumerate()
        .filter_map(|(at, line)| {
            let (code, rest) = line.split_once(" = (\"")?.1.split_once("\", ")?;
            Some((at + 1, code, rest.split(',').next()?.parse().ok()?))
        })
        .collect()
}

/// Reads the section names of a group in the settings, each with its line.
#[must_use]
pub fn sections<'a>(text: &'a str, group: &str) -> Vec<(usize, &'a str)> {
    let name = |line: &'a str| line.strip_prefix('[')?.strip_suffix(']')?.strip_prefix(group)?.strip_prefix('.');
    text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, name(line)?))).collect()
}

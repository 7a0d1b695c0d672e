//! Where things are, and how THE LISTs read: topics, kinds of facts, upstreams, services, each from its source.

use crate::Error;
use crate::tree::Tree;

/// THE LIST of upstreams.
pub const UPSTREAMS: (&str, &str) = ("ingest/upstreams/src/lib.rs", "pub static ALL: &[&dyn Upstream] =");
/// THE LIST of topics.
pub const TOPICS: (&str, &str) = ("schemas/src/topics.rs", "pub const ALL: &[Topic] =");
/// Every version of every topic's schema.
pub const SCHEMAS: (&str, &str) = ("schemas/src/avro.rs", "pub const ALL: &[SchemaText] =");
/// THE LIST of services' views.
pub const VIEWS: (&str, &str) = ("schemas/src/views/mod.rs", "pub const SERVICES: &[&ViewDef] =");
/// THE LIST of services that readers reach.
pub const SERVICES: (&str, &str) = ("api/src/services/mod.rs", "pub fn all() -> Vec<Service>");
/// The kinds of facts, one a line of its macro.
pub const KINDS: &str = "schemas/src/facts/mod.rs";
/// THE LIST of services' folds, one a line of its macro.
pub const FOLDS: &str = "projector/src/services/mod.rs";
/// The manual of all settings.
pub const SETTINGS: &str = "src/default.toml";
/// The table of public errors.
pub const CODES: &str = "schemas/src/error_code.rs";
/// The pages that list topics: every one, and whether private ones are among them.
pub const TOPIC_PAGES: &[(&str, bool)] = &[("ops/docs/contributing/architecture.md", true), ("ops/docs/reference/topics.md", false)];

/// A list as it stands in a text.
#[derive(Debug)]
pub struct List<'a> {
    /// Its line, from 1.
    pub line: usize,
    /// Where it begins and ends: after the bracket that opens it, at the one that closes it.
    pub(crate) open: usize,
    pub(crate) close: usize,
    /// What stands between.
    pub(crate) inner: &'a str,
}

impl<'a> List<'a> {
    /// Its items, each with its line.
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

/// The list in brackets that comes next after `head`.
///
/// # Errors
/// When there is none.
pub fn list<'a>(text: &'a str, head: &str) -> Result<List<'a>, String> {
    let missing = || format!("holds no \"{head}\"");
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

/// The module that an item of a list is of: `awards` for `awards::service()`.
#[must_use]
pub fn module(item: &str) -> &str {
    item.trim_start_matches('&').split("::").next().unwrap_or_default()
}

/// The name that a row of a table begins with.
#[must_use]
pub fn row_name(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name)
}

/// A topic as its constant says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// `GRANTS`.
    pub constant: String,
    /// `grants`.
    pub name: String,
    /// `Facts`.
    pub kind: String,
    /// Whether readers are kept from it.
    pub private: bool,
    /// The line, from 1.
    pub line: usize,
}

/// The constants of topics, in the order of the file.
#[must_use]
pub fn topics(text: &str) -> Vec<Topic> {
    let read = |(at, line): (usize, &str)| {
        let (constant, rest) = line.strip_prefix("pub const ")?.split_once(": Topic = ")?;
        let (_, rest) = rest.split_once("name: \"")?;
        let (name, rest) = rest.split_once('"')?;
        let (_, rest) = rest.split_once("TopicKind::")?;
        let (kind, rest) = rest.split_once(',')?;
        Some(Topic {
            constant: constant.to_owned(),
            name: name.to_owned(),
            kind: kind.to_owned(),
            private: rest.contains("private: true"),
            line: at + 1,
        })
    };
    text.lines().enumerate().filter_map(read).collect()
}

/// The topics in the order of THE LIST.
///
/// # Errors
/// When the list cannot be read, or names a topic without a constant.
pub fn topics_in_order(tree: &Tree) -> Result<Vec<Topic>, Error> {
    let form = |reason| Error::Form { path: TOPICS.0.to_owned(), reason };
    let text = tree.must(TOPICS.0)?;
    let all = topics(text);
    let find = |(_, constant): (usize, &str)| {
        let found = all.iter().find(|topic| topic.constant == constant);
        found.cloned().ok_or_else(|| form(format!("{constant} is listed and is no constant")))
    };
    list(text, TOPICS.1).map_err(form)?.items().map(find).collect()
}

/// A kind of fact as its line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its module, which has the topic's name.
    pub module: String,
    /// `GrantFact`.
    pub record: String,
    /// `GRANTS`.
    pub constant: String,
    /// The line, from 1.
    pub line: usize,
}

/// The module of a kind's line, `Grant(grants::GrantFact) = GRANTS;`.
#[must_use]
pub fn kind_module(line: &str) -> Option<&str> {
    let (variant, rest) = line.trim().strip_suffix(';')?.split_once('(')?;
    let (module, record) = rest.split_once(") = ").and_then(|(path, _)| path.split_once("::"))?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_word(variant) && is_word(module) && is_word(record)).then_some(module)
}

/// The kinds of facts, in the order of the file.
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

/// The service of a line of THE LIST of folds.
#[must_use]
pub fn fold(line: &str) -> Option<&str> {
    line.trim().strip_prefix("$act!($crate::services::")?.split_once("::").map(|(module, _)| module)
}

/// The codes of public errors, each with its line and status.
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

/// The names of the sections of a group in the settings, each with its line.
#[must_use]
pub fn sections<'a>(text: &'a str, group: &str) -> Vec<(usize, &'a str)> {
    let name = |line: &'a str| line.strip_prefix('[')?.strip_suffix(']')?.strip_prefix(group)?.strip_prefix('.');
    text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, name(line)?))).collect()
}

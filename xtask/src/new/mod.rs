//! Plans the files of a new upstream or service. The files compile and pass every test, and they say what is still to be written.

mod fact;
mod service;
mod upstream;

pub use service::service;
pub use upstream::upstream;

use crate::layout::{self, Topic};
use crate::tree::Tree;
use crate::{Error, names};

/// The longest name, in characters. Tables are named after it, and table names have at most 48 characters.
const NAME_CHARS_MAX: usize = 32;
/// Types that the templates import, so that a record must not have the same name.
const TYPES: &[&str] = &[
    "Answer",
    "Arguments",
    "Call",
    "Change",
    "Changed",
    "Changes",
    "Cursor",
    "Date",
    "Definition",
    "Element",
    "Stream",
    "Fact",
    "Feed",
    "Fields",
    "Filter",
    "Item",
    "Licence",
    "Manifest",
    "Note",
    "Operation",
    "Option",
    "Page",
    "PageInfo",
    "Problem",
    "Query",
    "Read",
    "Record",
    "Records",
    "Request",
    "Result",
    "Row",
    "Rules",
    "Self",
    "Service",
    "Settings",
    "Source",
    "State",
    "String",
    "Term",
    "TermQuery",
    "Topic",
    "Undecided",
    "Upstream",
    "Vec",
    "Window",
];

/// The topic of a new upstream's facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactTopic<'a> {
    /// An existing topic.
    Existing(&'a str),
    /// A new topic, with a new kind of fact.
    New(&'a str),
}

/// A name in the forms that code uses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    /// As a module, `port_calls`.
    snake: String,
    /// As a type, `PortCalls`.
    camel: String,
    /// As a constant, `PORT_CALLS`.
    upper: String,
    /// The singular as a type, `PortCall`.
    one: String,
}

impl Name {
    /// Checks the name of a new `what`. `known` are the existing names.
    fn new(what: &str, given: &str, known: &[&str]) -> Result<Self, Error> {
        let refused = |reason: &str| {
            let hint = names::hint(given, known.iter().copied());
            Err(Error::Refused(format!("\"{given}\" cannot be the name of {what}: {reason}{hint}")))
        };
        let parts: Vec<&str> = given.split('_').collect();
        let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !parts.iter().all(is_word) || !given.starts_with(|c: char| c.is_ascii_lowercase()) {
            return refused("use lower-case letters, digits and single underscores, a letter first");
        }
        if given.len() > NAME_CHARS_MAX {
            return refused(&format!("it has more than {NAME_CHARS_MAX} characters"));
        }
        if syn::parse_str::<syn::Ident>(given).is_err() {
            return refused("it is a keyword of Rust");
        }
        if known.contains(&given) {
            return Err(Error::Refused(format!("{what} named \"{given}\" exists already")));
        }
        let camel: String = parts.iter().map(|part| capitalised(part)).collect();
        let one = match camel.strip_suffix("ies") {
            Some(stem) => format!("{stem}y"),
            None => camel.strip_suffix('s').filter(|stem| !stem.ends_with('s')).unwrap_or(&camel).to_owned(),
        };
        Ok(Self { snake: given.to_owned(), camel, upper: given.to_uppercase(), one })
    }

    /// Returns the name of the record's type. It gets a suffix if a template imports a type of the same name.
    fn record(&self) -> String {
        if TYPES.contains(&self.one.as_str()) { format!("{}Record", self.one) } else { self.one.clone() }
    }

    /// Returns the name of the service's or upstream's type. It gets the suffix `role` if a template imports a type of the same name, or if
    /// the name is in `taken`.
    fn whole(&self, role: &str, taken: &[&str]) -> String {
        let is_taken = |name: &&str| *name == self.camel;
        if TYPES.iter().chain(taken).any(is_taken) { format!("{}{role}", self.camel) } else { self.camel.clone() }
    }
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// Lists the modules of a folder: its files and folders, by name.
fn modules<'a>(tree: &'a Tree, folder: &str) -> Vec<&'a str> {
    let name = |path: &'a str| path.strip_prefix(folder).map(|rest| rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs"));
    let mut names: Vec<&str> = tree.files().filter_map(|(path, _)| name(path)).collect();
    names.dedup();
    names
}

/// Finds a topic of facts by its name.
fn topic_of_facts(tree: &Tree, name: &str) -> Result<Topic, Error> {
    let topics = layout::topics(tree)?;
    let facts = || topics.iter().filter(|topic| topic.kind == "Facts");
    facts().find(|topic| topic.name == name).cloned().ok_or_else(|| {
        let hint = names::hint(name, facts().map(|topic| topic.name.as_str()));
        let known: Vec<&str> = facts().map(|topic| topic.name.as_str()).collect();
        Error::Refused(format!("\"{name}\" is not a topic of facts ({}){hint}", known.join(", ")))
    })
}

/// Fills a template: replaces each placeholder `@name@` by the value of `name`.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

/// Joins names in braces, in the order of rustfmt.
fn braced(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    format!("{{{}}}", names.join(", "))
}

/// Returns the topics with a new one inserted in the order of THE LIST, and the topic that follows it.
fn with_topic(tree: &Tree, new: &Topic) -> Result<(Vec<Topic>, Option<Topic>), Error> {
    let mut all = layout::topics(tree)?;
    if all.iter().any(|topic| topic.name == new.name || topic.constant == new.constant) {
        return Err(Error::Refused(format!("topic \"{}\" exists already", new.name)));
    }
    let is_like = |topic: &Topic| topic.kind == new.kind && topic.private == new.private;
    let at = match all.iter().position(|topic| is_like(topic) && topic.name > new.name) {
        Some(next) => next,
        None => all.iter().rposition(is_like).map_or(all.len(), |last| last + 1),
    };
    let next = all.get(at).cloned();
    all.insert(at, new.clone());
    Ok((all, next))
}

/// Adds a topic: its line in THE LIST after its comment, and its rows in the documents that list it.
fn add_topic(plan: &mut crate::tree::Plan<'_>, tree: &Tree, new: &Topic, comment: &str, rows: &[String]) -> Result<(), Error> {
    let (all, next) = with_topic(tree, new)?;
    let order: Vec<&str> = all.iter().map(|topic| topic.name.as_str()).collect();
    let partitions = if new.kind == "Facts" { 4 } else { 1 };
    let line = format!("    {} = {} {{ name: \"{}\", partitions: {partitions}, private: false }};", new.constant, new.kind, new.name);
    plan.edit(layout::TOPICS, |text| {
        let is_next = |line: &str| layout::topic(0, line).is_some_and(|topic| next.as_ref().is_some_and(|next| topic.name == next.name));
        crate::edit::lines_before(text, &[&format!("    {comment}"), &line], is_next, |line| layout::topic(0, line).is_some())
    })?;
    for ((path, _), row) in layout::TOPIC_PAGES.iter().filter(|(_, is_listed)| is_listed(new)).zip(rows) {
        plan.edit(path, |text| crate::edit::row(text, &new.name, row, &order))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names are converted to all forms, and that invalid and existing names are refused with the nearest known one.
    #[test]
    fn name_forms() {
        let name = Name::new("a service", "port_calls", &[]).unwrap();
        assert_eq!((name.camel.as_str(), name.upper.as_str(), name.record().as_str()), ("PortCalls", "PORT_CALLS", "PortCall"));
        for (given, one) in [("bodies", "Body"), ("gas", "Ga"), ("class", "Class"), ("news2", "News2"), ("terms", "TermRecord")] {
            assert_eq!(Name::new("x", given, &[]).unwrap().record(), one, "{given}");
        }
        assert_eq!(Name::new("x", "records", &[]).unwrap().whole("Service", &[]), "RecordsService");
        let news = Name::new("x", "news2", &[]).unwrap();
        assert_eq!((news.whole("Service", &["News2"]).as_str(), news.whole("Upstream", &[]).as_str()), ("News2Service", "News2"));
        let refusal = |given: &str| Name::new("an upstream", given, &["fsis", "cpsc"]).unwrap_err().to_string();
        for bad in ["", "Fsis", "1fsis", "fs is", "fsis_", "a__b", "fsis.x", "../x", "é", "fsis\n"] {
            assert!(refusal(bad).contains("lower-case letters"), "{bad:?}: {}", refusal(bad));
        }
        assert!(refusal("Fsis").ends_with(", did you mean \"fsis\"?"));
        assert!(refusal("match").contains("keyword of Rust") && refusal(&"a".repeat(33)).contains("more than 32"));
        assert_eq!(refusal("cpsc"), "an upstream named \"cpsc\" exists already");
    }

    /// Proves that a new topic is inserted among those of its kind, and that the following topic is returned.
    #[test]
    fn topics_are_inserted_in_order() {
        let text = "topics! {\n    B = Facts { name: \"b\", partitions: 4, private: false };\n    \
            P = Commands { name: \"a\", partitions: 1, private: true };\n}\n";
        let tree = Tree::of(&[(layout::TOPICS, text)]);
        let topic =
            |name: &str| Topic { constant: name.to_uppercase(), name: name.to_owned(), kind: "Facts".to_owned(), private: false, line: 0 };
        let order = |name: &str| with_topic(&tree, &topic(name)).unwrap().0.into_iter().map(|topic| topic.name).collect::<Vec<_>>();
        assert_eq!((order("aa"), order("c")), (vec!["aa".into(), "b".into(), "a".into()], vec!["b".into(), "c".into(), "a".into()]));
        assert!(with_topic(&tree, &topic("b")).is_err());
    }
}

//! New things: what is asked for, whether it can be, and the files that it takes. What is written compiles, passes every test, and says of
//! itself what is still to be written.

mod fact;
mod service;
mod upstream;

pub use service::service;
pub use upstream::upstream;

use crate::rooms::{self, Topic};
use crate::tree::Tree;
use crate::{Error, names};

/// The longest name: tables are called after it, which have 48 characters everywhere.
const NAME_CHARS_MAX: usize = 32;
/// Words of the language, which no module may be called.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else", "enum", "extern",
    "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv",
    "pub", "ref", "return", "self", "static", "struct", "super", "test", "trait", "true", "try", "type", "typeof", "union", "unsafe",
    "unsized", "use", "virtual", "where", "while", "yield",
];
/// Types that what is written imports.
const TYPES: &[&str] = &[
    "Answer",
    "Arguments",
    "Call",
    "Change",
    "Changed",
    "Changes",
    "Cursor",
    "Date",
    "Door",
    "Fact",
    "Feed",
    "Filter",
    "Item",
    "Manifest",
    "Note",
    "Operation",
    "Option",
    "Page",
    "Place",
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
    "Topic",
    "Undecided",
    "Upstream",
    "Vec",
    "Wanted",
    "Window",
    "Words",
];

/// What is asked for: a name and options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The new thing's name.
    pub name: String,
    /// An existing topic of facts.
    pub topic: Option<String>,
    /// A new kind of fact.
    pub new_topic: Option<String>,
}

impl Asked {
    /// Reads arguments: one name, and options of `known`, each with a value.
    ///
    /// # Errors
    /// When an option is unknown, given twice or without a value, or when there is not one name.
    pub fn read(arguments: &[&str], known: &[&str]) -> Result<Self, Error> {
        let (mut asked, mut rest) = (Self::default(), arguments.iter());
        while let Some(argument) = rest.next() {
            if !argument.starts_with('-') {
                if !asked.name.is_empty() {
                    return Err(Error::Refused(format!("two names, \"{}\" and \"{argument}\"", asked.name)));
                }
                asked.name = (*argument).to_owned();
                continue;
            }
            let place = match *argument {
                option if !known.contains(&option) => {
                    let hint = names::hint(option, known.iter().copied());
                    return Err(Error::Refused(format!("unknown option \"{option}\"{hint}")));
                }
                "--new-topic" => &mut asked.new_topic,
                _ => &mut asked.topic,
            };
            let value = rest.next().filter(|value| !value.starts_with('-'));
            let value = value.ok_or_else(|| Error::Refused(format!("{argument} wants a value")))?;
            if place.replace((*value).to_owned()).is_some() {
                return Err(Error::Refused(format!("{argument} is given twice")));
            }
        }
        if asked.name.is_empty() {
            return Err(Error::Refused("a name is missing".to_owned()));
        }
        Ok(asked)
    }
}

/// A name in the forms that code has it in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    /// `port_calls`.
    snake: String,
    /// `PortCalls`.
    camel: String,
    /// `PORT_CALLS`.
    upper: String,
    /// One of them: `PortCall`.
    one: String,
}

impl Name {
    /// Reads the name of a new `what`, of which there are `known`.
    fn new(what: &str, given: &str, known: &[&str]) -> Result<Self, Error> {
        let refused = |reason: &str| {
            let hint = names::hint(given, known.iter().copied());
            Err(Error::Refused(format!("\"{given}\" cannot be the name of {what}: {reason}{hint}")))
        };
        let parts: Vec<&str> = given.split('_').collect();
        let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !parts.iter().all(is_word) || !given.starts_with(|c: char| c.is_ascii_lowercase()) {
            return refused("it takes lower-case letters, digits and single underscores, a letter first");
        }
        if given.len() > NAME_CHARS_MAX {
            return refused(&format!("it has more than {NAME_CHARS_MAX} characters"));
        }
        if KEYWORDS.contains(&given) {
            return refused("it is a word of the language");
        }
        if known.contains(&given) {
            return Err(Error::Refused(format!("{what} named \"{given}\" is there already")));
        }
        let camel: String = parts.iter().map(|part| capitalised(part)).collect();
        let one = match camel.strip_suffix("ies") {
            Some(stem) => format!("{stem}y"),
            None => camel.strip_suffix('s').filter(|stem| !stem.ends_with('s')).unwrap_or(&camel).to_owned(),
        };
        Ok(Self { snake: given.to_owned(), camel, upper: given.to_uppercase(), one })
    }

    /// The type of one of them, called otherwise where another type is called so already.
    fn record(&self) -> String {
        if TYPES.contains(&self.one.as_str()) { format!("{}Record", self.one) } else { self.one.clone() }
    }

    /// The type of the whole thing, likewise: `role` is put behind its name where that is one of `taken`, too.
    fn whole(&self, role: &str, taken: &[&str]) -> String {
        let is_taken = |name: &&str| *name == self.camel;
        if TYPES.iter().chain(taken).any(is_taken) { format!("{}{role}", self.camel) } else { self.camel.clone() }
    }
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// The modules of a folder: files and folders below it, by name.
fn modules<'a>(tree: &'a Tree, folder: &str) -> Vec<&'a str> {
    let name = |path: &'a str| path.strip_prefix(folder).map(|rest| rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs"));
    let mut names: Vec<&str> = tree.files().filter_map(|(path, _)| name(path)).collect();
    names.dedup();
    names
}

/// The topic of facts that is asked for.
fn topic_of_facts(tree: &Tree, name: &str) -> Result<Topic, Error> {
    let topics = rooms::topics_in_order(tree)?;
    let facts = || topics.iter().filter(|topic| topic.kind == "Facts");
    facts().find(|topic| topic.name == name).cloned().ok_or_else(|| {
        let hint = names::hint(name, facts().map(|topic| topic.name.as_str()));
        let known: Vec<&str> = facts().map(|topic| topic.name.as_str()).collect();
        Error::Refused(format!("\"{name}\" is none of the topics of facts ({}){hint}", known.join(", ")))
    })
}

/// A template with its marks replaced: `@name@` by the value of `name`.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (mark, value)| text.replace(&format!("@{mark}@"), value))
}

/// Names in braces as rustfmt orders them.
fn braced(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    format!("{{{}}}", names.join(", "))
}

/// The topics that are there, with a new one where THE LIST will have it; and the one that then comes next.
fn with_topic(tree: &Tree, new: &Topic) -> Result<(Vec<Topic>, Option<Topic>), Error> {
    let mut all = rooms::topics_in_order(tree)?;
    if all.iter().any(|topic| topic.name == new.name || topic.constant == new.constant) {
        return Err(Error::Refused(format!("topic \"{}\" is there already", new.name)));
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

/// Adds a topic to its list, with its schema and its rows.
fn add_topic(plan: &mut crate::tree::Plan<'_>, tree: &Tree, new: &Topic, words: &str, rows: [&str; 2]) -> Result<(), Error> {
    let (all, next) = with_topic(tree, new)?;
    let order: Vec<&str> = all.iter().map(|topic| topic.name.as_str()).collect();
    let constant = format!(
        "pub const {}: Topic = Topic {{ name: \"{}\", kind: TopicKind::{}, partitions: {}, private: false }};",
        new.constant,
        new.name,
        new.kind,
        if new.kind == "Facts" { 4 } else { 1 }
    );
    let place = |items: &[&str]| next.as_ref().and_then(|next| items.iter().position(|item| *item == next.constant)).unwrap_or(items.len());
    plan.edit(rooms::TOPICS.0, |text| {
        let is_next = |line: &str| next.as_ref().is_some_and(|next| line.starts_with(&format!("pub const {}: Topic ", next.constant)));
        let with = crate::edit::lines_before(text, &[words, &constant], is_next, |line| line.contains(": Topic = Topic {"))?;
        crate::edit::item(&with, rooms::TOPICS.1, &new.constant, place)
    })?;
    plan.edit(rooms::SCHEMAS.0, |text| {
        let item = format!("SchemaText {{ topic: \"{0}\", json: include_str!(\"../avro/{0}.avsc\") }}", new.name);
        let is_next = |item: &&str| next.as_ref().is_some_and(|next| item.contains(&format!("topic: \"{}\"", next.name)));
        crate::edit::item(text, rooms::SCHEMAS.1, &item, |items| items.iter().position(is_next).unwrap_or(items.len()))
    })?;
    for ((path, _), row) in rooms::TOPIC_PAGES.iter().zip(rows) {
        plan.edit(path, |text| crate::edit::row(text, &new.name, row, &order))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names are read in all their forms, and that bad and known ones are refused with the nearest.
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
        assert!(refusal("match").contains("word of the language") && refusal(&"a".repeat(33)).contains("more than 32"));
        assert_eq!(refusal("cpsc"), "an upstream named \"cpsc\" is there already");
    }

    /// Proves that arguments are one name and known options, in any order.
    #[test]
    fn arguments() {
        let read = |arguments: &[&str]| Asked::read(arguments, &["--topic", "--new-topic"]).map_err(|error| error.to_string());
        let wanted = Asked { name: "x".to_owned(), topic: Some("recalls".to_owned()), new_topic: None };
        assert_eq!((read(&["x", "--topic", "recalls"]), read(&["--topic", "recalls", "x"])), (Ok(wanted.clone()), Ok(wanted)));
        assert!(read(&["x", "--topc", "y"]).unwrap_err().ends_with("did you mean \"--topic\"?"));
        for (bad, reason) in [
            (&["x", "y"][..], "two names"),
            (&["--topic", "x"], "a name is missing"),
            (&["x", "--topic"], "wants a value"),
            (&["x", "--topic", "--new-topic"], "wants a value"),
            (&["x", "--topic", "a", "--topic", "b"], "given twice"),
        ] {
            assert!(read(bad).unwrap_err().contains(reason), "{bad:?}");
        }
    }

    /// Proves that a new topic comes among those like it, and says which comes next.
    #[test]
    fn topics_have_a_place() {
        let text = "pub const B: Topic = Topic { name: \"b\", kind: TopicKind::Facts, partitions: 4, private: false };\n\
            pub const P: Topic = Topic { name: \"a\", kind: TopicKind::Commands, partitions: 1, private: true };\n\
            pub const ALL: &[Topic] = &[B, P];\n";
        let tree = Tree::of(&[(rooms::TOPICS.0, text)]);
        let topic =
            |name: &str| Topic { constant: name.to_uppercase(), name: name.to_owned(), kind: "Facts".to_owned(), private: false, line: 0 };
        let order = |name: &str| with_topic(&tree, &topic(name)).unwrap().0.into_iter().map(|topic| topic.name).collect::<Vec<_>>();
        assert_eq!((order("aa"), order("c")), (vec!["aa".into(), "b".into(), "a".into()], vec!["b".into(), "c".into(), "a".into()]));
        assert!(with_topic(&tree, &topic("b")).is_err());
    }
}

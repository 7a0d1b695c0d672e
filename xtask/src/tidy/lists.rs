//! THE LISTs are sorted, and every listed name has its files: an upstream has settings, tests and fixtures, a service has files of its name in
//! every crate.

use super::Finding;
use crate::Error;
use crate::layout::{self, Topic};
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let upstreams = listed(tree, layout::UPSTREAMS)?;
    let services = listed(tree, layout::SERVICES)?;
    let kinds = lines(tree.must(layout::KINDS)?, layout::kind_module);
    for (path, names) in [(layout::UPSTREAMS.0, upstreams.as_slice()), (layout::SERVICES.0, &services), (layout::KINDS, &kinds)] {
        findings.extend(in_order(path, names));
    }
    findings.extend(topics(tree, &kinds)?);
    findings.extend(settings(tree, &upstreams)?);
    for (line, name) in &upstreams {
        for file in [format!("ingest/upstreams/tests/upstreams/{name}.rs"), format!("tests/fixtures/{name}")] {
            findings.extend((!tree.has(&file)).then(|| Finding::new(layout::UPSTREAMS.0, *line, format!("{name} has no {file}"))));
        }
    }
    for (line, name) in &services {
        let files = [
            format!("schemas/avro/changes.{name}.avsc"),
            format!("services/{name}/Cargo.toml"),
            format!("services/{name}/src/lib.rs"),
            format!("services/{name}/src/rules.rs"),
            format!("services/{name}/src/operations/mod.rs"),
        ];
        for file in files {
            findings.extend((!tree.has(&file)).then(|| Finding::new(layout::SERVICES.0, *line, format!("{name} has no {file}"))));
        }
    }
    Ok(findings)
}

fn form(path: &str, reason: impl Into<String>) -> Error {
    Error::Form { path: path.to_owned(), reason: reason.into() }
}

/// Returns the modules of a list's items, each with its line.
fn listed<'a>(tree: &'a Tree, (path, head): (&str, &str)) -> Result<Vec<(usize, &'a str)>, Error> {
    let list = layout::list(tree.must(path)?, head).map_err(|reason| form(path, reason))?;
    Ok(list.items().map(|(line, item)| (line, layout::module(item))).collect())
}

/// Returns the names on the lines of a macro, each with its line.
fn lines<'a>(text: &'a str, name: impl Fn(&'a str) -> Option<&'a str>) -> Vec<(usize, &'a str)> {
    text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, name(line)?))).collect()
}

fn in_order(path: &str, names: &[(usize, &str)]) -> Vec<Finding> {
    let pairs = names.iter().zip(names.iter().skip(1)).filter(|((_, one), (_, next))| one >= next);
    pairs.map(|((_, one), (line, next))| Finding::new(path, *line, format!("{next} is listed after {one}"))).collect()
}

/// Topics are sorted by kind, public before private, and by name. Kinds of facts are in the order of THE LIST.
fn topics(tree: &Tree, kinds: &[(usize, &str)]) -> Result<Vec<Finding>, Error> {
    let all = layout::topics(tree)?;
    let mut findings = Vec::new();
    for (one, next) in all.iter().zip(all.iter().skip(1)) {
        let is_same = |one: &Topic, next: &Topic| (&one.kind, one.private) == (&next.kind, next.private);
        if is_same(one, next) && one.name >= next.name {
            findings.push(Finding::new(layout::TOPICS, next.line, format!("{} is listed after {}", next.name, one.name)));
        }
    }
    let facts: Vec<&Topic> = all.iter().filter(|topic| topic.kind == "Facts").collect();
    for (line, kind) in kinds.iter().filter(|(_, kind)| !facts.iter().any(|topic| topic.name == *kind)) {
        findings.push(Finding::new(layout::KINDS, *line, format!("{kind} is not a topic of facts")));
    }
    for topic in facts.iter().filter(|topic| !kinds.iter().any(|(_, kind)| topic.name == *kind)) {
        findings.push(Finding::new(layout::TOPICS, topic.line, format!("{} has no kind in {}", topic.name, layout::KINDS)));
    }
    Ok(findings)
}

/// The sections of upstreams in the settings are those of their list, in order.
fn settings(tree: &Tree, names: &[(usize, &str)]) -> Result<Vec<Finding>, Error> {
    let sections = layout::sections(tree.must(layout::SETTINGS)?, "upstreams");
    let mut findings = in_order(layout::SETTINGS, &sections);
    for (line, name) in sections.iter().filter(|(_, name)| !names.iter().any(|(_, known)| known == name)) {
        findings.push(Finding::new(layout::SETTINGS, *line, format!("upstreams.{name} is in no list")));
    }
    for (_, name) in names.iter().filter(|(_, name)| !sections.iter().any(|(_, known)| known == name)) {
        findings.push(Finding::new(layout::SETTINGS, 1, format!("has no [upstreams.{name}]")));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAMS: &str = "pub static ALL: &[&dyn Upstream] = &[&a::A, &b::B];\n";
    const TOPICS: &str = "\
        X = Facts { name: \"x\", partitions: 4, private: false };\n\
        CHANGES_S = Changes { name: \"changes.s\", partitions: 1, private: false };\n";
    const SETTINGS: &str = "[services.NAME]\n[upstreams.a]\n[upstreams.b]\n";

    fn messages(changes: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![
            ("ingest/upstreams/src/lib.rs", UPSTREAMS),
            ("ingest/upstreams/tests/upstreams/a.rs", ""),
            ("ingest/upstreams/tests/upstreams/b.rs", ""),
            ("tests/fixtures/a/x.json", ""),
            ("tests/fixtures/b/x.json", ""),
            ("schemas/src/topics.rs", TOPICS),
            ("schemas/src/facts/mod.rs", "kinds! {\n    X(x::XFact) = X;\n}\n"),
            ("schemas/avro/changes.s.avsc", ""),
            ("services/list/src/lib.rs", "fn list() -> Vec<Listed> {\n    vec![listed::<s::rules::S>(s::service)]\n}\n"),
            ("services/s/Cargo.toml", ""),
            ("services/s/src/lib.rs", ""),
            ("services/s/src/rules.rs", ""),
            ("services/s/src/operations/mod.rs", ""),
            ("src/default.toml", SETTINGS),
        ];
        for (path, text) in changes {
            files.retain(|(known, _)| known != path);
            if !text.is_empty() {
                files.push((path, text));
            }
        }
        check(&Tree::of(&files)).unwrap().iter().map(ToString::to_string).collect()
    }

    /// Proves that sorted lists pass, and that each wrong order and each missing file is reported with its line.
    #[test]
    fn order_and_files() {
        assert_eq!(messages(&[]), Vec::<String>::new());
        let swapped = UPSTREAMS.replace("&a::A, &b::B", "\n    &b::B,\n    &a::A,\n");
        assert_eq!(messages(&[("ingest/upstreams/src/lib.rs", &swapped)]), ["ingest/upstreams/src/lib.rs:3: a is listed after b"]);
        assert_eq!(messages(&[("tests/fixtures/b/x.json", "")]), ["ingest/upstreams/src/lib.rs:1: b has no tests/fixtures/b"]);
        let settings = SETTINGS.replace("[upstreams.b]", "[upstreams.c]");
        let found = messages(&[("src/default.toml", &settings)]);
        assert_eq!(found, ["src/default.toml:3: upstreams.c is in no list", "src/default.toml:1: has no [upstreams.b]"]);
        assert_eq!(messages(&[("services/s/src/rules.rs", "")]), ["services/list/src/lib.rs:2: s has no services/s/src/rules.rs"]);
        let topics = TOPICS.to_owned() + "CHANGES_R = Changes { name: \"changes.r\", partitions: 1, private: false };\n";
        assert_eq!(messages(&[("schemas/src/topics.rs", &topics)]), ["schemas/src/topics.rs:3: changes.r is listed after changes.s"]);
        let found = messages(&[("schemas/src/facts/mod.rs", "kinds! {\n    Y(y::YFact) = Y;\n}\n")]);
        assert_eq!(
            found,
            ["schemas/src/facts/mod.rs:2: y is not a topic of facts", "schemas/src/topics.rs:1: x has no kind in schemas/src/facts/mod.rs"]
        );
    }
}

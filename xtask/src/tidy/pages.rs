//! The documents are complete: a page for each public error code, a row for each topic, and a line for each folder in the map of the README. Their lines
//! are short.

use std::collections::BTreeSet;

use super::Finding;
use crate::Error;
use crate::layout::{self, Topic};
use crate::tree::Tree;

/// The folder with the pages of public errors.
const CODE_PAGES: &str = "ops/docs/errors/";
/// The file with the map, and how the first line of the map begins. The map ends with its code block.
const MAP: (&str, &str) = ("README.md", "Cargo.toml ");
/// The most characters of a line in a document. Rows of tables, code, headings and HTML may be longer, because they cannot be wrapped.
const LINE_CHARS_MAX: usize = 160;

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = codes(tree)?;
    let topics = layout::topics(tree)?;
    for (path, is_listed) in layout::TOPIC_PAGES {
        let wanted: Vec<&Topic> = topics.iter().filter(|topic| is_listed(topic)).collect();
        findings.extend(rows(path, tree.must(path)?, &wanted, &topics));
    }
    findings.extend(map(tree)?);
    let documents = tree.files().filter(|(path, _)| path.ends_with(".md"));
    findings.extend(documents.flat_map(|(path, text)| long_lines(path, text)));
    Ok(findings)
}

fn long_lines(path: &str, text: &str) -> Vec<Finding> {
    let (mut findings, mut is_code) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        is_code ^= start.starts_with("```");
        let is_whole = is_code || start.starts_with(['|', '<', '#']);
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX && !is_whole {
            findings.push(Finding::new(path, at + 1, format!("a line of {chars} characters, more than {LINE_CHARS_MAX}")));
        }
    }
    findings
}

fn codes(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let codes = layout::codes(tree.must(layout::CODES)?);
    let mut findings: Vec<Finding> = Vec::new();
    for (line, code, _) in &codes {
        let page = format!("{CODE_PAGES}{code}.md");
        findings.extend(tree.text(&page).is_none().then(|| Finding::new(layout::CODES, *line, format!("{code} has no page {page}"))));
    }
    for ((.., one), (line, code, next)) in codes.iter().zip(codes.iter().skip(1)).filter(|((.., one), (.., next))| one > next) {
        findings.push(Finding::new(layout::CODES, *line, format!("{code} ({next}) is listed after one of status {one}")));
    }
    for (path, _) in tree.files() {
        let Some(code) = path.strip_prefix(CODE_PAGES).and_then(|name| name.strip_suffix(".md")) else { continue };
        findings.extend((!codes.iter().any(|(_, known, _)| *known == code)).then(|| Finding::new(path, 1, "a page of an unknown code")));
    }
    Ok(findings)
}

/// Checks that a table of topics has the wanted rows in the order of THE LIST.
fn rows(path: &str, text: &str, wanted: &[&Topic], all: &[Topic]) -> Vec<Finding> {
    let named = |(at, line)| Some((at + 1, layout::row_name(line)?));
    let rows: Vec<(usize, &str)> =
        text.lines().enumerate().filter_map(named).filter(|(_, name)| all.iter().any(|topic| topic.name == *name)).collect();
    let mut findings = Vec::new();
    for topic in wanted.iter().filter(|topic| !rows.iter().any(|(_, name)| *name == topic.name)) {
        findings.push(Finding::new(path, rows.first().map_or(1, |(line, _)| *line), format!("has no row for topic {}", topic.name)));
    }
    for (line, name) in rows.iter().filter(|(_, name)| !wanted.iter().any(|topic| topic.name == *name)) {
        findings.push(Finding::new(path, *line, format!("{name} needs no row on this page")));
    }
    let rank = |name: &str| all.iter().position(|topic| topic.name == name);
    for ((_, one), (line, next)) in rows.iter().zip(rows.iter().skip(1)).filter(|((_, one), (_, next))| rank(one) >= rank(next)) {
        findings.push(Finding::new(path, *line, format!("{next} is listed after {one}")));
    }
    findings
}

/// Checks that the map names every folder at the root.
fn map(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let readme = tree.must(MAP.0)?;
    let begins = readme.lines().position(|line| line.starts_with(MAP.1));
    let begins = begins.ok_or_else(|| Error::Form { path: MAP.0.to_owned(), reason: "has no map".to_owned() })?;
    let lines: Vec<&str> = readme.lines().skip(begins).take_while(|line| !line.starts_with("```")).collect();
    let folders: BTreeSet<&str> = tree.files().filter_map(|(path, _)| path.split_once('/')).map(|(folder, _)| folder).collect();
    let missing =
        folders.into_iter().filter(|folder| *folder != ".cargo" && !lines.iter().any(|line| line.starts_with(&format!("{folder}/"))));
    Ok(missing.map(|folder| Finding::new(MAP.0, begins + 1, format!("the map does not name {folder}/"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: &str = "    A = (\"a-b\", 400, false);\n    C = (\"c\", 404, false);\n";
    const TOPICS: &str = "\
        X = Facts { name: \"x\", partitions: 4, private: false };\n\
        Y = Commands { name: \"y\", partitions: 1, private: true };\n\
        Z = Changes { name: \"z\", partitions: 1, private: false };\n";

    fn messages(changes: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![
            ("README.md", "```\nCargo.toml  it\nschemas/  words\nops/   all\n```\nrest\n"),
            ("schemas/src/error_code.rs", CODES),
            ("schemas/src/topics.rs", TOPICS),
            ("ops/docs/errors/a-b.md", "#"),
            ("ops/docs/errors/c.md", "#"),
            ("ops/docs/contributing/architecture.md", "| topic |\n| `x` | 1 |\n| `y` | 1 |\n\n| `other` |\n"),
            ("ops/docs/reference/topics.md", "| `x` | 1 |\n| `changes.SERVICE` | 1 |\n"),
        ];
        for (path, text) in changes {
            files.retain(|(known, _)| known != path);
            files.push((path, text));
        }
        check(&Tree::of(&files)).unwrap().iter().map(ToString::to_string).collect()
    }

    /// Proves that a missing or additional page, row or line of the map is reported.
    #[test]
    fn pages_rows_and_map() {
        assert_eq!(messages(&[]), Vec::<String>::new());
        let more = CODES.replace("404", "403").replace("\"a-b\", 400", "\"d\", 409");
        assert_eq!(
            messages(&[("schemas/src/error_code.rs", &more)]),
            [
                "schemas/src/error_code.rs:1: d has no page ops/docs/errors/d.md",
                "schemas/src/error_code.rs:2: c (403) is listed after one of status 409",
                "ops/docs/errors/a-b.md:1: a page of an unknown code",
            ]
        );
        assert_eq!(
            messages(&[("ops/docs/contributing/architecture.md", "| `y` | 1 |\n| `x` | 1 |\n")]),
            ["ops/docs/contributing/architecture.md:2: x is listed after y"]
        );
        assert_eq!(
            messages(&[("ops/docs/contributing/architecture.md", "| `x` | 1 |\n| `y` | 1 |\n| `z` | 1 |\n")]),
            ["ops/docs/contributing/architecture.md:3: z needs no row on this page"]
        );
        assert_eq!(
            messages(&[("ops/docs/reference/topics.md", "| `y` | 1 |\n| `z` | 1 |\n")]),
            [
                "ops/docs/reference/topics.md:1: has no row for topic x",
                "ops/docs/reference/topics.md:1: y needs no row on this page",
                "ops/docs/reference/topics.md:2: z needs no row on this page",
            ]
        );
        assert_eq!(messages(&[("new/src/x.rs", "")]), ["README.md:2: the map does not name new/"]);
    }

    /// Proves that a line of prose has at most 160 characters, and that tables, code and headings may be longer.
    #[test]
    fn lines_of_documents() {
        let (fits, long) = ("é".repeat(160), "x".repeat(161));
        let text = format!("{fits}\n# {long}\n| {long} |\n```\n{long}\n```\n- {long}\n");
        assert_eq!(messages(&[("ops/docs/x.md", &text)]), ["ops/docs/x.md:7: a line of 163 characters, more than 160"]);
        assert_eq!(
            messages(&[("README.md", &format!("```\nCargo.toml  it\nschemas/  words\nops/   all\n```\n{long}\n"))]),
            ["README.md:6: a line of 161 characters, more than 160"]
        );
    }
}

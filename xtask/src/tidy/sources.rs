//! The form of every Rust source: it says what it is for, is no longer than a person reads at once, and holds nothing unfinished.

use super::rust::Code;
use super::{Finding, line_of, sleeps, words};
use crate::tree::Tree;

/// Lines that a source may have. Split a longer one by what it does, not in the middle.
const LINES_MAX: usize = 650;
/// Macros that say that something is not finished or was looked at.
const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sources = tree.files().filter(|(path, _)| path.ends_with(".rs"));
    sources.flat_map(|(path, text)| of_one(path, text)).collect()
}

fn of_one(path: &str, text: &str) -> Vec<Finding> {
    let code = Code::of(text);
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(Finding::new(path, 1, "does not begin with //! words: what it is for and what it promises"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.push(Finding::new(path, LINES_MAX + 1, format!("has {lines} lines, more than {LINES_MAX}")));
    }
    for name in UNFINISHED {
        let found = code.words(name).filter(|at| code.text.get(at + name.len()..).is_some_and(|rest| rest.starts_with('!')));
        findings.extend(found.map(|at| Finding::new(path, line_of(text, at), format!("{name}! is not for what is checked in"))));
    }
    let ignored = code.words("ignore").filter(|at| code.text.get(..*at).is_some_and(|before| before.ends_with("#[")));
    findings.extend(
        ignored.map(|at| Finding::new(path, line_of(text, at), "no test is ignored: assert what it does today and say why that is wrong")),
    );
    findings.extend(sleeps::check(path, text, &code));
    findings.extend(words::check(path, text, &code));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        of_one("a/src/x.rs", text).into_iter().map(|finding| (finding.line, finding.words)).collect()
    }

    /// Proves that a source without words, one that is too long, and what is unfinished are told, and that the same in texts is not.
    #[test]
    fn forms() {
        assert!(found("//! X.\nfn x() { log(\"todo!() #[ignore]\"); } // dbg!(x)\n").is_empty());
        assert!(found("use x;\n")[0].1.starts_with("does not begin with //!"));
        let long = format!("//! X.\n{}", "\n".repeat(LINES_MAX));
        assert_eq!(found(&long)[0].0, LINES_MAX + 1);
        assert!(found(&long[..long.len() - 1]).is_empty());
        let unfinished = "//! X.\n#[test]\n#[ignore = \"slow\"]\nfn x() {\n    dbg!(1);\n    todo!()\n}\n";
        let lines: Vec<usize> = found(unfinished).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [6, 5, 3]);
        assert!(found("//! X.\nfn x(todo: u8) -> u8 { todo }\n").is_empty());
    }
}

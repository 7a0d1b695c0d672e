//! The form of every Rust source: it begins with a module comment, has a limited length, contains nothing unfinished, and its closures have names.

use super::rust::Code;
use super::{Finding, line_of, messages, sleeps};
use crate::tree::Tree;

/// The most lines of a source. Split a longer one by responsibility.
const LINES_MAX: usize = 650;
/// Macros for unfinished code and for debugging.
const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sources = tree.files().filter(|(path, _)| path.ends_with(".rs"));
    sources.flat_map(|(path, text)| of_one(path, text)).collect()
}

fn of_one(path: &str, text: &str) -> Vec<Finding> {
    let code = Code::of(text);
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(Finding::new(path, 1, "does not begin with a //! comment: what it is for and what it guarantees"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.push(Finding::new(path, LINES_MAX + 1, format!("has {lines} lines, more than {LINES_MAX}")));
    }
    for name in UNFINISHED {
        let found = code.words(name).filter(|at| code.text.get(at + name.len()..).is_some_and(|rest| rest.starts_with('!')));
        findings.extend(found.map(|at| Finding::new(path, line_of(text, at), format!("{name}! must not be checked in"))));
    }
    let ignored = code.words("ignore").filter(|at| code.text.get(..*at).is_some_and(|before| before.ends_with("#[")));
    findings.extend(ignored.map(|at| {
        Finding::new(path, line_of(text, at), "tests must not be ignored: assert the current behaviour and say why it is wrong")
    }));
    let unnamed = code.words("of").filter(|at| code.text.get(..*at).is_some_and(|before| before.ends_with("let ")));
    findings.extend(unnamed.map(|at| Finding::new(path, line_of(text, at), "`of` names nothing: say what the closure returns or does")));
    findings.extend(sleeps::check(path, text, &code));
    findings.extend(messages::check(path, text, &code));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        of_one("a/src/x.rs", text).into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    /// Proves that a missing comment, too many lines and unfinished code are reported, and that the same words in literals are not.
    #[test]
    fn forms() {
        assert!(found("//! X.\nfn x() { log(\"todo!() #[ignore]\"); } // dbg!(x)\n").is_empty());
        assert!(found("use x;\n")[0].1.starts_with("does not begin with a //! comment"));
        let long = format!("//! X.\n{}", "\n".repeat(LINES_MAX));
        assert_eq!(found(&long)[0].0, LINES_MAX + 1);
        assert!(found(&long[..long.len() - 1]).is_empty());
        let unfinished = "//! X.\n#[test]\n#[ignore = \"slow\"]\nfn x() {\n    dbg!(1);\n    todo!()\n}\n";
        let lines: Vec<usize> = found(unfinished).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [6, 5, 3]);
        assert!(found("//! X.\nfn x(todo: u8) -> u8 { todo }\n").is_empty());
        assert!(found("//! X.\nfn x() { let of = |a| a; }\n")[0].1.starts_with("`of` names nothing"));
        assert!(found("//! X.\nfn x() { let ids_of = |a| T::of(a); \"let of\" }\n").is_empty());
    }
}

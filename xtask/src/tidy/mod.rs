//! Rules that lints cannot check: dependencies between crates, circles of files and folders, the order of lists, documents, the form of sources, log
//! messages, retired words, and texts that must not be checked in. Each rule is a function of the whole tree. A finding says where the rule
//! is broken and what to do.

mod arrows;
mod lists;
mod messages;
mod module_tree;
mod modules;
mod pages;
mod rust;
mod sleeps;
mod sources;
mod texts;
mod words;

use std::fmt;

use crate::Error;
use crate::tree::Tree;

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The path of the file from the root of the repository.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks all rules. The findings are sorted by file and line.
///
/// # Errors
/// When a file that a rule needs does not exist or cannot be parsed.
pub fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = arrows::check(tree)?;
    findings.extend(lists::check(tree)?);
    findings.extend(modules::check(tree)?);
    findings.extend(pages::check(tree)?);
    findings.extend(sources::check(tree));
    findings.extend(texts::check(tree));
    findings.extend(words::check(tree));
    findings.sort_unstable();
    Ok(findings)
}

/// Checks only the order of THE LISTs and the files of each listed name: the rules that [`crate::new`] must fulfil.
///
/// # Errors
/// As [`check`].
pub fn lists(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = lists::check(tree)?;
    findings.extend(pages::check(tree)?);
    Ok(findings)
}

/// Returns the line of a byte offset in a text, from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

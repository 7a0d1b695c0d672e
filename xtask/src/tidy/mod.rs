//! What lints cannot hold: arrows between crates, the order of lists, pages, the form of sources, log words, and what must not be
//! checked in. Each rule is one function of the whole tree; it says where it is broken and what to do.

mod arrows;
mod lists;
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
    /// The file, from the root on.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub words: String,
}

impl Finding {
    fn new(path: &str, line: usize, words: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, words: words.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.words)
    }
}

/// All that is wrong, in the order of files and lines.
///
/// # Errors
/// When a file that a rule is about is not there or cannot be read.
pub fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = arrows::check(tree)?;
    findings.extend(lists::check(tree)?);
    findings.extend(pages::check(tree)?);
    findings.extend(sources::check(tree));
    findings.extend(texts::check(tree));
    findings.sort_unstable();
    Ok(findings)
}

/// The order of THE LISTs and that each of their names has its rooms, alone: what [`crate::new`] must leave true.
///
/// # Errors
/// As [`check`].
pub fn lists(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = lists::check(tree)?;
    findings.extend(pages::check(tree)?);
    Ok(findings)
}

/// The line of a place in a text, from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

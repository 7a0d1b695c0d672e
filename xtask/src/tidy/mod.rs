//! Rules that lints cannot check: dependencies between crates and their sizes, circles of files and folders, the order of lists, documents, the form of
//! sources, log messages, retired words, and texts that must not be checked in. Each rule is a function of the whole tree. A finding says where the rule is
//! broken and what to do.

mod arrows;
mod crate_sizes;
mod finding;
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

pub use self::finding::Finding;
use self::finding::line_of;
use crate::Error;
use crate::tree::Tree;

/// Checks all rules. The findings are sorted by file and line.
///
/// # Errors
/// When a file that a rule needs does not exist or cannot be parsed.
pub fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = arrows::check(tree)?;
    findings.extend(crate_sizes::check(tree));
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

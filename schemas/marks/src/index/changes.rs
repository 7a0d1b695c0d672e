//! What changes of the register the index is given, and how many marks the register has.

use crate::Classes;

/// What is compared of a mark that is not dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedMark {
    /// The text of the mark.
    pub text: String,
    /// The register's own spellings of the mark.
    pub pseudo_marks: Vec<String>,
    /// Its classes.
    pub classes: Classes,
    /// Whether its status is known to be live; otherwise it is unknown.
    pub is_live: bool,
}

/// A change of the register: what it made of one mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The position of the change.
    pub seq: u32,
    /// The serial number of the mark.
    pub serial: u32,
    /// Whether the mark was not in the register before.
    pub is_new: bool,
    /// Whether the mark was live before.
    pub was_live: bool,
    /// The mark after the change; `None` if it is dead.
    pub after: Option<ComparedMark>,
}

/// How many marks the register has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// All marks, dead ones and pure designs included.
    pub marks: u64,
    /// Marks that are known to be live.
    pub live_marks: u64,
}

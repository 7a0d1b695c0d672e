//! The rule that compares a name with a trademark, and the index of names that finds candidates for it.
//!
//! [`Mark`] is a name or a trademark in its normal form. [`similar`] says which [`Rule`] makes two of them alike, and [`why`] explains it in a
//! sentence. Nothing here does input or output or reads a clock: the same two texts give the same rule everywhere.
//!
//! [`RULES_VERSION`] changes when the result of any pair can change. `data/words.json` has a version of its own.

pub mod classes;
mod consonants;
mod edits;
pub mod index;
mod mark;
mod meanings;
mod near;
mod rules;
mod sound;
pub mod words;

pub use classes::{Classes, Status};
pub use mark::{Mark, NAME_CHARS_MAX};
pub use rules::{RULES_VERSION, Rule, Tier, Verdict, distance, similar, why};

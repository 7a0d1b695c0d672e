//! Whole directives in the forms that the Federal Register prints, written for these tests: what is read, how aircraft match, when they are due,
//! and that no text breaks the reader.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod cases;
mod contract;
mod fuzz;
mod layouts;
mod properties;
mod stored_directives;
mod texts;

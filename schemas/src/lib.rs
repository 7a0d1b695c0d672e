//! The words every other crate shares: facts, changes, topics, tables, positions, errors, and how they are written as bytes.
//!
//! Promises: no input or output, no async, no clock of its own. A type that two rooms speak of lives here and nowhere else.

pub mod avro;
pub mod change;
pub mod clock;
pub mod error_code;
pub mod event;
pub mod facts;
pub mod hash;
pub mod names;
pub mod note;
pub mod position;
pub mod reason;
pub mod receipt;
pub mod tables;
pub mod topics;
pub mod tree;
pub mod views;

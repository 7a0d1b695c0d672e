//! Types that all other crates share: facts, changes, commands, topics, tables, positions, errors, and their encodings.
//!
//! This crate does no input or output, has no async code and reads no clock, except in [`clock`]. A type that two crates exchange is
//! defined here.

pub mod avro;
mod canonical;
pub mod change;
pub mod clock;
pub mod details;
pub mod error_code;
pub mod event;
pub mod facts;
pub mod names;
pub mod news;
pub mod position;
pub mod reason;
pub mod suppressed_keys;
pub mod suppression;
pub mod tables;
pub mod topics;
pub mod views;

//! Types that all other crates share: facts, changes, commands, topics, tables, positions, errors, and their encodings.
//!
//! This crate does no input or output, has no async code and reads no clock, except in [`clock`]. A type that two crates exchange is
//! defined here.

pub mod allegheny;
pub mod avro;
mod canonical;
pub mod change;
pub mod clock;
pub mod company_forms;
pub mod company_names;
pub mod cook;
pub mod crosswalk;
pub mod data_file;
pub mod dates;
pub mod details;
pub mod dollars;
pub mod error_code;
pub mod event;
pub mod evidence;
pub mod facts;
pub mod folding;
pub mod hash;
pub mod i_json;
pub mod json_type;
pub mod masked_text;
pub mod names;
pub mod news;
pub mod numbers;
pub mod phrases;
pub mod plain_words;
pub mod position;
pub mod reason;
pub mod receipt;
pub mod suppressed_keys;
pub mod suppression;
pub mod tables;
pub mod tickers;
pub mod topics;
pub mod tree;
pub mod values;
pub mod views;

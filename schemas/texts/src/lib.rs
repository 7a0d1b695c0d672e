//! How published texts and values are read and compared: names of companies, dates, dollars, ticker symbols, numbers of records, masked names, titles, words, and
//! the versioned data files with their rules.
//!
//! This crate knows no topic and no table, does no input or output and reads no clock.

pub mod allegheny;
pub mod company_forms;
pub mod company_names;
pub mod cook;
pub mod crosswalk;
pub mod data_file;
pub mod dates;
pub mod dollars;
mod entities;
pub mod folding;
mod institution_names;
pub mod masked_text;
pub mod numbers;
pub mod owner_names;
pub mod person_names;
pub mod phrases;
pub mod plain_words;
pub mod quotes;
pub mod tickers;
pub mod titles;
pub mod values;

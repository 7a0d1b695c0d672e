//! How fast a phrase rises: the words and phrases of titles, mentions by hour, the baseline of the windows before, and the label.
//!
//! Everything here is pure. A result depends on counts alone, and has the same bits on every platform: logarithms and exponentials are those of
//! `libm`, and everything else is arithmetic that IEEE 754 defines exactly. `decide` labels with these functions, and answers are computed with
//! them.
//!
//! The phrases service is the only user. This is a crate of its own because tests compute over tens of thousands of random texts and counts: it is
//! optimised in builds for development as well, the crates of services are not.

pub mod calendar;
pub mod gram_rows;
pub mod grams;
pub mod hours;
pub mod label;
pub mod measure;
pub mod mentions;
pub mod poisson;
pub mod rows;
mod varint;
pub mod views;
pub mod words;

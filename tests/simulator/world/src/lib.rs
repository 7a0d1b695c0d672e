//! What all simulated upstreams share: the state of the world and its options, reproducible random numbers, days, faults, and the forms of requests and
//! answers.
//!
//! Nothing here knows an upstream.

pub mod answer;
pub mod days;
pub mod expected_changes;
pub mod faults;
pub mod json;
pub mod options;
pub mod query;
pub mod random;
pub mod script;
pub mod words;
pub mod world;

/// The key that upstreams take which answer only to a key.
pub const KEY: &str = "simulated-key";

//! The values that a filter is given: how they are checked, compared with those of records, and looked for among the recorded values of a dimension.
//!
//! Nothing here reads a store. What selects and finds changes by these values is in the crate `feed`.

pub mod fields;
pub mod nearest_values;
pub mod sorted_values;
pub mod terms;

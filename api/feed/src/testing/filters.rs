//! Checks of a service's filter: which records it takes, and what it refuses.

use operation::problem::Problem;
use serde_json::Value;

use crate::filter::Filter;

/// Reads a filter from JSON, then checks and normalizes it.
///
/// # Errors
/// `parameter-invalid`, naming the field.
pub fn filter_of<F: Filter>(json: &Value) -> Result<F, Problem> {
    serde_json::from_value::<F>(json.clone()).unwrap().normalize()
}

/// Checks which filters take a record.
pub fn assert_takes<F: Filter>(record: &F::Record, filters: impl IntoIterator<Item = (Value, bool)>) {
    for (filter, fits) in filters {
        assert_eq!(filter_of::<F>(&filter).unwrap().takes(record), fits, "{filter}");
    }
}

/// Checks that filters are refused, each with the field that is wrong and with a part of the reason.
pub fn assert_refuses<F: Filter>(filters: impl IntoIterator<Item = (Value, &'static str, &'static str)>) {
    for (filter, field, part) in filters {
        let problem = filter_of::<F>(&filter).map(drop).unwrap_err();
        assert_eq!(problem.parameter, field, "{filter}");
        assert!(problem.detail.contains(part), "{filter}: {problem:?}");
    }
}

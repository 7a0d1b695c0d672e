//! Formats errors as one line: for run events, answers about readiness, and the command line.

use std::error::Error;

/// Returns an error and all its causes in one line.
#[must_use]
pub fn reason(error: &(dyn Error + 'static)) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        out.push_str(": ");
        out.push_str(&source.to_string());
        cause = source.source();
    }
    out
}

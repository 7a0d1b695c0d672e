//! The reason why a command failed.

use std::error::Error as StdError;
use std::fmt;

use operation::problem::Problem;

/// Why a command failed, as one line. It can be sent over the control socket.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure with this reason.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// A failure caused by an error; the reason names the error and its causes.
    pub(crate) fn from_error(error: &(dyn StdError + 'static)) -> Self {
        Self(ingest::reason(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Failure {}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(problem.detail)
    }
}

/// Turns an error into a failure; for `map_err`.
pub(crate) fn failure<E: StdError + 'static>(error: E) -> Failure {
    Failure::from_error(&error)
}

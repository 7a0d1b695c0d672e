//! The reason why a command failed.

use std::error::Error as StdError;
use std::fmt;

use operation::problem::Problem;
use schemas::error_code::ErrorCode;

/// Why a command failed, as one line. It can be sent over the control socket.
#[derive(Debug)]
pub(crate) struct Failure {
    reason: String,
    /// Whether the API refused with `unavailable`, which hides its cause from callers.
    is_unavailable: bool,
}

impl Failure {
    /// A failure with this reason.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_unavailable: false }
    }

    /// A failure caused by an error; the reason names the error and its causes.
    pub(crate) fn from_error(error: &(dyn StdError + 'static)) -> Self {
        Self::new(ingest::reason(error))
    }

    /// Several failures in one line.
    pub(crate) fn joined(failures: &[Self]) -> Self {
        let reasons: Vec<&str> = failures.iter().map(|failure| failure.reason.as_str()).collect();
        Self { reason: reasons.join("; "), is_unavailable: failures.iter().any(|failure| failure.is_unavailable) }
    }

    /// Adds the cause that callers of the API are not shown; the operator is.
    pub(crate) fn with_hidden_cause(self, cause: impl FnOnce() -> Option<String>) -> Self {
        if !self.is_unavailable {
            return self;
        }
        match cause() {
            Some(cause) => Self::new(format!("{self}: {cause}")),
            None => self,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl StdError for Failure {}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { is_unavailable: problem.code == ErrorCode::Unavailable, reason: problem.detail }
    }
}

/// Turns an error into a failure; for `map_err`.
pub(crate) fn failure<E: StdError + 'static>(error: E) -> Failure {
    Failure::from_error(&error)
}

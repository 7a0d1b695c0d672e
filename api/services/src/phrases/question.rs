//! The arguments that the operations share, and their defaults.

use operation::problem::Problem;
use velocity::grams::{NoPhrase, PHRASE_CHARS_MAX, PHRASE_WORDS_MAX, phrase};
use velocity::measure::{MULTIPLE_DEFAULT, WINDOW_DEFAULT};

/// Other names of the arguments.
pub(super) const ALIASES: &[(&str, &str)] = &[("minMultiple", "min_multiple"), ("windowHours", "window_hours")];

pub(super) fn window_default() -> i64 {
    WINDOW_DEFAULT
}

pub(super) fn multiple_default() -> f64 {
    MULTIPLE_DEFAULT
}

/// The normal form of the phrase that is asked for.
///
/// # Errors
/// `parameter-invalid`, naming `phrase`.
pub(super) fn normal_phrase(text: &str) -> Result<String, Problem> {
    phrase(text).map_err(|reason| {
        let reason = match reason {
            NoPhrase::Empty => "has neither letters nor digits".to_owned(),
            NoPhrase::TooLong => format!("is longer than {PHRASE_CHARS_MAX} characters"),
            NoPhrase::TooManyWords => format!("has more than {PHRASE_WORDS_MAX} words"),
        };
        Problem::parameter("phrase", format!("phrase: {reason}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a text that is no phrase is refused with the name of the parameter and the reason.
    #[test]
    fn texts_that_are_no_phrase() {
        assert_eq!(normal_phrase("Agent-Mesh").unwrap(), "agent mesh");
        for (text, reason) in [("?!", "neither letters"), (&"x".repeat(101), "longer than 100"), ("a b c d e f g", "more than 6")] {
            let problem = normal_phrase(text).unwrap_err();
            assert_eq!(problem.parameter, "phrase");
            assert!(problem.detail.contains(reason), "{}", problem.detail);
        }
    }
}

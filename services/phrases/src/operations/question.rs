//! The arguments that the operations share, and their defaults.

use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Deserialize;
use velocity::grams::{GRAM_WORDS_MAX, NoPhrase, PHRASE_CHARS_MAX, PHRASE_WORDS_MAX, phrase};
use velocity::measure::{MULTIPLE_DEFAULT, Question, WINDOW_DEFAULT, WINDOWS};
use velocity::words::is_blocked;

/// Other names of the arguments.
pub(crate) const ALIASES: &[(&str, &str)] = &[("minMultiple", "min_multiple"), ("windowHours", "window_hours")];

/// The window whose stories are counted, and the multiple from which on a phrase is RISING. Arguments flatten it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct MeasureArguments {
    /// The length of the window, in hours.
    #[serde(default = "window_default")]
    #[schemars(extend("enum" = WINDOWS))]
    pub window_hours: i64,
    /// The least multiple of RISING. WARMING needs its square root.
    #[serde(default = "multiple_default")]
    #[schemars(range(min = 1.5, max = 20))]
    pub min_multiple: f64,
}

impl MeasureArguments {
    /// The question that the arguments ask.
    pub(crate) fn question(&self) -> Question {
        Question { window_hours: self.window_hours, min_multiple: self.min_multiple }
    }
}

fn window_default() -> i64 {
    WINDOW_DEFAULT
}

fn multiple_default() -> f64 {
    MULTIPLE_DEFAULT
}

/// The normal form of the phrase that is asked for.
///
/// # Errors
/// `parameter-invalid`, naming `phrase`.
pub(crate) fn normal_phrase(text: &str) -> Result<String, Problem> {
    phrase(text).map_err(|reason| {
        let reason = match reason {
            NoPhrase::Empty => "has neither letters nor digits".to_owned(),
            NoPhrase::TooLong => format!("is longer than {PHRASE_CHARS_MAX} characters"),
            NoPhrase::TooManyWords => format!("has more than {PHRASE_WORDS_MAX} words"),
        };
        Problem::parameter("phrase", format!("phrase: {reason}"))
    })
}

/// The normal form of a phrase whose label can be recorded, so that a watch of it can match.
///
/// # Errors
/// `parameter-invalid`, naming `phrase`.
pub(crate) fn labelled_phrase(text: &str) -> Result<String, Problem> {
    let phrase = normal_phrase(text)?;
    let reason = if phrase.split(' ').count() > GRAM_WORDS_MAX {
        format!("has more than {GRAM_WORDS_MAX} words, and only labels of phrases of 1 to {GRAM_WORDS_MAX} words are recorded")
    } else if is_blocked(&phrase) {
        "consists of stop words, numbers, days, months or labels of titles alone, and such a phrase has no label".to_owned()
    } else {
        return Ok(phrase);
    };
    Err(Problem::parameter("phrase", format!("phrase: {reason}")))
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

    /// Proves which phrases have labels in the feed: a watch of any other one would never match.
    #[test]
    fn phrases_with_labels() {
        for text in ["Agent-Mesh", "the agent mesh wins", "gpt 4", "C++"] {
            assert_eq!(labelled_phrase(text).unwrap(), normal_phrase(text).unwrap());
        }
        for (text, reason) in [
            ("the agent mesh of agents", "more than 4 words"),
            ("a b c d e f g", "more than 6 words"),
            ("of the", "no label"),
            ("Show HN", "no label"),
            ("November 2026", "no label"),
        ] {
            let problem = labelled_phrase(text).unwrap_err();
            assert_eq!(problem.parameter, "phrase");
            assert!(problem.detail.contains(reason), "{text}: {}", problem.detail);
        }
    }
}

//! The label of a phrase: whether it rises, and by how much.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::poisson;

/// The pseudo-count that keeps the multiples of rare phrases small.
const SMOOTHING: f64 = 2.0;
/// The least mean of the test against chance.
const MEAN_MIN: f64 = 0.2;
/// The least count of a phrase that rises.
pub const COUNT_MIN: u64 = 3;
/// The least number of authors of a phrase that rises.
const AUTHORS_MIN: usize = 2;
/// The least number of domains of a phrase that is RISING.
const DOMAINS_MIN: usize = 2;
/// The largest probability of chance of a phrase that is RISING.
const RISING_P_MAX: f64 = 0.01;
/// The largest probability of chance of a phrase that is WARMING.
const WARMING_P_MAX: f64 = 0.05;
/// The least baseline of a phrase that is COOLING.
const COOLING_BASELINE_MIN: f64 = 3.0;

/// How fast a phrase rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Label {
    /// Mentioned much less than usual.
    Cooling,
    /// Mentioned as usual, or too rarely to tell.
    #[default]
    Flat,
    /// Mentioned more than usual.
    Warming,
    /// Mentioned many times as often as usual, by several authors, and not by chance.
    Rising,
}

impl Label {
    /// The name in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rising => "RISING",
            Self::Warming => "WARMING",
            Self::Flat => "FLAT",
            Self::Cooling => "COOLING",
        }
    }

    /// The label with a name; `None` if there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Rising, Self::Warming, Self::Flat, Self::Cooling].into_iter().find(|label| label.as_str() == name)
    }

    /// Whether the phrase is mentioned more than usual.
    #[must_use]
    pub fn is_up(self) -> bool {
        matches!(self, Self::Rising | Self::Warming)
    }
}

/// What is known of a phrase in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// The stories with the phrase, at most 3 of one author.
    pub count: u64,
    /// The number of authors of these stories.
    pub authors: usize,
    /// Their domains; a text post counts as a domain of its author.
    pub domains: usize,
    /// How many stories with it are usual for the window; `None` if the history is too short to say.
    pub baseline: Option<f64>,
}

/// A label with the numbers that it follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Labelled {
    /// The label.
    pub label: Label,
    /// `(count + 2) / (baseline + 2)`; `None` without a baseline.
    pub multiple: Option<f64>,
    /// The probability of so many stories by chance; `None` without a baseline.
    pub p_value: Option<f64>,
}

/// Labels a phrase, given the least multiple of a phrase that is RISING.
#[must_use]
pub fn label(seen: &Seen, min_multiple: f64) -> Labelled {
    let Some(baseline) = seen.baseline else { return Labelled::default() };
    let multiple = (seen.count as f64 + SMOOTHING) / (baseline + SMOOTHING);
    let p_value = poisson::tail(baseline.max(MEAN_MIN), seen.count);
    let root = libm::sqrt(min_multiple);
    let may_rise = seen.count >= COUNT_MIN && seen.authors >= AUTHORS_MIN;
    let label = if may_rise && multiple >= min_multiple && p_value <= RISING_P_MAX && seen.domains >= DOMAINS_MIN {
        Label::Rising
    } else if may_rise && multiple >= root && p_value <= WARMING_P_MAX {
        Label::Warming
    } else if multiple <= 1.0 / root && baseline >= COOLING_BASELINE_MIN {
        Label::Cooling
    } else {
        Label::Flat
    };
    Labelled { label, multiple: Some(multiple), p_value: Some(p_value) }
}

/// The label when page views are known too: views that rise confirm a phrase that is WARMING, which is RISING then. They change no other label.
#[must_use]
pub fn confirmed(label: Label, views: Option<Label>) -> Label {
    if label == Label::Warming && views == Some(Label::Rising) { Label::Rising } else { label }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn seen(count: u64, baseline: f64, authors: usize) -> Seen {
        Seen { count, authors, domains: authors, baseline: Some(baseline) }
    }

    /// Proves the worked examples of the contract. The contract prints P(Poisson(5) >= 5) as 0.5596; by its formula it is 0.55951, so
    /// probabilities are compared to 1e-4.
    #[test]
    fn worked_examples() {
        for (count, baseline, authors, multiple, p, expected) in [
            (9, 1.0, 5, 3.667, 0.000_001, Label::Rising),
            (4, 0.0, 5, 3.000, 0.000_06, Label::Rising),
            (3, 0.0, 5, 2.500, 0.001_15, Label::Warming),
            (2, 0.0, 5, 2.000, 0.017_52, Label::Flat),
            (12, 6.0, 5, 1.750, 0.020_09, Label::Warming),
            (5, 5.0, 5, 1.000, 0.559_6, Label::Flat),
            (1, 6.0, 5, 0.375, 0.997_5, Label::Cooling),
            // Twenty stories by one author: three count, and one author alone warms nothing.
            (3, 0.0, 1, 2.500, 0.001_15, Label::Flat),
        ] {
            let labelled = label(&seen(count, baseline, authors), 3.0);
            assert_eq!(labelled.label, expected, "{count} {baseline}");
            assert!((labelled.multiple.unwrap() - multiple).abs() < 5e-4, "{count} {baseline}: {labelled:?}");
            assert!((labelled.p_value.unwrap() - p).abs() < 1e-4, "{count} {baseline}: {labelled:?}");
        }
    }

    /// Proves that a phrase without a baseline is flat, and that one domain alone can warm, but not rise.
    #[test]
    fn what_is_missing() {
        assert_eq!(label(&Seen { baseline: None, ..seen(90, 0.0, 9) }, 3.0), Labelled::default());
        assert_eq!(label(&Seen { domains: 1, ..seen(9, 1.0, 5) }, 3.0).label, Label::Warming);
        assert_eq!((confirmed(Label::Warming, Some(Label::Rising)), confirmed(Label::Warming, None)), (Label::Rising, Label::Warming));
        for label in [Label::Flat, Label::Cooling, Label::Rising] {
            assert_eq!((confirmed(label, Some(Label::Rising)), confirmed(label, Some(Label::Cooling))), (label, label));
        }
    }

    /// Proves for random counts that one more story never lowers a label, and that a larger multiple never moves a label away from FLAT.
    #[test]
    fn labels_are_monotone() {
        let mut random = StdRng::seed_from_u64(2);
        for _ in 0..100_000 {
            let count = random.random_range(0..40);
            let authors = random.random_range(0..=usize::try_from(count).unwrap().min(5));
            let one = Seen {
                count,
                authors,
                domains: random.random_range(0..=authors),
                baseline: Some(f64::from(random.random_range(0..200_u32)) / f64::from(random.random_range(1..20_u32))),
            };
            let (low, high) = (1.5 + 18.5 * random.random::<f64>(), 1.5 + 18.5 * random.random::<f64>());
            let (low, high) = (low.min(high), low.max(high));
            let label_of = |seen: &Seen, multiple| label(seen, multiple).label;
            for more in [
                Seen { count: count + 1, ..one },
                Seen { count: count + 1, authors: authors + 1, ..one },
                Seen { count: count + 1, authors: authors + 1, domains: one.domains + 1, ..one },
            ] {
                assert!(label_of(&more, low) >= label_of(&one, low), "{one:?} {more:?} {low}");
            }
            match (label_of(&one, low), label_of(&one, high)) {
                (before, after) if before == after => {}
                (Label::Rising, Label::Warming | Label::Flat) | (Label::Warming | Label::Cooling, Label::Flat) => {}
                (before, after) => panic!("{one:?}: {before:?} at {low}, {after:?} at {high}"),
            }
        }
    }

    /// Proves that labels have the names of answers.
    #[test]
    fn names() {
        for label in [Label::Rising, Label::Warming, Label::Flat, Label::Cooling] {
            assert_eq!(Label::from_name(label.as_str()), Some(label));
            assert_eq!(serde_json::to_string(&label).unwrap(), format!("\"{}\"", label.as_str()));
        }
        assert_eq!(Label::from_name("rising"), None);
    }
}

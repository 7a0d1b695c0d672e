//! Which lines of insurance follow from facts about a business: a data file of rules (`data/mandates.json`) and what applies it.
//!
//! For each line the first rule of the file applies whose conditions hold. [`Basis::Mandated`] is only said where a federal or state rule and a
//! fact of a registration or licence demand the line; a word in a name never gives more than [`Basis::Likely`]. Nothing here says that a
//! business is uninsured.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use texts::company_names::all_words;
use texts::data_file::{DataEntry, DataFile, ShownFile};

/// The most facts that are read.
const FACTS_MAX: usize = 500;
/// The field of the census with the classes of a carrier's operation, separated by semicolons.
const CLASSES: &str = "classdef";
/// What begins a class that the carrier described in its own words: `OTHER-FARMER`.
const OTHER_CLASS: &str = "OTHER";

/// How firmly a line follows, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Basis {
    /// A cited rule and a fact demand it.
    Mandated,
    /// A cited rule demands it under a condition that the facts do not show.
    Conditional,
    /// Businesses of this kind usually have it.
    Likely,
    /// It may be needed.
    Possible,
}

impl Basis {
    /// The basis as answers name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mandated => "MANDATED",
            Self::Conditional => "CONDITIONAL",
            Self::Likely => "LIKELY",
            Self::Possible => "POSSIBLE",
        }
    }
}

/// The lines of insurance, in the order in which results have them.
pub const LINES: [&str; 8] = [
    "AUTO_LIABILITY_BIPD",
    "CARGO",
    "SURETY_BOND",
    "WORKERS_COMP",
    "GENERAL_LIABILITY",
    "LIQUOR_LIABILITY",
    "PROFESSIONAL_LIABILITY",
    "DIRECTORS_OFFICERS",
];

/// The triggers of leads.
pub const TRIGGERS: [&str; 5] = ["new_carrier", "authority_granted", "insurance_lapse", "entity_formed", "foreign_registration"];

/// A fact: the value of a field of a dataset, as the dataset spells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fact {
    /// The field (`classdef`); `name` for the name of a business.
    pub field: String,
    /// The value.
    pub value: String,
    /// The dataset (`az4n-8mr2`).
    pub dataset: String,
}

/// The rule from which a line follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mandate {
    /// What the rule says, in a phrase.
    pub rule: String,
    /// The law; `""` if none demands the line.
    pub citation: String,
    /// The least amount in dollars; `None` if it depends on facts that are not known, or if there is none.
    pub amount: Option<u64>,
    /// The form of the filing; `""` if there is none.
    pub form: String,
    /// Where the law can be read; `""` without a citation.
    pub url: String,
}

/// A line of insurance that follows from facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line, one of [`LINES`].
    pub line: &'static str,
    /// How firmly it follows.
    pub basis: Basis,
    /// The rule.
    pub mandate: Mandate,
    /// The id of the rule in the data file.
    pub rule_id: &'static str,
    /// The facts that the rule read.
    pub evidence: Vec<Fact>,
}

/// A rule of the data file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    line: String,
    basis: Basis,
    /// The triggers to which it applies.
    triggers: Vec<String>,
    /// The states to which it applies; all if empty.
    #[serde(default)]
    states: Vec<String>,
    #[serde(default)]
    when: Vec<Condition>,
    text: String,
    citation: String,
    #[serde(default)]
    amount: Option<u64>,
    /// The field of which the value is the amount, in dollars.
    #[serde(default)]
    amount_field: String,
    form: String,
    url: String,
}

impl DataEntry for Rule {
    fn name(&self) -> &str {
        &self.id
    }

    fn values(&self) -> &[String] {
        &self.states
    }
}

/// A condition on the value of one of several fields. Values are compared in the form of [`compared`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Condition {
    fields: Vec<String>,
    /// The value is one of these.
    is: Vec<String>,
    /// The value is none of these, or there is none.
    is_not: Vec<String>,
    /// The value contains one of these.
    has: Vec<String>,
    /// The value contains none of these, or there is none.
    has_not: Vec<String>,
    /// One of the words of the value is one of these; the word is the evidence.
    words: Vec<String>,
    /// The value is a number of at least this.
    at_least: Option<u64>,
    /// The value is a number of at most this, or there is none.
    at_most: Option<u64>,
    /// The value is no number, or there is none.
    is_unknown: bool,
}

/// A fact with its value as conditions compare it.
struct ComparableFact<'a> {
    fact: &'a Fact,
    value: String,
}

impl<'a> ComparableFact<'a> {
    fn new(fact: &'a Fact) -> Self {
        let value = if fact.field == CLASSES { compared_classes(&fact.value) } else { compared(&fact.value) };
        Self { fact, value }
    }

    /// The value as a number: `2`, also written `2.0`.
    fn number(&self) -> Option<u64> {
        let value = self.fact.value.trim();
        let (whole, part) = value.split_once('.').unwrap_or((value, ""));
        whole.parse::<u64>().ok().filter(|_| part.bytes().all(|byte| byte == b'0'))
    }
}

static RULES: LazyLock<DataFile<Rule>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../data/mandates.json")).unwrap_or_default()
});

/// Returns the version of the data file of rules.
#[must_use]
pub fn version() -> u32 {
    RULES.version
}

/// Returns the data file of rules as documents show it: for each rule its line, basis, text and citation.
#[must_use]
pub fn shown() -> ShownFile {
    let shown = |rule: &Rule| {
        let values = [rule.line.as_str(), rule.basis.as_str(), &rule.text, &rule.citation];
        (rule.id.clone(), values.iter().filter(|value| !value.is_empty()).map(|value| (*value).to_owned()).collect())
    };
    let entries = RULES.entries.iter().map(shown).collect();
    ShownFile { name: "mandates.json", version: RULES.version, about: RULES.about.clone(), sources: RULES.sources.clone(), entries }
}

/// Returns the lines that follow from a trigger and facts, in the order of [`LINES`]. `state` is the two letters of the state of the registration.
/// Facts over the first 500 are not read.
#[must_use]
pub fn lines(trigger: &str, state: &str, facts: &[Fact]) -> Vec<Line> {
    let facts: Vec<ComparableFact<'_>> = facts.iter().take(FACTS_MAX).map(ComparableFact::new).collect();
    LINES
        .iter()
        .filter_map(|line| RULES.entries.iter().filter(|rule| rule.line == *line).find_map(|rule| rule.apply(line, trigger, state, &facts)))
        .collect()
}

impl Rule {
    fn apply(&'static self, line: &'static str, trigger: &str, state: &str, facts: &[ComparableFact<'_>]) -> Option<Line> {
        let is_for = |list: &[String], value: &str| list.iter().any(|known| known == value);
        if !is_for(&self.triggers, trigger) || !(self.states.is_empty() || is_for(&self.states, state)) {
            return None;
        }
        let mut evidence: Vec<Fact> = Vec::new();
        for condition in &self.when {
            let found = condition.holds(facts)?;
            evidence.extend(found.filter(|fact| !evidence.contains(fact)));
        }
        let from_field = || facts.iter().find(|known| known.fact.field == self.amount_field)?.number();
        let mandate = Mandate {
            rule: self.text.clone(),
            citation: self.citation.clone(),
            amount: self.amount.or_else(from_field),
            form: self.form.clone(),
            url: self.url.clone(),
        };
        Some(Line { line, basis: self.basis, mandate, rule_id: &self.id, evidence })
    }
}

impl Condition {
    /// Whether the condition holds: then the fact that shows it, if one does. `None` if it does not hold.
    fn holds(&self, facts: &[ComparableFact<'_>]) -> Option<Option<Fact>> {
        let mut named = facts.iter().filter(|known| self.fields.contains(&known.fact.field));
        let is_refused = |known: &ComparableFact<'_>| {
            contains(&self.is_not, &known.value)
                || self.has_not.iter().any(|part| known.value.contains(part.as_str()))
                || known.number().is_some_and(|number| self.is_unknown || self.at_most.is_some_and(|most| number > most))
        };
        if self.is_unknown || self.at_most.is_some() || !(self.is_not.is_empty() && self.has_not.is_empty()) {
            let first = named.next();
            return (!first.is_some_and(is_refused) && !named.any(is_refused)).then(|| first.map(|known| known.fact.clone()));
        }
        named.find_map(|known| self.shown_by(known)).map(Some)
    }

    fn shown_by(&self, known: &ComparableFact<'_>) -> Option<Fact> {
        if !self.words.is_empty() {
            let words = all_words(&known.fact.value);
            let word = words.iter().find(|word| contains(&self.words, word))?;
            return Some(Fact { value: word.to_lowercase(), ..known.fact.clone() });
        }
        let is_shown = match self.at_least {
            Some(least) => known.number().is_some_and(|number| number >= least),
            None => contains(&self.is, &known.value) || self.has.iter().any(|part| known.value.contains(part.as_str())),
        };
        is_shown.then(|| known.fact.clone())
    }
}

/// Returns a value in the form in which it is compared: in capitals, with one blank for signs between words, and without periods and apostrophes
/// (`Private(Property)` is `PRIVATE PROPERTY`, `GOV'T` is `GOVT`).
fn compared(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars().flat_map(char::to_uppercase) {
        match c {
            c if c.is_alphanumeric() => text.push(c),
            '.' | '\'' | '\u{2019}' => {}
            _ if text.is_empty() || text.ends_with(' ') => {}
            _ => text.push(' '),
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns a list of classes in the form in which it is compared, without those that the carrier described in its own words: `OTHER-GOVERNMENT CONTRACTS`
/// is no government.
fn compared_classes(value: &str) -> String {
    let is_own_words = |class: &str| class.strip_prefix(OTHER_CLASS).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let classes = value.split(';').map(compared).filter(|class| !is_own_words(class));
    classes.collect::<Vec<_>>().join(";")
}

fn contains(list: &[String], value: &str) -> bool {
    list.iter().any(|known| known == value)
}

#[cfg(test)]
#[path = "mandates_tests.rs"]
mod tests;

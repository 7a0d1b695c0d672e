//! What a check finds and compares.

use crate::rules::{RuleSet, similar_by};
use crate::{Classes, Mark, Rule, distance};

/// A mark that is similar to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The serial number.
    pub serial: u32,
    /// The rule.
    pub rule: Rule,
    /// Its classes.
    pub classes: Classes,
    /// Whether its status is known to be live; otherwise the hit counts one tier lower.
    pub is_live: bool,
    /// The distance of name and mark in letters.
    pub distance: u32,
}

/// What a check compares, for measurements.
#[derive(Clone, Debug)]
pub struct Work {
    /// The marks that were compared.
    pub candidates: usize,
    /// What each rule had, in the order of the rules.
    pub by_rule: Vec<RuleWork>,
}

/// What a check compares by one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleWork {
    /// The rule.
    pub rule: Rule,
    /// The marks that keys of the rule found. Keys of several rules may find a mark.
    pub candidates: usize,
    /// The marks that are similar by the rule.
    pub hits: usize,
}

/// The first of the given rules by which a name and a mark with its pseudo marks are alike, and their distance. Each text is in the normal form, and rules
/// that are `known` to hold are not tried.
pub(super) fn compare<'a>(name: &Mark, mut texts: impl Iterator<Item = &'a str>, rules: RuleSet, known: RuleSet) -> Option<(Rule, u32)> {
    let mark = Mark::from_normal(texts.next()?);
    let mut rule = similar_by(name, &mark, rules, known);
    if rule != Some(Rule::E1) && texts.any(|text| Mark::from_normal(text).compact() == name.compact()) {
        rule = Some(Rule::E2);
    }
    Some((rule?, u32::try_from(distance(name, &mark)).unwrap_or(u32::MAX)))
}

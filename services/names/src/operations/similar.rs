//! Which trademarks are similar to a name, and how answers show them.

use crate::record::{LIVE, Trademark, UNKNOWN};
use marks::{Classes, Mark, RULES_VERSION, Rule, Status, Tier, similar, why};
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name_arguments::{ClassList, read_name};

/// How similar a mark must be at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MinTier {
    /// The same letters.
    Exact,
    /// Likely to be held similar, or the same letters.
    #[default]
    Strong,
    /// A part in common, or more.
    Partial,
}

impl MinTier {
    fn tier(self) -> Tier {
        match self {
            Self::Exact => Tier::Exact,
            Self::Strong => Tier::Strong,
            Self::Partial => Tier::Partial,
        }
    }
}

/// Why a trademark is similar to a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Similarity {
    /// `exact`, `strong` or `partial`. A mark of unknown status counts one tier lower.
    pub tier: &'static str,
    /// The id of the rule.
    pub rule: &'static str,
    /// What the rule found, in a sentence.
    pub why: String,
}

/// A name with which trademarks are compared one by one: what a watch of a name selects.
#[derive(Clone, Debug)]
pub struct Wanted {
    name: Mark,
    classes: Classes,
    least: Tier,
}

impl Wanted {
    /// Marks that are similar to a name in one of some classes; in any class if there are none.
    ///
    /// # Errors
    /// `parameter-invalid` for a name without a letter or digit.
    pub fn new(name: &str, classes: &ClassList, least: MinTier) -> Result<Self, Problem> {
        Ok(Self { name: read_name(name)?, classes: classes.classes(), least: least.tier() })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &Mark {
        &self.name
    }

    /// Whether [`Self::similarity`] finds a trademark similar, without explaining it.
    #[must_use]
    pub fn is_similar(&self, trademark: &Trademark) -> bool {
        self.classes.meets(classes_of(trademark)) && compared(&self.name, trademark).is_some_and(|(tier, _)| tier <= self.least)
    }

    /// Why a trademark is similar to the name; `None` if it is not, not enough, dead, or of other classes.
    #[must_use]
    pub fn similarity(&self, trademark: &Trademark) -> Option<Similarity> {
        if !self.classes.meets(classes_of(trademark)) {
            return None;
        }
        let (tier, rule) = compared(&self.name, trademark)?;
        (tier <= self.least).then(|| explained(&self.name, trademark, tier, rule))
    }
}

/// The tier in which a trademark counts for a name, and the rule.
pub(crate) fn compared(name: &Mark, trademark: &Trademark) -> Option<(Tier, Rule)> {
    let status = status_of(trademark);
    if status == Status::Dead {
        return None;
    }
    let mark = Mark::new(&trademark.mark)?;
    let is_pseudo = || trademark.pseudo_marks.iter().filter_map(|text| Mark::new(text)).any(|pseudo| pseudo.compact() == name.compact());
    let rule = match similar(name, &mark) {
        Some(Rule::E1) => Rule::E1,
        _ if is_pseudo() => Rule::E2,
        rule => rule?,
    };
    Some((rule.tier().counted(status)?, rule))
}

/// Explains why a trademark is similar to a name by a rule.
pub(crate) fn explained(name: &Mark, trademark: &Trademark, tier: Tier, rule: Rule) -> Similarity {
    let why = Mark::new(&trademark.mark).map(|mark| why(rule, name, &mark)).unwrap_or_default();
    Similarity { tier: tier.as_str(), rule: rule.id(), why }
}

fn status_of(trademark: &Trademark) -> Status {
    match trademark.status.as_str() {
        LIVE => Status::Live,
        UNKNOWN => Status::Unknown,
        _ => Status::Dead,
    }
}

/// The classes of a trademark as the rules take them.
pub(crate) fn classes_of(trademark: &Trademark) -> Classes {
    let numbers = trademark.intl_class.iter().map(ToString::to_string);
    Classes::of_codes(numbers.chain(trademark.other_classes.iter().cloned()))
}

/// A trademark that is similar to a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimilarMark {
    /// The words of the mark.
    pub mark: String,
    /// The owner; several are separated by `; `.
    pub owner: String,
    /// Why the mark is similar.
    #[serde(flatten)]
    pub similarity: Similarity,
    /// International classes of goods and services: 1 to 45, 200 for collective membership.
    pub intl_class: Vec<i64>,
    /// Classes of certification marks: `A`, `B`.
    pub other_classes: Vec<String>,
    /// Serial number: 8 digits.
    pub serial: String,
    /// Registration number; empty if the mark is not registered.
    pub registration: String,
    /// `live`, or `unknown` if the register's code says neither live nor dead.
    pub status: String,
    /// Status code of the register: 3 digits.
    pub status_code: String,
    /// Day of the application, `YYYY-MM-DD`; empty if unknown.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filing_date: String,
    /// URL of the mark's page in the register.
    pub url: String,
}

impl SimilarMark {
    /// Shows a trademark with the reason.
    #[must_use]
    pub fn new(trademark: Trademark, similarity: Similarity) -> Self {
        let url = trademark.url();
        let Trademark { serial, registration, mark, owner, intl_class, other_classes, status, status_code, filing_date, .. } = trademark;
        Self { mark, owner, similarity, intl_class, other_classes, serial, registration, status, status_code, filing_date, url }
    }
}

/// The versions of the rules and of their data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The version of the rules.
    pub rules_version: u32,
    /// The version of the data file of words that the rules use.
    pub words_version: u32,
}

impl Versions {
    /// The versions of this program.
    #[must_use]
    pub fn current() -> Self {
        Self { rules_version: RULES_VERSION, words_version: marks::words::version() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trademark(mark: &str, status: &str) -> Trademark {
        Trademark { mark: mark.to_owned(), status: status.to_owned(), intl_class: vec![9], ..Trademark::default() }
    }

    /// Proves the worked examples of the contract that depend on the status, and that a watch selects by class and tier.
    #[test]
    fn statuses_classes_and_tiers() {
        let wanted = |name: &str, classes: &[u8], least| Wanted::new(name, &ClassList::new(classes), least).unwrap();
        let tier = |wanted: &Wanted, mark: &Trademark| wanted.similarity(mark).map(|found| (found.tier, found.rule));
        let acme = wanted("Acme", &[], MinTier::Strong);
        assert_eq!(tier(&acme, &trademark("ACME", "live")), Some(("exact", "E1")));
        assert_eq!(tier(&acme, &trademark("ACME", "unknown")), Some(("strong", "E1")));
        assert_eq!(tier(&acme, &trademark("ACME", "dead")), None);
        let pseudo = Trademark { pseudo_marks: vec!["AC ME".into()], ..trademark("XKMEE", "live") };
        assert_eq!(tier(&acme, &pseudo), Some(("exact", "E2")));
        let turcool = trademark("TRUCOOL", "live");
        assert_eq!(tier(&wanted("Turcool", &[9, 25], MinTier::Strong), &turcool), Some(("strong", "S3")));
        assert_eq!(tier(&wanted("Turcool", &[25], MinTier::Strong), &turcool), None);
        assert_eq!(tier(&wanted("Turcool", &[], MinTier::Exact), &turcool), None);
        let lutex = trademark("LUTEX", "live");
        assert_eq!(tier(&wanted("Lutexal", &[], MinTier::Strong), &lutex), None);
        let found = wanted("Lutexal", &[], MinTier::Partial).similarity(&lutex).unwrap();
        assert_eq!((found.tier, found.rule, found.why.as_str()), ("partial", "P3", "LUTEX is inside LUTEXAL"));
        assert!(Wanted::new("?!", &ClassList::default(), MinTier::Strong).is_err());
    }
}

//! Names and classes as callers give them.

use std::borrow::Cow;

use marks::{Classes, Mark};
use operation::problem::Problem;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// The most classes of one question.
const CLASSES_MAX: usize = 5;

/// International classes of goods and services, ascending; none for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ClassList(Vec<u8>);

impl ClassList {
    /// The list of some classes. Numbers that are no class are left out.
    #[must_use]
    pub fn new(classes: &[u8]) -> Self {
        let mut classes: Vec<u8> = classes.iter().copied().filter(|class| (1..=45).contains(class)).collect();
        classes.sort_unstable();
        classes.dedup();
        Self(classes)
    }

    /// Whether all classes are meant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The classes, ascending.
    #[must_use]
    pub fn numbers(&self) -> &[u8] {
        &self.0
    }

    /// The classes as the rules take them.
    #[must_use]
    pub fn classes(&self) -> Classes {
        Classes::of(&self.0)
    }
}

/// A class, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(u8),
    Many(Vec<u8>),
}

impl<'de> Deserialize<'de> for ClassList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(class) => Self::new(&[class]),
            OneOrMany::Many(classes) => Self::new(&classes),
        })
    }
}

impl JsonSchema for ClassList {
    fn schema_name() -> Cow<'static, str> {
        "ClassList".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "array"],
            "minimum": 1,
            "maximum": 45,
            "items": { "type": "integer", "minimum": 1, "maximum": 45 },
            "maxItems": CLASSES_MAX,
            "uniqueItems": true,
        })
    }
}

/// Reads a name.
///
/// # Errors
/// `parameter-invalid` for a name without a letter or digit.
pub fn read_name(name: &str) -> Result<Mark, Problem> {
    Mark::new(name).ok_or_else(|| Problem::parameter("name", format!("name: {name:?} has neither a letter nor a digit")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a class is given alone or in a list, in any order.
    #[test]
    fn classes() {
        let classes_from = |text: &str| serde_json::from_str::<ClassList>(text).unwrap();
        assert_eq!((classes_from("9"), classes_from("[25, 9]")), (ClassList::new(&[9]), ClassList::new(&[9, 25])));
        assert_eq!(serde_json::to_string(&classes_from("[25, 9]")).unwrap(), "[9,25]");
        assert_eq!(classes_from("[]"), ClassList::default(), "no class means all");
        assert!(ClassList::default().is_empty() && read_name("--").is_err() && read_name("1").is_ok());
    }
}

//! Parcels of Cook County, Illinois: their numbers (PINs), townships and classes. The classes are a data file (`data/cook_classes.json`).

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::data_file::{DataEntry, DataFile, ShownFile};
use crate::numbers::has_only_digits;

/// The county as answers name it.
pub const COUNTY: &str = "cook-il";
/// The digits of a PIN.
pub const PIN_DIGITS: usize = 14;

/// The townships by which the county is assessed: code and name.
pub const TOWNSHIPS: [(&str, &str); 38] = [
    ("10", "Barrington"),
    ("11", "Berwyn"),
    ("12", "Bloom"),
    ("13", "Bremen"),
    ("14", "Calumet"),
    ("15", "Cicero"),
    ("16", "Elk Grove"),
    ("17", "Evanston"),
    ("18", "Hanover"),
    ("19", "Lemont"),
    ("20", "Leyden"),
    ("21", "Lyons"),
    ("22", "Maine"),
    ("23", "New Trier"),
    ("24", "Niles"),
    ("25", "Northfield"),
    ("26", "Norwood Park"),
    ("27", "Oak Park"),
    ("28", "Orland"),
    ("29", "Palatine"),
    ("30", "Palos"),
    ("31", "Proviso"),
    ("32", "Rich"),
    ("33", "River Forest"),
    ("34", "Riverside"),
    ("35", "Schaumburg"),
    ("36", "Stickney"),
    ("37", "Thornton"),
    ("38", "Wheeling"),
    ("39", "Worth"),
    ("70", "Hyde Park"),
    ("71", "Jefferson"),
    ("72", "Lake"),
    ("73", "Lake View"),
    ("74", "North Chicago"),
    ("75", "Rogers Park"),
    ("76", "South Chicago"),
    ("77", "West Chicago"),
];

/// Reads a PIN as people write it: 14 digits, or with dashes (`16-01-216-001-0000`).
///
/// # Errors
/// What is wrong with the text, in words that follow the name of the parameter.
pub fn parse_pin(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    let pin = if text.contains('-') { undashed(text).unwrap_or_default() } else { text.to_owned() };
    match pin.len() {
        _ if !pin.bytes().all(|byte| byte.is_ascii_digit()) => Err("a PIN of Cook County has 14 digits and nothing else"),
        PIN_DIGITS => Ok(pin),
        10 => Err("10 digits name a building; give all 14 digits of the PIN"),
        _ => Err("a PIN of Cook County has 14 digits"),
    }
}

/// The digits of a PIN with dashes; `None` if its parts do not have 2, 2, 3, 3 and 4 digits.
fn undashed(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('-').collect();
    let is_right = parts.len() == 5 && parts.iter().zip([2, 2, 3, 3, 4]).all(|(part, digits)| part.len() == digits);
    is_right.then(|| parts.concat())
}

/// The PIN of a dataset, where a program that read it as a number can have removed its first zero. `None` if it is none.
#[must_use]
pub fn published_pin(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_suffix(".0").unwrap_or(text);
    let digits = if text.contains('-') { undashed(text)? } else { text.to_owned() };
    let is_pin = (PIN_DIGITS - 1..=PIN_DIGITS).contains(&digits.len()) && has_only_digits(&digits);
    is_pin.then(|| format!("{digits:0>14}"))
}

/// The name of a township by its code.
#[must_use]
pub fn township_name(code: &str) -> Option<&'static str> {
    TOWNSHIPS.iter().find(|(known, _)| *known == code).map(|(_, name)| *name)
}

/// The code of a township by its code or its name, in any case.
#[must_use]
pub fn township_code(text: &str) -> Option<&'static str> {
    let text = text.trim();
    TOWNSHIPS.iter().find(|(code, name)| *code == text || name.eq_ignore_ascii_case(text)).map(|(code, _)| *code)
}

/// Returns a class without the marks that some rows have in it: `2.1-1)A` is `211A`.
#[must_use]
pub fn class(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).take(6).collect()
}

/// A class of parcels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Class {
    name: String,
    /// The level of assessment in hundredths of a percent; 0 if it is not known.
    level: i64,
    /// What the class is called: one text.
    labels: Vec<String>,
}

impl DataEntry for Class {
    fn name(&self) -> &str {
        &self.name
    }

    fn values(&self) -> &[String] {
        &self.labels
    }
}

static CLASSES: LazyLock<DataFile<Class>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../data/cook_classes.json")).unwrap_or_default()
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static Class>> =
    LazyLock::new(|| CLASSES.entries.iter().map(|class| (class.name.as_str(), class)).collect());

/// The entry of a class. A letter after three digits names a part of the class (`663A`).
fn entry(class: &str) -> Option<&'static Class> {
    let whole = BY_NAME.get(class).copied();
    whole.or_else(|| BY_NAME.get(class.get(..3).filter(|_| class.len() == 4)?).copied())
}

/// What a class is called; empty if the data file does not have it.
#[must_use]
pub fn class_label(class: &str) -> &'static str {
    entry(class).and_then(|class| class.labels.first()).map_or("", String::as_str)
}

/// The level of assessment of a class in hundredths of a percent of the market value: 2,500 for class 517. `None` if it is not known.
#[must_use]
pub fn level(class: &str) -> Option<i64> {
    entry(class).map(|class| class.level).filter(|level| *level > 0)
}

/// Whether a class is commercial or industrial: major class 5.
#[must_use]
pub fn is_commercial(class: &str) -> bool {
    class.starts_with('5') && entry(class).is_some()
}

/// Whether the data file has a class.
#[must_use]
pub fn is_class(class: &str) -> bool {
    entry(class).is_some()
}

/// The first class of the data file whose digits begin with fewer ones: `300` for the major class `3`. `None` for anything else.
#[must_use]
pub fn first_class_of(digits: &str) -> Option<&'static str> {
    let is_part = (1..3).contains(&digits.len()) && has_only_digits(digits);
    let names = CLASSES.entries.iter().map(|class| class.name.as_str());
    names.filter(|name| is_part && name.starts_with(digits)).min()
}

/// The version of the data file of classes.
#[must_use]
pub fn classes_version() -> u32 {
    CLASSES.version
}

/// The data file of classes as documents show it.
#[must_use]
pub fn shown_classes() -> ShownFile {
    CLASSES.shown("cook_classes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the rules of data files, and that each class has one label.
    #[test]
    fn the_data_file_is_sound() {
        let file: DataFile<Class> = DataFile::parse(include_str!("../data/cook_classes.json")).unwrap();
        assert_eq!(file.check(), Ok(()));
        assert!(file.entries.len() > 150 && file.entries.iter().all(|class| class.labels.len() == 1 && (0..=2_500).contains(&class.level)));
        assert!(TOWNSHIPS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    /// Proves which texts are PINs, and what is said about the others.
    #[test]
    fn pins() {
        for text in ["16012160010000", "16-01-216-001-0000", " 16012160010000 "] {
            assert_eq!(parse_pin(text).as_deref(), Ok("16012160010000"), "{text}");
        }
        for (text, words) in [
            ("1601216001000", "14 digits"),
            ("1601216001", "give all 14"),
            ("1601216001000A", "nothing else"),
            ("16-01-216-0010000", "14 digits"),
            ("", "14 digits"),
            ("\u{661}6012160010000", "nothing else"),
        ] {
            assert!(parse_pin(text).unwrap_err().contains(words), "{text}");
        }
        for (text, pin) in [
            ("1012160010000", Some("01012160010000")),
            ("01-01-216-001-0000", Some("01012160010000")),
            ("16012160010000.0", Some("16012160010000")),
            ("1601216001", None),
            ("none", None),
            ("", None),
        ] {
            assert_eq!(published_pin(text).as_deref(), pin, "{text}");
        }
    }

    /// Proves how classes and townships are read.
    #[test]
    fn classes_and_townships() {
        assert_eq!([class("2.1-1)A"), class(" ex "), class("517")], ["211A", "EX", "517"]);
        let levels = ["517", "211A", "EX", "663A", "700", "999"].map(level);
        assert_eq!(levels, [Some(2_500), Some(1_000), None, None, None, None]);
        assert_eq!((class_label("517"), class_label("ZZZ")), ("One-story commercial building", ""));
        assert_eq!(["517", "593", "391", "EX", "5"].map(is_commercial), [true, true, false, false, false]);
        assert_eq!([township_code("70"), township_code("hyde park"), township_code("Atlantis")], [Some("70"), Some("70"), None]);
        assert_eq!(township_name("27"), Some("Oak Park"));
    }
}

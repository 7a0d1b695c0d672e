//! Which fields of a rejected record are stored. The topic `rejected` keeps the bytes of records that could not be mapped, and the log forgets nothing.
//! So what may say where a person lives is removed before a record leaves its upstream, and the reason of the rejection names the removed fields.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::text;

/// The most removed fields that a reason names.
const NAMED_MAX: usize = 12;
/// The longest name of a field in a reason, in characters.
const NAME_CHARS_MAX: usize = 40;

/// The fields of a stream's records that may be stored with a rejected record. Without it, all are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredFields {
    /// The fields that are requested. A field that was not requested, and one that was renamed, can be about a person.
    pub(crate) requested: &'static [&'static str],
    /// Those of the requested fields that can be about a person, and are removed, too.
    pub(crate) personal: &'static [&'static str],
}

/// A record without the fields that are not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redacted {
    /// The bytes that are stored: those of the record if nothing was removed.
    pub(crate) raw: Vec<u8>,
    /// What was removed, in the record's order; `None` if nothing was.
    pub(crate) removed: Option<String>,
}

impl StoredFields {
    fn is_stored(&self, name: &str) -> bool {
        self.requested.contains(&name) && !self.personal.contains(&name)
    }

    /// Removes the fields of a record that are not stored. Of a record that is not an object only the length is left, since it is not known what is in it.
    pub(crate) fn redact(&self, record: &str) -> Redacted {
        let Ok(Members(members)) = serde_json::from_str(record) else {
            let raw = format!("{{\"bytes\":{}}}", record.len()).into_bytes();
            return Redacted { raw, removed: Some("all of it".to_owned()) };
        };
        let (stored, removed): (Vec<_>, Vec<_>) = members.iter().partition(|(name, _)| self.is_stored(name));
        if removed.is_empty() {
            return Redacted { raw: record.as_bytes().to_vec(), removed: None };
        }
        // The names that are left are those of requested fields, which need no escapes.
        let stored: Vec<String> = stored.iter().map(|(name, value)| format!("\"{name}\":{}", value.get())).collect();
        Redacted { raw: format!("{{{}}}", stored.join(",")).into_bytes(), removed: Some(names(&removed)) }
    }
}

/// The names of members as a reason shows them: each once, of very many only the first.
fn names(members: &[&(String, &RawValue)]) -> String {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in members {
        let name = text::cut(text::clean(name), NAME_CHARS_MAX);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// The members of an object in their order, also those with one name.
struct Members<'a>(Vec<(String, &'a RawValue)>);

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// Returns a postal code as it is stored: of a ZIP code the five digits without the four that name a block (`80203-1234` and `802031234` are `80203`),
/// also if a source lost zeros at the beginning of the nine. Codes of other countries are whole if `keeps_others`, since they can name a block, too.
pub(crate) fn postal_code(code: &str, keeps_others: bool) -> String {
    let is_digits = code.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | ' '));
    let digits: String = code.chars().filter(char::is_ascii_digit).collect();
    match digits.len() {
        0..=5 if is_digits => digits,
        7..=9 if is_digits => format!("{digits:0>9}").chars().take(5).collect(),
        _ if keeps_others => code.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: StoredFields = StoredFields { requested: &["dot", "name", "street"], personal: &["street"] };

    fn redact(record: &str) -> (String, Option<String>) {
        let Redacted { raw, removed } = FIELDS.redact(record);
        (String::from_utf8(raw).unwrap(), removed)
    }

    /// Proves that a personal field, one of its name in another place, and one that was not requested are removed and named, and that the others keep their
    /// bytes; a record without such fields is stored as it was sent.
    #[test]
    fn personal_fields_are_removed() {
        let whole = r#"{"dot": "1", "name": "A\u00e9"}"#;
        assert_eq!(redact(whole), (whole.to_owned(), None));
        let record =
            r#"{"dot": 1.0, "street": "5 HOME LN", "phone": "555", "name": {"a": [1]}, "street": "6 HOME LN", "Street": "7 HOME LN"}"#;
        assert_eq!(redact(record), (r#"{"dot":1.0,"name":{"a": [1]}}"#.to_owned(), Some("street, phone, Street".to_owned())));
        // A text that is no valid one is stored only in a field that may be.
        assert_eq!(redact(r#"{"dot":"\ud800","street":"\ud800"}"#), (r#"{"dot":"\ud800"}"#.to_owned(), Some("street".to_owned())));
        assert_eq!(redact("{}"), ("{}".to_owned(), None));
    }

    /// Proves that nothing is stored of a record that is no object with readable names, and that very many names are bounded.
    #[test]
    fn records_without_fields_are_not_stored() {
        for record in [r#""5 HOME LN""#, r#"["5 HOME LN"]"#, r#"{"\ud800": "5 HOME LN"}"#, "7"] {
            assert_eq!(redact(record), (format!("{{\"bytes\":{}}}", record.len()), Some("all of it".to_owned())), "{record}");
        }
        let many: Vec<String> = (0..100).map(|number| format!("\"{}{number}\":1", "x".repeat(60))).collect();
        let (raw, removed) = redact(&format!("{{{}}}", many.join(",")));
        assert!(raw == "{}" && removed.unwrap().chars().count() < 600);
    }

    /// Proves that a ZIP code is stored without its last four digits in each spelling, and codes of other countries only if they may be.
    #[test]
    fn postal_codes() {
        for (code, stored) in [
            ("80203", "80203"),
            ("802031234", "80203"),
            ("80203-1234", "80203"),
            ("80203 1234", "80203"),
            ("61030001", "06103"),
            ("6103", "6103"),
            ("", ""),
        ] {
            assert_eq!([postal_code(code, true), postal_code(code, false)], [stored, stored], "{code}");
        }
        for code in ["K1A 0B1", "SW1A 1AA", "100001", "1234567890"] {
            assert_eq!([postal_code(code, true), postal_code(code, false)], [code, ""], "{code}");
        }
    }
}

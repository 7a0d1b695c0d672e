//! A party that is excluded from federal awards, as one row of an exclusion list.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};
use proofs::evidence;

/// The values of [`ExclusionFact::classification`].
pub mod classification {
    /// A firm.
    pub const FIRM: &str = "Firm";
    /// A natural person.
    pub const INDIVIDUAL: &str = "Individual";
    /// Any other entity.
    pub const SPECIAL_ENTITY: &str = "Special Entity Designation";
    /// A ship.
    pub const VESSEL: &str = "Vessel";
    /// THE LIST of classifications. A row may have none.
    pub const ALL: [&str; 4] = [FIRM, INDIVIDUAL, SPECIAL_ENTITY, VESSEL];
}

/// The termination date of an exclusion without an end.
pub const INDEFINITE: &str = "Indefinite";

/// One row of the list. Texts are trimmed, white space collapsed; `""` means unknown. Days are `YYYY-MM-DD`. Of a person only the name is stored and,
/// if the list gives one, the UEI; no address, no comment and no other number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExclusionFact {
    /// The stream that published it.
    pub stream: String,
    /// What the party is, see [`classification`]; empty if the list does not say.
    pub classification: String,
    /// Name of an entity or a ship; empty for persons.
    pub name: String,
    /// Title of a person.
    pub prefix: String,
    /// First name of a person.
    pub first: String,
    /// Middle names of a person.
    pub middle: String,
    /// Last name of a person.
    pub last: String,
    /// Suffix of a person's name: `JR`.
    pub suffix: String,
    /// Street and house number.
    pub street: String,
    /// City.
    pub city: String,
    /// State or province.
    pub state: String,
    /// Country, three letters.
    pub country: String,
    /// Postal code.
    pub zip: String,
    /// Unique entity id, twelve letters and digits.
    pub uei: String,
    /// Commercial and government entity code.
    pub cage: String,
    /// National provider identifier.
    pub npi: String,
    /// The number of the list before March 2026, which is no longer given.
    pub sam_number: String,
    /// The excluding agency, a short code: `EPA`.
    pub agency: String,
    /// `Reciprocal`, `NonProcurement` or `Procurement`.
    pub program: String,
    /// `Ineligible (Proceedings Pending)`, `Ineligible (Proceedings Completed)`, `Prohibition/Restriction` or `Voluntary Exclusion`.
    pub exclusion_type: String,
    /// Code of the cause, of exclusions before August 2012.
    pub cause_code: String,
    /// The agency's comments; at most 2,000 characters.
    pub comments: String,
    /// Day since which the exclusion is active.
    pub active_date: String,
    /// Day on which it ends, or [`INDEFINITE`].
    pub termination_date: String,
    /// Day on which it was entered.
    pub creation_date: String,
    /// Other names of the party, sorted. The list gives them in another order each day, separated by commas that names also contain.
    pub cross_references: Vec<String>,
}

/// What identifies a row, in the form that is hashed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Identity<'a> {
    active_date: &'a str,
    agency: &'a str,
    classification: &'a str,
    creation_date: &'a str,
    party: String,
    program: &'a str,
    #[serde(rename = "type")]
    exclusion_type: &'a str,
}

/// The hex digits of the hash that identify a row.
const ID_DIGITS: usize = 32;

impl ExclusionFact {
    /// Returns the canonical form for the content hash, with every field.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }

    /// The full name of the party: the name of an entity, or the parts of a person's name joined by blanks.
    #[must_use]
    pub fn full_name(&self) -> String {
        let parts = [&self.prefix, &self.first, &self.middle, &self.last, &self.suffix, &self.name];
        parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The identity of the row within the list: the first 32 hex digits of the SHA-256 of the canonical JSON (RFC 8785) of active date, agency,
    /// classification, creation date, party (the UEI, or else the name in capitals), program and type. The list gives rows no number of their own.
    #[must_use]
    pub fn row_id(&self) -> String {
        let identity = Identity {
            active_date: &self.active_date,
            agency: &self.agency,
            classification: &self.classification,
            creation_date: &self.creation_date,
            party: if self.uei.is_empty() { self.full_name().to_uppercase() } else { self.uei.clone() },
            program: &self.program,
            exclusion_type: &self.exclusion_type,
        };
        // Texts always have a canonical form.
        let hash = evidence::hash(&identity).unwrap_or_default();
        hash.trim_start_matches("sha256:").get(..ID_DIGITS).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{FactData, testing};

    fn fact() -> ExclusionFact {
        ExclusionFact {
            classification: classification::FIRM.into(),
            name: "Acme, LLC".into(),
            agency: "EPA".into(),
            program: "Reciprocal".into(),
            exclusion_type: "Ineligible (Proceedings Completed)".into(),
            active_date: "2026-10-01".into(),
            creation_date: "2026-10-02".into(),
            ..ExclusionFact::default()
        }
    }

    /// Proves that a change of any field changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(ExclusionFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record = testing_record();
        let data = FactData::Exclusion(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }

    fn testing_record() -> ExclusionFact {
        let text = |text: &str| text.to_owned();
        ExclusionFact {
            stream: text("a"),
            prefix: text("b"),
            first: text("c"),
            middle: text("d"),
            last: text("e"),
            suffix: text("f"),
            street: text("g"),
            city: text("h"),
            state: text("i"),
            country: text("j"),
            zip: text("k"),
            uei: text("l"),
            cage: text("m"),
            npi: text("n"),
            sam_number: text("o"),
            cause_code: text("p"),
            comments: text("q"),
            termination_date: text("r"),
            cross_references: vec![text("s")],
            ..fact()
        }
    }

    /// Proves what identifies a row: the party and the exclusion, by the hash of their canonical JSON. Attributes of the party do not.
    #[test]
    fn identity() {
        // Computed with Python: hashlib.sha256(json.dumps(…, sort_keys=True, separators=(",", ":"))).
        assert_eq!(fact().row_id(), "cda3ed6fbd66d929d2af8c50c906487c");
        assert_eq!(ExclusionFact { uei: "ABCDEF123456".into(), ..fact() }.row_id(), "cb5f11459fe8e7537b342f5134d7073f");
        let other =
            ExclusionFact { cage: "1A2B3".into(), comments: "x".into(), cross_references: vec!["y".into()], zip: "1".into(), ..fact() };
        assert_eq!(other.row_id(), fact().row_id());
        for other in [
            ExclusionFact { agency: "HHS".into(), ..fact() },
            ExclusionFact { active_date: String::new(), ..fact() },
            ExclusionFact { classification: String::new(), ..fact() },
            ExclusionFact { name: "Acme LLC".into(), ..fact() },
        ] {
            assert_ne!(other.row_id(), fact().row_id());
        }
        let person = ExclusionFact { name: String::new(), first: "Ann".into(), middle: "B".into(), last: "Lee".into(), ..fact() };
        assert_eq!(person.full_name(), "Ann B Lee");
    }
}

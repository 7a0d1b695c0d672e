//! What the register of a state published about one business: an entity, or an event of one.
//!
//! Registered agents, people who file, e-mail addresses and phone numbers are never stored.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// An entity of a register as it is, or one event of an entity where the register publishes events. Texts are trimmed and white space is collapsed;
/// `""` means unknown. Dates are `YYYY-MM-DD`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BusinessFact {
    /// The stream that published it.
    pub stream: String,
    /// The register's number of the entity.
    pub entity: String,
    /// The register's number of the event; `""` where a record is an entity.
    pub event: String,
    /// The name, without what the register adds to it when the entity ends.
    pub name: String,
    /// The type of entity, as published.
    pub entity_type: String,
    /// Event: what was filed.
    pub filing_type: String,
    /// The status, as published.
    pub status: String,
    /// Where it was formed, as published.
    pub jurisdiction: String,
    /// Whether it was formed in another state or country.
    pub is_foreign: bool,
    /// The day on which it was formed or registered, or on which the event was filed.
    pub day: String,
    /// The day on which it ended.
    pub ended: String,
    /// The line of its own address with the street; that of an agent is none. `""` for a name of a person, and where the type of entity is not known.
    pub street: String,
    /// The city.
    pub city: String,
    /// The state of its address.
    pub state: String,
    /// The five digits of the ZIP code. A code of another country is as published, and not stored where the type of entity is not known.
    pub zip: String,
    /// Industry code.
    pub naics: String,
}

impl BusinessFact {
    /// Returns the canonical form for the content hash, with every field.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{FactData, testing};

    /// Proves that a change of any field changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(BusinessFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record: BusinessFact = testing::with_every_field();
        let data = FactData::Business(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

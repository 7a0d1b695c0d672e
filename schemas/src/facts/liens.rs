//! A tax lien of a parcel as a court published it, with its current status.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// One record. Texts are trimmed and white space is collapsed; `""` means unknown. No full name of a natural person is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LienFact {
    /// The stream that published it.
    pub stream: String,
    /// The number of the docket, `DTD-03-037477`. One docket can have several liens.
    pub docket: String,
    /// The description, which names the taxing bodies: `City & School Tax Lien`.
    pub description: String,
    /// The tax year.
    pub year: Option<i64>,
    /// The block and lot, as courts write them: `558H67`, `232L374 2`.
    pub block_lot: String,
    /// The number of the parcel, 16 characters, if the publisher knows it.
    pub pin: String,
    /// The day of filing, `YYYY-MM-DD`.
    pub filed: String,
    /// The amount in cents, without interest and costs.
    pub amount_cents: Option<i64>,
    /// Whether the publisher marks it as satisfied.
    pub is_satisfied: bool,
    /// The last entry of the docket, as published; of names in it the initials.
    pub last_entry: String,
    /// The municipality, as published.
    pub municipality: String,
    /// The ward, as published.
    pub ward: String,
    /// Who bought the lien: the name of a company, or the initials of a person.
    pub assignee: String,
}

impl LienFact {
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
        testing::assert_all_fields_are_hashed(LienFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record: LienFact = testing::with_every_field();
        let data = FactData::Lien(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

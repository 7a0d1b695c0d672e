//! A sale of a parcel as an assessor published it, and the townships of which all sales were read.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// The kind of a record of a sale.
pub const SALE: &str = "sale";
/// The kind of a record that says that all sales of a township were read.
pub const READ: &str = "read";

/// One record. Texts are trimmed and white space is collapsed; `""` means unknown. No name of an owner, buyer or seller is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SaleFact {
    /// The stream that published it.
    pub stream: String,
    /// What it is: [`SALE`], [`READ`] or [`PART`](super::parcels::PART).
    pub kind: String,
    /// The number of the sale; `""` for a township that was read.
    pub sale: String,
    /// The number of the parcel.
    pub pin: String,
    /// The code of the township.
    pub township: String,
    /// The class at the time of the sale, without marks.
    pub class: String,
    /// The day of the sale, `YYYY-MM-DD`.
    pub date: String,
    /// Whether the day is that of the declaration. Otherwise it can be the first day of the month.
    pub is_date_exact: bool,
    /// The price in whole dollars.
    pub price: Option<i64>,
    /// The number of the deed.
    pub document: String,
    /// The type of the deed, as published.
    pub deed_type: String,
    /// The type of the sale, as published.
    pub sale_type: String,
    /// How many parcels were sold together.
    pub parcels: Option<i64>,
    /// Whether several parcels were sold together.
    pub is_multisale: bool,
    /// Whether the publisher marks a sale of the same parcel within 365 days.
    pub is_resale: bool,
    /// Whether the publisher marks a price below 10,000 dollars.
    pub is_low: bool,
    /// Whether the publisher marks the deed as a quit-claim or executor deed.
    pub is_other_deed: bool,
    /// Part: its number, from 0 on.
    pub part: Option<i64>,
}

impl SaleFact {
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
        testing::assert_all_fields_are_hashed(SaleFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record: SaleFact = testing::with_every_field();
        let data = FactData::Sale(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

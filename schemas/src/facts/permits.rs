//! A permit for construction on one parcel, as an assessor or a city published it.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// One permit on one parcel: a permit on several parcels is several records. Texts are trimmed and white space is collapsed; `""` means unknown. No name of an
/// applicant, contractor or owner is stored, and no mailing address, telephone number or e-mail address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermitFact {
    /// The stream that published it.
    pub stream: String,
    /// The number of the parcel; `""` if the publisher names none.
    pub pin: String,
    /// Whether the publisher named only the building, by ten digits, so that the last four digits of the PIN are taken to be zeros.
    pub is_pin_padded: bool,
    /// On how many parcels the publisher has the permit, if it names several.
    pub parcels: Option<i64>,
    /// The number of the permit at the publisher, or the hash of the record if it has none.
    pub number: String,
    /// The number of the permit at the city or village that issued it.
    pub local_number: String,
    /// The day of issue, `YYYY-MM-DD`.
    pub issued: String,
    /// The status, as published.
    pub status: String,
    /// The milestone, as published by the city.
    pub milestone: String,
    /// Whether the assessor says that the work changes the assessment, as published: `Assessable`, `Non-Assessable`.
    pub assessable: String,
    /// The cost of the work as reported, in whole dollars.
    pub amount: Option<i64>,
    /// The type of the permit, as published by the city.
    pub permit_type: String,
    /// The primary job code of the assessor, as published.
    pub job_code: String,
    /// The secondary job code of the assessor, as published.
    pub job_code_secondary: String,
    /// The improvement codes of the assessor, as published.
    pub improvements: Vec<String>,
    /// What is to be done, without telephone numbers and e-mail addresses, and with the initials of names.
    pub description: String,
    /// The address of the work.
    pub address: String,
    /// The city or village that issued it, as published.
    pub municipality: String,
    /// The name of the township, as published.
    pub township: String,
}

impl PermitFact {
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
        testing::assert_all_fields_are_hashed(PermitFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record: PermitFact = testing::with_every_field();
        let data = FactData::Permit(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

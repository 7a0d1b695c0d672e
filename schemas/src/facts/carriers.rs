//! What the motor carrier regulator published about one carrier: the carrier itself, an operating authority, or a filing of insurance.
//!
//! One stream may show several kinds, since a cancelled filing is only understood with the carrier and its other filings. Phone numbers, e-mail
//! addresses, officers and tax numbers are never stored, and no street of a carrier that is or may be a person.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// The values of [`CarrierFact::kind`].
pub mod kind {
    /// A carrier of the census.
    pub const CARRIER: &str = "carrier";
    /// An operating authority, and when it changed.
    pub const AUTHORITY: &str = "authority";
    /// A filing of insurance that is in force, or will be.
    pub const FILING: &str = "filing";
    /// A filing of insurance that is cancelled, or will be.
    pub const CANCELLATION: &str = "cancellation";
    /// The amounts of insurance that an authority requires and has on file.
    pub const ON_FILE: &str = "on_file";
}

/// What one dataset says about a carrier. Texts are trimmed and white space is collapsed; `""` means unknown. Dates are `YYYY-MM-DD`, amounts whole
/// dollars as texts, in which `0` is a value and `""` is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CarrierFact {
    /// The stream that published it.
    pub stream: String,
    /// What it is, see [`kind`].
    pub kind: String,
    /// The carrier's USDOT number, without leading zeros.
    pub dot: String,
    /// The docket number: `MC421775`.
    pub docket: String,

    /// Carrier: its legal name.
    pub legal_name: String,
    /// Carrier: the name under which it does business.
    pub dba_name: String,
    /// Carrier: whether it is a person, not a company. The street is then not stored.
    pub is_person: bool,
    /// Carrier: the line of its physical address with the street; `""` for a person, and where the census does not say what kind of business it is.
    pub street: String,
    /// Carrier: the city.
    pub city: String,
    /// Carrier: the state or province, as published.
    pub state: String,
    /// Carrier: the five digits of the ZIP code. A code of another country is as published, and not stored where the street is not.
    pub zip: String,
    /// Carrier: the country.
    pub country: String,
    /// Carrier: `A` active, `I` inactive.
    pub status: String,
    /// Carrier: the day on which it was added to the census.
    pub added: String,
    /// Carrier: `A` interstate, `B` within a state with hazardous materials, `C` within a state without.
    pub carrier_operation: String,
    /// Carrier: its classes, of which one text can hold several: `AUTHORIZED FOR HIRE`.
    pub classdef: String,
    /// Carrier: whether it carries hazardous materials: `Y`, `N`.
    pub hm_ind: String,
    /// Carrier: how many trucks and tractors it reports. As published: nonsense occurs.
    pub power_units: String,
    /// Carrier: how many trucks it reports.
    pub truck_units: String,
    /// Carrier: how many buses it reports.
    pub bus_units: String,
    /// Carrier: how many drivers it reports.
    pub total_drivers: String,
    /// Carrier: the names of the kinds of cargo that are marked, sorted: `crgo_household`.
    pub cargo: Vec<String>,
    /// Carrier: whether it had another number that was revoked.
    pub prior_revoked: bool,
    /// Carrier: that number, without leading zeros.
    pub prior_dot: String,

    /// Authority, amounts on file: the type of authority.
    pub authority_type: String,
    /// Authority, amounts on file: `Active`, `Inactive`.
    pub authority_status: String,
    /// Authority, cancellation: why, as published.
    pub reason: String,
    /// Authority: the day on which its status changed.
    pub changed: String,

    /// Filing, cancellation: the form: `BMC-91X`.
    pub form: String,
    /// Filing, cancellation: the number of the policy, as published.
    pub policy: String,
    /// Filing, cancellation: the first day on which it is in force.
    pub effective: String,
    /// Cancellation: the day from which on it is cancelled.
    pub cancelled: String,

    /// Amounts on file: the liability insurance that is required.
    pub bipd_required: String,
    /// Amounts on file: the liability insurance on file.
    pub bipd_on_file: String,
    /// Amounts on file: whether cargo insurance is on file: `Y`, `N`.
    pub cargo_on_file: String,
    /// Amounts on file: whether a bond or trust fund is on file: `Y`, `N`.
    pub bond_on_file: String,
}

impl CarrierFact {
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
        testing::assert_all_fields_are_hashed(CarrierFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record: CarrierFact = testing::with_every_field();
        let data = FactData::Carrier(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

//! What an assessor published about one parcel, and which assessments of a neighbourhood or township are complete.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// The kind of a record with the assessed values of a parcel in a year.
pub const VALUE: &str = "value";
/// The kind of a record with the class and the tax code of a parcel in a year.
pub const UNIVERSE: &str = "universe";
/// The kind of a record with the address of a parcel in a year.
pub const ADDRESS: &str = "address";
/// The kind of a record of an appeal against an assessment.
pub const APPEAL: &str = "appeal";
/// The kind of a record of a parcel in a county's table of exempt parcels of a year.
pub const EXEMPT: &str = "exempt";
/// The kind of a record that says whether a parcel has an exemption of a residence in a tax year.
pub const EXEMPTION: &str = "exemption";
/// The kind of a record that says that nearly all parcels of a neighbourhood, or of a township, have the values of a stage.
pub const CYCLE: &str = "cycle";
/// The kind of a record that follows the cycle of a township, for each of [`PARTS`] parts of its parcels: those that are compared by their floor area are
/// decided again a part at a time. The same kind of sales follows the record that all sales of a township were read: a cycle that waited for them is closed
/// by then.
pub const PART: &str = "part";
/// In how many parts the parcels of a township are decided again that are compared by their floor area.
pub const PARTS: i64 = 16;

/// The kind of a record of a county that publishes all about a parcel in one row: values, address, use, and who is exempt.
pub const ASSESSMENT: &str = "assessment";

/// One record. Texts are trimmed and white space is collapsed; `""` means unknown. No name of an owner, buyer or seller is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParcelFact {
    /// The stream that published it.
    pub stream: String,
    /// What it is: one of [`VALUE`], [`UNIVERSE`], [`ADDRESS`], [`APPEAL`], [`EXEMPT`], [`EXEMPTION`], [`CYCLE`], [`PART`] and [`ASSESSMENT`].
    pub kind: String,
    /// The number of the parcel; `""` for a cycle and a part.
    pub pin: String,
    /// The year of assessment; 0 if it is not known.
    pub year: i64,
    /// Value, universe, exempt, exemption: the class, without marks: `517`, `211A`, `EX`.
    pub class: String,
    /// The code of the township.
    pub township: String,
    /// The name of the township, as published.
    pub township_name: String,
    /// The number of the neighbourhood within the township; `""` for a cycle of a whole township.
    pub neighborhood: String,
    /// Value: the assessed total at the stage `mailed`, in dollars.
    pub mailed: Option<i64>,
    /// Value: the assessed total at the stage `certified`, in dollars.
    pub certified: Option<i64>,
    /// Value: the assessed total at the stage `board`, in dollars.
    pub board: Option<i64>,
    /// Value: the part of the building in the total of the stage `mailed`, in dollars.
    pub mailed_building: Option<i64>,
    /// Value: the part of the building in the total of the stage `certified`, in dollars.
    pub certified_building: Option<i64>,
    /// Value: the part of the building in the total of the stage `board`, in dollars.
    pub board_building: Option<i64>,
    /// Universe: the number of its tax code.
    pub tax_code: String,
    /// Universe, address: the five digits of the ZIP code.
    pub zip: String,
    /// Address: the line with the street of the parcel itself.
    pub street: String,
    /// Address: the city of the parcel itself.
    pub city: String,
    /// Appeal: the number of its row.
    pub appeal: String,
    /// Appeal: its type, as published.
    pub appeal_type: String,
    /// Appeal: whether the assessment was changed, as published.
    pub result: String,
    /// Appeal: its status, as published: `closed`, `open`.
    pub status: String,
    /// Cycle, part: the last stage that is complete: `mailed`, `certified` or `board`.
    pub stage: String,
    /// Assessment: the state of the parcel itself, two letters.
    pub state: String,
    /// Assessment: the class of the use, as published: `COMMERCIAL`.
    pub use_class: String,
    /// Assessment: what the use is called.
    pub use_label: String,
    /// Assessment: the kind of the owner, as published: `CORPORATION`. No name.
    pub owner_kind: String,
    /// Assessment: whether the parcel has a homestead exclusion. Exemption: whether it has an exemption of a residence of any kind.
    pub is_homestead: bool,
    /// Assessment: whether its tax code says that it is exempt.
    pub is_exempt: bool,
    /// Assessment with a homestead exclusion: a hash of the mailing address.
    pub mailing_hash: String,
    /// Assessment with a homestead exclusion: the city of the mailing address.
    pub mailing_city: String,
    /// Assessment with a homestead exclusion: the state of the mailing address.
    pub mailing_state: String,
    /// Assessment: the day of the last sale, `YYYY-MM-DD`.
    pub sale_date: String,
    /// Assessment: the finished living area in square feet; `None` if it is unknown, or that of one of several buildings only.
    pub floor_area: Option<i64>,
    /// Part: its number, from 0 on.
    pub part: Option<i64>,
}

impl ParcelFact {
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
        testing::assert_all_fields_are_hashed(ParcelFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record: ParcelFact = testing::with_every_field();
        let data = FactData::Parcel(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

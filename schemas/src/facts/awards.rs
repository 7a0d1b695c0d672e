//! A federal contract award, or one action on it, as the spending site published it in one stream.
//!
//! An **award** is a contract, an order under one, or a vehicle for orders (IDV). An **action** is its base award or one modification. Both
//! carry the award's permanent id; the awards service joins them.

use serde::{Deserialize, Serialize};

use crate::canonical::{Kind, Order, canonical};

/// The values of [`AwardFact::kind`].
pub mod kind {
    /// The award as a whole, in its current state.
    pub const AWARD: &str = "award";
    /// One action on the award: the base award or a modification.
    pub const ACTION: &str = "action";
}

/// An award, or one action on it, as published in one stream. Texts are trimmed, white space collapsed, entities and tags resolved; `""`
/// and empty lists mean unknown. Dates are `YYYY-MM-DD` as the agency reported them: they may lie in the future, before the start or in
/// 2099. Amounts are US cents, `None` if unknown; zero and negative amounts are ordinary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwardFact {
    /// The stream: `usaspending.transactions`, `usaspending.awards`, `usaspending.details`.
    #[serde(rename = "door")]
    pub stream: String,
    /// `award` or `action`, see [`kind`].
    pub kind: String,
    /// The award's permanent id: `CONT_AWD_{PIID}_{agency}_{parent PIID}_{parent agency}` or `CONT_IDV_{PIID}_{agency}`. It identifies the
    /// award.
    pub award_id: String,
    /// The agency's own number (PIID), which repeats across agencies (order `0148`).
    pub piid: String,
    /// Code of the agency that assigned that number, four characters (`8000`).
    pub agency_code: String,
    /// PIID of the vehicle under which it was ordered.
    pub parent_piid: String,
    /// Code of the agency of that vehicle.
    pub parent_agency_code: String,
    /// The award type as the upstream words it (`DELIVERY ORDER`).
    pub award_type: String,
    /// The award type as a code (`C`, `IDV_B_B`), where the stream gives one.
    pub award_type_code: String,
    /// What is bought; at most 2,000 characters. For an action: what the action does.
    pub description: String,

    /// Legal name of the recipient.
    pub recipient: String,
    /// Unique entity id of the recipient, twelve characters.
    pub recipient_uei: String,
    /// The site's id of the recipient; ends with `-C` (child), `-P` (parent) or `-R` (no parent known).
    pub recipient_id: String,
    /// Legal name of the recipient's parent.
    pub parent_recipient: String,
    /// Unique entity id of the recipient's parent.
    pub parent_recipient_uei: String,
    /// The recipient's business categories (`Small Business`), sorted.
    pub business_categories: Vec<String>,
    /// City of the recipient.
    pub recipient_city: String,
    /// State of the recipient, two letters.
    pub recipient_state: String,
    /// Country of the recipient, three letters.
    pub recipient_country: String,

    /// Name of the awarding department or agency, the upper tier.
    pub agency: String,
    /// Code of the awarding department, three digits.
    pub toptier_code: String,
    /// Name of the awarding agency within it, the lower tier.
    pub sub_agency: String,
    /// Code of the awarding agency, four characters.
    pub sub_agency_code: String,
    /// The awarding office.
    pub office: String,
    /// Name of the department that funds the award.
    pub funding_agency: String,
    /// Name of the funding agency within that department.
    pub funding_sub_agency: String,

    /// Industry code (NAICS) of the latest action, or of this one, two to six digits; leading zeros are kept.
    pub naics: String,
    /// Description of the industry code.
    pub naics_description: String,
    /// Product or service code (PSC); begins with a letter for services.
    pub psc: String,
    /// Description of the product or service code.
    pub psc_description: String,

    /// The total obligated amount.
    pub amount_cents: Option<i64>,
    /// The total amount paid out.
    pub outlays_cents: Option<i64>,
    /// Value of the base and the exercised options.
    pub exercised_cents: Option<i64>,
    /// Value with all options: the ceiling.
    pub ceiling_cents: Option<i64>,

    /// Day of the base action.
    pub signed: String,
    /// First day of performance.
    pub start: String,
    /// Last day of the periods exercised so far; of a vehicle, the last day to order.
    pub end: String,
    /// Last day if all options are used.
    pub potential_end: String,
    /// Day on which the agency last edited the newest action. It is not compared, because it changes on its own.
    pub last_modified: String,

    /// City where the work is done, which may be that of the buying office.
    pub place_city: String,
    /// County where the work is done.
    pub place_county: String,
    /// State where the work is done, two letters.
    pub place_state: String,
    /// Zip code where the work is done, five digits.
    pub place_zip: String,
    /// Country where the work is done, three letters.
    pub place_country: String,

    /// The extent of competition: a code, `A` for full and open.
    pub extent_competed: String,
    /// The number of offers received, as the upstream words it.
    pub offers: String,
    /// The type of set-aside: a code, `NONE`.
    pub set_aside: String,
    /// Number of the solicitation.
    pub solicitation: String,
    /// The pricing type: a code, `J` for firm fixed price.
    pub pricing: String,
    /// For a vehicle: `SINGLE AWARD` or `MULTIPLE AWARD`.
    pub holders: String,

    /// Number of the action: `0` for the base, then `P00001` … It identifies the action, with the award's id and `action_number`.
    pub modification: String,
    /// Distinguishes actions with the same number, where the stream gives it; usually `0`.
    pub action_number: String,
    /// Day of the action.
    pub action_date: String,
    /// What the action does, one letter (`G` exercises an option, `F` terminates for convenience); empty for the base.
    pub action_type: String,
    /// The amount that the action adds to the obligation, negative if it reduces it.
    pub action_cents: Option<i64>,

    /// Absolute https URL of the award's page.
    pub url: String,
}

impl AwardFact {
    /// Returns the canonical form that is hashed: every field but `last_modified`.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        // The day of the last edit changes without a change of content.
        canonical(self, Order::ByKind([Kind::Text, Kind::List, Kind::Number, Kind::Flag]), &["lastModified"])
    }

    /// Whether the award is a vehicle for orders, which has a last day to order instead of an end.
    #[must_use]
    pub fn is_vehicle(&self) -> bool {
        self.award_id.starts_with("CONT_IDV_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing;

    /// Proves that every field but `lastModified` is hashed: changing it changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(AwardFact::canonical, &["lastModified"]);
    }
}

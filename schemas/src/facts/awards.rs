//! A federal contract award, or one action on it, as the spending site published it through one stream.
//!
//! An **award** is a contract, an order under one, or a vehicle for orders (IDV). An **action** is its base or one modification. Both go by
//! the award's own lasting id; what belongs together is put together by who reads the facts.

use serde::{Deserialize, Serialize};

use super::canonical::Canonical;

/// What a fact of this kind speaks of: [`AwardFact::kind`].
pub mod kind {
    /// The award as a whole, as it stands.
    pub const AWARD: &str = "award";
    /// One action on it: the base award or a modification.
    pub const ACTION: &str = "action";
}

/// An award, or one action on it, as published through one stream. Texts are trimmed, white space collapsed, entities and tags resolved; `""`
/// and empty lists stand for unknown. Dates are `YYYY-MM-DD` as the agency reported them: they may lie in the future, before the
/// start or in 2099. Amounts are US cents, `None` for unknown; zero and negative ones are ordinary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwardFact {
    /// Which stream: `usaspending.transactions`, `usaspending.awards`, `usaspending.details`.
    #[serde(rename = "door")]
    pub stream: String,
    /// `award` or `action`, see [`kind`].
    pub kind: String,
    /// The award's lasting id: `CONT_AWD_{PIID}_{agency}_{parent PIID}_{parent agency}` or `CONT_IDV_{PIID}_{agency}`. The award's identity.
    pub award_id: String,
    /// The agency's own number, which repeats across agencies (order `0148`).
    pub piid: String,
    /// Code of the agency that gave the number, four characters (`8000`).
    pub agency_code: String,
    /// Number of the vehicle it was ordered under.
    pub parent_piid: String,
    /// Code of the agency of that vehicle.
    pub parent_agency_code: String,
    /// The upstream's words for its type (`DELIVERY ORDER`).
    pub award_type: String,
    /// The same as a code (`C`, `IDV_B_B`), where the stream gives one.
    pub award_type_code: String,
    /// What is bought; at most 2,000 characters. Of an action: what it does.
    pub description: String,

    /// Legal name of the recipient.
    pub recipient: String,
    /// Its unique entity id, twelve characters.
    pub recipient_uei: String,
    /// The site's id of the recipient; ends with `-C` (child), `-P` (parent) or `-R` (no parent known).
    pub recipient_id: String,
    /// Legal name of its parent.
    pub parent_recipient: String,
    /// Unique entity id of its parent.
    pub parent_recipient_uei: String,
    /// What kinds of business it is (`Small Business`), sorted.
    pub business_categories: Vec<String>,
    /// Where it is: city.
    pub recipient_city: String,
    /// Two-letter state.
    pub recipient_state: String,
    /// Three-letter country.
    pub recipient_country: String,

    /// Name of the awarding department or agency, the upper tier.
    pub agency: String,
    /// Its code, three digits.
    pub toptier_code: String,
    /// Name of the awarding agency within it, the lower tier.
    pub sub_agency: String,
    /// Its code, four characters.
    pub sub_agency_code: String,
    /// The awarding office.
    pub office: String,
    /// Name of the department whose money it is.
    pub funding_agency: String,
    /// Name of the agency within it.
    pub funding_sub_agency: String,

    /// Industry code of the latest action (or of this one), two to six digits; leading zeros stand.
    pub naics: String,
    /// Its words.
    pub naics_description: String,
    /// Product or service code; begins with a letter for services.
    pub psc: String,
    /// Its words.
    pub psc_description: String,

    /// Obligated in total.
    pub amount_cents: Option<i64>,
    /// Paid out in total.
    pub outlays_cents: Option<i64>,
    /// Value of base and exercised options.
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
    /// Day on which the agency last touched the action with the newest date. Not part of what is compared: it moves alone.
    pub last_modified: String,

    /// Where the work is done, which may be where the buying office is: city.
    pub place_city: String,
    /// County.
    pub place_county: String,
    /// Two-letter state.
    pub place_state: String,
    /// Zip code, five digits.
    pub place_zip: String,
    /// Three-letter country.
    pub place_country: String,

    /// How far it was competed: a code, `A` full and open.
    pub extent_competed: String,
    /// How many offers came, as the upstream words it.
    pub offers: String,
    /// Whom it was set aside for: a code, `NONE`.
    pub set_aside: String,
    /// Number of the solicitation.
    pub solicitation: String,
    /// How it is priced: a code, `J` firm fixed price.
    pub pricing: String,
    /// Of a vehicle: `SINGLE AWARD` or `MULTIPLE AWARD`.
    pub holders: String,

    /// Number of the action: `0` for the base, then `P00001` … With the award's id (and `action_number`) its identity.
    pub modification: String,
    /// Tells apart actions of one number, where the stream says it; most often `0`.
    pub action_number: String,
    /// Day of the action.
    pub action_date: String,
    /// What it does, one letter (`G` exercises an option, `F` terminates for convenience); empty for the base.
    pub action_type: String,
    /// What it adds to the obligation, or takes from it.
    pub action_cents: Option<i64>,

    /// Absolute https URL of the award's page.
    pub url: String,
}

impl AwardFact {
    /// The canonical form that is hashed: each field that holds something, as its name and its values, each ended by a byte
    /// that no text has. A new optional field thus changes no hash until it holds something.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let Self {
            stream,
            kind,
            award_id,
            piid,
            agency_code,
            parent_piid,
            parent_agency_code,
            award_type,
            award_type_code,
            description,
            recipient,
            recipient_uei,
            recipient_id,
            parent_recipient,
            parent_recipient_uei,
            business_categories,
            recipient_city,
            recipient_state,
            recipient_country,
            agency,
            toptier_code,
            sub_agency,
            sub_agency_code,
            office,
            funding_agency,
            funding_sub_agency,
            naics,
            naics_description,
            psc,
            psc_description,
            amount_cents,
            outlays_cents,
            exercised_cents,
            ceiling_cents,
            signed,
            start,
            end,
            potential_end,
            // A moved day of modification with the same content is no change.
            last_modified: _,
            place_city,
            place_county,
            place_state,
            place_zip,
            place_country,
            extent_competed,
            offers,
            set_aside,
            solicitation,
            pricing,
            holders,
            modification,
            action_number,
            action_date,
            action_type,
            action_cents,
            url,
        } = self;
        let texts = [
            ("door", stream),
            ("kind", kind),
            ("awardId", award_id),
            ("piid", piid),
            ("agencyCode", agency_code),
            ("parentPiid", parent_piid),
            ("parentAgencyCode", parent_agency_code),
            ("awardType", award_type),
            ("awardTypeCode", award_type_code),
            ("description", description),
            ("recipient", recipient),
            ("recipientUei", recipient_uei),
            ("recipientId", recipient_id),
            ("parentRecipient", parent_recipient),
            ("parentRecipientUei", parent_recipient_uei),
            ("recipientCity", recipient_city),
            ("recipientState", recipient_state),
            ("recipientCountry", recipient_country),
            ("agency", agency),
            ("toptierCode", toptier_code),
            ("subAgency", sub_agency),
            ("subAgencyCode", sub_agency_code),
            ("office", office),
            ("fundingAgency", funding_agency),
            ("fundingSubAgency", funding_sub_agency),
            ("naics", naics),
            ("naicsDescription", naics_description),
            ("psc", psc),
            ("pscDescription", psc_description),
            ("signed", signed),
            ("start", start),
            ("end", end),
            ("potentialEnd", potential_end),
            ("placeCity", place_city),
            ("placeCounty", place_county),
            ("placeState", place_state),
            ("placeZip", place_zip),
            ("placeCountry", place_country),
            ("extentCompeted", extent_competed),
            ("offers", offers),
            ("setAside", set_aside),
            ("solicitation", solicitation),
            ("pricing", pricing),
            ("holders", holders),
            ("modification", modification),
            ("actionNumber", action_number),
            ("actionDate", action_date),
            ("actionType", action_type),
            ("url", url),
        ];
        let amounts = [
            ("amountCents", amount_cents),
            ("outlaysCents", outlays_cents),
            ("exercisedCents", exercised_cents),
            ("ceilingCents", ceiling_cents),
            ("actionCents", action_cents),
        ];
        let mut out = Canonical::default();
        for (name, value) in texts {
            out.text(name, value);
        }
        out.list("businessCategories", business_categories);
        for (name, amount) in amounts {
            out.number(name, *amount);
        }
        out.bytes()
    }

    /// Whether the award is a vehicle for orders, which has a last day to order instead of an end.
    #[must_use]
    pub fn is_vehicle(&self) -> bool {
        self.award_id.starts_with("CONT_IDV_")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Proves that every field counts but the one that moves alone: changing any other changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        let empty = serde_json::to_value(AwardFact::default()).unwrap();
        for (name, value) in empty.as_object().unwrap() {
            let mut changed = empty.clone();
            changed[name] = match value {
                Value::String(_) => json!("x"),
                Value::Array(_) => json!(["x"]),
                // Zero is something: it is no unknown amount.
                _ => json!(0),
            };
            let fact: AwardFact = serde_json::from_value(changed).unwrap();
            let same = fact.canonical() == AwardFact::default().canonical();
            assert_eq!(same, name == "lastModified", "{name}");
        }
    }
}

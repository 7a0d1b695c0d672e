//! The details of one award, and the list of its actions.

use serde_json::{Value, json};
use simulated_world::random::mix;

use super::award::{Action, Award};
use super::words::{Agency, action_words};

/// Converts cents to dollars.
pub(super) fn dollars(cents: i64) -> f64 {
    cents as f64 / 100.0
}

/// Encodes `Forest Service` for an address.
pub(super) fn slug(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}

/// Builds the answer for one award.
pub(super) fn award(award: &Award) -> Value {
    let (latest, recipient, work) = (award.latest(), award.recipient, award.work);
    // The format differs between awards.
    let modified = if award.random.once_in(60, 2) { latest.modified.to_string() } else { format!("{} 08:15:30", latest.modified) };
    let potential_end = (!award.is_vehicle()).then(|| format!("{} 00:00:00", award.potential_end));
    let is_own_parent = recipient.parent.1 == recipient.uei;
    json!({
        "id": award.internal_id(),
        "generated_unique_award_id": award.id(),
        "piid": award.piid,
        "category": if award.is_vehicle() { "idv" } else { "contract" },
        "type": award.code,
        "type_description": award.words,
        "description": work[4],
        "total_obligation": dollars(award.cents()),
        "total_outlay": (!award.random.once_in(61, 2)).then(|| dollars(award.cents() / 2)),
        "subaward_count": 0,
        "total_subaward_amount": null,
        "date_signed": award.signed().to_string(),
        "base_exercised_options": (!award.is_vehicle()).then(|| dollars(award.cents())),
        "base_and_all_options": dollars(award.ceiling.max(award.cents())),
        "parent_award": award.parent.as_ref().map(|(piid, agency)| json!({
            "agency_name": agency.sub.0, "piid": piid, "generated_unique_award_id": format!("CONT_IDV_{piid}_{}", agency.sub.1),
        })),
        "latest_transaction_contract_data": contract(award),
        "awarding_agency": agency(award.agency),
        "funding_agency": agency(award.agency),
        "period_of_performance": {
            "start_date": award.start.to_string(), "end_date": award.end.to_string(), "potential_end_date": potential_end,
            "last_modified_date": modified,
        },
        "recipient": {
            "recipient_hash": hash(recipient.uei, 'C'), "recipient_name": recipient.name, "recipient_uei": recipient.uei,
            "recipient_unique_id": null, "parent_recipient_hash": hash(recipient.parent.1, 'P'), "parent_recipient_name": recipient.parent.0,
            "parent_recipient_uei": recipient.parent.1, "parent_recipient_unique_id": null,
            "business_categories": [
                "Category Business", if recipient.is_small { "Small Business" } else { "Not Designated a Small Business" },
                if is_own_parent { "U.S.-Owned Business" } else { "Corporate Entity Not Tax Exempt" },
            ],
            "location": place(award),
        },
        "place_of_performance": place(award),
    })
}

pub(super) fn place(award: &Award) -> Value {
    let recipient = award.recipient;
    json!({
        "location_country_code": "USA", "country_name": "UNITED STATES", "state_code": recipient.state.0, "state_name": recipient.state.1,
        "city_name": recipient.city, "county_code": "003", "county_name": "CALDER", "congressional_code": "01", "zip5": "20190", "zip4": null,
        "address_line1": null,
    })
}

fn agency(agency: &Agency) -> Value {
    json!({
        "id": 800, "has_agency_page": true,
        "toptier_agency": {"name": agency.top.0, "code": agency.top.1, "slug": slug(agency.top.0)},
        "subtier_agency": {"name": agency.sub.0, "code": agency.sub.1},
        "office_agency_name": agency.office,
    })
}

/// The set-aside for small firms, if there is one.
pub(super) fn set_aside(award: &Award) -> &'static str {
    if award.recipient.is_small { "SBA" } else { "NONE" }
}

pub(super) fn extent_competed(award: &Award) -> &'static str {
    award.random.pick(62, &["A", "A", "A", "C", "D"])
}

fn contract(award: &Award) -> Value {
    let [naics, naics_words, psc, psc_words, _] = award.work;
    let offers = if extent_competed(award) == "C" { 1 } else { 1 + award.random.below(63, 8) };
    json!({
        "solicitation_identifier": award.random.once_in(64, 2).then(|| format!("{}R{:04}", award.agency.prefix, award.place.number() % 10_000)),
        "number_of_offers_received": offers.to_string(),
        "extent_competed": extent_competed(award),
        "extent_competed_description": match extent_competed(award) {
            "A" => "FULL AND OPEN COMPETITION",
            "C" => "NOT COMPETED",
            _ => "FULL AND OPEN COMPETITION AFTER EXCLUSION OF SOURCES",
        },
        "type_set_aside": set_aside(award),
        "type_set_aside_description": if award.recipient.is_small { "SMALL BUSINESS SET ASIDE - TOTAL" } else { "NO SET ASIDE USED." },
        "type_of_contract_pricing": award.random.pick(65, &["J", "J", "Y", "S"]),
        "multiple_or_single_award_description": award.is_vehicle().then(|| award.random.pick(66, &["MULTIPLE AWARD", "SINGLE AWARD"])),
        "naics": naics,
        "naics_description": naics_words,
        "product_or_service_code": psc,
        "product_or_service_description": psc_words,
    })
}

/// Returns the site's own id of a recipient; its last letter tells whether it is a firm or a group of firms.
pub(super) fn hash(uei: &str, level: char) -> String {
    let number = uei.bytes().fold(0, |sum, byte| mix(sum ^ u64::from(byte)));
    let (high, low) = (number >> 32, number & 0xffff_ffff);
    format!("{high:08x}-{:04x}-{:04x}-{:04x}-{low:012x}-{level}", low >> 16, high & 0xffff, low & 0xffff)
}

/// Builds one action in the list of an award.
pub(super) fn action(award: &Award, action: &Action) -> Value {
    json!({
        "id": award.action_id(action),
        "type": award.code,
        "type_description": award.words,
        "action_date": action.day.to_string(),
        "action_type": action.letter,
        "action_type_description": action.letter.map(action_words),
        "modification_number": action.number,
        "description": award.work[4],
        "federal_action_obligation": dollars(action.cents),
        "face_value_loan_guarantee": 0.0,
        "original_loan_subsidy_cost": 0.0,
    })
}

//! The details of one award.

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use serde::Deserialize;

use super::parts::{self, DESCRIPTION_CHARS_MAX, Location};
use crate::drift::FieldCounts;
use crate::json::{Field, Object};
use crate::{Observation, Stream, text};

/// Parses a date without checking whether it is plausible, because agencies report implausible dates.
pub(super) fn day(field: &Field<'_>) -> String {
    text::date(field.text()).filter(|day| day.year() >= 1900).map(|day| day.to_string()).unwrap_or_default()
}

/// Awards that end within this many days will soon be tendered again; their actions are requested too.
const SOON_DAYS: i64 = 548;
/// Awards that ended within this many days may still be tendered again.
const ENDED_DAYS: i64 = 180;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Detail<'a> {
    #[serde(borrow)]
    generated_unique_award_id: Field<'a>,
    #[serde(borrow, rename = "type")]
    type_code: Field<'a>,
    #[serde(borrow)]
    type_description: Field<'a>,
    #[serde(borrow)]
    description: Field<'a>,
    #[serde(borrow)]
    total_obligation: Field<'a>,
    #[serde(borrow)]
    total_outlay: Field<'a>,
    #[serde(borrow)]
    base_exercised_options: Field<'a>,
    #[serde(borrow)]
    base_and_all_options: Field<'a>,
    #[serde(borrow)]
    date_signed: Field<'a>,
    #[serde(borrow)]
    latest_transaction_contract_data: Object<Contract<'a>>,
    #[serde(borrow)]
    awarding_agency: Object<Agency<'a>>,
    #[serde(borrow)]
    funding_agency: Object<Agency<'a>>,
    #[serde(borrow)]
    period_of_performance: Object<Period<'a>>,
    #[serde(borrow)]
    recipient: Object<Recipient<'a>>,
    #[serde(borrow)]
    place_of_performance: Object<Location<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Contract<'a> {
    #[serde(borrow)]
    solicitation_identifier: Field<'a>,
    #[serde(borrow)]
    number_of_offers_received: Field<'a>,
    #[serde(borrow)]
    extent_competed: Field<'a>,
    #[serde(borrow)]
    type_set_aside: Field<'a>,
    #[serde(borrow)]
    type_of_contract_pricing: Field<'a>,
    #[serde(borrow)]
    multiple_or_single_award_description: Field<'a>,
    #[serde(borrow)]
    naics: Field<'a>,
    #[serde(borrow)]
    naics_description: Field<'a>,
    #[serde(borrow)]
    product_or_service_code: Field<'a>,
    #[serde(borrow)]
    product_or_service_description: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Agency<'a> {
    #[serde(borrow)]
    toptier_agency: Object<Tier<'a>>,
    #[serde(borrow)]
    subtier_agency: Object<Tier<'a>>,
    #[serde(borrow)]
    office_agency_name: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tier<'a> {
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    code: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Period<'a> {
    #[serde(borrow)]
    start_date: Field<'a>,
    #[serde(borrow)]
    end_date: Field<'a>,
    #[serde(borrow)]
    potential_end_date: Field<'a>,
    #[serde(borrow)]
    last_modified_date: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Recipient<'a> {
    #[serde(borrow)]
    recipient_hash: Field<'a>,
    #[serde(borrow)]
    recipient_name: Field<'a>,
    #[serde(borrow)]
    recipient_uei: Field<'a>,
    #[serde(borrow)]
    parent_recipient_name: Field<'a>,
    #[serde(borrow)]
    parent_recipient_uei: Field<'a>,
    #[serde(borrow)]
    business_categories: Field<'a>,
    #[serde(borrow)]
    location: Object<Location<'a>>,
}

impl Agency<'_> {
    /// Name and code of the top-tier agency and of the subtier agency.
    fn tiers(&self) -> [(String, String); 2] {
        [&self.toptier_agency, &self.subtier_agency]
            .map(|tier| tier.0.as_ref().map(|tier| (tier.name.clean(), tier.code.clean())).unwrap_or_default())
    }
}

impl Detail<'_> {
    /// Counts the mapped fields, except the outlays, which are reported months after the award.
    pub(super) fn count(&self, fields: &mut FieldCounts) {
        let (contract, recipient) = (self.latest_transaction_contract_data.0.as_ref(), self.recipient.0.as_ref());
        let (period, agency) = (self.period_of_performance.0.as_ref(), self.awarding_agency.0.as_ref());
        fields.count([
            ("type_description", self.type_description.is_filled()),
            ("description", self.description.is_filled()),
            ("total_obligation", self.total_obligation.is_filled()),
            ("base_exercised_options", self.base_exercised_options.is_filled()),
            ("base_and_all_options", self.base_and_all_options.is_filled()),
            ("date_signed", self.date_signed.is_filled()),
            ("period_of_performance.start_date", period.is_some_and(|period| period.start_date.is_filled())),
            ("period_of_performance.end_date", period.is_some_and(|period| period.end_date.is_filled())),
            ("awarding_agency.toptier_agency", agency.is_some_and(|agency| agency.toptier_agency.0.is_some())),
            ("awarding_agency.subtier_agency", agency.is_some_and(|agency| agency.subtier_agency.0.is_some())),
            ("funding_agency", self.funding_agency.0.is_some()),
            ("recipient.recipient_name", recipient.is_some_and(|recipient| recipient.recipient_name.is_filled())),
            ("recipient.recipient_uei", recipient.is_some_and(|recipient| recipient.recipient_uei.is_filled())),
            ("recipient.parent_recipient_name", recipient.is_some_and(|recipient| recipient.parent_recipient_name.is_filled())),
            ("recipient.location", recipient.is_some_and(|recipient| recipient.location.0.is_some())),
            ("latest_transaction_contract_data.naics", contract.is_some_and(|contract| contract.naics.is_filled())),
            (
                "latest_transaction_contract_data.product_or_service_code",
                contract.is_some_and(|own| own.product_or_service_code.is_filled()),
            ),
            ("latest_transaction_contract_data.extent_competed", contract.is_some_and(|contract| contract.extent_competed.is_filled())),
            (
                "latest_transaction_contract_data.type_of_contract_pricing",
                contract.is_some_and(|own| own.type_of_contract_pricing.is_filled()),
            ),
            ("place_of_performance", self.place_of_performance.0.is_some()),
        ]);
    }
}

/// Maps an award. The error names the record and the reason.
pub(super) fn observe(stream: &Stream, award: &Detail<'_>) -> Result<Observation, (String, String)> {
    let reference = award.generated_unique_award_id.text();
    let reject = |field: &'static str| move |reason: String| (text::cut(reference.to_owned(), 100), format!("{field}: {reason}"));
    let mut fact = AwardFact { stream: stream.name.to_owned(), kind: kind::AWARD.to_owned(), ..AwardFact::default() };
    parts::identify(&mut fact, reference).map_err(reject("generated_unique_award_id"))?;
    fact.amount_cents = parts::cents(&award.total_obligation).map_err(reject("total_obligation"))?;
    fact.outlays_cents = parts::cents(&award.total_outlay).map_err(reject("total_outlay"))?;
    fact.exercised_cents = parts::cents(&award.base_exercised_options).map_err(reject("base_exercised_options"))?;
    fact.ceiling_cents = parts::cents(&award.base_and_all_options).map_err(reject("base_and_all_options"))?;
    fact.award_type = award.type_description.clean();
    fact.award_type_code = award.type_code.clean();
    fact.description = text::cut(award.description.clean(), DESCRIPTION_CHARS_MAX);
    fact.signed = day(&award.date_signed);
    if let Some(period) = &award.period_of_performance.0 {
        fact.start = day(&period.start_date);
        fact.end = day(&period.end_date);
        fact.potential_end = day(&period.potential_end_date);
        fact.last_modified = day(&period.last_modified_date);
    }
    if let Some(agency) = &award.awarding_agency.0 {
        [(fact.agency, fact.toptier_code), (fact.sub_agency, fact.sub_agency_code)] = agency.tiers();
        fact.office = agency.office_agency_name.clean();
    }
    if let Some(agency) = &award.funding_agency.0 {
        [(fact.funding_agency, _), (fact.funding_sub_agency, _)] = agency.tiers();
    }
    if let Some(recipient) = &award.recipient.0 {
        fact.recipient = recipient.recipient_name.clean();
        fact.recipient_uei = recipient.recipient_uei.clean();
        fact.recipient_id = recipient.recipient_hash.clean();
        fact.parent_recipient = recipient.parent_recipient_name.clean();
        fact.parent_recipient_uei = recipient.parent_recipient_uei.clean();
        // Their order has no meaning.
        fact.business_categories = recipient.business_categories.list();
        fact.business_categories.sort_unstable();
        fact.business_categories.dedup();
        parts::recipients_place(&mut fact, &recipient.location);
    }
    if let Some(contract) = &award.latest_transaction_contract_data.0 {
        (fact.naics, fact.naics_description) = (contract.naics.clean(), contract.naics_description.clean());
        (fact.psc, fact.psc_description) = (contract.product_or_service_code.clean(), contract.product_or_service_description.clean());
        fact.solicitation = contract.solicitation_identifier.clean();
        fact.offers = contract.number_of_offers_received.clean();
        fact.extent_competed = contract.extent_competed.clean();
        fact.set_aside = contract.type_set_aside.clean();
        fact.pricing = contract.type_of_contract_pricing.clean();
        fact.holders = contract.multiple_or_single_award_description.clean();
    }
    parts::place_of_performance(&mut fact, &award.place_of_performance);
    let key = format!("{}/{}", stream.name, fact.award_id);
    Ok(Observation::new(key, FactData::Award(Box::new(fact))))
}

/// Whether an award ends within the days in which it is tendered again. Of two end dates the later one counts.
pub(super) fn ends_soon(data: &FactData, today: Date) -> bool {
    let FactData::Award(award) = data else { return false };
    let end = text::date(&award.end).max(text::date(&award.potential_end));
    let (first, last) = (today.saturating_sub(ENDED_DAYS.days()), today.saturating_add(SOON_DAYS.days()));
    end.is_some_and(|end| end >= first && end <= last)
}

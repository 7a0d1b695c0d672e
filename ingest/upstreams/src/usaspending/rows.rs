//! Rows of lists: awards and actions from the searches, and the actions of one award.

use std::collections::HashMap;

use jiff::civil::Date;
use proofs::hash::{Hash32, hex};
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::detail::{self, Detail};
use super::parts::{self, Coded, DESCRIPTION_CHARS_MAX, Location};
use super::plan::{By, Cursor, Step};
use super::slice::RowsOfPage;
use super::tie::Row;
use super::{DETAILS, TRANSACTIONS, day};
use crate::drift::FieldCounts;
use crate::json::{Field, Object, Records};
use crate::{Observation, Page, Stream, UpstreamError, text};

/// The content of a list. It is recognised by its first record, or else by the request.
enum Shape {
    /// Actions of any award, from the search.
    Actions,
    /// Awards, from the search.
    Awards,
    /// Actions of one award.
    History,
    /// Awards with all their details.
    Details,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Probe<'a> {
    #[serde(borrow, rename = "Mod")]
    modification: Field<'a>,
    #[serde(borrow, rename = "Action Date")]
    action_date: Field<'a>,
    #[serde(borrow, rename = "Award Amount")]
    award_amount: Field<'a>,
    #[serde(borrow)]
    modification_number: Field<'a>,
    #[serde(borrow)]
    generated_unique_award_id: Field<'a>,
}

impl Shape {
    fn of(stream: &Stream, cursor: &Cursor, list: &[&RawValue]) -> Self {
        let probe = list.iter().find_map(|raw| serde_json::from_str::<Object<Probe<'_>>>(raw.get()).ok()?.0).unwrap_or_default();
        let has = |field: &Field<'_>| *field != Field::Absent;
        match &cursor.step {
            _ if has(&probe.modification_number) => Self::History,
            _ if has(&probe.generated_unique_award_id) => Self::Details,
            _ if has(&probe.modification) || has(&probe.action_date) => Self::Actions,
            _ if has(&probe.award_amount) => Self::Awards,
            Step::Actions { .. } => Self::History,
            _ if stream.name == TRANSACTIONS => Self::Actions,
            _ => Self::Awards,
        }
    }
}

/// Maps a list and adds its content to the page.
pub(super) fn read(
    stream: &Stream,
    cursor: &Cursor,
    list: Vec<&RawValue>,
    today: Date,
    page: &mut Page,
) -> Result<RowsOfPage, UpstreamError> {
    let (mut read, mut fields) = (RowsOfPage { count: list.len(), ..RowsOfPage::default() }, FieldCounts::default());
    let shape = Shape::of(stream, cursor, &list);
    let records = Records::of_list(list);
    (page.observations, page.rejects) = match shape {
        Shape::Actions => records.map(stream.name, EXPECTED_OF_ACTIONS, |action: &Action<'_>| {
            read.rows.push(action.row());
            action.count(&mut fields);
            action.observe(stream)
        })?,
        Shape::Awards => records.map(stream.name, EXPECTED_OF_AWARDS, |award: &Award<'_>| {
            read.rows.push(award.row());
            award.count(&mut fields);
            let observation = award.observe(stream)?;
            read.outside += usize::from(award.is_outside(cursor));
            Ok(observation)
        })?,
        Shape::History => records.map(stream.name, EXPECTED_OF_HISTORY, |action: &Past<'_>| {
            action.count(&mut fields);
            action.observe(stream)
        })?,
        Shape::Details => records.map(stream.name, &[], |award: &Detail<'_>| {
            award.count(&mut fields);
            detail::observe(stream, award)
        })?,
    };
    if matches!(shape, Shape::Awards) && stream.name == DETAILS {
        // For this stream the search only names the awards to request.
        read.ids = std::mem::take(&mut page.observations)
            .into_iter()
            .filter_map(|award| award.key.split_once('/').map(|(_, id)| id.to_owned()))
            .collect();
    }
    page.fields.add(&fields);
    remark(page, today);
    Ok(read)
}

/// Maps the awards of a list, for any request.
pub(super) fn awards(stream: &Stream, list: Vec<&RawValue>) -> Result<Vec<FactData>, UpstreamError> {
    let (awards, _) = Records::of_list(list).map(stream.name, &[], |award: &Award<'_>| award.observe(stream))?;
    Ok(awards.into_iter().map(|award| award.data).collect())
}

/// Adds warnings about unexpected records of a page; the records are accepted.
fn remark(page: &mut Page, today: Date) {
    let mut known: HashMap<&str, &FactData> = HashMap::new();
    let (mut unlike, mut ahead) = (None, false);
    for observation in &page.observations {
        if *known.entry(&observation.key).or_insert(&observation.data) != &observation.data {
            unlike = unlike.or(Some(format!("{} was sent twice on one page with different content: the first counts", observation.key)));
        }
        if let FactData::Award(award) = &observation.data {
            ahead |= text::date(&award.action_date).is_some_and(|day| day > today);
        }
    }
    page.warnings.extend(unlike);
    page.warnings.extend(ahead.then(|| "actions are dated ahead of today; they are taken as they are".to_owned()));
}

fn is_amount(field: &Field<'_>) -> bool {
    matches!(field, Field::Number(_) | Field::Text(_))
}

/// Builds the number that identifies an action.
fn modification(field: &Field<'_>) -> Result<String, String> {
    let number = field.clean();
    if number.is_empty() || number.len() > 60 || number.contains('/') { Err("is not an action number".to_owned()) } else { Ok(number) }
}

fn reject<'a>(reference: &'a str, field: &'a str) -> impl FnOnce(String) -> (String, String) + 'a {
    move |reason| (text::cut(reference.to_owned(), 100), format!("{field}: {reason}"))
}

/// Returns a short hash of the fields that distinguish rows.
fn short_hash(parts: &[&Field<'_>]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.text().as_bytes()).collect();
    hex(&Hash32::of_parts(&parts).0[..8])
}

type HoldsOfAction = fn(&Action<'_>) -> bool;

const EXPECTED_OF_ACTIONS: &[(&str, HoldsOfAction)] = &[
    ("generated_internal_id", |action| action.generated_internal_id.is_text()),
    ("Award ID", |action| action.award_id.is_text()),
    ("Mod", |action| action.modification.is_text() || action.modification.is_integer()),
    ("Action Date", |action| action.action_date.is_text()),
    ("Transaction Amount", |action| is_amount(&action.amount)),
    ("Recipient Name", |action| action.recipient.is_text()),
    ("Awarding Agency", |action| action.agency.is_text()),
    ("naics_code", |action| action.naics_code != Field::Absent || action.naics.is_there),
];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Action<'a> {
    #[serde(borrow)]
    generated_internal_id: Field<'a>,
    #[serde(borrow, rename = "Award ID")]
    award_id: Field<'a>,
    #[serde(borrow, rename = "Mod")]
    modification: Field<'a>,
    #[serde(borrow, rename = "Action Date")]
    action_date: Field<'a>,
    #[serde(borrow, rename = "Action Type")]
    action_type: Field<'a>,
    #[serde(borrow, rename = "Transaction Amount")]
    amount: Field<'a>,
    #[serde(borrow, rename = "Transaction Description")]
    description: Field<'a>,
    #[serde(borrow, rename = "Recipient Name")]
    recipient: Field<'a>,
    #[serde(borrow, rename = "Recipient UEI")]
    recipient_uei: Field<'a>,
    #[serde(borrow)]
    recipient_id: Field<'a>,
    #[serde(borrow, rename = "Awarding Agency")]
    agency: Field<'a>,
    #[serde(borrow, rename = "Awarding Sub Agency")]
    sub_agency: Field<'a>,
    #[serde(borrow, rename = "Funding Agency")]
    funding_agency: Field<'a>,
    #[serde(borrow, rename = "Funding Sub Agency")]
    funding_sub_agency: Field<'a>,
    #[serde(borrow, rename = "Award Type")]
    award_type: Field<'a>,
    #[serde(borrow)]
    naics_code: Field<'a>,
    #[serde(borrow)]
    naics_description: Field<'a>,
    #[serde(rename = "NAICS")]
    naics: Coded,
    #[serde(rename = "PSC")]
    psc: Coded,
    #[serde(borrow, rename = "Recipient Location")]
    recipient_location: Object<Location<'a>>,
    #[serde(borrow, rename = "Primary Place of Performance")]
    place: Object<Location<'a>>,
}

impl Action<'_> {
    /// Counts the mapped fields.
    fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("Action Date", self.action_date.is_filled()),
            ("Action Type", self.action_type.is_filled()),
            ("Transaction Amount", self.amount.is_filled()),
            ("Transaction Description", self.description.is_filled()),
            ("Recipient Name", self.recipient.is_filled()),
            ("Recipient UEI", self.recipient_uei.is_filled()),
            ("Awarding Agency", self.agency.is_filled()),
            ("Awarding Sub Agency", self.sub_agency.is_filled()),
            ("Award Type", self.award_type.is_filled()),
            ("naics_code", self.naics_code.is_filled() || self.naics.is_filled()),
            ("PSC", self.psc.is_filled()),
        ]);
    }

    fn row(&self) -> Row {
        let said = [&self.generated_internal_id, &self.modification, &self.action_date, &self.action_type, &self.amount, &self.description];
        (self.award_id.text().to_owned(), short_hash(&said))
    }

    fn observe(&self, stream: &Stream) -> Result<Observation, (String, String)> {
        let reference = format!("{} {}", self.generated_internal_id.text(), self.modification.text());
        let mut fact = AwardFact { stream: stream.name.to_owned(), kind: kind::ACTION.to_owned(), ..AwardFact::default() };
        parts::identify(&mut fact, self.generated_internal_id.text()).map_err(reject(&reference, "generated_internal_id"))?;
        fact.modification = modification(&self.modification).map_err(reject(&reference, "Mod"))?;
        fact.action_cents = parts::cents(&self.amount).map_err(reject(&reference, "Transaction Amount"))?;
        fact.action_date = day(&self.action_date);
        fact.action_type = self.action_type.clean();
        fact.award_type = self.award_type.clean();
        fact.description = text::cut(self.description.clean(), DESCRIPTION_CHARS_MAX);
        fact.recipient = self.recipient.clean();
        fact.recipient_uei = self.recipient_uei.clean();
        fact.recipient_id = self.recipient_id.clean();
        fact.agency = self.agency.clean();
        fact.sub_agency = self.sub_agency.clean();
        fact.funding_agency = self.funding_agency.clean();
        fact.funding_sub_agency = self.funding_sub_agency.clean();
        (fact.naics, fact.naics_description) = self.naics.cloned();
        if fact.naics.is_empty() {
            (fact.naics, fact.naics_description) = (self.naics_code.clean(), self.naics_description.clean());
        }
        (fact.psc, fact.psc_description) = self.psc.cloned();
        parts::recipients_place(&mut fact, &self.recipient_location);
        parts::place_of_performance(&mut fact, &self.place);
        let key = format!("{}/{}/{}", stream.name, fact.award_id, fact.modification);
        Ok(Observation::new(key, FactData::Award(Box::new(fact))))
    }
}

type HoldsOfAward = fn(&Award<'_>) -> bool;

const EXPECTED_OF_AWARDS: &[(&str, HoldsOfAward)] = &[
    ("generated_internal_id", |award| award.generated_internal_id.is_text()),
    ("Award ID", |award| award.award_id.is_text()),
    ("Award Amount", |award| is_amount(&award.amount)),
    ("Recipient Name", |award| award.recipient.is_text()),
    ("Awarding Agency", |award| award.agency.is_text()),
    ("NAICS", |award| award.naics.is_there),
];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Award<'a> {
    #[serde(borrow)]
    generated_internal_id: Field<'a>,
    #[serde(borrow, rename = "Award ID")]
    award_id: Field<'a>,
    #[serde(borrow, rename = "Award Amount")]
    amount: Field<'a>,
    #[serde(borrow, rename = "Total Outlays")]
    outlays: Field<'a>,
    #[serde(borrow, rename = "Description")]
    description: Field<'a>,
    #[serde(borrow, rename = "Contract Award Type")]
    contract_award_type: Field<'a>,
    #[serde(borrow, rename = "Award Type")]
    award_type: Field<'a>,
    #[serde(borrow, rename = "Recipient Name")]
    recipient: Field<'a>,
    #[serde(borrow, rename = "Recipient UEI")]
    recipient_uei: Field<'a>,
    #[serde(borrow)]
    recipient_id: Field<'a>,
    #[serde(borrow, rename = "Recipient Location")]
    recipient_location: Object<Location<'a>>,
    #[serde(borrow, rename = "Awarding Agency")]
    agency: Field<'a>,
    #[serde(borrow, rename = "Awarding Sub Agency")]
    sub_agency: Field<'a>,
    #[serde(borrow, rename = "Funding Agency")]
    funding_agency: Field<'a>,
    #[serde(borrow, rename = "Funding Sub Agency")]
    funding_sub_agency: Field<'a>,
    #[serde(rename = "NAICS")]
    naics: Coded,
    #[serde(rename = "PSC")]
    psc: Coded,
    #[serde(borrow, rename = "Base Obligation Date")]
    signed: Field<'a>,
    #[serde(borrow, rename = "Start Date")]
    start: Field<'a>,
    #[serde(borrow, rename = "End Date")]
    end: Field<'a>,
    #[serde(borrow, rename = "Last Date to Order")]
    last_order: Field<'a>,
    #[serde(borrow, rename = "Last Modified Date")]
    last_modified: Field<'a>,
    #[serde(borrow, rename = "Primary Place of Performance")]
    place: Object<Location<'a>>,
}

impl Award<'_> {
    /// Counts the mapped fields.
    fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("Award Amount", self.amount.is_filled()),
            ("Description", self.description.is_filled()),
            ("Recipient Name", self.recipient.is_filled()),
            ("Recipient UEI", self.recipient_uei.is_filled()),
            ("Recipient Location", self.recipient_location.0.is_some()),
            ("Awarding Agency", self.agency.is_filled()),
            ("Awarding Sub Agency", self.sub_agency.is_filled()),
            ("Funding Agency", self.funding_agency.is_filled()),
            ("NAICS", self.naics.is_filled()),
            ("PSC", self.psc.is_filled()),
            ("Base Obligation Date", self.signed.is_filled()),
            ("Start Date", self.start.is_filled()),
            ("End Date", self.end.is_filled() || self.last_order.is_filled()),
            ("Last Modified Date", self.last_modified.is_filled()),
            ("Primary Place of Performance", self.place.0.is_some()),
        ]);
    }

    fn row(&self) -> Row {
        (self.award_id.text().to_owned(), short_hash(&[&self.generated_internal_id]))
    }

    fn is_outside(&self, cursor: &Cursor) -> bool {
        let by = match cursor.plan.first().map(|span| span.by) {
            Some(By::NewAwards) => &self.signed,
            _ => &self.last_modified,
        };
        text::date(by.text()).is_some_and(|day| day < cursor.slice.from || day > cursor.slice.to)
    }

    fn observe(&self, stream: &Stream) -> Result<Observation, (String, String)> {
        let reference = self.generated_internal_id.text();
        let mut fact = AwardFact { stream: stream.name.to_owned(), kind: kind::AWARD.to_owned(), ..AwardFact::default() };
        parts::identify(&mut fact, reference).map_err(reject(reference, "generated_internal_id"))?;
        fact.amount_cents = parts::cents(&self.amount).map_err(reject(reference, "Award Amount"))?;
        fact.outlays_cents = parts::cents(&self.outlays).map_err(reject(reference, "Total Outlays"))?;
        fact.description = text::cut(self.description.clean(), DESCRIPTION_CHARS_MAX);
        let award_type = self.contract_award_type.clean();
        fact.award_type = if award_type.is_empty() { self.award_type.clean() } else { award_type };
        fact.recipient = self.recipient.clean();
        fact.recipient_uei = self.recipient_uei.clean();
        fact.recipient_id = self.recipient_id.clean();
        parts::recipients_place(&mut fact, &self.recipient_location);
        fact.agency = self.agency.clean();
        fact.sub_agency = self.sub_agency.clean();
        fact.funding_agency = self.funding_agency.clean();
        fact.funding_sub_agency = self.funding_sub_agency.clean();
        (fact.naics, fact.naics_description) = self.naics.cloned();
        (fact.psc, fact.psc_description) = self.psc.cloned();
        fact.signed = day(&self.signed);
        fact.start = day(&self.start);
        fact.end = Some(day(&self.end)).filter(|end| !end.is_empty()).unwrap_or_else(|| day(&self.last_order));
        fact.last_modified = day(&self.last_modified);
        parts::place_of_performance(&mut fact, &self.place);
        let key = format!("{}/{}", stream.name, fact.award_id);
        Ok(Observation::new(key, FactData::Award(Box::new(fact))))
    }
}

type HoldsOfPast = fn(&Past<'_>) -> bool;

const EXPECTED_OF_HISTORY: &[(&str, HoldsOfPast)] = &[
    ("id", |action| action.id.is_text()),
    ("action_date", |action| action.action_date.is_text()),
    ("modification_number", |action| action.modification_number.is_text() || action.modification_number.is_integer()),
    ("federal_action_obligation", |action| is_amount(&action.federal_action_obligation)),
];

/// An action in the list of one award.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Past<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow, rename = "type")]
    type_code: Field<'a>,
    #[serde(borrow)]
    type_description: Field<'a>,
    #[serde(borrow)]
    action_date: Field<'a>,
    #[serde(borrow)]
    action_type: Field<'a>,
    #[serde(borrow)]
    modification_number: Field<'a>,
    #[serde(borrow)]
    description: Field<'a>,
    #[serde(borrow)]
    federal_action_obligation: Field<'a>,
}

impl Past<'_> {
    /// Counts the mapped fields.
    fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("transactions.action_date", self.action_date.is_filled()),
            ("transactions.action_type", self.action_type.is_filled()),
            ("transactions.description", self.description.is_filled()),
            ("transactions.federal_action_obligation", self.federal_action_obligation.is_filled()),
            ("transactions.type_description", self.type_description.is_filled()),
        ]);
    }

    /// Splits an action's id, `CONT_TX_{agency}_{parent agency}_{PIID}_{mod}_{parent PIID}_{number}`, into the award's id and the action's
    /// number.
    fn award_id(&self) -> Option<(String, String)> {
        let rest = self.id.text().trim().strip_prefix("CONT_TX_")?;
        let (agency, rest) = rest.split_once('_')?;
        let (parent_agency, rest) = rest.split_once('_')?;
        let (rest, number) = rest.rsplit_once('_')?;
        let (rest, parent) = rest.rsplit_once('_')?;
        let piid = rest.strip_suffix(self.modification_number.text().trim())?.strip_suffix('_')?;
        let id = if self.type_code.text().starts_with("IDV") {
            format!("CONT_IDV_{piid}_{agency}")
        } else {
            format!("CONT_AWD_{piid}_{agency}_{parent}_{parent_agency}")
        };
        Some((id, number.to_owned()))
    }

    fn observe(&self, stream: &Stream) -> Result<Observation, (String, String)> {
        let reference = self.id.text();
        let (id, number) =
            self.award_id().ok_or_else(|| "not the id of an action (CONT_TX_…)".to_owned()).map_err(reject(reference, "id"))?;
        let mut fact = AwardFact { stream: stream.name.to_owned(), kind: kind::ACTION.to_owned(), ..AwardFact::default() };
        parts::identify(&mut fact, &id).map_err(reject(reference, "id"))?;
        fact.modification = modification(&self.modification_number).map_err(reject(reference, "modification_number"))?;
        fact.action_number = number;
        fact.action_cents = parts::cents(&self.federal_action_obligation).map_err(reject(reference, "federal_action_obligation"))?;
        fact.action_date = day(&self.action_date);
        fact.action_type = self.action_type.clean();
        fact.award_type = self.type_description.clean();
        fact.award_type_code = self.type_code.clean();
        fact.description = text::cut(self.description.clean(), DESCRIPTION_CHARS_MAX);
        let key = format!("{}/{}/{}/{}", stream.name, fact.award_id, fact.modification, fact.action_number);
        Ok(Observation::new(key, FactData::Award(Box::new(fact))))
    }
}

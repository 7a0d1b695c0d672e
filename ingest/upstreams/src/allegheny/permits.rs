//! The rows of the table of permits of the City of Pittsburgh, and the facts that they become. Owners and contractors are not requested.

use jiff::civil::Date;
use schemas::facts::permits::PermitFact;
use serde::Deserialize;
use texts::allegheny::parse_pin;

use crate::cook::permits::{Pin, description, facts, key_part, warn_of_pins};
use crate::json::{Field, Records};
use crate::rolls::{dollars, short, street};
use crate::stored_fields::StoredFields;
use crate::{Page, UpstreamError, text};

/// The columns that are requested: those that are mapped.
pub(super) const COLUMNS: &[&str] =
    &["permit_id", "permit_type", "work_description", "work_type", "total_project_value", "issue_date", "parcel_num", "address", "status"];
/// The city whose permits these are.
const MUNICIPALITY: &str = "CITY OF PITTSBURGH";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    permit_id: Field<'a>,
    #[serde(borrow)]
    permit_type: Field<'a>,
    #[serde(borrow)]
    work_description: Field<'a>,
    #[serde(borrow)]
    work_type: Field<'a>,
    #[serde(borrow)]
    total_project_value: Field<'a>,
    #[serde(borrow)]
    issue_date: Field<'a>,
    #[serde(borrow)]
    parcel_num: Field<'a>,
    #[serde(borrow)]
    address: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
}

/// A column that rows have, and whether a row has it.
type Expected = (&'static str, fn(&Row<'_>) -> bool);

const EXPECTED: &[Expected] = &[
    ("permit_id", |row| row.permit_id.is_filled()),
    ("permit_type", |row| row.permit_type.is_filled()),
    ("issue_date", |row| row.issue_date.is_filled()),
    ("parcel_num", |row| row.parcel_num.is_filled()),
    ("status", |row| row.status.is_filled()),
];

/// Maps the rows of a page. Facts and rejected rows are in the page.
pub(super) fn map(stream: &'static str, records: Records<'_>, today: Date, page: &mut Page) -> Result<(), UpstreamError> {
    let records = records.storing(StoredFields { requested: COLUMNS, personal: &["address", "work_description"] });
    let mut unreadable = 0;
    let (observations, rejects) = records.map(stream, EXPECTED, |row: &Row<'_>| {
        let number = short(&row.permit_id);
        if number.is_empty() {
            return Err((short(&row.parcel_num), "permit_id is absent".to_owned()));
        }
        if number.eq_ignore_ascii_case("permit_id") {
            return Err((number, "permit_id is the name of the column: a header among the rows".to_owned()));
        }
        let pin = parse_pin(row.parcel_num.text()).ok();
        // A word such as MULTIPLE names no parcel.
        unreadable += usize::from(pin.is_none() && row.parcel_num.text().bytes().any(|byte| byte.is_ascii_digit()));
        let pins: Vec<Pin> = pin.into_iter().map(|pin| Pin { pin, is_padded: false }).collect();
        Ok(facts(&permit(stream, number, row, today), &pins, |fact| key_part(&fact.number)))
    })?;
    page.observations.extend(observations.into_iter().flatten());
    page.rejects.extend(rejects);
    warn_of_pins(page, unreadable);
    Ok(())
}

fn permit(stream: &str, number: String, row: &Row<'_>, today: Date) -> PermitFact {
    // The type says which procedure it is, and the kind of work whether it is new construction.
    let kinds = [&row.permit_type, &row.work_type].map(short);
    PermitFact {
        stream: stream.to_owned(),
        local_number: number.clone(),
        number,
        issued: text::plausible_date(row.issue_date.text(), today),
        status: short(&row.status),
        permit_type: kinds.into_iter().filter(|kind| !kind.is_empty()).collect::<Vec<_>>().join(" - "),
        amount: dollars(&row.total_project_value),
        description: description(&row.work_description),
        address: street(&[&row.address]),
        municipality: MUNICIPALITY.to_owned(),
        ..PermitFact::default()
    }
}

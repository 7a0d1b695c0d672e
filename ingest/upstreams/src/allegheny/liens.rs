//! The rows of the table of tax liens, and the facts that they become.

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::liens::LienFact;
use serde::Deserialize;
use texts::allegheny::parse_pin;
use texts::dollars::Dollars;
use texts::masked_text::masked_entry;
use texts::owner_names::shown_name;

use crate::json::{Field, Records};
use crate::rolls::short;
use crate::stored_fields::StoredFields;
use crate::{Observation, Page, UpstreamError, text};

/// The columns that are requested: those that are mapped.
pub(super) const COLUMNS: &[&str] = &[
    "pin",
    "block_lot",
    "filing_date",
    "tax_year",
    "dtd",
    "lien_description",
    "municipality",
    "ward",
    "last_docket_entry",
    "amount",
    "assignee",
    "satisfied",
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    pin: Field<'a>,
    #[serde(borrow)]
    block_lot: Field<'a>,
    #[serde(borrow)]
    filing_date: Field<'a>,
    #[serde(borrow)]
    tax_year: Field<'a>,
    #[serde(borrow)]
    dtd: Field<'a>,
    #[serde(borrow)]
    lien_description: Field<'a>,
    #[serde(borrow)]
    municipality: Field<'a>,
    #[serde(borrow)]
    ward: Field<'a>,
    #[serde(borrow)]
    last_docket_entry: Field<'a>,
    #[serde(borrow)]
    amount: Field<'a>,
    #[serde(borrow)]
    assignee: Field<'a>,
    #[serde(borrow)]
    satisfied: Field<'a>,
}

/// A column that rows have, and whether a row has it.
type Expected = (&'static str, fn(&Row<'_>) -> bool);

/// Maps the rows of a page. Facts and rejected rows are in the page.
pub(super) fn map(stream: &'static str, records: Records<'_>, today: Date, page: &mut Page) -> Result<(), UpstreamError> {
    let expected: &[Expected] = &[
        ("dtd", |row| row.dtd.is_filled()),
        ("lien_description", |row| row.lien_description.is_filled()),
        ("satisfied", |row| row.satisfied.is_filled()),
    ];
    let records = records.storing(StoredFields { requested: COLUMNS, personal: &["last_docket_entry", "assignee"] });
    let (observations, rejects) = records.map(stream, expected, |row: &Row<'_>| observe(stream, row, today))?;
    page.observations.extend(observations);
    page.rejects.extend(rejects);
    Ok(())
}

/// Whether a text is the name of its column: headers occur among the rows.
fn is_header(row: &Row<'_>) -> bool {
    let is = |field: &Field<'_>, name: &str| field.text().trim().eq_ignore_ascii_case(name);
    is(&row.dtd, "dtd") || is(&row.last_docket_entry, "last_docket_entry") || is(&row.lien_description, "lien_description")
}

/// An amount of dollars in cents. A number of the publisher is a float; half a cent is rounded away from zero.
fn cents(field: &Field<'_>) -> Option<i64> {
    Dollars::product(field.text().trim(), "1").map(|dollars| dollars.cents)
}

fn observe(stream: &str, row: &Row<'_>, today: Date) -> Result<Observation, (String, String)> {
    let docket = short(&row.dtd);
    let refuse = |reason: &str| (docket.clone(), reason.to_owned());
    if is_header(row) {
        return Err(refuse("dtd is the name of the column: a header among the rows"));
    }
    if docket.is_empty() {
        return Err(refuse("dtd is absent"));
    }
    let pin = parse_pin(&row.pin.clean()).unwrap_or_default();
    let fact = LienFact {
        stream: stream.to_owned(),
        docket: docket.clone(),
        description: short(&row.lien_description),
        year: row.tax_year.integer().filter(|year| (1_900..2_200).contains(year)),
        block_lot: short(&row.block_lot),
        pin,
        filed: text::plausible_date(row.filing_date.text(), today),
        amount_cents: cents(&row.amount),
        is_satisfied: row.satisfied.flag() || row.satisfied.text().trim().eq_ignore_ascii_case("t"),
        last_entry: masked_entry(&short(&row.last_docket_entry)),
        municipality: short(&row.municipality),
        ward: short(&row.ward),
        assignee: shown_name(&short(&row.assignee)),
    };
    if fact.pin.is_empty() && fact.block_lot.is_empty() {
        return Err(refuse("pin is absent or does not have 16 characters, and block_lot is absent"));
    }
    Ok(Observation::new(key(stream, &fact), FactData::Lien(Box::new(fact))))
}

/// The key of a lien: what the publisher identifies it by.
fn key(stream: &str, fact: &LienFact) -> String {
    let year = fact.year.map(|year| year.to_string()).unwrap_or_default();
    let parts = [&fact.docket, &fact.description, &year, &fact.block_lot, &fact.pin].map(|part| part.replace(['/', '|'], " "));
    format!("{stream}/{}", parts.join("|"))
}

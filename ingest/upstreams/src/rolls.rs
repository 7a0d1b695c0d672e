//! What the mappings of counties' rolls of property have in common.

use schemas::facts::FactData;
use schemas::facts::parcels::{self, ParcelFact};
use schemas::facts::sales::{self, SaleFact};
use texts::numbers::has_only_digits;
use texts::owner_names::without_recipient;

use crate::json::Field;
use crate::{Observation, text};

/// The longest text that is stored, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// The beginning of a text.
pub(crate) fn short(field: &Field<'_>) -> String {
    text::cut(field.clean(), TEXT_CHARS_MAX)
}

/// The line of an address with the street, without the name of who receives the mail there.
pub(crate) fn street(parts: &[&Field<'_>]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| short(part)).filter(|part| !part.is_empty()).collect();
    without_recipient(&parts.join(" "))
}

/// A code as a part of a key, without the point of a program that read it as a number: `77.0`.
pub(crate) fn code(field: &Field<'_>) -> String {
    let text = short(field);
    let whole = text.strip_suffix(".0").filter(|whole| has_only_digits(whole));
    whole.unwrap_or(&text).replace('/', " ")
}

/// An amount of dollars above 0; a stage that is not done can have 0.
pub(crate) fn dollars(field: &Field<'_>) -> Option<i64> {
    field.integer().filter(|amount| *amount > 0)
}

/// The fact that all sales of a township were read.
pub(crate) fn sales_read(stream: &str, township: &str) -> Observation {
    let fact = SaleFact { stream: stream.to_owned(), kind: sales::READ.to_owned(), township: township.to_owned(), ..SaleFact::default() };
    Observation::new(format!("{stream}/read/{township}"), FactData::Sale(Box::new(fact)))
}

/// The fact of a cycle that is complete: a year and a stage, of a neighbourhood or, without one, of a township.
pub(crate) fn cycle(stream: &str, township: &str, neighborhood: &str, (year, stage): (i64, &str)) -> Observation {
    let part = if neighborhood.is_empty() { String::new() } else { format!("/{neighborhood}") };
    let fact = ParcelFact {
        stream: stream.to_owned(),
        kind: parcels::CYCLE.to_owned(),
        year,
        township: township.to_owned(),
        neighborhood: neighborhood.to_owned(),
        stage: stage.to_owned(),
        ..ParcelFact::default()
    };
    Observation::new(format!("{stream}/cycle/{township}{part}"), FactData::Parcel(Box::new(fact)))
}

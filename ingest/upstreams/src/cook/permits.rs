//! Permits for construction as the assessor publishes them, one row for each parcel, and what permits of cities have in common with them.
//!
//! What is unreliable: a permit has no number of its own, or several rows; the number of the parcel is absent, has only the ten digits of a building, has
//! dashes, or is several joined by `|`; some days of issue are centuries away. Applicants, contractors and mailing addresses are not requested, and telephone
//! numbers and e-mail addresses are removed from what is to be done; of names there the initials are left.

use jiff::civil::Date;
use proofs::hash::Hash32;
use schemas::facts::FactData;
use schemas::facts::permits::PermitFact;
use serde::Deserialize;
use texts::cook::{PIN_DIGITS, published_pin};
use texts::masked_text::masked_work;
use texts::numbers::has_only_digits;

use crate::json::{Field, Records};
use crate::rolls::{dollars, short, street};
use crate::stored_fields::StoredFields;
use crate::{Observation, Page, UpstreamError, text};

/// The columns that are requested: those that are mapped.
pub(super) const COLUMNS: &[&str] = &[
    "row_id",
    "pin",
    "permit_number",
    "local_permit_number",
    "date_issued",
    "status",
    "assessable",
    "amount",
    "municipality",
    "township",
    "property_address",
    "job_code_primary",
    "job_code_secondary",
    "work_description",
    "improvement_code_1",
    "improvement_code_2",
    "improvement_code_3",
    "improvement_code_4",
];
/// The digits of the PIN of a building.
const BUILDING_DIGITS: usize = 10;
/// The most parcels of one permit.
const PINS_MAX: usize = 500;
/// The longest description that is stored, in characters.
const DESCRIPTION_CHARS_MAX: usize = 400;
/// The most hex digits of a hash in a key.
const HASH_DIGITS: usize = 16;
/// What stands in a key for a PIN or a day that is not known.
const NONE: &str = "none";
/// The digits of a telephone number.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 10..=11;

/// A parcel that a permit names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// The 14 digits of the number.
    pub(crate) pin: String,
    /// Whether only the building was named.
    pub(crate) is_padded: bool,
}

/// Reads the parcels that a permit names, each once, and counts the texts among them that are no PIN.
pub(crate) fn pins(list: &str) -> (Vec<Pin>, usize) {
    let (mut pins, mut unreadable) = (Vec::<Pin>::new(), 0);
    for text in list.split(['|', ',', ';']).map(str::trim).filter(|text| !text.is_empty()) {
        match pin(text) {
            Some(pin) if pins.iter().any(|known| known.pin == pin.pin) => {}
            Some(pin) if pins.len() < PINS_MAX => pins.push(pin),
            _ => unreadable += 1,
        }
    }
    (pins, unreadable)
}

/// Reads one PIN: 14 digits, of which the first zero can be lost, or the 10 of a building; with or without dashes.
fn pin(text: &str) -> Option<Pin> {
    let digits: String = text.strip_suffix(".0").unwrap_or(text).chars().filter(|letter| *letter != '-').collect();
    if digits.len() == BUILDING_DIGITS && has_only_digits(&digits) {
        return Some(Pin { pin: format!("{digits:0<PIN_DIGITS$}"), is_padded: true });
    }
    published_pin(&digits).map(|pin| Pin { pin, is_padded: false })
}

/// What is to be done, without telephone numbers, e-mail addresses and names of persons.
pub(crate) fn description(field: &Field<'_>) -> String {
    masked_work(&without_contacts(field))
}

/// What is to be done, without telephone numbers and e-mail addresses.
fn without_contacts(field: &Field<'_>) -> String {
    let cleaned = field.clean();
    let words: Vec<&str> = cleaned.split(' ').filter(|word| !word.contains('@')).collect();
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    let is_part = |word: &str| digits(word) > 0 && word.chars().all(|letter| letter.is_ascii_digit() || "()-.+/,;:".contains(letter));
    let mut kept: Vec<&str> = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        // Each part has a digit, so a longer run is no telephone number.
        let run = words[at..].iter().take(*PHONE_DIGITS.end()).take_while(|word| is_part(word)).count();
        let is_phone = |count: &usize| PHONE_DIGITS.contains(&words[at..at + count].iter().map(|word| digits(word)).sum::<usize>());
        match (1..=run).rev().find(is_phone) {
            Some(count) => at += count,
            None => {
                kept.push(words[at]);
                at += 1;
            }
        }
    }
    text::cut(kept.join(" "), DESCRIPTION_CHARS_MAX)
}

/// A part of a key.
pub(crate) fn key_part(text: &str) -> String {
    let part = text.replace('/', " ");
    if part.trim().is_empty() { NONE.to_owned() } else { part }
}

/// The facts of a permit, one for each of its parcels; one without a parcel if it names none. `key` makes the end of the key of a fact.
pub(crate) fn facts(fact: &PermitFact, pins: &[Pin], key: impl Fn(&PermitFact) -> String) -> Vec<Observation> {
    let observation = |pin: &str, is_pin_padded: bool, parcels: Option<i64>| {
        let fact = PermitFact { pin: pin.to_owned(), is_pin_padded, parcels, ..fact.clone() };
        let key = format!("{}/{}/{}", fact.stream, key_part(pin), key(&fact));
        Observation::new(key, FactData::Permit(Box::new(fact)))
    };
    if pins.is_empty() {
        return vec![observation("", false, None)];
    }
    // A dataset with a row for each parcel says of none how many there are.
    let parcels = i64::try_from(pins.len()).ok().filter(|parcels| *parcels > 1);
    pins.iter().map(|known| observation(&known.pin, known.is_padded, parcels)).collect()
}

/// Says how many numbers of parcels on a page are not readable.
pub(crate) fn warn_of_pins(page: &mut Page, unreadable: usize) {
    if unreadable > 0 {
        page.warnings.push(format!("{unreadable} numbers of parcels of permits are not readable"));
    }
}

/// A row of the dataset.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    row_id: Field<'a>,
    #[serde(borrow)]
    pin: Field<'a>,
    #[serde(borrow)]
    permit_number: Field<'a>,
    #[serde(borrow)]
    local_permit_number: Field<'a>,
    #[serde(borrow)]
    date_issued: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    assessable: Field<'a>,
    #[serde(borrow)]
    amount: Field<'a>,
    #[serde(borrow)]
    municipality: Field<'a>,
    #[serde(borrow)]
    township: Field<'a>,
    #[serde(borrow)]
    property_address: Field<'a>,
    #[serde(borrow)]
    job_code_primary: Field<'a>,
    #[serde(borrow)]
    job_code_secondary: Field<'a>,
    #[serde(borrow)]
    work_description: Field<'a>,
    #[serde(borrow)]
    improvement_code_1: Field<'a>,
    #[serde(borrow)]
    improvement_code_2: Field<'a>,
    #[serde(borrow)]
    improvement_code_3: Field<'a>,
    #[serde(borrow)]
    improvement_code_4: Field<'a>,
}

/// A column, and whether a row has a value in it.
type Expected = (&'static str, fn(&Row<'_>) -> bool);

const EXPECTED: &[Expected] = &[
    ("row_id", |row| row.row_id.is_filled()),
    ("pin", |row| row.pin.is_filled()),
    ("date_issued", |row| row.date_issued.is_filled()),
    ("status", |row| row.status.is_filled()),
];

/// Maps the rows of a page. Returns the values of the column by which the dataset is paged, of each row.
pub(super) fn map(stream: &'static str, body: &str, today: Date, page: &mut Page) -> Result<Vec<Vec<String>>, UpstreamError> {
    let records =
        Records::of_array(stream, body)?.storing(StoredFields { requested: COLUMNS, personal: &["property_address", "work_description"] });
    let (mut keys, mut unreadable) = (Vec::new(), 0);
    let (facts, rejects) = records.map(stream, EXPECTED, |row: &Row<'_>| {
        keys.push(vec![row.row_id.text().to_owned()]);
        if row.row_id.clean().is_empty() {
            return Err((String::new(), "row_id is absent".to_owned()));
        }
        let (pins, bad) = pins(row.pin.text());
        if pins.is_empty() && bad > 0 {
            return Err((short(&row.row_id), "pin has neither 14 nor 10 digits".to_owned()));
        }
        unreadable += bad;
        let fact = permit(stream, row, today);
        Ok(facts(&fact, &pins, |fact| format!("{}/{}", key_part(&fact.number), key_part(&fact.issued))))
    })?;
    page.observations.extend(facts.into_iter().flatten());
    page.rejects.extend(rejects);
    warn_of_pins(page, unreadable);
    Ok(keys)
}

fn permit(stream: &str, row: &Row<'_>, today: Date) -> PermitFact {
    let codes = [&row.improvement_code_1, &row.improvement_code_2, &row.improvement_code_3, &row.improvement_code_4];
    let fact = PermitFact {
        stream: stream.to_owned(),
        local_number: short(&row.local_permit_number),
        issued: text::plausible_date(row.date_issued.text(), today),
        status: short(&row.status),
        assessable: short(&row.assessable),
        amount: dollars(&row.amount),
        job_code: short(&row.job_code_primary),
        job_code_secondary: short(&row.job_code_secondary),
        improvements: codes.into_iter().map(short).filter(|code| !code.is_empty()).collect(),
        description: without_contacts(&row.work_description),
        address: short(&row.property_address),
        municipality: short(&row.municipality),
        township: short(&row.township),
        ..PermitFact::default()
    };
    let number = short(&row.permit_number);
    let number = if number.is_empty() { hash(&fact) } else { number };
    // The hash is that of the texts with names, as it was before they were masked, so that keys stay.
    PermitFact { number, description: masked_work(&fact.description), address: street(&[&row.property_address]), ..fact }
}

/// What stands for the number of a permit that has none: its local number, or the hash of what does not change while it is worked on.
fn hash(fact: &PermitFact) -> String {
    if !fact.local_number.is_empty() {
        return fact.local_number.clone();
    }
    let parts = [&*fact.issued, &*fact.job_code, &*fact.job_code_secondary, &*fact.description, &*fact.address];
    let mut hex = Hash32::of(parts.join("\n").as_bytes()).to_string();
    hex.truncate(HASH_DIGITS);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the numbers of parcels are read in each form in which permits have them, each once, and that others are counted.
    #[test]
    fn parcels_of_permits() {
        let whole = |pin: &str| Pin { pin: pin.to_owned(), is_padded: false };
        let building = |pin: &str| Pin { pin: pin.to_owned(), is_padded: true };
        for (text, expected, unreadable) in [
            ("", vec![], 0),
            (" | ", vec![], 0),
            ("16012160010000", vec![whole("16012160010000")], 0),
            ("1012160010000", vec![whole("01012160010000")], 0),
            ("16-01-216-001-0000", vec![whole("16012160010000")], 0),
            ("1601216001", vec![building("16012160010000")], 0),
            ("16-01-216-001", vec![building("16012160010000")], 0),
            ("16012160010000.0", vec![whole("16012160010000")], 0),
            ("16-01-216-001-0000 | 1601216002 | 16012160010000 | 1601216002", vec![whole("16012160010000"), building("16012160020000")], 0),
            ("1601216002|n/a|12", vec![building("16012160020000")], 2),
            ("MULTIPLE", vec![], 1),
            ("1601216 001", vec![], 1),
        ] {
            assert_eq!(pins(text), (expected, unreadable), "{text}");
        }
        let many: String = (0..600).map(|at| format!("1601216{at:03}0000|")).collect();
        let (pins, unreadable) = pins(&many);
        assert_eq!((pins.len(), unreadable), (PINS_MAX, 100));
    }

    /// Proves that telephone numbers, e-mail addresses and names are removed from descriptions, and that measures, years and numbers of permits stay.
    #[test]
    fn descriptions_have_no_contacts() {
        for (text, expected) in [
            ("ERECT 3 STORY BUILDING", "ERECT 3 STORY BUILDING"),
            ("CALL (312) 555-0100 FOR ACCESS", "CALL FOR ACCESS"),
            ("CALL 312.555.0100, PAT@EXAMPLE.COM", "CALL"),
            ("CONTACT 1 312 555 0100 NOW", "CONTACT NOW"),
            ("KITCHEN FOR JOHN SMITH, 312-555-0100", "KITCHEN FOR J. S.,"),
            ("25 X 100 LOT, 2026 CODE, PERMIT 100987654", "25 X 100 LOT, 2026 CODE, PERMIT 100987654"),
            ("", ""),
        ] {
            assert_eq!(description(&Field::Text(text.into())), expected);
        }
    }
}

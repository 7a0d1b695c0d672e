//! The rows of the tables of assessments and of sales, and the facts that they become.

use std::collections::{BTreeMap, HashSet};

use jiff::civil::Date;
use proofs::hash::Hash32;
use schemas::facts::FactData;
use schemas::facts::parcels::{self, ParcelFact};
use schemas::facts::sales::{self, SaleFact};
use serde::Deserialize;
use serde_json::value::RawValue;
use texts::allegheny::parse_pin;
use texts::numbers::has_only_digits;
use texts::owner_names::shown_owner_kind;
use texts::person_names::is_like_person;

use crate::json::{Field, Records};
use crate::rolls::{self, code, dollars, short, street};
use crate::stored_fields::{StoredFields, postal_code};
use crate::{Observation, Page, UpstreamError, text, us_states};

/// The municipalities of the rows so far, and of assessments how many parcels have each year. Years are texts, since cursors are read as objects without a
/// type first.
pub(super) type Areas = BTreeMap<String, BTreeMap<String, u64>>;

/// How many years before the current one are read of sales.
const SALE_YEARS: i16 = 5;
/// What the types of sales of several parcels begin with.
const MULTI_PARCEL: &str = "MULTI";
/// The stage of all values: they are published when they are certified.
const STAGE: &str = "certified";

/// The columns of assessments that are requested: those that are mapped.
pub(super) const ASSESSMENT_COLUMNS: &[&str] = &[
    "PARID",
    "PROPERTYHOUSENUM",
    "PROPERTYADDRESS",
    "PROPERTYCITY",
    "PROPERTYSTATE",
    "PROPERTYZIP",
    "MUNICODE",
    "MUNIDESC",
    "NEIGHCODE",
    "TAXCODE",
    "OWNERDESC",
    "CLASSDESC",
    "USECODE",
    "USEDESC",
    "HOMESTEADFLAG",
    "SALEDATE",
    "CHANGENOTICEADDRESS1",
    "CHANGENOTICEADDRESS2",
    "CHANGENOTICEADDRESS3",
    "CHANGENOTICEADDRESS4",
    "FAIRMARKETTOTAL",
    "FINISHEDLIVINGAREA",
    "TAXYEAR",
];
const PERSONAL: &[&str] = &[
    "PROPERTYHOUSENUM",
    "PROPERTYADDRESS",
    "OWNERDESC",
    "CHANGENOTICEADDRESS1",
    "CHANGENOTICEADDRESS2",
    "CHANGENOTICEADDRESS3",
    "CHANGENOTICEADDRESS4",
];
/// The columns of sales that are requested.
pub(super) const SALE_COLUMNS: &[&str] = &["PARID", "MUNICODE", "SALEDATE", "PRICE", "DEEDBOOK", "DEEDPAGE", "SALEDESC", "INSTRTYPDESC"];

/// A row of either table. A field that a table does not have is absent.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE", default)]
struct Row<'a> {
    #[serde(borrow)]
    parid: Field<'a>,
    #[serde(borrow)]
    propertyhousenum: Field<'a>,
    #[serde(borrow)]
    propertyaddress: Field<'a>,
    #[serde(borrow)]
    propertycity: Field<'a>,
    #[serde(borrow)]
    propertystate: Field<'a>,
    #[serde(borrow)]
    propertyzip: Field<'a>,
    #[serde(borrow)]
    municode: Field<'a>,
    #[serde(borrow)]
    munidesc: Field<'a>,
    #[serde(borrow)]
    neighcode: Field<'a>,
    #[serde(borrow)]
    taxcode: Field<'a>,
    #[serde(borrow)]
    ownerdesc: Field<'a>,
    #[serde(borrow)]
    classdesc: Field<'a>,
    #[serde(borrow)]
    usecode: Field<'a>,
    #[serde(borrow)]
    usedesc: Field<'a>,
    #[serde(borrow)]
    homesteadflag: Field<'a>,
    #[serde(borrow)]
    saledate: Field<'a>,
    #[serde(borrow)]
    changenoticeaddress1: Field<'a>,
    #[serde(borrow)]
    changenoticeaddress2: Field<'a>,
    #[serde(borrow)]
    changenoticeaddress3: Field<'a>,
    #[serde(borrow)]
    changenoticeaddress4: Field<'a>,
    #[serde(borrow)]
    fairmarkettotal: Field<'a>,
    #[serde(borrow)]
    finishedlivingarea: Field<'a>,
    #[serde(borrow)]
    taxyear: Field<'a>,
    #[serde(borrow)]
    price: Field<'a>,
    #[serde(borrow)]
    deedbook: Field<'a>,
    #[serde(borrow)]
    deedpage: Field<'a>,
    #[serde(borrow)]
    saledesc: Field<'a>,
    #[serde(borrow)]
    instrtypdesc: Field<'a>,
}

type Expected = (&'static str, fn(&Row<'_>) -> bool);

const OF_ASSESSMENTS: &[Expected] = &[
    ("PARID", |row| row.parid.is_filled()),
    ("MUNICODE", |row| row.municode.is_filled()),
    ("USECODE", |row| row.usecode.is_filled()),
    ("CLASSDESC", |row| row.classdesc.is_filled()),
    ("TAXYEAR", |row| row.taxyear.is_filled()),
];
const OF_SALES: &[Expected] =
    &[("PARID", |row| row.parid.is_filled()), ("SALEDATE", |row| row.saledate.is_filled()), ("SALEDESC", |row| row.saledesc.is_filled())];

/// A day, which these tables write as `MM-DD-YYYY` or `YYYY-MM-DD`.
fn day(field: &Field<'_>) -> Option<Date> {
    let written = field.text().trim();
    if let [month, day, year] = written.split('-').collect::<Vec<_>>()[..]
        && year.len() == 4
    {
        return text::date(&format!("{year}-{month:0>2}-{day:0>2}"));
    }
    text::date(written)
}

/// The PIN of a row.
fn pin(row: &Row<'_>) -> Result<String, (String, String)> {
    parse_pin(row.parid.text()).map_err(|_| (short(&row.parid), "PARID is absent or does not have the 16 characters of a PIN".to_owned()))
}

/// How many rows of a page that another one follows are of parcels whose rows are all in it: those before the rows of the last parcel, which the next page
/// reads again. All of them, if the page has no other parcel.
pub(super) fn rows_of_whole_parcels(rows: &[&RawValue]) -> usize {
    let pin_of = |row: &&RawValue| serde_json::from_str::<Row<'_>>(row.get()).ok().and_then(|row| parse_pin(row.parid.text()).ok());
    let Some(last) = rows.last().map(pin_of) else { return 0 };
    let of_last = rows.iter().rev().take_while(|row| pin_of(row) == last).count();
    if of_last == rows.len() { of_last } else { rows.len() - of_last }
}

/// Maps the rows of assessments. The day of which a row is, is not read: it changes each month, and with it every fact would. Of several rows of a parcel,
/// one for the card of each building, the first counts, also if the page before ended among them: `last` is the last PIN of that page, and then of this one. The
/// floor area of such a parcel is unknown, since a card has that of its building and the value is that of the parcel. So is that of the one parcel of a page that
/// is not whole. Facts and rejected rows are in the page; the parcels of each municipality and year are counted in the areas.
pub(super) fn map_assessments(
    stream: &'static str,
    records: Records<'_>,
    is_whole: bool,
    (areas, last): (&mut Areas, &mut String),
    page: &mut Page,
) -> Result<(), UpstreamError> {
    let records = records.storing(StoredFields { requested: ASSESSMENT_COLUMNS, personal: PERSONAL });
    let before = last.clone();
    let (mut seen, mut with_cards): (HashSet<String>, HashSet<String>) = Default::default();
    let (facts, rejects) = records.map(stream, OF_ASSESSMENTS, |row: &Row<'_>| {
        let fact = assessment(stream, row)?;
        last.clone_from(&fact.pin);
        if fact.pin == before {
            return Ok(None);
        }
        if !seen.insert(fact.pin.clone()) {
            with_cards.insert(fact.pin);
            return Ok(None);
        }
        *areas.entry(fact.township.clone()).or_default().entry(fact.year.to_string()).or_default() += 1;
        Ok(Some(Box::new(fact)))
    })?;
    page.observations.extend(facts.into_iter().flatten().map(|mut fact| {
        fact.floor_area = fact.floor_area.filter(|_| is_whole && !with_cards.contains(&fact.pin));
        Observation::new(format!("{stream}/{}", fact.pin), FactData::Parcel(fact))
    }));
    page.rejects.extend(rejects);
    Ok(())
}

fn assessment(stream: &str, row: &Row<'_>) -> Result<ParcelFact, (String, String)> {
    let pin = pin(row)?;
    let refuse = |reason: &str| (pin.clone(), reason.to_owned());
    let year =
        row.taxyear.integer().filter(|year| (1_990..2_200).contains(year)).ok_or_else(|| refuse("TAXYEAR is absent or not a year"))?;
    let township = padded(code(&row.municode));
    if township.is_empty() {
        return Err(refuse("MUNICODE is absent"));
    }
    let is_homestead = row.homesteadflag.text().trim().eq_ignore_ascii_case("HOM");
    let (mailing_city, mailing_state) = city_and_state([&short(&row.changenoticeaddress3), &short(&row.changenoticeaddress4)]);
    let has_house = short(&row.propertyhousenum) != "0";
    Ok(ParcelFact {
        stream: stream.to_owned(),
        kind: parcels::ASSESSMENT.to_owned(),
        year,
        class: class(&short(&row.classdesc), &padded(code(&row.usecode))),
        township,
        township_name: short(&row.munidesc),
        neighborhood: code(&row.neighcode),
        certified: dollars(&row.fairmarkettotal),
        zip: postal_code(&short(&row.propertyzip), false),
        street: match has_house {
            true => street(&[&row.propertyhousenum, &row.propertyaddress]),
            false => street(&[&row.propertyaddress]),
        },
        city: short(&row.propertycity),
        state: short(&row.propertystate).to_ascii_uppercase(),
        use_class: short(&row.classdesc).to_ascii_uppercase(),
        use_label: short(&row.usedesc),
        owner_kind: shown_owner_kind(&short(&row.ownerdesc)),
        is_homestead,
        is_exempt: row.taxcode.text().trim().eq_ignore_ascii_case("E"),
        mailing_hash: if is_homestead { mailing_hash(row) } else { String::new() },
        mailing_city: if is_homestead { mailing_city } else { String::new() },
        mailing_state: if is_homestead { mailing_state } else { String::new() },
        sale_date: day(&row.saledate).map(|day| day.to_string()).unwrap_or_default(),
        floor_area: row.finishedlivingarea.integer().filter(|area| *area > 0),
        pin,
        ..ParcelFact::default()
    })
}

/// The code of a municipality or of a use: three digits, of which a program that read it as a number can have removed the first zeros.
fn padded(code: String) -> String {
    let is_number = has_only_digits(&code);
    if is_number { format!("{code:0>3}") } else { code }
}

/// The class of a parcel: the first letter of its class, and the code of its use.
fn class(class: &str, use_code: &str) -> String {
    let letter: String = class.chars().filter(char::is_ascii_alphabetic).take(1).collect();
    let code: String = use_code.chars().filter(char::is_ascii_alphanumeric).take(5).collect();
    format!("{}{code}", letter.to_ascii_uppercase())
}

/// The city and the state of the last of two lines that has both with a ZIP code of that state, such as `PITTSBURGH PA  ` before `15213`; empty if none has.
/// Another line can be the name of who receives the mail, also with letters of a state after it: `JOHN SMITH MD`, or `JOHN SMITH PA` before `15213`.
fn city_and_state([third, fourth]: [&str; 2]) -> (String, String) {
    city_of(fourth, "").or_else(|| city_of(third, fourth)).unwrap_or_default()
}

/// The city and the state of a line whose ZIP code is in it or is all of the next one.
fn city_of(line: &str, next: &str) -> Option<(String, String)> {
    let place = line.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-' || letter == ' ');
    let own = line.get(place.len()..).unwrap_or_default().trim();
    let zip = postal_code(if own.is_empty() { next } else { own }, false);
    let (city, state) = place.rsplit_once([' ', ','])?;
    let state = us_states::letters(state).filter(|_| state.len() == 2)?;
    // Programs that read it as a number remove a zero at its beginning.
    if zip.len() < 4 || !us_states::has_zip(state, &format!("{zip:0>5}")) {
        return None;
    }
    let city = city.trim_end_matches([' ', ',']).to_ascii_uppercase();
    let is_city = !city.is_empty() && city.chars().all(|letter| letter.is_alphabetic() || " .'-".contains(letter));
    (is_city && !city.starts_with("ATTN") && !is_like_person(&city)).then(|| (city, state.to_owned()))
}

/// A hash of a mailing address, by which parcels with the same one are found. Where it is, beyond the city, is not stored.
fn mailing_hash(row: &Row<'_>) -> String {
    let lines = [&row.changenoticeaddress1, &row.changenoticeaddress2, &row.changenoticeaddress3, &row.changenoticeaddress4];
    let letters: String = lines.iter().flat_map(|line| line.text().chars()).filter(|letter| letter.is_alphanumeric()).collect();
    // The first line is the street: without it there is no address.
    if !row.changenoticeaddress1.is_filled() {
        return String::new();
    }
    Hash32::of(letters.to_uppercase().as_bytes()).to_string().chars().take(24).collect()
}

/// Maps the rows of sales of the last years. Older ones are left out. The municipalities are in the areas.
pub(super) fn map_sales(
    stream: &'static str,
    records: Records<'_>,
    today: Date,
    areas: &mut Areas,
    page: &mut Page,
) -> Result<(), UpstreamError> {
    let records = records.storing(StoredFields { requested: SALE_COLUMNS, personal: &[] });
    let (observations, rejects) = records.map(stream, OF_SALES, |row: &Row<'_>| {
        let pin = pin(row)?;
        let date = day(&row.saledate).ok_or_else(|| (pin.clone(), "SALEDATE is absent or not a day".to_owned()))?;
        let township = padded(code(&row.municode));
        if !township.is_empty() {
            areas.entry(township.clone()).or_default();
        }
        if date.year() < today.year().saturating_sub(SALE_YEARS) {
            return Ok(None);
        }
        let document = [short(&row.deedbook), short(&row.deedpage)].join("-");
        let sale = format!("{pin}-{date}-{document}").replace('/', " ");
        let sale_type = short(&row.saledesc).to_ascii_uppercase();
        let fact = SaleFact {
            stream: stream.to_owned(),
            kind: sales::SALE.to_owned(),
            sale: sale.clone(),
            pin,
            township,
            date: date.to_string(),
            is_date_exact: true,
            price: dollars(&row.price),
            document: document.trim_matches('-').to_owned(),
            deed_type: short(&row.instrtypdesc),
            is_multisale: sale_type.starts_with(MULTI_PARCEL),
            sale_type,
            ..SaleFact::default()
        };
        Ok(Some(Observation::new(format!("{stream}/{sale}"), FactData::Sale(Box::new(fact)))))
    })?;
    page.observations.extend(observations.into_iter().flatten());
    page.rejects.extend(rejects);
    Ok(())
}

/// A fact of a whole municipality, with those of the parts of its parcels, which follow it.
fn with_parts(whole: Observation) -> Vec<Observation> {
    let part = |part: i64| {
        let mut data = whole.data.clone();
        match &mut data {
            FactData::Parcel(fact) => (fact.kind, fact.part) = (parcels::PART.to_owned(), Some(part)),
            FactData::Sale(fact) => (fact.kind, fact.part) = (parcels::PART.to_owned(), Some(part)),
            _ => {}
        }
        Observation::new(format!("{}/part/{part}", whole.key), data)
    };
    let parts: Vec<Observation> = (0..parcels::PARTS).map(part).collect();
    std::iter::once(whole).chain(parts).collect()
}

/// The facts that all sales of the municipalities were read.
pub(super) fn sales_read(stream: &str, areas: &Areas) -> Vec<Observation> {
    areas.keys().map(|township| rolls::sales_read(stream, township)).flat_map(with_parts).collect()
}

/// The facts of the years that are complete: of each municipality the newest one that at least 99 of 100 of its parcels have.
pub(super) fn cycles(stream: &str, areas: &Areas) -> Vec<Observation> {
    let cycle = |(township, years): (&String, &BTreeMap<String, u64>)| {
        let all: u64 = years.values().sum();
        let (year, _) = years.iter().rev().find(|(_, parcels)| **parcels * 100 >= all * 99)?;
        Some(rolls::cycle(stream, township, "", (year.parse().ok()?, STAGE)))
    };
    areas.iter().filter_map(cycle).flat_map(with_parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how days, classes and the cities of mailing addresses are written.
    #[test]
    fn texts() {
        let day_of = |text: &str| day(&Field::Text(text.to_owned().into())).map(|day| day.to_string());
        assert_eq!(
            [day_of("11-20-2000"), day_of("2018-02-01"), day_of(" "), day_of("13-40-2000")],
            [Some("2000-11-20".to_owned()), Some("2018-02-01".to_owned()), None, None]
        );
        assert_eq!([class("COMMERCIAL", "411"), class("GOVERNMENT", "670"), class("", "")], ["C411", "G670", ""]);
        let code_of = |text: &str| padded(code(&Field::Text(text.to_owned().into())));
        assert_eq!(["104", "104.0", "10.0", "010", " ", "10.5"].map(code_of), ["104", "104", "010", "010", "", "10.5"]);
        for (line, city, state) in [
            (["PITTSBURGH PA  ", "15213"], "PITTSBURGH", "PA"),
            (["Boca Raton, fl 33431", ""], "BOCA RATON", "FL"),
            (["C/O JOHN SMITH", "PITTSBURGH PA 15213"], "PITTSBURGH", "PA"),
            (["JOHN SMITH", "15213"], "", ""),
            (["C/O JOHN SMITH PA", ""], "", ""),
            (["JOHN SMITH MD", "PITTSBURGH PA 15213-1234"], "PITTSBURGH", "PA"),
            (["JOHN SMITH MD", "15213"], "", ""),
            (["JOHN SMITH MD", ""], "", ""),
            (["PITTSBURGH PA", "JOHN SMITH MD"], "", ""),
            (["JOHN SMITH PA", "15213"], "", ""),
            (["SMITH MARY Q, PA 15213", ""], "", ""),
            (["JOHN SMITH PA", "PITTSBURGH PA 15213"], "PITTSBURGH", "PA"),
            (["ELIZABETH PA", "15037"], "ELIZABETH", "PA"),
            (["ANN ARBOR MI", "48103"], "ANN ARBOR", "MI"),
            (["SPRINGFIELD MA", "1103"], "SPRINGFIELD", "MA"),
            (["", ""], "", ""),
        ] {
            assert_eq!(city_and_state(line), (city.to_owned(), state.to_owned()), "{line:?}");
        }
    }

    /// Proves which year of a municipality is complete.
    #[test]
    fn years_close() {
        let closed = |years: &[(&str, u64)]| {
            let years = years.iter().map(|(year, parcels)| ((*year).to_owned(), *parcels)).collect();
            let cycles = cycles("s", &Areas::from([("104".to_owned(), years)]));
            cycles.into_iter().next().map(|cycle| if let FactData::Parcel(fact) = cycle.data { fact.year } else { 0 })
        };
        assert_eq!(closed(&[("2026", 100)]), Some(2026));
        assert_eq!(closed(&[("2025", 1), ("2026", 99)]), Some(2026));
        assert_eq!(closed(&[("2025", 2), ("2026", 98)]), None);
        assert_eq!(closed(&[]), None);
    }
}

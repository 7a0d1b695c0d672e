//! The rows of the datasets, and the facts that they become.

use schemas::facts::FactData;
use schemas::facts::parcels::{self, ParcelFact};
use schemas::facts::sales::{self, SaleFact};
use serde::{Deserialize, Serialize};
use texts::cook;

use super::{ADDRESSES, APPEALS, EXEMPT, SALES_STREAM, UNIVERSE};
use crate::json::{Field, Records};
use crate::rolls::{code, dollars, short, street};
use crate::stored_fields::{StoredFields, postal_code};
use crate::{Observation, Page, UpstreamError, text};

const VALUE_COLUMNS: &[&str] = &[
    "row_id",
    "pin",
    "year",
    "class",
    "township_code",
    "township_name",
    "nbhd",
    "mailed_bldg",
    "mailed_tot",
    "certified_bldg",
    "certified_tot",
    "board_bldg",
    "board_tot",
];
const UNIVERSE_COLUMNS: &[&str] =
    &["row_id", "pin", "year", "class", "township_code", "township_name", "nbhd_code", "tax_code", "zip_code"];
const ADDRESS_COLUMNS: &[&str] = &["row_id", "pin", "year", "prop_address_full", "prop_address_city_name", "prop_address_zipcode_1"];
const APPEAL_COLUMNS: &[&str] = &["row_id", "pin", "year", "appeal_type", "change", "status"];
const EXEMPT_COLUMNS: &[&str] = &["pin", "year", "class"];
const SALE_COLUMNS: &[&str] = &[
    "row_id",
    "pin",
    "township_code",
    "class",
    "sale_date",
    "is_mydec_date",
    "sale_price",
    "doc_no",
    "deed_type",
    "sale_type",
    "is_multisale",
    "num_parcels_sale",
    "sale_filter_same_sale_within_365",
    "sale_filter_less_than_10k",
    "sale_filter_deed_type",
];

/// The columns that are requested: those that are mapped.
pub(super) fn columns(stream: &str) -> &'static [&'static str] {
    match stream {
        SALES_STREAM => SALE_COLUMNS,
        ADDRESSES => ADDRESS_COLUMNS,
        APPEALS => APPEAL_COLUMNS,
        EXEMPT => EXEMPT_COLUMNS,
        UNIVERSE => UNIVERSE_COLUMNS,
        _ => VALUE_COLUMNS,
    }
}

/// A row of any dataset. A field that a dataset does not have is absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    row_id: Field<'a>,
    #[serde(borrow)]
    pin: Field<'a>,
    #[serde(borrow)]
    year: Field<'a>,
    #[serde(borrow)]
    class: Field<'a>,
    #[serde(borrow)]
    township_code: Field<'a>,
    #[serde(borrow)]
    township_name: Field<'a>,
    #[serde(borrow)]
    nbhd: Field<'a>,
    #[serde(borrow)]
    nbhd_code: Field<'a>,
    #[serde(borrow)]
    mailed_bldg: Field<'a>,
    #[serde(borrow)]
    mailed_tot: Field<'a>,
    #[serde(borrow)]
    certified_bldg: Field<'a>,
    #[serde(borrow)]
    certified_tot: Field<'a>,
    #[serde(borrow)]
    board_bldg: Field<'a>,
    #[serde(borrow)]
    board_tot: Field<'a>,
    #[serde(borrow)]
    tax_code: Field<'a>,
    #[serde(borrow)]
    zip_code: Field<'a>,
    #[serde(borrow)]
    prop_address_full: Field<'a>,
    #[serde(borrow)]
    prop_address_city_name: Field<'a>,
    #[serde(borrow)]
    prop_address_zipcode_1: Field<'a>,
    #[serde(borrow)]
    appeal_type: Field<'a>,
    #[serde(borrow)]
    change: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    sale_date: Field<'a>,
    #[serde(borrow)]
    is_mydec_date: Field<'a>,
    #[serde(borrow)]
    sale_price: Field<'a>,
    #[serde(borrow)]
    doc_no: Field<'a>,
    #[serde(borrow)]
    deed_type: Field<'a>,
    #[serde(borrow)]
    sale_type: Field<'a>,
    #[serde(borrow)]
    is_multisale: Field<'a>,
    #[serde(borrow)]
    num_parcels_sale: Field<'a>,
    #[serde(borrow)]
    sale_filter_same_sale_within_365: Field<'a>,
    #[serde(borrow)]
    sale_filter_less_than_10k: Field<'a>,
    #[serde(borrow)]
    sale_filter_deed_type: Field<'a>,
}

/// A column, and whether a row has a value in it.
type Expected = (&'static str, fn(&Row<'_>) -> bool);

const IDENTITY: [Expected; 2] = [("row_id", |row| row.row_id.is_filled()), ("pin", |row| row.pin.is_filled())];
const OF_VALUES: &[Expected] = &[
    IDENTITY[0],
    IDENTITY[1],
    ("year", |row| row.year.is_filled()),
    ("class", |row| row.class.is_filled()),
    ("nbhd", |row| row.nbhd.is_filled()),
];
const OF_UNIVERSE: &[Expected] = &[IDENTITY[0], IDENTITY[1], ("year", |row| row.year.is_filled()), ("class", |row| row.class.is_filled())];
const OF_ADDRESSES: &[Expected] = &[IDENTITY[0], IDENTITY[1], ("year", |row| row.year.is_filled())];
const OF_EXEMPT: &[Expected] = &[IDENTITY[1], ("year", |row| row.year.is_filled())];
const OF_APPEALS: &[Expected] = &[IDENTITY[0], IDENTITY[1], ("year", |row| row.year.is_filled()), ("status", |row| row.status.is_filled())];
const OF_SALES: &[Expected] =
    &[IDENTITY[0], IDENTITY[1], ("sale_date", |row| row.sale_date.is_filled()), ("sale_price", |row| row.sale_price.is_filled())];

/// How many parcels there are, and how many of them have a value at each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Stages {
    /// All parcels that are assessed.
    #[serde(rename = "n")]
    pub(super) parcels: u64,
    #[serde(rename = "m")]
    mailed: u64,
    #[serde(rename = "c")]
    certified: u64,
    #[serde(rename = "b")]
    board: u64,
}

impl Stages {
    /// Counts of parcels with a value at the stages `mailed`, `certified` and `board`.
    pub(super) fn of(parcels: u64, [mailed, certified, board]: [u64; 3]) -> Self {
        Self { parcels, mailed, certified, board }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.parcels += other.parcels;
        self.mailed += other.mailed;
        self.certified += other.certified;
        self.board += other.board;
    }

    /// The last stage at which at least 99 of 100 parcels have a value.
    pub(super) fn closed(&self) -> Option<&'static str> {
        let stages = [("board", self.board), ("certified", self.certified), ("mailed", self.mailed)];
        stages.into_iter().find(|(_, with)| with * 100 >= self.parcels * 99).map(|(stage, _)| stage)
    }
}

/// What a page of rows says next to its facts.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The values of the columns by which the dataset is paged, of each row.
    pub(super) keys: Vec<Vec<String>>,
    /// Values: the neighbourhood and the year of each parcel that is assessed, and its stages.
    pub(super) counted: Vec<(String, i64, Stages)>,
}

/// Maps the rows of a page. Facts and rejected rows are in the page.
pub(super) fn map(stream: &'static str, body: &str, page: &mut Page) -> Result<Rows, UpstreamError> {
    let expected = match stream {
        SALES_STREAM => OF_SALES,
        ADDRESSES => OF_ADDRESSES,
        APPEALS => OF_APPEALS,
        EXEMPT => OF_EXEMPT,
        UNIVERSE => OF_UNIVERSE,
        _ => OF_VALUES,
    };
    let records = Records::of_array(stream, body)?.storing(StoredFields { requested: columns(stream), personal: &["prop_address_full"] });
    let mut rows = Rows::default();
    let (observations, rejects) = records.map(stream, expected, |row: &Row<'_>| {
        let (identity, number) = identity(stream, row);
        rows.keys.push(identity.iter().map(|field| field.text().to_owned()).collect());
        let refuse = |column: &str, problem: &str| (number.clone(), format!("{column} is {problem}"));
        if number.is_empty() {
            return Err(refuse(if stream == EXEMPT { "pin" } else { "row_id" }, "absent"));
        }
        let pin = cook::published_pin(row.pin.text()).ok_or_else(|| refuse("pin", "absent or does not have 14 digits"))?;
        if stream == SALES_STREAM {
            return sale(stream, row, &number, pin).map_err(|(column, problem)| refuse(column, problem));
        }
        let year = row.year.integer().filter(|year| (1_990..2_200).contains(year)).ok_or_else(|| refuse("year", "absent or not a year"))?;
        let fact = parcel(stream, row, pin, year);
        if fact.kind == parcels::VALUE {
            if fact.township.is_empty() || fact.neighborhood.is_empty() {
                return Err(refuse("nbhd", "absent, or township_code is"));
            }
            // Exempt parcels and railroads have no values at any stage.
            if fact.class.starts_with(|letter: char| letter.is_ascii_digit()) {
                let with = [fact.mailed, fact.certified, fact.board].map(|total| u64::from(total.is_some()));
                rows.counted.push((fact.neighborhood.clone(), year, Stages::of(1, with)));
            }
        }
        // A parcel can have several appeals in a year.
        let key = match stream {
            APPEALS => format!("{stream}/{}", number.replace('/', " ")),
            _ => format!("{stream}/{}{year}", fact.pin),
        };
        Ok(Observation::new(key, FactData::Parcel(Box::new(fact))))
    })?;
    page.observations.extend(observations);
    page.rejects.extend(rejects);
    Ok(rows)
}

/// The columns by which a dataset is paged, and the name of a row in messages. Of the table of exempt parcels no `row_id` is requested, since the publisher's
/// documents do not name one.
fn identity<'r, 'a>(stream: &str, row: &'r Row<'a>) -> (Vec<&'r Field<'a>>, String) {
    match stream {
        EXEMPT => (vec![&row.pin, &row.year], short(&row.pin)),
        _ => (vec![&row.row_id], short(&row.row_id)),
    }
}

fn parcel(stream: &str, row: &Row<'_>, pin: String, year: i64) -> ParcelFact {
    let fact = ParcelFact { stream: stream.to_owned(), pin, year, ..ParcelFact::default() };
    match stream {
        ADDRESSES => ParcelFact {
            kind: parcels::ADDRESS.to_owned(),
            street: street(&[&row.prop_address_full]),
            city: short(&row.prop_address_city_name),
            zip: postal_code(&short(&row.prop_address_zipcode_1), false),
            ..fact
        },
        APPEALS => ParcelFact {
            kind: parcels::APPEAL.to_owned(),
            appeal: short(&row.row_id),
            appeal_type: short(&row.appeal_type),
            result: short(&row.change),
            status: short(&row.status),
            ..fact
        },
        EXEMPT => ParcelFact { kind: parcels::EXEMPT.to_owned(), class: cook::class(row.class.text()), ..fact },
        UNIVERSE => ParcelFact {
            kind: parcels::UNIVERSE.to_owned(),
            class: cook::class(row.class.text()),
            township: code(&row.township_code),
            township_name: short(&row.township_name),
            neighborhood: code(&row.nbhd_code),
            tax_code: short(&row.tax_code),
            zip: postal_code(&short(&row.zip_code), false),
            ..fact
        },
        _ => ParcelFact {
            kind: parcels::VALUE.to_owned(),
            class: cook::class(row.class.text()),
            township: code(&row.township_code),
            township_name: short(&row.township_name),
            neighborhood: code(&row.nbhd),
            mailed: dollars(&row.mailed_tot),
            certified: dollars(&row.certified_tot),
            board: dollars(&row.board_tot),
            mailed_building: dollars(&row.mailed_bldg),
            certified_building: dollars(&row.certified_bldg),
            board_building: dollars(&row.board_bldg),
            ..fact
        },
    }
}

fn sale(stream: &str, row: &Row<'_>, number: &str, pin: String) -> Result<Observation, (&'static str, &'static str)> {
    let date = text::date(row.sale_date.text()).ok_or(("sale_date", "absent or not a day"))?;
    let fact = SaleFact {
        stream: stream.to_owned(),
        kind: sales::SALE.to_owned(),
        sale: number.to_owned(),
        pin,
        township: code(&row.township_code),
        class: cook::class(row.class.text()),
        date: date.to_string(),
        is_date_exact: row.is_mydec_date.flag(),
        price: dollars(&row.sale_price),
        document: short(&row.doc_no),
        deed_type: short(&row.deed_type),
        sale_type: short(&row.sale_type),
        parcels: row.num_parcels_sale.integer(),
        is_multisale: row.is_multisale.flag(),
        is_resale: row.sale_filter_same_sale_within_365.flag(),
        is_low: row.sale_filter_less_than_10k.flag(),
        is_other_deed: row.sale_filter_deed_type.flag(),
        ..SaleFact::default()
    };
    Ok(Observation::new(format!("{stream}/{}", number.replace('/', " ")), FactData::Sale(Box::new(fact))))
}

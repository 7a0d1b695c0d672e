//! The registers: their datasets, the rows that they publish, and the facts that these become.

use std::collections::HashMap;

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::businesses::BusinessFact;
use serde::Deserialize;

use crate::json::{Field, Records};
use crate::socrata::{KeyColumn, Keyset};
use crate::stored_fields::{StoredFields, postal_code};
use crate::{Observation, Page, UpstreamError, text};

/// The longest name, type or street that is stored, in characters.
const TEXT_CHARS_MAX: usize = 200;
/// Texts that mean that there is none.
const NONE_WORDS: &[&str] = &["NULL", "N/A", "NONE", "NOT APPLICABLE"];
/// The addresses of Oregon, the one that is used first.
const OREGON_ADDRESSES: &[&str] = &["PRINCIPAL PLACE OF BUSINESS", "MAILING ADDRESS"];

/// Which rows of a register are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// The rows of a day on or after the first, by this column.
    Since(&'static str),
    /// All.
    Whole,
    /// All, as one file that is downloaded.
    File,
}

/// A register.
pub(super) struct Register {
    pub(super) stream: &'static str,
    pub(super) origin: &'static str,
    pub(super) dataset: &'static str,
    pub(super) scope: Scope,
    /// The columns that are requested: those that are mapped.
    pub(super) columns: &'static [&'static str],
    pub(super) keyset: Keyset,
    /// Whether an entity has a row for each of its names and addresses.
    pub(super) has_rows_of_parts: bool,
    /// The column with the number of the entity.
    pub(super) entity_column: &'static str,
    /// The column with the number in the key of the fact.
    number_column: &'static str,
    name_column: &'static str,
    day_column: &'static str,
    /// The requested columns that can say where a person lives. They are not stored with rejected rows.
    personal: &'static [&'static str],
    expected: &'static [(&'static str, FieldCheck)],
    /// Columns that not every row has. They are counted, so that one that vanishes stops the stream.
    counted: &'static [(&'static str, FieldCheck)],
    read: fn(&Row<'_>) -> RegisterRow,
}

const fn text_column(name: &'static str) -> KeyColumn {
    KeyColumn { name, is_number: false }
}

/// Columns, each with whether a row has a value in the field of that name.
macro_rules! filled {
    ($($column:ident),+) => { &[$((stringify!($column), |row| row.$column.is_filled())),+] };
}

pub(super) static REGISTERS: &[Register] = &[
    Register {
        stream: "sos.co",
        origin: "https://data.colorado.gov",
        dataset: "4ykn-tg5h",
        scope: Scope::Since("entityformdate"),
        columns: &[
            ":id",
            "entityid",
            "entityname",
            "entitytype",
            "entitystatus",
            "jurisdictonofformation",
            "entityformdate",
            "principaladdress1",
            "principalcity",
            "principalstate",
            "principalzipcode",
        ],
        keyset: Keyset { stream: "sos.co", columns: &[text_column("entityformdate"), text_column(":id")] },
        has_rows_of_parts: false,
        entity_column: "entityid",
        number_column: "entityid",
        name_column: "entityname",
        day_column: "entityformdate",
        personal: &["principaladdress1", "principalzipcode"],
        expected: filled![entityid, entityname, entitytype, entityformdate, jurisdictonofformation],
        counted: filled![entitystatus, principaladdress1, principalcity, principalzipcode],
        read: colorado,
    },
    Register {
        stream: "sos.ct",
        origin: "https://data.ct.gov",
        dataset: "n7gp-d28j",
        scope: Scope::Since("date_registration"),
        columns: &[
            ":id",
            "accountnumber",
            "name",
            "status",
            "business_type",
            "date_registration",
            "dissolution_date",
            "billingstreet",
            "billingcity",
            "billingstate",
            "billingpostalcode",
            "naics_code",
            "citizenship",
            "formation_place",
        ],
        keyset: Keyset { stream: "sos.ct", columns: &[text_column("date_registration"), text_column(":id")] },
        has_rows_of_parts: false,
        entity_column: "accountnumber",
        number_column: "accountnumber",
        name_column: "name",
        day_column: "date_registration",
        personal: &["billingstreet", "billingpostalcode"],
        expected: filled![accountnumber, name, business_type, date_registration],
        counted: filled![status, billingstreet, billingcity, billingpostalcode, citizenship],
        read: connecticut,
    },
    Register {
        stream: "sos.ia",
        origin: "https://idh-be.iowa.gov",
        dataset: "554",
        scope: Scope::File,
        columns: &["corp_number", "legal_name", "corporation_type", "effective_date", "ho_address_1", "ho_city", "ho_state", "ho_zip"],
        keyset: Keyset { stream: "sos.ia", columns: &[] },
        has_rows_of_parts: false,
        entity_column: "corp_number",
        number_column: "corp_number",
        name_column: "legal_name",
        day_column: "effective_date",
        personal: &["ho_address_1", "ho_zip"],
        expected: filled![corp_number, legal_name, corporation_type, effective_date],
        counted: filled![ho_address_1, ho_city, ho_zip],
        read: iowa,
    },
    Register {
        stream: "sos.ny",
        origin: "https://data.ny.gov",
        dataset: "k4vb-judh",
        scope: Scope::Since("filing_date"),
        columns: &[":id", "film_num", "dos_id", "filing_type", "filing_date", "entity_type", "corp_name"],
        keyset: Keyset { stream: "sos.ny", columns: &[text_column("filing_date"), text_column(":id")] },
        has_rows_of_parts: false,
        entity_column: "dos_id",
        number_column: "film_num",
        name_column: "corp_name",
        day_column: "filing_date",
        personal: &[],
        expected: filled![film_num, dos_id, filing_type, filing_date, corp_name],
        counted: filled![entity_type],
        read: new_york,
    },
    Register {
        stream: "sos.or",
        origin: "https://data.oregon.gov",
        dataset: "esjy-u4fc",
        scope: Scope::Whole,
        columns: &[
            ":id",
            "registry_number",
            "business_name",
            "entity_type",
            "registry_date",
            "associated_name_type",
            "address_",
            "city",
            "state",
            "zip_code",
        ],
        keyset: Keyset { stream: "sos.or", columns: &[text_column("registry_number"), text_column(":id")] },
        has_rows_of_parts: true,
        entity_column: "registry_number",
        number_column: "registry_number",
        name_column: "business_name",
        day_column: "registry_date",
        personal: &["address_", "zip_code"],
        expected: filled![registry_number, business_name, entity_type, registry_date, associated_name_type],
        counted: filled![address_, city, zip_code],
        read: oregon,
    },
];

/// A row of any register. A field that a register does not have is absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow, rename = ":id")]
    id: Field<'a>,
    #[serde(borrow)]
    entityid: Field<'a>,
    #[serde(borrow)]
    entityname: Field<'a>,
    #[serde(borrow)]
    entitytype: Field<'a>,
    #[serde(borrow)]
    entitystatus: Field<'a>,
    #[serde(borrow)]
    jurisdictonofformation: Field<'a>,
    #[serde(borrow)]
    entityformdate: Field<'a>,
    #[serde(borrow)]
    principaladdress1: Field<'a>,
    #[serde(borrow)]
    principalcity: Field<'a>,
    #[serde(borrow)]
    principalstate: Field<'a>,
    #[serde(borrow)]
    principalzipcode: Field<'a>,
    #[serde(borrow)]
    accountnumber: Field<'a>,
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    business_type: Field<'a>,
    #[serde(borrow)]
    date_registration: Field<'a>,
    #[serde(borrow)]
    dissolution_date: Field<'a>,
    #[serde(borrow)]
    billingstreet: Field<'a>,
    #[serde(borrow)]
    billingcity: Field<'a>,
    #[serde(borrow)]
    billingstate: Field<'a>,
    #[serde(borrow)]
    billingpostalcode: Field<'a>,
    #[serde(borrow)]
    naics_code: Field<'a>,
    #[serde(borrow)]
    citizenship: Field<'a>,
    #[serde(borrow)]
    formation_place: Field<'a>,
    #[serde(borrow)]
    corp_number: Field<'a>,
    #[serde(borrow)]
    legal_name: Field<'a>,
    #[serde(borrow)]
    corporation_type: Field<'a>,
    #[serde(borrow)]
    effective_date: Field<'a>,
    #[serde(borrow)]
    ho_address_1: Field<'a>,
    #[serde(borrow)]
    ho_city: Field<'a>,
    #[serde(borrow)]
    ho_state: Field<'a>,
    #[serde(borrow)]
    ho_zip: Field<'a>,
    #[serde(borrow)]
    film_num: Field<'a>,
    #[serde(borrow)]
    dos_id: Field<'a>,
    #[serde(borrow)]
    filing_type: Field<'a>,
    #[serde(borrow)]
    filing_date: Field<'a>,
    #[serde(borrow)]
    entity_type: Field<'a>,
    #[serde(borrow)]
    corp_name: Field<'a>,
    #[serde(borrow)]
    registry_number: Field<'a>,
    #[serde(borrow)]
    business_name: Field<'a>,
    #[serde(borrow)]
    registry_date: Field<'a>,
    #[serde(borrow)]
    associated_name_type: Field<'a>,
    #[serde(borrow)]
    address_: Field<'a>,
    #[serde(borrow)]
    city: Field<'a>,
    #[serde(borrow)]
    state: Field<'a>,
    #[serde(borrow)]
    zip_code: Field<'a>,
}

type FieldCheck = fn(&Row<'_>) -> bool;

/// What a row says: the fact, the texts of its day and of its number in the key of the fact, and which of an entity's rows it is.
#[derive(Debug, Default)]
struct RegisterRow {
    fact: BusinessFact,
    /// The text of the day.
    day: String,
    /// The number in the key of the fact.
    number: String,
    /// The values of the columns by which the register is paged.
    key: Vec<String>,
    /// Rank of the row among those of its entity: the address of the lowest is used.
    rank: usize,
}

/// A row of a page.
pub(super) struct PageRow {
    pub(super) key: Vec<String>,
    pub(super) day: Option<Date>,
    pub(super) entity: String,
    /// The fact; `None` if the row was rejected.
    pub(super) observation: Option<Observation>,
    rank: usize,
}

impl Register {
    /// Which fields of rejected rows are stored.
    pub(super) fn stored_fields(&self) -> StoredFields {
        StoredFields { requested: self.columns, personal: self.personal }
    }

    /// Maps the rows of a page. Rejected rows are in the page and among the rows returned, without their facts.
    pub(super) fn map(&self, body: &str, page: &mut Page) -> Result<Vec<PageRow>, UpstreamError> {
        let records = Records::of_array(self.stream, body)?.storing(self.stored_fields());
        let mut rows: Vec<PageRow> = Vec::with_capacity(records.len());
        let (_, rejects) = records.map(self.stream, self.expected, |row: &Row<'_>| {
            let read = self.read(row);
            let day = day(&read.day);
            for (column, is_filled) in self.counted {
                page.fields.count([(*column, is_filled(row))]);
            }
            let observation = self.observe(&read, day);
            let RegisterRow { key, rank, fact, .. } = read;
            let rejected = observation.as_ref().err().cloned();
            rows.push(PageRow { key, day, entity: fact.entity, observation: observation.ok(), rank });
            rejected.map_or(Ok(()), Err)
        })?;
        page.rejects.extend(rejects);
        Ok(rows)
    }

    /// What a row says, without what can be the home of a person: the four last digits of a ZIP code, and the street where the type of entity is not known.
    fn read(&self, row: &Row<'_>) -> RegisterRow {
        let mut read = (self.read)(row);
        let is_known = !read.fact.entity_type.is_empty();
        read.fact.zip = postal_code(&read.fact.zip, is_known);
        if !is_known {
            read.fact.street.clear();
        }
        read
    }

    fn observe(&self, read: &RegisterRow, day: Option<Date>) -> Result<Observation, (String, String)> {
        let refuse = |column: &str, problem: &str| Err((text::cut(read.number.clone(), 100), format!("{column} is {problem}")));
        for (column, value) in
            [(self.number_column, &read.number), (self.entity_column, &read.fact.entity), (self.name_column, &read.fact.name)]
        {
            if value.is_empty() {
                return refuse(column, "absent");
            }
        }
        let Some(day) = day else { return refuse(self.day_column, "absent or not a day") };
        let fact = BusinessFact { stream: self.stream.to_owned(), day: day.to_string(), ..read.fact.clone() };
        Ok(Observation::new(self.key(&read.number), FactData::Business(Box::new(fact))))
    }

    /// The key of the fact with a number.
    pub(super) fn key(&self, number: &str) -> String {
        format!("{}/{}", self.stream, number.replace('/', " "))
    }
}

/// One observation of each entity that has several rows, with the address of the row of the lowest rank.
pub(super) fn grouped(rows: Vec<PageRow>) -> Vec<Observation> {
    let mut order: Vec<String> = Vec::new();
    let mut best: HashMap<String, (usize, Observation)> = HashMap::new();
    for row in rows {
        let Some(observation) = row.observation else { continue };
        match best.get_mut(&observation.key) {
            Some(known) if known.0 <= row.rank => {}
            Some(known) => *known = (row.rank, observation),
            None => {
                order.push(observation.key.clone());
                best.insert(observation.key.clone(), (row.rank, observation));
            }
        }
    }
    order.into_iter().filter_map(|key| best.remove(&key)).map(|(_, observation)| observation).collect()
}

fn short(field: &Field<'_>) -> String {
    let text = text::cut(field.clean(), TEXT_CHARS_MAX);
    if NONE_WORDS.iter().any(|none| none.eq_ignore_ascii_case(&text)) { String::new() } else { text }
}

/// The day of a text: `2026-11-18T00:00:00.000` or `11/18/2026`. No time is read and nothing is moved to another zone.
fn day(text: &str) -> Option<Date> {
    let text = text.trim();
    let parts: Vec<&str> = text.get(..10)?.split('/').collect();
    match parts.as_slice() {
        [month, day, year] => Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok(),
        _ => text::date(text),
    }
}

/// The value of a column with days as a condition spells it. A day written as `11/18/2026` would be compared as a text.
fn day_key(text: &str) -> String {
    match day(text) {
        Some(day) if text.contains('/') => format!("{day}T00:00:00.000"),
        _ => text.to_owned(),
    }
}

/// Separates a name from what the register of Colorado adds to it when the entity ends: `ACME LLC, Dissolved January 1, 2020`. Returns the name and the
/// day; of an entity that is only delinquent there is no day.
fn without_ending(name: &str) -> (String, String) {
    for word in ["Dissolved", "Withdrawn", "Delinquent"] {
        let Some((before, after)) = name.rsplit_once(&format!(", {word} ")) else { continue };
        let Some(day) = written_day(after) else { continue };
        let ended = if word == "Delinquent" { String::new() } else { day.to_string() };
        return (before.to_owned(), ended);
    }
    (name.to_owned(), String::new())
}

/// Reads `January 1, 2020`.
fn written_day(text: &str) -> Option<Date> {
    const MONTHS: [&str; 12] =
        ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
    let mut words = text.split_whitespace();
    let (month, day, year) = (words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    Date::new(year.parse().ok()?, i8::try_from(month + 1).ok()?, day.trim_end_matches(',').parse().ok()?).ok()
}

fn colorado(row: &Row<'_>) -> RegisterRow {
    let (name, ended) = without_ending(&short(&row.entityname));
    let jurisdiction = short(&row.jurisdictonofformation);
    let day = row.entityformdate.text().to_owned();
    let number = short(&row.entityid);
    let fact = BusinessFact {
        entity: number.clone(),
        name,
        ended,
        entity_type: short(&row.entitytype),
        status: short(&row.entitystatus),
        is_foreign: !jurisdiction.is_empty() && !["CO", "COLORADO"].contains(&&*jurisdiction.to_ascii_uppercase()),
        jurisdiction,
        street: short(&row.principaladdress1),
        city: short(&row.principalcity),
        state: short(&row.principalstate),
        zip: short(&row.principalzipcode),
        ..BusinessFact::default()
    };
    RegisterRow { fact, key: vec![day_key(&day), row.id.text().to_owned()], day, number, rank: 0 }
}

fn connecticut(row: &Row<'_>) -> RegisterRow {
    let day = row.date_registration.text().to_owned();
    let number = short(&row.accountnumber);
    let fact = BusinessFact {
        entity: number.clone(),
        name: short(&row.name),
        entity_type: short(&row.business_type),
        status: short(&row.status),
        jurisdiction: short(&row.formation_place),
        is_foreign: row.citizenship.text().trim().eq_ignore_ascii_case("foreign"),
        ended: self::day(row.dissolution_date.text()).map(|day| day.to_string()).unwrap_or_default(),
        street: short(&row.billingstreet),
        city: short(&row.billingcity),
        state: short(&row.billingstate),
        zip: short(&row.billingpostalcode),
        naics: short(&row.naics_code),
        ..BusinessFact::default()
    };
    RegisterRow { fact, key: vec![day_key(&day), row.id.text().to_owned()], day, number, rank: 0 }
}

/// The address is that of the office of the entity, not that of its agent.
fn iowa(row: &Row<'_>) -> RegisterRow {
    let day = row.effective_date.text().to_owned();
    let (number, entity_type) = (short(&row.corp_number), short(&row.corporation_type));
    let fact = BusinessFact {
        entity: number.clone(),
        name: short(&row.legal_name),
        is_foreign: entity_type.to_ascii_uppercase().contains("FOREIGN"),
        entity_type,
        street: short(&row.ho_address_1),
        city: short(&row.ho_city),
        state: short(&row.ho_state),
        zip: short(&row.ho_zip),
        ..BusinessFact::default()
    };
    RegisterRow { fact, key: Vec::new(), day, number, rank: 0 }
}

fn new_york(row: &Row<'_>) -> RegisterRow {
    let day = row.filing_date.text().to_owned();
    let (number, entity_type) = (short(&row.film_num), short(&row.entity_type));
    let fact = BusinessFact {
        entity: short(&row.dos_id),
        event: number.clone(),
        name: short(&row.corp_name),
        filing_type: short(&row.filing_type),
        is_foreign: entity_type.to_ascii_uppercase().contains("FOREIGN"),
        entity_type,
        ..BusinessFact::default()
    };
    RegisterRow { fact, key: vec![day_key(&day), row.id.text().to_owned()], day, number, rank: 0 }
}

fn oregon(row: &Row<'_>) -> RegisterRow {
    let day = row.registry_date.text().to_owned();
    let (number, entity_type) = (short(&row.registry_number), short(&row.entity_type));
    let kind = row.associated_name_type.clean().to_ascii_uppercase();
    let rank = OREGON_ADDRESSES.iter().position(|known| *known == kind).unwrap_or(OREGON_ADDRESSES.len());
    let mut fact = BusinessFact {
        entity: number.clone(),
        name: short(&row.business_name),
        is_foreign: entity_type.to_ascii_uppercase().contains("FOREIGN"),
        entity_type,
        ..BusinessFact::default()
    };
    // The other rows have the addresses of agents and persons.
    if rank < OREGON_ADDRESSES.len() {
        (fact.city, fact.state, fact.zip) = (short(&row.city), short(&row.state), short(&row.zip_code));
        // A name under which a person does business has the address of the person.
        if !fact.entity_type.to_ascii_uppercase().contains("NAME") {
            fact.street = short(&row.address_);
        }
    }
    RegisterRow { fact, key: vec![number.clone(), row.id.text().to_owned()], day, number, rank }
}

#[cfg(test)]
mod tests;

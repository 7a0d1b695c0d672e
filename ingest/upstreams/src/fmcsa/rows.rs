//! The rows of the datasets, and the facts that they become.

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::carriers::{CarrierFact, kind};
use serde::Deserialize;
use texts::numbers::has_only_digits;

use super::Dataset;
use crate::drift;
use crate::field_counts::FieldCounts;
use crate::json::{Field, Records};
use crate::stored_fields::{StoredFields, postal_code};
use crate::{Observation, Page, UpstreamError, text};

/// The longest name or type that is stored, in characters.
const TEXT_CHARS_MAX: usize = 200;
/// The most digits of a USDOT number.
const DOT_DIGITS_MAX: usize = 8;
/// The kinds of cargo that rules read.
const CARGO: &[&str] = &["crgo_household", "crgo_passengers"];
/// What the census calls a carrier that is a person.
const PERSONS: &[&str] = &["INDIVIDUAL", "SOLE PROPRIETOR"];
/// The requested fields that can say where a person lives. They are not stored with rejected rows, of which it is not known whether they are about a person.
const PERSONAL: &[&str] = &["phy_street", "phy_zip"];

/// The fields of a dataset that are requested: those that are mapped.
pub(super) fn columns(dataset: Dataset) -> &'static [&'static str] {
    match dataset {
        Dataset::Census => &[
            "dot_number",
            "legal_name",
            "dba_name",
            "business_org_desc",
            "phy_street",
            "phy_city",
            "phy_state",
            "phy_zip",
            "phy_country",
            "status_code",
            "add_date",
            "carrier_operation",
            "classdef",
            "hm_ind",
            "power_units",
            "truck_units",
            "bus_units",
            "total_drivers",
            "crgo_household",
            "crgo_passengers",
            "docket1prefix",
            "docket1",
            "prior_revoke_flag",
            "prior_revoke_dot_number",
        ],
        Dataset::Authority => &[":id", "usdot_number", "docket_number", "op_auth_type", "op_auth_status", "reason", "status_change_date"],
        Dataset::Cancellations => &[
            ":id",
            "usdot_number",
            "docket_number",
            "ins_form_code",
            "policy_no",
            "effective_date",
            "cancl_effective_date",
            "filing_status_reason",
        ],
        Dataset::Filings => &["usdot_number", "docket_number", "ins_form_code", "policy_no", "effective_date"],
        Dataset::OnFile => {
            &["usdot_number", "docket_number", "op_auth_type", "op_auth_status", "min_cov_amount", "bipd_file", "cargo_file", "bond_file"]
        }
    }
}

/// A row of any dataset. A field that a dataset does not have is absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow, rename = ":id")]
    id: Field<'a>,
    #[serde(borrow)]
    dot_number: Field<'a>,
    #[serde(borrow)]
    usdot_number: Field<'a>,
    #[serde(borrow)]
    legal_name: Field<'a>,
    #[serde(borrow)]
    dba_name: Field<'a>,
    #[serde(borrow)]
    business_org_desc: Field<'a>,
    #[serde(borrow)]
    phy_street: Field<'a>,
    #[serde(borrow)]
    phy_city: Field<'a>,
    #[serde(borrow)]
    phy_state: Field<'a>,
    #[serde(borrow)]
    phy_zip: Field<'a>,
    #[serde(borrow)]
    phy_country: Field<'a>,
    #[serde(borrow)]
    status_code: Field<'a>,
    #[serde(borrow)]
    add_date: Field<'a>,
    #[serde(borrow)]
    carrier_operation: Field<'a>,
    #[serde(borrow)]
    classdef: Field<'a>,
    #[serde(borrow)]
    hm_ind: Field<'a>,
    #[serde(borrow)]
    power_units: Field<'a>,
    #[serde(borrow)]
    truck_units: Field<'a>,
    #[serde(borrow)]
    bus_units: Field<'a>,
    #[serde(borrow)]
    total_drivers: Field<'a>,
    #[serde(borrow)]
    crgo_household: Field<'a>,
    #[serde(borrow)]
    crgo_passengers: Field<'a>,
    #[serde(borrow)]
    docket1prefix: Field<'a>,
    #[serde(borrow)]
    docket1: Field<'a>,
    #[serde(borrow)]
    prior_revoke_flag: Field<'a>,
    #[serde(borrow)]
    prior_revoke_dot_number: Field<'a>,
    #[serde(borrow)]
    docket_number: Field<'a>,
    #[serde(borrow)]
    op_auth_type: Field<'a>,
    #[serde(borrow)]
    op_auth_status: Field<'a>,
    #[serde(borrow)]
    reason: Field<'a>,
    #[serde(borrow)]
    status_change_date: Field<'a>,
    #[serde(borrow)]
    ins_form_code: Field<'a>,
    #[serde(borrow)]
    policy_no: Field<'a>,
    #[serde(borrow)]
    effective_date: Field<'a>,
    #[serde(borrow)]
    cancl_effective_date: Field<'a>,
    #[serde(borrow)]
    filing_status_reason: Field<'a>,
    #[serde(borrow)]
    min_cov_amount: Field<'a>,
    #[serde(borrow)]
    bipd_file: Field<'a>,
    #[serde(borrow)]
    cargo_file: Field<'a>,
    #[serde(borrow)]
    bond_file: Field<'a>,
}

type FieldCheck = fn(&Row<'_>) -> bool;

/// The fields without which a dataset has another form than this program knows.
fn expected(dataset: Dataset) -> &'static [(&'static str, FieldCheck)] {
    match dataset {
        Dataset::Census => &[
            ("dot_number", |row| row.dot_number.is_filled()),
            ("add_date", |row| row.add_date.is_filled()),
            ("legal_name", |row| row.legal_name.is_filled()),
            ("carrier_operation", |row| row.carrier_operation.is_filled()),
            ("classdef", |row| row.classdef.is_filled()),
            ("phy_state", |row| row.phy_state.is_filled()),
        ],
        Dataset::Authority => &[
            ("usdot_number", |row| row.usdot_number.is_filled()),
            ("op_auth_type", |row| row.op_auth_type.is_filled()),
            ("op_auth_status", |row| row.op_auth_status.is_filled()),
            ("status_change_date", |row| row.status_change_date.is_filled()),
        ],
        Dataset::Cancellations => &[
            ("usdot_number", |row| row.usdot_number.is_filled()),
            ("ins_form_code", |row| row.ins_form_code.is_filled()),
            ("cancl_effective_date", |row| row.cancl_effective_date.is_filled()),
        ],
        Dataset::Filings => &[
            ("usdot_number", |row| row.usdot_number.is_filled()),
            ("ins_form_code", |row| row.ins_form_code.is_filled()),
            ("effective_date", |row| row.effective_date.is_filled()),
        ],
        // The amount is judged over the rows that should have it.
        Dataset::OnFile => &[("usdot_number", |row| row.usdot_number.is_filled())],
    }
}

/// Whether a row is about an authority of which a bond is required and no liability insurance: its amount can be absent.
fn needs_a_bond_only(row: &Row<'_>) -> bool {
    let kind = row.op_auth_type.text().to_ascii_uppercase();
    ["BROKER", "FORWARDER"].iter().any(|word| kind.contains(word))
}

/// A row of a page, as paging and look-ups need it.
pub(super) struct RowPosition {
    /// The values of the columns by which the list is paged.
    pub(super) key: Vec<String>,
    /// The day by which the list is read.
    pub(super) day: Option<Date>,
    /// The carrier; empty if it cannot be read.
    pub(super) dot: String,
}

/// Maps the rows of a dataset into a page. `is_list` says whether they are those of the stream itself, not of a look-up. Returns the place of each row,
/// of rejected rows, too.
pub(super) fn map(
    stream: &'static str,
    dataset: Dataset,
    body: &str,
    page: &mut Page,
    is_list: bool,
) -> Result<Vec<RowPosition>, UpstreamError> {
    let records = Records::of_array(stream, body)?.storing(StoredFields { requested: columns(dataset), personal: PERSONAL });
    let mut places = Vec::with_capacity(records.len());
    let (mut without_amount, mut insured) = (0, 0);
    let (observations, rejects) = records.map(stream, expected(dataset), |row: &Row<'_>| {
        places.push(place(dataset, row));
        if dataset == Dataset::OnFile && !needs_a_bond_only(row) {
            insured += 1;
            without_amount += usize::from(!row.bipd_file.is_filled());
        }
        if is_list {
            row.count(dataset, &mut page.fields);
        }
        observe(stream, dataset, row, is_list)
    })?;
    drift::share(stream, "bipd_file", without_amount, insured)?;
    page.observations.extend(observations);
    page.rejects.extend(rejects);
    Ok(places)
}

fn place(dataset: Dataset, row: &Row<'_>) -> RowPosition {
    let (day, last, number) = match dataset {
        Dataset::Census => (&row.add_date, &row.dot_number, &row.dot_number),
        Dataset::Authority => (&row.status_change_date, &row.id, &row.usdot_number),
        _ => (&row.cancl_effective_date, &row.id, &row.usdot_number),
    };
    RowPosition {
        key: vec![day.text().to_owned(), last.text().to_owned()],
        day: self::day(day.text()),
        dot: dot(number.text()).unwrap_or_default(),
    }
}

/// A USDOT number without leading zeros; `None` for a text that is none.
pub(super) fn dot(text: &str) -> Option<String> {
    let number = text.trim().trim_start_matches('0');
    let is_number = number.len() <= DOT_DIGITS_MAX && has_only_digits(number);
    is_number.then(|| number.to_owned())
}

/// A day at the beginning of a text: `20250429`, also with a time after it.
fn day(text: &str) -> Option<Date> {
    text::date(text.split_whitespace().next()?)
}

/// A docket number in one form: `MC-424836` is `MC424836`; `0` and a prefix without a number are none.
fn docket(text: &str) -> String {
    let docket: String = text.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
    if docket.bytes().any(|byte| matches!(byte, b'1'..=b'9')) { docket.to_ascii_uppercase() } else { String::new() }
}

/// An amount of `inys-ebih`, which is in dollars, as a whole number. `0` is an amount; a text that is none is unknown.
fn dollars(text: &str) -> String {
    let whole = text.trim().split('.').next().unwrap_or_default();
    let is_number = whole.len() <= 12 && has_only_digits(whole);
    let digits = whole.trim_start_matches('0');
    if !is_number {
        String::new()
    } else if digits.is_empty() {
        "0".to_owned()
    } else {
        digits.to_owned()
    }
}

fn short(field: &Field<'_>) -> String {
    text::cut(field.clean(), TEXT_CHARS_MAX)
}

/// A part of a key: without slashes, which separate parts.
fn part(text: &str) -> String {
    text.replace('/', " ")
}

fn observe(stream: &'static str, dataset: Dataset, row: &Row<'_>, is_list: bool) -> Result<Observation, (String, String)> {
    let number = if dataset == Dataset::Census { &row.dot_number } else { &row.usdot_number };
    let name = if dataset == Dataset::Census { "dot_number" } else { "usdot_number" };
    let raw = text::cut(number.clean(), 100);
    let Some(dot) = dot(number.text()) else { return Err((raw, format!("{name} is absent or not a USDOT number"))) };
    let day_of = |field: &Field<'_>, name: &str| match day(field.text()) {
        Some(day) => Ok(day.to_string()),
        None => Err((raw.clone(), format!("{name} is absent or not a day"))),
    };
    let base =
        CarrierFact { stream: stream.to_owned(), dot: dot.clone(), docket: docket(row.docket_number.text()), ..CarrierFact::default() };
    let (key, fact) = match dataset {
        Dataset::Census => {
            let added = day_of(&row.add_date, "add_date")?;
            let legal_name = short(&row.legal_name);
            if legal_name.is_empty() {
                return Err((raw, "legal_name is absent".to_owned()));
            }
            // A blank state would be a carrier abroad, whose leads are withdrawn.
            let country = row.phy_country.clean();
            if !row.phy_state.is_filled() && (country.is_empty() || country.eq_ignore_ascii_case("US")) {
                return Err((raw, "phy_state is absent".to_owned()));
            }
            let key = if is_list { dot } else { format!("{}/{dot}", kind::CARRIER) };
            (key, carrier(row, CarrierFact { kind: kind::CARRIER.to_owned(), added, legal_name, ..base }))
        }
        Dataset::Authority => {
            let changed = day_of(&row.status_change_date, "status_change_date")?;
            let authority_type = short(&row.op_auth_type);
            if authority_type.is_empty() {
                return Err((raw, "op_auth_type is absent".to_owned()));
            }
            if !row.op_auth_status.is_filled() {
                return Err((raw, "op_auth_status is absent".to_owned()));
            }
            let holder = if base.docket.is_empty() { dot } else { base.docket.clone() };
            let key = format!("{holder}|{}", part(&authority_type));
            let (authority_status, reason) = (short(&row.op_auth_status), short(&row.reason));
            (key, CarrierFact { kind: kind::AUTHORITY.to_owned(), authority_type, authority_status, reason, changed, ..base })
        }
        Dataset::Cancellations | Dataset::Filings if !row.ins_form_code.is_filled() => {
            return Err((raw, "ins_form_code is absent".to_owned()));
        }
        Dataset::Cancellations => {
            let (form, policy) = (short(&row.ins_form_code), short(&row.policy_no));
            let cancelled = day_of(&row.cancl_effective_date, "cancl_effective_date")?;
            let effective = day(row.effective_date.text()).map(|day| day.to_string()).unwrap_or_default();
            let key = format!("{dot}|{}|{}|{cancelled}", part(&form), policy_key(&policy));
            let reason = short(&row.filing_status_reason);
            (key, CarrierFact { kind: kind::CANCELLATION.to_owned(), form, policy, effective, cancelled, reason, ..base })
        }
        Dataset::Filings => {
            let (form, policy) = (short(&row.ins_form_code), short(&row.policy_no));
            let effective = day_of(&row.effective_date, "effective_date")?;
            let key = format!("{}/{dot}|{}|{}|{effective}", kind::FILING, part(&form), policy_key(&policy));
            (key, CarrierFact { kind: kind::FILING.to_owned(), form, policy, effective, ..base })
        }
        Dataset::OnFile if ![&row.bipd_file, &row.cargo_file, &row.bond_file].into_iter().any(Field::is_filled) => {
            return Err((raw, "bipd_file, cargo_file and bond_file are absent".to_owned()));
        }
        Dataset::OnFile => {
            let authority_type = short(&row.op_auth_type);
            let key = format!("{}/{dot}|{}|{}", kind::ON_FILE, base.docket, part(&authority_type));
            let fact = CarrierFact {
                kind: kind::ON_FILE.to_owned(),
                authority_type,
                authority_status: short(&row.op_auth_status),
                bipd_required: dollars(row.min_cov_amount.text()),
                bipd_on_file: dollars(row.bipd_file.text()),
                cargo_on_file: letter(&row.cargo_file),
                bond_on_file: letter(&row.bond_file),
                ..base
            };
            (key, fact)
        }
    };
    Ok(Observation::new(format!("{stream}/{key}"), FactData::Carrier(Box::new(fact))))
}

/// The letters and digits of a policy number, in capitals.
fn policy_key(policy: &str) -> String {
    policy.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase()
}

/// `Y` or `N`; empty for anything else.
fn letter(field: &Field<'_>) -> String {
    let letter = field.clean().to_ascii_uppercase();
    if letter == "Y" || letter == "N" { letter } else { String::new() }
}

fn carrier(row: &Row<'_>, base: CarrierFact) -> CarrierFact {
    let kind_of_business = row.business_org_desc.clean().to_ascii_uppercase();
    let is_person = PERSONS.iter().any(|person| kind_of_business.contains(person));
    // Without its kind, a carrier can be a person.
    let is_company = !kind_of_business.is_empty() && !is_person;
    let is_marked = |name: &&&str| match **name {
        "crgo_household" => row.crgo_household.text().trim().eq_ignore_ascii_case("X"),
        _ => row.crgo_passengers.text().trim().eq_ignore_ascii_case("X"),
    };
    let prior = dot(row.prior_revoke_dot_number.text()).unwrap_or_default();
    CarrierFact {
        docket: docket(&format!("{}{}", row.docket1prefix.text().trim(), row.docket1.text().trim())),
        dba_name: short(&row.dba_name),
        is_person,
        street: if is_company { short(&row.phy_street) } else { String::new() },
        city: short(&row.phy_city),
        state: short(&row.phy_state).to_ascii_uppercase(),
        zip: postal_code(&short(&row.phy_zip), is_company),
        country: short(&row.phy_country),
        status: short(&row.status_code),
        carrier_operation: short(&row.carrier_operation),
        classdef: short(&row.classdef),
        hm_ind: short(&row.hm_ind),
        power_units: short(&row.power_units),
        truck_units: short(&row.truck_units),
        bus_units: short(&row.bus_units),
        total_drivers: short(&row.total_drivers),
        cargo: CARGO.iter().filter(is_marked).map(|name| (*name).to_owned()).collect(),
        prior_revoked: row.prior_revoke_flag.flag(),
        prior_dot: prior,
        ..base
    }
}

impl Row<'_> {
    /// Counts the mapped fields of a list, so that a field that vanishes stops the stream.
    fn count(&self, dataset: Dataset, fields: &mut FieldCounts) {
        match dataset {
            Dataset::Census => fields.count([
                ("phy_street", self.phy_street.is_filled()),
                ("phy_city", self.phy_city.is_filled()),
                ("phy_zip", self.phy_zip.is_filled()),
                ("status_code", self.status_code.is_filled()),
                ("hm_ind", self.hm_ind.is_filled()),
                ("truck_units", self.truck_units.is_filled()),
            ]),
            Dataset::Authority => fields.count([("docket_number", self.docket_number.is_filled()), ("reason", self.reason.is_filled())]),
            _ => fields.count([("policy_no", self.policy_no.is_filled()), ("docket_number", self.docket_number.is_filled())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a number of a carrier has one form however it is padded, and what is none.
    #[test]
    fn numbers_of_carriers() {
        for (text, expected) in [
            ("00344554", Some("344554")),
            (" 4312345 ", Some("4312345")),
            ("0", None),
            ("", None),
            ("MC123", None),
            ("123456789", None),
            ("12 34", None),
        ] {
            assert_eq!(dot(text).as_deref(), expected, "{text}");
        }
    }

    /// Proves that a street is stored only of a carrier that the census calls something else than a person, and that no ZIP code names a block.
    #[test]
    fn streets_of_companies_only() {
        let read = |kind: &str, zip: &str| {
            let text = |text: &str| Field::Text(text.to_owned().into());
            let row = Row { business_org_desc: text(kind), phy_street: text("9 HOME LN"), phy_zip: text(zip), ..Row::default() };
            let CarrierFact { is_person, street, zip, .. } = carrier(&row, CarrierFact::default());
            (is_person, !street.is_empty(), zip)
        };
        assert_eq!(read("Limited Liability Company", "802031234"), (false, true, "80203".to_owned()));
        assert_eq!(read("Corporation", "K1A 0B1"), (false, true, "K1A 0B1".to_owned()));
        assert_eq!(read("Individual (Sole Proprietor)", "80203-1234"), (true, false, "80203".to_owned()));
        assert_eq!(read("INDIVIDUAL", "K1A 0B1"), (true, false, String::new()));
        for blank in ["", "  "] {
            assert_eq!(read(blank, "80203-1234"), (false, false, "80203".to_owned()));
        }
    }

    /// Proves that the amount of liability insurance is missed when more than half of the rows that should have it lack it, however many brokers there are, and
    /// that few such rows are not judged.
    #[test]
    fn an_amount_that_vanished_stops() {
        let read = |brokers: usize, with: usize, without: usize| {
            let row = |kind: &str, amount: Option<&str>| {
                let (number, docket) = ("344554", "MC421775");
                serde_json::json!({
                    "usdot_number": number, "docket_number": docket, "op_auth_type": kind, "bipd_file": amount, "bond_file": "Y",
                })
            };
            let rows = [vec![row("BROKER", None); brokers], vec![row("COMMON", Some("750000")); with], vec![row("COMMON", None); without]];
            let body = serde_json::Value::from(rows.concat()).to_string();
            let found = map("fmcsa.test", Dataset::OnFile, &body, &mut Page::default(), false);
            found.map(|places| places.len()).map_err(|error| matches!(error, UpstreamError::Stop { field, .. } if field == "bipd_file"))
        };
        assert_eq!(read(100, 0, 20), Err(true));
        assert_eq!([read(100, 10, 10), read(100, 0, 19), read(100, 20, 0)], [Ok(120), Ok(119), Ok(120)]);
    }

    /// Proves that dockets, amounts and days are read in each spelling, and that zero dollars are an amount.
    #[test]
    fn dockets_amounts_and_days() {
        assert_eq!(["MC421775", "MC-424836", "mc 1", "0", "", "MC"].map(docket), ["MC421775", "MC424836", "MC1", "", "", ""]);
        assert_eq!(["00000", "750000", "750000.00", "", "n/a", "-5"].map(dollars), ["0", "750000", "750000", "", "", ""]);
        assert_eq!(day("20250429 0000"), Some(Date::constant(2025, 4, 29)));
        assert_eq!((day("20251399"), day("")), (None, None));
    }
}

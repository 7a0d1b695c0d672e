//! The tables of assessments and of sales: commercial parcels of one use in one ward, sold around a ratio, homes with a floor area, and homes with exemptions.

use serde_json::{Value, json};
use simulated_world::world::World;

/// How many days have passed since the first one.
pub(super) fn day(world: &World) -> i32 {
    (world.today - world.first_today).get_days()
}

/// The sold commercial parcels around the median.
const PEERS: i64 = 40;
/// The ratios of further commercial parcels, in thousandths of the median of the others.
const SPECIAL: [i64; 6] = [1_400, 1_260, 1_150, 1_070, 700, 700];

/// The homes with a floor area that were sold. Without the lowest and the highest of their values a square foot, the median is 50 dollars.
const SOLD_HOMES: i64 = 34;
/// The values of homes of 1,500 square feet that were not sold, in dollars a square foot. The last one has a second building.
const UNSOLD_HOMES: [i64; 5] = [70, 58, 53, 50, 70];

/// The text of an amount in one of its forms: a number with a point, or a text.
fn amount(number: i64, value: i64) -> Value {
    if number % 3 == 0 { json!(value.to_string()) } else { json!(value as f64) }
}

fn assessment(pin: &str, year: i16, (use_code, label, class): (&str, &str, &str), value: Value) -> Value {
    json!({
        "PARID": pin, "PROPERTYHOUSENUM": "3343", "PROPERTYFRACTION": " ", "PROPERTYADDRESS": "FORBES AVE  ", "PROPERTYCITY": "PITTSBURGH",
        "PROPERTYSTATE": "PA", "PROPERTYUNIT": " ", "PROPERTYZIP": "15213", "MUNICODE": "104", "MUNIDESC": "4th Ward - PITTSBURGH",
        "SCHOOLCODE": "47", "NEIGHCODE": "51C34", "TAXCODE": "T", "OWNERDESC": "REGULAR", "CLASSDESC": class, "USECODE": use_code,
        "USEDESC": label, "HOMESTEADFLAG": null, "SALEDATE": "03-14-2012", "CHANGENOTICEADDRESS1": "3343  FORBES AVE   ",
        "CHANGENOTICEADDRESS2": " ", "CHANGENOTICEADDRESS3": "PITTSBURGH PA  ", "CHANGENOTICEADDRESS4": "15213", "FAIRMARKETTOTAL": value,
        "FINISHEDLIVINGAREA": null, "TAXYEAR": f64::from(year), "ASOFDATE": format!("{year}-11-01"),
    })
}

fn with(mut row: Value, changes: &[(&str, Value)]) -> Value {
    for (name, value) in changes {
        row[*name] = value.clone();
    }
    row
}

const RETAIL: (&str, &str, &str) = ("411", "RETL/STOR OVER", "COMMERCIAL");
const HOME: (&str, &str, &str) = ("010", "SINGLE FAMILY", "RESIDENTIAL");

fn commercial_pin(number: i64) -> String {
    format!("0028F{:05}000000", 100 + number)
}

/// The price of a commercial parcel in dollars, and the ratio of its value to it in thousandths.
fn sold(number: i64) -> (i64, i64) {
    let special = usize::try_from(number - PEERS).ok().and_then(|at| SPECIAL.get(at).copied());
    (300_000 + 5_000 * number, 600 * special.unwrap_or(980 + 4 * (number % 11)) / 1_000)
}

fn home_pin(number: i64) -> String {
    format!("0030B{:05}000000", 100 + number)
}

/// The floor area of a home that was sold, in square feet, and its value in dollars.
fn sold_home(number: i64) -> (i64, i64) {
    let area = 1_000 + 20 * number;
    (area, area * (48 + number % 5))
}

/// Homes with a floor area: sold ones, and others. A further card has the area of another building.
fn measured_homes(year: i16) -> Vec<Value> {
    let home = |number: i64, (area, value): (i64, i64)| {
        let row = assessment(&home_pin(number), year, HOME, amount(number, value));
        with(row, &[("FINISHEDLIVINGAREA", amount(number + 1, area))])
    };
    let sold = (0..SOLD_HOMES).map(|number| home(number, sold_home(number)));
    let others = (SOLD_HOMES..).zip(UNSOLD_HOMES).map(|(number, dollars)| home(number, (1_500, 1_500 * dollars)));
    let mut rows: Vec<Value> = sold.chain(others).collect();
    let last = rows.last().cloned();
    rows.extend(last.map(|row| with(row, &[("FINISHEDLIVINGAREA", json!(400.0))])));
    rows
}

fn parcels() -> i64 {
    PEERS + SPECIAL.len() as i64
}

/// The rows of assessments of the day. On a later day a parcel is reassessed, and an owner becomes a company.
pub(super) fn assessments(world: &World) -> Vec<Value> {
    let (year, is_later) = (world.first_today.year(), day(world) > 0);
    let mut rows = Vec::new();
    for number in 0..parcels() {
        let (price, ratio) = sold(number);
        let ratio = if is_later && number == 3 { 2 * ratio } else { ratio };
        let owner = if number % 2 == 0 { "CORPORATION" } else { "REGULAR" };
        let row = assessment(&commercial_pin(number), year, RETAIL, amount(number, price * ratio / 1_000));
        rows.push(with(row, &[("OWNERDESC", json!(owner)), ("PROPERTYHOUSENUM", json!(if number == 5 { "0" } else { "3343" }))]));
    }
    // A second card of a parcel, and one that is exempt and no institution.
    rows.push(with(rows[0].clone(), &[("FAIRMARKETTOTAL", json!(1.0))]));
    rows.push(with(
        assessment("0028F00194000000", year, ("670", "OWNED BY COLLEGE/UNIV/ACADEMY", "GOVERNMENT"), json!(3_819_300.0)),
        &[("TAXCODE", json!("E"))],
    ));
    rows.push(with(assessment("0028F00195000007", year, RETAIL, json!(90_000.0)), &[("TAXCODE", json!("E"))]));
    rows.extend(homes(year, is_later));
    rows.extend(measured_homes(year));
    rows
}

/// Homes with a homestead exclusion: an ordinary one, and one for each rule of exemptions.
fn homes(year: i16, is_later: bool) -> Vec<Value> {
    let home = |number: i64, changes: &[(&str, Value)]| {
        let street = json!(format!("{number}  ATWOOD ST   "));
        let row = assessment(&format!("0029A{number:05}000000"), year, HOME, json!(85_000.0 + number as f64));
        with(with(row, &[("HOMESTEADFLAG", json!("HOM")), ("CHANGENOTICEADDRESS1", street)]), changes)
    };
    let shared = [("CHANGENOTICEADDRESS1", json!("77 BATES ST"))];
    // Of last year, because a later day of this year can be after today.
    let last_sale = json!(format!("12-15-{}", year - 1));
    vec![
        home(1, &[]),
        home(2, &[("CHANGENOTICEADDRESS3", json!("BOCA RATON FL  ")), ("CHANGENOTICEADDRESS4", json!("33431"))]),
        home(3, &shared),
        home(4, &shared),
        home(5, &[("OWNERDESC", json!("CORPORATION"))]),
        home(6, &[("USECODE", json!("100")), ("USEDESC", json!("VACANT LAND"))]),
        home(7, &[("USECODE", json!("402")), ("USEDESC", json!("APART: 5-19 UNITS")), ("CLASSDESC", json!("COMMERCIAL"))]),
        home(8, &[("OWNERDESC", json!(if is_later { "CORPORATION" } else { "REGULAR" })), ("SALEDATE", last_sale)]),
    ]
}

/// The rows of sales.
pub(super) fn sales(world: &World) -> Vec<Value> {
    let year = world.first_today.year();
    let sale = |pin: &str, date: String, price: Value, kind: &str, page: i64| {
        json!({
            "PARID": pin, "MUNICODE": "104", "RECORDDATE": date, "SALEDATE": date, "PRICE": price, "DEEDBOOK": "19001", "DEEDPAGE": page.to_string(),
            "SALECODE": "0", "SALEDESC": kind, "INSTRTYP": "DE", "INSTRTYPDESC": "DEED",
        })
    };
    let mut rows = Vec::new();
    for number in 0..parcels() {
        let (pin, (price, _)) = (commercial_pin(number), sold(number));
        rows.push(sale(&pin, format!("03-{:02}-{}", 1 + number % 28, year - 1), amount(number, price), "VALID SALE", number));
        // Sales that are none on the market, and one that is too old.
        match number {
            0 => rows.push(sale(&pin, format!("01-10-{year}"), json!(9_000_000.0), "MULTI-PARCEL SA", 900)),
            1 => rows.push(sale(&pin, format!("01-10-{year}"), json!(1.0), "LOVE AND AFFECTION SALE", 901)),
            2 => rows.push(sale(&pin, format!("01-10-{year}"), json!(0.0), "VALID SALE", 902)),
            4 => rows.push(sale(&pin, "07-02-1986".to_owned(), json!(40_000.0), "VALID SALE", 903)),
            _ => {}
        }
    }
    for number in 0..SOLD_HOMES {
        let (_, value) = sold_home(number);
        let date = format!("04-{:02}-{}", 1 + number % 28, year - 1);
        rows.push(sale(&home_pin(number), date, amount(number, 2 * value), "VALID SALE", 500 + number));
    }
    rows
}

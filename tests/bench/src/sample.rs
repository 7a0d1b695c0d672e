//! Names and places for generated records that resemble those of public registers: the same in every run, since each is drawn from its number.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use texts::values::US_STATES;

use crate::Failure;
use crate::names::coined;

/// States in which most businesses are, the larger ones several times.
const LARGE_STATES: [&str; 20] =
    ["TX", "TX", "TX", "CA", "CA", "CA", "FL", "FL", "NY", "NY", "IL", "GA", "OH", "PA", "NC", "NJ", "MI", "AZ", "WA", "CO"];
const TRADES: [&str; 24] = [
    "TRUCKING",
    "TRANSPORT",
    "LOGISTICS",
    "FREIGHT",
    "CONSTRUCTION",
    "ROOFING",
    "PLUMBING",
    "HOLDINGS",
    "VENTURES",
    "CONSULTING",
    "SERVICES",
    "SOLUTIONS",
    "BREWERY",
    "RESTAURANT",
    "REALTY",
    "PROPERTIES",
    "MEDICAL",
    "DENTAL",
    "ELECTRIC",
    "LANDSCAPING",
    "CLEANING",
    "DESIGN",
    "TECHNOLOGIES",
    "IMPORTS",
];
const FORMS: [&str; 8] = ["LLC", "LLC", "LLC", "L.L.C.", "INC", "INC.", "CORP", "CO"];
const STREETS: [&str; 12] = [
    "MAIN ST",
    "OAK AVE",
    "COMMERCE DR",
    "INDUSTRIAL BLVD",
    "E 3RD ST",
    "MAPLE LN",
    "COUNTY RD 12",
    "PARK AVE",
    "W 5TH AVE",
    "LAKE ST",
    "MILL RD",
    "ELM CT",
];
const CITIES: [&str; 12] = [
    "RIVERTON",
    "FAIRVIEW",
    "MIDWAY",
    "OAK GROVE",
    "PLEASANT HILL",
    "FRANKLIN",
    "CENTERVILLE",
    "GREENVILLE",
    "SALEM",
    "CLINTON",
    "SPRINGFIELD",
    "GEORGETOWN",
];
const FIRST_NAMES: [&str; 16] = [
    "MARY", "JAMES", "LINDA", "ROBERT", "MARIA", "JOHN", "SUSAN", "DAVID", "KAREN", "JOSE", "NANCY", "DANIEL", "LISA", "MARK", "ANNA",
    "PAUL",
];

/// The random numbers of a record. `kind` sets those of different records with the same number apart.
pub(crate) fn random(kind: u64, n: u64) -> StdRng {
    StdRng::seed_from_u64(kind << 40 | n)
}

/// One of some texts.
pub(crate) fn one_of(random: &mut StdRng, texts: &[&'static str]) -> &'static str {
    texts.get(random.random_range(0..texts.len().max(1))).copied().unwrap_or_default()
}

/// A business and its address.
#[derive(Clone)]
pub(crate) struct Business {
    pub(crate) name: String,
    pub(crate) street: String,
    pub(crate) city: String,
    pub(crate) state: String,
    pub(crate) zip: String,
}

/// Draws a business: one or two coined words, a trade and a legal form.
pub(crate) fn business(random: &mut StdRng) -> Business {
    let mut words = vec![coined(random)];
    if random.random_bool(0.4) {
        words.push(coined(random));
    }
    let name = format!("{} {} {}", words.join(" "), one_of(random, &TRADES), one_of(random, &FORMS));
    Business {
        name,
        street: format!("{} {}", random.random_range(1..9_999), one_of(random, &STREETS)),
        city: one_of(random, &CITIES).to_owned(),
        state: state(random).to_owned(),
        zip: format!("{:05}", random.random_range(1_000..99_999)),
    }
}

/// Draws a state: seven of ten are large ones.
pub(crate) fn state(random: &mut StdRng) -> &'static str {
    if random.random_bool(0.7) { one_of(random, &LARGE_STATES) } else { one_of(random, &US_STATES) }
}

/// Draws the first and the last name of a person.
pub(crate) fn person(random: &mut StdRng) -> (String, String) {
    (one_of(random, &FIRST_NAMES).to_owned(), coined(random))
}

/// The beginning of a day in UTC, in milliseconds since 1970.
pub(crate) fn start_ms(day: Date) -> Result<i64, Failure> {
    Ok(day.to_zoned(TimeZone::UTC)?.timestamp().as_millisecond())
}

//! Parcels of a county: assessed values, the universe of parcels, addresses, appeals, exempt parcels and sales on Socrata ([`crate::soda`]), of a few
//! parcels in two townships.
//!
//! One neighbourhood has sold parcels of one class around a ratio of 1.02, some far above, and as many far below. This year's values are mailed on the first
//! day; on a later day they are certified, which lowers one parcel and raises another. The peculiarities of the datasets are there: numbers with a point, a
//! lost zero of a PIN, stages that are absent or 0, marks in classes, exempt parcels, and sales that are none on the market. Columns with owners, buyers and
//! sellers exist: a client that requests them gets them.

use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::Plan;
use simulated_world::query::Query;
use simulated_world::world::World;

use crate::soda::{self, Dataset};

/// The sold parcels around the median.
const PEERS: u64 = 63;
/// The ratios of further parcels of the neighbourhood, in thousandths.
const SPECIAL: [i64; 8] = [1_400, 1_250, 1_160, 1_080, 700, 700, 700, 700];
/// The parcels, from the first, whose building was finished last year.
pub(crate) const REBUILT: u64 = 32;
/// The parcels of a neighbourhood with too few sales.
const FEW: u64 = 8;

/// A commercial parcel that the table of exempt parcels has, too.
const EXEMPT_AND_ASSESSED: &str = "16022010070000";

/// A dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roll {
    Values,
    Universe,
    Addresses,
    Appeals,
    Exempt,
    Sales,
}

impl Roll {
    pub(crate) fn at(path: &str) -> Option<Self> {
        Some(match path.strip_prefix("/resource/")?.strip_suffix(".json")? {
            "uzyt-m557" => Self::Values,
            "pabr-t5kh" => Self::Universe,
            "3723-97qp" => Self::Addresses,
            "y282-6ig3" => Self::Appeals,
            "vgzx-68gb" => Self::Exempt,
            "wvhk-k5uv" => Self::Sales,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Values => "cook.values",
            Self::Universe => "cook.universe",
            Self::Addresses => "cook.addresses",
            Self::Appeals => "cook.appeals",
            Self::Exempt => "cook.exempt",
            Self::Sales => "cook.sales",
        }
    }

    pub(crate) fn date_field(self) -> &'static str {
        if self == Self::Sales { "sale_date" } else { "year" }
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Values => &[
                "row_id",
                "pin",
                "year",
                "class",
                "township_code",
                "township_name",
                "nbhd",
                "mailed_bldg",
                "mailed_land",
                "mailed_tot",
                "certified_bldg",
                "certified_land",
                "certified_tot",
                "board_bldg",
                "board_land",
                "board_tot",
            ],
            Self::Universe => {
                &["row_id", "pin", "year", "class", "township_code", "township_name", "nbhd_code", "tax_code", "zip_code", "lon", "lat"]
            }
            Self::Addresses => &[
                "row_id",
                "pin",
                "year",
                "prop_address_full",
                "prop_address_city_name",
                "prop_address_zipcode_1",
                "owner_address_name",
                "mail_address_name",
            ],
            Self::Appeals => &["row_id", "case_no", "pin", "year", "appeal_type", "change", "status", "agent_name"],
            Self::Exempt => &["pin", "year", "township_code", "owner_name", "owner_num", "class", "property_address", "property_city"],
            Self::Sales => &[
                "row_id",
                "pin",
                "year",
                "township_code",
                "nbhd",
                "class",
                "sale_date",
                "is_mydec_date",
                "sale_price",
                "doc_no",
                "deed_type",
                "sale_type",
                "seller_name",
                "buyer_name",
                "is_multisale",
                "num_parcels_sale",
                "sale_filter_same_sale_within_365",
                "sale_filter_less_than_10k",
                "sale_filter_deed_type",
            ],
        }
    }
}

/// A parcel.
struct Parcel {
    pin: String,
    class: &'static str,
    township: (&'static str, &'static str),
    neighborhood: &'static str,
    /// The price of its sale in dollars.
    price: Option<i64>,
    /// The ratio of the mailed value, and that of the certified one, in thousandths; `None` for a parcel that is not assessed.
    ratios: Option<(i64, i64)>,
    /// Whether its building was finished last year.
    is_rebuilt: bool,
}

const WEST: (&str, &str) = ("77", "West Chicago");
const HYDE_PARK: (&str, &str) = ("70", "Hyde Park");

fn parcels() -> Vec<Parcel> {
    let mut all = Vec::new();
    for number in 0..PEERS + SPECIAL.len() as u64 {
        let special = usize::try_from(number.saturating_sub(PEERS)).ok().filter(|_| number >= PEERS);
        let mailed = special.and_then(|at| SPECIAL.get(at).copied()).unwrap_or(980 + 4 * (number % 21) as i64);
        let certified = match number {
            63 => 1_020,
            62 => 1_350,
            _ => mailed,
        };
        let price = if number == 64 { 160_000 } else { 400_000 + 4_000 * number as i64 };
        all.push(Parcel {
            pin: format!("16012160{number:02}0000"),
            class: "517",
            township: WEST,
            neighborhood: "010",
            price: Some(price),
            ratios: Some((mailed, certified)),
            is_rebuilt: number < REBUILT,
        });
    }
    for number in 0..FEW {
        let ratio = if number == 0 { 1_300 } else { 1_000 + 10 * number as i64 };
        all.push(Parcel {
            pin: format!("16022010{number:02}0000"),
            class: "517",
            township: WEST,
            neighborhood: "020",
            price: Some(200_000),
            ratios: Some((ratio, ratio)),
            is_rebuilt: false,
        });
    }
    let other = |pin: &str, class, price, ratios| Parcel {
        pin: pin.to_owned(),
        class,
        township: HYDE_PARK,
        neighborhood: "030",
        price,
        ratios,
        is_rebuilt: false,
    };
    all.extend([
        other("01012160010000", "2.1-1)A", Some(300_000), Some((1_000, 1_000))),
        other("20111030020000", "211A", None, Some((900, 900))),
        other("20111030030000", "EX", None, None),
        other("20111030040000", "RR", None, None),
    ]);
    all
}

impl Parcel {
    /// The number of the row of a year. The first zero of a PIN is lost where a program read it as a number.
    fn published_pin(&self) -> &str {
        self.pin.strip_prefix('0').unwrap_or(&self.pin)
    }

    fn level(&self) -> i64 {
        if self.class.starts_with('5') { 250 } else { 100 }
    }

    /// The assessed value in dollars at a ratio in thousandths.
    fn assessed(&self, ratio: i64) -> i64 {
        ratio * self.price.unwrap_or(240_000) * self.level() / 1_000_000
    }

    fn values(&self, year: i16, is_past: bool, is_certified: bool) -> Value {
        let pin = self.published_pin();
        let mut row = json!({
            "row_id": format!("{}{year}", self.pin), "pin": pin, "year": year.to_string(), "class": self.class,
            "township_code": self.township.0, "township_name": self.township.1, "nbhd": self.neighborhood,
        });
        let Some((mailed, certified)) = self.ratios else { return row };
        let mut add = |stage: &str, total: i64| {
            let building = if self.is_rebuilt && is_past { total / 3 } else { total / 2 };
            row[format!("{stage}_bldg")] = format!("{building}.0").into();
            row[format!("{stage}_land")] = (total - building).to_string().into();
            row[format!("{stage}_tot")] = total.to_string().into();
        };
        add("mailed", self.assessed(mailed));
        if is_past || is_certified {
            add("certified", self.assessed(if is_past { mailed } else { certified }));
        }
        if is_past {
            add("board", self.assessed(mailed));
        } else {
            // A stage that is not done is absent, or 0.
            row["board_tot"] = "0".into();
        }
        row
    }

    fn sales(&self, number: usize, year: i16) -> Vec<Value> {
        let sale = |id: &str, date: String, price: String, deed: &str| {
            json!({
                "row_id": format!("{}-{id}", self.pin), "pin": self.published_pin(), "year": (year - 1).to_string(), "township_code": self.township.0,
                "nbhd": self.neighborhood, "class": self.class, "sale_date": format!("{date}T00:00:00.000"), "is_mydec_date": true, "sale_price": price,
                "doc_no": format!("{}{number:08}", year - 2_001), "deed_type": deed, "sale_type": "LAND AND BUILDING", "seller_name": "PAT EXAMPLE",
                "buyer_name": "SAM EXAMPLE", "is_multisale": false, "num_parcels_sale": "1", "sale_filter_same_sale_within_365": false,
                "sale_filter_less_than_10k": false, "sale_filter_deed_type": false,
            })
        };
        let Some(price) = self.price else { return Vec::new() };
        let mut sales = vec![sale("1", format!("{}-03-{:02}", year - 1, 1 + number % 28), format!("{price}.0"), "Warranty")];
        // Sales that are none on the market: for a dollar, of several parcels, and by quit-claim deed.
        let mut odd = |at: usize, id: &str, price: &str, deed: &str, change: &[(&str, Value)]| {
            if number == at {
                let mut row = sale(id, format!("{year}-01-10"), price.to_owned(), deed);
                for (name, value) in change {
                    row[*name] = value.clone();
                }
                sales.push(row);
            }
        };
        odd(0, "2", "1", "Warranty", &[("sale_filter_less_than_10k", json!(true))]);
        odd(1, "2", "9000000", "Warranty", &[("is_multisale", json!(true)), ("num_parcels_sale", json!("3"))]);
        odd(2, "2", "900000", "Quit claim", &[("sale_filter_deed_type", json!(true))]);
        odd(3, "2", "900000", "Warranty", &[("sale_filter_same_sale_within_365", json!(true))]);
        sales
    }
}

fn rows(world: &World, roll: Roll) -> Vec<Value> {
    let year = world.today.year();
    let is_certified = world.today > world.first_today;
    let mut rows = Vec::new();
    for (number, parcel) in parcels().into_iter().enumerate() {
        let row_id = format!("{}{year}", parcel.pin);
        match roll {
            Roll::Values => rows.extend([parcel.values(year - 1, true, true), parcel.values(year, false, is_certified)]),
            // Every tenth parcel was appealed last year; some appeals of this year are open.
            Roll::Appeals if number % 10 == 4 => rows.extend([
                json!({
                    "row_id": format!("{}-a1", parcel.pin), "case_no": format!("{number}"), "pin": parcel.published_pin(), "year": (year - 1).to_string(),
                    "appeal_type": "pre-certification", "change": "no change", "status": "closed", "agent_name": "PAT EXAMPLE",
                }),
                json!({
                    "row_id": format!("{}-a2", parcel.pin), "case_no": format!("{number}"), "pin": parcel.published_pin(), "year": year.to_string(),
                    "appeal_type": "pre-certification", "status": "open", "agent_name": "PAT EXAMPLE",
                }),
            ]),
            Roll::Appeals => {}
            // The exempt parcels, and one that is also assessed as commercial.
            Roll::Exempt if parcel.class == "EX" || parcel.pin == EXEMPT_AND_ASSESSED => rows.push(json!({
                "pin": parcel.published_pin(), "year": year.to_string(), "township_code": parcel.township.0, "owner_name": "PAT EXAMPLE",
                "owner_num": "1", "class": parcel.class, "property_address": format!("{} N CARTER ST", 100 + number), "property_city": "CHICAGO",
            })),
            Roll::Exempt => {}
            Roll::Sales => rows.extend(parcel.sales(number, year)),
            Roll::Universe => rows.push(json!({
                "row_id": row_id, "pin": parcel.published_pin(), "year": year.to_string(), "class": parcel.class, "township_code": parcel.township.0,
                "township_name": parcel.township.1, "nbhd_code": parcel.neighborhood, "tax_code": "77001", "zip_code": "60622-1234",
            })),
            Roll::Addresses => rows.push(json!({
                "row_id": row_id, "pin": parcel.published_pin(), "year": year.to_string(), "prop_address_full": format!("{} N CARTER ST", 100 + number),
                "prop_address_city_name": "CHICAGO", "prop_address_zipcode_1": "60622", "owner_address_name": "PAT EXAMPLE", "mail_address_name": "PAT EXAMPLE",
            })),
        }
    }
    rows
}

/// Answers a query of a dataset.
pub(crate) fn answer(world: &World, roll: Roll, query: &Query, token: Option<&str>, plan: &Plan) -> Answer {
    soda::answer(Dataset { columns: roll.columns(), numbers: &[], rows: rows(world, roll) }, query, token, plan)
}

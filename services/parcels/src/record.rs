//! The parcels service's rows: one record per parcel, with its assessment compared to those of its peers, and one per permit, tax lien and flag.

mod counts;
pub mod flag;
pub mod lien;
pub mod permit;

use std::cmp::Ordering;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::flag::Flag;
use self::lien::Lien;
use crate::county::County;
use schemas::details::{ChangeRecord, NoDetails};
use schemas::suppression::{Hides, KeyKind, RECORD};
use schemas::views::accounts::Tier;
use schemas::views::records::{Place, Record, Redact, Term};
use texts::{allegheny, cook};

pub use self::counts::{COUNTS, CurrentCycle, DeltaCounts, current_cycle, delta_counts, township_counts};
use self::permit::{Permit, RedactedPermit};
pub use property::ratios::{INSUFFICIENT, LOW_R, MEDIUM_R, NONE, TIERS};

/// The name of the rule by which parcels are compared, with its version.
pub const RULE: &str = "over-assessment/1";
/// The name of the rule by which parcels without a sale of their own are compared, with its version.
pub const SQFT_RULE: &str = "value-per-sqft/1";
/// The kind of basis of a parcel that is compared by the price of its own sale.
pub const OWN_SALE: &str = "own_sale";
/// The kind of basis of a parcel that is compared by its value per square foot.
pub const PER_SQFT: &str = "per_sqft";
/// The counties.
pub const COUNTIES: [&str; 2] = [cook::COUNTY, allegheny::COUNTY];
/// The stages of an assessment, in their order.
pub const STAGES: [&str; 3] = ["mailed", "certified", "board"];
/// The longest list of years of a record.
pub const YEARS_MAX: usize = 3;

/// The largest `r` that has a bucket of its own in lists, in ten-thousandths.
const BUCKET_R_MAX: i64 = 40_000;
/// How many ten-thousandths of `r` share a bucket.
const BUCKET_R: i64 = 500;
/// The largest `r` in lists, in ten-thousandths.
const R_MAX: i64 = 10_000_000_000;
/// How many characters of a PIN a redacted row shows.
const SHOWN_PIN_CHARS: usize = 5;

/// A parcel with its assessment, or a permit for construction on a parcel. `""` and null mean unknown. Public-record inference, not an appraisal, title report,
/// legal or tax advice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Parcel {
    /// Id of the record: county and PIN, `cook-il/16012160010000`; of a permit with `/permit/` and its number; of a tax lien `lien/` and 24 hex digits; of a
    /// flag `flag/`, PIN and rule.
    pub id: String,
    /// The number of the parcel: 14 digits in Cook County, 16 characters in Allegheny County.
    pub pin: String,
    /// The county: `cook-il` or `allegheny-pa`.
    pub county: String,
    /// The class of the year that is compared. In Allegheny County the letter of the class and the code of the use: `C411`.
    pub class: String,
    /// What the class is called.
    pub class_label: String,
    /// The name of the township; in Allegheny County of the municipality or ward.
    pub township: String,
    /// The code of the township; in Allegheny County of the municipality or ward.
    pub township_code: String,
    /// The number of the neighbourhood.
    pub neighborhood: String,
    /// The address of the parcel.
    pub address: String,
    /// `high`, `medium` or `low` if it is assessed higher than its peers, else `none`; `insufficient` if it cannot be compared.
    pub tier: String,
    /// The ratio of the parcel divided by the median of its peers, 4 decimals.
    pub r: Option<f64>,
    /// The market value that the assessment implies, divided by the price of the parcel's own sale. Without one, its value per square foot divided by the median
    /// of those of its peers, if they are enough. 4 decimals.
    pub ratio: Option<f64>,
    /// The median of the ratios of its peers when the cycle closed, 4 decimals; 1 for values per square foot.
    pub peer_median: Option<f64>,
    /// How many sales of peers count.
    pub peer_n: i64,
    /// Whether the peers are those of the `neighborhood` or of the `township`.
    pub peer_level: String,
    /// The coefficient of dispersion of the ratios of its peers, 4 decimals.
    pub cod: Option<f64>,
    /// The stage of the assessment: `mailed`, `certified` or `board`.
    pub stage: String,
    /// The assessed value in dollars.
    pub assessed: Option<i64>,
    /// The level of assessment of the class: 0.25.
    pub level: Option<f64>,
    /// The assessed value divided by the level, in dollars.
    pub implied_market_value: Option<i64>,
    /// What the implied market value is compared to.
    pub basis: Basis,
    /// The last appeal to the assessor that has a result.
    pub last_appeal: Appeal,
    /// The rule.
    pub method: String,
    /// The cycle whose medians are used: year and stage, `2026-mailed`.
    pub cycle: String,
    /// The tier when its cycle closed.
    pub tier_at_close: String,
    /// The tier when the cycle before closed; empty if there was none.
    pub tier_before: String,
    /// The class when its cycle closed; empty before the first, and in records of versions that did not keep it.
    pub class_at_close: String,
    /// The class when the cycle before closed; empty if there was none, and in records of versions that did not keep it.
    pub class_before: String,
    /// The assessments of the last 3 years, the newest first.
    pub history: Vec<ParcelYear>,
    /// Why the tier is what it is.
    pub reasons: Vec<String>,
    /// The row of the assessed values, or of the permit, at the publisher.
    pub url: String,
    /// The permit, if the record is one: the fields about the assessment, from `neighborhood` to `reasons`, are then empty. Only then present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit: Option<Box<Permit>>,
    /// Of a record that is no parcel but a tax lien: the lien.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lien: Option<Box<Lien>>,
    /// Of a record that is no parcel but a flag of its exemption: the flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<Box<Flag>>,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// What the implied market value of a parcel is compared to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "ParcelBasis")]
pub struct Basis {
    /// `own_sale`; `per_sqft` for a parcel without a sale that counts, whose floor area is published; else empty.
    pub kind: String,
    /// The price in dollars.
    pub sale_price: Option<i64>,
    /// The day of the sale, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub sale_date: String,
    /// The number of the deed.
    pub doc_no: String,
    /// Of `per_sqft`: the finished living area in square feet.
    pub floor_area: Option<i64>,
    /// Of `per_sqft`: the implied market value divided by the floor area, in dollars, 4 decimals.
    pub value_per_sqft: Option<f64>,
    /// Of `per_sqft`: the median of the values per square foot of its peers when the cycle closed, in dollars, 4 decimals.
    pub peer_value_per_sqft: Option<f64>,
}

/// The last appeal of a parcel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "ParcelAppeal")]
pub struct Appeal {
    /// The year.
    pub year: Option<i64>,
    /// The result, as published.
    pub result: String,
}

/// The assessment of a parcel in a year.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ParcelYear {
    /// The year of assessment.
    pub year: i64,
    /// The class.
    pub class: String,
    /// The assessed total at the stage `mailed`, in dollars.
    pub mailed: Option<i64>,
    /// The assessed total at the stage `certified`, in dollars.
    pub certified: Option<i64>,
    /// The assessed total at the stage `board`, in dollars.
    pub board: Option<i64>,
}

/// A parcel as callers without a paid key see it: the first five characters of its PIN, no address, no evidence and `r` with one decimal.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedactedParcel {
    /// The first five characters of the PIN, and `*` for each of the others.
    pub pin: String,
    /// The county.
    pub county: String,
    /// The class.
    pub class: String,
    /// What the class is called.
    pub class_label: String,
    /// The name of the township.
    pub township: String,
    /// The tier.
    pub tier: String,
    /// The ratio of the parcel divided by the median of its peers, one decimal.
    pub r: Option<f64>,
    /// Whether the peers are those of the `neighborhood` or of the `township`.
    pub peer_level: String,
    /// The stage of the assessment.
    pub stage: String,
    /// The rule.
    pub method: String,
    /// The cycle.
    pub cycle: String,
    /// The permit, if the record is one; only then present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit: Option<RedactedPermit>,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// A PIN without its last characters: `16012*********`.
#[must_use]
pub fn masked_pin(pin: &str) -> String {
    pin.chars().enumerate().map(|(at, letter)| if at < SHOWN_PIN_CHARS { letter } else { '*' }).collect()
}

/// Returns how strong a tier is: 3 for `high`, 1 for `low`, and 0 for any other.
#[must_use]
pub fn strength(tier: &str) -> usize {
    TIERS.iter().rev().position(|known| *known == tier).map_or(0, |at| at + 1)
}

/// The id of a parcel.
#[must_use]
pub fn id(county: &str, pin: &str) -> String {
    format!("{county}/{pin}")
}

/// The name of a list of over-assessed parcels: of all counties or one, of a township, of a class; `is_high` for those of the tier `high` only. Without
/// a class a list has the commercial and industrial parcels.
#[must_use]
pub fn over_list(county: Option<&str>, township: Option<&str>, class: Option<&str>, is_high: bool) -> String {
    let part = |name: &str, value: Option<&str>| value.map(|value| format!("/{name}/{value}")).unwrap_or_default();
    let tier = if is_high { "high" } else { "over" };
    format!("{tier}{}{}{}", part("county", county), part("township", township), part("class", class))
}

/// The name of the list of parcels that are newly over-assessed in a cycle, or are no more.
#[must_use]
pub fn delta_list(county: &str, cycle: &str, is_new: bool) -> String {
    format!("{}/{county}/{cycle}", if is_new { "new" } else { "resolved" })
}

/// The buckets and ranks of a list of over-assessed parcels: of all of it, or without those of the tier `low`.
#[must_use]
pub fn over_part(has_low: bool) -> ((i64, i64), (i64, i64)) {
    let least_r = if has_low { LOW_R } else { MEDIUM_R };
    ((-BUCKET_R_MAX / BUCKET_R, -least_r / BUCKET_R), (rank(R_MAX, false), rank(least_r, has_low)))
}

/// The rank of a parcel in lists by its `r` in ten-thousandths. The tier follows from `r` before it was rounded, so parcels of the tiers `low` and `medium`
/// can have the same `r`: those of `low` come last.
const fn rank(r: i64, is_low: bool) -> i64 {
    if is_low { -2 * r } else { -2 * r - 1 }
}

impl Parcel {
    /// Whether it is assessed higher than its peers.
    #[must_use]
    pub fn is_over(&self) -> bool {
        strength(&self.tier) > 0
    }

    /// Whether it is in lists that name no class: commercial and industrial parcels.
    #[must_use]
    pub fn is_commercial(&self) -> bool {
        self.is_commercial_as(&self.class)
    }

    /// Whether a parcel of a class in its county is commercial or industrial.
    fn is_commercial_as(&self, class: &str) -> bool {
        County::of_name(&self.county).is_commercial(class)
    }

    /// Whether its cycle made it one of the over-assessed commercial parcels (`Some(true)`), or no more (`Some(false)`). A parcel that changes its class can
    /// become one, or stop being one, without another tier.
    #[must_use]
    pub fn delta(&self) -> Option<bool> {
        let class_before = if self.class_before.is_empty() { &self.class } else { &self.class_before };
        let now = self.is_over() && self.is_commercial();
        let before = strength(&self.tier_before) > 0 && self.is_commercial_as(class_before);
        (!self.cycle.is_empty() && now != before).then_some(now)
    }

    /// The value of `r` in ten-thousandths.
    #[expect(clippy::cast_possible_truncation, reason = "a number that is too large becomes the largest one, which is limited")]
    fn r_rank(&self) -> Option<i64> {
        // Four decimals, so that the product is a whole number but for the last bits.
        self.r.map(|r| ((r * 10_000.0).round() as i64).clamp(0, R_MAX))
    }
}

impl ChangeRecord for Parcel {
    type Details = NoDetails;

    const ON_DAY: Option<fn(&mut Self, Date)> = Some(|record, day| {
        if let Some(lien) = &mut record.lien {
            lien.set_day(day);
        }
    });
}

impl Record for Parcel {
    fn id(&self) -> &str {
        &self.id
    }

    /// A permit that is withdrawn, and a flag that no longer applies, are in no list.
    fn is_listed(&self) -> bool {
        self.permit.as_ref().is_none_or(|permit| !permit.withdrawn) && self.flag.as_ref().is_none_or(|flag| !flag.is_over)
    }

    fn terms(&self) -> Vec<Term> {
        let terms = [("pin", &self.pin), ("township", &self.township_code), ("class", &self.class), ("tier", &self.tier)];
        terms.into_iter().filter_map(|(dimension, value)| Term::new(dimension, value)).collect()
    }

    fn places(&self) -> Vec<Place> {
        if let Some(permit) = &self.permit {
            // No value of a building is read of the other county, so its permits are in no list of windows.
            let is_cook = County::of_name(&self.county) == County::Cook;
            return if is_cook { permit.places(&self.county, &self.township_code) } else { Vec::new() };
        }
        if let Some(lien) = &self.lien {
            return lien.places(&self.pin);
        }
        if let Some(flag) = &self.flag {
            return flag.places(&self.county);
        }
        let delta = self.delta().map(|is_new| Place { list: delta_list(&self.county, &self.cycle, is_new), bucket: 0, rank: 0 });
        let Some(r) = self.r_rank().filter(|_| self.is_over()) else { return delta.into_iter().collect() };
        let (county, township, class) = (Some(&*self.county), Some(&*self.township_code), Some(&*self.class));
        let mut scopes = vec![(county, None, class), (county, township, class)];
        if self.is_commercial() {
            scopes.extend([(None, None, None), (county, None, None), (county, township, None)]);
        }
        let tiers: &[bool] = if self.tier == TIERS[0] { &[false, true] } else { &[false] };
        let (bucket, rank) = (-(r.min(BUCKET_R_MAX) / BUCKET_R), rank(r, self.tier == TIERS[2]));
        let over = scopes.into_iter().flat_map(|(county, township, class)| {
            tiers.iter().map(move |is_high| Place { list: over_list(county, township, class, *is_high), bucket, rank })
        });
        over.chain(delta).collect()
    }
}

impl Redact for Parcel {
    type Redacted = RedactedParcel;

    const WHOLE_FROM: Tier = Tier::Pro;
    const FREE_DAYS: i64 = 30;
    const NOTE: Option<&'static str> = Some(
        "below tier pro, PINs are masked and rows have no address, evidence or link; a key of tier pro or above, or a payment, shows whole rows",
    );

    fn is_free(&self, _today: Date) -> bool {
        true
    }

    /// The id of a permit, a lien or a flag has the PIN and what is recorded of the parcel. PINs are public, and there are few rules of flags to try.
    fn is_shown_by_id(&self) -> bool {
        self.permit.is_none() && self.lien.is_none() && self.flag.is_none()
    }

    fn redacted(&self) -> RedactedParcel {
        RedactedParcel {
            pin: masked_pin(&self.pin),
            county: self.county.clone(),
            class: self.class.clone(),
            class_label: self.class_label.clone(),
            township: self.township.clone(),
            tier: self.tier.clone(),
            r: self.r.map(|r| (r * 10.0).round() / 10.0),
            peer_level: self.peer_level.clone(),
            stage: self.stage.clone(),
            method: self.method.clone(),
            cycle: self.cycle.clone(),
            permit: self.permit.as_ref().map(|permit| permit.redacted()),
            suppressed: self.suppressed,
        }
    }

    /// The largest `r` first.
    fn order(one: &RedactedParcel, other: &RedactedParcel) -> Ordering {
        let r = |row: &RedactedParcel| row.r.unwrap_or_default();
        r(other).total_cmp(&r(one))
    }
}

/// What is hidden. The ratio with the value that the assessment implies would give the price of the sale, and so would `r` with the median; the reasons name the
/// days of its other sales.
const HIDDEN: &[&str] = &["address", "basis", "ratio", "peerMedian", "reasons", "permit", "url", "lien", "flag"];
/// The same kind of keys, compared with a PIN: the id of the parcel's record is a key of it, too. Liens and flags have ids of their own.
const RECORD_OF_PIN: KeyKind = KeyKind { within: record_of_pin, ..RECORD };
/// The keys that hide a parcel with its permits, liens and flags, or one of these.
const HIDES: &[Hides] =
    &[Hides { kind: &RECORD, field: "id", hidden: HIDDEN }, Hides { kind: &RECORD_OF_PIN, field: "pin", hidden: HIDDEN }];

/// The key of the record of a parcel, given a service and a PIN: of `parcels/16012160010000` it is `parcels/cook-il/16012160010000`.
fn record_of_pin(key: &str) -> Vec<String> {
    let parts = key.split_once('/').filter(|(_, pin)| !pin.is_empty());
    parts.map(|(service, pin)| format!("{service}/{}", id(County::of_pin(pin).name(), pin))).into_iter().collect()
}

schemas::record_tables!("parcels", places, hides: HIDES);

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::views::testing;

    fn parcel() -> Parcel {
        Parcel { permit: None, lien: None, flag: None, ..with_every_field() }
    }

    /// A record with a value in every field.
    fn with_every_field() -> Parcel {
        let text = |text: &str| text.to_owned();
        Parcel {
            id: text("cook-il/16012160010000"),
            pin: text("16012160010000"),
            county: text("cook-il"),
            class: text("517"),
            class_label: text("One-story commercial building"),
            township: text("West Chicago"),
            township_code: text("77"),
            neighborhood: text("77010"),
            address: text("100 N CARTER ST, CHICAGO 60622"),
            tier: text("high"),
            r: Some(1.3072),
            ratio: Some(1.3333),
            peer_median: Some(1.02),
            peer_n: 41,
            peer_level: text("neighborhood"),
            cod: Some(13.2),
            stage: text("board"),
            assessed: Some(50_000),
            level: Some(0.25),
            implied_market_value: Some(200_000),
            basis: Basis {
                kind: text("own_sale"),
                sale_price: Some(150_000),
                sale_date: text("2025-05-02"),
                doc_no: text("2512345678"),
                floor_area: Some(1_268),
                value_per_sqft: Some(157.728_7),
                peer_value_per_sqft: Some(120.25),
            },
            last_appeal: Appeal { year: Some(2025), result: text("no change") },
            method: text("own sale"),
            cycle: text("2026-board"),
            tier_at_close: text("medium"),
            tier_before: text("none"),
            class_at_close: text("517"),
            class_before: text("517"),
            history: vec![ParcelYear { year: 2026, class: text("517"), mailed: Some(1), certified: Some(2), board: Some(3) }],
            reasons: vec![text("a")],
            url: text("https://example.com"),
            permit: Some(Box::new(Permit {
                number: text("101000040"),
                streams: vec![text("cook.permits")],
                status: text("OPEN"),
                city_status: text("ACTIVE"),
                closed: true,
                assessable: true,
                major: true,
                issued: text("2026-03-02"),
                amount: Some(1_234_567),
                job_code: text("COMMERCIAL PERMIT: NEW BUILDING"),
                description: text("d"),
                municipality: text("e"),
                parcels: Some(2),
                building: permit::Building {
                    year: Some(2025),
                    value: Some(4),
                    latest_year: Some(2026),
                    latest_value: Some(5),
                    risen_in: Some(2026),
                },
                remarks: vec![text("f")],
                withdrawn: true,
            })),
            lien: Some(Box::new(Lien {
                dtd: text("DTD-03-037477"),
                description: text("City & School Tax Lien"),
                body: vec![text("City")],
                tax_year: Some(2_002),
                filed: text("2003-05-01"),
                amount_cents: Some(120_000),
                status: text("PARTIAL"),
                why: text("b"),
                last_entry: text("c"),
                assignee: text("d"),
                block_lot: text("e"),
                municipality: text("f"),
            })),
            flag: Some(Box::new(Flag {
                rule: text("X1"),
                statement: text("g"),
                evidence: vec![text("h")],
                owner: text("i"),
                mailing: text("j"),
                exempt_since: text("2026-02-01"),
                is_over: true,
            })),
            suppressed: false,
        }
    }

    /// Proves that a change with a value in every field reads back as written.
    #[test]
    fn changes_read_back() {
        let record = with_every_field();
        let before = Parcel { tier_before: String::new(), r: None, ..record.clone() };
        testing::assert_change_reads_back("changes.parcels", &record.id.clone(), before, record);
    }

    /// Proves that a record of a lien has the status of the day on which it is read, once, and that a lien that is paid stays as it is.
    #[test]
    fn liens_are_read_as_of_a_day() {
        let lien = |status: &str| Lien { status: status.into(), filed: "2006-11-20".into(), why: "b".into(), ..Lien::default() };
        let on = |status: &str, day: &str| {
            let record = Parcel { lien: Some(Box::new(lien(status))), ..parcel() };
            let read = record.on_day(day.parse().unwrap());
            assert_eq!(read.clone().on_day(day.parse().unwrap()), read);
            read.lien.unwrap().status
        };
        assert_eq!([on("OPEN", "2026-11-19"), on("OPEN", "2026-11-20")], ["OPEN", "EXPIRED_REVIEW"]);
        assert_eq!([on("PARTIAL", "2026-11-20"), on("SATISFIED", "2026-11-20")], ["EXPIRED_REVIEW", "SATISFIED"]);
        assert_eq!(parcel().on_day("2099-01-01".parse().unwrap()), parcel());
    }

    /// Proves which lists a parcel is in: those of all, its county, its township and its class, and the same of the tier `high`; a parcel that is not
    /// commercial only in those of its class, and one that is not over-assessed in none.
    #[test]
    fn lists() {
        let lists = |parcel: Parcel| parcel.places().into_iter().map(|place| place.list).collect::<Vec<_>>();
        let high = lists(parcel());
        assert_eq!(high.len(), 11);
        for list in ["over", "high", "over/county/cook-il", "high/county/cook-il/township/77/class/517", "new/cook-il/2026-board"] {
            assert!(high.iter().any(|known| known == list), "{list} in {high:?}");
        }
        let low = Parcel { tier: "low".into(), class: "391".into(), ..parcel() };
        assert_eq!(lists(low), ["over/county/cook-il/class/391", "over/county/cook-il/township/77/class/391"]);
        assert_eq!(lists(Parcel { tier: NONE.into(), ..parcel() }), Vec::<String>::new());
        let resolved = Parcel { tier: NONE.into(), tier_before: "low".into(), ..parcel() };
        assert_eq!(lists(resolved.clone()), ["resolved/cook-il/2026-board"]);
        // A record of a version that did not keep the class of the cycle before: it is taken to have been the same.
        assert_eq!(lists(Parcel { class_before: String::new(), ..resolved }), ["resolved/cook-il/2026-board"]);
        let residential =
            Parcel { tier: NONE.into(), tier_before: "low".into(), class: "211".into(), class_before: String::new(), ..parcel() };
        assert_eq!(lists(residential), Vec::<String>::new());
    }

    /// Proves that a larger `r` comes first, that no smaller rank has a larger bucket, and that the part of a list holds exactly what is at least as large.
    #[test]
    fn the_largest_r_comes_first() {
        let place = |r: f64| Parcel { r: Some(r), ..parcel() }.places().remove(0);
        let all: Vec<Place> = [90_000.0, 7.5, 4.0001, 4.0, 1.3, 1.1, 1.0999, 1.05].map(place).to_vec();
        assert!(all.windows(2).all(|pair| (pair[0].bucket, pair[0].rank) < (pair[1].bucket, pair[1].rank)), "{all:?}");
        let is_taken = |place: &Place, has_low: bool| {
            let ((first, last), (least, most)) = over_part(has_low);
            (first..=last).contains(&place.bucket) && (least..=most).contains(&place.rank)
        };
        let taken = |has_low: bool| all.iter().filter(|place| is_taken(place, has_low)).count();
        assert_eq!([taken(false), taken(true)], [6, 8]);
        // An r of 1.09996 is shown as 1.1, and is of the tier low.
        let place_of = |tier: &str, r: f64| Parcel { tier: tier.into(), r: Some(r), ..parcel() }.places().remove(0);
        let (medium, low, lower) = (place_of("medium", 1.1), place_of("low", 1.1), place_of("low", 1.0999));
        assert!(medium.rank < low.rank && low.rank < lower.rank, "{medium:?} {low:?} {lower:?}");
        assert_eq!([&medium, &low, &lower].map(|place| is_taken(place, false)), [true, false, false]);
        assert!([&medium, &low, &place_of("low", 1.05)].into_iter().all(|place| is_taken(place, true)));
    }

    /// Proves that a redacted row has no full PIN and no value of a protected field.
    #[test]
    fn redacted_rows() {
        let row = serde_json::to_string(&parcel().redacted()).unwrap();
        assert!(row.contains("16012*********") && row.contains("1.3") && !row.contains("1.3072"), "{row}");
        for hidden in ["16012160010000", "CARTER", "150000", "2512345678", "example.com", "50000", "1268", "157.7287", "120.25"] {
            assert!(!row.contains(hidden), "{hidden} in {row}");
        }
        assert_eq!([masked_pin(""), masked_pin("123"), masked_pin("123456")], ["", "123", "12345*"]);
    }
}

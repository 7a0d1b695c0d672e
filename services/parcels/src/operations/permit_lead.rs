//! Permits as answers show them, with the window of their construction as of the day of the answer.

use std::collections::BTreeMap;

use crate::record::Parcel;
use crate::record::permit::{Building, Median, Permit, RedactedPermit, medians_name};
use feed::places::Ranked;
use feed::position::Position;
use jiff::ToSpan;
use jiff::civil::Date;
use operation::problem::Problem;
use reads::last_entry::last_entry;
use schemars::JsonSchema;
use serde::Serialize;
use texts::cook;

use super::DISCLAIMER;
use crate::record::{TABLES, masked_pin};
use reads::read::Reader;

use super::watchable_feed::Parcels;

/// The months of a window without enough finished cases.
pub(crate) const MONTHS_DEFAULT: i64 = 24;
/// A project is stalled if its window ended more than so many months ago.
pub(crate) const MONTHS_PAST: i64 = 6;
/// The rows of a preview, and those of which it shows some, so that it does not tell which is first.
const PREVIEW_ROWS: usize = 3;
pub(crate) const PREVIEW_WALK: usize = 10;
/// Says that no job code has a median.
const NO_MEDIANS: &str = "no job code has 30 finished projects yet, so every window has 24 months";

/// When construction is expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConstructionWindow")]
pub struct Window {
    /// The day of issue.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub from: String,
    /// The day of issue and `months` later.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub to: String,
    /// How many months: the median from the issue to the first rise of the value of the building, or 24.
    pub months: i64,
    /// `median` of finished projects of the job code, or `default` where there are fewer than 30.
    pub basis: String,
    /// How many finished projects of the job code there were when the median last changed; 0 without a median.
    pub cases: i64,
}

/// A permit for construction on a parcel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermitLead {
    /// The number of the parcel, 14 digits.
    pub pin: String,
    /// The county.
    pub county: String,
    /// The number of the permit.
    pub number: String,
    /// The status, as the assessor published it; without the assessor as the city did.
    pub status: String,
    /// The status, as the city published it; empty if it did not.
    pub city_status: String,
    /// The reported cost in dollars; null if it is unknown.
    pub amount: Option<i64>,
    /// The day of issue.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub issued: String,
    /// When construction is expected.
    pub window: Window,
    /// The job code by which the length of the window is learned.
    pub job_code: String,
    /// What is to be done, without telephone numbers and e-mail addresses; empty if unknown. Of words that are not usual in permits, such as names, the initials
    /// are shown.
    pub description: String,
    /// The address of the work, or of the parcel; empty if unknown.
    pub address: String,
    /// The city or village that issued it.
    pub municipality: String,
    /// The name of the township.
    pub township: String,
    /// The class of the parcel; empty if it is not on the roll.
    pub class: String,
    /// What the class is called.
    pub class_label: String,
    /// On how many parcels the publisher has the permit, if it names several. Each of them has a row with the whole amount.
    pub parcels: Option<i64>,
    /// The assessed value of the building around the day of issue and now.
    pub building: Building,
    /// The streams that published the permit.
    pub streams: Vec<String>,
    /// What else to know about the record.
    pub remarks: Vec<String>,
    /// The row at the publisher.
    pub url: String,
}

/// What a page of permits says about itself. Answers flatten it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PermitsPage {
    /// Day of the last refresh, YYYY-MM-DD; empty before the first.
    pub updated: String,
    /// How many permits match, over all pages; null if they were not all counted.
    pub total: Option<u64>,
    /// The number of permits in this answer.
    pub count: usize,
    /// Send it as `after` to get the next page; null on the last one.
    pub next: Option<String>,
}

impl PermitsPage {
    /// What a page says about itself. A note says so if it has no permits and another page follows.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn read(reader: &mut Reader<Parcels>, found: &Ranked<Parcel>) -> Result<Self, Problem> {
        let (count, next) = (found.items.len(), found.next.clone());
        reader.note_empty_page(count, next.as_deref());
        Ok(Self { updated: reader.updated().await?, total: found.total, count, next })
    }
}

/// The terms under which permits are shown. Answers flatten them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PermitTerms {
    /// The tier of the caller's key; `free` without a key.
    pub tier: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// What leads are not.
    pub disclaimer: &'static str,
}

impl PermitTerms {
    /// The terms for the caller, with the rule of the answer.
    pub(crate) fn new(reader: &Reader<Parcels>, rule: &'static str) -> Self {
        Self { tier: reader.tier(), rule, disclaimer: DISCLAIMER }
    }
}

/// A permit as callers without a paid key see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RedactedLead {
    pin: String,
    county: String,
    township: String,
    class: String,
    #[serde(flatten)]
    permit: RedactedPermit,
}

/// The lengths of windows of the job codes of a county.
#[derive(Clone, Debug, Default)]
pub(crate) struct Medians(BTreeMap<String, Median>);

impl Medians {
    /// The medians at a position.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn read(at: &Position) -> Result<Self, Problem> {
        Ok(Self(last_entry(at, TABLES.terms, &medians_name(cook::COUNTY), 0).await?.unwrap_or_default()))
    }

    /// Says in the answer if there are none.
    pub(crate) fn note(&self, reader: &mut Reader<Parcels>) {
        reader.note(self.0.is_empty().then(|| NO_MEDIANS.to_owned()));
    }

    /// The length of the shortest window.
    pub(crate) fn months_min(&self) -> i64 {
        self.0.values().map(|median| median.months).min().map_or(MONTHS_DEFAULT, |least| least.min(MONTHS_DEFAULT))
    }

    /// The window of a permit.
    pub(crate) fn window(&self, permit: &Permit) -> Window {
        let (months, basis, cases) = match self.0.get(&permit.job_code) {
            Some(median) => (median.months, "median", median.cases),
            None => (MONTHS_DEFAULT, "default", 0),
        };
        let to = permit.issued_on().map(|issued| later(issued, months).to_string()).unwrap_or_default();
        Window { from: permit.issued.clone(), to, months, basis: basis.to_owned(), cases }
    }

    /// Whether the window of a permit ended more than six months before a day.
    pub(crate) fn is_past(&self, permit: &Permit, today: Date) -> bool {
        let months = self.window(permit).months + MONTHS_PAST;
        permit.issued_on().is_some_and(|issued| later(issued, months) < today)
    }

    /// Whether [`Self::is_past`] holds of a permit of the same year that was issued on its last day.
    pub(crate) fn is_past_by_year(&self, permit: &Permit, today: Date) -> bool {
        let months = self.window(permit).months + MONTHS_PAST;
        permit.issued_on().is_some_and(|issued| later(issued.last_of_year(), months) < today)
    }

    /// The row of a permit.
    pub(crate) fn lead(&self, record: Parcel) -> PermitLead {
        let permit = record.permit.map(|permit| *permit).unwrap_or_default();
        PermitLead {
            window: self.window(&permit),
            pin: record.pin,
            county: record.county,
            number: permit.number,
            status: permit.status,
            city_status: permit.city_status,
            amount: permit.amount,
            issued: permit.issued,
            job_code: permit.job_code,
            description: permit.description,
            address: record.address,
            municipality: permit.municipality,
            township: record.township,
            class: record.class,
            class_label: record.class_label,
            parcels: permit.parcels,
            building: permit.building,
            streams: permit.streams,
            remarks: permit.remarks,
            url: record.url,
        }
    }
}

impl RedactedLead {
    /// The redacted row of a permit.
    pub(crate) fn new(record: &Parcel) -> Self {
        Self {
            pin: masked_pin(&record.pin),
            county: record.county.clone(),
            township: record.township.clone(),
            class: record.class.clone(),
            permit: record.permit.clone().unwrap_or_default().redacted(),
        }
    }

    /// Some redacted rows of permits, in the order of what they show.
    pub(crate) fn rows(records: &[Parcel]) -> Vec<Self> {
        let mut rows: Vec<Self> = records.iter().map(Self::new).collect();
        rows.sort_by_cached_key(|row| serde_json::to_string(row).unwrap_or_default());
        rows.truncate(PREVIEW_ROWS);
        rows
    }
}

/// The day that is so many months after another one.
pub(crate) fn later(day: Date, months: i64) -> Date {
    day.saturating_add(months.clamp(-12_000, 12_000).months())
}

/// Whether a permit counts by its amount.
pub(crate) fn is_large(record: &Parcel, min_amount: Option<i64>) -> bool {
    let amount = record.permit.as_ref().and_then(|permit| permit.amount).unwrap_or_default();
    min_amount.is_none_or(|least| amount >= least)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn permit(code: &str, issued: &str) -> Permit {
        Permit { job_code: code.into(), issued: issued.into(), ..Permit::default() }
    }

    /// Proves that the window has the median of the job code, or 24 months, and that a project is stalled the day after six more months.
    #[test]
    fn windows() {
        let medians = Medians(BTreeMap::from([("A".to_owned(), Median { months: 9, cases: 32 })]));
        let window = medians.window(&permit("A", "2025-03-31"));
        assert_eq!(
            (&*window.from, &*window.to, window.months, &*window.basis, window.cases),
            ("2025-03-31", "2025-12-31", 9, "median", 32)
        );
        let window = medians.window(&permit("B", "2024-02-29"));
        assert_eq!((&*window.to, window.months, &*window.basis, window.cases), ("2026-02-28", 24, "default", 0));
        assert_eq!((medians.months_min(), Medians(BTreeMap::new()).months_min()), (9, 24));
        for (day, is_past) in [("2026-06-30", false), ("2026-07-01", true)] {
            assert_eq!(medians.is_past(&permit("A", "2025-03-31"), day.parse().unwrap()), is_past, "{day}");
        }
        assert!(!medians.is_past(&permit("A", ""), "2026-07-01".parse().unwrap()));
    }

    /// Proves that a long median does not shorten the part of the list that is walked.
    #[test]
    fn the_shortest_window_bounds_the_walk() {
        let medians = Medians(BTreeMap::from([("A".to_owned(), Median { months: 40, cases: 30 })]));
        assert_eq!(medians.months_min(), 24);
    }

    /// Proves that redacted rows are ordered by what they show, have the fields that the guide to parcels names, and no full PIN, day or amount.
    #[test]
    fn redacted_rows() {
        let record = |pin: &str, amount: i64| Parcel {
            pin: pin.into(),
            county: "cook-il".into(),
            permit: Some(Box::new(Permit { amount: Some(amount), ..permit("A", "2026-03-02") })),
            ..Parcel::default()
        };
        let text_of = |records: &[Parcel]| serde_json::to_string(&RedactedLead::rows(records)).unwrap();
        let (one, other) = (record("16012160010000", 1_234_567), record("16012160990000", 1_234_568));
        let text = text_of(&[one.clone(), other.clone()]);
        assert_eq!(text, text_of(&[other, one.clone()]));
        let row = serde_json::to_value(RedactedLead::new(&one)).unwrap();
        let fields: BTreeSet<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = ["amountFrom", "class", "county", "issuedYear", "jobCode", "pin", "status", "township"];
        assert_eq!(fields, BTreeSet::from(expected));
        for hidden in ["16012160", "123456", "2026-03"] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }
}

//! Projects: the permits for construction on a parcel, one record for each permit. What depends on the day, whether a project is in its window or past it, is not
//! in the record: readers compute it.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use schemas::views::records::Place;

use super::counts::COUNTS;

/// The name of the rule by which projects in their window are found, with its version.
pub const WINDOW_RULE: &str = "construction-window/1";
/// The name of the rule by which stalled projects are found, with its version.
pub const STALLED_RULE: &str = "stalled/1";
/// The least amount of projects in the lists of large ones, in dollars.
pub const LARGE_AMOUNT: i64 = 250_000;
/// The amounts that redacted rows tell apart, in dollars.
const SHOWN_AMOUNTS: [i64; 5] = [10_000_000, 1_000_000, LARGE_AMOUNT, 50_000, 0];

/// A permit for construction on a parcel, from what the assessor and the city published about it. `""` and null mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "ParcelPermit")]
pub struct Permit {
    /// The number of the permit at the city or village, or at the assessor.
    pub number: String,
    /// The streams that published it.
    pub streams: Vec<String>,
    /// The status, as the assessor published it; without the assessor as the city did.
    pub status: String,
    /// The status, as the city published it.
    pub city_status: String,
    /// Whether it is closed: the assessor says `CLOSED`, or the city that it is complete, cancelled or revoked.
    pub closed: bool,
    /// Whether the work changes the assessment: as the assessor says, and without the assessor if the city calls it new construction.
    pub assessable: bool,
    /// Whether it is new construction or a major improvement, by its codes or the type of the city.
    pub major: bool,
    /// The day of issue, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub issued: String,
    /// The reported cost in dollars.
    pub amount: Option<i64>,
    /// The job code by which the length of the window is learned: `COMMERCIAL PERMIT: NEW BUILDING`.
    pub job_code: String,
    /// What is to be done, without telephone numbers and e-mail addresses. Of words that are not usual in permits, such as names, the initials are shown.
    pub description: String,
    /// The city or village that issued it.
    pub municipality: String,
    /// On how many parcels the publisher has the permit, if it names several.
    pub parcels: Option<i64>,
    /// The assessed value of the building around the day of issue and now.
    pub building: Building,
    /// What else to know about the record.
    pub remarks: Vec<String>,
    /// Whether it is no longer published, or so many newer permits of the parcel are that it is no longer kept.
    pub withdrawn: bool,
}

/// The assessed value of the building of a parcel, in dollars.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "PermitBuilding")]
pub struct Building {
    /// The year of assessment that later ones are compared with: that of the issue, or the next one that is known.
    pub year: Option<i64>,
    /// The value of that year.
    pub value: Option<i64>,
    /// The latest year of assessment with a value.
    pub latest_year: Option<i64>,
    /// The value of that year.
    pub latest_value: Option<i64>,
    /// The first later year with a higher value; null if there is none.
    pub risen_in: Option<i64>,
}

/// A permit as callers without a paid key see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedactedPermit {
    /// The status, as published.
    pub status: String,
    /// The job code.
    pub job_code: String,
    /// The year of issue.
    pub issued_year: Option<i64>,
    /// The amount is at least this: 0, 50,000, 250,000, 1 million or 10 million dollars; null if it is unknown.
    pub amount_from: Option<i64>,
}

/// How long projects of a job code take, from cases that are finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Median {
    /// The median of the months from the issue to the first rise of the value of the building.
    pub months: i64,
    /// How many cases there were when the median last changed.
    pub cases: i64,
}

/// The name of the medians of a county: a map from a job code to a [`Median`], as JSON.
#[must_use]
pub fn medians_name(county: &str) -> String {
    format!("{COUNTS}months/{county}")
}

/// The id of the record of a permit.
#[must_use]
pub fn permit_id(county: &str, pin: &str, number: &str) -> String {
    format!("{county}/{pin}/permit/{number}")
}

/// The name of the list of projects that can be in their window, the latest issue first.
#[must_use]
pub fn window_list(county: &str, township: Option<&str>) -> String {
    scoped("permit", county, township)
}

/// The name of the list of projects that can be stalled, the earliest issue first; of all, or of the large ones.
#[must_use]
pub fn stalled_list(county: &str, township: Option<&str>, is_large: bool) -> String {
    scoped(if is_large { "stalled-large" } else { "stalled" }, county, township)
}

fn scoped(name: &str, county: &str, township: Option<&str>) -> String {
    let township = township.map(|code| format!("/{code}")).unwrap_or_default();
    format!("{name}/{county}{township}")
}

impl Permit {
    /// Whether it can be stalled: not closed, and no sign that the work is finished.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.assessable && !self.closed && !self.withdrawn && self.building.risen_in.is_none()
    }

    /// The day of issue.
    #[must_use]
    pub fn issued_on(&self) -> Option<Date> {
        self.issued.parse().ok()
    }

    /// The places of the record of a permit.
    pub(super) fn places(&self, county: &str, township_code: &str) -> Vec<Place> {
        if !self.is_unfinished() {
            return Vec::new();
        }
        let township = Some(township_code).filter(|code| !code.is_empty());
        let scopes = [None].into_iter().chain(township.map(Some));
        let is_large = self.amount.is_some_and(|amount| amount >= LARGE_AMOUNT);
        let places = scopes.flat_map(|township| {
            let window = self.major.then(|| Place::newest_first(window_list(county, township), &self.issued));
            let large = is_large.then(|| Place::soonest_first(stalled_list(county, township, true), &self.issued));
            [window, large, Some(Place::soonest_first(stalled_list(county, township, false), &self.issued))]
        });
        places.flatten().flatten().collect()
    }

    /// The permit as callers without a paid key see it.
    #[must_use]
    pub fn redacted(&self) -> RedactedPermit {
        RedactedPermit {
            status: self.status.clone(),
            job_code: self.job_code.clone(),
            issued_year: self.issued_on().map(|day| i64::from(day.year())),
            amount_from: self.amount.and_then(|amount| SHOWN_AMOUNTS.into_iter().find(|least| amount >= *least)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(change: impl FnOnce(&mut Permit)) -> Vec<String> {
        let mut permit = Permit { issued: "2026-03-02".into(), amount: Some(300_000), assessable: true, major: true, ..Permit::default() };
        change(&mut permit);
        permit.places("cook-il", "77").into_iter().map(|place| place.list).collect()
    }

    /// Proves which lists a project is in, and that one that is closed, finished, withdrawn, without a day or not assessable is in none.
    #[test]
    fn lists() {
        let all = record(|_| ());
        assert_eq!(
            all,
            [
                "permit/cook-il",
                "stalled-large/cook-il",
                "stalled/cook-il",
                "permit/cook-il/77",
                "stalled-large/cook-il/77",
                "stalled/cook-il/77"
            ]
        );
        assert_eq!(
            record(|permit| permit.major = false),
            ["stalled-large/cook-il", "stalled/cook-il", "stalled-large/cook-il/77", "stalled/cook-il/77"]
        );
        assert_eq!(record(|permit| permit.amount = None), ["permit/cook-il", "stalled/cook-il", "permit/cook-il/77", "stalled/cook-il/77"]);
        for change in [
            |permit: &mut Permit| permit.closed = true,
            |permit: &mut Permit| permit.assessable = false,
            |permit: &mut Permit| permit.withdrawn = true,
            |permit: &mut Permit| permit.building.risen_in = Some(2026),
            |permit: &mut Permit| permit.issued = String::new(),
        ] {
            assert_eq!(record(change), Vec::<String>::new());
        }
    }

    /// Proves that a redacted permit has the year of its issue and the size of its amount, and nothing by which it can be found.
    #[test]
    fn redacted_permits() {
        let shown = |amount| Permit { amount, issued: "2026-03-02".into(), number: "100987654".into(), ..Permit::default() }.redacted();
        let amounts =
            [Some(999_999), Some(250_000), Some(249_999), Some(12), Some(25_000_000), None].map(|amount| shown(amount).amount_from);
        assert_eq!(amounts, [Some(250_000), Some(250_000), Some(50_000), Some(0), Some(10_000_000), None]);
        let text = serde_json::to_string(&shown(Some(1_234_567))).unwrap();
        assert!(text.contains("2026") && !text.contains("2026-03") && !text.contains("1234567") && !text.contains("100987654"), "{text}");
    }
}

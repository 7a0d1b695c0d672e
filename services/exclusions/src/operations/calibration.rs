//! How often contracts of each score were lost: those that ended 12 to 36 months ago, by the score that they had 180 days before their end.

use crate::record::TABLES;
use crate::record::outcomes::{BANDS, Counts, FLIP, KEPT, cell, term};
use feed::position::Position;
use futures_util::future::try_join_all;
use jiff::ToSpan;
use jiff::civil::Date;
use operation::problem::Problem;
use reads::last_entry::last_entry;
use schemars::JsonSchema;
use schemas::views::records::month_number;
use serde::Serialize;

/// How many months ago the contracts ended, at least and at most.
const MONTHS_AGO: (i64, i64) = (12, 36);
/// Why there are no figures.
const UNCALIBRATED: &str = "not calibrated, because the history is too short: of the contracts that ended in these months, none was recorded here 180 days \
    before its end and followed by an award that shows what became of it";

/// How often contracts of each score were lost. What became of a contract is known if an award of the same office, industry and service, and of about the
/// same size, was signed at most 180 days before or after its end: to the same recipient or parent it is kept, else lost.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecompeteCalibration")]
pub struct Calibration {
    /// Why there are no figures; only present if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// The first day of the ends: whole months, 12 to 36 months ago.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub from: String,
    /// The last day of the ends.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub to: String,
    /// The number of contracts, of all industries.
    pub contracts: i64,
    /// How many of them were lost.
    pub flips: i64,
    /// The share of contracts that were lost, with three decimals; null without contracts.
    pub base_rate: Option<f64>,
    /// The contracts by score, the lowest score first.
    pub bands: Vec<Band>,
}

/// The contracts of a band of scores.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecompeteBand")]
pub struct Band {
    /// The first score.
    pub score_from: i32,
    /// The last score.
    pub score_to: i32,
    /// The number of contracts.
    pub contracts: i64,
    /// How many of them were lost.
    pub flips: i64,
    /// The share of contracts that were lost, with three decimals; null without contracts.
    pub rate: Option<f64>,
}

/// A share with three decimals; `None` of nothing.
#[expect(clippy::cast_precision_loss, reason = "counts of contracts are far below 2^53")]
fn share(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| ((part as f64 / whole as f64) * 1_000.0).round() / 1_000.0)
}

/// The first days of the whole months that ended 12 to 36 months before a day.
fn months(today: Date) -> Vec<Date> {
    let (newest, oldest) = (today.saturating_sub(MONTHS_AGO.0.months()), today.saturating_sub(MONTHS_AGO.1.months()));
    let first = oldest.first_of_month();
    first.series(1.month()).filter(|month| *month >= oldest).take_while(|month| month.last_of_month() <= newest).collect()
}

impl Calibration {
    fn of(months: &[Date], counts: &[Counts]) -> Self {
        let count = |score: i32, outcome: &str| counts.iter().filter_map(|month| month.get(&cell(score, outcome))).sum::<i64>();
        let band = |(score_from, score_to): (i32, i32)| {
            let flips = count(score_from, FLIP);
            let contracts = flips + count(score_from, KEPT);
            Band { score_from, score_to, contracts, flips, rate: share(flips, contracts) }
        };
        let bands: Vec<Band> = BANDS.into_iter().map(band).collect();
        let sum = |number: fn(&Band) -> i64| bands.iter().map(number).sum::<i64>();
        let (contracts, flips) = (sum(|band| band.contracts), sum(|band| band.flips));
        Self {
            note: (contracts == 0).then_some(UNCALIBRATED),
            from: months.first().map(Date::to_string).unwrap_or_default(),
            to: months.last().map(|month| month.last_of_month().to_string()).unwrap_or_default(),
            contracts,
            flips,
            base_rate: share(flips, contracts),
            bands,
        }
    }

    /// Reads the counts of a position.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn read(at: &Position) -> Result<Self, Problem> {
        let (months, term) = (months(at.today()), term());
        let counts = try_join_all(months.iter().map(|month| last_entry::<Counts>(at, TABLES.terms, &term, month_number(*month)))).await?;
        let counts: Vec<Counts> = counts.into_iter().flatten().collect();
        Ok(Self::of(&months, &counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which months are whole and ended 12 to 36 months ago.
    #[test]
    fn months_of_a_day() {
        let months_on = |day: &str| {
            let months = months(day.parse().unwrap());
            (months.len(), months[0].to_string(), months.last().unwrap().to_string())
        };
        assert_eq!(months_on("2026-11-20"), (23, "2023-12-01".to_owned(), "2025-10-01".to_owned()));
        assert_eq!(months_on("2026-11-30"), (24, "2023-12-01".to_owned(), "2025-11-01".to_owned()));
        assert_eq!(months_on("2026-12-01"), (24, "2023-12-01".to_owned(), "2025-11-01".to_owned()));
    }

    /// Proves the sums and shares of the bands, and that a note says so where there are no figures.
    #[test]
    fn figures() {
        let months = months("2026-11-20".parse().unwrap());
        let counts =
            |cells: &[(i32, &str, i64)]| cells.iter().map(|(score, outcome, count)| (cell(*score, outcome), *count)).collect::<Counts>();
        let all = [counts(&[(0, KEPT, 5), (25, KEPT, 2), (25, FLIP, 1)]), counts(&[(0, KEPT, 3), (99, FLIP, 1)])];
        let shown = Calibration::of(&months, &all);
        assert_eq!((shown.contracts, shown.flips, shown.base_rate, shown.note), (12, 2, Some(0.167), None));
        let bands: Vec<(i32, i64, i64, Option<f64>)> =
            shown.bands.iter().map(|band| (band.score_to, band.contracts, band.flips, band.rate)).collect();
        let expected = [(19, 8, 0, Some(0.0)), (39, 3, 1, Some(0.333)), (59, 0, 0, None), (79, 0, 0, None), (100, 1, 1, Some(1.0))];
        assert_eq!(bands, expected);
        assert_eq!((shown.from.as_str(), shown.to.as_str()), ("2023-12-01", "2025-10-31"));
        let none = Calibration::of(&months, &[]);
        assert_eq!((none.note, none.base_rate, none.bands.len()), (Some(UNCALIBRATED), None, 5));
    }
}

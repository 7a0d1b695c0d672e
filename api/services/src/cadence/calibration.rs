//! `GET /v1/calibration`: how well past forecasts fitted. Every forecast is made from what was known before the restock that it is scored by.

use operation::problem::Problem;
use operation::{Definition, Surface};
use schemars::JsonSchema;
use schemas::calibration::{Interval, Tally};
use schemas::error_code::ErrorCode;
use schemas::forecast::{LogT, METHOD, median};
use schemas::views::cadence::{DAY_MS, gaps};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::catalog::{Catalog, Entry};
use super::filter::Filter;
use super::followed::Cadence;
use super::niches::{Known, known};
use super::prediction::{Basis, Confidence, label_of, missing_share};
use super::report::Report;
use crate::common::number::Number;
use crate::common::read::{Read, Reader};
use feed::position::day_text;

/// From so many gaps on a forecast is scored.
const GAPS_MIN: usize = 4;
/// The ends of the naive window, in medians.
const NAIVE: (f64, f64) = (0.5, 1.5);

/// Scores the forecasts for all items of a niche.
#[must_use]
fn score(catalog: &Catalog) -> Report {
    let mut report = Report::default();
    for entry in catalog.entries.values() {
        score_item(&mut report, catalog, entry);
    }
    report
}

fn score_item(report: &mut Report, catalog: &Catalog, entry: &Entry) {
    let store = catalog.store(&entry.store);
    for (at, event) in entry.events.iter().enumerate().skip(GAPS_MIN + 1) {
        let known = entry.events.get(..at).unwrap_or_default();
        let gaps = gaps(known);
        let poll_gap_ms = store.poll_gap_ms(*event);
        let basis = Basis {
            events: known,
            first_seen_ms: entry.first_seen_ms,
            last_poll_ms: store.last_complete_before(*event).unwrap_or(entry.first_seen_ms),
            poll_gap_ms,
            missing: missing_share(&store, entry.first_seen_ms, *event),
            stats: catalog.stats.at(*event),
            now_ms: *event,
        };
        let (Some(next), Some(middle), Some(last)) =
            (LogT::new(&gaps, basis.stats.spread(), basis.stats.correction()), median(&gaps), known.last())
        else {
            continue;
        };
        let padding = poll_gap_ms as f64 / DAY_MS as f64 / 2.0;
        let forecast = Interval { low: next.low() - padding, centre: next.centre(), high: next.high() + padding };
        let naive = Interval { low: NAIVE.0 * middle - padding, centre: middle, high: NAIVE.1 * middle + padding };
        let gap = (event - last) as f64 / DAY_MS as f64;
        report.tallies.add(label_of(&basis), &forecast, &naive, gap, middle);
        report.span = Some(report.span.map_or((*event, *event), |(from, to)| (from.min(*event), to.max(*event))));
    }
}

/// Arguments of `calibration`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// How well past forecasts fitted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// The number of niches.
    pub count: usize,
    /// The method that is scored.
    pub method: &'static str,
    /// The niches, by key.
    pub niches: Vec<OfNiche>,
    /// The last day for which every store has been polled; empty before the first complete run.
    pub through_date: String,
    /// The number of complete runs.
    pub snapshot_count: u64,
}

/// The forecasts of one niche.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfNiche {
    /// The key of the niche.
    pub niche: String,
    /// Its label.
    pub label: String,
    /// The day of the first restock that a forecast was scored by, YYYY-MM-DD; empty if there is none.
    pub from: String,
    /// The day of the last one.
    pub to: String,
    /// The spread of similar items that forecasts use now.
    pub spread: Number,
    /// The correction that windows get now: 1 for none.
    pub correction: Number,
    /// All forecasts.
    #[serde(flatten)]
    pub scores: Scores,
    /// The forecasts by confidence, the surest last.
    pub labels: Vec<OfLabel>,
}

/// The forecasts of one confidence.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfLabel {
    /// The confidence.
    pub confidence: Confidence,
    /// The forecasts.
    #[serde(flatten)]
    pub scores: Scores,
}

/// The scores of forecasts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scores {
    /// The number of forecasts.
    pub forecasts: u64,
    /// The share of windows that held the next restock; null without forecasts. 0.8 is intended.
    pub coverage: Option<Number>,
    /// The mean pinball loss of the quantiles 0.1, 0.5 and 0.9 over the median gap, lower is better; null without forecasts.
    pub pinball: Option<Number>,
    /// The same of the window from half the median gap to one and a half.
    pub naive_pinball: Option<Number>,
}

impl From<&Tally> for Scores {
    fn from(tally: &Tally) -> Self {
        Self {
            forecasts: tally.forecasts,
            coverage: tally.coverage().map(|value| Number::rounded(value, 4)),
            pinball: tally.mean_pinball().map(|value| Number::rounded(value, 4)),
            naive_pinball: tally.mean_naive_pinball().map(|value| Number::rounded(value, 4)),
        }
    }
}

impl Read for Arguments {
    type Service = Cadence;
    type Answer = Calibration;

    fn definition() -> Definition {
        Definition {
            name: "calibration",
            path: "/v1/calibration",
            summary: "How well past forecasts fitted, by niche and confidence.",
            description: "Every observed restock from an item's sixth on is compared with the forecast that was possible before it. INSUFFICIENT \
                counts forecasts that are not given to callers.",
            surface: Surface::Route,
            list: "niches",
            errors: &[ErrorCode::AsOfInvalid],
            example: json!({}),
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Cadence>) -> Result<Calibration, Problem> {
        let mut niches = Vec::new();
        let now_ms = reader.at.now.as_millisecond();
        for (niche, Known { label, .. }) in known(reader.context(), &reader.at).await? {
            let catalog = Catalog::of(reader.context(), &reader.at, &niche).await?;
            let scored = std::sync::Arc::clone(&catalog);
            // Thousands of items take long and must not block other tasks.
            let report = tokio::task::spawn_blocking(move || scored.report.get_or_init(|| score(&scored)).clone()).await;
            let report = report.map_err(|error| {
                tracing::error!(%error, "scoring forecasts panicked");
                Problem::new(ErrorCode::Internal, "the forecasts could not be scored")
            })?;
            let stats = catalog.stats.at(now_ms);
            let day = |at: Option<i64>| at.map_or_else(String::new, day_text);
            let of_label = |confidence: &Confidence| {
                let tally = report.tallies.by_label.get(confidence)?;
                Some(OfLabel { confidence: *confidence, scores: tally.into() })
            };
            niches.push(OfNiche {
                niche,
                label,
                from: day(report.span.map(|span| span.0)),
                to: day(report.span.map(|span| span.1)),
                spread: Number::rounded(stats.spread(), 4),
                correction: Number::rounded(stats.correction(), 4),
                scores: Scores::from(&report.tallies.total()),
                labels: Confidence::ALL.iter().filter_map(of_label).collect(),
            });
        }
        let standing = reader.completeness().await?;
        Ok(Calibration {
            count: niches.len(),
            method: METHOD,
            niches,
            through_date: standing.through_date,
            snapshot_count: standing.snapshot_count,
        })
    }
}

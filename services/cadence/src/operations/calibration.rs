//! `GET /v1/calibration`: how well past forecasts fitted. Every forecast is made from what was known before the restock that it is scored by.

use std::ops::RangeInclusive;

use crate::forecast::{LogT, METHOD, median};
use crate::record::{DAY_MS, DayStats, gaps};
use crate::scores::{Interval, Tally};
use operation::problem::Problem;
use operation::{Definition, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::catalog::{Catalog, KnownItem};
use super::filter::Filter;
use super::niches::{KnownNiche, known};
use super::polled_through::PolledThrough;
use super::prediction::{Basis, Confidence, label_of, missing_share};
use super::report::Report;
use super::watchable_feed::Cadence;
use feed::position::day_text;
use reads::number::Number;
use reads::read::{Read, Reader};

/// From so many gaps on a forecast is scored.
const GAPS_MIN: usize = 4;
/// The ends of the naive window, in medians.
const NAIVE: (f64, f64) = (0.5, 1.5);

/// The first and the last day of the forecasts that are scored as they were given, YYYY-MM-DD; empty without forecasts.
pub(crate) fn shown_days(stats: &DayStats) -> (String, String) {
    let day = |day: i64| day_text(day * DAY_MS);
    stats.given_days().map_or_else(Default::default, |(from, to)| (day(from), day(to)))
}

/// Scores the forecasts for all items of a niche that are scored as they were given.
#[must_use]
fn score(catalog: &Catalog, stats: &DayStats) -> Report {
    let mut report = Report { day: stats.day, ..Report::default() };
    let Some((from, to)) = stats.given_days() else { return report };
    for entry in catalog.items.entries.values() {
        score_item(&mut report, catalog, entry, &(from..=to));
    }
    report
}

fn score_item(report: &mut Report, catalog: &Catalog, entry: &KnownItem, days: &RangeInclusive<i64>) {
    let store = catalog.store(&entry.store);
    for (at, event) in entry.events.iter().enumerate().skip(GAPS_MIN + 1) {
        if !days.contains(&event.div_euclid(DAY_MS)) {
            continue;
        }
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
    /// How completely the stores have been polled.
    #[serde(flatten)]
    pub polled: PolledThrough,
}

/// The forecasts of one niche.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfNiche {
    /// The key of the niche.
    pub niche: String,
    /// The name of the niche for people.
    pub label: String,
    /// The first day of the restocks that forecasts are scored by, YYYY-MM-DD; empty if there is none. Once windows of the niche are corrected, the first
    /// day on which they were.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub from: String,
    /// The last day of the restocks that forecasts are scored by, YYYY-MM-DD; empty if there is none.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub to: String,
    /// The spread of similar items that forecasts use now.
    pub spread: Number,
    /// The correction that windows get now: 1 for none.
    pub correction: Number,
    /// All forecasts, as they were recorded with the restocks.
    #[serde(flatten)]
    pub scores: Scores,
    /// The forecasts for items that are at their stores now, by confidence, the surest last.
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
    /// The mean pinball loss of the window from half the median gap to one and a half; null without forecasts.
    pub naive_pinball: Option<Number>,
}

impl Scores {
    /// The scores of a niche: number and coverage as they were recorded with the restocks, the rest of the items that are known.
    fn of_niche(stats: &DayStats, tally: &Tally) -> Self {
        let forecasts = u64::try_from(stats.given).unwrap_or_default();
        Self { forecasts, coverage: stats.coverage().map(|value| Number::rounded(value, 4)), ..Self::from(tally) }
    }
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
            description: "Every restock of the last 90 days, from an item's sixth on, is compared with the window that was given before it: with the \
                correction of its day, and from the first corrected day on. Predictions show the same figures. INSUFFICIENT counts forecasts that are not \
                given to callers.",
            surface: Surface::Route,
            list: "niches",
            example: json!({}),
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Cadence>) -> Result<Calibration, Problem> {
        let mut niches = Vec::new();
        let now_ms = reader.at.now.as_millisecond();
        for (niche, KnownNiche { label, .. }) in known(reader.context(), &reader.at).await? {
            let catalog = Catalog::of(reader.context(), &reader.at, &niche).await?;
            let stats = catalog.stats.at(now_ms);
            let scored = std::sync::Arc::clone(&catalog);
            // Thousands of items take long and must not block other tasks.
            let report = tokio::task::spawn_blocking(move || {
                let known = scored.report.get_or_init(|| score(&scored, &stats));
                if known.day == stats.day { known.clone() } else { score(&scored, &stats) }
            });
            let report = report.await;
            let report = report.map_err(|error| {
                tracing::error!(%error, "scoring forecasts panicked");
                Problem::new(ErrorCode::Internal, "the forecasts could not be scored")
            })?;
            let (from, to) = shown_days(&stats);
            let of_label = |confidence: &Confidence| {
                let tally = report.tallies.by_label.get(confidence)?;
                Some(OfLabel { confidence: *confidence, scores: tally.into() })
            };
            niches.push(OfNiche {
                niche,
                label,
                from,
                to,
                spread: Number::rounded(stats.spread(), 4),
                correction: Number::rounded(stats.correction(), 4),
                scores: Scores::of_niche(&stats, &report.tallies.total()),
                labels: Confidence::ALL.iter().filter_map(of_label).collect(),
            });
        }
        Ok(Calibration { count: niches.len(), method: METHOD, niches, polled: PolledThrough::read(reader).await? })
    }
}

//! Scores the forecast `log-t/1` and simpler ones on series of gaps, walking forward, and prints a table. Reads one JSON object per line,
//! `{"kind": "weekly", "gaps": [7.0, 6.5, …]}`, gaps in days of a poll a day. Fails if the coverage is not between 0.75 and 0.85, or the pinball
//! loss is more than 0.92 of that of the naive window. `ops/checks/cadence-yardstick` makes the series.

#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, stdin};
use std::process::ExitCode;

use cadence::forecast::{LogT, log_spread, median, newest};
use cadence::scores::{Interval, Tallies};
use serde::Deserialize;

/// From so many gaps on the next one is forecast.
const GAPS_MIN: usize = 4;
/// Half the gap between polls, in days.
const PADDING: f64 = 0.5;
/// The factor of the standard normal distribution for its quantiles 0.1 and 0.9.
const NORMAL_90: f64 = 1.2816;

#[derive(Deserialize)]
struct Series {
    kind: String,
    gaps: Vec<f64>,
}

/// A forecast of the next gap from those before it: the quantiles 0.1, 0.5 and 0.9.
type Method = Box<dyn Fn(&[f64]) -> Option<Interval>>;

fn quantile(gaps: &[f64], share: f64) -> f64 {
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

fn log_t(gaps: &[f64], similar: f64) -> Option<Interval> {
    LogT::new(gaps, similar, 1.0).map(|next| Interval { low: next.low(), centre: next.centre(), high: next.high() })
}

fn naive(gaps: &[f64]) -> Option<Interval> {
    median(gaps).map(|middle| Interval { low: 0.5 * middle, centre: middle, high: 1.5 * middle })
}

fn methods(similar: f64) -> Vec<(&'static str, Method)> {
    vec![
        ("naive", Box::new(naive)),
        (
            "quartiles",
            Box::new(|gaps| Some(Interval { low: quantile(gaps, 0.25), centre: quantile(gaps, 0.5), high: quantile(gaps, 0.75) })),
        ),
        (
            "Gaussian",
            Box::new(|gaps| {
                let (mean, deviation) = mean_and_deviation(gaps);
                Some(Interval { low: mean - NORMAL_90 * deviation, centre: mean, high: mean + NORMAL_90 * deviation })
            }),
        ),
        ("log-t/1", Box::new(move |gaps| log_t(gaps, similar))),
    ]
}

/// Scores a method by kind of series.
fn score(all: &[Series], method: &Method) -> Tallies<String> {
    let mut tallies = Tallies::default();
    let padded = |interval: Interval| Interval { low: interval.low - PADDING, high: interval.high + PADDING, ..interval };
    for series in all {
        let Some(scale) = median(&series.gaps) else { continue };
        for at in GAPS_MIN..series.gaps.len() {
            let known = &series.gaps[..at];
            if let (Some(forecast), Some(naive)) = (method(known), naive(known)) {
                tallies.add(series.kind.clone(), &padded(forecast), &padded(naive), series.gaps[at], scale);
            }
        }
    }
    tallies
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let all = stdin().lock().lines().map(|line| Ok(serde_json::from_str::<Series>(&line?)?)).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    // The spread of similar items is known from the first half of the series.
    let spreads: Vec<f64> = all.iter().filter_map(|series| log_spread(newest(&series.gaps[..series.gaps.len() / 2]))).collect();
    let similar = median(&spreads).ok_or("no series has enough gaps")?;
    let mut kinds: Vec<&str> = all.iter().map(|series| series.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let names = kinds.iter().map(|kind| format!("{kind:>8}")).collect::<Vec<_>>().join(" ");
    println!("{} series, spread of similar items {similar:.3}", all.len());
    println!("{:10} {:>9} {:>8} {:>8}   coverage by kind: {names}", "method", "forecasts", "coverage", "pinball");
    let mut results = BTreeMap::new();
    for (name, method) in methods(similar) {
        let tallies = score(&all, &method);
        let total = tallies.total();
        let (coverage, pinball) = (total.coverage().unwrap_or_default(), total.mean_pinball().unwrap_or_default());
        let by_kind = kinds.iter().map(|kind| tallies.by_label.get(*kind).and_then(|tally| tally.coverage()).unwrap_or_default());
        let by_kind = by_kind.map(|coverage| format!("{coverage:8.3}")).collect::<Vec<_>>().join(" ");
        println!("{name:10} {:9} {coverage:8.3} {pinball:8.4}                     {by_kind}", total.forecasts);
        results.insert(name, (coverage, pinball, tallies));
    }
    let (Some((coverage, pinball, tallies)), Some((_, naive, _))) = (results.get("log-t/1"), results.get("naive")) else {
        return Err("a method is missing".into());
    };
    if let Some(regime) = tallies.by_label.get("regime") {
        println!("change of regime alone: coverage {:.3} of {} forecasts", regime.coverage().unwrap_or_default(), regime.forecasts);
    }
    let ratio = pinball / naive;
    println!("log-t/1: coverage {coverage:.3} (0.75 to 0.85), pinball {ratio:.3} of the naive window (at most 0.92)");
    let passes = (0.75..=0.85).contains(coverage) && ratio <= 0.92;
    Ok(if passes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

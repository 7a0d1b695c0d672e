//! All figures of a run: the table of ratios with their targets that ends it, a file of JSON, and the comparison of two such files.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Failure;

/// A figure that was printed.
pub(crate) struct Figure {
    /// What it measures.
    pub(crate) name: String,
    /// The figure as it was printed: a number, or several with slashes.
    pub(crate) value: String,
    /// The target of a ratio as it was printed, and whether it was met.
    pub(crate) target: Option<(String, bool)>,
}

/// The figures of this run, each with its benchmark. The benchmarks of a process run one after another.
static FIGURES: Mutex<Vec<(String, Figure)>> = Mutex::new(Vec::new());
/// The benchmark that runs.
static BENCHMARK: Mutex<String> = Mutex::new(String::new());

/// Begins a benchmark; its name is the heading up to the colon.
pub(crate) fn begin(heading: &str) {
    let name = heading.split(':').next().unwrap_or_default().to_owned();
    *BENCHMARK.lock().unwrap_or_else(PoisonError::into_inner) = name;
}

/// Adds a figure to the benchmark that runs.
pub(crate) fn add(figure: Figure) {
    let benchmark = BENCHMARK.lock().unwrap_or_else(PoisonError::into_inner).clone();
    FIGURES.lock().unwrap_or_else(PoisonError::into_inner).push((benchmark, figure));
}

/// The word for a target.
pub(crate) fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "NOT MET" }
}

/// The lines of a table of all ratios of the run.
pub(crate) fn table() -> Vec<String> {
    let figures = FIGURES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut lines = vec![format!("{:<12} {:<50} {:>9}  {:<10} verdict", "benchmark", "ratio", "value", "target")];
    for (benchmark, figure) in figures.iter() {
        if let Some((target, is_met)) = &figure.target {
            let (name, value) = (figure.name.trim(), &figure.value);
            lines.push(format!("{benchmark:<12} {name:<50} {value:>9}  {target:<10} {}", verdict(*is_met)));
        }
    }
    lines
}

/// Writes all figures of the run to a file, as JSON.
pub(crate) fn write(machine: &str, records: u64, file: &Path) -> Result<(), Failure> {
    let figures = FIGURES.lock().unwrap_or_else(PoisonError::into_inner);
    let figures: Vec<Value> = figures.iter().map(|(benchmark, figure)| shown(benchmark, figure)).collect();
    let run = json!({ "machine": machine, "records": records, "figures": figures });
    Ok(std::fs::write(file, serde_json::to_vec_pretty(&run)?)?)
}

fn shown(benchmark: &str, figure: &Figure) -> Value {
    let mut shown = json!({ "benchmark": benchmark, "name": figure.name.trim(), "value": figure.value.trim() });
    if let (Some((target, is_met)), Some(members)) = (&figure.target, shown.as_object_mut()) {
        members.insert("target".to_owned(), json!(target));
        members.insert("isMet".to_owned(), json!(is_met));
    }
    shown
}

/// The lines of a table of the figures that two files have in common, with the change in percent.
pub(crate) fn compare(before: &Path, after: &Path) -> Result<Vec<String>, Failure> {
    let (before, after) = (numbers(before)?, numbers(after)?);
    let earlier: HashMap<&str, f64> = before.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let mut lines = vec![format!("{:<64} {:>12} {:>12} {:>8}", "figure", "before", "after", "change")];
    for (name, after) in &after {
        if let Some(before) = earlier.get(name.as_str()) {
            let change = if *before == 0.0 { 0.0 } else { (after / before - 1.0) * 100.0 };
            lines.push(format!("{name:<64} {before:>12} {after:>12} {change:>+7.1}%"));
        }
    }
    Ok(lines)
}

/// The figures of a file that are single numbers, by benchmark and name.
fn numbers(file: &Path) -> Result<Vec<(String, f64)>, Failure> {
    let run: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let figures = run.get("figures").and_then(Value::as_array).ok_or_else(|| format!("{} has no figures", file.display()))?;
    let text = |figure: &Value, name: &str| figure.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |figure: &Value| {
        let value = text(figure, "value").parse().ok()?;
        Some((format!("{}: {}", text(figure, "benchmark"), text(figure, "name")), value))
    };
    Ok(figures.iter().filter_map(number).collect())
}

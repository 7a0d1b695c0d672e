//! The output of a run, and its readings of the system: load, memory and processor time.

use std::fmt::Display;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::start_time::{STARTED_MS, started_ms};
use crate::summary::{self, Figure};
use crate::{Failure, Settings};

/// Prints a line; a closed standard output is no error.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints a description of the machine, and returns it.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default().trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let text = format!("{cores} cores, {model}; load average {}", read("/proc/loadavg").trim());
    line(&format!("machine: {text}"));
    text
}

/// Prints the heading of a benchmark and the current load.
pub(crate) fn heading(text: &str) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    line(&format!("\n{text} (load {})", load.split(' ').next().unwrap_or_default()));
    summary::begin(text);
}

/// Prints a ratio and its target.
pub(crate) fn ratio(name: &str, value: f64, is_met: bool, target: &str) {
    line(&format!("  {name:<44} {value:>9.3}   target {target}: {}", summary::verdict(is_met)));
    summary::add(Figure { name: name.to_owned(), value: format!("{value:.3}"), target: Some((target.to_owned(), is_met)) });
}

/// Prints a figure.
pub(crate) fn figure(name: &str, value: impl Display) {
    let value = value.to_string();
    line(&format!("  {name:<44} {value:>9}"));
    summary::add(Figure { name: name.to_owned(), value, target: None });
}

/// Returns the median of some values; 0 for none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns a percentile of some values, given as a share; 0 for none.
pub(crate) fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len().max(1));
    values.get(at - 1).copied().unwrap_or_default()
}

/// Prints the median and the 99th percentile of some durations, which are given in seconds and printed in milliseconds.
pub(crate) fn latency(name: &str, seconds: &[f64]) {
    let (p50, p99) = (percentile(seconds.to_vec(), 0.5), percentile(seconds.to_vec(), 0.99));
    figure(&format!("{name}, p50 / p99 ms"), format!("{:.2} / {:.2}", p50 * 1e3, p99 * 1e3));
}

/// Returns the peak memory of a process, in MiB.
pub(crate) fn memory_mib(process: u32) -> Result<f64, Failure> {
    memory_of(process, "VmHWM:")
}

/// Returns the current memory of a process, in MiB.
pub(crate) fn memory_now_mib(process: u32) -> Result<f64, Failure> {
    memory_of(process, "VmRSS:")
}

fn memory_of(process: u32, name: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.ok_or("the process is gone")? / 1024.0)
}

/// The name and the seconds of processor time in a `stat` file of a process or a thread; `None` if it is gone.
fn name_and_processor_s(path: &str) -> Option<(String, f64)> {
    let stat = std::fs::read_to_string(path).ok()?;
    let (name, rest) = (stat.split_once('(')?.1.rsplit_once(')')?.0.to_owned(), stat.rsplit_once(')')?.1);
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some((name, ticks / 100.0))
}

/// Returns the seconds of processor time of a process.
pub(crate) fn processor_of_s(process: u32) -> Result<f64, Failure> {
    Ok(name_and_processor_s(&format!("/proc/{process}/stat")).ok_or("the process is gone")?.1)
}

/// Returns the seconds of processor time of this process, by the names of its threads; threads that have ended count as `ended`.
pub(crate) fn processor_s() -> Value {
    let total = name_and_processor_s("/proc/self/stat").map_or(0.0, |(_, seconds)| seconds);
    let mut by_name: std::collections::BTreeMap<String, f64> = std::collections::BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        if let Some((name, seconds)) = name_and_processor_s(&format!("{}/stat", task.path().display())) {
            *by_name.entry(name).or_default() += seconds;
        }
    }
    let ended = total - by_name.values().sum::<f64>();
    by_name.insert("ended".to_owned(), ended.max(0.0));
    json!({ "total": total, "threads": by_name })
}

/// Starts this program with a hidden command; its output goes to a pipe.
pub(crate) fn spawn(settings: &Settings, command: &str, variables: &[(&str, String)]) -> Result<Child, Failure> {
    let mut child = Command::new(std::env::current_exe()?);
    child.arg(command).arg("--dir").arg(&settings.dir).args(["--records", &settings.records.to_string()]);
    child.args(["--rounds", &settings.rounds.to_string()]).stdout(Stdio::piped()).stdin(Stdio::piped());
    child.env(STARTED_MS, started_ms().to_string());
    child.envs(variables.iter().map(|(name, value)| (*name, value)));
    Ok(child.spawn()?)
}

/// Runs a hidden command to its end; returns the JSON that it printed.
pub(crate) fn run_child(settings: &Settings, command: &str, variables: &[(&str, String)]) -> Result<Value, Failure> {
    let output = spawn(settings, command, variables)?.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{command} ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Returns a number from a child's output.
pub(crate) fn number(value: &Value, name: &str) -> f64 {
    value.get(name).and_then(Value::as_f64).unwrap_or_default()
}

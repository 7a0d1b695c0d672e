//! What the pages show of each service: how many changes it recorded on each day, and how its streams do, from its `health`.

use operation::problem::Problem;
use serde_json::{Value, json};

use crate::chart::DayCount;
use crate::fields::{days_before, today};
use crate::reads::{Reads, SiteService};
use crate::status::with_streams;
use crate::url::Pairs;

/// How many days charts show.
pub(crate) const DAYS: i64 = 30;

/// The state of a service, and its changes of the last days.
pub(crate) struct Pulse {
    /// The answer of `health`.
    pub(crate) health: Value,
    pub(crate) days: Vec<DayCount>,
}

impl Pulse {
    fn with_streams(mut self, streams: Value) -> Self {
        if let Some(health) = self.health.as_object_mut() {
            health.insert("streams".to_owned(), streams);
        }
        self
    }

    /// All changes.
    pub(crate) fn changes(&self) -> u64 {
        self.health["changes"].as_u64().unwrap_or(0)
    }

    /// The current records; `None` if the service does not know how many there are.
    pub(crate) fn records(&self) -> Option<u64> {
        self.health["records"].as_u64()
    }

    /// The changes of today.
    pub(crate) fn today(&self) -> u64 {
        self.days.last().map_or(0, |day| day.changes)
    }

    /// What the chart shows, in words.
    pub(crate) fn summary(&self) -> String {
        let sum: u64 = self.days.iter().map(|day| day.changes).sum();
        format!("{sum} changes in the last {DAYS} days, {} of them today, internal ones included", self.today())
    }
}

/// Reads the state of a service, and its changes of the last days, with one call. `more` are further arguments of `health`.
///
/// # Errors
/// The errors of the operation `health`.
pub(crate) async fn pulse(reads: &dyn Reads, shown: SiteService<'_>, more: Pairs) -> Result<Pulse, Problem> {
    let (service, today) = (shown.service.name, today(reads.now_ms()));
    let past = days_before(today, DAYS).into_iter().filter(|day| *day < today);
    let known = past.map_while(|day| Some(DayCount { day, changes: reads.activity().known(service, day)? }));
    let mut days: Vec<DayCount> = known.collect();
    let wanted = DAYS - i64::try_from(days.len()).unwrap_or(0);
    let mut arguments = vec![("days".to_owned(), wanted.to_string())];
    arguments.extend(more);
    let health = reads.read(service, "health", arguments).await?;
    let count = |item: &Value| Some(DayCount { day: item["day"].as_str()?.parse().ok()?, changes: item["changes"].as_u64()? });
    let counted: Vec<DayCount> = health["changesByDay"].as_array().into_iter().flatten().filter_map(count).collect();
    let mut later = 0;
    for DayCount { day, changes } in counted.iter().rev() {
        // A view that lags may lack changes of a day as long as it has no later one.
        if later > 0 {
            reads.activity().hold(service, *day, *changes);
        }
        later += changes;
    }
    days.extend(counted);
    Ok(Pulse { health, days })
}

/// As [`pulse`], with the streams that the service reads: of each its name, its state and when it was last read completely.
///
/// # Errors
/// The errors of the operation `health`.
pub(crate) async fn pulse_with_streams(reads: &dyn Reads, shown: SiteService<'_>) -> Result<Pulse, Problem> {
    let (service, now_ms) = (shown.service.name, reads.now_ms());
    if let Some(streams) = reads.activity().streams(service, now_ms) {
        return Ok(pulse(reads, shown, Pairs::new()).await?.with_streams(streams));
    }
    let pulse = pulse(reads, shown, with_streams()).await?;
    let all = pulse.health["streams"].as_array().into_iter().flatten();
    let streams: Value =
        all.map(|stream| json!({ "stream": stream["stream"], "state": stream["state"], "lastFinished": stream["lastFinished"] })).collect();
    reads.activity().hold_streams(service, now_ms, streams.clone());
    Ok(pulse.with_streams(streams))
}

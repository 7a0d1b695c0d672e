//! How many changes a service recorded on each day, from its `health`: with `asOf` it says how many there were by the end of a day. A day that has ended
//! does not change any more, so each is asked for once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::ToSpan as _;
use jiff::civil::Date;
use operation::problem::Problem;
use serde_json::Value;

use crate::chart::DayCount;
use crate::fields::{days_before, today};
use crate::{Reads, Shown};

/// How many days charts show.
pub(crate) const DAYS: i64 = 30;
/// The most days that are held, over all services. Above it they are asked for again.
const HELD_MAX: usize = 10_000;

/// What is known of past days: by service and day, how many changes there were by its end.
#[derive(Debug, Default)]
pub struct Activity(Mutex<HashMap<(&'static str, Date), u64>>);

impl Activity {
    fn known(&self, service: &'static str, day: Date) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(service, day)).copied()
    }

    fn hold(&self, service: &'static str, day: Date, changes: u64) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= HELD_MAX {
            held.clear();
        }
        held.insert((service, day), changes);
    }
}

/// The state of a service, and its changes of the last days.
pub(crate) struct Pulse {
    /// The answer of `health`.
    pub(crate) health: Value,
    pub(crate) days: Vec<DayCount>,
}

impl Pulse {
    /// All changes.
    pub(crate) fn changes(&self) -> u64 {
        changes_of(&self.health)
    }

    /// The changes of today.
    pub(crate) fn today(&self) -> u64 {
        self.days.last().map_or(0, |day| day.changes)
    }

    /// What the chart shows, in words.
    pub(crate) fn summary(&self) -> String {
        let sum: u64 = self.days.iter().map(|day| day.changes).sum();
        format!("{sum} changes in the last {DAYS} days, {} of them today", self.today())
    }
}

fn changes_of(health: &Value) -> u64 {
    health["changes"].as_u64().unwrap_or(0)
}

/// Reads the state of a service, and its changes of the last days.
///
/// # Errors
/// Those of `health`.
pub(crate) async fn pulse(reads: &dyn Reads, shown: Shown<'_>) -> Result<Pulse, Problem> {
    let service = shown.service.name;
    let health = reads.read(service, "health", Vec::new()).await?;
    let all = changes_of(&health);
    let last = today(reads.now_ms());
    let mut by_end = Vec::new();
    // From the day before the first, so that each day has a difference.
    for day in days_before(last, DAYS + 1) {
        // After a day by whose end all changes were there, no other can have more.
        let known = if day == last || by_end.last() == Some(&all) { Some(all) } else { reads.activity().known(service, day) };
        let changes = match known {
            Some(changes) => changes,
            None => {
                let then = changes_of(&reads.read(service, "health", vec![("asOf".to_owned(), day.to_string())]).await?);
                // A view that lags may lack changes of the day as long as it has no later one.
                if then < all {
                    reads.activity().hold(service, day, then);
                }
                then
            }
        };
        by_end.push(changes.min(all));
    }
    let first = last.saturating_sub((DAYS - 1).days());
    let days = by_end
        .windows(2)
        .zip(0..)
        .map(|(ends, at)| DayCount { day: first.saturating_add(i64::from(at).days()), changes: ends[1].saturating_sub(ends[0]) });
    let days = days.collect();
    Ok(Pulse { health, days })
}

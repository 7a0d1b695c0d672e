//! What the change of an item means for the statistics of its niche.

use crate::forecast::{LogT, log_spread};
use crate::record::{DAY_MS, Item, NicheStats, gaps};

/// From so many gaps on an item has a spread, and its next restock is scored.
const GAPS_MIN: usize = 4;

/// Updates the spreads and scores of a niche after an item changed. `padding` is half the usual gap between polls of its store, in days.
pub(super) fn rescore(niche: &mut NicheStats, before: Option<&Item>, after: &Item, padding: f64) {
    let events_before = before.map(Item::events).unwrap_or_default();
    let events_after = after.events();
    if events_before == events_after {
        return;
    }
    niche.replace_spread(spread(&events_before), spread(&events_after));
    // A restock that turned out to be a trickle is no outcome of a forecast.
    for gone in events_before.iter().filter(|event| !events_after.contains(event)) {
        if events_after.last().is_none_or(|last| last <= gone)
            && let Some(needed) = needed(niche, &events_before, *gone, padding)
        {
            niche.unscore(*gone, needed);
        }
    }
    let newest_before = events_before.last().copied().unwrap_or(i64::MIN);
    for event in events_after.iter().filter(|event| **event > newest_before && !events_before.contains(event)) {
        if let Some(needed) = needed(niche, &events_after, *event, padding) {
            niche.score(*event, needed);
        }
    }
}

/// The correction under which the forecast before an event would have held it.
fn needed(niche: &NicheStats, events: &[i64], event: i64, padding: f64) -> Option<f64> {
    let known: Vec<i64> = events.iter().copied().filter(|at| *at < event).collect();
    let gap = (event - known.last()?) as f64 / DAY_MS as f64;
    let gaps = gaps(&known);
    if gaps.len() < GAPS_MIN {
        return None;
    }
    Some(LogT::new(&gaps, niche.at(event).spread(), 1.0)?.correction_for(gap, padding))
}

fn spread(events: &[i64]) -> Option<f64> {
    let gaps = gaps(events);
    log_spread(&gaps).filter(|_| gaps.len() >= GAPS_MIN)
}

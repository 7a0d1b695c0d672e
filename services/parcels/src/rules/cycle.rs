//! Cycles: when nearly all parcels of a neighbourhood have the values of a stage, the statistics of its classes are computed and frozen until the next
//! cycle, and its sold parcels are decided again. A township is closed after its neighbourhoods, for classes of which a neighbourhood has too few sales,
//! and for neighbourhoods that do not close.
//!
//! A cycle waits until the sales of its township were read once: without them there would be nothing to compare with. So the topics of values and of
//! sales can be read in any order.

use std::collections::BTreeMap;

use crate::county::County;
use crate::record::{CurrentCycle, STAGES, current_cycle};
use property::ratios::trimmed_stats;
use schemas::clock::day_of;
use schemas::facts::parcels::ParcelFact;

use super::parcel::decide_again;
use super::roll::{Area, Cycle, Frozen, Roll};
use super::state::{ParcelsRules, Township, roll_key, sold_pins, stats_key, township_key};
use fold::records::State;
use fold::undecided::{Undecided, all};

/// Ratios by class.
type Ratios = BTreeMap<String, Vec<i64>>;

/// A cycle of an area that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Closing {
    area: Area,
    cycle: Cycle,
}

impl Closing {
    /// Reads a fact; `None` if its stage is unknown.
    pub(super) fn read(fact: &ParcelFact) -> Option<Self> {
        let stage = STAGES.iter().position(|stage| *stage == fact.stage)?;
        let area = Area { township: fact.township.clone(), neighborhood: fact.neighborhood.clone() };
        Some(Self { area, cycle: Cycle { year: fact.year, stage } })
    }
}

/// Closes a cycle, or lets it wait for the sales of its township.
pub(super) fn close(state: &mut State<'_, ParcelsRules>, closing: Closing, at_ms: i64) -> Result<(), Undecided> {
    let key = township_key(&closing.area.township);
    let mut township: Township = state.source(&key)?.unwrap_or_default();
    if !township.is_sold_read {
        township.waiting.insert(closing.area.neighborhood, closing.cycle);
        return state.remember(&key, Some(&township));
    }
    close_now(state, &township, &closing, at_ms)
}

/// Takes that all sales of a township were read, and closes the cycles that waited for them.
pub(super) fn sales_read(state: &mut State<'_, ParcelsRules>, code: &str, at_ms: i64) -> Result<(), Undecided> {
    let key = township_key(code);
    let mut township: Township = state.source(&key)?.unwrap_or_default();
    if township.is_sold_read {
        return Ok(());
    }
    township.is_sold_read = true;
    let mut waiting = std::mem::take(&mut township.waiting);
    let whole = waiting.remove("");
    let closings = waiting.into_iter().chain(whole.map(|cycle| (String::new(), cycle)));
    for (neighborhood, cycle) in closings {
        let area = Area { township: code.to_owned(), neighborhood };
        close_now(state, &township, &Closing { area, cycle }, at_ms)?;
    }
    state.remember(&key, Some(&township))
}

fn close_now(state: &mut State<'_, ParcelsRules>, township: &Township, closing: &Closing, at_ms: i64) -> Result<(), Undecided> {
    let Closing { area, cycle } = closing;
    let frozen: Frozen = state.source(&stats_key(area))?.unwrap_or_default();
    // An earlier cycle is one that was published late.
    if frozen.cycle >= *cycle {
        return Ok(());
    }
    let pins = match area.neighborhood.is_empty() {
        true => close_township(state, township, closing)?,
        false => close_neighborhood(state, closing)?,
    };
    set_current(state, County::of_township(&area.township).name(), *cycle, at_ms)?;
    all(pins.iter().map(|pin| decide_again(state, pin))).map(drop)
}

/// Adds the ratio of a parcel to those of its class.
fn add_ratio(ratios: &mut Ratios, roll: &Roll, year: i64) {
    if let Some((class, ratio)) = roll.ratio(year) {
        ratios.entry(class.to_owned()).or_default().push(ratio);
    }
}

/// The statistics of an area.
fn frozen(cycle: Cycle, ratios: Ratios) -> Frozen {
    Frozen { cycle, classes: ratios.into_iter().filter_map(|(class, ratios)| Some((class, trimmed_stats(ratios)?))).collect() }
}

/// Freezes the statistics of a neighbourhood. Returns its sold parcels.
fn close_neighborhood(state: &mut State<'_, ParcelsRules>, closing: &Closing) -> Result<Vec<String>, Undecided> {
    let Closing { area, cycle } = closing;
    let pins = sold_pins(state, area)?;
    let mut ratios = Ratios::new();
    for roll in all(pins.iter().map(|pin| state.source::<Roll>(&roll_key(pin))))? {
        add_ratio(&mut ratios, &roll.unwrap_or_default(), cycle.year);
    }
    state.remember(&stats_key(area), Some(&frozen(*cycle, ratios)))?;
    Ok(pins)
}

/// Freezes the statistics of a township from the ratios of all its sold parcels, also of those whose neighbourhood has not closed the cycle. Returns the
/// sold parcels whose record follows from the township: those that have too few peers in their neighbourhood. Each other one was decided when its
/// neighbourhood closed.
///
/// This is one decision, so the rows that it reads and the changes that it makes are in memory together until they are committed. The largest township of Cook
/// County has some 250,000 parcels. If 8 percent of them have a sale that can count, these are 20,000 rows of at most 1.5 KB without permits: 30 MB. A parcel that
/// is decided again adds about 8 KB: its record as stored, before and after, and its change. If no neighbourhood of the township has enough peers, these are 160 MB
/// more. The most that 500,000 sales of five years allow is 26 percent of the parcels: 100 MB and 520 MB.
fn close_township(state: &mut State<'_, ParcelsRules>, township: &Township, closing: &Closing) -> Result<Vec<String>, Undecided> {
    let Closing { area, cycle } = closing;
    let neighborhoods: Vec<Area> = township.neighborhoods.iter().map(|name| Area { neighborhood: name.clone(), ..area.clone() }).collect();
    let (mut ratios, mut pins) = (Ratios::new(), Vec::new());
    all(neighborhoods.iter().map(|own| {
        let (sold, stats) = (sold_pins(state, own), state.source::<Frozen>(&stats_key(own)));
        let (sold, stats) = (sold?, stats?.unwrap_or_default());
        all(sold.iter().map(|pin| {
            let roll: Roll = state.source(&roll_key(pin))?.unwrap_or_default();
            add_ratio(&mut ratios, &roll, cycle.year);
            if !roll.has_near_peers(&stats) {
                pins.push(pin.clone());
            }
            Ok(())
        }))
    }))?;
    state.remember(&stats_key(area), Some(&frozen(*cycle, ratios)))?;
    Ok(pins)
}

/// Sets the current cycle of a county, if this one is later.
fn set_current(state: &mut State<'_, ParcelsRules>, county: &str, cycle: Cycle, at_ms: i64) -> Result<(), Undecided> {
    let (latest_key, key) = (format!("latest/{county}"), current_cycle(county));
    if state.source::<Cycle>(&latest_key)?.is_some_and(|latest| latest >= cycle) {
        return Ok(());
    }
    let since = day_of(at_ms).to_string();
    state.remember(&latest_key, Some(&cycle))?;
    state.remember(&key, Some(&CurrentCycle { cycle: cycle.name(), since }))
}

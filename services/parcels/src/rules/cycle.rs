//! Cycles: when nearly all parcels of a neighbourhood have the values of a stage, the statistics of its classes are computed and frozen until the next
//! cycle, and its sold parcels are decided again. A township is closed after its neighbourhoods, for classes of which a neighbourhood has too few sales,
//! and for neighbourhoods that do not close.
//!
//! Parcels without a sale that can count are decided again after their township closed, a part at a time: the stream ends a township with a fact for each part.
//!
//! A cycle waits until the sales of its township were read once: without them there would be nothing to compare with. So the topics of values and of
//! sales can be read in any order; the facts of the parts of a township follow in both.

use std::collections::BTreeMap;

use crate::county::County;
use crate::record::{CurrentCycle, STAGES, current_cycle};
use property::ratios::trimmed_stats;
use schemas::clock::day_of;
use schemas::facts::parcels::ParcelFact;

use super::parcel::decide_again;
use super::roll::{Area, Cycle, Frozen, Roll};
use super::state::{ParcelsRules, Township, measured_keys, pins_of, roll_key, sold_pins, stats_key, township_key};
use fold::records::{DecisionRow, State};
use fold::undecided::{Undecided, all};

/// Numbers by class.
type ByClass = BTreeMap<String, Vec<i64>>;

/// The ratios of the sold parcels of an area whose sale counts, and the values per square foot of those of them with a floor area.
#[derive(Default)]
struct Peers {
    ratios: ByClass,
    per_sqft: ByClass,
}

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
    let mut township: Township = state.get(&key)?.unwrap_or_default();
    if !township.is_sold_read {
        township.waiting.insert(closing.area.neighborhood, closing.cycle);
        return state.remember(&key, Some(&township));
    }
    close_now(state, &township, &closing, at_ms)
}

/// Takes that all sales of a township were read, and closes the cycles that waited for them.
pub(super) fn sales_read(state: &mut State<'_, ParcelsRules>, code: &str, at_ms: i64) -> Result<(), Undecided> {
    let key = township_key(code);
    let mut township: Township = state.get(&key)?.unwrap_or_default();
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
    let frozen: Frozen = state.get(&stats_key(area))?.unwrap_or_default();
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

impl Peers {
    /// Adds the numbers of a parcel to those of its class.
    fn add(&mut self, roll: &Roll, year: i64) {
        let Some((class, ratio)) = roll.ratio(year) else { return };
        self.ratios.entry(class.to_owned()).or_default().push(ratio);
        if let Some(value) = roll.value_per_sqft(year) {
            self.per_sqft.entry(class.to_owned()).or_default().push(value);
        }
    }

    /// The statistics of the area.
    fn frozen(self, cycle: Cycle) -> Frozen {
        let stats = |numbers: ByClass| numbers.into_iter().filter_map(|(class, numbers)| Some((class, trimmed_stats(numbers)?))).collect();
        Frozen { cycle, classes: stats(self.ratios), per_sqft: stats(self.per_sqft) }
    }
}

/// Freezes the statistics of a neighbourhood. Returns its sold parcels.
fn close_neighborhood(state: &mut State<'_, ParcelsRules>, closing: &Closing) -> Result<Vec<String>, Undecided> {
    let Closing { area, cycle } = closing;
    let pins = sold_pins(state, area)?;
    let mut peers = Peers::default();
    for roll in all(pins.iter().map(|pin| state.get::<Roll>(&roll_key(pin))))? {
        peers.add(&roll.unwrap_or_default(), cycle.year);
    }
    state.remember(&stats_key(area), Some(&peers.frozen(*cycle)))?;
    Ok(pins)
}

/// Freezes the statistics of a township, see [`of_township`]. Returns the sold parcels whose record follows from it.
fn close_township(state: &mut State<'_, ParcelsRules>, township: &Township, closing: &Closing) -> Result<Vec<String>, Undecided> {
    let (peers, pins) = of_township(state, township, closing)?;
    state.remember(&stats_key(&closing.area), Some(&peers.frozen(closing.cycle)))?;
    Ok(pins)
}

/// The numbers of all sold parcels of a township, also of those whose neighbourhood has not closed the cycle; and its sold parcels whose record follows from the
/// township: those that have too few peers in their neighbourhood. Each other one was decided when its neighbourhood closed.
///
/// This is one decision, so the rows that it reads and the changes that it makes are in memory together until they are committed. The largest township of Cook
/// County has some 250,000 parcels. If 8 percent of them have a sale that can count, these are 20,000 rows of at most 1.5 KB without permits: 30 MB. A parcel that
/// is decided again adds about 8 KB: its record as stored, before and after, and its change. If no neighbourhood of the township has enough peers, these are 160 MB
/// more. The most that 500,000 sales of five years allow is 26 percent of the parcels: 100 MB and 520 MB.
fn of_township(state: &mut State<'_, ParcelsRules>, township: &Township, closing: &Closing) -> Result<(Peers, Vec<String>), Undecided> {
    let Closing { area, cycle } = closing;
    let neighborhoods: Vec<Area> = township.neighborhoods.iter().map(|name| Area { neighborhood: name.clone(), ..area.clone() }).collect();
    let (mut peers, mut pins) = (Peers::default(), Vec::new());
    all(neighborhoods.iter().map(|own| {
        let (sold, stats) = (sold_pins(state, own), state.get::<Frozen>(&stats_key(own)));
        let (sold, stats) = (sold?, stats?.unwrap_or_default());
        all(sold.iter().map(|pin| {
            let roll: Roll = state.get(&roll_key(pin))?.unwrap_or_default();
            peers.add(&roll, cycle.year);
            if !roll.has_near_peers(&stats) {
                pins.push(pin.clone());
            }
            Ok(())
        }))
    }))?;
    Ok((peers, pins))
}

/// The rows that a decision about a part of the parcels of a township reads.
pub(super) fn reads_of_part(township: &str, part: Option<i64>) -> Vec<DecisionRow> {
    let stats = stats_key(&Area { township: township.to_owned(), neighborhood: String::new() });
    let measured = part.into_iter().flat_map(|part| measured_keys(township, part));
    std::iter::once(stats).chain(measured).map(DecisionRow::State).collect()
}

/// Decides a part of the parcels of a township again that are compared by their floor area, with what is frozen: nothing changes if the cycle of the part
/// waits for the sales, which have facts of the parts as well, or if a later one closed. Half a million parcels of 175 townships have parts of some 200, and
/// the largest township of about 1,300: 10 MB, see [`of_township`].
pub(super) fn decide_part(
    state: &mut State<'_, ParcelsRules>,
    code: &str,
    part: Option<i64>,
    closing: Option<&Closing>,
) -> Result<(), Undecided> {
    let part = part.ok_or_else(|| Undecided::Poison("a part without its number".to_owned()))?;
    let area = Area { township: code.to_owned(), neighborhood: String::new() };
    let frozen: Frozen = state.get(&stats_key(&area))?.unwrap_or_default();
    if frozen.cycle == Cycle::default() {
        return Ok(());
    }
    let mut pins = pins_of(state, measured_keys(code, part))?;
    // A cycle that closed before floor areas were read gets its medians of values per square foot with the first part that follows it, and keeps the others.
    if let Some(closing) = closing.filter(|closing| part == 0 && closing.cycle == frozen.cycle && frozen.per_sqft.is_empty()) {
        let township: Township = state.get(&township_key(code))?.unwrap_or_default();
        let (peers, sold) = of_township(state, &township, closing)?;
        let Frozen { per_sqft, .. } = peers.frozen(closing.cycle);
        if !per_sqft.is_empty() {
            state.remember(&stats_key(&area), Some(&Frozen { per_sqft, ..frozen }))?;
            pins.extend(sold);
        }
    }
    all(pins.iter().map(|pin| decide_again(state, pin))).map(drop)
}

/// Sets the current cycle of a county, if this one is later.
fn set_current(state: &mut State<'_, ParcelsRules>, county: &str, cycle: Cycle, at_ms: i64) -> Result<(), Undecided> {
    let (latest_key, key) = (format!("latest/{county}"), current_cycle(county));
    if state.get::<Cycle>(&latest_key)?.is_some_and(|latest| latest >= cycle) {
        return Ok(());
    }
    let since = day_of(at_ms).to_string();
    state.remember(&latest_key, Some(&cycle))?;
    state.remember(&key, Some(&CurrentCycle { cycle: cycle.name(), since }))
}

//! What the decision state remembers of parcels, townships and their sold parcels.

use std::collections::{BTreeMap, BTreeSet};

use crate::county::County;
use crate::record::id;
use schemas::facts::parcels::PARTS;
use serde::{Deserialize, Serialize};

use super::roll::{Area, Cycle};
use fold::records::State;
use fold::undecided::{Undecided, all};

/// How many rows the sold parcels of a neighbourhood are spread over.
const SOLD_PARTS: u32 = 16;
/// How many rows the parcels of a township are spread over that are compared by their floor area: a row is written again when a parcel comes into it. Each part
/// of these parcels has as many of the rows.
const MEASURED_ROWS: u32 = 256;

/// The rules of the parcels service.
pub struct ParcelsRules;

/// What is known of a township.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Township {
    /// Whether all of its sales were read once.
    pub(super) is_sold_read: bool,
    /// The neighbourhoods that have, or had, sold parcels.
    pub(super) neighborhoods: BTreeSet<String>,
    /// The cycles that wait for the sales, by neighbourhood; the one of the whole township is under the empty name.
    pub(super) waiting: BTreeMap<String, Cycle>,
}

/// The key of what is known of a parcel.
pub(super) fn roll_key(pin: &str) -> String {
    format!("parcel/{pin}")
}

/// The id of the record of a parcel.
pub(super) fn record_id(pin: &str) -> String {
    id(County::of_pin(pin).name(), pin)
}

/// The key of what is known of a township.
pub(super) fn township_key(township: &str) -> String {
    format!("township/{township}")
}

/// The key of the frozen statistics of a neighbourhood, or of a township.
pub(super) fn stats_key(area: &Area) -> String {
    format!("stats/{}/{}", area.township, area.neighborhood)
}

/// The key of the row with the sold parcels of a neighbourhood that a parcel is in.
pub(super) fn sold_key(area: &Area, pin: &str) -> String {
    sold_part_key(area, spread(pin) % SOLD_PARTS)
}

/// A number that follows from a PIN, by which parcels are spread over rows.
fn spread(pin: &str) -> u32 {
    pin.bytes().fold(0_u32, |sum, byte| (sum * 31 + u32::from(byte)) & 0xffff)
}

fn sold_part_key(area: &Area, part: u32) -> String {
    format!("sold/{}/{}/{part}", area.township, area.neighborhood)
}

/// The key of the row with the parcels of a township that are compared by their floor area, which a parcel is in.
pub(super) fn measured_key(township: &str, pin: &str) -> String {
    measured_row_key(township, spread(pin) % MEASURED_ROWS)
}

fn measured_row_key(township: &str, row: u32) -> String {
    format!("measured/{township}/{row}")
}

/// The keys of the rows of a part of the parcels of a township that are compared by their floor area. There are none of a part that does not exist.
pub(super) fn measured_keys(township: &str, part: i64) -> impl Iterator<Item = String> {
    (0..MEASURED_ROWS).filter(move |row| i64::from(*row) % PARTS == part).map(move |row| measured_row_key(township, row))
}

/// Remembers that a township has a neighbourhood with sold parcels.
pub(super) fn remember_neighborhood(state: &mut State<'_, ParcelsRules>, area: &Area) -> Result<(), Undecided> {
    state.change(&township_key(&area.township), |township: &mut Township| _ = township.neighborhoods.insert(area.neighborhood.clone()))
}

/// The sold parcels of a neighbourhood, by PIN.
pub(super) fn sold_pins(state: &mut State<'_, ParcelsRules>, area: &Area) -> Result<Vec<String>, Undecided> {
    pins_of(state, (0..SOLD_PARTS).map(|part| sold_part_key(area, part)))
}

/// The parcels of some rows, by PIN.
pub(super) fn pins_of(state: &mut State<'_, ParcelsRules>, keys: impl Iterator<Item = String>) -> Result<Vec<String>, Undecided> {
    let rows = all(keys.map(|key| state.get::<Vec<String>>(&key)))?;
    let mut pins: Vec<String> = rows.into_iter().flatten().flatten().collect();
    pins.sort_unstable();
    Ok(pins)
}

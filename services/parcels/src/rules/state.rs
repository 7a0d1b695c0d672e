//! What the decision state remembers of parcels, townships and their sold parcels.

use std::collections::{BTreeMap, BTreeSet};

use crate::county::County;
use crate::record::id;
use serde::{Deserialize, Serialize};

use super::roll::{Area, Cycle};
use fold::records::State;
use fold::undecided::{Undecided, all};

/// How many rows the sold parcels of a neighbourhood are spread over.
const SOLD_PARTS: u32 = 16;

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
    let part = pin.bytes().fold(0_u32, |sum, byte| (sum * 31 + u32::from(byte)) & 0xffff) % SOLD_PARTS;
    sold_part_key(area, part)
}

fn sold_part_key(area: &Area, part: u32) -> String {
    format!("sold/{}/{}/{part}", area.township, area.neighborhood)
}

/// Remembers that a township has a neighbourhood with sold parcels.
pub(super) fn remember_neighborhood(state: &mut State<'_, ParcelsRules>, area: &Area) -> Result<(), Undecided> {
    state.change(&township_key(&area.township), |township: &mut Township| _ = township.neighborhoods.insert(area.neighborhood.clone()))
}

/// The sold parcels of a neighbourhood, by PIN.
pub(super) fn sold_pins(state: &mut State<'_, ParcelsRules>, area: &Area) -> Result<Vec<String>, Undecided> {
    let parts = all((0..SOLD_PARTS).map(|part| state.source::<Vec<String>>(&sold_part_key(area, part))))?;
    let mut pins: Vec<String> = parts.into_iter().flatten().flatten().collect();
    pins.sort_unstable();
    Ok(pins)
}

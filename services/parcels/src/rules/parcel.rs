//! The record of a parcel: it is decided again when what is known of the parcel changes, or when its cycle closes.

use crate::county::County;
use crate::record::{DeltaCounts, Parcel, delta_counts, township_counts};
use fold::records::State;
use fold::service::Undecided;

use super::projects;
use super::roll::{Area, Frozen, Roll};
use super::state::{ParcelsRules, measured_key, record_id, remember_neighborhood, roll_key, sold_key, stats_key};

/// Changes what is known of a parcel, and decides its record again.
pub(super) fn change(state: &mut State<'_, ParcelsRules>, pin: &str, change: impl FnOnce(&mut Roll)) -> Result<(), Undecided> {
    let before: Roll = state.get(&roll_key(pin))?.unwrap_or_default();
    let mut now = before.clone();
    change(&mut now);
    if now == before {
        return Ok(());
    }
    // The next cycle also decides a parcel whose record has a cycle and that has nothing any more by which it is compared: it can resolve the record.
    now.is_listed = now.is_sold() || (before.is_listed && has_cycle(state, pin)?);
    now.is_measured = !now.is_listed && (now.has_floor_area() || (before.is_measured && has_cycle(state, pin)?));
    let sold = |roll: &Roll| roll.area().filter(|_| roll.is_listed);
    if let Some(area) = sold(&now).filter(|area| sold(&before).as_ref() != Some(area))
        && state.get::<Vec<String>>(&sold_key(&area, pin))?.is_none()
    {
        remember_neighborhood(state, &area)?;
    }
    move_between(state, pin, [&before, &now].map(|roll| sold(roll).map(|area| sold_key(&area, pin))))?;
    let measured = |roll: &Roll| roll.area().filter(|_| roll.is_measured);
    move_between(state, pin, [&before, &now].map(|roll| measured(roll).map(|area| measured_key(&area.township, pin))))?;
    state.remember(&roll_key(pin), Some(&now))?;
    decide_again(state, pin)?;
    projects::decide(state, pin, &before, &now)
}

/// Moves a parcel from the first of two rows of parcels to the second one.
fn move_between(state: &mut State<'_, ParcelsRules>, pin: &str, [old, new]: [Option<String>; 2]) -> Result<(), Undecided> {
    if old == new {
        return Ok(());
    }
    for (row, is_in) in [(old, false), (new, true)] {
        let Some(row) = row else { continue };
        let mut pins: Vec<String> = state.get(&row)?.unwrap_or_default();
        pins.retain(|known| known != pin);
        if is_in {
            pins.push(pin.to_owned());
        }
        pins.sort_unstable();
        state.remember(&row, Some(&pins).filter(|pins| !pins.is_empty()))?;
    }
    Ok(())
}

/// Whether a parcel has a record that was compared in a cycle.
fn has_cycle(state: &mut State<'_, ParcelsRules>, pin: &str) -> Result<bool, Undecided> {
    Ok(state.record(&record_id(pin))?.is_some_and(|record| !record.cycle.is_empty()))
}

/// Decides the record of a parcel again.
pub(super) fn decide_again(state: &mut State<'_, ParcelsRules>, pin: &str) -> Result<(), Undecided> {
    let roll: Roll = state.get(&roll_key(pin))?.unwrap_or_default();
    let Some(area) = roll.area() else { return Ok(()) };
    let township = Area { neighborhood: String::new(), ..area.clone() };
    // All rows that are missing are named before the decision is repeated.
    let (near, far, before) =
        (state.get::<Frozen>(&stats_key(&area)), state.get::<Frozen>(&stats_key(&township)), state.record(&record_id(pin)));
    let (near, far, before) = (near?.unwrap_or_default(), far?.unwrap_or_default(), before?);
    match roll.record(pin, &near, &far, before.as_ref()) {
        Some(parcel) => put(state, before.as_ref(), parcel),
        None => Ok(()),
    }
}

/// Sets the record of a parcel, and counts it.
fn put(state: &mut State<'_, ParcelsRules>, before: Option<&Parcel>, parcel: Parcel) -> Result<(), Undecided> {
    let cell = |parcel: &Parcel| parcel.is_over().then(|| (parcel.township_code.clone(), format!("{}/{}", parcel.class, parcel.tier)));
    let (old, new, county) = (before.and_then(cell), cell(&parcel), parcel.county.clone());
    if old != new {
        for (place, change) in [(old, -1), (new, 1)] {
            let Some((township, cell)) = place else { continue };
            let mut keys = vec![township_counts(&county, &township)];
            // Of this county the townships are not listed, so all of it is counted, too.
            if County::of_name(&county) == County::Allegheny {
                keys.push(township_counts(&county, ""));
            }
            for key in keys {
                state.count(&key, [(cell.clone(), change)])?;
            }
        }
    }
    let delta = |parcel: &Parcel| parcel.delta().map(|is_new| (parcel.cycle.clone(), is_new));
    let (old, new) = (before.and_then(delta), delta(&parcel));
    if old != new {
        for (place, change) in [(old, -1), (new, 1)] {
            let Some((cycle, is_new)) = place else { continue };
            let key = delta_counts(&county, &cycle);
            let mut counts: DeltaCounts = state.get(&key)?.unwrap_or_default();
            *(if is_new { &mut counts.new } else { &mut counts.resolved }) += change;
            state.remember(&key, Some(&counts))?;
        }
    }
    state.put(parcel)
}

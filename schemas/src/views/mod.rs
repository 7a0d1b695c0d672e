//! The tables of every view with the types of their rows. The projector writes them, the API reads them.

pub mod accounts;
pub mod aviation;
pub mod awards;
pub mod cadence;
pub mod catalysts;
pub mod coverage;
pub mod deliveries;
pub mod engine;
pub mod exclusions;
pub mod filings;
pub mod labs;
pub mod names;
pub mod parcels;
pub mod payments;
pub mod phrases;
pub mod recalls;
pub mod receipts;
pub mod records;
pub mod research;
#[cfg(test)]
mod testing;
pub mod trees;
pub mod watches;

use crate::tables::ViewDef;

/// THE LIST of the services' views: those that are derived from changes and that can be replayed, decided again and digested.
pub const SERVICES: &[&ViewDef] = &[
    &accounts::VIEW,
    aviation::TABLES.view,
    awards::TABLES.view,
    cadence::TABLES.view,
    catalysts::TABLES.view,
    coverage::TABLES.view,
    deliveries::TABLES.view,
    exclusions::TABLES.view,
    filings::TABLES.view,
    labs::TABLES.view,
    names::TABLES.view,
    parcels::TABLES.view,
    payments::TABLES.view,
    phrases::TABLES.view,
    &recalls::VIEW,
    receipts::TABLES.view,
    research::TABLES.view,
    watches::TABLES.view,
];

/// Returns every view: the engine's own, that of the trees, and those of the services.
pub fn all() -> impl Iterator<Item = &'static ViewDef> {
    [&engine::VIEW, &trees::VIEW].into_iter().chain(SERVICES.iter().copied())
}

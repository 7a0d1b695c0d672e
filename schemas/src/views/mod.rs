//! The tables of every view, with the types of their rows. The projector writes them, the API reads them.

pub mod accounts;
pub mod engine;
pub mod recalls;

use crate::tables::ViewDef;

/// THE LIST of views.
pub const ALL: &[&ViewDef] = &[&engine::VIEW, &accounts::VIEW, &recalls::VIEW];

/// The views of services: those that a fold of changes fills, and that can be replayed, decided again and digested.
pub const SERVICES: &[&ViewDef] = &[&accounts::VIEW, &recalls::VIEW];

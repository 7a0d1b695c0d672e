//! The simulated upstreams that are agencies of the United States: their paths, formats, limits and bugs, and the changes of their recalls.
//!
//! Every answer follows from the state of the world and the request.

mod annual;
pub mod changes;
pub mod clinical_trials;
pub mod cpsc;
pub mod edgar;
pub mod faa_drs;
pub mod federal_register;
pub mod fsis;
pub mod nhtsa;
pub mod nih_reporter;
pub mod openfda;
pub mod sam_exclusions;
mod science;
pub mod usaspending;
pub mod uspto_trademarks;
mod words;

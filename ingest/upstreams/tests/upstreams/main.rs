//! What each upstream asks and what it makes of the answers, on fixtures and on real records.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod clinical_trials;
mod common;
mod cpsc;
mod edgar;
mod fsis;
mod nhtsa;
mod nih_reporter;
mod openfda;
mod samples;
mod usaspending;

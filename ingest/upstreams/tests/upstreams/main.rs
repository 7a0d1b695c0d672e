//! What each upstream asks and what it makes of the answers, on fixtures and on real records.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
mod cpsc;
mod edgar;
mod fsis;
mod nhtsa;
mod openfda;
mod samples;

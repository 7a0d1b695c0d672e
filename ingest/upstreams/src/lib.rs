//! The upstreams: what to ask each of them, and what its answers mean. Nothing here waits, retries, stores or schedules but
//! [`http`], the only client.
//!
//! Architecture invariant: an upstream's own code is pure ([`Upstream::start`], [`Upstream::request`], [`Upstream::map`]), so
//! that fixtures test all of it. No upstream knows of a service, a log or a store.

pub mod clinical_trials;
pub mod cpsc;
pub mod drift;
pub mod edgar;
pub mod fsis;
pub mod http;
mod json;
pub mod live;
pub mod nhtsa;
pub mod nih_reporter;
pub mod openfda;
pub mod text;
pub mod upstream;
mod us_states;
pub mod usaspending;
mod xml;

pub use upstream::{Answer, Door, Manifest, Observation, Page, Reject, Request, Settings, Upstream, UpstreamError, Wall, Window};

/// THE LIST of upstreams.
pub static ALL: &[&dyn Upstream] = &[
    &clinical_trials::ClinicalTrials,
    &cpsc::Cpsc,
    &edgar::Edgar,
    &fsis::Fsis,
    &nhtsa::Nhtsa,
    &nih_reporter::NihReporter,
    &openfda::OpenFda,
    &usaspending::UsaSpending,
];

/// The upstream of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Upstream> {
    ALL.iter().copied().find(|upstream| upstream.manifest().name == name)
}

/// Who holds the lease that says that an upstream wants to be left alone: nobody in particular.
pub const LEFT_ALONE: &str = "left-alone";

/// The name of the lease that stands while an upstream wants to be left alone, by all processes.
#[must_use]
pub fn left_alone(upstream: &str) -> String {
    format!("ingest/{upstream}/left-alone")
}

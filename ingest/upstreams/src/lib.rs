//! The upstreams: which requests each of them needs, and how its answers are mapped. Nothing here waits, retries, stores or schedules,
//! except [`http`], the only HTTP client.
//!
//! Architecture invariant: an upstream's own code is pure ([`Upstream::start`], [`Upstream::request`], [`Upstream::map`]), so fixtures test
//! all of it. No upstream knows about services, logs or stores.

pub mod allegheny;
mod archive;
pub mod chicago;
pub mod ckan;
pub mod clinical_trials;
pub mod cook;
pub mod cpsc;
pub mod drift;
pub mod edgar;
pub mod faa_drs;
pub mod federal_register;
mod field_counts;
pub mod fmcsa;
pub mod fsis;
pub mod hacker_news;
pub mod http;
mod json;
pub mod live;
mod live_page;
pub mod nhtsa;
pub mod nih_reporter;
pub mod openfda;
pub mod own_options;
mod rolls;
pub mod sam_exclusions;
pub mod shopify;
pub mod socrata;
pub mod sos;
mod stored_fields;
pub mod text;
pub mod upstream;
mod us_states;
pub mod usaspending;
pub mod uspto_trademarks;
pub mod wikimedia;
mod xml;
mod xml_records;

pub use own_options::OwnOptions;
pub use upstream::{
    Answer, BackOffRule, Budget, Capabilities, Download, Failures, FilePages, Files, FullReads, Incomplete, KnownRecords, Licence,
    LocalFiles, Manifest, Observation, Page, Reject, Request, RunMemory, Settings, Stream, TimedRecords, Upstream, UpstreamError, Window,
};

/// THE LIST of upstreams.
pub static ALL: &[&dyn Upstream] = &[
    &allegheny::Allegheny,
    &chicago::Chicago,
    &clinical_trials::ClinicalTrials,
    &cook::Cook,
    &cpsc::Cpsc,
    &edgar::Edgar,
    &faa_drs::FaaDrs,
    &federal_register::FederalRegister,
    &fmcsa::Fmcsa,
    &fsis::Fsis,
    &hacker_news::HackerNews,
    &nhtsa::Nhtsa,
    &nih_reporter::NihReporter,
    &openfda::OpenFda,
    &sam_exclusions::SamExclusions,
    &shopify::Shopify,
    &sos::Sos,
    &usaspending::UsaSpending,
    &uspto_trademarks::UsptoTrademarks,
    &wikimedia::Wikimedia,
];

/// Returns the upstream with a name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Upstream> {
    ALL.iter().copied().find(|upstream| upstream.manifest().name == name)
}

/// The holder of the back-off lease. It is not a process, so nobody renews the lease.
pub const BACK_OFF_HOLDER: &str = "left-alone";

/// Returns the name of the lease that exists while an upstream asks all processes to back off.
#[must_use]
pub fn back_off_lease(upstream: &str) -> String {
    format!("ingest/{upstream}/left-alone")
}

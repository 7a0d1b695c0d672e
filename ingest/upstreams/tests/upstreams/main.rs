//! Requests and mappings of each upstream, on fixtures and on real records.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod allegheny;
mod chicago;
mod clinical_trials;
mod common;
mod company_facts;
mod cook;
mod cpsc;
mod directives;
mod edgar;
mod faa_drs;
mod federal_register;
mod fmcsa;
mod fsis;
mod hacker_news;
mod nhtsa;
mod nih_reporter;
mod openfda;
mod parcel_names;
mod ptaxsim;
mod sam_exclusions;
mod samples;
mod shopify;
mod sos;
mod usaspending;
mod uspto_trademarks;
mod wikimedia;

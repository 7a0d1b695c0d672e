//! Which names, addresses and records belong to one business, and which lines of insurance a rule demands.
//!
//! [`company::compare`] compares names of companies, [`address::compare`] addresses. Each match has a
//! grade and a reason that answers can show. [`index::CompanyIndex`] finds all names that match one, without comparing each.
//! [`same_business::group`] finds the leads of several sources that are about one business. [`mandates`] applies the data file of rules that
//! map facts to lines of insurance.
//!
//! Nothing here does input or output or reads a clock: the same arguments give the same result everywhere. [`VERSION`] changes when the
//! result of any pair can change; each data file has a version of its own. Services that store results must then be decided again.
//!
//! Addresses, groups and rules of insurance have one user, the coverage service. They are here because their tests compare tens of thousands of random
//! pairs: this crate is optimised in builds for development as well, the crates of services are not.

pub mod address;
mod business_name;
pub mod company;
pub mod index;
pub mod mandates;
pub mod near_names;
pub mod same_business;
mod street_words;
mod word_shape;

pub use street_words::shown as shown_street_words;
pub use texts::company_forms::shown as shown_company_forms;

/// The version of the rules of this crate that are code.
pub const VERSION: u32 = 2;

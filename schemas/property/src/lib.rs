//! How published records of property are read and compared: what differs between counties, the ratios of assessments with their statistics and tiers, which
//! sales count for them, what the entries in the docket of a tax lien say, which rules flag an exemption, and the codes of permits for construction.
//!
//! Everything here is pure, and arithmetic is in whole numbers, so that every platform gets the same results. `decide` of the parcels service uses it.
//! It is the only user: this is a crate of its own because that of the service is as large as a crate may be.

pub mod counties;
pub mod dockets;
pub mod exemptions;
pub mod permits;
pub mod ratios;
pub mod sales;

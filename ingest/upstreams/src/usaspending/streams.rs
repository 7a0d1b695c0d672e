//! The names of the streams, and where they are read.

pub(super) const ORIGIN: &str = "https://api.usaspending.gov";

pub(super) const TRANSACTIONS: &str = "usaspending.transactions";

pub(super) const AWARD_STATES: &str = "usaspending.awards";

pub(super) const DETAILS: &str = "usaspending.details";

pub(super) const TOTALS: &str = "usaspending.totals";

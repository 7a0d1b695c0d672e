//! The names of the streams.

pub(super) const SALES_STREAM: &str = "cook.sales";

pub(super) const VALUES: &str = "cook.values";

pub(super) const UNIVERSE: &str = "cook.universe";

pub(super) const ADDRESSES: &str = "cook.addresses";

pub(super) const APPEALS: &str = "cook.appeals";

pub(super) const PERMITS_STREAM: &str = "cook.permits";

pub(super) const EXEMPT: &str = "cook.exempt";

pub(super) const PTAXSIM: &str = "cook.ptaxsim";

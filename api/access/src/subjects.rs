//! The subjects that a call counts for: the address of the caller, and the site of that address.

use std::net::IpAddr;

use operation::problem::Problem;
use operation::tiers::{self, Window};
use schemas::error_code::ErrorCode;

use crate::quota::{address_subject, site_subject};

/// A subject of quotas, and how many times the limit of one caller it has.
pub(crate) type Subject = (String, i64);

/// The subjects of an address, the narrowest first. `kind` says what its calls are counted for.
pub(crate) fn subjects_of(kind: &str, address: IpAddr) -> Vec<Subject> {
    let own = (format!("{kind}{}", address_subject(address)), 1);
    let site = site_subject(address).map(|site| (format!("{kind}{site}"), tiers::NETWORKS_PER_SITE));
    std::iter::once(own).chain(site).collect()
}

/// A window with so many times its calls.
pub(crate) fn times(window: Window, factor: i64) -> Window {
    Window { calls_max: window.calls_max.saturating_mul(factor), ..window }
}

/// The problem of a window without calls, which ends in so many seconds.
pub(crate) fn used_up(window: Window, reset_s: u64) -> Problem {
    let detail = format!("the quota of {} calls per {} is used up; it resets in {reset_s} s", window.calls_max, window.name);
    let rate_limit = format!("\"{}\";r=0;t={reset_s}", window.name);
    Problem::new(ErrorCode::RateLimited, detail).retry_after(reset_s).header("ratelimit", rate_limit)
}

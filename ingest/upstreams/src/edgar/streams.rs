//! The streams' names, and where they are read.

use std::time::Duration;

use crate::BackOffRule;

/// The origin of index, feed and documents.
pub(super) const ORIGIN: &str = "https://www.sec.gov";

/// The origin of the submissions of a filer.
pub(super) const DATA_ORIGIN: &str = "https://data.sec.gov";

pub(super) const CURRENT: &str = "edgar.current";

pub(super) const INDEX: &str = "edgar.index";

pub(super) const SUBMISSIONS: &str = "edgar.submissions";

pub(super) const OWNERSHIP: &str = "edgar.ownership";

pub(super) const PDUFA: &str = "edgar.pdufa";

pub(super) const TICKERS: &str = "edgar.tickers";

pub(super) const XBRL: &str = "edgar.xbrl";

/// The block pages: one for an undeclared tool, one for too many requests. Too many requests block for ten minutes.
pub(super) static BACK_OFF: BackOffRule = BackOffRule {
    statuses: &[403, 429],
    markers: &["Undeclared Automated Tool", "Request Rate Threshold Exceeded", "Traffic Limit", "Reference ID"],
    pause: Duration::from_secs(660),
};

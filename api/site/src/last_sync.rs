//! When a service last read its upstreams completely, in a few words.

use maud::{Markup, html};
use serde_json::Value;

use crate::fields::ago;
use crate::{SiteService, receipts};

/// When a service last read its upstreams completely. Receipts are recorded by callers: no upstream has them.
pub(crate) fn last_sync(shown: &SiteService<'_>, health: &Value, now_ms: i64) -> Markup {
    html! {
        @match health["lastSnapshot"].as_str().filter(|at| !at.is_empty()) {
            Some(at) => { (ago(at, now_ms)) }
            None => { @if receipts::is_issuer(shown) { "recorded by callers" } @else { "no complete sync yet" } }
        }
    }
}

//! Watches: something that an account follows in a service. What it matches is found in the service's changes whenever it is asked for, by
//! the same way as the feed finds what fits a filter, so nothing of it is stored; what is delivered to its webhook follows the same.

pub mod begin;
pub mod end;
pub mod list;
pub mod matches;

use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::views::watches::SavedItem;
use serde::Serialize;
use serde::de::DeserializeOwned;

use access::webhook::Sealing;
use operation::problem::Problem;

/// A watch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch<N> {
    /// Its id.
    pub id: String,
    /// What is watched.
    #[serde(flatten)]
    pub named: N,
    /// The host of its webhook; of the rest of the URL nothing is shown. Left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_host: Option<String>,
    /// What its messages are signed with, as Standard Webhooks have it; in the answer that makes the watch, and in no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// When it was made, RFC 3339 in UTC.
    pub made_at: String,
    /// The service's last change before it: changes with a higher `seq` count.
    pub after: u64,
}

impl<N: DeserializeOwned> Watch<N> {
    fn of(kept: &SavedItem, sealing: Option<&Sealing>) -> Result<Self, Problem> {
        let named = serde_json::from_str(&kept.entity).map_err(|error| {
            tracing::error!(%error, id = kept.id, "a watch cannot be read");
            Problem::new(ErrorCode::Internal, "a stored watch cannot be read")
        })?;
        // Empty where it was sealed under another master key, or cannot be read any more.
        let host = || sealing.map_or_else(String::new, |sealing| sealing.host(kept));
        let webhook_host = (!kept.webhook.is_empty()).then(host);
        Ok(Self { id: kept.id.clone(), named, webhook_host, secret: None, made_at: rfc3339(kept.made_at), after: after(kept) })
    }
}

/// The service's last change that a watch does not count.
fn after(kept: &SavedItem) -> u64 {
    kept.after.0
}

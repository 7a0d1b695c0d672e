//! What a page of changes says of itself.

use schemars::JsonSchema;
use serde::Serialize;

/// The fields of a page next to its items.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// Stands after the last change of this page: give it back as `cursor` to go on.
    pub cursor: String,
    /// Whether more is recorded after this page.
    pub has_more: bool,
    /// The first `seq` that this page covers. The next page's `from` is this one's `to` plus 1.
    pub from: u64,
    /// The last `seq` that this page covers, shown or not; `from` minus 1 for a page that covers none.
    pub to: u64,
    /// The last day up to which every upstream has been read completely, as of `to`; empty before the first complete reading.
    pub through_date: String,
    /// How many complete readings of upstreams stand behind that, as of `to`.
    pub snapshot_count: u64,
    /// What to know about the answer: that history is shallow, or what a key would open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

//! The fields that every page of changes has.

use schemars::JsonSchema;
use schemas::position::Seq;
use serde::Serialize;

/// The field of a page with the last changes that names the page before it.
pub const OLDER: &str = "older";

/// The fields of a page next to its items.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageInfo {
    /// Cursor after the last change of this page. Send it as `cursor` to get the next page.
    pub cursor: String,
    /// Of a page with the last changes (`start=newest`): send it as `cursor`, again with `start=newest`, to get the changes before them. Absent if there
    /// are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older: Option<String>,
    /// Whether more changes are recorded after this page.
    pub has_more: bool,
    /// The first `seq` that this page covers. The next page's `from` is this one's `to` plus 1.
    pub from: Seq,
    /// The last `seq` that this page covers, shown or not; `from` minus 1 for a page that covers no changes.
    pub to: Seq,
    /// The last day up to which every upstream has been read completely, as of `to`; empty before the first completed sync run.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
    /// How many completed sync runs the data includes, as of `to`.
    pub snapshot_count: u64,
    /// Notes about the answer, for example that the history is short, or what a key would give access to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

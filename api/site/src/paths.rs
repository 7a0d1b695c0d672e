//! The paths of pages that several pages link to.

/// The path of the status page.
pub const STATUS: &str = "/status";
/// The path of the feed of outages.
pub const STATUS_FEED: &str = "/status.atom";

/// The path below which the pages of entities are.
pub const ENTITIES: &str = "/entities";

/// The path of the page that finds and verifies receipts.
pub const VERIFY: &str = pages::RECEIPTS;

/// The path of the index of guides, below which the documents are.
pub const GUIDES: &str = "/guides";

//! What filters and watches of the awards service follow: a contractor, as the recipient or as its parent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::FEED;
use super::filter::{Filter, NAICS_MAX};
use super::records::Changed;
use feed::query::Feed;
use feed::watchable::{WatchableFeed, watched_name};
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The awards service's feed.
pub struct Awards;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// Part of the name of the contractor, or of its parent.
    #[schemars(length(min = 2, max = 200))]
    pub contractor: String,
}

impl WatchableFeed for Awards {
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    const FEED: Feed = FEED;

    fn parameters() -> Vec<(&'static str, Value)> {
        let items = json!({ "type": "string", "pattern": "[0-9]" });
        let naics = json!({
            "type": ["string", "array"],
            "minLength": 2,
            "maxLength": 400,
            "pattern": "[0-9]",
            "items": items,
            "maxItems": NAICS_MAX,
        });
        vec![("naics", naics)]
    }

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let contractor = watched_name("contractor", "contractor", &entity.contractor)?;
        Ok((WatchedEntity { contractor: contractor.clone() }, Filter { recipient: Some(contractor), ..Filter::default() }))
    }

    fn example_filter() -> Value {
        json!({ "naics": ["5415"], "agency": "energy" })
    }

    fn example_entity() -> Value {
        json!({ "contractor": "federal" })
    }
}

impl WatchMessages for Awards {
    const CHANGES_MAX: usize = 20;

    fn message(entity: WatchedEntity, changes: Vec<Changed>) -> Value {
        json!({ "event": "award_activity", "contractor": entity.contractor, "changes": changes })
    }
}

//! What filters and watches of the exclusions service follow: an entity, by its UEI or by its whole name.

use crate::record::Exclusion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{self, Filter};
use crate::FEED;
use feed::query::Feed;
use feed::shown::Changed;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The exclusions service's feed, as filters and watches follow it.
pub struct Exclusions;

/// What a watch names: an entity, by `uei` or by `name`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// Unique entity id, 12 letters and digits. It finds the exclusions and the hit of the entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
    /// The whole name of a company or person, if the UEI is not known. Two parties can have one name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 300))]
    pub name: Option<String>,
}

impl WatchableFeed for Exclusions {
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed<Exclusion>;

    const FEED: Feed = FEED;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        if entity.uei.is_none() && entity.name.is_none() {
            return Err(Problem::parameter("uei", "`uei` or `name` is required: what is watched"));
        }
        let uei = entity.uei.as_deref().map(|text| filter::uei("uei", text)).transpose()?;
        // The UEI identifies the entity, so the name adds nothing to it.
        let name = entity.name.as_deref().filter(|_| uei.is_none()).map(|text| filter::name("name", text)).transpose()?;
        Ok((WatchedEntity { uei: uei.clone(), name: name.clone() }, Filter { uei, name, ..Filter::default() }))
    }

    fn example_filter() -> Value {
        json!({ "kind": "hit", "agency": "EPA" })
    }

    fn example_entity() -> Value {
        json!({ "uei": "SPPA4G7J3N91" })
    }
}

impl WatchMessages for Exclusions {
    const CHANGES_MAX: usize = 20;

    fn message(entity: WatchedEntity, changes: Vec<Changed<Exclusion>>) -> Value {
        json!({ "event": "exclusions.signal", "watch": entity, "changes": changes })
    }
}

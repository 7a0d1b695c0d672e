//! Research as it is saved and watched: an institution, a sponsor, an investigator or a topic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::FEED;
use super::entity::filter_of;
use super::filter::Filter;
use super::records::Changed;
use feed::query::Feed;
use feed::watchable::{WatchableFeed, watched_name};
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The research service's feed.
pub struct Research;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// What is watched, as `entity_watch` takes it.
    pub entity: Entity,
}

/// What is watched.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// What `value` names, in any case: `institution`, `sponsor`, `pi` or `topic`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 20))]
    pub kind: String,
    /// Part of the name of an institution, sponsor or investigator; the slug of a topic.
    #[schemars(length(min = 2, max = 200))]
    pub value: String,
}

impl WatchableFeed for Research {
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    const FEED: Feed = FEED;

    fn normalize(filter: Filter) -> Result<Filter, Problem> {
        Ok(filter.checked())
    }

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let value = watched_name("entity", "entity.value", &entity.entity.value)?;
        let in_entity = |problem: Problem| Problem { detail: format!("entity.type: {}", problem.detail), ..problem.about("entity") };
        let (kind, filter) = filter_of(&entity.entity.kind, &value).map_err(in_entity)?;
        Ok((WatchedEntity { entity: Entity { kind: kind.to_owned(), value } }, filter))
    }

    fn example_filter() -> Value {
        json!({ "topic": "oncology", "state": "TX" })
    }

    fn example_entity() -> Value {
        json!({ "entity": { "type": "institution", "value": "university" } })
    }
}

impl WatchMessages for Research {
    const CHANGES_MAX: usize = 20;

    fn message(entity: WatchedEntity, changes: Vec<Changed>) -> Value {
        json!({ "event": "new_funding", "watch": entity.entity, "changes": changes })
    }
}

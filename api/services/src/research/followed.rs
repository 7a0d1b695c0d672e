//! What filters and watches of the research service follow: an institution, a sponsor, an investigator or a topic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::FEED;
use super::filter::Filter;
use super::records::Changed;
use feed::query::Feed;
use feed::watchable::{WatchableFeed, watched_name};
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The kinds of entities, as `type` names them.
const KINDS: [&str; 4] = ["institution", "sponsor", "pi", "topic"];

/// The research service's feed.
pub struct Research;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// The entity that is watched, as `entity_watch` takes it.
    pub entity: Entity,
}

/// An institution, a sponsor, an investigator or a topic.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// The kind of entity that `value` names, in any case: `institution`, `sponsor`, `pi` or `topic`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 20))]
    pub kind: String,
    /// Part of the name of an institution, sponsor or investigator; the slug of a topic.
    #[schemars(length(min = 2, max = 200))]
    pub value: String,
}

impl Entity {
    /// The kind in lower case, and the filter that selects the entity.
    ///
    /// # Errors
    /// `parameter-invalid` for an unknown kind.
    pub(super) fn filter(&self) -> Result<(&'static str, Filter), Problem> {
        let (value, none) = (Some(self.value.clone()), Filter::default());
        let given = self.kind.trim().to_ascii_lowercase();
        let filter = match given.as_str() {
            "institution" => Filter { institution: value, ..none },
            "sponsor" => Filter { sponsor: value, ..none },
            "pi" => Filter { pi: value, ..none },
            _ => Filter { topic: value, ..none },
        };
        let kind = KINDS.into_iter().find(|kind| *kind == given).ok_or_else(|| {
            let hint = schemas::names::hint(&given, KINDS);
            Problem::parameter("type", format!("{:?} is none of institution, sponsor, pi, topic{hint}", self.kind))
        })?;
        Ok((kind, filter))
    }
}

impl WatchableFeed for Research {
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    const FEED: Feed = FEED;

    fn parameters() -> Vec<(&'static str, Value)> {
        let dollars = json!({ "type": "number", "minimum": 0 });
        vec![("minAmount", dollars.clone()), ("maxAmount", dollars)]
    }

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let value = watched_name("entity", "entity.value", &entity.entity.value)?;
        let entity = Entity { value, ..entity.entity };
        let in_entity = |problem: Problem| Problem { detail: format!("entity.type: {}", problem.detail), ..problem.about("entity") };
        let (kind, filter) = entity.filter().map_err(in_entity)?;
        Ok((WatchedEntity { entity: Entity { kind: kind.to_owned(), ..entity } }, filter))
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

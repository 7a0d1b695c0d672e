//! What filters and watches of the labs service follow: a category, a state, an organisation or an investigator; and leads in answers.

use crate::record::Lead;
use schemars::JsonSchema;
use schemas::details::{GRANT_SITES, url_note};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filter;
use crate::rules::LabsRules;
use feed::answer_changes::Changed;
use feed::watchable::{WatchableFeed, entity_filter, watched_name};
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The labs service's feed.
pub struct Labs;

/// A lead in answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownLead {
    /// The lead.
    #[serde(flatten)]
    pub lead: Lead,
    /// A warning; only if `url` does not lead to a site of the funder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_note: Option<&'static str>,
}

impl From<Lead> for ShownLead {
    fn from(lead: Lead) -> Self {
        Self { url_note: url_note(&lead.url, &GRANT_SITES), lead }
    }
}

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// The entity that is watched.
    pub entity: Entity,
}

/// A category, a state, an organisation or an investigator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// The kind of entity that `value` names, in any case: `category`, `state`, `org` or `pi`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 20))]
    pub kind: String,
    /// The name of a category, the two letters of a state, or part of the name of an organisation or investigator.
    #[schemars(length(min = 2, max = 200))]
    pub value: String,
}

impl WatchableFeed for Labs {
    type Rules = LabsRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed<ShownLead>;

    const ENTITY_KINDS: &'static [&'static str] = &["category", "state", "org", "pi"];

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let value = watched_name("entity.value", &entity.entity.value)?;
        let (kind, filter) = entity_filter(Self::ENTITY_KINDS, &entity.entity.kind, &value)?;
        Ok((WatchedEntity { entity: Entity { kind: kind.to_owned(), value } }, filter))
    }

    fn example_filter() -> Value {
        json!({ "category": "Computing", "state": "CA" })
    }

    fn example_entity() -> Value {
        json!({ "entity": { "type": "category", "value": "Computing" } })
    }
}

impl WatchMessages for Labs {
    const EVENT: &'static str = "lab_lead";
}

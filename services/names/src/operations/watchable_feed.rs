//! What filters and watches of the names service follow: the marks that are similar to a name.

use crate::record::Trademark;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filter;
use super::name_arguments::ClassList;
use super::similar::MinTier;
use crate::rules::NamesRules;
use feed::answer_changes::DetailedChange;
use feed::filter::Filter as _;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;

/// The names service's feed, as filters and watches follow it.
pub struct Names;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchedEntity {
    /// The name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// International classes, at most 5; empty for all.
    #[serde(default)]
    pub class: ClassList,
    /// How similar a mark must be at least: `strong` if a new watch does not say. A renewal without it leaves it as it is.
    #[serde(default)]
    #[schemars(with = "MinTier")]
    pub min_tier: Option<MinTier>,
}

/// A change of a trademark, as answers show it.
pub type Changed = DetailedChange<Trademark>;

impl WatchableFeed for Names {
    type Rules = NamesRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let entity = WatchedEntity { min_tier: Some(entity.min_tier.unwrap_or_default()), ..entity };
        let WatchedEntity { name, class, min_tier } = entity.clone();
        let filter = Filter { name: Some(name), class, min_tier, ..Filter::default() }.normalize()?;
        Ok((entity, filter))
    }

    fn example_filter() -> Value {
        json!({ "name": "Lutexal", "class": [9] })
    }

    fn example_entity() -> Value {
        json!({ "name": "Lutexal", "class": [9] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a watch shows its classes, also if it has none, and selects marks as the check does.
    #[test]
    fn watches() {
        let entity_from = |json: Value| Names::parse_entity(serde_json::from_value(json).unwrap());
        let (entity, filter) = entity_from(json!({ "name": "Lutexal" })).unwrap();
        assert_eq!(serde_json::to_value(&entity).unwrap(), json!({ "name": "Lutexal", "class": [], "minTier": "strong" }));
        assert_eq!(filter.canonical(), r#"{"name":"Lutexal","minTier":"strong"}"#);
        let (entity, filter) = entity_from(json!({ "name": "Lutexal", "class": [25, 9], "minTier": "exact" })).unwrap();
        assert_eq!(serde_json::to_value(&entity).unwrap(), json!({ "name": "Lutexal", "class": [9, 25], "minTier": "exact" }));
        assert_eq!(filter.canonical(), r#"{"name":"Lutexal","class":[9,25],"minTier":"exact"}"#);
        assert_eq!(entity_from(json!({ "name": "?!" })).unwrap_err().parameter, "name");
    }
}

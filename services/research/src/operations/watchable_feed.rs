//! What filters and watches of the research service follow: an institution, a sponsor, an investigator or a topic.

use crate::record::Funding;
use schemars::JsonSchema;
use schemas::facts::FactData;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use texts::values::TOPICS;

use super::filter::Filter;
use super::records::Changed;
use crate::rules::ResearchRules;
use feed::filter::Filter as _;
use feed::watchable::{WatchableFeed, watched_name};
use operation::known_values::known_value;
use operation::problem::Problem;
use reads::read::{UpstreamRecords, filled};
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
    /// The kind of entity that `value` names.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = KINDS))]
    pub kind: String,
    /// Part of the name of an institution, sponsor or investigator; the slug of a topic.
    #[schemars(length(min = 2, max = 200))]
    pub value: String,
}

impl Entity {
    /// The kind as the list of kinds writes it, and the filter that selects the entity. `path` is the path of the entity in the request, with a dot
    /// at its end; empty if its fields are parameters.
    ///
    /// # Errors
    /// `parameter-invalid` for an unknown kind or topic.
    pub(crate) fn filter(&self, path: &str) -> Result<(&'static str, Filter), Problem> {
        let field = format!("{path}type");
        let kind = known_value(&field, &self.kind, &KINDS)?;
        let value = match kind {
            "topic" => known_value(&format!("{path}value"), &self.value, &TOPICS)?,
            _ => self.value.as_str(),
        };
        let unwatchable = || Problem::parameter(&field, format!("{field}: {kind} cannot be watched"));
        Ok((kind, Filter::of_text(kind, value).ok_or_else(unwatchable)?))
    }
}

impl WatchableFeed for Research {
    type Rules = ResearchRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    const ENTITY_KINDS: &'static [&'static str] = &KINDS;

    fn parameters() -> Vec<(&'static str, Value)> {
        let dollars = json!({ "type": "number", "minimum": 0 });
        vec![("minAmount", dollars.clone()), ("maxAmount", dollars)]
    }

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let value = watched_name("entity.value", &entity.entity.value)?;
        let entity = Entity { value, ..entity.entity };
        let (kind, filter) = entity.filter("entity.")?;
        Ok((WatchedEntity { entity: Entity { kind: kind.to_owned(), ..entity } }, filter))
    }

    fn example_filter() -> Value {
        json!({ "topic": "oncology", "state": "TX" })
    }

    fn example_entity() -> Value {
        json!({ "entity": { "type": "institution", "value": "university" } })
    }
}

impl UpstreamRecords for Research {
    fn record_of(fact: &FactData) -> Option<Funding> {
        match fact {
            FactData::Grant(grant) => Some(Funding::of_grant(grant)),
            FactData::Trial(trial) => Some(Funding::of_trial(trial)),
            _ => None,
        }
    }

    /// The topics of a record are those that were decided when it was recorded.
    fn complete(now: Funding, recorded: &Funding) -> Funding {
        Funding { topics: recorded.topics.clone(), ..filled(now, recorded) }
    }
}

impl WatchMessages for Research {
    const EVENT: &'static str = "new_funding";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a watch takes kinds and topics in any case, and refuses unknown ones with their field and the nearest known value.
    #[test]
    fn unknown_entities() {
        let watch = |kind: &str, value: &str| {
            let entity = Entity { kind: kind.to_owned(), value: value.to_owned() };
            Research::parse_entity(WatchedEntity { entity }).map(|(watched, filter)| (watched.entity.kind, filter))
        };
        let topic = Filter { topic: Some("oncology".to_owned()), ..Filter::default() };
        assert_eq!(watch("Topic", "Oncology"), Ok(("topic".to_owned(), topic)));
        assert_eq!(watch("PI", "ada").map(|(kind, _)| kind), Ok("pi".to_owned()));
        for (kind, value, path, hint) in [
            ("topic", "oncolgy", "entity.value", "entity.value: \"oncolgy\" is not one of"),
            ("topic", "oncolgy", "entity.value", "did you mean \"oncology\"?"),
            ("institutoin", "rice", "entity.type", "did you mean \"institution\"?"),
        ] {
            let problem = watch(kind, value).unwrap_err();
            assert_eq!(problem.parameter, path);
            assert!(problem.detail.contains(hint), "{}", problem.detail);
        }
    }
}

//! What can be watched in the phrases service: the label of one phrase.

use crate::record::Phrase;
use schemars::JsonSchema;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filter;
use super::question::labelled_phrase;
use crate::rules::PhrasesRules;
use feed::query::Item;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The phrases service's feed, as filters and watches follow it.
pub struct Phrases;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// The phrase whose label is watched: 1 to 4 words, in any case, not stop words or numbers alone.
    #[schemars(length(min = 1, max = 100))]
    pub phrase: String,
}

/// A change of a label, as answers show it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ChangedPhrase")]
pub struct Changed {
    /// The phrase after the change.
    #[serde(flatten)]
    pub record: Phrase,
    /// What happened: `new` or `modified`; `added` or `removed` if the filter was changed.
    pub event: String,
    /// The number of the change within the service.
    pub seq: Seq,
    /// When the change was recorded, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub recorded_at: String,
    /// The label before the change.
    pub previous_label: String,
    /// The record before the change, if `before` was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Phrase>,
}

impl From<Item<Phrase>> for Changed {
    fn from(item: Item<Phrase>) -> Self {
        let Item { change, before } = item;
        Self {
            record: change.record,
            event: change.event,
            seq: change.seq,
            recorded_at: change.recorded_at,
            previous_label: change.details.previous_label.into_owned(),
            before,
        }
    }
}

impl WatchableFeed for Phrases {
    type Rules = PhrasesRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let phrase = labelled_phrase(&entity.phrase)?;
        Ok((WatchedEntity { phrase: phrase.clone() }, Filter { phrase: Some(phrase), label: None }))
    }

    fn example_filter() -> Value {
        json!({ "label": "RISING" })
    }

    fn example_entity() -> Value {
        json!({ "phrase": "agent mesh" })
    }
}

impl WatchMessages for Phrases {
    const EVENT: &'static str = "label";
    const CHANGES_MAX: usize = 1;

    fn members(entity: WatchedEntity, mut changes: Vec<Changed>) -> Value {
        let change = changes.pop();
        let label = change.as_ref().map(|change| change.record.label.clone());
        json!({ "phrase": entity.phrase, "label": label, "change": change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a watch names a phrase in any form, and that its message says which label it has now.
    #[test]
    fn watches() {
        let (entity, filter) = Phrases::parse_entity(WatchedEntity { phrase: "Agent-Mesh".into() }).unwrap();
        assert_eq!((entity.phrase.as_str(), filter.phrase.as_deref()), ("agent mesh", Some("agent mesh")));
        for unwatchable in ["!", "five words have no label", "the of"] {
            assert_eq!(
                Phrases::parse_entity(WatchedEntity { phrase: unwatchable.into() }).unwrap_err().parameter,
                "phrase",
                "{unwatchable}"
            );
        }
        let record = Phrase { phrase: "agent mesh".into(), label: "RISING".into(), ..Phrase::default() };
        let change =
            Changed { record, event: "new".into(), seq: Seq(1), recorded_at: String::new(), previous_label: "FLAT".into(), before: None };
        let message = Phrases::message(entity, vec![change]);
        assert_eq!((&message["label"], &message["change"]["previousLabel"]), (&json!("RISING"), &json!("FLAT")));
    }
}

//! What filters and watches of the catalysts service follow: a company by its ticker, a drug, a trial, or a kind of event.

use crate::record::{Catalyst, CatalystDetails};
use schemars::JsonSchema;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{Filter, ticker};
use crate::FEED;
use feed::position::position;
use feed::query::{Feed, Item};
use feed::watchable::{WatchableFeed, entity_filter, in_entity_value, watched_name};
use operation::context::Context;
use operation::problem::Problem;
use reads::numbers::current_number;
use webhooks::matchers::WatchMessages;

/// The kinds of entities, as `type` names them.
const TYPES: [&str; 4] = ["ticker", "drug", "trial", "kind"];

/// The catalysts service's feed, as filters and watches follow it.
pub struct Catalysts;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// The entity that is watched.
    pub entity: Entity,
}

/// A ticker, a drug, a trial or a kind of event.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// What `value` names, in any case: `ticker`, `drug`, `trial` or `kind`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 20))]
    pub kind: String,
    /// A ticker, words of a drug's name, the number of a trial, or `readout`, `pdufa`, `adcom`.
    #[schemars(length(min = 1, max = 100))]
    pub value: String,
}

/// A change of an event. Its status is what documents say; whether the day is over depends on the reader's day.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FilteredCatalystChange")]
pub struct Changed {
    /// The event after the change.
    #[serde(flatten)]
    pub record: Catalyst,
    /// What moved, if the window did.
    #[serde(flatten)]
    pub details: CatalystDetails,
    /// What happened: `new` or `modified`; `added` or `removed` if the filter was changed.
    pub event: String,
    /// The number of the change within the service.
    pub seq: Seq,
    /// When the change was recorded, RFC 3339 in UTC.
    pub recorded_at: String,
    /// True if the change is late news: it happened long before it was recorded. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub backfill: bool,
    /// The event before the change, if `before` was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Catalyst>,
}

impl From<Item<Catalyst>> for Changed {
    fn from(item: Item<Catalyst>) -> Self {
        let Item { change, before } = item;
        Self {
            backfill: change.is_backfill(),
            record: change.record,
            details: change.details,
            event: change.event,
            seq: change.seq,
            recorded_at: change.recorded_at,
            before,
        }
    }
}

impl WatchableFeed for Catalysts {
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    const FEED: Feed = FEED;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let is_named = ["drug", "trial", "kind"].iter().any(|kind| entity.entity.kind.trim().eq_ignore_ascii_case(kind));
        // A ticker may have one letter.
        let value = if is_named { watched_name("entity", "entity.value", &entity.entity.value)? } else { entity.entity.value.clone() };
        let value = value.trim().to_owned();
        let (kind, filter) = entity_filter(&TYPES, &entity.entity.kind, &value)?;
        if kind == "ticker" {
            // An empty filter would select every event.
            ticker("entity", &value).map_err(in_entity_value)?;
        }
        Ok((WatchedEntity { entity: Entity { kind: kind.to_owned(), value } }, filter))
    }

    async fn resolve(ctx: &Context, filter: Filter) -> Result<Filter, Problem> {
        let Some(trial) = &filter.trial else { return Ok(filter) };
        let at = position(ctx, &FEED.source, None).await?;
        let current = current_number(FEED.tables, &at, trial).await?;
        Ok(Filter { trial: current.or(filter.trial), ..filter })
    }

    fn example_filter() -> Value {
        json!({ "kind": "pdufa" })
    }

    fn example_entity() -> Value {
        json!({ "entity": { "type": "ticker", "value": "CLDB" } })
    }
}

impl WatchMessages for Catalysts {
    fn message(entity: WatchedEntity, changes: Vec<Changed>) -> Value {
        json!({ "event": "catalyst", "watch": entity.entity, "changes": changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;

    /// Proves what can be watched, and that anything else is refused with the nearest known type.
    #[test]
    fn entities() {
        let of = |kind: &str, value: &str| {
            let entity = WatchedEntity { entity: Entity { kind: kind.into(), value: value.into() } };
            Catalysts::parse_entity(entity)
                .map(|(entity, filter)| (entity.entity.kind, filter.canonical()))
                .map_err(|problem| problem.detail)
        };
        assert_eq!(of("Ticker", "f"), Ok(("ticker".into(), r#"{"ticker":"F"}"#.into())));
        assert_eq!(of("drug", "Bolunib"), Ok(("drug".into(), r#"{"drug":"bolunib"}"#.into())));
        assert_eq!(of("kind", "PDUFA"), Ok(("kind".into(), r#"{"kind":"pdufa"}"#.into())));
        for (kind, value, part) in
            [("tickr", "F", "ticker"), ("kind", "readot", "readout"), ("drug", "ab", "3 letters"), ("ticker", " ", "not a ticker")]
        {
            let refusal = of(kind, value).unwrap_err();
            assert!(refusal.contains(part), "{kind} {value}: {refusal}");
        }
    }
}

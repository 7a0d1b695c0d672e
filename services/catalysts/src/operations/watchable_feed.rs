//! What filters and watches of the catalysts service follow: a company by its ticker, a drug, a trial, or a kind of event.

use crate::record::Catalyst;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{Filter, ticker};
use crate::rules::CatalystsRules;
use feed::RecordFeed;
use feed::answer_changes::DetailedChange;
use feed::position::position;
use feed::watchable::{WatchableFeed, entity_filter, in_entity_value, watched_name};
use operation::context::Context;
use operation::problem::Problem;
use reads::numbers::current_number;
use webhooks::matchers::WatchMessages;

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

/// A change of an event, as answers show it. Its status is what documents say; whether the day is over depends on the reader's day.
pub type Changed = DetailedChange<Catalyst>;

impl WatchableFeed for Catalysts {
    type Rules = CatalystsRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    const ENTITY_KINDS: &'static [&'static str] = &["ticker", "drug", "trial", "kind"];

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let is_named = ["drug", "trial", "kind"].iter().any(|kind| entity.entity.kind.trim().eq_ignore_ascii_case(kind));
        // A ticker may have one letter.
        let value = if is_named { watched_name("entity.value", &entity.entity.value)? } else { entity.entity.value.clone() };
        let value = value.trim().to_owned();
        let (kind, filter) = entity_filter(Self::ENTITY_KINDS, &entity.entity.kind, &value)?;
        if kind == "ticker" {
            // An empty filter would select every event.
            ticker("value", &value).map_err(in_entity_value)?;
        }
        Ok((WatchedEntity { entity: Entity { kind: kind.to_owned(), value } }, filter))
    }

    async fn resolve(ctx: &Context, filter: Filter) -> Result<Filter, Problem> {
        let Some(trial) = &filter.trial else { return Ok(filter) };
        let at = position(ctx, &CatalystsRules::FEED.source, None).await?;
        let current = current_number(CatalystsRules::FEED.tables, &at, trial).await?;
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
    const EVENT: &'static str = "catalyst";
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::{Element, Filter as _};
    use feed::query::Item;

    /// Proves that an answer has the fields of the record, of what moved and of the change next to each other, and `backfill` and `before` only if there is
    /// something to say.
    #[test]
    fn changes_have_their_fields_in_one_object() {
        let change_with = |is_late: bool, before: Option<Catalyst>| {
            let record = Catalyst { id: "cat/1".into(), ..Catalyst::default() };
            let change = json!({ "event": "modified", "seq": 7, "recordedAt": "2026-11-20T10:00:00Z", "slipDays": 30, "backfill": is_late, "record": record });
            let change: Element<Catalyst> = serde_json::from_value(change).unwrap();
            serde_json::to_value(Changed::from(Item { change, before })).unwrap()
        };
        let plain = change_with(false, None);
        assert_eq!((&plain["id"], &plain["slipDays"], &plain["event"]), (&json!("cat/1"), &json!(30), &json!("modified")));
        assert_eq!((&plain["seq"], &plain["recordedAt"]), (&json!(7), &json!("2026-11-20T10:00:00Z")));
        assert!(["backfill", "before", "record"].iter().all(|name| plain.get(name).is_none()), "{plain}");
        let late = change_with(true, Some(Catalyst { id: "cat/0".into(), ..Catalyst::default() }));
        assert_eq!((&late["backfill"], &late["before"]["id"]), (&json!(true), &json!("cat/0")));
    }

    /// Proves the members of a message: its event, the kind and the value that are watched, and the changes.
    #[test]
    fn messages() {
        let watched = json!({ "type": "ticker", "value": "CLDB" });
        let entity = serde_json::from_value(json!({ "entity": watched })).unwrap();
        let expected = json!({ "event": "catalyst", "watch": watched, "changes": [] });
        assert_eq!(Catalysts::message(entity, Vec::new()), expected);
    }

    /// Proves what can be watched, and that anything else is refused with the nearest known type.
    #[test]
    fn entities() {
        let filter_for = |kind: &str, value: &str| {
            let entity = WatchedEntity { entity: Entity { kind: kind.into(), value: value.into() } };
            Catalysts::parse_entity(entity)
                .map(|(entity, filter)| (entity.entity.kind, filter.canonical()))
                .map_err(|problem| problem.detail)
        };
        assert_eq!(filter_for("Ticker", "f"), Ok(("ticker".into(), r#"{"ticker":"F"}"#.into())));
        assert_eq!(filter_for("drug", "Bolunib"), Ok(("drug".into(), r#"{"drug":"bolunib"}"#.into())));
        assert_eq!(filter_for("kind", "PDUFA"), Ok(("kind".into(), r#"{"kind":"pdufa"}"#.into())));
        for (kind, value, part) in
            [("tickr", "F", "ticker"), ("kind", "readot", "readout"), ("drug", "ab", "3 letters"), ("ticker", " ", "not a ticker")]
        {
            let refusal = filter_for(kind, value).unwrap_err();
            assert!(refusal.contains(part), "{kind} {value}: {refusal}");
        }
    }
}

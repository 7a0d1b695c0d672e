//! What can be watched in the cadence service: the restocks of one item, or of the items of a niche that match a query.

use crate::record::{Item, Restock};
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::records::Record;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filter;
use super::niches::{Niches, check_niche, is_hidden};
use crate::rules::CadenceRules;
use feed::RecordFeed;
use feed::filter::Filter as _;
use feed::position::position;
use feed::query::Item as FeedItem;
use feed::watchable::WatchableFeed;
use operation::context::{Context, Part};
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The cadence service's feed, as filters and watches follow it.
pub struct Cadence;

/// What a watch names: `item`, or `niche` and `query`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// The id of an item: the host name of its store, slash, the id of the product.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 300))]
    pub item: Option<String>,
    /// The key of a niche, together with `query`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub niche: Option<String>,
    /// Words of title or vendor, as `predict_restock` takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub query: Option<String>,
}

/// A change of an item, as answers show it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The item after the change.
    #[serde(flatten)]
    pub record: Item,
    /// What happened: `new` or `modified`; `added` or `removed` if the filter was changed.
    pub event: String,
    /// The number of the change within the service.
    pub seq: Seq,
    /// When the change was recorded, RFC 3339 in UTC.
    pub recorded_at: String,
    /// The restock that the change records; null if it records none.
    pub restock: Option<Restock>,
    /// What the change means: `restock`, `trickle`, `launch`, `sold_out`, `removed`, `relisted`, `edited`. A new product has none.
    pub happened: Vec<String>,
    /// The record before the change, if `before` was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Item>,
}

impl From<FeedItem<Item>> for Changed {
    fn from(item: FeedItem<Item>) -> Self {
        let FeedItem { change, before } = item;
        Self {
            record: change.record,
            event: change.event,
            seq: change.seq,
            recorded_at: change.recorded_at,
            restock: change.details.restock,
            happened: change.details.happened,
            before,
        }
    }
}

impl WatchableFeed for Cadence {
    type Rules = CadenceRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let WatchedEntity { item, niche, query } = entity.clone();
        match (&item, &niche, &query) {
            (Some(_), None, None) | (None, Some(_), Some(_)) => {}
            (Some(_), _, _) => return Err(Problem::parameter("item", "item: give either `item`, or `niche` and `query`")),
            (None, Some(_), None) => return Err(Problem::parameter("query", "query: `niche` needs `query` with it")),
            (None, None, Some(_)) => return Err(Problem::parameter("niche", "niche: `query` needs `niche` with it")),
            (None, None, None) => return Err(Problem::parameter("item", "item: give `item`, or `niche` and `query`")),
        }
        let filter = Filter { item, niche, query, restocks: true, store: None }.normalize()?;
        Ok((entity, filter))
    }

    async fn check(ctx: &Context, filter: &Filter) -> Result<(), Problem> {
        let (stores, at) = (Niches::of(ctx), position(ctx, &CadenceRules::FEED.source, None).await?);
        for (parameter, text) in [("store", &filter.store), ("item", &filter.item)] {
            text.as_deref().map_or(Ok(()), |text| stores.check_store(parameter, text, |host| is_hidden(&*at.view, host)))?;
        }
        let Some(niche) = &filter.niche else { return Ok(()) };
        check_niche(ctx, &at, niche).await
    }

    fn example_filter() -> Value {
        json!({ "niche": "sneakers", "restocks": true })
    }

    fn example_entity() -> Value {
        json!({ "niche": "sneakers", "query": "runner" })
    }
}

impl WatchMessages for Cadence {
    const EVENT: &'static str = "restock";
    const CHANGES_MAX: usize = 1;

    fn members(entity: WatchedEntity, mut changes: Vec<Changed>) -> Value {
        let change = changes.pop();
        let restock = change.as_ref().and_then(|change| change.restock.clone());
        let id = change.as_ref().map(|change| change.record.id().to_owned()).or(entity.item);
        json!({ "item": id, "niche": entity.niche, "query": entity.query, "restock": restock, "change": change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that feeds, filters and messages of watches say what a change means, as the feed of all changes does.
    #[test]
    fn changes_say_what_happened() {
        let details = json!({ "happened": ["restock", "edited"], "restock": { "after": "a", "before": "b", "variants": 1 } });
        let mut change = json!({ "event": "modified", "seq": 1, "recordedAt": "", "record": { "id": "shop.example/7" } });
        change.as_object_mut().unwrap().extend(details.as_object().unwrap().clone());
        let change = serde_json::from_value(change).unwrap();
        let shown = Changed::from(FeedItem { change, before: None });
        assert_eq!(serde_json::to_value(&shown).unwrap()["happened"], details["happened"]);
        let message = Cadence::message(WatchedEntity::default(), vec![shown]);
        assert_eq!(message["change"]["happened"], details["happened"], "{message}");
    }

    /// Proves that a watch names an item, or a niche and a query, and that it selects restocks.
    #[test]
    fn entities() {
        let entity_from = |json: Value| Cadence::parse_entity(serde_json::from_value(json).unwrap());
        let (_, filter) = entity_from(json!({ "item": "shop.example/7" })).unwrap();
        assert_eq!((filter.item.as_deref(), filter.restocks), (Some("shop.example/7"), true));
        assert!(entity_from(json!({ "niche": "art", "query": "figure" })).unwrap().1.restocks);
        for (entity, field) in [
            (json!({}), "item"),
            (json!({ "niche": "art" }), "query"),
            (json!({ "query": "figure" }), "niche"),
            (json!({ "item": "a/1", "niche": "art" }), "item"),
            (json!({ "niche": "art", "query": "!" }), "query"),
        ] {
            assert_eq!(entity_from(entity.clone()).unwrap_err().parameter, field, "{entity}");
        }
    }
}

//! What filters and watches of the awards service follow: a contractor, as the recipient or as its parent.

use schemars::JsonSchema;
use schemas::facts::FactData;
use schemas::views::awards::Award;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{Filter, NAICS_MAX};
use super::records::Changed;
use crate::rules::AwardsRules;
use feed::watchable::{WatchableFeed, watched_name};
use operation::problem::Problem;
use reads::read::UpstreamRecords;
use webhooks::matchers::WatchMessages;

/// The awards service's feed.
pub struct Awards;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchedEntity {
    /// Part of the name of the contractor, or of its parent.
    #[schemars(length(min = 2, max = 200))]
    pub contractor: String,
    /// Whether to include late news: actions of more than 120 days before they were recorded, and old awards that were not recorded before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

impl WatchableFeed for Awards {
    type Rules = AwardsRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed;

    fn parameters() -> Vec<(&'static str, Value)> {
        let items = json!({ "type": "string", "pattern": "[0-9]" });
        let naics = json!({
            "type": ["string", "array"],
            "minLength": 2,
            "maxLength": 400,
            "pattern": "[0-9]",
            "items": items,
            "maxItems": NAICS_MAX,
        });
        vec![("naics", naics)]
    }

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let contractor = watched_name("contractor", &entity.contractor)?;
        let WatchedEntity { include_backfill, .. } = entity;
        let filter = Filter { recipient: Some(contractor.clone()), include_backfill, ..Filter::default() };
        Ok((WatchedEntity { contractor, include_backfill }, filter))
    }

    fn example_filter() -> Value {
        json!({ "naics": ["5415"], "agency": "energy" })
    }

    fn example_entity() -> Value {
        json!({ "contractor": "federal" })
    }
}

impl UpstreamRecords for Awards {
    fn record_of(fact: &FactData) -> Option<Award> {
        let FactData::Award(fact) = fact else { return None };
        Some(Award {
            id: fact.award_id.clone(),
            piid: fact.piid.clone(),
            parent_piid: fact.parent_piid.clone(),
            award_type: fact.award_type.clone(),
            vehicle: fact.is_vehicle(),
            description: fact.description.clone(),
            recipient: fact.recipient.clone(),
            recipient_uei: fact.recipient_uei.clone(),
            parent_recipient: fact.parent_recipient.clone(),
            parent_recipient_uei: fact.parent_recipient_uei.clone(),
            agency: fact.agency.clone(),
            sub_agency: fact.sub_agency.clone(),
            office: fact.office.clone(),
            naics: fact.naics.clone(),
            naics_description: fact.naics_description.clone(),
            psc: fact.psc.clone(),
            psc_description: fact.psc_description.clone(),
            amount_cents: fact.amount_cents,
            outlays_cents: fact.outlays_cents,
            ceiling_cents: fact.ceiling_cents,
            signed: fact.signed.clone(),
            start: fact.start.clone(),
            end: fact.end.clone(),
            potential_end: fact.potential_end.clone(),
            place_state: fact.place_state.clone(),
            extent_competed: fact.extent_competed.clone(),
            offers: fact.offers.clone(),
            set_aside: fact.set_aside.clone(),
            url: fact.url.clone(),
            ..Award::default()
        })
    }
}

impl WatchMessages for Awards {
    const EVENT: &'static str = "award_activity";

    fn members(entity: WatchedEntity, changes: Vec<Changed>) -> Value {
        json!({ "contractor": entity.contractor, "changes": changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a watch selects changes of long ago only if its entity asks for them, that entities of older versions can be read, and the members
    /// of its message.
    #[test]
    fn backfill_of_watches() {
        for (entity, include_backfill) in
            [(json!({ "contractor": "acme" }), false), (json!({ "contractor": "acme", "includeBackfill": true }), true)]
        {
            let given: WatchedEntity = serde_json::from_value(entity.clone()).unwrap();
            let (watched, filter) = Awards::parse_entity(given).unwrap();
            let expected = Filter { recipient: Some("acme".to_owned()), include_backfill, ..Filter::default() };
            assert_eq!((json!(watched), filter), (entity, expected));
            let message = json!({ "event": "award_activity", "contractor": "acme", "changes": [] });
            assert_eq!(Awards::message(watched, Vec::new()), message);
        }
    }
}

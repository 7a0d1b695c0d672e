//! What filters and watches of the parcels service follow: one parcel, or the over-assessed parcels of a county or township.

use crate::record::Parcel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DISCLAIMER;
use super::filter::Filter;
use crate::rules::ParcelsRules;
use feed::answer_changes::Changed;
use feed::filter::Filter as _;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The parcels service's feed, as filters and watches follow it.
pub struct Parcels;

/// What a watch names: one parcel by its `pin`, or the parcels of a county or township from a tier on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "WatchedParcels")]
pub struct WatchedEntity {
    /// The number of the parcel: 14 digits in Cook County, 16 characters in Allegheny County, also with dashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 30))]
    pub pin: Option<String>,
    /// The county: `cook-il` or `allegheny-pa`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub county: Option<String>,
    /// The township: its code or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub township: Option<String>,
    /// The lowest tier: `low`, `medium` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub min_tier: Option<String>,
}

impl WatchableFeed for Parcels {
    type Rules = ParcelsRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed<Parcel>;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        if entity.pin.is_none() && entity.county.is_none() && entity.township.is_none() {
            return Err(Problem::parameter("pin", "pin: give a PIN, or a county or township"));
        }
        let WatchedEntity { pin, county, township, min_tier } = entity;
        let filter = Filter { pin, county, township, min_tier, class: None }.normalize()?;
        let Filter { pin, county, township, min_tier, .. } = filter.clone();
        Ok((WatchedEntity { pin, county, township, min_tier }, filter))
    }

    fn example_filter() -> Value {
        json!({ "county": "cook-il", "minTier": "medium" })
    }

    fn example_entity() -> Value {
        json!({ "county": "cook-il", "township": "West Chicago", "minTier": "medium" })
    }
}

impl WatchMessages for Parcels {
    const EVENT: &'static str = "parcels.changed";
    const DISCLAIMER: Option<&'static str> = Some(DISCLAIMER);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a watch names a parcel, a county or a township, in any spelling, that a tier alone is not enough, and that its message says what it watches.
    #[test]
    fn what_a_watch_names() {
        let read = |entity: Value| {
            let (entity, _) = Parcels::parse_entity(serde_json::from_value(entity).unwrap()).map_err(|problem| problem.parameter)?;
            Ok::<Value, String>(serde_json::to_value(entity).unwrap())
        };
        for (given, read_as) in [
            (json!({ "pin": "16-01-216-064-0000" }), json!({ "pin": "16012160640000" })),
            (
                json!({ "county": "Cook-IL", "township": "west chicago", "minTier": "High" }),
                json!({ "county": "cook-il", "township": "77", "minTier": "high" }),
            ),
        ] {
            let found = read(given).unwrap();
            assert_eq!(found, read_as);
            let message = Parcels::message(serde_json::from_value(found).unwrap(), Vec::new());
            assert!(read_as.as_object().unwrap().iter().all(|(name, value)| message[name] == *value), "{message}");
            assert_eq!((&message["event"], &message["disclaimer"]), (&json!("parcels.changed"), &json!(DISCLAIMER)));
        }
        let impossible = json!({ "pin": "16012160690000", "township": "104" });
        let (_, filter) = Parcels::parse_entity(serde_json::from_value(impossible).unwrap()).unwrap();
        assert!(filter.contradiction().is_some(), "a watch that nothing can match has a note");
        assert_eq!(read(json!({ "minTier": "high" })).unwrap_err(), "pin");
        assert_eq!(read(json!({ "pin": "1601216064" })).unwrap_err(), "pin");
        assert_eq!(read(json!({ "county": "lake-il" })).unwrap_err(), "county");
    }
}

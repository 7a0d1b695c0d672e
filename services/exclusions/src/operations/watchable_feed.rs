//! What filters and watches of the exclusions service follow: an entity, by its UEI or by its whole name. A watch is about the hit of the entity: an
//! exclusion of a party without federal awards is no signal.

use crate::record::{Exclusion, HIT};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DISCLAIMER;
use super::filter::{self, Filter};
use crate::rules::ExclusionsRules;
use feed::answer_changes::Changed;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The exclusions service's feed, as filters and watches follow it.
pub struct Exclusions;

/// What a watch names: an entity, by `uei` or by `name`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// Unique entity id, 12 letters and digits. It finds the hit of the entity: that it is excluded and has federal awards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
    /// The whole name of a company or person, if the UEI is not known. Two parties can have one name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 300))]
    pub name: Option<String>,
}

impl WatchableFeed for Exclusions {
    type Rules = ExclusionsRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed<Exclusion>;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        if entity.uei.is_none() && entity.name.is_none() {
            return Err(Problem::parameter("uei", "`uei` or `name` is required: what is watched"));
        }
        let uei = entity.uei.as_deref().map(|text| filter::uei("uei", text)).transpose()?;
        // The UEI identifies the entity, so the name adds nothing to it.
        let name = entity.name.as_deref().filter(|_| uei.is_none()).map(|text| filter::name("name", text)).transpose()?;
        Ok((WatchedEntity { uei: uei.clone(), name: name.clone() }, Filter { kind: Some(HIT.to_owned()), uei, name, ..Filter::default() }))
    }

    fn example_filter() -> Value {
        json!({ "kind": "hit", "agency": "EPA" })
    }

    fn example_entity() -> Value {
        json!({ "uei": "SPPA4G7J3N91" })
    }
}

impl WatchMessages for Exclusions {
    const EVENT: &'static str = "exclusions.signal";
    const DISCLAIMER: Option<&'static str> = Some(DISCLAIMER);

    fn members(entity: WatchedEntity, changes: Vec<Changed<Exclusion>>) -> Value {
        json!({ "watch": entity, "changes": changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::{Element, Filter as _};

    const UEI: &str = "ABCDEF123456";

    fn filter_of(entity: Value) -> Result<Filter, String> {
        let entity = serde_json::from_value::<WatchedEntity>(entity).map_err(|error| error.to_string())?;
        Exclusions::parse_entity(entity).map(|(_, filter)| filter).map_err(|problem| problem.parameter)
    }

    /// Proves that a watch selects the changes in which the hit of its entity begins, changes or ends, and neither rows of the list nor other entities.
    #[test]
    fn watches_select_hits() {
        let change = |kind: &str, uei: &str, withdrawn: bool| -> Element<Exclusion> {
            let record = json!({
                "id": format!("{kind}:1"), "kind": kind, "name": "Acme LLC", "uei": uei, "withdrawn": withdrawn, "nameKeys": filter::keys_of("Acme LLC"),
            });
            serde_json::from_value(json!({ "event": "modified", "seq": 1, "recordedAt": "", "record": record })).unwrap()
        };
        for watch in [json!({ "uei": UEI.to_lowercase() }), json!({ "name": "ACME INC" })] {
            let filter = filter_of(watch.clone()).unwrap();
            assert!(filter.matches(&change(HIT, UEI, false)) && filter.matches(&change(HIT, UEI, true)), "{watch}");
            assert!(!filter.matches(&change("exclusion", UEI, false)) && !filter.matches(&change("exclusion", UEI, true)), "{watch}");
            assert_eq!(Filter::from_canonical(&filter.canonical()), Some(filter), "{watch}");
        }
        assert!(!filter_of(json!({ "uei": UEI })).unwrap().matches(&change(HIT, "ABCDEF123457", false)));
        let refused = [json!({}), json!({ "uei": "ABCDEF12345" }), json!({ "name": "--" })].map(|entity| filter_of(entity).unwrap_err());
        assert_eq!(refused, ["uei", "uei", "name"]);
    }

    /// Proves the name of the event, and that a message says what it is not.
    #[test]
    fn messages() {
        let entity = WatchedEntity { uei: Some(UEI.to_owned()), name: None };
        let expected = json!({ "event": "exclusions.signal", "watch": { "uei": UEI }, "changes": [], "disclaimer": DISCLAIMER });
        assert_eq!(Exclusions::message(entity, Vec::new()), expected);
    }
}

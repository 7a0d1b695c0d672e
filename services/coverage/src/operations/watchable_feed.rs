//! What filters and watches of the coverage service follow: leads of a state, a line of insurance or a source.

use crate::record::Lead;
use schemars::JsonSchema;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DISCLAIMER;
use super::filter::Filter;
use crate::rules::CoverageRules;
use feed::answer_changes::Changed;
use feed::filter::Filter as _;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The coverage service's feed, as filters and watches follow it.
pub struct Coverage;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// Which leads are watched, by the fields of the filter of `changes`; at least one. `tier` is none of them: it follows from the day on which a lead
    /// is read, so it changes without a change of the lead, and a lead is usually `hot` when it is recorded.
    pub filter: Filter,
}

impl WatchableFeed for Coverage {
    type Rules = CoverageRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed<Lead>;

    /// Leads of a watch are sold to callers with higher limits.
    const WATCH_MIN_TIER: Tier = Tier::Business;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        if entity.filter == Filter::default() {
            return Err(Problem::parameter("filter", "filter: names at least one of state, coverageLine, source, basis and trigger"));
        }
        let filter = entity.filter.normalize().map_err(|problem| problem.within("filter"))?;
        Ok((WatchedEntity { filter: filter.clone() }, filter))
    }

    fn example_filter() -> Value {
        json!({ "state": "CO", "coverageLine": "AUTO_LIABILITY_BIPD" })
    }

    fn example_entity() -> Value {
        json!({ "filter": { "state": "CO", "coverageLine": "AUTO_LIABILITY_BIPD" } })
    }
}

impl WatchMessages for Coverage {
    const EVENT: &'static str = "coverage.leads";
    const DISCLAIMER: Option<&'static str> = Some(DISCLAIMER);
    const CHANGES_MAX: usize = 200;
    const IS_DAILY: bool = true;
}

#[cfg(test)]
mod tests {
    use operation::Price;

    use super::*;

    /// Proves that a watch names at least one condition, and that one by tier is refused with the reason.
    #[test]
    fn conditions_of_watches() {
        let entity_from = |filter: Value| {
            let entity = serde_json::from_value::<WatchedEntity>(json!({ "filter": filter })).unwrap();
            Coverage::parse_entity(entity).map(|(entity, _)| entity.filter).map_err(|problem| problem.detail)
        };
        let all = json!({"state": "co", "coverageLine": "cargo", "source": "FMCSA", "basis": "mandated", "trigger": "new_carrier"});
        let parsed = serde_json::to_value(entity_from(all).unwrap()).unwrap();
        let expected = json!({"state": "CO", "coverageLine": "CARGO", "source": "fmcsa", "basis": "MANDATED", "trigger": "new_carrier"});
        assert_eq!(parsed, expected);
        for tier in [json!({"tier": "hot"}), json!({"tier": "cool", "state": "CO"})] {
            let detail = entity_from(tier).unwrap_err();
            assert!(detail.starts_with("filter.tier: ") && detail.contains("follows from the day"), "{detail}");
        }
        assert!(entity_from(json!({})).unwrap_err().contains("at least one of state"));
        assert!(entity_from(json!({"state": "Colorado"})).unwrap_err().contains("filter.state"));
    }

    /// Proves the members of a message: its event, the filter, the changes, and what the leads are not.
    #[test]
    fn messages() {
        let entity = serde_json::from_value(json!({ "filter": { "state": "CO" } })).unwrap();
        let expected = json!({ "event": "coverage.leads", "filter": { "state": "CO" }, "changes": [], "disclaimer": DISCLAIMER });
        assert_eq!(Coverage::message(entity, Vec::new()), expected);
    }

    /// Proves that a watch of leads needs a key of tier business, and that a message carries at most 200 of them, of one day.
    #[test]
    fn watches_need_tier_business() {
        let operations = crate::service().service.operations;
        let price = |name: &str| operations.iter().find(|operation| operation.name == name).unwrap().price;
        assert!(matches!(price("watch"), Price::Tier(Tier::Business)) && matches!(price("save_filter"), Price::Tier(Tier::Pro)));
        assert_eq!(Coverage::CHANGES_MAX, 200);
        const { assert!(<Coverage as WatchMessages>::IS_DAILY) };
    }
}

//! What can be watched in the aviation service: the directives that may apply to a make and model, or to the aircraft of a stored fleet.

use schemars::JsonSchema;
use schemas::views::aviation::AirworthinessDirective;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DISCLAIMER;
use super::filter::Filter;
use super::fleet_watch::{FleetOfWatch, fleet_name};
use crate::rules::AviationRules;
use access::fleets::fleet_of;
use access::saved_items::SavedItems;
use feed::answer_changes::Changed;
use feed::filter::Filter as _;
use feed::watchable::WatchableFeed;
use fold::records::Rules;
use operation::Call;
use operation::context::Context;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The aviation service's feed, as filters and watches follow it.
pub struct Aviation;

/// What a watch names: a make and model, or a stored fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WatchedEntity {
    /// The make, together with `model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub make: Option<String>,
    /// The model, together with `make`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub model: Option<String>,
    /// The name of a stored fleet, without make and model: directives for any of its aircraft, as it is stored when a directive comes. The watch ends when the
    /// fleet is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub fleet: Option<String>,
}

impl WatchableFeed for Aviation {
    type Rules = AviationRules;
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed<AirworthinessDirective>;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let WatchedEntity { make, model, fleet } = entity;
        match (make, model, fleet) {
            (None, None, Some(fleet)) => {
                let entity = WatchedEntity { fleet: Some(fleet_name(&fleet)?), ..WatchedEntity::default() };
                Ok((entity, Filter::default()))
            }
            (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
                Err(Problem::parameter("fleet", "fleet: a watch names either a stored fleet or a make and model"))
            }
            (None, _, None) => Err(Problem::parameter("make", "make: a watch names a make and model, or a stored fleet")),
            (Some(_), None, None) => Err(Problem::parameter("model", "model: is needed with `make`")),
            (make, model, None) => {
                let filter = Filter { make: make.clone(), model: model.clone(), ..Filter::default() }.normalize()?;
                Ok((WatchedEntity { make, model, fleet: None }, filter))
            }
        }
    }

    /// A stored fleet is named by its id: its name is private.
    async fn bind(call: &Call, entity: WatchedEntity, filter: Filter) -> Result<(WatchedEntity, Filter), Problem> {
        let Some(name) = &entity.fleet else { return Ok((entity, filter)) };
        let stored = SavedItems::fleets(call, AviationRules::NAME).fleet(name).await.map_err(|problem| problem.about("fleet"))?;
        let fleet = FleetOfWatch { account: call.caller.account.clone(), id: stored.id.clone() };
        Ok((WatchedEntity { fleet: Some(stored.id), ..WatchedEntity::default() }, Filter { fleet: Some(fleet), ..filter }))
    }

    async fn shown_entity(ctx: &Context, account: &str, entity: WatchedEntity) -> Result<WatchedEntity, Problem> {
        let Some(id) = &entity.fleet else { return Ok(entity) };
        let stored = fleet_of(ctx, account, id).await?;
        Ok(WatchedEntity { fleet: stored.map(|stored| stored.name).or(entity.fleet), ..WatchedEntity::default() })
    }

    fn example_filter() -> Value {
        json!({ "make": "Piper", "model": "PA-28-140" })
    }

    fn example_entity() -> Value {
        json!({ "make": "Piper", "model": "PA-28-140" })
    }
}

impl WatchMessages for Aviation {
    const EVENT: &'static str = "aviation.directive";
    const DISCLAIMER: Option<&'static str> = Some(DISCLAIMER);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a watch names a make and model or a fleet, and that its message says which.
    #[test]
    fn entities() {
        let entity_from = |json: Value| serde_json::from_value::<WatchedEntity>(json).unwrap();
        for (entity, parameter) in [
            (json!({ "make": "Piper", "model": "PA-28-140" }), None),
            (json!({ "fleet": " default " }), None),
            (json!({}), Some("make")),
            (json!({ "model": "PA-28-140" }), Some("make")),
            (json!({ "make": "Piper" }), Some("model")),
            (json!({ "make": "Piper", "model": "PA-28-140", "fleet": "default" }), Some("fleet")),
            (json!({ "make": "Piper", "fleet": "default" }), Some("fleet")),
            (json!({ "fleet": " " }), Some("fleet")),
        ] {
            let parsed = Aviation::parse_entity(entity_from(entity.clone()));
            assert_eq!(parsed.as_ref().err().map(|problem| problem.parameter.as_str()), parameter, "{entity}");
        }
        let of_make = Aviation::message(entity_from(json!({ "make": "Piper", "model": "PA-28-140" })), Vec::new());
        assert_eq!((&of_make["event"], &of_make["make"], of_make.get("fleet")), (&json!("aviation.directive"), &json!("Piper"), None));
        let of_fleet = Aviation::message(entity_from(json!({ "fleet": "default" })), Vec::new());
        assert_eq!((&of_fleet["fleet"], of_fleet.get("make")), (&json!("default"), None));
    }
}

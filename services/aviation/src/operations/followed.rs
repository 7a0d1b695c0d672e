//! What can be watched in the aviation service: the directives that may apply to a make and model.

use schemars::JsonSchema;
use schemas::views::aviation::AirworthinessDirective;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filter;
use crate::{DISCLAIMER, FEED};
use feed::filter::Filter as _;
use feed::query::Feed;
use feed::shown::Changed;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The aviation service's feed, as filters and watches follow it.
pub struct Aviation;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// The make.
    #[schemars(length(min = 1, max = 80))]
    pub make: String,
    /// The model.
    #[schemars(length(min = 1, max = 80))]
    pub model: String,
}

impl WatchableFeed for Aviation {
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed<AirworthinessDirective>;

    const FEED: Feed = FEED;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        let WatchedEntity { make, model } = entity.clone();
        Ok((entity, Filter { make: Some(make), model: Some(model), ..Filter::default() }.normalize()?))
    }

    fn example_filter() -> Value {
        json!({ "make": "Piper", "model": "PA-28-140" })
    }

    fn example_entity() -> Value {
        json!({ "make": "Piper", "model": "PA-28-140" })
    }
}

impl WatchMessages for Aviation {
    const CHANGES_MAX: usize = 20;

    fn message(entity: WatchedEntity, changes: Vec<Changed<AirworthinessDirective>>) -> Value {
        let WatchedEntity { make, model } = entity;
        json!({ "event": "aviation.directive", "make": make, "model": model, "changes": changes, "disclaimer": DISCLAIMER })
    }
}

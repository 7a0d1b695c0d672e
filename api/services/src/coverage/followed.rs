//! What filters and watches of the coverage service follow: leads of a state, a line of insurance or a source.

use schemars::JsonSchema;
use schemas::views::coverage::Lead;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::Filter;
use super::{DISCLAIMER, FEED};
use feed::filter::Filter as _;
use feed::query::Feed;
use feed::shown::Changed;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The coverage service's feed, as filters and watches follow it.
pub struct Coverage;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WatchedEntity {
    /// Which leads are watched, by the fields of the filter of `changes`; at least one.
    pub filter: Filter,
}

impl WatchableFeed for Coverage {
    type Filter = Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = Changed<Lead>;

    const FEED: Feed = FEED;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, Filter), Problem> {
        if entity.filter == Filter::default() {
            return Err(Problem::parameter("filter", "filter: names at least one of state, coverageLine, source, basis and trigger"));
        }
        let in_filter = |problem: Problem| Problem { detail: format!("filter.{}", problem.detail), ..problem.about("filter") };
        let filter = entity.filter.normalize().map_err(in_filter)?;
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
    const CHANGES_MAX: usize = 20;

    fn message(entity: WatchedEntity, changes: Vec<Changed<Lead>>) -> Value {
        json!({ "event": "coverage.leads", "filter": entity.filter, "changes": changes, "disclaimer": DISCLAIMER })
    }
}

//! Awards as they are saved and watched: a contractor, as the recipient or as its parent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::FEED;
use super::filter::Filter;
use super::records::Changed;
use feed::followed::{Followed, watched_name};
use feed::query::Feed;
use operation::problem::Problem;
use webhooks::matchers::WatchMessages;

/// The awards service's feed.
pub struct Awards;

/// What a watch names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// Part of the name of the contractor, or of its parent.
    #[schemars(length(min = 2, max = 200))]
    pub contractor: String,
}

impl Followed for Awards {
    type Filter = Filter;
    type Named = Named;
    type Shown = Changed;

    const FEED: Feed = FEED;

    fn checked(filter: Filter) -> Result<Filter, Problem> {
        filter.checked()
    }

    fn named(named: Named) -> Result<(Named, Filter), Problem> {
        let contractor = watched_name("contractor", "contractor", &named.contractor)?;
        Ok((Named { contractor: contractor.clone() }, Filter { recipient: Some(contractor), ..Filter::default() }))
    }

    fn example_filter() -> Value {
        json!({ "naics": ["5415"], "agency": "energy" })
    }

    fn example_named() -> Value {
        json!({ "contractor": "federal" })
    }
}

impl WatchMessages for Awards {
    const CHANGES_MAX: usize = 20;

    fn message(named: Named, changes: Vec<Changed>) -> Value {
        json!({ "event": "award_activity", "contractor": named.contractor, "changes": changes })
    }
}

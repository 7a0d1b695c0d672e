//! `GET /stores`: the stores that are polled, each with its last poll.

use crate::record::StoreState;
use operation::problem::Problem;
use operation::{Definition, Surface};
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::niches::{hidden_stores, known, niche, stores};
use super::watchable_feed::Cadence;
use reads::read::{Read, Reader, hidden_note};

/// Arguments of `list_stores`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Only the stores of this niche, by its key.
    #[schemars(length(min = 1, max = 100))]
    pub niche: Option<String>,
}

/// The stores.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Stores")]
pub struct Listed {
    /// The number of stores.
    pub count: usize,
    /// The stores, by host name.
    pub stores: Vec<Store>,
    /// The last day for which every store has been polled; empty before the first complete run.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
    /// The number of complete runs.
    pub snapshot_count: u64,
}

/// A store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Store {
    /// The host name of the store, as other operations take it.
    pub store: String,
    /// The key of its niche.
    pub niche: String,
    /// The number of polls, complete or not.
    pub polls: i64,
    /// When the last poll ended, RFC 3339; empty before the first.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub last_poll: String,
    /// Whether the last poll read the whole list of products.
    pub is_complete: bool,
    /// When the last poll ended that read the whole list, RFC 3339; empty if none did.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub last_complete_poll: String,
}

impl Store {
    fn new(host: String, niche: String, state: &StoreState, now_ms: i64) -> Self {
        let time = |at_ms: Option<i64>| at_ms.map_or_else(String::new, rfc3339);
        let last = state.last_until(now_ms);
        Self {
            store: host,
            niche,
            polls: state.counts_until(now_ms).polls,
            last_poll: time(last.map(|poll| poll.at_ms)),
            is_complete: last.is_some_and(|poll| poll.is_complete),
            last_complete_poll: time(state.last_complete_before(now_ms + 1)),
        }
    }
}

impl Read for Arguments {
    type Service = Cadence;
    type Answer = Listed;

    fn definition() -> Definition {
        Definition {
            name: "list_stores",
            path: "/stores",
            summary: "The stores that are polled, each with its last poll.",
            description: "A store whose last poll is not complete is failing: its items keep their last known state, and predictions become less sure. \
                Stores that are hidden on request are left out, and `note` says how many.",
            surface: Surface::Route,
            list: "stores",
            example: json!({ "niche": "sneakers" }),
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Cadence>) -> Result<Listed, Problem> {
        let niches = match &self.niche {
            Some(text) => [niche(reader.context(), &reader.at, text).await?].into(),
            None => known(reader.context(), &reader.at).await?,
        };
        // The same number whichever niche is asked for: it does not tell the niche of a hidden store.
        let hidden = hidden_stores(reader.context(), &reader.at).await?;
        reader.note(hidden_note("stores of any niche", hidden));
        let states = stores(reader.context(), &reader.at).await?;
        let now_ms = reader.at.now.as_millisecond();
        let mut listed = Vec::new();
        for (key, known) in niches {
            for host in known.stores {
                let state = states.get(&host).cloned().unwrap_or_default();
                listed.push(Store::new(host, key.clone(), &state, now_ms));
            }
        }
        listed.sort_by(|a, b| a.store.cmp(&b.store));
        let standing = reader.completeness().await?;
        Ok(Listed { count: listed.len(), stores: listed, through_date: standing.through_date, snapshot_count: standing.snapshot_count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a store shows the polls until the time of the answer, and nothing before its first poll.
    #[test]
    fn polls_until_a_time() {
        let mut state = StoreState { interval_s: 3_600, ..StoreState::default() };
        for (hour, is_complete) in [(1, true), (2, true), (3, false)] {
            state.add(hour * 3_600_000, is_complete, 5);
        }
        let at = |hour: i64| Store::new("a.example".to_owned(), "n".to_owned(), &state, hour * 3_600_000);
        let time = |hour: i64| rfc3339(hour * 3_600_000);
        let expected = |polls: i64, last_poll: String, is_complete: bool, last_complete_poll: String| Store {
            store: "a.example".to_owned(),
            niche: "n".to_owned(),
            polls,
            last_poll,
            is_complete,
            last_complete_poll,
        };
        assert_eq!(at(0), expected(0, String::new(), false, String::new()));
        assert_eq!(at(2), expected(2, time(2), true, time(2)));
        assert_eq!(at(4), expected(3, time(3), false, time(2)));
    }
}

//! `GET /niches`: the niches, with what is known about them.

use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::catalog::Catalog;
use super::filter::Filter;
use super::niches::{KnownNiche, known};
use super::polled_through::PolledThrough;
use super::watchable_feed::Cadence;
use reads::read::{Read, Reader};

/// Arguments of `list_niches`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The niches.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The number of niches.
    pub count: usize,
    /// The niches, by key.
    pub niches: Vec<Niche>,
    /// How completely the stores have been polled.
    #[serde(flatten)]
    pub polled: PolledThrough,
}

/// A niche.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Niche {
    /// The key of the niche, as other operations take it.
    pub key: String,
    /// The name of the niche for people.
    pub label: String,
    /// The number of its stores.
    pub stores: usize,
    /// The number of its items.
    pub items: usize,
    /// How many of them are on the board.
    pub ranked: usize,
}

impl Read for Arguments {
    type Service = Cadence;
    type Answer = Listed;

    fn definition() -> Definition {
        Definition {
            name: "list_niches",
            path: "/niches",
            when: "Use it first, for the keys that the other tools take.",
            summary: "The niches: groups of stores whose items are compared.",
            description: "`ranked` counts the items on the board: those that have been observed for 14 days.",
            list: "niches",
            example: json!({}),
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Cadence>) -> Result<Listed, Problem> {
        let mut niches = Vec::new();
        for (key, KnownNiche { label, stores }) in known(reader.context(), &reader.at).await? {
            let catalog = Catalog::of(reader.context(), &reader.at, &key).await?;
            let ranked = catalog.ranked(&reader.at).count();
            niches.push(Niche { label, stores: stores.len(), items: catalog.items.entries.len(), ranked, key });
        }
        Ok(Listed { count: niches.len(), niches, polled: PolledThrough::read(reader).await? })
    }
}

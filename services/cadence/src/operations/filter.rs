//! The filter of the cadence service's feeds.

use crate::record::Item;
use schemars::JsonSchema;
use schemas::views::records::normal;
use serde::{Deserialize, Serialize};

use super::words::{have, words};
use crate::Change;
use feed::filter::{self, Named, TermQuery};
use operation::problem::Problem;

/// A filter: items match if they match every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// The key of a niche.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub niche: Option<String>,
    /// The host name of a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub store: Option<String>,
    /// The id of an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 300))]
    pub item: Option<String>,
    /// Every word must be the beginning of a word of title or vendor, in any case, with or without accents.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub query: Option<String>,
    /// Whether only changes that record a restock match.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restocks: bool,
}

impl filter::Filter for Filter {
    type Record = Item;

    const NAMED: &'static [Named] = &[Named::name("store", "store"), Named::name("item", "id")];

    fn normalize(mut self) -> Result<Self, Problem> {
        if let Some(query) = &self.query
            && words(&[query]).is_empty()
        {
            return Err(Problem::parameter("query", format!("query: {query:?} has neither letters nor digits")));
        }
        self.store = self.store.map(|store| store.trim().to_lowercase());
        Ok(self)
    }

    fn matches(&self, change: &Change) -> bool {
        let item = &change.record;
        self.niche.as_deref().is_none_or(|niche| normal(niche) == normal(&item.niche))
            && self.store.as_deref().is_none_or(|store| store == item.store)
            && self.item.as_deref().is_none_or(|id| id == item.id)
            && self.query.as_deref().is_none_or(|query| have(&words(&[&item.item, &item.vendor]), &words(&[query])))
            && (!self.restocks || change.details.restock.is_some())
    }

    fn term_queries(&self) -> Vec<TermQuery> {
        let exact = |dimension, value: &Option<String>| value.as_ref().map(|value| TermQuery::Exact(dimension, vec![value.clone()]));
        [exact("id", &self.item), exact("store", &self.store), exact("niche", &self.niche)].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;

    /// Proves which changes match which filters, and how they are found.
    #[test]
    fn conditions() {
        let change = serde_json::json!({
            "event": "modified", "seq": 1, "recordedAt": "", "happened": ["restock"], "restock": { "after": "a", "before": "b", "variants": 1 },
            "record": { "id": "shop.example/7", "store": "shop.example", "niche": "sneakers", "item": "Café Runner", "vendor": "Hill" }
        });
        let change: Change = serde_json::from_value(change).unwrap();
        let of = |json: serde_json::Value| serde_json::from_value::<Filter>(json).unwrap().normalize().unwrap();
        for (filter, expected) in [
            (serde_json::json!({}), true),
            (serde_json::json!({ "restocks": true, "query": "cafe run", "niche": "Sneakers", "store": "SHOP.example" }), true),
            (serde_json::json!({ "item": "shop.example/7" }), true),
            (serde_json::json!({ "item": "shop.example/70" }), false),
            (serde_json::json!({ "query": "cafe walker" }), false),
            (serde_json::json!({ "niche": "art" }), false),
        ] {
            assert_eq!(of(filter.clone()).matches(&change), expected, "{filter}");
        }
        let mut quiet = change.clone();
        quiet.details.restock = None;
        assert!(!of(serde_json::json!({ "restocks": true })).matches(&quiet));
        assert_eq!(of(serde_json::json!({ "item": "a/1" })).term_queries(), [TermQuery::Exact("id", vec!["a/1".to_owned()])]);
        let wrong: Filter = serde_json::from_value(serde_json::json!({ "query": "?!" })).unwrap();
        assert_eq!(wrong.normalize().unwrap_err().parameter, "query");
    }
}

//! The filter of the cadence service's feeds.

use crate::record::Item;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{have, words};
use feed::filter::{self, Element, Fields};
use feed::text_field;
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

    const FIELDS: Fields<Self> = &[
        text_field!(niche).left_as_given().same_term_as(|item| &item.niche).found_by_term(3, "niche"),
        text_field!(store)
            .read_by(|_, store| Ok(store.trim().to_lowercase()))
            .equal_to(|item| &item.store)
            .found_by_term(2, "store")
            .with_names("store"),
        text_field!(item).left_as_given().equal_to(|item| &item.id).found_by_term(1, "id").with_names("id"),
        text_field!(query)
            .read_by(query)
            .selecting(|item, query| have(&words(&[&item.item, &item.vendor]), &words(&[query])))
            .needing_words(|query| words(&[query])),
    ];

    fn contradiction(&self) -> Option<String> {
        let (item, store) = (self.item.as_deref()?, self.store.as_deref()?);
        let own = item.split_once('/').map_or(item, |(host, _)| host);
        (own != store).then(|| format!("no item can match: {item} is an item of the store {own}, not of {store}"))
    }

    fn matches(&self, change: &Element<Item>) -> bool {
        self.takes(&change.record) && (!self.restocks || change.details.restock.is_some())
    }
}

/// Checks that a query has words, and leaves it as it is given.
fn query(parameter: &'static str, text: &str) -> Result<String, Problem> {
    if words(&[text]).is_empty() {
        return Err(Problem::parameter(parameter, format!("query: {text:?} has neither letters nor digits")));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::{Filter as _, TermQuery};

    /// Proves which changes match which filters, and how they are found.
    #[test]
    fn conditions() {
        let change = serde_json::json!({
            "event": "modified", "seq": 1, "recordedAt": "", "happened": ["restock"], "restock": { "after": "a", "before": "b", "variants": 1 },
            "record": { "id": "shop.example/7", "store": "shop.example", "niche": "sneakers", "item": "Café Runner", "vendor": "Hill" }
        });
        let change: Element<Item> = serde_json::from_value(change).unwrap();
        let filter_from = |json: serde_json::Value| serde_json::from_value::<Filter>(json).unwrap().normalize().unwrap();
        for (filter, expected) in [
            (serde_json::json!({}), true),
            (serde_json::json!({ "restocks": true, "query": "cafe run", "niche": "Sneakers", "store": "SHOP.example" }), true),
            (serde_json::json!({ "item": "shop.example/7" }), true),
            (serde_json::json!({ "item": "shop.example/70" }), false),
            (serde_json::json!({ "query": "cafe walker" }), false),
            (serde_json::json!({ "niche": "art" }), false),
        ] {
            assert_eq!(filter_from(filter.clone()).matches(&change), expected, "{filter}");
        }
        let excluded = |store: &str| filter_from(serde_json::json!({ "item": "shop.example/7", "store": store })).contradiction().is_some();
        assert_eq!(["other.example", "SHOP.example"].map(excluded), [true, false]);
        let mut quiet = change.clone();
        quiet.details.restock = None;
        assert!(!filter_from(serde_json::json!({ "restocks": true })).matches(&quiet));
        assert_eq!(filter_from(serde_json::json!({ "item": "a/1" })).term_queries(), [TermQuery::Exact("id", vec!["a/1".to_owned()])]);
        let wrong: Filter = serde_json::from_value(serde_json::json!({ "query": "?!" })).unwrap();
        assert_eq!(wrong.normalize().unwrap_err().parameter, "query");
    }
}

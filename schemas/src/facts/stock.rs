//! What a storefront said about one variant of a product, or what one poll of a storefront saw.
//!
//! A **poll** reads all products of one store. Every poll is a fact, also a failed one: variants that did not change have no fact, so only the
//! polls say until when they were seen.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// The values of [`StockFact::kind`].
pub mod kind {
    /// The state of one variant.
    pub const VARIANT: &str = "variant";
    /// One poll of a store.
    pub const POLL: &str = "poll";
}

/// A variant, or a poll of a store. Texts are trimmed, white space collapsed, entities resolved; `""` means unknown. Times are RFC 3339 in
/// UTC. Ids are texts, because they exceed what a JSON number holds exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StockFact {
    /// The stream: `shopify`.
    pub stream: String,
    /// `variant` or `poll`, see [`kind`].
    pub kind: String,
    /// The host name of the store.
    pub host: String,

    /// Variant: id of its product.
    pub product_id: String,
    /// Variant: its id, which survives renames.
    pub variant_id: String,
    /// Variant: title of the product.
    pub title: String,
    /// Variant: its own title (`M`, `Black / 42`); empty if the product has only one variant.
    pub variant_title: String,
    /// Variant: the vendor of the product.
    pub vendor: String,
    /// Variant: the name of the product in URLs. It changes when a product is renamed.
    pub handle: String,
    /// Variant: whether it can be bought.
    pub available: bool,
    /// Variant: its price in hundredths of the store's currency, `None` if unknown.
    pub price_cents: Option<i64>,
    /// Variant: when the product was published.
    pub published_at: String,
    /// Variant: when the store last edited it. It is not compared, because any edit moves it; an older one marks an outdated answer.
    pub updated_at: String,

    /// Poll: key of the niche that the store's items belong to.
    pub niche: String,
    /// Poll: when its last answer arrived.
    pub at: String,
    /// Poll: the interval between two polls of the store, in seconds.
    pub interval_s: i64,
    /// Poll: pages read.
    pub pages: i64,
    /// Poll: products seen.
    pub products: i64,
    /// Poll: variants seen.
    pub variants: i64,
    /// Poll: whether it read every page, so that an unchanged variant was seen unchanged.
    pub complete: bool,
    /// Poll: the newest edit of any variant that it saw, RFC 3339. A later poll that saw only older ones read an outdated copy.
    pub newest_edit: String,
    /// Poll: why it is not complete.
    pub reason: String,
}

impl StockFact {
    /// Returns the canonical form for the content hash: every field but `updatedAt`.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &["updatedAt"])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::{FactData, testing};

    /// Proves that a change of any field but `updatedAt` changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(StockFact::canonical, &["updatedAt"]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let mut value = serde_json::to_value(StockFact::default()).unwrap();
        for (name, field) in value.as_object_mut().unwrap() {
            *field = match field {
                Value::String(_) => json!(format!("the {name}")),
                Value::Null | Value::Number(_) => json!(7),
                _ => json!(true),
            };
        }
        let record: StockFact = serde_json::from_value(value).unwrap();
        let data = FactData::Stock(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

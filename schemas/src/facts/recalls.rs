//! A recall as one agency published it in one stream.

use serde::{Deserialize, Serialize};

use crate::canonical::{Kind, Order, canonical};

/// A recall as one agency published it in one stream. Strings are trimmed, white space collapsed, entities and tags resolved; `""` and
/// empty lists mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecallFact {
    /// The stream: `cpsc`, `openfda.food`, `openfda.drug`, `openfda.device`, `nhtsa.socrata`, `nhtsa.flat`, `fsis`.
    #[serde(rename = "door")]
    pub stream: String,
    /// Agency value of the contract: `CPSC`, `FDA`, `NHTSA`, `USDA`.
    pub agency: String,
    /// The agency's number, normalised: CPSC's RecallNumber, `H-1166-2026`, `26V400000`, `018-2026`. With `agency` it identifies the
    /// recall.
    pub number: String,
    /// Other numbers of the recall (CPSC RecallID, the manufacturer's campaign).
    pub aliases: Vec<String>,
    /// Language of the texts: `en`, `es`.
    pub lang: String,
    /// Title, as the upstream's mapping says.
    pub title: String,
    /// Brand, as the upstream's mapping says.
    pub brand: String,
    /// Hazard text.
    pub hazard: String,
    /// Recall date `YYYY-MM-DD`; empty if the upstream has no plausible one.
    pub date: String,
    /// Absolute https URL of the notice.
    pub url: String,
    /// The remedy that consumers are offered.
    pub remedy: String,
    /// The product type as the upstream words it: openFDA product_type, NHTSA recall_type, CPSC product Types joined.
    pub product_type: String,
    /// Names or descriptions of the products, as evidence for the category; at most 2,000 characters.
    pub products: String,
    /// Status at the agency: Ongoing, Terminated, Active Recall, Closed Recall …
    pub status: String,
    /// Classification: Class I, II, III …
    pub classification: String,
    /// Units or quantity, as the upstream words it.
    pub units: String,
    /// Where it was sold: states or the distribution pattern.
    pub distribution: String,
    /// Whether it is a public health alert, not a recall.
    pub alert: bool,
    /// Whether the vehicle must not be driven (NHTSA).
    pub do_not_drive: bool,
    /// Whether the vehicle must be parked outside (NHTSA).
    pub park_outside: bool,
    /// When the firm initiated the recall (`YYYY-MM-DD`), if that differs from `date`.
    pub initiated: String,
    /// Number of the event to which several recalls belong (openFDA event_id).
    pub event_number: String,
    /// Vehicles: `MAKE MODEL YEAR`, sorted, distinct; at most 2,000.
    pub vehicles: Vec<String>,
    /// Notices of the same recall by other agencies (CPSC inconjunctions).
    pub links: Vec<String>,
}

impl RecallFact {
    /// Returns the canonical form that is hashed: each non-empty field, as its name and its values, separated by bytes that no UTF-8 text
    /// contains. A new optional field thus changes no hash until it has a value.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::ByKind([Kind::Text, Kind::List, Kind::Flag, Kind::Number]), &[])
    }

    /// Returns the rank of the fact among those of one recall, from whose texts a record takes each field: lower ranks are preferred. English
    /// comes before Spanish, then streams have an order.
    #[must_use]
    pub fn rank(&self) -> (bool, usize) {
        const STREAMS: [&str; 8] =
            ["cpsc", "openfda.food", "openfda.drug", "openfda.device", "nhtsa.socrata", "nhtsa.flat", "nhtsa.flat_pre_2010", "fsis"];
        (self.lang == "es", STREAMS.iter().position(|stream| *stream == self.stream).unwrap_or(STREAMS.len()))
    }

    /// Returns the identity of the recall, `AGENCY:number`.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}:{}", self.agency, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing;

    /// Proves that every field is hashed: changing it changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(RecallFact::canonical, &[]);
    }
}

//! A recall as one agency published it through one stream.

use serde::{Deserialize, Serialize};

/// A recall as one agency published it through one stream. Strings are trimmed, white space collapsed, entities and tags
/// resolved; `""` and empty lists stand for unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecallFact {
    /// Which stream: `cpsc`, `openfda.food`, `openfda.drug`, `openfda.device`, `nhtsa.socrata`, `nhtsa.flat`, `fsis`.
    #[serde(rename = "door")]
    pub stream: String,
    /// Agency value of the contract: `CPSC`, `FDA`, `NHTSA`, `USDA`.
    pub agency: String,
    /// The agency's own number, normalised: RecallID's RecallNumber, `H-1166-2026`, `26V400000`, `018-2026`. With `agency` it is the recall's identity.
    pub number: String,
    /// Other numbers it goes by (CPSC RecallID, the manufacturer's campaign).
    pub aliases: Vec<String>,
    /// Language of the texts: `en`, `es`.
    pub lang: String,
    /// Title, as the upstream's mapping says.
    pub title: String,
    /// Brand, as the upstream's mapping says.
    pub brand: String,
    /// Hazard text.
    pub hazard: String,
    /// Recall date `YYYY-MM-DD`, or empty when the upstream has none that can be true.
    pub date: String,
    /// Absolute https URL of the notice.
    pub url: String,
    /// What the consumer gets or does.
    pub remedy: String,
    /// The upstream's own word for the kind of product: openFDA product_type, NHTSA recall_type, CPSC product Types joined.
    pub product_type: String,
    /// Names or descriptions of the products, as far as they say what they are (category evidence); at most 2,000 characters.
    pub products: String,
    /// Status at the agency: Ongoing, Terminated, Active Recall, Closed Recall …
    pub status: String,
    /// Class I, II, III …
    pub classification: String,
    /// Units or quantity, as the upstream words it.
    pub units: String,
    /// Where it was sold: states or the distribution pattern.
    pub distribution: String,
    /// A public health alert, which is not a recall.
    pub alert: bool,
    /// Do not drive (NHTSA).
    pub do_not_drive: bool,
    /// Park outside (NHTSA).
    pub park_outside: bool,
    /// When the recall was begun by the firm (`YYYY-MM-DD`), where that differs from `date`.
    pub initiated: String,
    /// Number of the event that joins several recalls (openFDA event_id).
    pub event_number: String,
    /// Vehicles: `MAKE MODEL YEAR`, sorted, distinct; at most 2,000.
    pub vehicles: Vec<String>,
    /// Notices of the same recall elsewhere (CPSC inconjunctions).
    pub links: Vec<String>,
}

impl RecallFact {
    /// The canonical form that is hashed: each field that holds something, as its name and its values, each ended by a byte
    /// that no text has. A new optional field thus changes no hash until it holds something.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let Self {
            stream,
            agency,
            number,
            aliases,
            lang,
            title,
            brand,
            hazard,
            date,
            url,
            remedy,
            product_type,
            products,
            status,
            classification,
            units,
            distribution,
            alert,
            do_not_drive,
            park_outside,
            initiated,
            event_number,
            vehicles,
            links,
        } = self;
        let texts = [
            ("door", stream),
            ("agency", agency),
            ("number", number),
            ("lang", lang),
            ("title", title),
            ("brand", brand),
            ("hazard", hazard),
            ("date", date),
            ("url", url),
            ("remedy", remedy),
            ("productType", product_type),
            ("products", products),
            ("status", status),
            ("classification", classification),
            ("units", units),
            ("distribution", distribution),
            ("initiated", initiated),
            ("eventNumber", event_number),
        ];
        let lists = [("aliases", aliases), ("vehicles", vehicles), ("links", links)];
        let texts_bytes: usize = texts.iter().map(|(_, value)| 16 + value.len()).sum();
        let lists_bytes: usize = lists.iter().map(|(_, values)| 16 + values.iter().map(|value| 1 + value.len()).sum::<usize>()).sum();
        let mut out = Vec::with_capacity(texts_bytes + lists_bytes + 64);
        let mut field = |name: &str, values: &[String]| {
            if values.iter().any(|value| !value.is_empty()) {
                out.extend_from_slice(name.as_bytes());
                for value in values {
                    out.push(0xfe);
                    out.extend_from_slice(value.as_bytes());
                }
                out.push(0xff);
            }
        };
        for (name, value) in texts {
            field(name, std::slice::from_ref(value));
        }
        for (name, values) in lists {
            field(name, values);
        }
        for (name, flag) in [("alert", alert), ("doNotDrive", do_not_drive), ("parkOutside", park_outside)] {
            if *flag {
                field(name, &["true".to_owned()]);
            }
        }
        out
    }

    /// The recall's identity, `AGENCY:number`.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}:{}", self.agency, self.number)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Proves that every field counts: changing any one of them changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        let empty = serde_json::to_value(RecallFact::default()).unwrap();
        for (name, value) in empty.as_object().unwrap() {
            let mut changed = empty.clone();
            changed[name] = match value {
                Value::String(_) => json!("x"),
                Value::Array(_) => json!(["x"]),
                _ => json!(true),
            };
            let fact: RecallFact = serde_json::from_value(changed).unwrap();
            assert_ne!(fact.canonical(), RecallFact::default().canonical(), "{name}");
        }
    }
}

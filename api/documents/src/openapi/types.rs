//! The named schemas of a document: one for each type that answers have, and one for the answer of each operation.

use operation::schema::REFERENCE;
use operation::{Operation, Service};
use serde_json::{Map, Value, json};

/// Two types of one service that have the same name: a mistake in a definition, found when the service is mounted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("two different types of service {service} are named {name}; rename one with #[schemars(rename)]")]
pub struct SameName {
    /// The name of the service.
    pub service: &'static str,
    /// The name of the types.
    pub name: String,
}

/// The schemas of a service's answers by name, and of the types that they consist of.
///
/// # Errors
/// When two different types have the same name.
pub(crate) fn types(service: &Service) -> Result<Map<String, Value>, SameName> {
    let mut all = Map::new();
    for operation in service.operations.iter().filter(|operation| operation.files.is_empty()) {
        let answer = (answer_name(operation), &operation.named_output.schema);
        let named = operation.named_output.types.iter().map(|(name, schema)| (name.clone(), schema));
        for (name, schema) in named.chain([answer]) {
            let known = all.entry(name.clone()).or_insert_with(|| schema.clone());
            if known != schema {
                return Err(SameName { service: service.name, name });
            }
        }
    }
    Ok(all)
}

/// The name of the schema of an operation's answer: `search_recalls` has `SearchRecallsAnswer`.
fn answer_name(operation: &Operation) -> String {
    let words = operation.name.split(['_', '-', '.']).map(|word| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    });
    words.chain(["Answer".to_owned()]).collect()
}

/// A reference to the schema of an operation's answer.
pub(super) fn answer(operation: &Operation) -> Value {
    json!({ "$ref": format!("{REFERENCE}{}", answer_name(operation)) })
}

//! The arguments of a read: those that the shell declares, the fields of the service's filter, and the operation's own.

use std::borrow::Cow;
use std::collections::BTreeMap;

use feed::watchable::WatchableFeed;
use proofs::hash::Hash32;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::definition::Read;
use super::difference::Difference;
use super::shared::{FilterOf, Shared};

/// The arguments of a read.
pub(super) struct Arguments<T: Read> {
    pub(super) own: T,
    pub(super) filter: FilterOf<T::Service>,
    pub(super) shared: Shared,
    /// A hash of all arguments but `limit` and `after`.
    pub(super) fingerprint: String,
}

impl<T: Read> Arguments<T> {
    /// Whether an argument that the shell declares is one of this operation.
    fn has(name: &str) -> bool {
        match name {
            "limit" => T::LIMIT.is_some(),
            "days" => T::HAS_DAYS,
            "after" => T::HAS_PAGES,
            _ => true,
        }
    }
}

impl<T: Read> JsonSchema for Arguments<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        let mut shared = std::mem::take(properties_of(&mut Shared::json_schema(generator)));
        shared.retain(|name, _| Self::has(name));
        if let Some((limit, default)) = shared.get_mut("limit").zip(T::LIMIT) {
            limit["default"] = default.into();
        }
        let mut fields = filter_properties::<T::Service>(generator);
        fields.retain(|name, _| T::FILTER.contains(&name.as_str()));
        let properties = properties_of(&mut schema);
        properties.extend(shared);
        properties.extend(fields);
        adapt_schema(&mut schema, T::DIFFERENCES);
        schema
    }
}

impl<'de, T: Read> Deserialize<'de> for Arguments<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut own = Map::deserialize(deserializer)?;
        let is_bound = |name: &&String| !matches!(name.as_str(), "limit" | "after");
        let bound: BTreeMap<&String, &Value> = own.iter().filter(|(name, _)| is_bound(name)).collect();
        let fingerprint = Hash32::of(serde_json::to_string(&bound).unwrap_or_default().as_bytes()).to_string();
        adapt_arguments(&mut own, T::DIFFERENCES);
        let fields = T::FILTER.iter().filter_map(|name| own.remove_entry(*name)).collect();
        let shared =
            ["limit", "days", "after", "asOf"].iter().filter(|name| Self::has(name)).filter_map(|name| own.remove_entry(*name)).collect();
        Ok(Self {
            fingerprint,
            filter: read_filter::<T::Service>(fields).map_err(D::Error::custom)?,
            shared: serde_json::from_value(Value::Object(shared)).map_err(D::Error::custom)?,
            own: serde_json::from_value(Value::Object(own)).map_err(D::Error::custom)?,
        })
    }
}

/// Makes the schema of an operation's arguments that of a surface with these differences.
fn adapt_schema(schema: &mut Schema, differences: &[Difference]) {
    for difference in differences {
        let properties = properties_of(schema);
        match difference {
            Difference::Default { argument, default, description } => {
                let Some(property) = properties.get_mut(*argument) else { continue };
                property["default"] = default();
                if let Some(description) = description {
                    property["description"] = (*description).into();
                }
            }
            Difference::Described { argument, description } => {
                let Some(property) = properties.get_mut(*argument) else { continue };
                property["description"] = (*description).into();
            }
            Difference::Without(argument) => {
                properties.remove(*argument);
            }
            Difference::Required(argument) => {
                let required = schema.ensure_object().entry("required").or_insert_with(|| Vec::<Value>::new().into());
                if let Some(required) = required.as_array_mut() {
                    required.push((*argument).into());
                }
            }
            Difference::Renamed { argument, name } => {
                let Some(property) = properties.remove(*argument) else { continue };
                properties.insert((*name).to_owned(), property);
                let required = schema.get_mut("required").and_then(Value::as_array_mut);
                for required in required.into_iter().flatten().filter(|required| **required == *argument) {
                    *required = (*name).into();
                }
            }
        }
    }
}

/// Makes the arguments of a call on a surface with these differences those of the type.
fn adapt_arguments(arguments: &mut Map<String, Value>, differences: &[Difference]) {
    for difference in differences {
        match difference {
            Difference::Default { argument, default, .. } => {
                arguments.entry(*argument).or_insert_with(*default);
            }
            Difference::Described { .. } | Difference::Without(_) | Difference::Required(_) => {}
            Difference::Renamed { argument, name } => {
                if let Some(value) = arguments.remove(*name) {
                    arguments.insert((*argument).to_owned(), value);
                }
            }
        }
    }
}

/// The properties of an object's schema.
pub fn properties_of(schema: &mut Schema) -> &mut Map<String, Value> {
    let properties = schema.ensure_object().entry("properties").or_insert_with(|| Map::new().into());
    if !properties.is_object() {
        *properties = Map::new().into();
    }
    properties.as_object_mut().unwrap_or_else(|| unreachable!("the properties were made an object"))
}

/// The schemas of a filter's fields as parameters of a query.
pub fn filter_properties<S: WatchableFeed>(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut properties = std::mem::take(properties_of(&mut S::Filter::json_schema(generator)));
    for (name, mut parameter) in S::parameters() {
        if let Some(property) = properties.get_mut(name) {
            if let Some(description) = property.get("description") {
                parameter["description"] = description.clone();
            }
            *property = parameter;
        }
    }
    properties
}

/// Reads a filter from the parameters of a query.
///
/// # Errors
/// When a field does not have its type.
pub fn read_filter<S: WatchableFeed>(mut fields: Map<String, Value>) -> serde_json::Result<S::Filter> {
    for (name, _) in S::parameters() {
        if let Some(value) = fields.get_mut(name) {
            split(value);
        }
    }
    serde_json::from_value(Value::Object(fields))
}

/// Splits texts at their commas into an array. Another value stays as it is.
fn split(value: &mut Value) {
    let texts: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let texts = texts.into_iter().flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty());
    *value = texts.map(str::to_owned).collect();
}

#[cfg(test)]
mod tests {
    use schemars::json_schema;
    use serde_json::json;

    use super::*;
    use crate::read::difference::renamed;

    /// Proves how the schema and the arguments of a call follow from each kind of difference, and that arguments without a difference stay as they are.
    #[test]
    fn differences() {
        let differences = [
            Difference::Default { argument: "days", default: || json!(730), description: Some("Days.") },
            Difference::Default { argument: "limit", default: || json!(200), description: None },
            Difference::Described { argument: "county", description: "The county." },
            Difference::Without("after"),
            Difference::Required("county"),
            Difference::Renamed { argument: "name", name: "drug" },
        ];
        let property_of = |kind: &str, more: Value| {
            let mut property = json!({ "type": kind, "description": "Own." });
            property.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            property
        };
        let mut schema = json_schema!({
            "properties": {
                "name": property_of("string", json!({ "minLength": 3 })),
                "kind": property_of("string", json!({})),
                "county": property_of("string", json!({})),
                "days": property_of("integer", json!({ "default": 30 })),
                "limit": property_of("integer", json!({ "default": 50 })),
                "after": property_of("string", json!({})),
            },
            "required": ["kind", "name"],
        });
        adapt_schema(&mut schema, &differences);
        let expected = json!({
            "properties": {
                "drug": property_of("string", json!({ "minLength": 3 })),
                "kind": property_of("string", json!({})),
                "county": { "type": "string", "description": "The county." },
                "days": { "type": "integer", "description": "Days.", "default": 730 },
                "limit": property_of("integer", json!({ "default": 200 })),
            },
            "required": ["kind", "drug", "county"],
        });
        assert_eq!(schema.to_value(), expected);

        for (given, expected) in [
            (json!({ "drug": "a", "kind": "b" }), json!({ "name": "a", "kind": "b", "days": 730, "limit": 200 })),
            (json!({ "days": 1, "limit": 2 }), json!({ "days": 1, "limit": 2 })),
        ] {
            let mut arguments = given.as_object().unwrap().clone();
            adapt_arguments(&mut arguments, &differences);
            assert_eq!(Value::Object(arguments), expected);
        }
        assert_eq!((renamed(&differences, "name"), renamed(&differences, "days")), (Some("drug"), None));
    }

    /// Proves that a text with commas, an array and both together are read as the same list, and that a number stays a number.
    #[test]
    fn lists() {
        for mut given in [json!("54,61, 23 "), json!(["54,61", " 23 "]), json!(["54", "61", "23"])] {
            split(&mut given);
            assert_eq!(given, json!(["54", "61", "23"]));
        }
        let mut number = json!(5);
        split(&mut number);
        assert_eq!(number, json!(5));
    }
}

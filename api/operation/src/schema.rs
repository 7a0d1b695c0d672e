//! JSON Schemas of arguments and results, in a shape that all MCP and OpenAPI clients accept.
//!
//! Promises: draft 2020-12, without references, always an object with `properties`. Inputs refuse unknown properties and are never nullable. There
//! are no number formats, which strict validators reject. `arguments` validates arguments against these schemas.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::marker::PhantomData;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The schema of an argument type: an object that refuses unknown properties, without nulls.
#[must_use]
pub fn input<P: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = object(settings, |generator| generator.into_root_schema_for::<P>());
    strip_null(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("additionalProperties".to_owned(), false.into());
    }
    schema
}

/// The schema of a result type: an object.
#[must_use]
pub fn output<O: JsonSchema>() -> Value {
    let mut schema = object(SchemaSettings::draft2020_12().for_serialize(), |generator| generator.into_root_schema_for::<O>());
    strip_defaults(&mut schema);
    schema
}

/// The schema of a result that a function generates: an object.
#[must_use]
pub fn output_of(schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema) -> Value {
    object(SchemaSettings::draft2020_12().for_serialize(), |mut generator| schema(&mut generator))
}

/// A schema with references to named types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedSchema {
    /// The schema. References start with [`REFERENCE`].
    pub schema: Value,
    /// The schemas of the named types that it refers to, directly or not, by name.
    pub types: Map<String, Value>,
}

/// The path of named types in a document.
const TYPES: [&str; 2] = ["components", "schemas"];

/// What references to named types start with. The name of the type follows.
pub const REFERENCE: &str = "#/components/schemas/";

/// The schema of a result type: an object, with references to named types as in an OpenAPI document.
#[must_use]
pub fn named_output<O: JsonSchema>() -> NamedSchema {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = format!("/{}", TYPES.join("/")).into();
    let mut schema = root_object(settings, |generator| generator.into_root_schema_for::<O>());
    strip_defaults(&mut schema);
    let mut types = schema.as_object_mut().and_then(|fields| fields.remove(TYPES[0])).unwrap_or_default();
    let types = types.get_mut(TYPES[1]).and_then(Value::as_object_mut).map(std::mem::take).unwrap_or_default();
    NamedSchema { schema, types }
}

/// The keywords that limit a value of an argument.
const LIMITS: [&str; 8] = ["minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minimum", "maximum"];

/// Replaces an argument type where an answer repeats its values: `#[schemars(with = "Repeated<T>")]`. Its schema has no limits of arguments, because a
/// stored value is in its normal form (an empty list means all), or was accepted under other limits; and it has a list where an argument may be a list or
/// its only item.
pub struct Repeated<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Repeated<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}::Repeated<{}>", module_path!(), T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator).to_value();
        let (mut names, mut lifted) = (Vec::new(), BTreeSet::new());
        lift_limits(&mut schema, &mut names);
        while let Some(name) = names.pop() {
            if lifted.insert(name.clone())
                && let Some(named) = generator.definitions_mut().get_mut(&name)
            {
                lift_limits(named, &mut names);
            }
        }
        Schema::try_from(schema).unwrap_or_default()
    }
}

/// Removes the limits of arguments from a schema, and adds the names of the types that it refers to.
fn lift_limits(schema: &mut Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, _| !LIMITS.contains(&name.as_str()));
            if fields.contains_key("items")
                && let Some(Value::Array(types)) = fields.get_mut("type")
            {
                types.retain(|name| name == "array" || name == "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::String(reference)) = fields.get("$ref") {
                names.extend(reference.rsplit('/').next().map(str::to_owned));
            }
            for (name, value) in fields {
                match value {
                    // The members are named by the type, not by JSON Schema.
                    Value::Object(members) if name == "properties" => members.values_mut().for_each(|member| lift_limits(member, names)),
                    value => lift_limits(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| lift_limits(item, names)),
        _ => {}
    }
}

/// Generates a schema without references and makes its root an object.
fn object(mut settings: SchemaSettings, root: impl FnOnce(schemars::SchemaGenerator) -> schemars::Schema) -> Value {
    settings.inline_subschemas = true;
    root_object(settings, root)
}

/// Generates a schema and makes its root an object.
fn root_object(mut settings: SchemaSettings, root: impl FnOnce(schemars::SchemaGenerator) -> schemars::Schema) -> Value {
    settings.meta_schema = None;
    let mut schema = root(settings.into_generator()).to_value();
    tidy(&mut schema);
    if !schema.is_object() {
        schema = json!({});
    }
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("title");
        fields.remove("$schema");
        fields.insert("type".to_owned(), "object".into());
        fields.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Removes number formats, which JSON Schema does not define, and turns documented enums (`oneOf` of constants) into plain ones, so that clients show
/// them and errors can list them.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let number = |format: &str| {
                matches!(format, "float" | "double") || format.strip_prefix('u').unwrap_or(format).strip_prefix("int").is_some()
            };
            if fields.get("format").and_then(Value::as_str).is_some_and(number) {
                fields.remove("format");
            }
            if let Some(values) = fields.get("oneOf").and_then(constants) {
                fields.remove("oneOf");
                fields.insert("type".to_owned(), "string".into());
                fields.insert("enum".to_owned(), values);
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// The values of a `oneOf` whose branches are all string constants.
fn constants(branches: &Value) -> Option<Value> {
    let mut values = Vec::new();
    for branch in branches.as_array()? {
        match (branch.get("const"), branch.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => values.push(value.clone()),
            (None, Some(several)) => values.extend(several.iter().cloned()),
            (None, None) => return None,
        }
    }
    values.iter().all(Value::is_string).then_some(Value::Array(values))
}

/// Removes the defaults of fields: those of a result are always there, and a default may not be valid for its own type.
fn strip_defaults(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("default");
            for (name, value) in fields {
                match value {
                    // The members are named by the type, not by JSON Schema.
                    Value::Object(members) if name == "properties" || name == TYPES[1] => members.values_mut().for_each(strip_defaults),
                    value => strip_defaults(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip_defaults),
        _ => {}
    }
}

/// Makes an optional argument non-nullable: it is left out instead.
fn strip_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(values)) = fields.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if fields.get("default") == Some(&Value::Null) {
                fields.remove("default");
            }
            if let Some(only) = only_branch(fields) {
                fields.remove("anyOf");
                // Fields next to `anyOf` (the description) are more specific than those of the branch.
                for (name, value) in only {
                    fields.entry(name).or_insert(value);
                }
            }
            fields.values_mut().for_each(strip_null);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_null),
        _ => {}
    }
}

/// Removes null from `anyOf`. Returns the remaining branch if there is only one.
fn only_branch(fields: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    let branches = fields.get_mut("anyOf")?.as_array_mut()?;
    branches.retain(|branch| branch.get("type") != Some(&json!("null")));
    match branches.as_slice() {
        [Value::Object(only)] => Some(only.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Order {
        /// Oldest first.
        Asc,
        /// Newest first.
        Desc,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Inner {
        #[serde(default)]
        size: u64,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Arguments {
        /// How many.
        #[schemars(range(min = 1, max = 5))]
        limit: Option<u32>,
        /// Which way.
        order: Option<Order>,
        inner: Option<Inner>,
        amount: Option<f64>,
    }

    /// Proves that a schema has the shape that clients need: no reference, null, number format or bare root.
    #[test]
    fn shape_of_inputs() {
        let schema = input::<Arguments>();
        let text = schema.to_string();
        for bad in ["$ref", "$defs", "null", "uint", "int32", "double", "oneOf", "anyOf", "$schema"] {
            assert!(!text.contains(bad), "{bad} in {text}");
        }
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["order"]["enum"], json!(["asc", "desc"]));
        assert_eq!(schema["properties"]["order"]["description"], "Which way.");
        assert_eq!(schema["properties"]["limit"], json!({"type": "integer", "minimum": 1, "maximum": 5, "description": "How many."}));
    }

    /// Proves that an operation without arguments still has an object schema, and that results remain nullable.
    #[test]
    fn shape_of_others() {
        assert_eq!(input::<()>(), json!({"type": "object", "properties": {}, "additionalProperties": false}));
        assert_eq!(output::<Arguments>()["properties"]["limit"]["type"], json!(["integer", "null"]));
    }

    /// One class or several; none for all.
    #[derive(Deserialize, Serialize)]
    struct Classes(Vec<u8>);

    impl JsonSchema for Classes {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Classes".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            let class = json!({ "type": "integer", "minimum": 1, "maximum": 45 });
            schemars::json_schema!({ "type": ["integer", "array"], "minimum": 1, "maximum": 45, "items": class, "minItems": 1, "uniqueItems": true })
        }
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Entity {
        /// A part of the name.
        #[schemars(length(min = 2, max = 20), regex(pattern = "^a"))]
        pattern: String,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Watched {
        #[schemars(length(min = 1, max = 100))]
        name: String,
        class: Classes,
        entity: Option<Entity>,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Watch<N> {
        #[serde(flatten)]
        #[schemars(with = "Repeated<N>")]
        watched: N,
        #[schemars(length(min = 3))]
        id: String,
    }

    /// Proves that where an answer repeats an argument type, also one that this refers to, its limits are left out and a list is a list; that the answer's
    /// own fields and the arguments keep theirs; and that a field whose name is that of a keyword remains.
    #[test]
    fn repeated_arguments() {
        for (answer, entity) in [(output::<Watch<Watched>>(), None), {
            let NamedSchema { schema, types } = named_output::<Watch<Watched>>();
            (schema, Some(types["Entity"].clone()))
        }] {
            let properties = &answer["properties"];
            assert_eq!(properties["name"], json!({ "type": "string" }));
            assert_eq!(properties["class"], json!({ "type": "array", "items": { "type": "integer" } }));
            assert_eq!(properties["id"]["minLength"], 3);
            let entity = entity.unwrap_or_else(|| properties["entity"]["anyOf"][0].clone());
            let entity = if entity.is_null() { properties["entity"].clone() } else { entity };
            assert_eq!(entity["properties"]["pattern"], json!({ "type": "string", "description": "A part of the name." }));
        }
        let input = input::<Watched>();
        assert_eq!((&input["properties"]["name"]["minLength"], &input["properties"]["class"]["minItems"]), (&json!(1), &json!(1)));
    }

    /// Proves that named types are referred to by name and described once.
    #[test]
    fn named_types() {
        let NamedSchema { schema, types } = named_output::<Arguments>();
        assert_eq!(schema["properties"]["inner"]["anyOf"][0], json!({ "$ref": format!("{REFERENCE}Inner") }));
        assert_eq!(types.keys().collect::<Vec<_>>(), ["Inner", "Order"]);
        assert_eq!((&types["Inner"]["properties"]["size"]["type"], &types["Order"]["type"]), (&json!("integer"), &json!("string")));
        assert!(schema.get("components").is_none());
        assert!(!types["Inner"].to_string().contains("default"), "{}", types["Inner"]);
    }
}

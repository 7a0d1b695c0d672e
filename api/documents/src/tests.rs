//! What every operation in THE LIST owes to the surfaces.

use arguments::Checker;
use operation::Price;
use operation::context::ServiceSettings;
use schemas::error_code::ErrorCode;
use serde_json::{Value, json};
use tiktoken_rs::o200k_base_singleton;

use crate::openapi;
use crate::tools::{MANAGE, TOOLS_MAX, tools};

/// The most tokens that the list of a service's tools costs a model, by the tokenizer o200k.
const TOOL_TOKENS_MAX: usize = 6_000;
/// The most sentences in the description of a tool. What a call needs or costs is one of them.
const SENTENCES_MAX: usize = 3;

/// Proves that each definition is complete: its schema compiles and accepts its example, and its names and lists exist.
#[test]
fn definitions() {
    for service in services::all() {
        let mut names = std::collections::BTreeSet::new();
        for operation in &service.operations {
            let place = format!("{} {}", service.name, operation.name);
            assert!(names.insert(operation.name), "{place} is there twice");
            assert!(operation.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)), "{place}");
            let checker = Checker::new(operation).unwrap();
            let example = operation.example.as_object().unwrap().clone();
            assert!(checker.json(example, ErrorCode::ParameterInvalid).is_ok(), "{place}: the example is refused");
            let text = operation.input.to_string();
            for bad in ["$ref", "oneOf", "anyOf", "null", "\"format\":\"uint"] {
                assert!(!text.contains(bad), "{place}: {bad} in {text}");
            }
            let properties = operation.input["properties"].as_object().unwrap();
            for (name, schema) in properties {
                assert!(schema["description"].is_string(), "{place}: {name} has no words");
            }
            for (alias, name) in operation.aliases {
                assert!(properties.contains_key(*name) && !properties.contains_key(*alias), "{place}: alias {alias}");
            }
            for segment in operation.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')) {
                // Over MCP something else may stand for it.
                assert!(properties.contains_key(segment), "{place}: {segment} is in the path");
            }
            if !operation.list.is_empty() {
                assert_eq!(operation.output["properties"][operation.list]["type"], "array", "{place}");
            }
        }
    }
}

/// Adds the paths of the defaults in a schema that the schema itself refuses.
fn find_refused_defaults(schema: &Value, path: &str, refused: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return };
    if let Some(default) = members.get("default")
        && !jsonschema::options().build(schema).unwrap().is_valid(default)
    {
        refused.push(format!("{path}: {default}"));
    }
    for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        find_refused_defaults(property, &format!("{path}.{name}"), refused);
    }
    if let Some(items) = members.get("items") {
        find_refused_defaults(items, &format!("{path}[]"), refused);
    }
}

/// Proves that no operation refuses a default of its own schema, since many clients send the defaults of optional arguments.
#[test]
fn defaults_are_accepted() {
    let mut refused = Vec::new();
    for service in services::all() {
        for operation in &service.operations {
            find_refused_defaults(&operation.input, &format!("{} {}", service.name, operation.name), &mut refused);
        }
    }
    assert_eq!(refused, Vec::<String>::new());
    let bad = json!({ "properties": { "class": { "type": "array", "minItems": 1, "default": [] } } });
    find_refused_defaults(&bad, "x", &mut refused);
    assert_eq!(refused, ["x.class: []"]);
}

/// Whether every array in a schema says what its items are.
fn names_items(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let is_array = members.get("type").is_some_and(|name| name == "array");
            (!is_array || members.contains_key("items") || members.contains_key("prefixItems")) && members.values().all(names_items)
        }
        Value::Array(parts) => parts.iter().all(names_items),
        _ => true,
    }
}

/// Proves that every schema that a surface serves is valid JSON Schema: clients refuse a tool whose schema is not, and every call of it. Its arrays name their
/// items: a generator of clients leaves out a type with one that does not.
#[test]
fn schemas_are_valid() {
    for service in services::all() {
        let settings = ServiceSettings::new(format!("https://highwater.example/{}", service.name), format!("/{}", service.name));
        let check = |place: &str, schema: &Value| {
            let wrong = jsonschema::draft202012::meta::validate(schema).err();
            assert!(wrong.is_none(), "{} {place}: {wrong:?} in {schema}", service.name);
            assert!(names_items(schema), "{} {place}: an array has no items in {schema}", service.name);
        };
        for tool in tools(&service.operations, &settings) {
            check(&tool.name, &serde_json::to_value(&tool.input_schema).unwrap());
            if let Some(output) = &tool.output_schema {
                check(&tool.name, &serde_json::to_value(output).unwrap());
            }
        }
        for operation in &service.operations {
            check(operation.name, &operation.input);
            check(operation.name, &operation.output);
            check(operation.name, &operation.named_output.schema);
        }
        let document = openapi::document(&service, &settings).unwrap();
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            check(name, schema);
        }
    }
}

/// Proves that the reference page of each service names the licence and the publisher of the data that it shows, but that of receipts, which are made here.
#[test]
fn licences_are_on_reference_pages() {
    for service in services::all() {
        let settings = ServiceSettings::new(format!("https://highwater.example/{}", service.name), format!("/{}", service.name));
        let page = crate::pages::reference::page(&service, &settings);
        let licences = service.data.iter().find(|file| file.name == "licences");
        assert_eq!(licences.is_some(), service.name != "receipts", "{}", service.name);
        for (name, values) in licences.into_iter().flat_map(|file| &file.entries) {
            assert!(page.contains(name.as_str()) && page.contains(&values.join(", ")), "{} {name}: {values:?}", service.name);
        }
    }
}

/// Proves that no list of tools costs a model more than it may: few tools, each with a short description that says when to use it.
#[test]
fn tools_are_short() {
    let mut too_large = String::new();
    for service in services::all() {
        let settings = ServiceSettings::new(format!("https://highwater.example/{}", service.name), format!("/{}", service.name));
        let tools = tools(&service.operations, &settings);
        let cost = |text: &str| o200k_base_singleton().encode_ordinary(text).len();
        let total = cost(&serde_json::to_string(&tools).unwrap());
        println!("{}: {} tools, {total} tokens", service.name, tools.len());
        if tools.len() > TOOLS_MAX || total > TOOL_TOKENS_MAX {
            too_large += &format!("{}: {} tools of {TOOLS_MAX}, {total} tokens of {TOOL_TOKENS_MAX}\n", service.name, tools.len());
            for tool in &tools {
                let parts =
                    [cost(&serde_json::to_string(&tool.input_schema).unwrap()), cost(&serde_json::to_string(&tool.output_schema).unwrap())];
                too_large += &format!(
                    "  {}: {} tokens, of these input {}, output {}\n",
                    tool.name,
                    cost(&serde_json::to_string(tool).unwrap()),
                    parts[0],
                    parts[1]
                );
            }
        }
        for tool in &tools {
            let words = tool.description.as_deref().unwrap_or_default();
            let sentences = words.split(". ").count();
            assert!((2..=SENTENCES_MAX).contains(&sentences), "{} {}: {sentences} sentences: {words}", service.name, tool.name);
        }
        for operation in &service.operations {
            assert_ne!(operation.name, MANAGE, "{}: the name is that of a tool for several operations", service.name);
            let is_sold = matches!(operation.price, Price::PerCall { .. });
            assert!(!(operation.is_managed && is_sold), "{} {}: a sold operation needs a tool of its own", service.name, operation.name);
        }
    }
    assert!(too_large.is_empty(), "these lists of tools are too large:\n{too_large}");
}

/// Proves that each answer has a schema with a name, that no two types of a service have the same name, and that the example of each answer is valid.
#[test]
fn examples_of_answers() {
    for service in services::all() {
        let settings = ServiceSettings::new(format!("https://highwater.example/{}", service.name), format!("/{}", service.name));
        let document = openapi::document(&service, &settings).unwrap();
        let operations = document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
        for operation in operations {
            let place = format!("{} {}", service.name, operation["operationId"]);
            assert_eq!(operation["tags"].as_array().unwrap().len(), 1, "{place}");
            let content = &operation["responses"]["200"]["content"]["application/json"];
            if content.is_null() {
                continue;
            }
            let schema = json!({ "$ref": content["schema"]["$ref"], "components": document["components"] });
            let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            let wrong: Vec<String> =
                validator.iter_errors(&content["example"]).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(wrong.is_empty(), "{place}: {wrong:?} in {}", content["example"]);
        }
        println!("{}: {:?}", service.name, document["components"]["schemas"].as_object().unwrap().keys().collect::<Vec<_>>());
    }
}

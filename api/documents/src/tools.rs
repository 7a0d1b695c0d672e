//! The descriptions of the tools of a service. Clients put all of them into the context of a model, so they are short: what the tool does and when to
//! use it, parameters with one sentence each, and results without their details, which are in the OpenAPI document.
//!
//! What accounts set up (filters, watches, webhooks) is one tool, [`MANAGE`], with an action for each operation.

use std::sync::Arc;

use arguments::{HOST_FIELDS, echo};
use operation::context::ServiceSettings;
use operation::problem::Problem;
use operation::schema::REFERENCE;
use operation::{Method, Operation, Price};
use proofs::i_json;
use rmcp::model::{Tool, ToolAnnotations};
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value, json};

use crate::prices;

/// The name of the tool for what accounts set up.
pub const MANAGE: &str = "manage";
/// The action of [`MANAGE`] that describes the others.
const DESCRIBE: &str = "describe";
/// The parameters of [`MANAGE`].
const ACTION: &str = "action";
const ARGUMENTS: &str = "arguments";

/// The most tools of a service.
#[cfg(test)]
pub(crate) const TOOLS_MAX: usize = 11;

/// What a call of a tool asks for.
#[derive(Debug, PartialEq)]
pub enum Target {
    /// To run the operation with this index, with these arguments.
    Operation(usize, Map<String, Value>),
    /// To describe the actions of [`MANAGE`].
    Describe,
}

/// The tools of a service, in the order of its operations; [`MANAGE`] is the last.
#[must_use]
pub fn tools(operations: &[Operation], settings: &ServiceSettings) -> Vec<Tool> {
    let own = operations.iter().filter(|operation| is_tool(operation)).map(|operation| tool(operation, settings));
    own.chain(manage(operations, settings)).collect()
}

/// Whether an operation is a tool of its own.
fn is_tool(operation: &Operation) -> bool {
    operation.has_tool() && !operation.is_managed
}

/// The actions of [`MANAGE`], each with its index.
fn actions(operations: &[Operation]) -> impl Iterator<Item = (usize, &Operation)> {
    operations.iter().enumerate().filter(|(_, operation)| operation.is_managed)
}

/// What a call asks for; `None` if there is no such tool.
#[must_use]
pub fn target(operations: &[Operation], tool: &str, arguments: Map<String, Value>) -> Option<Result<Target, Problem>> {
    if let Some(index) = operations.iter().position(|operation| is_tool(operation) && operation.name == tool) {
        return Some(Ok(Target::Operation(index, arguments)));
    }
    (tool == MANAGE && actions(operations).next().is_some()).then(|| action(operations, arguments))
}

/// What a call of [`MANAGE`] asks for.
fn action(operations: &[Operation], mut arguments: Map<String, Value>) -> Result<Target, Problem> {
    let action = match arguments.remove(ACTION) {
        Some(Value::String(action)) => action,
        None | Some(Value::Null) => return Err(Problem::parameter(ACTION, "action is missing")),
        Some(_) => return Err(Problem::parameter(ACTION, "action: is not a text")),
    };
    let given = match arguments.remove(ARGUMENTS) {
        Some(Value::Object(given)) => given,
        // Some clients write an empty object as a list, and an object as its JSON text.
        Some(Value::Array(items)) if items.is_empty() => Map::new(),
        Some(Value::String(text)) => match i_json::read(text.as_bytes(), |_, _| true) {
            Ok(Some(Value::Object(given))) => given,
            Ok(Some(Value::Array(items))) if items.is_empty() => Map::new(),
            _ => return Err(Problem::parameter(ARGUMENTS, "arguments: is not an object")),
        },
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err(Problem::parameter(ARGUMENTS, "arguments: is not an object")),
    };
    if let Some(name) = arguments.keys().find(|name| !HOST_FIELDS.contains(&name.as_str())) {
        let reason = format!("unknown parameter \"{0}\"; the arguments of an action belong into `arguments`", echo(name));
        return Err(Problem::parameter(echo(name), reason));
    }
    if action == DESCRIBE {
        return Ok(Target::Describe);
    }
    let known = || actions(operations).map(|(_, operation)| operation.name).chain([DESCRIBE]);
    let index = actions(operations).find(|(_, operation)| operation.name == action).map(|(index, _)| index).ok_or_else(|| {
        let hint = schemas::names::hint(&action, known());
        let reason = format!("action: \"{}\" is not one of {}{hint}", echo(&action), known().collect::<Vec<_>>().join(", "));
        Problem { code: ErrorCode::ParameterInvalid, ..Problem::parameter(ACTION, reason) }
    })?;
    Ok(Target::Operation(index, given))
}

/// The answer to [`DESCRIBE`]: each action with the whole description of its operation.
#[must_use]
pub fn descriptions(operations: &[Operation], settings: &ServiceSettings) -> Value {
    let describe = |(_, operation): (usize, &Operation)| {
        json!({
            "action": operation.name,
            "description": format!("{} {}", operation.summary, operation.description).trim(),
            "needs": prices::needs(operation, settings),
            "arguments": operation.input,
            "example": operation.example,
        })
    };
    json!({ "actions": actions(operations).map(describe).collect::<Vec<_>>() })
}

/// The resource name of a tool that is sold.
#[must_use]
pub fn tool_resource(base_url: &str, tool: &str) -> String {
    let place = base_url.split_once("://").map_or(base_url, |(_, place)| place);
    format!("mcp://{place}/{tool}")
}

/// The JSON-RPC message that calls a tool with its example arguments.
pub(crate) fn tool_call(operation: &Operation) -> Value {
    let params = json!({ "name": operation.name, "arguments": operation.example });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// Describes an operation as a tool.
fn tool(operation: &Operation, settings: &ServiceSettings) -> Tool {
    let (read, delete) = (operation.method == Method::Get, operation.method == Method::Delete);
    let annotations = ToolAnnotations::new().read_only(read).destructive(delete).idempotent(read || delete).open_world(false);
    let description = [operation.summary, operation.when, &prices::needs(operation, settings)].join(" ");
    let output = brief(&operation.named_output.schema, &operation.named_output.types);
    // Clients validate results against the schema, including payment terms.
    let output = match operation.price {
        Price::PerCall { .. } => json!({ "type": "object", "anyOf": [output, { "required": ["x402Version", "accepts"] }] }),
        Price::Free | Price::Tier(_) => output,
    };
    Tool::new(operation.name, description.trim().to_owned(), object(input(&operation.input)))
        .with_raw_output_schema(object(output))
        .with_annotations(annotations)
}

/// The tool for what accounts set up; `None` if the service has no such operation.
fn manage(operations: &[Operation], settings: &ServiceSettings) -> Option<Tool> {
    let names: Vec<&str> = actions(operations).map(|(_, operation)| operation.name).chain([DESCRIBE]).collect();
    let (_, first) = actions(operations).next()?;
    let list: Vec<String> = actions(operations).map(|(_, operation)| signature(operation)).collect();
    let description = format!(
        "Sets up what an account is notified of: saved filters, watches and their webhooks. Use it only when the user asks to follow something from now on. {}",
        prices::needs(first, settings)
    );
    let input = json!({
        "type": "object",
        "properties": {
            ACTION: { "type": "string", "enum": names, "description": "`describe` returns the arguments of all actions." },
            ARGUMENTS: { "type": "object", "additionalProperties": true, "description": format!("By action: {}.", list.join(", ")) },
        },
        "required": [ACTION],
        "additionalProperties": false,
    });
    let annotations = ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(false);
    Some(Tool::new(MANAGE, description.trim().to_owned(), object(input)).with_annotations(annotations))
}

/// The name of an operation with its parameters: `save_filter(name, filter)`, optional ones with a question mark.
fn signature(operation: &Operation) -> String {
    let required = operation.input.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let properties = operation.input.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flatten().map(|(name, _)| if is_required(name) { name.clone() } else { format!("{name}?") });
    format!("{}({})", operation.name, names.collect::<Vec<_>>().join(", "))
}

/// The schema of arguments, where each parameter is described in one sentence.
fn input(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("description");
    }
    for parameter in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        shorten(parameter);
    }
    schema
}

/// Cuts the descriptions in a schema after their first sentence.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                text.truncate(text.find(". ").map_or(text.len(), |end| end + 1));
                if text.ends_with('.') && !text.contains(": ") {
                    text.pop();
                }
            }
            fields.values_mut().for_each(shorten);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// The schema of a result with the types of its fields. Of a named type it has only the name, under which the OpenAPI document describes it.
fn brief(schema: &Value, types: &Map<String, Value>) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields: Map<String, Value> = properties.into_iter().flatten().map(|(name, field)| (name.clone(), type_of(field, types))).collect();
    let mut brief = json!({ "type": "object", "properties": fields });
    if let Some(required) = schema.get("required") {
        brief["required"] = required.clone();
    }
    brief
}

/// The type of a field.
fn type_of(schema: &Value, types: &Map<String, Value>) -> Value {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix(REFERENCE)) {
        return match types.get(name).and_then(|named| named.get("type")) {
            Some(kind) if kind == "object" => json!({ "type": kind, "title": name }),
            Some(kind) => json!({ "type": kind }),
            None => json!({}),
        };
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        return one_of(branches.iter().map(|branch| type_of(branch, types)));
    }
    let Some(kind) = schema.get("type") else { return json!({}) };
    match schema.get("items") {
        Some(items) if kind == "array" => json!({ "type": kind, "items": type_of(items, types) }),
        _ => json!({ "type": kind }),
    }
}

/// The type of a field that has one of several: the only one, or a list of the names of all, each once. JSON Schema knows no other list.
fn one_of(branches: impl Iterator<Item = Value>) -> Value {
    let mut several: Vec<Value> = branches.collect();
    several.dedup();
    if several.len() == 1 {
        return several.pop().unwrap_or_default();
    }
    let mut kinds: Vec<Value> = Vec::new();
    for branch in &several {
        // A branch without a type takes every value.
        let Some(own) = branch.get("type") else { return json!({}) };
        let own = own.as_array().map_or(std::slice::from_ref(own), Vec::as_slice);
        kinds.extend(own.iter().filter(|kind| !kinds.contains(kind)).cloned().collect::<Vec<_>>());
    }
    let kinds = if kinds.len() == 1 { kinds.pop().unwrap_or_default() } else { Value::Array(kinds) };
    match several.iter().find_map(|branch| branch.get("title")) {
        Some(title) => json!({ "type": kinds, "title": title }),
        None => json!({ "type": kinds }),
    }
}

fn object(schema: Value) -> Arc<Map<String, Value>> {
    Arc::new(if let Value::Object(fields) = schema { fields } else { Map::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the type of a field with several forms is one name, or a list of different names, whatever the forms are.
    #[test]
    fn forms_of_a_field() {
        let types = json!({ "Lead": { "type": "object" }, "Band": { "type": "string" }, "Any": {} });
        let types = types.as_object().unwrap();
        let named = |name: &str| json!({ "$ref": format!("{REFERENCE}{name}") });
        let nothing = json!({ "type": "null" });
        for (branches, expected) in [
            (vec![named("Lead"), json!({ "type": "object" })], json!({ "type": "object", "title": "Lead" })),
            (vec![named("Lead"), nothing.clone()], json!({ "type": ["object", "null"], "title": "Lead" })),
            (vec![named("Lead"), json!({ "type": ["object", "null"] })], json!({ "type": ["object", "null"], "title": "Lead" })),
            (vec![json!({ "type": ["string", "null"] }), nothing.clone()], json!({ "type": ["string", "null"] })),
            (vec![named("Band"), nothing.clone(), json!({ "type": "string", "const": "" })], json!({ "type": ["string", "null"] })),
            (vec![json!({ "anyOf": [named("Band"), nothing.clone()] }), nothing.clone()], json!({ "type": ["string", "null"] })),
            (vec![named("Band"), named("Band")], json!({ "type": "string" })),
            (vec![named("Any"), nothing.clone()], json!({})),
        ] {
            let found = type_of(&json!({ "anyOf": branches }), types);
            assert_eq!(found, expected, "{branches:?}");
            assert!(jsonschema::draft202012::meta::is_valid(&found), "{found}");
        }
        assert!(!jsonschema::draft202012::meta::is_valid(&json!({ "type": ["object", "object"] })));
        assert!(!jsonschema::draft202012::meta::is_valid(&json!({ "type": [["string", "null"], "null"] })));
    }
}

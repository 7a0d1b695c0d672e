//! What every operation in THE LIST owes to the surfaces.

use super::*;
use crate::arguments::Checker;

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

//! What machines look for first: `llms.txt` and `/.well-known/x402`.

use serde_json::{Value, json};

use crate::context::ServiceSettings;
use crate::operation::{Method, Operation, Price, Service};

/// `GET`, `POST` or `DELETE`.
pub(crate) fn verb(operation: &Operation) -> &'static str {
    match operation.method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Delete => "DELETE",
    }
}

/// Who may call, in a few words.
pub(crate) fn price(operation: &Operation) -> String {
    match operation.price {
        Price::Free => "free".to_owned(),
        Price::Tier(tier) => format!("tier {} or higher", tier.as_str()),
    }
}

/// The `llms.txt` of one service.
pub(crate) fn llms(service: &Service, settings: &ServiceSettings) -> String {
    let base = &settings.base_url;
    let mut text = format!("# {}\n\n> {}\n\n## Operations\n\n", service.title, service.about);
    for operation in &service.operations {
        let tool = if operation.tool { ", also an MCP tool" } else { "" };
        text += &format!(
            "- [{}]({base}{}): {} {} ({}{tool})\n",
            operation.name,
            operation.path,
            verb(operation),
            operation.summary,
            price(operation)
        );
        for (name, schema) in operation.input.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let words = schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
            let must = operation.input.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|must| must == name));
            let must = if must { " (required)" } else { "" };
            let aliases: String =
                operation.aliases.iter().filter(|(_, of)| of == name).map(|(alias, _)| format!(" Also taken as `{alias}`.")).collect();
            text += &format!("  - `{name}`{must}: {words}{aliases}\n");
        }
    }
    text += &format!(
        "\n## Machine-readable\n\n- [OpenAPI 3.1]({base}/openapi.json)\n- [MCP endpoint]({base}/mcp): POST, streamable HTTP\n\
         - [x402]({base}/.well-known/x402): what can be paid for\n\n## For people\n\n- [Reference]({base}/docs)\n- [Errors]({base}/docs/errors)\n\n\
         ## Keys\n\nWithout a key the free limits hold, by address. A key goes into `X-API-Key`, `Authorization: Bearer`, or the parameter `api_key` or `key`.\n"
    );
    text
}

/// The `llms.txt` of the listener: all services.
pub(crate) fn llms_of_all<'a>(services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>) -> String {
    let mut text = "# Highwater\n\n> Change feeds of public records, over REST and MCP.\n\n## Services\n\n".to_owned();
    for (service, settings) in services {
        text += &format!("- [{}]({}/llms.txt): {}\n", service.title, settings.base_url, service.about.replace('\n', " "));
    }
    text += "\n## Topics\n\n- [AsyncAPI 3](/asyncapi.json): the same changes, and the facts they were decided from, as Kafka topics\n\
             - [Schemas](/schemas/): the Avro schemas of their values, by fingerprint\n";
    text
}

/// `/.well-known/x402`: the operations that can be paid for per call. Today's prices are tiers, none of which is paid per call.
pub(crate) fn x402<'a>(services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>) -> Value {
    let services: Vec<Value> = services
        .map(|(service, settings)| {
            let base = &settings.base_url;
            json!({
                "name": service.name, "title": service.title, "url": base, "openapi": format!("{base}/openapi.json"), "mcp": format!("{base}/mcp"),
            })
        })
        .collect();
    json!({
        "version": 1,
        "x402Version": 2,
        "resources": [],
        "items": [],
        "services": services,
        "instructions": "No operation is paid for per call: call it without a payment.",
    })
}

//! Documents by which clients and registries find MCP endpoints before they connect: the server card of a service and the catalog of all cards (MCP Server
//! Cards, SEP-2127), and the entry of a service for the MCP registry (`server.json`).

use std::net::IpAddr;

use http::Uri;
use operation::Service;
use operation::context::ServiceSettings;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

/// The path of a card below the path of the endpoint.
pub const CARD: &str = "/mcp/server-card";
/// The path of a card where a service has a host of its own, for clients that only look there.
pub const WELL_KNOWN_CARD: &str = "/.well-known/mcp/server-card.json";
/// The path of the catalog of a listener.
pub const CATALOG: &str = "/.well-known/mcp/catalog.json";
/// The path of the entry for the registry.
pub const REGISTRY_ENTRY: &str = "/server.json";
/// The media type of a card.
pub const CARD_TYPE: &str = "application/mcp-server-card+json";

const CARD_SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json";
const REGISTRY_SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// The most characters of a description in either schema.
const DESCRIPTION_CHARS_MAX: usize = 100;

/// The server card of a service.
#[must_use]
pub fn card(service: &Service, settings: &ServiceSettings) -> Value {
    let versions: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let mut card = entry(CARD_SCHEMA, service, settings);
    card["remotes"][0]["supportedProtocolVersions"] = json!(versions);
    card
}

/// The entry of a service for the registry. Its name is below the domain of the service, which the operator proves to the registry.
#[must_use]
pub fn registry_entry(service: &Service, settings: &ServiceSettings) -> Value {
    entry(REGISTRY_SCHEMA, service, settings)
}

/// The catalog of the cards of some services.
pub fn catalog<'a>(services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>) -> Value {
    let entry = |(service, settings): (&Service, &ServiceSettings)| {
        json!({
            "identifier": format!("urn:air:{}:{}", host(settings), service.name),
            "displayName": service.title,
            "type": CARD_TYPE,
            "url": format!("{}{CARD}", settings.base_url),
        })
    };
    json!({ "specVersion": "draft", "entries": services.map(entry).collect::<Vec<_>>() })
}

/// What both documents of a service have.
fn entry(schema: &str, service: &Service, settings: &ServiceSettings) -> Value {
    let base_url = &settings.base_url;
    let key = json!({
        "name": "X-API-Key", "description": "An API key. Calls without one have the limits of the free tier.", "isRequired": false, "isSecret": true,
    });
    json!({
        "$schema": schema,
        "name": format!("{}/{}", namespace(&host(settings)), service.name),
        "title": service.title,
        "description": description(service.about),
        "version": env!("CARGO_PKG_VERSION"),
        "websiteUrl": format!("{base_url}/docs"),
        "remotes": [{ "type": "streamable-http", "url": format!("{base_url}/mcp"), "headers": [key] }],
    })
}

/// The host in the base URL of a service. An address of IPv6, which has characters that names must not have, counts as `localhost`.
fn host(settings: &ServiceSettings) -> String {
    let uri = settings.base_url.parse::<Uri>().ok();
    let host = uri.as_ref().and_then(Uri::host).filter(|host| !host.contains(':'));
    host.unwrap_or("localhost").to_ascii_lowercase()
}

/// A domain as a namespace: its labels from the last to the first. An address stays as it is.
fn namespace(host: &str) -> String {
    if host.parse::<IpAddr>().is_ok() { host.to_owned() } else { host.rsplit('.').collect::<Vec<_>>().join(".") }
}

/// The first sentence of a text, or as many of its words as a description may have.
fn description(about: &str) -> String {
    let line = about.lines().next().unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first).trim_end_matches('.');
    if sentence.chars().count() < DESCRIPTION_CHARS_MAX {
        return format!("{sentence}.");
    }
    let mut words = String::new();
    for word in sentence.split_whitespace() {
        if words.chars().count() + word.chars().count() + " …".chars().count() > DESCRIPTION_CHARS_MAX {
            break;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    format!("{}…", words.trim_end_matches([',', ';', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that descriptions have at most the permitted length, end with a sentence or between words, and are never empty.
    #[test]
    fn descriptions() {
        assert_eq!(description("Made up.\n\nFor tests."), "Made up.");
        assert_eq!(description("One sentence. Another one."), "One sentence.");
        let exact = "x".repeat(DESCRIPTION_CHARS_MAX - 1);
        assert_eq!(description(&exact), format!("{exact}."));
        for text in [format!("{} {}", "word,".repeat(12), "é ".repeat(60)), "many words ".repeat(30), format!("{exact}y {exact}")] {
            let shown = description(&text);
            assert!(shown.ends_with('…') && !shown.ends_with(" …") && shown.chars().count() <= DESCRIPTION_CHARS_MAX, "{shown}");
        }
        for service in services::all() {
            let count = description(service.about).chars().count();
            assert!((10..=DESCRIPTION_CHARS_MAX).contains(&count), "{}: {}", service.name, description(service.about));
        }
    }

    /// Proves which names follow from the base URL of a service.
    #[test]
    fn names() {
        for (base_url, expected) in [
            ("https://data.example.org/recalls", "org.example.data"),
            ("https://Example.org:8443", "org.example"),
            ("http://127.0.0.1:8080/recalls", "127.0.0.1"),
            ("http://[::1]:8080/recalls", "localhost"),
            ("http://highwater:8080", "highwater"),
        ] {
            assert_eq!(namespace(&host(&ServiceSettings::new(base_url.to_owned(), String::new()))), expected, "{base_url}");
        }
    }
}

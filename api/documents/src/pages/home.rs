//! `GET /`: the services of this listener.

use maud::{Markup, html};
use operation::Service;
use operation::context::ServiceSettings;
use pages::{Page, layout, paragraphs};

/// The home page: every service with its links.
pub fn render<'a>(site_url: &str, services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>) -> String {
    let cards: Vec<Markup> = services.map(|(service, settings)| card(service, &settings.base_url)).collect();
    let main = html! {
        h1 { "Highwater" }
        p { "Public records as change feeds: what the agencies publish, in one order, over REST, MCP and NDJSON." }
        @for card in &cards { (card) }
        @if cards.is_empty() { p { "No service is enabled on this server." } }
        p { "The same data as Kafka topics: " a href="/asyncapi.json" { "AsyncAPI" } ", " a href="/schemas/" { "Avro schemas" } "." }
        p { "With a key: " a href=(site::ACCOUNT) { "your account" } " with its quota, watches and webhooks." }
        p.soft {
            "For operators: " a href="/healthz" { "liveness" } ", " a href="/readyz" { "readiness" } "."
        }
    };
    layout(&Page { title: "Highwater".to_owned(), site_url, canonical: "/".to_owned(), main, ..Page::default() })
}

fn card(service: &Service, base: &str) -> Markup {
    html! {
        section.panel {
            h2 { a href={ (base) "/docs" } { (service.title) } }
            (paragraphs(service.about))
            p.soft {
                (service.operations.len()) " operations · "
                a href={ (base) "/docs" } { "Reference" } " · "
                a href={ (base) "/openapi.json" } { "OpenAPI" } " · "
                a href={ (base) "/llms.txt" } { "llms.txt" } " · MCP at "
                code { (base) "/mcp" }
            }
        }
    }
}

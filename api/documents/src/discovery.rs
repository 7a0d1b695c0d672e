//! Documents for discovery by machines: `llms.txt` and `/.well-known/x402`.

use operation::context::ServiceSettings;
use operation::{Operation, Service, Surface};
use payments::terms::{Offer, PaymentTerms, Version};
use serde_json::{Value, json};

use crate::plain_text::plain_text;
use crate::prices::price;
use crate::tools::{MANAGE, tool_call, tool_resource};

/// The `llms.txt` of one service.
#[must_use]
pub fn llms(service: &Service, settings: &ServiceSettings) -> String {
    let base = &settings.base_url;
    let mut text = format!("# {}\n\n> {}\n\n## Operations\n\n", service.title, service.about);
    for operation in &service.operations {
        let (name, summary, price) = (operation.name, operation.summary, price(operation, settings));
        text += &match operation.surface {
            Surface::Tool => format!("- [{name}]({base}/mcp): MCP tool, without a route. {summary} ({price})\n"),
            surface => {
                let tool = match (operation.is_managed, surface.has_tool()) {
                    (true, _) => format!(", also an action of the MCP tool `{MANAGE}`"),
                    (false, true) => ", also an MCP tool".to_owned(),
                    (false, false) => String::new(),
                };
                format!("- [{name}]({base}{}): {} {summary} ({price}{tool})\n", operation.path, operation.method.as_str())
            }
        };
        for (name, schema) in operation.input.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let words = schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
            let must = operation.input.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|must| must == name));
            let must = if must { " (required)" } else { "" };
            let aliases: String =
                operation.aliases.iter().filter(|(_, of)| of == name).map(|(alias, _)| format!(" Alias: `{alias}`.")).collect();
            text += &format!("  - `{name}`{must}: {words}{aliases}\n");
        }
    }
    text += &format!(
        "\n## Machine-readable\n\n- [OpenAPI 3.1]({base}/openapi.json)\n- [MCP endpoint]({base}/mcp): POST, streamable HTTP\n\
         - [x402]({base}/.well-known/x402): the operations that can be paid per call\n\n## For people\n\n- [Reference]({base}/docs)\n- [Errors]({base}/docs/errors)\n\n\
         ## Keys\n\nWithout a key, the limits of the free tier apply per address. Send a key in `X-API-Key`, `Authorization: Bearer`, or the parameter `api_key` or `key`.\n"
    );
    text
}

/// The `llms.txt` of all services of the listener. `site_url` is its public URL, without a slash at the end.
pub fn llms_of_all<'a>(site_url: &str, services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>) -> String {
    let mut text = "# Highwater\n\n> Change feeds of public records, over REST and MCP.\n\n## Services\n\n".to_owned();
    for (service, settings) in services {
        text += &format!("- [{}]({}/llms.txt): {}\n", service.title, settings.base_url, service.about.replace('\n', " "));
    }
    let guides = site::guides::llms(site_url);
    text +=
        &format!("\n## Guides\n\n{guides}- [Errors]({site_url}/docs/errors.md): What each error code of the API means, and what to do.\n");
    text += &format!(
        "\n## Topics\n\n- [AsyncAPI 3]({site_url}/asyncapi.json): the same changes, and the facts they were decided from, as Kafka topics\n\
         - [Schemas]({site_url}/schemas/): the Avro schemas of their values, by fingerprint\n"
    );
    text
}

/// What a call of an operation buys.
struct Sold<'a> {
    /// The operation whose answer it gets.
    answers: &'a Operation,
    /// The price in millionths of a US dollar.
    micros: u64,
    /// Example arguments.
    example: Value,
    /// The example arguments as the query of a route, with its question mark, if an argument names what is sold; else empty.
    query: String,
}

impl<'a> Sold<'a> {
    /// An operation that sells its own answer.
    fn whole(operation: &'a Operation, settings: &ServiceSettings) -> Self {
        let micros = operation.price_micros(settings).unwrap_or(0);
        Self { answers: operation, micros, example: operation.example.clone(), query: String::new() }
    }
}

/// What the route of an operation sells: its own answer or, of one with an argument that names what is sold, the answer of each operation that can be named.
fn sold_by_route<'a>(service: &'a Service, operation: &'a Operation, settings: &ServiceSettings) -> Vec<Sold<'a>> {
    if operation.sold_prices.is_empty() {
        return vec![Sold::whole(operation, settings)];
    }
    let sold = |(name, micros): (&'static str, u64)| {
        let answers = service.operations.iter().find(|other| other.name == name).unwrap_or(operation);
        let mut example = json!({ operation.sold_by: name });
        if let (Value::Object(example), Value::Object(own)) = (&mut example, &answers.example) {
            example.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let pairs = example.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), plain_text(value)));
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        Sold { answers, micros, query: format!("?{query}"), example }
    };
    operation.prices_of_sold(settings).map(sold).collect()
}

/// `/.well-known/x402`: the operations that can be paid per call, with their payment terms, over REST and MCP. Indexers read one of three lists of the same
/// routes: `resources`, `routes` or `items`. A route that sells several things is listed with the price of each; `resources` and `routes` have its URL also
/// without a query, as the payment terms name it.
pub fn x402<'a>(services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>, terms: Option<&PaymentTerms>) -> Value {
    let (mut listed, mut items, mut routes) = (Vec::new(), Vec::new(), Vec::new());
    for (service, settings) in services {
        let base = &settings.base_url;
        listed.push(json!({
            "name": service.name, "title": service.title, "url": base, "openapi": format!("{base}/openapi.json"), "mcp": format!("{base}/mcp"),
        }));
        let Some(terms) = terms else { continue };
        for operation in service.operations.iter().filter(|operation| operation.price_micros(settings).is_some()) {
            let mut add_item = |resource: String, kind: &str, call: Value, sold: &Sold<'_>| {
                let offer = Offer { resource: resource.clone(), description: operation.summary.to_owned(), micros: sold.micros };
                let [v1, v2] = Version::ALL.map(|version| terms.accepts(version, &offer));
                items.push(json!({
                    "resource": resource, "type": kind, "x402Version": 2, "accepts": v2, "acceptsV1": v1, "description": sold.answers.summary,
                    "call": call, "input": operation.input, "output": sold.answers.output, "example": sold.example,
                }));
            };
            if operation.has_route() {
                let rest = format!("{base}{}", example_path(operation));
                let method = operation.method.as_str();
                for sold in sold_by_route(service, operation, settings) {
                    let url = format!("{rest}{}", sold.query);
                    add_item(rest.clone(), "http", json!({ "method": method, "url": url }), &sold);
                    routes.push(
                        json!({ "agent": service.name, "tool": sold.answers.name, "endpoint": url, "paid_execution_method": method }),
                    );
                }
                if !operation.sold_prices.is_empty() {
                    // As the payment terms name it: a judge looks for that URL here.
                    routes
                        .push(json!({ "agent": service.name, "tool": operation.name, "endpoint": rest, "paid_execution_method": method }));
                }
            }
            if operation.has_tool() {
                let at = json!({
                    "method": "tools/call", "url": format!("{base}/mcp"), "tool": operation.name, "body": tool_call(operation),
                });
                add_item(tool_resource(base, operation.name), "mcp", at, &Sold::whole(operation, settings));
            }
        }
    }
    let mut resources: Vec<&Value> = Vec::new();
    for item in items.iter().filter(|item| item["type"] == "http") {
        for url in [&item["resource"], &item["call"]["url"]] {
            if !resources.contains(&url) {
                resources.push(url);
            }
        }
    }
    let instructions = match terms {
        Some(_) => {
            "Call without a payment to get the terms: a 402 response has them in the body (version 1) and in PAYMENT-REQUIRED (version 2). Pay with \
                         X-PAYMENT (version 1) or PAYMENT-SIGNATURE (version 2); over MCP with _meta[\"x402/payment\"]. A payment buys one answer; the same \
                         payment with the same request returns it again to the network address that paid, or with the token of the first answer. After a 503 response, send the same payment again."
        }
        None => "Payments are not configured on this server; use a key.",
    };
    json!({ "version": 1, "x402Version": 2, "resources": resources, "routes": routes, "items": items, "services": listed, "instructions": instructions })
}

/// The path of an operation with its example arguments, which are percent-encoded: an id may contain a slash.
pub(crate) fn example_path(operation: &Operation) -> String {
    let part = |part: &str| match part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(name) => site::url::segment(&operation.example.get(name).map(plain_text).unwrap_or_default()),
        None => part.to_owned(),
    };
    operation.path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use payments::terms::{NETWORKS, VALIDITY_DEFAULT_S};

    use super::*;

    fn terms() -> PaymentTerms {
        PaymentTerms {
            network: NETWORKS[0],
            asset: NETWORKS[0].usdc.to_owned(),
            pay_to: "0x000000000000000000000000000000000000bEEF".to_owned(),
            versions: Version::ALL.to_vec(),
            validity_s: VALIDITY_DEFAULT_S,
        }
    }

    /// Proves that a route that sells the answers of several tools is listed once for each, with its price, its example arguments and its answer; and that a
    /// price of the settings is taken.
    #[test]
    fn each_tool_of_a_route_has_its_price() {
        let service = services::all().into_iter().find(|service| service.name == "parcels").unwrap();
        let settings = ServiceSettings::new("https://x.example/parcels".to_owned(), "/parcels".to_owned());
        let listed = |settings: &ServiceSettings| {
            let document = x402([(&service, settings)].into_iter(), Some(&terms()));
            let items = document["items"].as_array().unwrap().clone();
            items.into_iter().filter(|item| item["resource"] == "https://x.example/parcels/x402/pay").collect::<Vec<Value>>()
        };
        let items = listed(&settings);
        let amount = |items: &[Value], tool: &str| {
            let item = items.iter().find(|item| item["example"]["tool"] == tool).unwrap();
            item["accepts"][0]["amount"].as_str().unwrap().to_owned()
        };
        assert_eq!(items.len(), 5);
        for (tool, price) in [
            ("overassessment_leads", "200000"),
            ("lien_bundle_report", "500000"),
            ("exemption_flags", "20000"),
            ("construction_window_leads", "20000"),
            ("stalled_surety", "20000"),
        ] {
            assert_eq!(amount(&items, tool), price, "{tool}");
        }
        let liens = items.iter().find(|item| item["example"]["tool"] == "lien_bundle_report").unwrap();
        let url = liens["call"]["url"].as_str().unwrap();
        assert!(url.starts_with("https://x.example/parcels/x402/pay?"), "{url}");
        assert!(url.contains("tool=lien_bundle_report") && url.contains("pin=0028F00194000000"), "{url}");
        assert_eq!(liens["acceptsV1"][0]["maxAmountRequired"], "500000");
        let tool = service.operations.iter().find(|operation| operation.name == "lien_bundle_report").unwrap();
        assert_eq!((&liens["output"], &liens["description"]), (&tool.output, &json!(tool.summary)));
        let prices = BTreeMap::from([("lien_bundle_report".to_owned(), 700_000)]);
        assert_eq!(amount(&listed(&ServiceSettings { prices, ..settings }), "lien_bundle_report"), "700000");
    }

    /// Proves that the routes that are sold are the same ones in each of the lists that indexers read, with their method and their operation.
    #[test]
    fn lists_of_what_is_sold() {
        let terms = terms();
        let services: Vec<(Service, ServiceSettings)> = services::all()
            .into_iter()
            .map(|service| {
                let prices = service.operations.iter().map(|operation| (operation.name.to_owned(), 20_000)).collect::<BTreeMap<_, _>>();
                let settings = ServiceSettings::new(format!("https://x.example/{}", service.name), format!("/{}", service.name));
                (service, ServiceSettings { prices, ..settings })
            })
            .collect();
        let document = x402(services.iter().map(|pair| (&pair.0, &pair.1)), Some(&terms));
        let list = |name: &str| document[name].as_array().unwrap().clone();
        let sold: Vec<Value> = list("items").into_iter().filter(|item| item["type"] == "http").collect();
        let resources = list("resources");
        let is_called = |route: &Value| sold.iter().any(|item| item["call"]["url"] == route["endpoint"]);
        let (called, named): (Vec<Value>, Vec<Value>) = list("routes").into_iter().partition(is_called);
        assert!(sold.len() > 5 && called.len() == sold.len() && !named.is_empty());
        let listed: BTreeSet<&str> = resources.iter().map(|url| url.as_str().unwrap()).collect();
        let urls = sold.iter().flat_map(|item| [&item["resource"], &item["call"]["url"]]);
        let wanted: BTreeSet<&str> = urls.map(|url| url.as_str().unwrap()).collect();
        assert_eq!((&listed, listed.len()), (&wanted, resources.len()), "the URLs of the calls and of the terms, each once");
        let endpoints: BTreeSet<&str> = called.iter().chain(&named).map(|route| route["endpoint"].as_str().unwrap()).collect();
        assert_eq!(endpoints, wanted, "a route is also there as the terms name it");
        for (item, route) in sold.iter().zip(&called) {
            let url = &item["call"]["url"];
            assert_eq!(&route["endpoint"], url);
            // The terms name the route without its query.
            assert!(url.as_str().unwrap().split('?').next() == item["resource"].as_str(), "{item}");
            assert_eq!(route["paid_execution_method"], item["call"]["method"]);
            let (agent, tool) = (route["agent"].as_str().unwrap(), route["tool"].as_str().unwrap());
            let (service, _) = services.iter().find(|(service, _)| service.name == agent).unwrap();
            assert!(service.operations.iter().any(|operation| operation.name == tool), "{route}");
        }
        let unsold = x402(services.iter().map(|pair| (&pair.0, &pair.1)), None);
        assert_eq!((&unsold["routes"], &unsold["resources"]), (&json!([]), &json!([])));
    }
}

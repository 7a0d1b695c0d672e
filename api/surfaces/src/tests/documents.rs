//! Documents that are rendered from the definitions, and documents at the root.

use super::*;
use crate::SiteError;

/// Proves that the OpenAPI document contains every operation, parameter, place of the key, and error.
#[tokio::test]
async fn openapi() {
    let fixture = Fixture::new(|_| {});
    let document = get(&fixture, "/fake/openapi.json").await.json();
    assert_eq!((&document["openapi"], &document["servers"][0]["url"]), (&json!("3.1.0"), &json!(BASE)));
    let find = &document["paths"]["/api/items"]["get"];
    let keyword = find["parameters"].as_array().unwrap().iter().find(|parameter| parameter["name"] == "keyword").unwrap();
    assert!(keyword["description"].as_str().unwrap().contains("Alias: `q`."));
    let other = find["parameters"].as_array().unwrap().iter().find(|parameter| parameter["name"] == "q").unwrap();
    assert_eq!((&other["in"], &other["required"], &other["schema"]), (&json!("query"), &json!(false), &keyword["schema"]));
    assert!(find["responses"]["200"]["content"]["application/x-ndjson"].is_object());
    for status in ["304", "400", "401", "429", "500", "503"] {
        assert!(find["responses"][status].is_object(), "{status}");
    }
    assert_eq!(find["security"].as_array().unwrap().len(), 5, "no key, or one in four places");
    assert_eq!(document["paths"]["/api/paid"]["get"]["security"].as_array().unwrap().len(), 4);
    assert_eq!(document["components"]["securitySchemes"].as_object().unwrap().len(), 4);
    let id = &document["paths"]["/api/items/{id}"]["get"]["parameters"][0];
    assert_eq!((&id["in"], &id["required"]), (&json!("path"), &json!(true)));
    let make = &document["paths"]["/api/items"]["post"];
    assert_eq!(make["requestBody"]["content"]["application/json"]["schema"]["required"], json!(["name"]));
    for status in ["201", "408", "413", "415"] {
        assert!(make["responses"][status].is_object(), "{status}");
    }
}

/// Proves that pages and texts contain every operation, escape every text, load only the files of the pages, and are revalidated by ETag.
#[tokio::test]
async fn pages() {
    let fixture = Fixture::new(|_| {});
    for path in ["/", "/fake", "/fake/", "/fake/docs", "/fake/docs/errors", "/docs/errors"] {
        let read = get(&fixture, path).await;
        assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "text/html; charset=utf-8"), "{path}");
        assert!(read.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
        for bad in ["<more>", "<operation>", "<script>", "<style", " style=", "src=\"http", "src=\"//"] {
            assert!(!read.body.contains(bad), "{path}: {bad}");
        }
        let again = send(&fixture, ask().path(path).header("if-none-match", read.header("etag"))).await;
        assert_eq!(again.status, 304, "{path}");
    }
    let reference = get(&fixture, "/fake/docs").await.body;
    let llms = get(&fixture, "/fake/llms.txt").await.body;
    let markdown = get(&fixture, "/fake/docs.md").await;
    assert_eq!((markdown.body.as_str(), markdown.header("content-type")), (llms.as_str(), "text/markdown; charset=utf-8"));
    assert!(reference.contains(&format!("href=\"{BASE}/docs.md\"")));
    for operation in service(&fixture.gate).operations.into_iter().filter(Operation::has_route) {
        assert!(reference.contains(&format!("id=\"{}\"", operation.name)), "{}", operation.name);
        assert!(llms.contains(&format!("[{}]({BASE}{})", operation.name, operation.path)), "{}", operation.name);
    }
    assert!(reference.contains("id=\"tool-address\"") && reference.contains("tools/call"), "a tool without a route: {reference}");
    assert!(llms.contains(&format!("[address]({BASE}/mcp): MCP tool, without a route.")), "{llms}");
    assert!(reference.contains("words, version 7") && reference.contains("apple, plum &amp; pear"), "{reference}");
    assert!(llms.contains("  - `keyword`: Words to look for. Alias: `q`.\n"), "{llms}");
    assert!(llms.contains("  - `id` (required): Which one.\n"), "{llms}");
    let errors = get(&fixture, "/fake/docs/errors").await.body;
    for code in ErrorCode::ALL {
        assert!(errors.contains(&format!("id=\"{}\"", code.as_str())), "{}", code.as_str());
    }
    let markdown = get(&fixture, "/docs/errors.md").await;
    assert_eq!((markdown.status.as_u16(), markdown.header("content-type")), (200, "text/markdown; charset=utf-8"));
    assert!(ErrorCode::ALL.iter().all(|code| markdown.body.contains(&format!("\n## {}\n", code.as_str()))), "{}", markdown.body);
    let all = get(&fixture, "/llms.txt").await.body;
    assert!(all.contains(&format!("{BASE}/llms.txt")), "{all}");
    // A model that has read the text alone can follow each link.
    assert!(all.contains("/guides/agents.md)") && all.contains("/docs/errors.md)") && !all.contains("](/"), "{all}");
    assert_eq!(get(&fixture, "/guides.md").await.header("content-type"), "text/markdown; charset=utf-8");
    for path in ["/.well-known/x402", "/.well-known/x402.json", "/fake/.well-known/x402", "/fake/.well-known/x402.json"] {
        let document = get(&fixture, path).await.json();
        assert_eq!((&document["version"], &document["x402Version"], &document["items"]), (&json!(1), &json!(2), &json!([])), "{path}");
    }
}

/// Proves that the limits of a service are those of the settings and of the definitions, and that the OpenAPI document leads to them.
#[tokio::test]
async fn limits_of_a_service() {
    let fixture = Fixture::new(|_| {});
    let read = get(&fixture, "/fake/limits.json").await;
    assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "application/json"));
    let limits = read.json();
    for tier in Tier::ALL {
        let own = fixture.context.settings.tiers.of(tier);
        let shown = &limits["tiers"][tier.as_str()];
        assert_eq!((&shown["callsPerDay"], &shown["rowsOfAFeedPage"]), (&json!(own.day.calls_max), &json!(own.rows_max)), "{shown}");
    }
    let operations = service(&fixture.gate).operations;
    assert_eq!(limits["operations"].as_array().unwrap().len(), operations.len());
    for (shown, operation) in limits["operations"].as_array().unwrap().iter().zip(&operations) {
        assert_eq!((&shown["name"], &shown["countsAgainstQuota"]), (&json!(operation.name), &json!(operation.counted)));
    }
    assert_eq!(limits["keys"]["paidKeys"], json!({"from": "operator", "contact": null}));
    let with_contact = Fixture::new(|settings| settings.keys_contact = "keys@fake.example".to_owned());
    let limits_with_contact = get(&with_contact, "/fake/limits.json").await.json();
    assert_eq!(limits_with_contact["keys"]["paidKeys"], json!({"from": "operator", "contact": "keys@fake.example"}));
    assert_eq!(limits["requests"]["bodyBytes"], fixture.context.settings.body_bytes_max);
    assert_eq!(get(&fixture, "/fake/openapi.json").await.json()["info"]["x-limits"], format!("{BASE}/limits.json"));
}

/// Proves that the catalog leads to the card of each service, that a card and the entry for the registry name an endpoint that answers, and what the card
/// says of it.
#[tokio::test]
async fn cards_of_mcp_endpoints() {
    let fixture = Fixture::new(|_| {});
    let catalog = get(&fixture, "/.well-known/mcp/catalog.json").await;
    assert_eq!((catalog.header("content-type"), catalog.header("access-control-allow-origin")), ("application/json", "*"));
    let entry = json!({
        "identifier": "urn:air:fake.example:fake", "displayName": "Fakes & <more>", "type": "application/mcp-server-card+json",
        "url": format!("{BASE}/mcp/server-card"),
    });
    assert_eq!(catalog.json(), json!({"specVersion": "draft", "entries": [entry]}));
    let card = get(&fixture, "/fake/mcp/server-card").await;
    assert_eq!((card.status.as_u16(), card.header("content-type")), (200, "application/mcp-server-card+json"));
    let well_known = get(&fixture, "/fake/.well-known/mcp/server-card.json").await;
    assert_eq!((&well_known.body, well_known.header("etag")), (&card.body, card.header("etag")));
    let registered = get(&fixture, "/fake/server.json").await.json();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string();
    let card = card.json();
    for document in [&card, &registered] {
        assert_eq!((&document["name"], &document["title"]), (&json!("example.fake/fake"), &json!("Fakes & <more>")));
        assert_eq!((&document["description"], &document["websiteUrl"]), (&json!("Made up."), &json!(format!("{BASE}/docs"))));
        let remote = &document["remotes"][0];
        assert_eq!((&remote["type"], &remote["headers"][0]["name"]), (&json!("streamable-http"), &json!("X-API-Key")));
        let path = remote["url"].as_str().unwrap().strip_prefix("https://fake.example").unwrap().to_owned();
        let ask = ask().method("POST").path(&path).header("host", "fake.example").header("content-type", "application/json");
        let server = send(&fixture, ask.body(hello.clone())).await.json()["result"]["serverInfo"].clone();
        assert_eq!((&document["version"], &document["title"]), (&server["version"], &server["title"]));
    }
    let versions = card["remotes"][0]["supportedProtocolVersions"].as_array().unwrap();
    assert!(["2025-03-26", "2025-11-25", "2026-07-28"].iter().all(|version| versions.contains(&json!(version))), "{versions:?}");
    assert!(registered["$schema"].as_str().unwrap().ends_with("/server.schema.json"));
}

/// Proves that liveness does not depend on readiness, and that readiness gives the reason.
#[tokio::test]
async fn probes() {
    let fixture = Fixture::new(|_| {});
    let waiting = fixture.site(Arc::new(|| Err("recalls are being read".to_owned())));
    let read = ask().path("/readyz").reply(Arc::clone(&waiting)).await;
    assert_eq!((read.status.as_u16(), read.problem().0.as_str(), read.header("retry-after")), (503, "unavailable", "1"));
    assert_eq!(read.json()["detail"], "recalls are being read");
    assert_eq!(ask().path("/healthz").reply(waiting).await.status, 200);
    assert_eq!(get(&fixture, "/readyz").await.status, 200);
}

/// Proves that a disabled service is not served, and that a service without settings is refused at start.
#[tokio::test]
async fn services_switched_off() {
    let fixture = Fixture::new(|settings| {
        settings.services.get_mut("fake").unwrap().enabled = false;
    });
    assert_eq!(get(&fixture, "/fake/api/items").await.status, 404);
    let fixture = Fixture::new(|settings| settings.services.clear());
    let error = Site::new(Arc::clone(&fixture.context), fixture.services(), Arc::new(|| Ok(()))).err().unwrap();
    assert!(matches!(error, SiteError::Unsettled { service: "fake" }));
}

/// Proves that a browser gets the home page of the site and a program the list of services from one address, that pages run nothing but the site's own
/// script, that a service without a page is not found, and that a path of the site supports reads only.
#[tokio::test]
async fn pages_of_the_site() {
    let fixture = Fixture::new(|_| {});
    let browser = |path: &str| ask().path(path).header("accept", "text/html,*/*;q=0.8");
    let home = send(&fixture, browser("/")).await;
    assert_eq!((home.status.as_u16(), home.header("vary"), home.header("content-security-policy")), (200, "Accept", site::POLICY));
    assert!(home.body.contains("href=\"/explore/fake\"") && home.body.contains("Fakes &amp; &lt;more&gt;"), "{}", home.body);
    let list = get(&fixture, "/").await;
    assert_eq!((list.status.as_u16(), list.header("vary")), (200, "Accept"));
    assert!(list.body.contains("/openapi.json") && list.header("etag") != home.header("etag"));
    for asset in site::assets::all() {
        // Every page has the styles and the script of the site; only the page of receipts verifies.
        assert_eq!(home.body.contains(&asset.path), !asset.path.ends_with("/verify.js"), "{}", asset.path);
        let read = get(&fixture, &asset.path).await;
        let expected = (200, asset.content_type, "public, max-age=31536000, immutable");
        assert_eq!((read.status.as_u16(), read.header("content-type"), read.header("cache-control")), expected, "{}", asset.path);
    }
    let missing = send(&fixture, browser("/explore/other")).await;
    assert_eq!((missing.status.as_u16(), missing.header("content-security-policy")), (404, site::POLICY));
    assert_eq!(send(&fixture, browser("/explore").method("POST")).await.status, 405);
    assert_eq!(send(&fixture, browser("/explorer")).await.status, 404);
    // This server issues no receipts, so it has no page to verify them.
    let sitemap = get(&fixture, "/sitemap.xml").await.body;
    assert!(sitemap.contains("/explore/fake</loc>") && !sitemap.contains("/verify</loc>"), "{sitemap}");
    let robots = get(&fixture, "/robots.txt").await.body;
    for endless in ["/explore?", "/entities/*?", "/verify?", "/live"] {
        assert!(robots.contains(&format!("Disallow: {endless}\n")), "{robots}");
    }
    assert_eq!(send(&fixture, browser("/verify")).await.status, 404);
}

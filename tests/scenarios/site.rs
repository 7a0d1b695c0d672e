//! The pages of the site, over a running demo with every service.

use std::collections::BTreeSet;

use operation::Price;
use serde_json::json;

use crate::demo_history;
use crate::process::{Answer, NOWHERE, Server, highwater, send};

/// What a browser asks for.
const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
/// A search that would run in a page that does not escape it.
const HOSTILE: &str = "%3Cscript%3Ealert(1)%3C%2Fscript%3E";

/// A page as a browser gets it, after checks that hold for every page: a status, one title, and nothing that runs except the files of the site.
fn page(server: &Server, path: &str, status: u16) -> String {
    let answer = send(server.address, "GET", path, &[BROWSER], "");
    let html = text(&answer);
    assert_eq!(answer.status, status, "{path}: {html}");
    let policy = answer.header("content-security-policy");
    assert!(
        policy.contains("default-src 'none'") && policy.contains("script-src 'self'") && !policy.contains("unsafe"),
        "{path}: {policy}"
    );
    assert_eq!((html.matches("<title>").count() > 0, html.matches("<h1").count()), (true, 1), "{path}");
    for inline in ["<style", " style=\"", "<script>", " onclick=", " onerror=", "href=\"javascript:"] {
        assert!(!html.contains(inline), "{path} has {inline}");
    }
    html
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

/// The addresses that begin with a prefix in the links of a page.
fn links<'a>(html: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).filter(|link| link.starts_with(prefix)).collect()
}

/// Proves that home, explorers and records of every service are pages in which nothing runs, that a record's page names it, that the files of the pages
/// may be kept for ever, that a search is shown as text, and that programs get what they got before there were pages.
#[test]
fn every_service_has_its_pages() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::signing(highwater(&demo_history::copy_to(dir.path()), NOWHERE, demo_history::STILL));
    let home = page(&server, "/", 200);
    let services = services::all();
    let mut with_records = 0;
    for service in &services {
        let explorer = format!("/explore/{}", service.name);
        assert!(links(&home, &explorer).contains(explorer.as_str()), "the home page has no {}", service.name);
        let html = page(&server, &explorer, 200);
        assert!(html.contains(service.title) && html.contains("This view as"), "{explorer}");
        let is_open = service.operations.iter().any(|operation| operation.name == "changes" && operation.price == Price::Free);
        let changes = page(&server, &format!("{explorer}?view=changes"), if is_open { 200 } else { 403 });
        // Where records are shown in a redacted form they have no id, and no page of their own.
        let Some(record) = links(&html, &format!("{explorer}/")).into_iter().chain(links(&changes, &format!("{explorer}/"))).next() else {
            continue;
        };
        with_records += 1;
        let html = page(&server, record, 200);
        let named = html.split("<h1><bdi>").nth(1).and_then(|rest| rest.split("</bdi>").next()).unwrap();
        assert!(!named.is_empty() && named != "Record", "{record} has no title");
        assert!(html.contains("id=\"versions\"") && html.contains("<time datetime="), "{record}");
    }
    assert!(with_records >= 8, "only {with_records} services link to records");

    for file in links(&home, "/assets/") {
        let answer = send(server.address, "GET", file, &[], "");
        assert_eq!((answer.status, answer.header("cache-control")), (200, "public, max-age=31536000, immutable"), "{file}");
    }
    let found = page(&server, &format!("/explore?q={HOSTILE}"), 200);
    assert!(found.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{found}");
    let company = page(&server, "/explore?q=Federal", 200);
    assert!(company.contains("Not searched</h2>") && company.contains("href=\"/entities/company?name=Federal\""), "{company}");
    for unknown in ["/nothing", "/explore/nothing", "/explore/recalls/nothing"] {
        page(&server, unknown, 404);
    }

    assert!(page(&server, "/status", 200).contains("Last complete sync"));
    let guides = page(&server, "/guides", 200);
    for guide in links(&guides, "/guides/") {
        page(&server, guide, 200);
    }
    for path in ["/guides/webhooks.md", "/guides.md", "/docs/errors.md", "/robots.txt", "/sitemap.xml", "/favicon.ico"] {
        assert_eq!(send(server.address, "GET", path, &[BROWSER], "").status, 200, "{path}");
    }
    for other in
        ["/docs/errors", "/recalls/docs", "/account", "/?utm_source=x&fbclid=y", "/explore/recalls?gclid=x", "/status?utm_medium=z"]
    {
        page(&server, other, 200);
    }

    let program = send(server.address, "GET", "/", &[("accept", "*/*")], "");
    assert!(text(&program).contains("/recalls/openapi.json"), "a program still gets the list of services");
    let answers = ["application/json", BROWSER.1].map(|accept| {
        let answer = send(server.address, "GET", "/recalls/api/recalls?limit=2", &[("accept", accept)], "");
        assert_eq!(answer.status, 200);
        answer.body
    });
    assert_eq!(answers[0], answers[1]);
    // A refusal is a page for a browser, except where a program is expected.
    let refused = send(server.address, "POST", "/explore/recalls", &[BROWSER], "");
    assert!(refused.status == 405 && text(&refused).contains("<h1>") && !refused.header("allow").is_empty(), "{}", text(&refused));
    for (path, accept) in [("/recalls/v1/records/none", BROWSER.1), ("/explore/recalls", "application/json, text/html")] {
        let refused = send(server.address, "DELETE", path, &[("accept", accept)], "");
        assert_eq!((refused.status, refused.header("content-type")), (405, "application/problem+json"), "{path}");
    }
    let missing = send(server.address, "GET", "/nothing", &[], "");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&missing.body).unwrap()["code"], json!("not-found"));
}

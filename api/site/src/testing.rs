//! A site over made-up answers, for tests.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use operation::context::ServiceSettings;
use operation::problem::Problem;
use operation::{Answer, Definition, EntityLink, Operation, Price, RecordPage, Service};
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::fields::{days_before, today};
use crate::{Activity, Pairs, Reads, Rendered, SiteService, render};

/// The time of the tests: 2026-11-28T12:00:00Z.
const NOW_MS: i64 = 1_795_867_200_000;
/// A text that would run, if a page did not escape it.
pub(crate) const HOSTILE: &str = "<script>alert('x')</script>\u{202e}\"><img src=x onerror=alert(1)>";

/// The entities that records of the made service name.
const ENTITIES: [EntityLink; 1] = [EntityLink { kind: "company", arguments: &[("name", "kind"), ("ticker", "none")] }];

/// A service with some answers. It notes what was read.
pub(crate) struct Made {
    pub(crate) service: Service,
    settings: ServiceSettings,
    pub(crate) answers: BTreeMap<&'static str, Value>,
    pub(crate) read: Mutex<Vec<(String, Pairs)>>,
    activity: Activity,
    /// How many services there are, all like the first.
    pub(crate) copies: usize,
    pub(crate) now_ms: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

pub(crate) fn operation(name: &'static str, path: &'static str, list: &'static str, properties: Value) -> Operation {
    let definition = Definition { name, path, list, example: json!({}), ..Definition::read() };
    let made = Operation::define::<Nothing, (), _, _>(definition, |_, _: Nothing| async { Answer::json(&json!({})) });
    Operation { input: json!({ "type": "object", "properties": properties }), ..made }
}

impl Made {
    /// A service whose records have a hostile title, with a list and a filtered feed.
    pub(crate) fn new() -> Self {
        let text = || json!({ "type": "string", "description": "Words." });
        let mut feed = operation(
            "whats_changed_since",
            "/v1/whats_changed_since",
            "changes",
            json!({ "cursor": text(), "wait": {"type": "integer"}, "limit": {"type": "integer"}, "kind": text() }),
        );
        feed.price = Price::Tier(Tier::Pro);
        let mut company =
            operation("company", "/v1/company", "", json!({ "name": text(), "ticker": text(), "limit": {"type": "integer"} }));
        company.input["required"] = json!(["name"]);
        company.output = json!({ "type": "object", "properties": { "sections": { "type": "array" } } });
        let operations = vec![
            company,
            operation(
                "list",
                "/v1/list",
                "items",
                json!({ "keyword": text(), "kind": {"enum": ["a", "b"]}, "limit": {"type": "integer"}, "after": text(), "asOf": text() }),
            ),
            feed,
            operation(
                "changes",
                "/v1/changes",
                "changes",
                json!({ "cursor": text(), "wait": {"type": "integer"}, "limit": {"type": "integer"} }),
            ),
            operation("verify_receipt", "/v1/verify/{receipt_id}", "", json!({ "receipt_id": text() })),
            operation(
                "list_receipts",
                "/v1/list",
                "receipts",
                json!({ "agent_id": text(), "limit": {"type": "integer"}, "after": {"type": "integer"} }),
            ),
            operation("prove_consistency", "/v1/consistency", "", json!({ "from": {"type": "integer"} })),
            operation("record", "/v1/records/{id}", "", json!({ "id": text(), "asOf": text() })),
            operation("record_history", "/v1/records/{id}/history", "versions", json!({ "id": text() })),
        ];
        let page = RecordPage {
            list: "list",
            rows: &["items"],
            title: &["title"],
            detail: &[("kind ", "kind")],
            columns: &["kind", "url"],
            facet: "kind",
            searches: &["keyword"],
            ..RecordPage::default()
        };
        let service = Service {
            name: "made",
            title: "Made <up>",
            about: "First sentence. Second.",
            operations,
            files: None,
            data: Vec::new(),
            page,
            entities: &ENTITIES,
        };
        let record = json!({ "id": "A/1", "title": HOSTILE, "kind": "a", "url": "javascript:alert(1)" });
        let change = json!({ "event": "new", "seq": 7, "recordedAt": "2026-11-28T10:00:00.000Z", "record": record });
        let answers = BTreeMap::from([
            (
                "health",
                json!({ "changes": 7, "lastSnapshot": "2026-11-28T11:00:00Z", "throughDate": "2026-11-27", "historyFrom": "2026-11-01T00:00:00Z" }),
            ),
            ("list", json!({ "items": [record], "next": "page 2", "note": HOSTILE })),
            ("changes", json!({ "changes": [change], "hasMore": false, "cursor": "c", "from": 7, "to": 7 })),
            ("record", json!({ "id": "A/1", "event": "new", "seq": 7, "recordedAt": "2026-11-28T10:00:00.000Z", "record": record })),
            ("record_history", json!({ "id": "A/1", "versions": [change], "next": null })),
        ]);
        let settings = ServiceSettings::new("http://api.example/made".to_owned(), "/made".to_owned());
        Self { service, settings, answers, read: Mutex::default(), activity: Activity::default(), copies: 1, now_ms: NOW_MS }
    }

    /// Takes an operation from the service.
    pub(crate) fn remove_operation(&mut self, name: &str) {
        self.service.operations.retain(|operation| operation.name != name);
    }

    /// The page at a path.
    pub(crate) fn page(&self, path: &str) -> Rendered {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let rendering = render(self, path, query).now_or_never();
        rendering.flatten().unwrap_or_else(|| panic!("there is no page at {path}"))
    }
}

impl Reads for Made {
    fn services(&self) -> Vec<SiteService<'_>> {
        vec![SiteService { service: &self.service, settings: &self.settings }; self.copies]
    }

    fn read<'a>(&'a self, _: &'a str, operation: &'a str, arguments: Pairs) -> BoxFuture<'a, Result<Value, Problem>> {
        let days = arguments.iter().find(|(name, _)| name == "days").map_or(0, |(_, days)| days.parse().unwrap());
        self.read.lock().unwrap().push((operation.to_owned(), arguments));
        let mut answer = self.answers.get(operation).cloned().ok_or_else(|| Problem::new(ErrorCode::NotFound, "no <record> has this id"));
        if let (Ok(answer), "health") = (&mut answer, operation) {
            // Two changes on the 20th, five on the 28th.
            let changes_on = |day: &str| match day {
                "2026-11-20" => 2,
                "2026-11-28" => 5,
                _ => 0,
            };
            let days = days_before(today(NOW_MS), days).into_iter().map(|day| day.to_string());
            answer["changesByDay"] = days.map(|day| json!({ "day": day, "changes": changes_on(&day) })).collect();
        }
        Box::pin(std::future::ready(answer))
    }

    fn cursor_after(&self, _: &str, seq: u64) -> String {
        format!("after-{seq}")
    }

    fn now_ms(&self) -> i64 {
        self.now_ms
    }

    fn site_url(&self) -> &str {
        "http://api.example"
    }

    fn activity(&self) -> &Activity {
        &self.activity
    }
}

/// Proves that no page has a script or style of its own, an inert text that runs, or a link that is no web address; and that each has what a page needs.
#[test]
fn every_page_is_inert_and_complete() {
    for path in [
        "/",
        "/explore",
        "/explore?q=x",
        "/explore/made",
        "/explore/made?view=changes",
        "/explore/made/A%2F1",
        "/status",
        "/entities",
        "/entities/company",
        "/verify",
    ] {
        let made = Made::new();
        let page = made.page(path);
        assert_eq!(page.status, 200, "{path}");
        let html = &page.html;
        for inert in ["<script>", "onerror=alert(1)>\"", "<style", " style=", "href=\"javascript", "<img src=x", "onclick"] {
            assert!(!html.contains(inert), "{path} has {inert}");
        }
        for part in [
            "<html lang=\"en\">",
            "<title>",
            "id=\"main\"",
            "href=\"#main\"",
            "rel=\"icon\"",
            "<nav",
            "<h1>",
            pages::assets::STYLE.path.as_str(),
        ] {
            assert!(html.contains(part), "{path} has no {part}");
        }
        assert_eq!(html.matches("<h1").count(), 1, "{path}");
        let canonical = "<link rel=\"canonical\" href=\"http://api.example/";
        assert!(html.contains(canonical) != html.contains("content=\"noindex\""), "{path} is known under no whole address");
        assert!(
            ["/explore", "/status", "/verify"].contains(&path) || path.starts_with("/entities") || html.contains("&lt;script&gt;alert("),
            "{path} shows the title"
        );
    }
}

/// Proves that texts of upstreams are inert wherever a page has them: in titles, addresses, attributes, charts and names of columns.
#[test]
fn hostile_texts_are_inert_everywhere() {
    let mut made = Made::new();
    let record = json!({ "id": HOSTILE, "title": HOSTILE, "kind": HOSTILE, "url": format!("https://a.example/{HOSTILE}"), HOSTILE: { HOSTILE: HOSTILE } });
    let change = json!({ "event": HOSTILE, "seq": 7, "recordedAt": HOSTILE, HOSTILE: HOSTILE, "record": record });
    made.answers.insert("list", json!({ "items": [record], "next": HOSTILE, "note": HOSTILE }));
    made.answers.insert("changes", json!({ "changes": [change], "hasMore": true, "cursor": HOSTILE, "from": 7, "to": 7, "note": HOSTILE }));
    made.answers.insert("record", change.clone());
    made.answers.insert("record_history", json!({ "id": HOSTILE, "versions": [change], "next": HOSTILE }));
    let streams = json!([{ "stream": HOSTILE, "state": HOSTILE, "lastFinished": HOSTILE }]);
    made.answers.insert(
        "health",
        json!({ "changes": 7, "lastSnapshot": HOSTILE, "throughDate": HOSTILE, "historyFrom": HOSTILE, "streams": streams }),
    );
    let row = json!({ "topic": HOSTILE, "service": "made", "foundBy": HOSTILE, "rows": [record], "filter": { "keyword": HOSTILE } });
    made.answers.insert("company", json!({ "name": HOSTILE, "ticker": HOSTILE, "asOf": HOSTILE, "note": HOSTILE, "sections": [row] }));
    let (text, id) = (crate::url::query(&[("q", HOSTILE)]), crate::url::segment(HOSTILE));
    let named = text.replace("?q=", "");
    let paths = [
        "/".to_owned(),
        format!("/explore{text}"),
        "/explore/made".to_owned(),
        format!("/explore/made?keyword={named}&kind={named}&sort={named}"),
        "/explore/made?view=changes".to_owned(),
        format!("/explore/made/{id}"),
        format!("/entities/company?name={named}"),
        format!("/verify{text}"),
        "/status".to_owned(),
    ];
    for path in paths {
        let html = made.page(&path).html;
        for inert in ["<script>", "<img src=x", "href=\"javascript"] {
            assert!(!html.contains(inert), "{path} has {inert}");
        }
        assert!(
            html.contains("&lt;script&gt;") || ["/status", "/verify"].iter().any(|other| path.starts_with(other)),
            "{path} shows the text"
        );
    }
}

/// The most bytes of scripts that a page loads, compressed.
const SCRIPT_BYTES_MAX: usize = 60_000;

/// The bytes of the scripts that a page loads, compressed, and how many they are.
fn script_bytes(html: &str) -> (usize, usize) {
    let paths: Vec<&str> = html.split("<script src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let compressed = |path: &&str| {
        let asset = pages::assets::all().find(|asset| asset.path == **path).unwrap_or_else(|| panic!("{path} is not embedded"));
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, asset.bytes).unwrap();
        encoder.finish().unwrap().len()
    };
    (paths.iter().map(compressed).sum(), paths.len())
}

/// Proves that the scripts of each page stay small: the page of a record and that of receipts load two, the others one.
#[test]
fn scripts_are_small() {
    let mut made = Made::new();
    let verifying = made.page("/verify").html;
    made.remove_operation("verify_receipt");
    let pages = ["/", "/explore?q=x", "/explore/made", "/status", "/entities/company", "/guides"].map(|path| made.page(path).html);
    let record = made.page("/explore/made/A%2F1").html;
    for (html, scripts) in pages.iter().map(|html| (html, 1)).chain([(&record, 2), (&verifying, 2)]) {
        let (bytes, count) = script_bytes(html);
        assert_eq!(count, scripts, "{html}");
        assert!((1..=SCRIPT_BYTES_MAX).contains(&bytes), "{bytes} bytes of scripts");
    }
}

/// Proves that the days of the chart are those on which changes were recorded, and that days that have ended are asked for once.
#[test]
fn days_are_counted_once() {
    let made = Made::new();
    let html = made.page("/explore/made").html;
    for bar in ["<title>2026-11-20: 2</title>", "<title>2026-11-28: 5</title>", "<title>2026-11-27: 0</title>"] {
        assert!(html.contains(bar), "{bar}");
    }
    assert_eq!(made.page("/explore/made").html.matches("class=\"bar\"").count(), html.matches("class=\"bar\"").count());
    let days = |at: usize| {
        let read = made.read.lock().unwrap();
        read.iter().filter(|(name, _)| name == "health").nth(at).and_then(|(_, pairs)| Some(pairs.first()?.1.clone()))
    };
    assert_eq!([days(0), days(1), days(2)], [Some("30".to_owned()), Some("1".to_owned()), None]);
}

/// Proves that filters reach the operation as they are given, that pages and sorting keep them, and that a page names its next one.
#[test]
fn filters_pages_and_sorting() {
    let made = Made::new();
    let html = made.page("/explore/made?keyword=milk&kind=a&utm_source=x&sort=kind").html;
    let read = made.read.lock().unwrap().iter().find(|(name, _)| name == "list").cloned().unwrap().1;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(read, [pair("keyword", "milk"), pair("kind", "a"), pair("limit", "25")]);
    assert!(html.contains("keyword=milk&amp;kind=a&amp;sort=kind&amp;after=page+2"), "{html}");
    assert!(html.contains("aria-sort=\"ascending\"") && html.contains("sort=-kind"));
    assert!(html.contains("<option value=\"a\" selected>a</option>"));
    assert!(
        html.contains("curl &#39;http://api.example/made/v1/list?keyword=milk&amp;kind=a&amp;limit=25&#39;")
            || html.contains("curl 'http://api.example/made/v1/list?keyword=milk&amp;kind=a&amp;limit=25'"),
        "{html}"
    );
    for accepted in ["-H 'accept: text/csv' ", "-o made.parquet -H 'accept: application/vnd.apache.parquet' "] {
        let address = "'http://api.example/made/v1/list?keyword=milk&amp;kind=a&amp;limit=25'";
        assert!(html.contains(&format!("curl {accepted}{address}")), "{accepted}: {html}");
    }
    // The feed needs a key, so changes have no filters here, and the page says so.
    assert!(made.page("/explore/made?view=changes").html.contains("Filters over changes need a key"));
}

/// Proves that the home page says when each upstream was last read completely, the failing ones first, and leads to the state of each.
#[test]
fn home_says_how_fresh_upstreams_are() {
    let mut made = Made::new();
    let stream = |name: &str, state: &str| json!({ "stream": name, "state": state, "lastFinished": "2026-11-28T10:00:00Z" });
    made.answers.get_mut("health").unwrap()["streams"] = json!([stream("cpsc", "finished"), stream("<b>fsis", "failed")]);
    let html = made.page("/").html;
    // Soon after, the page shows the same without reading the sync runs again; later it reads them.
    let read_streams = |made: &Made| {
        let read = made.read.lock().unwrap();
        read.iter().filter(|(_, pairs)| pairs.contains(&("streams".to_owned(), "true".to_owned()))).count()
    };
    made.now_ms += 14_999;
    assert!(made.page("/").html.contains("<code>cpsc</code>"));
    assert_eq!(read_streams(&made), 1);
    made.now_ms += 1;
    assert!(made.page("/").html.contains("<code>cpsc</code>"));
    assert_eq!(read_streams(&made), 2);
    let fresh = html.find("href=\"/status#stream-cpsc\"><code>cpsc</code></a> <span class=\"soft\"><time");
    let failing = html.find("<code>&lt;b&gt;fsis</code></a> <span class=\"event bad\">Failed</span> ");
    assert!(fresh.is_some() && failing.is_some() && failing < fresh && html.contains("2 h ago"), "{html}");
}

/// Proves that the page of a record says what its fields mean, and an explorer what its columns mean, where the schema of the answer does, also the schema of
/// a redacted form, with inert texts.
#[test]
fn fields_have_meanings() {
    let mut made = Made::new();
    assert!(!made.page("/explore/made/A%2F1").html.contains("What the fields mean"));
    let schema = json!({ "properties": { "kind": { "description": "The `kind` <b>." }, "other": { "description": "Not there." } } });
    for record in [schema.clone(), json!({ "anyOf": [{ "properties": {} }, schema] })] {
        let operation = made.service.operations.iter_mut().find(|operation| operation.name == "record").unwrap();
        operation.output = json!({ "properties": { "record": record } });
        let html = made.page("/explore/made/A%2F1").html;
        assert!(
            html.contains("What the fields mean</summary>") && html.contains("<dt>Kind</dt><dd>The <code>kind</code> &lt;b&gt;.</dd>"),
            "{html}"
        );
        assert!(!html.contains("Not there."), "{html}");
        let table = made.page("/explore/made").html;
        assert!(
            table.contains("What the columns mean</summary>") && table.contains("<dd>The <code>kind</code> &lt;b&gt;.</dd>"),
            "{table}"
        );
    }
}

/// Proves that the page of a record names for each value the notices that gave it and the rule, with inert texts and links; that it says nothing of them if
/// they belong to another version; and that a page of the past says why it has none.
#[test]
fn values_have_notices() {
    let mut made = Made::new();
    made.service.operations.push(operation("record_sources", "/v1/records/{id}/sources", "", json!({ "id": {"type": "string"} })));
    let notice = |number: &str, url: &str, fields: &[&str]| json!({ "number": number, "stream": "cpsc", "url": url, "fields": fields });
    let mut answer = json!({ "id": "A/1", "seq": 7, "rule": "The `first` <b>notice.", "notices": [
        notice("A:1", "https://a.example/1", &["title"]),
        notice("<b>B:1", "javascript:alert(1)", &["kind", "title"]),
    ] });
    made.answers.insert("record_sources", answer.clone());
    let html = made.page("/explore/made/A%2F1").html;
    assert!(html.contains("is merged from 2 notices. The <code>first</code> &lt;b&gt;notice."), "{html}");
    assert!(
        html.contains(", from <a href=\"#notice-0\"><bdi>A:1</bdi></a> and <a href=\"#notice-1\"><bdi>&lt;b&gt;B:1</bdi></a>"),
        "{html}"
    );
    assert!(
        html.contains("<tr id=\"notice-0\"><th scope=\"row\"><a href=\"https://a.example/1\"") && !html.contains("href=\"javascript"),
        "{html}"
    );
    assert!(html.contains("<td>kind, title</td>") && html.contains("href=\"/status#stream-cpsc\""), "{html}");
    // A version of the past that is the current one has its notices.
    let past = made.page("/explore/made/A%2F1?asOf=2026-11-28").html;
    assert!(past.contains("notice-0") && !past.contains("is known for the current version"), "{past}");
    let read = made.read.lock().unwrap().iter().rfind(|(name, _)| name == "record_sources").unwrap().1.clone();
    assert!(read.contains(&("asOf".to_owned(), "2026-11-28".to_owned())), "{read:?}");
    made.answers.insert("record_sources", json!({ "id": "A/1", "seq": 7, "rule": "", "notices": [] }));
    let past = made.page("/explore/made/A%2F1?asOf=2026-11-28").html;
    assert!(past.contains("is known for the current version") && !past.contains("notice-0"), "{past}");
    answer["seq"] = json!(8);
    made.answers.insert("record_sources", answer.clone());
    assert!(!made.page("/explore/made/A%2F1").html.contains("notice-0"));
    (answer["seq"], answer["notices"]) = (json!(7), json!([notice("A:1", "", &["title"])]));
    made.answers.insert("record_sources", answer);
    let html = made.page("/explore/made/A%2F1").html;
    assert!(html.contains("is made of one notice. ") && html.contains("id=\"notice-0\"") && !html.contains(", from <a"), "{html}");
}

/// Proves that the page of a record has what the script needs to check its place in the tree of its service, and that a receipt leads to the page that
/// verifies it.
#[test]
fn places_in_the_tree() {
    let mut made = Made::new();
    let html = made.page("/explore/made/A%2F1").html;
    assert!(html.contains("href=\"/made/verify/A%2F1\">Verify this receipt") && !html.contains("id=\"proof\""), "{html}");
    made.remove_operation("verify_receipt");
    let html = made.page("/explore/made/A%2F1").html;
    assert!(html.contains("id=\"proof\" hidden data-seq=\"7\" data-tree=\"/made/\">"), "{html}");
    assert!(html.contains("id=\"verdict\"") && html.contains("id=\"checks\"") && html.contains(&pages::assets::VERIFY.path), "{html}");
    made.remove_operation("prove_consistency");
    assert!(!made.page("/explore/made/A%2F1").html.contains("id=\"proof\""));
}

/// Proves that an explorer names the Atom feed that has what it shows, under its filters: to feed readers if it is free, with a key if it needs one, and
/// none if no feed takes a filter; and that a record has none.
#[test]
fn feeds_for_feed_readers() {
    let made = Made::new();
    let link =
        "<link rel=\"alternate\" type=\"application/atom+xml\" title=\"Made &lt;up&gt;\" href=\"http://api.example/made/v1/changes.atom\">";
    for path in
        ["/explore/made", "/explore/made?sort=kind&after=x", "/explore/made?view=changes", "/explore/made?view=changes&asOf=2026-11-20"]
    {
        let html = made.page(path).html;
        assert!(html.contains(link) && html.contains("<summary>Atom</summary>"), "{path}: {html}");
    }
    let html = made.page("/explore/made?kind=a").html;
    assert!(html.contains("curl -H &quot;x-api-key: $KEY&quot; ") && html.contains("/made/v1/whats_changed_since.atom?kind=a"), "{html}");
    assert!(!html.contains("rel=\"alternate\""), "{html}");
    for path in ["/explore/made?keyword=milk&kind=a", "/explore/made/A%2F1"] {
        let html = made.page(path).html;
        assert!(!html.contains(".atom") && !html.contains("rel=\"alternate\""), "{path}: {html}");
    }
    assert!(made.page("/status").html.contains("rel=\"alternate\" type=\"application/atom+xml\" title=\"Status\" href=\"/status.atom\""));
}

/// Proves that the rows of a page are sorted by any of its columns in both directions, also by title and by time, and that what is unknown comes last.
#[test]
fn every_column_sorts() {
    let mut made = Made::new();
    let record = |title: &str, kind: &str| json!({ "id": title, "title": title, "kind": kind });
    made.answers.insert("list", json!({ "items": [record("beta", "a"), record("Alpha", ""), record("gamma", "b")] }));
    let change = |seq: u64, title: &str| json!({ "event": "new", "seq": seq, "recordedAt": format!("2026-11-28T1{seq}:00:00Z"), "record": record(title, "a") });
    made.answers.insert("changes", json!({ "changes": [change(1, "beta"), change(2, "Alpha")], "from": 1, "to": 2 }));
    let order = |query: &str| {
        let html = made.page(&format!("/explore/made?{query}")).html;
        let titles = html.split("href=\"/explore/made/").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned);
        titles.collect::<Vec<String>>().join(" ")
    };
    for (query, titles) in [
        ("sort=record", "Alpha beta gamma"),
        ("sort=-record", "gamma beta Alpha"),
        ("sort=kind", "beta gamma Alpha"),
        ("sort=-kind", "gamma beta Alpha"),
        ("view=changes", "Alpha beta"),
        ("view=changes&sort=recordedAt", "beta Alpha"),
        ("view=changes&sort=-recordedAt", "Alpha beta"),
    ] {
        assert_eq!(order(query), titles, "{query}");
    }
}

/// Proves that a list of changes says what a change tells in addition to its record, that a list of records does not, and that a breakdown says how many
/// changes it counts.
#[test]
fn changes_tell_more_than_records() {
    let mut made = Made::new();
    made.answers.get_mut("changes").unwrap()["changes"][0]["statusBefore"] = json!("<b>pending");
    let details = "<span class=\"what\"><bdi>Status before &lt;b&gt;pending</bdi></span>";
    let changes = made.page("/explore/made?view=changes").html;
    assert!(changes.contains(details) && changes.contains("Newest changes by kind<span class=\"soft\">of 1</span>"), "{changes}");
    let records = made.page("/explore/made").html;
    // Four parts of the feed are read, and each has the change.
    assert!(!records.contains("class=\"what\"") && records.contains(">of 4</span>"), "{records}");
}

/// Proves that what an operation refuses is said on a page with the status of the refusal.
#[test]
fn refusals_are_pages() {
    let mut made = Made::new();
    made.answers.remove("record");
    let page = made.page("/explore/made/B");
    assert_eq!(page.status, 404);
    assert!(page.html.contains("No &lt;record&gt; has this id.") && page.html.contains("/docs/errors#not-found"));
    assert_eq!(made.page("/explore/other").status, 404);
    made.answers.remove("list");
    let page = made.page("/explore/made");
    assert_eq!(page.status, 404);
    assert!(page.html.contains("Made &lt;up&gt;") && page.html.contains("No &lt;record&gt;"));
}

/// A service without a list, whose filtered feed is free, takes two arguments for words and leaves late news out, and has two changes.
pub(crate) fn searched_by_feed() -> Made {
    let mut made = Made::new();
    made.service.page.list = "";
    made.service.page.searches = &["recipient", "keyword"];
    let feed = made.service.operations.iter_mut().find(|operation| operation.name == "whats_changed_since").unwrap();
    feed.price = Price::Free;
    let properties = ["recipient", "keyword", "start", "cursor", "wait"].map(|name| (name.to_owned(), json!({ "type": "string" })));
    let properties: serde_json::Map<String, Value> = properties.into_iter().collect();
    feed.input["properties"] = Value::Object(properties);
    feed.input["properties"]["includeBackfill"] = json!({ "type": "boolean" });
    let change = |id: &str, seq: u64| json!({ "event": "new", "seq": seq, "id": id, "title": format!("Title {id}") });
    made.answers.insert("whats_changed_since", json!({ "changes": [change("old", 1), change("fresh", 2)], "hasMore": false }));
    made.answers.remove("record");
    made
}

/// Proves that a filtered feed has its newest changes first and leads to the older ones and to the other end, from which it leads on, also from a day and
/// without a filter; that a page without changes says whether there is a next one; and that an empty feed leads to late news until that is included.
#[test]
fn filtered_feeds_lead_on() {
    let mut made = searched_by_feed();
    let shown = |made: &Made, query: &str| {
        let html = made.page(&format!("/explore/made?{query}")).html;
        let read = made.read.lock().unwrap().iter().rfind(|(name, _)| name == "whats_changed_since").map(|(_, pairs)| pairs.clone());
        let read = ["start", "cursor"].map(|name| crate::url::value(read.as_ref().unwrap(), name).to_owned());
        (html, read.join(" "))
    };
    made.answers.get_mut("whats_changed_since").unwrap()["older"] = json!("o1");
    let (newest, read) = shown(&made, "keyword=milk");
    assert!(read == "newest " && newest.find("Title fresh").unwrap() < newest.find("Title old").unwrap(), "{read}: {newest}");
    for link in ["keyword=milk&amp;start=earliest\">Show from the oldest on", "keyword=milk&amp;cursor=o1&amp;start=newest\">Next page"] {
        assert!(newest.contains(&format!("href=\"/explore/made?{link}")), "{newest}");
    }
    let (older, read) = shown(&made, "keyword=milk&cursor=o1&start=newest");
    assert!(read == "newest o1" && older.contains("href=\"/explore/made?keyword=milk\">First page"), "{read}: {older}");
    made.answers.get_mut("whats_changed_since").unwrap()["hasMore"] = json!(true);
    made.answers.get_mut("whats_changed_since").unwrap()["cursor"] = json!("c2");
    for (query, start, next) in
        [("keyword=milk&start=earliest", "earliest ", "keyword=milk&amp;cursor=c2"), ("start=2026-11-20", "2026-11-20 ", "cursor=c2")]
    {
        let (oldest, read) = shown(&made, query);
        assert!(read == start && oldest.contains("The oldest changes come first."), "{read}: {oldest}");
        assert!(oldest.find("Title old").unwrap() < oldest.find("Title fresh").unwrap(), "{oldest}");
        assert!(oldest.contains(&format!("/explore/made?{next}\">Next page")), "{oldest}");
        let (second, read) = shown(&made, &next.replace("&amp;", "&"));
        assert!(read == " c2" && second.contains("start=earliest\">First page"), "{read}: {second}");
    }
    for (older, words) in [(json!("o2"), "The next page continues the search."), (json!(null), "There are no further changes to show.")] {
        made.answers.insert("whats_changed_since", json!({ "changes": [], "hasMore": false, "older": older }));
        let (empty, _) = shown(&made, "keyword=milk&cursor=o1&start=newest");
        let leads_on = empty.contains("keyword=milk&amp;cursor=o2&amp;start=newest\">Next page");
        assert!(empty.contains(words) && leads_on == older.is_string() && !empty.contains("\">Include late news</a>"), "{empty}");
    }
    let (empty, _) = shown(&made, "keyword=milk");
    let link = "href=\"/explore/made?keyword=milk&amp;includeBackfill=true\">Include late news</a>";
    assert!(empty.contains(link) && !empty.contains("changes come first"), "{empty}");
    assert!(!shown(&made, "keyword=milk&includeBackfill=true").0.contains(link));
}

/// Proves that the last changes up to a cursor lead on backwards also where the filtered feed needs a key, by `until`; and that a part of the feed that
/// shows nothing leads on, too. The server refuses a stream of events that ends at a cursor or shows an earlier time, so no page offers one.
#[test]
fn unfiltered_feeds_lead_on() {
    let mut made = Made::new();
    let next = "href=\"/explore/made?view=changes&amp;until=6\">Next page";
    for query in ["", "&start=newest", "&start=Newest", "&cursor=c1&start=newest"] {
        let html = made.page(&format!("/explore/made?view=changes{query}")).html;
        assert!(html.contains(next) && html.contains("Server-sent events") != query.contains("cursor"), "{query}: {html}");
    }
    assert!(!made.page("/explore/made?view=changes&asOf=2026-11-20").html.contains("Server-sent events"));
    made.answers.get_mut("changes").unwrap()["changes"] = json!([]);
    let html = made.page("/explore/made?view=changes").html;
    assert!(html.contains(next) && html.contains("The next page continues the search."), "{html}");
}

/// Proves that a change of a filtered feed, which has the fields of the record next to its own, leads to the page of the record, and says what it tells in
/// addition.
#[test]
fn filtered_changes_have_records() {
    let mut made = searched_by_feed();
    let operation = made.service.operations.iter_mut().find(|operation| operation.name == "record").unwrap();
    operation.output = json!({ "properties": { "record": { "properties": { "id": {}, "title": {}, "notes": {} } } } });
    let change = &mut made.answers.get_mut("whats_changed_since").unwrap()["changes"][0];
    (change["amountDelta"], change["notes"], change["kind"]) = (json!(-1_500.0), json!("said elsewhere"), json!("a"));
    let html = made.page("/explore/made?keyword=milk").html;
    assert!(html.contains("href=\"/explore/made/old\"><bdi>Title old</bdi></a>"), "{html}");
    assert!(html.contains("<span class=\"what\"><bdi>Amount delta -1,500</bdi></span>"), "{html}");
}

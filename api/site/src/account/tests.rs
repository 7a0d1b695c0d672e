//! The pages of the portal over made-up answers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use operation::context::ServiceSettings;
use operation::problem::Problem;
use operation::{Method, Operation, RecordPage, Service};
use schemas::error_code::ErrorCode;
use serde_json::{Value, json};

use super::*;
use crate::testing::{HOSTILE, operation};
use crate::{SiteService, url};

/// A service with webhooks. It notes what was called.
struct Made {
    service: Service,
    settings: ServiceSettings,
    answers: BTreeMap<&'static str, Value>,
    called: Mutex<Vec<(String, Value, String)>>,
}

const ID: &str = "watch_1";
/// The page of the watch.
const WATCH: &str = "/account/watches/made/watch_1";

impl Made {
    fn new() -> Self {
        let text = || json!({ "type": "string", "description": "Words. More." });
        let by_id = || json!({ "id": text() });
        let with = |method: Method, made: Operation| Operation { method, ..made };
        let mut create = json!({ "webhook": text(), "secret": text(), "entity": { "type": "object", "properties": { "kind": {"enum": ["a", "b"]}, "value": text() } } });
        create["deep"] = json!({ "type": "boolean" });
        let operations = vec![
            operation("list", "/v1/list", "items", json!({ "keyword": text(), "codes": {"type": "array"}, "limit": {"type": "integer"} })),
            with(Method::Post, operation("create_key", "/api/keys", "", json!({ "email": text() }))),
            operation("list_keys", "/api/account/keys", "keys", json!({})),
            with(Method::Post, operation("create_another_key", "/api/account/keys", "", json!({}))),
            with(
                Method::Post,
                operation("rotate_key", "/api/account/keys/{id}/rotate", "", json!({ "id": text(), "overlapHours": {"type": "integer"} })),
            ),
            with(
                Method::Delete,
                operation("revoke_key", "/api/account/keys/{id}", "", json!({ "id": text(), "last": {"type": "boolean"} })),
            ),
            with(
                Method::Post,
                operation(
                    "save_filter",
                    "/v1/filters",
                    "",
                    json!({ "name": text(), "filter": {"type": "object", "properties": {
                "keyword": text(), "codes": {"type": "array", "items": {"type": "string"}}, "days": {"type": "integer"} }} }),
                ),
            ),
            operation("list_filters", "/v1/filters", "filters", json!({})),
            with(Method::Delete, operation("delete_filter", "/v1/filters/{name}", "", json!({ "name": text() }))),
            with(Method::Post, operation("watch", "/v1/watchlist", "", create)),
            operation("list_watches", "/v1/watchlist", "watches", json!({})),
            operation("get_watch", "/v1/watchlist/{id}", "matches", by_id()),
            with(Method::Delete, operation("delete_watch", "/v1/watchlist/{id}", "", by_id())),
            operation("webhook_deliveries", "/v1/watchlist/{id}/deliveries", "deliveries", by_id()),
            operation("webhook_message", "/v1/watchlist/{id}/messages/{message}", "", json!({ "id": text(), "message": text() })),
        ];
        let page = RecordPage { list: "list", rows: &["items"], title: &["title"], ..RecordPage::default() };
        let service =
            Service { name: "made", title: "Made <up>", about: "", operations, files: None, data: Vec::new(), page, entities: &[] };
        let watch = |id: &str, host: &str| json!({ "id": id, "entity": {"kind": "a", "value": HOSTILE}, "webhookHost": host, "madeAt": "2026-11-28T10:00:00Z" });
        let mut read = watch(ID, HOSTILE);
        read["after"] = json!(4);
        read["matches"] = json!([{ "seq": 7, "record": { "id": "A/1", "title": HOSTILE } }]);
        let attempt = |message: &str, attempt: u64| json!({ "message": message, "attempt": attempt, "at": "2026-11-28T10:00:00Z", "status": 503, "reason": HOSTILE });
        let answers = BTreeMap::from([
            (
                "list_filters",
                json!({ "filters": [
                    { "name": HOSTILE, "filter": {"keyword": "x & y", "codes": ["1", "2"]}, "changedAt": "2026-11-28T10:00:00Z" },
                    { "name": "other", "filter": {"unknown": HOSTILE}, "changedAt": "2026-11-28T10:00:00Z" },
                ], "next": null }),
            ),
            ("list_watches", json!({ "watches": [watch("watch_0", "healthy.example"), watch(ID, HOSTILE)], "next": null })),
            ("get_watch", read),
            (
                "webhook_deliveries",
                json!({ "state": "claimed", "failingSince": "", "delivered": 1234, "skipped": 0, "status": 200, "deliveredSeq": 9, "reason": HOSTILE,
                    "deliveries": [attempt("msg_2", 2), attempt("msg_2", 1), attempt("msg_1", 1)], "next": 5 }),
            ),
            ("watch", json!({ "id": ID, "secret": "whsec_new", "note": HOSTILE })),
            ("save_filter", json!({ "name": "mine", "note": HOSTILE })),
            ("delete_watch", json!({ "deleted": ID })),
            ("delete_filter", json!({ "deleted": "x" })),
            ("webhook_message", json!({ "message": "msg_2", "body": {"type": "made.new", "data": {"title": HOSTILE}} })),
            ("ping_webhook", json!({ "accepted": false, "status": 0, "reason": HOSTILE })),
            ("resend_message", json!({ "accepted": true, "status": 204 })),
            ("replay_webhook", json!({ "deliveredSeq": 3 })),
            ("update_webhook", json!({ "id": ID, "secret": "whsec_rotated" })),
            (
                "list_keys",
                json!({ "account": "acct_1", "working": 1, "keys": [key("key_1", "working", true), key(HOSTILE, "ended", false)], "next": null }),
            ),
            ("create_another_key", json!({ "api_key": "hw_live_another", "key_id": "key_2", "tier": "pro" })),
            (
                "rotate_key",
                json!({ "api_key": "hw_live_rotated", "key_id": "key_2", "tier": "pro", "replaced": key("key_1", "ending", true) }),
            ),
            ("revoke_key", json!({ "revoked": key("key_9", "ended", false), "working": 1 })),
            ("create_key", json!({ "api_key": "hw_live_new", "key_id": "key_1", "tier": "free" })),
        ]);
        let settings = ServiceSettings::new("http://api.example/made".to_owned(), "/made".to_owned());
        Self { service, settings, answers, called: Mutex::default() }
    }

    fn show(&self, path: &str) -> Screen {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let route = Route::parse(path).unwrap();
        show(self, &usage(), &route, &url::pairs(query)).now_or_never().unwrap()
    }

    fn submit(&self, path: &str, form: &str) -> Screen {
        submit(self, &usage(), &Route::parse(path).unwrap(), &url::pairs(form)).now_or_never().unwrap()
    }

    /// The arguments of the last call of an operation, and its idempotency key.
    fn last(&self, name: &str) -> Option<(Value, String)> {
        let called = self.called.lock().unwrap();
        called.iter().rev().find(|(operation, ..)| operation == name).map(|(_, arguments, once)| (arguments.clone(), once.clone()))
    }
}

impl Calls for Made {
    fn services(&self) -> Vec<SiteService<'_>> {
        vec![SiteService { service: &self.service, settings: &self.settings }]
    }

    fn call<'a>(&'a self, _: &'a str, name: &'a str, arguments: Arguments, once: &'a str) -> BoxFuture<'a, Result<Value, Problem>> {
        let is_failing = arguments.get("id").is_some_and(|id| id == ID);
        self.called.lock().unwrap().push((name.to_owned(), Value::Object(arguments), once.to_owned()));
        let mut answer = self.answers.get(name).cloned().ok_or_else(|| Problem::new(ErrorCode::NotFound, HOSTILE));
        if let (Ok(answer), "webhook_deliveries", true) = (&mut answer, name, is_failing) {
            answer["failingSince"] = json!("2026-11-27T10:00:00Z");
        }
        async { answer }.boxed()
    }

    fn paid_keys(&self) -> String {
        format!("a key of that tier comes from {HOSTILE}")
    }

    fn nonce(&self) -> String {
        "nonce1".to_owned()
    }
}

fn key(id: &str, state: &str, is_own: bool) -> Value {
    let ends_at = if state == "working" { "" } else { "2026-11-29T10:00:00Z" };
    json!({ "keyId": id, "endsWith": "ab1Z", "tier": "pro", "state": state, "createdAt": "2026-11-28T10:00:00Z", "lastUsedOn": "2026-11-28",
        "endsAt": ends_at, "isOwn": is_own })
}

fn usage() -> Usage {
    Usage {
        tier: "pro".to_owned(),
        key_id: "key_1".to_owned(),
        account: "acct_1".to_owned(),
        calls_max: 1_000,
        remaining: 988,
        reset_s: 3_700,
    }
}

/// Checks what holds for every page: one title, headings in order, a label for each field, nothing that runs, no form to another place, and no texts that
/// act as HTML.
fn check(path: &str, html: &str) {
    for inert in ["<img src=x", "<img>", "<script>", " style=\"", " onclick", "Made <up>"] {
        assert!(!html.contains(inert), "{path} has {inert}: {html}");
    }
    let levels: Vec<u32> = html.split("<h").skip(1).filter_map(|rest| rest.chars().next()?.to_digit(10)).collect();
    assert_eq!((levels.first(), levels.iter().filter(|level| **level == 1).count()), (Some(&1), 1), "{path}: {levels:?}");
    assert!(levels.windows(2).all(|two| two[1] <= two[0] + 1), "{path}: {levels:?}");
    for tag in ["<input", "<select"] {
        for field in html.split(tag).skip(1) {
            let field = field.split('>').next().unwrap();
            let id = field.split(" id=\"").nth(1).map(|rest| rest.split('"').next().unwrap());
            let is_labelled = id.is_some_and(|id| html.contains(&format!("for=\"{id}\"")));
            assert!(field.contains("type=\"hidden\"") || is_labelled, "{path}: no label for {field}");
        }
    }
    for action in html.split(" action=\"").skip(1) {
        assert!(action.starts_with("/account") || action.starts_with("/explore"), "{path}: {action}");
    }
    assert!(!html.contains("<th>"), "{path}: a heading of a table without a scope");
}

/// Proves that hostile texts of accounts and answers are inert on every page, that each page can be read with assistive technology, and that no page repeats
/// a key.
#[test]
fn pages_are_inert_and_accessible() {
    let made = Made::new();
    let webhook = format!("{WEBHOOKS}/made/{ID}");
    let mut pages: Vec<(String, Screen)> =
        [ACCOUNT, "/account/saved", WEBHOOKS, "/account/webhooks/new?service=made", WATCH, webhook.as_str()]
            .into_iter()
            .map(|path| (path.to_owned(), made.show(path)))
            .collect();
    for form in ["act=ping", "act=rotate", "act=delete"] {
        pages.push((format!("{webhook} {form}"), made.submit(&webhook, form)));
    }
    pages.push(("registered".to_owned(), made.submit("/account/webhooks/new", "service=made&url=https%3A%2F%2Fx.example")));
    pages.push(("sign in".to_owned(), sign_in(&made, ACCOUNT, SignIn::Asked)));
    for (path, screen) in pages.iter().filter(|(path, _)| [ACCOUNT, "sign in"].contains(&path.as_str())) {
        let (says_where, is_linked) =
            (screen.html.contains("a key of that tier comes from"), screen.html.contains("href=\"/guides/payments\""));
        assert!(says_where && is_linked, "{path}: {}", screen.html);
    }
    for (path, screen) in &pages {
        assert_eq!(screen.status, 200, "{path}");
        check(path, &screen.html);
        assert!(screen.html.contains("noindex") && !screen.html.contains("hw_live_"), "{path}");
    }
    let refused = [
        made.show("/account/webhooks/new?service=%3Cimg%3E"),
        made.show("/account/webhooks/nothing/x"),
        made.submit(&webhook, "act=%3Cimg%3E"),
        sign_in(&made, "/account\"><img>", SignIn::Refused(Problem::new(ErrorCode::KeyInvalid, HOSTILE))),
    ];
    for (screen, status) in refused.iter().zip([404, 404, 400, 401]) {
        check("refused", &screen.html);
        assert_eq!((screen.status, screen.problem.as_ref().map(|problem| problem.code.status())), (status, Some(status)));
    }
}

/// Proves that the quota of the day is shown.
#[test]
fn quota() {
    let html = Made::new().show(ACCOUNT).html;
    for words in ["12 of 1,000", "988", "1 h 2 min", "key_1", "acct_1", "value=\"12\""] {
        assert!(html.contains(words), "{words}");
    }
}

/// Proves that the keys of the account are listed without themselves, which operations the forms call, that a new key is shown once, that the last key is
/// revoked only if that is meant, and that the page says when the session's key has ended.
#[test]
fn keys_of_the_account() {
    let mut made = Made::new();
    let html = made.show(ACCOUNT).html;
    for words in ["ends with <code>ab1Z</code>", "(this session)", "2026-11-28", "value=\"rotate_key\"", "name=\"last\"", "nonce1"] {
        assert!(html.contains(words), "{words}: {html}");
    }
    assert_eq!((html.matches("value=\"rotate_key\"").count(), html.matches("value=\"revoke_key\"").count()), (1, 1));
    for (form, operation, arguments, words) in [
        ("act=create_another_key&once=n1&id=x", "create_another_key", json!({}), "hw_live_another"),
        ("act=rotate_key&id=key_1&overlapHours=24&once=n2", "rotate_key", json!({"id": "key_1", "overlapHours": "24"}), "works until 2026"),
        ("act=revoke_key&id=key_9", "revoke_key", json!({"id": "key_9"}), "key_9 was revoked"),
        ("act=revoke_key&id=key_9&last=true", "revoke_key", json!({"id": "key_9", "last": "true"}), "key_9 was revoked"),
    ] {
        let screen = made.submit(ACCOUNT, form);
        assert_eq!((screen.status, made.last(operation).unwrap().0), (200, arguments), "{form}");
        check(form, &screen.html);
        assert!(screen.html.contains(words), "{form}: {}", screen.html);
    }
    assert_eq!((made.last("rotate_key").unwrap().1, made.last("create_another_key").unwrap().1), ("n2".to_owned(), "n1".to_owned()));
    let refused = made.submit(ACCOUNT, "act=delete_watch&id=x");
    assert_eq!((refused.status, made.last("delete_watch")), (400, None));
    made.answers.insert("revoke_key", json!({ "revoked": key("key_1", "ended", true), "working": 0, "note": HOSTILE }));
    let screen = made.submit(ACCOUNT, "act=revoke_key&id=key_1&last=true");
    check("ended", &screen.html);
    assert!(screen.html.contains("The key of this session has ended"), "{}", screen.html);
}

/// Proves that the explorer's filter reaches the operation in the types of its fields, under the name of the form, and that fields which are no filters do
/// not; and that a refused form is shown again.
#[test]
fn a_filter_is_saved() {
    let made = Made::new();
    let pairs = url::pairs("view=records&keyword=x+y&codes=1,2&days=3&other=1&sort=a&asOf=2026-11-01");
    let address = new_filter::address(&made.services()[0], &pairs).unwrap();
    assert_eq!(address, "/account/filters/new?service=made&keyword=x+y&codes=1%2C2&days=3");
    assert_eq!(new_filter::address(&made.services()[0], &url::pairs("view=records&sort=a")), None);
    let page = made.show(&address);
    check(&address, &page.html);
    assert!(page.html.contains("name=\"keyword\" value=\"x y\"") && page.html.contains("nonce1"), "{}", page.html);
    let screen = made.submit("/account/filters/new", "service=made&keyword=x+y&codes=1,2&days=3&other=1&name=mine&once=n1");
    let expected = json!({ "name": "mine", "filter": {"keyword": "x y", "codes": ["1", "2"], "days": 3} });
    assert_eq!(made.last("save_filter"), Some((expected, "n1".to_owned())));
    check("saved", &screen.html);
    assert!(screen.html.contains("The filter mine of Made"), "{}", screen.html);
    let refused = made.submit("/account/filters/new", "service=nothing&name=mine");
    assert_eq!(refused.status, 404);
}

/// Proves that the form to watch a record has the record's values, that it needs no URL, and that a watch without one is shown among the saved items.
#[test]
fn a_record_is_watched() {
    let made = Made::new();
    let record = json!({ "a": "", "b": "Ann & Co", "title": HOSTILE });
    let address = register::of_record(&made.services()[0], &record).unwrap().form;
    assert_eq!(address, "/account/watches/new?service=made&entity.kind=b&entity.value=Ann+%26+Co");
    let page = made.show(&address);
    check(&address, &page.html);
    assert!(page.html.contains("value=\"Ann &amp; Co\"") && page.html.contains("<option value=\"b\" selected>"), "{}", page.html);
    let screen = made.submit("/account/watches/new", "service=made&entity.kind=b&entity.value=x&once=n3");
    assert_eq!(made.last("watch"), Some((json!({ "entity": {"kind": "b", "value": "x"} }), "n3".to_owned())));
    assert!(screen.html.contains("The watch watch_1 was created") && screen.html.contains("Saved filters"), "{}", screen.html);
}

/// Proves that the URL is optional in the form of a watch, unless the operation of the service needs one.
#[test]
fn some_watches_need_a_url() {
    let mut made = Made::new();
    let path = "/account/watches/new";
    assert!(made.show(&format!("{path}?service=made")).html.contains("URL<span class=\"soft\"> (optional)</span>"));
    let create = made.service.operations.iter_mut().find(|operation| operation.name == "watch").unwrap();
    create.input["required"] = json!(["webhook"]);
    let html = made.show(&format!("{path}?service=made")).html;
    assert!(!html.contains("URL<span") && html.contains("name=\"url\" required"), "{html}");
    let refused = made.submit(path, "service=made&entity.kind=b&entity.value=x");
    assert_eq!((refused.status, refused.problem.unwrap().parameter.as_str(), made.last("watch")), (400, "webhook", None));
}

/// Proves that the webhook for a view has the filters of the view in the shape and with the types of the operation, and names those that it cannot have; and
/// that it is an example if the view does not have what the operation needs.
#[test]
fn views_have_webhooks() {
    let mut made = Made::new();
    let webhook = |made: &Made, filters: &[(&str, &str)]| {
        let filters: Pairs = filters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let registration = register::of_filters(&made.services()[0], &filters).unwrap();
        (registration.form, registration.body, registration.left_out, registration.is_example)
    };
    let url = "https://hooks.example.com/highwater";
    let (form, body, left_out, is_example) = webhook(&made, &[("a", "x y"), ("deep", "true"), ("keyword", "milk"), ("b", "z")]);
    assert_eq!(form, "/account/watches/new?service=made&entity.kind=a&entity.value=x+y&deep=true");
    assert_eq!(body, json!({ "entity": {"kind": "a", "value": "x y"}, "deep": true, "webhook": url }));
    assert_eq!((left_out.join(", ").as_str(), is_example), ("Keyword, B", false));
    assert!(webhook(&made, &[]).3, "nothing is watched");
    let create = made.service.operations.iter_mut().find(|operation| operation.name == "watch").unwrap();
    create.input["properties"]["entity"]["properties"]["kind"] = json!({ "type": "string", "description": "In any case: `a` or `b`." });
    assert_eq!(webhook(&made, &[("b", "z")]).1["entity"], json!({ "kind": "b", "value": "z" }));
    let create = made.service.operations.iter_mut().find(|operation| operation.name == "watch").unwrap();
    create.input["properties"]["entity"]["required"] = json!(["kind"]);
    create.example = json!({ "entity": {"kind": "b", "value": "y"}, "webhook": "https://a.example" });
    let (_, body, _, is_example) = webhook(&made, &[("deep", "true")]);
    assert_eq!((body["entity"]["kind"].as_str(), body["webhook"].as_str(), is_example), (Some("b"), Some("https://a.example"), true));
}

/// Proves that a failing webhook comes before one that works, although it was made later, and that each leads to its page.
#[test]
fn failing_webhooks_come_first() {
    let html = Made::new().show(WEBHOOKS).html;
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}: {html}"));
    assert!(at("/account/webhooks/made/watch_1") < at("/account/webhooks/made/watch_0"));
    assert!(at(">failing<") < at(">sending<"));
    assert!(html.contains("/account/webhooks/new?service=made"));
}

/// Proves that the page of a webhook shows its attempts, with one button for each message, and leads to earlier ones; and which operations its forms call.
#[test]
fn a_webhook_and_its_forms() {
    let made = Made::new();
    let path = format!("{WEBHOOKS}/made/{ID}");
    let html = made.show(&path).html;
    assert_eq!(html.matches("value=\"resend\"").count(), 2);
    assert!(html.contains("?after=5") && html.contains("&quot;seq&quot;: 7") && html.contains("/explore/made/A%2F1"), "{html}");
    assert_eq!(html.matches("?message=msg_").count(), 2, "each message leads to its body");
    assert!(html.contains("name=\"after\" min=\"4\"") && html.contains("Changes up to 4 were recorded before"), "{html}");
    let shown = made.show(&format!("{path}?message=msg_2")).html;
    check("message", &shown);
    assert_eq!(made.last("webhook_message").unwrap().0, json!({"id": ID, "message": "msg_2"}));
    assert!(shown.contains("made.new") && shown.contains("id=\"message\""), "{shown}");
    made.show(&format!("{path}?after=5"));
    assert_eq!(made.last("webhook_deliveries").unwrap().0["after"], "5");
    for (form, operation, arguments, words) in [
        ("act=ping", "ping_webhook", json!({}), "was not accepted"),
        ("act=resend&message=msg_1", "resend_message", json!({"message": "msg_1"}), "accepted with status 204"),
        ("act=resume&after=1", "replay_webhook", json!({}), "after change 3"),
        ("act=replay&after=1&upto=2", "replay_webhook", json!({"after": "1", "upto": "2"}), "after change 3"),
        ("act=rotate&once=n1", "update_webhook", json!({"rotateSecret": true}), "whsec_rotated"),
        ("act=url&webhook=https%3A%2F%2Fx.example", "update_webhook", json!({"webhook": "https://x.example"}), "URL was changed"),
        ("act=delete", "delete_watch", json!({}), "was deleted"),
    ] {
        let screen = made.submit(&path, form);
        let mut expected = arguments;
        expected["id"] = json!(ID);
        assert_eq!(made.last(operation).unwrap().0, expected, "{form}");
        assert!(screen.html.contains(words), "{form}: {}", screen.html);
    }
    assert_eq!(made.last("delete_watch").unwrap().1, "");
    let refused = made.submit(&path, "act=replay");
    assert_eq!((refused.status, refused.problem.unwrap().parameter.as_str()), (400, "after"));
    assert!(!made.show(&path).html.contains("whsec_"), "a secret is shown twice");
}

/// Proves that the form to register takes the fields of the operation, in the shape of its schema, sends its idempotency key, and shows the secret; and that a
/// form without a URL makes no watch.
#[test]
fn registering() {
    let made = Made::new();
    let path = "/account/webhooks/new";
    let html = made.show(&format!("{path}?service=made")).html;
    for field in ["name=\"entity.kind\"", "name=\"entity.value\"", "name=\"deep\"", "name=\"url\"", "value=\"nonce1\""] {
        assert!(html.contains(field), "{field}");
    }
    assert!(!html.contains("name=\"secret\"") && !html.contains("name=\"webhook\""));
    let refused = made.submit(path, "service=made&entity.value=kept");
    assert!(refused.status == 400 && made.last("watch").is_none() && refused.html.contains("value=\"kept\""));
    let screen = made.submit(path, "service=made&entity.kind=a&entity.value=x&deep=true&url=https%3A%2F%2Fx.example&once=n1&other=1");
    let expected = json!({ "entity": {"kind": "a", "value": "x"}, "deep": "true", "webhook": "https://x.example" });
    assert_eq!(made.last("watch"), Some((expected, "n1".to_owned())));
    assert!(screen.html.contains("whsec_new") && screen.html.contains("watch_1 was registered"), "{}", screen.html);
}

/// Proves that a saved filter leads to the explorer if the explorer takes all of its fields, and that items are deleted by name or id.
#[test]
fn saved_items() {
    let made = Made::new();
    let html = made.show("/account/saved").html;
    assert!(html.contains("/explore/made?view=records&amp;codes=1%2C2&amp;keyword=x+%26+y"), "{html}");
    assert_eq!(html.matches("href=\"/explore/made").count(), 1);
    made.submit("/account/saved", "act=delete_filter&service=made&name=a+b");
    assert_eq!(made.last("delete_filter").unwrap().0, json!({"name": "a b"}));
    made.submit("/account/saved", "act=delete_watch&service=made&id=watch_1");
    assert_eq!(made.last("delete_watch").unwrap().0, json!({"id": "watch_1"}));
    let calls = made.called.lock().unwrap().len();
    let refused = made.submit("/account/saved", "act=create_key&service=made");
    assert_eq!((refused.status, made.last("create_key")), (400, None));
    assert!(made.called.lock().unwrap().len() > calls, "the page is shown again");
}

/// Proves that a watch has a page with what it watches and its matches, which lead to their records and to older ones; that the list of watches and the page of
/// its webhook lead to it; and that a service without watches has no such page.
#[test]
fn a_watch_and_its_matches() {
    let mut made = Made::new();
    let read = made.answers.get_mut("get_watch").unwrap();
    read["matches"] =
        json!([{ "event": "new", "recordedAt": "2026-11-28T11:00:00Z", "slipDays": 30, "record": { "id": "A/1", "title": HOSTILE } }]);
    (read["hasMore"], read["next"]) = (json!(true), json!("older1"));
    let html = made.show(WATCH).html;
    check(WATCH, &html);
    let linked =
        ["href=\"/explore/made/A%2F1\"", "href=\"/account/watches/made/watch_1?after=older1\"", "href=\"/account/webhooks/made/watch_1\""];
    for words in linked.into_iter().chain([
        "28 Nov 2026, 11:00",
        "Slip days 30",
        "the newest first",
        "<dd>you delete it</dd>",
        "value=\"delete_watch\"",
    ]) {
        assert!(html.contains(words), "{words}: {html}");
    }
    assert_eq!(made.last("get_watch").unwrap().0, json!({ "id": ID, "limit": 50 }));
    assert!(made.show(&format!("{WATCH}?after=older1")).html.contains("First page"));
    assert_eq!(made.last("get_watch").unwrap().0, json!({ "id": ID, "limit": 50, "after": "older1" }));
    for page in ["/account/saved", "/account/webhooks/made/watch_1"] {
        assert!(made.show(page).html.contains("href=\"/account/watches/made/watch_1\""), "{page}");
    }
    made.answers.insert("get_watch", json!({ "id": ID, "matches": [], "hasMore": false, "next": null }));
    assert!(made.show(WATCH).html.contains("Nothing matched yet"));
    assert_eq!(made.submit(WATCH, "act=delete_watch").status, 400);
    made.service.operations.retain(|operation| operation.name != "get_watch");
    assert_eq!(made.show(WATCH).status, 404);
}

/// Proves that the matches of a watch with an end come from an operation of their own, the oldest first, and lead to the later ones.
#[test]
fn a_watch_with_an_end() {
    let mut made = Made::new();
    made.service.operations.push(operation("get_watch_matches", "/api/watch/{id}/matches", "matches", json!({})));
    made.answers
        .insert("get_watch", json!({ "id": ID, "name": "Calder", "from": "2026-11-01T00:00:00Z", "until": "2027-11-01T00:00:00Z" }));
    let found = json!({ "event": "new", "recordedAt": "2026-11-28T11:00:00Z", "id": "B/2", "title": HOSTILE });
    made.answers.insert("get_watch_matches", json!({ "matches": [found], "cursor": "later1", "hasMore": true }));
    let html = made.show(&format!("{WATCH}?cursor=at1")).html;
    check(WATCH, &html);
    for words in
        ["Calder", "1 Nov 2026", "1 Nov 2027", "the oldest first", "href=\"/explore/made/B%2F2\"", "/watch_1?cursor=later1\"", "First page"]
    {
        assert!(html.contains(words), "{words}: {html}");
    }
    assert_eq!(made.last("get_watch").unwrap().0, json!({ "id": ID }));
    assert_eq!(made.last("get_watch_matches").unwrap().0, json!({ "id": ID, "limit": 50, "cursor": "at1" }));
}

/// Proves that a new key is on the page that answers the form, and that the same form again says that it was shown.
#[test]
fn a_key_is_shown_once() {
    let mut made = Made::new();
    let form = url::pairs("email=a%40example.org&once=n2");
    for usage in [None, Some(&usage())] {
        let screen = create_key(&made, usage, &form).now_or_never().unwrap();
        assert!(screen.html.contains("hw_live_new") && screen.html.contains("shown only here"));
        check("new key", &screen.html);
    }
    assert_eq!(made.last("create_key"), Some((json!({"email": "a@example.org"}), "n2".to_owned())));
    made.answers.insert("create_key", json!({ "api_key": "", "key_id": "key_1", "tier": "free" }));
    let screen = create_key(&made, None, &form).now_or_never().unwrap();
    assert!(screen.status == 200 && screen.html.contains("cannot be shown again") && !screen.html.contains("hw_live_"));
}

/// Proves which paths are pages.
#[test]
fn routes() {
    let webhook = |service: &str, id: &str| Some(Route::Webhook { service: service.to_owned(), id: id.to_owned() });
    for (path, route) in [
        ("/account", Some(Route::Overview)),
        ("/account/saved", Some(Route::Saved)),
        ("/account/webhooks", Some(Route::Webhooks)),
        ("/account/webhooks/new", Some(Route::Register)),
        ("/account/webhooks/made/watch_1", webhook("made", "watch_1")),
        (WATCH, Some(Route::Watch { service: "made".to_owned(), id: ID.to_owned() })),
        ("/account/watches/new", Some(Route::NewWatch)),
        ("/account/watches/made/", None),
        ("/account/watches", None),
        ("/account/webhooks/made/a%20b", webhook("made", "a b")),
        ("/account/webhooks/made/a%2Fb", None),
        ("/account/webhooks/made/", None),
        ("/account/webhooksx/made/a", None),
        ("/account/sign-in", None),
        ("/accounts", None),
        ("//evil.example", None),
    ] {
        assert_eq!(Route::parse(path), route, "{path}");
    }
}

//! The surfaces in front of a made-up service: what is proved here holds for every service in THE LIST.

mod account;
mod arguments;
mod documents;
mod feeds;
mod mcp;
mod rest;
mod server;
mod topics;
mod witness;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use operation::context::{Context, ServiceSettings, Settings};
use operation::problem::Problem;
use operation::secrets::Secrets;
use operation::tiers::{Limits, Tiers};
use operation::{Answer, Body, Call, Definition, Form, Method, Operation, Price, RecordPage, Service, Surface};
use schemars::JsonSchema;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use texts::data_file::ShownFile;
use tokio::sync::Notify;

use crate::{Readiness, Site, filter};

pub(super) const BASE: &str = "https://fake.example/fake";

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Category {
    /// What one eats.
    Food,
    /// What one drives.
    Vehicles,
}

/// Arguments of every kind.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Find {
    /// Which kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<Category>,
    /// How many.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 300))]
    limit: Option<u32>,
    /// Words to look for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 20))]
    keyword: Option<String>,
    /// First day.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// At least so much.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_amount: Option<f64>,
    /// Ask the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<bool>,
    /// Several numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<Vec<u32>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// Which one.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Past {
    /// As of when.
    #[expect(dead_code, reason = "only its presence matters")]
    as_of: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Make {
    /// What to call it.
    #[schemars(length(min = 1, max = 40))]
    name: String,
    /// How large.
    #[schemars(range(min = 0))]
    #[expect(dead_code, reason = "only its check matters")]
    size: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Items {
    items: Vec<String>,
    cursor: String,
}

#[derive(Serialize, JsonSchema)]
struct Anything {}

fn words(name: &'static str, method: Method, path: &'static str) -> Definition {
    Definition {
        name,
        method,
        path,
        summary: "A made-up <operation>.",
        when: "Use it in tests.",
        description: "It has `code` & more.",
        price: Price::Free,
        surface: Surface::Both,
        counted: false,
        list: "",
        errors: &[],
        example: json!({}),
        ..Definition::read()
    }
}

fn value(value: Value) -> Result<Answer, Problem> {
    Ok(Answer { body: Body::Json(value), etag: String::new(), next_cursor: String::new(), has_more: false, status: 200 })
}

/// A data file of the fictional service.
fn words_file() -> ShownFile {
    let entries = vec![("Fruit".to_owned(), vec!["apple".to_owned(), "plum & pear".to_owned()])];
    ShownFile { name: "words", version: 7, about: "Words for <things>.".to_owned(), sources: vec!["Made up.".to_owned()], entries }
}

/// The fictional service; `gate` blocks the operation `wait`.
fn service(gate: &Arc<Notify>) -> Service {
    let gate = Arc::clone(gate);
    let find = Definition {
        aliases: &[("q", "keyword")],
        list: "items",
        example: json!({"limit": 2}),
        ..words("find", Method::Get, "/api/items")
    };
    let page = Definition { list: "changes", ..words("page", Method::Get, "/v1/page") };
    let make = Definition { errors: &[ErrorCode::RateLimited], example: json!({"name": "a"}), ..words("make", Method::Post, "/api/items") };
    let operations = vec![
        Operation::define::<Find, Items, _, _>(find, |_: Call, find: Find| async move {
            let echo = serde_json::to_value(&find).map_err(|_| Problem::new(ErrorCode::Internal, ""))?;
            value(json!({"items": ["a", "b"], "cursor": "c2", "echo": echo}))
        }),
        Operation::define::<ById, Anything, _, _>(words("one", Method::Get, "/api/items/{id}"), |_: Call, by: ById| async move {
            if by.id == "gone" {
                return Err(Problem::new(ErrorCode::NotFound, "no such item").about("id"));
            }
            if by.id == "hashed" {
                return value(json!({"id": by.id, "artifactHash": "sha256:00", "note": "a short history (\u{2026})"}));
            }
            value(json!({"id": by.id}))
        }),
        Operation::define::<Make, Anything, _, _>(make, |call: Call, make: Make| async move {
            if make.name == "busy" {
                return Err(Problem::new(ErrorCode::RateLimited, "wait").retry_after(7).header("ratelimit", "\"day\";r=0;t=7"));
            }
            let answer = value(json!({"made": make.name, "idempotencyKey": call.idempotency_key}))?;
            Ok(Answer { status: 201, ..answer })
        }),
        Operation::define::<Nothing, Anything, _, _>(page, |call: Call, _: Nothing| async move {
            let pieces = |pieces: &[&'static str]| pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
            let (body, etag) = match (call.form == Form::Lines, call.if_none_match.as_deref()) {
                (_, Some("\"early\"")) => (Body::NotModified, "\"early\""),
                (true, _) => (Body::Lines { items: pieces(&["{\"seq\":1}", "{\"seq\":2}"]), older: None, note: None }, "\"7-lines\""),
                (false, _) => (Body::Parts(pieces(&["{\"changes\":[", "{\"seq\":1}", ",", "{\"seq\":2}", "]}"])), "\"7\""),
            };
            Ok(Answer { body, etag: etag.to_owned(), next_cursor: "next".to_owned(), has_more: false, status: 200 })
        }),
        Operation::define::<Nothing, Anything, _, _>(
            Definition { price: Price::Tier(Tier::Business), ..words("paid", Method::Get, "/api/paid") },
            |_: Call, _: Nothing| async move { value(json!({})) },
        ),
        Operation::define::<Nothing, Anything, _, _>(
            Definition { surface: Surface::Route, ..words("broken", Method::Get, "/api/broken") },
            |_: Call, _: Nothing| async move {
                let list: Vec<Answer> = Vec::new();
                list.into_iter().next().map_or_else(|| panic!("on purpose"), Ok)
            },
        ),
        Operation::define::<Nothing, Anything, _, _>(
            Definition { surface: Surface::Route, ..words("address", Method::Get, "/api/address") },
            |call: Call, _: Nothing| async move { value(json!({"address": call.caller.address.to_string()})) },
        ),
        Operation::define::<Nothing, Anything, _, _>(
            Definition { surface: Surface::Route, ..words("wait", Method::Get, "/api/wait") },
            move |_: Call, _: Nothing| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.notify_one();
                    gate.notified().await;
                    value(json!({"waited": true}))
                }
            },
        ),
    ];
    let past = Definition { surface: Surface::Route, ..words("past", Method::Get, "/api/past") };
    let past = Operation::define::<Past, Anything, _, _>(past, |_: Call, _: Past| async move { value(json!({})) });
    let drop = words("drop", Method::Delete, "/api/items/{id}");
    let drop = Operation::define::<ById, Anything, _, _>(drop, |_: Call, by: ById| async move { value(json!({"deleted": by.id})) });
    let set = Definition { price: Price::Tier(Tier::Business), ..words("set", Method::Post, "/api/set") };
    let set = Operation::define::<Make, Anything, _, _>(set, |_: Call, make: Make| async move { value(json!({"set": make.name})) });
    let keep = Definition { example: json!({"name": "a"}), ..words("keep", Method::Post, "/api/kept") };
    let keep = Operation::define::<Make, Anything, _, _>(keep, |_: Call, make: Make| async move { value(json!({"kept": make.name})) });
    // A tool of the same name as a route, with a price of its own.
    let only = Definition { surface: Surface::Tool, path: "", price: Price::Tier(Tier::Pro), ..words("address", Method::Get, "") };
    let only = Operation::define::<Nothing, Anything, _, _>(only, |_: Call, _: Nothing| async move { value(json!({"tool": true})) });
    let operations = operations.into_iter().chain([past, drop, keep.managed(), set.managed(), only]).collect();
    Service {
        name: "fake",
        title: "Fakes & <more>",
        about: "Made up.\n\nFor tests.",
        operations,
        files: None,
        data: vec![words_file()],
        page: RecordPage::default(),
        entities: &[],
    }
}

/// A context in a temporary directory.
pub(super) struct Fixture {
    _dir: tempfile::TempDir,
    pub(super) context: Arc<Context>,
    pub(super) gate: Arc<Notify>,
}

impl Fixture {
    /// A fixture whose clock stands still, so that no window of a limit ends.
    pub(super) fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let clock = Clock::Fixed("2026-11-28T12:00:00Z".parse().unwrap());
        let dir = tempfile::tempdir().unwrap();
        let fake = ServiceSettings::new(BASE.to_owned(), "/fake".to_owned());
        let mut settings = Settings {
            // Far longer than any request takes, also on a busy machine.
            request_timeout_s: 300,
            body_bytes_max: 1000,
            allowed_hosts: vec!["other.example".to_owned()],
            ..Settings::new(
                BTreeMap::from([("fake".to_owned(), fake)]),
                Tiers::of_two(Limits::new(100, 0, 25, 0, 0), Limits::new(100_000, 50_000, 200, 20, 50)),
            )
        };
        change(&mut settings);
        let log = event_log::embedded::EmbeddedLog::open(&dir.path().join("log"), event_log::embedded::Options::default()).unwrap();
        let store = view_store::EmbeddedStore::open(&dir.path().join("store"), view_store::embedded::Options::default()).unwrap();
        let secrets = Secrets::from_master(&[7; 32]).unwrap();
        let context = Context::new(settings, clock, secrets, log, store);
        Self { _dir: dir, context: Arc::new(context), gate: Arc::new(Notify::new()) }
    }

    pub(super) fn services(&self) -> Vec<Service> {
        vec![service(&self.gate)]
    }

    pub(super) fn site(&self, readiness: Readiness) -> Arc<Site> {
        Arc::new(Site::new(Arc::clone(&self.context), self.services(), readiness).unwrap())
    }
}

/// A response that was read.
pub(super) struct TextResponse {
    pub(super) status: StatusCode,
    pub(super) headers: http::HeaderMap,
    pub(super) body: String,
}

impl TextResponse {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The code and parameter of a problem, after a check of its form.
    pub(super) fn problem(&self) -> (String, String) {
        let document = self.json();
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.header("cache-control"), "no-store");
        assert_eq!(document["status"], self.status.as_u16());
        let code = document["code"].as_str().unwrap().to_owned();
        let kind = document["type"].as_str().unwrap();
        assert!(kind.starts_with("https://") && kind.ends_with(&format!("/docs/errors#{code}")), "{document}");
        assert!(!document["title"].as_str().unwrap().is_empty() && !document["detail"].as_str().unwrap().is_empty(), "{document}");
        (code, document["parameter"].as_str().unwrap_or_default().to_owned())
    }
}

/// A request that goes through the filter, without a listener.
#[derive(Debug)]
pub(super) struct Ask(http::Request<Full<Bytes>>);

/// A GET request without a path.
pub(super) fn ask() -> Ask {
    Ask(http::Request::new(Full::default()))
}

impl Ask {
    pub(super) fn method(mut self, method: &str) -> Self {
        *self.0.method_mut() = method.parse().unwrap();
        self
    }

    pub(super) fn path(mut self, path: &str) -> Self {
        *self.0.uri_mut() = path.parse().unwrap();
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.0.headers_mut().append(name, value.parse().unwrap());
        self
    }

    pub(super) fn body(mut self, body: impl Into<Bytes>) -> Self {
        *self.0.body_mut() = Full::new(body.into());
        self
    }

    pub(super) async fn reply(self, site: Arc<Site>) -> TextResponse {
        let response = TowerToHyperService::new(warp::service(filter(site))).call(self.0).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        TextResponse { status: parts.status, headers: parts.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }
}

/// Sends a request to the fictional service.
pub(super) async fn send(fixture: &Fixture, request: Ask) -> TextResponse {
    request.reply(fixture.site(Arc::new(|| Ok(())))).await
}

pub(super) async fn get(fixture: &Fixture, path: &str) -> TextResponse {
    send(fixture, ask().path(path)).await
}

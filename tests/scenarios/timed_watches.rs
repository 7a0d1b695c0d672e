//! Watches with an end, which are sold: bought by x402 with and without an account, created with a key, renewed, read, cancelled, and over at their end.
//! The awards service, which does not sell its watches, sells them here; the names service, which does, sells its own.

use std::sync::Arc;

use awards::operations::watchable_feed::{Awards, WatchedEntity};
use awards::operations::{filter, records};
use awards::rules::AwardsRules;
use feed::filter::{Element, Filter as _};
use feed::watchable::WatchableFeed;
use jiff::Timestamp;
use names::operations::register::Register;
use operation::context::Part;
use operation::problem::Problem;
use operation::{Answer as OperationAnswer, Call, Service};
use reads::registration::Registration;
use reads::yearly::{self, SoldWatches};
use schemas::clock::{Clock, SimulatedClock, rfc3339};
use schemas::facts::FactData;
use schemas::facts::awards::{AwardFact, kind};
use schemas::facts::marks::{MarkClass, MarkFact};
use schemas::tables::ViewDef;
use schemas::views::accounts::Tier;
use schemas::views::awards::{Award, TABLES};
use schemas::views::watches::months_after;
use serde_json::{Map, Value, json};
use webhooks::Matchers;

use crate::api::{HttpApi, Writer};
use crate::engine::{Engine, moving_clock};
use crate::payments::backend::{Fault, PaymentBackend};
use crate::payments::{authorization, header, version_1};
use crate::process::{Answer, send, wait_for};
use crate::webhooks::receiver::Receiver;

/// The awards service's feed, with watches for a year.
struct SoldAwards;

impl WatchableFeed for SoldAwards {
    type Rules = AwardsRules;
    type Filter = filter::Filter;
    type WatchedEntity = WatchedEntity;
    type Shown = records::Changed;

    fn parse_entity(entity: WatchedEntity) -> Result<(WatchedEntity, filter::Filter), Problem> {
        Awards::parse_entity(entity)
    }

    fn example_filter() -> Value {
        Awards::example_filter()
    }

    fn example_entity() -> Value {
        Awards::example_entity()
    }
}

/// A match: the award and the change that recorded it.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Match {
    /// The id of the award.
    id: String,
    /// The number of the change.
    seq: u64,
}

impl SoldWatches for SoldAwards {
    type Match = Match;
    type Prepared = filter::Filter;

    const OPERATION: &'static str = "watch_portfolio";
    const SUMMARY: &'static str = "Watches a contractor for 12 months.";
    const WHEN: &'static str = "Use it to follow a contractor.";
    const DESCRIPTION: &'static str = "";
    const MICROS: u64 = 5_000_000;
    const MONTHS: i64 = 12;
    const EVENT: &'static str = "awards.matching";
    const MESSAGE_LIST: &'static str = "awards";
    const CHANGES_MAX: usize = 20;

    fn renewed_by(entity: &WatchedEntity) -> String {
        entity.contractor.to_lowercase()
    }

    fn renewed(given: WatchedEntity, _: WatchedEntity) -> WatchedEntity {
        given
    }

    fn in_message(entity: &WatchedEntity) -> Map<String, Value> {
        Map::from_iter([("contractor".to_owned(), json!(entity.contractor))])
    }

    fn prepare(filter: &filter::Filter) -> filter::Filter {
        filter.clone()
    }

    fn selects(filter: &filter::Filter, change: &Element<Award>) -> bool {
        filter.matches(change)
    }

    fn matched(_: &filter::Filter, change: Element<Award>) -> Option<Match> {
        Some(Match { id: change.record.id, seq: change.seq.0 })
    }

    async fn preview(_: Call, entity: WatchedEntity) -> Result<OperationAnswer, Problem> {
        OperationAnswer::json(&json!({ "contractor": entity.contractor }))
    }
}

fn registration() -> Registration {
    Registration::new("awards", "Awards", "Watches of contractors.").with(yearly::operations::<SoldAwards>())
}

fn services() -> Vec<Service> {
    vec![registration().service]
}

const PATH: &str = "/awards/api/watch";
const PRICE: u64 = 5_000_000;

/// An engine with awards, whose watches are sold, under a clock that the test moves.
struct Fixture {
    engine: Engine,
    api: HttpApi,
    backend: PaymentBackend,
    receiver: Receiver,
    clock: &'static SimulatedClock,
    writer: Writer,
    /// The path at which watches are bought.
    path: &'static str,
    sending: tokio::task::JoinHandle<()>,
    _dir: tempfile::TempDir,
}

impl Fixture {
    async fn begin() -> Self {
        Self::with_services(services, Matchers::new(vec![registration().matcher.unwrap()]), PATH).await
    }

    /// Serves services with watches that are sold at a path.
    async fn with_services(services: fn() -> Vec<Service>, matchers: Matchers, path: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let now = moving_clock().now();
        let clock = SimulatedClock::new(now, Clock::Fixed(now));
        let engine = Engine::open(dir.path(), Clock::Simulated(clock)).await;
        let backend = PaymentBackend::open();
        let api = HttpApi::with_payments(services, &engine, Clock::Simulated(clock), &backend);
        let sending = tokio::spawn(webhooks::sender::run(Arc::clone(&api.context), matchers, "test".to_owned()));
        let receiver = Receiver::open(|_, _| 204);
        Self { engine, api, backend, receiver, clock, writer: Writer::default(), path, sending, _dir: dir }
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        tokio::task::block_in_place(|| send(self.api.address, method, path, headers, &body))
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let answer = self.send(method, path, headers, body);
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }

    /// Buys with payment `number`.
    fn buy(&self, number: u64, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let payment = header(&version_1(&authorization(number, PRICE)));
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain([("x-payment", payment.as_str())]).collect();
        self.ask("POST", self.path, &headers, body)
    }

    /// Records an award of a contractor, and waits until it is projected.
    async fn award(&mut self, id: &str, contractor: &str) {
        let fact = AwardFact {
            stream: "usaspending.awards".to_owned(),
            kind: kind::AWARD.to_owned(),
            award_id: id.to_owned(),
            recipient: contractor.to_owned(),
            amount_cents: Some(100),
            ..AwardFact::default()
        };
        self.record(&format!("usaspending.awards/{id}"), &FactData::Award(Box::new(fact)), TABLES.view).await;
    }

    /// Records a trademark of a class with a status code of the register, and waits until it is projected.
    async fn mark(&mut self, serial: &str, mark: &str, status_code: &str, class: &str) {
        let fact = MarkFact {
            serial: serial.to_owned(),
            mark: mark.to_owned(),
            status_code: status_code.to_owned(),
            owners: vec!["Hill Foods LLC".to_owned()],
            classes: vec![MarkClass { code: class.to_owned(), status_code: "6".to_owned(), ..MarkClass::default() }],
            ..MarkFact::default()
        };
        self.record(&format!("uspto_trademarks/{serial}"), &FactData::Mark(Box::new(fact)), names::record::TABLES.view).await;
    }

    /// Records a fact, and waits until a view has it.
    async fn record(&mut self, key: &str, fact: &FactData, view: &'static ViewDef) {
        let append = self.writer.observe(key, fact, self.now_ms());
        let topic = append.topic;
        self.engine.log.append(vec![append]).await.unwrap();
        self.engine.wait_for_view(view, std::slice::from_ref(topic)).await;
    }

    /// Returns a field of each match of a watch, page by page.
    fn matches(&self, id: &str, headers: &[(&str, &str)], field: &str) -> Vec<String> {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        loop {
            let (status, page) = self.ask("GET", &format!("{}/{id}/matches?limit=1{cursor}", self.path), headers, &Value::Null);
            assert_eq!(status, 200, "{page}");
            ids.extend(page["matches"].as_array().unwrap().iter().map(|found| text(found, field).to_owned()));
            if page["hasMore"] == false {
                return ids;
            }
            cursor = format!("&cursor={}", page["cursor"].as_str().unwrap());
        }
    }

    /// Returns the bodies of the messages that were delivered to a path, signed with a secret.
    fn delivered(&self, path: &str, secret: &str) -> Vec<Value> {
        self.receiver.accepted(path, secret).iter().map(super::webhooks::receiver::Message::json).collect()
    }

    fn now_ms(&self) -> i64 {
        Clock::Simulated(self.clock).now_ms()
    }

    fn move_to(&self, at_ms: i64) {
        self.clock.move_to(Timestamp::from_millisecond(at_ms).unwrap());
    }

    async fn end(self) {
        self.sending.abort();
        self.api.stop().await;
        self.engine.close().await;
    }
}

/// Waits for a condition. The tasks of this thread run on another one meanwhile.
fn wait<T>(what: &str, poll: impl FnMut() -> Option<T>) -> T {
    tokio::task::block_in_place(|| wait_for(what, poll))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

/// Proves the life of a bought watch: the unpaid call gets terms and preview over REST and MCP; the payment creates the watch once, for 12 calendar
/// months, with a token that is shown to the buyer only; the next matching change is delivered once, signed, and is in the matches; another's token
/// finds nothing; after the end nothing matches and nothing is delivered; and after 30 more days the watch is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bought_watch_matches_until_its_end() {
    let mut fixture = Fixture::begin().await;
    fixture.award("before", "ACME LLC").await;
    let start_ms = fixture.now_ms();

    let wanted = json!({ "contractor": "acme" });
    let (status, terms) = fixture.ask("POST", PATH, &[], &wanted);
    assert_eq!((status, &terms["accepts"][0]["maxAmountRequired"], &terms["preview"]), (402, &json!("5000000"), &wanted));
    let params = json!({ "name": "watch_portfolio", "arguments": wanted });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let (_, offered) = fixture.ask("POST", "/awards/mcp", &[("accept", "application/json, text/event-stream")], &call);
    let offered = &offered["result"]["structuredContent"];
    assert_eq!((&offered["accepts"][0]["amount"], &offered["preview"]), (&json!("5000000"), &wanted));

    let body = json!({ "contractor": "acme", "webhook": fixture.receiver.url("hook") });
    let (status, made) = fixture.buy(1, &[], &body);
    assert_eq!(status, 201, "{made}");
    let until_ms = months_after(start_ms, 12).unwrap();
    assert_eq!(
        (&made["contractor"], text(&made, "from"), text(&made, "until")),
        (&json!("acme"), &*rfc3339(start_ms), &*rfc3339(until_ms))
    );
    let (id, token, secret) = (text(&made, "id"), text(&made, "token"), text(&made, "secret"));
    assert!(token.starts_with("wt_") && token.len() == 46 && secret.starts_with("whsec_"));
    assert_eq!(fixture.buy(1, &[], &body), (201, made.clone()), "the same payment gets the same answer");
    assert_eq!((fixture.backend.transfers().len(), fixture.engine.export("changes.watches", false).await.len()), (1, 1));
    for (topic, hidden) in [("payments", token), ("payments", secret), ("changes.watches", token), ("accounts", token)] {
        let stored = Value::from(fixture.engine.export(topic, true).await).to_string();
        assert!(!stored.contains(hidden), "{topic} holds a secret");
    }

    let at = |rest: &str| format!("{PATH}/{id}{rest}");
    let own = [("x-watch-token", token)];
    let (status, state) = fixture.ask("GET", &at(""), &own, &Value::Null);
    assert_eq!(
        (status, &state["active"], &state["webhookHost"], state.get("token"), state.get("secret")),
        (200, &json!(true), &json!("127.0.0.1"), None, None)
    );
    let (_, other) = fixture.buy(2, &[], &json!({ "contractor": "acme" }));
    let key = fixture.api.key(Tier::Pro).await;
    for (headers, status) in [
        (vec![("x-watch-token", text(&other, "token"))], 404),
        (vec![("x-api-key", key.as_str())], 404),
        (vec![("x-watch-token", "wt_short")], 400),
        (vec![], 401),
    ] {
        for (method, rest) in [("GET", ""), ("GET", "/matches"), ("DELETE", "")] {
            let answer = fixture.send(method, &at(rest), &headers, &Value::Null);
            assert_eq!(answer.status, status, "{method} {rest} {headers:?}: {}", String::from_utf8_lossy(&answer.body));
        }
    }

    assert_eq!(fixture.send("GET", PATH, &[], &Value::Null).status, 401, "the list belongs to an account");
    assert_eq!(fixture.send("GET", &at("?asOf=2026-01-01"), &own, &Value::Null).status, 400, "a watch is shown as it is now");

    fixture.award("other", "Umbrella Inc").await;
    fixture.award("first", "ACME LLC").await;
    let message = wait("the first message", || fixture.delivered("hook", secret).into_iter().next());
    let of_watch = json!({ "contractor": "acme", "id": id, "until": rfc3339(until_ms) });
    assert_eq!(
        (&message["event"], &message["watch"], &message["awards"][0]["id"]),
        (&json!("awards.matching"), &of_watch, &json!("first"))
    );
    assert_eq!(fixture.matches(id, &own, "id"), ["first"]);
    let (status, earlier) = fixture.ask("GET", &at("/matches?asOf=1990-01-01"), &own, &Value::Null);
    assert_eq!((status, &earlier["matches"], &earlier["hasMore"]), (200, &json!([]), &json!(false)));

    // A change at the end still counts, one after it does not.
    fixture.move_to(until_ms);
    fixture.award("last", "ACME LLC").await;
    wait("the second message", || (fixture.delivered("hook", secret).len() >= 2).then_some(()));
    fixture.move_to(until_ms + 1);
    fixture.award("late", "ACME LLC").await;
    // A watch without an end, made after the late award, shows that the sender has passed it.
    let made_now =
        fixture.ask("POST", PATH, &[("x-api-key", &key)], &json!({ "contractor": "acme", "webhook": fixture.receiver.url("newer") }));
    assert_eq!(made_now.0, 201, "{}", made_now.1);
    fixture.award("newest", "ACME LLC").await;
    let newer_secret = text(&made_now.1, "secret");
    wait("the message of the newer watch", || (!fixture.delivered("newer", newer_secret).is_empty()).then_some(()));
    assert_eq!(fixture.delivered("hook", secret).len(), 2, "nothing is delivered after the end");
    assert_eq!(fixture.matches(id, &own, "id"), ["first", "last"]);
    assert_eq!(fixture.ask("GET", &at(""), &own, &Value::Null).1["active"], false);
    fixture.move_to(until_ms + 30 * 86_400_000);
    assert_eq!(fixture.ask("GET", &at(""), &own, &Value::Null).0, 404);
    fixture.end().await;
}

/// Proves how a watch is renewed and cancelled with its token: the same bought again extends it by 12 calendar months from its end and may replace the
/// webhook, a token that opens no such watch is refused before anything is charged, and after the cancellation nothing is delivered or can be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_renews_and_cancels() {
    let mut fixture = Fixture::begin().await;
    let start_ms = fixture.now_ms();
    let (_, made) = fixture.buy(1, &[("idempotency-key", "mine")], &json!({ "contractor": "acme" }));
    let (id, token) = (text(&made, "id").to_owned(), text(&made, "token").to_owned());
    assert_eq!(made.get("secret"), None, "there is no webhook");
    let stranger = fixture.buy(1, &[], &json!({ "contractor": "acme" }));
    assert_eq!((stranger.0, &stranger.1["code"]), (409, &json!("idempotency-mismatch")), "whoever saw the payment on the chain");

    let own = [("x-watch-token", token.as_str())];
    let (status, refused) = fixture.buy(2, &own, &json!({ "contractor": "umbrella" }));
    assert_eq!((status, &refused["parameter"], fixture.backend.transfers().len()), (404, &json!("X-Watch-Token"), 1), "{refused}");
    let (status, renewed) = fixture.buy(3, &own, &json!({ "contractor": "ACME", "webhook": fixture.receiver.url("hook") }));
    assert_eq!((status, &renewed["id"], renewed.get("token")), (201, &json!(id), None), "{renewed}");
    assert_eq!(text(&renewed, "until"), rfc3339(months_after(months_after(start_ms, 12).unwrap(), 12).unwrap()));
    let secret = text(&renewed, "secret").to_owned();
    // The token in the body, for callers who cannot set a header.
    let (_, again) = fixture.buy(4, &[], &json!({ "contractor": "acme", "token": token }));
    assert_eq!((&again["id"], text(&again, "until")), (&json!(id), &*rfc3339(months_after(start_ms, 36).unwrap())));

    fixture.award("first", "ACME LLC").await;
    wait("the first message", || (!fixture.delivered("hook", &secret).is_empty()).then_some(()));
    // The holder of the token manages the webhook; nobody else does.
    let at = |rest: &str| format!("{PATH}/{id}{rest}");
    let moved = json!({ "webhook": fixture.receiver.url("moved") });
    let stranger = [("x-watch-token", text(&fixture.buy(6, &[], &json!({ "contractor": "acme" })).1, "token").to_owned())];
    let stranger = [("x-watch-token", stranger[0].1.as_str())];
    for (method, rest, body) in [("GET", "/deliveries", &Value::Null), ("PATCH", "", &moved), ("POST", "/replay", &json!({}))] {
        assert_eq!(fixture.ask(method, &at(rest), &stranger, body).0, 404, "{method} {rest}");
        assert_eq!(fixture.ask(method, &at(rest), &[], body).0, 401, "{method} {rest}");
        assert_eq!(fixture.ask(method, &at(rest), &own, body).0, 200, "{method} {rest}");
    }
    fixture.award("moved", "ACME LLC").await;
    wait("the message at the new URL", || (!fixture.delivered("moved", &secret).is_empty()).then_some(()));
    let cancelled = fixture.ask("DELETE", &format!("{PATH}/{id}"), &own, &Value::Null);
    assert_eq!(cancelled, (200, json!({ "id": id, "cancelled": true })));
    assert_eq!(fixture.ask("GET", &format!("{PATH}/{id}"), &own, &Value::Null).0, 404);
    assert_eq!(fixture.buy(1, &[("idempotency-key", "mine")], &json!({ "contractor": "acme" })).0, 404, "the payment restores nothing");
    let (_, newer) = fixture.buy(5, &[], &json!({ "contractor": "acme", "webhook": fixture.receiver.url("newer") }));
    fixture.award("second", "ACME LLC").await;
    wait("the message of the newer watch", || (!fixture.delivered("newer", text(&newer, "secret")).is_empty()).then_some(()));
    assert_eq!(fixture.delivered("hook", &secret).len(), 1);
    fixture.end().await;
}

/// Proves that a watch whose settlement was interrupted is created once: while the outcome is unknown there is no watch, and when the money has moved the
/// same payment gets it, whoever submitted the payment to the chain and however often the settlement is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_purchase_is_completed_once() {
    let fixture = Fixture::begin().await;
    let body = json!({ "contractor": "acme" });
    for (number, faults) in [(1, [Fault::Fails; 3]), (2, [Fault::Late; 3]), (3, [Fault::LiesNo; 3])] {
        let watches = async || fixture.engine.export("changes.watches", false).await.len();
        let before = watches().await;
        fixture.backend.set_faults(faults);
        let first = fixture.buy(number, &[], &body);
        if faults[0] == Fault::Fails {
            assert_eq!((first.0, watches().await), (503, before), "{}", first.1);
            fixture.backend.submit(&version_1(&authorization(number, PRICE)));
        }
        fixture.backend.set_faults([]);
        let (status, made) = fixture.buy(number, &[], &body);
        assert_eq!((status, watches().await), (201, before + 1), "{number}: {made}");
        assert_eq!(fixture.buy(number, &[], &body).1, made);
        let own = [("x-watch-token", text(&made, "token"))];
        assert_eq!(fixture.ask("GET", &format!("{PATH}/{}", text(&made, "id")), &own, &Value::Null).0, 200);
    }
    assert_eq!(fixture.backend.transfers().len(), 3);
    fixture.end().await;
}

/// Proves the watches of an account: a key of a paid tier creates and renews them within its limit, a repeated request renews nothing and does not show the
/// secret of a webhook again, a free key pays and its account owns the watch, the list has them all, and an MCP client cancels with a token as an argument.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_own_watches() {
    let fixture = Fixture::begin().await;
    let (pro, free) = (fixture.api.key(Tier::Pro).await, fixture.api.key(Tier::Free).await);
    let start_ms = fixture.now_ms();
    let create = |headers: &[(&str, &str)], contractor: &str| fixture.ask("POST", PATH, headers, &json!({ "contractor": contractor }));
    let once = [("x-api-key", pro.as_str()), ("idempotency-key", "k1")];
    let (status, made) = create(&once, "acme");
    assert_eq!((status, made.get("token"), text(&made, "until")), (201, None, &*rfc3339(months_after(start_ms, 12).unwrap())));
    assert_eq!(create(&once, "acme").1, made, "the same request again");
    for other in ["other", " acme "] {
        assert_eq!(create(&once, other).1["code"], "idempotency-mismatch", "{other:?} is another request");
    }
    let own = [("x-api-key", pro.as_str())];
    let renewed = create(&own, " ACME ").1;
    assert_eq!((&renewed["id"], text(&renewed, "until")), (&made["id"], &*rfc3339(months_after(start_ms, 24).unwrap())));
    for n in 1..50 {
        assert_eq!(create(&own, &format!("contractor {n}")).0, 201, "{n}");
    }
    let full = create(&own, "one more");
    assert_eq!((full.0, &full.1["code"]), (409, &json!("limit-reached")));
    assert_eq!(create(&own, "acme").0, 201, "a renewal needs no room");
    let (_, listed) = fixture.ask("GET", &format!("{PATH}?limit=2"), &own, &Value::Null);
    assert_eq!((&listed["count"], listed["watches"].as_array().unwrap().len()), (&json!(50), 2));
    assert_eq!(fixture.ask("GET", PATH, &[], &Value::Null).0, 401);
    let (hooked, again) = (json!({ "contractor": "contractor 1", "webhook": fixture.receiver.url("hook") }), ("idempotency-key", "k2"));
    let [first, second] = [(); 2].map(|()| fixture.ask("POST", PATH, &[("x-api-key", pro.as_str()), again], &hooked));
    assert_eq!((first.0, second.0, &first.1["id"]), (201, 201, &second.1["id"]));
    assert!(first.1["secret"].is_string() && second.1.get("secret").is_none(), "a secret is shown once: {}", second.1);

    assert_eq!(create(&[("x-api-key", &free)], "acme").0, 402);
    let by_free = [("x-api-key", free.as_str())];
    let (status, bought) = fixture.buy(1, &by_free, &json!({ "contractor": "acme" }));
    assert_eq!((status, bought.get("token")), (201, None));
    let (_, listed) = fixture.ask("GET", PATH, &by_free, &Value::Null);
    assert_eq!((&listed["count"], &listed["watches"][0]["id"]), (&json!(1), &bought["id"]));

    let (_, held) = fixture.buy(2, &[], &json!({ "contractor": "acme" }));
    let tool = |name: &str, arguments: Value| -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
        let (_, mut answer) = fixture.ask("POST", "/awards/mcp", &[("accept", "application/json, text/event-stream")], &call);
        answer["result"].take()
    };
    let with_token = json!({ "id": held["id"], "token": held["token"] });
    assert_eq!(tool("watch_matches", with_token.clone())["structuredContent"]["matches"], json!([]));
    assert_eq!(tool("watch_matches", json!({ "id": held["id"] }))["isError"], true);
    assert_eq!(tool("cancel_watch", with_token.clone())["structuredContent"]["cancelled"], true);
    assert_eq!(tool("watch_matches", with_token)["isError"], true);

    // An operator erases what a token opens, by the id of the watch.
    let (_, held) = fixture.buy(3, &[], &json!({ "contractor": "acme" }));
    let context = &fixture.api.context;
    let erased = <access::Access as Part>::of(context).erase(context, text(&held, "id")).await.unwrap();
    assert_eq!((erased.keys, erased.saved_items), (0, 1));
    let own = [("x-watch-token", text(&held, "token"))];
    assert_eq!(fixture.ask("GET", &format!("{PATH}/{}", text(&held, "id")), &own, &Value::Null).0, 404);
    fixture.end().await;
}

const NAMES_PATH: &str = "/names/api/watch";

/// The names service with one mark, and the task that keeps its index.
async fn names_with_a_mark() -> (Fixture, tokio::task::JoinHandle<()>) {
    let services: fn() -> Vec<Service> = || vec![names::service().service];
    let mut fixture = Fixture::with_services(services, Matchers::new(vec![names::service().matcher.unwrap()]), NAMES_PATH).await;
    let context = Arc::clone(&fixture.api.context);
    let indexing = tokio::spawn(Register::of(&context).follow(Arc::clone(&context.store), None));
    fixture.mark("97000001", "VELTRAXON", "630", "009").await;
    (fixture, indexing)
}

/// Proves that the check refuses what is no name, no class or too many rows, and names the parameter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_refuses_what_is_no_name() {
    let (fixture, indexing) = names_with_a_mark().await;
    let long = format!("name={}", "a".repeat(101));
    for (query, parameter) in [
        ("class=9", "name"),
        ("name=%21%3F", "name"),
        (long.as_str(), "name"),
        ("name=x&class=46", "class"),
        ("name=x&class=9,9", "class"),
        ("name=x&class=1,2,3,4,5,6", "class"),
        ("name=x&limit=101", "limit"),
    ] {
        let (status, refused) = fixture.ask("GET", &format!("/names/api/check?{query}"), &[], &Value::Null);
        assert!(status == 400 && refused["parameter"].as_str().is_some_and(|name| name.starts_with(parameter)), "{query}: {refused}");
    }
    indexing.abort();
    fixture.end().await;
}

/// Proves the watches of names: over REST and MCP the terms are the same and the preview is the answer of the check; a bought watch gets each similar mark once,
/// also one that revives, and no mark of another class, no dead and no other one; its token renews it and that of another watch does not open it; a key lists its
/// watches and cancels one, which gets nothing more; and after the end nothing is delivered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn similar_marks_reach_who_watches_a_name() {
    let (mut fixture, indexing) = names_with_a_mark().await;
    let start_ms = fixture.now_ms();

    let (_, checked) = fixture.ask("GET", "/names/api/check?name=Vetlraxon&class=9", &[], &Value::Null);
    assert_eq!((&checked["verdict"], &checked["counts"]["strong"]), (&json!("CAUTION"), &json!(1)), "{checked}");
    let wanted = json!({ "name": "Vetlraxon", "class": [9] });
    let (status, terms) = fixture.ask("POST", NAMES_PATH, &[], &wanted);
    assert_eq!((status, &terms["accepts"][0]["maxAmountRequired"]), (402, &json!("5000000")), "{terms}");
    assert_eq!(terms["preview"], checked);
    let params = json!({ "name": "watch_portfolio", "arguments": wanted });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let (_, offered) = fixture.ask("POST", "/names/mcp", &[("accept", "application/json, text/event-stream")], &call);
    let offered = &offered["result"]["structuredContent"];
    assert_eq!((&offered["accepts"][0]["amount"], &offered["preview"]), (&json!("5000000"), &checked));

    let body = json!({ "name": "Vetlraxon", "class": [9], "webhook": fixture.receiver.url("hook") });
    let (status, made) = fixture.buy(1, &[], &body);
    let until_ms = months_after(start_ms, 12).unwrap();
    assert_eq!((status, text(&made, "until"), &made["minTier"]), (201, &*rfc3339(until_ms), &json!("strong")), "{made}");
    let (id, token, secret) = (text(&made, "id"), text(&made, "token"), text(&made, "secret"));
    let own = [("x-watch-token", token)];
    let (_, of_another) = fixture.buy(3, &[], &json!({ "name": "Quillbrisk" }));
    for (method, rest) in [("GET", ""), ("GET", "/matches"), ("DELETE", "")] {
        let answer =
            fixture.send(method, &format!("{NAMES_PATH}/{id}{rest}"), &[("x-watch-token", text(&of_another, "token"))], &Value::Null);
        assert_eq!(answer.status, 404, "{method} {rest} with another's token");
    }

    // A key lists its watches, and another watch of the account finds its own marks.
    let key = fixture.api.key(Tier::Pro).await;
    let by_key = [("x-api-key", key.as_str())];
    let body = json!({ "name": "Morvanda", "minTier": "exact", "webhook": fixture.receiver.url("other") });
    let other = fixture.ask("POST", NAMES_PATH, &by_key, &body);
    assert_eq!((other.0, other.1.get("token")), (201, None), "{}", other.1);
    let (other, other_secret) = (text(&other.1, "id").to_owned(), text(&other.1, "secret").to_owned());
    let (_, listed) = fixture.ask("GET", NAMES_PATH, &by_key, &Value::Null);
    assert_eq!(
        (&listed["count"], &listed["watches"][0]["id"], &listed["watches"][0]["name"]),
        (&json!(1), &json!(other), &json!("Morvanda"))
    );

    for (serial, mark, status_code, class) in [
        ("97000002", "VELTRAXEN", "630", "009"),
        ("97000003", "VELTRAXAN", "630", "025"),
        ("97000004", "VELTRAXIN", "602", "009"),
        ("97000005", "QUILLBRISK", "630", "009"),
        ("97000006", "MORVANDA", "630", "030"),
        // The same again is no change, and the dead mark revives.
        ("97000002", "VELTRAXEN", "630", "009"),
        ("97000004", "VELTRAXIN", "616", "009"),
    ] {
        fixture.mark(serial, mark, status_code, class).await;
    }
    let found = |fixture: &Fixture| -> Vec<Value> {
        fixture.delivered("hook", secret).iter().flat_map(|message| message["marks"].as_array().unwrap().clone()).collect()
    };
    let marks = wait("two similar marks", || Some(found(&fixture)).filter(|marks| marks.len() >= 2));
    let shown: Vec<(&str, &str, &str)> = marks.iter().map(|mark| (text(mark, "serial"), text(mark, "event"), text(mark, "tier"))).collect();
    assert_eq!(shown, [("97000002", "new", "strong"), ("97000004", "modified", "strong")]);
    let message = &fixture.delivered("hook", secret)[0];
    let of_watch = json!({ "name": "Vetlraxon", "class": [9], "id": id, "until": rfc3339(until_ms) });
    assert_eq!((&message["event"], &message["watch"]), (&json!("names.similar"), &of_watch));
    assert_eq!(fixture.matches(id, &own, "serial"), ["97000002", "97000004"]);
    assert_eq!(fixture.matches(&other, &by_key, "serial"), ["97000006"]);
    wait("the message of the other watch", || (!fixture.delivered("other", &other_secret).is_empty()).then_some(()));

    let (status, renewed) = fixture.buy(2, &own, &json!({ "name": "VETLRAXON, Inc.", "class": 9 }));
    let until_ms = months_after(until_ms, 12).unwrap();
    assert_eq!((status, &renewed["id"], text(&renewed, "until")), (201, &json!(id), &*rfc3339(until_ms)), "{renewed}");
    assert_eq!((&renewed["minTier"], &renewed["webhookHost"]), (&json!("strong"), &json!("127.0.0.1")), "{renewed}");
    for (body, least) in [
        (json!({ "name": "MORVANDA" }), "exact"),
        (json!({ "name": "Morvanda", "minTier": "partial" }), "partial"),
        (json!({ "name": "Morvanda", "class": [] }), "partial"),
    ] {
        let (status, renewed) = fixture.ask("POST", NAMES_PATH, &by_key, &body);
        let shown = (status, &renewed["id"], &renewed["name"], &renewed["minTier"]);
        assert_eq!(shown, (201, &json!(other), &json!("Morvanda"), &json!(least)), "a renewal changes only what it names: {renewed}");
    }
    let cancelled = fixture.ask("DELETE", &format!("{NAMES_PATH}/{other}"), &by_key, &Value::Null);
    assert_eq!(cancelled, (200, json!({ "id": other, "cancelled": true })));

    fixture.move_to(until_ms + 1);
    fixture.mark("97000007", "VELTRAXUN", "630", "009").await;
    fixture.mark("97000009", "MORVANDA", "630", "030").await;
    // A watch that is made after them shows that the sender has passed them.
    let body = json!({ "name": "Nimbarro", "webhook": fixture.receiver.url("newer") });
    let newer = fixture.ask("POST", NAMES_PATH, &by_key, &body).1;
    fixture.mark("97000008", "NIMBARRO", "630", "042").await;
    wait("the message of the newer watch", || (!fixture.delivered("newer", text(&newer, "secret")).is_empty()).then_some(()));
    assert_eq!(found(&fixture).len(), 2, "nothing is delivered after the end");
    assert_eq!(fixture.matches(id, &own, "serial").len(), 2);
    assert_eq!(fixture.delivered("other", &other_secret).len(), 1, "nothing is delivered after the cancellation");
    indexing.abort();
    fixture.end().await;
}

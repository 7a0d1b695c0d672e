//! Upstream `shopify`: its requests, the polls of its stores, and the mapping of its answers.

use jiff::{SignedDuration, Timestamp};
use schemas::facts::FactData;
use schemas::facts::stock::StockFact;
use schemas::position::UpstreamCursor;
use upstreams::http::FetchError;
use upstreams::shopify::{Options, Store};
use upstreams::{Answer, OwnOptions, Page, Settings};

use crate::common::*;

const STREAM: &str = "shopify";
const ROBOTS: &str = "User-agent: *\nDisallow: /admin\n";

fixture_tests!(STREAM);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn settings_of(hosts: &[&str]) -> Settings {
    let store = |host: &&str| Store { host: (*host).to_owned(), niche: "sneakers".to_owned(), interval_s: 3_600 };
    let options = Options { stores: hosts.iter().map(store).collect(), ..Options::default() };
    Settings { own: OwnOptions::new(options), ..settings() }
}

fn stock(page: &Page) -> Vec<&StockFact> {
    page.observations
        .iter()
        .map(|observation| if let FactData::Stock(fact) = &observation.data { &**fact } else { panic!("{observation:?}") })
        .collect()
}

/// The poll that a page ends, if it ends one.
fn poll_of(page: &Page) -> Option<&StockFact> {
    stock(page).into_iter().find(|fact| fact.kind == "poll")
}

/// A page of products, each with one variant.
fn list(ids: &[u64]) -> String {
    let product = |id: &u64| {
        format!(
            r#"{{"id":{id},"title":"Item {id}","handle":"item-{id}","vendor":"V","published_at":"2026-09-01T00:00:00Z","updated_at":"2026-09-01T00:00:00Z","variants":[{{"id":{id}1,"title":"M","available":true,"price":"1.00","updated_at":"2026-09-01T00:00:00Z"}}]}}"#
        )
    };
    format!("{{\"products\":[{}]}}", ids.iter().map(product).collect::<Vec<_>>().join(","))
}

/// One run at a time, with an answer for each request: the host and the path of the request are given.
struct Polls {
    settings: Settings,
    memory: UpstreamCursor,
}

impl Polls {
    fn new(hosts: &[&str]) -> Self {
        Self { settings: settings_of(hosts), memory: UpstreamCursor::default() }
    }

    /// Runs to the end. Returns the requests, and the pages.
    fn run(&mut self, now: &str, mut answer: impl FnMut(&str, &str) -> Result<Answer, FetchError>) -> (Vec<String>, Vec<Page>) {
        let (upstream, stream) = stream(STREAM);
        let (mut requests, mut pages) = (Vec::new(), Vec::new());
        let mut cursor = upstream.start_after(stream, &window(), &self.settings, &self.memory, at(now));
        while upstream.has_request(stream, &cursor) {
            let request = upstream.request(stream, &cursor, &self.settings).unwrap();
            let host = request.origin.trim_start_matches("https://").to_owned();
            requests.push(format!("{host}{}", request.path));
            assert!(requests.len() < 100, "{requests:?}");
            let page = match answer(&host, &request.path) {
                Ok(answer) => upstream.map_at(stream, &cursor, &answer, at(now)).unwrap(),
                Err(error) => upstream.failed(stream, &cursor, &error.reason_of_host().unwrap(), at(now)).unwrap(),
            };
            cursor = page.next.clone().unwrap();
            pages.push(page);
        }
        self.memory = upstream.remember(stream, &cursor);
        (requests, pages)
    }

    /// The polls of a run: host, whether complete, why not.
    fn polls(&mut self, now: &str, answer: impl FnMut(&str, &str) -> Result<Answer, FetchError>) -> Vec<(String, bool, String)> {
        let (_, pages) = self.run(now, answer);
        pages.iter().filter_map(poll_of).map(|poll| (poll.host.clone(), poll.complete, poll.reason.clone())).collect()
    }
}

/// A store with these pages.
fn shop(path: &str, pages: &[&[u64]]) -> Answer {
    if path == "/robots.txt" {
        return ok(ROBOTS);
    }
    let page: usize = path.rsplit('=').next().unwrap().parse().unwrap();
    ok(list(pages.get(page - 1).copied().unwrap_or_default()))
}

fn refused() -> FetchError {
    FetchError::Status { at: String::new(), status: 503, attempts: 5 }
}

/// Proves that a run reads robots.txt, then pages until one is empty, a page of each store in turn, and that a complete poll ends a part.
#[test]
fn stores_are_polled_in_turn() {
    let mut polls = Polls::new(&["a.example", "b.example"]);
    let (requests, pages) =
        polls.run("2026-09-30T10:00:00Z", |host, path| Ok(shop(path, if host == "a.example" { &[&[1, 2], &[3]] } else { &[&[1]] })));
    let expected = [
        "a.example/robots.txt",
        "b.example/robots.txt",
        "a.example/products.json?limit=250&page=1",
        "b.example/products.json?limit=250&page=1",
        "a.example/products.json?limit=250&page=2",
        "b.example/products.json?limit=250&page=2",
        "a.example/products.json?limit=250&page=3",
    ];
    assert_eq!(requests, expected);
    let ended: Vec<&StockFact> = pages.iter().filter_map(poll_of).collect();
    let counts: Vec<_> = ended.iter().map(|poll| (poll.host.as_str(), poll.pages, poll.products, poll.variants, poll.complete)).collect();
    assert_eq!(counts, [("b.example", 2, 1, 1, true), ("a.example", 3, 3, 3, true)]);
    assert_eq!((ended[0].at.as_str(), ended[0].niche.as_str(), ended[0].interval_s), ("2026-09-30T10:00:00.000Z", "sneakers", 3_600));
    let parts: Vec<_> = pages.iter().filter_map(|page| page.complete_part.as_deref()).collect();
    assert_eq!(parts, ["shopify/b.example/v", "shopify/a.example/v"]);
    // Half an hour later no poll is due; the day's robots.txt is not read again.
    assert_eq!(polls.run("2026-09-30T10:30:00Z", |_, _| unreachable!()).0, [""; 0]);
    let (requests, _) = polls.run("2026-09-30T10:58:00Z", |_, path| Ok(shop(path, &[&[1]])));
    assert!(!requests.iter().any(|request| request.ends_with("robots.txt")) && requests.len() == 6, "{requests:?}");
}

/// Proves that each way in which a store fails ends its poll with a reason, and that the other store is polled completely.
#[test]
fn a_failing_store_stops_no_other() {
    type Failure = fn(&str) -> Result<Answer, FetchError>;
    let failures: [(Failure, &str); 9] = [
        (|_| Err(refused()), "status 503"),
        (|_| Ok(Answer { status: 429, ..ok("Too Many Requests") }), "status 429"),
        (|_| Ok(Answer { status: 430, ..ok("") }), "status 430"),
        (|_| Ok(ok("<!DOCTYPE html><html>password</html>")), "a page instead of the list"),
        (|_| Ok(ok(list(&[]))), "the list is empty"),
        (|_| Ok(ok(list(&[1, 2])[..200].to_owned())), "not the JSON it should be"),
        (|_| Ok(ok(list(&[1]).replace("\"1.00\"", "100"))), "price of variant 11 is a number, as in the .js form"),
        (|path| if path.ends_with("page=1") { Ok(ok(list(&[1]))) } else { Err(refused()) }, "status 503"),
        (|_| Err(FetchError::Redirect { at: String::new(), status: 302 }), "redirected to another host"),
    ];
    for (failure, reason) in failures {
        let mut polls = Polls::new(&["bad.example", "good.example"]);
        let ended = polls.polls("2026-09-30T10:00:00Z", |host, path| {
            if host == "bad.example" && path != "/robots.txt" { failure(path) } else { Ok(shop(path, &[&[7]])) }
        });
        let poll_of = |host: &str| ended.iter().find(|poll| poll.0 == host).unwrap();
        assert!(!poll_of("bad.example").1 && poll_of("bad.example").2.contains(reason), "{reason}: {ended:?}");
        assert!(poll_of("good.example").1, "{ended:?}");
    }
}

/// Proves that a store which refuses three polls in a row is not asked for a week, and that one answer in between starts the count again.
#[test]
fn a_refusing_store_is_not_asked_for_a_week() {
    let mut polls = Polls::new(&["a.example"]);
    let refuse =
        |status: u16| move |_: &str, path: &str| Ok(if path == "/robots.txt" { ok(ROBOTS) } else { Answer { status, ..ok("no") } });
    let start = at("2026-09-01T00:05:00Z");
    let hour = |n: i64| (start + SignedDuration::from_hours(n)).to_string();
    assert_eq!(polls.polls(&hour(0), refuse(403))[0].2, "status 403");
    assert_eq!(polls.polls(&hour(1), refuse(401))[0].2, "status 401");
    assert!(polls.polls(&hour(2), |_, path| Ok(shop(path, &[&[1]])))[0].1);
    for n in 3..5 {
        assert_eq!(polls.polls(&hour(n), refuse(403))[0].2, "status 403");
    }
    let last = polls.polls(&hour(5), refuse(403));
    assert_eq!(last[0].2, "status 403, 3 polls in a row: not asked again until 2026-09-08T05:05:00Z");
    for n in [6, 30, 7 * 24 + 4] {
        assert_eq!(polls.run(&hour(n), |_, _| unreachable!()).0, [""; 0], "{n}");
    }
    assert!(polls.polls(&hour(7 * 24 + 5), |_, path| Ok(shop(path, &[&[1]])))[0].1);
}

/// Proves that rules for crawlers are followed.
#[test]
fn robots_are_honoured() {
    let mut polls = Polls::new(&["a.example"]);
    let (requests, pages) = polls.run("2026-09-30T10:00:00Z", |_, _| Ok(ok("User-agent: *\nDisallow: /products\n")));
    assert_eq!(requests, ["a.example/robots.txt"]);
    assert_eq!(poll_of(&pages[0]).unwrap().reason, "robots.txt disallows it");
}

/// Proves that a list with fewer products than at the poll before is read twice, that a product that two pages show counts once, and that a
/// product that cannot be read keeps its store from being taken as complete.
#[test]
fn moving_lists() {
    let mut polls = Polls::new(&["a.example"]);
    polls.run("2026-09-30T10:00:00Z", |_, path| Ok(shop(path, &[&[1, 2], &[3, 4]])));
    let mut reads = 0;
    let (_, pages) = polls.run("2026-09-30T11:00:00Z", |_, path| {
        reads += usize::from(path.ends_with("page=1"));
        // Product 1 was removed meanwhile, so product 3 moved to a page that had been read.
        Ok(shop(path, if reads == 1 { &[&[1, 2], &[4]] } else { &[&[2, 3], &[4]] }))
    });
    assert_eq!(reads, 2);
    let poll = pages.iter().find_map(poll_of).unwrap();
    assert_eq!((poll.products, poll.complete, poll.pages), (3, true, 6));
    assert!(pages.iter().any(|page| stock(page).iter().any(|fact| fact.product_id == "3")));
    let (_, pages) = polls.run("2026-09-30T12:00:00Z", |_, path| Ok(shop(path, &[&[1, 2], &[2, 3]])));
    assert_eq!(pages.iter().find_map(poll_of).unwrap().products, 3);
    let bad = list(&[1, 2, 3]).replace("\"id\":2,", "");
    let (_, pages) =
        polls.run("2026-09-30T13:00:00Z", |_, path| Ok(if path.ends_with("page=1") { ok(bad.clone()) } else { shop(path, &[]) }));
    assert_eq!(pages.iter().map(|page| page.rejects.len()).sum::<usize>(), 1);
    assert!(pages.iter().find_map(poll_of).unwrap().complete && pages.iter().all(|page| page.complete_part.is_none()));
}

/// Proves that an interrupted run begins the unfinished polls again and keeps the finished ones, and that a store that is not configured any
/// more is not asked.
#[test]
fn interrupted_runs_begin_polls_again() {
    let (upstream, stream) = stream(STREAM);
    let settings = settings_of(&["a.example", "b.example"]);
    let now = at("2026-09-30T10:00:00Z");
    let mut cursor = upstream.start_after(stream, &window(), &settings, &UpstreamCursor::default(), now);
    for (step, pages) in [&[][..], &[], &[&[1_u64, 2][..], &[3]], &[&[1]], &[&[1, 2], &[3]], &[&[1]]].into_iter().enumerate() {
        let path = upstream.request(stream, &cursor, &settings).unwrap().path;
        cursor = upstream.map_at(stream, &cursor, &shop(&path, pages), now).unwrap().next.unwrap();
        assert!(step < 6);
    }
    let request =
        |cursor: &UpstreamCursor| upstream.request(stream, cursor, &settings).map(|request| request.origin + &request.path).unwrap();
    assert_eq!(request(&cursor), "https://a.example/products.json?limit=250&page=3");
    let resumed = upstream.resume(stream, &cursor);
    assert_eq!(request(&resumed), "https://a.example/products.json?limit=250&page=1");
    assert!(upstream.request(stream, &cursor, &settings_of(&["b.example"])).is_err());
}

/// Proves that a rejected product is mapped again from its stored bytes, under its own store.
#[test]
fn rejected_products_are_mapped_again() {
    let (upstream, stream) = stream(STREAM);
    let mut polls = Polls::new(&["a.example"]);
    let odd = list(&[1, 2, 3]).replace("\"id\":2,", "\"id\":\"two\",");
    let (_, pages) =
        polls.run("2026-09-30T13:00:00Z", |_, path| Ok(if path.ends_with("page=1") { ok(odd.clone()) } else { shop(path, &[]) }));
    let reject = pages.iter().flat_map(|page| &page.rejects).next().unwrap();
    assert_eq!(reject.reason, "id is not a whole number");
    let mended = String::from_utf8(reject.raw.clone()).unwrap().replace("\"two\"", "2");
    let cursor = upstream.start(stream, &window(), &Settings::default());
    let page = upstream.map(stream, &cursor, &ok(upstream.single(stream, mended.as_bytes())), TODAY).unwrap();
    assert_eq!(page.observations.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["shopify/a.example/v/21"]);
    assert!(upstream.map(stream, &cursor, &ok("{}"), TODAY).is_err());
}

/// Proves that a store has a budget of facts, a larger one at its first poll; that a poll which has spent it ends with the reason and takes nothing for gone; and
/// that a page with more variants than products of a store have is not taken.
#[test]
fn facts_of_a_store_have_a_budget() {
    let (upstream, stream) = stream(STREAM);
    let settings = settings_of(&["a.example", "b.example"]);
    let now = at("2026-09-30T10:00:00Z");
    let first = upstream.start_after(stream, &window(), &settings, &UpstreamCursor::default(), now);
    let budget = |cursor: &UpstreamCursor| upstream.budget(stream, cursor).unwrap();
    assert_eq!((budget(&first).part.as_str(), budget(&first).facts_max), ("shopify/a.example/v", 200_000));
    let mut polls = Polls::new(&["a.example", "b.example"]);
    polls.run("2026-09-30T10:00:00Z", |_, path| Ok(shop(path, &[&[1]])));
    let later = upstream.start_after(stream, &window(), &settings, &polls.memory, at("2026-09-30T11:00:00Z"));
    assert_eq!((budget(&later).part.as_str(), budget(&later).facts_max), ("shopify/a.example/v", 25_000));
    let page = upstream.failed(stream, &later, "more than 25000 facts in one run", at("2026-09-30T11:00:00Z")).unwrap();
    let poll = poll_of(&page).unwrap();
    assert_eq!((poll.complete, poll.reason.as_str(), &page.complete_part), (false, "more than 25000 facts in one run", &None));
    let next = page.next.unwrap();
    assert_eq!(budget(&next).part, "shopify/b.example/v");
    let nothing = upstream.start_after(stream, &window(), &settings, &polls.memory, at("2026-09-30T10:30:00Z"));
    assert_eq!(upstream.budget(stream, &nothing), None);

    let variant = |id: usize| format!(r#"{{"id":{id},"title":"M","available":true,"price":"1.00"}}"#);
    let shown = |count: usize| {
        let variants = (1..=count).map(variant).collect::<Vec<_>>().join(",");
        format!(r#"{{"products":[{{"id":1,"title":"A","handle":"a","variants":[{variants}]}}]}}"#)
    };
    for (count, reason) in [(25_000, ""), (25_001, "more than 25000 variants on a page")] {
        let mut polls = Polls::new(&["a.example"]);
        let (_, pages) =
            polls.run("2026-09-30T10:00:00Z", |_, path| Ok(if path.ends_with("page=1") { ok(shown(count)) } else { shop(path, &[]) }));
        let poll = pages.iter().find_map(poll_of).unwrap();
        let variants: usize = pages.iter().map(|page| stock(page).iter().filter(|fact| fact.kind == "variant").count()).sum();
        assert_eq!((poll.reason.as_str(), variants), (reason, if reason.is_empty() { count } else { 0 }));
    }
}

/// Proves that a stand-in for all stores gets the name of the store in a header, and that a store itself does not.
#[test]
fn a_stand_in_gets_the_host() {
    let (upstream, stream) = stream(STREAM);
    let settings = settings_of(&["a.example"]);
    let cursor = upstream.start_after(stream, &window(), &settings, &UpstreamCursor::default(), at("2026-09-30T10:00:00Z"));
    assert!(upstream.request(stream, &cursor, &settings).unwrap().headers.is_empty());
    let stand_in = Settings { base_url: Some("http://127.0.0.1:1".to_owned()), ..settings };
    assert_eq!(upstream.request(stream, &cursor, &stand_in).unwrap().headers, [("host", "a.example".to_owned())]);
    let nobody = upstream.start_after(stream, &window(), &Settings::default(), &UpstreamCursor::default(), at("2026-09-30T10:00:00Z"));
    assert!(!upstream.has_request(stream, &nobody));
}

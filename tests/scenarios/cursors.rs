//! Invalid cursors, which were not issued for the requested feed: each is refused with a reason, and none is answered with data.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use feed::cursor;
use operation::secrets::Secrets;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use crate::api::LocalApi;
use crate::engine::{SimulatedUpstreams, fixed_clock};
use crate::random::{Random, seed};

const CURSORS: usize = 9_000;
const SERVICES: &[&str] = &["recalls", "research", "filings", "awards"];

/// A feed, with a filter in canonical form as its cursors store it.
struct Feed {
    service: &'static str,
    operation: &'static str,
    arguments: Value,
    filter: &'static str,
}

fn feeds() -> Vec<Feed> {
    let feed = |service, operation, arguments, filter| Feed { service, operation, arguments, filter };
    let mut all: Vec<Feed> = SERVICES.iter().map(|service| feed(service, "changes", json!({}), "")).collect();
    all.extend([
        feed("research", "whats_changed_since", json!({}), ""),
        feed("research", "whats_changed_since", json!({ "state": "TX" }), r#"{"state":"tx"}"#),
        feed("filings", "whats_new_since", json!({}), ""),
        feed("filings", "whats_new_since", json!({ "form": "8-K" }), r#"{"form":["8-K"]}"#),
        feed("awards", "whats_changed_since", json!({}), ""),
        feed("awards", "whats_changed_since", json!({ "naics": ["54"] }), r#"{"naics":["54"]}"#),
    ]);
    all
}

/// What is wrong with a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// One byte is changed.
    Byte,
    /// One character is changed.
    Character,
    /// Its end is missing.
    Cut,
    /// Something is appended to it.
    Longer,
    Empty,
    /// Random bytes.
    Noise,
    /// Made with another master key.
    Key,
    /// A cursor of another service.
    Service,
    /// A position beyond the end of the log.
    Future,
    /// Made under another filter; the error says so.
    Filter,
    /// In transition from one filter to another, with a state that no version writes.
    Halfway,
}

const ALL: &[Wrong] = &[
    Wrong::Byte,
    Wrong::Character,
    Wrong::Cut,
    Wrong::Longer,
    Wrong::Empty,
    Wrong::Noise,
    Wrong::Key,
    Wrong::Service,
    Wrong::Future,
    Wrong::Filter,
    Wrong::Halfway,
];

struct Maker {
    ours: Secrets,
    theirs: Secrets,
    random: Random,
}

impl Maker {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.random.below(end as u64)).unwrap()
    }

    /// Makes an invalid cursor for a feed whose log ends at `end`.
    fn make(&mut self, wrong: Wrong, feed: &Feed, end: u64) -> String {
        let seq = Seq(self.random.below(end + 1));
        let good = cursor::encode(&self.ours, feed.service, seq, feed.filter);
        match wrong {
            Wrong::Byte => {
                let mut bytes = URL_SAFE_NO_PAD.decode(&good).unwrap();
                let at = self.below(bytes.len());
                bytes[at] ^= u8::try_from(1 + self.random.below(255)).unwrap();
                URL_SAFE_NO_PAD.encode(bytes)
            }
            Wrong::Character => {
                let at = self.below(good.len());
                let other = self.random.pick(&["A", "z", "-", "_", "=", "+", "/", " ", "é", "\u{0}", "%"]);
                let other = if &good[at..=at] == other { "B" } else { other };
                format!("{}{other}{}", &good[..at], &good[at + 1..])
            }
            Wrong::Cut => good[..1 + self.below(good.len() - 1)].to_owned(),
            Wrong::Longer => format!("{good}{}", self.random.pick(&["A", "AA", "AAAA", "=", "==", " ", "&"])),
            Wrong::Empty => self.random.pick(&["", " ", "\t", "\n"]).to_owned(),
            Wrong::Noise => {
                let length = self.below(120);
                let noise: Vec<u8> = (0..length).map(|_| u8::try_from(self.random.below(256)).unwrap()).collect();
                if self.random.below(2) == 0 { URL_SAFE_NO_PAD.encode(noise) } else { String::from_utf8_lossy(&noise).into_owned() }
            }
            Wrong::Key => cursor::encode(&self.theirs, feed.service, seq, feed.filter),
            Wrong::Service => {
                let others: Vec<&str> = SERVICES.iter().copied().chain(["", "recall"]).filter(|name| *name != feed.service).collect();
                cursor::encode(&self.ours, self.random.pick(&others), seq, feed.filter)
            }
            Wrong::Future => {
                let beyond = [1, 2, self.random.below(1 << 40), u64::MAX - end];
                cursor::encode(&self.ours, feed.service, Seq(end + self.random.pick(&beyond).max(1)), feed.filter)
            }
            Wrong::Filter => {
                let other =
                    self.random.pick(&["{\"state\":\"CA\"}", "{\"cik\":\"0000000001\"}", "{\"naics\":[\"61\"]}", "not JSON", "\u{2}"]);
                cursor::encode(&self.ours, feed.service, seq, other)
            }
            Wrong::Halfway => {
                let halfway =
                    self.random.pick(&["\u{1}", "\u{1}\u{1}\u{1}", "\u{1}x\u{1}\u{1}", "\u{1}-1\u{1}{}\u{1}", "\u{1}1\u{1}{\u{1}"]);
                cursor::encode(&self.ours, feed.service, seq, &format!("{halfway}{}", feed.filter))
            }
        }
    }
}

/// Proves that none of nine thousand invalid cursors (changed, truncated, empty, random, made elsewhere, of another service, beyond
/// the end or under another filter) is answered with data or with an internal error: the answer is 400 with a reason that names the cursor,
/// or 409 where only the filter differs; by query and as JSON, with and without `rebase`. Valid cursors among them are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_cursors_are_refused() {
    let seed = seed("CURSOR_SEED", 1);
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(51, 60, fixed_clock()).await;
    let api = LocalApi::open(dir.path(), fixed_clock(), None).await;
    let stop = crate::concurrent_processes::run_heads_only(&api.engine).await;
    let mut settings = simulated.settings();
    settings.window_days = 7;
    for name in crate::engine::upstream_names() {
        for outcome in api.engine.run(name, &settings).await {
            outcome.unwrap();
        }
    }
    stop.send_replace(true);
    api.decide().await;
    let feeds = feeds();
    let mut ends = std::collections::HashMap::new();
    for service in api.services().filter(|service| feeds.iter().any(|feed| feed.service == service.name)) {
        let projection = api.engine.projector.service(service.name).unwrap();
        let end = projection.checkpoint().await.unwrap();
        assert!(end.seq > Seq(0), "{} has no changes", service.name);
        // No cursor is issued beyond the end of this topic, whatever other topics hold.
        ends.insert(service.name, end.seq.0.max(end.offset.0));
    }
    let secrets = |byte: u8| Secrets::from_master(&[byte; 32]).unwrap();
    let mut maker = Maker { ours: secrets(7), theirs: secrets(8), random: Random(seed) };
    let mut refused = [0_usize; 2];
    for n in 0..CURSORS {
        let (wrong, feed) = (ALL[n % ALL.len()], &feeds[maker.below(feeds.len())]);
        let end = ends[feed.service];
        let text = maker.make(wrong, feed, end);
        let mut arguments = feed.arguments.clone();
        arguments["cursor"] = json!(text);
        let can_rebase = feed.operation != "changes" && wrong != Wrong::Filter;
        if can_rebase && maker.below(2) == 0 {
            arguments["rebase"] = json!(true);
        }
        let answer = if maker.below(2) == 0 {
            api.ask(feed.service, feed.operation, &arguments, Tier::Pro).await
        } else {
            api.query(feed.service, feed.operation, &pairs(&arguments), Tier::Pro).await
        };
        let problem = answer.expect_err(&format!("{wrong:?} {arguments}"));
        let shown = format!("{wrong:?} {arguments}: {problem:?}");
        let (status, is_409) = (problem.code.status(), problem.code == ErrorCode::FilterChanged);
        assert_eq!(status, if is_409 { 409 } else { 400 }, "{shown}");
        assert!(!problem.detail.is_empty() && problem.parameter == "cursor", "{shown}");
        assert!(is_409 == (wrong == Wrong::Filter) || wrong == Wrong::Halfway, "{shown}");
        if wrong != Wrong::Noise && !is_409 && text.chars().all(|c| c != '\u{FFFD}') {
            assert_eq!(problem.code, ErrorCode::CursorInvalid, "{shown}");
        }
        refused[usize::from(is_409)] += 1;
        if n % 300 == 0 {
            let seq =
                Seq(maker.random.below(end + 1)).min(api.engine.projector.service(feed.service).unwrap().checkpoint().await.unwrap().seq);
            let mut good = feed.arguments.clone();
            good["cursor"] = json!(cursor::encode(&maker.ours, feed.service, seq, feed.filter));
            let page = api.ask(feed.service, feed.operation, &good, Tier::Pro).await.unwrap();
            assert_eq!(page["from"], seq.0 + 1);
        }
    }
    assert!(refused[0] > refused[1] && refused[1] >= CURSORS / ALL.len());
    api.close().await;
}

/// Converts arguments to the pairs of a query.
fn pairs(arguments: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(","),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    arguments.as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Proves that cursors under the longest permitted filters, and cursors in transition between two such filters, can be read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursors_with_long_filters_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let api = LocalApi::open(dir.path(), fixed_clock(), None).await;
    // Control characters have the longest form in JSON.
    let long = |letter: &str| format!("{letter}{}", "\u{1f}".repeat(199));
    let codes: Vec<String> = (0..50).map(|n| format!("5415{n:02}")).collect();
    let filter = |letter: &str| json!({ "naics": codes, "agency": long(letter), "recipient": long(letter), "keyword": long(letter) });
    let first = api.ask("awards", "whats_changed_since", &filter("a"), Tier::Pro).await.unwrap();
    let mut second = filter("b");
    second["cursor"] = first["cursor"].clone();
    let refused = api.ask("awards", "whats_changed_since", &second, Tier::Pro).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::FilterChanged);
    second["rebase"] = json!(true);
    let page = api.ask("awards", "whats_changed_since", &second, Tier::Pro).await.unwrap();
    second["cursor"] = page["cursor"].clone();
    api.ask("awards", "whats_changed_since", &second, Tier::Pro).await.unwrap();
    let canonical = |cursor: &Value| cursor::read(&api.context.secrets, "awards", cursor.as_str().unwrap()).unwrap().1;
    let halfway = format!("\u{1}0\u{1}{}\u{1}{}", canonical(&first["cursor"]), canonical(&page["cursor"]));
    second["cursor"] = json!(cursor::encode(&api.context.secrets, "awards", Seq(0), &halfway));
    api.ask("awards", "whats_changed_since", &second, Tier::Pro).await.unwrap();
    api.close().await;
}

/// Reads the filings feed from the requested position to the end: the event of each item by filing and filer, and the last cursor.
async fn read_on(api: &LocalApi, mut asked: Value) -> (BTreeMap<(String, String), String>, Value) {
    let mut out = BTreeMap::new();
    loop {
        asked["limit"] = json!(37);
        let page = api.ask("filings", "whats_new_since", &asked, Tier::Pro).await.unwrap();
        for item in page["filings"].as_array().unwrap() {
            let text = |name: &str| item[name].as_str().unwrap().to_owned();
            out.insert((text("accession"), text("cik")), text("event"));
        }
        asked.as_object_mut().unwrap().remove("start");
        asked["cursor"] = page["cursor"].clone();
        if page["hasMore"] == false {
            return (out, asked["cursor"].take());
        }
    }
}

/// Proves that a reader who follows a ticker (which is resolved to companies) gets exactly the missing filings when it rebases to all
/// filings, and their removal when it rebases back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rebase_removes_and_restores_a_ticker_filter() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = SimulatedUpstreams::start(52, 60, fixed_clock()).await;
    let api = LocalApi::open(dir.path(), fixed_clock(), None).await;
    let stop = crate::concurrent_processes::run_heads_only(&api.engine).await;
    for outcome in api.engine.run("edgar", &simulated.settings()).await {
        outcome.unwrap();
    }
    stop.send_replace(true);
    api.decide().await;
    let trades = api.ask("filings", "insider_activity", &json!({ "days": 90, "limit": 200 }), Tier::Pro).await.unwrap();
    let tickers = trades["trades"].as_array().unwrap().iter().map(|trade| trade["ticker"].as_str().unwrap());
    let ticker = tickers.into_iter().find(|ticker| !ticker.is_empty()).unwrap();
    let (all, end) = read_on(&api, json!({ "start": "earliest" })).await;
    let (held, position) = read_on(&api, json!({ "start": "earliest", "ticker": ticker })).await;
    assert!(!held.is_empty() && held.len() < all.len());

    let (changes, _) = read_on(&api, json!({ "rebase": true, "cursor": position })).await;
    let others = || all.keys().filter(|key| !held.contains_key(*key));
    assert_eq!(changes, others().map(|key| (key.clone(), "added".to_owned())).collect());
    let (changes, _) = read_on(&api, json!({ "rebase": true, "cursor": end, "ticker": ticker })).await;
    assert_eq!(changes, others().map(|key| (key.clone(), "removed".to_owned())).collect());
    api.close().await;
}

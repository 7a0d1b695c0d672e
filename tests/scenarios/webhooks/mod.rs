//! Webhooks: matching changes are posted, signed, in order and once, despite faults of the server and the receiver.

mod many_messages;
mod private_targets;
pub(crate) mod receiver;
#[expect(unreachable_pub, reason = "an example for other programs, shown in the guide to webhooks")]
#[path = "../../../ops/examples/verify_webhook.rs"]
mod verify_webhook;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use schemas::clock::Clock;
use serde_json::{Value, json};

use self::receiver::{Message, Receiver};
use crate::child::run_check;
use crate::engine::{SimulatedUpstreams, ingest_of};
use crate::portal::{Visitor, text};
use crate::process::{Answer, Server, highwater, stdout, use_system_clock, wait_for, with_services};
use crate::random::{Random, seed};

/// The services whose changes are posted, and their upstreams.
const SERVICES: &[&str] = &["awards", "filings", "recalls", "research"];
const UPSTREAMS: &[&str] = &["clinical_trials", "cpsc", "edgar", "fsis", "nhtsa", "nih_reporter", "openfda", "usaspending"];

/// The path where targets of recalls are registered.
const RECALLS_ENDPOINT: &str = "/recalls/api/webhook";

/// Returns the changes in a message: a recall by its texts, other records by the seq of the change.
fn changes_of(body: &Value) -> Vec<String> {
    let number = |change: &Value| change["seq"].to_string();
    match body["event"].as_str().unwrap() {
        "recalls.new" => vec![recall(&body["recall"])],
        "new_filing" => vec![number(&body["filing"])],
        "new_funding" | "award_activity" => body["changes"].as_array().unwrap().iter().map(number).collect(),
        event => panic!("{event}"),
    }
}

fn recall(record: &Value) -> String {
    format!("{} {} {}", record["url"], record["title"], record["date"])
}

/// A webhook or watch of the test: its name, its path, the last change before it, and its secret.
struct Target {
    path: String,
    endpoint: String,
    id: String,
    after: u64,
    secret: String,
}

impl Target {
    /// Registers a webhook or watch, as `body` says, that posts to a path of the receiver.
    fn register(server: &Server, key: &str, receiver: &Receiver, path: &str, endpoint: &str, mut body: Value) -> Self {
        body[if endpoint == RECALLS_ENDPOINT { "webhook_url" } else { "webhook" }] = json!(receiver.url(path));
        let answer = server.send("POST", endpoint, key, &body.to_string());
        let made: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 201, "{made}");
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let after = made["after"].as_u64().unwrap();
        Self { path: path.to_owned(), endpoint: endpoint.to_owned(), id: text("id"), after, secret: text("secret") }
    }

    fn at(&self, rest: &str) -> String {
        format!("{}/{}{rest}", self.endpoint, self.id)
    }

    /// Returns the changes that it must get, in order.
    fn expected(&self, server: &Server, key: &str) -> Vec<String> {
        if self.endpoint == RECALLS_ENDPOINT {
            let new = new_recalls(server, key).into_iter().filter(|(seq, _)| *seq > self.after);
            return new.map(|(_, texts)| texts).collect();
        }
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.json(&self.at(&format!("?limit=200{cursor}")), key);
            all.extend(page["matches"].as_array().unwrap().iter().map(|change| change["seq"].to_string()));
            if page["hasMore"] == false {
                all.reverse();
                return all;
            }
            cursor = format!("&cursor={}", page["cursor"].as_str().unwrap());
        }
    }

    /// Returns the changes that were accepted so far, each at its first delivery, in order.
    fn accepted(&self, receiver: &Receiver) -> Vec<String> {
        receiver.accepted(&self.path, &self.secret).iter().flat_map(|message| changes_of(&message.json())).collect()
    }
}

/// Returns the new recalls of the feed that are news: the seq and the texts of each.
fn new_recalls(server: &Server, key: &str) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    let mut page = server.json("/recalls/v1/changes?start=earliest&limit=200", key);
    loop {
        let new = page["changes"].as_array().unwrap().iter().filter(|change| change["event"] == "new" && change["backfill"] != true);
        all.extend(new.map(|change| (change["seq"].as_u64().unwrap(), recall(&change["record"]))));
        if page["hasMore"] == false {
            return all;
        }
        page = server.json(&format!("/recalls/v1/changes?limit=200&cursor={}", page["cursor"].as_str().unwrap()), key);
    }
}

/// Verifies messages with the example programs in ops/examples, which use the reference libraries of Rust, Python and TypeScript.
fn verify_with_examples(dir: &Path, messages: Vec<Value>) {
    for message in &messages {
        let (secret, body) = (message["secret"].as_str().unwrap(), message["body"].as_str().unwrap());
        let headers = message["headers"].as_object().unwrap().iter();
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.as_str().unwrap().parse().unwrap())).collect();
        let read = verify_webhook::read_message(secret, &headers, body.as_bytes()).unwrap();
        assert_eq!(read, serde_json::from_str::<Value>(body).unwrap());
        assert!(verify_webhook::read_message(secret, &headers, format!("{body} ").as_bytes()).is_err());
    }
    let file = dir.join("messages.json");
    std::fs::write(&file, Value::from(messages).to_string()).unwrap();
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/webhooks"));
    check.arg(&file);
    run_check(check);
}

/// Proves, on services of each kind, that every change that matches a watch is posted, signed and in the order of the feed; that every attempt of a
/// message is identical; that none is lost or changed while the server is killed repeatedly and the receiver sometimes refuses; and that a
/// rebuild of all views while the sender runs sends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_survive_kills() {
    // Daily records are dated within the days before today.
    let now = Clock::System.now();
    let days_ago = |days: i64| now - SignedDuration::from_hours(24 * days);
    let simulated = SimulatedUpstreams::start(71, 300, Clock::Fixed(days_ago(8))).await;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| -> Command {
        let mut command = highwater(&data, &simulated.base_url, arguments);
        // The libraries that verify the messages refuse old ones.
        use_system_clock(with_services(&mut command, SERVICES)).env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let ingest = || drop(stdout(command(&ingest_of(UPSTREAMS))));
    ingest();
    let key = stdout(command(&["keys", "mint", "--tier", "business"])).trim().to_owned();
    let mut server = Server::ready(command(&["serve"]));
    // Some messages are refused; one target answers 410.
    let receiver = Receiver::open(|path, before| match path {
        "gone" => 410,
        _ if before % 23 == 3 => 503,
        _ => 204,
    });
    let register = |path: &str, endpoint: &str, body: Value| Target::register(&server, &key, &receiver, path, endpoint, body);
    let university = json!({"entity": {"type": "institution", "value": "university"}});
    let mut all = vec![
        register("recalls", RECALLS_ENDPOINT, json!({})),
        register("research", "/research/v1/watchlist", university),
        register("awards", "/awards/v1/watchlist", json!({"contractor": "federal"})),
    ];
    let gone = register("gone", RECALLS_ENDPOINT, json!({}));
    let filed = server.json("/filings/v1/changes?start=earliest&limit=200", &key);
    let companies: BTreeSet<&str> =
        filed["changes"].as_array().unwrap().iter().filter_map(|change| change["record"]["cik"].as_str()).collect();
    all.extend(companies.into_iter().take(15).map(|cik| register(&format!("filings/{cik}"), "/filings/v1/watchlist", json!({"cik": cik}))));
    let seed = seed("WEBHOOKS_SEED", 1);
    let mut random = Random(seed);
    for days in [5, 2, 0] {
        simulated.sim.set_today(days_ago(days).to_zoned(TimeZone::UTC).date());
        simulated.sim.advance(60);
        let before = receiver.count();
        ingest();
        let wanted = before + usize::try_from(random.below(8)).unwrap();
        wait_for("messages", || (receiver.count() >= wanted).then_some(()));
        server.kill();
        server = Server::ready(command(&["serve"]));
    }
    let mut filings = 0;
    for target in &all {
        let expected = target.expected(&server, &key);
        let is_filing = target.path.starts_with("filings");
        filings += if is_filing { expected.len() } else { 0 };
        assert!(is_filing || !expected.is_empty(), "{}", target.path);
        wait_for("all messages", || (target.accepted(&receiver) == expected).then_some(()));
        let state = wait_for("the end of its deliveries", || {
            let state = server.json(&target.at("/deliveries"), &key);
            (state["state"] == "idle").then_some(state)
        });
        assert_eq!(state["failingSince"], "", "{state}");
        assert!(state["deliveries"].as_array().unwrap().iter().all(|attempt| attempt["status"] == 204 || attempt["status"] == 503));
    }
    assert!(filings > 0, "no company filed");

    // A target that answered 410 gets nothing more until its owner resumes it.
    let state = server.json(&gone.at("/deliveries"), &key);
    assert_eq!((&state["state"], &state["status"]), (&json!("disabled"), &json!(410)), "{state}");
    // A kill after the message was posted and before its outcome is recorded repeats it, under the same id.
    let posted = receiver.messages("gone");
    let same = |message: &Message, other: &Message| message.id == other.id && message.body == other.body;
    assert!(!posted.is_empty() && posted.iter().all(|message| same(message, &posted[0])), "{posted:?}");
    assert!(stdout(command(&["webhooks", "list"])).lines().next().unwrap().starts_with(&gone.id), "failing targets must be listed first");
    stdout(command(&["webhooks", "replay", &gone.id]));
    let again = wait_for("another attempt", || receiver.messages("gone").split_off(posted.len()).pop());
    assert!(same(&again, &posted[0]), "a resumed target must get the same message again: {again:?}");

    // The portal shows the same.
    let portal = Visitor::signed_in(&server, &key);
    let page = |answer: Answer| {
        assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"));
        text(&answer)
    };
    let shown = page(portal.get("/account/webhooks"));
    for words in [gone.id.as_str(), all[1].id.as_str(), "127.0.0.1"] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let of = |target: &Target| format!("/account/webhooks/{}/{}", target.endpoint.split('/').nth(1).unwrap(), target.id);
    let attempts = page(portal.get(&of(&gone)));
    assert!(attempts.contains("the receiver answered 410 (gone)") && attempts.contains("value=\"resend\""), "{attempts}");
    let awards = format!("/account/webhooks/awards/{}", all[2].id);
    let before = receiver.messages("awards").len();
    let pinged = page(portal.post(&awards, "act=ping"));
    assert_eq!(receiver.messages("awards").len(), before + 1);
    assert!(
        pinged.contains("The test message was accepted with status 204.")
            || pinged.contains("The test message was not accepted: the receiver answered 503."),
        "{pinged}"
    );
    let wrong = portal.post(&awards, "act=replay&after=%3Cb%3E");
    assert!(wrong.status == 400 && !text(&wrong).contains("<b>"), "{}", text(&wrong));

    // A rebuild while the sender runs, and a new decision, send nothing; nor does the next check of the sender.
    let before = receiver.count();
    stdout(command(&["replay", "all"]));
    stdout(command(&["redecide", "deliveries"]));
    let awards = &all[2];
    assert_eq!(server.send("DELETE", &gone.at(""), &key, "").status, 200);
    let rotated = server.send("PATCH", &awards.at(""), &key, &json!({"rotateSecret": true}).to_string());
    assert_eq!(rotated.status, 200, "{}", String::from_utf8_lossy(&rotated.body));
    let rotated: Value = serde_json::from_slice(&rotated.body).unwrap();
    let ping = || server.send("POST", &awards.at("/ping"), &key, "{}").status;
    std::iter::repeat_with(ping).take(8).for_each(|status| assert_eq!(status, 200));
    wait_for("eight pings", || (receiver.count() >= before + 8).then_some(()));
    let pings = receiver.messages("awards").split_off(receiver.messages("awards").len() - 8);
    let secrets = [rotated["secret"].as_str().unwrap(), &awards.secret];
    for ping in &pings {
        assert_eq!(
            ping.signatures,
            secrets.map(|secret| ping.expected_signature(secret)).join(" "),
            "both secrets must sign during the rotation"
        );
    }
    let lasts = all.iter().filter_map(|target| Some(receiver.messages(&target.path).pop()?.to_example_json(&target.secret)));
    let pings = pings.iter().flat_map(|ping| secrets.map(|secret| ping.to_example_json(secret)));
    verify_with_examples(dir.path(), lasts.chain(pings).collect());

    // A replay from the beginning: each recall in its own message, with its earlier id.
    let recalls = &all[0];
    let ids = |receiver: &Receiver| {
        receiver.messages("recalls").into_iter().filter(|message| message.status == 204).map(|message| message.id).collect::<Vec<_>>()
    };
    let mut known = ids(&receiver);
    known.dedup();
    let replayed = server.send("POST", &recalls.at("/replay"), &key, &json!({"after": recalls.after}).to_string());
    assert_eq!(replayed.status, 200, "{}", String::from_utf8_lossy(&replayed.body));
    wait_for("all messages again", || {
        let mut again = ids(&receiver);
        again.dedup();
        (again.len() == 2 * known.len() && again[known.len()..] == known).then_some(())
    });
    // A replay of a range, after which delivery continues at its earlier position: by seqs, up to before a recall, and by cursors.
    let received = |wanted: u64| {
        wait_for("the replayed messages", || {
            let state = server.json(&recalls.at("/deliveries"), &key);
            let delivered = state["deliveredSeq"].as_u64().unwrap();
            (state["state"] == "idle" && state["rangeEnd"].is_null() && delivered >= wanted).then_some(delivered)
        })
    };
    let seqs: Vec<u64> = new_recalls(&server, &key).into_iter().map(|(seq, _)| seq).filter(|seq| *seq > recalls.after).collect();
    let (at, last) = (known.len() / 2, *seqs.last().unwrap());
    let position = received(last);
    let replay = |body: &Value| server.send("POST", &recalls.at("/replay"), &key, &body.to_string());
    let ranged = |body: Value, wanted: &[String]| {
        let before = receiver.messages("recalls").len();
        let answer = replay(&body);
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        assert_eq!(received(last), position, "delivery must continue at its earlier position");
        let mut again = receiver.messages("recalls").split_off(before);
        again.retain(|message| message.status == 204);
        let mut again: Vec<String> = again.into_iter().map(|message| message.id).collect();
        again.dedup();
        assert_eq!(again, wanted, "{body}");
    };
    ranged(json!({"after": recalls.after, "upto": seqs[at + 1] - 1}), &known[..=at]);
    let cursor_at = |service: &str, upto: u64| {
        let mut page = server.json(&format!("/{service}/v1/changes?start=earliest&limit=1"), &key);
        while page["to"].as_u64().unwrap() < upto {
            page = server.json(&format!("/{service}/v1/changes?limit=1&cursor={}", page["cursor"].as_str().unwrap()), &key);
        }
        page["cursor"].as_str().unwrap().to_owned()
    };
    ranged(json!({"cursor": cursor_at("recalls", 1), "uptoCursor": cursor_at("recalls", seqs[0])}), &known[..1]);
    for (body, parameter) in [
        (json!({"upto": 5}), "upto"),
        // Changes from before the watch was made are not sent.
        (json!({"after": 5, "upto": recalls.after}), "upto"),
        (json!({"after": 1_u64 << 40}), "after"),
        (json!({"after": -1}), "after"),
        (json!({"after": 0, "cursor": "x"}), "cursor"),
        (json!({"after": 0, "uptoCursor": "x"}), "uptoCursor"),
        (json!({"cursor": cursor_at("awards", 1)}), "cursor"),
        (json!({"from": 0}), "from"),
    ] {
        let refused = replay(&body);
        let problem: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!((refused.status, problem["parameter"].as_str()), (400, Some(parameter)), "{body}: {problem}");
    }
    for (body, parameter) in [
        (json!({"webhook_url": receiver.url("x"), "secret": "whsec_c2hvcnQ="}), "secret"),
        (json!({"webhook_url": 7}), "webhook_url"),
        (json!({}), "webhook_url"),
        (json!({"webhook_url": receiver.url("x"), "extra": 1}), "extra"),
    ] {
        let refused = server.send("POST", RECALLS_ENDPOINT, &key, &body.to_string());
        let problem: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!((refused.status, problem["parameter"].as_str()), (400, Some(parameter)), "{body}: {problem}");
    }
    let one = known[at].clone();
    let resent = server.send("POST", &recalls.at("/resend"), &key, &json!({"message": one}).to_string());
    assert_eq!(resent.status, 200, "{}", String::from_utf8_lossy(&resent.body));
    assert_eq!(receiver.messages("recalls").last().unwrap().id, one);
    let unknown = server.send("POST", &recalls.at("/resend"), &key, &json!({"message": "msg_0"}).to_string());
    assert_eq!(unknown.status, 404);
    assert_eq!(server.terminate().code(), Some(0));
    assert!(receiver.messages("gone").len() <= 3);
}

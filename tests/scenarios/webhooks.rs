//! Webhooks: what watches let pass is posted, signed, in order and once, whatever happens to the server and the receiver.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use api::webhooks::sign::SigningSecret;
use bytes::Bytes;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use schemas::clock::Clock;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use warp::Filter as _;
use warp::http::{HeaderMap, Response};

use crate::chance::{Chance, seed};
use crate::engine::{Played, upstream_names};
use crate::process::{Server, highwater, stdout, wait_for};

/// A message as it came.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    /// The path that it was posted to, without its slash.
    to: String,
    id: String,
    at_s: i64,
    signatures: String,
    body: Bytes,
    /// What was said to it.
    status: u16,
}

/// Somebody who takes messages, and says what it was told to say.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

impl Receiver {
    /// `says` is given the path and how many messages came before.
    pub(crate) fn open(says: impl Fn(&str, usize) -> u16 + Clone + Send + Sync + 'static) -> Self {
        let got = Arc::new(Mutex::new(Vec::<Got>::new()));
        let (stop, stopped) = oneshot::channel::<()>();
        let (said, address) = std::sync::mpsc::channel();
        let own = Arc::clone(&got);
        let serving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                said.send(listener.local_addr().unwrap()).unwrap();
                let take = move |path: warp::path::FullPath, headers: HeaderMap, body: Bytes| {
                    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
                    let mut got = own.lock().unwrap();
                    let to = path.as_str().trim_start_matches('/').to_owned();
                    let status = says(&to, got.len());
                    let at_s = header("webhook-timestamp").parse().unwrap();
                    got.push(Got { to, id: header("webhook-id"), at_s, signatures: header("webhook-signature"), body, status });
                    Response::builder().status(status).body("").unwrap()
                };
                #[expect(clippy::disallowed_methods, reason = "who posts is the server under test")]
                let taken = warp::post().and(warp::path::full()).and(warp::header::headers_cloned()).and(warp::body::bytes()).map(take);
                warp::serve(taken).incoming(listener).graceful(async { drop(stopped.await) }).run().await;
            });
        });
        Self { address: address.recv().unwrap(), got, stop: Some(stop), serving: Some(serving) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    fn got(&self, path: &str) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|got| got.to == path).cloned().collect()
    }

    fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        drop(self.serving.take().map(JoinHandle::join));
    }
}

/// The changes that a message tells.
fn told(body: &Value) -> Vec<u64> {
    let of = |change: &Value| change["seq"].as_u64().unwrap();
    match body["event"].as_str().unwrap() {
        "recalls.new" => vec![of(body)],
        "new_filing" => vec![of(&body["filing"])],
        "new_funding" | "award_activity" => body["changes"].as_array().unwrap().iter().map(of).collect(),
        event => panic!("{event}"),
    }
}

/// Something that is followed: what it is called here, where it is asked for, and the secret of its messages.
struct Followed {
    path: String,
    service: &'static str,
    id: String,
    secret: String,
}

impl Followed {
    /// The changes that it is to be told, in order.
    fn expected(&self, server: &Server, key: &str, after: u64) -> Vec<u64> {
        let mut seqs = Vec::new();
        if self.service == "recalls" {
            let page = server.json("/recalls/v1/changes?start=earliest&limit=200", key);
            let mut page = page;
            loop {
                let changes = page["changes"].as_array().unwrap();
                seqs.extend(changes.iter().filter(|change| change["event"] == "new").map(|change| change["seq"].as_u64().unwrap()));
                if page["hasMore"] == false {
                    break;
                }
                page = server.json(&format!("/recalls/v1/changes?limit=200&cursor={}", page["cursor"].as_str().unwrap()), key);
            }
            seqs.retain(|seq| *seq > after);
            return seqs;
        }
        let mut cursor = String::new();
        loop {
            let page = server.json(&format!("/{}/v1/watchlist/{}?limit=200{cursor}", self.service, self.id), key);
            seqs.extend(page["matches"].as_array().unwrap().iter().map(|change| change["seq"].as_u64().unwrap()));
            if page["hasMore"] == false {
                break;
            }
            cursor = format!("&cursor={}", page["cursor"].as_str().unwrap());
        }
        seqs.sort_unstable();
        seqs
    }

    /// Asserts what came so far: signed, each message always the same, and the changes in order; answers those of the messages that were taken.
    fn taken(&self, receiver: &Receiver) -> Vec<u64> {
        let secret = SigningSecret::parse(&self.secret).unwrap();
        let (mut bodies, mut order) = (BTreeMap::<String, Bytes>::new(), Vec::new());
        for got in receiver.got(&self.path) {
            assert_eq!(got.signatures, secret.sign(&got.id, got.at_s, &got.body), "{}", self.path);
            let body = bodies.entry(got.id.clone()).or_insert_with(|| got.body.clone());
            assert_eq!(*body, got.body, "a message is the same each time");
            if got.status < 300 && !order.contains(&got.id) {
                order.push(got.id);
            }
        }
        order.iter().flat_map(|id| told(&serde_json::from_slice(&bodies[id]).unwrap())).collect()
    }
}

/// Proves, on each service, that every change which a watch lets pass is posted, signed and in the order of the feed, that a message is the same each
/// time it is sent, and that none is lost or told otherwise while the server is killed again and again and the receiver refuses now and then; and
/// that a rebuild of all views beside the sender sends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_outlast_kills() {
    // What comes by the day comes in the days until today.
    let now = Clock::System.now();
    let days_ago = |days: i64| now - SignedDuration::from_hours(24 * days);
    let played = Played::start(71, 300, Clock::Fixed(days_ago(8))).await;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| -> Command {
        let mut command = highwater(&data, &played.base_url, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let ingest = || {
        for upstream in upstream_names() {
            stdout(command(&["ingest", upstream, "--once"]));
        }
    };
    ingest();
    let key = stdout(command(&["keys", "mint", "--tier", "business"])).trim().to_owned();
    let mut server = Server::ready(command(&["serve"]));
    // Every eleventh is refused.
    let receiver = Receiver::open(|_, before| if before % 11 == 3 { 503 } else { 204 });
    let follow = |service: &'static str, path: &str, place: &str, body: Value| {
        let answer = server.send("POST", place, &key, &body.to_string());
        let made: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 201, "{made}");
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (Followed { path: path.to_owned(), service, id: text("id"), secret: text("secret") }, made["after"].as_u64().unwrap())
    };
    let url = |path: &str| receiver.url(path);
    let all = [
        follow("recalls", "recalls", "/recalls/api/webhook", json!({"webhook_url": url("recalls")})),
        follow(
            "research",
            "research",
            "/research/v1/watchlist",
            json!({"entity": {"type": "institution", "value": "university"}, "webhook": url("research")}),
        ),
        follow("awards", "awards", "/awards/v1/watchlist", json!({"contractor": "federal", "webhook": url("awards")})),
    ];
    let seed = seed("WEBHOOKS_SEED");
    println!("WEBHOOKS_SEED={seed}");
    let mut chance = Chance(seed);
    for days in [6, 4, 2, 0] {
        played.sim.set_today(days_ago(days).to_zoned(TimeZone::UTC).date());
        played.sim.advance(60);
        let before = receiver.count();
        ingest();
        let wanted = before + usize::try_from(chance.below(4)).unwrap();
        wait_for("messages", || (receiver.count() >= wanted).then_some(()));
        server.kill();
        server = Server::ready(command(&["serve"]));
    }
    for (followed, after) in &all {
        let expected = followed.expected(&server, &key, *after);
        assert!(!expected.is_empty(), "{}", followed.path);
        wait_for("all of them", || (followed.taken(&receiver) == expected).then_some(()));
        let place = if followed.service == "recalls" { "/recalls/api/webhook" } else { &format!("/{}/v1/watchlist", followed.service) };
        let standing = wait_for("its end", || {
            let standing = server.json(&format!("{place}/{}/deliveries", followed.id), &key);
            (standing["state"] == "idle").then_some(standing)
        });
        assert_eq!(standing["told"].as_u64(), expected.last().copied(), "{standing}");
        assert!(standing["deliveries"].as_array().unwrap().iter().all(|attempt| attempt["status"] == 204 || attempt["status"] == 503));
    }
    let before = receiver.count();
    stdout(command(&["replay", "all"]));
    stdout(command(&["redecide", "deliveries"]));
    let ping = server.send("POST", &format!("/awards/v1/watchlist/{}/ping", all[2].0.id), &key, "{}");
    assert_eq!(ping.status, 200);
    assert_eq!(receiver.count(), before + 1, "a rebuild sends nothing");
    assert_eq!(server.terminate().code(), Some(0));
}

//! Webhooks: what watches let pass is posted, signed, in order and once, whatever happens to the server and the receiver.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

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
use crate::commands::NOWHERE;
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

/// The changes that a message tells: a recall by what it says, others by their numbers.
fn told(body: &Value) -> Vec<String> {
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

/// Something that is followed: what it is called here, where it is asked for, and the secret of its messages.
struct Followed {
    path: String,
    place: String,
    id: String,
    after: u64,
    secret: String,
}

impl Followed {
    fn at(&self, rest: &str) -> String {
        format!("{}/{}{rest}", self.place, self.id)
    }

    /// The changes that it is to be told, in order.
    fn expected(&self, server: &Server, key: &str) -> Vec<String> {
        let mut all = Vec::new();
        if self.path == "recalls" {
            let mut page = server.json("/recalls/v1/changes?start=earliest&limit=200", key);
            loop {
                let new = page["changes"].as_array().unwrap().iter().filter(|change| change["event"] == "new");
                let told = new.filter(|change| change["seq"].as_u64().unwrap() > self.after);
                all.extend(told.map(|change| recall(&change["record"])));
                if page["hasMore"] == false {
                    return all;
                }
                page = server.json(&format!("/recalls/v1/changes?limit=200&cursor={}", page["cursor"].as_str().unwrap()), key);
            }
        }
        let mut cursor = String::new();
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

    /// Asserts what came so far: signed, and each message always the same; answers those that were taken, each at its first time, in order.
    fn taken(&self, receiver: &Receiver) -> Vec<String> {
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
    // Some are refused; one wants no more, ever.
    let receiver = Receiver::open(|path, before| match path {
        "gone" => 410,
        _ if before % 23 == 3 => 503,
        _ => 204,
    });
    let follow = |path: &str, place: &str, mut body: Value| {
        body[if path == "recalls" || path == "gone" { "webhook_url" } else { "webhook" }] = json!(receiver.url(path));
        let answer = server.send("POST", place, &key, &body.to_string());
        let made: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 201, "{made}");
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let after = made["after"].as_u64().unwrap();
        Followed { path: path.to_owned(), place: place.to_owned(), id: text("id"), after, secret: text("secret") }
    };
    let university = json!({"entity": {"type": "institution", "value": "university"}});
    let mut all = vec![
        follow("recalls", "/recalls/api/webhook", json!({})),
        follow("research", "/research/v1/watchlist", university),
        follow("awards", "/awards/v1/watchlist", json!({"contractor": "federal"})),
    ];
    let gone = follow("gone", "/recalls/api/webhook", json!({}));
    let filed = server.json("/filings/v1/changes?start=earliest&limit=200", &key);
    let companies: BTreeSet<&str> =
        filed["changes"].as_array().unwrap().iter().filter_map(|change| change["record"]["cik"].as_str()).collect();
    all.extend(companies.into_iter().take(15).map(|cik| follow(&format!("filings/{cik}"), "/filings/v1/watchlist", json!({"cik": cik}))));
    let seed = seed("WEBHOOKS_SEED");
    println!("WEBHOOKS_SEED={seed}");
    let mut chance = Chance(seed);
    for days in [5, 2, 0] {
        played.sim.set_today(days_ago(days).to_zoned(TimeZone::UTC).date());
        played.sim.advance(60);
        let before = receiver.count();
        ingest();
        let wanted = before + usize::try_from(chance.below(8)).unwrap();
        wait_for("messages", || (receiver.count() >= wanted).then_some(()));
        server.kill();
        server = Server::ready(command(&["serve"]));
    }
    let mut filings = 0;
    for followed in &all {
        let expected = followed.expected(&server, &key);
        let is_filing = followed.path.starts_with("filings");
        filings += if is_filing { expected.len() } else { 0 };
        assert!(is_filing || !expected.is_empty(), "{}", followed.path);
        wait_for("all of them", || (followed.taken(&receiver) == expected).then_some(()));
        let standing = wait_for("its end", || {
            let standing = server.json(&followed.at("/deliveries"), &key);
            (standing["state"] == "idle").then_some(standing)
        });
        assert_eq!(standing["failingSince"], "", "{standing}");
        assert!(standing["deliveries"].as_array().unwrap().iter().all(|attempt| attempt["status"] == 204 || attempt["status"] == 503));
    }
    assert!(filings > 0, "a company filed");

    // Who wants no more gets no more, until its owner resumes it.
    let standing = server.json(&gone.at("/deliveries"), &key);
    assert_eq!((&standing["state"], &standing["status"]), (&json!("disabled"), &json!(410)), "{standing}");
    assert_eq!(receiver.got("gone").len(), 1);
    assert!(stdout(command(&["webhooks", "list"])).lines().next().unwrap().starts_with(&gone.id), "what fails comes first");
    stdout(command(&["webhooks", "replay", &gone.id]));
    wait_for("another try", || (receiver.got("gone").len() == 2).then_some(()));
    let [first, second] = receiver.got("gone").try_into().unwrap();
    assert_eq!((first.id, first.body), (second.id, second.body), "it goes on where it stood");

    // The same for people.
    let page = |form: &str| {
        let answer = server.send("POST", "/webhooks", "", form);
        assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"));
        String::from_utf8(answer.body).unwrap()
    };
    let shown = page(&format!("key={key}"));
    for words in [gone.id.as_str(), all[1].id.as_str(), "it answered 410: it wants no more", "it answered 503", "127.0.0.1"] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let before = receiver.got("awards").len();
    let pinged = page(&format!("key={key}&act=ping_webhook&service=awards&id={}", all[2].id));
    assert_eq!(receiver.got("awards").len(), before + 1);
    assert!(pinged.contains("It was taken, with status 204.") || pinged.contains("It was not taken: it answered 503."), "{pinged}");
    let wrong = page(&format!("key={key}&act=replay_webhook&service=awards&id={}&after=%3Cb%3E", all[2].id));
    assert!(wrong.contains("after: is no number"), "{wrong}");
    assert!(page("key=hw_live_none").contains("<strong>") && page("").contains("type=\"password\""));

    // A rebuild beside the sender, and a decision anew, send nothing; nor does the sender when it looks again.
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
    let pings = receiver.got("awards").split_off(receiver.got("awards").len() - 8);
    for ping in pings {
        let sign = |secret: &str| SigningSecret::parse(secret).unwrap().sign(&ping.id, ping.at_s, &ping.body);
        assert_eq!(ping.signatures, format!("{} {}", sign(rotated["secret"].as_str().unwrap()), sign(&awards.secret)), "both sign");
    }

    // Told again from the beginning: each recall in a message of its own, with the id that it had.
    let recalls = &all[0];
    let ids =
        |receiver: &Receiver| receiver.got("recalls").into_iter().filter(|got| got.status == 204).map(|got| got.id).collect::<Vec<_>>();
    let mut known = ids(&receiver);
    known.dedup();
    let replayed = server.send("POST", &recalls.at("/replay"), &key, &json!({"after": recalls.after}).to_string());
    assert_eq!(replayed.status, 200, "{}", String::from_utf8_lossy(&replayed.body));
    wait_for("all again", || {
        let mut again = ids(&receiver);
        again.dedup();
        (again.len() == 2 * known.len() && again[known.len()..] == known).then_some(())
    });
    let one = known[known.len() / 2].clone();
    let resent = server.send("POST", &recalls.at("/resend"), &key, &json!({"message": one}).to_string());
    assert_eq!(resent.status, 200, "{}", String::from_utf8_lossy(&resent.body));
    assert_eq!(receiver.got("recalls").last().unwrap().id, one);
    let unknown = server.send("POST", &recalls.at("/resend"), &key, &json!({"message": "msg_0"}).to_string());
    assert_eq!(unknown.status, 404);
    assert_eq!(server.terminate().code(), Some(0));
    assert!(receiver.got("gone").len() <= 3);
}

/// A name server that gives the addresses of a name one after another, for good or by turns.
struct Names {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Names {
    /// `of` is given a name without its last point and how often it was asked for.
    fn open(of: impl Fn(&str, usize) -> Vec<IpAddr> + Send + 'static) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let serving = std::thread::spawn(move || {
            let (mut buffer, mut asked) = ([0; 1_500], BTreeMap::<(String, bool), usize>::new());
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let question = &buffer[..length];
                let (mut name, mut at) = (Vec::new(), 12);
                while question[at] != 0 {
                    let end = at + 1 + usize::from(question[at]);
                    name.push(String::from_utf8_lossy(&question[at + 1..end]).to_lowercase());
                    at = end;
                }
                let name = name.join(".");
                let is_v6 = question[at + 2] == 28;
                let before = asked.entry((name.clone(), is_v6)).or_default();
                let found: Vec<IpAddr> = of(&name, *before).into_iter().filter(|address| address.is_ipv6() == is_v6).collect();
                *before += 1;
                let mut answer = question[..at + 5].to_vec();
                answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::try_from(found.len()).unwrap(), 0, 0, 0, 0]);
                for address in found {
                    answer.extend([0xc0, 0x0c, 0, if is_v6 { 28 } else { 1 }, 0, 1, 0, 0, 0, 0]);
                    match address {
                        IpAddr::V4(address) => answer.extend([&[0, 4], address.octets().as_slice()].concat()),
                        IpAddr::V6(address) => answer.extend([&[0, 16], address.octets().as_slice()].concat()),
                    }
                }
                socket.send_to(&answer, from).unwrap();
            }
        });
        Self { address, stop, serving: Some(serving) }
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.serving.take().map(JoinHandle::join));
    }
}

/// Proves that no address inside is a target: each way to write one is refused when it is registered, and each name that leads to one, or to one at
/// its second look, when it is posted to, without a packet to a listener there; which the same name reaches where private targets are permitted.
#[test]
fn no_way_leads_inside() {
    let canary = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    canary.set_nonblocking(true).unwrap();
    let port = canary.local_addr().unwrap().port();
    let names = Names::open(|name, before| {
        let addresses: &[&str] = match name.split('.').next().unwrap() {
            "inside" => &["127.0.0.1"],
            "mixed" => &["8.8.8.8", "127.0.0.1"],
            "inside6" => &["::1"],
            "mapped" => &["::ffff:127.0.0.1"],
            "translated" => &["64:ff9b::7f00:1"],
            "metadata" => &["169.254.169.254"],
            "unique" => &["fd00:ec2::254"],
            "mixed6" => &["8.8.8.8", "::1"],
            // The first look is at the registration. No block of 2d00::/8 is given to anybody yet.
            "rebinding" | "rebinding-mixed" if before == 0 => &["2d00::1"],
            "rebinding" => &["127.0.0.1"],
            "rebinding-mixed" => &["8.8.8.8", "127.0.0.1"],
            "later" if before > 0 => &["127.0.0.1"],
            _ => &[],
        };
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    });
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |private: &str, arguments: &[&str]| {
        let mut command = highwater(&data, NOWHERE, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", private);
        command.env("HIGHWATER_WEBHOOKS__NAMESERVER", names.address.to_string());
        command
    };
    let key = stdout(command("false", &["keys", "mint", "--tier", "business"])).trim().to_owned();
    let server = Server::ready(command("false", &["serve"]));
    let mut report = Vec::new();
    let forms = [
        "http://example.com/",
        "https://127.0.0.1:PORT/",
        "https://2130706433:PORT/",
        "https://0x7f000001:PORT/",
        "https://0177.0.0.1:PORT/",
        "https://0x7f.1:PORT/",
        "https://127.1:PORT/",
        "https://1\u{ff12}7.0.0.1:PORT/",
        "https://\u{2460}27.0.0.1:PORT/",
        "https://127.0.0.1.:PORT/",
        "https://localhost:PORT/",
        "https://LOCALHOST.:PORT/",
        "https://a.localhost:PORT/",
        "https://intranet:PORT/",
        "https://printer.local:PORT/",
        "https://db.internal:PORT/",
        "https://x.home.arpa:PORT/",
        "https://0.0.0.0:PORT/",
        "https://10.0.0.1/",
        "https://172.31.0.1/",
        "https://192.168.1.1/",
        "https://100.64.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://192.0.0.1/",
        "https://198.18.0.1/",
        "https://224.0.0.1/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://[::1]:PORT/",
        "https://[::]:PORT/",
        "https://[::ffff:127.0.0.1]:PORT/",
        "https://[::ffff:7f00:1]:PORT/",
        "https://[::127.0.0.1]:PORT/",
        "https://[64:ff9b::7f00:1]:PORT/",
        "https://[64:ff9b:1::1]/",
        "https://[2002:7f00:1::]:PORT/",
        "https://[2001:db8::1]/",
        "https://[2001::1]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1]/",
        "https://[fe80::1%25eth0]/",
        "https://[ff02::1]/",
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://example.com@127.0.0.1:PORT/",
        "https://127.0.0.1:PORT\\@example.com/",
        "https://example.com#@127.0.0.1/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:PORT/",
        "https://",
        "https:///x",
        "//127.0.0.1/",
        "https://exa mple.com/",
        "https://example.com\t/",
        "https://exam\u{0}ple.com/",
    ];
    for form in forms {
        let url = form.replace("PORT", &port.to_string());
        let answer = server.send("POST", "/recalls/api/webhook", &key, &json!({"webhook_url": url}).to_string());
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, said["parameter"].as_str()), (400, Some("webhook_url")), "{url:?}: {said}");
        report.push(format!("{form:?}: {}", said["detail"].as_str().unwrap()));
    }
    let register = |server: &Server, name: &str| {
        let url = format!("https://{name}.highwater-canary.com:{port}/in");
        let answer = server.send("POST", "/recalls/api/webhook", &key, &json!({"webhook_url": url}).to_string());
        (answer.status, serde_json::from_slice::<Value>(&answer.body).unwrap())
    };
    let ping = |server: &Server, id: &str| -> Value {
        let answer = server.send("POST", &format!("/recalls/api/webhook/{id}/ping"), &key, "{}");
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap()
    };
    for name in ["inside", "mixed", "inside6", "mapped", "translated", "metadata", "unique", "mixed6"] {
        let (status, said) = register(&server, name);
        assert_eq!((status, said["parameter"].as_str()), (400, Some("webhook_url")), "{name}: {said}");
        report.push(format!("{name}: {}", said["detail"].as_str().unwrap()));
    }
    let mut ids = Vec::new();
    for name in ["rebinding", "rebinding-mixed", "later"] {
        let (status, made) = register(&server, name);
        assert_eq!(status, 201, "{name}: {made}");
        let id = made["id"].as_str().unwrap().to_owned();
        for _ in 0..2 {
            let said = ping(&server, &id);
            assert_eq!((said["taken"].as_bool(), said["status"].as_u64()), (Some(false), Some(0)), "{name}: {said}");
            let reason = said["reason"].as_str().unwrap();
            assert!(reason.contains("public addresses") && !reason.contains("127.0.0.1"), "{name}: {said}");
            report.push(format!("{name}: {reason}"));
        }
        ids.push(id);
    }
    let came = || canary.accept().is_ok();
    assert!(!came(), "nothing came");
    assert_eq!(server.terminate().code(), Some(0));
    println!("{}", report.join("\n"));

    // The listener hears who comes.
    let server = Server::ready(command("true", &["serve"]));
    assert_eq!(ping(&server, &ids[0])["taken"], false, "it speaks no TLS");
    assert!(came(), "the name leads there");
}

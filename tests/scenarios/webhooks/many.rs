//! Many messages while their senders are killed and paused: none is lost, each is the same each time, and each target has them in order.
//!
//! `WEBHOOK_DELIVERIES` sets how many messages at least, `WEBHOOK_KILLS` how often a sender is struck, `WEBHOOKS_SEED` by what chance.

use std::process::Command;
use std::time::{Duration, Instant};

use schemas::clock::Clock;
use serde_json::json;

use super::receiver::Receiver;
use super::{Followed, RECALLS_PLACE};
use crate::chance::{Chance, number, seed};
use crate::cluster::Cluster;
use crate::engine::Played;
use crate::process::{Server, highwater, stdout, wait_for};

/// The upstreams of the recalls, of each of which every target is told.
const UPSTREAMS: [&str; 4] = ["cpsc", "fsis", "nhtsa", "openfda"];
/// Recalls at the beginning, and changes in a round.
const RECALLS: u64 = 200;
const CHANGES: u64 = 100;
/// Pauses of a node, in seconds: shorter and longer than its lease lasts.
const PAUSES_S: [u64; 3] = [1, 10, 18];

/// What is asked of a run.
struct Asked {
    targets: u64,
    recalls: usize,
    kills: u64,
}

impl Asked {
    fn new() -> Self {
        let deliveries = number("WEBHOOK_DELIVERIES").unwrap_or(600);
        // 200 is what the tier may have.
        let targets = (deliveries / 50).clamp(12, 200);
        Self { targets, recalls: usize::try_from(deliveries / targets).unwrap() + 1, kills: number("WEBHOOK_KILLS").unwrap_or(2) }
    }
}

/// Has many messages sent by servers that `strike` strikes; any of them can be asked. Answers how that went.
fn deliver(
    played: &Played,
    seed: u64,
    command: impl Fn(&[&str]) -> Command,
    nodes: &mut Vec<Server>,
    mut strike: impl FnMut(&mut Vec<Server>, &mut Chance),
) -> String {
    let Asked { targets, recalls, kills } = Asked::new();
    let (mut chance, begun) = (Chance(seed), Instant::now());
    let ingest = || UPSTREAMS.iter().for_each(|upstream| drop(stdout(command(&["ingest", upstream, "--once"]))));
    ingest();
    let key = stdout(command(&["keys", "mint", "--tier", "business"])).trim().to_owned();
    // Some are refused now and then; two take nothing.
    let receiver = Receiver::open(|path, before| if path == "never" || path == "deleted" || before % 97 == 3 { 503 } else { 204 });
    let follow = |path: &str| Followed::begin(&nodes[0], &key, &receiver, path, RECALLS_PLACE, json!({}));
    let (never, deleted) = (follow("never"), follow("deleted"));
    let all: Vec<Followed> = (2..targets).map(|at| follow(&format!("target-{at}"))).collect();

    // Both wait for another try; one of them is deleted meanwhile.
    played.sim.advance(CHANGES);
    ingest();
    wait_for("both to be refused", || (!receiver.got("never").is_empty() && !receiver.got("deleted").is_empty()).then_some(()));
    assert_eq!(nodes[0].send("DELETE", &deleted.at(""), &key, "").status, 200);
    let to_deleted = receiver.got("deleted").len();

    let mut expected = Vec::new();
    let (mut rounds, mut struck) = (0, 0);
    while expected.len() < recalls {
        played.sim.advance(CHANGES);
        ingest();
        expected = all[0].expected(&nodes[0], &key);
        rounds += 1;
        assert!(rounds < 10_000, "{} of {recalls} recalls are new", expected.len());
        // Strikes are spread over all messages, and come somewhere among those of their round.
        let (share, to_come) = (expected.len().min(recalls), all.len() * expected.len());
        while struck < kills * share as u64 / recalls as u64 {
            let came = receiver.taken_count();
            let goal = came + usize::try_from(chance.below((to_come - came).max(1) as u64)).unwrap() / 2;
            wait_for("messages", || (receiver.taken_count() >= goal).then_some(()));
            strike(nodes, &mut chance);
            struck += 1;
        }
        // As many as could be waiting otherwise would not be waited for.
        let mut came = receiver.taken_count();
        while came < to_come {
            came = wait_for("more messages", || Some(receiver.taken_count()).filter(|now| *now > came));
        }
    }
    let to_all = || all.iter().map(|target| receiver.got(&target.path).len()).sum::<usize>();
    let mut repeats = 0;
    for target in &all {
        // A message comes at a time: the last one ends what is expected.
        let came = wait_for("all of them", || Some(target.taken(&receiver)).filter(|told| told.len() >= expected.len()));
        assert_eq!(came, expected, "{}", target.path);
        repeats += receiver.got(&target.path).iter().filter(|got| got.status == 204).count() - expected.len();
    }
    // A rebuild of all views beside whoever sends; what is posted for somebody afterwards is all that comes.
    let before = to_all();
    stdout(command(&["replay", "all"]));
    let pinged = nodes[0].send("POST", &all[0].at("/ping"), &key, "{}");
    assert_eq!((pinged.status, to_all()), (200, before + 1));
    wait_for("another two tries", || (receiver.got("never").len() >= 3).then_some(()));
    assert_eq!(receiver.got("deleted").len(), to_deleted, "what waits for a target that is deleted is not sent");
    let stands = nodes[0].json(&never.at("/deliveries"), &key);
    assert_eq!((&stands["state"], &stands["status"]), (&json!("claimed"), &json!(503)), "{stands}");
    let messages = all.len() * expected.len();
    format!("{messages} messages, {repeats} of them twice, {struck} strikes, {:.0} s", begun.elapsed().as_secs_f64())
}

/// Proves it of the embedded pair, whose process is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_of_the_embedded_pair() {
    let played = Played::start(81, RECALLS, Clock::System).await;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| {
        let mut command = highwater(&data, &played.base_url, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let mut nodes = vec![Server::ready(command(&["serve"]))];
    let seed = seed("WEBHOOKS_SEED");
    println!("WEBHOOKS_SEED={seed}");
    let went = deliver(&played, seed, command, &mut nodes, |nodes, _| {
        nodes.pop().unwrap().kill();
        nodes.push(Server::ready(command(&["serve"])));
    });
    println!("{went}");
    for node in nodes {
        assert_eq!(node.terminate().code(), Some(0));
    }
}

/// Proves it of two nodes on Kafka and CQL, each of which may send: either is killed, or paused until the other has taken over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_on_servers() {
    let played = Played::start(82, RECALLS, Clock::System).await;
    let Some(cluster) = Cluster::new("many messages", &played.base_url, "") else { return };
    let command = |node: &str, arguments: &[&str]| {
        let mut command = cluster.command(node, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let project = Server::start(command("p1", &["serve", "--role", "project"]));
    let names = ["a1", "a2"];
    let start = |node: usize| Server::ready(command(names[node], &["serve", "--role", "api"]));
    let mut nodes = vec![start(0), start(1)];
    let sends = |node: &Server| {
        let (_, shown) = node.get("/metrics", "")?;
        String::from_utf8(shown).unwrap().lines().any(|line| line == "api_webhook_senders 1").then_some(())
    };
    let seed = seed("WEBHOOKS_SEED");
    println!("WEBHOOKS_SEED={seed}");
    let went = deliver(
        &played,
        seed,
        |arguments| command("i1", arguments),
        &mut nodes,
        |nodes, chance| {
            // The one that sends, three times of four.
            let sender = wait_for("a sender", || nodes.iter().position(|node| sends(node).is_some()));
            let at = if chance.below(4) == 0 { 1 - sender } else { sender };
            if chance.below(2) == 0 {
                nodes.remove(at).kill();
                nodes.insert(at, start(at));
            } else {
                nodes[at].signal("STOP");
                let (paused, length) = (Instant::now(), Duration::from_secs(chance.of(&PAUSES_S)));
                wait_for("the end of a pause", || (paused.elapsed() >= length).then_some(()));
                nodes[at].signal("CONT");
            }
        },
    );
    println!("{went}");
    for node in nodes.into_iter().chain([project]) {
        assert_eq!(node.terminate().code(), Some(0));
    }
}

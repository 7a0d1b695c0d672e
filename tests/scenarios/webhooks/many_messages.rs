//! Many messages while their senders are killed and paused: none is lost, each is identical in every attempt, and each target gets them in
//! order.
//!
//! `WEBHOOK_DELIVERIES` sets the minimal number of messages, `WEBHOOK_KILLS` the number of faults, and `WEBHOOKS_SEED` the random choices.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::receiver::Receiver;
use super::{RECALLS_ENDPOINT, Target};
use crate::cluster::Cluster;
use crate::engine::{SimulatedUpstreams, moving_clock};
use crate::process::{Server, highwater, stdout, wait_for, with_services};
use crate::random::{Random, number, seed};

/// The upstreams of the recalls; every target gets the changes of all of them.
const UPSTREAMS: [&str; 4] = ["cpsc", "fsis", "nhtsa", "openfda"];
/// Recalls at the beginning, and changes in a round.
const RECALLS: u64 = 200;
const CHANGES: u64 = 100;
/// Pauses of a node, in seconds: shorter and longer than its lease.
const PAUSES_S: [u64; 3] = [1, 10, 18];

/// The parameters of a run.
struct Parameters {
    targets: u64,
    recalls: usize,
    kills: u64,
}

impl Parameters {
    fn new() -> Self {
        let deliveries = number("WEBHOOK_DELIVERIES").unwrap_or(600);
        // 200 is the limit of the tier.
        let targets = (deliveries / 50).clamp(12, 200);
        Self { targets, recalls: usize::try_from(deliveries / targets).unwrap() + 1, kills: number("WEBHOOK_KILLS").unwrap_or(2) }
    }
}

/// Delivers many messages while `inject_fault` kills or pauses the senders; reads can use any of `nodes`. Returns a summary.
fn deliver(
    simulated: &SimulatedUpstreams,
    seed: u64,
    command: impl Fn(&[&str]) -> Command,
    nodes: &mut Vec<Server>,
    mut inject_fault: impl FnMut(&mut Vec<Server>, &mut Random),
) -> String {
    let Parameters { targets, recalls, kills } = Parameters::new();
    let (mut random, started) = (Random(seed), Instant::now());
    let ingest = || UPSTREAMS.iter().for_each(|upstream| drop(stdout(command(&["ingest", upstream, "--once"]))));
    ingest();
    let key = stdout(command(&["keys", "mint", "--tier", "business"])).trim().to_owned();
    // Some messages are refused at first; two targets accept nothing.
    let receiver = Receiver::open(|path, before| if path == "never" || path == "deleted" || before % 97 == 3 { 503 } else { 204 });
    let register = |path: &str| Target::register(&nodes[0], &key, &receiver, path, RECALLS_ENDPOINT, json!({}));
    let (never, deleted) = (register("never"), register("deleted"));
    let all: Vec<Target> = (2..targets).map(|at| register(&format!("target-{at}"))).collect();

    // Both have a retry pending; one of them is deleted meanwhile.
    simulated.sim.advance(CHANGES);
    ingest();
    wait_for("both to be refused", || (!receiver.messages("never").is_empty() && !receiver.messages("deleted").is_empty()).then_some(()));
    assert_eq!(nodes[0].send("DELETE", &deleted.at(""), &key, "").status, 200);
    let to_deleted = receiver.messages("deleted").len();

    let mut expected = Vec::new();
    let (mut rounds, mut faults) = (0, 0);
    while expected.len() < recalls {
        simulated.sim.advance(CHANGES);
        ingest();
        expected = all[0].expected(&nodes[0], &key);
        rounds += 1;
        assert!(rounds < 10_000, "{} of {recalls} expected recalls were created", expected.len());
        // Faults are spread over all messages, and occur during the deliveries of their round.
        let (share, to_come) = (expected.len().min(recalls), all.len() * expected.len());
        while faults < kills * share as u64 / recalls as u64 {
            let accepted = receiver.accepted_count();
            let goal = accepted + usize::try_from(random.below((to_come - accepted).max(1) as u64)).unwrap() / 2;
            wait_for("messages", || (receiver.accepted_count() >= goal).then_some(()));
            inject_fault(nodes, &mut random);
            faults += 1;
        }
        // No more messages than are still missing.
        let mut accepted = receiver.accepted_count();
        while accepted < to_come {
            accepted = wait_for("more messages", || Some(receiver.accepted_count()).filter(|now| *now > accepted));
        }
    }
    let to_all = || all.iter().map(|target| receiver.messages(&target.path).len()).sum::<usize>();
    let mut repeats = 0;
    for target in &all {
        // A target gets one message at a time, so that the last one is the end.
        let accepted = wait_for("all messages", || Some(target.accepted(&receiver)).filter(|messages| messages.len() >= expected.len()));
        assert_eq!(accepted, expected, "{}", target.path);
        repeats += receiver.messages(&target.path).iter().filter(|message| message.status == 204).count() - expected.len();
    }
    // Rebuilds all views while the sender runs; only the messages that are posted afterwards may be delivered.
    let before = to_all();
    stdout(command(&["replay", "all"]));
    let pinged = nodes[0].send("POST", &all[0].at("/ping"), &key, "{}");
    assert_eq!((pinged.status, to_all()), (200, before + 1));
    wait_for("two more attempts", || (receiver.messages("never").len() >= 3).then_some(()));
    assert_eq!(receiver.messages("deleted").len(), to_deleted, "a message was sent to a deleted target");
    let state = nodes[0].json(&never.at("/deliveries"), &key);
    assert_eq!((&state["state"], &state["status"]), (&json!("waiting"), &json!(503)), "{state}");
    let messages = all.len() * expected.len();
    format!("{messages} messages, {repeats} duplicates, {faults} faults, {:.0} s", started.elapsed().as_secs_f64())
}

/// Proves that an embedded sender whose process is killed delivers all messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_sender_delivers_all_messages() {
    let simulated = SimulatedUpstreams::start(81, RECALLS, moving_clock()).await;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| {
        let mut command = highwater(&data, &simulated.base_url, arguments);
        with_services(&mut command, &["recalls"]).env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let mut nodes = vec![Server::ready(command(&["serve"]))];
    let seed = seed("WEBHOOKS_SEED", 1);
    let went = deliver(&simulated, seed, command, &mut nodes, |nodes, _| {
        nodes.pop().unwrap().kill();
        nodes.push(Server::ready(command(&["serve"])));
    });
    println!("{went}");
    for node in nodes {
        assert_eq!(node.terminate().code(), Some(0));
    }
}

/// Proves that two nodes on Kafka and CQL, each of which may send, deliver all messages: either one is killed, or paused until the other
/// takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_delivers_all_messages() {
    let simulated = SimulatedUpstreams::start(82, RECALLS, moving_clock()).await;
    let Some(cluster) = Cluster::new("many messages", &simulated.base_url, "") else { return };
    let command = |node: &str, arguments: &[&str]| {
        let mut command = cluster.command(node, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let project = Server::start(command("p1", &["serve", "--role", "project"]));
    let names = ["a1", "a2"];
    let start = |node: usize| Server::ready(command(names[node], &["serve", "--role", "api"]));
    let mut nodes = vec![start(0), start(1)];
    let sends = |node: &Server| node.metrics()?.lines().any(|line| line == "api_webhook_senders 1").then_some(());
    let seed = seed("WEBHOOKS_SEED", 1);
    let went = deliver(
        &simulated,
        seed,
        // Commands run in the projector: a process of its own opens everything for each of them.
        |arguments| command("p1", arguments),
        &mut nodes,
        |nodes, random| {
            // The node that sends, in three of four cases.
            let sender = wait_for("a sender", || nodes.iter().position(|node| sends(node).is_some()));
            let at = if random.below(4) == 0 { 1 - sender } else { sender };
            if random.below(2) == 0 {
                nodes.remove(at).kill();
                nodes.insert(at, start(at));
            } else {
                nodes[at].signal("STOP");
                let (paused, length) = (Instant::now(), Duration::from_secs(random.pick(&PAUSES_S)));
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

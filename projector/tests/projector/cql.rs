//! The projector on a real CQL node: the same records and pages as on the embedded store, and replays by another process than the
//! decider's.

use std::sync::Arc;
use std::time::Duration;

use projector::rebuild::{self, Progress};
use projector::runtime::Projector;
use projector::runtime::projected;
use recalls::rules::Recalls;
use schemas::position::Seq;
use schemas::views::recalls::VIEW;
use scylla_store::{Options, ScyllaStore};
use tokio::sync::{Mutex, watch};
use view_store::ViewStore;

use crate::harness::{Content, Engine, recall};
use crate::interference::feed;
use crate::order::sample_facts;

/// The longest time that a step may take. It is a guard against hangs only: a busy machine is slow.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// Returns a node's address, or ends the test with a message why it did not run.
macro_rules! node {
    ($test:literal) => {
        match engines::or_skip(engines::cql(), $test) {
            Some(address) => address,
            None => return,
        }
    };
}

async fn open(address: &str, keyspace: &str) -> Arc<dyn ViewStore> {
    let options = Options { contact_points: vec![address.to_owned()], keyspace: keyspace.to_owned(), ..Options::default() };
    ScyllaStore::open(options).await.unwrap()
}

fn silent() -> Progress {
    Arc::new(|_, _| ())
}

/// Proves that the same facts give the same records, history and pages on both stores, byte for byte, also after a replay on CQL.
#[tokio::test]
async fn both_stores_hold_the_same_data() {
    let address = node!("the recalls on CQL");
    let store = open(&address, &engines::unique("recalls")).await;
    let (mut embedded, mut cql) = (Engine::new().await, Engine::on(store, tempfile::tempdir().unwrap()).await);
    for content in [sample_facts(), (0..300).map(observed).collect(), (0..60).map(|number| observed(number * 3)).collect()] {
        embedded.append_and_decide(&content).await;
        cql.append_and_decide(&content).await;
    }
    let mut found = Vec::new();
    for engine in [&embedded, &cql] {
        let digests = [false, true].map(|history| rebuild::digest::<Recalls>(&**engine.decider.view(), history, None));
        let [current, history] = digests;
        found.push((current.await.unwrap(), history.await.unwrap(), feed(&engine.decider).await, engine.decider.checkpoint().clone()));
    }
    assert!(found[0].3.seq > Seq(300));
    assert_eq!(found[0], found[1]);
    let fresh = cql.second_decider().await;
    let live = Mutex::new(std::mem::replace(&mut cql.decider, fresh));
    rebuild::replay(&cql.parts(), &live, &silent()).await.unwrap();
    let decider = live.into_inner();
    assert_eq!((decider.view().generation(), decider.checkpoint().records), (2, found[0].3.records));
    let digests = [false, true].map(|history| rebuild::digest::<Recalls>(&**decider.view(), history, None));
    let [current, history] = digests;
    assert_eq!((current.await.unwrap(), history.await.unwrap(), feed(&decider).await), (found[0].0, found[0].1, found[0].2.clone()));
}

fn observed(number: u32) -> (String, Content) {
    (
        format!("cpsc/{number}"),
        Content::Observed(recall("cpsc", "CPSC", &number.to_string(), &format!("Title {number}"), "Acme", "2026-01-01")),
    )
}

/// Proves that a projector opens the new generation after another process rebuilt the view and swapped it, and continues to decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projector_continues_after_a_swap_by_another_process() {
    let address = node!("a swap elsewhere on CQL");
    let keyspace = engines::unique("swap");
    let mut engine = Engine::on(open(&address, &keyspace).await, tempfile::tempdir().unwrap()).await;
    engine.append_and_decide(&[observed(1), observed(2)]).await;
    let running = Arc::new(Projector::open(engine.parts(), &[projected::<Recalls>()]).await.unwrap());
    let other_store = open(&address, &keyspace).await;
    let other_engine = other_store.live(&schemas::views::engine::VIEW).await.unwrap();
    let other = Projector::open(
        rebuild::Parts { store: Arc::clone(&other_store), engine: other_engine, ..engine.parts() },
        &[projected::<Recalls>()],
    )
    .await
    .unwrap();
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(Arc::clone(&running).run("running".to_owned(), stopped));
    other.service("recalls").unwrap().replay(&silent()).await.unwrap();
    let live = other_store.live(&VIEW).await.unwrap();
    assert_eq!(live.generation(), 2);
    let before = live.checkpoint().await.unwrap();
    engine.append_chained(&[observed(3)]).await;
    let after = tokio::time::timeout(HANG_TIMEOUT, live.wait_past(&before)).await.unwrap().unwrap();
    // The position may be committed before the change.
    let decided = async {
        let mut at = after;
        while at.seq < Seq(3) {
            at = live.wait_past(&at).await.unwrap();
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, decided).await.unwrap();
    stop.send(true).unwrap();
    task.await.unwrap();
}

//! Quotas under many callers and clocks: never exceeded, never forfeited by a clean stop.

use tempfile::TempDir;
use view_store::EmbeddedStore;
use view_store::embedded::Options;

use super::*;

const DAY_MS: i64 = 86_400_000;
const HUNDRED: Window = Window { name: "day", length_s: 86_400, calls_max: 100 };

fn open(dir: &TempDir) -> Arc<dyn ViewStore> {
    EmbeddedStore::open(dir.path(), Options::default()).unwrap()
}

async fn spend_all(quotas: &Quotas, store: &Arc<dyn ViewStore>, window: Window) -> i64 {
    let mut served = 0;
    while quotas.spend(store, "key_a", window, DAY_MS).await.unwrap().allowed {
        served += 1;
    }
    served
}

/// Proves that one node allows exactly the quota, counts it down one by one to 0, and starts again on the next day.
#[tokio::test]
async fn exactly_the_quota() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let quotas = Quotas::default();
    for call in 1..=100 {
        let spent = quotas.spend(&store, "key_a", HUNDRED, DAY_MS + 1).await.unwrap();
        assert_eq!(spent, Spent { allowed: true, remaining: 100 - call, reset_s: 86_400 }, "{call}");
    }
    for _ in 0..3 {
        let spent = quotas.spend(&store, "key_a", HUNDRED, 2 * DAY_MS - 1_500).await.unwrap();
        assert_eq!(spent, Spent { allowed: false, remaining: 0, reset_s: 2 });
    }
    assert!(quotas.spend(&store, "key_b", HUNDRED, DAY_MS + 1).await.unwrap().allowed);
    assert_eq!(quotas.spend(&store, "key_a", HUNDRED, 2 * DAY_MS).await.unwrap(), Spent { allowed: true, remaining: 99, reset_s: 86_400 });
}

/// Proves that a refunded call can be used again, that a refund for another window or an unknown subject has no effect, and that no quota grows.
#[tokio::test]
async fn calls_are_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let quotas = Quotas::default();
    quotas.unspend("key_a", HUNDRED, DAY_MS).await;
    assert_eq!(quotas.subjects_held(), 0);
    assert_eq!(spend_all(&quotas, &store, HUNDRED).await, 100);
    for _ in 0..3 {
        quotas.unspend("key_a", HUNDRED, DAY_MS).await;
    }
    quotas.unspend("key_a", HUNDRED, DAY_MS - 1).await;
    quotas.unspend("key_b", HUNDRED, DAY_MS).await;
    assert_eq!(spend_all(&quotas, &store, HUNDRED).await, 3);
    assert_eq!(quotas.spend(&store, "key_a", HUNDRED, 2 * DAY_MS).await.unwrap().remaining, 99);
}

/// Proves that 16 concurrent tasks together get exactly the quota.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exact_over_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let quotas = Arc::new(Quotas::default());
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (quotas, store) = (Arc::clone(&quotas), Arc::clone(&store));
            tokio::spawn(async move {
                let mut served = 0;
                for _ in 0..50 {
                    served += i64::from(quotas.spend(&store, "ip/192.0.2.1", HUNDRED, DAY_MS).await.unwrap().allowed);
                }
                served
            })
        })
        .collect();
    let mut served = 0;
    for task in tasks {
        served += task.await.unwrap();
    }
    assert_eq!(served, 100);
}

/// Proves that a kill loses at most one block and grants nothing, that a clean shutdown loses nothing, and that the remaining calls are right after
/// both.
#[tokio::test]
async fn a_kill_loses_at_most_one_block() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let killed = Quotas::default();
    for _ in 0..37 {
        assert!(killed.spend(&store, "key_a", HUNDRED, DAY_MS).await.unwrap().allowed);
    }
    drop(killed);
    let stopped = Quotas::default();
    let spent = stopped.spend(&store, "key_a", HUNDRED, DAY_MS).await.unwrap();
    assert_eq!((spent.allowed, spent.remaining), (true, 59));
    stopped.release_all(&store, DAY_MS).await.unwrap();
    assert_eq!(stopped.subjects_held(), 0);
    let last = Quotas::default();
    let spent = last.spend(&store, "key_a", HUNDRED, DAY_MS).await.unwrap();
    assert_eq!((spent.allowed, spent.remaining), (true, 58));
    assert_eq!(spend_all(&last, &store, HUNDRED).await, 58);
}

/// Proves that two nodes together never exceed the quota and use all of it, and that one node uses what the other returned.
#[tokio::test]
async fn two_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    for quota in [1, 3, 7, 100, 1_000, 6_007] {
        let window = Window { calls_max: quota, ..HUNDRED };
        let (one, two) = (Quotas::default(), Quotas::default());
        let subject = format!("key_{quota}");
        let mut served = 0;
        for turn in 0..quota * 2 {
            let node = if turn % 3 == 0 { &one } else { &two };
            served += i64::from(node.spend(&store, &subject, window, DAY_MS).await.unwrap().allowed);
        }
        one.release_all(&store, DAY_MS).await.unwrap();
        two.release_all(&store, DAY_MS).await.unwrap();
        let third = Quotas::default();
        while third.spend(&store, &subject, window, DAY_MS).await.unwrap().allowed {
            served += 1;
        }
        assert_eq!(served, quota);
    }
}

/// Proves that subjects beyond the limit return their blocks, so that none of their calls is lost.
#[tokio::test]
async fn bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let quotas = Quotas::new(10);
    for round in 0..4 {
        for subject in 0..30 {
            let spent = quotas.spend(&store, &format!("ip/{subject}"), HUNDRED, DAY_MS).await.unwrap();
            assert!(spent.allowed, "{round}");
            assert!(quotas.subjects_held() <= 10);
        }
    }
    quotas.release_all(&store, DAY_MS).await.unwrap();
}

/// Proves which subject an address counts as.
#[test]
fn subjects_of_addresses() {
    let subject = |text: &str| address_subject(text.parse().unwrap());
    assert_eq!(subject("192.0.2.7"), "ip/192.0.2.7");
    assert_eq!(subject("::ffff:192.0.2.7"), "ip/192.0.2.7");
    assert_eq!(subject("2001:db8:1:2:3::1"), subject("2001:db8:1:2:ffff::9"));
    assert_ne!(subject("2001:db8:1:2::1"), subject("2001:db8:1:3::1"));
}

/// Proves that looking at a quota uses no call, on a node that has leased none, between calls, and when the quota is used up.
#[tokio::test]
async fn looking_uses_no_call() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let quotas = Quotas::default();
    for _ in 0..3 {
        let left = quotas.look(&store, "key_a", HUNDRED, DAY_MS + 1).await.unwrap();
        assert_eq!(left, Spent { allowed: true, remaining: 100, reset_s: 86_400 });
    }
    quotas.spend(&store, "key_a", HUNDRED, DAY_MS + 1).await.unwrap();
    assert_eq!(quotas.look(&store, "key_a", HUNDRED, DAY_MS + 1).await.unwrap().remaining, 99);
    assert_eq!(spend_all(&quotas, &store, HUNDRED).await, 99);
    assert_eq!(quotas.look(&store, "key_a", HUNDRED, DAY_MS).await.unwrap(), Spent { allowed: false, remaining: 0, reset_s: 86_400 });
}

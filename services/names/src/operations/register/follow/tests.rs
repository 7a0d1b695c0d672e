//! The snapshot of the index: a restart begins with it, and one that cannot be used is built again from the feed.

use std::fs;

use feed::testing::World;
use marks::{Classes, Mark};

use super::*;
use crate::operations::register::Register;
use crate::record::TABLES;

/// The mark in the feed.
const RECORDED: &str = "VELTRAXON";
/// The mark in a snapshot that the tests write themselves. It is in no feed, so an index that has it began with that snapshot.
const IN_SNAPSHOT: &str = "MORVANDA";

/// A view with one change, which records a mark.
async fn world() -> World {
    let world = World::new().await;
    let record = Trademark { mark: RECORDED.into(), status: LIVE.into(), ..Trademark::default() };
    world.fill_records(&TABLES, &[Trademark { id: "97000001".into(), serial: "97000001".into(), ..record }]).await;
    world
}

/// Follows the feed as a process does after its start, until checks see the change of the view, and returns what they see then.
async fn follow_until_shown(world: &World, dir: &Path) -> Arc<Index> {
    let register = Arc::new(Register::default());
    let following = tokio::spawn(Arc::clone(&register).follow(world.store.clone(), Some(dir.to_owned())));
    register.follower.wait_shown(Seq(1)).await;
    following.abort();
    register.index().unwrap()
}

/// An index up to a change whose only mark is [`IN_SNAPSHOT`].
fn other_index(seq: u32, origin: u64) -> Index {
    let entry = ComparedMark { text: IN_SNAPSHOT.into(), pseudo_marks: Vec::new(), classes: Classes::of(&[9]), is_live: true };
    let change = Change { seq: 1, serial: 97_000_002, is_new: true, was_live: false, after: Some(entry) };
    Index::default().apply(vec![change], seq, origin)
}

/// Whether an index has the marks [`RECORDED`] and [`IN_SNAPSHOT`].
fn marks_in(index: &Index) -> [bool; 2] {
    [RECORDED, IN_SNAPSHOT].map(|mark| !index.find(&Mark::new(mark).unwrap(), index.seq()).is_empty())
}

/// Proves that a snapshot that was saved has the marks and the position of the index, and that a restart begins with the snapshot and does not read again what
/// is in it.
#[tokio::test]
async fn a_restart_begins_with_the_snapshot() {
    let world = world().await;
    let dir = world.dir.path().join("cache");
    let built = follow_until_shown(&world, &dir).await;
    assert_eq!(marks_in(&built), [true, false]);
    save(&built, &dir);
    let saved = load(&dir);
    assert_eq!((saved.seq(), saved.origin(), saved.versions(), marks_in(&saved)), (1, built.origin(), 1, [true, false]));
    write(&other_index(1, built.origin()), &dir).unwrap();
    assert_eq!(marks_in(follow_until_shown(&world, &dir).await.as_ref()), [false, true]);
}

/// Proves that a snapshot of another log, of a log with more changes, with a wrong byte or without its end is not used: the index is built again.
#[tokio::test]
async fn a_snapshot_that_cannot_be_used_is_built_again() {
    let world = world().await;
    let dir = world.dir.path().join("cache");
    let origin = follow_until_shown(&world, &dir).await.origin();
    let intact: fn(&mut Vec<u8>) = |_| {};
    let changed: fn(&mut Vec<u8>) = |bytes| bytes[100] ^= 1;
    let cut: fn(&mut Vec<u8>) = |bytes| bytes.truncate(bytes.len() - 1);
    for (what, seq, origin, damage) in [
        ("another log", 1, !origin, intact),
        ("more changes", 2, origin, intact),
        ("a wrong byte", 1, origin, changed),
        ("cut", 1, origin, cut),
    ] {
        write(&other_index(seq, origin), &dir).unwrap();
        let file = dir.join(FILE);
        let mut bytes = fs::read(&file).unwrap();
        damage(&mut bytes);
        fs::write(&file, bytes).unwrap();
        assert_eq!(marks_in(follow_until_shown(&world, &dir).await.as_ref()), [true, false], "{what}");
    }
}

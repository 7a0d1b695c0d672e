//! Lists of values over the view of things.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::position::position;
use crate::testing::Chance;
use crate::things::{LARGE, SMALL, Thing, Things};

/// The name of a thing, and how many names were made.
struct Name(String);

static MADE: AtomicUsize = AtomicUsize::new(0);

impl Derived<Thing> for Name {
    fn of(record: Thing) -> Self {
        MADE.fetch_add(1, Ordering::Relaxed);
        Self(record.name)
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

/// The size of a thing. Its bytes are those that a test sets, so that few of them are too many.
struct Size(i64);

impl Derived<Thing> for Size {
    fn of(record: Thing) -> Self {
        Self(record.size)
    }

    fn bytes(&self) -> u64 {
        self.0.unsigned_abs()
    }
}

async fn at_seq(ctx: &Context, feed: &Feed, seq: Seq) -> Position {
    Position { seq, ..position(ctx, &feed.source, None).await.unwrap() }
}

fn thing(n: usize, kind: &str, name: &str) -> Thing {
    Thing { id: format!("thing/{n:05}"), kind: kind.into(), name: name.into(), size: 20 }
}

/// Proves that a value is made once of each version of a record, however many lists it is in and whatever else changes; that a record which leaves a list or
/// comes to it is seen at once; that changes which the feed does not show drop nothing; and that earlier positions have the versions of then.
#[tokio::test]
async fn values_are_made_once() {
    let mut things = Things::new(&LARGE).await;
    for n in 0..3 {
        things.change(&thing(n, "a", "old"));
    }
    things.commit().await;
    let earlier = things.checkpoint.seq;
    let (ctx, feed) = (things.context(), things.feed(None));
    let names = async |seq: Seq, list: &str| {
        let at = at_seq(&ctx, &feed, seq).await;
        let found = feed.derived_list::<Thing, Name>(&ctx, &at, (list, 2)).await.unwrap();
        let names: Vec<String> = found.iter().map(|name| name.0.clone()).collect();
        (names.join(" "), MADE.swap(0, Ordering::Relaxed))
    };
    let expected = |names: &str, made: usize| (names.to_owned(), made);
    assert_eq!(names(earlier, "all").await, expected("old old old", 3));
    assert_eq!(names(earlier, "all").await, expected("old old old", 0));
    assert_eq!(names(earlier, "kind/a").await, expected("old old old", 0), "the same records in another list");
    assert_eq!(names(earlier, "kind/none").await, expected("", 0));

    things.change(&thing(1, "b", "new"));
    things.hidden();
    things.commit().await;
    let now = things.checkpoint.seq;
    assert_eq!(names(now, "all").await, expected("old new old", 1));
    assert_eq!(names(now, "kind/a").await, expected("old old", 0));
    assert_eq!(names(now, "kind/b").await, expected("new", 0));
    assert_eq!(names(earlier, "all").await, expected("old old old", 1), "only the version that is not current is made again");
    assert_eq!(names(now, "all").await, expected("old new old", 0));

    things.hidden();
    things.change(&thing(7, "b", "more"));
    things.commit().await;
    assert_eq!(names(things.checkpoint.seq, "kind/b").await, expected("new more", 1));
}

/// Proves that a list goes with a change of its record, although two calls made the value of the record at the same time.
#[test]
fn values_that_were_made_twice_leave_no_list() {
    let (all, own): ((String, i64), [String; 1]) = (("all".to_owned(), 2), ["thing/1".to_owned()]);
    let list_after = |of_list: usize, made: [usize; 2]| {
        let (catalog, values) = (Catalog::<u32>::new(10_000), [Arc::new(7), Arc::new(7)]);
        catalog.advance(None, Seq(1), None);
        let add = |value: usize| {
            let made = Made { seq: Seq(1), bytes: 1, value: Arc::clone(&values[value]) };
            catalog.add_values(Seq(1), vec![(own[0].clone(), made)]);
        };
        add(made[0]);
        catalog.add_list(Seq(1), all.clone(), &own, &Arc::new(vec![Arc::clone(&values[of_list])]));
        add(made[1]);
        let is_kept = catalog.list(Seq(1), &all).is_some();
        catalog.advance(Some(Seq(1)), Seq(2), Some(Touched { ids: own.clone().into(), lists: HashSet::new() }));
        (is_kept, catalog.list(Seq(2), &all).is_some())
    };
    assert_eq!((list_after(0, [0, 1]), list_after(1, [0, 1])), ((true, false), (false, false)));
}

/// Proves that lists are those of their records at any position, also while values are dropped because they need more bytes than are kept.
#[tokio::test]
async fn lists_follow_their_records() {
    let (mut things, mut chance) = (Things::filled(&SMALL, 41, 300).await, Chance(42));
    let (ctx, feed) = (things.context(), things.feed(None));
    for _ in 0..20 {
        things.fill(&mut chance, 30).await;
        for seq in [things.checkpoint.seq, Seq(chance.below(200) as u64), things.checkpoint.seq] {
            let at = at_seq(&ctx, &feed, seq).await;
            // The catalog of so few bytes takes the place of the usual one.
            let catalog = Feeds::of(&ctx).cached_for(&feed.source, &*at.view, || Catalog::<Size>::new(20_000));
            for bucket in [0, 3, 9] {
                let mut expected: Vec<(i64, &str)> = things.standing(seq).into_iter().map(|(id, thing)| (thing.size, id)).collect();
                expected.retain(|(size, _)| size / 10 == bucket && *size < 95);
                expected.sort_unstable();
                let found = feed.derived_list::<Thing, Size>(&ctx, &at, ("all", bucket)).await.unwrap();
                let sizes = |list: &[Arc<Size>]| list.iter().map(|size| size.0).collect::<Vec<_>>();
                assert_eq!(sizes(&found), expected.iter().map(|(size, _)| *size).collect::<Vec<_>>(), "bucket {bucket} at {seq}");
            }
            let state = catalog.state();
            let values: u64 = state.values.values().map(|made| made.bytes).sum();
            let lists: u64 = state.lists.iter().map(|((list, _), values)| bytes_of_list(list, values)).sum();
            assert_eq!(state.bytes, values + lists);
            assert!(state.bytes <= 20_000, "{}", state.bytes);
        }
    }
}

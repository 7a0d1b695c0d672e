//! Followers over the view of recalls, with a structure of titles.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::views::recalls::{FEED, Recall, VIEW};
use serde::Deserialize;

use super::*;
use crate::testing::{HOUR_MS, START_MS, World};

/// The titles of recalls by the changes that recorded them, and how many changes were added at once. A structure with `KEPT` remains in other generations.
#[derive(Clone, Default)]
struct Titles<const KEPT: bool> {
    titles: BTreeMap<Seq, String>,
    batches: Vec<usize>,
}

#[derive(Deserialize)]
struct Element {
    record: Recall,
}

impl<const KEPT: bool> Structure for Titles<KEPT> {
    /// Counts how often a structure is begun.
    type Origin = Arc<AtomicUsize>;
    type Change = (Seq, String);

    const NAME: &'static str = "the list of titles";
    const BYTES_MAX: usize = 100;
    const BATCH_CHANGES_MAX: u64 = 2;
    const REMAINS: bool = KEPT;

    async fn begin(begun: Arc<AtomicUsize>, _: Arc<dyn View>, _: Seq) -> Result<(Self, Label), Problem> {
        begun.fetch_add(1, Ordering::Relaxed);
        Ok((Self::default(), Label::default()))
    }

    fn read(seq: Seq, element: &[u8]) -> Result<Option<(Seq, String)>, serde_json::Error> {
        let Element { record } = serde_json::from_slice(element)?;
        Ok(Some((seq, record.title)))
    }

    fn add(&mut self, changes: Vec<(Seq, String)>, _: Label, _: bool) -> Result<(), Problem> {
        self.batches.push(changes.len());
        self.titles.extend(changes);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.titles.values().map(String::len).sum()
    }

    fn clear(&mut self) -> Result<(), Problem> {
        *self = Self::default();
        Ok(())
    }

    fn unsaved_max(_: Seq) -> u64 {
        1
    }
}

/// A structure that is read from a snapshot up to a change, and cannot read any other.
#[derive(Clone)]
struct Unreadable {
    bytes: usize,
}

impl Structure for Unreadable {
    /// The bytes of the snapshot, and its last change.
    type Origin = (usize, Label);
    type Change = ();

    const NAME: &'static str = "a snapshot";
    const BYTES_MAX: usize = 100;
    const REMAINS: bool = true;

    async fn begin((bytes, saved): Self::Origin, _: Arc<dyn View>, _: Seq) -> Result<(Self, Label), Problem> {
        Ok((Self { bytes }, saved))
    }

    fn read(_: Seq, _: &[u8]) -> Result<Option<()>, serde_json::Error> {
        serde_json::from_str("")
    }

    fn add(&mut self, _: Vec<()>, _: Label, _: bool) -> Result<(), Problem> {
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Records a recall with each of some titles.
async fn record(world: &mut World, titles: &[&str]) {
    for title in titles {
        let id = format!("FDA:{:05}", world.checkpoint.seq.0);
        world.change(START_MS + world.checkpoint.seq.stored() * HOUR_MS, &Recall { id, title: (*title).to_owned(), ..Recall::default() });
    }
    world.commit().await;
}

async fn world_of(titles: &[&str]) -> World {
    let mut world = World::new().await;
    record(&mut world, titles).await;
    world
}

/// The titles of a structure, with their changes.
type Found = Result<Vec<(u64, String)>, Problem>;

/// What a structure has at a change of the live view, and how often it is begun for that.
async fn titles_at<const KEPT: bool>(follower: &Arc<Follower<Titles<KEPT>>>, world: &World, seq: Seq) -> (Found, usize) {
    let reader = FeedReader::new(Arc::clone(&world.view), &FEED, Arc::default());
    let begun = Arc::new(AtomicUsize::new(0));
    let found = follower.at(&reader, seq, &begun).await;
    let titles = found.map(|found| found.titles.iter().map(|(seq, title)| (seq.0, title.clone())).collect());
    (titles, begun.load(Ordering::Relaxed))
}

fn expected(titles: &[(u64, &str)], begun: usize) -> (Found, usize) {
    (Ok(titles.iter().map(|(seq, title)| (*seq, (*title).to_owned())).collect()), begun)
}

/// Proves that a structure is begun once, reads each change once and in batches, and passes over changes that the feed does not show.
#[tokio::test]
async fn changes_are_followed() {
    let mut world = world_of(&["one", "two", "three"]).await;
    let follower = Arc::new(Follower::<Titles<false>>::default());
    assert_eq!(titles_at(&follower, &world, Seq(3)).await, expected(&[(1, "one"), (2, "two"), (3, "three")], 1));
    world.through(START_MS + 3 * HOUR_MS, "cpsc", "2026-11-01");
    record(&mut world, &["five"]).await;
    let all = [(1, "one"), (2, "two"), (3, "three"), (5, "five")];
    for _ in 0..2 {
        assert_eq!(titles_at(&follower, &world, Seq(5)).await, expected(&all, 0));
        let (now, last) = follower.now().unwrap();
        assert_eq!((&now.batches, last), (&vec![2, 1, 1], Seq(5)));
    }
}

/// Proves that a new generation of the view has the structure begun again, unless it remains in generations of the same log.
#[tokio::test]
async fn a_new_generation_begins_again() {
    let mut world = world_of(&["one", "two"]).await;
    let (of_rows, of_changes) = (Arc::new(Follower::<Titles<false>>::default()), Arc::new(Follower::<Titles<true>>::default()));
    let both = [(1, "one"), (2, "two")];
    for begun in [1, 0] {
        assert_eq!(titles_at(&of_rows, &world, Seq(2)).await, expected(&both, begun));
        assert_eq!(titles_at(&of_changes, &world, Seq(2)).await, expected(&both, begun));
    }
    world.rebuild().await;
    record(&mut world, &["three"]).await;
    let all = [(1, "one"), (2, "two"), (3, "three")];
    assert_eq!(titles_at(&of_rows, &world, Seq(3)).await, expected(&all, 1));
    assert_eq!(titles_at(&of_changes, &world, Seq(3)).await, expected(&all, 0));
}

/// Proves that a structure that remains in generations of its log has nothing of it after it met another log, with as many changes or with fewer.
#[tokio::test]
async fn another_log_is_not_mixed_in() {
    for titles in [&["other", "log"][..], &["other"]] {
        let world = world_of(&["one", "two"]).await;
        let follower = Arc::new(Follower::<Titles<true>>::default());
        assert_eq!(titles_at(&follower, &world, Seq(2)).await, expected(&[(1, "one"), (2, "two")], 1));
        let mut other = world_of(titles).await;
        // Its generation has another number than that of the first log.
        other.rebuild().await;
        let of_other: Vec<(u64, &str)> = (1..).zip(titles.iter().copied()).collect();
        assert_eq!(titles_at(&follower, &other, other.checkpoint.seq).await, expected(&of_other, 0));
    }
}

/// Proves that readers see what a snapshot has before the changes after it are read, and nothing of a snapshot of another log or with too many bytes.
#[tokio::test]
async fn a_snapshot_is_shown_before_later_changes() {
    let world = world_of(&["one", "two"]).await;
    let reader = FeedReader::new(Arc::clone(&world.view), &FEED, Arc::default());
    let saved = Label::in_view(&reader, Seq(1)).await.unwrap().unwrap();
    let (building, too_large) = (building::<Unreadable>(), too_large::<Unreadable>());
    for (bytes, saved, problem, shown) in [
        (100, saved, unreadable(), Ok(Seq(1))),
        (101, saved, too_large.clone(), Err(too_large)),
        (100, Label { origin: saved.origin.wrapping_add(1), ..saved }, unreadable(), Err(building.clone())),
        (100, Label::default(), unreadable(), Err(building)),
    ] {
        let follower = Arc::new(Follower::<Unreadable>::default());
        assert_eq!(follower.at(&reader, Seq(2), &(bytes, saved)).await.err(), Some(problem), "{bytes} {saved:?}");
        assert_eq!(follower.now().map(|(_, last)| last), shown, "{bytes} {saved:?}");
    }
}

/// Proves that a structure which needs more bytes than it may use is refused with 503, without being begun again for each reader, until the view is replaced.
#[tokio::test]
async fn a_structure_beyond_its_bytes_is_refused() {
    let mut world = world_of(&["one"]).await;
    let follower = Arc::new(Follower::<Titles<false>>::default());
    assert_eq!(titles_at(&follower, &world, Seq(1)).await, expected(&[(1, "one")], 1));
    record(&mut world, &["x".repeat(98).as_str()]).await;
    let refused = Problem::new(ErrorCode::Unavailable, "the list of titles needs more memory than it may use").retry_after(60);
    for _ in 0..2 {
        assert_eq!(titles_at(&follower, &world, Seq(2)).await, (Err(refused.clone()), 0));
    }
    assert_eq!(follower.now().err(), Some(refused.clone()));
    world.rebuild().await;
    assert_eq!(titles_at(&follower, &world, Seq(2)).await, (Err(refused), 1));
}

/// Proves that an earlier position is answered by the structure as it is, which keeps its later changes and is not begun again.
#[tokio::test]
async fn earlier_positions_are_answered() {
    let world = world_of(&["one", "two", "three"]).await;
    let follower = Arc::new(Follower::<Titles<false>>::default());
    for (seq, begun) in [(3, 1), (2, 0)] {
        assert_eq!(titles_at(&follower, &world, Seq(seq)).await, expected(&[(1, "one"), (2, "two"), (3, "three")], begun));
    }
}

/// Proves that a structure follows its feed in the background, shows each change to those who wait for it, and is saved when enough changes wait.
#[tokio::test]
async fn a_feed_is_followed_in_the_background() {
    let mut world = world_of(&["one"]).await;
    let (follower, store) = (Arc::new(Follower::<Titles<true>>::default()), Arc::clone(&world.store));
    let own = Arc::clone(&follower);
    let following = tokio::spawn(async move { own.follow(&*store, &VIEW, &FEED, Arc::default()).await });
    follower.wait_shown(Seq(1)).await;
    record(&mut world, &["two"]).await;
    follower.wait_shown(Seq(2)).await;
    let (shown, last) = follower.now().unwrap();
    assert_eq!((shown.titles.len(), last), (2, Seq(2)));
    follower.wait_saved(Seq(2)).await;
    following.abort();
}

//! Random changes of the simulated records, and the entries that a reader should find for each change.

use simulated_world::expected_changes::{ExpectedChange, Kind};
use simulated_world::random::Random;
use simulated_world::world::{Feed, World, day_before};

use crate::{cpsc, fsis, nhtsa, openfda};

/// Applies `n` random changes and records what a reader should find.
pub fn advance(world: &mut World, n: u64, at_ms: i64) -> u64 {
    let before = world.expected.len();
    for _ in 0..n {
        world.changes += 1;
        let random = Random::new(world.seed, 77, world.changes);
        change(world, random, at_ms);
    }
    (world.expected.len() - before) as u64
}

fn change(world: &mut World, random: Random, at_ms: i64) {
    let mut point = random.below(0, 1000);
    let feed = Feed::ALL.into_iter().find(|feed| {
        let here = point < feed.share();
        point = point.saturating_sub(feed.share());
        here
    });
    let feed = feed.unwrap_or(Feed::Cpsc);
    match random.below(1, 100) {
        0..40 => birth(world, feed, at_ms),
        40..70 => edit(world, feed, random, at_ms),
        70..82 => close(world, feed, random, at_ms),
        82..93 => give_number(world, random, at_ms),
        _ => withdraw(world, if random.once_in(2, 2) { Feed::Fsis } else { Feed::Nhtsa }, random, at_ms),
    }
}

fn birth(world: &mut World, feed: Feed, at_ms: i64) {
    let index = world.len(feed);
    world.births[feed as usize].push(world.today);
    write_down(world, feed, index, Kind::New, true, at_ms);
}

/// Picks a record that readers read again: recent, and not withdrawn.
fn recent(world: &World, feed: Feed, random: Random) -> Option<u64> {
    let end = world.len(feed);
    let start = if world.edit_days == 0 { 0 } else { world.first_on(feed, day_before(world.today, i64::from(world.edit_days))) };
    // A small world may have no record that recent; its most recent ones are used.
    let start = start.min(end.saturating_sub(5));
    (10..20).map(|tag| start + random.below(tag, end - start)).find(|&index| !world.fate(feed, index).withdrawn)
}

fn edit(world: &mut World, feed: Feed, random: Random, at_ms: i64) {
    if let Some(index) = recent(world, feed, random) {
        world.fates.entry((feed, index)).or_default().edits += 1;
        write_down(world, feed, index, Kind::Modified, true, at_ms);
    }
}

fn close(world: &mut World, feed: Feed, random: Random, at_ms: i64) {
    let open = recent(world, feed, random).filter(|&index| match feed {
        Feed::Cpsc => false,
        Feed::Nhtsa => !nhtsa::is_closed(world, index),
        Feed::Fsis => !fsis::is_closed(world, index),
        Feed::Food | Feed::Drug | Feed::Device => !openfda::is_closed(world, feed, index),
    });
    let Some(index) = open else { return edit(world, feed, random, at_ms) };
    world.fates.entry((feed, index)).or_default().closed = Some(world.today);
    // At NHTSA the letters to the owners are sent, which changes the remedy; elsewhere only the status changes.
    write_down(world, feed, index, Kind::Modified, feed == Feed::Nhtsa, at_ms);
}

fn give_number(world: &mut World, random: Random, at_ms: i64) {
    let feeds = [Feed::Food, Feed::Drug, Feed::Device];
    let first = random.below(3, 3) as usize;
    for feed in (0..3).map(|step| feeds[(first + step) % 3]) {
        let start = world.first_on(feed, day_before(world.today, 60));
        let found = (start..world.len(feed)).find(|&index| !openfda::is_numbered(world, feed, index));
        if let Some(index) = found {
            write_down(world, feed, index, Kind::Superseded, true, at_ms);
            world.fates.entry((feed, index)).or_default().numbered = true;
            return write_down(world, feed, index, Kind::New, true, at_ms);
        }
    }
    edit(world, feeds[first], random, at_ms);
}

fn withdraw(world: &mut World, feed: Feed, random: Random, at_ms: i64) {
    if let Some(index) = recent(world, feed, random) {
        write_down(world, feed, index, Kind::Withdrawn, true, at_ms);
        world.fates.entry((feed, index)).or_default().withdrawn = true;
    }
}

fn write_down(world: &mut World, feed: Feed, index: u64, kind: Kind, visible: bool, at_ms: i64) {
    for mut entry in entries(world, feed, index) {
        // Only the flat file publishes complete snapshots; the other stream of NHTSA continues to show the campaign.
        if kind == Kind::Withdrawn && entry.stream == "nhtsa.socrata" {
            continue;
        }
        entry.n = world.expected.len() as u64 + 1;
        entry.kind = kind;
        entry.visible = visible;
        entry.at_ms = at_ms;
        world.expected.push(entry);
    }
}

/// Returns the facts that a record shows now, one per stream and language.
#[must_use]
pub fn entries(world: &World, feed: Feed, index: u64) -> Vec<ExpectedChange> {
    match feed {
        Feed::Cpsc => vec![cpsc::entry(world, index)],
        Feed::Food | Feed::Drug | Feed::Device => vec![openfda::entry(world, feed, index)],
        Feed::Nhtsa => nhtsa::entries(world, index),
        Feed::Fsis => fsis::entries(world, index),
    }
}

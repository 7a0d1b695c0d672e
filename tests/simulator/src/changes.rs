//! Random changes of the simulated records, and the entries that a reader should find for each change.

use crate::expected::{Entry, Kind};
use crate::random::Random;
use crate::world::{Feed, World, day_before};
use crate::{cpsc, fsis, nhtsa, openfda};

impl World {
    /// Applies `n` random changes and records what a reader should find.
    pub(crate) fn advance(&mut self, n: u64, at_ms: i64) -> u64 {
        let before = self.expected.len();
        for _ in 0..n {
            self.changes += 1;
            let random = Random::new(self.seed, 77, self.changes);
            self.change(random, at_ms);
        }
        (self.expected.len() - before) as u64
    }

    fn change(&mut self, random: Random, at_ms: i64) {
        let mut point = random.below(0, 1000);
        let feed = Feed::ALL.into_iter().find(|feed| {
            let here = point < feed.share();
            point = point.saturating_sub(feed.share());
            here
        });
        let feed = feed.unwrap_or(Feed::Cpsc);
        match random.below(1, 100) {
            0..40 => self.birth(feed, at_ms),
            40..70 => self.edit(feed, random, at_ms),
            70..82 => self.close(feed, random, at_ms),
            82..93 => self.give_number(random, at_ms),
            _ => self.withdraw(if random.once_in(2, 2) { Feed::Fsis } else { Feed::Nhtsa }, random, at_ms),
        }
    }

    fn birth(&mut self, feed: Feed, at_ms: i64) {
        let index = self.len(feed);
        self.births[feed as usize].push(self.today);
        self.write_down(feed, index, Kind::New, true, at_ms);
    }

    /// Picks a record that readers read again: recent, and not withdrawn.
    fn recent(&self, feed: Feed, random: Random) -> Option<u64> {
        let end = self.len(feed);
        let start = if self.edit_days == 0 { 0 } else { self.first_on(feed, day_before(self.today, i64::from(self.edit_days))) };
        // A small world may have no record that recent; its most recent ones are used.
        let start = start.min(end.saturating_sub(5));
        (10..20).map(|tag| start + random.below(tag, end - start)).find(|&index| !self.fate(feed, index).withdrawn)
    }

    fn edit(&mut self, feed: Feed, random: Random, at_ms: i64) {
        if let Some(index) = self.recent(feed, random) {
            self.fates.entry((feed, index)).or_default().edits += 1;
            self.write_down(feed, index, Kind::Modified, true, at_ms);
        }
    }

    fn close(&mut self, feed: Feed, random: Random, at_ms: i64) {
        let open = self.recent(feed, random).filter(|&index| match feed {
            Feed::Cpsc => false,
            Feed::Nhtsa => !nhtsa::is_closed(self, index),
            Feed::Fsis => !fsis::is_closed(self, index),
            Feed::Food | Feed::Drug | Feed::Device => !openfda::is_closed(self, feed, index),
        });
        let Some(index) = open else { return self.edit(feed, random, at_ms) };
        self.fates.entry((feed, index)).or_default().closed = Some(self.today);
        // At NHTSA the letters to the owners are sent, which changes the remedy; elsewhere only the status changes.
        self.write_down(feed, index, Kind::Modified, feed == Feed::Nhtsa, at_ms);
    }

    fn give_number(&mut self, random: Random, at_ms: i64) {
        let feeds = [Feed::Food, Feed::Drug, Feed::Device];
        let first = random.below(3, 3) as usize;
        for feed in (0..3).map(|step| feeds[(first + step) % 3]) {
            let start = self.first_on(feed, day_before(self.today, 60));
            let found = (start..self.len(feed)).find(|&index| !openfda::is_numbered(self, feed, index));
            if let Some(index) = found {
                self.write_down(feed, index, Kind::Superseded, true, at_ms);
                self.fates.entry((feed, index)).or_default().numbered = true;
                return self.write_down(feed, index, Kind::New, true, at_ms);
            }
        }
        self.edit(feeds[first], random, at_ms);
    }

    fn withdraw(&mut self, feed: Feed, random: Random, at_ms: i64) {
        if let Some(index) = self.recent(feed, random) {
            self.write_down(feed, index, Kind::Withdrawn, true, at_ms);
            self.fates.entry((feed, index)).or_default().withdrawn = true;
        }
    }

    fn write_down(&mut self, feed: Feed, index: u64, kind: Kind, visible: bool, at_ms: i64) {
        for mut entry in self.entries(feed, index) {
            // Only the flat file publishes complete snapshots; the other stream of NHTSA continues to show the campaign.
            if kind == Kind::Withdrawn && entry.stream == "nhtsa.socrata" {
                continue;
            }
            entry.n = self.expected.len() as u64 + 1;
            entry.kind = kind;
            entry.visible = visible;
            entry.at_ms = at_ms;
            self.expected.push(entry);
        }
    }

    /// Returns the facts that a record shows now, one per stream and language.
    pub(crate) fn entries(&self, feed: Feed, index: u64) -> Vec<Entry> {
        match feed {
            Feed::Cpsc => vec![cpsc::entry(self, index)],
            Feed::Food | Feed::Drug | Feed::Device => vec![openfda::entry(self, feed, index)],
            Feed::Nhtsa => nhtsa::entries(self, index),
            Feed::Fsis => fsis::entries(self, index),
        }
    }
}

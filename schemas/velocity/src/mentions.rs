//! The mentions of one phrase by hour, as the row of the phrase holds them.
//!
//! Of the last 72 hours the row knows who mentioned the phrase, so that at most 3 stories of one author count. Of earlier hours it knows the number
//! of stories, and the authors only of those who mentioned the phrase more than 3 times: nobody else can exceed 3 in any window of those hours. So
//! counts are exact although the row is small. What is older than 30 days is dropped.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::calendar::DAY_HOURS;
use crate::varint;

/// How many stories of one author count in a window.
pub const AUTHOR_MAX: u64 = 3;
/// Of so many hours the row knows the authors.
pub const NAMED_HOURS: i64 = 72;
/// The mentions of so many hours are kept.
pub const KEPT_HOURS: i64 = 30 * DAY_HOURS;
/// The most authors and domains of one hour that the row knows.
pub const PAIRS_MAX: usize = 32;
/// The most hours that a row holds. Only a damaged row has more.
const HOURS_MAX: u64 = 2_000;
/// The most stories of an hour. Only a damaged row has more.
const STORIES_MAX: u64 = u32::MAX as u64;

/// Who posted a story, and where it leads: 32 bits of a hash each, so that rows name nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Poster {
    /// The author.
    pub author: u32,
    /// The domain; that of a text post is its author.
    pub domain: u32,
}

impl Poster {
    /// The poster of a story. `domain` is empty for a text post.
    #[must_use]
    pub fn new(author: &str, domain: &str) -> Self {
        // An account name has no slash, so that no domain equals an author.
        let domain = if domain.is_empty() { Cow::Owned(format!("author/{author}")) } else { Cow::Borrowed(domain) };
        Self { author: short_hash(author), domain: short_hash(&domain) }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "32 bits of the hash are wanted")]
fn short_hash(text: &str) -> u32 {
    xxh3_64(text.as_bytes()) as u32
}

/// A story that mentions a phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    /// The hour of the story, in hours since 1970.
    pub hour: i64,
    /// The author and the domain of the story.
    pub poster: Poster,
}

/// Some hours with their stories without authors, and the mentions of some hours.
type Parts<'a> = (&'a [(i64, u64)], &'a [(Mention, u64)]);

/// The mentions of a phrase by hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Hours, and their stories whose authors are not known any more, sorted by hour; no hour without such stories.
    unnamed: Vec<(i64, u64)>,
    /// Mentions with their number of stories, sorted.
    named: Vec<(Mention, u64)>,
}

/// The stories of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The stories, at most [`AUTHOR_MAX`] of one author.
    pub count: u64,
    /// The number of authors.
    pub authors: usize,
    /// The number of domains.
    pub domains: usize,
}

impl Mentions {
    /// Collects mentions, all of them with their authors.
    #[must_use]
    pub fn of(mentions: impl IntoIterator<Item = Mention>) -> Self {
        let mut mentions: Vec<Mention> = mentions.into_iter().collect();
        mentions.sort_unstable();
        let named = mentions.chunk_by(PartialEq::eq).filter_map(|equal| Some((*equal.first()?, equal.len() as u64))).collect();
        Self { unnamed: Vec::new(), named }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unnamed.is_empty() && self.named.is_empty()
    }

    /// The last hour with a mention.
    #[must_use]
    pub fn last_hour(&self) -> Option<i64> {
        let (unnamed, named) = (self.unnamed.last().map(|(hour, _)| *hour), self.named.last().map(|(mention, _)| mention.hour));
        unnamed.max(named)
    }

    /// Adds a mention; `newest` is the newest complete hour.
    pub fn add(&mut self, mention: Mention, newest: i64) {
        add_stories(&mut self.named, mention, 1);
        self.settle(newest);
    }

    /// Takes a mention back; `newest` is the newest complete hour. A mention that is not there changes nothing.
    pub fn remove(&mut self, mention: Mention, newest: i64) {
        if !remove_story(&mut self.named, mention) {
            remove_story(&mut self.unnamed, mention.hour);
        }
        self.settle(newest);
    }

    /// Drops what is too old for the newest complete hour, and the authors that are not needed any more.
    pub fn settle(&mut self, newest: i64) {
        let first_kept = newest - KEPT_HOURS + 1;
        self.unnamed.drain(..self.unnamed.partition_point(|(hour, _)| *hour < first_kept));
        self.named.drain(..self.named.partition_point(|(mention, _)| mention.hour < first_kept));
        let first_named = newest - NAMED_HOURS + 1;
        let mut dropped = Vec::new();
        if self.named.first().is_some_and(|(mention, _)| mention.hour < first_named) {
            let mut totals: BTreeMap<u32, u64> = BTreeMap::new();
            for (mention, stories) in &self.named {
                *totals.entry(mention.poster.author).or_default() += stories;
            }
            self.named.retain(|(mention, stories)| {
                let is_needed = mention.hour >= first_named || totals.get(&mention.poster.author).is_some_and(|total| *total > AUTHOR_MAX);
                if !is_needed {
                    dropped.push((mention.hour, *stories));
                }
                is_needed
            });
        }
        let (mut last, mut pairs) = (None, 0);
        self.named.retain(|(mention, stories)| {
            pairs = if last == Some(mention.hour) { pairs + 1 } else { 1 };
            last = Some(mention.hour);
            if pairs > PAIRS_MAX {
                dropped.push((mention.hour, *stories));
            }
            pairs <= PAIRS_MAX
        });
        for (hour, stories) in dropped {
            add_stories(&mut self.unnamed, hour, stories);
        }
    }

    /// Whether the authors of all mentions of the last 72 hours are known, so that counts are exact.
    #[must_use]
    pub fn is_exact(&self, newest: i64) -> bool {
        self.unnamed.last().is_none_or(|(hour, _)| *hour <= newest - NAMED_HOURS)
    }

    /// The stories without authors, and the mentions, of the hours after `from` and up to `to`.
    fn between(&self, from: i64, to: i64) -> Parts<'_> {
        let unnamed = &self.unnamed[..self.unnamed.partition_point(|(hour, _)| *hour <= to)];
        let named = &self.named[..self.named.partition_point(|(mention, _)| mention.hour <= to)];
        let after = (unnamed.partition_point(|(hour, _)| *hour <= from), named.partition_point(|(mention, _)| mention.hour <= from));
        (&unnamed[after.0..], &named[after.1..])
    }

    /// Counts the stories of each window of so many hours: the one that ends with the hour `newest` first, then those before it.
    #[must_use]
    pub fn windows(&self, newest: i64, hours: i64, windows: usize) -> Vec<Counted> {
        let mut posters: Vec<(Poster, u64)> = Vec::with_capacity(self.named.len());
        let mut count = |to: i64| {
            let (unnamed, named) = self.between(to.saturating_sub(hours), to);
            let mut counted = Counted { count: unnamed.iter().map(|(_, stories)| stories).sum(), ..Counted::default() };
            posters.clear();
            posters.extend(named.iter().map(|(mention, stories)| (mention.poster, *stories)));
            posters.sort_unstable();
            for author in posters.chunk_by(|(a, _), (b, _)| a.author == b.author) {
                counted.authors += 1;
                counted.count += author.iter().map(|(_, stories)| stories).sum::<u64>().min(AUTHOR_MAX);
            }
            posters.sort_unstable_by_key(|(poster, _)| poster.domain);
            counted.domains = posters.chunk_by(|(a, _), (b, _)| a.domain == b.domain).count();
            counted
        };
        (0_i64..).take(windows).map(|n| count(newest.saturating_sub(n.saturating_mul(hours)))).collect()
    }

    /// The stories of a window, ending with the hour `newest`.
    #[must_use]
    pub fn window(&self, newest: i64, hours: i64) -> Counted {
        self.windows(newest, hours, 1).first().copied().unwrap_or_default()
    }

    /// Whether some run of so many hours that includes `hour` has at least `stories` stories.
    #[must_use]
    pub fn has_run(&self, hour: i64, hours: i64, stories: u64) -> bool {
        let (unnamed, named) = self.between(hour - hours, hour + hours - 1);
        let near = || unnamed.iter().copied().chain(named.iter().map(|(mention, stories)| (mention.hour, *stories)));
        let of_run = |from: i64| near().filter(|(at, _)| (from..from + hours).contains(at)).map(|(_, stories)| stories).sum::<u64>();
        // Most phrases have too few stories for any run. Where there are many, one of the first runs has enough.
        let is_enough = near().map(|(_, stories)| stories).sum::<u64>() >= stories;
        is_enough && near().any(|(from, _)| from <= hour && of_run(from) >= stories)
    }

    /// The mentions before an hour, and those from it on.
    pub(crate) fn divided(&self, hour: i64) -> (Self, Self) {
        let (unnamed, later_unnamed) = self.unnamed.split_at(self.unnamed.partition_point(|(at, _)| *at < hour));
        let (named, later_named) = self.named.split_at(self.named.partition_point(|(mention, _)| mention.hour < hour));
        let earlier = Self { unnamed: unnamed.to_vec(), named: named.to_vec() };
        (earlier, Self { unnamed: later_unnamed.to_vec(), named: later_named.to_vec() })
    }

    /// Adds the mentions of hours that are all after those that are there.
    pub(crate) fn append(&mut self, later: &Self) {
        self.unnamed.extend_from_slice(&later.unnamed);
        self.named.extend_from_slice(&later.named);
    }

    /// The mentions as text, the form that rows hold.
    pub(crate) fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.to_bytes())
    }

    /// Decodes the text of mentions; `None` if it is none.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        Self::from_bytes(&URL_SAFE_NO_PAD.decode(text).ok()?)
    }

    /// The row as bytes: for each hour its distance from the one before, the stories without authors, and those with.
    fn to_bytes(&self) -> Vec<u8> {
        let (mut out, mut last) = (Vec::with_capacity(4 * self.unnamed.len() + 12 * self.named.len()), 0);
        let (mut unnamed, mut named) = (self.unnamed.as_slice(), self.named.as_slice());
        while let Some(hour) =
            [unnamed.first().map(|(hour, _)| *hour), named.first().map(|(mention, _)| mention.hour)].into_iter().flatten().min()
        {
            varint::push(&mut out, u64::try_from(hour - last).unwrap_or_default());
            last = hour;
            let stories = match unnamed.split_first() {
                Some(((at, stories), rest)) if *at == hour => {
                    unnamed = rest;
                    *stories
                }
                _ => 0,
            };
            varint::push(&mut out, stories);
            let pairs = named.iter().take_while(|(mention, _)| mention.hour == hour).count();
            varint::push(&mut out, pairs as u64);
            let (of_hour, rest) = named.split_at(pairs);
            named = rest;
            for (Mention { poster, .. }, stories) in of_hour {
                out.extend_from_slice(&poster.author.to_be_bytes());
                out.extend_from_slice(&poster.domain.to_be_bytes());
                varint::push(&mut out, *stories);
            }
        }
        out
    }

    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        fn word(bytes: &mut &[u8]) -> Option<u32> {
            let (word, rest) = bytes.split_first_chunk::<4>()?;
            *bytes = rest;
            Some(u32::from_be_bytes(*word))
        }
        let (mut out, mut last, mut hours) = (Self::default(), 0_i64, 0);
        while !bytes.is_empty() {
            hours += 1;
            last = last.checked_add(i64::try_from(varint::take(&mut bytes)?).ok()?)?;
            let unnamed = varint::take(&mut bytes).filter(|stories| *stories <= STORIES_MAX)?;
            let pairs = varint::take(&mut bytes).filter(|pairs| *pairs <= HOURS_MAX && hours <= HOURS_MAX)?;
            if unnamed > 0 {
                out.unnamed.push((last, unnamed));
            }
            for _ in 0..pairs {
                let poster = Poster { author: word(&mut bytes)?, domain: word(&mut bytes)? };
                let stories = varint::take(&mut bytes).filter(|stories| (1..=STORIES_MAX).contains(stories))?;
                out.named.push((Mention { hour: last, poster }, stories));
            }
        }
        // The order is what every other function relies on.
        let is_sorted = out.unnamed.is_sorted_by(|a, b| a.0 < b.0) && out.named.is_sorted_by(|a, b| a.0 < b.0);
        is_sorted.then_some(out)
    }
}

/// Adds stories to the number of a key in a sorted list.
fn add_stories<K: Copy + Ord>(list: &mut Vec<(K, u64)>, key: K, stories: u64) {
    match list.binary_search_by_key(&key, |(key, _)| *key) {
        Ok(at) => list[at].1 += stories,
        Err(at) => list.insert(at, (key, stories)),
    }
}

/// Takes a story from the number of a key in a sorted list. Returns whether the list has the key.
fn remove_story<K: Copy + Ord>(list: &mut Vec<(K, u64)>, key: K) -> bool {
    let Ok(at) = list.binary_search_by_key(&key, |(key, _)| *key) else { return false };
    if list[at].1 > 1 {
        list[at].1 -= 1;
    } else {
        list.remove(at);
    }
    true
}

impl Serialize for Mentions {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for Mentions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_text(&text).ok_or_else(|| serde::de::Error::custom("the mentions of a phrase are damaged"))
    }
}

#[cfg(test)]
mod tests;

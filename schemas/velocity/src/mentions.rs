//! The mentions of one phrase by hour, as the row of the phrase holds them.
//!
//! Of the last 72 hours the row knows who mentioned the phrase, so that at most 3 stories of one author count. Of earlier hours it knows the number
//! of stories, and the authors only of those who mentioned the phrase more than 3 times within two days: nobody else can exceed 3 in any window of
//! those hours. So counts are exact although the row is small. What is older than 30 days is dropped.
//!
//! A row has at most [`ROW_BYTES_MAX`] bytes. That of a frequent phrase would have more, so it forgets: authors of hours before the last day first,
//! then in which hour of a block of hours the stories before the last 72 hours were, then authors of the last day. The row remembers up to which hour it forgot
//! something, so that answers count such windows from the index of stories. Labels are decided with what the row knows.

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
/// The most bytes of a row as it is stored: a text in quotation marks.
pub const ROW_BYTES_MAX: usize = 600;
/// What a row in the present form begins with; one without it has the form of earlier versions.
const FORM: char = '~';
/// The most bytes of a row before they become a text: three of them are four characters, besides two quotation marks and the sign of the form.
const BYTES_MAX: usize = (ROW_BYTES_MAX - 3) / 4 * 3;
/// An author of earlier hours is known if so many hours have more than [`AUTHOR_MAX`] stories of the author: the longest window that rows cover.
const WINDOW_MAX: i64 = 2 * DAY_HOURS;
/// The blocks of hours that stories of earlier hours are counted in if the row is too long otherwise. Each length divides the next one.
const BLOCKS: [i64; 4] = [2, 4, 8, DAY_HOURS];
/// The most hours that a row holds. Only a damaged row has more.
const HOURS_MAX: u64 = 2_000;
/// From so many stories on, the number follows the hour.
const STORIES_SHORT: u64 = 4;
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
    /// Its author and domain.
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
    /// The last hour of which something was forgotten because the row would be too long; 0 if nothing was.
    forgotten: i64,
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
        Self { unnamed: Vec::new(), named, forgotten: 0 }
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
        if !remove_story(&mut self.named, mention) && !remove_story(&mut self.unnamed, mention.hour) && mention.hour <= self.forgotten {
            // The story may be counted at the end of its block of hours.
            let later = self.unnamed.get(self.unnamed.partition_point(|(hour, _)| *hour <= mention.hour)).map(|(hour, _)| *hour);
            if let Some(later) = later.filter(|later| *later < mention.hour + DAY_HOURS) {
                remove_story(&mut self.unnamed, later);
            }
        }
        self.settle(newest);
    }

    /// Drops what is too old for the newest complete hour, the authors that are not needed any more, and what the row has no room for.
    pub fn settle(&mut self, newest: i64) {
        let first_kept = newest - KEPT_HOURS + 1;
        self.unnamed.drain(..self.unnamed.partition_point(|(hour, _)| *hour < first_kept));
        self.named.drain(..self.named.partition_point(|(mention, _)| mention.hour < first_kept));
        let first_named = newest - NAMED_HOURS + 1;
        let mut dropped = Vec::new();
        // A mention less may leave the author's next ones with few stories around them.
        let mut known = usize::MAX;
        while self.named.len() < known && self.named.first().is_some_and(|(mention, _)| mention.hour < first_named) {
            known = self.named.len();
            let frequent = self.frequent();
            let mut at = 0;
            self.named.retain(|(mention, stories)| {
                let is_needed = mention.hour >= first_named || frequent.get(at).copied().unwrap_or_default();
                at += 1;
                if !is_needed {
                    dropped.push((mention.hour, *stories));
                }
                is_needed
            });
        }
        let (mut last, mut pairs) = (None, 0);
        let mut forgotten = self.forgotten;
        self.named.retain(|(mention, stories)| {
            pairs = if last == Some(mention.hour) { pairs + 1 } else { 1 };
            last = Some(mention.hour);
            if pairs > PAIRS_MAX {
                dropped.push((mention.hour, *stories));
                forgotten = forgotten.max(mention.hour);
            }
            pairs <= PAIRS_MAX
        });
        self.forgotten = if forgotten < first_kept { 0 } else { forgotten };
        for (hour, stories) in dropped {
            add_stories(&mut self.unnamed, hour, stories);
        }
        self.shorten(newest);
    }

    /// For each mention with an author: whether the author has more than [`AUTHOR_MAX`] stories within the longest window before or after it.
    fn frequent(&self) -> Vec<bool> {
        let mut of: BTreeMap<u32, Vec<(i64, u64)>> = BTreeMap::new();
        for (mention, stories) in &self.named {
            of.entry(mention.poster.author).or_default().push((mention.hour, *stories));
        }
        let near = |mention: &Mention| -> u64 {
            let all = of.get(&mention.poster.author).map_or(&[][..], Vec::as_slice);
            all.iter().filter(|(hour, _)| (hour - mention.hour).abs() < WINDOW_MAX).map(|(_, stories)| stories).sum()
        };
        self.named.iter().map(|(mention, _)| near(mention) > AUTHOR_MAX).collect()
    }

    /// Forgets until the row is short enough: authors before the last day, the hours of stories before the last 72 hours, then further authors.
    fn shorten(&mut self, newest: i64) {
        let mut blocks = BLOCKS.iter();
        while self.to_bytes().len() > BYTES_MAX {
            if self.forget_author(newest - DAY_HOURS) {
                continue;
            }
            if let Some(block) = blocks.next() {
                self.merge_hours(*block, newest - NAMED_HOURS);
            } else if !self.forget_author(i64::MAX) {
                break;
            }
        }
    }

    /// Forgets the author of one mention of the oldest hour with authors, if that is at most `upto`: of those with few stories first. Returns whether
    /// there was one.
    fn forget_author(&mut self, upto: i64) -> bool {
        let Some((Mention { hour, .. }, _)) = self.named.first().copied().filter(|(mention, _)| mention.hour <= upto) else { return false };
        let of_hour = self.named.partition_point(|(mention, _)| mention.hour <= hour);
        let few = self.named[..of_hour].iter().rposition(|(_, stories)| *stories <= AUTHOR_MAX);
        let (_, stories) = self.named.remove(few.unwrap_or(of_hour - 1));
        // No window counts more of them.
        add_stories(&mut self.unnamed, hour, stories.min(AUTHOR_MAX));
        self.forgotten = self.forgotten.max(hour);
        true
    }

    /// Counts the stories without authors up to an hour in blocks of so many hours, each at its last hour.
    fn merge_hours(&mut self, block: i64, upto: i64) {
        let later = self.unnamed.split_off(self.unnamed.partition_point(|(hour, _)| *hour <= upto));
        for (hour, stories) in std::mem::replace(&mut self.unnamed, later) {
            let end = hour.div_euclid(block) * block + block - 1;
            self.forgotten = self.forgotten.max(end.min(upto));
            add_stories(&mut self.unnamed, if end <= upto { end } else { hour }, stories);
        }
    }

    /// Whether counts of all windows from the hour `first` up to the newest are exact.
    #[must_use]
    pub fn is_exact(&self, newest: i64, first: i64) -> bool {
        self.forgotten < first && self.unnamed.last().is_none_or(|(hour, _)| *hour <= newest - NAMED_HOURS)
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
        let mut near: BTreeMap<i64, u64> = unnamed.iter().copied().collect();
        for (mention, stories) in named {
            *near.entry(mention.hour).or_default() += stories;
        }
        let of_run = |from: i64| near.range(from..from + hours).map(|(_, stories)| stories).sum::<u64>();
        near.range(..=hour).any(|(from, _)| of_run(*from) >= stories)
    }

    /// The row as bytes: up to where something was forgotten, the hours without authors, then the mentions. An hour is its distance from the one before.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + 2 * self.unnamed.len() + 10 * self.named.len());
        varint::push(&mut out, u64::try_from(self.forgotten).unwrap_or_default());
        varint::push(&mut out, self.unnamed.len() as u64);
        let mut last = 0;
        for (hour, stories) in &self.unnamed {
            push_stories(&mut out, hour - last, *stories);
            last = *hour;
        }
        last = 0;
        for (Mention { hour, poster }, stories) in &self.named {
            push_stories(&mut out, hour - last, *stories);
            last = *hour;
            out.extend_from_slice(&poster.author.to_be_bytes());
            out.extend_from_slice(&poster.domain.to_be_bytes());
        }
        out
    }

    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let forgotten = i64::try_from(varint::take(&mut bytes)?).ok()?;
        let hours = varint::take(&mut bytes).filter(|hours| *hours <= HOURS_MAX)?;
        let (mut out, mut last) = (Self { forgotten, ..Self::default() }, 0_i64);
        for _ in 0..hours {
            let (ago, stories) = take_stories(&mut bytes)?;
            last = last.checked_add(ago)?;
            out.unnamed.push((last, stories));
        }
        last = 0;
        while !bytes.is_empty() {
            let (ago, stories) = take_stories(&mut bytes)?;
            last = last.checked_add(ago)?;
            let poster = Poster { author: word(&mut bytes)?, domain: word(&mut bytes)? };
            out.named.push((Mention { hour: last, poster }, stories));
        }
        out.sorted()
    }

    /// The row, if it is in the order that every other function relies on.
    fn sorted(self) -> Option<Self> {
        (self.unnamed.is_sorted_by(|a, b| a.0 < b.0) && self.named.is_sorted_by(|a, b| a.0 < b.0)).then_some(self)
    }

    /// Reads the form of earlier versions: for each hour its distance from the one before, the stories without authors, and those with.
    fn from_earlier_bytes(mut bytes: &[u8]) -> Option<Self> {
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
        out.sorted()
    }
}

/// Writes the distance of an hour from the one before, and its stories: those up to 3 in the lowest bits of the distance.
fn push_stories(out: &mut Vec<u8>, ago: i64, stories: u64) {
    let short = stories.clamp(1, STORIES_SHORT) - 1;
    varint::push(out, (u64::try_from(ago).unwrap_or_default() << 2) | short);
    if short == STORIES_SHORT - 1 {
        varint::push(out, stories - STORIES_SHORT);
    }
}

fn take_stories(bytes: &mut &[u8]) -> Option<(i64, u64)> {
    let both = varint::take(bytes)?;
    let short = both % 4 + 1;
    let stories = if short == STORIES_SHORT { varint::take(bytes)?.checked_add(short)? } else { short };
    Some((i64::try_from(both >> 2).ok()?, Some(stories).filter(|stories| *stories <= STORIES_MAX)?))
}

fn word(bytes: &mut &[u8]) -> Option<u32> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_be_bytes(*word))
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
        serializer.serialize_str(&format!("{FORM}{}", URL_SAFE_NO_PAD.encode(self.to_bytes())))
    }
}

impl<'de> Deserialize<'de> for Mentions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let present = text.strip_prefix(FORM);
        let bytes = URL_SAFE_NO_PAD.decode(present.unwrap_or(&text).as_bytes()).map_err(serde::de::Error::custom)?;
        let read = if present.is_some() { Self::from_bytes(&bytes) } else { Self::from_earlier_bytes(&bytes) };
        read.ok_or_else(|| serde::de::Error::custom("the mentions of a phrase are cut"))
    }
}

#[cfg(test)]
mod tests;

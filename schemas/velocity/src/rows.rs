//! The rows of decision state of the phrases service, and the entries of its index: their keys and forms. Decisions write them, answers read them.
//!
//! | row | holds |
//! |---|---|
//! | `g/{phrase}`, `r/{phrase}` | the mentions of a phrase by hour, see [`gram_rows`](crate::gram_rows) |
//! | `h/{day}` | the stories of each hour of a day, [`DayRow`](crate::hours::DayRow) |
//! | `doc/{id}` | a story, [`DocRow`] |
//! | `d/{hour}/{part}` | the stories of an hour, by id: what is deleted after 31 days |
//! | `k/{day}/{part}` | the phrases that may have a label on a day |
//! | `v/{phrase}`, `w/{day}`, `views` | the views of an article, the fewest views of a day's list so far, and those of complete days |
//! | `a/{day}/{part}` | the articles of a day's list: whose views are deleted when 35 days have passed |
//! | `clock`, `hour`, `board` | the newest complete hour, the hour decided last, and the phrases that rise |
//!
//! The index is in the terms table, so that answers as of an earlier time count exactly what was known then. Its entries are never changed; the
//! last entry of a story up to a position is what was known of it there.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::calendar::{DAY_HOURS, WEEK_HOURS};
use crate::mentions::{Mention, Poster};
use crate::views::{Lowest, Views};

/// The key of the newest complete hour.
pub const CLOCK_KEY: &str = "clock";
/// The key of the hour that was decided last.
pub const HOUR_KEY: &str = "hour";
/// The key of the phrases that rise.
pub const BOARD_KEY: &str = "board";
/// The key of the fewest views of each day.
pub const LOWEST_KEY: &str = "views";
/// The most phrases that the board holds.
pub const BOARD_MAX: usize = 200;
/// Stories of one hour are listed in so many rows, because each story writes its row again. A smaller number would leave rows of earlier hours behind.
pub const DOC_PARTS: u64 = 64;
/// Phrases of one day are listed in so many rows.
pub const CANDIDATE_PARTS: u64 = 32;
/// Articles of one day are listed in so many rows.
pub const ARTICLE_PARTS: u64 = 32;

/// The term of all stories, whose bucket is their hour.
pub const DOCS_TERM: &str = "docs";
/// The term of hours, whose bucket is their week.
pub const HOURS_TERM: &str = "hours";
/// The term of the phrases that rise, whose bucket is the week of the hour.
pub const BOARD_TERM: &str = "board";
/// The term of the fewest views of a day, whose bucket is the week of the day.
pub const LOWEST_TERM: &str = "lowest";

/// The term of the stories with a phrase, whose bucket is their week.
#[must_use]
pub fn gram_term(phrase: &str) -> String {
    format!("gram/{phrase}")
}

/// The term of the views of the article with a title, whose bucket is the week of the day.
#[must_use]
pub fn views_term(phrase: &str) -> String {
    format!("views/{phrase}")
}

/// The number of an hour's week.
#[must_use]
pub fn week(hour: i64) -> i64 {
    hour.div_euclid(WEEK_HOURS)
}

/// The number of a day's week.
#[must_use]
pub fn week_of_day(day: i64) -> i64 {
    week(day.saturating_mul(DAY_HOURS))
}

/// The key of the mentions of a phrase.
#[must_use]
pub fn gram_key(phrase: &str) -> String {
    format!("g/{phrase}")
}

/// The key of the mentions of the newest hours of a frequent phrase.
#[must_use]
pub fn recent_key(phrase: &str) -> String {
    format!("r/{phrase}")
}

/// The key of the hours of a day.
#[must_use]
pub fn day_key(day: i64) -> String {
    format!("h/{day}")
}

/// The key of a story.
#[must_use]
pub fn doc_key(id: &str) -> String {
    format!("doc/{id}")
}

/// The key of a part of the stories of an hour.
#[must_use]
pub fn doc_list_key(hour: i64, part: u64) -> String {
    format!("d/{hour}/{part}")
}

/// The part of the stories of an hour that a story belongs to.
#[must_use]
pub fn doc_part(id: &str) -> u64 {
    xxh3_64(id.as_bytes()) % DOC_PARTS
}

/// The key of a part of the phrases that may have a label on a day.
#[must_use]
pub fn candidates_key(day: i64, part: u64) -> String {
    format!("k/{day}/{part}")
}

/// The part of the phrases of a day that a phrase belongs to.
#[must_use]
pub fn candidate_part(phrase: &str) -> u64 {
    xxh3_64(phrase.as_bytes()) % CANDIDATE_PARTS
}

/// The key of the views of the article with a title.
#[must_use]
pub fn views_key(phrase: &str) -> String {
    format!("v/{phrase}")
}

/// The key of a part of the articles of a day.
#[must_use]
pub fn articles_key(day: i64, part: u64) -> String {
    format!("a/{day}/{part}")
}

/// The part of the articles of a day that an article belongs to, given its title in the normal form.
#[must_use]
pub fn article_part(phrase: &str) -> u64 {
    xxh3_64(phrase.as_bytes()) % ARTICLE_PARTS
}

/// The key of the fewest views that a day's list has so far.
#[must_use]
pub fn open_day_key(day: i64) -> String {
    format!("w/{day}")
}

/// The id of the record of a phrase. It does not show the phrase, so that a suppressed one is hidden everywhere.
#[must_use]
pub fn record_id(phrase: &str) -> String {
    format!("{:016x}", xxh3_64(phrase.as_bytes()))
}

/// The newest complete hour, and what decisions have done up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Clock {
    /// The newest complete hour, in hours since 1970; 0 before the first.
    pub newest: i64,
    /// The last hour whose stories no longer have mentions in rows.
    pub pruned: i64,
    /// The last day on which phrases were labelled.
    pub labelled_day: i64,
}

/// What is remembered of a story.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DocRow {
    /// The hour of the story, in hours since 1970.
    pub hour: i64,
    /// The hash of its author.
    pub author: u32,
    /// The hash of its domain.
    pub domain: u32,
    /// The title of the story; empty if it was removed.
    pub title: String,
    /// The URL of the story; empty for a text post.
    pub url: String,
    /// When it was published, RFC 3339.
    pub published_at: String,
    /// Whether it is gone.
    pub removed: bool,
    /// What it was before its last change, if it was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
}

/// What a story was before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Before {
    /// The hour.
    pub hour: i64,
    /// The title in its normal form.
    pub words: String,
}

impl DocRow {
    /// The mention that the story is of each of its phrases.
    #[must_use]
    pub fn mention(&self) -> Mention {
        Mention { hour: self.hour, poster: Poster { author: self.author, domain: self.domain } }
    }
}

/// The hour that was decided last: hour, stories, whether it is complete.
pub type HourEntry = (i64, i64, bool);

/// The views of an article, and the day that was added last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewsRow {
    /// The views by day.
    pub days: Views,
    /// The day that was added last.
    pub day: i64,
}

/// The fewest views of each complete day, and the day that was added last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LowestRow {
    /// The fewest views by day.
    pub days: Lowest,
    /// The day that was added last.
    pub day: i64,
}

/// A day and a number of views: an entry of the index.
pub type DayEntry = (i64, i64);

/// The phrases that rise at an hour, in the order of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Board {
    /// The hour.
    pub hour: i64,
    /// The phrases that are RISING or WARMING.
    pub phrases: Vec<String>,
}

/// An entry of the index about a story. `words` is empty except under [`DOCS_TERM`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The hour and the poster of the story.
    pub mention: Mention,
    /// Whether the story is gone, or no longer has the phrase.
    pub is_removed: bool,
    /// The id of the story.
    pub id: String,
    /// The title in its normal form.
    pub words: String,
}

impl Posting {
    /// The stored form: flag, hour, author, domain, then id and words with a line feed between them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(18 + self.id.len() + self.words.len());
        out.push(u8::from(self.is_removed));
        out.extend_from_slice(&self.mention.hour.to_be_bytes());
        out.extend_from_slice(&self.mention.poster.author.to_be_bytes());
        out.extend_from_slice(&self.mention.poster.domain.to_be_bytes());
        out.extend_from_slice(self.id.as_bytes());
        out.push(b'\n');
        out.extend_from_slice(self.words.as_bytes());
        out
    }

    /// Decodes the stored form; `None` if it is not one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (flag, rest) = bytes.split_first()?;
        let (hour, rest) = rest.split_first_chunk::<8>()?;
        let (author, rest) = rest.split_first_chunk::<4>()?;
        let (domain, rest) = rest.split_first_chunk::<4>()?;
        let (id, words) = std::str::from_utf8(rest).ok()?.split_once('\n')?;
        let poster = Poster { author: u32::from_be_bytes(*author), domain: u32::from_be_bytes(*domain) };
        let mention = Mention { hour: i64::from_be_bytes(*hour), poster };
        Some(Self { mention, is_removed: *flag != 0, id: id.to_owned(), words: words.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that entries of the index read back, and that damaged ones are refused.
    #[test]
    fn postings_read_back() {
        let mention = Mention { hour: 497_000, poster: Poster::new("a", "b.example") };
        let posting = Posting { mention, is_removed: true, id: "42".into(), words: "agent mesh ü".into() };
        let bytes = posting.to_bytes();
        assert_eq!(Posting::from_bytes(&bytes), Some(posting));
        for wrong in [&bytes[..0], &bytes[..16], &bytes[..19], b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0no line feed"] {
            assert_eq!(Posting::from_bytes(wrong), None);
        }
    }

    /// Proves that rows have compact forms, and which week an hour and a day belong to.
    #[test]
    fn forms() {
        let doc = DocRow { hour: 7, title: "T".into(), ..DocRow::default() };
        let json = serde_json::to_string(&doc).unwrap();
        assert!(!json.contains("before"), "{json}");
        assert_eq!(serde_json::from_str::<DocRow>(&json).unwrap(), doc);
        assert_eq!((week(167), week(168), week_of_day(6), week_of_day(7)), (0, 1, 0, 1));
        assert_eq!(record_id("agent mesh").len(), 16);
    }
}

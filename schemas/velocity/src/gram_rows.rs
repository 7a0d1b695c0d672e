//! The rows that hold the mentions of a phrase.
//!
//! Most phrases have few mentions, and one row with all of them. The row of a frequent word is long, and each of its stories would write it again. So the
//! mentions of its newest hours are in a second row, which is short; the first one changes when these hours are over. Which hours are the newest follows
//! from the newest complete hour, so that stories in any order give the same rows.

use serde::{Deserialize, Serialize};

use crate::label::COUNT_MIN;
use crate::measure::WINDOW_DEFAULT;
use crate::mentions::{Mention, Mentions};

/// The newest hours begin at a multiple of so many hours.
const RECENT_HOURS: i64 = 6;
/// The newest hours have a row of their own if the text of the mentions before them has more bytes.
const EARLIER_BYTES_MAX: usize = 320;
/// The first character of a row whose newest hours are in a row of their own. No text of mentions has it.
const DIVIDED: char = '~';

/// The first of the newest hours, given the newest complete hour. What is too old is dropped as of the hour before it.
fn first_recent(newest: i64) -> i64 {
    newest.saturating_add(1).div_euclid(RECENT_HOURS) * RECENT_HOURS
}

/// The row `g/{phrase}`: all mentions of the phrase, or those before its newest hours. It is decoded only where it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GramRow(String);

impl GramRow {
    /// Whether the mentions of the newest hours are in the row `r/{phrase}`.
    #[must_use]
    pub fn is_divided(&self) -> bool {
        self.0.starts_with(DIVIDED)
    }

    fn mentions(&self) -> Option<Mentions> {
        Mentions::from_text(self.0.strip_prefix(DIVIDED).unwrap_or(&self.0))
    }
}

/// The row `r/{phrase}`: the mentions of the newest hours of a frequent phrase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentRow {
    /// The first of the hours.
    pub first: i64,
    /// The mentions of this hour and of later ones.
    pub mentions: Mentions,
}

/// The rows of a phrase; none if nobody mentions it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GramRows {
    /// The row `g/{phrase}`.
    pub row: Option<GramRow>,
    /// The row `r/{phrase}`, which exists only next to a divided one.
    pub recent: Option<RecentRow>,
}

/// The rows of a phrase after a story changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The rows.
    pub rows: GramRows,
    /// Whether some 24 hours with the added mention have enough stories for a label.
    pub has_run: bool,
}

impl GramRows {
    /// The rows of mentions, given the newest complete hour; `None` before the first one.
    fn of(mentions: &Mentions, newest: Option<i64>) -> Self {
        if mentions.is_empty() {
            return Self::default();
        }
        if let Some(first) = newest.map(first_recent) {
            let (earlier, mentions) = mentions.divided(first);
            let text = earlier.to_text();
            if text.len() > EARLIER_BYTES_MAX {
                return Self { row: Some(GramRow(format!("{DIVIDED}{text}"))), recent: Some(RecentRow { first, mentions }) };
            }
        }
        Self { row: Some(GramRow(mentions.to_text())), recent: None }
    }

    /// All mentions of the phrase; `None` if a row is damaged.
    #[must_use]
    pub fn mentions(&self) -> Option<Mentions> {
        let Some(row) = &self.row else { return Some(Mentions::default()) };
        let mut mentions = row.mentions()?;
        if let Some(recent) = self.recent() {
            mentions.append(&recent.mentions);
        }
        Some(mentions)
    }

    fn recent(&self) -> Option<&RecentRow> {
        self.recent.as_ref().filter(|_| self.row.as_ref().is_some_and(GramRow::is_divided))
    }

    /// The rows after a story changed: `taken` is the mention that it was, `added` the one that it is. `newest` is the newest complete hour; `None` before
    /// the first one. Returns `None` if a row is damaged.
    #[must_use]
    pub fn replace(&self, taken: Option<Mention>, added: Option<Mention>, newest: Option<i64>) -> Option<Replaced> {
        let is_recent = |recent: &&RecentRow| {
            newest.map(first_recent) == Some(recent.first)
                && [taken, added].into_iter().flatten().all(|mention| mention.hour >= recent.first)
        };
        let exchange = |mentions: &mut Mentions| {
            // Before the first complete hour nothing is too old.
            let as_of = |mention: Mention| newest.map_or(mention.hour, |newest| first_recent(newest) - 1);
            if let Some(mention) = taken {
                mentions.remove(mention, as_of(mention));
            }
            if let Some(mention) = added {
                mentions.add(mention, as_of(mention));
            }
        };
        let has_run = |mentions: &Mentions| added.is_some_and(|mention| mentions.has_run(mention.hour, WINDOW_DEFAULT, COUNT_MIN));
        if let Some(recent) = self.recent().filter(is_recent) {
            let mut recent = recent.clone();
            exchange(&mut recent.mentions);
            let is_run = has_run(&recent.mentions);
            let rows = Self { row: self.row.clone(), recent: Some(recent) };
            // The earlier hours are decoded only if the newest ones do not suffice.
            let is_run = is_run || added.is_some() && has_run(&rows.mentions()?);
            return Some(Replaced { rows, has_run: is_run });
        }
        let mut mentions = self.mentions()?;
        exchange(&mut mentions);
        Some(Replaced { rows: Self::of(&mentions, newest), has_run: has_run(&mentions) })
    }

    /// The rows without what is too old for the newest complete hour; `None` if a row is damaged.
    #[must_use]
    pub fn settled(&self, newest: i64) -> Option<Self> {
        // A story of these newest hours has already dropped it.
        if self.recent().is_some_and(|recent| recent.first == first_recent(newest)) {
            return Some(self.clone());
        }
        let mut mentions = self.mentions()?;
        mentions.settle(first_recent(newest) - 1);
        Some(Self::of(&mentions, Some(newest)))
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::mentions::{KEPT_HOURS, Poster};

    const START: i64 = 480_000;

    fn mention(hour: i64, author: u32) -> Mention {
        Mention { hour, poster: Poster { author, domain: author % 7 } }
    }

    /// The bytes of the rows that differ from those before.
    fn written(before: &GramRows, after: &GramRows) -> usize {
        let row = after.row.as_ref().filter(|row| before.row.as_ref() != Some(*row)).map_or(0, |row| row.0.len());
        let recent = after.recent.as_ref().filter(|recent| before.recent.as_ref() != Some(*recent));
        row + recent.map_or(0, |recent| recent.mentions.to_text().len())
    }

    /// Proves that rows give the counts of all mentions in every window, in hours of few and of many stories, with late and removed ones.
    #[test]
    fn rows_hold_all_mentions() {
        let mut random = StdRng::seed_from_u64(31);
        for an_hour in [1, 2, 12] {
            let (mut rows, mut all, mut divided) = (GramRows::default(), Vec::new(), 0);
            for newest in START..START + KEPT_HOURS / 2 {
                for _ in 0..random.random_range(0..=an_hour) {
                    let added = mention(newest + 1 - random.random_range(0..9) / 8 * 10, random.random_range(0..2_000));
                    all.push(added);
                    let taken = (random.random_range(0..8) == 0)
                        .then(|| all.swap_remove(random.random_range(all.len().saturating_sub(4)..all.len())));
                    rows = rows.replace(None, Some(added), Some(newest)).unwrap().rows;
                    if taken.is_some() {
                        rows = rows.replace(taken, None, Some(newest)).unwrap().rows;
                    }
                }
                divided += usize::from(rows.recent.is_some());
                if newest % 37 == 0 {
                    let (of_rows, of_all) = (rows.mentions().unwrap(), Mentions::of(all.iter().copied()));
                    for hours in [6, 24, 48] {
                        let counts =
                            |mentions: &Mentions| mentions.windows(newest, hours, 15).iter().map(|window| window.count).collect::<Vec<_>>();
                        assert_eq!(counts(&of_rows), counts(&of_all), "{an_hour} an hour, {hours} hours at {newest}");
                        assert_eq!(
                            of_rows.window(newest, hours),
                            of_all.window(newest, hours),
                            "{an_hour} an hour, {hours} hours at {newest}"
                        );
                    }
                }
            }
            assert!(divided > 0, "{an_hour} an hour");
        }
    }

    /// Proves that a story of a frequent word writes little, although the word has many mentions, and that the last story that is taken back restores the
    /// rows.
    #[test]
    fn stories_of_frequent_words_write_little() {
        let (mut rows, mut bytes, mut stories) = (GramRows::default(), 0, 0);
        for newest in START..START + 200 {
            for n in 0..30 {
                let one = mention(newest + 1, u32::try_from(newest - START).unwrap() * 30 + n);
                let after = rows.replace(None, Some(one), Some(newest)).unwrap();
                assert_eq!(after.has_run, newest > START || n >= 2);
                if newest > START + 100 {
                    bytes += written(&rows, &after.rows);
                    stories += 1;
                    if n > 0 {
                        assert_eq!(after.rows.replace(Some(one), None, Some(newest)).unwrap().rows, rows);
                    }
                }
                rows = after.rows;
            }
        }
        let whole = rows.mentions().unwrap().to_text().len();
        assert!(whole > 20_000 && bytes / stories < whole / 10, "{} bytes a story, {whole} in all", bytes / stories);
        assert!(rows.settled(START + 199 + KEPT_HOURS + RECENT_HOURS).unwrap().row.is_none());
    }

    /// Proves that rows of earlier versions, which are never divided, are read and take their new form with the next story, and that damaged rows are no
    /// mentions.
    #[test]
    fn rows_of_earlier_versions_are_read() {
        let mut mentions = Mentions::of((0..900).map(|n| mention(START - i64::from(n % 60), n)));
        let row = serde_json::to_string(&mentions).unwrap();
        let before = GramRows { row: Some(serde_json::from_str(&row).unwrap()), recent: None };
        assert_eq!(before.mentions(), Some(mentions.clone()));
        let one = mention(START + 1, 7);
        let after = before.replace(None, Some(one), Some(START)).unwrap().rows;
        mentions.add(one, START);
        assert!(after.row.as_ref().unwrap().is_divided());
        assert_eq!((after.mentions(), after.recent.as_ref().unwrap().first), (Some(mentions), START));
        for wrong in ["!", "~!", "~gA", "~~"] {
            let damaged = GramRows { row: Some(GramRow(wrong.to_owned())), recent: None };
            assert_eq!((damaged.mentions(), damaged.replace(None, Some(one), Some(START))), (None, None), "{wrong}");
        }
    }
}

//! Counts the phrases of many stories. A phrase of the window can rise only if three of its stories have it, and then they have each part of it, too; so
//! phrases are built from parts that are frequent, and other stories are searched for these alone.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use velocity::grams::{GRAM_WORDS_MAX, is_stop_phrase};
use velocity::hours::Hours;
use velocity::label::COUNT_MIN;
use velocity::measure::{MULTIPLES, Measure, Question, Scale};
use velocity::mentions::{Mention, Mentions};
use velocity::rows::Posting;
use velocity::words::is_blocked;

/// The most phrases that are measured: those with the highest counts.
pub(crate) const PHRASES_MAX: usize = 30_000;
/// A story that is none.
const NO_STORY: usize = usize::MAX;

/// The phrases of a window that rise by the least multiple of all questions. By a larger one no other phrase rises.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The phrases with their measures, in no order.
    pub(crate) phrases: Vec<(String, Measure)>,
    /// Whether some phrases were not measured, because there were too many.
    pub(crate) is_cut: bool,
}

/// A title in its normal form, with the places of its words.
struct Title<'a> {
    text: &'a str,
    words: Vec<(usize, usize)>,
}

impl<'a> Title<'a> {
    fn new(text: &'a str) -> Self {
        let (mut words, mut from) = (Vec::new(), 0);
        for word in text.split(' ') {
            let to = from + word.len();
            if to > from {
                words.push((from, to));
            }
            from = to + 1;
        }
        Self { text, words }
    }

    /// The phrase of so many words that begins with the word `at`; `None` if the title ends before.
    fn phrase(&self, at: usize, words: usize) -> Option<&'a str> {
        let (from, to) = (self.words.get(at)?.0, self.words.get(at + words - 1)?.1);
        self.text.get(from..to)
    }
}

/// What the stories before the window are searched for.
struct Searched {
    mentions: Vec<Mention>,
    /// The last story that was found: a story has a phrase once.
    last: usize,
}

/// Measures the phrases of the current window with enough stories. `stories` are those of all windows.
pub(crate) fn count(stories: &[Posting], hours: &Hours, newest: i64, current: &RangeInclusive<i64>, window_hours: i64) -> Counts {
    let of_window: Vec<Title<'_>> =
        stories.iter().filter(|story| current.contains(&story.mention.hour)).map(|story| Title::new(&story.words)).collect();
    let frequent = frequent(&of_window);
    let mut wanted: Vec<(&str, u64)> =
        frequent.iter().filter(|(phrase, _)| !is_blocked(phrase)).map(|(phrase, stories)| (*phrase, *stories)).collect();
    let is_cut = wanted.len() > PHRASES_MAX;
    if is_cut {
        wanted.sort_unstable_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        wanted.truncate(PHRASES_MAX);
    }
    // The others are parts of phrases that are searched for.
    let mut searched: HashMap<&str, Option<Searched>> = frequent.keys().map(|phrase| (*phrase, None)).collect();
    searched.extend(wanted.into_iter().map(|(phrase, _)| (phrase, Some(Searched { mentions: Vec::new(), last: NO_STORY }))));
    for (n, story) in stories.iter().enumerate() {
        search(&Title::new(&story.words), n, story.mention, &mut searched);
    }
    let scale = Scale::new(hours, newest, Question { window_hours, min_multiple: *MULTIPLES.start() });
    let found = searched.into_iter().filter_map(|(phrase, searched)| Some((phrase, searched?.mentions)));
    let measured = found.map(|(phrase, mentions)| (phrase, scale.measure(&Mentions::of(mentions))));
    // Page views lift no label from FLAT.
    let rising = measured.filter(|(_, measure)| measure.label().is_up()).map(|(phrase, measure)| (phrase.to_owned(), measure));
    Counts { phrases: rising.collect(), is_cut }
}

/// The phrases that enough of the titles have, with the number of titles, without those of stop words alone.
fn frequent<'a>(titles: &[Title<'a>]) -> HashMap<&'a str, u64> {
    let mut frequent: HashMap<&'a str, u64> = HashMap::new();
    for words in 1..=GRAM_WORDS_MAX {
        let mut counts: HashMap<&'a str, (u64, usize)> = HashMap::new();
        for (n, title) in titles.iter().enumerate() {
            for at in 0..title.words.len() {
                let Some(phrase) = title.phrase(at, words) else { break };
                let is_possible = |part: &str| frequent.contains_key(part) || is_stop_phrase(part);
                // The longest parts of the phrase contain all others.
                let parts = if words > 1 { [title.phrase(at, words - 1), title.phrase(at + 1, words - 1)] } else { [None, None] };
                if !parts.into_iter().flatten().all(is_possible) || is_stop_phrase(phrase) {
                    continue;
                }
                let (stories, last) = counts.entry(phrase).or_insert((0, NO_STORY));
                if *last != n {
                    *last = n;
                    *stories += 1;
                }
            }
        }
        frequent
            .extend(counts.into_iter().filter(|(_, (stories, _))| *stories >= COUNT_MIN).map(|(phrase, (stories, _))| (phrase, stories)));
    }
    frequent
}

/// Adds the mention of story `n` to the phrases of its title that are searched for.
fn search(title: &Title<'_>, n: usize, mention: Mention, searched: &mut HashMap<&str, Option<Searched>>) {
    for at in 0..title.words.len() {
        for words in 1..=GRAM_WORDS_MAX {
            let Some(phrase) = title.phrase(at, words) else { break };
            match searched.get_mut(phrase) {
                Some(Some(found)) if found.last != n => {
                    found.last = n;
                    found.mentions.push(mention);
                }
                Some(_) => {}
                None if is_stop_phrase(phrase) => {}
                // No longer phrase that begins with this one is searched for.
                None => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use velocity::grams::all_grams;
    use velocity::hours::Hour;
    use velocity::mentions::Poster;

    use super::*;

    const NEWEST: i64 = 1_000;

    fn hours() -> Hours {
        let mut hours = Hours::default();
        (0..=NEWEST).for_each(|hour| hours.set(hour, Hour { stories: 50, is_complete: true }));
        hours
    }

    fn story(n: u32, hour: i64, words: &str) -> Posting {
        let mention = Mention { hour, poster: Poster { author: n, domain: n } };
        Posting { mention, is_removed: false, id: n.to_string(), words: words.to_owned() }
    }

    /// Counts the stories of 24 hours.
    fn counts(stories: &[Posting]) -> Counts {
        count(stories, &hours(), NEWEST, &(NEWEST - 23..=NEWEST), 24)
    }

    /// Proves that a phrase of four words at the end of titles of 16 words is counted in each of them.
    #[test]
    fn long_phrases_are_counted_in_long_titles() {
        let title = |author: u32| (0..12).map(|word| format!("w{author}x{word} ")).collect::<String>() + "our new agent mesh";
        let stories: Vec<Posting> = (1..=9).map(|author| story(author, NEWEST - i64::from(author), &title(author))).collect();
        let counts = counts(&stories);
        let counted = counts.phrases.iter().find(|(phrase, _)| phrase == "our new agent mesh").map(|(_, measure)| measure.counted.count);
        assert_eq!((counted, counts.is_cut), (Some(9), false));
    }

    /// Proves for random titles, with stop words and repeated words, that the result is that of a count of all phrases of all stories.
    #[test]
    fn counts_equal_those_of_all_phrases() {
        let mut random = StdRng::seed_from_u64(17);
        let words = ["agent", "mesh", "the", "of", "2026", "rust", "zig", "show"];
        let stories: Vec<Posting> = (0..700)
            .map(|n| {
                let length = random.random_range(1..9);
                let title: Vec<&str> = (0..length).map(|_| words[random.random_range(0..words.len())]).collect();
                let ago = if random.random_range(0..3) == 0 { random.random_range(0..24) } else { random.random_range(24..360) };
                story(n, NEWEST - ago, &title.join(" "))
            })
            .collect();
        let scale = Scale::new(&hours(), NEWEST, Question { window_hours: 24, min_multiple: *MULTIPLES.start() });
        let mut mentions: HashMap<&str, Vec<Mention>> = HashMap::new();
        for story in &stories {
            all_grams(&story.words).into_iter().for_each(|gram| mentions.entry(gram).or_default().push(story.mention));
        }
        let measured = mentions.into_iter().map(|(phrase, mentions)| (phrase.to_owned(), scale.measure(&Mentions::of(mentions))));
        let mut expected: Vec<(String, Measure)> =
            measured.filter(|(phrase, measure)| measure.label().is_up() && !is_blocked(phrase)).collect();
        let mut found = counts(&stories).phrases;
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        found.sort_by(|a, b| a.0.cmp(&b.0));
        assert!(expected.iter().any(|(phrase, _)| phrase.split(' ').count() == 3), "{expected:?}");
        assert_eq!(found, expected);
    }
}

//! The values of a dimension in their order, held as one text, in which those that contain a part of a name are found.
//!
//! A search reads the memory from its beginning to its end at most once. To look at each value of a sorted set instead waits for memory at each of them, which
//! takes many times as long with hundreds of thousands of values. A value takes its letters and the place where it begins; in a set it takes three times as
//! much.

use std::collections::BTreeSet;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use texts::folding::folded;

/// Ends a value. No text in UTF-8 has this byte.
const END: u8 = 0xff;
/// Separates a value as searches compare it from the value itself, if they differ. No text in UTF-8 has this byte.
const SPELLED: u8 = 0xfe;
/// The places of added values are merged with the others when they are more than this part of those, so that one value costs no copy of all places.
const RECENT_PART: usize = 64;

/// Values in lower case, each once, in their order.
#[derive(Clone, Debug, Default)]
pub struct SortedValues {
    /// Each value as searches compare it; after [`SPELLED`] as it is, if that differs; and [`END`].
    text: Vec<u8>,
    /// Where values begin in the text, in the order of the values.
    starts: Vec<usize>,
    /// Where the values begin that were added since, in the order of the values: few of all.
    recent: Vec<usize>,
}

impl SortedValues {
    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() + self.recent.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of memory that the values need.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.capacity() + (self.starts.capacity() + self.recent.capacity()) * size_of::<usize>()
    }

    /// All values, in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &str> {
        InOrder { values: self, one: &self.starts, other: &self.recent }
    }

    /// Whether a value is one of them.
    #[must_use]
    pub fn contains(&self, value: &str) -> bool {
        [&self.starts, &self.recent].into_iter().any(|starts| starts.binary_search_by(|start| self.value(*start).cmp(value)).is_ok())
    }

    /// The values from a text on, in their order.
    pub(crate) fn at_or_after(&self, text: &str) -> impl DoubleEndedIterator<Item = &str> {
        let [one, other] = [&self.starts, &self.recent].map(|starts| starts.get(self.count_before(starts, text)..).unwrap_or_default());
        InOrder { values: self, one, other }
    }

    /// The values before a text, in their order.
    pub(crate) fn before(&self, text: &str) -> impl DoubleEndedIterator<Item = &str> {
        let [one, other] = [&self.starts, &self.recent].map(|starts| starts.get(..self.count_before(starts, text)).unwrap_or_default());
        InOrder { values: self, one, other }
    }

    /// Adds values in lower case. Those that are there already are passed over.
    pub fn extend(&mut self, values: BTreeSet<String>) {
        // Both parts grow by little more than they need. Folded values are about as long as values.
        let bytes = 2 * values.iter().map(|value| value.len() + 1).sum::<usize>();
        if self.text.capacity() - self.text.len() < bytes {
            self.text.reserve_exact(bytes.max(self.text.len() / 8));
        }
        let mut new = Vec::new();
        for value in values {
            if self.contains(&value) {
                continue;
            }
            new.push(self.text.len());
            // An ASCII value in lower case is as searches compare it.
            if !value.is_ascii() {
                self.text.extend_from_slice(folded(&value).as_bytes());
                self.text.push(SPELLED);
            }
            self.text.extend_from_slice(value.as_bytes());
            self.text.push(END);
        }
        if !new.is_empty() {
            self.recent = self.merged(&self.recent, &new);
        }
        if self.recent.len() > self.starts.len() / RECENT_PART {
            self.merge_recent();
        }
    }

    /// Arranges the text in the order of the values, and releases memory that is not needed.
    pub fn compact(&mut self) {
        self.merge_recent();
        let mut text = Vec::with_capacity(self.text.len());
        for start in &mut self.starts {
            let entry = entry_at(&self.text, *start);
            *start = text.len();
            text.extend_from_slice(entry);
            text.push(END);
        }
        self.text = text;
        self.starts.shrink_to_fit();
    }

    fn merge_recent(&mut self) {
        if !self.recent.is_empty() {
            self.starts = self.merged(&self.starts, &self.recent);
            self.recent = Vec::new();
        }
    }

    /// Two lists of places, each in the order of its values, as one list. It is copied once, however many the others are.
    fn merged(&self, starts: &[usize], others: &[usize]) -> Vec<usize> {
        let (mut merged, mut copied) = (Vec::with_capacity(starts.len() + others.len()), 0);
        for other in others {
            let at = self.count_before(starts, self.value(*other));
            merged.extend_from_slice(starts.get(copied..at).unwrap_or_default());
            merged.push(*other);
            copied = at;
        }
        merged.extend_from_slice(starts.get(copied..).unwrap_or_default());
        merged
    }

    /// The values that contain a text, without case and accents, in their order. There are at most `values_max` plus one: the extra value shows that there are
    /// too many. `part` is as searches compare it; an empty one finds nothing.
    #[must_use]
    pub fn containing(&self, part: &str, values_max: usize) -> Vec<String> {
        let mut found = Vec::new();
        if part.is_empty() {
            return found;
        }
        let (finder, mut searched) = (Finder::new(part), 0);
        while found.len() <= values_max
            && let rest = self.text.get(searched..).unwrap_or_default()
            && let Some(at) = finder.find(rest)
        {
            let before = rest.get(..at).unwrap_or_default();
            let begin = memrchr(END, before).map_or(0, |end| end + 1);
            let entry = entry_at(rest, begin);
            let (compared, spelled) = parts_of(entry);
            // It is the first place in this value, so a place behind what is compared is the only kind that it has.
            if at < begin + compared.len() {
                found.push(text_of(spelled).to_owned());
            }
            searched += begin + entry.len() + 1;
        }
        found.sort_unstable();
        found
    }

    /// The values that start with one of some texts, which are in the form of values.
    #[must_use]
    pub fn starting_with(&self, prefixes: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut found = BTreeSet::new();
        for prefix in prefixes {
            found.extend(self.at_or_after(&prefix).take_while(|value| value.starts_with(&prefix)).map(str::to_owned));
        }
        found.into_iter().collect()
    }

    /// How many values come before a text, of those that begin at some places, which are in the order of the values.
    fn count_before(&self, starts: &[usize], text: &str) -> usize {
        starts.partition_point(|start| self.value(*start) < text)
    }

    /// The value that begins at a place of the text.
    fn value(&self, start: usize) -> &str {
        text_of(parts_of(entry_at(&self.text, start)).1)
    }
}

/// The values that begin at the places of two lists, each of which is in the order of its values.
struct InOrder<'a> {
    values: &'a SortedValues,
    one: &'a [usize],
    other: &'a [usize],
}

impl<'a> InOrder<'a> {
    /// The value that begins at a place.
    fn value(&self, start: Option<&usize>) -> Option<&'a str> {
        start.map(|start| self.values.value(*start))
    }
}

impl<'a> Iterator for InOrder<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (one, other) = (self.value(self.one.first()), self.value(self.other.first()));
        if other.is_none_or(|other| one.is_some_and(|one| one < other)) {
            self.one = self.one.get(1..).unwrap_or_default();
            one
        } else {
            self.other = self.other.get(1..).unwrap_or_default();
            other
        }
    }
}

impl DoubleEndedIterator for InOrder<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let (one, other) = (self.value(self.one.last()), self.value(self.other.last()));
        if other.is_none_or(|other| one.is_some_and(|one| one > other)) {
            self.one = self.one.split_last().map(|(_, rest)| rest).unwrap_or_default();
            one
        } else {
            self.other = self.other.split_last().map(|(_, rest)| rest).unwrap_or_default();
            other
        }
    }
}

impl FromIterator<String> for SortedValues {
    fn from_iter<I: IntoIterator<Item = String>>(values: I) -> Self {
        let mut this = Self::default();
        this.extend(values.into_iter().collect());
        this.compact();
        this
    }
}

/// What a text has from a place up to the end of the value.
fn entry_at(text: &[u8], start: usize) -> &[u8] {
    let rest = text.get(start..).unwrap_or_default();
    memchr(END, rest).and_then(|end| rest.get(..end)).unwrap_or(rest)
}

/// A value as searches compare it, and as it is.
fn parts_of(entry: &[u8]) -> (&[u8], &[u8]) {
    let split = memchr(SPELLED, entry).and_then(|at| entry.split_at_checked(at));
    split.map_or((entry, entry), |(compared, spelled)| (compared, spelled.get(1..).unwrap_or_default()))
}

/// The text of a value, which was added as a text.
fn text_of(value: &[u8]) -> &str {
    std::str::from_utf8(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(values: &[&str]) -> SortedValues {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    /// Proves which values contain a text: each once, with or without accents, as they are recorded, and one more than are wanted if there are too many.
    #[test]
    fn searches() {
        let codes = sorted(&["61", "541512", "5415", "541511", "5417"]);
        assert_eq!(codes.containing("15", 9), ["5415", "541511", "541512"]);
        assert_eq!(codes.containing("5", 9), ["5415", "541511", "541512", "5417"]);
        assert_eq!(codes.containing("15", 1).len(), 2);
        assert_eq!((codes.containing("61", 9), codes.containing("5417", 9)), (vec!["61".to_owned()], vec!["5417".to_owned()]));
        assert_eq!(codes.containing("", 9), Vec::<String>::new());
        assert_eq!(sorted(&[]).containing("a", 9), Vec::<String>::new());
        let named = sorted(&["universit\u{e9} laval", "rice", "universite\u{301} de caen", "\u{e9}cole"]);
        assert_eq!(named.containing("universite", 9), ["universite\u{301} de caen", "universit\u{e9} laval"]);
        assert_eq!(named.containing("ecole", 9), ["\u{e9}cole"]);
        assert_eq!(named.containing("cole", 9), ["\u{e9}cole"], "once, although it is in both forms of the value");
        assert_eq!(named.containing("\u{e9}cole", 9), Vec::<String>::new(), "only what is compared is searched");
    }

    /// Proves that no text reaches from one value into the next, and that any character may be in a value.
    #[test]
    fn values_do_not_join() {
        let values = sorted(&["ab", "cd", "e\u{0}f", "g\u{1}h"]);
        assert_eq!(values.containing("bc", 9), Vec::<String>::new());
        assert_eq!(values.containing("b\u{0}c", 9), Vec::<String>::new());
        assert_eq!(values.containing("e\u{0}f", 9), ["e\u{0}f"]);
        assert_eq!(values.containing("h", 9), ["g\u{1}h"]);
    }

    /// Proves that values that are added in parts are in their order, each once, and are found like those that were there before, also after the text is
    /// arranged again.
    #[test]
    fn values_are_added() {
        let parts: [&[&str]; 4] = [&["m", "b", "\u{e9}cole"], &[], &["a", "m", "z", "c"], &["b"]];
        let (mut values, mut known) = (SortedValues::default(), BTreeSet::new());
        assert!(values.is_empty());
        for part in parts {
            let part: BTreeSet<String> = part.iter().map(|value| (*value).to_owned()).collect();
            values.extend(part.clone());
            known.extend(part);
            assert!(values.iter().eq(&known), "{values:?}");
        }
        for _ in 0..2 {
            assert_eq!((values.len(), values.contains("c"), values.contains("d")), (6, true, false));
            assert_eq!(values.at_or_after("c").collect::<Vec<_>>(), ["c", "m", "z", "\u{e9}cole"]);
            assert_eq!(values.before("d").collect::<Vec<_>>(), ["a", "b", "c"]);
            assert_eq!(values.before("a").next_back(), None);
            assert_eq!(values.containing("ecole", 9), ["\u{e9}cole"]);
            values.compact();
            assert!(values.iter().eq(&known), "{values:?}");
        }
    }

    /// Proves which values start with a prefix, each once.
    #[test]
    fn prefixes() {
        let values = sorted(&["5415", "541511", "541512", "5417", "61"]);
        assert_eq!(values.starting_with(["5415".to_owned(), "541511".to_owned()]), ["5415", "541511", "541512"]);
        assert_eq!(values.starting_with(["9".to_owned()]), Vec::<String>::new());
    }

    /// Proves that values that are added one by one are in their order in both directions at each time, whatever part of them was merged.
    #[test]
    fn single_values_are_added() {
        let (mut values, mut known) = (SortedValues::default(), BTreeSet::new());
        for n in 0..1_000 {
            // Each number below 1,009, which is a prime, once.
            let value = format!("name {:04}", (n + 1) * 400 % 1_009);
            values.extend([value.clone()].into());
            known.insert(value.clone());
            assert_eq!(values.len(), known.len());
            assert!(values.contains(&value) && !values.contains("name"));
            assert_eq!(values.before(&value).next_back(), known.range(..value.clone()).next_back().map(String::as_str));
            assert_eq!(values.at_or_after(&value).nth(1), known.range(value.clone()..).nth(1).map(String::as_str));
            if n % 100 == 0 || n == 999 {
                assert!(values.iter().eq(&known) && values.iter().rev().eq(known.iter().rev()), "{n}");
            }
        }
        assert!(!values.recent.is_empty(), "the last values are not merged yet");
    }

    /// Proves that one value more copies no list of all places, and that many are merged with it.
    #[test]
    fn a_single_value_copies_few_places() {
        let mut values: SortedValues = (0..1_000).map(|n| format!("name {n:04}")).collect();
        let before = values.starts.as_ptr();
        values.extend(["name 0500 a".to_owned(), "name 0001".to_owned()].into());
        assert_eq!((values.starts.as_ptr(), values.starts.len(), values.recent.len()), (before, 1_000, 1));
        values.extend((0..100).map(|n| format!("other {n:02}")).collect());
        assert_eq!((values.starts.len(), values.recent.len()), (1_101, 0));
    }

    /// Proves that values take their letters, their ends and their places, and little memory beyond.
    #[test]
    fn memory() {
        let values: SortedValues = (0..1_000).map(|n| format!("name {n:04}")).collect();
        assert_eq!((values.text.len(), values.starts.len(), values.recent.capacity()), (1_000 * 10, 1_000, 0));
        // How much more is allocated than asked for is up to the allocator.
        let has_little_spare = |length: usize, capacity: usize| capacity <= length + length / 4;
        assert!(has_little_spare(values.text.len(), values.text.capacity()), "{}", values.text.capacity());
        assert!(has_little_spare(values.starts.len(), values.starts.capacity()), "{}", values.starts.capacity());
        assert!((18_000..25_000).contains(&values.bytes()), "{}", values.bytes());
    }
}

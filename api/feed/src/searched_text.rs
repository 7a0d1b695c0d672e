//! The values of a dimension as one text, in which those that contain a part of a name are found.
//!
//! A search reads the memory from its beginning to its end at most once. To look at each value of a sorted set instead waits for memory at each of them, which
//! takes many times as long with hundreds of thousands of values.

use memchr::memmem::Finder;
use texts::folding::folded;

/// Ends a value.
const END: char = '\u{0}';
/// Separates a value as searches compare it from the value itself, if they differ.
const SPELLED: char = '\u{1}';

/// The values of a dimension, in no order.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchedText {
    /// Each value as searches compare it; after [`SPELLED`] as it is, if that differs; and [`END`].
    text: String,
    /// Values that contain the characters with a meaning here. They are searched one by one.
    others: Vec<String>,
}

impl SearchedText {
    /// Adds a value in lower case that is not here yet.
    pub(crate) fn add(&mut self, value: &str) {
        if value.contains([END, SPELLED]) {
            self.others.push(value.to_owned());
            return;
        }
        // Values are stored in lower case, so one without accents is folded.
        if value.is_ascii() {
            self.text.push_str(value);
        } else {
            self.text.push_str(&folded(value));
            self.text.push(SPELLED);
            self.text.push_str(value);
        }
        self.text.push(END);
    }

    /// The values that contain a text, without case and accents, in their order. There are at most `values_max` plus one: the extra value shows that there are
    /// too many. `part` is as searches compare it; an empty one finds nothing.
    pub(crate) fn containing(&self, part: &str, values_max: usize) -> Vec<String> {
        if part.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<String> = self.others.iter().filter(|value| folded(value).contains(part)).cloned().collect();
        if !part.contains([END, SPELLED]) {
            self.find(part, values_max, &mut found);
        }
        found.truncate(values_max.saturating_add(1));
        found.sort_unstable();
        found
    }

    /// Adds the values of the text that contain a part to those that were found, until there are too many.
    fn find(&self, part: &str, values_max: usize, found: &mut Vec<String>) {
        let finder = Finder::new(part);
        let mut rest = self.text.as_str();
        while found.len() <= values_max
            && let Some(at) = finder.find(rest.as_bytes())
        {
            let (before, after) = rest.split_at(at);
            let begin = before.rfind(END).map_or(0, |end| end + END.len_utf8());
            let end = after.find(END).map_or(rest.len(), |end| at + end);
            let (value, more) = rest.split_at(end);
            let value = value.get(begin..).unwrap_or_default();
            let (compared, spelled) = value.split_once(SPELLED).unwrap_or((value, value));
            // It is the first place in this value, so a place behind what is compared is the only kind that it has.
            if at < begin + compared.len() {
                found.push(spelled.to_owned());
            }
            rest = more.strip_prefix(END).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(values: &[&str]) -> SearchedText {
        let mut text = SearchedText::default();
        values.iter().for_each(|value| text.add(value));
        text
    }

    /// Proves which values contain a text: each once, with or without accents, as they are recorded, and one more than are wanted if there are too many.
    #[test]
    fn searches() {
        let codes = text(&["61", "541512", "5415", "541511", "5417"]);
        assert_eq!(codes.containing("15", 9), ["5415", "541511", "541512"]);
        assert_eq!(codes.containing("5", 9), ["5415", "541511", "541512", "5417"]);
        assert_eq!(codes.containing("15", 1).len(), 2);
        assert_eq!((codes.containing("61", 9), codes.containing("5417", 9)), (vec!["61".to_owned()], vec!["5417".to_owned()]));
        assert_eq!(codes.containing("", 9), Vec::<String>::new());
        assert_eq!(text(&[]).containing("a", 9), Vec::<String>::new());
        let named = text(&["universit\u{e9} laval", "rice", "universite\u{301} de caen", "\u{e9}cole"]);
        assert_eq!(named.containing("universite", 9), ["universite\u{301} de caen", "universit\u{e9} laval"]);
        assert_eq!(named.containing("ecole", 9), ["\u{e9}cole"]);
        assert_eq!(named.containing("cole", 9), ["\u{e9}cole"], "once, although it is in both forms of the value");
        assert_eq!(named.containing("\u{e9}cole", 9), Vec::<String>::new(), "only what is compared is searched");
    }

    /// Proves that no text reaches from one value into the next, and that the characters between values are found in values alone.
    #[test]
    fn values_do_not_join() {
        let values = text(&["ab", "cd", "e\u{0}f", "g\u{1}h"]);
        assert_eq!(values.containing("bc", 9), Vec::<String>::new());
        assert_eq!(values.containing("b\u{0}c", 9), Vec::<String>::new());
        assert_eq!(values.containing("e\u{0}f", 9), ["e\u{0}f"]);
        assert_eq!(values.containing("h", 9), ["g\u{1}h"]);
    }
}

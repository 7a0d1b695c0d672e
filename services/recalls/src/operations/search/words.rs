//! The words of texts and queries, and the documents of the keyword index.

use schemas::position::Seq;
use schemas::views::recalls::{Recall, day_of};
use texts::folding::folded_words;
use texts::numbers::{campaign, number_of};

use crate::operations::rows::{Filter, UNDATED};
use operation::problem::Problem;

/// The longest word in the index, in characters; longer words are cut.
const WORD_CHARS_MAX: usize = 256;
/// The longest keyword, in characters.
const KEYWORD_CHARS_MAX: usize = 200;
/// How many words a keyword has at most.
const KEYWORD_WORDS_MAX: usize = 16;

/// The words of a text: runs of letters and digits without case and accents. Each letter is converted separately, so that a prefix remains a prefix.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    folded_words(text).into_iter().map(|word| word.chars().take(WORD_CHARS_MAX).collect()).collect()
}

/// What a keyword asks for: all of its words, or the recall with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// The distinct words, sorted.
    pub words: Vec<String>,
    /// The word of the index that a recall with this number has, if the keyword can be a number.
    pub number: Option<String>,
}

impl Keyword {
    /// What identifies the keyword: its words, then its number.
    #[must_use]
    pub fn text(&self) -> String {
        self.words.iter().chain(&self.number).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// The word of the index for a number in compact form. No other word is like it.
fn number_word(number: &str) -> String {
    format!("#{}", campaign(number).as_deref().unwrap_or(number))
}

/// The words and the number of a keyword.
///
/// # Errors
/// `parameter-invalid` for a keyword without words, or one that is too long.
pub fn query_words(keyword: &str) -> Result<Keyword, Problem> {
    if keyword.chars().count() > KEYWORD_CHARS_MAX {
        return Err(Problem::parameter("keyword", format!("it is longer than {KEYWORD_CHARS_MAX} characters")));
    }
    let mut words = words(keyword);
    words.sort_unstable();
    words.dedup();
    match words.len() {
        0 => Err(Problem::parameter("keyword", "it holds no word: letters or digits are wanted")),
        count if count > KEYWORD_WORDS_MAX => Err(Problem::parameter("keyword", format!("it holds more than {KEYWORD_WORDS_MAX} words"))),
        _ => Ok(Keyword { words, number: number_of(keyword).map(|number| number_word(&number)) }),
    }
}

/// One version of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) id: String,
    pub(super) seq: Seq,
    /// Days since 1970, or [`UNDATED`].
    pub(super) day: i64,
    pub(super) category: String,
    /// The agencies that issued the recall.
    pub(super) agencies: Vec<String>,
    /// The distinct words of title, brand and hazard, and a word for each number of the recall, sorted.
    pub(super) words: Vec<String>,
}

impl Document {
    /// The document of a record after change `seq`.
    pub(super) fn new(seq: Seq, record: &Recall) -> Self {
        let mut all: Vec<String> = [&record.title, &record.brand, &record.hazard].into_iter().flat_map(|text| words(text)).collect();
        let numbers = record.numbers.iter().chain([&record.id]);
        all.extend(numbers.filter_map(|number| number_of(number)).map(|number| number_word(&number)));
        all.sort_unstable();
        all.dedup();
        let day = if record.date.is_empty() { UNDATED } else { day_of(&record.date) };
        let mut agencies = record.agencies.clone();
        if !agencies.contains(&record.agency) {
            agencies.push(record.agency.clone());
        }
        Self { id: record.id.clone(), seq, day, category: record.category.clone(), agencies, words: all }
    }

    /// The bytes of memory that the document needs.
    pub(super) fn bytes(&self) -> usize {
        let texts = [&self.id, &self.category].into_iter().chain(&self.agencies).chain(&self.words);
        size_of::<Self>() + texts.map(|text| size_of::<String>() + text.len()).sum::<usize>()
    }

    /// Whether every word of a query is a prefix of a word of the document, or its number is one of the recall.
    pub(super) fn has(&self, query: &Keyword) -> bool {
        let has_word = |wanted: &String| {
            let at = self.words.partition_point(|word| word < wanted);
            self.words.get(at).is_some_and(|word| word.starts_with(wanted.as_str()))
        };
        query.words.iter().all(has_word) || query.number.as_ref().is_some_and(|number| self.words.binary_search(number).is_ok())
    }

    /// Whether category and agency match.
    pub(super) fn matches(&self, filter: &Filter) -> bool {
        filter.category.is_none_or(|category| self.category == category)
            && filter.agency.is_none_or(|agency| self.agencies.iter().any(|other| other == agency))
    }
}

/// The first and last day of a filter.
pub(super) fn days(filter: &Filter) -> (i64, i64) {
    let first = match (&filter.from, &filter.to) {
        (Some(from), _) => day_of(from),
        (None, Some(_)) => UNDATED + 1,
        (None, None) => UNDATED,
    };
    (first, filter.to.as_deref().map_or(i64::MAX, day_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how texts are split into words, and that the words of a query match only whole words and prefixes.
    #[test]
    fn words_and_beginnings() {
        assert_eq!(words("Li-Ion (18650) \u{c9}CLAIR's"), ["li", "ion", "18650", "eclair", "s"]);
        let record =
            Recall { title: "Chocolate Eclairs".to_owned(), brand: "ACME".to_owned(), hazard: "may burn".to_owned(), ..Recall::default() };
        let document = Document::new(Seq(1), &record);
        for (query, found) in
            [("eclair", true), ("CHOC acme", true), ("burn may", true), ("colate", false), ("acme x", false), ("burning", false)]
        {
            assert_eq!(document.has(&query_words(query).unwrap()), found, "{query}");
        }
        let numbers = ["FDA:Z-0315-2026".to_owned(), "NHTSA:26V360000".to_owned()].into();
        let numbered = Document::new(Seq(1), &Recall { id: "FDA:Z-0315-2026".to_owned(), numbers, ..Recall::default() });
        for (query, found) in [
            ("Z-0315-2026", true),
            ("z-0315-2026", true),
            ("fda:Z-0315-2026", true),
            ("26V360000", true),
            ("26v-360", true),
            ("0315", false),
            ("2026", false),
            ("26V36", false),
            ("Z-0315", false),
        ] {
            assert_eq!(numbered.has(&query_words(query).unwrap()), found, "{query}");
        }
        let title = "Ha\u{308}agen-Dazs JALAPE\u{d1}O \u{130}stanbul Wei\u{df}wurst".to_owned();
        let accented = Document::new(Seq(1), &Recall { title, ..Recall::default() });
        for query in ["haagen", "H\u{e4}agen-dazs", "jalapeno", "JALAPEN\u{303}O", "istanbul", "\u{130}stan", "weisswurst", "Wei\u{df}"] {
            assert!(accented.has(&query_words(query).unwrap()), "{query}");
        }
        assert!(query_words(" !? ").is_err());
        assert!(query_words(&"a".repeat(201)).is_err());
        assert!(query_words(&(0..17).map(|n| format!("w{n} ")).collect::<String>()).is_err());
    }
}

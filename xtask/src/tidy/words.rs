//! The glossary of plain English, enforced: retired words and phrases may not come back into code, comments, texts and documents.
//!
//! Identifiers are split into their words, so `told_at` and `ToldAt` both contain "told". A word that has legitimate uses is not retired as a
//! whole; only the phrases with its retired meaning are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::Finding;
use crate::tree::Tree;

/// Retired words, and what to write instead. A plural is a word of its own.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("beside", "next to, in addition, alongside"),
    ("door", "stream"),
    ("doors", "streams"),
    ("lane", "queue, subscription, watch matcher"),
    ("lanes", "queues, subscriptions, watch matchers"),
    ("shelf", "saved items"),
    ("shelves", "saved items"),
    ("till", "what it is: until, checkout, payment"),
    ("told", "response notes, change details, delivered, reported"),
    ("whosoever", "owner, holder"),
    ("wish", "subscription, filter"),
    ("wishes", "subscriptions, filters"),
];

/// Retired phrases, and what to write instead: consecutive words, of identifiers too, whatever is between them.
const PHRASES: &[(&str, &str)] = &[
    ("by nobody's leave", "offline, without contacting the server"),
    ("failing places", "failing concurrency"),
    ("go on with", "resume, continue"),
    ("goes on", "continues, resumes"),
    ("goes on with", "resumes, continues"),
    ("going on with", "resuming, continuing"),
    ("gone on with", "resumed"),
    ("is set aside", "is rejected, is parked, is a dead letter"),
    ("is fed", "is given, is loaded"),
    ("is odd", "is unexpected, is malformed"),
    ("kept aside", "rejected, stored"),
    ("kept things", "saved items"),
    ("last mark", "last checkpoint"),
    ("leave alone", "back off"),
    ("leaves alone", "backs off"),
    ("left alone", "back off"),
    ("put aside", "rejected, parked"),
    ("puts aside", "rejects, parks"),
    ("stand beside", "be next to"),
    ("stands alone", "is on its own"),
    ("stands beside", "is next to"),
    ("stands for nothing", "means unknown"),
    ("stands there", "is there"),
    ("the mark of", "the checkpoint of"),
    ("the played", "the simulated"),
    ("their turns", "their syncs"),
    ("was fed", "was given, was loaded"),
    ("was odd", "was unexpected"),
    ("were odd", "were unexpected"),
    ("well places", "healthy concurrency"),
    ("well receivers", "healthy receivers"),
    ("who keeps the lease", "the lease holder"),
    ("whoever holds it", "the holder"),
    ("with its mark", "with its checkpoint"),
];

/// Files in which any word may occur: texts of upstreams, the names of stored fields, licences and generated files, and this table.
const EXEMPT: &[&str] = &["Cargo.lock", "LICENSE", "ops/engine-files/", "tests/fixtures/", "xtask/src/tidy/words.rs"];

/// Stored and foreign names that contain retired words. They are accepted as they are written here.
const NAMES: &[&str] = &["\"door\"", "`door`", "\"told\"", "LINKAGES:DOORS", "\"LANE\"", "left-alone", "Shelf Stable"];

/// Endings of the files that are checked.
const ENDINGS: &[&str] =
    &[".css", ".go", ".html", ".java", ".js", ".json", ".md", ".mjs", ".py", ".rs", ".sh", ".toml", ".ts", ".txt", ".yaml", ".yml"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_checked = |path: &str| {
        let has_ending = ENDINGS.iter().any(|ending| path.ends_with(ending)) || !path.rsplit('/').next().unwrap_or(path).contains('.');
        has_ending && !EXEMPT.iter().any(|folder| path.starts_with(folder))
    };
    tree.files().filter(|(path, _)| is_checked(path)).flat_map(|(path, text)| check_file(path, text)).collect()
}

/// A retired phrase as its words and as a text, and what to write instead.
type Phrase = (Vec<String>, &'static str, &'static str);

/// The retired phrases, by their first words.
static BY_FIRST_WORD: LazyLock<HashMap<String, Vec<Phrase>>> = LazyLock::new(|| {
    let mut phrases: HashMap<String, Vec<Phrase>> = HashMap::new();
    for (phrase, instead) in PHRASES {
        let words = words_of(phrase);
        phrases.entry(words[0].clone()).or_default().push((words, phrase, instead));
    }
    phrases
});

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut before: Vec<String> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words = words_of(&without_names(line));
        for word in &words {
            let retired = WORDS.iter().find(|(retired, _)| retired == word);
            findings.extend(retired.map(|(retired, instead)| finding(path, at + 1, retired, instead)));
        }
        // A phrase may begin on the line before.
        let (begun, mut found) = (before.len(), Vec::new());
        before.extend(words);
        for start in 0..before.len() {
            let (first, rest) = (&before[start], &before[start..]);
            let ends_here = |phrase: &&Phrase| start + phrase.0.len() > begun && rest.starts_with(&phrase.0);
            found.extend(BY_FIRST_WORD.get(first).into_iter().flatten().filter(ends_here).map(|(_, phrase, instead)| (*phrase, *instead)));
        }
        found.sort_unstable();
        found.dedup();
        findings.extend(found.into_iter().map(|(phrase, instead)| finding(path, at + 1, phrase, instead)));
        before.drain(..begun);
    }
    findings
}

/// A line without the names that are accepted.
fn without_names(line: &str) -> Cow<'_, str> {
    NAMES.iter().fold(Cow::Borrowed(line), |line, name| if line.contains(name) { line.replace(name, " ").into() } else { line })
}

fn finding(path: &str, line: usize, retired: &str, instead: &str) -> Finding {
    Finding::new(path, line, format!("\"{retired}\" is retired; say: {instead}"))
}

/// The words of a line in lower case. Underscores and capital letters within an identifier separate words, as in `is_told` and `isTold`.
fn words_of(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in line.chars() {
        let is_part = c.is_alphabetic() || (c == '\'' && !word.is_empty());
        if !is_part || (c.is_uppercase() && was_lower) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if is_part {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.extend((!word.is_empty()).then_some(word));
    words.iter_mut().for_each(|word| word.truncate(word.trim_end_matches('\'').len()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check_file("a/src/x.rs", text).into_iter().map(|finding| finding.line).collect()
    }

    /// Proves that retired words are found in prose and in every form of identifier, and that words which only contain them are not.
    #[test]
    fn retired_words() {
        for bad in ["// Told again.", "let told_at = 1;", "struct ToldNotes;", "const TOLD: u8 = 1;", "door=\"x\"", "the doors'"] {
            assert_eq!(lines(bad), [1], "{bad}");
        }
        assert!(lines("outdoors, indoor planes, until, besides, untold").is_empty());
        assert_eq!(check_file("a.md", "x\nbeside\n")[0].to_string(), "a.md:2: \"beside\" is retired; say: next to, in addition, alongside");
    }

    /// Proves that phrases are found in any case, over the end of a line, and only as a whole.
    #[test]
    fn retired_phrases() {
        assert_eq!(lines("It is left\n// alone.\nleft_alone\n"), [2, 3]);
        assert_eq!(lines("by nobody's leave"), [1]);
        assert!(lines("what is left\n\nalone; well, an odd number of turns in a run").is_empty());
    }

    /// Proves that stored and foreign names are accepted, but not next to the same word in another use.
    #[test]
    fn names_are_accepted() {
        assert!(lines("#[serde(rename = \"door\")]\n(\"Not Shelf Stable\", x)\n\"left-alone\"").is_empty());
        assert_eq!(lines("the field `door` of a door"), [1]);
    }
}

//! An index of names of companies: finds every name that matches a given one without comparing each.
//!
//! A name that matches exactly shares an exact key. A name that matches strongly has a partner for each word. So the names with a word that
//! can be the partner of one word of the given name, and with as many words, contain all of them; the index looks at the word whose partners
//! are the fewest. Words within some edits of each other share a text that results from deleting as many letters of each.

use std::collections::{HashMap, HashSet};

use crate::near_names::edits_max;
use xxhash_rust::xxh3::xxh3_64;

use crate::company::{CompanyName, NameMatch, compare, edits_between};

/// An index of names. Each has the number of its insertion.
#[derive(Debug, Default)]
pub struct CompanyIndex {
    names: Vec<CompanyName>,
    /// The names with an exact key, by its hash.
    exact: HashMap<u64, Vec<u32>>,
    /// The number of each word.
    words: HashMap<String, u32>,
    /// The words by their numbers.
    spelled: Vec<String>,
    /// The names of a number of words with a word, by both.
    names_of_word: HashMap<(u32, usize), Vec<u32>>,
    /// The words of which a text remains after deletions, by its hash.
    words_of_rest: HashMap<u64, Vec<u32>>,
}

impl CompanyIndex {
    /// Adds a name and returns its number, counted from 0.
    pub fn insert(&mut self, name: CompanyName) -> u32 {
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        for key in name.exact_keys() {
            self.exact.entry(xxh3_64(key.as_bytes())).or_default().push(number);
        }
        let words = name.sorted_words();
        let count = words.len();
        let mut before: Option<&String> = None;
        for word in words.iter().filter(|word| before.replace(word) != Some(word)) {
            let id = Self::word_id(&mut self.words, &mut self.spelled, &mut self.words_of_rest, word);
            self.names_of_word.entry((id, count)).or_default().push(number);
        }
        self.names.push(name);
        number
    }

    fn word_id(words: &mut HashMap<String, u32>, spelled: &mut Vec<String>, words_of_rest: &mut HashMap<u64, Vec<u32>>, word: &str) -> u32 {
        if let Some(id) = words.get(word) {
            return *id;
        }
        let id = u32::try_from(spelled.len()).unwrap_or(u32::MAX);
        for rest in rests(word) {
            words_of_rest.entry(rest).or_default().push(id);
        }
        words.insert(word.to_owned(), id);
        spelled.push(word.to_owned());
        id
    }

    /// The number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the names that may match one, in the order of their numbers: all that match, and others.
    #[must_use]
    pub fn candidates(&self, name: &CompanyName) -> Vec<u32> {
        let mut found: Vec<u32> =
            name.exact_keys().iter().filter_map(|key| self.exact.get(&xxh3_64(key.as_bytes()))).flatten().copied().collect();
        let count = name.sorted_words().len();
        let partners = name.sorted_words().iter().map(|word| {
            let lists: Vec<&Vec<u32>> = self.partners(word).into_iter().filter_map(|id| self.names_of_word.get(&(id, count))).collect();
            (lists.iter().map(|list| list.len()).sum::<usize>(), lists)
        });
        if let Some((_, lists)) = partners.min_by_key(|(total, _)| *total) {
            found.extend(lists.into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the names that match one, in the order of their numbers.
    #[must_use]
    pub fn matches(&self, name: &CompanyName) -> Vec<(u32, NameMatch)> {
        let candidates = self.candidates(name);
        let compared = candidates.into_iter().filter_map(|number| {
            let other = self.names.get(usize::try_from(number).ok()?)?;
            Some((number, compare(name, other)?))
        });
        compared.collect()
    }

    /// Returns the words that can be the partner of a word, itself included.
    fn partners(&self, word: &str) -> Vec<u32> {
        if edits_max(word) == 0 {
            return self.words.get(word).copied().into_iter().collect();
        }
        let near: HashSet<u32> = rests(word).iter().filter_map(|rest| self.words_of_rest.get(rest)).flatten().copied().collect();
        let is_partner = |id: &u32| {
            let other = usize::try_from(*id).ok().and_then(|at| self.spelled.get(at));
            other.is_some_and(|other| edits_between(word, other).is_some())
        };
        near.into_iter().filter(is_partner).collect()
    }
}

/// Returns the hashes of what remains of a word after as many deletions as it may have edits. Empty for a word that admits none.
fn rests(word: &str) -> HashSet<u64> {
    let limit = edits_max(word);
    let mut all = HashSet::new();
    if limit == 0 {
        return all;
    }
    let mut level: Vec<String> = vec![word.to_owned()];
    all.insert(xxh3_64(word.as_bytes()));
    for _ in 0..limit {
        let mut shorter = Vec::new();
        for text in &level {
            for (at, c) in text.char_indices() {
                let mut rest = String::with_capacity(text.len());
                rest.push_str(text.get(..at).unwrap_or_default());
                rest.push_str(text.get(at + c.len_utf8()..).unwrap_or_default());
                if all.insert(xxh3_64(rest.as_bytes())) {
                    shorter.push(rest);
                }
            }
        }
        level = shorter;
    }
    all
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// The companies that are generated by default. `HIGHWATER_MATCHING_COMPANIES=100000` compares five billion pairs; use an optimised build.
    const COMPANIES: usize = 1_500;
    const STEMS: &[&str] = &[
        "ACME",
        "ADVANCED",
        "ALPINE",
        "AMERICAN",
        "ATLANTIC",
        "AVIATION",
        "BANK",
        "BLUE",
        "BRIDGE",
        "BROTHERS",
        "CAPITAL",
        "CARTER",
        "CENTURY",
        "CHEMICAL",
        "COASTAL",
        "CONSTRUCTION",
        "CONTROL",
        "DEFENSE",
        "DELTA",
        "DYNAMICS",
        "EAGLE",
        "ELECTRIC",
        "ENERGY",
        "ENGINEERING",
        "ENTERPRISES",
        "FEDERAL",
        "FREIGHT",
        "GENERAL",
        "GLOBAL",
        "GRAND",
        "GROUP",
        "HARBOR",
        "HEALTH",
        "INDUSTRIES",
        "INTERNATIONAL",
        "IRON",
        "LOGISTICS",
        "MARINE",
        "MEDICAL",
        "MESA",
        "METAL",
        "NATIONAL",
        "NORTHERN",
        "OCEAN",
        "OIL",
        "PACIFIC",
        "PARTNERS",
        "PIONEER",
        "PRECISION",
        "RESEARCH",
        "RIVER",
        "SECURITY",
        "SERVICES",
        "SOLUTIONS",
        "SOUTHERN",
        "STEEL",
        "SUMMIT",
        "SUPPLY",
        "SYSTEMS",
        "TECHNOLOGIES",
        "TRADING",
        "TRANSPORT",
        "UNITED",
        "VALLEY",
        "WESTERN",
        "WORLDWIDE",
    ];
    const FORMS: &[&str] = &["INC", "LLC", "L.L.C.", "CO LTD", "AG", "GMBH", "CORPORATION", "", ""];

    fn with_error(word: &str, random: &mut StdRng) -> String {
        let mut letters: Vec<char> = word.chars().collect();
        let at = random.random_range(0..letters.len());
        match random.random_range(0..4) {
            0 if letters.len() > 1 => drop(letters.remove(at)),
            1 => letters.insert(at, random.random_range('A'..='Z')),
            2 if at + 1 < letters.len() => letters.swap(at, at + 1),
            _ => letters[at] = random.random_range('A'..='Z'),
        }
        letters.into_iter().collect()
    }

    /// Names of one to four words; a third of them with errors, so that many are near to each other.
    fn company(random: &mut StdRng) -> CompanyName {
        let count = random.random_range(1..=4);
        let mut words: Vec<String> = (0..count)
            .map(|_| match random.random_range(0..10) {
                0 => random.random_range(1..99).to_string(),
                1 => (0..random.random_range(2..12)).map(|_| random.random_range('A'..='F')).collect(),
                _ => STEMS.choose(random).unwrap().to_string(),
            })
            .collect();
        while random.random_bool(0.3) {
            let at = random.random_range(0..words.len());
            words[at] = with_error(&words[at], random);
        }
        CompanyName::new(&format!("{} {}", words.join(" "), FORMS.choose(random).unwrap())).unwrap()
    }

    /// The lists in which the record of a name is, by the key that records keep.
    fn lists_of_record(name: &CompanyName) -> Vec<String> {
        let keys = name.exact_keys();
        let words = keys.iter().find_map(|key| key.strip_prefix("words/")).unwrap();
        crate::near_names::lists_of(&words.split(' ').collect::<Vec<_>>())
    }

    /// Proves that the index finds every pair of names that comparing all pairs finds, at the same grade.
    #[test]
    fn finds_what_comparing_all_pairs_finds() {
        let wanted = std::env::var("HIGHWATER_MATCHING_COMPANIES").ok().and_then(|count| count.parse().ok());
        let mut random = StdRng::seed_from_u64(26);
        let names: Vec<CompanyName> = (0..wanted.unwrap_or(COMPANIES)).map(|_| company(&mut random)).collect();
        let mut index = CompanyIndex::default();
        for name in &names {
            index.insert(name.clone());
        }
        assert_eq!((index.len(), index.is_empty()), (names.len(), false));
        let (mut pairs, mut strong) = (0_usize, 0_usize);
        for name in &names {
            let all = names.iter().zip(0..).filter_map(|(other, number)| Some((number, compare(name, other)?)));
            let all: Vec<(u32, NameMatch)> = all.collect();
            assert_eq!(index.matches(name), all, "{}", name.normal());
            pairs += all.len() - 1;
            strong += all.iter().filter(|(_, found)| found.grade == crate::company::Grade::Strong).count();
        }
        assert!(strong > names.len() / 20 && pairs > strong, "{pairs} pairs, {strong} of them strong: too few to prove anything");
        // The lists of records find them, too: each group of lists of a name has every name that matches it strongly.
        let lists: Vec<HashSet<String>> = names.iter().map(|name| lists_of_record(name).into_iter().collect()).collect();
        for name in &names {
            let groups = name.near_lists();
            for (other, own) in names.iter().zip(&lists) {
                if compare(name, other).is_some_and(|found| found.grade == crate::company::Grade::Strong) {
                    assert!(
                        !groups.is_empty() && groups.iter().all(|group| group.iter().any(|list| own.contains(list))),
                        "{name:?} {other:?}"
                    );
                }
            }
        }
        println!("{} companies: {pairs} matches, {strong} of them strong, each found by the index", names.len());
    }

    /// Proves that an index without names finds none, and that the index does not depend on the order of insertion but for the numbers.
    #[test]
    fn order_of_insertion() {
        let company_named = |text: &str| CompanyName::new(text).unwrap();
        assert!(CompanyIndex::default().matches(&company_named("Acme")).is_empty());
        let names = ["Acme Freight LLC", "Acme Frieght Inc", "ACMEFREIGHT", "Carter", "Freight Acme"];
        let found = |names: &[&str]| {
            let mut index = CompanyIndex::default();
            for name in names {
                index.insert(company_named(name));
            }
            let mut found: Vec<&str> = index.matches(&company_named("Acme Freight")).iter().map(|(at, _)| names[*at as usize]).collect();
            found.sort_unstable();
            found.join("|")
        };
        let mut reversed = names;
        reversed.reverse();
        assert_eq!(found(&names), "ACMEFREIGHT|Acme Freight LLC|Acme Frieght Inc|Freight Acme");
        assert_eq!(found(&reversed), found(&names));
    }
}

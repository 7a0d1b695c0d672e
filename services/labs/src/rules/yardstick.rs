//! How well the lexicon classifies: titles that the authors of the lexicon wrote and labelled themselves (`yardstick.txt`), so the figures are
//! in-sample, next to two simple baselines. `ops/checks/labs-yardstick` prints them, and measures labelled grants of another file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::record::lexicon::{GENERAL, LEXICON};

use super::category::{CLASSIFIER, Texts};
use texts::phrases::{Phrases, words};

/// The environment variable with another file of labelled grants.
const FILE: &str = "LABS_YARDSTICK";

/// A labelled grant: kind (`S10`, `MIX`), category, title, terms and the beginning of the abstract.
struct Labelled {
    kind: String,
    category: String,
    title: String,
    terms: Vec<String>,
    summary: String,
}

/// Reads labelled grants: one a line, its fields separated by `|`, its terms by `;`.
fn labelled(text: &str) -> Vec<Labelled> {
    let one = |line: &str| {
        let mut fields = line.split('|').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        let (kind, category, title) = (next(), next(), next());
        Labelled { kind, category, title, terms: next().split(';').map(str::to_owned).collect(), summary: next() }
    };
    text.lines().map(one).collect()
}

/// The labelled grants of this directory.
fn own() -> Vec<Labelled> {
    labelled(include_str!("../../data/yardstick.txt"))
}

/// The category of the first phrase of the lexicon in title, terms and abstract.
fn first_word(grant: &Labelled) -> String {
    static PHRASES: LazyLock<Phrases> =
        LazyLock::new(|| LEXICON.entries.iter().flat_map(|category| category.words.clone()).collect::<Vec<_>>().into());
    let phrases = &*PHRASES;
    let text = words(&format!("{} {} {}", grant.title, grant.terms.join(" "), grant.summary));
    let list: Vec<&str> = text.split_ascii_whitespace().collect();
    let found = (0..list.len()).find_map(|at| phrases.beginning(&list[at..]).next());
    let category_with = |phrase: &str| LEXICON.entries.iter().find(|category| category.words.iter().any(|word| word == phrase));
    found.and_then(|phrase| category_with(&phrase.shown)).map_or_else(|| GENERAL.to_owned(), |category| category.name.clone())
}

fn ours(grant: &Labelled) -> String {
    CLASSIFIER.classify(&Texts { title: &grant.title, terms: &grant.terms, summary: &grant.summary }).category
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few hundred")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn accuracy(grants: &[&Labelled], answer: impl Fn(&Labelled) -> String) -> f64 {
    share(grants.iter().filter(|grant| answer(grant) == grant.category).count(), grants.len())
}

/// The mean over the categories of the harmonic mean of precision and recall.
#[expect(clippy::cast_precision_loss, reason = "counts of a few hundred")]
fn macro_f1(grants: &[&Labelled], answer: impl Fn(&Labelled) -> String) -> f64 {
    let answers: Vec<(&str, String)> = grants.iter().map(|grant| (grant.category.as_str(), answer(grant))).collect();
    let categories: BTreeSet<&str> = answers.iter().map(|(category, _)| *category).collect();
    let f1_of = |category: &&str| {
        let right = answers.iter().filter(|(wanted, got)| wanted == category && got == category).count();
        let (wanted, got) =
            (answers.iter().filter(|(wanted, _)| wanted == category).count(), answers.iter().filter(|(_, got)| got == category).count());
        2.0 * share(right, wanted + got)
    };
    categories.iter().map(f1_of).sum::<f64>() / categories.len() as f64
}

/// The figures of the lexicon and of the baselines.
struct Figures {
    /// Top-1 share of instruments: ours, and the first word of the lexicon.
    top: (f64, f64),
    /// Macro-F1 of mixed grants: ours, the first word of the lexicon, and the majority class.
    f1: (f64, f64, f64),
}

/// Measures labelled grants, and prints the figures and what is wrong.
fn measure(all: &[Labelled]) -> Figures {
    assert!(all.iter().all(|grant| LEXICON.entries.iter().any(|category| category.name == grant.category)));
    let of_kind = |kind: &str| -> Vec<&Labelled> { all.iter().filter(|grant| grant.kind == kind).collect() };
    let (instruments, mixed) = (of_kind("S10"), of_kind("MIX"));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for grant in &mixed {
        *counts.entry(&grant.category).or_default() += 1;
    }
    let majority = counts.iter().max_by_key(|(_, count)| **count).map_or(GENERAL, |(category, _)| category);
    let top = (accuracy(&instruments, ours), accuracy(&instruments, first_word));
    let f1 = (macro_f1(&mixed, ours), macro_f1(&mixed, first_word), macro_f1(&mixed, |_| majority.to_owned()));
    println!("lexicon version {}", LEXICON.version);
    println!("instruments: {} titles, top-1 {:.3}, first lexicon word {:.3}", instruments.len(), top.0, top.1);
    println!("mixed: {} grants, macro-F1 {:.3}, first lexicon word {:.3}, majority class {:.3}", mixed.len(), f1.0, f1.1, f1.2);
    println!("mixed: accuracy {:.3}, first lexicon word {:.3}", accuracy(&mixed, ours), accuracy(&mixed, first_word));
    let general = share(all.iter().filter(|grant| ours(grant) == GENERAL).count(), all.len());
    println!("General laboratory: {general:.3} of all");
    for grant in all.iter().filter(|grant| ours(grant) != grant.category) {
        println!("wrong: {:?} is {}, not {}; first word: {}", grant.title, ours(grant), grant.category, first_word(grant));
    }
    Figures { top, f1 }
}

/// Proves that the lexicon puts the titles of instruments into their category in nine of ten cases, and mixed grants with a macro-F1 of 0.70,
/// above both baselines. The labels are our own, so this is in-sample. Grants of another file are measured without a bound.
#[test]
fn labs_yardstick() {
    if let Ok(path) = std::env::var(FILE) {
        println!("labels: {path}");
        measure(&labelled(&std::fs::read_to_string(path).unwrap()));
        return;
    }
    println!("labels: our own, in-sample");
    let Figures { top, f1 } = measure(&own());
    assert!(top.0 >= 0.90, "{top:?}");
    assert!(f1.0 >= 0.70 && f1.0 > f1.1 && f1.0 > f1.2, "{f1:?}");
}

/// Measures how many grants one core classifies in a second; prints the figure.
#[test]
fn labs_classifying_speed() {
    let all = own();
    let summary = all.iter().map(|grant| grant.title.as_str()).collect::<Vec<_>>().join(". ");
    let summary: String = summary.chars().take(1_000).collect();
    let (begun, rounds) = (std::time::Instant::now(), 10);
    let mut found = 0;
    for _ in 0..rounds {
        for grant in &all {
            let texts = Texts { title: &grant.title, terms: &grant.terms, summary: &summary };
            found += usize::from(CLASSIFIER.classify(&texts).category != GENERAL);
        }
    }
    assert!(found > 0);
    println!("classified {} grants in {:?}", rounds * all.len(), begun.elapsed());
}

//! How well the lexicon classifies: titles that the authors of the lexicon wrote and labelled themselves (`yardstick.txt`), so the figures are
//! in-sample, next to two simple baselines. `ops/checks/labs-yardstick` prints them.

use std::collections::{BTreeMap, BTreeSet};

use schemas::views::labs::lexicon::{GENERAL, LEXICON};

use super::category::{CLASSIFIER, Texts};
use schemas::phrases::{Phrases, words};

/// A labelled grant: kind (`S10`, `MIX`), category, title and terms.
struct Labelled {
    kind: &'static str,
    category: &'static str,
    title: &'static str,
    terms: Vec<String>,
}

fn labelled() -> Vec<Labelled> {
    let lines = include_str!("yardstick.txt").lines();
    let one = |line: &'static str| {
        let mut fields = line.split('|');
        let mut next = || fields.next().unwrap_or_default();
        Labelled { kind: next(), category: next(), title: next(), terms: next().split(';').map(str::to_owned).collect() }
    };
    lines.map(one).collect()
}

/// The category of the first phrase of the lexicon in title and terms.
fn first_word(grant: &Labelled) -> String {
    let phrases: Phrases = LEXICON.entries.iter().flat_map(|category| category.words.clone()).collect::<Vec<_>>().into();
    let text = words(&format!("{} {}", grant.title, grant.terms.join(" ")));
    let list: Vec<&str> = text.split_ascii_whitespace().collect();
    let found = (0..list.len()).find_map(|at| phrases.beginning(&list[at..]).next());
    let of = |phrase: &str| LEXICON.entries.iter().find(|category| category.words.iter().any(|word| word == phrase));
    found.and_then(|phrase| of(&phrase.shown)).map_or_else(|| GENERAL.to_owned(), |category| category.name.clone())
}

fn ours(grant: &Labelled) -> String {
    CLASSIFIER.classify(&Texts { title: grant.title, terms: &grant.terms, summary: "" }).category
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
    let answers: Vec<(&str, String)> = grants.iter().map(|grant| (grant.category, answer(grant))).collect();
    let categories: BTreeSet<&str> = answers.iter().map(|(category, _)| *category).collect();
    let of = |category: &&str| {
        let right = answers.iter().filter(|(wanted, got)| wanted == category && got == category).count();
        let (wanted, got) =
            (answers.iter().filter(|(wanted, _)| wanted == category).count(), answers.iter().filter(|(_, got)| got == category).count());
        2.0 * share(right, wanted + got)
    };
    categories.iter().map(of).sum::<f64>() / categories.len() as f64
}

/// Proves that the lexicon puts the titles of instruments into their category in nine of ten cases, and mixed grants with a macro-F1 of 0.70,
/// above both baselines. The labels are our own, so this is in-sample.
#[test]
fn labs_yardstick() {
    let all = labelled();
    assert!(all.iter().all(|grant| LEXICON.entries.iter().any(|category| category.name == grant.category)));
    let of = |kind: &str| -> Vec<&Labelled> { all.iter().filter(|grant| grant.kind == kind).collect() };
    let (instruments, mixed) = (of("S10"), of("MIX"));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for grant in &mixed {
        *counts.entry(grant.category).or_default() += 1;
    }
    let majority = counts.iter().max_by_key(|(_, count)| **count).map_or(GENERAL, |(category, _)| category);
    let top = (accuracy(&instruments, ours), accuracy(&instruments, first_word));
    let f1 = (macro_f1(&mixed, ours), macro_f1(&mixed, first_word), macro_f1(&mixed, |_| majority.to_owned()));
    println!("labels: our own, in-sample; lexicon version {}", LEXICON.version);
    println!("instruments: {} titles, top-1 {:.3}, first lexicon word {:.3}", instruments.len(), top.0, top.1);
    println!("mixed: {} grants, macro-F1 {:.3}, first lexicon word {:.3}, majority class {:.3}", mixed.len(), f1.0, f1.1, f1.2);
    for grant in all.iter().filter(|grant| ours(grant) != grant.category) {
        println!("wrong: {:?} is {}, not {}", grant.title, ours(grant), grant.category);
    }
    assert!(top.0 >= 0.90, "{top:?}");
    assert!(f1.0 >= 0.70 && f1.0 > f1.1 && f1.0 > f1.2, "{f1:?}");
}

/// Measures how many grants one core classifies in a second; prints the figure.
#[test]
fn labs_classifying_speed() {
    let all = labelled();
    let summary = all.iter().map(|grant| grant.title).collect::<Vec<_>>().join(". ");
    let summary: String = summary.chars().take(1_000).collect();
    let (begun, rounds) = (std::time::Instant::now(), 10);
    let mut found = 0;
    for _ in 0..rounds {
        for grant in &all {
            let texts = Texts { title: grant.title, terms: &grant.terms, summary: &summary };
            found += usize::from(CLASSIFIER.classify(&texts).category != GENERAL);
        }
    }
    assert!(found > 0);
    println!("classified {} grants in {:?}", rounds * all.len(), begun.elapsed());
}

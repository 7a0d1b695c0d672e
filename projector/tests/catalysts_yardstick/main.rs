//! The yardstick of the catalysts service: its rules on labelled names and sentences, next to simple baselines. The labels were made by the
//! authors of the rules, so the figures say that known wordings are read, not how unknown ones will be (in-sample).
//! `ops/checks/catalysts-yardstick` prints them.

use std::collections::BTreeSet;

use jiff::civil::Date;
use projector::services::catalysts::companies::Named;
use projector::services::catalysts::sentences;
use schemas::company_names::normal_form;
use schemas::dates::scan;
use serde::Deserialize;

#[derive(Deserialize)]
struct Sentences {
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    text: String,
    before: String,
    company: String,
    filed: Date,
    expected: Vec<Expected>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Expected {
    from: Date,
    to: Date,
    over: bool,
}

#[derive(Deserialize)]
struct Sponsors {
    listed: Vec<Listed>,
    none: Vec<String>,
}

#[derive(Deserialize)]
struct Listed {
    ticker: String,
    title: String,
    sponsors: Vec<String>,
}

/// How many answers are right, of those given and of those wanted.
#[derive(Default)]
struct Score {
    right: usize,
    given: usize,
    wanted: usize,
}

impl Score {
    fn add(&mut self, right: usize, given: usize, wanted: usize) {
        self.right += right;
        self.given += given;
        self.wanted += wanted;
    }

    fn precision(&self) -> f64 {
        self.right as f64 / self.given.max(1) as f64
    }

    fn recall(&self) -> f64 {
        self.right as f64 / self.wanted.max(1) as f64
    }

    #[expect(clippy::print_stdout, reason = "the figures are what the yardstick is for")]
    fn print(&self, name: &str) {
        println!(
            "{name}: precision {:.3}, recall {:.3} ({} right, {} given, {} wanted)",
            self.precision(),
            self.recall(),
            self.right,
            self.given,
            self.wanted
        );
    }
}

/// Proves that target dates of labelled sentences are read with a precision of at least 0.98 and a recall of at least 0.90, and prints them
/// next to the baseline, which takes the first date of the sentence.
#[test]
fn target_dates() {
    let Sentences { sentences: all } = serde_json::from_str(include_str!("sentences.json")).unwrap();
    let (mut own, mut baseline) = (Score::default(), Score::default());
    for one in &all {
        let wanted: BTreeSet<Expected> = one.expected.iter().copied().collect();
        let read = sentences::read(&one.text, &one.before, &one.company, one.filed);
        let given: BTreeSet<Expected> = read
            .iter()
            .filter_map(|target| target.date.map(|date| Expected { from: date.from, to: date.to, over: target.is_over }))
            .collect();
        own.add(given.intersection(&wanted).count(), given.len(), wanted.len());
        if given != wanted {
            println!("wrong: {} gave {given:?}", one.text);
        }
        let first = scan(&one.text, Some(one.filed)).first().map(|date| Expected { from: date.from, to: date.to, over: false });
        let right = first.filter(|first| wanted.contains(first)).map_or(0, |_| 1);
        baseline.add(right, usize::from(first.is_some()), wanted.len());
    }
    own.print(&format!("target dates of {} sentences (in-sample)", all.len()));
    baseline.print("  baseline: the first date of the sentence");
    assert!(own.precision() >= 0.98 && own.recall() >= 0.90);
}

/// Proves that labelled sponsors get the right ticker with a precision of at least 0.98 and a recall of at least 0.70, and prints that next
/// to the baseline, which takes names whose sorted words are alike to at least 80 of 100.
#[test]
fn tickers() {
    let Sponsors { listed, none } = serde_json::from_str(include_str!("sponsors.json")).unwrap();
    let labelled = listed.iter().flat_map(|company| company.sponsors.iter().map(move |name| (name.as_str(), company.ticker.as_str())));
    let labelled: Vec<(&str, &str)> = labelled.chain(none.iter().map(|name| (name.as_str(), ""))).collect();
    let (mut own, mut baseline) = (Score::default(), Score::default());
    for (name, ticker) in &labelled {
        let mut named = Named::default();
        for (number, company) in listed.iter().enumerate().filter(|(_, company)| normal_form(&company.title) == normal_form(name)) {
            named.listed.insert(format!("{number:010}"), vec![company.ticker.clone()]);
        }
        let given = named.ticker(name).1;
        own.add(usize::from(!ticker.is_empty() && given == *ticker), usize::from(!given.is_empty()), usize::from(!ticker.is_empty()));
        if given != *ticker {
            println!("wrong: {name} gave {given:?}, not {ticker:?}");
        }
        let best = listed.iter().max_by_key(|company| token_sort_ratio(name, &company.title));
        let given = best.filter(|company| token_sort_ratio(name, &company.title) >= 80).map_or("", |company| company.ticker.as_str());
        baseline.add(usize::from(!ticker.is_empty() && given == *ticker), usize::from(!given.is_empty()), usize::from(!ticker.is_empty()));
    }
    own.print(&format!("tickers of {} sponsors (in-sample)", labelled.len()));
    baseline.print("  baseline: sorted words alike to 80 of 100");
    assert!(own.precision() >= 0.98 && own.recall() >= 0.70);
}

/// How alike two names are, 0 to 100: the longest common subsequence of their sorted words, as a share of both.
fn token_sort_ratio(one: &str, other: &str) -> usize {
    let sorted = |name: &str| {
        let lower: String = name.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        let mut words: Vec<&str> = lower.split_whitespace().collect();
        words.sort_unstable();
        words.join(" ").chars().collect::<Vec<char>>()
    };
    let (one, other) = (sorted(one), sorted(other));
    let mut row = vec![0_usize; other.len() + 1];
    for a in &one {
        let mut diagonal = 0;
        for (at, b) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if a == b { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    if one.len() + other.len() == 0 { 0 } else { 200 * row[other.len()] / (one.len() + other.len()) }
}

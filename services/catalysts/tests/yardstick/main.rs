//! The yardstick of the catalysts service: its rules on labelled names and sentences, next to simple baselines. The labels were made by the
//! authors of the rules, so the figures say that known wordings are read, not how unknown ones will be (in-sample).
//! `ops/checks/catalysts-yardstick` prints them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use catalysts::rules::companies::Named;
use catalysts::rules::sentences;
use jiff::civil::Date;
use serde::Deserialize;
use texts::company_names::normal_form;
use texts::dates::scan;

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

/// A row of the regulator's list, as it is published.
#[derive(Deserialize)]
struct Row {
    cik_str: u64,
    ticker: String,
    title: String,
}

/// Names of sponsors, each with its ticker; empty for none.
type Labels = Vec<(String, String)>;

/// A company of the regulator's list: its name and its tickers.
struct Company {
    title: String,
    tickers: Vec<String>,
}

/// The environment variables with other data: a JSON object of sponsors and tickers, and the regulator's list as it is published.
const FILES: [&str; 2] = ["CATALYSTS_SPONSORS", "CATALYSTS_TICKERS"];

/// Returns the regulator's list, and labelled sponsors with their tickers, empty for none: those of this directory, or of the files that the
/// environment names. Of those, labels that the list does not have are left out.
fn companies_and_labels() -> Result<(Vec<Company>, Labels), Box<dyn std::error::Error>> {
    let [Some(sponsors), Some(tickers)] = FILES.map(|name| std::env::var(name).ok()) else {
        let Sponsors { listed, none } = serde_json::from_str(include_str!("sponsors.json"))?;
        let labelled = listed.iter().flat_map(|company| company.sponsors.iter().map(|name| (name.clone(), company.ticker.clone())));
        let labelled = labelled.chain(none.into_iter().map(|name| (name, String::new()))).collect();
        let company = |one: Listed| Company { title: one.title, tickers: vec![one.ticker] };
        return Ok((listed.into_iter().map(company).collect(), labelled));
    };
    let rows: BTreeMap<String, Row> = serde_json::from_str(&std::fs::read_to_string(tickers)?)?;
    let mut companies: BTreeMap<u64, Company> = BTreeMap::new();
    for row in rows.into_values() {
        let company = companies.entry(row.cik_str).or_insert_with(|| Company { title: row.title, tickers: Vec::new() });
        company.tickers.push(row.ticker);
    }
    let companies: Vec<Company> = companies.into_values().collect();
    let labels: BTreeMap<String, String> = serde_json::from_str(&std::fs::read_to_string(sponsors)?)?;
    let (all, is_listed) = (labels.len(), |ticker: &String| companies.iter().any(|company| company.tickers.contains(ticker)));
    let labelled: Labels = labels.into_iter().filter(|(_, ticker)| is_listed(ticker)).collect();
    print(&format!("{} companies; {} of {all} labels have a ticker of the list", companies.len(), labelled.len()));
    Ok((companies, labelled))
}

#[expect(clippy::print_stdout, reason = "the figures are what the yardstick is for")]
fn print(line: &str) {
    println!("{line}");
}

/// Proves that labelled sponsors get the right ticker with a precision of at least 0.98 and a recall of at least 0.70, and prints that next
/// to the baseline, which takes names whose sorted words are alike to at least 80 of 100.
#[test]
fn tickers() {
    let (companies, labelled) = companies_and_labels().unwrap();
    let mut by_form: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, company) in companies.iter().enumerate() {
        by_form.entry(normal_form(&company.title)).or_default().push(at);
    }
    let sorted: Vec<Vec<char>> = companies.iter().map(|company| sorted_words(&company.title)).collect();
    // Another ticker of the labelled company is right as well.
    let is_right = |given: &str, ticker: &str| {
        let is_same = |company: &Company| [given, ticker].iter().all(|one| company.tickers.iter().any(|own| own == one));
        !given.is_empty() && (given == ticker || companies.iter().any(is_same))
    };
    let (mut own, mut baseline) = (Score::default(), Score::default());
    for (name, ticker) in &labelled {
        let mut named = Named::default();
        for at in by_form.get(&normal_form(name)).into_iter().flatten() {
            named.listed.insert(format!("{at:010}"), companies[*at].tickers.clone());
        }
        let given = named.ticker(name).1;
        own.add(usize::from(is_right(&given, ticker)), usize::from(!given.is_empty()), usize::from(!ticker.is_empty()));
        if given != *ticker && !is_right(&given, ticker) {
            println!("wrong: {name} gave {given:?}, not {ticker:?}");
        }
        let words = sorted_words(name);
        let best = (0..companies.len()).map(|at| (token_sort_ratio(&words, &sorted[at]), at)).max_by_key(|(ratio, _)| *ratio);
        let best = best.filter(|(ratio, _)| *ratio >= RATIO_MIN).map_or("", |(_, at)| companies[at].tickers[0].as_str());
        baseline.add(usize::from(is_right(best, ticker)), usize::from(!best.is_empty()), usize::from(!ticker.is_empty()));
    }
    own.print(&format!("tickers of {} sponsors", labelled.len()));
    baseline.print("  baseline: sorted words alike to 80 of 100");
    assert!(own.precision() >= 0.98 && own.recall() >= 0.70);
}

/// How alike two names are at least, for the baseline.
const RATIO_MIN: usize = 80;

fn sorted_words(name: &str) -> Vec<char> {
    let lower: String = name.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let mut words: Vec<&str> = lower.split_whitespace().collect();
    words.sort_unstable();
    words.join(" ").chars().collect()
}

/// How alike two names are, 0 to 100: the longest common subsequence of their sorted words, as a share of both. 0 if their lengths alone
/// leave them below the threshold.
fn token_sort_ratio(one: &[char], other: &[char]) -> usize {
    let both = one.len() + other.len();
    if both == 0 || 200 * one.len().min(other.len()) < RATIO_MIN * both {
        return 0;
    }
    let mut row = vec![0_usize; other.len() + 1];
    for a in one {
        let mut diagonal = 0;
        for (at, b) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if a == b { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    200 * row[other.len()] / both
}

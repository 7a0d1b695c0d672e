//! Measures how many names a second are screened against an index of companies, on one core: `company_screening [COMPANIES] [NAMES]`, 170,000 and 20,000 by
//! default. Use an optimised build.

#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::time::Instant;

use matching::company::CompanyName;
use matching::index::CompanyIndex;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const SYLLABLES: &[&str] =
    &["al", "ber", "co", "dan", "el", "fer", "gor", "hal", "in", "jo", "ka", "lu", "mar", "nor", "os", "per", "ro", "san", "ti", "vel"];
const WORDS: &[&str] = &[
    "Group",
    "Industries",
    "International",
    "Trading",
    "Services",
    "Construction",
    "Logistics",
    "Systems",
    "Aviation",
    "Petroleum",
    "Shipping",
    "Global",
];
const FORMS: &[&str] = &["LLC", "Inc.", "Ltd", "GmbH", "Co., Ltd.", "S.A.", ""];

fn name(random: &mut StdRng) -> String {
    let own = |random: &mut StdRng| (0..random.random_range(2..5)).map(|_| *SYLLABLES.choose(random).unwrap_or(&"")).collect::<String>();
    let mut words: Vec<String> = (0..random.random_range(1..3)).map(|_| own(random)).collect();
    words.extend((0..random.random_range(0..3)).filter_map(|_| WORDS.choose(random).map(|word| (*word).to_owned())));
    words.extend(FORMS.choose(random).map(|form| (*form).to_owned()));
    words.join(" ")
}

fn main() {
    let mut counts = std::env::args().skip(1).filter_map(|arg| arg.parse::<usize>().ok());
    let (companies, screened) = (counts.next().unwrap_or(170_000), counts.next().unwrap_or(20_000));
    let mut random = StdRng::seed_from_u64(1);
    let start = Instant::now();
    let mut index = CompanyIndex::default();
    let mut known: Vec<String> = Vec::new();
    for _ in 0..companies {
        let text = name(&mut random);
        if let Some(company) = CompanyName::new(&text) {
            index.insert(company);
            known.push(text);
        }
    }
    println!("{} companies indexed in {:.1} s", index.len(), start.elapsed().as_secs_f64());
    // A third of the names is known, with a letter less.
    let asked: Vec<String> = (0..screened)
        .map(|at| match known.choose(&mut random) {
            Some(text) if at % 3 == 0 => text.chars().enumerate().filter(|(at, _)| *at != 3).map(|(_, c)| c).collect(),
            _ => name(&mut random),
        })
        .collect();
    let start = Instant::now();
    let mut found = 0;
    let mut slowest = 0.0_f64;
    for text in &asked {
        let begun = Instant::now();
        found += CompanyName::new(text).map_or(0, |name| index.matches(&name).len());
        slowest = slowest.max(begun.elapsed().as_secs_f64());
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} names screened: {:.0} a second, slowest {:.1} ms, {found} matches",
        asked.len(),
        asked.len() as f64 / seconds,
        slowest * 1e3
    );
}

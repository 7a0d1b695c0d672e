//! Measures the rules on pairs of marks that examiners, the Board or courts compared, next to simple baselines, and prints a table.
//! `ops/checks/names-yardstick` runs it.
//!
//! A pair of `data/decisions.txt` is in the tuning half if the sum of the bytes of both marks is even. The rules were chosen with the tuning half
//! and the pairs of the contract in view; the other half is reported. Who wrote the rules had written both halves, so the other half is no independent
//! test: it only was not used to choose between versions. The pairs and their labels are from memory of public decisions and were not looked up.
//! `data/training.txt` has further pairs that version 6 of the rules was chosen with. `data/more_decisions.txt` has pairs that were written down after
//! version 6 was chosen, divided in the same way. `data/independent.txt` was collected by people who had not seen the rules, and no rule was chosen with it.
//! Version 7 was chosen with the tuning halves and the strong marks of coined names (`bench names`).
//! `--pairs` prints every pair but those of the other halves and of the independent list. `--file FILE` counts the pairs of a file of the same form as well,
//! and prints them with `--pairs`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is the result")]

use std::process::ExitCode;

use marks::{Mark, Tier, similar};

/// Held similar, from examiners' guidelines and decisions.
const SIMILAR: &[(&str, &str)] = &[
    ("TMM", "TMS"),
    ("COMMCASH", "COMMUNICASH"),
    ("AUDIO BSS USA", "BOSS AUDIO SYSTEMS"),
    ("TRUCOOL", "TURCOOL"),
    ("NEWPORTS", "NEWPORT"),
    ("MILTRON", "MILLTRONICS"),
    ("LUTEX", "LUTEXAL"),
    ("XCEED", "X-SEED"),
    ("ISHINE", "ICE SHINE"),
    ("SEYCOS", "SEIKO"),
    ("CAYNA", "CANA"),
    ("TRUONE", "TRUE1"),
    ("STONE LION CAPITAL", "LION CAPITAL"),
    ("ML", "ML MARK LEES"),
    ("VEUVE ROYALE", "VEUVE CLICQUOT"),
    ("ENTELEC", "INTELECT"),
    ("CRESCO", "KRESSCO"),
    ("JOSE GASPAR GOLD", "GASPAR'S ALE"),
    ("PACKARD TECHNOLOGIES", "HEWLETT-PACKARD"),
    ("THE DELTA CAFE", "DELTA"),
    ("MACHO", "MACHO COMBOS"),
    ("VANTAGE TITAN", "TITAN"),
    ("CAREER IMAGE", "CREST CAREER IMAGES"),
];
/// Held different by the Federal Circuit.
const DIFFERENT: &[(&str, &str)] = &[
    ("CRISTAL", "CRYSTAL CREEK"),
    ("FROOT LOOPS", "FROOTEE ICE"),
    ("CITIBANK", "CAPITAL CITY BANK"),
    ("MAYA", "MAYARI"),
    ("VARGAS", "VARGA GIRL"),
    ("K+", "K+EFF"),
];

/// A pair, and whether it was held similar.
#[derive(Clone)]
struct Pair {
    is_similar: bool,
    one: String,
    other: String,
}

impl Pair {
    fn rule(&self) -> Option<marks::Rule> {
        similar(&Mark::new(&self.one)?, &Mark::new(&self.other)?)
    }

    fn is_for_tuning(&self) -> bool {
        self.one.bytes().chain(self.other.bytes()).map(u32::from).sum::<u32>() % 2 == 0
    }
}

fn compact(text: &str) -> String {
    Mark::new(text).map(|mark| mark.compact().to_owned()).unwrap_or_default()
}

fn soundex(text: &str) -> String {
    let code = |c: char| match c {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    };
    let (mut out, mut last) = (String::new(), '0');
    for (at, c) in text.chars().enumerate() {
        let this = code(c);
        if at == 0 {
            out.push(c);
        } else if this != '0' && this != last {
            out.push(this);
        }
        if !matches!(c, 'H' | 'W') {
            last = this;
        }
    }
    format!("{out:0<4}").chars().take(4).collect()
}

fn trigrams(text: &str) -> std::collections::BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.flat_map(|word| format!("  {word} ").chars().collect::<Vec<_>>().windows(3).map(String::from_iter).collect::<Vec<_>>()).collect()
}

fn trigram_similarity(one: &str, other: &str) -> f64 {
    let (one, other) = (trigrams(one), trigrams(other));
    one.intersection(&other).count() as f64 / one.union(&other).count().max(1) as f64
}

type Method = (&'static str, Box<dyn Fn(&Pair) -> bool>);

fn methods() -> Vec<Method> {
    let both = |pair: &Pair| (compact(&pair.one), compact(&pair.other));
    vec![
        ("our rules, strong", Box::new(|pair| pair.rule().is_some_and(|rule| rule.tier() <= Tier::Strong))),
        ("our rules, any tier", Box::new(|pair| pair.rule().is_some())),
        ("Levenshtein >= 0.8", Box::new(move |pair| strsim::normalized_levenshtein(&both(pair).0, &both(pair).1) >= 0.8)),
        ("Soundex", Box::new(move |pair| soundex(&both(pair).0) == soundex(&both(pair).1))),
        ("Jaro-Winkler >= 0.9", Box::new(move |pair| strsim::jaro_winkler(&both(pair).0, &both(pair).1) >= 0.9)),
        ("trigrams >= 0.5", Box::new(|pair| trigram_similarity(&pair.one, &pair.other) >= 0.5)),
        ("trigrams >= 0.3", Box::new(|pair| trigram_similarity(&pair.one, &pair.other) >= 0.3)),
    ]
}

fn main() -> ExitCode {
    let decisions: Vec<Pair> = include_str!("../data/decisions.txt").lines().filter_map(read).collect();
    let training: Vec<Pair> = include_str!("../data/training.txt").lines().filter_map(read).collect();
    let more: Vec<Pair> = include_str!("../data/more_decisions.txt").lines().filter_map(read).collect();
    let independent: Vec<Pair> = include_str!("../data/independent.txt").lines().filter_map(read).collect();
    let given = match given_file() {
        Ok(given) => given,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let contract = contract_pairs();
    let (tuned, other): (Vec<Pair>, Vec<Pair>) = decisions.into_iter().partition(Pair::is_for_tuning);
    let (more_tuned, more_other): (Vec<Pair>, Vec<Pair>) = more.into_iter().partition(Pair::is_for_tuning);
    if std::env::args().any(|arg| arg == "--pairs") {
        for pair in contract.iter().chain(&tuned).chain(&training).chain(&more_tuned).chain(given.iter().flatten()) {
            let held = if pair.is_similar { "similar" } else { "different" };
            println!("{held:10} {:5} {} / {}", pair.rule().map_or("-", marks::Rule::id), pair.one, pair.other);
        }
    }
    let mut sets = vec![("contract", &contract), ("tuning half", &tuned), ("training", &training), ("more, tuning half", &more_tuned)];
    if !std::env::args().any(|arg| arg == "--tuning") {
        sets.extend([("other half", &other), ("more, other half", &more_other), ("independent", &independent)]);
    }
    sets.extend(given.iter().map(|pairs| ("the file", pairs)));
    println!("{:22} {}", "pairs found", sets.iter().map(|(name, _)| format!("{name:>26}")).collect::<String>());
    for (name, method) in methods() {
        print!("{name:22} ");
        for (_, pairs) in &sets {
            let count = |is_similar: bool, found: bool| {
                pairs.iter().filter(|pair| pair.is_similar == is_similar && (!found || method(pair))).count()
            };
            print!(
                "  {:>3} of {:>3}, false {:>2} of {:>2}",
                count(true, true),
                count(true, false),
                count(false, true),
                count(false, false)
            );
        }
        println!();
    }
    if !meets_contract(count_found(&contract)) {
        println!("FAILED: strong >= 10 and any >= 21 of the similar pairs of the contract are wanted, and strong 0 of the different ones");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The pairs of the file that the arguments name, if they name one.
fn given_file() -> Result<Option<Vec<Pair>>, String> {
    let Some(file) = std::env::args().skip_while(|arg| arg != "--file").nth(1) else { return Ok(None) };
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let pairs: Vec<Pair> = text.lines().filter_map(read).collect();
    if pairs.is_empty() { Err(format!("{file} has no line `similar | MARK | MARK` or `different | MARK | MARK`")) } else { Ok(Some(pairs)) }
}

/// The pairs of the contract.
fn contract_pairs() -> Vec<Pair> {
    let pairs = |pairs: &[(&str, &str)], is_similar: bool| -> Vec<Pair> {
        pairs.iter().map(|(one, other)| Pair { is_similar, one: (*one).to_owned(), other: (*other).to_owned() }).collect()
    };
    [pairs(SIMILAR, true), pairs(DIFFERENT, false)].concat()
}

/// Counts the pairs that the rules find: those held similar that are strong, those held similar at any tier, and those held different that are strong.
fn count_found(pairs: &[Pair]) -> [usize; 3] {
    [(true, Tier::Strong), (true, Tier::Partial), (false, Tier::Strong)].map(|(is_similar, tier)| {
        pairs.iter().filter(|pair| pair.is_similar == is_similar && pair.rule().is_some_and(|rule| rule.tier() <= tier)).count()
    })
}

/// Whether the rules find as many of the contract's pairs as it wants, given what [`count_found`] counts of them.
fn meets_contract([strong, any, strong_of_different]: [usize; 3]) -> bool {
    strong >= 10 && any >= 21 && strong_of_different == 0
}

fn read(line: &str) -> Option<Pair> {
    let mut parts = line.split(" | ");
    let is_similar = match parts.next()? {
        "similar" => true,
        "different" => false,
        _ => return None,
    };
    Some(Pair { is_similar, one: parts.next()?.to_owned(), other: parts.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the rules find as many of the contract's 23 pairs held similar as it wants, and that none of its 6 pairs held different is strong.
    #[test]
    fn pairs_of_the_contract() {
        assert_eq!((SIMILAR.len(), DIFFERENT.len()), (23, 6));
        let found = count_found(&contract_pairs());
        assert!(meets_contract(found), "{found:?}");
    }
}

//! Tests of the rules: the worked examples of the contract, and what must hold for any two texts.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::Status;
use crate::words::is_legal;

fn rule(name: &str, mark: &str) -> Option<Rule> {
    similar(&Mark::new(name).unwrap(), &Mark::new(mark).unwrap())
}

/// Proves the worked examples of rules, and their distances.
#[test]
fn worked_examples() {
    for (name, mark, expected) in [
        ("Turcool", "TRUCOOL", Some(Rule::S3)),
        ("Seiko", "SEYCOS", Some(Rule::S4)),
        ("Kressco", "CRESCO", Some(Rule::S4)),
        ("Commcash", "COMMUNICASH", Some(Rule::S6)),
        ("Letvraxan", "VELTRAXAN", Some(Rule::S6)),
        ("Veltraxan", "VELRATXNA", Some(Rule::S6)),
        ("TRUE1", "TRUONE", Some(Rule::S3)),
        ("Lutexal", "LUTEX", Some(Rule::P3)),
        ("Maya", "MAYARI", None),
        ("Delta Cafe", "DELTA", Some(Rule::S5)),
        ("Acme", "ACME", Some(Rule::E1)),
        ("Lion Stone", "STONE LION", Some(Rule::S1)),
        ("Newports", "NEWPORT", Some(Rule::S2)),
        ("Bust Rust", "RUST BUSTER", Some(Rule::S7)),
        ("Bengal Lancer", "BENGAL", Some(Rule::S8)),
        ("Crest Career Images", "CAREER IMAGE", Some(Rule::S9)),
        ("WineBud", "BUD", Some(Rule::S11)),
        ("Titan", "VANTAGE TITAN", Some(Rule::P1)),
        ("El Gallo", "ROOSTER", Some(Rule::S13)),
        ("Buenos Dias", "GOOD MORNING", Some(Rule::S13)),
        ("Lobo Negro", "BLACK WOLF", Some(Rule::S13)),
        ("Lobo", "WOLF CREEK TRADERS", Some(Rule::P12)),
        // Each has a word of its own: not strong, whatever these words describe.
        ("Marlow Chicken", "MARLOW PIZZA", Some(Rule::P2)),
        ("Marlow Chicken", "MARLOW", Some(Rule::S5)),
        ("Marlow Chicken", "THE MARLOW CHICKEN HOUSE", Some(Rule::S5)),
        ("Tamarind Shield", "BALSAM TAMARIND", Some(Rule::P2)),
        // Also where the word in common has a translation, or one of the own words is descriptive.
        ("Star Chicken", "STAR PIZZA", Some(Rule::P2)),
        ("Liberty Savings", "LIBERTY REALTY", Some(Rule::P2)),
        ("Merriam Collegiate", "MERRIAM COLLEGE", Some(Rule::P2)),
        // An everyday word after another one, and one before it.
        ("Logic", "GLOBAL LOGIC", Some(Rule::P1)),
        ("Logic", "LOGIC GLOBAL", Some(Rule::S5)),
        ("Kressco", "GLOBAL KRESSCO", Some(Rule::S5)),
        // Everyday words of other meanings, of the same sound, of the same meaning, and forms of one word.
        ("Boston Tea Party", "BOSTON SEA PARTY", Some(Rule::P2)),
        ("Day Snow", "DAY SHOW", Some(Rule::P16)),
        ("Peach Day", "BEACH DAY", Some(Rule::S3)),
        ("Kressco Lite", "KRESSCO LIGHT", Some(Rule::S4)),
        ("Marino Inn", "MARINO INT", Some(Rule::S3)),
        ("Roach Motel", "ROACH INN", Some(Rule::S13)),
        ("City Woman", "CITY GIRL", Some(Rule::S13)),
        ("Nikon", "IKON", Some(Rule::P13)),
        // Four consonants in common, or three that are all; three of four are in common by chance.
        ("Advicor", "ALTOCOR", Some(Rule::P8)),
        ("Domari", "DENURO", Some(Rule::P8)),
        // Of long words most letters sound alike, or only the beginning of a coined word differs.
        ("Mictine", "MICTURIN", Some(Rule::S14)),
        ("Fostanel", "FOSTORIL", Some(Rule::S14)),
        ("Fostanel", "FOOSTTORIL", Some(Rule::S14)),
        ("Fostanel", "FUSTORIL", Some(Rule::P8)),
        ("Exxon", "TEXON", Some(Rule::S15)),
        ("Trader", "GRADER", Some(Rule::S3)),
        ("Gelvara", "GULDORU", None),
        // Three sounds rhyme if their letters are the same.
        ("Huggie", "DOUGIE", Some(Rule::P13)),
        ("Dabo", "NUBO", Some(Rule::P13)),
        ("Dabo", "NUBI", None),
    ] {
        assert_eq!(rule(name, mark), expected, "{name} and {mark}");
    }
    let mark_of = |text| Mark::new(text).unwrap();
    assert_eq!((distance(&mark_of("Turcool"), &mark_of("TRUCOOL")), distance(&mark_of("Seiko"), &mark_of("SEYCOS"))), (1, 3));
    assert_eq!(why(Rule::P3, &mark_of("Lutexal"), &mark_of("LUTEX")), "LUTEX is inside LUTEXAL");
    assert_eq!(why(Rule::P16, &mark_of("Day Snow"), &mark_of("DAY SHOW")), "few letters differ, but SNOW and SHOW have other meanings");
    assert_eq!(why(Rule::S3, &mark_of("Turcool"), &mark_of("TRUCOOL")), "one letter differs of 7 letters");
}

/// Proves that a mark of unknown status counts one tier lower and a dead one not at all, and what the numbers mean.
#[test]
fn statuses_and_verdicts() {
    assert_eq!(Tier::Exact.counted(Status::Unknown), Some(Tier::Strong));
    assert_eq!(Tier::Partial.counted(Status::Unknown), None);
    assert!(
        Rule::ALL.iter().all(|rule| rule.tier().counted(Status::Dead).is_none() && rule.tier().counted(Status::Live) == Some(rule.tier()))
    );
    for (exact, strong, contained, has_classes, expected) in [
        (1, 0, 0, false, "LIKELY_TAKEN"),
        (0, 1, 0, false, "CAUTION"),
        (0, 0, 1, true, "CAUTION"),
        (0, 0, 1, false, "LIKELY_AVAILABLE"),
        (0, 0, 0, true, "LIKELY_AVAILABLE"),
    ] {
        assert_eq!(Verdict::of(exact, strong, contained, has_classes).as_str(), expected);
    }
}

/// Proves that case, accents, signs, blanks outside and between words, and legal words change nothing, and that a blank in a word changes no
/// exact match.
#[test]
fn spelling_changes_nothing() {
    for text in ["ACME", " Ácme ", "acme, Inc.", "The ACME Company", "A C M E", "Ac me", "ＡＣＭＥ LLC"] {
        assert_eq!(rule(text, "Acme"), Some(Rule::E1), "{text}");
    }
    assert_eq!(rule("Ben & Jerry's", "BEN AND JERRYS"), Some(Rule::E1));
    assert_eq!(rule("Limited", "LIMITED"), Some(Rule::E1));
    assert!(Mark::new("").is_none() && Mark::new(" --!").is_none());
    assert_eq!(rule("Кошка", "КОШКИ"), Some(Rule::S3));
    assert_eq!(rule("猫", "犬"), None);
    for text in ["Acme\u{2122}", "Acme \u{2120}", "\u{ae}Acme", "Ac\u{2122}me"] {
        assert_eq!(rule(text, "ACME"), Some(Rule::E1), "{text}");
    }
    assert!(Mark::new("\u{2122}\u{ae}").is_none());
}

/// Proves for random names that case, accents, blanks outside and between words, and legal words change nothing, and that a blank in a word changes no exact
/// match, unless it makes a legal word of a part.
#[test]
fn spelling_of_random_names_changes_nothing() {
    let mut random = StdRng::seed_from_u64(83);
    let mut compared = 0;
    for _ in 0..3_000 {
        let name = random_name(&mut random);
        let Some(mark) = Mark::new(&name).filter(|mark| !mark.tokens().iter().any(|word| is_legal(word))) else { continue };
        let blanks = format!("  {}\t", name.trim().replace(' ', "   "));
        let accents = name.replace('A', "Á").replace('E', "é");
        for text in [name.to_lowercase(), accents, blanks, format!("The {name}, Inc."), format!("{name} LLC")] {
            assert_eq!(Mark::new(&text).map(|mark| mark.normal()), Some(mark.normal()), "{text:?}");
        }
        let (start, end) = mark.compact().split_at(random.random_range(0..=mark.compact().len()));
        if !is_legal(start) && !is_legal(end) {
            assert_eq!(rule(&format!("{start} {end}"), &name), Some(Rule::E1), "{start} {end} and {name}");
            compared += 1;
        }
    }
    assert!(compared > 2_000, "{compared}");
}

/// Proves that a syllable of Hangul is one letter: one of five may differ, whatever its parts, and one of two may not.
#[test]
fn syllables_of_hangul_are_letters() {
    assert_eq!(rule("가나다라마", "가나다라힣"), Some(Rule::S3));
    assert_eq!(rule("삼성", "삼정"), None);
    let mark_of = |text| Mark::new(text).unwrap();
    assert_eq!(distance(&mark_of("가나다라마"), &mark_of("가나다라힣")), 1);
    assert_eq!(mark_of("\u{1100}\u{1161}\u{1102}\u{1161}").normal(), "가나", "also if it was given in its parts");
}

/// Random names of the words of a few marks, changed a little, in random order.
pub(crate) fn random_name(random: &mut StdRng) -> String {
    const WORDS: [&str; 24] = [
        "ACME", "DELTA", "CAFE", "SEIKO", "TRU", "COOL", "NORTH", "STAR", "NOVA", "TECH", "KRESCO", "IMAGE", "LION", "CAPITAL", "X", "10",
        "MVP", "PHONIX", "SYNERGY", "GALLO", "QUICK", "WAVE", "POWER", "OF",
    ];
    let mut name = String::new();
    for _ in 0..random.random_range(1..4) {
        name.push_str(WORDS[random.random_range(0..WORDS.len())]);
        if random.random_bool(0.6) {
            name.push(' ');
        }
    }
    let mut letters: Vec<char> = name.chars().collect();
    for _ in 0..random.random_range(0..3) {
        let at = random.random_range(0..letters.len());
        match random.random_range(0..4) {
            0 => letters[at] = char::from(random.random_range(b'A'..=b'Z')),
            1 => letters.insert(at, char::from(random.random_range(b'A'..=b'Z'))),
            2 if letters.len() > 3 => drop(letters.remove(at)),
            _ if at > 0 => letters.swap(at, at - 1),
            _ => {}
        }
    }
    letters.into_iter().collect()
}

/// Proves that beginnings are alike with four letters in common, of which doubled ones count once.
#[test]
fn alike_beginnings() {
    for (one, other, expected) in [
        ("LISTER", "LISTOG", true),
        ("MILLTRONICS", "MILTRON", true),
        ("LISTER", "LISSOG", false),
        ("LLIS", "LIS", false),
        ("KOST", "COST", false),
        ("\u{416}\u{41e}\u{420}\u{410}", "\u{416}\u{41e}\u{420}\u{410}", true),
        ("", "", false),
    ] {
        assert_eq!((begin_alike(one, other), begin_alike(other, one)), (expected, expected), "{one} and {other}");
    }
}

/// Proves for random names that the rules are symmetric, that a name is exactly itself, that the normal form is stable, and that every rule has
/// a reason.
#[test]
fn invariants() {
    let mut random = StdRng::seed_from_u64(25);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..60_000 {
        let (one, other) = (random_name(&mut random), random_name(&mut random));
        let (Some(one), Some(other)) = (Mark::new(&one), Mark::new(&other)) else { continue };
        let found = similar(&one, &other);
        assert_eq!(found, similar(&other, &one), "{one:?} {other:?}");
        assert_eq!(similar(&one, &one), Some(Rule::E1));
        assert_eq!(similar(&Mark::from_normal(&one.normal()), &other), found);
        if let Some(found) = found {
            assert!(!why(found, &one, &other).is_empty());
            seen.insert(found);
        }
    }
    assert!(seen.len() > 20, "{seen:?}");
}

/// Proves that no text of any script makes the rules panic.
#[test]
fn any_text_is_compared() {
    let mut random = StdRng::seed_from_u64(7);
    let text = |random: &mut StdRng| -> String {
        let count = random.random_range(0..130);
        (0..count).filter_map(|_| char::from_u32(random.random_range(1..0x3000))).collect()
    };
    for _ in 0..3_000 {
        let (one, other) = (text(&mut random), text(&mut random));
        if let (Some(one), Some(other)) = (Mark::new(&one), Mark::new(&other)) {
            assert_eq!(similar(&one, &other), similar(&other, &one));
        }
    }
}

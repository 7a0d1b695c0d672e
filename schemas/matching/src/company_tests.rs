//! Tests of the comparison of names: the worked examples of the contract, and what must hold for any two texts.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

fn name(text: &str) -> CompanyName {
    CompanyName::new(text).unwrap()
}

fn grade(one: &str, other: &str) -> Option<Grade> {
    compare(&name(one), &name(other)).map(|found| found.grade)
}

/// Proves the worked examples of the contract, letter for letter.
#[test]
fn worked_examples() {
    for (one, other, expected) in [
        ("Siemens Aktiengesellschaft", "SIEMENS AG", Some(Grade::Exact)),
        ("CRISTALORD LIMITED", "CRYSTALORD LTD", Some(Grade::Strong)),
        ("LXC Aviation", "LAU Aviation", None),
        ("BAE Industries", "BWI Industries", None),
    ] {
        assert_eq!(grade(one, other), expected, "{one} and {other}");
    }
}

/// Proves which names match, at which grade and with which reason.
#[test]
fn reasons() {
    for (one, other, expected) in [
        ("Acme Inc", "ACME, Inc.", "exact: the same words"),
        ("Procter & Gamble Co.", "The Procter and Gamble Company", "exact: the same words"),
        ("Smith Brothers LLC", "Brothers Smith", "exact: the same words in another order"),
        ("SiemensAG", "Siemens AG", "exact: the same letters"),
        ("Good Will Company", "Goodwill Company", "exact: the same letters"),
        ("A. B. C. Company", "ABC Company", "exact: the same letters"),
        ("Société Générale S.A.", "SOCIETE GENERALE", "exact: the same words"),
        ("OOO Ромашка", "ООО \"РОМАШКА\"", "exact: the same words"),
        ("Walmart Inc.", "Wallmart Inc.", "strong: similar words: WALMART and WALLMART (1 edit)"),
        (
            "International Labour Organization",
            "Internatoinal Labor Organisation",
            "strong: similar words: INTERNATIONAL and INTERNATOINAL (1 edit), LABOUR and LABOR (1 edit), ORGANIZATION and ORGANISATION (1 edit)",
        ),
        ("Deutsche Bank AG", "Deutsche Bank GmbH", "exact: the same words; their legal forms are of two kinds"),
        ("Acme Corp", "Acme Inc", "exact: the same words"),
        ("Acme Co LLC", "Acme Company Inc", "exact: the same words; their legal forms are of two kinds"),
    ] {
        let found = compare(&name(one), &name(other)).map(|found| format!("{}: {found}", found.grade.as_str()));
        assert_eq!(found.as_deref(), Some(expected), "{one} and {other}");
    }
}

/// Proves that names of two companies do not match: another number, a missing word, another short word, an acronym.
#[test]
fn no_match() {
    for (one, other) in [
        ("Acme", "Acme Bio"),
        ("International Business Machines", "IBM"),
        ("Citigroup Trust 2007-AHL1", "Citigroup Trust 2007-AHL2"),
        ("Route12345 Freight", "Route12346 Freight"),
        ("Deutsche Bank (Schweiz) AG", "Deutsche Bank AG"),
        ("Smart AG LLC", "Smart Inc"),
        ("Acme Holdings Inc", "Acme Inc"),
        ("Yamahdi (UK) Limited", "Ya Mahdi Industries Group"),
        ("Industrial and Commercial Bank of Chad", "Industrial and Commercial Bank of China"),
        ("Bank of Austria", "Bank of Australia"),
        ("ET Solar Inc", "Solar Inc"),
        // Both words of one name are near to one word of the other only.
        ("Marina Marine", "Marina Carpet"),
    ] {
        assert_eq!(grade(one, other), None, "{one} and {other}");
    }
}

/// Proves that partners are assigned so that each word has one, if that is possible in any way.
#[test]
fn partners_are_assigned_as_a_whole() {
    // CARTEN is near to both; CARTER only to CARTEN's first choice.
    assert_eq!(grade("Barter Carter", "Carter Carten"), Some(Grade::Strong));
    assert_eq!(grade("Carter Carten", "Barter Carter"), Some(Grade::Strong));
}

/// Proves that hostile names are refused or compared within bounds: very long, without letters, with many marks or words, or of characters that
/// grow.
#[test]
fn hostile_names() {
    for text in ["", "   ", "-- // --", "\u{301}\u{301}", &"a".repeat(10_000), &format!("a{}", "\u{301}".repeat(10_000)), &"a ".repeat(149)]
    {
        assert!(CompanyName::new(text).is_none(), "{} characters", text.chars().count());
    }
    let marks = format!("a{}", "\u{301}".repeat(299));
    assert_eq!(name(&marks).normal(), "A");
    // One character that becomes eighteen.
    let grown = name(&"\u{fdfa}".repeat(2));
    assert!(compare(&grown, &grown).is_some());
    let long = name(&"x".repeat(300));
    assert_eq!(compare(&long, &name(&"x".repeat(299))), None);
    assert_eq!(grade("\u{0}Acme\u{7}", "acme"), Some(Grade::Exact));
}

fn random_name(random: &mut StdRng) -> String {
    const PARTS: &[&str] = &[
        "Acme",
        "Bank",
        "of",
        "the",
        "and",
        "&",
        "Carter",
        "Carten",
        "Barter",
        "International",
        "Internatoinal",
        "Inc.",
        "LLC",
        "A.B.C.",
        "AG",
        "GmbH",
        "Co",
        "Ltd",
        "2007",
        "Ünïon",
        "Union",
        "Unions",
        "(",
        ")",
        "ООО",
        "L L C",
        "S.A.",
        "\u{301}",
        "Ⅳ",
        "ﬁnance",
        "ß",
        "-",
    ];
    let count = random.random_range(0..6);
    let blank = |random: &mut StdRng| if random.random_bool(0.9) { " " } else { "" };
    (0..count).map(|_| format!("{}{}", PARTS[random.random_range(0..PARTS.len())], blank(random))).collect()
}

/// Proves what holds for any two names: a name matches itself exactly, the grade is the same in both directions, names match exactly if and only if they
/// share an exact key, the normal form is stable, and the number of pairs is that of the words which differ.
#[test]
fn invariants() {
    let mut random = StdRng::seed_from_u64(1);
    let (mut strong, mut exact) = (0, 0);
    for _ in 0..20_000 {
        let one = random_name(&mut random);
        let other = match random.random_range(0..10) {
            0 => format!("{} Inc", one.to_uppercase()),
            1 => one.replace("Carter", "Carten").replace("International", "Internatoinal"),
            _ => random_name(&mut random),
        };
        let (Some(one), Some(other)) = (CompanyName::new(&one), CompanyName::new(&other)) else { continue };
        assert!(compare(&one, &one).is_some_and(|found| found.grade == Grade::Exact && !found.has_other_form), "{one:?}");
        let (there, back) = (compare(&one, &other), compare(&other, &one));
        assert_eq!(
            there.as_ref().map(|m| (m.grade, m.has_other_form)),
            back.as_ref().map(|m| (m.grade, m.has_other_form)),
            "{one:?} and {other:?}"
        );
        let is_exact = there.as_ref().is_some_and(|found| found.grade == Grade::Exact);
        let shares_key = one.exact_keys().iter().any(|key| other.exact_keys().contains(key));
        assert_eq!(is_exact, shares_key, "{one:?} and {other:?}");
        if let Some(NameMatch { reason: Reason::SimilarWords(pairs), .. }) = &there {
            assert!(!pairs.is_empty() && one.words.len() == other.words.len(), "{one:?} and {other:?}");
            strong += 1;
        }
        exact += u32::from(is_exact);
        // What remains may end like a legal form (`SMART AG`), so that reading it again can only shorten it.
        let again = name(&one.normal());
        assert!(one.words.windows(again.words.len()).any(|part| part == again.words), "{one:?}");
    }
    assert!(strong > 20 && exact > 100, "{strong} strong and {exact} exact pairs were drawn");
}

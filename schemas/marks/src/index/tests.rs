//! Tests of the index: its answers equal a comparison with all marks, also after changes and from a snapshot.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::rules::tests::random_name;

/// Marks of the test. `HIGHWATER_TEST_MARKS` asks for more, for example 100000.
fn mark_count() -> u32 {
    std::env::var("HIGHWATER_TEST_MARKS").ok().and_then(|count| count.parse().ok()).unwrap_or(3_000)
}

/// Words of the labelled decisions, and random letters: marks among which every rule holds.
fn random_text(random: &mut StdRng) -> String {
    const DECISIONS: &str = include_str!("../../data/decisions.txt");
    let marks: Vec<&str> =
        DECISIONS.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split(" | ").skip(1).take(2)).collect();
    match random.random_range(0..4) {
        0 => marks[random.random_range(0..marks.len())].to_owned(),
        1 => {
            let words: Vec<&str> = marks.iter().flat_map(|mark| mark.split(' ')).collect();
            (0..random.random_range(1..5)).map(|_| words[random.random_range(0..words.len())]).collect::<Vec<_>>().join(" ")
        }
        2 => {
            let mut letters: Vec<char> = marks[random.random_range(0..marks.len())].chars().collect();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..letters.len());
                match random.random_range(0..3) {
                    0 => letters[at] = char::from(random.random_range(b'A'..=b'Z')),
                    1 => letters.insert(at, char::from(random.random_range(b'A'..=b'Z'))),
                    _ => {
                        let middle = letters.len() / 2;
                        letters.swap(at, middle);
                    }
                }
            }
            letters.into_iter().collect()
        }
        _ => random_name(random),
    }
}

fn entry(random: &mut StdRng, serial: u32) -> Entry {
    let pseudo_marks = if random.random_bool(0.1) { vec![random_text(random)] } else { Vec::new() };
    let classes = Classes::of(&[random.random_range(1..46)]);
    Entry { serial, text: random_text(random), pseudo_marks, classes, is_live: random.random_bool(0.9) }
}

/// Proves that the index answers as a comparison with all marks for names by which every rule is found, also after marks were added, replaced
/// and removed, and from a snapshot.
#[test]
fn answers_equal_a_scan() {
    let mut random = StdRng::seed_from_u64(14);
    let count = mark_count();
    let entries: Vec<Entry> = (0..count).map(|serial| entry(&mut random, serial)).collect();
    let mut index = Index::build(entries.clone(), 5);
    let mut seen = BTreeSet::new();
    let mut compare_all = |index: &Index, random: &mut StdRng, names: usize| {
        for _ in 0..names {
            let Some(name) = Mark::new(&random_text(random)) else { continue };
            let hits = index.find(&name);
            let expected = index.find_by_scan(&name);
            let missing: Vec<&Hit> = expected.iter().filter(|hit| !hits.contains(hit)).collect();
            assert!(missing.is_empty(), "{} misses {missing:?}", name.normal());
            assert_eq!(hits, expected);
            seen.extend(hits.iter().map(|hit| hit.rule));
        }
    };
    compare_all(&index, &mut random, 150);
    for seq in 6..12 {
        let added: Vec<Entry> = (0..40).map(|at| entry(&mut random, at * 7 + count - 100)).collect();
        let removed: Vec<u32> = (0..20).map(|_| random.random_range(0..count)).collect();
        index.update(added, &removed, seq);
    }
    compare_all(&index, &mut random, 50);
    let mut bytes = Vec::new();
    index.write(&mut bytes).unwrap();
    let again = Index::read(&mut bytes.as_slice()).unwrap();
    assert_eq!((again.seq(), again.len(), &again.segments), (11, index.len(), &index.segments));
    compare_all(&again, &mut random, 20);
    let missing: Vec<&Rule> = Rule::ALL.iter().filter(|rule| !seen.contains(rule)).collect();
    assert!(missing.is_empty(), "no name found a mark by {missing:?}");
}

/// Proves that updates replace and remove marks, and that small segments are merged.
#[test]
fn updates_replace_marks() {
    let mark =
        |serial, text: &str| Entry { serial, text: text.to_owned(), pseudo_marks: Vec::new(), classes: Classes::NONE, is_live: true };
    let mut index = Index::build(vec![mark(1, "ACME"), mark(2, "DELTA"), mark(1, "ACMEX")], 1);
    let found =
        |index: &Index, name: &str| index.find(&Mark::new(name).unwrap()).iter().map(|hit| (hit.serial, hit.rule)).collect::<Vec<_>>();
    assert_eq!(found(&index, "Acmex"), [(1, Rule::E1)]);
    for seq in 2..40 {
        index.update(vec![mark(seq as u32, "DELTA")], &[1], seq);
    }
    assert_eq!((index.len(), index.segments.len(), index.seq()), (38, 1, 39));
    assert!(found(&index, "Acmex").is_empty() && found(&index, "Delta").len() == 38);
    assert!(Index::default().find(&Mark::new("x").unwrap()).is_empty());
}

/// Proves that a snapshot that was cut or changed anywhere is refused.
#[test]
fn damaged_snapshots_are_refused() {
    let mut random = StdRng::seed_from_u64(3);
    let index = Index::build((0..50).map(|serial| entry(&mut random, serial)).collect(), 9);
    let mut bytes = Vec::new();
    index.write(&mut bytes).unwrap();
    for _ in 0..500 {
        let at = random.random_range(0..bytes.len());
        assert!(Index::read(&mut bytes.get(..at).unwrap()).is_err(), "cut at {at}");
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << random.random_range(0..8);
        assert!(Index::read(&mut damaged.as_slice()).is_err(), "changed at {at}");
    }
}

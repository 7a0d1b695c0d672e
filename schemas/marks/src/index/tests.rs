//! Tests of the index: its answers equal a comparison with all marks, at every position, also from a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::consonants::PackedSkeleton;
use crate::rules::tests::random_name;
use crate::{Classes, distance, similar};

/// Marks of the tests that run each time.
const MARKS: u32 = 3_000;

/// Pairs of marks that are similar by rules of which random marks may have none: sound, order, plural, other forms of words, translation, meaning.
const ALIKE: [&str; 24] = [
    "DABO",
    "NUBO",
    "ADVICOR",
    "ALTOCOR",
    "EXXON",
    "TEXON",
    "FOSTANEL",
    "FUSTORIL",
    "MICTINE",
    "MICTURIN",
    "LION STONE",
    "STONE LION",
    "NEWPORTS",
    "NEWPORT",
    "BUST RUST",
    "RUST BUSTER",
    "DAY SNOW",
    "DAY SHOW",
    "CREST CAREER IMAGES",
    "CAREER IMAGE",
    "EL GALLO",
    "ROOSTER",
    "BENGAL LANCER",
    "BENGAL",
];

/// Words of the labelled decisions, and random letters: marks among which every rule holds.
pub(super) fn random_text(random: &mut StdRng) -> String {
    const DECISIONS: &str = include_str!("../../data/decisions.txt");
    static MARKS: LazyLock<Vec<&str>> = LazyLock::new(|| {
        DECISIONS.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split(" | ").skip(1).take(2)).collect()
    });
    static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| MARKS.iter().flat_map(|mark| mark.split(' ')).collect());
    let (marks, words) = (&*MARKS, &*WORDS);
    match random.random_range(0..4) {
        0 => marks[random.random_range(0..marks.len())].to_owned(),
        1 => (0..random.random_range(1..5)).map(|_| words[random.random_range(0..words.len())]).collect::<Vec<_>>().join(" "),
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
        _ if random.random_bool(0.2) => ALIKE[random.random_range(0..ALIKE.len())].to_owned(),
        _ => random_name(random),
    }
}

fn entry(random: &mut StdRng) -> ComparedMark {
    let pseudo_marks = if random.random_bool(0.1) { vec![random_text(random)] } else { Vec::new() };
    let classes = Classes::of(&[random.random_range(1..46)]);
    ComparedMark { text: random_text(random), pseudo_marks, classes, is_live: random.random_bool(0.9) }
}

/// A mark with its normal form, if it has a word.
struct KnownMark {
    entry: ComparedMark,
    mark: Option<Mark>,
    pseudo_marks: Vec<Mark>,
}

/// The register as a list of changes of each mark, without an index.
#[derive(Default)]
struct Register {
    marks: BTreeMap<u32, Vec<(u32, Option<KnownMark>)>>,
}

impl Register {
    /// The next change of a mark.
    fn change(&mut self, seq: u32, serial: u32, after: Option<ComparedMark>) -> Change {
        let versions = self.marks.entry(serial).or_default();
        let before = versions.last().and_then(|(_, known)| known.as_ref());
        let (is_new, was_live) = (versions.is_empty(), before.is_some_and(|known| known.entry.is_live));
        let known = after.clone().map(|entry| {
            let pseudo_marks = entry.pseudo_marks.iter().filter_map(|text| Mark::new(text)).collect();
            KnownMark { mark: Mark::new(&entry.text), pseudo_marks, entry }
        });
        versions.push((seq, known));
        Change { seq, serial, is_new, was_live, after }
    }

    /// The marks that are not dead at a position.
    fn at(&self, at: u32) -> impl Iterator<Item = (u32, &KnownMark)> {
        self.marks.iter().filter_map(move |(serial, versions)| {
            let version = versions.iter().rev().find(|(seq, _)| *seq <= at)?;
            Some((*serial, version.1.as_ref()?))
        })
    }

    fn find(&self, name: &Mark, at: u32) -> Vec<Hit> {
        let hit = |(serial, known): (u32, &KnownMark)| {
            let mark = known.mark.as_ref()?;
            let is_pseudo = known.pseudo_marks.iter().any(|text| text.compact() == name.compact());
            let rule = match similar(name, mark) {
                Some(Rule::E1) => Rule::E1,
                _ if is_pseudo => Rule::E2,
                rule => rule?,
            };
            let (classes, is_live) = (known.entry.classes, known.entry.is_live);
            Some(Hit { serial, rule, classes, is_live, distance: distance(name, mark) as u32 })
        };
        self.at(at).filter_map(hit).collect()
    }

    fn corpus(&self, at: u32) -> Corpus {
        let known = self.marks.values().filter(|versions| versions.first().is_some_and(|(seq, _)| *seq <= at)).count();
        Corpus { marks: known as u64, live_marks: self.at(at).filter(|(_, known)| known.entry.is_live).count() as u64 }
    }
}

/// Proves for names by which every rule is found that the index answers as a comparison with all marks: after marks were added, changed, died and
/// revived, as of earlier positions, and from a snapshot. So are the numbers of marks.
#[test]
fn answers_equal_a_comparison_with_all_marks() {
    compare_with_all(MARKS);
}

/// Proves that the index answers as a comparison with all marks also if there are 100,000, the number in the contract. `.config/nextest.toml` leaves it out,
/// because it compares some thirty million pairs.
#[test]
fn answers_equal_a_comparison_with_100_000_marks() {
    compare_with_all(100_000);
}

/// Compares answers of an index of so many marks with those of a list.
fn compare_with_all(count: u32) {
    let mut random = StdRng::seed_from_u64(14);
    let mut register = Register::default();
    let first: Vec<Change> = (0..count).map(|serial| register.change(serial + 1, serial, Some(entry(&mut random)))).collect();
    let mut index = Index::default().apply(first, count, 7);
    let mut seen = BTreeSet::new();
    let mut compare_all = |index: &Index, register: &Register, random: &mut StdRng, names: usize, at: u32| {
        for number in 0..names {
            let alike = ALIKE.get(number).filter(|_| names > 100);
            let Some(name) = Mark::new(&alike.map_or_else(|| random_text(random), |text| (*text).to_owned())) else { continue };
            let (hits, expected) = (index.find(&name, at), register.find(&name, at));
            if hits != expected {
                // A name may find thousands of marks, so that only a difference is looked for.
                let missing: Vec<&Hit> = expected.iter().filter(|hit| !hits.contains(hit)).collect();
                let unexpected: Vec<&Hit> = hits.iter().filter(|hit| !expected.contains(hit)).collect();
                panic!("{} misses {missing:?} and finds {unexpected:?} at {at}", name.normal());
            }
            let of_name = watched_keys(&name);
            for hit in hits.iter().take(3) {
                let entry = register.at(at).find(|(serial, _)| *serial == hit.serial).unwrap().1;
                let of_mark = mark_keys(&entry.entry.text, &entry.entry.pseudo_marks);
                assert!(of_name.iter().any(|key| of_mark.contains(key)), "{} and {}", name.normal(), entry.entry.text);
            }
            seen.extend(hits.iter().map(|hit| hit.rule));
        }
        assert_eq!(index.corpus(at), register.corpus(at));
    };
    compare_all(&index, &register, &mut random, 150, count);
    let mut seq = count;
    for _ in 0..12 {
        let changes = (0..60).map(|_| {
            seq += 1;
            let serial = random.random_range(0..count + 40);
            let known = register
                .marks
                .get(&serial)
                .and_then(|versions| versions.iter().rev().find_map(|(_, known)| Some(known.as_ref()?.entry.clone())));
            let after = match random.random_range(0..4) {
                0 => None,
                1 => known.or_else(|| Some(entry(&mut random))),
                _ => Some(entry(&mut random)),
            };
            register.change(seq, serial, after)
        });
        let changes = changes.collect();
        seq += 3;
        index = index.apply(changes, seq, u64::from(seq));
    }
    compare_all(&index, &register, &mut random, 50, seq);
    for _ in 0..20 {
        let at = random.random_range(0..=seq);
        compare_all(&index, &register, &mut random, 4, at);
    }
    let mut bytes = Vec::new();
    index.write(&mut bytes).unwrap();
    let again = Index::read(&mut bytes.as_slice()).unwrap();
    assert_eq!((again.seq(), again.origin(), again.versions()), (seq, u64::from(seq), index.versions()));
    compare_all(&again, &register, &mut random, 20, seq);
    compare_all(&again, &register, &mut random, 5, count);
    let mut bytes_again = Vec::new();
    again.write(&mut bytes_again).unwrap();
    assert_eq!(bytes_again.len(), bytes.len());
    let missing: Vec<&Rule> = Rule::ALL.iter().filter(|rule| !seen.contains(rule)).collect();
    assert!(missing.is_empty(), "no name found a mark by {missing:?}");
}

/// Proves that two edits anywhere in a name of nine and more letters leave it a strong match that the index finds, also swaps of letters that are
/// next to each other.
#[test]
fn two_edits_are_found_at_any_length() {
    let mut random = StdRng::seed_from_u64(9);
    let letter = |random: &mut StdRng| char::from(random.random_range(b'A'..=b'Z'));
    let names: Vec<String> = (0..600_usize).map(|at| (0..9 + at % 24).map(|_| letter(&mut random)).collect()).collect();
    let entry_of = |text: &String| ComparedMark { text: text.clone(), pseudo_marks: Vec::new(), classes: Classes::NONE, is_live: true };
    let changes =
        (1..).zip(&names).map(|(seq, name)| Change { seq, serial: seq, is_new: true, was_live: false, after: Some(entry_of(name)) });
    let index = Index::default().apply(changes.collect(), 600, 0);
    for (serial, name) in (1..).zip(&names) {
        for _ in 0..6 {
            let mut letters: Vec<char> = name.chars().collect();
            for _ in 0..2 {
                let at = random.random_range(0..letters.len() - 1);
                match random.random_range(0..5) {
                    0 => letters[at] = letter(&mut random),
                    1 => letters.insert(at, letter(&mut random)),
                    2 => drop(letters.remove(at)),
                    _ => letters.swap(at, at + 1),
                }
            }
            let edited = Mark::new(&String::from_iter(letters)).unwrap();
            let is_alike = similar(&edited, &Mark::new(name).unwrap()).is_some_and(|rule| rule <= Rule::S3);
            let is_found = index.find(&edited, 600).iter().any(|hit| hit.serial == serial && hit.rule <= Rule::S3);
            assert_eq!(is_found, is_alike, "{} and {name}", edited.normal());
        }
    }
}

/// Proves that the index finds marks of 7 to 60 letters by rule S6, whatever first letters they have in common, and that the keys of a watched name
/// do so, too.
#[test]
fn near_letters_are_found_without_a_common_beginning() {
    let mut random = StdRng::seed_from_u64(12);
    // The letters are few, so that many marks have the same ones.
    let letter = |random: &mut StdRng| char::from(b"EAOINRSTLC"[random.random_range(0..10)]);
    let names: Vec<String> = (0..1_500_usize).map(|at| (0..7 + at % 54).map(|_| letter(&mut random)).collect()).collect();
    let entry_of = |text: &String| ComparedMark { text: text.clone(), pseudo_marks: Vec::new(), classes: Classes::NONE, is_live: true };
    let changes =
        (1..).zip(&names).map(|(seq, name)| Change { seq, serial: seq, is_new: true, was_live: false, after: Some(entry_of(name)) });
    let index = Index::default().apply(changes.collect(), names.len() as u32, 0);
    let mut found_by_prefix = [0; 5];
    for (serial, name) in (1..).zip(&names) {
        let mut letters: Vec<char> = name.chars().collect();
        // Every second edit is near the beginning.
        for edit in 0..random.random_range(1..4 + letters.len() / 5) {
            let places = if edit % 2 == 0 { 4 } else { letters.len() - 1 };
            let place = random.random_range(0..places);
            match random.random_range(0..6) {
                0 => letters.insert(place, letter(&mut random)),
                1 if letters.len() > 7 => drop(letters.remove(place)),
                2 | 3 => {
                    let other = (place + 2).min(letters.len() - 1);
                    letters.swap(place, other);
                }
                _ => letters.swap(place, place + 1),
            }
        }
        let edited = String::from_iter(letters);
        let mark = Mark::new(&edited).unwrap();
        if similar(&mark, &Mark::new(name).unwrap()) != Some(Rule::S6) {
            continue;
        }
        assert!(index.find(&mark, index.seq()).iter().any(|hit| hit.serial == serial && hit.rule == Rule::S6), "{edited} and {name}");
        let own = watched_keys(&mark);
        assert!(mark_keys(name, &[]).iter().any(|key| own.contains(key)), "{edited} and {name}");
        found_by_prefix[edited.bytes().zip(name.bytes()).take(4).take_while(|(a, b)| a == b).count()] += 1;
    }
    assert!(found_by_prefix.iter().all(|found| *found >= 4), "{found_by_prefix:?}");
}

/// Proves that marks whose first Double Metaphone key begins with that of a name, or begins it, are found as a comparison with all marks finds them, also
/// where keys have more letters than the index stores.
#[test]
fn keys_that_begin_alike_are_found() {
    let mut random = StdRng::seed_from_u64(73);
    // Each syllable is one letter of the key.
    let syllables = |random: &mut StdRng, count: usize| -> String {
        (0..count).flat_map(|_| [b"KLMR", b"AIOU"].map(|letters| char::from(letters[random.random_range(0..4)]))).collect()
    };
    let names: Vec<String> = (0..60).map(|at| syllables(&mut random, 3 + at % 10)).collect();
    let mut texts: Vec<String> = (0..200).map(|at| syllables(&mut random, 2 + at % 11)).collect();
    for name in &names {
        for _ in 0..10 {
            // The consonants of a beginning of the name, with other vowels and other syllables after them.
            let letters = 2 * random.random_range(1..=name.len() / 2);
            let mut text = syllables(&mut random, letters / 2);
            for at in (0..letters).step_by(2) {
                text.replace_range(at..=at, &name[at..=at]);
            }
            let others = random.random_range(0..3);
            text.push_str(&syllables(&mut random, others));
            texts.push(text);
        }
    }
    let entry_of = |text: String| ComparedMark { text, pseudo_marks: Vec::new(), classes: Classes::NONE, is_live: true };
    let changes: Vec<Change> = (1..)
        .zip(texts)
        .map(|(seq, text)| Change { seq, serial: seq, is_new: true, was_live: false, after: Some(entry_of(text)) })
        .collect();
    let seq = changes.len() as u32;
    let index = Index::default().apply(changes, seq, 0);
    let mut found_by_letters = [0; 13];
    for name in names {
        let name = Mark::new(&name).unwrap();
        let hits = index.find(&name, seq);
        assert_eq!(hits, index.find_by_scan(&name, seq), "{}", name.normal());
        found_by_letters[name.primary_key().len()] += hits.iter().filter(|hit| hit.rule == Rule::P5).count();
    }
    let (short, long) = found_by_letters.split_at(9);
    assert!([short, long].iter().all(|counts| counts.iter().sum::<usize>() >= 10), "{found_by_letters:?}");
    assert_eq!(short.iter().take(4).sum::<usize>(), 0, "a key of three letters begins too many");
}

/// Proves that a check counts what it compares: the mark that a rule names is among the candidates that keys of this rule found.
#[test]
fn work_is_counted_by_rule() {
    let entry_of = |text: &str| ComparedMark { text: text.to_owned(), pseudo_marks: Vec::new(), classes: Classes::NONE, is_live: true };
    let change = |(seq, text): (u32, &str)| Change { seq, serial: seq, is_new: true, was_live: false, after: Some(entry_of(text)) };
    let index = Index::default().apply((1..).zip(["TRUCOOL", "LUTEX", "QUILLBRISK"]).map(change).collect(), 3, 0);
    for (name, at, rule, hits) in [("Turcool", 3, Rule::S3, 1), ("Lutexal", 3, Rule::P3, 1), ("Lutexal", 1, Rule::P3, 0)] {
        let work = index.work(&Mark::new(name).unwrap(), at);
        assert!(work.candidates >= hits && work.candidates <= index.versions());
        assert_eq!(work.by_rule.iter().map(|of_rule| of_rule.rule).collect::<Vec<_>>(), Rule::ALL);
        for of_rule in work.by_rule {
            assert_eq!(of_rule.hits, if of_rule.rule == rule { hits } else { 0 }, "{name}: {of_rule:?}");
            assert!(of_rule.candidates >= of_rule.hits && of_rule.candidates <= work.candidates, "{name}: {of_rule:?}");
        }
    }
}

/// Proves that a change of what is not compared makes no version, and that small segments are merged.
#[test]
fn versions_are_few() {
    let mark = |text: &str| Some(ComparedMark { text: text.to_owned(), pseudo_marks: Vec::new(), classes: Classes::NONE, is_live: true });
    let change = |seq, serial, after| Change { seq, serial, is_new: seq <= 2, was_live: seq > 2 && seq != 41, after };
    let mut index = Index::default().apply(vec![change(1, 1, mark("ACME")), change(2, 2, mark("DELTA"))], 2, 0);
    for seq in 3..40 {
        index = index.apply(vec![change(seq, 1, mark("Acme, Inc."))], seq, 0);
    }
    assert_eq!((index.versions(), index.segments.len(), index.seq()), (2, 1, 39));
    let found = |index: &Index, name: &str, at| index.find(&Mark::new(name).unwrap(), at).iter().map(|hit| hit.serial).collect::<Vec<_>>();
    let dead = index.apply(vec![change(40, 1, None)], 40, 0);
    let renamed = dead.apply(vec![change(41, 1, mark("DELTA")), change(42, 1, mark("OMEGA")), change(43, 1, mark("DELTA"))], 43, 0);
    assert_eq!((found(&dead, "Acme", 39), found(&dead, "Acme", 40)), (vec![1], vec![]));
    assert_eq!(
        (found(&renamed, "Delta", 41), found(&renamed, "Delta", 42), found(&renamed, "Delta", 43)),
        (vec![1, 2], vec![2], vec![1, 2])
    );
    assert_eq!((renamed.versions(), renamed.segments.len()), (5, 1));
    assert_eq!(found(&Index::default(), "x", 0), Vec::<u32>::new());
    let corpus = |at| (renamed.corpus(at).marks, renamed.corpus(at).live_marks);
    assert_eq!([0, 1, 2, 39, 40, 41, 99].map(corpus), [(0, 0), (1, 1), (2, 2), (2, 2), (2, 1), (2, 2), (2, 2)]);
}

/// Proves that an index that was extended in parts, without keys, answers as one whose keys were stored with each part, once it is asked; that keys are
/// stored when they are asked for and not before; and that both have the same segments.
#[test]
fn keys_may_be_stored_later() {
    let mut random = StdRng::seed_from_u64(52);
    let mut register = Register::default();
    let parts: Vec<Vec<Change>> = (0..4)
        .map(|part| (0..300).map(|at| register.change(part * 300 + at + 1, part * 200 + at, Some(entry(&mut random)))).collect())
        .collect();
    let (mut with_keys, mut without) = (Index::default(), Index::default());
    for (part, changes) in (1..).zip(parts) {
        with_keys = with_keys.apply(changes.clone(), part * 300, 3);
        without = without.extend(changes, part * 300, 3);
    }
    assert_eq!((without.versions(), without.segments.len()), (with_keys.versions(), with_keys.segments.len()));
    assert!(without.bytes() * 2 < with_keys.bytes(), "{} and {}", without.bytes(), with_keys.bytes());
    for _ in 0..40 {
        let Some(name) = Mark::new(&random_text(&mut random)) else { continue };
        assert_eq!(without.find(&name, 1_200), with_keys.find(&name, 1_200), "{}", name.normal());
        assert_eq!(without.find(&name, 1_200), register.find(&name, 1_200), "{}", name.normal());
    }
    assert_eq!(without.bytes(), with_keys.bytes());
}

/// Proves that a mark of two coined words takes few bytes: six million of them fit in 1.5 GB.
#[test]
fn marks_take_few_bytes() {
    const BYTES_MAX: usize = 250;
    const SYLLABLES: [&str; 20] =
        ["BA", "CRE", "DO", "FLI", "GA", "HEL", "JU", "KO", "LIN", "MA", "NET", "PO", "RI", "SO", "TAR", "VE", "WIL", "XA", "ZEN", "Y"];
    let mut random = StdRng::seed_from_u64(6);
    let mut word = || -> String { (0..3).map(|_| SYLLABLES[random.random_range(0..SYLLABLES.len())]).collect() };
    let count = MARKS;
    let change = |seq| {
        let entry =
            ComparedMark { text: format!("{} {}", word(), word()), pseudo_marks: Vec::new(), classes: Classes::of(&[9]), is_live: true };
        Change { seq, serial: seq, is_new: true, was_live: false, after: Some(entry) }
    };
    let index = Index::default().apply((1..=count).map(change).collect(), count, 0);
    let per_mark = index.bytes() / index.versions();
    assert!(per_mark <= BYTES_MAX, "{per_mark} bytes a mark");
}

/// Proves that the skeleton that is stored with a mark is that of its text: after merges of segments, and in an index that was read from a snapshot.
#[test]
fn skeletons_are_stored_with_their_marks() {
    let mut random = StdRng::seed_from_u64(83);
    let (mut register, mut index) = (Register::default(), Index::default());
    for part in 0..3 {
        let changes = (0..300).map(|at| register.change(part * 300 + at + 1, part * 150 + at, Some(entry(&mut random)))).collect();
        index = index.apply(changes, (part + 1) * 300, 0);
    }
    let mut bytes = Vec::new();
    index.write(&mut bytes).unwrap();
    let again = Index::read(&mut bytes.as_slice()).unwrap();
    for index in [index, again] {
        let mut known = 0;
        for columns in index.segments.iter().map(|segment| segment.columns()) {
            for row in 0..columns.len() {
                let mark = Mark::from_normal(columns.texts_of(row).next().unwrap());
                let expected = PackedSkeleton::of(mark.skeleton());
                assert_eq!(columns.skeleton(row), expected, "{}", mark.normal());
                known += usize::from(expected != PackedSkeleton::UNKNOWN);
            }
        }
        assert!(known > 100 && known < index.versions(), "{known} of {}", index.versions());
    }
}

/// Proves that a large batch is stored in segments of bounded size.
#[test]
fn columns_are_split() {
    let mut columns = Columns::default();
    for serial in 0..10 {
        let entry = ComparedMark { text: format!("MARK {serial}"), pseudo_marks: Vec::new(), classes: Classes::NONE, is_live: serial > 4 };
        columns.push(serial, serial, &columns::Version::of(&entry).unwrap());
    }
    let parts = columns.split(4);
    assert_eq!(parts.iter().map(Columns::len).collect::<Vec<_>>(), [4, 4, 2]);
    assert_eq!(
        (parts[2].serial(1), parts[2].texts_of(1).next(), parts[1].is_live(0), parts[1].is_live(1)),
        (9, Some("MARK 9"), false, true)
    );
}

/// Proves that a snapshot that was cut or changed anywhere is refused.
#[test]
fn damaged_snapshots_are_refused() {
    let mut random = StdRng::seed_from_u64(3);
    let mut register = Register::default();
    let changes = (0..50).map(|serial| register.change(serial + 1, serial, Some(entry(&mut random)))).collect();
    let index = Index::default().apply(changes, 50, 9);
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

/// Proves that a name and a mark that a rule makes similar, or whose pseudo mark has the letters of the name, have a key in common.
#[test]
fn keys_of_watched_names_meet_those_of_similar_marks() {
    let mut random = StdRng::seed_from_u64(27);
    let texts: Vec<String> = (0..700).map(|_| random_text(&mut random)).collect();
    let names: Vec<(Mark, Vec<u64>)> =
        texts.iter().take(300).filter_map(|text| Mark::new(text)).map(|name| (name.clone(), watched_keys(&name))).collect();
    let (mut similar_pairs, mut met) = (0, 0);
    for pair in texts.windows(2) {
        let keys: std::collections::HashSet<u64> = mark_keys(&pair[0], &pair[1..]).into_iter().collect();
        let Some(mark) = Mark::new(&pair[0]) else {
            assert!(keys.is_empty());
            continue;
        };
        let pseudo = Mark::new(&pair[1]);
        for (name, own) in &names {
            let meets = own.iter().any(|key| keys.contains(key));
            met += usize::from(meets);
            if similar(name, &mark).is_some() || pseudo.as_ref().is_some_and(|pseudo| pseudo.compact() == name.compact()) {
                similar_pairs += 1;
                assert!(meets, "{name:?} {mark:?}");
            }
        }
    }
    assert!(similar_pairs > 100, "too few similar pairs: {similar_pairs}");
    assert!(met * 5 < names.len() * texts.len(), "the keys select almost everything: {met}");
}

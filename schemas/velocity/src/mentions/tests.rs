//! Tests of the mentions of a phrase: counts by any window, in any order, with removals, and the form of rows.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::*;

const NEWEST: i64 = 480_000;

fn mention(hour: i64, author: u32) -> Mention {
    Mention { hour, poster: Poster { author, domain: author % 7 } }
}

/// The stories of a window, counted one by one.
fn brute(mentions: &[Mention], from: i64, to: i64) -> Counted {
    let within: Vec<&Mention> = mentions.iter().filter(|mention| (from + 1..=to).contains(&mention.hour)).collect();
    let (mut authors, mut domains): (HashMap<u32, u64>, Vec<u32>) = (HashMap::new(), Vec::new());
    for mention in within {
        *authors.entry(mention.poster.author).or_default() += 1;
        domains.push(mention.poster.domain);
    }
    domains.sort_unstable();
    domains.dedup();
    let count = authors.values().map(|stories| (*stories).min(AUTHOR_MAX)).sum();
    Counted { count, authors: authors.len(), domains: domains.len() }
}

fn random_mentions(random: &mut StdRng, n: usize, authors: u32) -> Vec<Mention> {
    (0..n).map(|_| mention(NEWEST - random.random_range(0..KEPT_HOURS), random.random_range(0..authors))).collect()
}

/// Proves that mentions that come in the order of their hours, while the newest hour moves on, are counted in every window as if each were
/// kept: at most 3 of one author.
#[test]
fn windows_are_exact() {
    let mut random = StdRng::seed_from_u64(3);
    for round in 0..300 {
        let (n, authors) = (random.random_range(0..120), random.random_range(1..30));
        let mut all = random_mentions(&mut random, n, authors);
        all.sort_unstable();
        let mut row = Mentions::default();
        for one in &all {
            // The newest complete hour is the one before the story.
            row.add(*one, one.hour - 1);
        }
        row.settle(NEWEST);
        assert!(row.is_exact(NEWEST));
        for hours in [6, 12, 24, 48] {
            let windows = row.windows(NEWEST, hours, 15);
            for (n, window) in (0_i64..).zip(&windows) {
                let expected = brute(&all, NEWEST - (n + 1) * hours, NEWEST - n * hours);
                assert_eq!(window.count, expected.count, "round {round}, window {n} of {hours} hours");
                if (n + 1) * hours <= NAMED_HOURS {
                    assert_eq!(*window, expected, "round {round}, window {n} of {hours} hours");
                }
            }
            assert_eq!(row.window(NEWEST, hours), windows[0]);
        }
    }
}

/// Proves that mentions in any order give the same row.
#[test]
fn the_order_does_not_matter() {
    let mut random = StdRng::seed_from_u64(4);
    for _ in 0..200 {
        // With few authors some exceed 3; those of hours whose authors are not known any more come in the order of time.
        let (n, authors) = (random.random_range(0..60), random.random_range(1..40));
        let all = random_mentions(&mut random, n, authors);
        let (old, mut recent): (Vec<Mention>, Vec<Mention>) = all.into_iter().partition(|one| one.hour <= NEWEST - NAMED_HOURS);
        let mentions_with = |recent: &[Mention]| {
            let mut row = Mentions::of(old.iter().copied());
            row.settle(NEWEST);
            for one in recent {
                row.add(*one, NEWEST);
            }
            row
        };
        let expected = mentions_with(&recent);
        recent.shuffle(&mut random);
        assert_eq!(mentions_with(&recent), expected);
        assert_eq!(serde_json::to_string(&mentions_with(&recent)).unwrap(), serde_json::to_string(&expected).unwrap());
    }
}

/// Proves that a story that is taken back leaves the row that was there before it.
#[test]
fn a_removed_mention_restores_the_row() {
    let mut random = StdRng::seed_from_u64(5);
    for _ in 0..300 {
        let (n, authors) = (random.random_range(0..40), random.random_range(1..40));
        let mut row = Mentions::of(random_mentions(&mut random, n, authors));
        row.settle(NEWEST);
        let before = row.clone();
        let one = mention(NEWEST - random.random_range(0..NAMED_HOURS), random.random_range(0..authors));
        row.add(one, NEWEST);
        row.remove(one, NEWEST);
        assert_eq!(row, before, "{one:?}");
        let absent = mention(NEWEST + 1, 1);
        row.remove(absent, NEWEST);
        assert_eq!(row, before);
    }
}

/// Proves the rows' form: it reads back, a damaged one is refused, and a row of a usual phrase is small.
#[test]
fn rows_read_back() {
    let mut random = StdRng::seed_from_u64(6);
    for n in [0, 1, 3, 40, 400] {
        let mut row = Mentions::of(random_mentions(&mut random, n, 1_000));
        row.settle(NEWEST);
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<Mentions>(&json).unwrap(), row);
        if n == 40 {
            assert!(json.len() <= 600, "{} bytes", json.len());
        }
    }
    for wrong in ["\"!\"", "\"gA\"", "\"AQAB\"", "7"] {
        assert!(serde_json::from_str::<Mentions>(wrong).is_err(), "{wrong}");
    }
}

/// Proves that an hour of very many authors stays small and says that it is not exact, and that old hours are dropped.
#[test]
fn rows_are_bounded() {
    let mut row = Mentions::of((0..10_000).map(|n| mention(NEWEST, n)));
    row.settle(NEWEST);
    assert!(!row.is_exact(NEWEST) && row.is_exact(NEWEST + NAMED_HOURS));
    assert_eq!(row.window(NEWEST, 24).count, 10_000);
    assert_eq!(row.window(NEWEST, 24).authors, PAIRS_MAX);
    assert!(serde_json::to_string(&row).unwrap().len() < 600);
    row.settle(NEWEST + KEPT_HOURS - 1);
    assert_eq!(row.last_hour(), Some(NEWEST));
    row.settle(NEWEST + KEPT_HOURS);
    assert!(row.is_empty());
}

/// Proves when a run of hours has enough stories.
#[test]
fn runs() {
    let row = Mentions::of([mention(100, 1), mention(110, 1), mention(123, 2), mention(124, 3)]);
    assert!(row.has_run(100, 24, 3) && row.has_run(123, 24, 3) && row.has_run(124, 24, 3));
    assert!(!row.has_run(100, 23, 3) && !row.has_run(100, 24, 4) && !row.has_run(200, 24, 1));
}

/// Proves that a text post counts as a domain of its author, and that authors and domains are distinct.
#[test]
fn posters() {
    let (a, b) = (Poster::new("a", ""), Poster::new("b", ""));
    assert!(a.author != b.author && a.domain != b.domain);
    assert_eq!(Poster::new("a", "x.example").author, a.author);
    assert_eq!(Poster::new("a", "x.example").domain, Poster::new("b", "x.example").domain);
}

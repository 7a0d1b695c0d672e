//! The titles of ordinary stories: a steady background. Every phrase has about the same rate on every day, so none of them rises.

use std::sync::LazyLock;

use simulated_world::random::Random;
use simulated_world::world::capitalised;

use super::words::{ADJECTIVES, HEADS, NOUNS, TAILS, VERBS};

/// The forms of titles: `{n}` is a noun, `{a}` an adjective, `{v}` a verb, `{m}` an invented name. Many forms keep each phrase of a form
/// and a word rare.
const FORMS: &[&str] = &[
    "The {a} {n} of {m}",
    "{m}: a {a} {n} for {n} people",
    "Why we {v} {n} by hand",
    "How {m} will {v} every {n}",
    "Show HN: {m} – {v} your {n}",
    "Show HN: I made a {a} {n}",
    "Ask HN: Do you {v} a {n} at home?",
    "Ask HN: What {a} {n} changed you?",
    "{a} {n} considered harmful",
    "A {a} introduction to {n} theory",
    "Notes on {a} {n} design",
    "{m} raises money to {v} {n} data",
    "When not to {v} {a} {n} output",
    "Let them {v} {n}",
    "What {m} knows about {n} repair",
    "An open {n} that can {v} itself",
    "{m} 2.0 is out",
    "{n} from scratch",
    "In praise of {a} {n} work",
    "I tried to {v} {m} for a month",
    "{v} first, {v} later",
    "Lessons from a {a} {n}",
    "The {n} behind {m}",
    "Can a {n} {v}?",
    "{m} vs {m}",
    "One {n} to {v} them",
    "Inside {m}, the {a} {n} company",
    "{a} and {a}",
    "Stop trying to {v} {n}",
    "{n} as {n}",
    "On the {a} cost of {n}",
    "{m} is moving away from {n}",
    "My {n} is {a}",
    "Teaching children to {v} {n}",
    "Postmortem: {m} {n} failure",
    "{m} will not {v} {n} anymore",
    "Reading {n} with {m}",
    "Two {a} ways to {v}",
];
/// Titles in other scripts.
const OTHER_SCRIPTS: &[&str] = &[
    "用 {m} 构建一个更快的数据库",
    "{m} で学ぶ関数型プログラミング",
    "Новый компилятор {m} быстрее прежнего",
    "مقدمة إلى {m}",
    "Ένας οδηγός για το {m}",
    "Über die Größe von {m} – Überlegungen",
];
/// Titles with entities and with quotation marks of typesetting.
const MARKED: &[&str] = &[
    "{n}&#x2F;{n} in {m}",
    "{m} R&amp;D on a {a} {n}",
    "Don&#x27;t {v} the {n}",
    "“{m}” and the {a} {n}",
    "It’s a {a} {n}",
    "{m} &lt;{n}&gt; explained",
    "{n} — {a}, or ‘{a}’?",
];

static WORDS: LazyLock<[Vec<&str>; 5]> =
    LazyLock::new(|| [NOUNS, ADJECTIVES, VERBS, HEADS, TAILS].map(|words| words.split_ascii_whitespace().collect()));

/// The title of an ordinary story.
pub(super) fn title(random: Random) -> String {
    let form = match random.below(1, 60) {
        0 => random.pick(2, OTHER_SCRIPTS),
        1..6 => random.pick(2, MARKED),
        _ => random.pick(2, FORMS),
    };
    let (mut out, mut rest, mut tag) = (String::with_capacity(60), form, 10);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (slot, behind) = after.split_once('}').unwrap_or(("", after));
        let word = match slot {
            "n" => random.pick(tag, &WORDS[0]).to_owned(),
            "a" => random.pick(tag, &WORDS[1]).to_owned(),
            "v" => random.pick(tag, &WORDS[2]).to_owned(),
            _ => name(random, tag),
        };
        out.push_str(&if out.is_empty() { capitalised(&word) } else { word });
        (rest, tag) = (behind, tag + 3);
    }
    out.push_str(rest);
    out
}

/// An invented name.
pub(super) fn name(random: Random, tag: u64) -> String {
    capitalised(&[random.pick(tag, &WORDS[3]), random.pick(tag + 1, &WORDS[4])].concat())
}

/// The phrase that rounds write about in an hour. None returns within the weeks that a reader compares, or it would be usual.
pub(super) fn phrase_of(hour: i64) -> String {
    let (nouns, adjectives) = (&WORDS[0], &WORDS[1]);
    let place = usize::try_from(hour).unwrap_or_default();
    let (adjective, noun) = (adjectives[place % adjectives.len()], nouns[place / adjectives.len() % nouns.len()]);
    format!("{adjective} {noun}")
}

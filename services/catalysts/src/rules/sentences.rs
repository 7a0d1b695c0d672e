//! What a sentence of a filing says about target action dates of the FDA (PDUFA dates): which date, of which drug, and whether the date is
//! over because the agency decided.
//!
//! A sentence often holds several dates: the day of the announcement, the date before an extension, a planned launch. The date that counts
//! is the one next to the words for the target date, unless words before it say that it no longer holds ("from", "original").

use jiff::ToSpan;
use jiff::civil::Date;
use texts::dates::{FoundDate, Precision, scan};

use super::drugs;

/// A date counts if it is at most this long after the filing; the dates of decisions, before it, too.
const MONTHS_MAX: i64 = 36;
/// The words for the target date, in lower case.
const SUBJECTS: [&str; 2] = ["pdufa", "prescription drug user fee act"];
/// Words between "from" and a date that was replaced.
const OF_THE_TARGET: &[&str] = &[
    "the",
    "its",
    "a",
    "an",
    "our",
    "pdufa",
    "target",
    "goal",
    "action",
    "date",
    "of",
    "was",
    "fda",
    "previously",
    "announced",
    "communicated",
    "assigned",
    "(",
    ")",
    "prescription",
    "drug",
    "user",
    "fee",
    "act",
    "for",
    "s",
    "’",
    "'",
];
/// Words that say that the date after them was replaced.
const REPLACED: &[&str] = &["from", "original", "originally", "previous", "prior", "initial", "initially", "former"];
/// Words that say what was decided.
const MET: &[&str] = &["was met", "were met"];
/// Words before "approved" or "approval" that say that it is not there yet.
const NOT_YET: &[&str] = &[
    "if",
    "once",
    "be",
    "when",
    "unless",
    "potential",
    "potentially",
    "possible",
    "anticipated",
    "expected",
    "seeking",
    "seek",
    "pending",
    "for",
    "upon",
    "not",
    "following",
    "after",
    "until",
    "before",
    "whether",
    "support",
    "assuming",
    "will",
    "would",
    "could",
    "may",
    "should",
    "grant",
    "currently",
    "previously",
    "to",
    "an",
    "any",
    "marketing",
    "priority",
    "accelerated",
    "full",
    "regulatory",
    "traditional",
    "u.s",
    "fda",
    "fda's",
    "future",
    "timely",
    "obtain",
    "receive",
    "its",
    "the",
    "no",
    "already",
    "other",
    "new",
    "is",
    "are",
    "supplemental",
];

/// What a sentence says about one target date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The drug; empty if none is named.
    pub drug: String,
    /// The date; absent only for a decision that names none.
    pub date: Option<FoundDate>,
    /// Whether the agency decided, or the date was met.
    pub is_over: bool,
}

/// Reads a sentence. `before` is the text before it, in which a drug may be named; `company` is the name of the filer, which is no drug.
/// A sentence without a target date gives nothing.
#[must_use]
pub fn read(sentence: &str, before: &str, company: &str, filed: Date) -> Vec<Target> {
    let lower = lower(sentence);
    let mentions = mentions(&lower);
    if mentions.is_empty() || !lower.contains("date") && !lower.contains("goal") {
        return Vec::new();
    }
    let is_over = is_over(&lower);
    let (latest, earliest) = (filed.saturating_add(MONTHS_MAX.months()), filed.saturating_sub(MONTHS_MAX.months()));
    let all = scan(sentence, Some(filed));
    let is_possible = |date: &&FoundDate| date.from <= latest && if is_over { date.to >= earliest } else { date.to > filed };
    let current: Vec<FoundDate> = all.iter().filter(is_possible).filter(|date| !is_replaced(&lower, date, &all)).copied().collect();
    // Without a current date, a decision may name the date that it came before.
    let dates = targets(&lower, &mentions, &current);
    if dates.is_empty() {
        let drug = drugs::nearest(sentence, before, company, sentence.len());
        return if is_over { vec![Target { drug, date: None, is_over }] } else { Vec::new() };
    }
    if dates.len() > 1 {
        return several(sentence, before, company, &dates, is_over);
    }
    let drug = dates.first().map(|date| drugs::nearest(sentence, before, company, date.start)).unwrap_or_default();
    dates.into_iter().map(|date| Target { drug: drug.clone(), date: Some(date), is_over }).collect()
}

/// Returns the text in lower case, with every character in its place: characters whose lower case is longer or shorter stay.
fn lower(text: &str) -> String {
    let same = |c: char| Some(c.to_lowercase()).filter(|lower| lower.clone().map(char::len_utf8).sum::<usize>() == c.len_utf8());
    text.chars().flat_map(|c| same(c).map_or_else(|| vec![c], Iterator::collect)).collect()
}

/// The positions of the words for the target date: their first byte and the byte after them.
fn mentions(lower: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> =
        SUBJECTS.iter().flat_map(|subject| lower.match_indices(subject).map(|(at, text)| (at, at + text.len()))).collect();
    found.sort_unstable();
    found
}

/// Whether the words before a date say that another date has replaced it.
fn is_replaced(lower: &str, date: &FoundDate, all: &[FoundDate]) -> bool {
    let begin = all.iter().filter(|other| other.end <= date.start).map(|other| other.end).max().unwrap_or(0);
    let between = lower.get(begin..date.start).unwrap_or_default();
    let words: Vec<&str> =
        between.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '’' | '\'')).filter(|word| !word.is_empty()).collect();
    for word in words.iter().rev() {
        if REPLACED.contains(word) {
            return true;
        }
        if !OF_THE_TARGET.contains(word) {
            return false;
        }
    }
    false
}

/// Returns the dates that belong to the words for the target date: usually one; all of a list after "dates".
fn targets(lower: &str, mentions: &[(usize, usize)], dates: &[FoundDate]) -> Vec<FoundDate> {
    let is_plural = mentions.iter().any(|(_, end)| {
        let behind: String = lower.get(*end..).unwrap_or_default().chars().take(40).collect();
        behind.contains("dates")
    });
    if is_plural && dates.len() > 1 {
        let first = mentions.first().map_or(0, |(at, _)| *at);
        let after: Vec<FoundDate> = dates.iter().filter(|date| date.start > first).copied().collect();
        if after.len() > 1 {
            return after;
        }
    }
    dates.iter().min_by_key(|date| distance(lower, mentions, date)).copied().into_iter().collect()
}

/// How far a date is from the words for the target date. "August 25, 2026 U.S. PDUFA date" is as near as "PDUFA date of August 25, 2026".
fn distance(lower: &str, mentions: &[(usize, usize)], date: &FoundDate) -> (usize, usize) {
    let to_mention = |(at, end): &(usize, usize)| {
        if date.start >= *end {
            // "to" or "is" right before the date makes it the one that counts.
            let between = lower.get(*end..date.start).unwrap_or_default();
            let is_joined =
                [" of ", " is ", " to ", " for ", ": ", " as ", " on ", " in ", " by "].iter().any(|word| between.ends_with(word));
            (date.start - end) + if is_joined { 0 } else { 15 }
        } else {
            let between = lower.get(date.end..*at).unwrap_or_default();
            // Words of the target between them belong to it; a clause between them does not.
            let is_adjective = between.split_whitespace().count() <= 3 && !between.contains([',', ';']);
            at.saturating_sub(date.end) + if is_adjective { 10 } else { 80 }
        }
    };
    // Of two dates at the same distance the more precise one.
    let grain = match date.precision {
        Precision::Day => 0,
        Precision::Month => 1,
        _ => 2,
    };
    (mentions.iter().map(to_mention).min().unwrap_or(usize::MAX), grain)
}

/// Reads a sentence with several target dates: each belongs to the drug after it ("… for X"), or the lists are in the same order.
fn several(sentence: &str, before: &str, company: &str, dates: &[FoundDate], is_over: bool) -> Vec<Target> {
    let lower = lower(sentence);
    let named = drugs::named(sentence, company);
    let target = |drug: String, date: &FoundDate| Target { drug, date: Some(*date), is_over };
    if lower.contains("respectively") && named.len() == dates.len() {
        return named.iter().zip(dates).map(|((_, drug), date)| target(drug.clone(), date)).collect();
    }
    let ends = dates.iter().skip(1).map(|next| next.start).chain([sentence.len()]);
    let each = dates.iter().zip(ends).map(|(date, end)| {
        let behind = lower.get(date.end..end).unwrap_or_default();
        let follows = behind.trim_start().starts_with("for ") || behind.trim_start().starts_with('(');
        let drug = named.iter().find(|(at, _)| follows && *at >= date.end && *at < end).map(|(_, drug)| drug.clone());
        let precedes = || named.iter().rev().find(|(at, _)| *at < date.start).map(|(_, drug)| drug.clone());
        target(drug.or_else(precedes).unwrap_or_default(), date)
    });
    let mut targets: Vec<Target> = each.collect();
    // Two dates of one drug cannot both count; which drug is meant is unknown.
    let is_same = targets.windows(2).any(|pair| matches!(pair, [one, other] if one.drug == other.drug && one.date != other.date));
    if is_same {
        let fallback = drugs::nearest(sentence, before, company, 0);
        let only = targets.into_iter().min_by_key(|target| target.date.map(|date| distance(&lower, &mentions(&lower), &date)));
        targets =
            only.into_iter().map(|only| Target { drug: if only.drug.is_empty() { fallback.clone() } else { only.drug }, ..only }).collect();
    }
    targets
}

/// Whether a sentence says that the agency decided. An approval that is only hoped for does not count, nor does a letter that a new
/// application answers.
fn is_over(lower: &str) -> bool {
    MET.iter().any(|words| lower.contains(words)) || is_refused(lower) || is_approved(lower)
}

fn is_refused(lower: &str) -> bool {
    let has_letter = lower.contains("complete response letter") || lower.split(|c: char| !c.is_alphanumeric()).any(|word| word == "crl");
    let answered = [
        "resubmi",
        "re-submi",
        "accepted",
        "acknowledged",
        "in response to",
        "address",
        "assigned",
        "has set",
        "set a ",
        "class 1",
        "class 2",
        "could",
        "may issue",
        "may receive",
        "might",
        "if ",
    ];
    has_letter && !answered.iter().any(|words| lower.contains(words))
}

fn is_approved(lower: &str) -> bool {
    let verbs = [
        "approved",
        "granted approval",
        "received approval",
        "received fda approval",
        "announced approval",
        "announced the approval",
        "approval was granted",
    ];
    for verb in verbs {
        for (at, _) in lower.match_indices(verb) {
            let before = lower.get(..at).unwrap_or_default();
            let word = before.trim_end().rsplit([' ', ',', '(']).next().unwrap_or_default();
            let behind = lower.get(at + verb.len()..).unwrap_or_default();
            // "an approved drug", "the approved label" describe; "approved by the PDUFA date" may lie ahead.
            let describes = verb == "approved"
                && (matches!(word, "only" | "first" | "an" | "the" | "already" | "other" | "currently")
                    || behind.trim_start().starts_with("product"));
            let is_hoped = verb == "approved" && NOT_YET.contains(&word) && !matches!(word, "fda" | "is" | "currently");
            let is_condition = before.rsplit(['.', ';', ',']).next().is_some_and(|clause| {
                clause.split_whitespace().any(|word| {
                    matches!(
                        word,
                        "if" | "unless"
                            | "whether"
                            | "assuming"
                            | "could"
                            | "would"
                            | "may"
                            | "expects"
                            | "expect"
                            | "anticipates"
                            | "anticipate"
                            | "not"
                            | "yet"
                    )
                })
            });
            if !describes && !is_hoped && !is_condition {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn shown(sentence: &str, before: &str) -> Vec<String> {
        let one = |target: &Target| {
            let date = target.date.map_or("-".to_owned(), |date| match date.precision {
                Precision::Day => date.from.to_string(),
                precision => format!("{}..{} {precision:?}", date.from, date.to).to_lowercase(),
            });
            format!("{}|{date}{}", target.drug, if target.is_over { "|met" } else { "" })
        };
        read(sentence, before, "Acme Bio, Inc.", date(2026, 4, 1)).iter().map(one).collect()
    }

    /// Proves the worked examples of the contract, letter for letter.
    #[test]
    fn worked_examples() {
        for (sentence, expected) in [
            ("PDUFA target action date of November 27, 2026", "|2026-11-27"),
            ("August 25, 2026 U.S. PDUFA target action date", "|2026-08-25"),
            ("PDUFA date in the fourth quarter of 2026", "|2026-10-01..2026-12-31 quarter"),
            ("PDUFA goal date in the second half of 2027", "|2027-07-01..2027-12-31 half"),
            ("approved ahead of its PDUFA date of May 1, 2026", "|2026-05-01|met"),
        ] {
            assert_eq!(shown(sentence, ""), [expected], "{sentence}");
        }
    }

    /// Proves which of several dates counts, and which drug a sentence is about.
    #[test]
    fn dates_and_drugs() {
        for (sentence, before, expected) in [
            (
                "On March 30, 2026, the FDA extended the PDUFA target action date for acmezumab from August 22, 2026 to November 22, 2026.",
                "",
                &["acmezumab|2026-11-22"][..],
            ),
            (
                "The previous PDUFA date of August 22, 2026 has been extended to November 22, 2026.",
                "Bolunib is new.",
                &["bolunib|2026-11-22"],
            ),
            (
                "We plan to launch bolunib in early 2027, following the PDUFA target action date of November 27, 2026.",
                "",
                &["bolunib|2026-11-27"],
            ),
            (
                "The PDUFA dates are November 27, 2026 for acmezumab and March 3, 2027 for bolunib.",
                "",
                &["acmezumab|2026-11-27", "bolunib|2027-03-03"],
            ),
            (
                "Acmezumab and bolunib have PDUFA dates of November 27, 2026 and March 3, 2027, respectively.",
                "",
                &["acmezumab|2026-11-27", "bolunib|2027-03-03"],
            ),
            ("The updated Prescription Drug User Fee Act action date is March 3, 2027.", "", &["|2027-03-03"]),
            ("The PDUFA date was January 5, 2026.", "", &[]),
            ("We pay fees under PDUFA.", "", &[]),
            ("If approved by the PDUFA date of November 27, 2026, acmezumab would be the first.", "", &["acmezumab|2026-11-27"]),
            (
                "The FDA accepted the resubmission of the BLA for acmezumab after the complete response letter and assigned a PDUFA date of November 27, 2026.",
                "",
                &["acmezumab|2026-11-27"],
            ),
            (
                "We received a complete response letter for acmezumab ahead of the PDUFA date of April 10, 2026.",
                "",
                &["acmezumab|2026-04-10|met"],
            ),
            ("The PDUFA date of March 28, 2026 was met.", "Acmezumab is reviewed.", &["acmezumab|2026-03-28|met"]),
        ] {
            assert_eq!(shown(sentence, before), expected, "{sentence}");
        }
    }
}

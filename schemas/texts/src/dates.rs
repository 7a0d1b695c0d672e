//! Finds dates in English text, with their precision and their position: days, months, quarters, halves, years, and "early", "mid" and
//! "late" in a year.
//!
//! A date that is less precise than a day is a range. It never becomes its first day. The scanner is a pure function of its arguments.

use jiff::ToSpan;
use jiff::civil::Date;

use crate::numbers::has_only_digits;

/// The first and the last year that count as years.
const YEARS: std::ops::RangeInclusive<i16> = 1990..=2099;
/// Between two days of one list ("July 23 and 24, 2026") are at most this many tokens.
const LIST_TOKENS_MAX: usize = 3;
const MONTHS: [&str; 12] =
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];
const ORDINALS: [&str; 4] = ["first", "second", "third", "fourth"];

/// How precise a date is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// A day.
    Day,
    /// A month.
    Month,
    /// A quarter of a calendar year.
    Quarter,
    /// Four months: early, mid or late in a year.
    Third,
    /// A half of a calendar year.
    Half,
    /// A calendar year.
    Year,
}

/// A date in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundDate {
    /// The first day that the text can mean.
    pub from: Date,
    /// The last day that the text can mean; `from` for a day.
    pub to: Date,
    /// How precise the text is.
    pub precision: Precision,
    /// Position of its first byte in the text.
    pub start: usize,
    /// Position after its last byte in the text.
    pub end: usize,
}

/// Finds the dates of a text in their order. A day without a year ("November 30th") takes the year of the list that it begins ("July 23 and
/// July 24, 2026"), else it is the first such day from `reference` on. Without a reference it is left out.
#[must_use]
pub fn scan(text: &str, reference: Option<Date>) -> Vec<FoundDate> {
    let tokens = tokens(text);
    let mut found: Vec<Raw> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match continued(&tokens, at, found.last()).or_else(|| read(&tokens, at)) {
            Some((raw, used)) => {
                found.push(Raw { first: at, last: at + used - 1, ..raw });
                at += used;
            }
            None => at += 1,
        }
    }
    resolved(&tokens, &found, reference)
}

/// Reads a date of a registry: `YYYY-MM-DD` or `YYYY-MM`. The text must hold nothing else.
#[must_use]
pub fn registry_date(text: &str) -> Option<(Date, Date, Precision)> {
    let digits = |part: &str, length: usize| (part.len() == length && has_only_digits(part)).then(|| part.to_owned());
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next());
    let (year, month): (i16, i8) = (digits(year, 4)?.parse().ok()?, digits(month, 2)?.parse().ok()?);
    if parts.next().is_some() {
        return None;
    }
    match day {
        Some(day) => Date::new(year, month, digits(day, 2)?.parse().ok()?).ok().map(|day| (day, day, Precision::Day)),
        None => months(year, month, 1).map(|(from, to)| (from, to, Precision::Month)),
    }
}

/// A token: a run of letters and digits in lower case, or one other character.
struct Token {
    text: String,
    start: usize,
    end: usize,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::new();
    let mut open = false;
    for (start, c) in text.char_indices() {
        let end = start + c.len_utf8();
        if c.is_alphanumeric() {
            match out.last_mut().filter(|_| open) {
                Some(token) => {
                    token.text.extend(c.to_lowercase());
                    token.end = end;
                }
                None => out.push(Token { text: c.to_lowercase().collect(), start, end }),
            }
            open = true;
            continue;
        }
        open = false;
        if !c.is_whitespace() {
            let sign = if matches!(c, '\u{2010}'..='\u{2015}') { '-' } else { c };
            out.push(Token { text: sign.to_string(), start, end });
        }
    }
    out
}

/// A date whose year may still be unknown.
#[derive(Clone, Copy)]
struct Raw {
    year: Option<i16>,
    month: i8,
    day: Option<i8>,
    /// Number of months, for a date that is no day.
    months: i8,
    precision: Precision,
    first: usize,
    last: usize,
}

impl Raw {
    fn day(year: Option<i16>, month: i8, day: i8) -> Self {
        Self { year, month, day: Some(day), months: 0, precision: Precision::Day, first: 0, last: 0 }
    }

    fn range(year: i16, month: i8, months: i8, precision: Precision) -> Self {
        Self { year: Some(year), month, day: None, months, precision, first: 0, last: 0 }
    }

    fn dates(&self, year: i16) -> Option<(Date, Date)> {
        match self.day {
            Some(day) => Date::new(year, self.month, day).ok().map(|day| (day, day)),
            None => months(year, self.month, self.months),
        }
    }
}

/// Returns the first and the last day of some months.
fn months(year: i16, month: i8, count: i8) -> Option<(Date, Date)> {
    let from = Date::new(year, month, 1).ok()?;
    let to = from.checked_add(i64::from(count).months()).ok()?.yesterday().ok()?;
    Some((from, to))
}

fn resolved(tokens: &[Token], found: &[Raw], reference: Option<Date>) -> Vec<FoundDate> {
    let mut out: Vec<FoundDate> = Vec::new();
    // From the end, so that the year of a list is known before its first days.
    let mut next: Option<(usize, i16)> = None;
    for raw in found.iter().rev() {
        let listed =
            next.filter(|(first, _)| first - raw.last <= LIST_TOKENS_MAX + 1 && joins(tokens, raw.last + 1, *first)).map(|(_, year)| year);
        let dates = match raw.year.or(listed) {
            Some(year) => raw.dates(year).map(|dates| (dates, Some(year))),
            None => reference.and_then(|reference| {
                let years = [reference.year(), reference.year().saturating_add(1)];
                years.into_iter().filter_map(|year| raw.dates(year)).find(|(_, to)| *to >= reference).map(|dates| (dates, None))
            }),
        };
        if let (Some(((from, to), year)), Some(first), Some(last)) = (dates, tokens.get(raw.first), tokens.get(raw.last)) {
            out.push(FoundDate { from, to, precision: raw.precision, start: first.start, end: last.end });
            next = year.map(|year| (raw.first, year));
        } else {
            next = None;
        }
    }
    out.reverse();
    out
}

/// Whether the tokens between two dates only join them.
fn joins(tokens: &[Token], from: usize, to: usize) -> bool {
    let between = tokens.get(from..to).unwrap_or_default();
    between.iter().all(|token| is_join(&token.text))
}

/// Reads a date that begins at a token. Returns it with the number of its tokens.
fn read(tokens: &[Token], at: usize) -> Option<(Raw, usize)> {
    named_month(tokens, at)
        .or_else(|| day_first(tokens, at))
        .or_else(|| numeric(tokens, at))
        .or_else(|| part_of_year(tokens, at))
        .or_else(|| third(tokens, at))
        .or_else(|| plain_year(tokens, at))
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| token.text.as_str())
}

fn month_of(word: &str) -> Option<i8> {
    let is = |name: &&str| **name == *word || (word.len() == 3 && name.starts_with(word)) || (word == "sept" && **name == *"september");
    let at = MONTHS.iter().position(is)?;
    i8::try_from(at + 1).ok()
}

fn year_of(word: &str) -> Option<i16> {
    let year: i16 = Some(word).filter(|word| word.len() == 4 && has_only_digits(word))?.parse().ok()?;
    YEARS.contains(&year).then_some(year)
}

/// Reads a day of a month: `27`, `1st`, `30th`.
fn day_of(word: &str) -> Option<i8> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_suffix = matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th");
    let day: i8 = Some(digits).filter(|digits| is_suffix && (1..=2).contains(&digits.len()))?.parse().ok()?;
    (1..=31).contains(&day).then_some(day)
}

/// Skips one token if it is this one.
fn skip(tokens: &[Token], at: usize, sign: &str) -> usize {
    at + usize::from(text(tokens, at) == sign)
}

/// `November 27, 2026`, `Sept. 1 2026`, `July 23-24, 2026`, `November 30th`, `November 2026`, `March of 2027`.
fn named_month(tokens: &[Token], at: usize) -> Option<(Raw, usize)> {
    let month = month_of(text(tokens, at))?;
    let is_short = text(tokens, at).len() < 5 && text(tokens, at) != "may";
    let next = if is_short { skip(tokens, at + 1, ".") } else { at + 1 };
    let year_at = skip(tokens, skip(tokens, next, ","), "of");
    if let Some(year) = year_of(text(tokens, year_at)) {
        return Some((Raw::range(year, month, 1, Precision::Month), year_at + 1 - at));
    }
    let day = day_of(text(tokens, next))?;
    let after = next + 1;
    let comma = skip(tokens, after, ",");
    if let Some(year) = year_of(text(tokens, comma)) {
        return Some((Raw::day(Some(year), month, day), comma + 1 - at));
    }
    let is_list = continuation(tokens, after + 1).is_some() && is_join(text(tokens, after));
    // "May 15 patients" is no date: a bare "may" with a number needs a year or an ordinal.
    let is_ordinal = text(tokens, next).bytes().any(|byte| byte.is_ascii_alphabetic());
    (text(tokens, at) != "may" || is_ordinal || is_list).then(|| (Raw::day(None, month, day), after - at))
}

/// Reads `24, 2026`, a further day of the month before: the day, the year and the number of tokens.
fn continuation(tokens: &[Token], at: usize) -> Option<(i8, i16, usize)> {
    let day = day_of(text(tokens, at))?;
    let comma = skip(tokens, at + 1, ",");
    Some((day, year_of(text(tokens, comma))?, comma + 1 - at))
}

/// A further day of the same month: `July 23-24, 2026`, `July 23 and 24, 2026`.
fn continued(tokens: &[Token], at: usize, before: Option<&Raw>) -> Option<(Raw, usize)> {
    let before = before.filter(|before| before.day.is_some() && before.year.is_none() && before.last + 2 == at)?;
    let (day, year, used) = continuation(tokens, at).filter(|_| is_join(text(tokens, at - 1)))?;
    Some((Raw::day(Some(year), before.month, day), used))
}

fn is_join(word: &str) -> bool {
    matches!(word, "and" | "," | "-" | "to" | "through" | "or" | "&")
}

/// `27 November 2026`.
fn day_first(tokens: &[Token], at: usize) -> Option<(Raw, usize)> {
    let day = day_of(text(tokens, at))?;
    let named = skip(tokens, at + 1, "of");
    let month = month_of(text(tokens, named))?;
    let year_at = skip(tokens, skip(tokens, named + 1, "."), ",");
    let year = year_of(text(tokens, year_at))?;
    Some((Raw::day(Some(year), month, day), year_at + 1 - at))
}

/// `2026-11-27`, `11/27/2026`.
fn numeric(tokens: &[Token], at: usize) -> Option<(Raw, usize)> {
    let (first, sign, second, other, third) =
        (text(tokens, at), text(tokens, at + 1), text(tokens, at + 2), text(tokens, at + 3), text(tokens, at + 4));
    let number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse::<i8>().ok()).flatten();
    let (year, month, day) = match (sign, other) {
        ("-", "-") if second.len() == 2 && third.len() == 2 => (year_of(first)?, number(second)?, number(third)?),
        ("/", "/") => (year_of(third)?, number(first)?, number(second)?),
        _ => return None,
    };
    Date::new(year, month, day).ok().map(|_| (Raw::day(Some(year), month, day), 5))
}

/// Quarters and halves: `Q4 2026`, `4Q26`, `the fourth quarter of 2026`, `H2 2027`, `second half of 2027`. Fiscal ones are none.
fn part_of_year(tokens: &[Token], at: usize) -> Option<(Raw, usize)> {
    let word = text(tokens, at);
    let range = |year: i16, letter: char, number: i8| match letter {
        'q' if (1..=4).contains(&number) => Some(Raw::range(year, number * 3 - 2, 3, Precision::Quarter)),
        'h' if (1..=2).contains(&number) => Some(Raw::range(year, number * 6 - 5, 6, Precision::Half)),
        _ => None,
    };
    let letters: Vec<char> = word.chars().collect();
    let short = match letters.as_slice() {
        [letter @ ('q' | 'h'), digit] | [digit, letter @ ('q' | 'h')] => Some((*letter, digit.to_digit(10)?, None)),
        // 4Q26
        [digit, letter @ ('q' | 'h'), tens, ones] => {
            Some((*letter, digit.to_digit(10)?, Some(2000 + tens.to_digit(10)? * 10 + ones.to_digit(10)?)))
        }
        _ => None,
    };
    if let Some((letter, digit, year)) = short {
        let number = i8::try_from(digit).ok()?;
        if let Some(year) = year {
            return range(i16::try_from(year).ok()?, letter, number).map(|raw| (raw, 1));
        }
        let year_at = skip(tokens, skip(tokens, skip(tokens, at + 1, ","), "-"), "of");
        return range(year_of(text(tokens, year_at))?, letter, number).map(|raw| (raw, year_at + 1 - at));
    }
    let ordinal = match word {
        "1st" => 0,
        "2nd" => 1,
        "3rd" => 2,
        "4th" => 3,
        word => ORDINALS.iter().position(|name| *name == word)?,
    };
    let named = skip(tokens, at + 1, "-");
    let letter = match text(tokens, named) {
        "quarter" | "calendar" if text(tokens, named) == "quarter" || text(tokens, named + 1) == "quarter" => 'q',
        "half" => 'h',
        _ => return None,
    };
    let behind = if text(tokens, named) == "calendar" { named + 2 } else { named + 1 };
    let mut year_at = skip(tokens, skip(tokens, behind, ","), "of");
    for filler in ["the", "calendar", "year"] {
        year_at = skip(tokens, year_at, filler);
    }
    range(year_of(text(tokens, year_at))?, letter, i8::try_from(ordinal + 1).ok()?).map(|raw| (raw, year_at + 1 - at))
}

/// `early 2027`, `mid-2027`, `late in 2027`, `the end of 2027`, `year-end 2027`.
fn third(tokens: &[Token], at: usize) -> Option<(Raw, usize)> {
    let (month, mut year_at) = match text(tokens, at) {
        "early" | "beginning" => (1, at + 1),
        "mid" | "middle" => (5, at + 1),
        "late" => (9, at + 1),
        "end" => (9, at + 1),
        "year" if text(tokens, skip(tokens, at + 1, "-")) == "end" => (9, skip(tokens, at + 1, "-") + 1),
        _ => return None,
    };
    for filler in ["-", "in", "of", "calendar", "year"] {
        year_at = skip(tokens, year_at, filler);
    }
    let year = year_of(text(tokens, year_at))?;
    Some((Raw::range(year, month, 4, Precision::Third), year_at + 1 - at))
}

/// `in 2027`, `during 2027`, `by 2027`, `calendar year 2027`.
fn plain_year(tokens: &[Token], at: usize) -> Option<(Raw, usize)> {
    let before = at.checked_sub(1).map_or("", |before| text(tokens, before));
    let year = year_of(text(tokens, at)).filter(|_| matches!(before, "in" | "during" | "by" | "calendar" | "year"))?;
    let is_fiscal = at.checked_sub(2).is_some_and(|before| text(tokens, before) == "fiscal");
    (!is_fiscal).then(|| (Raw::range(year, 1, 12, Precision::Year), 1))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let name = |found: &FoundDate| match found.precision {
            Precision::Day => found.from.to_string(),
            precision => format!("{}..{} {precision:?}", found.from, found.to).to_lowercase(),
        };
        scan(text, Some(date(2026, 11, 20))).iter().map(name).collect()
    }

    /// Proves which wordings are dates, with which precision, and that a month never becomes its first day.
    #[test]
    fn wordings() {
        for (text, expected) in [
            ("PDUFA target action date of November 27, 2026", &["2026-11-27"][..]),
            ("August 25, 2026 U.S. PDUFA target action date", &["2026-08-25"]),
            ("PDUFA date in the fourth quarter of 2026", &["2026-10-01..2026-12-31 quarter"]),
            ("PDUFA goal date in the second half of 2027", &["2027-07-01..2027-12-31 half"]),
            ("PDUFA goal date Sept 1, 2023", &["2023-09-01"]),
            ("PDUFA goal date Sept. 1, 2027.", &["2027-09-01"]),
            ("PDUFA date November 30th", &["2026-11-30"]),
            ("a date of January 3rd", &["2027-01-03"]),
            ("on 27 November 2026 in", &["2026-11-27"]),
            ("2026-11-27 or 11/28/2026", &["2026-11-27", "2026-11-28"]),
            ("in November 2026", &["2026-11-01..2026-11-30 month"]),
            ("in March of 2027", &["2027-03-01..2027-03-31 month"]),
            (
                "Q4 2026, 4Q26, 1Q 2027",
                &["2026-10-01..2026-12-31 quarter", "2026-10-01..2026-12-31 quarter", "2027-01-01..2027-03-31 quarter"],
            ),
            ("H2 2027 and 1H 2027", &["2027-07-01..2027-12-31 half", "2027-01-01..2027-06-30 half"]),
            ("early 2027", &["2027-01-01..2027-04-30 third"]),
            ("mid-2027", &["2027-05-01..2027-08-31 third"]),
            ("mid\u{2011}2027", &["2027-05-01..2027-08-31 third"]),
            ("late 2027", &["2027-09-01..2027-12-31 third"]),
            ("by the end of 2026", &["2026-09-01..2026-12-31 third"]),
            ("expected in 2027", &["2027-01-01..2027-12-31 year"]),
            ("November\u{a0}27,\u{a0}2026", &["2026-11-27"]),
            ("July 23 and July 24, 2026.", &["2026-07-23", "2026-07-24"]),
            ("July 23-24, 2026", &["2026-07-23", "2026-07-24"]),
            ("May 5 and 6, 2026", &["2026-05-05", "2026-05-06"]),
            ("February 30, 2027", &[]),
            ("may 15 patients", &[]),
            ("the fourth quarter of fiscal 2026", &[]),
            ("in fiscal year 2027", &[]),
            ("2026 patients, section 2027", &[]),
            ("", &[]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert!(scan("November 30th", None).is_empty());
    }

    /// Proves that a date names its position in the text, also after characters of several bytes.
    #[test]
    fn positions() {
        let text = "– é: November 27, 2026.";
        let found = scan(text, None);
        assert_eq!(&text[found[0].start..found[0].end], "November 27, 2026");
    }

    /// Proves that registry dates keep their precision, and that other texts are refused.
    #[test]
    fn registry_dates() {
        assert_eq!(registry_date("2026-07"), Some((date(2026, 7, 1), date(2026, 7, 31), Precision::Month)));
        assert_eq!(registry_date("2024-02-29"), Some((date(2024, 2, 29), date(2024, 2, 29), Precision::Day)));
        for bad in ["", "2026", "2026-13", "2026-7", "2026-07-32", "2026-07-01-1", "July 2026", "٢٠٢٦-07"] {
            assert_eq!(registry_date(bad), None, "{bad}");
        }
    }

    /// Proves that no text makes the scanner panic, and that positions are within the text.
    #[test]
    fn any_text() {
        let words = [
            "May",
            "5",
            "2026",
            "-",
            ",",
            "Q4",
            "4q26",
            "é",
            "th",
            "31st",
            "end",
            "of",
            "year",
            "/",
            "12",
            "second",
            "half",
            "–",
            "00000000000",
        ];
        let mut seed = 7_u64;
        for _ in 0..3_000 {
            let mut text = String::new();
            for _ in 0..9 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(words[usize::try_from(seed >> 33).unwrap() % words.len()]);
                if seed & 3 != 0 {
                    text.push(' ');
                }
            }
            for found in scan(&text, Some(date(2026, 2, 28))) {
                assert!(found.from <= found.to && text.get(found.start..found.end).is_some(), "{text}");
                assert_eq!(found.precision == Precision::Day, found.from == found.to, "{text}");
            }
        }
    }
}

//! Whether two addresses in the United States are of one place: house number, the core of the street's name, and ZIP code. Suffixes and
//! directions are recognised by the words of the Postal Service and not compared by the key; parts of buildings are dropped.
//!
//! An address is not looked up: whether it exists is not known.

use std::fmt;

use serde::{Deserialize, Serialize};
use texts::company_names::{all_words, folded};

use crate::street_words::{self, Kind, standard};

/// Texts that stand for an address that is not known.
const PLACEHOLDERS: &[&str] =
    &["GENERAL DELIVERY", "N/A", "NA", "NONE", "NOT APPLICABLE", "NULL", "SAME", "SAME AS ABOVE", "TBD", "UNKNOWN"];
/// The longest street that is read, in characters. A longer text is no street.
pub const STREET_CHARS_MAX: usize = 200;

/// Returns the version of the data file of street words.
#[must_use]
pub fn street_words_version() -> u32 {
    street_words::version()
}

/// An address, as it is compared. Every part is empty if it is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Address {
    /// The house number, or the number of a post office box.
    number: String,
    /// The street's name in lower case without directions and suffix; `po box` for a post office box.
    core: String,
    /// The standard abbreviation of the suffix.
    suffix: String,
    /// The standard abbreviation of the direction before or after the street's name.
    direction: String,
    /// The city in capitals.
    city: String,
    /// Two letters.
    state: String,
    /// Five digits.
    zip: String,
}

impl Address {
    /// Reads an address: the line with the street, the city, two letters of the state, and the ZIP code with or without its last four digits. Texts
    /// that are none are read as unknown.
    #[must_use]
    pub fn new(street: &str, city: &str, state: &str, zip: &str) -> Self {
        let mut address = Self { city: city_words(city), state: state_letters(state), zip: zip5(zip), ..Self::default() };
        if street.chars().nth(STREET_CHARS_MAX).is_none() {
            address.read_street(street);
        }
        address
    }

    fn read_street(&mut self, street: &str) {
        let mut words = street_tokens(street);
        if PLACEHOLDERS.contains(&words.join(" ").as_str()) {
            return;
        }
        skip_recipient(&mut words);
        if let Some((number, count)) = post_office_box(&words) {
            let has_street = words.get(count..).is_some_and(|rest| rest.len() > 1 && rest.first().is_some_and(|word| is_number(word)));
            if !has_street {
                (self.number, self.core) = (number, "po box".to_owned());
                return;
            }
            words.drain(..count);
        }
        if let Some((number, route)) = route_box(&words) {
            (self.number, self.core) = (number, route);
            return;
        }
        skip_unit_before(&mut words);
        skip_number_sign(&mut words);
        self.number = take_number(&mut words);
        let rest = self.number.trim_start_matches('0');
        if is_number(rest) {
            self.number = rest.to_owned();
        }
        cut_unit(&mut words);
        if words.len() > 1
            && let Some(direction) = words.last().and_then(|word| standard(Kind::Direction, word))
        {
            // `MAIN ST NW`; but `AVENUE E` has no direction.
            if words.len() > 2 || words.first().is_none_or(|word| standard(Kind::Suffix, word).is_none()) {
                direction.clone_into(&mut self.direction);
                words.pop();
            }
        }
        if words.len() > 1
            && let Some(suffix) = words.last().and_then(|word| standard(Kind::Suffix, word))
        {
            suffix.clone_into(&mut self.suffix);
            words.pop();
        }
        let (count, direction) = direction_before(&words);
        if count > 0 {
            if self.direction.is_empty() {
                self.direction = direction;
            }
            words.drain(..count);
        }
        self.core = words.iter().map(|word| standard_street_word(word).to_lowercase()).collect::<Vec<_>>().join(" ");
    }

    /// The key of the place: house number, core of the street's name in lower case, and ZIP code (`312 carter 50309`). `None` if one is unknown.
    #[must_use]
    pub fn key(&self) -> Option<String> {
        let is_known = !self.number.is_empty() && !self.core.is_empty() && !self.zip.is_empty();
        is_known.then(|| format!("{} {} {}", self.number.to_lowercase(), self.core, self.zip))
    }

    /// Whether neither a street nor a house number is known.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.number.is_empty() && self.core.is_empty()
    }

    /// The two letters of the state; `""` if it is unknown.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The five digits of the ZIP code; `""` if they are unknown.
    #[must_use]
    pub fn zip(&self) -> &str {
        &self.zip
    }

    fn is_box(&self) -> bool {
        self.core == "po box"
    }

    fn is_on_route(&self) -> bool {
        self.core.starts_with("rural route ") || self.core.starts_with("highway contract ")
    }
}

/// How well two addresses agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closeness {
    /// The same place.
    Same,
    /// Probably the same place.
    Near,
    /// One of them is missing, so that nothing speaks against the same place.
    Missing,
    /// Two places, or too little is known of them.
    Different,
}

/// How well two addresses agree, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMatch {
    /// How well they agree.
    pub closeness: Closeness,
    /// Why, as answers show it.
    pub reason: &'static str,
}

impl fmt::Display for AddressMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

/// Compares two addresses. The result is the same in both directions.
#[must_use]
pub fn compare(one: &Address, other: &Address) -> AddressMatch {
    let result = |closeness, reason| AddressMatch { closeness, reason };
    let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
    if differ(&one.state, &other.state) {
        return result(Closeness::Different, "another state");
    }
    let is_same_zip = !one.zip.is_empty() && one.zip == other.zip;
    let is_known = !one.is_missing() && !other.is_missing();
    if is_known && one.is_box() != other.is_box() && !one.is_on_route() && !other.is_on_route() {
        // A box says where mail is taken, not where the business is: its street is missing, and its ZIP code can be that of the post office.
        return match is_same_zip || (!one.city.is_empty() && is_same_city(one, other)) {
            true => result(Closeness::Missing, "a post office box, and a street in the same city or ZIP code"),
            false => result(Closeness::Different, "a post office box and a street in another place"),
        };
    }
    if differ(&one.zip, &other.zip) {
        return result(Closeness::Different, "another ZIP code");
    }
    if !is_known {
        // Where a ZIP code is not known, only the cities speak of the place.
        let is_elsewhere = !is_same_zip && differ(&one.city, &other.city) && !is_same_city(one, other);
        return match is_elsewhere {
            true => result(Closeness::Different, "another city, and one address is missing"),
            false => result(Closeness::Missing, "one address is missing"),
        };
    }
    if one.is_box() != other.is_box() {
        return result(Closeness::Different, "a post office box and a rural route");
    }
    let is_same_street = one.core == other.core && !one.core.is_empty();
    if one.number.is_empty() || other.number.is_empty() {
        let is_same_text = is_same_street && !differ(&one.suffix, &other.suffix) && !differ(&one.direction, &other.direction);
        return match is_same_text && is_same_zip {
            true => result(Closeness::Near, "the same street and ZIP code; a house number is missing"),
            false => result(Closeness::Different, "a house number is missing, and the streets or ZIP codes differ"),
        };
    }
    if one.is_on_route() != other.is_on_route() || (one.is_on_route() && !is_same_street) {
        return result(Closeness::Different, "another rural route");
    }
    if one.number != other.number && (one.is_box() || one.is_on_route() || !is_same_number(&one.number, &other.number)) {
        return result(Closeness::Different, if one.is_box() { "another post office box" } else { "another house number" });
    }
    if one.zip.is_empty() || other.zip.is_empty() {
        return match is_same_street && !one.city.is_empty() && is_same_city(one, other) {
            true => result(Closeness::Near, "the same house number, street and city; a ZIP code is missing"),
            false => result(Closeness::Different, "a ZIP code is missing, and the streets or cities differ"),
        };
    }
    if one.number != other.number {
        return result(Closeness::Near, "the same ZIP code; the house numbers differ by a letter or are of one range");
    }
    match (is_same_street, differ(&one.direction, &other.direction), differ(&one.suffix, &other.suffix)) {
        (true, false, false) if one.is_box() => result(Closeness::Same, "the same post office box and ZIP code"),
        (true, false, false) => result(Closeness::Same, "the same house number, street and ZIP code"),
        (true, true, _) => result(Closeness::Near, "the same house number and ZIP code; the streets have other directions"),
        (true, false, true) => result(Closeness::Near, "the same house number and ZIP code; the streets have other suffixes"),
        (false, ..) => result(Closeness::Near, "the same house number and ZIP code; the streets differ"),
    }
}

/// Whether two cities have the same letters: `LA JUNTA` and `LAJUNTA`.
fn is_same_city(one: &Address, other: &Address) -> bool {
    let letters = |address: &Address| address.city.replace(' ', "");
    one.city == other.city || letters(one) == letters(other)
}

/// Splits the line with a street into words in capitals. `#` is a word of its own; a hyphen remains between digits only, and a slash in numbers.
fn street_tokens(street: &str) -> Vec<String> {
    let spaced: String = street
        .chars()
        .map(|c| match c {
            '½' => " 1/2 ".to_owned(),
            '¼' => " 1/4 ".to_owned(),
            '¾' => " 3/4 ".to_owned(),
            c => c.to_string(),
        })
        .collect();
    let chars: Vec<char> = folded(&spaced).chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut open = String::new();
    for (at, c) in chars.iter().copied().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let after = chars.get(at + 1);
        let is_between = |is: fn(&char) -> bool| before.is_some_and(is) && after.is_some_and(is);
        match c {
            c if c.is_alphanumeric() => open.push(c),
            '.' | '\'' | '\u{2019}' => {}
            '-' if is_between(char::is_ascii_digit) => open.push(c),
            // The letter after a house number is a part of it: `312-A`.
            '-' if before.is_some_and(char::is_ascii_digit)
                && after.is_some_and(char::is_ascii_alphabetic)
                && !chars.get(at + 2).is_some_and(|c| c.is_alphanumeric()) => {}
            '/' if is_between(|c| c.is_ascii_alphanumeric()) => open.push(c),
            '#' => {
                words.push(std::mem::take(&mut open));
                words.push("#".to_owned());
            }
            _ => words.push(std::mem::take(&mut open)),
        }
    }
    words.push(open);
    words.into_iter().filter(|word| !word.is_empty()).flat_map(unit_and_number).collect()
}

/// Splits the number of a part of a building from the word before it: `STE200`.
fn unit_and_number(word: String) -> Vec<String> {
    match word.find(|c: char| c.is_ascii_digit()).and_then(|at| word.split_at_checked(at)) {
        Some((unit, number)) if standard(Kind::NumberedUnit, unit).is_some() => vec![unit.to_owned(), number.to_owned()],
        _ => vec![word],
    }
}

/// Whether a word begins like a house number.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Removes the recipient: `C/O JOHN SMITH 312 CARTER ST`.
fn skip_recipient(words: &mut Vec<String>) {
    if words.first().is_some_and(|word| word == "C/O" || word == "ATTN")
        && let Some(start) = words.iter().position(|word| is_number(word) || word == "PO")
    {
        words.drain(..start);
    }
}

/// Whether words begin with a spelling, and more follow.
fn begins_with(words: &[String], spelling: &[&str]) -> bool {
    words.len() > spelling.len() && words.iter().zip(spelling).all(|(word, wanted)| word == wanted)
}

/// Returns the number of a post office box with which the words begin, and how many words say so.
fn post_office_box(words: &[String]) -> Option<(String, usize)> {
    const SPELLINGS: &[&[&str]] = &[
        &["PO", "BOX"],
        &["P", "O", "BOX"],
        &["POBOX"],
        &["POB"],
        &["POST", "OFFICE", "BOX"],
        &["PO", "DRAWER"],
        &["P", "O", "DRAWER"],
        &["BOX"],
    ];
    let spelling = SPELLINGS.iter().find(|spelling| begins_with(words, spelling))?;
    let at = (spelling.len()..words.len()).find(|at| words.get(*at).is_some_and(|word| word != "#"))?;
    let number = words.get(at)?.trim_start_matches('0').to_owned();
    // A street can be named for a box.
    let is_box = !number.is_empty() && (spelling.len() > 1 || number.starts_with(|c: char| c.is_ascii_digit()));
    is_box.then_some((number, at + 1))
}

/// Returns the number of the box on a rural or highway contract route with which the words begin, and the route: `RR 2 BOX 15`.
fn route_box(words: &[String]) -> Option<(String, String)> {
    const RURAL: &str = "rural route";
    const CONTRACT: &str = "highway contract";
    const SPELLINGS: &[(&[&str], &str)] = &[
        (&["RURAL", "ROUTE"], RURAL),
        (&["RURAL", "RTE"], RURAL),
        (&["RURAL", "RT"], RURAL),
        (&["R", "R"], RURAL),
        (&["RR"], RURAL),
        (&["RFD"], RURAL),
        (&["ROUTE"], RURAL),
        (&["RTE"], RURAL),
        (&["RT"], RURAL),
        (&["HIGHWAY", "CONTRACT"], CONTRACT),
        (&["HC"], CONTRACT),
        (&["HCR"], CONTRACT),
    ];
    let (spelling, name) = SPELLINGS.iter().find(|(spelling, _)| begins_with(words, spelling))?;
    let rest: Vec<&str> = words.iter().skip(spelling.len()).map(String::as_str).filter(|word| *word != "#" && *word != "NO").collect();
    let [route, box_word, number, ..] = rest.as_slice() else { return None };
    let digits = |text: &str| text.trim_start_matches('0').to_owned();
    (*box_word == "BOX" && is_number(route)).then(|| (digits(number), format!("{name} {}", digits(route).to_lowercase())))
}

/// Removes the sign of a house number, and a part of a building before it: `NO. 312 CARTER ST`, `#312 CARTER ST`, `#5, 312 CARTER ST`.
fn skip_number_sign(words: &mut Vec<String>) {
    if let [sign, number, next, ..] = words.as_slice()
        && (sign == "#" || sign == "NO")
        && is_number(number)
    {
        // `#5, 312 CARTER ST`: the sign is that of a part of the building.
        let count = if sign == "#" && is_number(next) && words.len() > 3 { 2 } else { 1 };
        words.drain(..count);
    }
}

/// Whether two house numbers can be of one building: the same one, one of them with a letter (`312A`), or the first of a range (`312-314`).
fn is_same_number(one: &str, other: &str) -> bool {
    let base = |number: &str| -> String {
        if let Some((first, last)) = number.split_once('-')
            && let (Ok(low), Ok(high)) = (first.parse::<u64>(), last.parse::<u64>())
            && low < high
        {
            return first.to_owned();
        }
        let digits = number.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.to_owned() } else { number.to_owned() }
    };
    one == other || base(one) == other || base(other) == one
}

/// Whether a word can be the number of a part of a building.
fn is_unit_number(word: &str) -> bool {
    let is_short = word.chars().count() <= 2 && standard(Kind::Suffix, word).is_none() && standard(Kind::Direction, word).is_none();
    word == "#" || word.chars().any(|c| c.is_ascii_digit()) || is_short || word.chars().count() == 1
}

/// Removes a part of a building before the house number: `SUITE 200, 312 CARTER ST`.
fn skip_unit_before(words: &mut Vec<String>) {
    if let [unit, number, house, _, ..] = words.as_slice()
        && standard(Kind::NumberedUnit, unit).is_some()
        && is_unit_number(number)
        && is_number(house)
    {
        words.drain(..2);
    }
}

/// Removes and returns the house number; `""` if there is none.
fn take_number(words: &mut Vec<String>) -> String {
    let Some(first) = words.first().cloned() else { return String::new() };
    let is_ordinal = is_number(&first) && ["ST", "ND", "RD", "TH"].iter().any(|end| first.ends_with(end));
    if is_number(&first) && !(is_ordinal && words.len() < 3) {
        words.remove(0);
        if words.len() > 1 && words.first().is_some_and(|word| matches!(word.as_str(), "1/2" | "1/4" | "3/4")) {
            return format!("{first} {}", words.remove(0));
        }
        return first;
    }
    let spelled = standard(Kind::HouseNumber, &first).filter(|_| words.len() > 2 && !words.iter().any(|word| is_number(word)));
    match spelled {
        Some(number) => {
            words.remove(0);
            number.to_owned()
        }
        None => String::new(),
    }
}

/// Cuts the words after the street: a part of the building, or a post office box. At least one word remains.
fn cut_unit(words: &mut Vec<String>) {
    let is_end = |at: usize| -> bool {
        let (Some(word), next) = (words.get(at), words.get(at + 1)) else { return false };
        let has_suffix_before = at
            .checked_sub(1)
            .and_then(|at| words.get(at))
            .is_some_and(|word| standard(Kind::Suffix, word).is_some() || standard(Kind::Direction, word).is_some());
        word == "#"
            || (word == "PO" && next.is_some_and(|next| next == "BOX"))
            || (standard(Kind::NumberedUnit, word).is_some() && next.is_some_and(|next| is_unit_number(next)))
            || (standard(Kind::Unit, word).is_some() && has_suffix_before && at >= 2)
            // `312 CARTER ST 2ND FLOOR`.
            || (has_suffix_before && at >= 2 && is_number(word) && next.is_some_and(|next| standard(Kind::NumberedUnit, next).is_some()))
            // `312 CARTER ST 200`: what follows the suffix is a number.
            || (has_suffix_before && at >= 2 && is_number(word) && next.is_none())
    };
    if let Some(at) = (1..words.len()).find(|at| is_end(*at)) {
        words.truncate(at);
    }
}

/// Returns how many words at the beginning are a direction before a street's name, and its abbreviation. A street's name remains.
fn direction_before(words: &[String]) -> (usize, String) {
    let at = |at: usize| words.get(at).and_then(|word| standard(Kind::Direction, word));
    match (at(0), at(1)) {
        (Some(first @ ("N" | "S")), Some(second @ ("E" | "W"))) if words.len() > 2 => (2, format!("{first}{second}")),
        (Some(first), _) if words.len() > 1 => (1, first.to_owned()),
        _ => (0, String::new()),
    }
}

/// Returns the standard form of a word in a street's name.
fn standard_street_word(word: &str) -> &str {
    [Kind::Ordinal, Kind::StreetName, Kind::Suffix].into_iter().find_map(|kind| standard(kind, word)).unwrap_or(word)
}

fn city_words(city: &str) -> String {
    let words = all_words(city);
    words.iter().map(|word| standard_street_word(word)).collect::<Vec<_>>().join(" ")
}

fn state_letters(state: &str) -> String {
    let letters = state.trim();
    let is_state = letters.len() == 2 && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_state { letters.to_ascii_uppercase() } else { String::new() }
}

/// Returns the five digits of a ZIP code. Zeros at the beginning that a source lost are added.
fn zip5(zip: &str) -> String {
    if zip.len() > 20 {
        return String::new();
    }
    let is_digits = zip.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | ' '));
    let digits: String = zip.chars().filter(char::is_ascii_digit).collect();
    let five = match digits.len() {
        3..=5 => format!("{digits:0>5}"),
        7..=9 => format!("{digits:0>9}"),
        _ => return String::new(),
    };
    let five = five.get(..5).unwrap_or_default();
    if is_digits && five != "00000" { five.to_owned() } else { String::new() }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;

//! The key by which names of one business in several registers are found: registers write initials, numbers and usual words in several ways, and some add the
//! other names under which a business is known.

use std::borrow::Cow;

use texts::company_names::all_words;

use crate::company::CompanyName;

/// Words that registers abbreviate, with the word that stands for both. Sorted.
const USUAL: &[(&str, &str)] = &[
    ("ASSN", "ASSOCIATION"),
    ("ASSOC", "ASSOCIATES"),
    ("BLDG", "BUILDING"),
    ("BLDRS", "BUILDERS"),
    ("BROS", "BROTHERS"),
    ("CENTRE", "CENTER"),
    ("CONST", "CONSTRUCTION"),
    ("CONSTR", "CONSTRUCTION"),
    ("CTR", "CENTER"),
    ("EIGHT", "8"),
    ("ELEVEN", "11"),
    ("EQUIP", "EQUIPMENT"),
    ("FIFTH", "5TH"),
    ("FIRST", "1ST"),
    ("FIVE", "5"),
    ("FORT", "FT"),
    ("FOUR", "4"),
    ("FOURTH", "4TH"),
    ("FRT", "FREIGHT"),
    ("GRP", "GROUP"),
    ("HTG", "HEATING"),
    ("INTL", "INTERNATIONAL"),
    ("MFG", "MANUFACTURING"),
    ("MGMT", "MANAGEMENT"),
    ("MGT", "MANAGEMENT"),
    ("MOUNT", "MT"),
    ("MTN", "MOUNTAIN"),
    ("MTNS", "MOUNTAINS"),
    ("NATL", "NATIONAL"),
    ("NINE", "9"),
    ("ONE", "1"),
    ("PLBG", "PLUMBING"),
    ("SAINT", "ST"),
    ("SECOND", "2ND"),
    ("SEVEN", "7"),
    ("SIX", "6"),
    ("SVC", "SERVICE"),
    ("SVCS", "SERVICES"),
    ("TEN", "10"),
    ("THIRD", "3RD"),
    ("THREE", "3"),
    ("TRANSP", "TRANSPORT"),
    ("TRKG", "TRUCKING"),
    ("TWELVE", "12"),
    ("TWO", "2"),
];
/// What begins another name under which a business is known.
const OTHER_NAMES: &[&[&str]] = &[
    &["DBA"],
    &["D", "B", "A"],
    &["DOING", "BUSINESS", "AS"],
    &["AKA"],
    &["A", "K", "A"],
    &["ALSO", "KNOWN", "AS"],
    &["FKA"],
    &["FORMERLY", "KNOWN", "AS"],
    &["TRADING", "AS"],
];
/// What also begins another name, with a slash that words do not have.
const TRADING_AS: &str = "T/A";

/// Returns the letters of a name without its legal forms, the other names of the business, articles and words that join others. `None` for a name that is
/// compared with none. Initials that are joined are no others: `A & B` is not `AB`.
pub(crate) fn key(name: &str) -> Option<String> {
    // Refuses what is too long as a whole.
    CompanyName::new(name)?;
    let mut words = all_words(&with_trading_as(name).replace(['&', '+', '＆'], " AND "));
    cut_other_names(&mut words);
    let words: Vec<String> = joined_initials(&words).iter().map(|word| usual(word).to_owned()).collect();
    let company = CompanyName::new(&with_usual_form(words).join(" "))?;
    Some(company.normal().replace(' ', ""))
}

/// Writes `T/A` as the words that it stands for.
fn with_trading_as(name: &str) -> Cow<'_, str> {
    let is_short = |word: &str| word.eq_ignore_ascii_case(TRADING_AS);
    if !name.split_whitespace().any(is_short) {
        return Cow::Borrowed(name);
    }
    let words = name.split_whitespace().map(|word| if is_short(word) { "TRADING AS" } else { word });
    Cow::Owned(words.collect::<Vec<_>>().join(" "))
}

fn usual(word: &str) -> &str {
    USUAL.binary_search_by_key(&word, |(known, _)| *known).ok().and_then(|at| USUAL.get(at)).map_or(word, |(_, usual)| usual)
}

/// Cuts what follows the first name. At least one word remains.
fn cut_other_names(words: &mut Vec<String>) {
    let begins = |at: usize| OTHER_NAMES.iter().any(|other| words.get(at..at + other.len()).is_some_and(|found| found == *other));
    // A name that ends so says no other name.
    if let Some(at) = (1..words.len().saturating_sub(1)).find(|at| begins(*at)) {
        words.truncate(at);
    }
}

/// Makes one word of two initials that are joined (`A AND B`), and drops the letter that joins words (`ROCK N ROLL`).
fn joined_initials(words: &[String]) -> Vec<String> {
    let is_letter = |at: usize| words.get(at).is_some_and(|word| word.chars().count() == 1);
    let (mut all, mut at) = (Vec::with_capacity(words.len()), 0);
    while let Some(word) = words.get(at) {
        let is_joined = is_letter(at) && words.get(at + 1).is_some_and(|next| next == "AND") && is_letter(at + 2);
        if is_joined && let Some(other) = words.get(at + 2) {
            all.push(format!("{word}AND{other}"));
            at += 3;
            continue;
        }
        let joins = word == "N" && at > 0 && at + 1 < words.len() && !is_letter(at - 1) && !is_letter(at + 1);
        all.extend((!joins).then(|| word.clone()));
        at += 1;
    }
    all
}

/// Writes the legal forms of limited liability companies that only some registers use as the others do.
fn with_usual_form(mut words: Vec<String>) -> Vec<String> {
    for at in 1..words.len() {
        if words.get(at + 1).is_some_and(|next| next == "LIABILITY")
            && let Some(limited) = words.get_mut(at).filter(|word| word.as_str() == "LTD")
        {
            "LIMITED".clone_into(limited);
        }
    }
    let is_short = words.len() > 1 && words.last().is_some_and(|last| last == "LC");
    let are_letters =
        words.len() > 2 && words.ends_with(&["L".to_owned(), "C".to_owned()]) && !words.ends_with(&["L", "L", "C"].map(str::to_owned));
    if is_short || are_letters {
        words.truncate(words.len() - if is_short { 1 } else { 2 });
        words.push("LLC".to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the spellings of one name have one key, and that names of two businesses have two.
    #[test]
    fn keys() {
        for spellings in [
            ["J.B. Hunt Hauling, Inc.", "J B HUNT HAULING INC", "JB Hunt Hauling"],
            ["A & B Trucking LLC", "A AND B TRUCKING", "A+B Trucking, L.L.C."],
            ["The Five Star Movers LLC", "5 STAR MOVERS", "Five-Star Movers, L.C."],
            ["First Choice Towing Ltd. Liability Co.", "1ST CHOICE TOWING LLC", "1st Choice Towing L C"],
            ["Smith Bros. Const. Co.", "SMITH BROTHERS CONSTRUCTION", "Smith Brothers Construction Company, LLC"],
            ["Rock 'n' Roll Tavern", "ROCK N ROLL TAVERN LLC", "Rock and Roll Tavern, Inc."],
            ["Mesa Freight LLC DBA Mesa Xpress", "MESA FREIGHT LLC D/B/A MESA XPRESS", "Mesa Freight"],
            ["Mesa Freight, t/a Mesa Xpress", "MESA FREIGHT TRADING AS MESA XPRESS", "Mesa Freight also known as Mesa Xpress"],
            ["Rocky Mtn Frt & Equip", "ROCKY MOUNTAIN FREIGHT AND EQUIPMENT LLC", "Rocky Mtn. Freight & Equip., Inc."],
            ["St. Vrain Svcs", "Saint Vrain Services", "SAINT VRAIN SERVICES INCORPORATED"],
            ["Blue Bird Transport", "BLUEBIRD TRANSPORT LLC", "Blue-Bird Transport"],
            ["24/7 Towing", "24-7 TOWING LLC", "24 7 Towing"],
        ] {
            let keys: Vec<String> = spellings.iter().map(|name| key(name).unwrap()).collect();
            assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{spellings:?}: {keys:?}");
        }
        for (one, other) in [
            ("A & B Trucking", "AB Trucking"),
            ("Blue Mesa Freight", "Blue Mesa Freight Services"),
            ("First Choice Towing", "Second Choice Towing"),
            ("Smith Brothers", "Smith Sisters"),
            ("Mesa Transport", "Mesa Transportation"),
            ("Three Rivers LLC", "Four Rivers LLC"),
            ("Acme East", "Acme West"),
            ("Rocky Mtn Freight", "Rocky Mtns Freight"),
            ("TA Freight", "Mesa TA Freight"),
        ] {
            assert_ne!(key(one), key(other), "{one} and {other}");
        }
        assert!(["", "--", "\u{301}"].iter().all(|name| key(name).is_none()));
        assert_eq!((key(&"A".repeat(10_000)), key("DBA").as_deref(), key("Acme DBA").as_deref()), (None, Some("DBA"), Some("ACMEDBA")));
    }

    /// Proves that the list of usual words is sorted, so that a word is found in it.
    #[test]
    fn the_list_is_sorted() {
        assert!(USUAL.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!((usual("TWO"), usual("ASSOC"), usual("MESA")), ("2", "ASSOCIATES", "MESA"));
    }
}

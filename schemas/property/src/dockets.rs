//! Entries in the dockets of tax liens: what the last entry decides, and the taxing bodies that a description names.

/// What entries begin with that satisfy a lien, in capitals.
const FULL: [&str; 4] = ["SATISFACTION", "SATISFIED", "EXONERATION", "LIEN ENTERED IN ERROR"];
/// Words of an entry that limit a satisfaction to a part.
const PARTS: [&str; 3] = ["PARTIAL", "PART", "ONLY"];
/// Words of an entry that take a satisfaction back.
const TAKEN_BACK: [&str; 10] =
    ["ANNULLED", "NOT", "RESCINDED", "REVERSED", "REVOKED", "STRICKEN", "VACATE", "VACATED", "VOID", "WITHDRAWN"];
/// Words of an entry about a satisfaction that was asked for and is not known to be given: "Exoneration Denied".
const NOT_GIVEN: [&str; 7] = ["DENIED", "PENDING", "PETITION", "REFUSED", "REJECTED", "REQUEST", "STAYED"];
/// The words of a description, in capitals, and the taxing body that they name. The first one of a body that occurs counts.
const BODIES: [(&str, &str); 9] = [
    ("ALLEGHENY COUNTY", "County"),
    ("COUNTY", "County"),
    ("CITY", "City"),
    ("BOROUGH", "Borough"),
    ("TOWNSHIP", "Township"),
    ("SCHOOL", "School"),
    ("LIBRARY", "Library"),
    ("WATER & SEWER", "Water & Sewer"),
    ("WATER AND SEWER", "Water & Sewer"),
];
/// The body of a description that names none.
const UNKNOWN_BODY: &str = "Unknown";

/// What an entry of a docket decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The lien is satisfied for every body.
    Full,
    /// It is satisfied for some bodies.
    Bodies(Vec<&'static str>),
    /// It is exonerated in part.
    Part,
    /// It was struck off.
    Struck,
    /// A satisfaction is taken back.
    TakenBack,
    /// It decides nothing.
    Other,
}

/// The taxing bodies that a text in capitals names, in the order of [`BODIES`].
fn bodies_in(text: &str) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = Vec::new();
    for (words, body) in BODIES {
        if text.contains(words) && !found.contains(&body) {
            found.push(body);
        }
    }
    found
}

/// The taxing bodies that a description names.
#[must_use]
pub fn bodies(description: &str) -> Vec<&'static str> {
    let found = bodies_in(&description.to_uppercase());
    if found.is_empty() { vec![UNKNOWN_BODY] } else { found }
}

/// Reads an entry of a docket: by what it begins with, so that "Satisfaction of Lien" satisfies one as "Satisfaction" does.
#[must_use]
pub fn entry(text: &str) -> Entry {
    let text = text.trim().to_uppercase();
    let has = |wanted: &[&str]| text.split(|letter: char| !letter.is_alphanumeric()).any(|word| wanted.contains(&word));
    let rest = text.strip_prefix("PARTIAL").unwrap_or(&text).trim_start();
    let is_struck = ["TAX LIEN STRIKE-OFF", "TAX LIEN STRIKE OFF", "STRIKE-OFF", "STRIKE OFF"].iter().any(|words| text.starts_with(words));
    // "Lien Entered in Error" satisfies one, and "Satisfaction Entered in Error" does not.
    let is_error = has(&["ERROR"]) && !rest.starts_with("LIEN ENTERED IN ERROR");
    if has(&TAKEN_BACK) || is_error {
        return if rest.starts_with("SATISF") { Entry::TakenBack } else { Entry::Other };
    }
    match rest {
        _ if is_struck => Entry::Struck,
        rest if has(&NOT_GIVEN) || !FULL.iter().any(|words| rest.starts_with(words)) => Entry::Other,
        rest => match rest.split_once(" AS TO ").map(|(_, named)| bodies_in(named)) {
            Some(named) if !named.is_empty() => Entry::Bodies(named),
            Some(_) => Entry::Part,
            None if has(&PARTS) => Entry::Part,
            None => Entry::Full,
        },
    }
}

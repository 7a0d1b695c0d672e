//! Entries in the dockets of tax liens: what each decides, what all of them say of a lien, and the taxing bodies that a description names.

use std::collections::BTreeSet;

use schemas::facts::liens::LienFact;
use serde::{Deserialize, Serialize};
use texts::masked_text::masked_entry;
use texts::owner_names::shown_name;

/// A lien of which no entry says that it is paid.
pub const OPEN: &str = "OPEN";
/// A lien that is satisfied for some of its taxing bodies, or exonerated in part.
pub const PARTIAL: &str = "PARTIAL";
/// A lien that is satisfied.
pub const SATISFIED: &str = "SATISFIED";
/// A lien that was struck off.
pub const STRUCK: &str = "STRUCK";

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
pub enum DocketEffect {
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
pub fn entry(text: &str) -> DocketEffect {
    let text = text.trim().to_uppercase();
    let has = |wanted: &[&str]| text.split(|letter: char| !letter.is_alphanumeric()).any(|word| wanted.contains(&word));
    let rest = text.strip_prefix("PARTIAL").unwrap_or(&text).trim_start();
    let is_struck = ["TAX LIEN STRIKE-OFF", "TAX LIEN STRIKE OFF", "STRIKE-OFF", "STRIKE OFF"].iter().any(|words| text.starts_with(words));
    // "Lien Entered in Error" satisfies one, and "Satisfaction Entered in Error" does not.
    let is_error = has(&["ERROR"]) && !rest.starts_with("LIEN ENTERED IN ERROR");
    if has(&TAKEN_BACK) || is_error {
        return if rest.starts_with("SATISF") { DocketEffect::TakenBack } else { DocketEffect::Other };
    }
    match rest {
        _ if is_struck => DocketEffect::Struck,
        rest if has(&NOT_GIVEN) || !FULL.iter().any(|words| rest.starts_with(words)) => DocketEffect::Other,
        rest => match rest.split_once(" AS TO ").map(|(_, named)| bodies_in(named)) {
            Some(named) if !named.is_empty() => DocketEffect::Bodies(named),
            Some(_) => DocketEffect::Part,
            None if has(&PARTS) => DocketEffect::Part,
            None => DocketEffect::Full,
        },
    }
}

/// The entries that decided something about a lien.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// The entry that satisfied it.
    satisfied: String,
    /// The entry that struck it off.
    struck: String,
    /// The bodies for which it was satisfied.
    bodies: BTreeSet<String>,
    /// The last entry that satisfied a part.
    part: String,
    /// The lien itself, of one without a PIN: it is decided again when a parcel with a PIN that its block-lot can mean is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<LienFact>,
}

impl Seen {
    /// What is remembered without names of persons, which older versions remembered in entries.
    #[must_use]
    pub fn without_names(mut self) -> Self {
        for entry in [&mut self.satisfied, &mut self.struck, &mut self.part] {
            *entry = masked_entry(entry);
        }
        self.waiting = self.waiting.map(|fact| without_names(&fact));
        self
    }

    /// Takes the last entry of a docket.
    pub fn take(&mut self, text: &str) {
        let text_of = |field: &mut String| text.clone_into(field);
        match entry(text) {
            DocketEffect::Full => text_of(&mut self.satisfied),
            DocketEffect::Struck => text_of(&mut self.struck),
            DocketEffect::Part => text_of(&mut self.part),
            DocketEffect::Bodies(bodies) => {
                self.bodies.extend(bodies.into_iter().map(str::to_owned));
                text_of(&mut self.part);
            }
            DocketEffect::TakenBack => {
                self.satisfied.clear();
                self.part.clear();
                self.bodies.clear();
            }
            DocketEffect::Other => {}
        }
    }

    /// What the entries say of a lien: its status, why, and the bodies that it is left for.
    #[must_use]
    pub fn status(&self, fact: &LienFact) -> (&'static str, String, Vec<&'static str>) {
        let named = bodies(&fact.description);
        let hidden = |text: &str| {
            if text == fact.last_entry {
                format!("the entry {text:?}")
            } else {
                format!("the earlier entry {text:?}, which {:?} hides", fact.last_entry)
            }
        };
        if !self.struck.is_empty() {
            return (STRUCK, hidden(&self.struck), Vec::new());
        }
        if !self.satisfied.is_empty() {
            return (SATISFIED, hidden(&self.satisfied), Vec::new());
        }
        if fact.is_satisfied {
            return (SATISFIED, "the publisher marks it as satisfied".to_owned(), Vec::new());
        }
        if self.part.is_empty() {
            return (OPEN, "no entry says that it is paid".to_owned(), named);
        }
        let left: Vec<&'static str> = named.iter().copied().filter(|body| !self.bodies.contains(*body)).collect();
        if left.is_empty() {
            return (SATISFIED, format!("{}, for the only body that is left", hidden(&self.part)), left);
        }
        (PARTIAL, format!("{}; UNKNOWN_SPLIT: how much of the amount is left is not published", hidden(&self.part)), left)
    }
}

/// A lien without names of persons, which facts that were recorded earlier can have.
#[must_use]
pub fn without_names(fact: &LienFact) -> LienFact {
    LienFact { last_entry: masked_entry(&fact.last_entry), assignee: shown_name(&fact.assignee), ..fact.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what each entry decides: full and partial satisfactions, a strike-off, and entries that decide nothing.
    #[test]
    fn entries_decide() {
        for (description, entry, expected, left) in [
            ("City & School Tax Lien", "Satisfied as to School ONLY", PARTIAL, &["City"][..]),
            ("City & School Tax Lien", "Satisfied as to City ONLY", PARTIAL, &["School"]),
            ("Borough & School Tax Lien", "Satisfied as to Borough ONLY", PARTIAL, &["School"]),
            ("Township & School Tax Lien", "Satisfied as to Township ONLY", PARTIAL, &["School"]),
            ("School & Library Tax Lien", "Satisfied as to Library ONLY", PARTIAL, &["School"]),
            ("Allegheny County Tax Lien", "Partial Exoneration - Tax Lien", PARTIAL, &["County"]),
            ("School District Tax Lien", "Satisfied as to School ONLY", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "Satisfaction", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "satisfied", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "Satisfaction of Lien", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "Satisfaction of Tax Lien.", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "Satisfied - Tax Lien", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "Exoneration - Tax Lien", SATISFIED, &[]),
            ("City & School Tax Lien", "Satisfaction as to School ONLY", PARTIAL, &["City"]),
            ("City & School Tax Lien", "Satisfied as to City and School", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "Partial Satisfaction", PARTIAL, &["County"]),
            ("Allegheny County Tax Lien", "Satisfied in Part", PARTIAL, &["County"]),
            ("Allegheny County Tax Lien", "Satisfaction Vacated", OPEN, &["County"]),
            ("Allegheny County Tax Lien", "Notice of Satisfaction", OPEN, &["County"]),
            ("Allegheny County Tax Lien", "Satisfaction Entered in Error", OPEN, &["County"]),
            ("Allegheny County Tax Lien", "Satisfaction Rescinded", OPEN, &["County"]),
            ("Allegheny County Tax Lien", "Exoneration Denied", OPEN, &["County"]),
            ("Allegheny County Tax Lien", "Exoneration Rejected", OPEN, &["County"]),
            ("Allegheny County Tax Lien", "Exoneration of Tax Lien", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "Lien Entered in Error by Filer", SATISFIED, &[]),
            ("Allegheny County Tax Lien", "Tax Lien Strike-off", STRUCK, &[]),
            ("Pgh Water & Sewer Tax Lien", "Mail Returned", OPEN, &["Water & Sewer"]),
            ("City & School Tax Lien", "Suggestion of Bankruptcy", OPEN, &["City", "School"]),
            ("Allegheny County Tax Lien", "Motion & Order", OPEN, &["County"]),
            ("Tax Lien", "", OPEN, &["Unknown"]),
        ] {
            let fact = LienFact { description: description.into(), last_entry: entry.into(), ..LienFact::default() };
            let mut seen = Seen::default();
            seen.take(entry);
            let (status, _, found) = seen.status(&fact);
            assert_eq!((status, &*found), (expected, left), "{entry}");
            assert_eq!(
                found.is_empty(),
                [SATISFIED, STRUCK].contains(&status),
                "{entry}: a lien is left for some body unless it is satisfied or struck off"
            );
        }
        let flagged = LienFact { is_satisfied: true, ..LienFact::default() };
        assert_eq!(Seen::default().status(&flagged).0, SATISFIED);
    }
}

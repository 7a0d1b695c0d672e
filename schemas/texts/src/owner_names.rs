//! Names of owners and of those who bought a lien, as records show them: that of an organisation in full, and of any other, which can be a natural person, the
//! initials.
//!
//! A text can have several names: of who receives the mail (`C/O`), of a trustee, of a second owner, of who is acted for. It is shown in full only if each of
//! them is certainly that of an organisation. Two names without a word or a sign between them are one, and a text with a word that institutions do not have is
//! none of an institution: `KOWALSKI HUD`. A name with a legal form at its end is that of a company, which can be named after persons: `JOHN SMITH PLUMBING
//! LLC`, `SMITH & JONES LLC`.

use crate::company_forms::{self, compared_words};
use crate::institution_names::is_institution;
use crate::person_names::is_family_name;

/// The legal forms of companies of the country. Those of others can be the last name of a person.
const LEGAL_FORMS: &[&str] = &["CO", "CORP", "INC", "LLC", "LLLP", "LLP", "LP", "LTD", "PC", "PLLC"];
/// A name with one of these words is that of a person, whatever else is in it.
const PERSON_WORDS: &[&str] = &[
    "DECEASED",
    "ETUX",
    "ETVIR",
    "EXECUTOR",
    "EXECUTRIX",
    "HEIRS",
    "HUSBAND",
    "IRREVOCABLE",
    "REVOCABLE",
    "TESTAMENTARY",
    "UX",
    "VIR",
    "WIDOW",
    "WIFE",
];
/// Words between two names of which each can be that of a person, without signs.
const BETWEEN: &[&str] =
    &["AKA", "ATTENTION", "CUST", "CUSTODIAN", "DBA", "FBO", "FKA", "NKA", "NOMINEE", "TDBA", "TRUSTEE", "TRUSTEES", "TTEE"];
/// What comes before the name of who receives the mail, with or without a blank between.
const RECIPIENT_MARKS: [&str; 2] = ["C/O", "ATTN"];
/// What an apartment or a box begins with, before its number.
const UNIT_WORDS: [&[&str]; 9] =
    [&["APARTMENT"], &["APT"], &["P", "O", "BOX"], &["PO", "BOX"], &["POB"], &["POBOX"], &["STE"], &["SUITE"], &["UNIT"]];
/// The most words of them.
const UNIT_WORDS_MAX: usize = 3;
/// Words between names that are joined, or of which one acts for the other.
const JOINING_WORDS: [&str; 4] = ["AND", "BY", "FOR", "OR"];
/// Words before `OF` and the name of a person who died: `ESTATE OF JOHN SMITH`.
const ESTATE_WORDS: [&str; 2] = ["EST", "ESTATE"];
/// The words of kinds of owners: `REGULAR-ETUX OR ET VIR`.
const OWNER_KIND_WORDS: &[&str] = &[
    "AL",
    "CHURCH",
    "COMPANY",
    "CORP",
    "CORPORATION",
    "CORPORATE",
    "DIVORCED",
    "ESTATE",
    "ET",
    "ETAL",
    "ETUX",
    "ETVIR",
    "EXEMPT",
    "GOVERNMENT",
    "HEIRS",
    "LIFE",
    "LLC",
    "MARRIED",
    "MUNICIPAL",
    "NON",
    "OR",
    "PARTNERSHIP",
    "PROFIT",
    "REGULAR",
    "RETIREMENT",
    "SINGLE",
    "TRUST",
    "TRUSTEE",
    "UNMARRIED",
    "UX",
    "VIR",
    "WIDOW",
    "WIDOWER",
];
/// The initials that are shown of a name.
const INITIALS_MAX: usize = 5;

/// Words that the name of an institution has before `FOR`: `HABITAT FOR HUMANITY`.
const BEFORE_FOR: [&str; 4] = ["CENTER", "FOUNDATION", "HABITAT", "INSTITUTE"];

/// A name in a text.
#[derive(Default)]
struct Name {
    words: Vec<String>,
    /// Whether `&` or "and" joins it to the next one.
    has_and: bool,
}

/// The names in a text. Those of a group are joined by a comma, a dash, a slash, "and", "or", "for" or "by"; groups are apart from each other.
fn names(text: &str) -> Vec<Vec<Name>> {
    let mut spaced = String::with_capacity(text.len());
    for letter in text.to_uppercase().chars() {
        match letter {
            '&' | '+' => spaced.push_str(" & "),
            ',' | '(' | ')' => spaced.push_str(" - "),
            ';' | '|' | '%' | ':' => spaced.push_str(" ; "),
            letter => spaced.push(letter),
        }
    }
    let spaced = tight_slashes(&spaced);
    let (mut groups, mut group, mut name) = (Vec::new(), Vec::new(), Name::default());
    for word in spaced.split_whitespace() {
        let letters = letters(word);
        let recipient = RECIPIENT_MARKS.iter().find_map(|mark| word.strip_prefix(mark));
        let is_care_of = letters == "OF" && name.words.last().is_some_and(|last| last == "CARE");
        let is_own_for = letters == "FOR" && matches!(name.words.as_slice(), [first] if BEFORE_FOR.contains(&first.as_str()));
        if is_care_of {
            name.words.pop();
        }
        if recipient.is_some() || is_care_of || word == ";" || BETWEEN.contains(&letters.as_str()) {
            group.push(std::mem::take(&mut name));
            groups.push(std::mem::take(&mut group));
            name.words.extend(recipient.filter(|rest| !rest.is_empty()).map(str::to_owned));
        } else if letters.is_empty() || (JOINING_WORDS.contains(&letters.as_str()) && !is_own_for) {
            name.has_and = word == "&" || letters == "AND";
            group.push(std::mem::take(&mut name));
        } else {
            for (at, part) in word.split('/').enumerate() {
                if at > 0 {
                    group.push(std::mem::take(&mut name));
                }
                name.words.extend((!part.is_empty()).then(|| part.to_owned()));
            }
        }
    }
    group.push(name);
    groups.push(group);
    groups
}

/// A text without blanks around slashes, so that `C / O` is one word.
fn tight_slashes(text: &str) -> String {
    text.replace('\\', "/").replace(" /", "/").replace("/ ", "/")
}

fn letters(word: &str) -> String {
    word.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

/// The names of a group that have words. A legal form alone belongs to the name before: `SERVICES, LLC`.
fn joined(group: Vec<Name>) -> Vec<Name> {
    let mut joined: Vec<Name> = Vec::new();
    for name in group {
        let has_words = name.words.iter().any(|word| !letters(word).is_empty());
        let is_form_alone = has_words && is_form(&name.words);
        match joined.last_mut().filter(|_| !has_words || is_form_alone) {
            Some(before) => {
                before.has_and = name.has_and || (before.has_and && !has_words);
                before.words.extend(name.words);
            }
            None if has_words => joined.push(name),
            None => {}
        }
    }
    joined
}

/// Whether words are a legal form and nothing else.
fn is_form(name: &[String]) -> bool {
    // A word remains when forms are removed, so one is put before them.
    let Some(mut words) = compared_words(&format!("NAME {}", name.join(" "))) else { return false };
    company_forms::remove(&mut words);
    matches!(words.get(1..), Some([])) || words.get(1..).is_some_and(|rest| rest.concat() == "NA")
}

/// Whether a name is certainly that of one organisation: it has a legal form, or is that of an institution.
fn is_one_organisation(name: &[String]) -> bool {
    let Some(mut words) = compared_words(&name.join(" ")) else { return false };
    if words.iter().any(|word| PERSON_WORDS.contains(&word.as_str())) || is_of_estate(&words) {
        return false;
    }
    is_institution(&words) || (has_legal_form(&mut words) && !words.is_empty())
}

/// Whether a name has that of a person who died: `ESTATE OF`, but not `REAL ESTATE OF`.
fn is_of_estate(words: &[String]) -> bool {
    let is_estate = |pair: &[String]| matches!(pair, [estate, of] if ESTATE_WORDS.contains(&estate.as_str()) && of == "OF");
    let is_real = |at: usize| at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|before| before == "REAL");
    words.windows(2).enumerate().any(|(at, pair)| is_estate(pair) && !is_real(at))
}

/// Removes the legal forms of a name, and says whether one of them is of the country.
fn has_legal_form(words: &mut Vec<String>) -> bool {
    company_forms::remove(words).iter().any(|form| LEGAL_FORMS.contains(&form.abbreviation()))
}

/// Whether names that are joined are those of organisations. A letter can be the beginning of the name of one: `M & T BANK`. A company with a legal form can be
/// named after several: `BAKER & SONS LLC`, and with a comma if they are family names that are no given names: `SMITH, JONES & BAKER LLC`. Other words next to
/// a name can be a person next to an organisation: `KOWALSKI & PNC BANK`, `SMITH, ACME LLC`, `SMITH, JOHN & ACME LLC`.
fn are_organisations(group: &[Name]) -> bool {
    let is_company = |name: &Name| compared_words(&name.words.join(" ")).is_some_and(|mut words| has_legal_form(&mut words));
    let is_firm = matches!(group, [.., before, last] if before.has_and && is_company(last));
    let is_of_family = |name: &Name| name.words.iter().all(|word| is_family_name(&letters(word)));
    let is_of_next = |at: usize, name: &Name| {
        let is_letter = matches!(name.words.as_slice(), [word] if letters(word).chars().count() == 1);
        let is_first_word = at == 0 && name.words.len() == 1 && name.has_and;
        at + 1 < group.len() && (is_letter || (is_firm && (is_first_word || is_of_family(name))))
    };
    group.iter().enumerate().all(|(at, name)| is_one_organisation(&name.words) || is_of_next(at, name))
}

/// Whether every name in a text is certainly that of an organisation.
#[must_use]
pub fn is_organisation(text: &str) -> bool {
    let groups: Vec<Vec<Name>> = names(text).into_iter().map(joined).filter(|group| !group.is_empty()).collect();
    !groups.is_empty() && groups.iter().all(|group| are_organisations(group))
}

/// A name as records show it: that of an organisation in full, and of any other, which can be a natural person, the initials: `J. S.`.
#[must_use]
pub fn shown_name(name: &str) -> String {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if is_organisation(&name) {
        return name;
    }
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let initials = words.filter_map(|word| word.chars().next()).take(INITIALS_MAX).map(|letter| format!("{}.", letter.to_uppercase()));
    initials.collect::<Vec<_>>().join(" ")
}

/// The kind of an owner as records show it, in capitals. A text with other words than kinds have can be the name of a person, and is shown as one.
#[must_use]
pub fn shown_owner_kind(text: &str) -> String {
    let kind = text.to_ascii_uppercase();
    let mut words = kind.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    if words.all(|word| OWNER_KIND_WORDS.contains(&word)) { kind } else { shown_name(text) }
}

/// The line of an address without the names of who receives the mail there: `C/O PAT EXAMPLE 12 MAIN ST` is `12 MAIN ST`. An apartment or a box after such a name
/// stays: `12 MAIN ST C/O PAT EXAMPLE APT 3` is `12 MAIN ST APT 3`.
#[must_use]
pub fn without_recipient(line: &str) -> String {
    let spaced = tight_slashes(line);
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let marks: Vec<usize> = (0..words.len()).filter(|at| is_recipient_mark(&words, *at)).collect();
    let Some(first) = marks.first() else { return line.to_owned() };
    let (before, _) = words.split_at(*first);
    let mut street: Vec<&str> = if before.iter().any(|word| has_digit(word)) { before.to_vec() } else { Vec::new() };
    for (number, from) in marks.iter().enumerate() {
        // The words of one recipient: from its mark up to the next one.
        let to = marks.get(number + 1).copied().unwrap_or(words.len());
        let part = words.get(*from..to).unwrap_or_default();
        let unit = (0..part.len()).find_map(|at| Some(at..unit_end(part, at)?));
        if street.is_empty() {
            let digit = part.iter().position(|word| has_digit(word));
            let begin = digit.into_iter().chain(unit.map(|unit| unit.start)).min().unwrap_or(part.len());
            street.extend(part.iter().skip(begin));
        } else {
            street.extend(unit.and_then(|unit| part.get(unit)).unwrap_or_default());
        }
    }
    street.join(" ").trim_end_matches([',', ';', '-', ' ']).to_owned()
}

/// Whether the name of a recipient begins at a word of an address.
fn is_recipient_mark(words: &[&str], at: usize) -> bool {
    let upper = |at: usize| words.get(at).map(|word| word.to_uppercase()).unwrap_or_default();
    let word = upper(at);
    let is_care_of = letters(&word) == "CARE" && letters(&upper(at + 1)) == "OF";
    RECIPIENT_MARKS.iter().any(|mark| word.starts_with(mark)) || word.starts_with('%') || is_care_of || letters(&word) == "ATTENTION"
}

/// Where an apartment or a box ends that begins at a word of an address: `APT 3`, `APT.3`, `#3`, `PO BOX 12`. `None` if none begins there.
fn unit_end(words: &[&str], at: usize) -> Option<usize> {
    let rest: Vec<String> = words.iter().skip(at).take(UNIT_WORDS_MAX + 1).map(|word| letters(&word.to_uppercase())).collect();
    let is_number = |at: usize| {
        let is_last_letter = at + 1 == words.len() && words.get(at).is_some_and(|word| letters(word).chars().count() == 1);
        is_last_letter || words.get(at).is_some_and(|word| has_digit(word))
    };
    let word = words.get(at)?;
    let has_number = word.starts_with('#') && has_digit(word)
        || UNIT_WORDS.iter().any(|mark| {
            let number = rest.first().and_then(|first| first.strip_prefix(&mark.concat()));
            number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
        });
    if has_number {
        return Some(at + 1);
    }
    let marks = UNIT_WORDS.iter().filter(|mark| rest.len() > mark.len() && mark.iter().zip(&rest).all(|(part, word)| part == word));
    let mark_words = marks.map(|mark| mark.len()).chain((*word == "#").then_some(1));
    mark_words.map(|count| at + count).find(|number| is_number(*number)).map(|number| number + 1)
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: [&str; 7] = ["JOHN", "Mary Ann", "Jos\u{e9}", "Zo\u{eb}", "THI", "Jean-Luc", "patricia"];
    const FAMILY: [&str; 9] =
        ["SMITH", "O'Neil", "O\u{2019}BRIEN", "Smith-Jones", "DE LA CRUZ", "Pe\u{f1}a", "Nguy\u{1ec5}n", "Church", "kowalski"];
    /// Texts with the name of a person: `{G}` is the given name, and `{F}` that of the family, which also is on its own next to an organisation.
    const TEXTS: &[&str] = &[
        "{F} {G}",
        "{F}, {G}",
        "{G} {F}",
        "{G} {F} JR",
        "{G} {F}, ESQ.",
        "{F} {G} Q III & JANE",
        "{F} {G} AND WIFE",
        "{F} {G} ETUX PNC BANK",
        "{F} {G} C/O PNC BANK",
        "PNC BANK C/O {G} {F}",
        "PNC BANK c / o {G} {F}",
        "PNC BANK C/O{G} {F}",
        "PNC BANK C\\O {G} {F}",
        "PNC BANK CARE OF {G} {F}",
        "PNC BANK % {G} {F}",
        "PNC BANK ATTN: {G} {F}",
        "MTAG SERVICES LLC, ATTN {G} {F}",
        "{G} {F} DBA STEEL CITY PROPERTIES LLC",
        "{G} {F} d/b/a Steel City Properties",
        "STEEL CITY PROPERTIES LLC A/K/A {G} {F}",
        "{G} {F} AND PNC BANK",
        "{G} {F} & PNC BANK",
        "{F}, {G} & PNC BANK",
        "{F}, {G} & ACME LLC",
        "{F}, {G} AND ACME LLC",
        "{F} {G} - PNC BANK",
        "PNC BANK - {G} {F}",
        "PNC BANK & {F}",
        "{G} {F} OR PNC BANK",
        "PNC BANK ATTN.{G} {F}",
        "{F} {G} ET UX PNC BANK",
        "{F} {G} IRREVOCABLE TRUST PNC BANK TRUSTEE",
        "{F} {G} \u{2014} PNC BANK",
        "PNC BANK, {G} {F}",
        "{G} {F}/PNC BANK",
        "{G} {F}; CITY OF PITTSBURGH",
        "CITY OF PITTSBURGH ({G} {F})",
        "{F} {G} TRUSTEE",
        "{G} {F} TRUSTEE, PNC BANK",
        "PNC BANK TRUSTEE FOR {G} {F}",
        "PNC BANK CUST FBO {G} {F}",
        "{F} {G} FAMILY TRUST",
        "{G} {F} REVOCABLE LIVING TRUST DATED 2019",
        "ESTATE OF {G} {F}",
        "PNC BANK FOR {G} {F}",
        "{G} {F} FOR PNC BANK",
        "PNC BANK FOR {G} {F} FOR ACME LLC",
        "MTAG SERVICES LLC BY {G} {F}",
        "{F} {G} BY PNC BANK",
        "PNC BANK OF THE ESTATE OF {G} {F}",
        "ESTATE OF {G} {F} PNC BANK",
        "PNC BANK ADMINISTRATOR EST OF {G} {F}",
        "{G} {F} PNC BANK",
        "{F} {G} PNC BANK",
        "PNC BANK {G} {F}",
        "PNC BANK NA {F} {G}",
        "{G} {F} CITY OF PITTSBURGH",
        "{F} {G} URBAN REDEVELOPMENT AUTHORITY OF PITTSBURGH",
        "FIRST NATIONAL BANK {G} {F}",
        "{F} {G} HUD",
        "MTAG SERVICES LLC {G} {F}",
        "{F} & {G} & ACME LLC",
        "{F}, {G}, JONES & ACME LLC",
        "{F} HUD",
        "HUD {F}",
        "{F} CITY OF PITTSBURGH",
        "CITY OF PITTSBURGH {F}",
        "PENN HILLS SCHOOL DISTRICT {F}",
        "{F} FIRST NATIONAL BANK",
        "{F} & PNC BANK",
        "{F}, PNC BANK",
        "{F} AND CITY OF PITTSBURGH",
        "{F} FOR PNC BANK",
        "{F} BY ACME LLC",
        "{F} OR ACME LLC",
        "{F} - ACME LLC",
        "{F}/ACME LLC",
        "{F} (ACME LLC)",
        "{F}, ACME LLC",
    ];

    /// Proves that no part of the name of a person is shown, in whatever order, spelling and company it stands, and that what is masked stays as it is.
    #[test]
    fn persons_are_masked() {
        for (given, family, text) in
            GIVEN.iter().flat_map(|given| FAMILY.iter().flat_map(move |family| TEXTS.iter().map(move |text| (given, family, text))))
        {
            let text = text.replace("{G}", given).replace("{F}", family);
            for text in [text.clone(), text.to_uppercase(), text.to_lowercase()] {
                let shown = shown_name(&text);
                let words: Vec<&str> = shown.split(|letter: char| !letter.is_alphanumeric()).collect();
                assert!(words.iter().all(|word| word.chars().count() <= 1), "{text}: {shown}");
                assert_eq!(shown_name(&shown), shown, "{text}");
            }
        }
    }

    /// Proves that companies and institutions are shown in full, also next to each other and with a trustee or a recipient that is one.
    #[test]
    fn organisations_are_shown() {
        for name in [
            "MTAG SERVICES LLC",
            "MTAG SERVICES, LLC",
            "First National Bank",
            "PNC Bank, N.A.",
            "JORDAN TAX SERVICE INC",
            "SMITH & JONES LLC",
            "SMITH, JONES & BAKER LLC",
            "Smith Jones & Baker, LLP",
            "JOHN SMITH PLUMBING LLC",
            "WELLS FARGO BANK, N.A.",
            "PENN HILLS SCHOOL DISTRICT",
            "PNC BANK - N.A.",
            "BARNES & NOBLE COLLEGE BOOKSELLERS INC",
            "KOWALSKI & SONS LLC",
            "M & T BANK",
            "PITTSBURGH WATER & SEWER AUTHORITY",
            "BOROUGH OF TARENTUM",
            "CITY OF FARRELL",
            "DUQUESNE SCHOOL DISTRICT",
            "SMITH & CO LLC",
            "CAPITAL ASSET RESEARCH FUNDING LP",
            "US BANK NATIONAL ASSOCIATION TRUSTEE",
            "MTAG SERVICES LLC C/O FIRST NATIONAL BANK",
            "URBAN REDEVELOPMENT AUTHORITY OF PITTSBURGH",
            "CITY OF PITTSBURGH & SCHOOL DISTRICT",
            "University of Pittsburgh",
            "ST MARYS CHURCH",
            "CHURCH OF GOD IN CHRIST",
            "ROMAN CATHOLIC DIOCESE OF PITTSBURGH",
            "CONGREGATION BETH SHALOM",
            "UPMC",
            "CHILDRENS HOSPITAL",
            "UNITED STATES OF AMERICA",
            "HABITAT FOR HUMANITY INC",
            "INSTITUTE FOR CANCER CARE INC",
            "PNC BANK TRUSTEE FOR MTAG SERVICES LLC",
            "MTAG SERVICES LLC BY PNC BANK",
            "REAL ESTATE OF OAKLAND LLC",
            "Jos\u{e9}'s Taqueria, Inc.",
        ] {
            assert_eq!(shown_name(name), name);
        }
    }

    /// Proves how names are shown that are not certainly those of organisations.
    #[test]
    fn initials() {
        let long = "SMITH ".repeat(60);
        for (name, shown) in [
            ("First  National Bank", "First National Bank"),
            ("SMITH JOHN A & JANE", "S. J. A. J."),
            ("O'Neil, Pat", "O. N. P."),
            ("CHURCH MARY", "C. M."),
            ("LY NGUYEN SA", "L. N. S."),
            ("SMITH JOHN C/O FIRST NATIONAL BANK", "S. J. C. O. F."),
            ("SMITH JOHN FAMILY TRUST", "S. J. F. T."),
            ("SMITH, THOMAS & BAKER LLC", "S. T. B. L."),
            ("KIM, YOUNG & ACME LLC", "K. Y. A. L."),
            ("SMITH, MURRAY & ACME LLC", "S. M. A. L."),
            ("SMITH, JONES & PNC BANK", "S. J. P. B."),
            ("ACME BRIDGE AUTHORITY", "A. B. A."),
            ("CHRISTIAN CHURCH", "C. C."),
            ("KOWALSKI HUD", "K. H."),
            ("BARNES & NOBLE COLLEGE BOOKSELLERS", "B. N. C. B."),
            ("PAT EXAMPLE", "P. E."),
            (long.as_str(), "S. S. S. S. S."),
            ("LLC", "L."),
            (" , ", ""),
            ("", ""),
        ] {
            assert_eq!(shown_name(name), shown, "{name}");
        }
    }

    /// Proves that kinds of owners are shown as published, and the name of a person in their column as its initials.
    #[test]
    fn owners() {
        for kind in ["REGULAR", "CORPORATION", "CORPORATION-TRUSTEE", "REGULAR-ETUX OR ET VIR", "REGULAR-UNMARRIED", ""] {
            assert_eq!(shown_owner_kind(kind), kind);
        }
        assert_eq!(["corporation", "SMITH JOHN & JANE", "ACME LLC"].map(shown_owner_kind), ["CORPORATION", "S. J. J.", "ACME LLC"]);
    }

    /// Proves that the names of who receives the mail are removed from an address, wherever they stand, that its street, box and apartment remain, and that
    /// other addresses stay as they are.
    #[test]
    fn recipients_are_removed() {
        for line in ["3343 FORBES AVE", "12  CARE ST", "5 OF CARE WAY", "100 N CARTER ST 1/2", ""] {
            assert_eq!(without_recipient(line), line);
        }
        for (line, expected) in [
            ("C/O JOHN SMITH 12 MAIN ST", "12 MAIN ST"),
            ("12 MAIN ST, c/o John Smith", "12 MAIN ST"),
            ("12 MAIN ST C / O JOHN SMITH", "12 MAIN ST"),
            ("12 MAIN ST %JOHN SMITH", "12 MAIN ST"),
            ("12 MAIN ST ATTN: JOHN SMITH", "12 MAIN ST"),
            ("12 MAIN ST ATTN:JOHN SMITH", "12 MAIN ST"),
            ("CARE OF JOHN SMITH, 12 MAIN ST", "12 MAIN ST"),
            ("C/O JOHN SMITH", ""),
            ("C/O JOHN SMITH PO BOX 12", "PO BOX 12"),
            ("c/o John Smith, P.O. Box 12, Pittsburgh", "P.O. Box 12, Pittsburgh"),
            ("C/O JOHN SMITH P O BOX 12", "P O BOX 12"),
            ("ACME LLC C/O JOHN SMITH POBOX12", "POBOX12"),
            ("C/O JOHN BOX 12 MAIN ST", "12 MAIN ST"),
            ("C/O JOHN SMITH APT 3", "APT 3"),
            ("12 MAIN ST C/O JOHN SMITH APT 3", "12 MAIN ST APT 3"),
            ("12 MAIN ST, C/O JOHN SMITH, UNIT B", "12 MAIN ST, UNIT B"),
            ("12 MAIN ST C/O JOHN SMITH #3", "12 MAIN ST #3"),
            ("12 MAIN ST C/O JOHN SMITH # 3", "12 MAIN ST # 3"),
            ("12 MAIN ST C/O JOHN SMITH APT.3-B", "12 MAIN ST APT.3-B"),
            ("12 MAIN ST C/O STE SMITH", "12 MAIN ST"),
            ("12 MAIN ST C/O JOHN SMITH APT 3 ATTN MARY SMITH", "12 MAIN ST APT 3"),
            ("C/O JOHN SMITH 12 MAIN ST ATTN MARY SMITH", "12 MAIN ST"),
            ("C/O JOHN SMITH ATTN MARY SMITH PO BOX 12", "PO BOX 12"),
        ] {
            assert_eq!(without_recipient(line), expected, "{line}");
        }
    }
}

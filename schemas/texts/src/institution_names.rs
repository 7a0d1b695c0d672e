//! Institutions without a legal form: banks, agencies, schools, churches.
//!
//! A list of an office can have the name of a person and that of an institution in one column with nothing between them: `JOHN SMITH PNC BANK`. No list has all
//! names of persons. So a text is the name of an institution only if its words are those of institutions, but for one: `PNC BANK`, and not `WELLS FARGO
//! BANK`, which is therefore in a list. An institution that is not noticed is shown as its initials, which is the lesser evil.

use crate::person_names::{is_family_name, is_given_name};

/// Words that the names of institutions have. Words that are also names of persons, and trusts, which can have the name of a person, are not
/// among them.
const ORGANISATION_WORDS: &[&str] = &[
    "ACQUISITIONS",
    "AGENCY",
    "ALLEGHENY",
    "ALLIANCE",
    "ARCHDIOCESE",
    "ASSN",
    "ASSOCIATES",
    "ASSOCIATION",
    "AUTHORITY",
    "BANK",
    "BAPTIST",
    "BOROUGH",
    "BUREAU",
    "CAPITAL",
    "CATHEDRAL",
    "CATHOLIC",
    "CEMETERY",
    "CHARITIES",
    "CITY",
    "COLLEGE",
    "COMMISSION",
    "COMMITTEE",
    "COMMONWEALTH",
    "CONDOMINIUM",
    "CONGREGATION",
    "CONSERVANCY",
    "COOPERATIVE",
    "COUNCIL",
    "COUNTY",
    "DEPARTMENT",
    "DEPT",
    "DEVELOPMENT",
    "DIOCESE",
    "DISTRICT",
    "ENTERPRISES",
    "EPISCOPAL",
    "EQUITIES",
    "EVANGELICAL",
    "FEDERATION",
    "FELLOWSHIP",
    "FINANCIAL",
    "FOUNDATION",
    "FUND",
    "FUNDING",
    "GROUP",
    "HOLDINGS",
    "HOMEOWNERS",
    "HOSPITAL",
    "HOUSING",
    "HUD",
    "INDUSTRIES",
    "INSTITUTE",
    "INSURANCE",
    "INTERNATIONAL",
    "INVESTMENTS",
    "INVESTORS",
    "LENDING",
    "LIBRARY",
    "LUTHERAN",
    "MANAGEMENT",
    "METHODIST",
    "MINISTRIES",
    "MORTGAGE",
    "MOSQUE",
    "MUNICIPALITY",
    "MUSEUM",
    "NATIONAL",
    "ORTHODOX",
    "PARTNERS",
    "PENNDOT",
    "PENNSYLVANIA",
    "PITTSBURGH",
    "PRESBYTERIAN",
    "PROPERTIES",
    "RAILROAD",
    "RAILWAY",
    "REALTY",
    "RECEIVABLES",
    "REDEVELOPMENT",
    "SAVINGS",
    "SCHOOL",
    "SEMINARY",
    "SERVICES",
    "SERVICING",
    "SOCIETY",
    "SOLUTIONS",
    "SYNAGOGUE",
    "SYSTEMS",
    "TABERNACLE",
    "TECHNOLOGIES",
    "TOWNSHIP",
    "TRANSIT",
    "TURNPIKE",
    "UNITED",
    "UNIVERSITY",
    "UPMC",
    "VENTURES",
    "VETERANS",
    "YMCA",
    "YWCA",
];
/// What the name of a church begins with, or `CHURCH OF`: `CHURCH` elsewhere can be the name of a person, and so can `CHRISTIAN CHURCH`.
const CHURCH_FIRST_WORDS: &[&str] = &["AFRICAN", "FIRST", "HOLY", "OUR", "REFORMED", "SAINT", "SECOND", "ST"];
/// Words that are next to these in the names of institutions, and are no names of persons.
const NEUTRAL_WORDS: &[&str] = &[
    "AFFAIRS",
    "AFRICAN",
    "AMERICA",
    "AMERICAN",
    "AN",
    "AND",
    "AREA",
    "ASSET",
    "ASSETS",
    "AT",
    "BOARD",
    "BOOKSELLERS",
    "BRANCH",
    "CANCER",
    "CARE",
    "CENTER",
    "CENTRAL",
    "CHRISTIAN",
    "COMMUNITY",
    "COMPANY",
    "CORPORATION",
    "COURT",
    "CREDIT",
    "EAST",
    "EASTERN",
    "EDUCATION",
    "ELECTRIC",
    "FEDERAL",
    "FIRE",
    "FIRST",
    "FOR",
    "GAS",
    "GOD",
    "GOVERNMENT",
    "GREATER",
    "HEALTH",
    "HOLY",
    "HOME",
    "HOMES",
    "IN",
    "LADY",
    "LAND",
    "LIEN",
    "LIENS",
    "LIFE",
    "LIGHT",
    "LOAN",
    "LOANS",
    "LOWER",
    "MEDICAL",
    "MEMORIAL",
    "MOUNT",
    "MT",
    "MUNICIPAL",
    "MUTUAL",
    "NA",
    "NEW",
    "NORTHERN",
    "OF",
    "OFFICE",
    "ON",
    "OUR",
    "PARKING",
    "POWER",
    "PUBLIC",
    "RECOVERY",
    "REFORMED",
    "REGIONAL",
    "SAINT",
    "SANITARY",
    "SEC",
    "SECOND",
    "SECRETARY",
    "SEWAGE",
    "SEWER",
    "SOUTH",
    "SOUTHERN",
    "ST",
    "STATE",
    "STATES",
    "TAX",
    "THE",
    "THIRD",
    "TO",
    "TREASURER",
    "TREASURY",
    "TRUST",
    "UNION",
    "UPPER",
    "URBAN",
    "US",
    "USA",
    "VALLEY",
    "WATER",
    "WESTERN",
];
/// Names of institutions and places of several words that no other list has.
const KNOWN_NAMES: &[&[&str]] = &[
    &["BETHEL", "PARK"],
    &["CARNEGIE", "MELLON"],
    &["CONGREGATION", "BETH"],
    &["ELIZABETH", "BOROUGH"],
    &["ELIZABETH", "FORWARD"],
    &["ELIZABETH", "TOWNSHIP"],
    &["FRANKLIN", "PARK"],
    &["HOUSEHOLD", "FINANCE"],
    &["JP", "MORGAN", "CHASE"],
    &["JPMORGAN", "CHASE"],
    &["MOON", "AREA"],
    &["NEW", "YORK", "MELLON"],
    &["NORTH", "ALLEGHENY"],
    &["NORTH", "HILLS"],
    &["OF", "ELIZABETH"],
    &["PENN", "HILLS"],
    &["ROBERT", "MORRIS", "UNIVERSITY"],
    &["SOUTH", "PARK"],
    &["UPPER", "ST", "CLAIR"],
    &["WELLS", "FARGO"],
    &["WEST", "MIFFLIN"],
    &["WHITE", "OAK"],
];
/// Words of institutions that are no churches, whatever their names begin with: `FIRST NATIONAL BANK`.
const NO_CHURCH_WORDS: &[&str] = &["BANK", "CAPITAL", "FINANCIAL", "FUNDING", "MORTGAGE", "NATIONAL", "SAVINGS"];
/// What is before the name of a saint.
const SAINT_WORDS: [&str; 2] = ["SAINT", "ST"];
/// Words of institutions that persons have as a name, too: with one of them, a single other name is not certainly that of the institution.
const NAME_WORDS: [&str; 6] = ["AN", "CHRISTIAN", "LAND", "LIEN", "LIGHT", "POWER"];

/// Whether words in capitals are certainly the name of one institution, and of nobody else.
pub(crate) fn is_institution(words: &[String]) -> bool {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let begins_as_church = words.first().is_some_and(|first| CHURCH_FIRST_WORDS.contains(&first.as_str()));
    let is_church =
        words.windows(2).any(|pair| pair == ["CHURCH", "OF"]) || (begins_as_church && has(&["CHURCH"]) && !has(NO_CHURCH_WORDS));
    if !is_church && !has(ORGANISATION_WORDS) {
        return false;
    }
    match *others(words, is_church) {
        [] => true,
        // A single name is that of the institution, unless it is one that persons have: `JOHN BANK`. A saint has one, too.
        [at] => {
            let word_at = |at: Option<usize>| at.and_then(|at| words.get(at)).map(String::as_str);
            let (before, after) = (word_at(at.checked_sub(1)), word_at(at.checked_add(1)));
            let is_saint = before.is_some_and(|word| SAINT_WORDS.contains(&word));
            let is_near_name = [before, after].into_iter().flatten().any(|word| NAME_WORDS.contains(&word));
            let is_of_person = word_at(Some(at)).is_some_and(|word| is_given_name(word) || is_family_name(word));
            is_saint || !(is_near_name || is_of_person)
        }
        _ => false,
    }
}

/// The places of the words that are in no list.
fn others(words: &[String], is_church: bool) -> Vec<usize> {
    let (mut others, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at).map(String::as_str) {
        let rest = words.get(at..).unwrap_or_default();
        let known = KNOWN_NAMES.iter().find(|known| rest.len() >= known.len() && known.iter().zip(rest).all(|(own, word)| own == word));
        if let Some(known) = known {
            at += known.len();
            continue;
        }
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_listed = ORGANISATION_WORDS.contains(&word) || NEUTRAL_WORDS.contains(&word) || is_number || (is_church && word == "CHURCH");
        if !is_listed {
            others.push(at);
        }
        at += 1;
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_of(name: &str) -> bool {
        is_institution(&name.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    /// Proves which texts are names of institutions.
    #[test]
    fn institutions() {
        for name in [
            "PNC BANK",
            "PNC BANK NA",
            "WELLS FARGO BANK NA",
            "JPMORGAN CHASE BANK",
            "JP MORGAN CHASE BANK NA",
            "BANK OF NEW YORK MELLON",
            "DEUTSCHE BANK NATIONAL TRUST COMPANY",
            "US BANK NATIONAL ASSOCIATION",
            "FIRST NATIONAL BANK OF PENNSYLVANIA",
            "CITY OF PITTSBURGH",
            "PENN HILLS SCHOOL DISTRICT",
            "UPPER ST CLAIR TOWNSHIP",
            "BOROUGH OF ELIZABETH",
            "ELIZABETH FORWARD SCHOOL DISTRICT",
            "URBAN REDEVELOPMENT AUTHORITY OF PITTSBURGH",
            "SECRETARY OF VETERANS AFFAIRS",
            "ST JOHN HOSPITAL",
            "SAINT VINCENT COLLEGE",
            "ST MARYS CHURCH",
            "CARNEGIE MELLON UNIVERSITY",
        ] {
            assert!(is_of(name), "{name}");
        }
    }

    /// Proves that a name next to that of an institution makes it none, and that an institution whose words no list has is masked with it.
    #[test]
    fn persons_next_to_institutions() {
        for name in [
            "CHRISTIAN SMITH FIRST NATIONAL BANK",
            "LIEN NGUYEN FIRST NATIONAL BANK",
            "AN NGUYEN CITY OF PITTSBURGH",
            "SMITH HUD",
            "JOHN SMITH PNC BANK",
            "SMITH JOHN PNC BANK",
            "PNC BANK JOHN SMITH",
            "JOHN SMITH BANK",
            "JOHN BANK",
            "J SMITH PNC BANK",
            "NGUYEN THI CITY OF PITTSBURGH",
            "SMITH J CITY OF PITTSBURGH",
            "ST JOHN SMITH PNC BANK",
            "ELIZABETH SMITH BOROUGH OF ELIZABETH",
            "JOHN SMITH UPMC",
            "WELLS FARGO BANK SMITH JOHN",
            "CHURCH JOHN PNC BANK",
            "FIRST NATIONAL BANK THI CHURCH",
            "ACME BRIDGE AUTHORITY",
            "JOHN SMITH",
            "",
        ] {
            assert!(!is_of(name), "{name}");
        }
    }

    /// Proves that the lists are sorted.
    #[test]
    fn lists_are_sorted() {
        for list in [ORGANISATION_WORDS, NEUTRAL_WORDS] {
            assert!(list.is_sorted_by(|one, other| one < other), "{list:?}");
        }
        assert!(KNOWN_NAMES.is_sorted());
    }
}

//! Institutions without a legal form: banks, agencies, schools, churches.
//!
//! A list of an office can have the name of a person and that of an institution in one column with nothing between them: `JOHN SMITH PNC BANK`, `KOWALSKI
//! HUD`. No list has all names of persons. So a text is the name of an institution only if every word of it is in a list of words that institutions have and
//! persons have not, or has a place in the text where no name of a person stands: `BOROUGH OF TARENTUM`, `ST MARYS CHURCH`, `M & T BANK`. An institution that
//! is not noticed is shown as its initials, which is the lesser evil.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::person_names::{is_family_name, is_given_name};

/// Words that the names of institutions have. Words that are also names of persons, and trusts, which can have the name of a person, are not
/// among them.
const ORGANISATION_WORDS: &[&str] = &[
    "ACQUISITIONS",
    "AGENCY",
    "ALCOSAN",
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
    "FDIC",
    "FEDERATION",
    "FELLOWSHIP",
    "FHLMC",
    "FINANCIAL",
    "FNMA",
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
    "IRS",
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
    "PHFA",
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
    "USDA",
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
    "AND",
    "AREA",
    "ASSET",
    "ASSETS",
    "AT",
    "BOARD",
    "BOOKSELLERS",
    "CANCER",
    "CARE",
    "CENTER",
    "CENTRAL",
    "CHILDRENS",
    "COMMUNITY",
    "COMPANY",
    "CORPORATION",
    "CREDIT",
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
    "LADY",
    "LIENS",
    "LIFE",
    "LOANS",
    "LOWER",
    "MEDICAL",
    "MEMORIAL",
    "MT",
    "MUNICIPAL",
    "MUTUAL",
    "NA",
    "NORTHERN",
    "OF",
    "OFFICE",
    "OUR",
    "PARKING",
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
    "SOUTHERN",
    "ST",
    "STATE",
    "TAX",
    "THE",
    "THIRD",
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
/// Names of institutions and places of several words, of which a word alone can be the name of a person. `|` separates them.
const KNOWN_NAMES: &str = "\
    ALLEGHENY POWER|BALDWIN BOROUGH|BALDWIN TOWNSHIP|BALDWIN WHITEHALL|BETH EL CONGREGATION|BETHEL PARK|BRADDOCK BOROUGH|BRADDOCK HILLS|BRENTWOOD BOROUGH|\
    CARNEGIE BOROUGH|CARNEGIE LIBRARY|CARNEGIE MELLON|CHARTIERS VALLEY|CHASE BANK|CHASE HOME|CHASE MANHATTAN|CHRISTIAN SCHOOL|CHURCHILL BOROUGH|\
    CITIZENS BANK|CITIZENS NATIONAL|COLLIER TOWNSHIP|CONGREGATION BETH SHALOM|DEER LAKES|DOLLAR BANK|DOLLAR SAVINGS|DUQUESNE LIGHT|EAST ALLEGHENY|\
    EAST DEER|EAST LIBERTY|EAST MCKEESPORT|EAST PITTSBURGH|ELIZABETH BOROUGH|ELIZABETH FORWARD|ELIZABETH TOWNSHIP|FIFTH THIRD|FOREST HILLS|FOX CHAPEL|\
    FRANKLIN PARK|GATEWAY SCHOOL|GREEN TREE|HAMPTON TOWNSHIP|HARRISON TOWNSHIP|HOME LOAN|HOUSEHOLD FINANCE|HUNTINGTON BANK|HUNTINGTON NATIONAL|IN CHRIST|\
    INDIANA TOWNSHIP|INGRAM BOROUGH|JEFFERSON HILLS|JP MORGAN CHASE|JPMORGAN CHASE|KEYSTONE OAKS|LAND BANK|LOAN ASSN|LOAN ASSOCIATION|LOAN SERVICES|\
    LOAN SERVICING|MCKEES ROCKS|MELLON BANK|MOON AREA|MOON TOWNSHIP|MOUNT LEBANON|MOUNT OLIVER|MT LEBANON|MT OLIVER|MUNHALL BOROUGH|NEW JERSEY|NEW YORK|\
    NEW YORK MELLON|NORTH ALLEGHENY|NORTH FAYETTE|NORTH HILLS|NORTH VERSAILLES|OF CHRIST|OF ELIZABETH|PENN HILLS|PENN POWER|PINE RICHLAND|PLEASANT HILLS|\
    PLUM BOROUGH|PORT AUTHORITY|QUAKER VALLEY|RANKIN BOROUGH|RESERVE TOWNSHIP|ROBERT MORRIS UNIVERSITY|ROBINSON TOWNSHIP|ROMAN CATHOLIC|ROSS TOWNSHIP|\
    SCOTT TOWNSHIP|SHALER AREA|SHALER TOWNSHIP|SOUTH ALLEGHENY|SOUTH FAYETTE|SOUTH HILLS|SOUTH PARK|SOUTH VERSAILLES|STEEL VALLEY|STO ROX|STOWE TOWNSHIP|\
    TAX LIEN|TURTLE CREEK|UNITED STATES|UPPER ST CLAIR|VERONA BOROUGH|WELLS FARGO|WEST ALLEGHENY|WEST DEER|WEST HOMESTEAD|WEST JEFFERSON|WEST MIFFLIN|\
    WEST VIEW|WHITAKER BOROUGH|WHITE OAK|WILMERDING BOROUGH|WOODLAND HILLS";
/// Words that are names of banks and places, and that nobody has as a name: next to them no other word is needed.
const PROPER_WORDS: &str = "\
    ALIQUIPPA AMBRIDGE AVONWORTH BLAWNOX BNY BRIDGEVILLE CITIBANK CITIFINANCIAL CITIGROUP CITIMORTGAGE CLAIRTON CORAOPOLIS DELAWARE DEUTSCHE DORMONT \
    DRAVOSBURG DUQUESNE EDGEWOOD EMSWORTH ETNA FNB GLASSPORT GLS GNMA GREENSBURG HARRISBURG HOMESTEAD HSBC ILLINOIS JOHNSTOWN JPMORGAN KEYBANK LEETSDALE \
    MARYLAND MCKEESPORT MICHIGAN MILLVALE MONONGAHELA MONROEVILLE MTAG NATIONSTAR NEXTIER NORTHGATE OAKMONT OCWEN OHIO PHILADELPHIA PNC SEWICKLEY \
    SHARPSBURG SUNTRUST SWISSVALE TARENTUM TRUIST WACHOVIA WILKINSBURG XSPAND";
/// Institutions that have the name of a place after `OF`: `BOROUGH OF TARENTUM`.
const BEFORE_PLACES: &[&str] =
    &["ARCHDIOCESE", "BANK", "BOROUGH", "CITY", "COMMONWEALTH", "COUNTY", "DIOCESE", "MUNICIPALITY", "TOWNSHIP", "UNIVERSITY"];
/// Words of institutions that are no churches, whatever their names begin with: `FIRST NATIONAL BANK`.
const NO_CHURCH_WORDS: &[&str] = &["BANK", "CAPITAL", "FINANCIAL", "FUNDING", "MORTGAGE", "NATIONAL", "SAVINGS"];
/// What is before the name of a saint.
const SAINT_WORDS: [&str; 2] = ["SAINT", "ST"];
/// Names of saints that are no usual given names.
const SAINTS: &[&str] =
    &["AGATHA", "ALPHONSUS", "AUGUSTINE", "BARNABAS", "BASIL", "BENEDICT", "BERNADETTE", "GERMAINE", "LUKE", "STANISLAUS", "URSULA"];
/// Words of institutions that are named after saints.
const SAINT_INSTITUTIONS: &[&str] =
    &["CATHEDRAL", "CATHOLIC", "CEMETERY", "CHURCH", "COLLEGE", "EPISCOPAL", "HOSPITAL", "LUTHERAN", "ORTHODOX", "SEMINARY", "UNIVERSITY"];

static KNOWN: LazyLock<Vec<Vec<&'static str>>> = LazyLock::new(|| KNOWN_NAMES.split('|').map(|name| name.split(' ').collect()).collect());
static PROPER: LazyLock<HashSet<&'static str>> = LazyLock::new(|| PROPER_WORDS.split(' ').collect());

/// Whether words in capitals are certainly the name of one institution, and of nobody else.
pub(crate) fn is_institution(words: &[String]) -> bool {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let begins_as_church = words.first().is_some_and(|first| CHURCH_FIRST_WORDS.contains(&first.as_str()));
    let is_church =
        words.windows(2).any(|pair| pair == ["CHURCH", "OF"]) || (begins_as_church && has(&["CHURCH"]) && !has(NO_CHURCH_WORDS));
    if !is_church && !has(ORGANISATION_WORDS) {
        return false;
    }
    let is_saints = has(SAINT_INSTITUTIONS);
    others(words, is_church).into_iter().all(|at| is_of_institution(words, at, is_saints))
}

/// Whether a word that is in no list has a place in a text where no name of a person stands: after `CITY OF`, after `ST` in the name of an institution that is
/// named after a saint, or as a letter before a word of institutions.
fn is_of_institution(words: &[String], at: usize, is_saints: bool) -> bool {
    let word_at = |at: Option<usize>| at.and_then(|at| words.get(at)).map_or("", String::as_str);
    let [second, before, word, after] = [at.checked_sub(2), at.checked_sub(1), Some(at), at.checked_add(1)].map(word_at);
    let is_place = before == "OF" && BEFORE_PLACES.contains(&second) && !is_given_name(word) && !is_family_name(word);
    let saint = word.strip_suffix('S').filter(|name| is_given_name(name)).unwrap_or(word);
    let is_saint = is_saints && SAINT_WORDS.contains(&before) && (is_given_name(saint) || SAINTS.contains(&word));
    let is_letter = word.chars().count() == 1 && ORGANISATION_WORDS.contains(&after);
    is_place || is_saint || is_letter
}

/// The places of the words that are in no list.
fn others(words: &[String], is_church: bool) -> Vec<usize> {
    let (mut others, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at).map(String::as_str) {
        let rest = words.get(at..).unwrap_or_default();
        let begins_with = |known: &[&str]| rest.len() >= known.len() && known.iter().zip(rest).all(|(own, word)| own == word);
        if let Some(count) = KNOWN.iter().filter(|known| begins_with(known)).map(Vec::len).max() {
            at += count;
            continue;
        }
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_listed = ORGANISATION_WORDS.contains(&word)
            || NEUTRAL_WORDS.contains(&word)
            || PROPER.contains(word)
            || is_number
            || (is_church && word == "CHURCH");
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
            "CITY OF FARRELL",
            "TOWNSHIP OF HEMPFIELD",
            "DOLLAR BANK",
            "DUQUESNE SCHOOL DISTRICT",
            "BALDWIN BOROUGH",
            "BANK OF NEW YORK",
            "T BANK",
            "CHURCH OF GOD IN CHRIST",
            "ST BARNABAS CHURCH",
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
            "KOWALSKI HUD",
            "HUD KOWALSKI",
            "KOWALSKI BANK",
            "KOWALSKI FIRST NATIONAL BANK",
            "KOWALSKI CITY OF FARRELL",
            "CITY OF PITTSBURGH KOWALSKI",
            "PENN HILLS SCHOOL DISTRICT KOWALSKI",
            "CHURCH OF GOD KOWALSKI",
            "ST KOWALSKI HOSPITAL",
            "ST JOHN HUD",
            "BANK OF JOHN",
            "J SCOTT TOWNSHIP",
            "POWER HUD",
            "LAND HUD",
            "SOUTH HUD",
            "TO HUD",
            "IN PNC BANK",
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
        assert!(KNOWN.is_sorted_by(|one, other| one < other) && KNOWN.iter().all(|name| name.len() > 1), "{:?}", *KNOWN);
        let proper: Vec<&str> = PROPER_WORDS.split(' ').collect();
        assert!(proper.is_sorted_by(|one, other| one < other), "{proper:?}");
        assert!(proper.iter().all(|word| !is_given_name(word) && !is_family_name(word)), "{proper:?}");
    }
}

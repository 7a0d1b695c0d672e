//! The names service's rows: one record per trademark of the register.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use schemas::details::ChangeRecord;
use schemas::news::{News, TRADEMARK_NEWS_DAYS};
use schemas::views::records::{Record, Term};
use texts::plain_words::plain_words;

/// The status of a mark that is registered or pending.
pub const LIVE: &str = "live";
/// The status of a mark whose code is neutral, missing, or not in the office's table.
pub const UNKNOWN: &str = "unknown";
/// The status of a mark that was abandoned or cancelled, or that expired.
pub const DEAD: &str = "dead";
/// The statuses.
pub const STATUSES: [&str; 3] = [LIVE, UNKNOWN, DEAD];
/// The class of collective membership marks.
const COLLECTIVE: i64 = 200;
/// The classes of certification marks.
const CERTIFICATION: [&str; 2] = ["A", "B"];

/// A trademark of the register. `""` and empty lists mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Trademark {
    /// The id of the record: its serial number.
    pub id: String,
    /// Serial number: 8 digits.
    pub serial: String,
    /// Registration number: 7 digits; empty if the mark is not registered.
    pub registration: String,
    /// The words of the mark; empty for a pure design.
    pub mark: String,
    /// Other spellings of the mark in the register.
    pub pseudo_marks: Vec<String>,
    /// The owner; several are separated by `; `.
    pub owner: String,
    /// International classes of goods and services: 1 to 45, 200 for collective membership.
    pub intl_class: Vec<i64>,
    /// Classes of certification marks: `A`, `B`.
    pub other_classes: Vec<String>,
    /// `live`, `unknown` or `dead`, by the office's table of status codes.
    pub status: String,
    /// Status code of the register: 3 digits.
    pub status_code: String,
    /// Day of the application, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filing_date: String,
}

impl Trademark {
    /// Whether the mark can stand in the way of a name: it is not dead.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.status != DEAD
    }

    /// Whether the mark is known to be live.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.status == LIVE
    }

    /// URL of the mark's page in the register.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://tsdr.uspto.gov/#caseNumber={}&caseType=SERIAL_NO&searchType=statusSearch", self.serial)
    }
}

/// Returns the status that a code of the register means, by the office's table of trademark status codes of 2025-08-13.
#[must_use]
pub fn status_of(code: &str) -> &'static str {
    if LIVE_CODES.contains(&code) {
        LIVE
    } else if DEAD_CODES.contains(&code) {
        DEAD
    } else {
        // The table calls 000, 622, 715 and 970 neither live nor dead. What it does not list is unknown as well.
        UNKNOWN
    }
}

/// The codes of the table that mean a registered or pending mark.
#[rustfmt::skip]
const LIVE_CODES: [&str; 124] = [
    "410", "413", "616", "620", "624", "625", "630", "631", "638", "640", "641", "642", "643", "644", "645", "646", "647", "648", "649",
    "650", "651", "652", "653", "654", "655", "656", "657", "658", "659", "660", "661", "663", "664", "665", "666", "667", "668", "672",
    "680", "681", "682", "686", "688", "689", "690", "692", "693", "694", "700", "701", "702", "703", "704", "705", "706", "707", "708",
    "717", "718", "719", "720", "721", "722", "724", "725", "730", "731", "732", "733", "734", "739", "740", "744", "745", "746", "748",
    "752", "753", "756", "757", "760", "762", "763", "764", "765", "766", "771", "772", "773", "774", "775", "777", "778", "779", "780",
    "790", "794", "800", "801", "802", "803", "804", "806", "807", "808", "809", "810", "811", "812", "813", "814", "815", "816", "817",
    "818", "819", "820", "821", "822", "823", "824", "825", "969", "973",
];

/// The codes of the table that mean an abandoned, cancelled or expired mark.
#[rustfmt::skip]
const DEAD_CODES: [&str; 41] = [
    "400", "401", "402", "403", "404", "405", "406", "411", "412", "414", "415", "416", "417", "600", "601", "602", "603", "604", "605",
    "606", "607", "608", "609", "610", "612", "614", "618", "626", "632", "709", "710", "711", "712", "713", "714", "781", "782", "783",
    "900", "901", "968",
];

/// Returns the international classes and the classes of certification marks that codes of the register name, each once, in order. A code that
/// names no class is left out.
#[must_use]
pub fn classes_of<'a>(codes: impl Iterator<Item = &'a str>) -> (Vec<i64>, Vec<String>) {
    let (mut numbers, mut letters) = (Vec::new(), Vec::new());
    for code in codes.map(str::trim) {
        match code.parse::<i64>() {
            Ok(number) if (1..=45).contains(&number) || number == COLLECTIVE => numbers.push(number),
            Err(_) if CERTIFICATION.contains(&code) => letters.push(code.to_owned()),
            _ => {}
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    letters.sort_unstable();
    letters.dedup();
    (numbers, letters)
}

/// The change details of a trademark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrademarkDetails {
    /// The status before the change, if the change moved it: `live`, `unknown` or `dead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_before: Option<String>,
}

impl TrademarkDetails {
    /// Returns what changed between two versions of a trademark.
    #[must_use]
    pub fn between(before: &Trademark, after: &Trademark) -> Self {
        Self { status_before: (before.status != after.status).then(|| before.status.clone()) }
    }
}

impl ChangeRecord for Trademark {
    type Details = TrademarkDetails;

    /// By the filing date: the register shows old marks first when their status changes.
    fn news(&self) -> Option<News> {
        News::of_text(&self.filing_date, TRADEMARK_NEWS_DAYS)
    }
}

impl Record for Trademark {
    const SEARCHED: &'static [&'static str] = &["owner"];

    fn id(&self) -> &str {
        &self.id
    }

    fn terms(&self) -> Vec<Term> {
        let classes = self.intl_class.iter().map(ToString::to_string).chain(self.other_classes.iter().cloned());
        let tokens = plain_words(&self.mark);
        let terms = [Term::new("status", &self.status), Term::new("owner", &self.owner)].into_iter();
        terms
            .chain(classes.map(|class| Term::new("class", &class)))
            .chain(tokens.iter().map(|token| Term::new("token", token)))
            .flatten()
            .collect()
    }
}

schemas::record_tables!("names");

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use schemas::views::testing;

    fn trademark() -> Trademark {
        Trademark {
            id: "97000001".into(),
            serial: "97000001".into(),
            registration: "7000001".into(),
            mark: "TRUE COOL".into(),
            pseudo_marks: vec!["TRUCOOL".into()],
            owner: "Hill Foods LLC; Bo Hill".into(),
            intl_class: vec![9, 200],
            other_classes: vec!["A".into()],
            status: LIVE.into(),
            status_code: "700".into(),
            filing_date: "2021-08-26".into(),
        }
    }

    /// Proves that a change with a value in every field reads back as written.
    #[test]
    fn changes_read_back() {
        let record = trademark();
        let before = Trademark { status: DEAD.into(), ..record.clone() };
        testing::assert_change_reads_back("changes.names", &record.serial.clone(), before, record);
    }

    /// Proves that the table has the office's number of codes, each once, and that a code without an entry is unknown, never dead.
    #[test]
    fn statuses() {
        let mut all: Vec<&str> = LIVE_CODES.into_iter().chain(DEAD_CODES).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 124 + 41);
        let statuses_of = |codes: &[&str]| codes.iter().map(|code| status_of(code)).collect::<Vec<_>>();
        assert_eq!(statuses_of(&["616", "700", "800", "630", "718"]), [LIVE; 5]);
        assert_eq!(statuses_of(&["602", "606", "612", "710", "900", "783"]), [DEAD; 6]);
        assert_eq!(statuses_of(&["000", "622", "715", "970", "999", "", "70", "0700", "x"]), [UNKNOWN; 9]);
    }

    /// Proves how codes of classes are read: numbers in order and once, 200 with the numbers, letters apart, others not at all.
    #[test]
    fn classes() {
        let codes = ["043", "041", "200", "A", "043", "009", "B", "046", "000", "", "C", " 025"];
        let expected = (vec![9, 25, 41, 43, 200], vec!["A".to_owned(), "B".to_owned()]);
        assert_eq!(classes_of(codes.into_iter()), expected);
    }

    /// Proves by which terms changes are found, and what a change says about the status.
    #[test]
    fn terms_and_details() {
        let record = trademark();
        let terms: Vec<String> = record.terms().iter().map(Term::text).collect();
        assert_eq!(terms, ["status/live", "owner/hill foods llc; bo hill", "class/9", "class/200", "class/a", "token/true", "token/cool"]);
        let dead = Trademark { status: DEAD.into(), ..record.clone() };
        assert_eq!(TrademarkDetails::between(&dead, &record).status_before.as_deref(), Some(DEAD));
        assert_eq!(TrademarkDetails::between(&record, &record), TrademarkDetails::default());
        assert!(record.counts() && record.is_live() && !dead.counts());
        assert_eq!(record.url(), "https://tsdr.uspto.gov/#caseNumber=97000001&caseType=SERIAL_NO&searchType=statusSearch");
    }

    /// Proves that a mark is late by its filing date.
    #[test]
    fn late_marks() {
        for (filed, is_late) in [("1998-02-03", true), ("2026-05-27", true), ("2026-05-28", false), ("2026-11-20", false), ("", false)] {
            let mark = Trademark { filing_date: filed.into(), ..Trademark::default() };
            assert_eq!(mark.is_backfill(&TrademarkDetails::default(), true, date(2026, 11, 24)), is_late, "{filed}");
        }
    }
}

//! The rows of the exclusions service: one record per exclusion, one per entity that is excluded and has federal awards (a hit), one per contract
//! that ends and can be bid again (a candidate), and one per annual report that is compared with federal awards (a contradiction).

mod contract;
mod contradiction;
pub mod outcomes;
mod score;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use contract::{Contract, ContractSignal, signal};
pub use contradiction::{Contradiction, CustomerPart, reason, verdict};
pub use score::{Signal, score, signals};

use matching::near_names::lists_of;
use schemas::details::{ChangeRecord, NoDetails};
use schemas::facts::exclusions::classification::{FIRM, INDIVIDUAL, SPECIAL_ENTITY, VESSEL};
use schemas::news::{EXCLUSION_NEWS_DAYS, News};
use schemas::suppression::{COMPANY, Hides, PERSON, RECORD};
use schemas::views::records::{Place, Record, Term, normal};

/// The kind of a record that is one row of the exclusion list.
pub const EXCLUSION: &str = "exclusion";
/// The kind of a record that is an entity with an exclusion and with awards.
pub const HIT: &str = "hit";
/// The kind of a record that is a contract which ends and can be bid again.
pub const CANDIDATE: &str = "candidate";
/// The kind of a record that is an annual report, compared with the federal awards of the company's group.
pub const CONTRADICTION: &str = "contradiction";
/// The kinds of records.
pub const KINDS: [&str; 4] = [EXCLUSION, HIT, CANDIDATE, CONTRADICTION];
/// The match by the unique entity id.
pub const BY_UEI: &str = "uei";
/// The match by the CAGE code.
pub const BY_CAGE: &str = "cage";
/// The list of hits, newest active date first.
pub const HITS: &str = "hits";
/// What the comment of a row says that restricts purchases without excluding the party.
const NOT_EXCLUDED: &str = "not itself excluded";
/// The day by which hits without one are listed.
const UNKNOWN_DAY: &str = "1900-01-01";
/// What the key of a name begins with that has its sorted words.
const WORDS_KEY: &str = "words/";
/// The bucket of lists that are looked up as a whole.
const ONE_BUCKET: i64 = 0;

/// The shortest and the longest beginning of an industry code by which candidates are listed.
const NAICS_DIGITS: std::ops::RangeInclusive<usize> = 2..=6;

/// An exclusion, a hit (an entity that has one and has federal awards), a candidate (a contract that ends), or a contradiction (an annual report that is
/// compared with federal awards, whatever the verdict). `""` and empty lists mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Exclusion {
    /// Of an exclusion `sam:` and the identity of its row; of a hit `hit:` and the UEI; of a candidate `contract:` and the id of the award; of a
    /// contradiction `annual:`, the company's number and the fiscal year.
    pub id: String,
    /// `exclusion`, `hit`, `candidate` or `contradiction`.
    pub kind: String,
    /// Name of the party, of the recipient of a candidate, or of the company of a contradiction. The parts of a person's name are joined by blanks.
    pub name: String,
    /// `Firm`, `Individual`, `Special Entity Designation`, `Vessel`, or empty.
    pub classification: String,
    /// Unique entity id.
    pub uei: String,
    /// CAGE code.
    pub cage: String,
    /// The excluding agency, a short code. Of a hit: that of its earliest exclusion, as the next four fields.
    pub excluding_agency: String,
    /// Type of the exclusion.
    pub exclusion_type: String,
    /// Day since which it is active.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub active_date: String,
    /// Day on which it was entered.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub creation_date: String,
    /// Day on which it ends, or `Indefinite`.
    pub termination_date: String,
    /// Program of an exclusion.
    pub program: String,
    /// What the agency says in an exclusion; empty for persons.
    pub comments: String,
    /// Other names of the party in an exclusion. Their separator occurs in names, too, so an entry can be part of a name.
    pub other_names: Vec<String>,
    /// Keys by which the name is found, by the rules of the crate `matching`.
    pub name_keys: Vec<String>,
    /// Of a hit: `uei` or `cage`, by which the first exclusion and the awards are of one entity.
    #[serde(rename = "match")]
    pub matched_by: String,
    /// Of a hit: the ids of its exclusions, those with its UEI before those with its CAGE code alone, each the earliest first.
    pub exclusions: Vec<String>,
    /// Of a hit: day of the latest known action on an award of the entity.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub latest_action: String,
    /// Of a candidate: the contract.
    pub contract: Option<Box<Contract>>,
    /// Of a contradiction: the ticker symbol of the company.
    pub ticker: String,
    /// Of a contradiction: the two sides, and the verdict.
    pub contradiction: Option<Box<Contradiction>>,
    /// Whether the exclusion is no longer on the list, the hit has ended, or the contract can no longer be bid again.
    pub withdrawn: bool,
    /// Whether fields are hidden on request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// Whether a party of this classification, with this comment of the agency, can have the signal of an excluded contractor.
#[must_use]
pub fn can_signal(classification: &str, comments: &str) -> bool {
    [FIRM, SPECIAL_ENTITY].contains(&classification) && !comments.to_lowercase().contains(NOT_EXCLUDED)
}

impl Exclusion {
    /// Whether it names a natural person.
    #[must_use]
    pub fn is_person(&self) -> bool {
        self.classification == INDIVIDUAL
    }

    /// The day since which the exclusion counts: the active date, or the day on which it was entered if there is none.
    #[must_use]
    pub fn since(&self) -> &str {
        if self.active_date.is_empty() { &self.creation_date } else { &self.active_date }
    }

    /// Whether whom it is about is hidden on request. A record that lacks other names only, since they are those of a hidden party, is not.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.suppressed && self.name.is_empty()
    }

    /// Whether the exclusion is active on a day. One without any day is.
    #[must_use]
    pub fn is_active_on(&self, day: Date) -> bool {
        let is_before = |text: &str| text.parse::<Date>().is_ok_and(|end| end < day);
        let is_after = |text: &str| text.parse::<Date>().is_ok_and(|start| start > day);
        !self.withdrawn && !is_after(self.since()) && !is_before(&self.termination_date)
    }

    /// Whether it can have the signal of an excluded contractor, see [`can_signal`].
    #[must_use]
    pub fn can_signal(&self) -> bool {
        can_signal(&self.classification, &self.comments)
    }

    /// Why its party does not have the signal of an excluded contractor, as answers say it after the number of entries; `None` if it can have it.
    #[must_use]
    pub fn reason_without_signal(&self) -> Option<&'static str> {
        if self.can_signal() {
            return None;
        }
        Some(match self.classification.as_str() {
            FIRM | SPECIAL_ENTITY => "the agency says that the party is not itself excluded",
            VESSEL => "a vessel",
            INDIVIDUAL => "a natural person",
            _ => "the list gives no class of party",
        })
    }
}

/// The id of the hit of an entity.
#[must_use]
pub fn hit_id(uei: &str) -> String {
    format!("hit:{uei}")
}

/// The list of the hits whose earliest exclusion is of an agency, newest active date first; without an agency the list of all.
#[must_use]
pub fn hits_list(agency: Option<&str>) -> String {
    agency.map_or_else(|| HITS.to_owned(), |agency| format!("{HITS}/{}", normal(agency)))
}

/// The list of the exclusions with a UEI.
#[must_use]
pub fn uei_list(uei: &str) -> String {
    format!("uei/{uei}")
}

/// The list of the exclusions with a CAGE code.
#[must_use]
pub fn cage_list(cage: &str) -> String {
    format!("cage/{cage}")
}

/// The list of the exclusions that a key of a name finds.
#[must_use]
pub fn name_list(key: &str) -> String {
    format!("name/{key}")
}

/// The list of the exclusions in which names are that may be spelled a little differently, see [`matching::near_names`].
#[must_use]
pub fn near_list(list: &str) -> String {
    format!("near/{list}")
}

/// The list of the candidates whose industry code starts with some digits, those that end first before the others.
#[must_use]
pub fn naics_list(digits: &str) -> String {
    format!("ends/{digits}")
}

/// The list of the contradictions of a company, the newest fiscal year first.
#[must_use]
pub fn ticker_list(ticker: &str) -> String {
    format!("ticker/{ticker}")
}

impl ChangeRecord for Exclusion {
    type Details = NoDetails;

    fn is_in_tables(&self) -> bool {
        self.is_listed()
    }

    /// An exclusion by the day on which it was entered, since agencies date exclusions back. A hit or a candidate begins when both of its sides are known,
    /// so that it is news whatever their days.
    fn news(&self) -> Option<News> {
        let day = if self.creation_date.is_empty() { &self.active_date } else { &self.creation_date };
        News::of_text(day, EXCLUSION_NEWS_DAYS).filter(|_| self.kind == EXCLUSION)
    }
}

impl Record for Exclusion {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_listed(&self) -> bool {
        !self.withdrawn
    }

    fn terms(&self) -> Vec<Term> {
        let own = [
            Term::new("kind", &self.kind),
            Term::new("uei", &self.uei),
            Term::new("agency", &self.excluding_agency),
            Term::new("classification", &self.classification),
            Term::new("ticker", &self.ticker),
        ];
        let naics = self.contract.iter().map(|contract| Term::new("naics", &contract.naics));
        own.into_iter().chain(naics).chain(self.name_keys.iter().map(|key| Term::new("name", key))).flatten().collect()
    }

    fn places(&self) -> Vec<Place> {
        if self.kind == HIT {
            // One without a day is last.
            let place = |list: &str| newest_first(list, self.since()).or_else(|| newest_first(list, UNKNOWN_DAY));
            let of_agency = Some(&self.excluding_agency).filter(|agency| !agency.is_empty()).map(|agency| hits_list(Some(agency)));
            return [Some(HITS.to_owned()), of_agency].into_iter().flatten().filter_map(|list| place(&list)).collect();
        }
        if let Some(contract) = &self.contract {
            let places = NAICS_DIGITS.filter_map(|digits| contract.naics.get(..digits));
            return places.filter_map(|digits| Place::soonest_first(naics_list(digits), contract.end())).collect();
        }
        if let Some(contradiction) = &self.contradiction {
            return newest_first(&ticker_list(&self.ticker), &contradiction.period_end).into_iter().collect();
        }
        let in_list = |list: String| Place { list, bucket: ONE_BUCKET, rank: 0 };
        let uei = Some(&self.uei).filter(|uei| !uei.is_empty()).map(|uei| uei_list(uei));
        let cage = Some(&self.cage).filter(|cage| !cage.is_empty()).map(|cage| cage_list(cage));
        let names = self.name_keys.iter().map(|key| name_list(key));
        // The names of persons have no such key: they are found by the whole name only.
        let words = self.name_keys.iter().find_map(|key| key.strip_prefix(WORDS_KEY));
        let near = words.map(|words| lists_of(&words.split(' ').collect::<Vec<_>>())).unwrap_or_default();
        let near = near.iter().map(|list| near_list(list));
        uei.into_iter().chain(cage).chain(names).chain(near).map(in_list).collect()
    }
}

/// The place of a day in a list with the newest day first. All days of it are in one partition, because it is read over all years and has few entries.
fn newest_first(list: &str, day: &str) -> Option<Place> {
    Place::newest_first(list, day).map(|place| Place { bucket: ONE_BUCKET, ..place })
}

/// The fields that name a party.
const NAMES: &[&str] = &["name", "nameKeys", "otherNames"];
/// The fields that name a party or say why it is excluded.
const OF_RECORD: &[&str] = &["name", "nameKeys", "otherNames", "uei", "cage", "comments"];
/// The fields of a hit that name a party or say why it is excluded, and its list of exclusions, which loses those that are hidden.
const OF_HIT: &[&str] = &["name", "nameKeys", "otherNames", "uei", "cage", "comments", "exclusions"];
/// A person or a company is found by its name, a party of any kind by its record.
const HIDES: &[Hides] = &[
    Hides { kind: &COMPANY, field: "name", hidden: NAMES },
    Hides { kind: &PERSON, field: "name", hidden: NAMES },
    // The record of another party can name it, too, and is not hidden itself.
    Hides { kind: &COMPANY, field: "otherNames", hidden: &["otherNames"] },
    Hides { kind: &PERSON, field: "otherNames", hidden: &["otherNames"] },
    Hides { kind: &RECORD, field: "id", hidden: OF_RECORD },
    // A hit of a hidden exclusion says what the exclusion says.
    Hides { kind: &RECORD, field: "exclusions", hidden: OF_HIT },
];

schemas::record_tables!("exclusions", places, hides: HIDES);

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use schemas::suppressed_keys::SuppressedKeys;
    use schemas::views::testing;

    /// Proves that a hit of a suppressed exclusion hides whom it is about, and that another hit does not.
    #[test]
    fn hits_of_suppressed_exclusions_are_hidden() {
        let keys = SuppressedKeys::new([(&RECORD, "exclusions/sam:1".to_owned())]);
        let hide = |ids: &[&str]| {
            let exclusions = ids.iter().map(|id| (*id).to_owned()).collect();
            let hit =
                Exclusion { id: hit_id("A"), kind: HIT.into(), name: "ACME".into(), uei: "A".into(), exclusions, ..Exclusion::default() };
            let row = serde_json::json!({ "record": hit }).to_string();
            let hidden = keys.hide(TABLES.view, row.as_bytes()).unwrap()?;
            let mut row: serde_json::Value = serde_json::from_slice(&hidden).unwrap();
            Some(serde_json::from_value::<Exclusion>(row["record"].take()).unwrap())
        };
        let hidden = hide(&["sam:2", "sam:1"]).unwrap();
        assert_eq!((hidden.name.as_str(), hidden.uei.as_str(), hidden.suppressed, hidden.is_hidden()), ("", "", true, true));
        assert_eq!(hidden.exclusions, ["sam:2"]);
        assert_eq!(hide(&["sam:2"]), None);
    }

    /// Proves that a suppressed party is hidden among the other names of another one, whose own name remains.
    #[test]
    fn other_names_are_hidden() {
        let keys = SuppressedKeys::new([
            (&PERSON, PERSON.normalize("Farrow, Anselm").unwrap()),
            (&COMPANY, COMPANY.normalize("Acme Too L.L.C.").unwrap()),
        ]);
        let other_names = ["ANSELM FARROW", "ACME THREE", "ACME TOO LLC"].map(str::to_owned).into();
        let record = Exclusion { id: "sam:1".into(), name: "ACME".into(), other_names, ..Exclusion::default() };
        let row = serde_json::json!({ "record": record }).to_string();
        let hidden = keys.hide(TABLES.view, row.as_bytes()).unwrap().unwrap();
        let mut row: serde_json::Value = serde_json::from_slice(&hidden).unwrap();
        let shown: Exclusion = serde_json::from_value(row["record"].take()).unwrap();
        assert!(shown.suppressed && !shown.is_hidden(), "its own exclusion still counts");
        assert_eq!((shown.name.as_str(), shown.other_names), ("ACME", vec!["ACME THREE".to_owned()]));
    }

    fn contract() -> Contract {
        let text = |text: &str| text.to_owned();
        Contract {
            award_id: text("CONT_AWD_1"),
            recipient_uei: text("ABCDEF123456"),
            parent_uei: text("GHIJKL123456"),
            agency: text("Department of Defense"),
            office: text("W6QK ACC-APG"),
            naics: text("541512"),
            psc: text("D399"),
            signed: text("2020-01-02"),
            start: text("2020-01-03"),
            current_end: text("2026-12-31"),
            potential_end: text("2027-12-31"),
            obligated_cents: 1,
            ceiling_cents: Some(2),
            last_option: text("2025-12-01"),
            last_action: text("2026-03-01"),
            signals: vec![ContractSignal {
                kind: text(signal::CEILING),
                award_id: text("CONT_AWD_1"),
                date: text("2026-03-01"),
                detail: text("d"),
            }],
        }
    }

    fn contradiction() -> Contradiction {
        let text = |text: &str| text.to_owned();
        Contradiction {
            cik: text("0999999901"),
            fiscal_year: 2024,
            period_end: text("2024-09-30"),
            accession: text("0999999901-24-000001"),
            form: text("10-K"),
            filed: text("2024-11-20"),
            file: text("x_htm.xml"),
            revenue_cents: Some(1),
            revenue_tag: text("us-gaap:Revenues"),
            government_cents: Some(2),
            share_millionths: Some(3),
            member: text("x:USGovernmentMember"),
            label: text("U.S. Government"),
            tag: text("us-gaap:Revenues"),
            context: text("c-1"),
            parts: vec![CustomerPart { member: text("x:NASAMember"), label: text("NASA"), cents: 4 }],
            parent_ueis: vec![text("DEMAPARENT01")],
            obligated_cents: Some(5),
            outlays_cents: Some(6),
            obligated_since: text("2026-11-01"),
            window_start: text("2021-10-01"),
            window_end: text("2024-09-30"),
            years: 3,
            government_sum_cents: Some(7),
            obligated_sum_cents: Some(8),
            ratio_percent: Some(9),
            ratio_before_percent: Some(10),
            verdict: text(verdict::DIFFERS),
            reasons: vec![text(reason::RATIO_OUT_OF_BAND)],
            confidence: text("high"),
        }
    }

    fn exclusion() -> Exclusion {
        let text = |text: &str| text.to_owned();
        Exclusion {
            id: text("sam:0123"),
            kind: text(EXCLUSION),
            name: text("ACME LLC"),
            classification: text(FIRM),
            uei: text("ABCDEF123456"),
            cage: text("1A2B3"),
            excluding_agency: text("EPA"),
            exclusion_type: text("Ineligible (Proceedings Completed)"),
            active_date: text("2026-10-01"),
            creation_date: text("2026-10-02"),
            termination_date: text("2029-09-30"),
            program: text("Reciprocal"),
            comments: text("c"),
            other_names: vec![text("ACME TOO")],
            name_keys: vec![text("words/ACME"), text("all/ACMELLC")],
            matched_by: text(BY_UEI),
            exclusions: vec![text("sam:0123")],
            latest_action: text("2026-11-01"),
            contract: Some(Box::new(contract())),
            ticker: text("DEMOA"),
            contradiction: Some(Box::new(contradiction())),
            withdrawn: true,
            suppressed: false,
        }
    }

    /// Proves that a change with a value in every field reads back as written.
    #[test]
    fn changes_read_back() {
        let record = exclusion();
        let before = Exclusion { withdrawn: false, ..record.clone() };
        testing::assert_change_reads_back("changes.exclusions", &record.id.clone(), before, record);
    }

    /// Proves on which days an exclusion is active: from its active date, or else from the day it was entered, to its termination date.
    #[test]
    fn active_days() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        let exclusion_with = |active: &str, created: &str, end: &str| Exclusion {
            active_date: active.into(),
            creation_date: created.into(),
            termination_date: end.into(),
            ..Exclusion::default()
        };
        for (exclusion, on, is_active) in [
            (exclusion_with("2026-10-01", "2026-10-02", "2029-09-30"), "2026-09-30", false),
            (exclusion_with("2026-10-01", "2026-10-02", "2029-09-30"), "2026-10-01", true),
            (exclusion_with("2026-10-01", "2026-10-02", "2029-09-30"), "2029-09-30", true),
            (exclusion_with("2026-10-01", "2026-10-02", "2029-09-30"), "2029-10-01", false),
            (exclusion_with("", "2026-10-02", "Indefinite"), "2026-10-01", false),
            (exclusion_with("", "2026-10-02", "Indefinite"), "2099-01-01", true),
            (exclusion_with("", "", ""), "2026-10-01", true),
            (Exclusion { withdrawn: true, ..exclusion_with("2026-10-01", "", "") }, "2026-10-02", false),
        ] {
            assert_eq!(exclusion.is_active_on(day(on)), is_active, "{exclusion:?} on {on}");
        }
    }

    /// Proves who can have the signal: firms and other entities, unless the agency says that they are not excluded themselves.
    #[test]
    fn who_can_have_the_signal() {
        assert!(can_signal(FIRM, "") && can_signal(SPECIAL_ENTITY, "Debarment"));
        assert!(!can_signal(INDIVIDUAL, "") && !can_signal(VESSEL, "") && !can_signal("", ""));
        assert!(!can_signal(FIRM, "The entity is Not Itself Excluded; section 889 applies."));
    }

    /// Proves that exactly the entries that cannot have the signal say why.
    #[test]
    fn reasons_without_a_signal() {
        for (classification, comments, part) in [
            (FIRM, "", None),
            (SPECIAL_ENTITY, "Debarment", None),
            (FIRM, "It is not itself excluded.", Some("not itself excluded")),
            (SPECIAL_ENTITY, "NOT ITSELF EXCLUDED", Some("not itself excluded")),
            (VESSEL, "", Some("vessel")),
            (VESSEL, "not itself excluded", Some("vessel")),
            (INDIVIDUAL, "", Some("person")),
            ("", "", Some("no class")),
            ("Airship", "", Some("no class")),
        ] {
            let record = Exclusion { classification: classification.into(), comments: comments.into(), ..Exclusion::default() };
            let reason = record.reason_without_signal();
            assert_eq!(reason.is_none(), record.can_signal(), "{classification} {comments}");
            assert_eq!(part.map(|part| reason.is_some_and(|reason| reason.contains(part))), reason.map(|_| true), "{reason:?}");
        }
    }

    /// Proves by which lists and terms records are found, and that what is gone is in no list.
    #[test]
    fn lists_and_terms() {
        let record = Exclusion { withdrawn: false, contract: None, ticker: String::new(), contradiction: None, ..exclusion() };
        let lists: Vec<String> = record.places().into_iter().map(|place| place.list).collect();
        assert_eq!(lists, ["uei/ABCDEF123456", "cage/1A2B3", "name/words/ACME", "name/all/ACMELLC"]);
        let spelled = Exclusion { name_keys: vec!["words/CRYSTALORD".into()], uei: String::new(), cage: String::new(), ..record.clone() };
        let lists: Vec<String> = spelled.places().into_iter().map(|place| place.list).collect();
        let near = ["first/CR", "middle/ST", "last/RD"].map(|piece| format!("near/1//10/{piece}"));
        assert_eq!(lists, [vec!["name/words/CRYSTALORD".to_owned()], near.to_vec()].concat());
        let person = Exclusion { name_keys: vec!["person/ANSELM FARROW".into()], ..spelled };
        assert_eq!(person.places().len(), 1, "a person is found by the whole name only");
        let terms: Vec<String> = record.terms().iter().map(Term::text).collect();
        assert_eq!(
            terms,
            ["kind/exclusion", "uei/abcdef123456", "agency/epa", "classification/firm", "name/words/acme", "name/all/acmellc"]
        );
        let candidate = Exclusion { kind: CANDIDATE.into(), contract: Some(Box::new(contract())), ..record.clone() };
        let lists: Vec<String> = candidate.places().into_iter().map(|place| place.list).collect();
        assert_eq!(lists, ["ends/54", "ends/541", "ends/5415", "ends/54151", "ends/541512"]);
        assert_eq!(candidate.places()[0], Place::soonest_first("ends/54", "2027-12-31").unwrap());
        assert!(candidate.terms().contains(&Term::new("naics", "541512").unwrap()));
        let annual = Exclusion {
            kind: CONTRADICTION.into(),
            ticker: "DEMOA".into(),
            contradiction: Some(Box::new(contradiction())),
            ..record.clone()
        };
        assert_eq!(annual.places(), newest_first("ticker/DEMOA", "2024-09-30").into_iter().collect::<Vec<_>>());
        assert!(annual.terms().contains(&Term::new("ticker", "DEMOA").unwrap()));
        let hit = Exclusion { kind: HIT.into(), ..record };
        let of_day = |day: &str| ["hits", "hits/epa"].into_iter().filter_map(|list| newest_first(list, day)).collect::<Vec<_>>();
        assert_eq!(hit.places(), of_day("2026-10-01"));
        assert_eq!(hits_list(Some(" epa ")), hits_list(Some("EPA")));
        let dated = hit.places();
        let undated = Exclusion { active_date: String::new(), creation_date: String::new(), ..hit };
        assert_eq!(undated.places(), of_day("1900-01-01"));
        let of_hits = [dated, undated.places()].concat();
        assert!(of_hits.len() == 4 && of_hits.iter().all(|place| place.bucket == ONE_BUCKET), "one partition has the hits of all years");
        assert!(!exclusion().is_listed());
    }

    /// Proves that an exclusion is late by the day on which it was entered, and that a hit or a candidate is not.
    #[test]
    fn late_exclusions() {
        for (kind, active, created, is_late) in [
            (EXCLUSION, "2026-11-01", "2026-10-24", true),
            (EXCLUSION, "2019-01-01", "2026-10-25", false),
            (EXCLUSION, "2019-01-01", "", true),
            (EXCLUSION, "", "", false),
            (HIT, "2019-01-01", "2019-01-02", false),
            (CANDIDATE, "", "", false),
        ] {
            let record = Exclusion { kind: kind.into(), active_date: active.into(), creation_date: created.into(), ..Exclusion::default() };
            assert_eq!(record.is_backfill(&NoDetails {}, true, date(2026, 11, 24)), is_late, "{kind} {active} {created}");
        }
    }
}

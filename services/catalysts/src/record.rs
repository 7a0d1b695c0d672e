//! The rows of the catalysts service: one record per expected event of a drug: a readout of a trial, a decision date of the FDA, a meeting
//! of an advisory committee.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use proofs::hash::Hash32;
use schemas::details::ChangeRecord;
use schemas::news::{CATALYST_NEWS_DAYS, News};
use schemas::views::accounts::Tier;
use schemas::views::records::{Place, Record, Redact, Term, day_number, normal};
use texts::company_names::normal_form;
use texts::folding::folded_words;

/// The kind of an event of a trial. Only such events have a trial and a phase.
pub const READOUT: &str = "readout";
/// The kind of a decision date of the FDA, which a company states in a filing.
pub const PDUFA: &str = "pdufa";
/// The kinds of events.
pub const KINDS: [&str; 3] = [READOUT, PDUFA, "adcom"];
/// The dimension of terms that has the names of companies, in their normal form.
pub const COMPANY_NAME: &str = "companyname";
/// The dimension of terms that has the names of companies which filed a decision date, in their normal form. Decision state has these events by CIK only.
pub const FILER: &str = "filer";
/// The letters of a drug's word under which a list finds it.
pub const DRUG_LETTERS: usize = 3;
/// Ends the name of a list that holds windows of several days, up to a month.
pub const MONTH_SUFFIX: &str = "/month";
/// The days that the longest of them can have begun before today.
pub const MONTH_DAYS: i64 = 31;
/// Ends the name of a list that holds longer windows.
pub const LONG_SUFFIX: &str = "/long";
/// The days that the longest of them can have begun before today.
pub const YEAR_DAYS: i64 = 366;
/// The days that callers without a paid key see.
const FREE_WINDOW_DAYS: i64 = 30;

/// An event as readers see it. `""` means unknown. Five fields say where its date can be verified: `source`, `sourceUrl`, `sourceField`,
/// `verifiedAsOf`, `verifyHash`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Catalyst {
    /// `ctgov:NCT00000001`, `adcom:` and the docket or document, `pdufa:` and the company's number with its drug.
    pub id: String,
    /// `readout`, `pdufa` or `adcom`.
    pub kind: String,
    /// The day, `YYYY-MM-DD`; empty unless the source states a day.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// The days that the date can mean.
    pub window: Window,
    /// `day`, `month`, `quarter`, `half` or `year`.
    pub date_precision: String,
    /// `ESTIMATED` or `ACTUAL` as the registry says; `STATED` for dates of notices and companies.
    pub date_type: String,
    /// The company as the source names it.
    pub company: String,
    /// Ticker of the company; empty without an exact match of its name or number.
    pub ticker: String,
    /// CIK of the company: 10 digits.
    pub cik: String,
    /// The drug; empty if the source names none. Of a trial never what the drug is compared with.
    pub drug: String,
    /// Conditions that a trial studies.
    pub indication: String,
    /// Phase of a trial, `PHASE3`; `PHASE2/PHASE3` for both.
    pub phase: String,
    /// Number of a trial.
    pub trial_id: String,
    /// Title of the trial or notice.
    pub title: String,
    /// What documents say: `upcoming`, `met`, `cancelled` or `withdrawn`. On the day of an answer, `passed` if the last day of an upcoming event is over;
    /// changes show `upcoming`.
    pub status: String,
    /// How often the window changed.
    pub slips: i64,
    /// Day on which the event was first seen, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub first_seen: String,
    /// The source: `clinicaltrials.gov`, `sec.gov` or `federalregister.gov`.
    pub source: String,
    /// URL of the document with the date.
    pub source_url: String,
    /// The field of the document with the date.
    pub source_field: String,
    /// Day of the reading that last saw the date so, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub verified_as_of: String,
    /// `sha256:` and the SHA-256 of `verifyBody` in the form of RFC 8785, as hex digits.
    pub verify_hash: String,
    /// The object that was hashed, with the texts of the source.
    pub verify_body: BTreeMap<String, String>,
}

/// The days that a date can mean, both inclusive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Window {
    /// The first day, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub from: String,
    /// The last day, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub to: String,
}

impl Catalyst {
    /// Whether documents expect the event. Whether its day is over depends on today and is not stored.
    #[must_use]
    pub fn is_upcoming(&self) -> bool {
        self.status == "upcoming"
    }

    /// Returns the status on a day: `passed` for an upcoming event whose last day is over.
    #[must_use]
    pub fn status_on(&self, today: Date) -> &str {
        if self.is_upcoming() && self.window.to < today.to_string() { "passed" } else { &self.status }
    }

    /// Returns the phases of the trial.
    pub fn phases(&self) -> impl Iterator<Item = &str> {
        self.phase.split('/').filter(|phase| !phase.is_empty())
    }
}

/// Returns the hash of the object that is verified: `sha256:` and hex digits.
#[must_use]
pub fn verify_hash(body: &BTreeMap<String, String>) -> String {
    // A map of texts always has this form.
    let bytes = serde_json_canonicalizer::to_vec(body).unwrap_or_default();
    format!("sha256:{}", Hash32::of(&bytes))
}

/// Returns the words of a name in lower case: runs of letters and digits.
pub fn words(name: &str) -> impl Iterator<Item = String> {
    let lower = normal(name);
    let words: Vec<String> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.into_iter()
}

/// The change details of an event whose window moved; empty for other changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalystDetails {
    /// The day before the change; empty if it was no day. Only if the window moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<proofs::json_type::DayOrEmpty>")]
    pub date_before: Option<String>,
    /// The day after the change; empty if it is no day. Only if the window moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<proofs::json_type::DayOrEmpty>")]
    pub date_after: Option<String>,
    /// The window before the change. Only if it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_before: Option<Window>,
    /// The window after the change. Only if it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_after: Option<Window>,
    /// By how many days the date moved, negative for an earlier one; null unless it moved from a day to a day. Only if the window moved.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub slip_days: Option<Option<i64>>,
}

/// Reads a value that is given, also null.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl CatalystDetails {
    /// Returns what changed between two versions of an event.
    #[must_use]
    pub fn between(before: &Catalyst, after: &Catalyst) -> Self {
        if before.window == after.window {
            return Self::default();
        }
        let day = |text: &str| text.parse::<Date>().ok();
        Self {
            date_before: Some(before.date.clone()),
            date_after: Some(after.date.clone()),
            window_before: Some(before.window.clone()),
            window_after: Some(after.window.clone()),
            slip_days: Some(day(&before.date).zip(day(&after.date)).map(|(before, after)| i64::from((after - before).get_days()))),
        }
    }
}

impl ChangeRecord for Catalyst {
    type Details = CatalystDetails;

    const ON_DAY: Option<fn(&mut Self, Date)> = Some(|record, day| record.status = record.status_on(day).to_owned());

    /// By the last day that its date can mean.
    fn news(&self) -> Option<News> {
        News::of_text(&self.window.to, CATALYST_NEWS_DAYS)
    }
}

impl Record for Catalyst {
    const SEARCHED: &'static [&'static str] = &["ticker", "trial", "drugname", COMPANY_NAME];

    fn id(&self) -> &str {
        &self.id
    }

    fn is_listed(&self) -> bool {
        self.status != "withdrawn"
    }

    fn terms(&self) -> Vec<Term> {
        let term = |dimension: &'static str, value: &str| Term::new(dimension, value);
        let company = normal_form(&self.company);
        let filer = (self.kind == PDUFA).then(|| term(FILER, &company));
        [term("kind", &self.kind), term("ticker", &self.ticker), term("trial", &self.trial_id), term("drugname", &self.drug)]
            .into_iter()
            .chain([term(COMPANY_NAME, &company), filer.flatten()])
            .chain(self.phases().map(|phase| term("phase", phase)))
            .chain(drug_prefixes(&self.drug).map(|prefix| term("drug", &prefix)))
            .flatten()
            .collect()
    }

    fn places(&self) -> Vec<Place> {
        if !self.is_listed() {
            return Vec::new();
        }
        let from = self.window.from.as_str();
        let rank = from.parse().map(day_number).unwrap_or_default();
        let of_subject = |list: String| Place { list, bucket: 0, rank };
        let ticker = Some(format!("ticker/{}", self.ticker.replace('.', "-"))).filter(|_| !self.ticker.is_empty());
        let subjects = ticker.into_iter().chain(drug_prefixes(&self.drug).map(|letters| format!("drug/{letters}"))).map(of_subject);
        let mut places: Vec<Place> = subjects.collect();
        if self.is_upcoming() {
            let lists =
                ["all".to_owned(), format!("kind/{}", self.kind)].into_iter().chain(self.phases().map(|phase| format!("phase/{phase}")));
            for list in lists {
                places.extend(self.open_suffix().and_then(|suffix| Place::soonest_first(format!("{list}{suffix}"), from)));
                places.extend(Place::soonest_first(list, from));
            }
        }
        places
    }
}

impl Catalyst {
    /// The suffix of the lists that hold the event while its window is open; `None` for a single day.
    fn open_suffix(&self) -> Option<&'static str> {
        let (from, to): (Date, Date) = (self.window.from.parse().ok()?, self.window.to.parse().ok()?);
        let days = i64::from((to - from).get_days());
        (days > 0).then_some(if days < MONTH_DAYS { MONTH_SUFFIX } else { LONG_SUFFIX })
    }
}

impl Redact for Catalyst {
    type Redacted = Self;

    const WHOLE_FROM: Tier = Tier::Pro;
    const FREE_DAYS: i64 = 7;
    const NOTE: Option<&'static str> =
        Some("without a paid key only changes of the last 7 days are shown, of events in the next 30 days; a paid key shows all");

    fn is_free(&self, today: Date) -> bool {
        self.status_on(today) == "upcoming" && self.window.from <= today.saturating_add(FREE_WINDOW_DAYS.days()).to_string()
    }

    fn redacted(&self) -> Self {
        self.clone()
    }

    /// The earliest window first.
    fn order(one: &Self, other: &Self) -> Ordering {
        (&one.window.from, &one.id).cmp(&(&other.window.from, &other.id))
    }
}

/// Returns the first letters of each word of a drug's name; a shorter word as it is.
pub fn drug_prefixes(drug: &str) -> impl Iterator<Item = String> {
    let mut prefixes: Vec<String> = words(drug).chain(folded_words(drug)).map(|word| word.chars().take(DRUG_LETTERS).collect()).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes.into_iter()
}

schemas::record_tables!("catalysts", places);

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn body(parts: &[(&str, &str)]) -> BTreeMap<String, String> {
        parts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Proves the hashes that the contract of the service states, one for each kind.
    #[test]
    fn hashes() {
        for (parts, hash) in [
            (
                &[
                    ("date", "2026-07"),
                    ("field", "protocolSection.statusModule.primaryCompletionDateStruct"),
                    ("id", "NCT00000001"),
                    ("source", "clinicaltrials.gov"),
                    ("type", "ESTIMATED"),
                ][..],
                "583de8fd01f63661c2b63b454bc673c7ddd59687776d5b205a5f045ca1e9be67",
            ),
            (
                &[
                    ("field", "dates"),
                    ("id", "2026-16245"),
                    ("source", "federalregister.gov"),
                    ("text", "The meeting will be held on September 23, 2026, from 9 a.m. to 6 p.m. Eastern Time."),
                ],
                "20400c68b9643ec3851440c9aff3e634d6b1043dccfa3d647d5f526444e3fe5f",
            ),
            (
                &[
                    ("accession", "0001234567-26-000001"),
                    ("field", "sentence"),
                    ("file", "ex99-1.htm"),
                    ("source", "sec.gov"),
                    ("text", "The FDA has set a PDUFA target action date of November 27, 2026."),
                ],
                "03eb6e20005887249a75abd9a515086d99d54f22d7321a2b538c8b5a8ec751c2",
            ),
        ] {
            assert_eq!(verify_hash(&body(parts)), format!("sha256:{hash}"));
        }
    }

    /// Proves that `passed` depends on the day, and that what documents say takes precedence.
    #[test]
    fn passed() {
        let window = Window { from: "2026-12-01".into(), to: "2026-12-31".into() };
        let upcoming = Catalyst { status: "upcoming".into(), window, ..Catalyst::default() };
        assert_eq!((upcoming.status_on(date(2026, 12, 31)), upcoming.status_on(date(2027, 1, 1))), ("upcoming", "passed"));
        let met = Catalyst { status: "met".into(), ..upcoming };
        assert_eq!(met.status_on(date(2027, 1, 1)), "met");
    }

    /// Proves that a moved date names both days and both windows, and the number of days only between two days.
    #[test]
    fn details() {
        let at = |day: &str| Catalyst { date: day.into(), window: Window { from: day.into(), to: day.into() }, ..Catalyst::default() };
        let moved = CatalystDetails::between(&at("2026-08-22"), &at("2026-11-22"));
        assert_eq!(
            (moved.date_before.as_deref(), moved.date_after.as_deref(), moved.slip_days),
            (Some("2026-08-22"), Some("2026-11-22"), Some(Some(92)))
        );
        let quarter = Catalyst { window: Window { from: "2026-10-01".into(), to: "2026-12-31".into() }, ..Catalyst::default() };
        let refined = CatalystDetails::between(&quarter, &at("2026-11-22"));
        assert_eq!((refined.date_before.as_deref(), refined.slip_days), (Some(""), Some(None)));
        let json = serde_json::to_value(&refined).unwrap();
        assert_eq!(json.get("slipDays"), Some(&serde_json::Value::Null), "{json}");
        assert_eq!(serde_json::from_value::<CatalystDetails>(json).unwrap(), refined);
        let unmoved = serde_json::to_value(CatalystDetails::default()).unwrap();
        assert_eq!(unmoved, serde_json::json!({}));
        assert_eq!(serde_json::from_value::<CatalystDetails>(unmoved).unwrap().slip_days, None);
        assert_eq!(CatalystDetails::between(&quarter, &quarter), CatalystDetails::default());
    }

    /// Proves in which lists an event is: by time only while it is upcoming, and under a further name while its window is longer than a day.
    #[test]
    fn places() {
        let lists = |record: &Catalyst| record.places().into_iter().map(|place| place.list).collect::<Vec<_>>();
        let window = |from: &str, to: &str| Window { from: from.into(), to: to.into() };
        let day =
            Catalyst { status: "upcoming".into(), kind: "pdufa".into(), window: window("2026-12-01", "2026-12-01"), ..Catalyst::default() };
        assert_eq!(lists(&day), ["all", "kind/pdufa"]);
        let month = Catalyst { window: window("2026-12-01", "2026-12-31"), ..day.clone() };
        assert_eq!(lists(&month), ["all/month", "all", "kind/pdufa/month", "kind/pdufa"]);
        let quarter = Catalyst { window: window("2026-10-01", "2026-12-31"), ..day.clone() };
        assert_eq!(lists(&quarter)[0], "all/long");
        let met = Catalyst { status: "met".into(), ticker: "BRK.B".into(), drug: "Bolunib".into(), ..day.clone() };
        assert_eq!(lists(&met), ["ticker/BRK-B", "drug/bol"]);
        assert!(lists(&Catalyst { status: "withdrawn".into(), ..met }).is_empty());
        assert!(day.is_free(date(2026, 11, 20)) && !day.is_free(date(2026, 10, 20)) && !day.is_free(date(2026, 12, 2)));
    }

    /// Proves by which terms changes are found.
    #[test]
    fn terms() {
        let record = Catalyst {
            kind: "readout".into(),
            ticker: "ACME".into(),
            drug: "Acme-101 (bolunib)".into(),
            phase: "PHASE2/PHASE3".into(),
            trial_id: "NCT1".into(),
            ..Catalyst::default()
        };
        let terms: Vec<String> = record.terms().iter().map(Term::text).collect();
        assert_eq!(
            terms,
            [
                "kind/readout",
                "ticker/acme",
                "trial/nct1",
                "drugname/acme-101 (bolunib)",
                "phase/phase2",
                "phase/phase3",
                "drug/101",
                "drug/acm",
                "drug/bol"
            ]
        );
        let named = |kind: &str| Catalyst { kind: kind.into(), company: "Acm\u{e9} Bio, Inc.".into(), ..Catalyst::default() };
        let terms = |kind: &str| named(kind).terms().iter().map(Term::text).collect::<Vec<_>>();
        assert_eq!(terms("adcom"), ["kind/adcom", "companyname/acme bio"]);
        assert_eq!(terms("pdufa"), ["kind/pdufa", "companyname/acme bio", "filer/acme bio"]);
    }

    /// Proves that an event is late by the last day that its date can mean, and that a change of a known event is news.
    #[test]
    fn late_events() {
        let (details, recorded) = (CatalystDetails::default(), date(2026, 11, 24));
        for (from, to, is_late) in
            [("2026-07-01", "2026-10-24", true), ("2026-01-01", "2026-10-25", false), ("2027-01-01", "2027-03-31", false)]
        {
            let event = Catalyst { window: Window { from: from.into(), to: to.into() }, ..Catalyst::default() };
            assert_eq!(
                (event.is_backfill(&details, true, recorded), event.is_backfill(&details, false, recorded)),
                (is_late, false),
                "{to}"
            );
        }
    }
}

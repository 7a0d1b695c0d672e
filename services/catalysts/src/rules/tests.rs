//! The fold over trials, notices and statements: what each fact means, and that the order of facts does not matter.

use std::collections::BTreeMap;

use crate::record::verify_hash;
use schemas::event::{Fact, FactKind};
use schemas::facts::trials::Intervention;
use schemas::tables::Datum;
use serde::de::DeserializeOwned;

use super::*;
use fold::random::Random;
use fold::testing::{self, Folded};

type Engine = Folded<Catalysts>;

/// What the tests ask of the service in memory.
trait TestMethods {
    fn one(&self, id: &str) -> Catalyst;
    fn details(&self) -> CatalystDetails;
    /// The last entry of a row in the index up to a seq.
    fn indexed<T: DeserializeOwned>(&self, key: &str, upto: Seq) -> Option<T>;
}

impl TestMethods for Engine {
    fn one(&self, id: &str) -> Catalyst {
        self.records().remove(id).unwrap_or_else(|| panic!("{id} in {:?}", self.records().keys()))
    }

    fn details(&self) -> CatalystDetails {
        let change = self.changes_of_records().last().unwrap();
        CatalystsRules::change_details(change.after.as_ref().unwrap(), change)
    }

    fn indexed<T: DeserializeOwned>(&self, key: &str, upto: Seq) -> Option<T> {
        let key = Datum::from(key);
        let last = self.table(TABLES.terms).rfind(|(entry, _)| entry[0] == key && entry[2] <= Datum::from(upto));
        last.map(|(_, value)| serde_json::from_slice(value).unwrap())
    }
}

fn engine(facts: &[Fact<CatalystFact>]) -> Engine {
    let mut engine = Engine::default();
    facts.iter().for_each(|fact| engine.decide(fact));
    engine
}

fn fact(key: &str, day: &str, data: Option<CatalystFact>) -> Fact<CatalystFact> {
    let at: jiff::Timestamp = format!("{day}T12:00:00Z").parse().unwrap();
    let kind = if data.is_some() { FactKind::Observed } else { FactKind::Withdrawn };
    testing::fact(key, kind, at.as_millisecond(), data)
}

fn trial(date: &str, change: impl FnOnce(&mut TrialFact)) -> Fact<CatalystFact> {
    let mut trial = TrialFact {
        stream: "clinical_trials".into(),
        number: "NCT00000001".into(),
        title: "Study of Acmezumab".into(),
        sponsor: "Acme Bio, Inc.".into(),
        sponsor_class: "INDUSTRY".into(),
        phase: "PHASE2/PHASE3".into(),
        status: "RECRUITING".into(),
        primary_completion: date.into(),
        primary_completion_type: "ESTIMATED".into(),
        interventions: vec![
            Intervention { kind: "DRUG".into(), name: "Aaa Placebo".into() },
            Intervention { kind: "BIOLOGICAL".into(), name: "Acmezumab".into() },
        ],
        ..TrialFact::default()
    };
    change(&mut trial);
    fact("clinical_trials/NCT00000001", "2026-06-20", Some(CatalystFact::Trial(Box::new(trial))))
}

fn tickers(cik: &str, company: &str, tickers: &[&str]) -> Fact<CatalystFact> {
    let tickers = tickers.iter().map(|ticker| (*ticker).to_owned()).collect();
    let data = StatementFact { stream: TICKERS.into(), cik: cik.into(), company: company.into(), tickers, ..StatementFact::default() };
    fact(&format!("{TICKERS}/{cik}"), "2026-06-01", Some(CatalystFact::Statement(Box::new(data))))
}

fn sentence(accession: &str, filed: &str, file: &str, n: i64, sentence: &str) -> Fact<CatalystFact> {
    let data = StatementFact {
        stream: "edgar.pdufa".into(),
        cik: "0000000012".into(),
        company: "Acme Bio, Inc.".into(),
        accession: accession.into(),
        file: file.into(),
        n,
        form: "8-K".into(),
        filed: filed.into(),
        sentence: sentence.into(),
        ..StatementFact::default()
    };
    fact(&format!("edgar.pdufa/{accession}/{file}/{n}"), filed, Some(CatalystFact::Statement(Box::new(data))))
}

fn notice(number: &str, title: &str, dates: &str, docket: &str) -> Fact<CatalystFact> {
    let data = MeetingFact {
        number: number.into(),
        title: title.into(),
        dates: dates.into(),
        published: "2026-08-20".into(),
        docket_ids: vec![docket.into()],
        url: format!("https://www.federalregister.gov/documents/{number}"),
        ..MeetingFact::default()
    };
    fact(&format!("federal_register.fda/{number}"), "2026-08-20", Some(CatalystFact::Meeting(Box::new(data))))
}

const FIRST: &str = "0001234567-26-000001";
const SECOND: &str = "0001234567-26-000002";

/// Proves the readout of the contract's example: a month keeps its precision and has no day, and the hash is that of the example.
#[test]
fn readout() {
    let engine = engine(&[trial("2026-07", |_| {}), tickers("0000000012", "ACME BIO INC", &["ACME", "ACME-WT"])]);
    let record = engine.one("ctgov:NCT00000001");
    assert_eq!((&*record.date, &*record.date_precision, &*record.date_type), ("", "month", "ESTIMATED"));
    assert_eq!((&*record.window.from, &*record.window.to), ("2026-07-01", "2026-07-31"));
    assert_eq!((&*record.drug, &*record.ticker, &*record.cik), ("Acmezumab", "ACME", "0000000012"));
    assert_eq!((&*record.status, record.slips, &*record.verified_as_of), ("upcoming", 0, "2026-06-20"));
    assert_eq!(record.source_url, "https://clinicaltrials.gov/study/NCT00000001");
    assert_eq!(record.verify_hash, "sha256:583de8fd01f63661c2b63b454bc673c7ddd59687776d5b205a5f045ca1e9be67");
}

/// Proves which trials have a readout, and how one ends: completed trials are met, stopped ones cancelled, and one that no longer
/// qualifies is withdrawn.
#[test]
fn readouts_end() {
    type Change = fn(&mut TrialFact);
    let none: [Change; 7] = [
        |trial| trial.sponsor_class = "OTHER".into(),
        |trial| trial.phase = "PHASE1".into(),
        |trial| trial.phase = "N/A".into(),
        |trial| trial.interventions = vec![Intervention { kind: "DEVICE".into(), name: "X".into() }],
        |trial| trial.primary_completion = String::new(),
        |trial| trial.status = "TERMINATED".into(),
        |trial| (trial.status, trial.primary_completion_type) = ("COMPLETED".into(), "ACTUAL".into()),
    ];
    for change in none {
        assert_eq!(engine(&[trial("2026-07", change)]).records().len(), 0);
    }
    for (change, status) in [
        ((|trial: &mut TrialFact| trial.status = "TERMINATED".into()) as Change, "cancelled"),
        (|trial| trial.status = "WITHDRAWN".into(), "cancelled"),
        (|trial| trial.status = "SUSPENDED".into(), "cancelled"),
        (|trial| trial.status = "UNKNOWN".into(), "cancelled"),
        (|trial| (trial.status, trial.primary_completion_type) = ("COMPLETED".into(), "ACTUAL".into()), "met"),
        (|trial| trial.status = "COMPLETED".into(), "upcoming"),
        (|trial| trial.phase = "PHASE1".into(), "withdrawn"),
    ] {
        let engine = engine(&[trial("2026-07", |_| {}), trial("2026-07", change)]);
        assert_eq!(engine.one("ctgov:NCT00000001").status, status);
    }
    let gone = engine(&[trial("2026-07", |_| {}), fact("clinical_trials/NCT00000001", "2026-07-01", None)]);
    assert_eq!(gone.one("ctgov:NCT00000001").status, "withdrawn");
}

/// Proves which intervention is the drug: one that the title names, else the first by name; genes and combinations count, comparators and other types
/// never do.
#[test]
fn drugs_of_trials() {
    for (title, interventions, drug) in [
        ("Study of a vector", &[("GENETIC", "AAV9-ABC"), ("DRUG", "Placebo")][..], "AAV9-ABC"),
        ("Study of a patch", &[("DRUG", "Matching placebo"), ("COMBINATION_PRODUCT", "Acme patch")], "Acme patch"),
        ("Study of Bolunib", &[("BIOLOGICAL", "Acmezumab"), ("DRUG", "Bolunib")], "Bolunib"),
        ("Bolunib and acmezumab", &[("BIOLOGICAL", "Acmezumab"), ("DRUG", "BOLUNIB")], "BOLUNIB"),
        ("Acme-10 in adults", &[("DRUG", "ACME"), ("DRUG", "ACME 10"), ("DRUG", "Acme-1")], "ACME 10"),
        ("An open study", &[("DRUG", "Zepvia"), ("BIOLOGICAL", "acmezumab"), ("DRUG", "Vehicle cream")], "acmezumab"),
        ("Placebo-controlled study of sham", &[("DRUG", "Placebo"), ("DRUG", "Sham injection"), ("GENETIC", "Normal saline")], ""),
        ("Acme against standard of care", &[("DRUG", "Standard-of-Care chemotherapy"), ("BEHAVIORAL", "Acme")], ""),
        ("Study of Shamab", &[("DRUG", "Shamab")], "Shamab"),
        ("Study of Bolunib", &[("DRUG", "\u{2014}"), ("DRUG", "Bolunib")], "Bolunib"),
    ] {
        let intervention_of = |(kind, name): &(&str, &str)| Intervention { kind: (*kind).into(), name: (*name).into() };
        for is_reversed in [false, true] {
            let mut listed: Vec<Intervention> = interventions.iter().map(intervention_of).collect();
            if is_reversed {
                listed.reverse();
            }
            let engine = engine(&[trial("2026-07", |trial| (trial.title, trial.interventions) = (title.into(), listed))]);
            assert_eq!(engine.one("ctgov:NCT00000001").drug, drug, "{title}");
        }
    }
    let device = |trial: &mut TrialFact| trial.interventions = vec![Intervention { kind: "DEVICE".into(), name: "Acme".into() }];
    assert!(engine(&[trial("2026-07", device)]).records().is_empty());
}

/// Proves that a moved date is one change with both dates, and that a reading without a difference is none.
#[test]
fn slips() {
    let same = engine(&[trial("2026-08-22", |_| {}), trial("2026-08-22", |trial| trial.enrollment = Some(5))]);
    assert_eq!(same.changes_of_records().count(), 1);
    let moved = engine(&[trial("2026-08-22", |_| {}), trial("2026-11-22", |_| {})]);
    let record = moved.one("ctgov:NCT00000001");
    assert_eq!((record.slips, moved.changes_of_records().count()), (1, 2));
    assert_eq!((moved.details().slip_days, moved.details().date_before.as_deref()), (Some(Some(92)), Some("2026-08-22")));

    let filed = [
        sentence(FIRST, "2026-03-01", "ex99-1.htm", 1, "The FDA set a PDUFA target action date of August 22, 2026 for acmezumab."),
        sentence(
            SECOND,
            "2026-06-01",
            "ex99-1.htm",
            1,
            "The FDA extended the PDUFA date of acmezumab from August 22, 2026 to November 22, 2026.",
        ),
    ];
    let moved = engine(&filed);
    let record = moved.one("pdufa:0000000012:acmezumab");
    assert_eq!((&*record.date, record.slips, &*record.status), ("2026-11-22", 1, "upcoming"));
    let details = moved.details();
    assert_eq!((details.date_after.as_deref(), details.slip_days), (Some("2026-11-22"), Some(Some(92))));
    assert_eq!(record.verify_body["accession"], SECOND);
}

/// Proves the statement of the contract's example with its hash, and that a date ends when the agency decides.
#[test]
fn statements() {
    let open = sentence(FIRST, "2026-03-01", "ex99-1.htm", 1, "The FDA has set a PDUFA target action date of November 27, 2026.");
    let record = engine(&[open]).one("pdufa:0000000012:1");
    assert_eq!((&*record.date, &*record.company, &*record.drug), ("2026-11-27", "Acme Bio, Inc.", ""));
    assert_eq!(record.verify_hash, "sha256:03eb6e20005887249a75abd9a515086d99d54f22d7321a2b538c8b5a8ec751c2");
    assert_eq!(record.source_url, "https://www.sec.gov/Archives/edgar/data/12/000123456726000001/ex99-1.htm");
    for (text, status) in [
        ("The FDA approved acmezumab ahead of its PDUFA date of May 1, 2026.", "met"),
        ("The FDA issued a complete response letter for acmezumab before the PDUFA date of May 1, 2026.", "met"),
        ("The PDUFA date of acmezumab, May 1, 2026, was met.", "met"),
        ("If approved, acmezumab will launch after the PDUFA date of May 1, 2026.", "upcoming"),
    ] {
        let facts = [
            sentence(FIRST, "2026-03-01", "ex99-1.htm", 1, "The PDUFA date of acmezumab is May 1, 2026."),
            sentence(SECOND, "2026-04-01", "ex99-1.htm", 1, text),
        ];
        assert_eq!(engine(&facts).one("pdufa:0000000012:acmezumab").status, status, "{text}");
    }
}

/// Proves that two programmes of one filing are two events, and that the same date in two exhibits is one.
#[test]
fn programmes() {
    let two = engine(&[
        sentence(FIRST, "2026-03-01", "ex99-1.htm", 1, "The PDUFA date of acmezumab is August 22, 2026."),
        sentence(FIRST, "2026-03-01", "ex99-1.htm", 2, "The PDUFA date of bolunib is in the fourth quarter of 2026."),
        sentence(FIRST, "2026-03-01", "ex99-2.htm", 1, "The PDUFA date is August 22, 2026."),
    ]);
    let all = two.records();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["pdufa:0000000012:acmezumab", "pdufa:0000000012:bolunib"]);
    assert_eq!(all["pdufa:0000000012:bolunib"].date_precision, "quarter");
    assert_eq!(all["pdufa:0000000012:bolunib"].date, "");
}

/// Proves the meeting of the contract's example with its hash, and that device panels and tobacco have none.
#[test]
fn meetings() {
    let text = "The meeting will be held on September 23, 2026, from 9 a.m. to 6 p.m. Eastern Time.";
    let title = "Oncologic Drugs Advisory Committee; Notice of Meeting — NDA 1 From Acme Bio, Inc. for Acmezumab";
    let engine = engine(&[
        tickers("0000000012", "ACME BIO INC", &["ACME"]),
        notice("2026-16245", title, text, "FDA-2026-N-4321"),
        notice("2026-1", "Tobacco Products Scientific Advisory Committee; Notice of Meeting", text, "FDA-2026-N-5"),
        notice("2026-2", "Circulatory System Devices Panel Advisory Committee; Notice of Meeting", text, "FDA-2026-N-6"),
        notice("2026-3", "Oncologic Drugs Advisory Committee; Notice of Meeting", "Comments due by June 30, 2026", "FDA-2026-N-7"),
    ]);
    let all = engine.records();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["adcom:FDA-2026-N-4321"]);
    let record = &all["adcom:FDA-2026-N-4321"];
    assert_eq!((&*record.date, &*record.ticker, &*record.drug), ("2026-09-23", "ACME", "Acmezumab"));
    assert_eq!(record.verify_hash, "sha256:20400c68b9643ec3851440c9aff3e634d6b1043dccfa3d647d5f526444e3fe5f");
}

/// Facts of every kind about one company, of which the last ones of a key come after its first.
fn world() -> Vec<Fact<CatalystFact>> {
    vec![
        trial("2026-07", |_| {}),
        trial("2026-09-15", |_| {}),
        trial("2026-09-15", |trial| trial.sponsor = "Bolt Bio, Inc.".into()),
        tickers("0000000012", "ACME BIO INC", &["ACME", "ACME-WT"]),
        tickers("0000000013", "Bolt Bio Holdings", &["BOLT"]),
        tickers("0000000013", "Bolt Bio Holdings", &["BLTX", "BOLT-A"]),
        sentence(FIRST, "2026-03-01", "ex99-1.htm", 1, "The PDUFA date of acmezumab is August 22, 2026."),
        sentence(FIRST, "2026-03-01", "ex99-1.htm", 2, "The PDUFA date of bolunib is in the fourth quarter of 2026."),
        sentence(FIRST, "2026-03-01", "ex99-2.htm", 1, "The PDUFA date is August 22, 2026."),
        sentence(
            SECOND,
            "2026-06-01",
            "a.htm",
            1,
            "The FDA extended the PDUFA date of acmezumab from August 22, 2026 to November 22, 2026.",
        ),
        sentence(SECOND, "2026-06-01", "a.htm", 2, "The PDUFA date is March 3, 2027."),
        sentence("0001234567-26-000003", "2026-07-01", "a.htm", 1, "The FDA approved bolunib ahead of its PDUFA date of October 5, 2026."),
        notice(
            "2026-10",
            "Oncologic Drugs Advisory Committee; Notice of Meeting — From Acme Bio, Inc. for Acmezumab",
            "October 1, 2026",
            "D-7",
        ),
        notice(
            "2026-11",
            "Oncologic Drugs Advisory Committee; Amendment of Notice",
            "The meeting will be held on November 5, 2026.",
            "D-7",
        ),
        notice("2026-12", "Oncologic Drugs Advisory Committee; Amendment of Notice", "", "D-7"),
    ]
}

/// Fails unless an event has the five fields of its anchor, whose hash can be computed again, and a day only if its date is one.
fn check_anchor(record: &Catalyst) {
    let anchor = [&record.source, &record.source_url, &record.source_field, &record.verified_as_of, &record.verify_hash];
    assert!(anchor.iter().all(|field| !field.is_empty()), "{record:?}");
    assert_eq!(verify_hash(&record.verify_body), record.verify_hash);
    assert_eq!(record.date.is_empty(), record.date_precision != "day", "{record:?}");
}

/// Proves that the same facts give the same events in any order in which each key keeps its own order, and that every event has the five
/// fields of its anchor, whose hash can be computed again.
#[test]
fn order_does_not_matter() {
    let expected = engine(&world()).records();
    assert_eq!(expected.len(), 5, "{:?}", expected.keys());
    let mut random = Random::new(11);
    for _ in 0..60 {
        let (mut left, mut mixed) = (world(), Engine::default());
        while !left.is_empty() {
            let key = left[random.below(left.len())].key.clone();
            let first = left.iter().position(|fact| fact.key == key).unwrap();
            mixed.decide(&left.remove(first));
        }
        let all = mixed.records();
        let current: BTreeMap<_, _> = all.into_iter().filter(|(_, record)| record.status != "withdrawn").collect();
        assert_eq!(current, expected);
        for change in mixed.changes_of_records() {
            let record = change.after.as_ref().unwrap();
            check_anchor(record);
            assert!(record.window.from <= record.window.to, "{record:?}");
        }
    }
    engine(&world()).assert_rebuilds();
}

/// Random facts.
trait Draws {
    /// A trial of one of six numbers, in any state.
    fn trial(&mut self) -> Fact<CatalystFact>;
    /// A sentence of one of five filings.
    fn sentence(&mut self) -> Fact<CatalystFact>;
    /// A notice of one of three dockets.
    fn notice(&mut self) -> Fact<CatalystFact>;
    fn fact(&mut self) -> Fact<CatalystFact>;
}

impl Draws for Random {
    fn trial(&mut self) -> Fact<CatalystFact> {
        let number = format!("NCT0000000{}", self.below(6));
        let date = self.one(&["2026-07", "2026-09-15", "2026-12", "2027-02-28", "", "soon"]);
        let status = self.one(&["RECRUITING", "RECRUITING", "COMPLETED", "TERMINATED", "SUSPENDED", "UNKNOWN"]);
        let (sponsor, class) =
            (self.one(&["Acme Bio, Inc.", "ACME BIO INC", "Bolt Bio", "Cyan Bio"]), self.one(&["INDUSTRY", "INDUSTRY", "OTHER"]));
        let (phase, kind) = (self.one(&["PHASE1", "PHASE1/PHASE2", "PHASE3", "N/A"]), self.one(&["ACTUAL", "ESTIMATED"]));
        let day = self.one(&["2026-06-20", "2026-06-21"]);
        let fact_of = trial(date, |trial| {
            (trial.number, trial.sponsor, trial.sponsor_class) = (number.clone(), sponsor.into(), class.into());
            (trial.status, trial.phase, trial.primary_completion_type) = (status.into(), phase.into(), kind.into());
        });
        let data = if self.below(12) == 0 { None } else { fact_of.data };
        fact(&format!("clinical_trials/{number}"), day, data)
    }

    fn sentence(&mut self) -> Fact<CatalystFact> {
        let filing = self.below(5);
        let (accession, filed) = (format!("0001234567-26-00000{filing}"), format!("2026-0{}-01", 2 + filing));
        let drug = self.one(&["acmezumab", "bolunib", "Zepvia", "the drug"]);
        let date =
            self.one(&["August 22, 2026", "November 22, 2026", "the fourth quarter of 2026", "mid-2027", "December 2026", "April 1, 2031"]);
        let text = match self.below(5) {
            0 => format!("The FDA set a PDUFA target action date of {date} for {drug}."),
            1 => format!("The PDUFA date of {drug} is {date}."),
            2 => format!("The FDA approved {drug} ahead of its PDUFA date of {date}."),
            3 => format!("The FDA extended the PDUFA date of {drug} from August 22, 2026 to {date}."),
            _ => format!("{date} and {date}: PDUFA dates, respectively."),
        };
        let n = i64::try_from(1 + self.below(2)).unwrap();
        sentence(&accession, &filed, self.one(&["a.htm", "ex99-1.htm"]), n, &text)
    }

    fn notice(&mut self) -> Fact<CatalystFact> {
        let docket = self.below(3);
        let title = self.one(&[
            "Oncologic Drugs Advisory Committee; Notice of Meeting — From Acme Bio, Inc. for Acmezumab",
            "Oncologic Drugs Advisory Committee; Amendment of Notice",
            "Oncologic Drugs Advisory Committee; Cancellation of Meeting",
            "Tobacco Products Scientific Advisory Committee; Notice of Meeting",
        ]);
        let dates = self.one(&["October 1, 2026", "The meeting will be held on November 5, 2026.", "Comments due by June 30, 2026", ""]);
        notice(&format!("2026-{docket}{}", self.below(3)), title, dates, &format!("FDA-2026-N-900{docket}"))
    }

    fn fact(&mut self) -> Fact<CatalystFact> {
        match self.below(7) {
            0..3 => self.trial(),
            3..5 => self.sentence(),
            5 => self.notice(),
            _ => {
                let cik = self.one(&["0000000012", "0000000013"]);
                tickers(cik, self.one(&["ACME BIO INC", "Bolt Bio Holdings"]), &[self.one(&["ACME", "BOLT", "AC-A"])])
            }
        }
    }
}

/// Proves for random facts of every kind: in any order in which each key keeps its own, they give the same events; every change has the five
/// fields of its anchor, whose hash can be computed again; no date but a day has a day; and windows are in order.
#[test]
fn invariants_of_events() {
    let mut shown = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let facts: Vec<Fact<CatalystFact>> = (0..40).map(|_| random.fact()).collect();
        let mut worlds = Vec::new();
        for shuffle in 0..3 {
            let (mut left, mut mixed): (Vec<&Fact<CatalystFact>>, _) = (facts.iter().collect(), Engine::default());
            while !left.is_empty() {
                let at = if shuffle == 0 { 0 } else { random.below(left.len()) };
                let first = left.iter().position(|fact| fact.key == left[at].key).unwrap();
                mixed.decide(left.remove(first));
            }
            for change in mixed.changes_of_records() {
                let record = change.after.as_ref().unwrap();
                check_anchor(record);
                assert!(record.window.from <= record.window.to && !record.window.from.is_empty(), "{record:?}");
            }
            worlds.push(mixed.records().into_iter().filter(|(_, record)| record.status != "withdrawn").collect::<BTreeMap<_, _>>());
        }
        shown += worlds[0].len();
        assert!(worlds.iter().all(|world| *world == worlds[0]), "seed {seed}: {worlds:#?}");
    }
    assert!(shown > 200, "{shown}");
}

/// Proves that a company that gets, changes or loses its ticker changes its events, and that a name without a match has none.
#[test]
fn tickers_move() {
    let mut engine = engine(&[trial("2026-07", |_| {})]);
    assert_eq!(engine.one("ctgov:NCT00000001").ticker, "");
    let steps = [
        (tickers("0000000012", "Acme Bio Ltd", &["ACME"]), "ACME"),
        (tickers("0000000012", "Acme Bio Ltd", &["ACMX"]), "ACMX"),
        (tickers("0000000012", "Other Name Inc", &["ACMX"]), ""),
        (tickers("0000000012", "ACME BIO", &["ACMX"]), "ACMX"),
        (fact(&format!("{TICKERS}/0000000012"), "2026-08-01", None), ""),
    ];
    for (step, ticker) in steps {
        engine.decide(&step);
        assert_eq!(engine.one("ctgov:NCT00000001").ticker, ticker);
    }
}

/// Proves that the index has what was known under a name and of a number after each change, also once nothing has the name any more.
#[test]
fn companies_are_indexed() {
    let (cik, id) = ("0000000012", "ctgov:NCT00000001");
    let mut engine = engine(&[trial("2026-07", |_| {}), tickers(cik, "ACME BIO INC", &["ACME"])]);
    let early = engine.seq();
    engine.decide(&trial("2026-07", |trial| trial.sponsor = "Boreal Pharma LLC".into()));
    engine.decide(&tickers(cik, "BOREAL PHARMA", &["BORE"]));
    let named = |name: &str, upto: Seq| engine.indexed::<Named>(&name_key(name).unwrap(), upto);
    let row = |ticker: &str| Named { listed: [(cik.to_owned(), vec![ticker.to_owned()])].into(), records: [id.to_owned()].into() };
    assert_eq!((named("Acme Bio", early), named("Boreal Pharma", early)), (Some(row("ACME")), None));
    assert_eq!((named("Acme Bio", engine.seq()), named("Boreal Pharma", engine.seq())), (Some(Named::default()), Some(row("BORE"))));
    let titles = [early, engine.seq()].map(|upto| engine.indexed::<Listed>(&cik_key(cik), upto).map(|listed| listed.title));
    assert_eq!(titles, [Some("ACME BIO INC".to_owned()), Some("BOREAL PHARMA".to_owned())]);
}

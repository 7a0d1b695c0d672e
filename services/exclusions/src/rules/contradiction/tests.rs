//! Verdicts, and what reports and sums become in any order.

use schemas::event::FactKind;
use schemas::facts::company_facts::ReportedFact;

use super::super::{ExclusionInput, Exclusions};
use super::*;
use fold::random::Random;
use fold::testing::{self, Folded};

const BILLION: i64 = 100_000_000_000;

fn sums(government: i64, obligated: i64) -> Sums {
    Sums { government_cents: government, obligated_cents: obligated }
}

fn compared(government: i64, obligated: i64) -> Compared {
    let sums = Some(sums(government, obligated));
    Compared { has_government: true, sums, confidence: Confidence::Medium, is_settled: true, is_merged: false, before: None }
}

/// Proves the verdicts of the contract and those at the edges of its numbers.
#[test]
fn verdicts() {
    let verdict_of = |compared: Compared| {
        let (verdict, reasons) = compared.verdict();
        (verdict, reasons.join(","))
    };
    let plain = compared(30 * BILLION, 24 * BILLION);
    assert_eq!(plain.sums.unwrap().ratio_percent(), Some(80));
    assert_eq!(verdict_of(plain), (verdict::CONSISTENT, "RATIO_IN_BAND".to_owned()));
    let high = compared(3 * BILLION, 9 * BILLION);
    assert_eq!(verdict_of(high), (verdict::DIFFERS, "RATIO_OUT_OF_BAND".to_owned()));
    let before = |obligated: i64| Compared { before: Some(sums(10 * BILLION, obligated)), ..high };
    assert_eq!(verdict_of(before(29 * BILLION)), (verdict::CONSISTENT, "NEAR_OWN_RATIO".to_owned()));
    // 3.0 is 35 % above 2.2222 and 35 % below 4.6154.
    for (obligated, wanted) in [(2_222_222_222_223, verdict::CONSISTENT), (2_222_222_222_222, verdict::DIFFERS)] {
        assert_eq!(verdict_of(before(obligated)).0, wanted, "{obligated}");
    }
    for (obligated, wanted) in [(4_615_384_615_384, verdict::CONSISTENT), (4_615_384_615_385, verdict::DIFFERS), (0, verdict::DIFFERS)] {
        assert_eq!(verdict_of(before(obligated)).0, wanted, "{obligated}");
    }
    for (government, obligated, wanted) in [
        (10 * BILLION, 4 * BILLION, verdict::CONSISTENT),
        (10 * BILLION, 4 * BILLION - 1, verdict::DIFFERS),
        (10 * BILLION, 25 * BILLION, verdict::CONSISTENT),
        (10 * BILLION, 25 * BILLION + 1, verdict::DIFFERS),
        (10 * BILLION, -BILLION, verdict::DIFFERS),
        (4_000_000_000, 4_000_000_000, verdict::NOT_COMPARABLE),
        (5_000_000_000, 5_000_000_000, verdict::CONSISTENT),
    ] {
        assert_eq!(verdict_of(compared(government, obligated)).0, wanted, "{government} {obligated}");
    }
    for (other, reason) in [
        (Compared { has_government: false, sums: None, ..plain }, "NO_GOVERNMENT_REVENUE"),
        (Compared { sums: None, ..plain }, "NO_OBLIGATIONS"),
        (Compared { confidence: Confidence::Low, ..plain }, "CROSSWALK_CONFIDENCE"),
        (compared(4_000_000_000, 9_000_000_000), "BELOW_50_MILLION"),
        (Compared { is_settled: false, ..plain }, "YEAR_END_RECENT"),
        (Compared { is_merged: true, ..plain }, "MERGER"),
    ] {
        assert_eq!(verdict_of(other), (verdict::NOT_COMPARABLE, reason.to_owned()));
    }
}

type Engine = Folded<Exclusions>;

const CIK: &str = "0999999901";
const PARENT: &str = "DEMAPARENT01";

/// An annual report whose fiscal year ends on 30 September, with amounts in millions of dollars.
fn report(year: i64, accession: &str, revenue: i64, government: Option<i64>) -> CompanyFact {
    let fact = |value: i64, dimensions: &str| ReportedFact {
        context: format!("c{value}"),
        start: format!("{}-10-01", year - 1),
        end: format!("{year}-09-30"),
        tag: "us-gaap:Revenues".into(),
        value: format!("{value}000000"),
        unit: "USD".into(),
        dimensions: dimensions.into(),
        label: String::new(),
    };
    let government = government.map(|value| fact(value, "srt:MajorCustomersAxis=x:USGovernmentMember"));
    CompanyFact {
        stream: "edgar.xbrl".into(),
        kind: REPORT.into(),
        cik: CIK.into(),
        company: "EXAMPLE".into(),
        accession: accession.into(),
        form: "10-K".into(),
        filed: format!("{year}-11-20"),
        file: "x_htm.xml".into(),
        fiscal_year: year,
        end: format!("{year}-09-30"),
        facts: std::iter::once(fact(revenue, "")).chain(government).collect(),
        ..CompanyFact::default()
    }
}

fn total(year: i64, group: &str, obligated: i64) -> CompanyFact {
    CompanyFact {
        stream: "usaspending.totals".into(),
        kind: TOTAL.into(),
        fiscal_year: year,
        start: format!("{}-10-01", year - 1),
        end: format!("{year}-09-30"),
        parent_uei: PARENT.into(),
        group: group.into(),
        obligated_cents: Some(obligated * 100_000_000),
        outlays_cents: Some(0),
        is_settled: true,
        ..CompanyFact::default()
    }
}

fn key(fact: &CompanyFact) -> String {
    if fact.kind == REPORT {
        return format!("edgar.xbrl/{}", fact.accession);
    }
    format!("usaspending.totals/{}/{}/{}", fact.parent_uei, fact.end, fact.group)
}

fn decided(facts: &[CompanyFact]) -> Engine {
    let mut engine = Engine::default();
    for fact in facts {
        let input = ExclusionInput::Company(Box::new(fact.clone()));
        engine.decide(&testing::fact(key(fact), FactKind::Observed, 0, Some(input)));
    }
    engine
}

fn of_year(engine: &Engine, year: i64) -> Option<Contradiction> {
    let record = engine.records().remove(&contradiction_id(CIK, year))?;
    assert_eq!((record.kind.as_str(), record.ticker.as_str(), record.name.as_str()), (CONTRADICTION, "DEMOA", "EXAMPLE"));
    record.contradiction.map(|contradiction| *contradiction)
}

/// Three reports with their sums, of which the last one alone would differ.
fn three_years() -> Vec<CompanyFact> {
    vec![
        report(2022, "a-22", 2_000, Some(1_000)),
        report(2023, "a-23", 2_000, Some(1_000)),
        report(2024, "a-24", 2_000, Some(1_000)),
        total(2022, "contracts", 500),
        total(2022, "idvs", 100),
        total(2023, "contracts", 500),
        total(2023, "idvs", 0),
        total(2024, "contracts", 3_000),
        total(2024, "idvs", 400),
    ]
}

/// Proves that three years are added up on both sides, that contracts and vehicles are, and that the year before is compared with its own years.
#[test]
fn sums_of_three_years() {
    let engine = decided(&three_years());
    let newest = of_year(&engine, 2024).unwrap();
    assert_eq!((newest.government_sum_cents, newest.obligated_sum_cents, newest.years), (Some(300_000_000_000), Some(450_000_000_000), 3));
    assert_eq!((newest.ratio_percent, newest.ratio_before_percent), (Some(150), Some(55)));
    assert_eq!((newest.government_cents, newest.obligated_cents), (Some(100_000_000_000), Some(340_000_000_000)));
    assert_eq!((newest.window_start.as_str(), newest.window_end.as_str()), ("2021-10-01", "2024-09-30"));
    assert_eq!((newest.verdict.as_str(), newest.reasons.as_slice()), (verdict::CONSISTENT, &["RATIO_IN_BAND".to_owned()][..]));
    assert_eq!((newest.member.as_str(), newest.parent_ueis.as_slice()), ("x:USGovernmentMember", &[PARENT.to_owned()][..]));
    let first = of_year(&engine, 2022).unwrap();
    assert_eq!((first.years, first.ratio_percent, first.ratio_before_percent), (1, Some(60), None));
}

/// Proves that reports and sums in any order give the same records.
#[test]
fn any_order() {
    let mut facts = three_years();
    facts.push(CompanyFact { form: "10-K/A".into(), filed: "2024-12-20".into(), ..report(2024, "b-24", 2_000, None) });
    let expected = decided(&facts).records();
    assert_eq!(expected[&contradiction_id(CIK, 2024)].contradiction.as_ref().unwrap().accession, "a-24");
    let mut random = Random::new(11);
    for _ in 0..20 {
        for at in (1..facts.len()).rev() {
            facts.swap(at, random.below(at + 1));
        }
        assert_eq!(decided(&facts).records(), expected, "{:?}", facts.iter().map(key).collect::<Vec<_>>());
    }
}

/// Proves that a missing group, an unsettled sum and a report without the government are not compared, and that a correction is.
#[test]
fn sides_that_are_missing() {
    let verdict_of = |facts: &[CompanyFact]| of_year(&decided(facts), 2024).map(|found| (found.verdict, found.reasons.join(","))).unwrap();
    let own = |reason: &str| (verdict::NOT_COMPARABLE.to_owned(), reason.to_owned());
    let (report, contracts, idvs) = (report(2024, "a-24", 2_000, Some(1_000)), total(2024, "contracts", 900), total(2024, "idvs", 0));
    assert_eq!(verdict_of(&[report.clone(), contracts.clone()]), own("NO_OBLIGATIONS"));
    let unsettled = CompanyFact { is_settled: false, ..contracts.clone() };
    assert_eq!(verdict_of(&[report.clone(), unsettled.clone(), idvs.clone()]), own("YEAR_END_RECENT"));
    assert_eq!(verdict_of(&[report.clone(), unsettled, idvs.clone(), contracts.clone()]).0, verdict::CONSISTENT);
    let silent = self::report(2024, "c-24", 2_000, None);
    assert_eq!(verdict_of(&[silent, contracts, idvs]), own("NO_GOVERNMENT_REVENUE"));
    assert!(of_year(&decided(&[total(2024, "contracts", 1)]), 2024).is_none());
}

/// Proves that sums of another last day within two weeks are those of the year, and no others are.
#[test]
fn years_of_weeks() {
    let with_end = |fact: CompanyFact, end: &str| CompanyFact { end: end.to_owned(), ..fact };
    for (end, is_found) in [("2024-10-04", true), ("2024-09-16", true), ("2024-10-15", false), ("2023-09-30", false)] {
        let totals = ["contracts", "idvs"].map(|group| with_end(total(2024, group, 500), end));
        let facts: Vec<CompanyFact> = std::iter::once(report(2024, "a-24", 2_000, Some(1_000))).chain(totals).collect();
        assert_eq!(of_year(&decided(&facts), 2024).unwrap().obligated_cents.is_some(), is_found, "{end}");
    }
}

/// Proves that facts of a company that is not in the crosswalk become nothing.
#[test]
fn unknown_companies() {
    let unknown = CompanyFact { cik: "0000000001".into(), ..report(2024, "a-24", 2_000, Some(1_000)) };
    let parent = CompanyFact { parent_uei: "ABCDEF123456".into(), ..total(2024, "contracts", 500) };
    assert!(decided(&[unknown, parent]).records().is_empty());
}

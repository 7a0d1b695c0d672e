//! The fold over permits: records of projects, the rise of the value of the building, medians of job codes, and that the order of facts does not matter.

use schemas::event::{Fact, FactKind};
use schemas::facts::parcels::{self, ParcelFact};
use schemas::tables::Datum;
use schemas::views::records::Record;

use super::*;
use crate::record::TABLES;
use crate::record::permit::Permit;
use crate::rules::{Parcels, ParcelsFact};
use fold::testing::{self, Folded};

/// 2026-11-20 12:00 UTC.
const NOON: i64 = 1_795_176_000_000;
const COMMERCIAL: &str = "COMMERCIAL PERMIT: NEW BUILDING";

type Engine = Folded<Parcels>;
type FactOf = Fact<ParcelsFact>;

fn pin(number: usize) -> String {
    format!("16012160{number:02}0000")
}

fn id(number: usize, permit: &str) -> String {
    permit_id(cook::COUNTY, &pin(number), permit)
}

/// A permit of the assessor for a new commercial building that is assessable, not closed, and of 300,000 dollars.
fn permit(number: usize, permit: &str, issued: &str, change: impl FnOnce(&mut PermitFact)) -> FactOf {
    let mut data = PermitFact {
        stream: "cook.permits".into(),
        pin: pin(number),
        number: permit.into(),
        issued: issued.into(),
        status: "OPEN".into(),
        assessable: "Assessable".into(),
        amount: Some(300_000),
        job_code: "COMMERCIAL PERMIT".into(),
        job_code_secondary: "NEW BUILDING".into(),
        township: "WEST CHICAGO".into(),
        address: "1 MAIN ST".into(),
        ..PermitFact::default()
    };
    change(&mut data);
    let key = format!("cook.permits/{}/{permit}/{issued}", data.pin);
    testing::fact(key, FactKind::Observed, NOON, Some(ParcelsFact::Permit(Box::new(data))))
}

/// A permit of the city for new construction.
fn city(number: usize, permit: &str, issued: &str, change: impl FnOnce(&mut PermitFact)) -> FactOf {
    let mut data = PermitFact {
        stream: "chicago.permits".into(),
        pin: pin(number),
        number: permit.into(),
        local_number: permit.into(),
        issued: issued.into(),
        status: "ACTIVE".into(),
        permit_type: "PERMIT - NEW CONSTRUCTION".into(),
        amount: Some(400_000),
        ..PermitFact::default()
    };
    change(&mut data);
    let key = format!("chicago.permits/{}/{permit}", data.pin);
    testing::fact(key, FactKind::Observed, NOON, Some(ParcelsFact::Permit(Box::new(data))))
}

/// The assessment of a parcel with this value of its building.
fn value(number: usize, year: i64, building: i64) -> FactOf {
    let data = ParcelFact {
        kind: parcels::VALUE.into(),
        pin: pin(number),
        year,
        class: "517".into(),
        township: "77".into(),
        neighborhood: "010".into(),
        mailed: Some(10_000 + building),
        mailed_building: Some(building).filter(|building| *building > 0),
        ..ParcelFact::default()
    };
    testing::fact(format!("cook.values/{}{year}", pin(number)), FactKind::Observed, NOON, Some(ParcelsFact::Parcel(Box::new(data))))
}

fn engine(facts: impl IntoIterator<Item = FactOf>) -> Engine {
    let mut engine = Engine::default();
    facts.into_iter().for_each(|fact| engine.decide(&fact));
    engine
}

fn record(engine: &Engine, id: &str) -> Parcel {
    engine.records().remove(id).unwrap()
}

fn shown(engine: &Engine, id: &str) -> Permit {
    *record(engine, id).permit.unwrap()
}

fn medians(engine: &Engine) -> BTreeMap<String, Median> {
    let name = Datum::Text(medians_name(cook::COUNTY));
    let last = engine.table(TABLES.terms).rfind(|(key, _)| key[0] == name);
    last.map(|(_, value)| serde_json::from_slice(value).unwrap()).unwrap_or_default()
}

/// Proves that a permit of Pittsburgh becomes a record of its parcel of Allegheny County, before and after its assessment is known, is in no list of windows, and
/// is withdrawn by the key of its fact.
#[test]
fn permits_of_pittsburgh() {
    const PIN: &str = "0028F00194000000";
    const KEY: &str = "allegheny.pli/0028F00194000000/BDA-2026-05307";
    let data = PermitFact {
        stream: "allegheny.pli".into(),
        pin: PIN.into(),
        number: "BDA-2026-05307".into(),
        local_number: "BDA-2026-05307".into(),
        issued: "2026-03-31".into(),
        status: "Issued".into(),
        permit_type: "Building & Development Application - New Construction".into(),
        amount: Some(1_250_000),
        ..PermitFact::default()
    };
    let permit = testing::fact(KEY.to_owned(), FactKind::Observed, NOON, Some(ParcelsFact::Permit(Box::new(data))));
    let assessed = ParcelFact {
        kind: parcels::ASSESSMENT.into(),
        pin: PIN.into(),
        year: 2026,
        class: "C411".into(),
        township: "104".into(),
        township_name: "4th Ward - PITTSBURGH".into(),
        use_label: "RETL/STOR OVER".into(),
        ..ParcelFact::default()
    };
    let key = format!("allegheny.assessments/{PIN}");
    let assessed = testing::fact(key, FactKind::Observed, NOON, Some(ParcelsFact::Parcel(Box::new(assessed))));
    let id = permit_id("allegheny-pa", PIN, "BDA-2026-05307");
    let first = record(&engine([permit.clone()]), &id);
    assert_eq!((&*first.county, &*first.township, &*first.class), ("allegheny-pa", "", ""));
    let mut engine = engine([permit, assessed]);
    let found = record(&engine, &id);
    assert_eq!((&*found.township, &*found.township_code, &*found.class), ("4th Ward - PITTSBURGH", "104", "C411"));
    assert!(found.url.contains("data.wprdc.org") && found.url.contains("BDA-2026-05307"), "{}", found.url);
    assert_eq!(found.places(), []);
    let shown = found.permit.unwrap();
    assert_eq!((shown.assessable, shown.major, shown.closed, shown.amount), (true, true, false, Some(1_250_000)));
    assert_eq!(medians(&engine), BTreeMap::new());
    engine.decide(&testing::fact(KEY.to_owned(), FactKind::Withdrawn, NOON, None));
    assert!(record(&engine, &id).permit.unwrap().withdrawn);
}

/// Proves that a permit becomes a record with the parcel's class and township, and that it is in the lists of its township.
#[test]
fn a_permit_becomes_a_project() {
    let engine = engine([value(1, 2026, 5_000), permit(1, "N1", "2026-03-02", |_| ())]);
    let record = record(&engine, &id(1, "N1"));
    assert_eq!((&*record.class, &*record.township, &*record.township_code, &*record.address), ("517", "West Chicago", "77", "1 MAIN ST"));
    assert!(record.url.ends_with("/resource/6yjf-dfxs.json?pin=16012160010000"));
    let permit = record.permit.as_ref().unwrap();
    assert_eq!((permit.closed, permit.assessable, permit.major, &*permit.job_code), (false, true, true, COMMERCIAL));
    let building = &permit.building;
    assert_eq!((building.year, building.value, building.latest_year, building.risen_in), (Some(2026), Some(5_000), Some(2026), None));
    let lists: Vec<String> = record.places().into_iter().map(|place| place.list).collect();
    assert!(lists.contains(&"permit/cook-il/77".to_owned()) && lists.contains(&"stalled-large/cook-il/77".to_owned()), "{lists:?}");
    // The record of the parcel has none of it.
    let parcel = engine.records().remove("cook-il/16012160010000").unwrap();
    assert!(parcel.permit.is_none() && !serde_json::to_string(&parcel).unwrap().contains("permit"));
}

/// Proves that a permit of a parcel that is not on the roll has the township that it names, and one without a parcel has no record.
#[test]
fn parcels_that_are_not_on_the_roll() {
    let unknown = engine([permit(1, "N1", "2026-03-02", |_| ()), permit(2, "N2", "2026-03-02", |fact| fact.pin = String::new())]);
    assert_eq!(unknown.records().len(), 1);
    let record = record(&unknown, &id(1, "N1"));
    assert_eq!((&*record.township_code, &*record.class), ("77", ""));
    assert!(record.permit.unwrap().remarks.iter().any(|remark| remark.contains("no assessed value of the building")));
}

/// Proves which permits are closed, assessable and major, by the assessor and by the city.
#[test]
fn statuses_and_codes() {
    let shown_permit = |fact: FactOf| {
        let permit = shown(&engine([fact]), &id(1, "N1"));
        (permit.closed, permit.assessable, permit.major)
    };
    let assessed = |change: fn(&mut PermitFact)| shown_permit(permit(1, "N1", "2026-03-02", change));
    for status in ["LEGACY", "MANAGER REVIEW", "PENDING", "RECHECK", ""] {
        let changed = engine([permit(1, "N1", "2026-03-02", |fact| fact.status = status.into())]);
        assert!(!shown(&changed, &id(1, "N1")).closed, "{status}");
    }
    assert_eq!(assessed(|fact| fact.status = "Closed".into()), (true, true, true));
    assert_eq!(assessed(|fact| fact.assessable = "Non-Assessable".into()), (false, false, true));
    assert_eq!(assessed(|fact| fact.assessable = String::new()), (false, false, true));
    for (code, is_major) in [
        ("ADDITIONS", true),
        ("OTHER - MAJOR NEW CONSTRUCTION", true),
        ("NEW CONSTRUCTION - MAJOR IMPRVT", true),
        ("114.3", true),
        ("DORMERS", true),
        ("FENCING (and Gates)", false),
        ("OTHER - MINOR NEW CONSTRUCTION", false),
        ("MAJOR IMPROVEMENT WRECK", false),
        ("MAJOR IMPROVEMENT BURNOUT", false),
        ("133.1", false),
        ("", false),
    ] {
        let own = engine([permit(1, "N1", "2026-03-02", |fact| fact.job_code_secondary = code.into())]);
        assert_eq!(shown(&own, &id(1, "N1")).major, is_major, "{code}");
        let improved = engine([permit(1, "N1", "2026-03-02", |fact| {
            fact.job_code_secondary = String::new();
            fact.improvements = vec!["OTHER REMODELING".into(), code.into()];
        })]);
        assert_eq!(shown(&improved, &id(1, "N1")).major, is_major, "{code}");
    }
    let issued = |change: fn(&mut PermitFact)| shown_permit(city(1, "N1", "2026-03-02", change));
    assert_eq!(issued(|_| ()), (false, true, true));
    assert_eq!(issued(|fact| fact.permit_type = "PERMIT - RENOVATION/ALTERATION".into()), (false, false, false));
    for status in ["COMPLETE", "Cancelled", "REVOKED"] {
        let changed = engine([city(1, "N1", "2026-03-02", |fact| fact.status = status.into())]);
        assert!(shown(&changed, &id(1, "N1")).closed, "{status}");
    }
}

/// Proves that the permit of the city and that of the assessor with its number are one project, in any order, that each closes it, and that the assessor's word on
/// whether it is assessable counts.
#[test]
fn city_and_assessor_are_one_project() {
    let of_city = city(1, "100987654", "2026-03-02", |fact| fact.parcels = Some(3));
    let assessed = |change: fn(&mut PermitFact)| {
        permit(1, "A-7", "2026-03-09", |fact| {
            fact.local_number = "100987654".into();
            change(fact);
        })
    };
    let one = engine([of_city.clone(), assessed(|_| ())]);
    let other = engine([assessed(|_| ()), of_city.clone()]);
    assert_eq!((one.records(), one.records().len()), (other.records(), 1));
    let project = shown(&one, &id(1, "100987654"));
    assert_eq!(
        (&*project.status, &*project.city_status, &*project.issued, project.amount),
        ("OPEN", "ACTIVE", "2026-03-09", Some(300_000))
    );
    assert_eq!((project.streams, project.parcels), (vec!["chicago.permits".to_owned(), "cook.permits".to_owned()], Some(3)));
    let judged = engine([of_city.clone(), assessed(|fact| fact.assessable = "Non-Assessable".into())]);
    assert!(!shown(&judged, &id(1, "100987654")).assessable);
    let done = engine([assessed(|_| ()), city(1, "100987654", "2026-03-02", |fact| fact.status = "COMPLETE".into())]);
    assert!(shown(&done, &id(1, "100987654")).closed);
    // An assessor that names the number of the city only later moves its permit there.
    let mut moved = engine([of_city, permit(1, "A-7", "2026-03-09", |_| ())]);
    assert_eq!(moved.records().len(), 2);
    moved.decide(&assessed(|_| ()));
    let before = shown(&moved, &id(1, "A-7"));
    assert!(before.withdrawn && !record(&moved, &id(1, "A-7")).is_listed() && record(&moved, &id(1, "A-7")).places().is_empty());
    assert_eq!(shown(&moved, &id(1, "100987654")).streams.len(), 2);
}

/// Proves that a permit on many parcels is a record of each, and that a number that is used again shows the later issue.
#[test]
fn numbers_of_permits() {
    let many = engine((1..=3).map(|number| permit(number, "M1", "2026-03-02", |_| ())));
    assert_eq!(many.records().keys().cloned().collect::<Vec<_>>(), [id(1, "M1"), id(2, "M1"), id(3, "M1")]);
    let again = |order: [&'static str; 2]| {
        engine(order.map(|day| permit(1, "N1", day, |fact| fact.amount = Some(i64::from(fact.issued.ends_with('2'))))))
    };
    let (one, other) = (again(["2024-01-01", "2026-03-02"]), again(["2026-03-02", "2024-01-01"]));
    assert_eq!(one.records(), other.records());
    assert_eq!((one.records().len(), &*shown(&one, &id(1, "N1")).issued, shown(&one, &id(1, "N1")).amount), (1, "2026-03-02", Some(1)));
}

/// Proves that a higher value of the building in a later year takes a project out of its lists, that a lower or an equal one does not, that the order of values
/// and permits does not matter, and that a first value after the issue is compared with later ones only.
#[test]
fn a_rise_finishes_a_project() {
    let risen = |values: &[(i64, i64)], issued: &str| {
        let values: Vec<FactOf> = values.iter().map(|(year, building)| value(1, *year, *building)).collect();
        let issued = permit(1, "N1", issued, |_| ());
        let one = engine(values.iter().cloned().chain([issued.clone()]));
        let other = engine([issued].into_iter().chain(values.into_iter().rev()));
        assert_eq!(one.records(), other.records());
        assert_eq!(medians(&one), medians(&other));
        let record = record(&one, &id(1, "N1"));
        let building = record.permit.as_ref().unwrap().building.clone();
        assert_eq!(record.places().is_empty(), building.risen_in.is_some());
        (building.year, building.risen_in)
    };
    assert_eq!(risen(&[(2025, 5_000), (2026, 5_001)], "2025-03-02"), (Some(2025), Some(2026)));
    assert_eq!(risen(&[(2025, 0), (2026, 900)], "2025-03-02"), (Some(2025), Some(2026)));
    assert_eq!(risen(&[(2024, 5_000), (2025, 5_000), (2026, 4_000)], "2024-03-02"), (Some(2024), None));
    assert_eq!(risen(&[(2024, 5_000), (2026, 6_000)], "2025-03-02"), (Some(2024), Some(2026)));
    assert_eq!(risen(&[(2025, 5_000), (2026, 6_000)], "2022-03-02"), (Some(2025), Some(2026)));
    assert_eq!(risen(&[(2025, 5_000)], "2022-03-02"), (Some(2025), None));
    assert_eq!(risen(&[], "2022-03-02"), (None, None));
}

/// The facts of parcels whose building rose in the assessment of 2026, after permits of these months of 2025.
fn finished(months: impl IntoIterator<Item = i8>) -> Vec<FactOf> {
    let facts_in = |(number, month): (usize, i8)| {
        [value(number, 2025, 1_000), value(number, 2026, 2_000), permit(number, "N1", &format!("2025-{month:02}-05"), |_| ())]
    };
    months.into_iter().enumerate().flat_map(facts_in).collect()
}

/// Proves that a job code has a median from its 30th finished project on, in months until January of the year of the rise, and that it goes when a case goes.
#[test]
fn medians_need_thirty_cases() {
    let mut engine = engine(finished((0..29).map(|_| 3)));
    assert!(medians(&engine).is_empty());
    // Months to January 2026: 10 for March, 1 for December.
    for fact in finished((0..30).map(|number| if number < 29 { 3 } else { 12 })).split_off(29 * 3) {
        engine.decide(&fact);
    }
    assert_eq!(medians(&engine), BTreeMap::from([(COMMERCIAL.to_owned(), Median { months: 10, cases: 30 })]));
    // The assessor says of one that it is not assessable: it is no case.
    engine.decide(&permit(0, "N1", "2025-03-05", |fact| fact.assessable = "Non-Assessable".into()));
    assert!(medians(&engine).is_empty());
}

/// Proves that the median of an even number of cases is the mean of the two in the middle, rounded up, and that cases without a value of the year of issue and
/// those of another job code do not count.
#[test]
fn medians_of_many_cases() {
    let half = (0..40).map(|number| if number < 20 { 3 } else { 6 });
    let mut facts = finished(half);
    assert_eq!(medians(&engine(facts.clone()))[COMMERCIAL].months, 9);
    facts.extend([
        value(50, 2025, 1),
        value(50, 2026, 2),
        permit(50, "N1", "2022-01-01", |_| ()),
        value(51, 2025, 1),
        value(51, 2026, 2),
        permit(51, "N1", "2025-01-01", |fact| fact.job_code_secondary = "ADDITIONS".into()),
    ]);
    let known = medians(&engine(facts));
    assert_eq!((known.len(), known[COMMERCIAL].months), (1, 9));
}

/// Proves that a withdrawn permit is in no list any more, and leaves the digest.
#[test]
fn withdrawn_permits() {
    let fact = permit(1, "N1", "2026-03-02", |_| ());
    let mut engine = engine([fact.clone()]);
    engine.decide(&Fact { kind: FactKind::Withdrawn, data: None, ..fact });
    let record = record(&engine, &id(1, "N1"));
    assert!(!record.is_listed() && record.places().is_empty());
}

/// Proves that nothing is kept of the names in a permit, and that a record of an older version that has them is withdrawn without them.
#[test]
fn names_are_neither_kept_nor_published() {
    let fact = permit(1, "N1", "2026-03-02", |fact| fact.description = "NEW PORCH FOR JOHN SMITH".into());
    let mut engine = engine([fact.clone()]);
    let texts = |engine: &Engine| engine.rows.values().map(|value| String::from_utf8_lossy(value).into_owned()).collect::<String>();
    assert!(!texts(&engine).contains("SMITH") && texts(&engine).contains("NEW PORCH FOR J. S."));
    for (_, value) in engine.rows.iter_mut().filter(|((table, _), _)| [TABLES.state.name, TABLES.records.name].contains(table)) {
        *value = String::from_utf8(value.to_vec()).unwrap().replace("J. S.", "JOHN SMITH").into();
    }
    assert!(texts(&engine).contains("JOHN SMITH"));
    engine.decide(&Fact { kind: FactKind::Withdrawn, data: None, ..fact });
    let permit = shown(&engine, &id(1, "N1"));
    assert_eq!((permit.withdrawn, permit.description.as_str()), (true, "NEW PORCH FOR J. S."));
}

/// Proves that an absurd amount is unknown, and that remarks say so and what is taken for granted.
#[test]
fn remarks_say_what_is_unknown() {
    let shown_permit = |fact: FactOf| shown(&engine([value(1, 2026, 5), fact]), &id(1, "N1"));
    let absurd = shown_permit(city(1, "N1", "2026-03-02", |fact| fact.amount = Some(99_999_999_999)));
    assert!(absurd.amount.is_none() && absurd.remarks.iter().any(|remark| remark.contains("mistake")), "{absurd:?}");
    assert!(absurd.remarks.iter().any(|remark| remark.contains("has not said that it is assessable")), "{absurd:?}");
    let padded = shown_permit(city(1, "N1", "2026-03-02", |fact| fact.is_pin_padded = true));
    assert!(padded.remarks.iter().any(|remark| remark.contains("10 digits")), "{padded:?}");
    let earlier = shown_permit(permit(1, "N1", "2023-03-02", |_| ()));
    assert!(earlier.remarks.iter().any(|remark| remark.contains("that of 2026")), "{earlier:?}");
    assert_eq!(shown_permit(permit(1, "N1", "2026-03-02", |_| ())).remarks, Vec::<String>::new());
}

/// Proves that of very many permits on a parcel those that were issued last are kept, and that the others are marked.
#[test]
fn many_permits_on_a_parcel() {
    let engine = engine((0..60).map(|number| permit(1, &format!("N{number}"), &format!("20{:02}-03-02", 10 + number % 60 / 4), |_| ())));
    let records = engine.records();
    let withdrawn = records.values().filter(|record| !record.is_listed()).count();
    assert_eq!((records.len(), withdrawn), (60, 10));
    assert!(records.values().filter(|record| !record.is_listed()).all(|record| record.permit.as_ref().unwrap().issued.as_str() < "2014"));
}

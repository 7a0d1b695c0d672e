//! Awards with a part to play: what readers of the database meet sooner or later, each on a known day around the start.
//!
//! Titles are unique but for awards of rounds. The days are counted from the day of the start; an award is shown from its day of publication on.

use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::days::after;
use simulated_world::world::{World, day_before};

/// The first application number of these awards. Other awards have smaller ones.
pub(super) const FIRST_NUMBER: u64 = 30_000_000;
/// The day from which one award has another amount.
const AMENDED_DAY: u64 = 2;
/// The day from which two awards are not shown, one of them for good.
const GONE_DAY: u64 = 3;
/// The day from which one of them is shown again.
const BACK_DAY: u64 = 13;

/// An award: its title, activity code and type, and how many days before the start it was published.
struct Part {
    title: &'static str,
    activity: &'static str,
    award_type: &'static str,
    days_before: i64,
    person: Option<Person>,
    change: fn(&mut Value, &World),
}

/// An invented investigator: profile number, given name, family name.
type Person = (u64, &'static str, &'static str);

const FIRST_LAB: Person = (9_000_001, "Ada", "Quillfeather");
const KNOWN_LAB: Person = (9_000_002, "Bram", "Ostrander-Vale");
const OTHER: Person = (9_000_003, "Cato", "Wrenfield");
const BLANKS: Person = (9_000_004, "Dorit ", "Lindqvale ");
const TWO_NUMBERS: [Person; 2] = [(9_000_005, "Edda", "Marchbanks"), (9_000_006, "Edda", "Marchbanks")];

const fn part(
    title: &'static str,
    activity: &'static str,
    days_before: i64,
    person: Option<Person>,
    change: fn(&mut Value, &World),
) -> Part {
    Part { title, activity, award_type: "1", days_before, person, change }
}

const PARTS: &[Part] = &[
    part("Single-cell RNA sequencing of papilloma", "R01", 3, Some(FIRST_LAB), |_, _| {}),
    part("Pilot study of a known laboratory", "R21", 800, Some(KNOWN_LAB), |_, _| {}),
    part("Proteomics of the aging lens by mass spectrometry", "R01", 4, Some(KNOWN_LAB), |_, _| {}),
    Part {
        award_type: "3",
        ..part("Supplement of the aging lens", "R01", 2, Some(KNOWN_LAB), |award, _| award["project_num"] = json!("3R01EY300003-01S1"))
    },
    Part { award_type: "2", ..part("Renewal of a known laboratory", "R01", 5, Some(KNOWN_LAB), |_, _| {}) },
    Part { award_type: "5", ..part("Continuation of a known laboratory", "R01", 6, Some(KNOWN_LAB), |_, _| {}) },
    part("Intramural imaging of everything", "ZIA", 4, Some(OTHER), |award, _| {
        award["funding_mechanism"] = json!("INTRAMURAL RESEARCH");
        award["award_amount"] = json!(4_200_000);
        award["organization"]["org_city"] = Value::Null;
        award["organization"]["org_state"] = Value::Null;
        award["organization_type"] = json!({"name": "Unavailable", "code": "10", "is_other": true});
    }),
    part("A company's microscope", "R44", 4, Some(OTHER), |award, _| {
        award["funding_mechanism"] = json!("SBIR/STTR");
        award["organization_type"] = json!({"name": "Domestic For-Profits", "code": "36", "is_other": false});
    }),
    part("Training in flow cytometry", "T32", 4, Some(OTHER), |_, _| {}),
    part("A fellowship in microscopy", "F31", 4, Some(OTHER), |_, _| {}),
    part("A career in electrophysiology with patch clamp", "K99", 4, Some(OTHER), |_, _| {}),
    part("Confocal microscope for the imaging core", "S10", 2, Some(OTHER), |award, _| award["award_amount"] = json!(600_000)),
    part("New innovator of tissue engineering with hydrogels", "DP2", 5, Some(OTHER), |_, _| {}),
    part("An award without an organisation", "R01", 4, Some(OTHER), |award, _| award["organization"] = Value::Null),
    part("An award without investigators, on zebrafish", "R01", 4, None, |_, _| {}),
    part("An award without an amount", "R01", 4, Some(OTHER), |award, _| award["award_amount"] = Value::Null),
    part("Crystallography with blanks in a name", "R01", 3, Some(BLANKS), |_, _| {}),
    part("Cryo-EM of an amended amount", "R01", 3, Some(OTHER), |award, world| {
        let amount = if is_day(world, AMENDED_DAY) { 650_000 } else { 400_000 };
        award["award_amount"] = json!(amount);
    }),
    part("Freezers of an award that vanishes", "R01", 3, Some(OTHER), |_, _| {}),
    part("Freezers of an award that comes back", "R01", 3, Some(OTHER), |_, _| {}),
    part("Chromatography noticed late", "R01", 2, Some(OTHER), |award, world| {
        award["budget_start"] = json!(midnight(day_before(world.first_today, 60)));
        award["budget_end"] = json!(midnight(after(world.first_today, 304)));
    }),
    part("Bioreactors without a notice of award", "R01", 2, Some(OTHER), |award, world| {
        award["award_notice_date"] = Value::Null;
        award["budget_start"] = json!(midnight(day_before(world.first_today, 1)));
    }),
    part("Earlier project under another number", "R01", 900, Some(TWO_NUMBERS[0]), |_, _| {}),
    part("MRI scanner under a second number", "R01", 3, Some(TWO_NUMBERS[1]), |_, _| {}),
];

/// The titles of the awards of rounds, in turn.
const ROUNDS: [&str; 4] = [
    "Confocal microscopy of living neurons",
    "Flow cytometry of T cells in the skin",
    "Mass spectrometry of the aging lens",
    "Whole genome sequencing of rare retinal disease",
];
/// The first application number of these awards, counted from that of the others.
const ROUNDS_FROM: u64 = 10_000;

/// Returns the awards that the database shows today, oldest number first.
pub(super) fn records(world: &World) -> Vec<Value> {
    let parts = PARTS.iter().enumerate().filter(|(_, part)| is_shown(world, part.title));
    let of_rounds = world.rounds.iter().enumerate().filter_map(|(at, round)| {
        let days_before = i64::from((world.first_today - round.day).get_days());
        let part = Part { days_before, ..part(ROUNDS[at % ROUNDS.len()], "R01", 0, Some(OTHER), |_, _| {}) };
        record(world, ROUNDS_FROM + at as u64, &part)
    });
    parts.filter_map(|(index, part)| record(world, index as u64, part)).chain(of_rounds).collect()
}

/// Whether a day after the start has come.
fn is_day(world: &World, days: u64) -> bool {
    world.today >= after(world.first_today, days)
}

fn is_shown(world: &World, title: &str) -> bool {
    match title {
        "Freezers of an award that vanishes" => !is_day(world, GONE_DAY),
        "Freezers of an award that comes back" => !is_day(world, GONE_DAY) || is_day(world, BACK_DAY),
        _ => true,
    }
}

fn midnight(day: Date) -> String {
    format!("{day}T00:00:00")
}

fn record(world: &World, index: u64, part: &Part) -> Option<Value> {
    let added = day_before(world.first_today, part.days_before);
    if added > world.today {
        return None;
    }
    let appl_id = FIRST_NUMBER + index;
    let (notice, start) = (day_before(added, 1), after(added, 14).first_of_month());
    let core = format!("{}EY3{index:05}", part.activity);
    let people: Vec<Value> = part.person.iter().map(|person| investigator(*person)).collect();
    let contact = part.person.map(|(_, given, family)| format!("{}, {} ", family.to_uppercase(), given.to_uppercase()));
    let mut award = json!({
        "appl_id": appl_id,
        "subproject_id": null,
        "fiscal_year": notice.year() + i16::from(notice.month() >= 10),
        "project_num": format!("{}{core}-01", part.award_type),
        "core_project_num": core,
        "project_title": part.title,
        "award_type": part.award_type,
        "activity_code": part.activity,
        "award_amount": 300_000 + 1_000 * index,
        "award_notice_date": midnight(notice),
        "date_added": format!("{added}T09:30:00"),
        "budget_start": midnight(start),
        "budget_end": midnight(day_before(after(start, 366).first_of_month(), 1)),
        "project_start_date": midnight(start),
        "project_end_date": midnight(after(start, 1_460)),
        "organization": {
            "org_name": "RIVERTON UNIVERSITY", "org_city": "RIVERTON", "org_state": "OH", "org_country": "UNITED STATES",
            "dept_type": "OPHTHALMOLOGY", "primary_uei": "RIVERTON0001", "org_zipcode": "450010001",
        },
        "organization_type": {"name": "SCHOOLS OF MEDICINE", "code": "10", "is_other": false},
        "principal_investigators": people,
        "contact_pi_name": contact,
        "agency_ic_admin": {"code": "EY", "abbreviation": "NEI", "name": "National Eye Institute"},
        "pref_terms": "Data;Goals;Research",
        "abstract_text": "PROJECT SUMMARY\nThis project has a part to play.",
        "funding_mechanism": "Non-SBIR/STTR",
        "project_detail_url": format!("https://reporter.nih.gov/project-details/{appl_id}"),
        "is_active": true,
        "is_new": part.award_type == "1",
    });
    (part.change)(&mut award, world);
    Some(award)
}

fn investigator((profile_id, given, family): Person) -> Value {
    json!({
        "profile_id": profile_id, "first_name": given, "middle_name": "", "last_name": family, "is_contact_pi": true,
        "full_name": format!("{given}  {family}"), "title": "PROFESSOR ",
    })
}

//! One award of one fiscal year.

use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::days::{Daily, DayPosition, after, business_day_after};
use simulated_world::json::joined;
use simulated_world::random::Random;
use simulated_world::words::BRAND_HEADS;
use simulated_world::world::{World, day_before};

use crate::science::{FIRMS, GIVEN_NAMES, INSTITUTIONS, Institution, SUBJECTS, Subject};

/// How many awards are added.
pub(super) const DAILY: Daily = Daily { kind: 100, a_day: 6 };

/// Investigators who occur repeatedly; all others occur once.
const INVESTIGATORS: u64 = 48;
const ACTIVITIES: &[&str] =
    &["R01", "R01", "R01", "R01", "R21", "R21", "R35", "K99", "R00", "DP2", "S10", "R43", "R44", "F31", "T32", "U01", "ZIA", "P30"];

/// Builds the award's record with all its fields.
pub(super) fn record(world: &World, place: DayPosition) -> Value {
    let (random, number) = (DAILY.random(world, place), place.number());
    let is_new = random.once_in(1, 3);
    let person = if is_new { INVESTIGATORS + number } else { random.below(2, INVESTIGATORS) };
    let subject = &SUBJECTS[(person % SUBJECTS.len() as u64) as usize];
    let activity = random.pick(3, ACTIVITIES);
    let kind = Kind::of(activity);
    // A few records have almost no content.
    let is_sparse = random.once_in(4, 50);
    let award_type = match activity {
        "R00" => "4N",
        _ if is_new => "1",
        _ => random.pick(5, &["1", "2", "3", "5", "5", "5"]),
    };
    let (letters, abbreviation, institute) = subject.institute;
    let serial = format!("{:06}", if award_type == "1" { number } else { 200_000 + person % 700_000 });
    let support_year = if award_type == "1" { 1 } else { 2 + random.below(6, 4) };
    let suffix = match award_type {
        "3" => "S1",
        "1" | "2" if random.once_in(7, 4) => "A1",
        _ => "",
    };
    let support = if suffix.is_empty() { format!("{support_year:02}") } else { format!("{support_year:02}{suffix}") };
    let core = format!("{activity}{letters}{serial}");
    let subproject = random.once_in(8, 25).then(|| 5_000 + number % 1_000);
    let direct = kind.dollars_min + random.below(9, kind.dollars_spread);
    let indirect = if kind.is_intramural { 0 } else { direct * (25 + random.below(10, 40)) / 100 };
    // Rarely an amount is amended in place.
    let amended = random.once_in(11, 7).then(|| business_day_after(place.day, 4 + random.below(12, 30))).filter(|day| *day <= world.today);
    let direct = if amended.is_some() { direct + direct / 10 } else { direct };
    let amount = (!is_sparse).then_some(direct + indirect);
    let notice = day_before(place.day, 2 + random.below(13, 9) as i64);
    let budget_start = after(notice, 3 + random.below(14, 40)).first_of_month();
    let budget_end = day_before(after(budget_start, 366).first_of_month(), 1);
    let project_start = if support_year == 1 { budget_start } else { day_before(budget_start, 365 * (support_year as i64 - 1)) };
    let project_end = after(budget_end, 365 * (1 + random.below(15, 4)));
    let added = format!("{}T{:02}:{:02}:{:02}", place.day, 8 + random.below(16, 12), random.below(17, 60), random.below(18, 60));
    let people = people(random, person, is_sparse);
    let contact =
        if is_sparse { Value::Null } else { json!(format!("{}, {} ", family(person).to_uppercase(), given(person).to_uppercase())) };
    let appl_id = 11_000_000 + number;
    let opportunity = random.once_in(19, 3).then(|| format!("PAR-{}-{:03}", notice.year() % 100, 100 + random.below(20, 300)));
    let title = title(random, subject, kind);
    let terms = terms(random, subject);
    let fiscal_year = notice.year() + i16::from(notice.month() >= 10);
    let record = json!({
        "appl_id": appl_id,
        "subproject_id": subproject,
        "fiscal_year": fiscal_year,
        "project_num": format!("{award_type}{core}-{support}"),
        "project_serial_num": format!("{letters}{serial}"),
        "core_project_num": core,
        "project_num_split": {
            "appl_type_code": award_type, "activity_code": activity, "ic_code": letters, "serial_num": serial,
            "support_year": format!("{support_year:02}"), "full_support_year": support, "suffix_code": suffix,
        },
        "organization": if is_sparse { Value::Null } else { organization(random, person, kind, institute) },
        "organization_type": organization_type(person, kind),
        "award_type": award_type,
        "activity_code": activity,
        "award_amount": amount,
        "direct_cost_amt": amount.map(|_| direct),
        "indirect_cost_amt": amount.map(|_| indirect),
        "is_active": project_end >= world.today,
        "is_new": award_type == "1",
        "principal_investigators": people,
        "contact_pi_name": contact,
        "program_officers": [],
        "agency_code": "NIH",
        "agency_ic_admin": if is_sparse { Value::Null } else { json!({"code": letters, "abbreviation": abbreviation, "name": institute}) },
        "agency_ic_fundings": [{
            "fy": fiscal_year, "code": letters, "name": institute, "abbreviation": abbreviation, "total_cost": amount,
            "direct_cost_ic": direct, "indirect_cost_ic": indirect,
        }],
    });
    let more = json!({
        "award_notice_date": (!random.once_in(21, 30)).then(|| midnight(notice)),
        "budget_start": midnight(budget_start),
        "budget_end": midnight(budget_end),
        "project_start_date": midnight(project_start),
        "project_end_date": midnight(project_end),
        "date_added": added,
        "project_title": title,
        "pref_terms": terms.join(";"),
        "terms": terms.iter().map(|term| format!("<{term}>")).collect::<String>(),
        "spending_categories": null,
        "spending_categories_desc": random.once_in(22, 2).then(|| format!("{}; Clinical Research; Biotechnology", subject.terms[0])),
        "abstract_text": summary(random, subject),
        "phr_text": null,
        "opportunity_number": opportunity,
        "full_foa": opportunity.is_none().then(|| format!("PA-{}-301", notice.year() % 100)),
        "funding_mechanism": kind.mechanism,
        "mechanism_code_dc": if kind.is_intramural { "IM" } else { "RP" },
        "cfda_code": "93.121",
        "project_detail_url": (!random.once_in(23, 10)).then(|| format!("https://reporter.nih.gov/project-details/{appl_id}")),
    });
    joined(record, more)
}

/// The meaning of an activity code.
#[derive(Clone, Copy)]
struct Kind {
    is_intramural: bool,
    is_business: bool,
    is_instrument: bool,
    mechanism: &'static str,
    /// Direct costs in dollars: the minimum, and the range above it.
    dollars_min: u64,
    dollars_spread: u64,
}

impl Kind {
    fn of(activity: &str) -> Self {
        let (is_intramural, is_business, is_instrument) = (activity == "ZIA", matches!(activity, "R43" | "R44"), activity == "S10");
        let mechanism = match activity {
            "ZIA" => "INTRAMURAL RESEARCH",
            "R43" | "R44" => "SBIR/STTR",
            _ => "Non-SBIR/STTR",
        };
        let (dollars_min, dollars_spread) = match activity {
            "ZIA" => (900_000, 3_000_000),
            "F31" => (38_000, 12_000),
            "S10" => (400_000, 1_500_000),
            "P30" => (1_200_000, 2_000_000),
            "R21" | "K99" => (120_000, 90_000),
            _ => (220_000, 420_000),
        };
        Self { is_intramural, is_business, is_instrument, mechanism, dollars_min, dollars_spread }
    }
}

/// Dates come with a meaningless time of day.
fn midnight(day: Date) -> String {
    format!("{day}T00:00:00")
}

fn family(person: u64) -> &'static str {
    BRAND_HEADS[(person * 7 % BRAND_HEADS.len() as u64) as usize]
}

fn given(person: u64) -> &'static str {
    GIVEN_NAMES[(person * 5 % GIVEN_NAMES.len() as u64) as usize]
}

/// Returns the investigators, in no order. Without a middle name a full name has two blanks.
fn people(random: Random, person: u64, is_sparse: bool) -> Value {
    if is_sparse {
        return json!([]);
    }
    let one = |person: u64, is_contact: bool| {
        let (first, last) = (given(person), family(person));
        json!({
            "profile_id": 7_000_000 + person, "first_name": first, "middle_name": "", "last_name": last, "is_contact_pi": is_contact,
            "full_name": format!("{first}  {last}"), "title": if is_contact { "ASSOCIATE PROFESSOR " } else { "" },
        })
    };
    let contact = one(person, true);
    if random.once_in(30, 6) { json!([one(person % INVESTIGATORS + 1, false), contact]) } else { json!([contact]) }
}

fn organization(random: Random, person: u64, kind: Kind, institute: &str) -> Value {
    let (name, city, state, postal_code, uei) = if kind.is_intramural {
        (institute.to_uppercase(), None, None, None, None)
    } else if kind.is_business {
        let (name, city, state) = FIRMS[(person % FIRMS.len() as u64) as usize];
        (name.to_uppercase(), Some(city.to_owned()), Some(state), None, None)
    } else {
        let home = home(person);
        let city = if random.once_in(31, 3) { home.city.to_owned() } else { home.city.to_uppercase() };
        (home.name.to_uppercase(), Some(city), Some(home.state.0), Some(format!("{}0001", home.postal_code)), Some(home.uei))
    };
    let is_school = home(person).kind == "SCHOOLS OF MEDICINE" && !kind.is_intramural && !kind.is_business;
    let departments = ["INTERNAL MEDICINE/MEDICINE", "PHARMACOLOGY", "NEUROSCIENCES", "PEDIATRICS", "NONE"];
    json!({
        "org_name": name, "city": null, "country": null, "org_city": city, "org_country": "UNITED STATES", "org_state": state,
        "org_state_name": null, "dept_type": is_school.then(|| random.pick(32, &departments)), "fips_country_code": null, "org_duns": null,
        "org_ueis": uei.map(|uei| json!([uei])), "primary_duns": null, "primary_uei": uei, "org_fips": "US", "org_ipf_code": null,
        "org_zipcode": postal_code, "external_org_id": null,
    })
}

fn home(person: u64) -> &'static Institution {
    &INSTITUTIONS[(person * 3 % INSTITUTIONS.len() as u64) as usize]
}

fn organization_type(person: u64, kind: Kind) -> Value {
    let name = match kind {
        Kind { is_intramural: true, .. } => "Unavailable",
        Kind { is_business: true, .. } => "Domestic For-Profits",
        _ => home(person).kind,
    };
    json!({"name": name, "code": "10", "is_other": kind.is_intramural})
}

fn title(random: Random, subject: &Subject, kind: Kind) -> String {
    let (theme, condition) = (random.pick(40, subject.themes), random.pick(41, subject.conditions));
    if kind.is_instrument {
        return format!("High-resolution {} for {theme}", random.pick(42, &["Confocal Microscope", "Mass Spectrometer", "Flow Cytometer"]));
    }
    match random.below(43, 4) {
        0 => format!("Mechanisms of {theme}"),
        1 => format!("Targeting {theme}: toward treatment of {condition}"),
        2 => format!("{} in {condition}", random.pick(44, &["Biomarkers", "Precision prevention", "Health disparities"])),
        _ => format!("Understanding {theme} by {}", random.pick(45, &["single-cell sequencing", "in vivo imaging", "a mouse model"])),
    }
}

fn terms(random: Random, subject: &Subject) -> Vec<&'static str> {
    let mut terms: Vec<&str> =
        subject.terms.iter().enumerate().filter(|(at, _)| *at == 0 || !random.once_in(50 + *at as u64, 4)).map(|(_, term)| *term).collect();
    terms.extend(["Data", "Goals", random.pick(60, &["Mus", "Clinical Trials", "cell culture", "Testing"])]);
    terms
}

fn summary(random: Random, subject: &Subject) -> Option<String> {
    // Line breaks appear as such, or as a backslash and a letter.
    let line = if random.once_in(61, 6) { "\\n" } else { "\n" };
    let (theme, condition, term) = (random.pick(40, subject.themes), random.pick(41, subject.conditions), subject.terms[0].to_lowercase());
    (!random.once_in(62, 20)).then(|| {
        format!(
            "PROJECT SUMMARY{line}{condition} remains a leading problem of {term}. This project studies {theme}.{line}Aim 1 defines the \
             mechanism in patient samples. Aim 2 tests it in a mouse model. Aim 3 asks which patients with {condition} benefit."
        )
    })
}

//! The rows of a file.

use jiff::ToSpan;
use jiff::civil::Date;
use simulated_world::random::Random;
use simulated_world::words::{BRAND_HEADS, CITIES};
use simulated_world::world::World;

use crate::words::FIRM_TAILS;

/// How many rows there are besides the cast.
const ROWS: u64 = 240;
/// The kind of random numbers.
const KIND: u64 = 131;
/// Days after the first day from which the agency OFAC has its new code.
const RENAMED_DAY: i64 = 8;
const FIRST_NAMES: &[&str] = &["ADA", "BORIS", "CARLA", "DIMITRI", "EDDA", "FELIX", "GRETA", "HUGO"];
const LAST_NAMES: &[&str] = &["QUILL", "RAVENNA", "STROM", "TALBERT", "UMBRIA", "VANTREE", "WIDDOW", "YARROW"];
const AGENCIES: &[&str] = &["HHS", "EPA", "DLA", "ARMY", "NAVY", "OPM", "TREAS-OFAC", "GSA"];
const TYPES: &[&str] =
    &["Ineligible (Proceedings Completed)", "Ineligible (Proceedings Pending)", "Prohibition/Restriction", "Voluntary Exclusion"];

/// A party of the cast. Tests and the demo name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedExclusion {
    /// Classification.
    pub classification: &'static str,
    /// Name of an entity, or first, middle and last name of a person, separated by `|`.
    pub name: &'static str,
    /// UEI. Those of the recipients of simulated awards are real ones of these awards.
    pub uei: &'static str,
    /// CAGE code.
    pub cage: &'static str,
    /// The excluding agency.
    pub agency: &'static str,
    /// The active date, in days after the first day; `None` for a blank one.
    pub active: Option<i64>,
    /// The comment, with its quotation marks as the file has them.
    pub comments: &'static str,
    /// Other names.
    pub also: &'static [&'static str],
    /// The days on which it is on the list, after the first day: from this one, until before that one.
    pub listed: (i64, i64),
}

const fn party(
    classification: &'static str,
    name: &'static str,
    uei: &'static str,
    cage: &'static str,
    agency: &'static str,
    active: i64,
) -> SimulatedExclusion {
    SimulatedExclusion {
        classification,
        name,
        uei,
        cage,
        agency,
        active: Some(active),
        comments: "",
        also: &[],
        listed: (i64::MIN, i64::MAX),
    }
}

const FIRM: &str = "Firm";
const ENTITY: &str = "Special Entity Designation";
const PERSON: &str = "Individual";

/// The cast.
pub const EXCLUSIONS: &[SimulatedExclusion] = &[
    // A contractor with awards from before and after.
    SimulatedExclusion {
        also: &["SPARROWPOINT GROUP", "SPARROW ANALYTICS"],
        ..party(FIRM, "SPARROWPOINT ANALYTICS, LLC", "SPPA4G7J3N91", "7SPP1", "EPA", -120)
    },
    // One party under three agencies; of one row the active date is blank.
    party(FIRM, "TIMBERWARD FORESTRY, LLC", "TMWF6K3R9D88", "", "EPA", -300),
    party(FIRM, "TIMBERWARD FORESTRY LLC", "TMWF6K3R9D88", "", "USDA-FS", -200),
    SimulatedExclusion { active: None, ..party(FIRM, "TIMBERWARD FORESTRY, LLC", "TMWF6K3R9D88", "", "HHS", 0) },
    // Excluded while readers watch.
    SimulatedExclusion { listed: (2, i64::MAX), ..party(FIRM, "MESAWELL ENGINEERING, PLLC", "MSWE3H9V8P34", "", "DLA", 2) },
    // Lifted.
    SimulatedExclusion { listed: (i64::MIN, 3), ..party(FIRM, "OTTERBROOK LABORATORIES, INC.", "OTBL8E4T6M77", "", "HHS", -60) },
    // Not excluded itself.
    SimulatedExclusion {
        comments: "The entity is not itself excluded. Section 889 prohibits the purchase of certain equipment.",
        ..party(ENTITY, "LAKEHOUSE FACILITIES GROUP LLC", "LKFG5B7Z2W56", "", "GSA", -400)
    },
    // The CAGE code of the first is that of the second, which has no UEI.
    SimulatedExclusion {
        comments: "The entity is not itself excluded.",
        ..party(ENTITY, "GRANITEWORKS CONSTRUCTION CO", "GRWC2D9X7F89", "5GRW2", "GSA", -30)
    },
    party(FIRM, "GRANITEWORKS CONSTRUCTION", "", "5GRW2", "ARMY", -90),
    // The name of a recipient, without a UEI.
    party(FIRM, "CEDARLINE LOGISTICS INC", "", "", "NAVY", -50),
    // The parent of recipients.
    party(FIRM, "NORTHFORD GROUP PLC", "NRTF4G8W3X52", "", "ARMY", -80),
    party(PERSON, "ANSELM|B|FARROW", "", "", "HHS", -500),
    party(PERSON, "ANSELM||FARROW", "", "", "OPM", -70),
    party("Vessel", "SEA LANTERN", "", "", "TREAS-OFAC", -1_000),
    SimulatedExclusion { active: None, ..party("", "NAMELESS CLASS PARTNERS", "", "", "", 0) },
    // Comments that break the quoting of their row.
    SimulatedExclusion {
        comments: "\"\"The contractor has been debarred, 40 USC 3141-3148.  The contractor, or any firm, corporation, partnership, or \
            association, is ineligible. Please disregard \"\"Effect, above, which is incorrect.\"\"",
        also: &["KELSO FERRIS"],
        ..party(ENTITY, "KELSO PAVING, LLC", "KLSP1A2B3C44", "", "GAO", -700)
    },
    SimulatedExclusion {
        comments: "\"\"Vardo, Chih\"\" does business as Vardo.\"\"",
        ..party(ENTITY, "VARDO ENGINEERING", "", "", "DLA", -800)
    },
    // Letters that were converted wrongly.
    party(ENTITY, "NAFTIRELLA S\u{c3}\u{bf}RL", "", "", "DOS-TFS", -2_000),
];

/// All rows of a day, some of them twice, in an order of the day.
pub(super) fn all(world: &World, offset: i64) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for (at, party) in EXCLUSIONS.iter().enumerate() {
        if (party.listed.0..party.listed.1).contains(&offset) {
            rows.push(of_cast(world, party, at, offset));
        }
    }
    rows.extend((0..ROWS).map(|index| other(world, index, offset)));
    rows.push(rows[0].clone());
    let first = usize::try_from(offset.rem_euclid(7)).unwrap_or(0) * 11;
    let middle = first.min(rows.len());
    rows.rotate_left(middle);
    rows
}

/// The fields of a row in the order of the columns.
#[derive(Default)]
struct Row {
    classification: String,
    name: String,
    person: [String; 5],
    address: [String; 5],
    uei: String,
    program: &'static str,
    agency: String,
    kind: &'static str,
    comments: String,
    active: String,
    termination: String,
    also: String,
    cage: String,
    npi: String,
    created: String,
}

impl Row {
    fn text(&self) -> String {
        let [prefix, first, middle, last, suffix] = &self.person;
        let [street, city, state, country, zip] = &self.address;
        let fields: [&str; 31] = [
            &self.classification,
            &self.name,
            prefix,
            first,
            middle,
            last,
            suffix,
            street,
            "",
            "",
            "",
            city,
            state,
            country,
            zip,
            "N",
            "",
            &self.uei,
            self.program,
            &self.agency,
            "",
            self.kind,
            &self.comments,
            &self.active,
            &self.termination,
            "",
            &self.also,
            "",
            &self.cage,
            &self.npi,
            &self.created,
        ];
        fields.map(|field| format!("\"{field}\"")).join(",")
    }
}

fn printed(day: Date) -> String {
    day.strftime("%m/%d/%Y").to_string()
}

/// A cross-reference. The names are in an order of the day.
fn also(names: &[&str], offset: i64) -> String {
    if names.is_empty() {
        return String::new();
    }
    let mut names = names.to_vec();
    let first = usize::try_from(offset.rem_euclid(names.len() as i64)).unwrap_or(0);
    names.rotate_left(first);
    if offset % 2 == 0 { format!("(also {})", names.join(", ")) } else { format!("(also  {} )", names.join(" ,  ")) }
}

fn agency(name: &str, offset: i64) -> String {
    if name == "TREAS-OFAC" && offset >= RENAMED_DAY { "OFAC".to_owned() } else { name.to_owned() }
}

fn of_cast(world: &World, party: &SimulatedExclusion, at: usize, offset: i64) -> String {
    let day = |days: i64| world.first_today.saturating_add(days.days());
    let entered = party.active.unwrap_or(-10 - at as i64);
    let mut row = Row {
        classification: party.classification.to_owned(),
        uei: party.uei.to_owned(),
        program: "Reciprocal",
        agency: agency(party.agency, offset),
        kind: TYPES[0],
        comments: party.comments.to_owned(),
        active: party.active.map(|active| printed(day(active))).unwrap_or_default(),
        termination: if at.is_multiple_of(3) { printed(day(entered + 3_650)) } else { "Indefinite".to_owned() },
        also: also(party.also, offset),
        cage: party.cage.to_owned(),
        npi: if at == 1 { "1234567893.0".to_owned() } else { String::new() },
        created: if offset % 2 == 0 { day(entered).to_string() } else { printed(day(entered)) },
        ..Row::default()
    };
    if party.classification == PERSON {
        let parts: Vec<&str> = party.name.split('|').collect();
        for (to, part) in row.person[1..4].iter_mut().zip(parts) {
            part.clone_into(to);
        }
        row.address = ["12 HIDDEN ROAD", "DAYTON", "OH", "USA", "45402"].map(str::to_owned);
    } else {
        party.name.clone_into(&mut row.name);
    }
    row.text()
}

/// A row besides the cast.
fn other(world: &World, index: u64, offset: i64) -> String {
    let random = Random::new(world.seed, KIND, index);
    let active = world.first_today.saturating_sub((30 + i64::try_from(random.below(1, 5_000)).unwrap_or(0)).days());
    let (city, state, _) = *random.choose(2, CITIES);
    let mut row = Row {
        classification: [FIRM, FIRM, ENTITY, PERSON, PERSON, PERSON][random.below(3, 6) as usize].to_owned(),
        program: random.pick(4, &["Reciprocal", "NonProcurement", "Procurement"]),
        agency: agency(random.pick(5, AGENCIES), offset),
        kind: random.pick(6, TYPES),
        comments: if random.once_in(7, 3) { "PII data has been masked from view".to_owned() } else { String::new() },
        active: if random.once_in(8, 4) { String::new() } else { printed(active) },
        termination: if random.once_in(9, 2) { "Indefinite".to_owned() } else { printed(world.first_today.saturating_add(900.days())) },
        created: if offset % 2 == 0 { active.to_string() } else { printed(active) },
        ..Row::default()
    };
    row.address =
        [format!("{} MARKET ST", 10 + index), city.to_uppercase(), state.to_owned(), "USA".to_owned(), format!("{:05}", 10_000 + index)];
    if row.classification == PERSON {
        let middle = char::from(b'A' + u8::try_from(index % 26).unwrap_or(0));
        row.person = ["", random.pick(10, FIRST_NAMES), "", random.pick(11, LAST_NAMES), ""].map(str::to_owned);
        row.person[2] = format!("{middle}{index}");
    } else {
        let name = format!("{} {} {}", random.pick(10, BRAND_HEADS), index, random.pick(11, FIRM_TAILS));
        row.name = name.trim().to_uppercase();
        if random.once_in(12, 2) {
            row.uei = format!("ZZ{:010}", 1_000 + index);
        }
    }
    row.text()
}

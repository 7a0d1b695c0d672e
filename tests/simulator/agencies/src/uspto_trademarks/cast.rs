//! Marks to which something happens on certain days. Tests and the demo name them.

use jiff::civil::Date;
use simulated_world::world::{World, compact, day_before};

use super::records::CaseFile;

/// A mark of the cast, as it begins: in the yearly set, or filed on a later day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastMark {
    /// The serial number of the mark.
    pub serial: u64,
    /// The words of the mark.
    pub mark: &'static str,
    /// The owner of the mark.
    pub owner: &'static str,
    /// The international classes of the mark.
    pub classes: &'static [&'static str],
    /// The status with which it begins.
    pub status: u16,
    /// What happens: days after the first day, and the event.
    pub events: &'static [(i64, Event)],
}

/// What happens to a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is filed; until then it is not in the register.
    Filed,
    /// A full record has another status.
    Status(u16),
    /// A record has only another status.
    OnlyStatus(u16),
    /// New owners are recorded, besides the earlier ones.
    Sold,
    /// Its last class is dropped.
    ClassDropped,
    /// Its record has 26,000 events.
    ManyEvents,
    /// Its record is in the file twice.
    Twice,
}

const fn mark(
    serial: u64,
    mark: &'static str,
    owner: &'static str,
    classes: &'static [&'static str],
    status: u16,
    events: &'static [(i64, Event)],
) -> CastMark {
    CastMark { serial, mark, owner, classes, status, events }
}

/// The cast.
pub const CAST: &[CastMark] = &[
    mark(97_000_101, "VELTRAXON", "VELTRAXON SYSTEMS INC.", &["009"], 700, &[(-9, Event::OnlyStatus(702))]),
    mark(97_000_102, "MORVANDA", "MORVANDA FOODS LLC", &["030"], 688, &[(-8, Event::Status(602)), (3, Event::Status(616))]),
    mark(97_000_103, "KESTROLIN", "KESTROLIN WORKS, INC.", &["025"], 700, &[(-5, Event::Sold)]),
    mark(97_000_104, "OLDBROOKE", "OLDBROOKE MILLS CO.", &["025"], 602, &[]),
    mark(97_000_105, "NIMBARRO", "NIMBARRO LLC", &["042"], 970, &[]),
    mark(97_000_106, "ZELLIGO", "ZELLIGO GMBH", &["009"], 999, &[]),
    mark(97_000_107, "TARVANTIS", "TARVANTIS BIO, INC.", &["005"], 686, &[(-4, Event::OnlyStatus(700))]),
    mark(97_000_108, "QUORRELLA", "QUORRELLA, INC.", &["009", "042"], 700, &[(-3, Event::ClassDropped)]),
    mark(97_000_109, "PLUMDALE & SONS", "PLUMDALE & SONS LLC", &["043", "041"], 680, &[(-6, Event::ManyEvents)]),
    mark(97_000_110, "", "SILENT DESIGN CO.", &["021"], 700, &[]),
    mark(97_000_111, "GUILDMARK", "GUILD OF TESTERS", &["A", "200"], 700, &[(-2, Event::Twice)]),
    mark(97_000_112, "BRANVOLE", "BRANVOLE S.A.", &["033"], 700, &[(4, Event::OnlyStatus(710))]),
    mark(98_900_101, "VELTRAXEN", "NORTHFORK LABS LLC", &["009"], 630, &[(1, Event::Filed)]),
    mark(98_900_102, "TRU ONE", "TRUONE HOLDINGS LLC", &["009"], 630, &[(-7, Event::Filed)]),
];

/// The mark whose status each round moves, its statuses in turn, and how many days before the start it was filed.
const OF_ROUNDS: CastMark = mark(98_900_201, "OXBERRIN", "OXBERRIN LLC", &["009"], 630, &[]);
const STATUSES_OF_ROUNDS: [u16; 4] = [630, 638, 641, 680];
const FILED_DAYS_BEFORE: i64 = 10;

/// The trademark of rounds as a round leaves it, the rounds being counted from 0; `None` if there is no such round.
pub(super) fn of_round(world: &World, number: usize) -> Option<CaseFile> {
    let round = world.rounds.get(number)?;
    let filed = compact(day_before(world.first_today, FILED_DAYS_BEFORE));
    let status = STATUSES_OF_ROUNDS[number % STATUSES_OF_ROUNDS.len()];
    Some(CaseFile { status, filed, ..begun(&OF_ROUNDS, round.day) })
}

/// The cast of the yearly set.
pub(super) fn of_set(cut: Date) -> Vec<CaseFile> {
    let is_in_set = |mark: &&CastMark| !mark.events.iter().any(|(_, event)| *event == Event::Filed);
    CAST.iter().filter(is_in_set).map(|mark| begun(mark, cut)).collect()
}

/// The cast in the file of a day, each with its action key.
pub(super) fn of_day(day: Date, offset: i64) -> Vec<(&'static str, CaseFile)> {
    let mut out = Vec::new();
    for mark in CAST {
        for (at, event) in mark.events.iter().filter(|(at, _)| *at == offset) {
            let mut file = begun(mark, day);
            // What happened before is still so.
            for (_, event) in mark.events.iter().filter(|(before, _)| before <= at) {
                apply(&mut file, *event);
            }
            if matches!(event, Event::OnlyStatus(_)) {
                (file.mark, file.owners, file.classes) = (String::new(), Vec::new(), Vec::new());
                (file.filed, file.drawing, file.pseudo_mark) = (String::new(), 0, String::new());
            }
            if *event == Event::Twice {
                out.push(("IB", CaseFile { status: 701, ..file.clone() }));
            }
            out.push((if *event == Event::Filed { "NA" } else { "TX" }, file));
        }
    }
    out
}

fn apply(file: &mut CaseFile, event: Event) {
    match event {
        Event::Status(status) | Event::OnlyStatus(status) => file.status = status,
        Event::Sold => {
            file.owners =
                vec![(1, 42, "SECOND OWNER LLC".to_owned()), (1, 43, "KESTROLIN HOLDINGS PLC".to_owned()), file.owners[0].clone()];
        }
        Event::ClassDropped => drop(file.classes.pop()),
        Event::ManyEvents => file.events = 26_000,
        Event::Filed | Event::Twice => {}
    }
}

/// A mark as it begins, with the peculiarities of real records.
fn begun(mark: &CastMark, day: Date) -> CaseFile {
    let is_registered = (700..800).contains(&mark.status);
    let texts = || mark.classes.iter().map(|code| (*code).to_owned());
    let mut classes: Vec<(Vec<String>, &'static str, String)> = match mark.mark {
        // Two codes in one classification, and one of them again in another.
        "PLUMDALE & SONS" => vec![(texts().collect(), "6", String::new()), (vec![mark.classes[1].to_owned()], "8", String::new())],
        _ => texts().map(|code| (vec![code], "6", String::new())).collect(),
    };
    if mark.mark == "OLDBROOKE" {
        classes[0].2 = "19200900".to_owned();
    }
    CaseFile {
        serial: mark.serial,
        registration: if is_registered { mark.serial - 90_000_000 } else { 0 },
        mark: mark.mark.to_owned(),
        drawing: if mark.mark.is_empty() { 2 } else { 4 },
        status: mark.status,
        filed: if mark.serial > 98_000_000 { compact(day) } else { "20230310".to_owned() },
        transaction: compact(day),
        classes,
        class_date: if mark.mark == "KESTROLIN" { "20051".to_owned() } else { compact(day) },
        owners: vec![(1, if is_registered { 30 } else { 10 }, mark.owner.to_owned())],
        goods: "Goods of the cast".to_owned(),
        pseudo_mark: if mark.mark == "TRU ONE" { "TRUE ONE".to_owned() } else { String::new() },
        events: 1,
    }
}

//! The case files of a file, as text.

use jiff::ToSpan;
use jiff::civil::Date;
use simulated_world::random::Random;
use simulated_world::words::CITIES;
use simulated_world::world::{World, brand, compact};

use crate::words::{FIRM_TAILS, PRODUCTS};

/// How many days before the first day have a file.
pub(super) const DAYS_BEFORE: i64 = 20;

/// How many applications are filed on a day. At the office they are more than a thousand. With as many, marks would be most of the simulated records.
const FILED_PER_DAY: u64 = 30;
/// A mark changes every this many days.
const CHANGED_EVERY: u64 = 37;
/// The most changed marks in the file of a day.
const CHANGED_PER_DAY: usize = 20;
/// How many marks the yearly set has, besides the cast.
const IN_SET: u64 = 120;
/// The statuses of an application over time; of every fourth, those of the second list.
const STATUSES: [&[u16]; 2] = [&[630, 641, 680, 686, 688, 700], &[630, 641, 645, 602]];
const CLASSES: &[u16] = &[3, 5, 9, 9, 9, 12, 14, 16, 18, 20, 21, 25, 25, 28, 29, 30, 32, 33, 35, 35, 36, 38, 41, 41, 42, 42, 43, 44];

/// A case file, from which its text is made.
#[derive(Clone, Debug, Default)]
pub(super) struct CaseFile {
    pub(super) serial: u64,
    pub(super) registration: u64,
    pub(super) mark: String,
    pub(super) drawing: u8,
    pub(super) status: u16,
    pub(super) filed: String,
    pub(super) transaction: String,
    /// Classifications: codes, status, first use.
    pub(super) classes: Vec<(Vec<String>, &'static str, String)>,
    /// The date of the status of every classification.
    pub(super) class_date: String,
    /// Owners: entry number, stage, name.
    pub(super) owners: Vec<(u8, u8, String)>,
    pub(super) goods: String,
    pub(super) pseudo_mark: String,
    pub(super) events: usize,
}

/// The last day of the yearly set.
pub(super) fn cut(world: &World) -> Date {
    Date::new(world.first_today.year() - 1, 12, 31).unwrap_or(world.first_today)
}

/// The invented records of a part of the yearly set, each with its action key.
pub(super) fn of_part(world: &World, part: u64, parts: u64) -> Vec<(&'static str, String)> {
    let cut = cut(world);
    let own = (0..IN_SET).filter(|index| index % parts == part - 1).map(|index| invented(world, index, 97_100_000 + index, cut, 5));
    own.map(|file| ("TX", text(&file))).collect()
}

/// The invented records of the file of a day, each with its action key.
pub(super) fn of_day(world: &World, day: Date, offset: i64) -> Vec<(&'static str, String)> {
    let number = u64::try_from(offset + DAYS_BEFORE).unwrap_or(0);
    let filed = (0..FILED_PER_DAY).map(|index| number * FILED_PER_DAY + index);
    let mut out: Vec<(&'static str, String)> =
        filed.map(|index| ("NA", text(&invented(world, index, 98_000_000 + index, day, 0)))).collect();
    let older = 0..number.saturating_sub(2) * FILED_PER_DAY;
    let changed = older.filter(|index| (index + number).is_multiple_of(CHANGED_EVERY)).take(CHANGED_PER_DAY);
    out.extend(changed.map(|index| {
        let age = number - index / FILED_PER_DAY;
        ("TX", text(&invented(world, index, 98_000_000 + index, day, 1 + age / CHANGED_EVERY)))
    }));
    out
}

/// An invented mark. `step` is how far its case has come.
fn invented(world: &World, index: u64, serial: u64, day: Date, step: u64) -> CaseFile {
    let random = Random::new(world.seed, 8_400, serial);
    let mut mark = brand(random, 1).to_uppercase();
    if random.once_in(3, 3) {
        mark = format!("{mark} {}", random.pick(4, PRODUCTS).to_uppercase());
    }
    let statuses = STATUSES[usize::from(index.is_multiple_of(4))];
    let status = statuses[usize::try_from(step).unwrap_or(0).min(statuses.len() - 1)];
    let class = |tag: u64| format!("{:03}", random.choose(tag, CLASSES));
    let mut classes = vec![(vec![class(5)], "6", String::new())];
    if random.once_in(6, 4) {
        classes.push((vec![class(7)], "6", String::new()));
    }
    let is_design = random.once_in(8, 25);
    CaseFile {
        serial,
        registration: if status == 700 { 7_000_000 + index } else { 0 },
        mark: if is_design { String::new() } else { mark },
        drawing: if is_design { 2 } else { 4 },
        status,
        filed: compact(day.saturating_sub(i64::try_from(step * 40).unwrap_or(0).days())),
        transaction: compact(day),
        class_date: compact(day),
        classes,
        owners: vec![(1, 10, format!("{} {}", brand(random, 9).to_uppercase(), random.pick(11, FIRM_TAILS)))],
        goods: format!("{}; {}", random.pick(12, PRODUCTS), random.pick(13, PRODUCTS)),
        ..CaseFile::default()
    }
}

/// Writes a case file. Without owners and classes it has only the status.
pub(super) fn text(file: &CaseFile) -> String {
    let is_sparse = file.owners.is_empty() && file.classes.is_empty();
    let mut out = format!(
        "<case-file><serial-number>{:08}</serial-number><registration-number>{:07}</registration-number><transaction-date>{}</transaction-date>\
         <case-file-header>",
        file.serial, file.registration, file.transaction
    );
    let mut element = |name: &str, value: &str| {
        if !value.is_empty() {
            out.push_str(&format!("<{name}>{}</{name}>", escaped(value)));
        }
    };
    element("filing-date", &file.filed);
    element("status-code", &format!("{:03}", file.status));
    element("status-date", &file.transaction);
    element("mark-identification", &file.mark);
    element("mark-drawing-code", &file.drawing.to_string());
    for flag in ["trademark-in", "service-mark-in", "cancellation-pending-in", "standard-characters-claimed-in"] {
        element(flag, if flag == "trademark-in" { "T" } else { "F" });
    }
    out.push_str("</case-file-header>");
    if is_sparse {
        return out + "<correspondent></correspondent></case-file>";
    }
    out.push_str("<case-file-statements>");
    for (codes, ..) in &file.classes {
        for code in codes {
            let code = if code.len() == 1 { format!("00{code}") } else { code.clone() };
            out.push_str(&format!(
                "<case-file-statement><type-code>GS{code}1</type-code><text>{}</text></case-file-statement>",
                escaped(&file.goods)
            ));
        }
    }
    if !file.pseudo_mark.is_empty() {
        out.push_str(&format!("<case-file-statement><type-code>PM0001</type-code><text>{}</text></case-file-statement>", file.pseudo_mark));
    }
    out.push_str("</case-file-statements><case-file-event-statements>");
    for number in 1..=file.events.max(1) {
        out.push_str(&format!(
            "<case-file-event-statement><code>CHAN</code><type>I</type><description-text>NOTICE &amp; CHANGE</description-text>\
             <date>{}</date><number>{number}</number></case-file-event-statement>",
            file.transaction
        ));
    }
    out.push_str("</case-file-event-statements><foreign-applications/><classifications>");
    for (codes, status, first_use) in &file.classes {
        out.push_str("<classification>");
        for code in codes {
            out.push_str(&format!("<international-code>{code}</international-code>"));
        }
        out.push_str(&format!("<us-code>021</us-code><status-code>{status}</status-code><status-date>{}</status-date>", file.class_date));
        if !first_use.is_empty() {
            out.push_str(&format!("<first-use-anywhere-date>{first_use}</first-use-anywhere-date>"));
        }
        out.push_str("<primary-code>021</primary-code></classification>");
    }
    out.push_str("</classifications><correspondent/><case-file-owners>");
    for (entry, stage, name) in &file.owners {
        let city = CITIES[file.serial as usize % CITIES.len()].0;
        out.push_str(&format!(
            "<case-file-owner><entry-number>{entry}</entry-number><party-type>{stage}</party-type><party-name>{}</party-name><city>{}</city>\
             <name-change-explanation/></case-file-owner>",
            escaped(name),
            escaped(city)
        ));
    }
    out + "</case-file-owners></case-file>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

//! Vehicle recalls in two streams: a table with one row per campaign, and zipped flat files with one row per campaign, model and year.

use std::io::{Cursor, Write};

use jiff::civil::Date;
use simulated_world::answer::Answer;
use simulated_world::expected_changes::{ExpectedChange, Kind};
use simulated_world::faults::{Fault, Plan};
use simulated_world::json::Json;
use simulated_world::query::Query;
use simulated_world::random::{Random, mix};
use simulated_world::world::{Feed, World, compact, day_before};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::words::{DEFECTS, MAKERS, SEAT_DEFECTS, SEAT_MAKERS, SEATS};

const LIMIT_DEFAULT: u64 = 1_000;
const LIMIT_MAX: u64 = 50_000;

#[derive(Clone, Copy, PartialEq)]
enum Type {
    Vehicle,
    Equipment,
    Tire,
    ChildSeat,
}

struct Campaign {
    number: String,
    date: Date,
    kind: Type,
    manufacturer: &'static str,
    makes: Vec<&'static str>,
    models: Vec<&'static str>,
    years: Vec<i16>,
    component: String,
    subject: String,
    defect: String,
    consequence: String,
    action: String,
    units: u64,
    do_not_drive: bool,
    park_outside: bool,
    /// The placeholder for a missing date in the flat file.
    dateless: bool,
}

/// Whether the letters to the owners have been sent.
pub(crate) fn is_closed(world: &World, index: u64) -> bool {
    let old = world.date(Feed::Nhtsa, index) < day_before(world.first_today, 90);
    world.fate(Feed::Nhtsa, index).closed.is_some() || (old && !world.is_born(Feed::Nhtsa, index))
}

fn campaign(world: &World, index: u64) -> Campaign {
    let (random, date) = (world.random(Feed::Nhtsa, index), world.date(Feed::Nhtsa, index));
    let edits = world.fate(Feed::Nhtsa, index).edits;
    let kind = match random.below(0, 100) {
        0..10 => Type::ChildSeat,
        10..17 => Type::Equipment,
        17..20 => Type::Tire,
        _ => Type::Vehicle,
    };
    let letter = match kind {
        Type::Vehicle => 'V',
        Type::Equipment => 'E',
        Type::Tire => 'T',
        Type::ChildSeat => 'C',
    };
    let defects = if kind == Type::ChildSeat { SEAT_DEFECTS } else { DEFECTS };
    let (component, defect, consequence, action) = defects[random.below(1, defects.len() as u64) as usize];
    let (manufacturer, makes, models) = if kind == Type::ChildSeat {
        let (name, make) = SEAT_MAKERS[random.below(2, SEAT_MAKERS.len() as u64) as usize];
        (name, vec![make], vec![random.pick(3, SEATS)])
    } else {
        let (name, makes, models) = MAKERS[random.below(2, MAKERS.len() as u64) as usize];
        let makes = if random.once_in(4, 3) { makes.to_vec() } else { makes[..1].to_vec() };
        (name, makes, models[..1 + random.below(3, models.len() as u64) as usize].to_vec())
    };
    let first = date.year() - random.below(5, 6) as i16;
    let years = if kind == Type::Vehicle { (first..=date.year()).collect() } else { vec![9999] };
    let mut out = Campaign {
        // Serial numbers have steps of a thousand, as in 26V400000, and use the numbers between only when there are very many.
        number: format!("{:02}{letter}{:06}", date.year() % 100, index % 1_000 * 1_000 + index / 1_000),
        date,
        kind,
        manufacturer,
        component: component.to_owned(),
        subject: format!("{} May Fail", component.split(':').next().unwrap_or(component)),
        defect: format!("{manufacturer} is recalling certain {}-{} {} {}. {defect}", first, date.year(), makes[0], models.join(", ")),
        consequence: if edits == 0 {
            consequence.to_owned()
        } else {
            format!("{consequence} {} incidents are known as of amendment {edits}.", 3 + random.below(60 + u64::from(edits), 90))
        },
        action: String::new(),
        makes,
        models,
        years,
        units: 50 + random.below(6, 400_000) + u64::from(edits) * 17,
        do_not_drive: random.once_in(7, 40),
        park_outside: random.once_in(8, 30),
        dateless: random.once_in(9, 3_000),
    };
    let letters = date.checked_add(jiff::Span::new().days(55)).unwrap_or(date);
    let when = if is_closed(world, index) { "were mailed" } else { "are expected to be mailed" };
    out.action = format!(
        "{action} Owner notification letters {when} {}. Owners may contact customer service at 1-800-555-{:04}.",
        letters.strftime("%B %-d, %Y"),
        random.below(10, 10_000)
    );
    if date.year() < 2013 {
        for text in [&mut out.subject, &mut out.defect, &mut out.consequence, &mut out.action] {
            *text = text.to_uppercase();
        }
    }
    out
}

/// Returns the expected entries of one campaign: in the table's stream and, unless it was withdrawn there, in the flat file.
pub(crate) fn entries(world: &World, index: u64) -> Vec<ExpectedChange> {
    let campaign = campaign(world, index);
    let plain = !campaign.manufacturer.contains(',');
    let link = format!("https://www.nhtsa.gov/recalls?nhtsaId={}", campaign.number);
    let table = ExpectedChange {
        n: 0,
        upstream: "nhtsa",
        stream: "nhtsa.socrata",
        key: format!("nhtsa.socrata/{}", campaign.number),
        kind: Kind::Current,
        agency: "NHTSA",
        number: campaign.number.clone(),
        lang: "en",
        // Whether this includes the manufacturer is decided by the mapping.
        title: None,
        brand: plain.then(|| campaign.manufacturer.to_owned()),
        hazard: Some(campaign.consequence.clone()),
        date: Some(campaign.date.to_string()),
        url: Some(link),
        remedy: Some(campaign.action.clone()),
        visible: true,
        at_ms: 0,
    };
    let mut out = vec![table.clone()];
    // Each of the two files publishes all campaigns of its years, so each is a separate stream.
    let stream = if campaign.date.year() < 2010 { "nhtsa.flat_pre_2010" } else { "nhtsa.flat" };
    if !world.fate(Feed::Nhtsa, index).withdrawn {
        out.push(ExpectedChange {
            stream,
            key: format!("{stream}/{}", campaign.number),
            title: Some(format!("{}: {}", campaign.manufacturer, campaign.component)),
            brand: (campaign.makes.len() == 1).then(|| campaign.makes[0].to_owned()),
            date: Some(if campaign.dateless { String::new() } else { campaign.date.to_string() }),
            ..table
        });
    }
    out
}

/// Parses the date comparisons of a `$where` into inclusive days.
fn bounds(text: &str) -> Option<(Option<Date>, Option<Date>)> {
    const FIELD: &str = "report_received_date";
    let (mut from, mut to) = (None, None);
    let mut rest = text;
    while let Some(at) = rest.find(FIELD) {
        rest = rest[at + FIELD.len()..].trim_start();
        let operator: String = rest.chars().take_while(|c| !matches!(c, '\'' | ' ')).collect();
        let mut quoted = rest.split('\'');
        let value = quoted.nth(1)?;
        let day: Date = value.get(..10)?.parse().ok()?;
        match operator.to_ascii_lowercase().as_str() {
            ">=" => from = Some(day),
            ">" => from = Some(if value.contains("T00:00:00") { day.tomorrow().ok()? } else { day }),
            "<=" => to = Some(day),
            // Dates have no time of day, so "before the start of a day" means the day before.
            "<" => to = Some(if value.len() == 10 || value.contains("T00:00:00") { day.yesterday().ok()? } else { day }),
            "=" => (from, to) = (Some(day), Some(day)),
            "between" => (from, to) = (Some(day), Some(quoted.nth(1)?.get(..10)?.parse().ok()?)),
            _ => return None,
        }
    }
    (from.is_some() || to.is_some()).then_some((from, to))
}

/// Handles `/resource/6axg-epim.json`.
#[must_use]
pub fn socrata(world: &World, query: &Query, plan: &Plan) -> Answer {
    let refuse = |code: &str, message: &str| {
        let body = format!("{{\"message\":\"{message}\",\"errorCode\":\"{code}\",\"data\":{{}}}}");
        Answer { status: 400, ..Answer::json(body.into_bytes()) }
    };
    for (name, _) in query.pairs() {
        if !matches!(name, "$where" | "$order" | "$limit" | "$offset" | "$$app_token" | "nhtsa_id") {
            return refuse("query.compiler.malformed", &format!("Unrecognized arguments [{}]", name.replace(['"', '\\'], "")));
        }
    }
    let whole = |name: &str, default: u64| query.get(name).map_or(Some(default), |value| value.parse().ok());
    let (Some(limit), Some(offset)) = (whole("$limit", LIMIT_DEFAULT), whole("$offset", 0)) else {
        return refuse("query.execution.paramTypeMismatch", "limit and offset are numbers");
    };
    let (limit, duplicated) = (limit.min(LIMIT_MAX), plan.has(Fault::DuplicatedPage));
    let (from, to) = match query.get("$where").map(bounds) {
        None => (None, None),
        Some(Some(bounds)) => bounds,
        Some(None) => return refuse("query.compiler.malformed", "Could not parse SoQL query"),
    };
    let descending = query.get("$order").is_some_and(|order| order.to_ascii_lowercase().contains("report_received_date desc"));
    let window = if plan.has(Fault::Outage) { 0..0 } else { world.window(Feed::Nhtsa, from, to) };
    let indexes: Vec<u64> = if let Some(id) = query.get("nhtsa_id") {
        window.filter(|&index| campaign(world, index).number == id).collect()
    } else {
        let offset = if duplicated { offset.saturating_sub(limit) } else { offset };
        let offset = if plan.has(Fault::ShiftedPage) { offset.saturating_sub(1) } else { offset };
        let total = window.end - window.start;
        let places = offset.min(total)..offset.saturating_add(limit).min(total);
        places.map(|place| if descending { window.end - 1 - place } else { window.start + place }).collect()
    };
    let mut json = Json::new(&plan.schema, indexes.len() * 1_300);
    json.array(|json| {
        for index in indexes {
            if !plan.vanishes(world.random(Feed::Nhtsa, index)) {
                row(json, world, index);
            }
        }
    });
    Answer::json(json.finish())
}

/// Writes one row of the table without empty fields.
fn row(json: &mut Json<'_>, world: &World, index: u64) {
    let (random, campaign) = (world.random(Feed::Nhtsa, index), campaign(world, index));
    json.object(|json| {
        json.text("report_received_date", &format!("{}T00:00:00.000", campaign.date));
        json.text("nhtsa_id", &campaign.number);
        json.nested("recall_link", |json| {
            json.text("url", &format!("https://www.nhtsa.gov/recalls?nhtsaId={}", campaign.number));
            json.text("description", "Go to Recall");
        });
        json.text("manufacturer", campaign.manufacturer);
        json.text("subject", &campaign.subject);
        json.text("component", campaign.component.split(':').next().unwrap_or(""));
        if random.once_in(20, 3) {
            json.text("mfr_campaign_number", &format!("{}{:02}", (b'A' + random.below(21, 26) as u8) as char, random.below(22, 100)));
        }
        json.text(
            "recall_type",
            match campaign.kind {
                Type::Vehicle => "Vehicle",
                Type::Equipment => "Equipment",
                Type::Tire => "Tire",
                Type::ChildSeat => "Child Seat",
            },
        );
        json.text("potentially_affected", &campaign.units.to_string());
        json.text("defect_summary", &campaign.defect);
        json.text("consequence_summary", &campaign.consequence);
        json.text("corrective_action", &campaign.action);
        json.text("fire_risk_when_parked", if campaign.park_outside { "Yes" } else { "No" });
        json.text("do_not_drive", if campaign.do_not_drive { "Yes" } else { "No" });
        if random.once_in(23, 2) {
            json.text("completion_rate", &format!("{}.{}", random.below(24, 99), random.below(25, 9)));
        }
    });
}

/// Handles `/odi/ffdd/rcl/FLAT_RCL_{POST|PRE}_2010.zip`.
#[must_use]
pub fn flat(world: &World, post: bool, plan: &Plan, build: u64) -> Answer {
    let name = if post { "FLAT_RCL_POST_2010.txt" } else { "FLAT_RCL_PRE_2010.txt" };
    let split = world.first_on(Feed::Nhtsa, jiff::civil::date(2010, 1, 1));
    let range = if post { split..world.len(Feed::Nhtsa) } else { 0..split };
    let range = if plan.has(Fault::Outage) { 0..0 } else { range };
    // Each build has its own order and row numbers: the bytes differ even if no campaign changed.
    let mut rows = Rows { out: Vec::new(), number: mix(world.seed ^ build) % 100_000 + 1, plan, today: world.today };
    let mut late = Vec::new();
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated).compression_level(Some(1));
    let zipped = || -> zip::result::ZipResult<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file(name, options)?;
        for index in range {
            let random = world.random(Feed::Nhtsa, index);
            if world.fate(Feed::Nhtsa, index).withdrawn || plan.vanishes(random) {
                continue;
            }
            let campaign = campaign(world, index);
            rows.campaign(&campaign, random, false);
            // The rows of a campaign are not always adjacent.
            if random.once_in(30, 7) {
                late.push(index);
            }
            if rows.out.len() > 1 << 16 {
                zip.write_all(&rows.out)?;
                rows.out.clear();
            }
        }
        for index in late {
            rows.campaign(&campaign(world, index), world.random(Feed::Nhtsa, index), true);
        }
        zip.write_all(&rows.out)?;
        Ok(zip.finish()?.into_inner())
    };
    match zipped() {
        Ok(body) => Answer {
            status: 200,
            content_type: Some("application/x-zip-compressed"),
            etag: Some(format!("\"{:x}-{build:x}\"", world.seed)),
            body,
            ..Answer::default()
        },
        Err(error) => Answer::html(500, &error.to_string()),
    }
}

struct Rows<'a> {
    out: Vec<u8>,
    number: u64,
    plan: &'a Plan,
    today: Date,
}

impl Rows<'_> {
    /// Returns the rows of a campaign. If its rows are not adjacent: first those of the first model, later the others.
    fn campaign(&mut self, campaign: &Campaign, random: Random, late: bool) {
        let apart = random.once_in(30, 7);
        for (place, model) in campaign.models.iter().enumerate() {
            if apart && late != (place > 0) {
                continue;
            }
            for make in &campaign.makes {
                for year in &campaign.years {
                    self.number += 1;
                    let start = self.out.len();
                    self.row(campaign, random, make, model, *year);
                    if random.once_in(31 + place as u64, 200) {
                        self.out.extend_from_within(start..);
                    }
                }
            }
        }
    }

    fn row(&mut self, campaign: &Campaign, random: Random, make: &str, model: &str, year: i16) {
        let date = compact(campaign.date);
        let created = if self.plan.has(Fault::Touch) { compact(self.today) } else { date.clone() };
        let (mut received, mut created) = if campaign.dateless { (String::new(), String::new()) } else { (date, created) };
        // A file with columns cannot lack a field; the date gets another format or becomes empty.
        if self.plan.schema.missing.is_some() {
            (received, created) = (String::new(), String::new());
        } else if self.plan.schema.retyped.is_some() {
            received = campaign.date.strftime("%d-%b-%y").to_string();
            created.clone_from(&received);
        }
        let owners = match random.below(40, 400) {
            0 => "19010101".to_owned(),
            1 => "11111111".to_owned(),
            2..200 => String::new(),
            _ => compact(campaign.date.checked_add(jiff::Span::new().days(55)).unwrap_or(campaign.date)),
        };
        let begun = match random.below(41, 200) {
            0 => "19000101".to_owned(),
            1 => "00220301".to_owned(),
            2..60 => String::new(),
            _ => compact(day_before(campaign.date, 900)),
        };
        let ended = if random.once_in(42, 300) { "30190101".to_owned() } else { compact(day_before(campaign.date, 30)) };
        let kind = match campaign.kind {
            Type::Vehicle => "V",
            Type::Equipment => "E",
            Type::Tire => "T",
            Type::ChildSeat => "C",
        };
        let (units, number, year) = (campaign.units.to_string(), self.number.to_string(), year.to_string());
        let spaced = if random.once_in(43, 5) { format!(" {}", campaign.defect.replacen(". ", ".  ", 1)) } else { campaign.defect.clone() };
        let action = format!("{}  ", campaign.action);
        let notes = if random.once_in(44, 6) {
            " Also, customers may contact the agency's safety hotline or go to <A HREF=HTTP://WWW.SAFERCAR.GOV>HTTP://WWW.SAFERCAR.GOV</A>."
        } else {
            ""
        };
        let component_id = format!("{:09}{:09}{:09}", random.below(45, 1_000_000), random.below(46, 10_000_000), random.below(47, 5_000));
        let part = format!("A{:010}", random.below(48, 10_000_000_000));
        let part_name = campaign.component.rsplit(':').next().unwrap_or("");
        let yes = |flag: bool| if flag { "Yes" } else { "No" };
        let fields: [&str; 29] = [
            &number,
            &campaign.number,
            make,
            model,
            &year,
            "",
            &campaign.component,
            campaign.manufacturer,
            &begun,
            &ended,
            kind,
            &units,
            &owners,
            random.pick(49, &["MFR", "MFR", "ODI", "OVSC"]),
            campaign.manufacturer,
            &received,
            &created,
            "",
            "",
            &spaced,
            &campaign.consequence,
            &action,
            notes,
            &component_id,
            part_name,
            part_name,
            &part,
            yes(campaign.do_not_drive),
            yes(campaign.park_outside),
        ];
        for (place, field) in fields.into_iter().enumerate() {
            if place > 0 {
                self.out.push(b'\t');
            }
            self.out.extend_from_slice(field.as_bytes());
        }
        self.out.extend_from_slice(b"\r\n");
    }
}

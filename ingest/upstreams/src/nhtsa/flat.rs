//! The flat files: one row for each campaign, make, model, year and component, tab separated, without a header.
//!
//! Rows are grouped by campaign while they are unpacked; a campaign's texts are held once. The result does not depend on the
//! order of rows, on rows that come twice, or on `RECORD_ID`, which is new in every build. Where rows of a campaign disagree:
//! of texts the longest, then the smallest, is taken; of dates the earliest; of units the largest (`POTAFF` repeats the
//! campaign's total and is never summed); a flag is set if one row sets it; the title has the first component in order.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Cursor, Read};

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;

use super::{FLAT_PRE_2010, SITE, campaign, manufacturers_number};
use crate::{Answer, Door, Observation, Page, Reject, Request, UpstreamError, drift, json, text};

const ORIGIN: &str = "https://static.nhtsa.gov";
/// The most that is unpacked; the larger file is about 290 MB.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;
/// The longest row by the dictionary is 17,108 bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Columns were appended in 2007, 2008, 2020 and 2025: old copies have fewer than today's 29, later ones may have more.
const COLUMNS: std::ops::RangeInclusive<usize> = 21..=40;
/// More rows than this that cannot be read are no matter of single rows.
const REJECTS_MAX: usize = 10_000;
const VEHICLES_MAX: usize = 2_000;
const MAKES_MAX: usize = 5;
const PRODUCTS_CHARS_MAX: usize = 2_000;
/// The agency's first campaigns; an earlier date is one of the file's sentinels.
const YEAR_MIN: i16 = 1966;

pub(super) fn request(file: &str, may_be_missing: bool) -> Request {
    Request {
        origin: ORIGIN.to_owned(),
        path: format!("/odi/ffdd/rcl/{file}"),
        body: None,
        headers: Vec::new(),
        accepts_statuses: if may_be_missing { &[404] } else { &[] },
        media_types: if may_be_missing {
            // A missing file is told in XML or HTML.
            &[
                "application/zip",
                "application/x-zip-compressed",
                "application/x-zip",
                "application/octet-stream",
                "binary/octet-stream",
                "text/plain",
                "text/tab-separated-values",
                "application/xml",
                "text/xml",
                "text/html",
                "application/json",
            ]
        } else {
            &[
                "application/zip",
                "application/x-zip-compressed",
                "application/x-zip",
                "application/octet-stream",
                "binary/octet-stream",
                "text/plain",
                "text/tab-separated-values",
            ]
        },
        conditional: true,
        wall: None,
    }
}

pub(super) fn map(door: &Door, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    if answer.status == 404 && door.name == FLAT_PRE_2010 {
        let warnings = vec!["the file is not there any more (404): taken as empty".to_owned()];
        return Ok(Page { warnings, ..Page::default() });
    }
    let mut file = File { door: door.name, today, campaigns: BTreeMap::new(), rejects: Vec::new(), lines: 0, counts: Counts::default() };
    if answer.body.starts_with(b"PK") {
        unpack(&mut file, &answer.body)?;
    } else if is_rows(&answer.body) {
        file.read(&mut BufReader::new(&*answer.body).take(UNPACKED_BYTES_MAX))?;
    } else {
        return Err(json::later(door.name, "neither a zip nor its rows"));
    }
    file.finish(door)
}

/// Whether a body is the file itself: it begins with a number and a tab.
fn is_rows(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && body.get(digits) == Some(&b'\t')
}

fn unpack(file: &mut File, body: &[u8]) -> Result<(), UpstreamError> {
    let door = file.door;
    let broken = |error: zip::result::ZipError| json::later(door, format!("not a whole zip: {error}"));
    let mut archive = zip::ZipArchive::new(Cursor::new(body)).map_err(broken)?;
    let (mut budget, mut read_any) = (UNPACKED_BYTES_MAX, false);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(broken)?;
        if !entry.is_file() || !entry.name_raw().to_ascii_lowercase().ends_with(b".txt") {
            continue;
        }
        let mut reader = BufReader::with_capacity(1 << 18, entry).take(budget);
        file.read(&mut reader)?;
        budget = reader.limit();
        read_any = true;
    }
    if read_any { Ok(()) } else { Err(json::later(door, "the zip holds no .txt")) }
}

/// How many rows lack what every row has.
#[derive(Default)]
struct Counts {
    columns: usize,
    campaign: usize,
    make: usize,
    manufacturer: usize,
    date: usize,
    defect: usize,
}

struct File {
    door: &'static str,
    today: Date,
    campaigns: BTreeMap<String, Campaign>,
    rejects: Vec<Reject>,
    lines: usize,
    counts: Counts,
}

impl File {
    /// Reads rows to the end. Only `\n` ends one, as other line ends of Unicode occur in texts.
    fn read<R: BufRead>(&mut self, reader: &mut io::Take<R>) -> Result<(), UpstreamError> {
        let door = self.door;
        let broken = |error: io::Error| json::later(door, format!("not a whole file: {error}"));
        let mut line = Vec::with_capacity(8 << 10);
        loop {
            line.clear();
            // One byte more than a row may have shows that it is too long, without holding all of it.
            let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line).map_err(broken)?;
            if reader.limit() == 0 {
                let reason = format!("more than {UNPACKED_BYTES_MAX} bytes when unpacked");
                return Err(UpstreamError::Stop { door, field: "body".to_owned(), reason });
            }
            if read == 0 {
                return Ok(());
            }
            if line.last() != Some(&b'\n') && line.len() > LINE_BYTES_MAX {
                reader.by_ref().skip_until(b'\n').map_err(broken)?;
                self.lines += 1;
                self.reject(format!("line {}", self.lines), format!("the row is longer than {LINE_BYTES_MAX} bytes"), &line)?;
                continue;
            }
            while matches!(line.last(), Some(b'\n' | b'\r')) {
                line.pop();
            }
            let bytes = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
            if !bytes.is_empty() {
                self.lines += 1;
                self.row(bytes)?;
            }
        }
    }

    fn row(&mut self, bytes: &[u8]) -> Result<(), UpstreamError> {
        let line = String::from_utf8_lossy(bytes);
        let mut columns = [""; *COLUMNS.end()];
        let mut count = 0;
        for value in line.split('\t') {
            if let Some(column) = columns.get_mut(count) {
                *column = value;
            }
            count += 1;
        }
        // By position in the agency's dictionary, which counts from 1.
        let column = |number: usize| columns.get(number - 1).copied().unwrap_or_default();
        let raw = column(2).trim();
        if !COLUMNS.contains(&count) {
            self.counts.columns += 1;
            let reference = if raw.is_empty() { format!("line {}", self.lines) } else { text::cut(text::clean(raw), 100) };
            return self.reject(reference, format!("{count} columns instead of {} to {}", COLUMNS.start(), COLUMNS.end()), bytes);
        }
        let Some(number) = campaign(raw) else {
            self.counts.campaign += 1;
            return self.reject(format!("line {}", self.lines), "CAMPNO (column 2) is no campaign number".to_owned(), bytes);
        };
        let today = self.today;
        let day = |value: &str| text::date(value).filter(|day| day.year() >= YEAR_MIN && text::is_plausible(*day, today));
        let (received, created) = (day(column(16)), day(column(17)));
        self.counts.make += usize::from(column(3).trim().is_empty());
        self.counts.manufacturer += usize::from(column(8).trim().is_empty());
        self.counts.date += usize::from(received.is_none() && created.is_none());
        self.counts.defect += usize::from(column(20).trim().is_empty());
        if !self.campaigns.contains_key(&number) {
            self.campaigns.insert(number.clone(), Campaign::default());
        }
        let Some(campaign) = self.campaigns.get_mut(&number) else { return Ok(()) };
        campaign.vehicle(column(3), column(4), column(5));
        if let Some(alias) = manufacturers_number(column(6)) {
            campaign.aliases.insert(alias);
        }
        add(&mut campaign.components, column(7));
        longest(&mut campaign.manufacturer, column(8));
        let kind = column(11).trim();
        if !kind.is_empty() && (campaign.kind.is_empty() || kind < &*campaign.kind) {
            kind.clone_into(&mut campaign.kind);
        }
        campaign.units = campaign.units.max(column(12).trim().parse().ok());
        campaign.received = earliest(campaign.received, received);
        campaign.created = earliest(campaign.created, created);
        longest(&mut campaign.defect, column(20));
        longest(&mut campaign.consequence, column(21));
        longest(&mut campaign.remedy, column(22));
        campaign.do_not_drive |= is_yes(column(28));
        campaign.park_outside |= is_yes(column(29));
        Ok(())
    }

    fn reject(&mut self, reference: String, reason: String, raw: &[u8]) -> Result<(), UpstreamError> {
        self.rejects.push(Reject { reference, reason, raw: raw.to_vec() });
        if self.rejects.len() > REJECTS_MAX {
            self.check()?;
            let reason = format!("{} of {} rows cannot be read", self.rejects.len(), self.lines);
            return Err(UpstreamError::Stop { door: self.door, field: "row".to_owned(), reason });
        }
        Ok(())
    }

    /// Whether columns have moved.
    fn check(&self) -> Result<(), UpstreamError> {
        let Counts { columns, campaign, make, manufacturer, date, defect } = self.counts;
        for (field, missing) in [
            ("columns", columns),
            ("CAMPNO", campaign),
            ("MAKETXT", make),
            ("MFGNAME", manufacturer),
            ("RCDATE", date),
            ("DESC_DEFECT", defect),
        ] {
            drift::share(self.door, field, missing, self.lines)?;
        }
        Ok(())
    }

    fn finish(self, door: &Door) -> Result<Page, UpstreamError> {
        self.check()?;
        let mut warnings = Vec::new();
        if self.lines == 0 {
            warnings.push("the file holds no rows".to_owned());
        }
        let cut = self.campaigns.values().filter(|campaign| campaign.vehicles_cut).count();
        if cut > 0 {
            warnings.push(format!("{cut} campaigns have more than {VEHICLES_MAX} vehicles, of which the first in order were kept"));
        }
        let observations = self.campaigns.into_iter().map(|(number, campaign)| campaign.observe(door, number)).collect();
        Ok(Page { observations, rejects: self.rejects, next: None, through: None, warnings })
    }
}

#[derive(Default)]
struct Campaign {
    makes: BTreeSet<String>,
    models: BTreeSet<String>,
    vehicles: BTreeSet<String>,
    vehicles_cut: bool,
    aliases: BTreeSet<String>,
    components: BTreeSet<String>,
    manufacturer: String,
    kind: String,
    units: Option<u64>,
    received: Option<Date>,
    created: Option<Date>,
    defect: String,
    consequence: String,
    remedy: String,
    do_not_drive: bool,
    park_outside: bool,
}

impl Campaign {
    fn vehicle(&mut self, make: &str, model: &str, year: &str) {
        add(&mut self.makes, make);
        let year = Some(year.trim()).filter(|year| *year != "9999").unwrap_or_default();
        let vehicle = text::clean(&format!("{make} {model} {year}"));
        if self.vehicles.contains(&vehicle) || vehicle.is_empty() {
            return;
        }
        add(&mut self.models, &format!("{make} {model}"));
        self.vehicles.insert(vehicle);
        if self.vehicles.len() > VEHICLES_MAX {
            self.vehicles.pop_last();
            self.vehicles_cut = true;
        }
        if self.models.len() > VEHICLES_MAX {
            self.models.pop_last();
        }
    }

    fn observe(self, door: &Door, number: String) -> Observation {
        let manufacturer = text::clean(&self.manufacturer);
        let component = self.components.first().cloned().unwrap_or_default();
        let title = match (manufacturer.is_empty(), component.is_empty()) {
            (false, false) => format!("{manufacturer}: {component}"),
            _ => format!("{manufacturer}{component}"),
        };
        let product_type = product_type(&self.kind, &number);
        // A vehicle's make and model say no more than that it is one; those of other things say what they are.
        let models = Some(self.models).filter(|_| product_type != "Vehicle").unwrap_or_default();
        let products = text::join_distinct(models.into_iter().chain(self.components), "; ");
        let mut brand = self.makes.iter().take(MAKES_MAX).cloned().collect::<Vec<_>>().join(" / ");
        if self.makes.len() > MAKES_MAX {
            brand.push_str(" / …");
        }
        let hazard = if self.consequence.is_empty() { &self.defect } else { &self.consequence };
        let data = RecallFact {
            stream: door.name.to_owned(),
            agency: "NHTSA".to_owned(),
            aliases: self.aliases.into_iter().collect(),
            lang: "en".to_owned(),
            title,
            brand,
            hazard: text::clean(hazard),
            date: self.received.or(self.created).map(|day| day.to_string()).unwrap_or_default(),
            url: format!("{SITE}/recalls?nhtsaId={number}"),
            remedy: text::clean(&self.remedy),
            product_type: product_type.to_owned(),
            products: text::cut(products, PRODUCTS_CHARS_MAX),
            units: self.units.map(|units| units.to_string()).unwrap_or_default(),
            do_not_drive: self.do_not_drive,
            park_outside: self.park_outside,
            vehicles: self.vehicles.into_iter().collect(),
            number: number.clone(),
            ..RecallFact::default()
        };
        Observation { key: format!("{}/{number}", door.name), data: FactData::Recall(Box::new(data)), replaces: Vec::new() }
    }
}

/// The kind in the words of the agency's other door. Where the column is empty the letter in the number says it.
fn product_type<'a>(kind: &'a str, number: &str) -> &'a str {
    let letter = if kind.is_empty() { number.get(2..3).unwrap_or_default() } else { kind };
    match letter {
        "V" => "Vehicle",
        "E" => "Equipment",
        "T" => "Tire",
        "C" => "Child Seat",
        _ => kind,
    }
}

fn add(set: &mut BTreeSet<String>, value: &str) {
    let value = text::clean(value);
    if !value.is_empty() {
        set.insert(value);
    }
}

/// Keeps the longer of two texts, or the smaller of two as long. Blank ones do not count.
fn longest(kept: &mut String, value: &str) {
    let value = value.trim();
    if value.len() > kept.len() || (value.len() == kept.len() && value < kept.as_str()) {
        value.clone_into(kept);
    }
}

fn earliest(kept: Option<Date>, day: Option<Date>) -> Option<Date> {
    match (kept, day) {
        (Some(kept), Some(day)) => Some(kept.min(day)),
        (kept, day) => kept.or(day),
    }
}

fn is_yes(value: &str) -> bool {
    ["yes", "y", "true"].iter().any(|yes| yes.eq_ignore_ascii_case(value.trim()))
}

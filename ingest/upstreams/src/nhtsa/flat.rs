//! The flat files: one row per campaign, make, model, year and component, separated by tabs, without a header.
//!
//! Rows are grouped by campaign while the file is unpacked, and the texts of a campaign are stored once. The result does not depend on the
//! order of rows, on duplicate rows, or on `RECORD_ID`, which changes with every build of the file. Where rows of a campaign disagree: of
//! texts the longest, then the smallest, is used; of dates the earliest; of units the largest (`POTAFF` repeats the campaign's total and is
//! never summed). A flag is set if one row sets it. The title has the first component in order.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Cursor, Read};

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;

use super::{SITE, campaign, manufacturers_number};
use crate::drift::FieldCounts;
use crate::{Answer, Observation, Page, Reject, Request, Stream, UpstreamError, drift, json, text};

pub(super) const FLAT_PRE_2010: &str = "nhtsa.flat_pre_2010";

const ORIGIN: &str = "https://static.nhtsa.gov";
/// The most bytes that are unpacked; the larger file has about 290 MB.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;
/// The longest row accepted, in bytes. By the data dictionary the longest one has 17,108.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Columns were added in 2007, 2008, 2020 and 2025. Old copies have fewer than the current 29, later ones may have more.
const COLUMNS: std::ops::RangeInclusive<usize> = 21..=40;
/// If more rows than this cannot be parsed, the whole file is refused.
const REJECTS_MAX: usize = 10_000;
const VEHICLES_MAX: usize = 2_000;
const MAKES_MAX: usize = 5;
const PRODUCTS_CHARS_MAX: usize = 2_000;
/// The agency's first campaigns; an earlier date is one of the file's placeholders.
const YEAR_MIN: i16 = 1966;

pub(super) fn request(file: &str, may_be_missing: bool) -> Request {
    Request {
        origin: ORIGIN.to_owned(),
        path: format!("/odi/ffdd/rcl/{file}"),
        body: None,
        headers: Vec::new(),
        accepts_statuses: if may_be_missing { &[404] } else { &[] },
        media_types: if may_be_missing {
            // A missing file is reported as XML or HTML.
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
        back_off: None,
        download: None,
        local_file: None,
    }
}

pub(super) fn map(stream: &Stream, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    if answer.status == 404 && stream.name == FLAT_PRE_2010 {
        let warnings = vec!["the file no longer exists (404): read as empty".to_owned()];
        return Ok(Page { warnings, ..Page::default() });
    }
    let mut file =
        File { stream: stream.name, today, campaigns: BTreeMap::new(), rejects: Vec::new(), lines: 0, counts: Counts::default() };
    if answer.body.starts_with(b"PK") {
        unpack(&mut file, &answer.body)?;
    } else if is_rows(&answer.body) {
        file.read(&mut BufReader::new(&*answer.body).take(UNPACKED_BYTES_MAX))?;
    } else {
        return Err(json::later(stream.name, "neither a zip archive nor tab-separated rows"));
    }
    file.finish(stream)
}

/// Whether a body is the unpacked file: it begins with a number and a tab.
fn is_rows(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && body.get(digits) == Some(&b'\t')
}

fn unpack(file: &mut File, body: &[u8]) -> Result<(), UpstreamError> {
    let stream = file.stream;
    let broken = |error: zip::result::ZipError| json::later(stream, format!("not a whole zip: {error}"));
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
    if read_any { Ok(()) } else { Err(json::later(stream, "the zip archive has no .txt file")) }
}

/// How many rows lack a field that every row has.
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
    stream: &'static str,
    today: Date,
    campaigns: BTreeMap<String, Campaign>,
    rejects: Vec<Reject>,
    lines: usize,
    counts: Counts,
}

impl File {
    /// Reads all rows. Only `\n` ends a row, because other Unicode line ends occur in texts.
    fn read<R: BufRead>(&mut self, reader: &mut io::Take<R>) -> Result<(), UpstreamError> {
        let stream = self.stream;
        let broken = |error: io::Error| json::later(stream, format!("not a whole file: {error}"));
        let mut line = Vec::with_capacity(8 << 10);
        loop {
            line.clear();
            // Reads one byte more than a row may have, which shows a too long row without reading all of it.
            let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line).map_err(broken)?;
            if reader.limit() == 0 {
                let reason = format!("more than {UNPACKED_BYTES_MAX} bytes when unpacked");
                return Err(UpstreamError::Stop { stream, field: "body".to_owned(), reason });
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

    /// Returns a row with the number 0, because `RECORD_ID` changes with every build of the file and the same row must stay recognisable.
    fn unnumbered(bytes: &[u8]) -> Vec<u8> {
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = bytes.get(digits..).filter(|rest| digits > 0 && rest.starts_with(b"\t"));
        rest.map_or_else(|| bytes.to_vec(), |rest| [b"0", rest].concat())
    }

    fn row(&mut self, bytes: &[u8]) -> Result<(), UpstreamError> {
        let line = text::decode(bytes);
        let mut columns = [""; *COLUMNS.end()];
        let mut count = 0;
        for value in line.split('\t') {
            if let Some(column) = columns.get_mut(count) {
                *column = value;
            }
            count += 1;
        }
        // By position in the agency's data dictionary, which counts from 1.
        let column = |number: usize| columns.get(number - 1).copied().unwrap_or_default();
        let raw = column(2).trim();
        if !COLUMNS.contains(&count) {
            self.counts.columns += 1;
            let reference = if raw.is_empty() { format!("line {}", self.lines) } else { text::cut(text::clean(raw), 100) };
            return self.reject(reference, format!("{count} columns instead of {} to {}", COLUMNS.start(), COLUMNS.end()), bytes);
        }
        let Some(number) = campaign(raw) else {
            self.counts.campaign += 1;
            return self.reject(format!("line {}", self.lines), "CAMPNO (column 2) is not a campaign number".to_owned(), bytes);
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
        self.rejects.push(Reject { reference, reason, raw: Self::unnumbered(raw) });
        if self.rejects.len() > REJECTS_MAX {
            self.check()?;
            let reason = format!("{} of {} rows cannot be read", self.rejects.len(), self.lines);
            return Err(UpstreamError::Stop { stream: self.stream, field: "row".to_owned(), reason });
        }
        Ok(())
    }

    /// Checks whether columns have moved.
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
            drift::share(self.stream, field, missing, self.lines)?;
        }
        Ok(())
    }

    fn finish(self, stream: &Stream) -> Result<Page, UpstreamError> {
        self.check()?;
        let mut warnings = Vec::new();
        if self.lines == 0 {
            warnings.push("the file holds no rows".to_owned());
        }
        let cut = self.campaigns.values().filter(|campaign| campaign.vehicles_cut).count();
        if cut > 0 {
            warnings.push(format!("{cut} campaigns have more than {VEHICLES_MAX} vehicles, of which the first in order were kept"));
        }
        let mut fields = FieldCounts::default();
        self.campaigns.values().for_each(|campaign| campaign.count(&mut fields));
        let observations = self.campaigns.into_iter().map(|(number, campaign)| campaign.observe(stream, number)).collect();
        Ok(Page { observations, rejects: self.rejects, warnings, fields, ..Page::default() })
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

    /// Counts the mapped columns, by their names in the agency's data dictionary.
    fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("MAKETXT", !self.makes.is_empty()),
            ("MODELTXT", self.models.iter().any(|model| !self.makes.contains(model))),
            ("MFGCAMPNO", !self.aliases.is_empty()),
            ("COMPNAME", !self.components.is_empty()),
            ("MFGNAME", !self.manufacturer.is_empty()),
            ("RCLTYPECD", !self.kind.is_empty()),
            ("POTAFF", self.units.is_some()),
            ("RCDATE", self.received.is_some()),
            ("DATEA", self.created.is_some()),
            ("DESC_DEFECT", !self.defect.is_empty()),
            ("CONEQUENCE_DEFECT", !self.consequence.is_empty()),
            ("CORRECTIVE_ACTION", !self.remedy.is_empty()),
        ]);
    }

    fn observe(self, stream: &Stream, number: String) -> Observation {
        let manufacturer = text::clean(&self.manufacturer);
        let component = self.components.first().cloned().unwrap_or_default();
        let title = match (manufacturer.is_empty(), component.is_empty()) {
            (false, false) => format!("{manufacturer}: {component}"),
            _ => format!("{manufacturer}{component}"),
        };
        let product_type = product_type(&self.kind, &number);
        // Make and model of a vehicle do not describe the product further; those of other products do.
        let models = Some(self.models).filter(|_| product_type != "Vehicle").unwrap_or_default();
        let products = text::join_distinct(models.into_iter().chain(self.components), "; ");
        let mut brand = self.makes.iter().take(MAKES_MAX).cloned().collect::<Vec<_>>().join(" / ");
        if self.makes.len() > MAKES_MAX {
            brand.push_str(" / …");
        }
        let hazard = if self.consequence.is_empty() { &self.defect } else { &self.consequence };
        let data = RecallFact {
            stream: stream.name.to_owned(),
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
        Observation::new(format!("{}/{number}", stream.name), FactData::Recall(Box::new(data)))
    }
}

/// Returns the kind of product in the terms of the agency's other stream. If the column is empty, the letter in the campaign number tells
/// it.
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

/// Keeps the longer of two texts, or the smaller of two with equal length. Blank texts do not count.
fn longest(current: &mut String, value: &str) {
    let value = value.trim();
    if value.len() > current.len() || (value.len() == current.len() && value < current.as_str()) {
        value.clone_into(current);
    }
}

fn earliest(current: Option<Date>, day: Option<Date>) -> Option<Date> {
    match (current, day) {
        (Some(current), Some(day)) => Some(current.min(day)),
        (current, day) => current.or(day),
    }
}

fn is_yes(value: &str) -> bool {
    ["yes", "y", "true"].iter().any(|yes| yes.eq_ignore_ascii_case(value.trim()))
}

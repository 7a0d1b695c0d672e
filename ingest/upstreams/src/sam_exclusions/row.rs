//! One row of a file: how it is found in the file, and what it says.

use std::io::{BufRead, Read};

use jiff::ToSpan;
use jiff::civil::Date;
use proofs::hash::Hash32;
use schemas::facts::FactData;
use schemas::facts::exclusions::{ExclusionFact, INDEFINITE, classification};

use super::layout::{Column, Layout, fields_of};
use crate::field_counts::FieldCounts;
use crate::{Observation, Reject, text};

pub(super) const STREAM: &str = "sam_exclusions";

/// The day after which dates of a row are refused: exclusions are announced at most some years ahead.
fn last_day(today: Date) -> Date {
    today.saturating_add(100.years())
}

/// The longest row, in bytes. The longest seen has 4,300.
const ROW_BYTES_MAX: usize = 64 << 10;
const COMMENT_CHARS_MAX: usize = 2_000;
const NAME_CHARS_MAX: usize = 300;
/// The most names of a cross-reference that are stored.
const CROSS_REFERENCES_MAX: usize = 100;
/// Agencies that changed their code; rows of before and after are the same.
const AGENCY_ALIASES: [(&str, &str); 1] = [("TREAS-OFAC", "OFAC")];

/// The lines of a file. A row ends with the line that ends with a quotation mark, or, without quoting, with its first line.
pub(super) struct Lines<R> {
    source: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, line: Vec::new() }
    }

    /// The reader.
    pub(super) fn source(&self) -> &R {
        &self.source
    }

    /// Reads a line without its end; `None` at the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is too long.
    pub(super) fn next_line(&mut self) -> Result<Option<Vec<u8>>, String> {
        self.line.clear();
        let limit = u64::try_from(ROW_BYTES_MAX).unwrap_or(u64::MAX);
        let read = (&mut self.source).take(limit).read_until(b'\n', &mut self.line).map_err(|error| error.to_string())?;
        if read == 0 {
            return Ok(None);
        }
        if read == ROW_BYTES_MAX && self.line.last() != Some(&b'\n') {
            return Err(format!("a line is longer than {ROW_BYTES_MAX} bytes"));
        }
        let end = self.line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        Ok(Some(self.line.get(..end).unwrap_or_default().to_vec()))
    }

    /// Reads a row; `None` at the end of the file. Empty lines are passed over.
    ///
    /// # Errors
    /// As [`Self::next_line`].
    pub(super) fn next_record(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            let Some(mut record) = self.next_line()? else { return Ok(None) };
            if record.trim_ascii().is_empty() {
                continue;
            }
            while record.first() == Some(&b'"') && record.last() != Some(&b'"') && record.len() < ROW_BYTES_MAX {
                let Some(more) = self.next_line()? else { break };
                record.push(b'\n');
                record.extend_from_slice(&more);
            }
            return Ok(Some(record));
        }
    }
}

/// Maps a row.
pub(super) fn observe(layout: &Layout, row: &[u8], today: Date) -> Result<Observation, Reject> {
    let read = layout.fit(fields_of(row)).and_then(|fields| parse(layout, &fields, today));
    match read {
        Ok(fact) => Ok(Observation::new(format!("{STREAM}/{}", fact.row_id()), FactData::Exclusion(Box::new(fact)))),
        Err(reason) => Err(rejected(layout, row, reason)),
    }
}

/// A row that cannot be mapped. Of a row that may name a person only the classification and a hash are kept: neither logs nor the topic of rejected
/// records get a name or an address, and another row is still another reject.
fn rejected(layout: &Layout, row: &[u8], reason: String) -> Reject {
    let classification = fields_of(row).first().map(|field| text::clean(&text::decode(field))).unwrap_or_default();
    let names_no_person = [classification::FIRM, classification::SPECIAL_ENTITY, classification::VESSEL].contains(&classification.as_str());
    if names_no_person {
        let raw = [&layout.header, &b"\r\n"[..], row].concat();
        return Reject { reference: text::cut(text::clean(&text::decode(row)), 80), reason, raw };
    }
    let known = classification::ALL.contains(&classification.as_str());
    let what = if known { classification } else { "a row without a known classification".to_owned() };
    let reference = format!("{what} {}", Hash32::of(row));
    let raw = [&layout.header, &b"\r\n"[..], reference.as_bytes()].concat();
    Reject { reference, reason: format!("{reason}; the fields of the row are left out, because it may name a person"), raw }
}

/// Counts the fields of a row.
pub(super) fn count(counts: &mut FieldCounts, observation: &Observation) {
    let FactData::Exclusion(fact) = &observation.data else { return };
    counts.count([
        ("Excluding Agency", !fact.agency.is_empty()),
        ("Exclusion Type", !fact.exclusion_type.is_empty()),
        ("Active Date", !fact.active_date.is_empty()),
        ("Exclusion Program", !fact.program.is_empty()),
        ("Classification", !fact.classification.is_empty()),
        ("Creation_Date", !fact.creation_date.is_empty()),
    ]);
}

fn parse(layout: &Layout, fields: &[Vec<u8>], today: Date) -> Result<ExclusionFact, String> {
    let text_of = |column| layout.text(fields, column);
    let classification = text_of(Column::Classification);
    if !classification.is_empty() && !classification::ALL.contains(&classification.as_str()) {
        return Err(format!("Classification: {:?} is unknown", text::cut(classification, 60)));
    }
    let is_person = classification == classification::INDIVIDUAL;
    let status = text_of(Column::Status);
    if !status.is_empty() && !status.eq_ignore_ascii_case("active") {
        return Err(format!("Record Status: {:?} is unknown", text::cut(status, 60)));
    }
    let (name, last) = (text::cut(text_of(Column::Name), NAME_CHARS_MAX), text::cut(text_of(Column::Last), NAME_CHARS_MAX));
    if name.is_empty() && last.is_empty() && text_of(Column::First).is_empty() {
        return Err("Name: the row has no name of a person or organisation".to_owned());
    }
    let uei = missing_if_null(text_of(Column::Uei)).to_ascii_uppercase();
    if !uei.is_empty() && (uei.len() != 12 || !uei.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        return Err(format!("Unique Entity ID: {:?} is none", text::cut(uei, 60)));
    }
    // Of a person only the name and the UEI are stored.
    let of_entity = |column| if is_person { String::new() } else { text_of(column) };
    let cage = missing_if_null(of_entity(Column::Cage)).to_ascii_uppercase();
    let date = |name: &str, column| {
        let printed = text_of(column);
        day(&printed, today).ok_or_else(|| format!("{name}: {:?} is not a day", text::cut(printed, 60)))
    };
    let termination = text_of(Column::TerminationDate);
    let termination_date = if termination.eq_ignore_ascii_case(INDEFINITE) {
        INDEFINITE.to_owned()
    } else {
        date("Termination Date", Column::TerminationDate)?
    };
    let agency = text_of(Column::Agency);
    let agency = AGENCY_ALIASES.iter().find(|(old, _)| *old == agency).map_or(agency, |(_, new)| (*new).to_owned());
    Ok(ExclusionFact {
        stream: STREAM.to_owned(),
        name,
        prefix: text::cut(text_of(Column::Prefix), NAME_CHARS_MAX),
        first: text::cut(text_of(Column::First), NAME_CHARS_MAX),
        middle: text::cut(text_of(Column::Middle), NAME_CHARS_MAX),
        last,
        suffix: text::cut(text_of(Column::Suffix), NAME_CHARS_MAX),
        street: text::cut(of_entity(Column::Street), NAME_CHARS_MAX),
        city: text::cut(of_entity(Column::City), NAME_CHARS_MAX),
        state: text::cut(of_entity(Column::State), NAME_CHARS_MAX),
        country: text::cut(of_entity(Column::Country), NAME_CHARS_MAX),
        zip: text::cut(of_entity(Column::Zip), NAME_CHARS_MAX),
        uei,
        cage: text::cut(cage, 20),
        npi: text::cut(npi(&of_entity(Column::Npi)), 20),
        sam_number: text::cut(missing_if_null(of_entity(Column::SamNumber)), 20),
        agency: text::cut(agency, 60),
        program: text::cut(text_of(Column::Program), 60),
        exclusion_type: text::cut(text_of(Column::Type), 100),
        cause_code: text::cut(text_of(Column::CauseCode), 60),
        comments: text::cut(of_entity(Column::Comments), COMMENT_CHARS_MAX),
        active_date: date("Active Date", Column::ActiveDate)?,
        termination_date,
        creation_date: date("Creation_Date", Column::CreationDate)?,
        cross_references: cross_references(&text_of(Column::CrossReference)),
        classification,
    })
}

/// Copies of the list write missing values as the text `null`.
fn missing_if_null(text: String) -> String {
    if text.eq_ignore_ascii_case("null") { String::new() } else { text }
}

/// A provider's number, without the decimal point that some files add.
fn npi(printed: &str) -> String {
    missing_if_null(printed.strip_suffix(".0").unwrap_or(printed).to_owned())
}

/// Reads a day as `YYYY-MM-DD`: `MM/DD/YYYY`, with one or two digits for month and day, or `YYYY-MM-DD`. Empty for an empty text, `None` if it is no
/// possible day.
fn day(printed: &str, today: Date) -> Option<String> {
    if printed.is_empty() {
        return Some(String::new());
    }
    let parts: Vec<&str> = printed.split('/').collect();
    let day = match parts.as_slice() {
        [month, day, year] if year.len() == 4 => {
            let number = |text: &str| Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
            Date::new(year.parse().ok()?, number(month)?, number(day)?).ok()
        }
        [_] => text::date(printed),
        _ => None,
    };
    day.filter(|day| day.year() >= 1900 && *day <= last_day(today)).map(|day| day.to_string())
}

/// The names of a cross-reference, sorted: `(also NAME A, NAME B)`.
fn cross_references(printed: &str) -> Vec<String> {
    let inner = printed.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(printed).trim();
    let inner = inner.strip_prefix("also ").unwrap_or(inner);
    let mut names: Vec<String> =
        inner.split(',').map(|name| text::cut(text::clean(name), NAME_CHARS_MAX)).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(CROSS_REFERENCES_MAX);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Date = Date::constant(2026, 9, 30);

    /// Proves which texts are days.
    #[test]
    fn days() {
        for (printed, expected) in [
            ("03/10/2026", Some("2026-03-10")),
            ("3/2/2000", Some("2000-03-02")),
            ("2020-01-29", Some("2020-01-29")),
            ("", Some("")),
            ("13/01/2026", None),
            ("02/30/2026", None),
            ("2026", None),
            ("01/01/26", None),
            ("1/1/1/2026", None),
            ("-1/1/2026", None),
            ("01/01/1899", None),
            ("01/01/9999", None),
            ("soon", None),
        ] {
            assert_eq!(day(printed, TODAY).as_deref(), expected, "{printed}");
        }
    }

    /// Proves that the order, the blanks and the form of a cross-reference do not matter.
    #[test]
    fn cross_references_are_sorted() {
        let expected = ["ALPHA INC", "BETA"];
        for printed in ["(also BETA, ALPHA INC)", "(also  ALPHA   INC ,  BETA )", "BETA, ALPHA INC, BETA"] {
            assert_eq!(cross_references(printed), expected, "{printed}");
        }
        assert_eq!(cross_references(""), Vec::<String>::new());
        assert_eq!((npi("1234567893.0"), npi("null"), npi("12")), ("1234567893".into(), String::new(), "12".into()));
    }

    /// Proves that rows are found by lines, that a row with a line break in a field is one, and that a line without an end is refused.
    #[test]
    fn lines() {
        let mut lines = Lines::new(&b"\"a\",\"b\"\r\n\r\n\"c\",\"d\r\ne\"\r\nf,g\n"[..]);
        let mut rows = Vec::new();
        while let Some(row) = lines.next_record().unwrap() {
            rows.push(String::from_utf8(row).unwrap());
        }
        assert_eq!(rows, ["\"a\",\"b\"", "\"c\",\"d\ne\"", "f,g"]);
        let long = vec![b'a'; ROW_BYTES_MAX + 10];
        assert!(Lines::new(&long[..]).next_record().is_err());
    }
}

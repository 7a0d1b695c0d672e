//! Index files: `master.idx` with pipes, and `form.idx` and `company.idx` with fixed widths, daily and quarterly.
//!
//! The number of header lines varies, so parsing starts at the row of dashes. Column widths have changed over time, and a long name pushes
//! the rest of its row to the right. A row with fixed widths is therefore parsed from its end. Only form and name are separated by a
//! column, or by two blanks where the column would split a word.

use jiff::civil::Date;

use super::{accession, cik, file, form, is_page};
use crate::{Reject, Request, UpstreamError, drift, json, text};

/// The header of a master index with one row.
pub(super) const HEADER: &str = "CIK|Company Name|Form Type|Date Filed|File Name\n--------------------------------\n";
/// The longest valid row, in bytes.
const LINE_BYTES_MAX: usize = 4_096;
/// If more rows than this cannot be parsed, the whole index is refused.
const REJECTS_MAX: usize = 10_000;
/// The minimum length of a row of dashes.
const DASHES_MIN: usize = 20;

/// Builds the request for the index of a day.
pub(super) fn daily(day: Date) -> Request {
    let (year, quarter) = quarter_of(day);
    file(format!("/Archives/edgar/daily-index/{year}/QTR{quarter}/master.{}.idx", day.strftime("%Y%m%d")))
}

/// Returns year and quarter of a day.
pub(super) fn quarter_of(day: Date) -> (i16, i8) {
    (day.year(), (day.month() - 1) / 3 + 1)
}

/// One row: a filing for one of its filers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub(super) form: String,
    pub(super) company: &'a str,
    pub(super) cik: String,
    pub(super) filed: Date,
    pub(super) accession: &'a str,
}

/// The parsed rows of an index.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    pub(super) rows: Vec<Row<'a>>,
    pub(super) rejects: Vec<Reject>,
}

/// The columns that each row must have, in the order in which they are parsed.
const FIELDS: &[&str] = &["File Name", "Date Filed", "CIK", "Form Type"];

/// Parses an index of any kind and returns the rows that `is_wanted` accepts.
///
/// # Errors
/// When it is not an index, or too many of its rows cannot be parsed.
pub(super) fn read<'a>(
    stream: &'static str,
    text: &'a str,
    today: Date,
    mut is_wanted: impl FnMut(&Row<'a>) -> bool,
) -> Result<Rows<'a>, UpstreamError> {
    if is_page(text) {
        return Err(json::later(stream, "the response is an HTML page, not an index"));
    }
    let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    let mut title: Vec<&str> = Vec::new();
    let is_dashes = |line: &str| line.trim_end().len() >= DASHES_MIN && line.trim_end().bytes().all(|byte| byte == b'-');
    loop {
        match lines.next() {
            None => {
                return Err(json::later(stream, "the response is not an EDGAR index: the separator line is missing (truncated download?)"));
            }
            Some(line) if is_dashes(line) => break,
            Some(line) if line.trim().is_empty() => title.clear(),
            // A column title may be split over two lines.
            Some(line) => title.push(line),
        }
    }
    let layout = Layout::of(stream, &title)?;
    let (mut out, mut total, mut missing) = (Rows::default(), 0_usize, [0_usize; FIELDS.len()]);
    for line in lines {
        if line.trim().is_empty() {
            continue;
        }
        total += 1;
        match layout.row(line, today) {
            Ok(row) if is_wanted(&row) => out.rows.push(row),
            Ok(_) => {}
            Err(field) => {
                for (name, missing) in FIELDS.iter().zip(&mut missing) {
                    *missing += usize::from(*name == field);
                }
                if out.rejects.len() >= REJECTS_MAX {
                    let reason = format!("{} of {total} rows cannot be read", out.rejects.len());
                    return Err(UpstreamError::Stop { stream, field: field.to_owned(), reason });
                }
                let reference = text::cut(text::clean(line), 100);
                let raw = line.as_bytes().iter().take(LINE_BYTES_MAX).copied().collect();
                out.rejects.push(Reject { reference, reason: format!("{field} is absent or not readable"), raw });
            }
        }
    }
    for (field, missing) in FIELDS.iter().zip(missing) {
        drift::share(stream, field, missing, total)?;
    }
    Ok(out)
}

enum Layout {
    /// CIK, name, form, date and file, separated by pipes.
    Pipes,
    /// Form before name, or name before form. The second one begins at the column given by the title.
    Fixed { second: usize, form_first: bool },
}

impl Layout {
    fn of(stream: &'static str, title: &[&str]) -> Result<Self, UpstreamError> {
        let last = title.last().copied().unwrap_or_default();
        if last.contains('|') {
            let names: Vec<String> = last.split('|').map(|name| name.replace(' ', "").to_ascii_lowercase()).collect();
            if names.iter().map(String::as_str).eq(["cik", "companyname", "formtype", "datefiled", "filename"]) {
                return Ok(Self::Pipes);
            }
        }
        // Where a title is split over two lines, the first line has the relevant columns.
        let columns = title.iter().find_map(|line| Some((line.find("Form Type")?, line.find("Company Name")?)));
        match columns {
            Some((form, name)) => Ok(Self::Fixed { second: form.max(name), form_first: form < name }),
            None => {
                let reason = format!("the columns have changed: {}", text::cut(text::clean(&title.join(" ")), 200));
                Err(UpstreamError::Stop { stream, field: "title".to_owned(), reason })
            }
        }
    }

    /// Parses one row. The error is the missing field.
    fn row<'a>(&self, line: &'a str, today: Date) -> Result<Row<'a>, &'static str> {
        if line.len() > LINE_BYTES_MAX {
            return Err(FIELDS[0]);
        }
        let (number, company, kind, filed, path) = match self {
            Self::Pipes => {
                // A name may contain a pipe.
                let mut right = line.rsplitn(4, '|');
                let (path, filed, kind) = (right.next().unwrap_or_default(), right.next(), right.next());
                let (number, company) = right.next().and_then(|rest| rest.split_once('|')).ok_or(FIELDS[2])?;
                (number, company, kind.ok_or(FIELDS[3])?, filed.ok_or(FIELDS[1])?, path)
            }
            Self::Fixed { second, form_first } => {
                let (rest, path) = last_word(line);
                let (rest, filed) = last_word(rest);
                let (rest, number) = last_word(rest);
                let (first, second) = split(rest, *second, *form_first);
                if *form_first { (number, second, first, filed, path) } else { (number, first, second, filed, path) }
            }
        };
        let accession = file_name(path).ok_or(FIELDS[0])?;
        let filed = text::date(filed).filter(|day| text::is_plausible(*day, today)).ok_or(FIELDS[1])?;
        let cik = cik(number).ok_or(FIELDS[2])?;
        let form = form(kind).ok_or(FIELDS[3])?;
        Ok(Row { form, company: company.trim(), cik, filed, accession })
    }
}

/// Returns the accession number at the end of a path below `edgar/`.
fn file_name(path: &str) -> Option<&str> {
    let path = path.trim();
    accession(path.strip_prefix("edgar/")?.rsplit('/').next()?.strip_suffix(".txt")?)
}

/// Splits the last word from a text.
fn last_word(text: &str) -> (&str, &str) {
    let text = text.trim_end();
    text.rsplit_once(|c: char| c.is_whitespace()).map_or(("", text), |(rest, word)| (rest, word))
}

/// Separates form and name (in either order): at the column of the second or, where that would split a word, at the first two blanks
/// (before a name) or the last two (before a form).
fn split(text: &str, column: usize, form_first: bool) -> (&str, &str) {
    let is_cut = |left: &str, right: &str| !left.ends_with(' ') && !right.starts_with(' ');
    if let Some((left, right)) = text.split_at_checked(column)
        && !is_cut(left, right)
        && !left.trim().is_empty()
        && !right.trim().is_empty()
    {
        return (left, right);
    }
    let blanks = if form_first { text.split_once("  ") } else { text.trim_end().rsplit_once("  ") };
    blanks.unwrap_or((text, ""))
}

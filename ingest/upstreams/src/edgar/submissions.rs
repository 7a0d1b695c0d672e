//! `edgar.submissions`: the items of 8-Ks that the feed missed, from the list of their filer's filings.
//!
//! The list consists of columns of equal length, newest first. Its `recent` part goes back far beyond any window, so older pages are not
//! requested. The acceptance time is not stored on purpose: its meaning changed for filings that were made long before.

use jiff::civil::Date;
use schemas::facts::filings::{FilingFact, has_items};
use serde::Deserialize;
use serde_json::json;

use super::{BACK_OFF, DATA_ORIGIN, accession, cik, cik_of, filing, form, is_missing, item, observed, walk};
use crate::json::{self, Field, Part};
use crate::{Answer, Page, Reject, Request, Stream, UpstreamError, drift, text};

/// The longest list accepted, in rows.
const ROWS_MAX: usize = 100_000;

pub(super) fn request(next: &str) -> Request {
    Request {
        origin: DATA_ORIGIN.to_owned(),
        path: format!("/submissions/CIK{}.json", cik_of(next)),
        body: None,
        headers: Vec::new(),
        accepts_statuses: &[404],
        media_types: &["application/json", "text/json", "application/xml", "text/xml", "text/plain", "application/octet-stream"],
        conditional: false,
        back_off: Some(&BACK_OFF),
        download: None,
        local_file: None,
    }
}

pub(super) fn map(stream: &Stream, cursor: walk::Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let body = String::from_utf8_lossy(&answer.body);
    let is_list = answer.status == 200 && body.trim_start().starts_with('{');
    if cursor.pending.is_empty() && !is_list {
        return cursor.list(stream, answer, today, false, |row| has_items(&row.form));
    }
    let from = cursor.from;
    let requested = cursor.pending.first().map(|next| cik_of(next).to_owned());
    let next = if cursor.pending.is_empty() { None } else { cursor.advance().map(json::write_cursor) };
    if is_missing(stream.name, answer)? {
        let warnings = vec![format!("there is no list of filings of {}", requested.unwrap_or_default())];
        return Ok(Page { next, warnings, ..Page::default() });
    }
    let filer: Filer<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
    Ok(Page { next, ..filer.page(stream, requested.as_deref(), from, today, has_items)? })
}

#[derive(Deserialize)]
pub(super) struct Filer<'a> {
    #[serde(borrow, default)]
    cik: Field<'a>,
    #[serde(borrow, default)]
    name: Field<'a>,
    #[serde(borrow, default)]
    filings: Filings<'a>,
}

#[derive(Default, Deserialize)]
struct Filings<'a> {
    #[serde(borrow, default)]
    recent: Columns<'a>,
    #[serde(borrow, default)]
    files: Part<'a>,
}

/// The relevant columns; unknown ones are ignored.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Columns<'a> {
    #[serde(borrow)]
    accession_number: Vec<Field<'a>>,
    #[serde(borrow)]
    form: Vec<Field<'a>>,
    #[serde(borrow)]
    filing_date: Vec<Field<'a>>,
    #[serde(borrow)]
    items: Vec<Field<'a>>,
    #[serde(borrow)]
    report_date: Vec<Field<'a>>,
    #[serde(borrow)]
    primary_document: Vec<Field<'a>>,
}

impl Filer<'_> {
    /// Whether older filings are in further files.
    pub(super) fn has_older_files(&self) -> bool {
        self.filings.files.is_filled()
    }

    /// Returns the filings since a day that have a wanted form.
    pub(super) fn page(
        &self,
        stream: &Stream,
        requested: Option<&str>,
        from: Date,
        today: Date,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Page, UpstreamError> {
        let mut page = Page::default();
        let columns = &self.filings.recent;
        let rows = columns.accession_number.len();
        let whole = |reason: String| Reject {
            reference: requested.unwrap_or("a list of filings").to_owned(),
            reason,
            raw: json!({"cik": self.cik.text(), "name": self.name.text()}).to_string().into_bytes(),
        };
        // The number is sent with or without leading zeros.
        let Some(cik) = cik(self.cik.text()).filter(|cik| requested.is_none_or(|requested| requested == cik)) else {
            page.rejects.push(whole(format!("cik is {:?}", text::cut(self.cik.clean(), 40))));
            return Ok(page);
        };
        for (name, column) in [
            ("form", &columns.form),
            ("filingDate", &columns.filing_date),
            ("items", &columns.items),
            ("reportDate", &columns.report_date),
            ("primaryDocument", &columns.primary_document),
        ] {
            if column.len() != rows || rows > ROWS_MAX {
                page.rejects.push(whole(format!("{name} has {} values, accessionNumber {rows}", column.len())));
                return Ok(page);
            }
        }
        let mut missing = [("accessionNumber", 0), ("form", 0), ("filingDate", 0)];
        for row in 0..rows {
            let value = |column: &'_ [Field<'_>]| column.get(row).map(Field::clean).unwrap_or_default();
            let (number, kind, filed) = (value(&columns.accession_number), value(&columns.form), value(&columns.filing_date));
            let read = (accession(&number), form(&kind), text::date(&filed).filter(|day| text::is_plausible(*day, today)));
            for ((_, missing), is_there) in missing.iter_mut().zip([read.0.is_some(), read.1.is_some(), read.2.is_some()]) {
                *missing += usize::from(!is_there);
            }
            if !is_wanted(&kind) || read.2.is_some_and(|day| day < from) {
                continue;
            }
            let (Some(number), Some(kind), Some(filed)) = read else {
                let field = if read.0.is_none() { "accessionNumber" } else { "filingDate" };
                let raw = self.one(&columns.of(row)).to_string().into_bytes();
                // The pair by which an index names the filing, so that it is not requested again for each run.
                let reference = if number.is_empty() { format!("row {row}") } else { format!("{}/{cik}", text::cut(number, 40)) };
                page.rejects.push(Reject { reference, reason: format!("{field} is absent or not readable"), raw });
                continue;
            };
            let items = value(&columns.items).split(',').filter_map(item).map(str::to_owned).collect();
            let fact = FilingFact {
                items,
                report_date: text::plausible_date(&value(&columns.report_date), today),
                primary_document: document(&value(&columns.primary_document)),
                ..filing(stream, number, cik.clone(), kind, self.name.text(), filed)
            };
            page.fields.count([
                ("items", !fact.items.is_empty()),
                ("reportDate", !fact.report_date.is_empty()),
                ("primaryDocument", !fact.primary_document.is_empty()),
                ("name", !fact.company.is_empty()),
            ]);
            page.observations.push(observed(stream, fact));
        }
        for (field, missing) in missing {
            drift::share(stream.name, field, missing, rows)?;
        }
        // The filings of one company resemble each other.
        page.fields = page.fields.into_document();
        Ok(page)
    }

    /// A list with one filing.
    fn one(&self, columns: &serde_json::Value) -> serde_json::Value {
        json!({"cik": self.cik.text(), "name": self.name.text(), "filings": {"recent": columns}})
    }
}

impl Columns<'_> {
    fn of(&self, row: usize) -> serde_json::Value {
        let value = |column: &'_ [Field<'_>]| json!([column.get(row).map(Field::text).unwrap_or_default()]);
        json!({
            "accessionNumber": value(&self.accession_number),
            "form": value(&self.form),
            "filingDate": value(&self.filing_date),
            "items": value(&self.items),
            "reportDate": value(&self.report_date),
            "primaryDocument": value(&self.primary_document),
        })
    }
}

/// Returns the file name of a document. XML forms are listed under the folder of their style sheet.
fn document(name: &str) -> String {
    let plain = match name.split_once('/') {
        Some((folder, plain)) if folder.starts_with("xsl") => plain,
        _ => name,
    };
    text::cut(plain.to_owned(), 200)
}

//! The Dynamic Regulatory System of the FAA: final rules that are airworthiness directives (document type `ADFRAWD`), with lists of makes and models. It has
//! those from before 1994, which the API of the Federal Register lacks; only they are read, since the journal's own texts are the better source of the
//! others.
//!
//! Every run reads all pages: a filter by the day of the last change leaves out documents without such a day, and old documents mostly have none. A page has
//! 750 documents with their whole texts, about 20 MB.
//!
//! Unreliable: an error can come with status 200, as `{"errorMessage": …}`; a wrong key gives 403 without a body. Lists hold `_EMPTY_` for nothing, and a model
//! with a comma is split at it (`"A45 (T-34A", "B-45)"`), so the items are kept in their order.

use std::time::Duration;

use directives::clean;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::directives::DirectiveFact;
use schemas::position::UpstreamCursor;
use schemas::topics::DIRECTIVES;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use texts::numbers::has_only_digits;

use crate::drift::FieldCounts;
use crate::json::{self, Field, Records};
use crate::{Answer, Incomplete, Licence, Manifest, Observation, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, text};

const ORIGIN: &str = "https://drs.faa.gov";
const PATH: &str = "/api/drs/data-pull/ADFRAWD";
/// Documents per page, which cannot be changed.
const PAGE_DOCUMENTS: u64 = 750;
/// The most documents that are read: four times those of 2026.
const DOCUMENTS_MAX: u64 = 80_000;
/// Directives of this year and later ones come from the Federal Register.
const FIRST_YEAR_ELSEWHERE: u16 = 1994;
/// The longest title, summary or subject, in characters.
const TEXT_CHARS_MAX: usize = 4_000;
/// The longest regulatory text that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// The most makes, models and dockets of a document.
const LIST_MAX: usize = 2_000;
/// The longest make or model, in characters.
const NAME_CHARS_MAX: usize = 120;
/// What lists hold for nothing.
const EMPTY: &str = "_EMPTY_";

static MANIFEST: Manifest = Manifest {
    name: "faa_drs",
    licence: Licence::of_government("Federal Aviation Administration"),
    streams: &[Stream {
        name: "faa_drs",
        topic: &DIRECTIVES,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 64 << 20,
        answer_timeout: Duration::from_secs(180),
    }],
    full_after: Duration::from_secs(30 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct FaaDrs;

/// The position of a run: how many documents come before the next page.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Cursor {
    offset: u64,
}

impl Upstream for FaaDrs {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, _window: &Window, _settings: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor::default())
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let Cursor { offset } = json::read_cursor(stream.name, cursor)?;
        let key = settings.api_key.as_deref().filter(|key| !key.trim().is_empty());
        let key = key.ok_or_else(|| stop(stream, "api_key", "the upstream requires a key, and none is set"))?;
        let mut request = json::request(ORIGIN, format!("{PATH}?offset={offset}"));
        request.headers.push(("x-api-key", key.to_owned()));
        Ok(request)
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let Cursor { offset } = json::read_cursor(stream.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let found: SearchAnswer<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
        let error = text::cut(found.error_message.clean(), NAME_CHARS_MAX);
        if error.contains("internal only") || error.contains("not present") {
            return Err(stop(stream, "errorMessage", &error));
        }
        let Some(documents) = found.documents else {
            let reason = if error.is_empty() { "an answer without documents".to_owned() } else { error };
            return Err(json::later(stream.name, reason));
        };
        let mut page = Page { warnings, ..Page::default() };
        let read = documents.len() as u64;
        let seen = offset.saturating_add(read);
        let (observations, rejects) = Records::of_list(documents).map(stream.name, EXPECTED, |document: &Document<'_>| {
            document.count(&mut page.fields);
            observe(stream, document, today)
        })?;
        page.observations = observations.into_iter().flatten().collect();
        page.rejects = rejects;
        let total = found.summary.total_items.integer().and_then(|total| u64::try_from(total).ok());
        let has_more = total.map_or(read >= PAGE_DOCUMENTS, |total| seen < total);
        if has_more && (read == 0 || seen >= DOCUMENTS_MAX) {
            let what = format!("the upstream counts {} documents but sent {seen}", total.unwrap_or_default());
            page.warnings.push(what.clone());
            page.incomplete = Some(Incomplete { what, from: None });
        } else if has_more {
            page.next = Some(json::write_cursor(Cursor { offset: seen }));
        }
        Ok(page)
    }
}

fn stop(stream: &Stream, field: &str, reason: &str) -> UpstreamError {
    UpstreamError::Stop { stream: stream.name, field: field.to_owned(), reason: reason.to_owned() }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SearchAnswer<'a> {
    #[serde(borrow)]
    error_message: Field<'a>,
    #[serde(borrow)]
    summary: Summary<'a>,
    #[serde(borrow)]
    documents: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Summary<'a> {
    #[serde(borrow)]
    total_items: Field<'a>,
}

type FieldCheck = fn(&Document<'_>) -> bool;

const EXPECTED: &[(&str, FieldCheck)] = &[
    ("documentGuid", |document| document.guid.is_text()),
    ("drs:documentNumber", |document| document.number.is_text()),
    ("drs:adfrawdMake", |document| document.makes.is_text_or_list()),
    ("drs:adfrawdModel", |document| document.models.is_text_or_list()),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document<'a> {
    #[serde(borrow, rename = "documentGuid")]
    guid: Field<'a>,
    #[serde(borrow, rename = "documentURL")]
    url: Field<'a>,
    #[serde(borrow, rename = "drs:documentNumber")]
    number: Field<'a>,
    #[serde(borrow, rename = "drs:title")]
    title: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdSubject")]
    subject: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdAction")]
    action: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdSummary")]
    summary: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdMake")]
    makes: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdModel")]
    models: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdProductType")]
    product_types: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdDocketNo")]
    docket: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdCitation")]
    citation: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdCitationPublishDate")]
    published: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdIssueDate")]
    issued: Field<'a>,
    #[serde(borrow, rename = "drs:effectiveDate")]
    effective: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdRegulatoryText")]
    text: Field<'a>,
    #[serde(borrow, rename = "drs:adfrawdSupersededBy")]
    superseded_by: Field<'a>,
}

impl Document<'_> {
    /// Counts the mapped fields.
    fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("documentGuid", self.guid.is_filled()),
            ("drs:documentNumber", self.number.is_filled()),
            ("drs:title", self.title.is_filled()),
            ("drs:adfrawdSubject", self.subject.is_filled()),
            ("drs:adfrawdMake", self.makes.is_filled()),
            ("drs:adfrawdModel", self.models.is_filled()),
            ("drs:adfrawdProductType", self.product_types.is_filled()),
            ("drs:adfrawdRegulatoryText", self.text.is_filled()),
            ("drs:effectiveDate", self.effective.is_filled()),
        ]);
    }
}

/// Maps a document; `None` for one of a year that the Federal Register has. The error names the document and the field.
fn observe(stream: &Stream, document: &Document<'_>, today: Date) -> Result<Option<Observation>, (String, String)> {
    let guid = text::number(document.guid.text());
    let printed = text::cut(document.number.clean(), NAME_CHARS_MAX);
    let reference = guid.clone().unwrap_or_else(|| printed.clone());
    let guid = guid.ok_or_else(|| (reference.clone(), "documentGuid is absent or not readable".to_owned()))?;
    let (number, year) =
        number_of(&printed).ok_or_else(|| (reference, format!("drs:documentNumber is not the number of a directive: {printed:?}")))?;
    if year >= FIRST_YEAR_ELSEWHERE {
        return Ok(None);
    }
    let day = |field: &Field<'_>| text::date(field.text()).filter(|day| text::is_plausible(*day, today)).map(|day| day.to_string());
    let regulatory = clean(document.text.text());
    let (kept, rest) = regulatory.split_at(regulatory.floor_char_boundary(TEXT_BYTES_MAX));
    let (title, subject) = (document.title.clean(), document.subject.clean());
    let fact = DirectiveFact {
        stream: stream.name.to_owned(),
        number,
        title: text::cut(if title.is_empty() { subject } else { title }, TEXT_CHARS_MAX),
        action: text::cut(document.action.clean(), TEXT_CHARS_MAX),
        summary: text::cut(document.summary.clean(), TEXT_CHARS_MAX),
        published: day(&document.published).or_else(|| day(&document.issued)).unwrap_or_default(),
        effective_on: text::date(document.effective.text()).map(|day| day.to_string()).unwrap_or_default(),
        docket_ids: Some(text::cut(document.docket.clean(), NAME_CHARS_MAX)).filter(|docket| !docket.is_empty()).into_iter().collect(),
        citation: text::cut(document.citation.clean(), NAME_CHARS_MAX),
        correction_of: String::new(),
        url: text::https(document.url.text(), ORIGIN),
        text: kept.to_owned(),
        is_cut: !rest.is_empty(),
        makes: names(&document.makes, true),
        models: names(&document.models, false),
        product_types: names(&document.product_types, true),
        superseded_by: names(&document.superseded_by, true)
            .iter()
            .find_map(|number| number_of(number))
            .map(|(number, _)| number)
            .unwrap_or_default(),
    };
    Ok(Some(Observation::new(format!("{}/{guid}", stream.name), FactData::Directive(Box::new(fact)))))
}

/// The items of a list in their order, without what means nothing; each once if `is_distinct`.
fn names(field: &Field<'_>, is_distinct: bool) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in field.list().into_iter().map(|name| text::cut(name, NAME_CHARS_MAX)) {
        let is_known = is_distinct && names.contains(&name);
        if !name.is_empty() && name != EMPTY && !is_known && names.len() < LIST_MAX {
            names.push(name);
        }
    }
    names
}

/// The number of a directive as texts of its time print it, and its year: `78-10-03` of 1978 for `1978-10-03`, `87-20-03 R2` for `87-20-03R2`.
fn number_of(printed: &str) -> Option<(String, u16)> {
    let compact: String = printed.chars().filter(|c| !c.is_whitespace()).collect();
    let mut parts = compact.split('-');
    let (year, cycle, order) = (parts.next()?, parts.next()?, parts.next()?);
    let (order, revision) = order.split_at_checked(2)?;
    let revision = match revision {
        "" => String::new(),
        revision => format!(" R{}", revision.strip_prefix(['R', 'r']).filter(|number| number.len() <= 2 && has_only_digits(number))?),
    };
    if parts.next().is_some() || cycle.len() != 2 || ![year, cycle, order].into_iter().all(has_only_digits) {
        return None;
    }
    let full: u16 = match year.len() {
        2 => year.parse::<u16>().ok()? + 1900,
        4 => year.parse().ok()?,
        _ => return None,
    };
    if !(1926..2100).contains(&full) {
        return None;
    }
    // Texts print four digits from 2000 on.
    let shown = if full < 2000 { format!("{:02}", full % 100) } else { full.to_string() };
    Some((format!("{shown}-{cycle}-{order}{revision}"), full))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that numbers are read in each form, and that others are refused.
    #[test]
    fn numbers() {
        for (printed, expected) in [
            ("1978-10-03", Some(("78-10-03", 1978))),
            ("78-10-03", Some(("78-10-03", 1978))),
            ("87-20-03R2", Some(("87-20-03 R2", 1987))),
            ("1987-20-03 R2", Some(("87-20-03 R2", 1987))),
            ("2026-20-08", Some(("2026-20-08", 2026))),
            ("1941-47-01", Some(("41-47-01", 1941))),
            ("39-3100", None),
            ("78-10-03X", None),
            ("78-10", None),
            ("", None),
        ] {
            let expected = expected.map(|(number, year)| (number.to_owned(), year));
            assert_eq!(number_of(printed), expected, "{printed}");
        }
    }
}

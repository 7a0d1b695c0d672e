//! `federal_register.ads`: airworthiness directives. Part 39 of title 14 of the Code of Federal Regulations consists of directives, so its rules
//! are exactly the documents that add, replace or correct one.
//!
//! The search is read year by year, since one search shows at most 10,000 documents, and in small pages, since a cursor holds what a page says of
//! its documents until their texts are read. Each document that is not known yet is requested once, as raw text: its number, makes, models and
//! times are only there. The regulatory part is kept; what it says is decided later, from the facts, so better rules need no document again.
//!
//! A text without the number of a directive is no directive: a correction of a proposal that was published as a rule. It is rejected, and kept
//! as such, unless it corrects a document by number.

use std::collections::HashSet;

use directives::{ReadError, clean, split};
use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::directives::DirectiveFact;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    ABSTRACT_CHARS_MAX, Document, DocumentPage, FieldCheck, HOST, LIST_MAX, ORIGIN, PAGES_MAX, PATH, identity, next_query, short_hash,
};
use crate::drift::FieldCounts;
use crate::json::{self, Records};
use crate::{Answer, Incomplete, Observation, Page, Reject, Request, Settings, Stream, UpstreamError, Window, drift, text};

/// The first day of the search: the API has no earlier documents.
const FIRST_DAY: Date = Date::constant(1994, 1, 1);
/// Documents per page of the search.
const PAGE_DOCUMENTS: usize = 20;
/// Documents of a page that are read.
const PENDING_MAX: usize = 1_000;
/// The longest regulatory text that is kept, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 10;
/// A text that is missing holds up the completeness of the stream for so many days, and is requested again. Later the next full read requests it.
const MISSING_DAYS: i64 = 30;
/// The longest path of a text, in bytes.
const TEXT_PATH_BYTES_MAX: usize = 200;
/// Where texts are.
const TEXT_PATH: &str = "/documents/full_text/text/";
const TEXT_MEDIA_TYPES: &[&str] = &["text/plain", "text/html", "application/octet-stream"];
const FIELDS: &[&str] = &[
    "document_number",
    "title",
    "type",
    "action",
    "abstract",
    "publication_date",
    "effective_on",
    "docket_ids",
    "citation",
    "correction_of",
    "html_url",
    "raw_text_url",
];

const EXPECTED: &[(&str, FieldCheck)] = &[
    ("document_number", |document| document.document_number.is_text()),
    ("title", |document| document.title.is_text()),
    ("publication_date", |document| document.publication_date.is_text()),
    ("raw_text_url", |document| document.raw_text_url.is_text()),
];

/// A document that the search found, as a fact without its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Hit {
    #[serde(flatten)]
    fact: DirectiveFact,
    /// The path of the text.
    path: String,
}

/// The position of a sync run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The first day of the search.
    from: Date,
    /// The last day of the run.
    stop: Date,
    /// The query of the next page, as the API gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    /// The beginnings of the hashes of the search's queries so far.
    #[serde(default)]
    visited: Vec<String>,
    /// How many documents the search has shown.
    #[serde(default)]
    seen: usize,
    /// Whether the search has a further page.
    #[serde(default)]
    has_more: bool,
    /// Whether the documents were just found, so that it is still unknown which of them are new.
    #[serde(default)]
    is_fresh: bool,
    /// The documents whose texts are to be requested.
    #[serde(default)]
    pending: Vec<Hit>,
}

impl Cursor {
    pub(super) fn new(window: &Window, settings: &Settings) -> Self {
        let earliest = match settings.backfill_days {
            0 => FIRST_DAY,
            days => window.to.saturating_sub(i64::from(days).days()).max(FIRST_DAY),
        };
        Self::of_search(window.from.unwrap_or(earliest).clamp(FIRST_DAY.min(window.to), window.to), window.to)
    }

    fn of_search(from: Date, stop: Date) -> Self {
        Self { from, stop, query: None, visited: Vec::new(), seen: 0, has_more: false, is_fresh: false, pending: Vec::new() }
    }

    /// The last day of the search: that of its year.
    fn to(&self) -> Date {
        Date::new(self.from.year(), 12, 31).unwrap_or(self.stop).min(self.stop)
    }

    /// The query of the page at the cursor.
    fn own_query(&self) -> String {
        if let Some(query) = &self.query {
            return query.clone();
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("conditions[cfr][title]", "14").append_pair("conditions[cfr][part]", "39");
        query.append_pair("conditions[type][]", "RULE");
        query.append_pair("conditions[publication_date][gte]", &self.from.to_string());
        query.append_pair("conditions[publication_date][lte]", &self.to().to_string());
        query.append_pair("order", "oldest").append_pair("per_page", &PAGE_DOCUMENTS.to_string());
        for field in FIELDS {
            query.append_pair("fields[]", field);
        }
        query.finish()
    }

    pub(super) fn request(&self) -> Request {
        match self.pending.first() {
            Some(hit) => Request {
                origin: ORIGIN.to_owned(),
                path: hit.path.clone(),
                accepts_statuses: &[404],
                media_types: TEXT_MEDIA_TYPES,
                ..Request::default()
            },
            None => json::request(ORIGIN, format!("{PATH}?{}", self.own_query())),
        }
    }

    /// The keys of the documents that were just found.
    pub(super) fn depends_on(&self) -> Vec<String> {
        self.pending.iter().filter(|_| self.is_fresh).map(|hit| key_of(&hit.fact)).collect()
    }

    /// Removes the known documents from those that were just found.
    pub(super) fn narrow(mut self, known: &HashSet<String>) -> Option<Self> {
        if self.is_fresh {
            self.is_fresh = false;
            self.pending.retain(|hit| !known.contains(&key_of(&hit.fact)));
        }
        if self.pending.is_empty() { self.next_search() } else { Some(self) }
    }

    /// Determines the cursor after the first pending document.
    fn advance(mut self) -> Option<Self> {
        self.is_fresh = false;
        if !self.pending.is_empty() {
            self.pending.remove(0);
        }
        if self.pending.is_empty() { self.next_search() } else { Some(self) }
    }

    /// Determines the cursor of the next page, or of the next year.
    fn next_search(self) -> Option<Self> {
        if self.has_more {
            return Some(Self { has_more: false, is_fresh: false, pending: Vec::new(), ..self });
        }
        let from = self.to().saturating_add(1.day());
        (from <= self.stop && from > self.from).then(|| Self::of_search(from, self.stop))
    }
}

/// The key of a document. Before 2016 some numbers were used twice, so the day belongs to it.
fn key_of(fact: &DirectiveFact) -> String {
    format!("{}/{}@{}", fact.stream, fact.number, fact.published)
}

pub(super) fn map(stream: &Stream, cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    match cursor.pending.first().cloned() {
        None => found(stream, cursor, answer, today),
        Some(hit) => read(stream, cursor, &hit, answer),
    }
}

/// Reads a page of the search. It has no records; it names the texts to request.
fn found(stream: &Stream, cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let mut warnings = Vec::new();
    let body = json::body_text(&answer.body, &mut warnings);
    if let Ok(rejected) = serde_json::from_str::<Rejected>(&body) {
        return Ok(of_text(rejected.document, &rejected.text));
    }
    let found: DocumentPage<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
    let count = found.count.integer().and_then(|count| usize::try_from(count).ok());
    let Some(results) = found.results else {
        return match count {
            Some(0) if cursor.seen == 0 => Ok(Page { warnings, next: cursor.next_search().map(json::write_cursor), ..Page::default() }),
            _ => Err(json::later(stream.name, "an answer without results")),
        };
    };
    let (mut outside, mut kinds, mut fields, read) = (0, 0, FieldCounts::default(), results.len());
    let (hits, rejects) = Records::of_list(results).map(stream.name, EXPECTED, |document: &Document<'_>| {
        document.count(&mut fields);
        let hit = hit_of(stream, document, today)?;
        let day: Option<Date> = hit.fact.published.parse().ok();
        let is_outside = day.is_none_or(|day| day < cursor.from || day > cursor.to());
        let is_rule = document.kind.clean().eq_ignore_ascii_case("rule");
        outside += usize::from(is_outside);
        kinds += usize::from(!is_rule);
        Ok(Some(hit).filter(|_| is_rule && !is_outside))
    })?;
    let mut keys = HashSet::new();
    let pending = hits.into_iter().flatten().filter(|hit| keys.insert(key_of(&hit.fact))).take(PENDING_MAX).collect();
    warnings.extend(drift::outside(stream.name, "conditions[publication_date]", outside, read)?);
    warnings.extend(drift::outside(stream.name, "conditions[type]", kinds, read)?);
    let seen = cursor.seen.saturating_add(read);
    let mut visited = cursor.visited.clone();
    visited.push(short_hash(&cursor.own_query()));
    let mut page = Page { rejects, fields, warnings, ..Page::default() };
    let query = next_query(&visited, PAGES_MAX, seen, count, &found.next_page_url).unwrap_or_else(|what| {
        page.warnings.push(what.clone());
        page.incomplete = Some(Incomplete { what, from: Some(cursor.from) });
        None
    });
    let at = Cursor { has_more: query.is_some(), query, visited, seen, is_fresh: true, pending, ..cursor };
    let next = if at.pending.is_empty() { at.next_search() } else { Some(at) };
    page.next = next.map(json::write_cursor);
    Ok(page)
}

/// Reads what the search says of a document. The error names the document and the field.
fn hit_of(stream: &Stream, document: &Document<'_>, today: Date) -> Result<Hit, (String, String)> {
    let identity = identity(document, today)?;
    let path = text_path(document.raw_text_url.text()).ok_or_else(|| {
        let address = text::cut(document.raw_text_url.clean(), TEXT_PATH_BYTES_MAX);
        (identity.number.clone(), format!("raw_text_url is not an address of a text: {address:?}"))
    })?;
    let mut docket_ids = document.docket_ids.list();
    docket_ids.sort();
    docket_ids.dedup();
    docket_ids.truncate(LIST_MAX);
    let effective = text::date(document.effective_on.text()).map(|day| day.to_string());
    let fact = DirectiveFact {
        stream: stream.name.to_owned(),
        number: identity.number,
        title: identity.title,
        action: text::cut(document.action.clean(), ABSTRACT_CHARS_MAX),
        summary: text::cut(document.summary.clean(), ABSTRACT_CHARS_MAX),
        published: identity.published.to_string(),
        effective_on: effective.unwrap_or_default(),
        docket_ids,
        citation: text::cut(document.citation.clean(), TEXT_PATH_BYTES_MAX),
        correction_of: corrected_number(&document.correction_of.clean()),
        url: text::https(document.html_url.text(), ORIGIN),
        ..DirectiveFact::default()
    };
    Ok(Hit { fact, path })
}

/// The path of a text, if its address is on https and one of the journal's own texts.
fn text_path(address: &str) -> Option<String> {
    let url = Url::parse(address.trim()).ok()?;
    let is_own = url.scheme() == "https" && url.host_str() == Some(HOST) && url.port().is_none() && url.username().is_empty();
    let path = url.path();
    let is_text = path.starts_with(TEXT_PATH) && path.len() <= TEXT_PATH_BYTES_MAX && url.query().is_none();
    (is_own && is_text).then(|| path.to_owned())
}

/// The number of the corrected document, which the API gives as an address or as it is.
fn corrected_number(given: &str) -> String {
    let last = given.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    text::number(last.trim_end_matches(".json")).unwrap_or_default()
}

/// A document that was rejected, with its whole text, so that another version of this program can read it again.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rejected {
    document: DirectiveFact,
    text: String,
}

/// Wraps a rejected document, or a rejected record of the search, so that it is read again.
pub(super) fn single(raw: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice::<Rejected>(raw).is_ok().then(|| raw.to_vec())
}

/// Reads the text of a document.
fn read(stream: &Stream, cursor: Cursor, hit: &Hit, answer: &Answer) -> Result<Page, UpstreamError> {
    let stop = cursor.stop;
    let next = cursor.advance().map(json::write_cursor);
    let raw = text::decode(&answer.body);
    if answer.status == 404 || raw.trim().is_empty() {
        let published: Option<Date> = hit.fact.published.parse().ok();
        let what = format!("there is no text of document {}", hit.fact.number);
        let from = published.filter(|day| *day >= stop.saturating_sub(MISSING_DAYS.days()));
        return Ok(Page { next, warnings: vec![what.clone()], incomplete: Some(Incomplete { what, from }), ..Page::default() });
    }
    if is_block_page(&raw) {
        return Err(json::later(stream.name, "the response is an HTML page, not a text"));
    }
    Ok(Page { next, ..of_text(hit.fact.clone(), &raw) })
}

/// The page of one document with its text: its record, or the rejected document.
fn of_text(document: DirectiveFact, raw: &str) -> Page {
    let clean = clean(raw);
    let mut fields = FieldCounts::default();
    let regulatory = regulatory_part(&clean);
    let found = split(regulatory);
    fields.count([("text", found.is_ok())]);
    if let Err(error) = found
        && (document.correction_of.is_empty() || error == ReadError::Empty)
    {
        let reference = key_of(&document);
        let rejected = Rejected { document, text: raw.to_owned() };
        let raw = serde_json::to_vec(&rejected).unwrap_or_default();
        return Page { rejects: vec![Reject { reference, reason: format!("text: {error}"), raw }], fields, ..Page::default() };
    }
    let (kept, rest) = regulatory.split_at(regulatory.floor_char_boundary(TEXT_BYTES_MAX));
    let fact = DirectiveFact { text: kept.to_owned(), is_cut: !rest.is_empty(), ..document };
    let observation = Observation::new(key_of(&fact), FactData::Directive(Box::new(fact)));
    Page { observations: vec![observation], fields, ..Page::default() }
}

/// The part of a text that changes the Code: from the last heading of part 39 on before the first directive; else from that directive on. Without
/// a directive it is the whole text.
fn regulatory_part(text: &str) -> &str {
    let first = split(text).ok().and_then(|found| found.first().map(|one| one.span.start));
    let Some(first) = first else { return text };
    let before = text.get(..first).unwrap_or_default();
    let heading = ["PART 39", "Part 39"].iter().filter_map(|heading| before.rfind(heading)).max();
    text.get(heading.unwrap_or(first)..).unwrap_or(text)
}

/// Whether a text is a page with which the server answers instead of a document.
fn is_block_page(text: &str) -> bool {
    let start: String = text.chars().take(2_000).collect::<String>().to_lowercase();
    start.contains("<html")
        && !start.contains("<pre")
        && ["captcha", "access denied", "request access"].iter().any(|word| start.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only the journal's own texts are requested.
    #[test]
    fn paths() {
        let path = "/documents/full_text/text/2026/08/20/2026-17553.txt";
        assert_eq!(text_path(&format!("https://www.federalregister.gov{path}")).as_deref(), Some(path));
        for bad in [
            "http://www.federalregister.gov/documents/full_text/text/1.txt",
            "https://www.federalregister.gov.example/documents/full_text/text/1.txt",
            "https://www.federalregister.gov/documents/full_text/text/1.txt?a=b",
            "https://www.federalregister.gov/documents/full_text/text/../../../api/v1/agencies",
            "/documents/full_text/text/1.txt",
            "",
        ] {
            assert_eq!(text_path(bad), None, "{bad}");
        }
    }

    /// Proves that the corrected document is read from an address, and that other texts name none.
    #[test]
    fn corrected_documents() {
        assert_eq!(corrected_number("https://www.federalregister.gov/api/v1/documents/2026-02415.json"), "2026-02415");
        assert_eq!(corrected_number("2026-02415"), "2026-02415");
        assert_eq!(corrected_number(""), "");
    }
}

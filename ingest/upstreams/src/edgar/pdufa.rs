//! `edgar.pdufa`: sentences about target action dates (PDUFA dates) in current, quarterly and annual reports.
//!
//! The full-text search names the documents of a week that contain the word. Each document that is not known yet is requested once, and its
//! sentences about the subject are kept, each with the text before it. What a sentence says is decided later, from the facts, so a better
//! rule needs no document again. A search that fails says nothing: no statement is ever withdrawn.

use std::collections::HashSet;
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::filings::base_form;
use schemas::facts::statements::StatementFact;
use serde::{Deserialize, Serialize};

use super::full_text::{self, Search, SearchHit};
use super::live::name_of;
use super::{BACK_OFF, COMPANY_CHARS_MAX, accession, cik, document, file, form, is_missing};
use crate::drift::FieldCounts;
use crate::json;
use crate::{Answer, BackOffRule, Incomplete, Observation, Page, Request, Stream, UpstreamError, drift, text};

const FORMS: &[&str] = &["8-K", "6-K", "10-Q", "10-K"];
/// The days of one search.
const SEARCH_DAYS: i64 = 7;
/// How far back a full read goes: companies announce a date up to a year before it.
const FULL_READ_DAYS: i64 = 400;
/// Documents per page of the search.
const PAGE: usize = 100;
/// The search shows no more documents than this.
const SHOWN_MAX: usize = 10_000;
/// Sentences kept of one document.
const SENTENCES_MAX: usize = 40;
/// A longer sentence is a table or a list, and is left out: a part of it would have another hash.
const SENTENCE_CHARS_MAX: usize = 1_500;
/// The characters kept before a sentence.
const BEFORE_CHARS: usize = 300;
/// The longest name of a file, in bytes.
const FILE_BYTES_MAX: usize = 120;
/// What a sentence must contain.
const SUBJECTS: &[&str] = &["PDUFA", "Prescription Drug User Fee Act"];
/// Documents are HTML, and may contain the words of a page that asks for a pause. Only the titles of such pages mean it.
static DOCUMENT_BACK_OFF: BackOffRule = BackOffRule {
    statuses: &[403, 429],
    markers: &["<title>SEC.gov | Request Rate Threshold Exceeded", "from an Undeclared Automated Tool"],
    pause: Duration::from_secs(660),
};
/// Media types of documents; a missing file is reported as XML.
const DOCUMENT_MEDIA_TYPES: &[&str] = &["text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml"];

/// A document that the search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Hit {
    accession: String,
    file: String,
    cik: String,
    company: String,
    form: String,
    filed: Date,
}

impl Hit {
    fn key(&self, stream: &str, n: usize) -> String {
        format!("{stream}/{}/{}/{n}", self.accession, self.file)
    }

    fn path(&self) -> String {
        let (cik, plain) = (self.cik.trim_start_matches('0'), self.accession.replace('-', ""));
        format!("/Archives/edgar/data/{cik}/{plain}/{}", self.file)
    }
}

/// The position of a sync run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The first day of the search.
    from: Date,
    /// The last day of the run.
    stop: Date,
    /// The number of the first document of the search's next page.
    #[serde(default)]
    start: usize,
    /// Whether the search has a further page.
    #[serde(default)]
    has_more: bool,
    /// Whether the documents were just found, so that it is still unknown which of them are new.
    #[serde(default)]
    fresh: bool,
    /// The documents to request now.
    #[serde(default)]
    pending: Vec<Hit>,
}

impl Cursor {
    /// The first search of a run. A full read begins earlier than other streams of the upstream.
    pub(super) fn new(from: Option<Date>, to: Date) -> Self {
        let earliest = to.saturating_sub(FULL_READ_DAYS.days());
        let from = from.unwrap_or(earliest).clamp(earliest, to);
        Self { from, stop: to, start: 0, has_more: false, fresh: false, pending: Vec::new() }
    }

    fn to(&self) -> Date {
        self.from.saturating_add((SEARCH_DAYS - 1).days()).min(self.stop)
    }

    pub(super) fn request(&self) -> Request {
        match self.pending.first() {
            Some(hit) => Request { media_types: DOCUMENT_MEDIA_TYPES, back_off: Some(&DOCUMENT_BACK_OFF), ..file(hit.path()) },
            None => self.search(),
        }
    }

    fn search(&self) -> Request {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("q", "\"PDUFA\"").append_pair("forms", &FORMS.join(",")).append_pair("dateRange", "custom");
        query.append_pair("startdt", &self.from.to_string()).append_pair("enddt", &self.to().to_string());
        if self.start > 0 {
            query.append_pair("from", &self.start.to_string());
        }
        Request { back_off: Some(&BACK_OFF), ..json::request(full_text::ORIGIN, format!("/LATEST/search-index?{}", query.finish())) }
    }

    /// The keys under which the documents that were just found may be known: with or without a sentence.
    pub(super) fn depends_on(&self, stream: &str) -> Vec<String> {
        self.pending.iter().filter(|_| self.fresh).flat_map(|hit| [hit.key(stream, 0), hit.key(stream, 1)]).collect()
    }

    /// Removes the known documents from those that were just found.
    pub(super) fn narrow(mut self, stream: &str, known: &HashSet<String>) -> Option<Self> {
        if self.fresh {
            self.fresh = false;
            self.pending.retain(|hit| !(0..=1).any(|n| known.contains(&hit.key(stream, n))));
        }
        if self.pending.is_empty() { self.next_search() } else { Some(self) }
    }

    /// Determines the cursor after the first pending document.
    fn advance(mut self) -> Option<Self> {
        self.fresh = false;
        if !self.pending.is_empty() {
            self.pending.remove(0);
        }
        if self.pending.is_empty() { self.next_search() } else { Some(self) }
    }

    /// Determines the cursor of the next page, or of the next week.
    fn next_search(self) -> Option<Self> {
        if self.has_more {
            return Some(Self { has_more: false, fresh: false, pending: Vec::new(), ..self });
        }
        let from = self.to().saturating_add(1.day());
        (from <= self.stop && from > self.from).then(|| Self { from, start: 0, has_more: false, fresh: false, pending: Vec::new(), ..self })
    }
}

pub(super) fn map(stream: &Stream, cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    match cursor.pending.first().cloned() {
        None => found(stream, cursor, answer, today),
        Some(hit) => read(stream, cursor, &hit, answer),
    }
}

/// Reads a page of the search, which has no records and only names the next requests.
fn found(stream: &Stream, cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let mut warnings = Vec::new();
    let body = json::body_text(&answer.body, &mut warnings);
    let found: Search<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
    if found.timed_out.flag() {
        return Err(json::later(stream.name, "the search timed out"));
    }
    let hits = found.hits(stream)?;
    let mut problem = None;
    let total = hits.total(&mut problem);
    let hits = hits.list(&mut problem);
    if let Some(problem) = problem {
        return Err(json::later(stream.name, problem));
    }
    let (count, mut outside, mut bad, mut seen, mut pending) = (hits.len(), 0, 0, HashSet::new(), Vec::new());
    for hit in &hits {
        match hit_of(hit, today) {
            Some(hit) if hit.filed < cursor.from || hit.filed > cursor.to() => outside += 1,
            Some(hit) if FORMS.contains(&base_form(&hit.form)) => {
                if seen.insert(hit.key("", 0)) {
                    pending.push(hit);
                }
            }
            Some(_) => {}
            None => bad += 1,
        }
    }
    drift::share(stream.name, "hits._source", bad, count)?;
    if bad > 0 {
        warnings.push(format!("{bad} documents of the search could not be read"));
    }
    warnings.extend(drift::outside(stream.name, "startdt", outside, count)?);
    let start = cursor.start + count;
    let mut has_more = count > 0 && total.map_or(count >= PAGE, |total| start < total);
    let mut incomplete = None;
    if (has_more && start >= SHOWN_MAX) || (count == 0 && total.is_some_and(|total| total > cursor.start)) {
        has_more = false;
        let what = format!("the search from {} has {} documents and showed {start}", cursor.from, total.unwrap_or_default());
        incomplete = Some(Incomplete { what, from: Some(cursor.from) });
    }
    let through = (!has_more).then(|| cursor.to());
    let at = Cursor { start, has_more, pending, fresh: true, ..cursor };
    let next = if at.pending.is_empty() { at.next_search() } else { Some(at) };
    Ok(Page { next: next.map(json::write_cursor), through, warnings, incomplete, ..Page::default() })
}

fn hit_of(hit: &SearchHit<'_>, today: Date) -> Option<Hit> {
    let id = hit.id.clean();
    let (number, file) = id.split_once(':')?;
    let mut problem = None;
    let source = hit.source(&mut problem);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_file = (1..=FILE_BYTES_MAX).contains(&file.len()) && file.bytes().all(is_name) && !file.contains("..") && problem.is_none();
    let company = source.display_names.list().first().map(|name| name_of(name).to_owned()).unwrap_or_default();
    Some(Hit {
        accession: accession(number)?.to_owned(),
        file: Some(file).filter(|_| is_file)?.to_owned(),
        cik: source.ciks.list().first().and_then(|number| cik(number))?,
        company: text::cut(company, COMPANY_CHARS_MAX),
        form: form(source.form.text())?,
        filed: text::date(source.file_date.text()).filter(|day| text::is_plausible(*day, today))?,
    })
}

/// Reads a document: one record per sentence, or one without a sentence, so that the document is known.
fn read(stream: &Stream, cursor: Cursor, hit: &Hit, answer: &Answer) -> Result<Page, UpstreamError> {
    let next = cursor.advance().map(json::write_cursor);
    if is_missing(stream.name, answer)? {
        return Ok(Page { next, warnings: vec![format!("there is no document {}", hit.path())], ..Page::default() });
    }
    let source = text::decode(&answer.body);
    if is_block_page(&source) {
        return Err(json::later(stream.name, "the response is an HTML page, not a document"));
    }
    if is_cut_off(&source) {
        // A sentence at its end may be cut as well. It stays unknown, so the next run requests it again.
        return Ok(Page { next, warnings: vec![format!("the document {} has no end", hit.path())], ..Page::default() });
    }
    let (found, left_out) = statements(&source);
    let mut fields = FieldCounts::default();
    fields.count([("sentences", !found.is_empty())]);
    let record = |n: usize, sentence: String, before: String| {
        let fact = StatementFact {
            stream: stream.name.to_owned(),
            cik: hit.cik.clone(),
            company: hit.company.clone(),
            accession: hit.accession.clone(),
            file: hit.file.clone(),
            n: i64::try_from(n).unwrap_or_default(),
            form: hit.form.clone(),
            filed: hit.filed.to_string(),
            sentence,
            before,
            tickers: Vec::new(),
        };
        Observation::new(hit.key(stream.name, n), FactData::Statement(Box::new(fact)))
    };
    let observations: Vec<Observation> = if found.is_empty() {
        vec![record(0, String::new(), String::new())]
    } else {
        found.into_iter().enumerate().map(|(at, (sentence, before))| record(at + 1, sentence, before)).collect()
    };
    let warnings = (left_out > 0).then(|| "a document has sentences that are too long or too many".to_owned());
    Ok(Page { observations, next, fields, warnings: warnings.into_iter().collect(), ..Page::default() })
}

/// Whether a text is a page with which the server answers instead of a document.
fn is_block_page(source: &str) -> bool {
    let head: String = source.chars().take(4_000).collect();
    DOCUMENT_BACK_OFF
        .markers
        .iter()
        .chain(&["SEC.gov | File Unavailable", "Service Unavailable</", "<title>Access Denied</title>", "<TITLE>Access Denied</TITLE>"])
        .any(|mark| head.contains(mark))
}

/// Whether an HTML document begins but does not end. Documents without a tag for the whole are text.
fn is_cut_off(source: &str) -> bool {
    let lower = source.to_ascii_lowercase();
    lower.contains("<html") && !lower.contains("</html")
}

/// Finds the sentences about the subject, each once, with the text before it; and how many were left out.
fn statements(source: &str) -> (Vec<(String, String)>, usize) {
    let (mut out, mut left_out, mut seen) = (Vec::new(), 0, HashSet::new());
    if !SUBJECTS.iter().any(|subject| source.contains(subject)) && !source.contains("Prescription") {
        return (out, left_out);
    }
    let mut before = String::new();
    for paragraph in document::paragraphs(source) {
        if SUBJECTS.iter().any(|subject| paragraph.contains(subject)) {
            for (from, to) in document::sentences(&paragraph) {
                let sentence = paragraph.get(from..to).unwrap_or_default();
                if !SUBJECTS.iter().any(|subject| sentence.contains(subject)) || !seen.insert(sentence.to_owned()) {
                    continue;
                }
                if out.len() == SENTENCES_MAX || sentence.chars().count() > SENTENCE_CHARS_MAX {
                    left_out += 1;
                    continue;
                }
                let own = paragraph.get(..from).unwrap_or_default().trim_end();
                out.push((sentence.to_owned(), last_chars(format!("{before} {own}").trim())));
            }
        }
        before = last_chars(format!("{before} {paragraph}").trim());
    }
    (out, left_out)
}

/// Returns the end of a text, at most as many characters as are kept before a sentence, beginning with a whole word.
fn last_chars(text: &str) -> String {
    let count = text.chars().count();
    if count <= BEFORE_CHARS {
        return text.to_owned();
    }
    let cut: String = text.chars().skip(count - BEFORE_CHARS).collect();
    cut.split_once(' ').map_or(cut.clone(), |(_, rest)| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a document gives each sentence about the subject once, with what was written before it.
    #[test]
    fn sentences_with_context() {
        let page = "<p>Acmezumab is a treatment.</p><p>The FDA has set a PDUFA target action date of November&nbsp;27, 2026. More follows.</p>\
            <p>Bolunib has a Prescription Drug User Fee Act date of March 3, 2027.</p>\
            <p>The FDA has set a PDUFA target action date of November 27, 2026.</p>";
        let (found, left_out) = statements(page);
        assert_eq!((found.len(), left_out), (2, 0));
        assert_eq!(
            found[0],
            ("The FDA has set a PDUFA target action date of November 27, 2026.".into(), "Acmezumab is a treatment.".into())
        );
        assert!(found[1].1.ends_with("More follows."), "{found:?}");
        assert_eq!(statements(&format!("PDUFA {}", "x".repeat(2_000))), (Vec::new(), 1));
        assert_eq!(statements("<p>nothing</p>"), (Vec::new(), 0));
    }
}

//! The Federal Register, the daily journal of the United States government, through its API (version 1).
//!
//! A stream is one search. `federal_register.fda` finds notices of advisory committee meetings of the Food and Drug Administration.
//! `federal_register.ads` finds airworthiness directives and reads the text of each ([`ads`]). Paging and checks are shared.
//!
//! The API names the next page by URL, and newer answers carry a cursor in it. The URL is followed as it is given, only on https and only
//! to the host and path of the search, and never twice in one run. Fields that are not asked for are absent (`dates`, `action`). An answer
//! without hits has no list of results.

mod ads;
mod document;
mod query;

use std::collections::HashSet;
use std::time::Duration;

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::meetings::MeetingFact;
use schemas::position::UpstreamCursor;
use schemas::topics::{DIRECTIVES, MEETINGS, Topic};
use serde::{Deserialize, Serialize};

use self::document::{ABSTRACT_CHARS_MAX, Document, DocumentPage, EXPECTED, FieldCheck, Identity, LIST_MAX, identity, short_hash};
use self::query::{HOST, ORIGIN, PAGES_MAX, PATH, next_query};
use crate::drift::FieldCounts;
use crate::json::{self, Field, Records};
use crate::{
    Answer, Capabilities, Incomplete, KnownRecords, Licence, Manifest, Observation, Page, Request, Settings, Stream, Upstream,
    UpstreamError, Window, drift, text,
};

const PAGE_RECORDS: usize = 100;
/// How far back a full read goes. Meetings are announced weeks before they take place.
const FULL_READ_DAYS: u32 = 400;
const FIELDS: &[&str] = &["document_number", "title", "type", "action", "dates", "abstract", "publication_date", "html_url", "docket_ids"];

/// One search, whose results are a stream.
struct Search {
    stream: &'static str,
    /// The agency, as the API names it in addresses.
    agency: &'static str,
    /// The type of document, as the API's filter names it.
    kind: &'static str,
    /// Words and phrases, all of which a document contains.
    term: &'static str,
    map: Mapping,
}

/// Maps a document that has a number, a title and a day of publication.
type Mapping = fn(&Stream, &Document<'_>, &Identity) -> Observation;

static SEARCHES: &[Search] = &[Search {
    stream: "federal_register.fda",
    agency: "food-and-drug-administration",
    kind: "NOTICE",
    term: "\"advisory committee\" \"notice of meeting\"",
    map: meeting,
}];

/// The stream of airworthiness directives.
const ADS: &str = "federal_register.ads";

static MANIFEST: Manifest = Manifest {
    name: "federal_register",
    licence: Licence::of_government("Office of the Federal Register"),
    streams: &[stream(ADS, &DIRECTIVES), stream("federal_register.fda", &MEETINGS)],
    full_after: Duration::from_secs(30 * 86_400),
};

const fn stream(name: &'static str, topic: &'static Topic) -> Stream {
    Stream { name, topic, every: Duration::ZERO, snapshot: false, answer_bytes_max: 16 << 20, answer_timeout: Duration::from_secs(60) }
}

/// The upstream.
#[derive(Debug)]
pub struct FederalRegister;

/// The position of a sync run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// The first and the last day of publication.
    from: Date,
    to: Date,
    /// The query of the next page, as the API gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    /// The beginnings of the hashes of the queries so far.
    #[serde(default)]
    visited: Vec<String>,
    /// How many documents were read.
    #[serde(default)]
    seen: usize,
}

impl Upstream for FederalRegister {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor {
        if stream.name == ADS {
            return json::write_cursor(ads::Cursor::new(window, settings));
        }
        let from = window.first_day(FULL_READ_DAYS);
        json::write_cursor(Cursor { from, to: window.to, query: None, visited: Vec::new(), seen: 0 })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        if stream.name == ADS {
            return Ok(json::read_cursor::<ads::Cursor>(stream.name, cursor)?.request());
        }
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let path = match &cursor.query {
            Some(query) => format!("{PATH}?{query}"),
            None => format!("{PATH}?{}", first_query(search(stream)?, cursor.from, cursor.to)),
        };
        Ok(json::request(ORIGIN, path))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        if stream.name == ADS {
            return ads::map(stream, json::read_cursor(stream.name, cursor)?, answer, today);
        }
        let (cursor, search): (Cursor, _) = (json::read_cursor(stream.name, cursor)?, search(stream)?);
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let found: DocumentPage<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
        let count = found.count.integer().and_then(|count| usize::try_from(count).ok());
        let Some(results) = found.results else {
            // Without hits there is no list. Any other answer without one is refused: it does not say that there are no documents.
            return match count {
                Some(0) if cursor.seen == 0 => Ok(Page { warnings, ..Page::default() }),
                _ => Err(json::later(stream.name, "an answer without results")),
            };
        };
        let (mut outside, mut fields, read) = (0, FieldCounts::default(), results.len());
        let (observations, rejects) = Records::of_list(results).map(stream.name, EXPECTED, |document: &Document<'_>| {
            document.count(&mut fields);
            let identity = identity(document, today)?;
            outside += usize::from(identity.published < cursor.from || identity.published > cursor.to);
            Ok((search.map)(stream, document, &identity))
        })?;
        warnings.extend(drift::outside(stream.name, "conditions[publication_date]", outside, read)?);
        let mut page = Page { observations, rejects, warnings, fields, ..Page::default() };
        page.next = next(search, &cursor, read, count, &found.next_page_url, &mut page).map(json::write_cursor);
        Ok(page)
    }

    fn single(&self, stream: &Stream, raw: &[u8]) -> Vec<u8> {
        let document = if stream.name == ADS { ads::single(raw) } else { None };
        document.unwrap_or_else(|| [br#"{"count":1,"results":["#, raw, b"]}"].concat())
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { known_records: Some(self), ..Capabilities::default() }
    }
}

impl KnownRecords for FederalRegister {
    fn depends_on(&self, stream: &Stream, cursor: &UpstreamCursor) -> Vec<String> {
        let cursor = (stream.name == ADS).then(|| json::read_cursor::<ads::Cursor>(stream.name, cursor).ok()).flatten();
        cursor.map(|cursor| cursor.depends_on()).unwrap_or_default()
    }

    fn narrow(&self, stream: &Stream, cursor: &UpstreamCursor, known: &HashSet<String>) -> Option<UpstreamCursor> {
        if stream.name != ADS {
            return Some(cursor.clone());
        }
        json::read_cursor::<ads::Cursor>(stream.name, cursor).ok()?.narrow(known).map(json::write_cursor)
    }
}

fn search(stream: &Stream) -> Result<&'static Search, UpstreamError> {
    let unknown = || UpstreamError::Stop { stream: stream.name, field: "stream".to_owned(), reason: "has no search".to_owned() };
    SEARCHES.iter().find(|search| search.stream == stream.name).ok_or_else(unknown)
}

/// Builds the query of a search's first page.
fn first_query(search: &Search, from: Date, to: Date) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("conditions[agencies][]", search.agency);
    query.append_pair("conditions[type][]", search.kind);
    query.append_pair("conditions[term]", search.term);
    query.append_pair("conditions[publication_date][gte]", &from.to_string());
    query.append_pair("conditions[publication_date][lte]", &to.to_string());
    query.append_pair("order", "newest").append_pair("per_page", &PAGE_RECORDS.to_string());
    for field in FIELDS {
        query.append_pair("fields[]", field);
    }
    query.finish()
}

/// Determines the cursor after a page with this many documents. Adds warnings, and what stays incomplete, to the page.
fn next(search: &Search, cursor: &Cursor, read: usize, count: Option<usize>, address: &Field<'_>, page: &mut Page) -> Option<Cursor> {
    let seen = cursor.seen.saturating_add(read);
    let own = cursor.query.clone().unwrap_or_else(|| first_query(search, cursor.from, cursor.to));
    let mut visited = cursor.visited.clone();
    visited.push(short_hash(&own));
    match next_query(&visited, PAGES_MAX, seen, count, address) {
        Ok(query) => query.map(|query| Cursor { query: Some(query), visited, seen, ..cursor.clone() }),
        Err(what) => {
            page.warnings.push(what.clone());
            // The newest documents come first, so the oldest of the window are missing.
            page.incomplete = Some(Incomplete { what, from: None });
            None
        }
    }
}

/// Maps a notice of a meeting.
fn meeting(stream: &Stream, document: &Document<'_>, identity: &Identity) -> Observation {
    let mut docket_ids = document.docket_ids.list();
    docket_ids.sort();
    docket_ids.dedup();
    docket_ids.truncate(LIST_MAX);
    let fact = MeetingFact {
        stream: stream.name.to_owned(),
        number: identity.number.clone(),
        title: identity.title.clone(),
        kind: document.kind.clean(),
        action: document.action.clean(),
        // Not cleaned: its hash is published, and a stranger computes it from the API's own text.
        dates: document.dates.text().to_owned(),
        summary: text::cut(document.summary.clean(), ABSTRACT_CHARS_MAX),
        published: identity.published.to_string(),
        docket_ids,
        url: text::https(document.html_url.text(), ORIGIN),
    };
    Observation::new(format!("{}/{}", stream.name, identity.number), FactData::Meeting(Box::new(fact)))
}

//! Clinical trials from the registry ClinicalTrials.gov, through its API version 2.
//!
//! Studies are read by the date of the last posted update, which changes with every new trial, new status and new results. A full read
//! covers all studies updated within the last [`YEARS`] years, one month at a time; active studies must be updated once a year.
//!
//! The registry publishes a new data version each working day. The version is requested before and after a sync run. If it changed, the
//! pages belong to two versions, and the last days are read again.
//!
//! The registry omits empty fields, so only identity, title, status, sponsor and update date are expected.

pub(crate) mod live;
mod study;

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::TRIALS;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::study::{EXPECTED, ORIGIN, Study, observe};
use crate::drift::FieldCounts;
use crate::json::{self, Field, Part, Records};
use crate::{Answer, Licence, Manifest, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, drift, text};

/// How many years back a full read reaches.
pub const YEARS: i16 = 2;
/// Records per page: the server's maximum.
const LIMIT: usize = 1_000;
/// How many days are read again when the registry published a new version during a run.
const AGAIN_DAYS: i64 = 3;
/// A longer page token is refused.
const TOKEN_BYTES_MAX: usize = 4_000;
/// The requested fields, by the registry's names.
const FIELDS: &str = "NCTId|NCTIdAlias|BriefTitle|OfficialTitle|Acronym|OverallStatus|LastKnownStatus|WhyStopped|StartDate|StartDateType|\
    PrimaryCompletionDate|PrimaryCompletionDateType|CompletionDate|CompletionDateType|StudyFirstPostDate|ResultsFirstPostDate|\
    LastUpdatePostDate|LeadSponsorName|LeadSponsorClass|CollaboratorName|BriefSummary|Condition|Keyword|StudyType|Phase|EnrollmentCount|\
    EnrollmentType|InterventionType|InterventionName|LocationFacility|LocationState|LocationCountry";
/// The filter parameter that selects the studies.
const FILTER: &str = "filter.advanced";
/// Media types of the version, or of the answer that there is none. An HTML page is not a version.
const VERSION_MEDIA_TYPES: &[&str] = &["application/json", "text/json", "text/plain", "text/html", "application/octet-stream"];

static MANIFEST: Manifest = Manifest {
    name: "clinical_trials",
    licence: Licence::of_government("ClinicalTrials.gov, National Library of Medicine"),
    streams: &[Stream {
        name: "clinical_trials",
        topic: &TRIALS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 128 << 20,
        answer_timeout: Duration::from_secs(180),
    }],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct ClinicalTrials;

/// The step of a sync run that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// The data version before the first page.
    Before,
    /// A page of studies.
    Studies,
    /// The data version after the last page.
    After,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    step: Step,
    /// The days that this request asks for. The last window of a run has no end.
    from: Date,
    to: Date,
    /// The last day of the sync run.
    stop: Date,
    /// The page token; none for the first page of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// How many studies the first page of the window announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// How many studies of this window were received.
    seen: usize,
    /// The data version, if it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    version: String,
    /// Whether the last days are being read again.
    #[serde(default)]
    again: bool,
}

impl Cursor {
    /// Returns the month that begins with a day.
    fn month(&self, from: Date) -> Self {
        let to = from.last_of_month().min(self.stop);
        Self { step: Step::Studies, from, to, token: None, total: None, seen: 0, ..self.clone() }
    }

    fn next_window(&self) -> Option<Self> {
        if self.to < self.stop {
            return Some(self.month(self.to.saturating_add(1.day())));
        }
        (!self.again && !self.version.is_empty()).then(|| Self { step: Step::After, token: None, ..self.clone() })
    }

    fn contains(&self, day: Date) -> bool {
        day >= self.from && (day <= self.to || self.to >= self.stop)
    }
}

impl Upstream for ClinicalTrials {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, window: &Window, _settings: &Settings) -> UpstreamCursor {
        let stop = window.to;
        let from = window.from.unwrap_or_else(|| stop.checked_sub(i32::from(YEARS).years()).unwrap_or(stop)).min(stop);
        let (token, total, seen, version, again) = (None, None, 0, String::new(), false);
        let cursor = Cursor { step: Step::Before, from, to: stop, stop, token, total, seen, version, again };
        json::write_cursor(Cursor { step: Step::Before, ..cursor.month(from) })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let is_page = cursor.step == Step::Studies;
        let path = if is_page { path_of(&cursor) } else { "/api/v2/version".to_owned() };
        Ok(Request {
            // Without a version the run is still valid.
            accepts_statuses: if is_page { &[] } else { &[400, 404, 405, 410, 501] },
            media_types: if is_page { json::MEDIA_TYPES } else { VERSION_MEDIA_TYPES },
            ..json::request(ORIGIN, path)
        })
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let envelope = read(stream.name, &body);
        // A rejected record that is retried arrives as a page at the first cursor of a run.
        let (records, token, total) = match envelope {
            Ok(Envelope { studies: Some(studies), next_page_token, total_count, .. }) => {
                (Records::of_list(studies), next_page_token, total_count)
            }
            Ok(Envelope { nct_section, .. }) if nct_section.is_object() => {
                (Records::of_one(stream.name, &body)?, Field::Absent, Field::Absent)
            }
            other if cursor.step != Step::Studies => return Ok(versioned(&cursor, other.ok(), warnings)),
            Ok(Envelope { message, .. }) => {
                return Err(json::later(stream.name, format!("an answer without studies: {}", text::cut(message.clean(), 200))));
            }
            Err(error) => return Err(error),
        };
        let (mut outside, mut fields) = (0, FieldCounts::default());
        let (observations, rejects) = records.map(stream.name, EXPECTED, |study: &Study<'_>| {
            outside += usize::from(study.updated().is_some_and(|day| !cursor.contains(day)));
            study.count(&mut fields);
            observe(stream, study, today)
        })?;
        warnings.extend(drift::outside(stream.name, FILTER, outside, records.len())?);
        let next = follow(stream.name, &cursor, records.len(), &token, &total, &mut warnings)?;
        Ok(Page { observations, rejects, next: next.map(json::write_cursor), warnings, fields, ..Page::default() })
    }

    fn single(&self, _stream: &Stream, raw: &[u8]) -> Vec<u8> {
        [br#"{"studies":["#, raw, b"]}"].concat()
    }
}

fn path_of(cursor: &Cursor) -> String {
    let to = if cursor.to < cursor.stop { cursor.to.to_string() } else { "MAX".to_owned() };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(FILTER, &format!("AREA[LastUpdatePostDate]RANGE[{},{to}]", cursor.from));
    query.append_pair("sort", "LastUpdatePostDate:asc").append_pair("fields", FIELDS).append_pair("pageSize", &LIMIT.to_string());
    match &cursor.token {
        Some(token) => query.append_pair("pageToken", token),
        None => query.append_pair("countTotal", "true"),
    };
    format!("/api/v2/studies?{}", query.finish())
}

/// Determines the page and cursor that follow from the data version, or from its absence.
fn versioned(cursor: &Cursor, answer: Option<Envelope<'_>>, mut warnings: Vec<String>) -> Page {
    let version = answer.map(|answer| text::cut(answer.data_timestamp.clean(), 40)).unwrap_or_default();
    let moved = cursor.step == Step::After && !version.is_empty() && version != cursor.version;
    let next = if cursor.step == Step::Before {
        if version.is_empty() {
            warnings.push("the registry names no version: whether it moves during the run is not known".to_owned());
        }
        Some(Cursor { step: Step::Studies, version, ..cursor.clone() })
    } else if moved {
        warnings.push("the registry published a new version during the run: its last days are read again".to_owned());
        let from = cursor.stop.checked_sub(AGAIN_DAYS.days()).unwrap_or(cursor.stop);
        Some(Cursor { again: true, version, ..cursor.month(from) })
    } else {
        None
    };
    Page { next: next.map(json::write_cursor), warnings, ..Page::default() }
}

/// Determines the cursor after a page. An empty page may be followed by others; only the token counts.
fn follow(
    stream: &'static str,
    cursor: &Cursor,
    read: usize,
    token: &Field<'_>,
    total: &Field<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<Cursor>, UpstreamError> {
    let seen = cursor.seen.saturating_add(read);
    let total = cursor.total.or_else(|| usize::try_from(total.integer()?).ok());
    let token = Some(token.text().to_owned()).filter(|token| !token.is_empty());
    if token.as_ref().is_some_and(|token| token.len() > TOKEN_BYTES_MAX) {
        return Err(json::later(stream, format!("nextPageToken is longer than {TOKEN_BYTES_MAX} bytes")));
    }
    if token.is_some() && token == cursor.token {
        warnings.push(format!("the answer names its own page as the next one: the window {} to {} ended early", cursor.from, cursor.to));
    } else if token.is_some() {
        return Ok(Some(Cursor { step: Step::Studies, token, total, seen, ..cursor.clone() }));
    }
    if let Some(total) = total.filter(|total| seen < *total) {
        warnings.push(format!("the upstream counts {total} records in the window {} to {} but sent {seen}", cursor.from, cursor.to));
    }
    Ok(cursor.next_window())
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    studies: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    next_page_token: Field<'a>,
    #[serde(borrow)]
    total_count: Field<'a>,
    /// The fields of a study that arrives alone.
    #[serde(borrow, rename = "protocolSection")]
    nct_section: Part<'a>,
    #[serde(borrow)]
    data_timestamp: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}

fn read<'a>(stream: &'static str, body: &'a str) -> Result<Envelope<'a>, UpstreamError> {
    serde_json::from_str(body).map_err(|error| json::not_json(stream, body, &error))
}

//! Federal contract awards of USAspending, in four streams.
//!
//! - `usaspending.transactions` is complete: every base award and modification whose modification date is in the window. Its search has no
//!   unique sort order, so a page may repeat a row of the page before while another row is never shown. Each slice is therefore counted
//!   first, then read by award number, read backwards when rows are missing, and split further when they are still missing. A finest slice
//!   whose rows do not add up is read again at the end of the run ([`slice`], [`tie`]).
//! - `usaspending.awards` is the current state of the awards: totals and dates. Its modification date is that of the action with the newest
//!   date, so a correction of an older action does not show; the weekly read of all new awards compensates for that.
//! - `usaspending.details` has what the searches do not show (parents, offices, ceilings, competition), only for large awards because it
//!   costs one request each; and the actions of those awards that end soon.
//! - `usaspending.totals` has sums by parent and fiscal year, of the companies of the crosswalk ([`totals`]).
//!
//! Contracts of the Department of Defense are published ninety days late, under their original modification date. Each run therefore also
//! reads the same days of a quarter of a year ago.
//!
//! Not read on purpose: `recipient_id` and three more search fields, because requesting them has made the server fail; deletions, which
//! only the monthly files contain; `last_updated`, which would save nothing in a daily run.

mod detail;
pub(crate) mod live;
mod parts;
mod plan;
mod rows;
mod search;
mod slice;
mod tie;
mod totals;

use std::time::Duration;

use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::{AWARDS, COMPANY_FACTS};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{self, Field, Object, Records};
use crate::{Answer, Manifest, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, drift, text};
use detail::Detail;
use plan::{Cursor, Step};

const ORIGIN: &str = "https://api.usaspending.gov";
const TRANSACTIONS: &str = "usaspending.transactions";
const AWARD_STATES: &str = "usaspending.awards";
const DETAILS: &str = "usaspending.details";
const TOTALS: &str = "usaspending.totals";
/// The minimum interval of the sums: years are corrected for a long time, and slowly.
const DAYS_28: Duration = Duration::from_secs(28 * 86_400);

const fn stream(name: &'static str) -> Stream {
    Stream {
        name,
        topic: &AWARDS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 32 << 20,
        answer_timeout: Duration::from_secs(120),
    }
}

static MANIFEST: Manifest = Manifest {
    name: "usaspending",
    streams: &[
        stream(TRANSACTIONS),
        stream(AWARD_STATES),
        stream(DETAILS),
        Stream { topic: &COMPANY_FACTS, every: DAYS_28, ..stream(TOTALS) },
    ],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct UsaSpending;

impl Upstream for UsaSpending {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor {
        if stream.name == TOTALS {
            // Of the companies of the demo no real upstream is asked, and of real ones no simulated one.
            return json::write_cursor(totals::Cursor::new(window.to, settings.base_url.is_some()));
        }
        json::write_cursor(Cursor::start(stream.name, window, settings.window_days))
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        if stream.name == TOTALS {
            return json::read_cursor::<totals::Cursor>(stream.name, cursor)?.request(stream);
        }
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        if cursor.plan.is_empty() {
            return Err(UpstreamError::Stop {
                stream: stream.name,
                field: "cursor".to_owned(),
                reason: "it has no request to make".to_owned(),
            });
        }
        Ok(search::request(stream.name, &cursor))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        if stream.name == TOTALS {
            return totals::map(stream, json::read_cursor(stream.name, cursor)?, answer, today);
        }
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut page = Page::default();
        if answer.status == 404 {
            return not_there(stream, cursor, page);
        }
        let body = json::body_text(&answer.body, &mut page.warnings);
        let envelope = Envelope::read(stream, answer.status, &body)?;
        page.warnings.extend(envelope.warnings(stream)?);
        let next = match envelope.content(&body) {
            Content::Counts(counts) => slice::counted(stream, cursor, counts, &mut page.warnings)?,
            Content::Award(award) => {
                let records = Records::of_list(vec![award]);
                let fields = &mut page.fields;
                let (observations, rejects) = records.map(stream.name, &[], |award: &Detail<'_>| {
                    award.count(fields);
                    detail::observe(stream, award)
                })?;
                let ends_soon = observations.iter().any(|award| detail::ends_soon(&award.data, today));
                (page.observations, page.rejects) = (observations, rejects);
                cursor.after_award(ends_soon)
            }
            Content::Rows(list) => {
                let read = rows::read(stream, &cursor, list, today, &mut page)?;
                slice::read(stream, cursor, &envelope.paging(), read, today, &mut page)?
            }
            Content::Nothing => return Err(json::later(stream.name, "an answer without results")),
        };
        page.next = next.map(json::write_cursor);
        Ok(page)
    }

    fn single(&self, _stream: &Stream, raw: &[u8]) -> Vec<u8> {
        [br#"{"results":["#, raw, br#"],"page_metadata":{"page":1,"hasNext":false}}"#].concat()
    }
}

/// Handles a 404 at a cursor: continues without the missing count or award, with a warning.
fn not_there(stream: &Stream, cursor: Cursor, mut page: Page) -> Result<Page, UpstreamError> {
    let next = match &cursor.step {
        Step::Count => {
            page.warnings.push("there are no counts (404): what is read cannot be checked against them".to_owned());
            Some(cursor.first_page(None))
        }
        Step::Award { ids, .. } | Step::Actions { ids, .. } => {
            page.warnings.push(format!("{} is not there (404)", ids.first().map_or("an award", |id| id)));
            cursor.after_actions()
        }
        Step::Rows(_) => return Err(json::later(stream.name, "status 404 for a search: has the path changed?")),
    };
    page.next = next.map(json::write_cursor);
    Ok(page)
}

/// An answer of any endpoint.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    #[serde(borrow)]
    page_metadata: Object<PageMetadata<'a>>,
    #[serde(borrow)]
    messages: Field<'a>,
    #[serde(borrow)]
    detail: Field<'a>,
    /// Present in the answer to a request for one award.
    #[serde(borrow)]
    generated_unique_award_id: Field<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageMetadata<'a> {
    #[serde(borrow)]
    page: Field<'a>,
    #[serde(borrow, rename = "hasNext")]
    has_next: Field<'a>,
    #[serde(borrow)]
    last_record_unique_id: Field<'a>,
    #[serde(borrow)]
    last_record_sort_value: Field<'a>,
}

/// The paging information of an answer.
#[derive(Debug, Default)]
struct Paging {
    /// The page number, if the answer has one.
    page: Option<u32>,
    has_next: bool,
    /// The id and sort value for continuing beyond the numbered pages; always both.
    after: Option<(u64, String)>,
}

/// The number of rows in each group of award types.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts<'a> {
    #[serde(borrow)]
    contracts: Field<'a>,
    #[serde(borrow)]
    idvs: Field<'a>,
}

/// The kind of an answer. It is recognised by its form, not by the request, so that a rejected record can be read again on its own.
enum Content<'a> {
    Counts(Counts<'a>),
    Award(&'a RawValue),
    Rows(Vec<&'a RawValue>),
    Nothing,
}

impl<'a> Envelope<'a> {
    fn read(stream: &Stream, status: u16, body: &'a str) -> Result<Self, UpstreamError> {
        let Object(read) = serde_json::from_str(body).map_err(|error| json::not_json(stream.name, body, &error))?;
        let envelope: Self = read.ok_or_else(|| json::later(stream.name, "JSON that is no object"))?;
        if status != 200 {
            let words = text::cut(text::clean(envelope.detail.text()), 300);
            let reason = format!("refused by the upstream (status {status}): {words}");
            return Err(UpstreamError::Stop { stream: stream.name, field: "filters".to_owned(), reason });
        }
        Ok(envelope)
    }

    /// Checks the server's messages. If a filter was not used, the result is too large, so the whole answer is refused.
    fn warnings(&self, stream: &Stream) -> Result<Vec<String>, UpstreamError> {
        let mut warnings = Vec::new();
        for message in self.messages.list() {
            let lower = message.to_ascii_lowercase();
            let message = text::cut(message, 300);
            if ["not used", "unused", "ignored", "unknown filter", "not supported"].iter().any(|words| lower.contains(words)) {
                return Err(UpstreamError::Stop {
                    stream: stream.name,
                    field: "filters".to_owned(),
                    reason: format!("the server says: {message}"),
                });
            }
            // This message is part of every answer.
            if !lower.contains("earliest date of 2007-10-01") {
                warnings.push(format!("the server says: {message}"));
            }
        }
        Ok(warnings)
    }

    fn content(&self, body: &'a str) -> Content<'a> {
        let Some(results) = self.results else {
            let is_award = !self.generated_unique_award_id.text().is_empty();
            return serde_json::from_str(body).ok().filter(|_| is_award).map_or(Content::Nothing, Content::Award);
        };
        match results.get().as_bytes().first() {
            Some(b'[') => serde_json::from_str(results.get()).map_or(Content::Nothing, Content::Rows),
            Some(b'{') => serde_json::from_str(results.get()).map_or(Content::Nothing, Content::Counts),
            _ => Content::Nothing,
        }
    }

    fn paging(&self) -> Paging {
        let Some(metadata) = &self.page_metadata.0 else { return Paging::default() };
        let id = metadata.last_record_unique_id.text().parse().ok();
        let value = Some(metadata.last_record_sort_value.text().to_owned()).filter(|value| !value.is_empty() && value.len() <= 200);
        Paging { page: metadata.page.text().parse().ok(), has_next: metadata.has_next.flag(), after: id.zip(value) }
    }
}

/// Parses a date without checking whether it is plausible, because agencies report implausible dates.
fn day(field: &Field<'_>) -> String {
    text::date(field.text()).filter(|day| day.year() >= 1900).map(|day| day.to_string()).unwrap_or_default()
}

/// Judges the days outside the requested ones, over all pages of a slice.
fn outside(stream: &Stream, cursor: &Cursor) -> Result<Option<String>, UpstreamError> {
    let Step::Rows(rows) = &cursor.step else { return Ok(None) };
    drift::outside(stream.name, "time_period", rows.outside, rows.seen)
}

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
mod envelope;
pub(crate) mod live;
mod parts;
mod plan;
mod rows;
mod search;
mod slice;
mod streams;
mod tie;
mod totals;

use std::time::Duration;

use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::{AWARDS, COMPANY_FACTS};

use self::detail::day;
use self::envelope::{Content, Counts, Envelope, Paging};
use self::streams::{AWARD_STATES, DETAILS, ORIGIN, TOTALS, TRANSACTIONS};
use crate::json::{self, Records};
use crate::{Answer, Licence, Manifest, Page, Request, Settings, Stream, Upstream, UpstreamError, Window};
use detail::Detail;
use plan::{Cursor, Step};

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
    licence: Licence::of_government("Department of the Treasury"),
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
            page.warnings.push(format!("{} does not exist (404)", ids.first().map_or("an award", |id| id)));
            cursor.after_actions()
        }
        Step::Rows(_) => return Err(json::later(stream.name, "status 404 for a search: has the path changed?")),
    };
    page.next = next.map(json::write_cursor);
    Ok(page)
}

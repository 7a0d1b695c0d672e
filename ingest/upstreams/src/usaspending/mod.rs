//! Federal contract awards of USAspending: three doors to one thing.
//!
//! - `usaspending.transactions` is complete: every base award and modification whose day of modification lies in the window. Its search
//!   pages in an order without tie-break, so that a page may repeat a row of the page before while another row is never shown. So each
//!   slice of it is counted first, read by award number, read backwards when rows are missing, and cut finer when they still are;
//!   a run does not pass a slice whose rows do not add up ([`slice`], [`tie`]).
//! - `usaspending.awards` is the state of the awards: totals and dates. Its day of modification is that of the action with the newest
//!   date, so that a correction of an older action does not show; the weekly reading of all new awards is a net below it.
//! - `usaspending.details` is what the searches do not say (parents, offices, ceilings, competition), of large awards only, since it costs
//!   a request each; and the actions of those that end soon.
//!
//! Contracts of the Department of Defense are published ninety days late, under the day of modification they have by then. So each run
//! reads the same days of a quarter of a year ago, too.
//!
//! Left out on purpose: `recipient_id` and three more fields that searches may be asked for, since asking for them has made the server
//! fail; deletions, which only the monthly files carry; `last_updated`, which would spare a daily run nothing.

mod detail;
pub(crate) mod live;
mod parts;
mod plan;
mod rows;
mod search;
mod slice;
mod tie;

use std::time::Duration;

use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::AWARDS;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{self, Field, Object, Records};
use crate::{Answer, Door, Manifest, Page, Request, Settings, Upstream, UpstreamError, Window, drift, text};
use detail::Detail;
use plan::{Cursor, Step};

const ORIGIN: &str = "https://api.usaspending.gov";
const TRANSACTIONS: &str = "usaspending.transactions";
const AWARD_STATES: &str = "usaspending.awards";
const DETAILS: &str = "usaspending.details";

const fn door(name: &'static str) -> Door {
    Door {
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
    doors: &[door(TRANSACTIONS), door(AWARD_STATES), door(DETAILS)],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct UsaSpending;

impl Upstream for UsaSpending {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, door: &Door, window: &Window, settings: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor::start(door.name, window, settings.window_days))
    }

    fn request(&self, door: &Door, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(door.name, cursor)?;
        if cursor.plan.is_empty() {
            return Err(UpstreamError::Stop { door: door.name, field: "cursor".to_owned(), reason: "it plans nothing".to_owned() });
        }
        Ok(search::request(door.name, &cursor))
    }

    fn map(&self, door: &Door, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(door.name, cursor)?;
        let mut page = Page::default();
        if answer.status == 404 {
            return not_there(door, cursor, page);
        }
        let body = json::body_text(&answer.body, &mut page.warnings);
        let envelope = Envelope::read(door, answer.status, &body)?;
        page.warnings.extend(envelope.warnings(door)?);
        let next = match envelope.content(&body) {
            Content::Counts(counts) => slice::counted(door, cursor, counts, &mut page.warnings)?,
            Content::Award(award) => {
                let records = Records::of_list(vec![award]);
                let (observations, rejects) = records.map(door.name, &[], |award: &Detail<'_>| detail::observe(door, award))?;
                let ends_soon = observations.iter().any(|award| detail::ends_soon(&award.data, today));
                (page.observations, page.rejects) = (observations, rejects);
                cursor.after_award(ends_soon)
            }
            Content::Rows(list) => {
                let read = rows::read(door, &cursor, list, today, &mut page)?;
                slice::read(door, cursor, &envelope.paging(), read, &mut page.warnings)?
            }
            Content::Nothing => return Err(json::later(door.name, "an answer without results")),
        };
        page.next = next.map(json::write_cursor);
        Ok(page)
    }

    fn single(&self, _door: &Door, raw: &[u8]) -> Vec<u8> {
        [br#"{"results":["#, raw, br#"],"page_metadata":{"page":1,"hasNext":false}}"#].concat()
    }
}

/// What a 404 means at a cursor: a count or an award that is not to be had is gone on without, with a word about it.
fn not_there(door: &Door, cursor: Cursor, mut page: Page) -> Result<Page, UpstreamError> {
    let next = match &cursor.step {
        Step::Count => {
            page.warnings.push("there are no counts (404): what is read cannot be checked against them".to_owned());
            Some(cursor.first_page(None))
        }
        Step::Award { ids, .. } | Step::Actions { ids, .. } => {
            page.warnings.push(format!("{} is not there (404)", ids.first().map_or("an award", |id| id)));
            cursor.after_actions()
        }
        Step::Rows(_) => return Err(json::later(door.name, "404 instead of a search: is the path still right?")),
    };
    page.next = next.map(json::write_cursor);
    Ok(page)
}

/// An answer of any of the addresses.
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
    /// Stands in the answer to a question for one award.
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

/// What an answer says of paging.
#[derive(Debug, Default)]
struct Paging {
    /// The page it is; none when it does not say.
    page: Option<u32>,
    has_next: bool,
    /// Where to go on beyond the window of pages: id and sort value, always both.
    after: Option<(u64, String)>,
}

/// Rows in each group of award types.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts<'a> {
    #[serde(borrow)]
    contracts: Field<'a>,
    #[serde(borrow)]
    idvs: Field<'a>,
}

/// What an answer is. Told by its form, not by what was asked, so that a record can be read wherever it turns up.
enum Content<'a> {
    Counts(Counts<'a>),
    Award(&'a RawValue),
    Rows(Vec<&'a RawValue>),
    Nothing,
}

impl<'a> Envelope<'a> {
    fn read(door: &Door, status: u16, body: &'a str) -> Result<Self, UpstreamError> {
        let Object(read) = serde_json::from_str(body).map_err(|error| json::not_json(door.name, body, &error))?;
        let envelope: Self = read.ok_or_else(|| json::later(door.name, "JSON that is no object"))?;
        if status != 200 {
            let words = text::cut(text::clean(envelope.detail.text()), 300);
            let reason = format!("refused by the upstream (status {status}): {words}");
            return Err(UpstreamError::Stop { door: door.name, field: "filters".to_owned(), reason });
        }
        Ok(envelope)
    }

    /// What the server remarks. That a filter was not used widens the result, so nothing of the answer is taken.
    fn warnings(&self, door: &Door) -> Result<Vec<String>, UpstreamError> {
        let mut warnings = Vec::new();
        for message in self.messages.list() {
            let lower = message.to_ascii_lowercase();
            let message = text::cut(message, 300);
            if ["not used", "unused", "ignored", "unknown filter", "not supported"].iter().any(|words| lower.contains(words)) {
                return Err(UpstreamError::Stop {
                    door: door.name,
                    field: "filters".to_owned(),
                    reason: format!("the server says: {message}"),
                });
            }
            // Comes with every answer.
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

/// A day as it is told, if it is one at all: dates that cannot be true are kept, since agencies report them.
fn day(field: &Field<'_>) -> String {
    text::date(field.text()).filter(|day| day.year() >= 1900).map(|day| day.to_string()).unwrap_or_default()
}

/// The drift of a day that lies outside what was asked for, over all pages of a slice.
fn outside(door: &Door, cursor: &Cursor) -> Result<Option<String>, UpstreamError> {
    let Step::Rows(rows) = &cursor.step else { return Ok(None) };
    drift::outside(door.name, "time_period", rows.outside, rows.seen)
}

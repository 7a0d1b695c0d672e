//! Stories of Hacker News, through the search of Algolia, sorted by date.
//!
//! A run reads hour by hour, from the first hour that was not final to the present one: at least the last two hours again, because stories
//! are indexed late, and once a day the last two days, because titles are edited and stories disappear. An answer shows at most 1,000
//! stories, so a fuller hour is read in parts. A published story that an hour had and that a complete reading of the hour lacks is removed.
//!
//! An hour is two hours old when its successor is over. From then on each reading gives the fact of the hour, after those of its stories.
//! `nbHits` can be an estimate that differs between equal requests; the stories that were shown are counted instead. Records in the form of
//! the site's own API (Firebase) are read as well.

mod cursor;
mod story;

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemas::facts::FactData;
use schemas::facts::mentions::{MentionFact, kind};
use schemas::position::UpstreamCursor;
use schemas::topics::MENTIONS;
use serde::Deserialize;
use serde_json::value::RawValue;

use self::cursor::{Cursor, DAY_HOURS, HOUR_S, Ids, Memory};
use self::story::{EXPECTED, Mapped, Story, hour_of, removed};
use crate::drift::FieldCounts;
use crate::json::{self, Field, Records};
use crate::{
    Answer, Capabilities, Incomplete, Licence, Manifest, Observation, Page, Request, RunMemory, Settings, Stream, TimedRecords, Upstream,
    UpstreamError, Window, drift, text,
};

const ORIGIN: &str = "https://hn.algolia.com";
/// The search that is sorted by date. The other one, `/search`, is sorted by relevance and is no list.
const PATH: &str = "/api/v1/search_by_date";
/// The most stories of an answer, whatever is asked for.
const HITS_MAX: usize = 1_000;
/// The hours before the present one that every run reads again.
const REREAD_HOURS: i64 = 2;
/// The days that are read again once a day, at most.
const REREAD_DAYS_MAX: u32 = 2;
/// The days of the first read, if the settings name none.
const BACKFILL_DAYS: u32 = 2;
/// A run goes back no further than this, however long ago the last one was.
const HOURS_MAX: i64 = 400 * DAY_HOURS;
/// An hour is final when it is this old, in hours since it began.
const FINAL_HOURS: i64 = 2;
/// This many stories of an hour may always be missing.
const MISSING_ALWAYS_ALLOWED: usize = 3;
/// If an answer lacks more than this percentage of an hour's known stories, none is removed.
const MISSING_PERCENT_MAX: usize = 50;

static MANIFEST: Manifest = Manifest {
    name: "hacker_news",
    licence: Licence { terms: Licence::NOT_STATED, publisher: "Hacker News, of what its users submit" },
    streams: &[Stream {
        name: "hacker_news",
        topic: &MENTIONS,
        every: Duration::ZERO,
        // Each hour is complete or incomplete on its own.
        snapshot: false,
        answer_bytes_max: 16 << 20,
        answer_timeout: Duration::from_secs(60),
    }],
    // Runs continue where the last one ended, so there is nothing that a full read would add.
    full_after: Duration::from_secs(10 * 365 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct HackerNews;

impl Upstream for HackerNews {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, _window: &Window, _settings: &Settings) -> UpstreamCursor {
        // Without a time there is no hour to read. Rejected stories are mapped at this cursor.
        json::write_cursor(Cursor { is_replay: true, ..Cursor::default() })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let stop = || UpstreamError::Stop { stream: stream.name, field: "cursor".to_owned(), reason: "names no hour to read".to_owned() };
        let (from, to) = cursor.range().filter(|_| !cursor.is_replay).ok_or_else(stop)?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("tags", "story");
        query.append_pair("numericFilters", &format!("created_at_i>={from},created_at_i<{to}"));
        query.append_pair("hitsPerPage", &HITS_MAX.to_string());
        Ok(json::request(ORIGIN, format!("{PATH}?{}", query.finish())))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        // The end of the day: every story of the day is in the past.
        let end = today.saturating_add(1.day()).to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |zoned| zoned.timestamp());
        self.map_at(stream, cursor, answer, end)
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { memory: Some(self), timed_records: Some(self), ..Capabilities::default() }
    }
}

impl TimedRecords for HackerNews {
    fn map_at(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, at: Timestamp) -> Result<Page, UpstreamError> {
        let mut cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut page = Page::default();
        let body = json::body_text(&answer.body, &mut page.warnings);
        if cursor.is_replay {
            let records = Records::of_array(stream.name, &body)?;
            page.observations = stories(stream, records, at, &mut page)?.into_iter().map(|story| story.observation).collect();
            return Ok(page);
        }
        let Some((from, to)) = cursor.range() else { return Ok(page) };
        let found: SearchAnswer<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
        let Some(hits) = found.hits else {
            let message = text::cut(text::clean(found.message.text()), 200);
            return Err(json::later(stream.name, format!("an answer without hits: {message}")));
        };
        let (shown, counted) = (hits.len(), found.nb_hits.integer().and_then(|count| usize::try_from(count).ok()));
        let mut stories = stories(stream, Records::of_list(hits), at, &mut page)?;
        stories.sort_by_key(|story| (story.created_s, story.id));
        let before = stories.len();
        stories.retain(|story| (from..to).contains(&story.created_s));
        page.warnings.extend(drift::outside(stream.name, "numericFilters", before - stories.len(), before)?);
        let is_full = shown >= HITS_MAX || counted.is_some_and(|counted| counted > HITS_MAX);
        let is_exact = !found.exhaustive.is_absent() && found.exhaustive.flag();
        let is_short = is_full || (is_exact && counted.is_some_and(|counted| counted > shown));
        if is_full && cursor.divide() {
            cursor.requests += 1;
            // The halves show these stories again.
            return Ok(Page { warnings: page.warnings, next: Some(json::write_cursor(cursor)), ..Page::default() });
        }
        if is_short {
            cursor.gap = format!("{shown} stories were sent, more exist");
        }
        next(stream, cursor, stories, at, &mut page);
        Ok(page)
    }
}

impl RunMemory for HackerNews {
    fn start_after(&self, stream: &Stream, window: &Window, settings: &Settings, memory: &UpstreamCursor, at: Timestamp) -> UpstreamCursor {
        let mut memory: Memory = json::read_cursor(stream.name, memory).unwrap_or_default();
        let (last, today) = (hour_number(at), hour_number(at).div_euclid(DAY_HOURS));
        let mut first = memory.next.min(last - REREAD_HOURS);
        if memory.next == 0 {
            let days = if settings.backfill_days == 0 { BACKFILL_DAYS } else { settings.backfill_days };
            let of_window = window.from.and_then(|from| from.to_zoned(TimeZone::UTC).ok()).map(|from| hour_number(from.timestamp()));
            first = of_window.unwrap_or(last - i64::from(days) * DAY_HOURS);
        } else if memory.reread_day != today {
            first = first.min(last - i64::from(settings.window_days.clamp(1, REREAD_DAYS_MAX)) * DAY_HOURS);
        }
        first = first.clamp(last - HOURS_MAX, last);
        (memory.reread_day, memory.next) = (today, first);
        json::write_cursor(Cursor::over(first, last, memory))
    }

    fn remember(&self, stream: &Stream, cursor: &UpstreamCursor) -> UpstreamCursor {
        json::read_cursor::<Cursor>(stream.name, cursor)
            .map_or_else(|_| UpstreamCursor::default(), |cursor| json::write_cursor(cursor.memory))
    }

    fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool {
        // A cursor that cannot be read is reported when the request is built.
        json::read_cursor::<Cursor>(stream.name, cursor).map_or(true, |cursor| cursor.range().is_some())
    }
}

/// Reads the stories of an answer.
fn stories(stream: &Stream, records: Records<'_>, at: Timestamp, page: &mut Page) -> Result<Vec<Mapped>, UpstreamError> {
    let mut fields = FieldCounts::default();
    let (stories, rejects) = records.map(stream.name, EXPECTED, |story: &Story<'_>| {
        story.count(&mut fields);
        story.map(stream, at)
    })?;
    (page.fields, page.rejects) = (fields, rejects);
    Ok(stories.into_iter().flatten().collect())
}

/// Adds what an answer shows to the page, and sets its next cursor.
fn next(stream: &Stream, mut cursor: Cursor, stories: Vec<Mapped>, at: Timestamp, page: &mut Page) {
    cursor.requests += 1;
    cursor.parts.pop();
    cursor.shown.extend(stories.iter().map(|story| story.id));
    // A rejected record is shown, too: it is not gone.
    for reject in &page.rejects {
        match reject.reference.parse() {
            Ok(id) => _ = cursor.shown.insert(id),
            Err(_) => "a record without a readable id was sent".clone_into(&mut cursor.gap),
        }
    }
    page.observations.extend(stories.into_iter().map(|story| story.observation));
    if cursor.parts.is_empty() {
        end_of_hour(stream, &mut cursor, at, page);
        let ids_from = cursor.last - i64::from(REREAD_DAYS_MAX) * DAY_HOURS;
        cursor = cursor.at_next_hour(ids_from);
    }
    if cursor.range().is_none() {
        page.through = Timestamp::from_second(cursor.memory.next * HOUR_S - 1).ok().map(|last| last.to_zoned(TimeZone::UTC).date());
    }
    page.next = Some(json::write_cursor(cursor));
}

/// Handles an hour of which every part was read: finds the stories that are gone, and adds the fact of the hour if it is final.
fn end_of_hour(stream: &Stream, cursor: &mut Cursor, at: Timestamp, page: &mut Page) {
    let Ok(start) = Timestamp::from_second(cursor.hour * HOUR_S) else { return };
    let hour = hour_of(start);
    let known = cursor.memory.ids.remove(&cursor.hour).unwrap_or_default().0;
    let missing: Vec<u64> = known.difference(&cursor.shown).copied().collect();
    if cursor.gap.is_empty() && missing.len() > MISSING_ALWAYS_ALLOWED.max(known.len() * MISSING_PERCENT_MAX / 100) {
        cursor.gap = format!("{} of {} known stories are missing: none is removed", missing.len(), known.len());
    }
    let docs = cursor.shown.len();
    if cursor.gap.is_empty() {
        page.observations.extend(missing.iter().map(|id| removed(stream, *id, start)));
    } else {
        let what = format!("{hour}: {}", cursor.gap);
        page.warnings.push(what.clone());
        page.incomplete = Some(Incomplete { what, from: None });
        cursor.shown.extend(missing);
    }
    cursor.memory.ids.insert(cursor.hour, Ids(std::mem::take(&mut cursor.shown)));
    if hour_number(at) >= cursor.hour + FINAL_HOURS {
        cursor.memory.next = cursor.memory.next.max(cursor.hour + 1);
        let fact = MentionFact {
            stream: stream.name.to_owned(),
            kind: kind::HOUR.to_owned(),
            docs: i64::try_from(docs).unwrap_or(i64::MAX),
            // The site always has stories: none at all means that the search has not indexed them.
            complete: cursor.gap.is_empty() && docs > 0,
            hour: hour.clone(),
            ..MentionFact::default()
        };
        page.observations.push(Observation::new(format!("{}/hour/{hour}", stream.name), FactData::Mention(Box::new(fact))));
    }
}

/// The hour of a time, in hours since 1970.
fn hour_number(at: Timestamp) -> i64 {
    at.as_second().div_euclid(HOUR_S)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SearchAnswer<'a> {
    #[serde(borrow)]
    hits: Option<Vec<&'a RawValue>>,
    #[serde(borrow, rename = "nbHits")]
    nb_hits: Field<'a>,
    #[serde(borrow, rename = "exhaustiveNbHits")]
    exhaustive: Field<'a>,
    /// What is wrong with the request, if there are no hits.
    #[serde(borrow)]
    message: Field<'a>,
}

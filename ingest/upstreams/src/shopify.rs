//! Availability of products at Shopify storefronts, from `/products.json` of each configured store.
//!
//! One run polls all stores that are due, a page of each in turn, so that the pause between two requests to one store delays no other. A poll
//! reads pages until one is empty; every poll gives a fact, also a failed one. The list moves while it is read: a product can be shown twice,
//! of which the first counts, or be skipped, so a poll that shows fewer products than the one before reads the list once more. Only a complete
//! poll can show that a variant is gone.
//!
//! `robots.txt` of a store is read once a day. A store that answers 401 or 403 to three polls in a row is asked again after a week.

mod cursor;
mod product;
mod robots;

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schemas::facts::FactData;
use schemas::facts::stock::{StockFact, kind};
use schemas::position::UpstreamCursor;
use schemas::topics::STOCK;

use self::cursor::{Cursor, Memories, Memory, Poll, Step};
use self::product::{PageOfProducts, products};
use crate::{
    Answer, Budget, Capabilities, Failures, Licence, Manifest, Observation, Page, Request, RunMemory, Settings, Stream, TimedRecords,
    Upstream, UpstreamError, Window, json,
};

/// How many products a store is asked for at once: the most that it gives.
const PAGE_PRODUCTS: usize = 250;
/// The most pages of one poll. A store with more, or one that never gives an empty page, is not read completely.
const PAGES_MAX: i64 = 400;
/// The most variants of one page: a hundred of each product.
const PAGE_VARIANTS_MAX: usize = 100 * PAGE_PRODUCTS;
/// After so many facts of a store one poll requests no further page, so that a store that shows other variants in every poll does not fill the log. Twenty
/// ordinary stores give less than 5,000 in a day.
const POLL_FACTS_MAX: i64 = 25_000;
/// The facts after which the first poll of a store ends. All variants are new to it.
const FIRST_POLL_FACTS_MAX: i64 = 200_000;
/// How many polls in a row a store may refuse before it is not asked for a while.
const REFUSALS_MAX: u32 = 3;
/// How long a store is not asked that refuses every poll.
const BACK_OFF: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A poll counts as due when it is due within this time, because runs do not start on the exact second.
const DUE_SLACK: SignedDuration = SignedDuration::from_mins(5);
/// Statuses other than 200 that say something about the store.
const STATUSES: &[u16] = &[401, 402, 403, 404, 410, 423, 429, 430];
/// A storefront that is closed or protected answers with a page.
const MEDIA_TYPES: &[&str] = &["application/json", "text/html"];
const ROBOTS_MEDIA_TYPES: &[&str] = &["text/plain", "text/html", "application/json"];
/// The path of the list of products.
const PATH: &str = "/products.json";

static MANIFEST: Manifest = Manifest {
    name: "shopify",
    licence: Licence { terms: Licence::NOT_STATED, publisher: "the stores, of their products" },
    streams: &[Stream {
        name: "shopify",
        topic: &STOCK,
        every: Duration::ZERO,
        // Each store is complete or incomplete on its own.
        snapshot: false,
        answer_bytes_max: 24 << 20,
        answer_timeout: Duration::from_secs(60),
    }],
    full_after: Duration::from_secs(7 * 86_400),
};

/// What only this upstream has in its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The stores that are polled.
    pub stores: Vec<Store>,
    /// Whether each store is polled by every sync, also before its interval has passed. Only demos do so.
    pub is_every_store_due: bool,
}

/// A store that is polled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// The host name of the store.
    pub host: String,
    /// The key of the niche that its items belong to.
    pub niche: String,
    /// The interval between two polls, in seconds.
    pub interval_s: u32,
}

/// The upstream.
#[derive(Debug)]
pub struct Shopify;

impl Upstream for Shopify {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, _window: &Window, _settings: &Settings) -> UpstreamCursor {
        // Without a time no poll is due. Rejected products are mapped at this cursor; they name their store.
        json::write_cursor(Cursor { polls: Vec::new(), turn: 0, is_replay: true })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let stop = |reason: &str| UpstreamError::Stop { stream: stream.name, field: "cursor".to_owned(), reason: reason.to_owned() };
        let poll = cursor.open().ok_or_else(|| stop("names no store to poll"))?;
        let is_configured = |options: &Options| options.stores.iter().any(|store| store.host == poll.host);
        if !settings.own.get::<Options>().is_some_and(is_configured) {
            return Err(stop("names a store that is not configured any more"));
        }
        let (path, media_types) = match poll.step {
            Step::Robots => ("/robots.txt".to_owned(), ROBOTS_MEDIA_TYPES),
            Step::Page(page) => (page_path(page), MEDIA_TYPES),
            Step::Done => return Err(stop("names a store that was polled already")),
        };
        // A stand-in for all stores tells them apart by their names.
        let host = settings.base_url.is_some().then(|| ("host", poll.host.clone()));
        Ok(Request {
            origin: format!("https://{}", poll.host),
            path,
            headers: host.into_iter().collect(),
            accepts_statuses: STATUSES,
            media_types,
            ..Request::default()
        })
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let midnight = today.to_zoned(TimeZone::UTC).map_or(Timestamp::UNIX_EPOCH, |zoned| zoned.timestamp());
        self.map_at(stream, cursor, answer, midnight)
    }

    fn single(&self, _stream: &Stream, raw: &[u8]) -> Vec<u8> {
        raw.to_vec()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { memory: Some(self), failures: Some(self), timed_records: Some(self), ..Capabilities::default() }
    }
}

impl TimedRecords for Shopify {
    fn map_at(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, at: Timestamp) -> Result<Page, UpstreamError> {
        let mut cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        if cursor.is_replay {
            return replayed(stream, answer);
        }
        let Some(poll) = cursor.open_mut() else { return Ok(Page::default()) };
        let mut page = Page::default();
        match poll.step.clone() {
            Step::Robots => read_robots(stream, poll, answer, at, &mut page),
            Step::Page(number) => read_page(stream, poll, number, answer, at, &mut page),
            Step::Done => {}
        }
        page.next = Some(json::write_cursor(cursor.after_turn()));
        Ok(page)
    }
}

impl RunMemory for Shopify {
    fn start_after(
        &self,
        stream: &Stream,
        _window: &Window,
        settings: &Settings,
        memory: &UpstreamCursor,
        at: Timestamp,
    ) -> UpstreamCursor {
        let memories: Memories = json::read_cursor(stream.name, memory).unwrap_or_default();
        let options = settings.own.get::<Options>().cloned().unwrap_or_default();
        let polls = options.stores.into_iter().map(|store| {
            let memory = memories.stores.get(&store.host).cloned().unwrap_or_default();
            let is_due = options.is_every_store_due || memory.is_due(i64::from(store.interval_s), at);
            let step = if is_due { Step::first(&memory, at) } else { Step::Done };
            Poll { host: store.host, niche: store.niche, interval_s: i64::from(store.interval_s), step, memory, ..Poll::default() }
        });
        json::write_cursor(Cursor { polls: polls.collect(), turn: 0, is_replay: false }.at_open_poll())
    }

    fn remember(&self, stream: &Stream, cursor: &UpstreamCursor) -> UpstreamCursor {
        let Ok(cursor) = json::read_cursor::<Cursor>(stream.name, cursor) else { return UpstreamCursor::default() };
        json::write_cursor(Memories { stores: cursor.polls.into_iter().map(|poll| (poll.host, poll.memory)).collect() })
    }

    fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool {
        // A cursor that cannot be read is reported when the request is built.
        json::read_cursor::<Cursor>(stream.name, cursor).map_or(true, |cursor| cursor.open().is_some())
    }

    fn resume(&self, stream: &Stream, cursor: &UpstreamCursor) -> UpstreamCursor {
        let Ok(mut cursor) = json::read_cursor::<Cursor>(stream.name, cursor) else { return cursor.clone() };
        // What the interrupted run saw of an unfinished poll is not known, so the poll begins again.
        cursor.polls.iter_mut().for_each(Poll::restart);
        json::write_cursor(cursor)
    }
}

impl Failures for Shopify {
    fn failed(&self, stream: &Stream, cursor: &UpstreamCursor, reason: &str, at: Timestamp) -> Option<Page> {
        let mut cursor: Cursor = json::read_cursor(stream.name, cursor).ok()?;
        let poll = cursor.open_mut()?;
        let mut page = Page::default();
        end(stream, poll, at, Some(reason.to_owned()), &mut page);
        page.next = Some(json::write_cursor(cursor.after_turn()));
        Some(page)
    }

    fn budget(&self, stream: &Stream, cursor: &UpstreamCursor) -> Option<Budget> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor).ok()?;
        let poll = cursor.open()?;
        let is_first = poll.memory.last_s == 0;
        Some(Budget { part: part(stream, poll), facts_max: if is_first { FIRST_POLL_FACTS_MAX } else { POLL_FACTS_MAX } })
    }
}

/// The keys of the variants of a store begin with this text and a slash.
fn part(stream: &Stream, poll: &Poll) -> String {
    format!("{}/{}/v", stream.name, poll.host)
}

fn page_path(page: i64) -> String {
    format!("{PATH}?limit={PAGE_PRODUCTS}&page={page}")
}

/// Reads the rules for crawlers of a store and decides whether its list may be read.
fn read_robots(stream: &Stream, poll: &mut Poll, answer: &Answer, at: Timestamp, page: &mut Page) {
    // A store without such a file, or with a page in its place, allows everything.
    let is_allowed = answer.status != 200 || robots::allows(&String::from_utf8_lossy(&answer.body), &page_path(1));
    if is_allowed {
        poll.memory.robots_day = cursor::day(at);
        poll.step = Step::Page(1);
    } else {
        end(stream, poll, at, Some("robots.txt disallows it".to_owned()), page);
    }
}

/// Reads one page of products.
fn read_page(stream: &Stream, poll: &mut Poll, number: i64, answer: &Answer, at: Timestamp, page: &mut Page) {
    let listed = match products(stream, &poll.host, answer) {
        Ok(listed) => listed,
        Err(reason) => return end(stream, poll, at, Some(reason), page),
    };
    poll.pages += 1;
    let PageOfProducts { products, rejects } = listed;
    if products.iter().map(|product| product.variants.len()).sum::<usize>() > PAGE_VARIANTS_MAX {
        return end(stream, poll, at, Some(format!("more than {PAGE_VARIANTS_MAX} variants on a page")), page);
    }
    if poll.pass == 0 {
        poll.rejected += count(rejects.len());
    }
    page.rejects = rejects;
    if products.is_empty() && page.rejects.is_empty() {
        return end_of_list(stream, poll, at, page);
    }
    let ids: Vec<String> = products.iter().map(|product| product.id.clone()).collect();
    if poll.pass == 0 {
        for product in products.iter().filter(|product| !poll.tail.contains(&product.id)) {
            poll.products += 1;
            poll.variants += count(product.variants.len());
        }
    }
    page.observations = products.into_iter().flat_map(|product| product.variants).collect();
    for observation in &page.observations {
        // Both are in UTC and of one form, so they are in the order of time.
        if let FactData::Stock(fact) = &observation.data
            && fact.updated_at > poll.newest_edit
        {
            poll.newest_edit.clone_from(&fact.updated_at);
        }
    }
    poll.tail = ids.into_iter().rev().take(cursor::TAIL_MAX).collect();
    if number >= PAGES_MAX {
        return end(stream, poll, at, Some(format!("more than {PAGES_MAX} pages")), page);
    }
    poll.step = Step::Page(number + 1);
}

/// Handles the empty page after the last product.
fn end_of_list(stream: &Stream, poll: &mut Poll, at: Timestamp, page: &mut Page) {
    if poll.products == 0 && poll.rejected == 0 {
        return end(stream, poll, at, Some("the list is empty".to_owned()), page);
    }
    // A product that moved up while the list was read was skipped, unless it is gone.
    if poll.pass == 0 && poll.products + poll.rejected < poll.memory.products {
        poll.pass = 1;
        poll.step = Step::Page(1);
        return;
    }
    end(stream, poll, at, None, page);
}

/// Ends a poll: with a reason if it is not complete.
fn end(stream: &Stream, poll: &mut Poll, at: Timestamp, reason: Option<String>, page: &mut Page) {
    let mut reason = reason.unwrap_or_default();
    let is_complete = reason.is_empty();
    let is_refused = ["status 401", "status 403"].contains(&reason.as_str());
    poll.step = Step::Done;
    poll.memory.last_s = at.as_second();
    poll.memory.refusals = if is_refused { poll.memory.refusals + 1 } else { 0 };
    if poll.memory.refusals >= REFUSALS_MAX {
        let until = at.saturating_add(BACK_OFF).unwrap_or(at);
        poll.memory.refusals = 0;
        poll.memory.until_s = until.as_second();
        reason = format!("{reason}, {REFUSALS_MAX} polls in a row: not asked again until {until:.0}");
    }
    if is_complete {
        poll.memory.products = poll.products + poll.rejected;
        // A rejected product is at the store, and its variants are not known.
        page.complete_part = (poll.rejected == 0).then(|| part(stream, poll));
    }
    let fact = StockFact {
        stream: stream.name.to_owned(),
        kind: kind::POLL.to_owned(),
        host: poll.host.clone(),
        niche: poll.niche.clone(),
        at: format!("{at:.3}"),
        interval_s: poll.interval_s,
        pages: poll.pages,
        products: poll.products,
        variants: poll.variants,
        complete: is_complete,
        newest_edit: poll.newest_edit.clone(),
        reason,
        ..StockFact::default()
    };
    let key = format!("{}/{}/poll", stream.name, poll.host);
    page.observations.push(Observation::new(key, FactData::Stock(Box::new(fact))));
}

/// Maps a rejected product again.
fn replayed(stream: &Stream, answer: &Answer) -> Result<Page, UpstreamError> {
    let (host, body) = product::rejected(&answer.body).ok_or_else(|| json::later(stream.name, "not a rejected product"))?;
    let answer = Answer { status: 200, link: None, body: body.into() };
    let listed = products(stream, &host, &answer).map_err(|reason| json::later(stream.name, reason))?;
    let observations = listed.products.into_iter().flat_map(|product| product.variants).collect();
    Ok(Page { observations, rejects: listed.rejects, ..Page::default() })
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl Memory {
    /// Whether a poll of the store is due at a time.
    fn is_due(&self, interval_s: i64, at: Timestamp) -> bool {
        let now = at.as_second();
        now >= self.until_s && now.saturating_sub(self.last_s) >= interval_s.saturating_sub(DUE_SLACK.as_secs())
    }
}

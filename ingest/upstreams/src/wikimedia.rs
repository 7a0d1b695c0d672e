//! The most read articles of the English Wikipedia on each day, from the page views of Wikimedia.
//!
//! The list of a day appears one or two days later. Until then the answer is 404, which means "not yet" and never "none": the day is asked
//! for again by later runs. Lists are not changed later, so each day is read once.
//!
//! The main page and the pages of other namespaces are no articles. A namespace is a known word before the first colon; titles of articles
//! have colons too (`Baahubali_2:_The_Conclusion`). Articles with equal views share a rank.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemas::facts::FactData;
use schemas::facts::mentions::{MentionFact, kind};
use schemas::position::UpstreamCursor;
use schemas::topics::MENTIONS;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::drift::FieldCounts;
use crate::json::{self, Field, Records};
use crate::{
    Answer, Capabilities, Incomplete, Licence, Manifest, Observation, Page, Request, RunMemory, Settings, Stream, Upstream, UpstreamError,
    Window, text,
};

const ORIGIN: &str = "https://wikimedia.org";
const PATH: &str = "/api/rest_v1/metrics/pageviews/top/en.wikipedia/all-access";
const PROJECT: &str = "en.wikipedia";
/// An answer of 404 is a problem document.
const MEDIA_TYPES: &[&str] = &["application/json", "application/problem+json"];
const NOT_YET: u16 = 404;
/// A day whose list has not appeared after this many days is given up.
const LATE_DAYS: i64 = 10;
/// The days of the first read, if the settings name none.
const BACKFILL_DAYS: u32 = 2;
/// A run goes back no further than this, however long ago the last one was.
const DAYS_MAX: i64 = 400;
/// The longest title of an article, in bytes, is 255.
const ARTICLE_BYTES_MAX: usize = 255;
const MAIN_PAGE: &str = "Main_Page";
/// What stands for a page that is not known.
const UNKNOWN_PAGE: &str = "-";
/// The namespaces of pages that are no articles. Each has a namespace of its talk pages.
const NAMESPACES: &[&str] = &[
    "Book",
    "Category",
    "Draft",
    "File",
    "Help",
    "Image",
    "Media",
    "MediaWiki",
    "Module",
    "Portal",
    "Special",
    "Talk",
    "Template",
    "TimedText",
    "User",
    "Wikipedia",
];
const TALK: &str = "_talk";

static MANIFEST: Manifest = Manifest {
    name: "wikimedia",
    licence: Licence { terms: Licence::CC0, publisher: "Wikimedia Foundation, of page views" },
    streams: &[Stream {
        name: "wikimedia",
        topic: &MENTIONS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 4 << 20,
        answer_timeout: Duration::from_secs(60),
    }],
    // Runs continue where the last one ended, so there is nothing that a full read would add.
    full_after: Duration::from_secs(10 * 365 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Wikimedia;

/// The position of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Cursor {
    /// The days that are still to be asked for, the next one first.
    days: Vec<Date>,
    memory: Memory,
    /// Whether the cursor is for rejected articles.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_replay: bool,
}

/// What a run leaves to the next one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Memory {
    /// The first day that was not asked for; `None` before the first run.
    next: Option<Date>,
    /// Days before it whose lists have not appeared.
    missing: BTreeSet<Date>,
}

impl Upstream for Wikimedia {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, _window: &Window, _settings: &Settings) -> UpstreamCursor {
        // Without a time there is no day to read. Rejected articles are mapped at this cursor.
        json::write_cursor(Cursor { is_replay: true, ..Cursor::default() })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let stop = || UpstreamError::Stop { stream: stream.name, field: "cursor".to_owned(), reason: "names no day to read".to_owned() };
        let day = cursor.days.first().filter(|_| !cursor.is_replay).ok_or_else(stop)?;
        Ok(Request {
            origin: ORIGIN.to_owned(),
            path: format!("{PATH}/{}", day.strftime("%Y/%m/%d")),
            headers: vec![("accept", "application/json".to_owned())],
            accepts_statuses: &[NOT_YET],
            media_types: MEDIA_TYPES,
            ..Request::default()
        })
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let mut cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut page = Page::default();
        let body = json::body_text(&answer.body, &mut page.warnings);
        if cursor.is_replay {
            let record: Rejected<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
            articles(stream, record.day, vec![record.article], &mut page)?;
            return Ok(page);
        }
        if cursor.days.is_empty() {
            return Ok(page);
        }
        let day = cursor.days.remove(0);
        if answer.status == NOT_YET {
            missing(&mut cursor.memory, day, today, &mut page);
        } else {
            list(stream, day, &body, &mut page)?;
            cursor.memory.missing.remove(&day);
        }
        cursor.memory.next = cursor.memory.next.max(day.tomorrow().ok());
        if cursor.days.is_empty() {
            let open = cursor.memory.missing.first().copied().or(cursor.memory.next);
            page.through = open.and_then(|day| day.yesterday().ok());
        }
        page.next = Some(json::write_cursor(cursor));
        Ok(page)
    }

    fn single(&self, _stream: &Stream, raw: &[u8]) -> Vec<u8> {
        raw.to_vec()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { memory: Some(self), ..Capabilities::default() }
    }
}

impl RunMemory for Wikimedia {
    fn start_after(&self, stream: &Stream, window: &Window, settings: &Settings, memory: &UpstreamCursor, at: Timestamp) -> UpstreamCursor {
        let mut memory: Memory = json::read_cursor(stream.name, memory).unwrap_or_default();
        let today = day_of(at);
        let days = if settings.backfill_days == 0 { BACKFILL_DAYS } else { settings.backfill_days };
        let first = memory.next.or(window.from).unwrap_or_else(|| today.saturating_sub(i64::from(days).days()));
        let first = first.clamp(today.saturating_sub(DAYS_MAX.days()), today);
        let mut asked: Vec<Date> = memory.missing.iter().copied().filter(|day| *day < first).collect();
        asked.extend(first.series(1.day()).take_while(|day| *day < today));
        memory.next = Some(first);
        json::write_cursor(Cursor { days: asked, memory, is_replay: false })
    }

    fn remember(&self, stream: &Stream, cursor: &UpstreamCursor) -> UpstreamCursor {
        json::read_cursor::<Cursor>(stream.name, cursor)
            .map_or_else(|_| UpstreamCursor::default(), |cursor| json::write_cursor(cursor.memory))
    }

    fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool {
        // A cursor that cannot be read is reported when the request is built.
        json::read_cursor::<Cursor>(stream.name, cursor).map_or(true, |cursor| !cursor.days.is_empty())
    }
}

fn day_of(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// Handles a day without a list: it is asked for again, unless it is so old that none will appear.
fn missing(memory: &mut Memory, day: Date, today: Date, page: &mut Page) {
    if day.saturating_add(LATE_DAYS.days()) > today {
        memory.missing.insert(day);
        return;
    }
    memory.missing.remove(&day);
    let what = format!("no list of {day} has appeared in {LATE_DAYS} days");
    page.warnings.push(what.clone());
    page.incomplete = Some(Incomplete { what, from: None });
}

/// Reads the list of a day. The fact of the day follows those of its articles.
fn list(stream: &Stream, day: Date, body: &str, page: &mut Page) -> Result<(), UpstreamError> {
    let lists: Lists<'_> = serde_json::from_str(body).map_err(|error| json::not_json(stream.name, body, &error))?;
    let list = lists.items.into_iter().next().ok_or_else(|| json::later(stream.name, "an answer without a list"))?;
    let shown = format!("{}-{}-{}", list.year.text(), list.month.text(), list.day.text());
    if shown != day.to_string() || list.project.text() != PROJECT {
        let shown = text::cut(text::clean(&format!("{} of {shown}", list.project.text())), 100);
        return Err(json::later(stream.name, format!("the list of {shown} instead of that of {day}")));
    }
    let total = articles(stream, day, list.articles, page)?;
    if page.observations.is_empty() {
        return Err(json::later(stream.name, format!("the list of {day} has no article")));
    }
    let fact = MentionFact {
        stream: stream.name.to_owned(),
        kind: kind::DAY.to_owned(),
        day: day.to_string(),
        total,
        articles: i64::try_from(page.observations.len()).unwrap_or(i64::MAX),
        ..MentionFact::default()
    };
    page.observations.push(Observation::new(format!("{}/day/{day}", stream.name), FactData::Mention(Box::new(fact))));
    Ok(())
}

/// Reads the rows of a list. Returns the views of all of them.
fn articles(stream: &Stream, day: Date, rows: Vec<&RawValue>, page: &mut Page) -> Result<i64, UpstreamError> {
    let (mut total, mut fields, mut titles) = (0_i64, FieldCounts::default(), BTreeSet::new());
    let (observations, mut rejects) = Records::of_list(rows).map(stream.name, EXPECTED, |row: &Row<'_>| {
        fields.count([("article", row.article.is_filled()), ("views", row.views.is_filled()), ("rank", row.rank.is_filled())]);
        let fact = article(stream, day, row)?;
        total = total.saturating_add(fact.views);
        let is_article = is_article(&fact.article) && titles.insert(fact.article.clone());
        let key = format!("{}/{day}/{}", stream.name, fact.article);
        Ok(is_article.then(|| Observation::new(key, FactData::Mention(Box::new(fact)))))
    })?;
    for reject in &mut rejects {
        // A row does not name its day.
        reject.reference = format!("{day}/{}", reject.reference);
        reject.raw = [format!("{{\"day\":\"{day}\",\"article\":").as_bytes(), &reject.raw, b"}"].concat();
    }
    page.observations.extend(observations.into_iter().flatten());
    (page.fields, page.rejects) = (fields, rejects);
    Ok(total)
}

/// Maps a row. The error names the article and the field.
fn article(stream: &Stream, day: Date, row: &Row<'_>) -> Result<MentionFact, (String, String)> {
    let title = row.article.text().trim();
    let reference = text::cut(text::clean(title), 100);
    let refuse = |reason: String| (reference.clone(), reason);
    if !row.article.is_text() || title.is_empty() || title.len() > ARTICLE_BYTES_MAX || title.contains(char::is_control) {
        return Err(refuse(format!("article is not a text of at most {ARTICLE_BYTES_MAX} bytes")));
    }
    let number = |field: &Field<'_>| field.integer().filter(|number| *number > 0 && field.is_integer());
    Ok(MentionFact {
        stream: stream.name.to_owned(),
        kind: kind::VIEWS.to_owned(),
        day: day.to_string(),
        article: title.to_owned(),
        views: number(&row.views).ok_or_else(|| refuse("views is not a positive whole number".to_owned()))?,
        rank: number(&row.rank).ok_or_else(|| refuse("rank is not a positive whole number".to_owned()))?,
        ..MentionFact::default()
    })
}

/// Whether a page is an article.
fn is_article(title: &str) -> bool {
    let namespace = title.split_once(':').map(|(namespace, _)| namespace.strip_suffix(TALK).unwrap_or(namespace));
    title != MAIN_PAGE && title != UNKNOWN_PAGE && namespace.is_none_or(|namespace| !NAMESPACES.contains(&namespace))
}

type FieldCheck = fn(&Row<'_>) -> bool;

const EXPECTED: &[(&str, FieldCheck)] =
    &[("article", |row| row.article.is_text()), ("views", |row| row.views.is_integer()), ("rank", |row| row.rank.is_integer())];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Lists<'a> {
    #[serde(borrow)]
    items: Vec<List<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List<'a> {
    #[serde(borrow)]
    project: Field<'a>,
    #[serde(borrow)]
    year: Field<'a>,
    #[serde(borrow)]
    month: Field<'a>,
    #[serde(borrow)]
    day: Field<'a>,
    #[serde(borrow)]
    articles: Vec<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    article: Field<'a>,
    #[serde(borrow)]
    views: Field<'a>,
    #[serde(borrow)]
    rank: Field<'a>,
}

/// A rejected row with its day.
#[derive(Deserialize)]
struct Rejected<'a> {
    day: Date,
    #[serde(borrow)]
    article: &'a RawValue,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only the main page and known namespaces at the beginning of a title are no articles.
    #[test]
    fn namespaces() {
        for title in ["Baahubali_2:_The_Conclusion", "Star_Trek:_User", "C++", "AC/DC", ".xxx", "Users:", "Help!", "special:search"] {
            assert!(is_article(title), "{title}");
        }
        for title in ["Main_Page", "-", "Special:Search", "Wikipedia:Featured_pictures", "User_talk:Example", "Talk:Cat", "File:A.png"] {
            assert!(!is_article(title), "{title}");
        }
    }
}

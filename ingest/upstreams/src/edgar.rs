//! Filings with the Securities and Exchange Commission, and the trades that insiders report in them.
//!
//! Four doors, whose facts are kept apart. `edgar.index`, the daily master index, is the truth: all filings, a row for each filer, without
//! items. `edgar.current`, the feed of the latest filings, is fast, knows what a filer is in a filing and the items of an 8-K, and misses
//! some. `edgar.submissions` asks for the items of those 8-Ks that the feed missed, one request a filer. `edgar.ownership` reads each
//! filing of form 3, 4 or 5 that an index names, one request a filing, once.
//!
//! A file that is not there is answered with 403 and XML. 403 with a page of HTML means that we are to stop, and so does either of the two
//! block pages under any status; then no door asks anything for eleven minutes, in no process, since asking makes the block longer.
//! All doors together stay below the ten requests a second that one user has: they are run one after another, by one process.

mod current;
mod index;
pub(crate) mod live;
mod master;
mod ownership;
mod submissions;
mod walk;

use std::collections::HashSet;
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use schemas::facts::FactData;
use schemas::facts::filings::{FilingFact, base_form};
use schemas::position::UpstreamCursor;
use schemas::topics::{FILINGS, INSIDER_TRADES};

use crate::{Answer, Door, Manifest, Observation, Page, Request, Settings, Upstream, UpstreamError, Wall, Window, json, text};

/// Index, feed and documents.
const ORIGIN: &str = "https://www.sec.gov";
/// Submissions of one filer.
const DATA_ORIGIN: &str = "https://data.sec.gov";
const CURRENT: &str = "edgar.current";
const INDEX: &str = "edgar.index";
const SUBMISSIONS: &str = "edgar.submissions";
const OWNERSHIP: &str = "edgar.ownership";
/// Between two turns of the doors that read indexes, which come once a day.
const HOURS_2: Duration = Duration::from_secs(2 * 3_600);
/// Rows come late by days, not by months; the quarter's index heals what is older.
const WINDOW_DAYS_MAX: u32 = 30;
const COMPANY_CHARS_MAX: usize = 200;

static MANIFEST: Manifest = Manifest {
    name: "edgar",
    doors: &[
        Door {
            name: CURRENT,
            topic: &FILINGS,
            every: Duration::ZERO,
            snapshot: false,
            answer_bytes_max: 8 << 20,
            answer_timeout: Duration::from_secs(60),
        },
        Door {
            name: INDEX,
            topic: &FILINGS,
            every: HOURS_2,
            snapshot: false,
            answer_bytes_max: 192 << 20,
            answer_timeout: Duration::from_secs(300),
        },
        Door {
            name: SUBMISSIONS,
            topic: &FILINGS,
            every: HOURS_2,
            snapshot: false,
            answer_bytes_max: 32 << 20,
            answer_timeout: Duration::from_secs(120),
        },
        Door {
            name: OWNERSHIP,
            topic: &INSIDER_TRADES,
            every: HOURS_2,
            snapshot: false,
            answer_bytes_max: 64 << 20,
            answer_timeout: Duration::from_secs(120),
        },
    ],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The block pages: one for an undeclared tool, one for too many requests. Too many blocks for ten minutes.
static WALL: Wall = Wall {
    statuses: &[403, 429],
    marks: &["Undeclared Automated Tool", "Request Rate Threshold Exceeded", "Traffic Limit", "Reference ID"],
    pause: Duration::from_secs(660),
};

/// The upstream.
#[derive(Debug)]
pub struct Edgar;

impl Upstream for Edgar {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, door: &Door, window: &Window, settings: &Settings) -> UpstreamCursor {
        // The upstream's beginning is 1993; what a reading of everything heals is the present quarter.
        let days = i64::from(settings.window_days.min(WINDOW_DAYS_MAX)).days();
        let from = window.from.unwrap_or(window.to.saturating_sub(days)).min(window.to);
        let from = from.max(window.to.saturating_sub(i64::from(WINDOW_DAYS_MAX).days()));
        match door.name {
            CURRENT => json::write_cursor(current::Cursor::default()),
            INDEX => json::write_cursor(index::Cursor::new(from, window.to, window.from.is_none())),
            _ => json::write_cursor(walk::Cursor::new(from, window.to)),
        }
    }

    fn request(&self, door: &Door, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        declared(door, settings)?;
        match door.name {
            CURRENT => Ok(json::read_cursor::<current::Cursor>(door.name, cursor)?.request()),
            INDEX => Ok(json::read_cursor::<index::Cursor>(door.name, cursor)?.request()),
            name => {
                let cursor: walk::Cursor = json::read_cursor(door.name, cursor)?;
                Ok(match cursor.pending.first() {
                    None => master::daily(cursor.day),
                    Some(next) if name == SUBMISSIONS => submissions::request(next),
                    Some(next) => ownership::request(next),
                })
            }
        }
    }

    fn map(&self, door: &Door, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        match door.name {
            CURRENT => current::map(door, &json::read_cursor(door.name, cursor)?, answer, today),
            INDEX => index::map(door, json::read_cursor(door.name, cursor)?, answer, today),
            SUBMISSIONS => submissions::map(door, json::read_cursor(door.name, cursor)?, answer, today),
            _ => ownership::map(door, json::read_cursor(door.name, cursor)?, answer, today),
        }
    }

    fn depends_on(&self, door: &Door, cursor: &UpstreamCursor) -> Vec<String> {
        match door.name {
            CURRENT => json::read_cursor::<current::Cursor>(door.name, cursor).map(|cursor| cursor.seen).unwrap_or_default(),
            INDEX => Vec::new(),
            name => json::read_cursor::<walk::Cursor>(door.name, cursor)
                .map(|cursor| cursor.listed().flat_map(|pair| known_by(name, pair)).collect())
                .unwrap_or_default(),
        }
    }

    fn narrow(&self, door: &Door, cursor: &UpstreamCursor, known: &HashSet<String>) -> Option<UpstreamCursor> {
        match door.name {
            CURRENT => json::read_cursor::<current::Cursor>(door.name, cursor).ok()?.narrow(known).map(json::write_cursor),
            INDEX => Some(cursor.clone()),
            name => {
                let is_known = |pair: &str| known_by(name, pair).iter().any(|key| known.contains(key));
                let one_for = |pair: &str| if name == SUBMISSIONS { cik_of(pair).to_owned() } else { pair.to_owned() };
                let cursor: walk::Cursor = json::read_cursor(door.name, cursor).ok()?;
                cursor.narrow(is_known, one_for).map(json::write_cursor)
            }
        }
    }

    fn single(&self, door: &Door, raw: &[u8]) -> Vec<u8> {
        match door.name {
            CURRENT => [b"<feed>", raw, b"</feed>"].concat(),
            INDEX => [master::HEADER.as_bytes(), raw].concat(),
            // What these put aside is a document by itself.
            _ => raw.to_vec(),
        }
    }
}

/// The keys under which what a pair (`accession/cik`) of an index asks for may be known.
fn known_by(door: &str, pair: &str) -> Vec<String> {
    if door == SUBMISSIONS {
        vec![format!("{CURRENT}/{pair}"), format!("{SUBMISSIONS}/{pair}")]
    } else {
        ownership::first_keys(pair.split('/').next().unwrap_or_default())
    }
}

/// The filer of a pair; of a filer alone, itself.
fn cik_of(pair: &str) -> &str {
    pair.rsplit('/').next().unwrap_or_default()
}

/// Media types under which files of the archive are sent; a missing one is told in XML.
const FILE_MEDIA_TYPES: &[&str] = &["text/plain", "application/octet-stream", "binary/octet-stream", "application/xml", "text/xml"];

/// The request for a file of the archive.
fn file(path: String) -> Request {
    Request {
        origin: ORIGIN.to_owned(),
        path,
        body: None,
        headers: Vec::new(),
        accepts_statuses: &[403, 404],
        media_types: FILE_MEDIA_TYPES,
        conditional: false,
        wall: Some(&WALL),
    }
}

/// Whether an answer says that the file asked for is not there, in the store's own words.
///
/// # Errors
/// When a status that may say so came with something else.
fn is_missing(door: &'static str, answer: &Answer) -> Result<bool, UpstreamError> {
    if answer.status == 200 {
        return Ok(false);
    }
    let body = String::from_utf8_lossy(&answer.body);
    if ["AccessDenied", "NoSuchKey"].iter().any(|code| body.contains(&format!("<Code>{code}</Code>"))) {
        return Ok(true);
    }
    Err(json::later(door, format!("status {} without a word that the file is not there", answer.status)))
}

/// Whether a text is a page and not what was asked for.
fn is_page(text: &str) -> bool {
    let start = text.trim_start();
    ["<!doctype", "<html"].iter().any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

/// An accession number: ten digits, two, six.
fn accession(text: &str) -> Option<&str> {
    let text = text.trim();
    let is = text.len() == 20
        && text.bytes().enumerate().all(|(at, byte)| if at == 10 || at == 13 { byte == b'-' } else { byte.is_ascii_digit() });
    is.then_some(text)
}

/// A filer's number in ten digits.
fn cik(text: &str) -> Option<String> {
    let text = text.trim();
    let is = !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    is.then(|| format!("{text:0>10}")).filter(|cik| cik != "0000000000")
}

/// An item code: `5.02`, or a whole number as before August 2004.
fn item(text: &str) -> Option<&str> {
    let text = text.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, "00"));
    let digits = |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole, 2) && digits(part, 2) && part.len() == 2).then_some(text)
}

/// A form's type, as published.
fn form(text: &str) -> Option<String> {
    let form = text::clean(text);
    (!form.is_empty() && form.len() <= 32).then_some(form)
}

/// A filing's record with what every door knows.
fn filing(door: &Door, accession: &str, cik: String, form: String, company: &str, filed: Date) -> FilingFact {
    FilingFact {
        stream: door.name.to_owned(),
        accession: accession.to_owned(),
        cik,
        company: text::cut(text::clean(company), COMPANY_CHARS_MAX),
        base_form: base_form(&form).to_owned(),
        amendment: form.ends_with("/A"),
        form,
        filing_date: filed.to_string(),
        ..FilingFact::default()
    }
}

fn observed(door: &Door, fact: FilingFact) -> Observation {
    Observation { key: format!("{}/{}", door.name, fact.identity()), data: FactData::Filing(Box::new(fact)), replaces: Vec::new() }
}

/// Whoever asks says who it is.
fn declared(door: &Door, settings: &Settings) -> Result<(), UpstreamError> {
    if settings.base_url.is_none() && !settings.user_agent.contains('@') {
        let reason = "the upstream serves only who names a company and an e-mail address in it".to_owned();
        return Err(UpstreamError::Stop { door: door.name, field: "user_agent".to_owned(), reason });
    }
    Ok(())
}

/// Whether indexes are published for a day. Holidays are found out by asking.
fn is_business_day(day: Date) -> bool {
    !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// The first day from `day` on, or, looking back, up to it, that indexes are published for.
fn business_day(day: Date, back: bool) -> Date {
    let mut day = day;
    for _ in 0..2 {
        if !is_business_day(day) {
            day = if back { day.saturating_sub(1.day()) } else { day.saturating_add(1.day()) };
        }
    }
    day
}

/// The first business day after one.
fn next_business_day(day: Date) -> Date {
    business_day(day.saturating_add(1.day()), false)
}

/// The last day that is complete once the index of a day is: no filing bears the date of a weekend's day.
fn through(day: Date, to: Date) -> Date {
    next_business_day(day).saturating_sub(1.day()).min(to)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves what is an accession number, a filer's number, an item, and a day for which there is an index.
    #[test]
    fn reads_numbers_and_days() {
        assert_eq!(accession(" 0001683168-26-000199\n"), Some("0001683168-26-000199"));
        for bad in ["0001683168-26-00199", "000168316826000199", "0001683168-26-00019x", "é001683168-26-00019"] {
            assert_eq!(accession(bad), None, "{bad}");
        }
        assert_eq!((cik("736012"), cik("0000736012")), (Some("0000736012".into()), Some("0000736012".into())));
        for bad in ["", "0", "12345678901", "ER  820694"] {
            assert_eq!(cik(bad), None, "{bad}");
        }
        assert_eq!((item("5.02"), item(" 9.01 "), item("5"), item("12")), (Some("5.02"), Some("9.01"), Some("5"), Some("12")));
        for bad in ["3C.1", "5.2", "", "5.", "123"] {
            assert_eq!(item(bad), None, "{bad}");
        }
        let (friday, sunday, monday) = (date(2026, 9, 25), date(2026, 9, 27), date(2026, 9, 28));
        assert_eq!((business_day(sunday, true), business_day(sunday, false), next_business_day(friday)), (friday, monday, monday));
        assert_eq!((through(friday, monday), through(friday, friday)), (sunday, friday));
    }
}

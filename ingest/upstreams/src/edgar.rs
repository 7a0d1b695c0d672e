//! Filings with the Securities and Exchange Commission, and the trades that insiders report in them.
//!
//! There are seven streams, whose facts are separate. `edgar.index`, the daily master index, is authoritative: all filings, one row per
//! filer, without items. `edgar.current`, the feed of the latest filings, is fast, knows the role of a filer in a filing and the items of
//! an 8-K, and misses some filings. `edgar.submissions` requests the items of those 8-Ks that the feed missed, one request per filer.
//! `edgar.ownership` reads each filing of form 3, 4 or 5 that an index names, one request per filing, once. `edgar.pdufa` keeps sentences
//! about target action dates of drugs, from the documents that the full-text search names. `edgar.tickers` is the list of companies with
//! ticker symbols. `edgar.xbrl` reads what annual reports say about revenue and about customers, of the companies of the crosswalk.
//!
//! A missing file is answered with 403 and XML. A 403 with an HTML page means that we must stop, and so does either of the two block pages
//! under any status. Then no stream sends a request for eleven minutes, in any process, because requests extend the block. All streams
//! together stay below the ten requests per second that one user may send: they are synced one after another, by one process.

mod current;
mod document;
mod index;
mod instance;
pub(crate) mod live;
mod master;
mod ownership;
mod pdufa;
mod submissions;
mod tickers;
mod walk;
mod xbrl;

use std::collections::HashSet;
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use schemas::facts::FactData;
use schemas::facts::filings::{FilingFact, base_form};
use schemas::position::UpstreamCursor;
use schemas::topics::{COMPANY_FACTS, FILINGS, INSIDER_TRADES, STATEMENTS};

use crate::{
    Answer, BackOffRule, KnownRecords, Manifest, Observation, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, json, text,
};

/// The origin of index, feed and documents.
const ORIGIN: &str = "https://www.sec.gov";
/// The origin of the submissions of a filer.
const DATA_ORIGIN: &str = "https://data.sec.gov";
const CURRENT: &str = "edgar.current";
const INDEX: &str = "edgar.index";
const SUBMISSIONS: &str = "edgar.submissions";
const OWNERSHIP: &str = "edgar.ownership";
const PDUFA: &str = "edgar.pdufa";
const TICKERS: &str = "edgar.tickers";
const XBRL: &str = "edgar.xbrl";
/// The minimum interval of the streams that read indexes, which are published daily.
const HOURS_2: Duration = Duration::from_secs(2 * 3_600);
/// The minimum interval of the list of companies. A service is complete up to the day of its oldest stream, so it is read daily.
const DAY_1: Duration = Duration::from_secs(86_400);
/// Rows arrive days late, not months; the quarterly index repairs older gaps.
const WINDOW_DAYS_MAX: u32 = 30;
const COMPANY_CHARS_MAX: usize = 200;

static MANIFEST: Manifest = Manifest {
    name: "edgar",
    streams: &[
        Stream {
            name: CURRENT,
            topic: &FILINGS,
            every: Duration::ZERO,
            snapshot: false,
            answer_bytes_max: 8 << 20,
            answer_timeout: Duration::from_secs(60),
        },
        Stream {
            name: INDEX,
            topic: &FILINGS,
            every: HOURS_2,
            snapshot: false,
            answer_bytes_max: 192 << 20,
            answer_timeout: Duration::from_secs(300),
        },
        Stream {
            name: SUBMISSIONS,
            topic: &FILINGS,
            every: HOURS_2,
            snapshot: false,
            answer_bytes_max: 32 << 20,
            answer_timeout: Duration::from_secs(120),
        },
        Stream {
            name: OWNERSHIP,
            topic: &INSIDER_TRADES,
            every: HOURS_2,
            snapshot: false,
            answer_bytes_max: 64 << 20,
            answer_timeout: Duration::from_secs(120),
        },
        // Before the statements, so that a company has its ticker when its first statement is decided.
        Stream {
            name: TICKERS,
            topic: &STATEMENTS,
            every: DAY_1,
            snapshot: true,
            answer_bytes_max: 32 << 20,
            answer_timeout: Duration::from_secs(120),
        },
        Stream {
            name: PDUFA,
            topic: &STATEMENTS,
            every: HOURS_2,
            snapshot: false,
            answer_bytes_max: 128 << 20,
            answer_timeout: Duration::from_secs(300),
        },
        Stream {
            name: XBRL,
            topic: &COMPANY_FACTS,
            every: DAY_1,
            snapshot: false,
            answer_bytes_max: 128 << 20,
            answer_timeout: Duration::from_secs(300),
        },
    ],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The block pages: one for an undeclared tool, one for too many requests. Too many requests block for ten minutes.
static BACK_OFF: BackOffRule = BackOffRule {
    statuses: &[403, 429],
    markers: &["Undeclared Automated Tool", "Request Rate Threshold Exceeded", "Traffic Limit", "Reference ID"],
    pause: Duration::from_secs(660),
};

/// The upstream.
#[derive(Debug)]
pub struct Edgar;

impl Upstream for Edgar {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor {
        // EDGAR's data begins in 1993; a full read only repairs the current quarter.
        // After an outage the runner goes further back than the most days of an ordinary window.
        let days = settings.window_days.max(WINDOW_DAYS_MAX);
        let from = window.first_day(settings.window_days).max(window.to.saturating_sub(i64::from(days).days()));
        match stream.name {
            CURRENT => json::write_cursor(current::Cursor::default()),
            INDEX => json::write_cursor(index::Cursor::new(from, window.to, window.from.is_none())),
            PDUFA => json::write_cursor(pdufa::Cursor::new(window.from, window.to)),
            TICKERS => json::write_cursor(tickers::Cursor {}),
            // Of the companies of the demo no real upstream is asked, and of real ones no simulated one.
            XBRL => json::write_cursor(xbrl::Cursor::new(settings.base_url.is_some())),
            _ => json::write_cursor(walk::Cursor::new(from, window.to)),
        }
    }

    fn window_days_max(&self) -> u32 {
        WINDOW_DAYS_MAX
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        declared(stream, settings)?;
        match stream.name {
            CURRENT => Ok(json::read_cursor::<current::Cursor>(stream.name, cursor)?.request()),
            INDEX => Ok(json::read_cursor::<index::Cursor>(stream.name, cursor)?.request()),
            PDUFA => Ok(json::read_cursor::<pdufa::Cursor>(stream.name, cursor)?.request()),
            TICKERS => json::read_cursor::<tickers::Cursor>(stream.name, cursor).map(|_| tickers::request()),
            XBRL => Ok(json::read_cursor::<xbrl::Cursor>(stream.name, cursor)?.request()),
            name => {
                let cursor: walk::Cursor = json::read_cursor(stream.name, cursor)?;
                Ok(match cursor.pending.first() {
                    None => master::daily(cursor.day),
                    Some(next) if name == SUBMISSIONS => submissions::request(next),
                    Some(next) => ownership::request(next),
                })
            }
        }
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        match stream.name {
            CURRENT => current::map(stream, &json::read_cursor(stream.name, cursor)?, answer, today),
            INDEX => index::map(stream, json::read_cursor(stream.name, cursor)?, answer, today),
            SUBMISSIONS => submissions::map(stream, json::read_cursor(stream.name, cursor)?, answer, today),
            PDUFA => pdufa::map(stream, json::read_cursor(stream.name, cursor)?, answer, today),
            TICKERS => tickers::map(stream, answer),
            XBRL => xbrl::map(stream, json::read_cursor(stream.name, cursor)?, answer, today),
            _ => ownership::map(stream, json::read_cursor(stream.name, cursor)?, answer, today),
        }
    }

    fn single(&self, stream: &Stream, raw: &[u8]) -> Vec<u8> {
        match stream.name {
            CURRENT => [b"<feed>", raw, b"</feed>"].concat(),
            INDEX => [master::HEADER.as_bytes(), raw].concat(),
            TICKERS => [b"{\"0\":", raw, b"}"].concat(),
            // What these streams reject is a whole document.
            _ => raw.to_vec(),
        }
    }

    fn known_records(&self) -> Option<&dyn KnownRecords> {
        Some(self)
    }
}

impl KnownRecords for Edgar {
    fn depends_on(&self, stream: &Stream, cursor: &UpstreamCursor) -> Vec<String> {
        match stream.name {
            CURRENT => json::read_cursor::<current::Cursor>(stream.name, cursor).map(|cursor| cursor.seen).unwrap_or_default(),
            INDEX | TICKERS => Vec::new(),
            PDUFA => {
                json::read_cursor::<pdufa::Cursor>(stream.name, cursor).map(|cursor| cursor.depends_on(stream.name)).unwrap_or_default()
            }
            XBRL => json::read_cursor::<xbrl::Cursor>(stream.name, cursor).map(|cursor| cursor.depends_on()).unwrap_or_default(),
            name => json::read_cursor::<walk::Cursor>(stream.name, cursor)
                .map(|cursor| cursor.listed().flat_map(|pair| known_by(name, pair)).collect())
                .unwrap_or_default(),
        }
    }

    fn narrow(&self, stream: &Stream, cursor: &UpstreamCursor, known: &HashSet<String>) -> Option<UpstreamCursor> {
        match stream.name {
            CURRENT => json::read_cursor::<current::Cursor>(stream.name, cursor).ok()?.narrow(known).map(json::write_cursor),
            INDEX | TICKERS => Some(cursor.clone()),
            PDUFA => {
                let cursor: pdufa::Cursor = json::read_cursor(stream.name, cursor).ok()?;
                cursor.narrow(stream.name, known).map(json::write_cursor)
            }
            XBRL => json::read_cursor::<xbrl::Cursor>(stream.name, cursor).ok()?.narrow(known).map(json::write_cursor),
            name => {
                let is_known = |pair: &str| known_by(name, pair).iter().any(|key| known.contains(key));
                let one_for = |pair: &str| if name == SUBMISSIONS { cik_of(pair).to_owned() } else { pair.to_owned() };
                let cursor: walk::Cursor = json::read_cursor(stream.name, cursor).ok()?;
                cursor.narrow(is_known, one_for).map(json::write_cursor)
            }
        }
    }
}

/// The keys under which a pair (`accession/cik`) of an index may already be known, as a record or as a rejected one.
fn known_by(stream: &str, pair: &str) -> Vec<String> {
    if stream == SUBMISSIONS {
        vec![format!("{CURRENT}/{pair}"), format!("{SUBMISSIONS}/{pair}")]
    } else {
        ownership::first_keys(pair.split('/').next().unwrap_or_default())
    }
}

/// Returns the filer of a pair, or the text itself if it is a filer.
fn cik_of(pair: &str) -> &str {
    pair.rsplit('/').next().unwrap_or_default()
}

/// Media types of the archive's files; a missing file is reported as XML.
const FILE_MEDIA_TYPES: &[&str] = &["text/plain", "application/octet-stream", "binary/octet-stream", "application/xml", "text/xml"];

/// Builds the request for a file of the archive.
fn file(path: String) -> Request {
    Request {
        origin: ORIGIN.to_owned(),
        path,
        body: None,
        headers: Vec::new(),
        accepts_statuses: &[403, 404],
        media_types: FILE_MEDIA_TYPES,
        conditional: false,
        back_off: Some(&BACK_OFF),
        download: None,
    }
}

/// Whether an answer says that the requested file does not exist.
///
/// # Errors
/// When a status that may mean so arrived with other content.
/// When an answer with such a status has other content.
fn is_missing(stream: &'static str, answer: &Answer) -> Result<bool, UpstreamError> {
    if answer.status == 200 {
        return Ok(false);
    }
    let body = String::from_utf8_lossy(&answer.body);
    if ["AccessDenied", "NoSuchKey"].iter().any(|code| body.contains(&format!("<Code>{code}</Code>"))) {
        return Ok(true);
    }
    Err(json::later(stream, format!("status {} without the text that means that the file does not exist", answer.status)))
}

/// Whether a text is an HTML page instead of the requested file.
fn is_page(text: &str) -> bool {
    let start = text.trim_start();
    ["<!doctype", "<html"].iter().any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

/// Checks an accession number: ten digits, two, six.
fn accession(text: &str) -> Option<&str> {
    let text = text.trim();
    let is = text.len() == 20
        && text.bytes().enumerate().all(|(at, byte)| if at == 10 || at == 13 { byte == b'-' } else { byte.is_ascii_digit() });
    is.then_some(text)
}

/// Formats a filer's number (CIK) with ten digits.
fn cik(text: &str) -> Option<String> {
    let text = text.trim();
    let is = !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    is.then(|| format!("{text:0>10}")).filter(|cik| cik != "0000000000")
}

/// Checks an item code: `5.02`, or a whole number as before August 2004.
fn item(text: &str) -> Option<&str> {
    let text = text.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, "00"));
    let digits = |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole, 2) && digits(part, 2) && part.len() == 2).then_some(text)
}

/// Returns a form type as it is published.
fn form(text: &str) -> Option<String> {
    let form = text::clean(text);
    (!form.is_empty() && form.len() <= 32).then_some(form)
}

/// Builds the part of a filing's record that every stream knows.
fn filing(stream: &Stream, accession: &str, cik: String, form: String, company: &str, filed: Date) -> FilingFact {
    FilingFact {
        stream: stream.name.to_owned(),
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

fn observed(stream: &Stream, fact: FilingFact) -> Observation {
    Observation::new(format!("{}/{}", stream.name, fact.identity()), FactData::Filing(Box::new(fact)))
}

/// EDGAR requires that clients identify themselves.
fn declared(stream: &Stream, settings: &Settings) -> Result<(), UpstreamError> {
    if settings.base_url.is_none() && !settings.user_agent.contains('@') {
        let reason = "the upstream requires a company name and an e-mail address in the user agent".to_owned();
        return Err(UpstreamError::Stop { stream: stream.name, field: "user_agent".to_owned(), reason });
    }
    Ok(())
}

/// Whether an index is published for a day. Holidays are only found by a request.
fn is_business_day(day: Date) -> bool {
    !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// Returns the nearest day with an index: the first from `day` on, or the last up to it.
fn business_day(day: Date, back: bool) -> Date {
    let mut day = day;
    for _ in 0..2 {
        if !is_business_day(day) {
            day = if back { day.saturating_sub(1.day()) } else { day.saturating_add(1.day()) };
        }
    }
    day
}

/// Returns the first business day after a day.
fn next_business_day(day: Date) -> Date {
    business_day(day.saturating_add(1.day()), false)
}

/// Returns the last day that is complete once the index of a day is read. No filing is dated on a weekend.
fn through(day: Date, to: Date) -> Date {
    next_business_day(day).saturating_sub(1.day()).min(to)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves the formats of accession number, filer number and item, and which days have an index.
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

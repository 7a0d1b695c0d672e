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

mod business_days;
mod current;
mod document;
mod fields;
mod files;
mod full_text;
mod index;
mod instance;
pub(crate) mod live;
mod master;
mod ownership;
mod pdufa;
mod streams;
mod submissions;
mod tickers;
mod walk;
mod xbrl;

use std::collections::HashSet;
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::{COMPANY_FACTS, FILINGS, INSIDER_TRADES, STATEMENTS};

use self::business_days::{business_day, next_business_day, through};
use self::fields::{COMPANY_CHARS_MAX, accession, cik, cik_of, filing, form, item, observed};
use self::files::{declared, file, is_missing, is_page};
use self::streams::{BACK_OFF, CURRENT, DATA_ORIGIN, INDEX, ORIGIN, OWNERSHIP, PDUFA, SUBMISSIONS, TICKERS, XBRL};
use crate::{
    Answer, Capabilities, KnownRecords, Licence, Manifest, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, json,
};

/// The minimum interval of the streams that read indexes, which are published daily.
const HOURS_2: Duration = Duration::from_secs(2 * 3_600);
/// The minimum interval of the list of companies. A service is complete up to the day of its oldest stream, so it is read daily.
const DAY_1: Duration = Duration::from_secs(86_400);
/// Rows arrive days late, not months; the quarterly index repairs older gaps.
const WINDOW_DAYS_MAX: u32 = 30;
static MANIFEST: Manifest = Manifest {
    name: "edgar",
    licence: Licence::of_government("Securities and Exchange Commission, of what filers submit"),
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

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { known_records: Some(self), window_days_max: Some(WINDOW_DAYS_MAX), ..Capabilities::default() }
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

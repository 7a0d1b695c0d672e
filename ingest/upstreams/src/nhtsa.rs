//! Recall campaigns of the National Highway Traffic Safety Administration.
//!
//! There are three streams: the Socrata copy, which supports queries for new campaigns but does not show amendments, and the two flat
//! files, which are complete and name the vehicles. The facts of different streams are merged by the services that read them.

mod flat;
mod numbers;
mod socrata;

use std::time::Duration;

use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::RECALLS;

use self::flat::FLAT_PRE_2010;
use self::numbers::{SITE, campaign, manufacturers_number};
use self::socrata::Cursor;
use crate::{Answer, Licence, Manifest, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, json};

const SOCRATA: &str = "nhtsa.socrata";
const FLAT: &str = "nhtsa.flat";

const fn flat_stream(name: &'static str) -> Stream {
    // The file is about 14 MB as a zip; the limit leaves room for an unpacked copy.
    Stream {
        name,
        topic: &RECALLS,
        every: Duration::ZERO,
        snapshot: true,
        answer_bytes_max: 128 << 20,
        answer_timeout: Duration::from_secs(900),
    }
}

static MANIFEST: Manifest = Manifest {
    name: "nhtsa",
    licence: Licence::of_government("National Highway Traffic Safety Administration"),
    streams: &[
        Stream {
            name: SOCRATA,
            topic: &RECALLS,
            every: Duration::ZERO,
            snapshot: false,
            answer_bytes_max: 32 << 20,
            answer_timeout: Duration::from_secs(90),
        },
        flat_stream(FLAT),
        flat_stream(FLAT_PRE_2010),
    ],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Nhtsa;

impl Upstream for Nhtsa {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, stream: &Stream, window: &Window, _settings: &Settings) -> UpstreamCursor {
        let from = window.from.filter(|_| stream.name == SOCRATA).map(|from| from.min(window.to));
        json::write_cursor(Cursor { from, ..Cursor::default() })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        match stream.name {
            SOCRATA => Ok(socrata::request(&cursor, settings)),
            FLAT => Ok(flat::request("FLAT_RCL_POST_2010.zip", false)),
            FLAT_PRE_2010 => Ok(flat::request("FLAT_RCL_PRE_2010.zip", true)),
            other => Err(UpstreamError::Stop {
                stream: stream.name,
                field: "stream".to_owned(),
                reason: format!("{other} is not a stream of nhtsa"),
            }),
        }
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        if stream.name == SOCRATA { socrata::map(stream, &cursor, answer, today) } else { flat::map(stream, answer, today) }
    }

    fn single(&self, stream: &Stream, raw: &[u8]) -> Vec<u8> {
        // A rejected row of a flat file is a line of text, not a zip.
        if stream.name == "nhtsa.socrata" { [b"[", raw, b"]"].concat() } else { raw.to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that all spellings of a campaign number are normalised, and that other texts give none.
    #[test]
    fn campaign_numbers_have_one_form() {
        for (raw, expected) in [
            ("26V400000", Some("26V400000")),
            (" 20v682 ", Some("20V682000")),
            ("22E002000", Some("22E002000")),
            ("", None),
            ("26V40000", None),
            ("V26400000", None),
            ("26V4000001", None),
            ("26É400", None),
        ] {
            assert_eq!(campaign(raw).as_deref(), expected, "{raw}");
        }
    }

    /// Proves that "not reported" is not a campaign number.
    #[test]
    fn a_missing_number_is_no_alias() {
        assert_eq!(manufacturers_number(" 62D "), Some("62D".to_owned()));
        for none in ["", "NR (Not Reported)", "n/a", "None"] {
            assert_eq!(manufacturers_number(none), None, "{none}");
        }
    }
}

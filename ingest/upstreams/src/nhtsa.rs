//! Recall campaigns of the National Highway Traffic Safety Administration.
//!
//! Three doors: the Socrata copy, which can be asked for new campaigns but shows no amendments, and the two flat files, which
//! are all there is, with the vehicles. A campaign's facts from different doors are merged by who reads them, not here.

mod flat;
mod socrata;

use std::time::Duration;

use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::RECALLS;
use serde::{Deserialize, Serialize};

use crate::{Answer, Door, Manifest, Page, Request, Settings, Upstream, UpstreamError, Window, json, text};

const SOCRATA: &str = "nhtsa.socrata";
const FLAT: &str = "nhtsa.flat";
const FLAT_PRE_2010: &str = "nhtsa.flat_pre_2010";
/// Where notices stand.
const SITE: &str = "https://www.nhtsa.gov";

const fn flat_door(name: &'static str) -> Door {
    // The file is about 14 MB as a zip; the bound leaves room for a copy that is sent unpacked.
    Door {
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
    doors: &[
        Door {
            name: SOCRATA,
            topic: &RECALLS,
            every: Duration::ZERO,
            snapshot: false,
            answer_bytes_max: 32 << 20,
            answer_timeout: Duration::from_secs(90),
        },
        flat_door(FLAT),
        flat_door(FLAT_PRE_2010),
    ],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Nhtsa;

/// Where a run stands. The flat files have one request each, and use none of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Cursor {
    /// The first day of campaigns to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Date>,
    /// How many campaigns were read.
    offset: usize,
    /// The first campaign of the page before.
    #[serde(skip_serializing_if = "String::is_empty")]
    first: String,
}

impl Upstream for Nhtsa {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, door: &Door, window: &Window, _settings: &Settings) -> UpstreamCursor {
        let from = window.from.filter(|_| door.name == SOCRATA).map(|from| from.min(window.to));
        json::write_cursor(Cursor { from, ..Cursor::default() })
    }

    fn request(&self, door: &Door, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(door.name, cursor)?;
        match door.name {
            SOCRATA => Ok(socrata::request(&cursor, settings)),
            FLAT => Ok(flat::request("FLAT_RCL_POST_2010.zip", false)),
            FLAT_PRE_2010 => Ok(flat::request("FLAT_RCL_PRE_2010.zip", true)),
            other => Err(UpstreamError::Stop { door: door.name, field: "door".to_owned(), reason: format!("{other} is no door of nhtsa") }),
        }
    }

    fn map(&self, door: &Door, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(door.name, cursor)?;
        if door.name == SOCRATA { socrata::map(door, &cursor, answer, today) } else { flat::map(door, answer, today) }
    }

    fn single(&self, door: &Door, raw: &[u8]) -> Vec<u8> {
        // A row of a flat file is taken as text, without its zip.
        if door.name == "nhtsa.socrata" { [b"[", raw, b"]"].concat() } else { raw.to_vec() }
    }
}

/// A campaign number in its one form of nine characters: year, letter, serial, `000`. Some places leave the zeros out.
fn campaign(text: &str) -> Option<String> {
    let mut number = text.trim().to_ascii_uppercase();
    let fits = matches!(number.as_bytes(), [y1, y2, letter, rest @ ..]
        if y1.is_ascii_digit() && y2.is_ascii_digit() && letter.is_ascii_uppercase()
            && matches!(rest.len(), 3 | 6) && rest.iter().all(u8::is_ascii_digit));
    if number.len() == 6 {
        number.push_str("000");
    }
    fits.then_some(number)
}

/// The manufacturer's own number of a campaign, unless it says that there is none.
fn manufacturers_number(text: &str) -> Option<String> {
    let number = text::clean(text);
    let upper = number.to_ascii_uppercase();
    let none =
        number.is_empty() || upper.starts_with("NR (") || ["NR", "N/A", "NA", "NONE", "NOT REPORTED", "TBD", "UNKNOWN"].contains(&&*upper);
    (!none).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a campaign has one number however it is written, and that other text has none.
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

    /// Proves that "not reported" is no number of a manufacturer's.
    #[test]
    fn a_missing_number_is_no_alias() {
        assert_eq!(manufacturers_number(" 62D "), Some("62D".to_owned()));
        for none in ["", "NR (Not Reported)", "n/a", "None"] {
            assert_eq!(manufacturers_number(none), None, "{none}");
        }
    }
}

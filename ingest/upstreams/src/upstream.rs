//! What an upstream is: a description and three pure functions. The runner in `ingest` does everything else.
//!
//! A **door** is one way in: a flat file and an API of one agency are two. Each door is run by itself: it has its own cursor,
//! runs and completeness, so that one broken door stops no other.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::position::UpstreamCursor;
use schemas::topics::Topic;

/// One door of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Door {
    /// Its name, unique among all doors (`openfda.food`); also the prefix of its facts' keys (`openfda.food/H-1166-2026`).
    pub name: &'static str,
    /// The topic of its facts.
    pub topic: &'static Topic,
    /// On schedule it is left out of turns that come sooner than this after its last finished run began; zero: of none.
    pub every: Duration,
    /// Whether one run reads all there is, so that a record missing from two of them is withdrawn.
    pub snapshot: bool,
    /// The largest answer it may give, in bytes, after decompression by the client (a zip counts as it is sent).
    pub answer_bytes_max: usize,
    /// How long one answer may take as a whole.
    pub answer_timeout: Duration,
}

/// What the engine must know of an upstream before it asks it anything.
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// Its name in configuration and on the command line.
    pub name: &'static str,
    /// Its doors, in the order in which they are run.
    pub doors: &'static [Door],
    /// Read everything again when the last run that did is older than this.
    pub full_after: Duration,
}

/// Configuration of one upstream, `[upstreams.NAME]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Stands in for scheme and host of each of its hosts, when set; no slash at the end.
    pub base_url: Option<String>,
    /// Key or token, if the upstream takes one. A secret.
    pub api_key: Option<String>,
    /// The declared User-Agent.
    pub user_agent: String,
    /// Requests a second to each host.
    pub requests_per_second: f64,
    /// How many days back each run reads again.
    pub window_days: u32,
}

/// The days a run reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First day, inclusive; `None` reads from the upstream's beginning.
    pub from: Option<Date>,
    /// Last day, inclusive: today in UTC.
    pub to: Date,
}

/// One request: a GET, or a POST where it has a body. Every one is a read, and is repeated like one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Scheme and host (`https://api.fda.gov`), replaced by `base_url` when set.
    pub origin: String,
    /// Path and query, already encoded.
    pub path: String,
    /// A JSON text. With it the request is a POST, sent as `application/json`, without it a GET.
    pub body: Option<String>,
    /// Headers beside those the client sends by itself (User-Agent, Accept-Encoding).
    pub headers: Vec<(&'static str, String)>,
    /// Statuses beside 200 that are answers to [`Upstream::map`] (404 that means "none", 400 that means "none").
    pub accepts_statuses: &'static [u16],
    /// Media types that are answers; anything else is refused before parsing. Compared without parameters.
    pub media_types: &'static [&'static str],
    /// Whether an unchanged answer may be skipped by `If-None-Match`/`If-Modified-Since`. Has no meaning for a POST.
    pub conditional: bool,
    /// How this upstream says that it wants to be left alone, if it does so in a way of its own.
    pub wall: Option<&'static Wall>,
}

/// How an upstream says that it wants to be left alone: the request is then not made again, and no door of the upstream asks anything,
/// in no process, until the pause is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    /// Statuses that mean it, unless what came with them is an answer.
    pub statuses: &'static [u16],
    /// Words of which an HTML page that means it has one.
    pub marks: &'static [&'static str],
    /// How long to leave it alone.
    pub pause: Duration,
}

impl Request {
    /// Whether it is sent with the validators of the last answer to the same path. A POST never is: its answer depends on its body,
    /// and `If-None-Match` on a POST asks for an error.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.conditional && self.body.is_none()
    }
}

/// An answer that came whole, within its limits, with an accepted status and media type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The `Link` header, if any.
    pub link: Option<String>,
    /// The body, decompressed.
    pub body: Bytes,
}

/// One record as mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Key of its fact: door, slash, natural identity there.
    pub key: String,
    /// The record.
    pub data: FactData,
    /// Keys under which the same record may have stood before it got this one; those that do are superseded by it.
    pub replaces: Vec<String>,
}

/// A record that no mapping fits. Kept aside with its raw bytes, counted, never lost in silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// What names the record, as far as it could be read.
    pub reference: String,
    /// Why, naming the field.
    pub reason: String,
    /// Its bytes; the runner caps them.
    pub raw: Vec<u8>,
}

/// What one answer held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The records, in the answer's order.
    pub observations: Vec<Observation>,
    /// The records that could not be mapped.
    pub rejects: Vec<Reject>,
    /// Where to go on; `None` after the last page.
    pub next: Option<UpstreamCursor>,
    /// The last day up to which the run is complete once this answer is taken; without any, a run that ends is complete up to the last
    /// day of its window.
    pub through: Option<Date>,
    /// What a person should know of this answer ("3 records lie outside the window asked for").
    pub warnings: Vec<String>,
}

/// Why an answer gave no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The answer is not what it should be, but may be the next time: a bot wall's HTML, truncated JSON, an upstream's own
    /// "error" record. The runner asks again a few times, then fails the run; nothing of the page was taken.
    #[error("{door}: {reason}")]
    Later {
        /// The door.
        door: &'static str,
        /// What was wrong.
        reason: String,
    },
    /// A person must act: a field vanished or changed its type on many records, a filter is ignored. This door stops.
    #[error("{door}: field {field}: {reason}")]
    Stop {
        /// The door.
        door: &'static str,
        /// The field, or the part of the request.
        field: String,
        /// What was wrong with it.
        reason: String,
    },
}

/// An upstream. Every function is pure: same arguments, same result; no clock, no chance, no network.
pub trait Upstream: Send + Sync + 'static {
    /// The description.
    fn manifest(&self) -> &'static Manifest;

    /// The cursor of a door's first page for a window. Windows that an upstream's paging cap would cut are split here and in `map`.
    fn start(&self, door: &Door, window: &Window, settings: &Settings) -> UpstreamCursor;

    /// The request at a cursor.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`] when the cursor is not one of this version's (then the runner starts over).
    fn request(&self, door: &Door, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError>;

    /// What the answer at a cursor says. `today` is the day of the run in UTC, for dates that cannot be true.
    ///
    /// # Errors
    /// When the answer as a whole cannot be taken.
    fn map(&self, door: &Door, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError>;

    /// Keys that a cursor depends on: of what is about to be asked for, those under which it may be known already. The runner looks
    /// them up among the facts of the door's topic and goes on where [`Self::narrow`] says. None by default.
    fn depends_on(&self, _door: &Door, _cursor: &UpstreamCursor) -> Vec<String> {
        Vec::new()
    }

    /// Where to go on, given which of the keys that a cursor depends on are known; `None` when there is nothing left to ask for.
    fn narrow(&self, _door: &Door, cursor: &UpstreamCursor, _known: &HashSet<String>) -> Option<UpstreamCursor> {
        Some(cursor.clone())
    }

    /// An answer's body that holds one record alone, so that a rejected one can be mapped again. By default a JSON array.
    fn single(&self, _door: &Door, raw: &[u8]) -> Vec<u8> {
        [b"[", raw, b"]"].concat()
    }
}

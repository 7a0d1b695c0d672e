//! The definition of an upstream: a description and three pure functions. The runner in `ingest` does everything else. What only some upstreams need
//! are [`Capabilities`], most of them traits of their own.
//!
//! A **stream** is one dataset or endpoint of an upstream: a flat file and an API of one agency are two streams. Each stream has its own
//! cursor, sync runs and completeness, so one broken stream does not stop the others.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemas::facts::FactData;
use schemas::position::UpstreamCursor;
use schemas::topics::Topic;

use crate::field_counts::FieldCounts;
use crate::own_options::OwnOptions;

/// One stream of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The stream's name, unique among all streams (`openfda.food`); also the prefix of its facts' keys (`openfda.food/H-1166-2026`), unless
    /// several streams of an upstream show the same records.
    pub name: &'static str,
    /// The topic of its facts.
    pub topic: &'static Topic,
    /// The minimum interval between scheduled syncs, counted from the start of the last finished run. Zero means every scheduled sync.
    pub every: Duration,
    /// Whether one run reads all records, so that a record missing from two runs is withdrawn.
    pub snapshot: bool,
    /// The largest answer accepted, in bytes, after decompression by the client (a zip file counts as it is sent).
    pub answer_bytes_max: usize,
    /// The timeout for one complete answer.
    pub answer_timeout: Duration,
}

/// Under which licence an upstream publishes its data. Whoever passes records on has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Licence {
    /// The licence, or that none is stated.
    pub terms: &'static str,
    /// Who publishes the data.
    pub publisher: &'static str,
}

impl Licence {
    /// The terms of a publisher that states none.
    pub const NOT_STATED: &'static str = "open data without a stated licence";
    /// The terms of a publisher that waives its rights.
    pub const CC0: &'static str = "CC0 1.0 (https://creativecommons.org/publicdomain/zero/1.0/)";

    /// The licence of an agency of the United States government, whose works are in the public domain.
    #[must_use]
    pub const fn of_government(publisher: &'static str) -> Self {
        Self { terms: "public domain (United States government)", publisher }
    }
}

/// The description of an upstream.
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// The name of the upstream in configuration and on the command line.
    pub name: &'static str,
    /// The licence of its data, which `/docs` of the services that show them names.
    pub licence: Licence,
    /// The streams of the upstream, in the order in which they are synced.
    pub streams: &'static [Stream],
    /// A full read is due when the last one is older than this.
    pub full_after: Duration,
}

/// Configuration of one upstream, `[upstreams.NAME]`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Replaces scheme and host of each of its hosts, when set; without a slash at the end.
    pub base_url: Option<String>,
    /// The API key or token, if the upstream requires one. A secret.
    pub api_key: Option<String>,
    /// The User-Agent header.
    pub user_agent: String,
    /// Requests per second to each host.
    pub requests_per_second: f64,
    /// How many days back each sync run reads again.
    pub window_days: u32,
    /// How many days back a full read goes, for upstreams that can be read from any day on; 0 for the upstream's own default.
    pub backfill_days: u32,
    /// What only this upstream has.
    pub own: OwnOptions,
}

impl Settings {
    /// How many days back a full read goes, given the upstream's own default. Not a shorter time than a later run reads again, which would find older
    /// rows then.
    pub(crate) fn full_read_days(&self, default_days: u32) -> u32 {
        let days = if self.backfill_days > 0 { self.backfill_days } else { default_days };
        days.max(self.window_days)
    }
}

/// The days that a sync run reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First day, inclusive; `None` reads from the start of the upstream's data.
    pub from: Option<Date>,
    /// Last day, inclusive: today in UTC.
    pub to: Date,
}

impl Window {
    /// The first day of a run, of which a full one reads so many days back.
    pub(crate) fn first_day(&self, full_read_days: u32) -> Date {
        self.from.unwrap_or(self.to.saturating_sub(i64::from(full_read_days).days())).min(self.to)
    }
}

/// One request: a GET, or a POST if it has a body. Every request only reads, so it may be retried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Scheme and host (`https://api.fda.gov`); replaced by `base_url` when that is set.
    pub origin: String,
    /// Path and query, encoded.
    pub path: String,
    /// A JSON body. With it the request is a POST with the type `application/json`, without it a GET.
    pub body: Option<String>,
    /// Headers in addition to those that the client sends itself (User-Agent, Accept-Encoding).
    pub headers: Vec<(&'static str, String)>,
    /// Statuses other than 200 whose answers are passed to [`Upstream::map`] (a 404 or 400 that means "none").
    pub accepts_statuses: &'static [u16],
    /// Accepted media types, compared without parameters. Other answers are refused before parsing.
    pub media_types: &'static [&'static str],
    /// Whether an unchanged answer may be skipped by `If-None-Match` or `If-Modified-Since`. Has no effect on a POST.
    pub conditional: bool,
    /// How this upstream asks clients to back off, if it has a way of its own.
    pub back_off: Option<&'static BackOffRule>,
    /// Says that the answer is a file that is too large for memory. It is stored on disk and read by [`Files::open`] instead of
    /// [`Upstream::map`].
    pub download: Option<Download>,
    /// Says that nothing is requested: the page is read from the file at this path by [`LocalFiles::read`] instead of [`Upstream::map`].
    pub local_file: Option<PathBuf>,
}

/// An answer that is stored on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Download {
    /// Name of the file at the upstream; letters, digits, `.`, `-` and `_`.
    pub name: String,
    /// The largest file accepted, in bytes as it is sent.
    pub bytes_max: u64,
    /// The bytes with which every such file begins. An answer that begins otherwise, such as an HTML page, is refused before the rest is read.
    pub magic: &'static [u8],
    /// How many times the file is requested in a calendar year at most, by all processes together.
    pub per_year_max: u32,
}

/// The records of a downloaded file, page by page. A reader holds a bounded part of the file in memory.
pub trait FilePages: Send + Sync {
    /// Reads the next page. Its `next` is the cursor at which the file continues, or one of another request after the last page of the file.
    /// No key occurs twice in a page.
    ///
    /// # Errors
    /// When the file is damaged from here on. The pages before are valid.
    fn next_page(&mut self) -> Result<Page, UpstreamError>;

    /// Returns how many bytes of the file have been read.
    fn bytes_read(&self) -> u64;

    /// Returns how many files of the run follow this one.
    fn files_left(&self) -> u64;
}

/// How an upstream asks clients to back off, apart from `Retry-After`. The request is then not retried, and no process sends a request of
/// any stream of the upstream until the pause is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffRule {
    /// Statuses that mean it, unless the answer is a valid one.
    pub statuses: &'static [u16],
    /// Markers: an HTML page that contains one of these texts means it.
    pub markers: &'static [&'static str],
    /// How long to send no requests.
    pub pause: Duration,
}

impl Request {
    /// Whether the request is sent with the validators of the last answer to the same path. A POST never is: its answer depends on its
    /// body, and servers may refuse `If-None-Match` on a POST.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.conditional && self.body.is_none()
    }
}

/// A complete answer within its limits, with an accepted status and media type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The `Link` header, if any.
    pub link: Option<String>,
    /// The body, decompressed.
    pub body: Bytes,
}

/// One mapped record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The key of its fact: stream, slash, natural identity within the stream.
    pub key: String,
    /// The record.
    pub data: FactData,
    /// Keys that the same record may have had before; those that are current are superseded by it.
    pub replaces: Vec<String>,
    /// The record as versions of this program before the canonical order of lists mapped it, if that differs. A stored record that equals
    /// it is unchanged, so that an upgrade appends and publishes nothing.
    pub former: Option<FactData>,
}

impl Observation {
    /// An observation of a record that replaces no other.
    #[must_use]
    pub fn new(key: String, data: FactData) -> Self {
        Self { key, data, replaces: Vec::new(), former: None }
    }
}

/// A record that could not be mapped. It is stored in the topic `rejected` with its raw bytes and counted, never dropped silently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The record's name, as far as it could be read.
    pub reference: String,
    /// Why; it names the field.
    pub reason: String,
    /// The record's bytes, without fields that must not be stored; `reason` names those. The runner limits their length.
    pub raw: Vec<u8>,
}

/// The content of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The records, in the answer's order.
    pub observations: Vec<Observation>,
    /// The records that could not be mapped.
    pub rejects: Vec<Reject>,
    /// The next cursor; `None` after the last page.
    pub next: Option<UpstreamCursor>,
    /// The day up to which the run is complete after this answer. If no answer names one, a finished run is complete up to the last day of
    /// its window.
    pub through: Option<Date>,
    /// Unexpected content that an operator should know about ("3 records lie outside the window asked for").
    pub warnings: Vec<String>,
    /// What the upstream did not show completely, although the run continues; recorded with the end of the run.
    pub incomplete: Option<Incomplete>,
    /// In how many of the page's records each mapped field has a value.
    pub fields: FieldCounts,
    /// Keys of records that the answer shows, but that are not taken over, because they are too old or cannot be mapped. If they are known, they are not
    /// missing from a [`Self::complete_part`].
    pub present: Vec<String>,
    /// A part of the stream of which this run has now shown every record: the keys that begin with this text and a slash. Keys of the part
    /// that two complete readings in a row lack are withdrawn, before the page's own facts.
    pub complete_part: Option<String>,
}

/// How many facts of a part of a stream one run appends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The part: the keys that begin with this text and a slash.
    pub part: String,
    /// The number of facts after which no further page of the part is requested. Facts of pages that were requested before are appended.
    pub facts_max: i64,
}

/// Records that the upstream counts but did not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// What is missing.
    pub what: String,
    /// The first day of which records are missing. The run is complete up to the day before. `None` if they do not belong to the newest days.
    pub from: Option<Date>,
}

/// Why an answer was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The answer is invalid but may be valid later: a block page, truncated JSON, an upstream's own "error" record. The runner retries a
    /// few times and then fails the run. Nothing of the page was appended.
    #[error("{stream}: {reason}")]
    Later {
        /// The stream.
        stream: &'static str,
        /// What was wrong.
        reason: String,
    },
    /// A person must act: a field is missing or has another type on many records, or a filter is ignored. This stream stops.
    #[error("{stream}: field {field}: {reason}")]
    Stop {
        /// The stream.
        stream: &'static str,
        /// The field, or the parameter of the request.
        field: String,
        /// What was wrong with it.
        reason: String,
    },
}

/// An upstream. Every function is pure: the same arguments give the same result, without clock, randomness or network.
pub trait Upstream: Send + Sync + 'static {
    /// Returns the description.
    fn manifest(&self) -> &'static Manifest;

    /// Returns the cursor of a stream's first page for a window. Windows that exceed an upstream's paging limit are split here and in
    /// `map`.
    fn start(&self, stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor;

    /// Builds the request at a cursor.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`] when the cursor was not written by this version. The runner then starts over.
    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError>;

    /// Maps the answer at a cursor. `today` is the day of the run in UTC, for checking dates.
    ///
    /// # Errors
    /// When the answer as a whole is refused.
    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError>;

    /// Wraps one rejected record into an answer body, so that it can be mapped again. By default a JSON array.
    fn single(&self, _stream: &Stream, raw: &[u8]) -> Vec<u8> {
        [b"[", raw, b"]"].concat()
    }

    /// Returns what the upstream has in addition. Nothing by default.
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::default()
    }
}

/// What only some upstreams have.
#[derive(Clone, Copy, Default)]
pub struct Capabilities<'a> {
    /// What its runs leave to the next ones. Without it each run begins with its window.
    pub memory: Option<&'a dyn RunMemory>,
    /// Which requests it can skip, because the log has their records.
    pub known_records: Option<&'a dyn KnownRecords>,
    /// How it maps records that hold the time at which their answer was received.
    pub timed_records: Option<&'a dyn TimedRecords>,
    /// From which day on its full reads show every record. Without it they withdraw nothing.
    pub full_reads: Option<&'a dyn FullReads>,
    /// How it reads downloaded files. Without it no stream downloads files.
    pub files: Option<&'a dyn Files>,
    /// How it reads files that the operator has. Without it no stream reads any.
    pub local_files: Option<&'a dyn LocalFiles>,
    /// How its runs continue after a failed request. Without it they fail.
    pub failures: Option<&'a dyn Failures>,
    /// How many days a window without an outage goes back at most, whatever `window_days` says. After an outage the runner goes further back. `None` is no
    /// bound.
    pub window_days_max: Option<u32>,
    /// The streams of which a later page of a run may show a key again, as a newer version of the record. Of other streams the first one counts, since most
    /// upstreams list records in an order that shifts while it is read.
    pub ordered_streams: &'static [&'static str],
}

/// An upstream whose runs leave something to the next ones.
pub trait RunMemory {
    /// Returns the cursor of the first page of a run at a time. `memory` is what the last finished run left, see [`Self::remember`]; empty if it left
    /// nothing.
    fn start_after(&self, stream: &Stream, window: &Window, settings: &Settings, memory: &UpstreamCursor, at: Timestamp) -> UpstreamCursor;

    /// Returns what a finished run leaves to the next, given the cursor after its last page. By default that cursor.
    fn remember(&self, _stream: &Stream, cursor: &UpstreamCursor) -> UpstreamCursor {
        cursor.clone()
    }

    /// Whether anything is to be requested at a cursor. A run ends at a cursor without a request.
    fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool;

    /// Returns the cursor at which an interrupted run continues. By default the one of its last checkpoint.
    fn resume(&self, _stream: &Stream, cursor: &UpstreamCursor) -> UpstreamCursor {
        cursor.clone()
    }
}

/// An upstream that lists records and requests only those that the log does not have.
pub trait KnownRecords {
    /// Returns keys that may already be known, so that the requests at a cursor can skip them. The runner looks them up among the facts of
    /// the stream's topic and continues with the result of [`Self::narrow`].
    fn depends_on(&self, stream: &Stream, cursor: &UpstreamCursor) -> Vec<String>;

    /// Returns the cursor without the known keys; `None` when nothing remains to be requested.
    fn narrow(&self, stream: &Stream, cursor: &UpstreamCursor, known: &HashSet<String>) -> Option<UpstreamCursor>;
}

/// An upstream whose records hold the time at which their answer was received.
pub trait TimedRecords {
    /// Maps the answer at a cursor that was received at a time.
    ///
    /// # Errors
    /// When the answer as a whole is refused.
    fn map_at(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, at: Timestamp) -> Result<Page, UpstreamError>;
}

/// An upstream whose full reads show every record that was published since a day. The runner withdraws the records that two full reads in a row lack.
pub trait FullReads {
    /// Returns the first day of a full read. No full read begins later than an earlier one.
    fn full_from(&self, stream: &Stream, today: Date, settings: &Settings) -> Date;
}

/// An upstream that publishes files which are too large for memory, see [`Request::download`].
pub trait Files {
    /// Opens the downloaded file of the request at a cursor, at the record where the cursor continues.
    ///
    /// # Errors
    /// When the file is not what the request asked for.
    fn open(&self, stream: &Stream, cursor: &UpstreamCursor, file: File, at: Timestamp) -> Result<Box<dyn FilePages>, UpstreamError>;
}

/// An upstream with a stream that reads a file which the operator has on this machine, see [`Request::local_file`].
pub trait LocalFiles {
    /// Whether a stream reads the file. Up to which day it was read is not up to which day the data of its service is complete: most operators have no such file.
    fn has(&self, stream: &Stream) -> bool;

    /// Reads the page at a cursor. The file may be another one than that of the page before.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`] when the file is not what the stream reads; [`UpstreamError::Later`] when it cannot be opened.
    fn read(&self, stream: &Stream, cursor: &UpstreamCursor, path: &Path) -> Result<Page, UpstreamError>;
}

/// An upstream of many hosts or files, of which one must not stop the others.
pub trait Failures {
    /// Returns the page that stands for a request to which a host gave no answer after all retries, with the reason and the time. It also stands for a
    /// file that is damaged. `None` fails the run.
    fn failed(&self, stream: &Stream, cursor: &UpstreamCursor, reason: &str, at: Timestamp) -> Option<Page>;

    /// Returns the budget of the part that the page at a cursor belongs to, so that one host does not fill the log. When the run has spent it,
    /// [`Self::failed`] stands for the page. `None`, the default, is no bound.
    fn budget(&self, _stream: &Stream, _cursor: &UpstreamCursor) -> Option<Budget> {
        None
    }
}

/// What a runner asks of any upstream, with the answer of those that leave a part out.
impl dyn Upstream + '_ {
    /// See [`RunMemory::start_after`]. Without a memory it is [`Upstream::start`].
    #[must_use]
    pub fn start_after(
        &self,
        stream: &Stream,
        window: &Window,
        settings: &Settings,
        memory: &UpstreamCursor,
        at: Timestamp,
    ) -> UpstreamCursor {
        match self.capabilities().memory {
            Some(runs) => runs.start_after(stream, window, settings, memory, at),
            None => self.start(stream, window, settings),
        }
    }

    /// See [`RunMemory::remember`]. Without a memory it is nothing.
    #[must_use]
    pub fn remember(&self, stream: &Stream, cursor: &UpstreamCursor) -> UpstreamCursor {
        self.capabilities().memory.map_or_else(UpstreamCursor::default, |runs| runs.remember(stream, cursor))
    }

    /// See [`RunMemory::has_request`]. Without a memory every cursor has one.
    #[must_use]
    pub fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool {
        self.capabilities().memory.is_none_or(|runs| runs.has_request(stream, cursor))
    }

    /// See [`RunMemory::resume`]. Without a memory it is the cursor itself.
    #[must_use]
    pub fn resume(&self, stream: &Stream, cursor: &UpstreamCursor) -> UpstreamCursor {
        self.capabilities().memory.map_or_else(|| cursor.clone(), |runs| runs.resume(stream, cursor))
    }

    /// See [`KnownRecords::depends_on`]. None of an upstream that requests every record.
    #[must_use]
    pub fn depends_on(&self, stream: &Stream, cursor: &UpstreamCursor) -> Vec<String> {
        self.capabilities().known_records.map_or_else(Vec::new, |known| known.depends_on(stream, cursor))
    }

    /// See [`KnownRecords::narrow`]. The cursor itself of an upstream that requests every record.
    #[must_use]
    pub fn narrow(&self, stream: &Stream, cursor: &UpstreamCursor, known: &HashSet<String>) -> Option<UpstreamCursor> {
        match self.capabilities().known_records {
            Some(records) => records.narrow(stream, cursor, known),
            None => Some(cursor.clone()),
        }
    }

    /// See [`TimedRecords::map_at`]. Without it [`Upstream::map`] with the day of that time in UTC.
    ///
    /// # Errors
    /// When the answer as a whole is refused.
    pub fn map_at(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, at: Timestamp) -> Result<Page, UpstreamError> {
        match self.capabilities().timed_records {
            Some(records) => records.map_at(stream, cursor, answer, at),
            None => self.map(stream, cursor, answer, at.to_zoned(TimeZone::UTC).date()),
        }
    }

    /// See [`FullReads::full_from`]. `None` if full reads withdraw nothing.
    #[must_use]
    pub fn full_from(&self, stream: &Stream, today: Date, settings: &Settings) -> Option<Date> {
        Some(self.capabilities().full_reads?.full_from(stream, today, settings))
    }

    /// Whether a later page of a run may show a key of the stream again, see [`Capabilities::ordered_streams`].
    #[must_use]
    pub fn is_ordered(&self, stream: &Stream) -> bool {
        self.capabilities().ordered_streams.contains(&stream.name)
    }

    /// See [`Files::open`].
    ///
    /// # Errors
    /// As there, and if the upstream reads no files.
    pub fn open(&self, stream: &Stream, cursor: &UpstreamCursor, file: File, at: Timestamp) -> Result<Box<dyn FilePages>, UpstreamError> {
        let no_files =
            || UpstreamError::Stop { stream: stream.name, field: "download".to_owned(), reason: "the stream reads no files".to_owned() };
        self.capabilities().files.ok_or_else(no_files)?.open(stream, cursor, file, at)
    }

    /// See [`LocalFiles::has`].
    #[must_use]
    pub fn is_of_local_file(&self, stream: &Stream) -> bool {
        self.capabilities().local_files.is_some_and(|files| files.has(stream))
    }

    /// See [`LocalFiles::read`].
    ///
    /// # Errors
    /// As there, and if the upstream reads no files of the operator.
    pub fn read_local(&self, stream: &Stream, cursor: &UpstreamCursor, path: &Path) -> Result<Page, UpstreamError> {
        let no_files =
            || UpstreamError::Stop { stream: stream.name, field: "local_file".to_owned(), reason: "the stream reads no files".to_owned() };
        self.capabilities().local_files.ok_or_else(no_files)?.read(stream, cursor, path)
    }

    /// See [`Failures::failed`]. Without it a failure ends the run.
    #[must_use]
    pub fn failed(&self, stream: &Stream, cursor: &UpstreamCursor, reason: &str, at: Timestamp) -> Option<Page> {
        self.capabilities().failures?.failed(stream, cursor, reason, at)
    }

    /// See [`Failures::budget`]. No bound without it.
    #[must_use]
    pub fn budget(&self, stream: &Stream, cursor: &UpstreamCursor) -> Option<Budget> {
        self.capabilities().failures?.budget(stream, cursor)
    }
}

//! Parcels of Cook County, Illinois, from the open data of its assessor on Socrata: assessed values, the universe of parcels, addresses,
//! appeals, exempt parcels, sales and permits; and, if the operator has it, from its database file PTAXSIM (`ptaxsim`), which has the exemptions of residences.
//!
//! The datasets have no time of change for a row, so each run reads them whole, in pages by `row_id`, the table of exempt parcels by PIN and year, and the hash
//! of a row says whether it changed. Values and sales are read township by township: the page that ends a township is followed by facts that say so. For sales
//! that is one fact. For values it is the cycle, the last year and stage of which nearly all parcels have a value, of each neighbourhood and of the township;
//! the counts for it are in the cursor, so a run that is interrupted continues with them.
//!
//! What is unreliable: numbers are texts (`"37000.0"`), the first zero of a PIN is lost in some rows, a stage that is not done is absent or 0, and classes have
//! marks in them. Owners, buyers, sellers, agents and mailing addresses are not requested.

pub(crate) mod permits;
mod ptaxsim;
mod rows;
mod streams;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::{PARCELS, PERMITS, SALES, Topic};
use serde::{Deserialize, Serialize};
use texts::cook::TOWNSHIPS;

pub use self::ptaxsim::Options;
use self::rows::{Rows, Stages};
use self::streams::{ADDRESSES, APPEALS, EXEMPT, PERMITS_STREAM, PTAXSIM, SALES_STREAM, UNIVERSE, VALUES};
use crate::socrata::{self, KeyColumn, Keyset};
use crate::{
    Answer, Capabilities, Licence, LocalFiles, Manifest, Page, Request, RunMemory, Settings, Stream, Upstream, UpstreamError, Window, json,
    rolls,
};

const ORIGIN: &str = "https://datacatalog.cookcountyil.gov";
/// The rows of a page.
const PAGE_ROWS: usize = 5_000;
/// How many years before the current one are read of values.
const VALUE_YEARS: i16 = 2;
/// How many years before the current one are read of sales.
const SALE_YEARS: i16 = 5;
/// How many years before the current one are read of appeals.
const APPEAL_YEARS: i16 = 3;
/// How many years before the current one are read of permits.
const PERMIT_YEARS: i16 = 5;
/// Datasets that change twice a month are read again after so many days.
const EVERY_DAYS: u64 = 14;

const fn stream(name: &'static str, topic: &'static Topic) -> Stream {
    Stream {
        name,
        topic,
        every: Duration::from_secs(EVERY_DAYS * 86_400),
        snapshot: false,
        answer_bytes_max: 64 << 20,
        answer_timeout: Duration::from_secs(120),
    }
}

static MANIFEST: Manifest = Manifest {
    name: "cook",
    licence: Licence { terms: Licence::NOT_STATED, publisher: "Cook County Assessor's Office" },
    // Sales come first: a cycle is closed with the sales that are known.
    streams: &[
        stream(SALES_STREAM, &SALES),
        stream(ADDRESSES, &PARCELS),
        stream(APPEALS, &PARCELS),
        stream(EXEMPT, &PARCELS),
        stream(UNIVERSE, &PARCELS),
        stream(VALUES, &PARCELS),
        stream(PTAXSIM, &PARCELS),
        stream(PERMITS_STREAM, &PERMITS),
    ],
    full_after: Duration::from_secs(30 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Cook;

/// What is read of a dataset.
struct Dataset {
    stream: &'static str,
    id: &'static str,
    /// The column of the first year or day, and how many years before the current one that is.
    since: (&'static str, i16),
    /// Whether it is read township by township.
    has_townships: bool,
    keyset: Keyset,
}

const ROW_ID: &[KeyColumn] = &[KeyColumn { name: "row_id", is_number: false }];
/// What is unique in the table of exempt parcels, by the publisher's documents. They name a `row_id` for the other tables and not for this one; whether it has
/// one is not known. A PIN is a text. The year is compared in quotes, as in the first condition of every dataset: the server takes a number in quotes for a column
/// of numbers, and refuses one without them for a column of texts.
const PIN_AND_YEAR: &[KeyColumn] = &[KeyColumn { name: "pin", is_number: false }, KeyColumn { name: "year", is_number: false }];

const fn dataset(stream: &'static str, id: &'static str, since: (&'static str, i16), has_townships: bool) -> Dataset {
    Dataset { stream, id, since, has_townships, keyset: Keyset { stream, columns: ROW_ID } }
}

static DATASETS: &[Dataset] = &[
    dataset(SALES_STREAM, "wvhk-k5uv", ("sale_date", SALE_YEARS), true),
    dataset(ADDRESSES, "3723-97qp", ("year", 1), false),
    dataset(APPEALS, "y282-6ig3", ("year", APPEAL_YEARS), false),
    Dataset { keyset: Keyset { stream: EXEMPT, columns: PIN_AND_YEAR }, ..dataset(EXEMPT, "vgzx-68gb", ("year", 1), false) },
    dataset(UNIVERSE, "pabr-t5kh", ("year", 1), false),
    dataset(VALUES, "uzyt-m557", ("year", VALUE_YEARS), true),
    dataset(PERMITS_STREAM, "6yjf-dfxs", ("date_issued", PERMIT_YEARS), false),
];

/// How many parcels of an area are on the roll of a year, and how many have a value at each stage, by year. Years are texts, since cursors are read as
/// objects without a type first.
type Counts = BTreeMap<String, Stages>;

/// The position of a sync run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// The current year.
    year: i16,
    /// The place of the township in the list of townships.
    #[serde(default)]
    township: usize,
    /// The values of the columns of the row after which the page begins; empty for the first page of a township.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    /// Values: the counts of the township so far, by neighbourhood.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    counts: BTreeMap<String, Counts>,
}

impl Upstream for Cook {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor {
        if stream.name == PTAXSIM {
            return ptaxsim::start(window, settings);
        }
        json::write_cursor(Cursor { year: window.to.year(), township: 0, after: Vec::new(), counts: BTreeMap::new() })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        if stream.name == PTAXSIM {
            return ptaxsim::request(cursor, settings);
        }
        let (cursor, dataset): (Cursor, _) = (json::read_cursor(stream.name, cursor)?, dataset_of(stream)?);
        let (column, years) = dataset.since;
        let first = cursor.year.saturating_sub(years);
        let since = if column == "year" { first.to_string() } else { format!("{first}-01-01T00:00:00") };
        let mut conditions = vec![format!("{column} >= {}", socrata::quoted(&since))];
        if dataset.has_townships {
            conditions.push(format!("township_code = {}", socrata::quoted(cursor.township(stream)?)));
        }
        // A run that began with other columns begins again.
        let after = if cursor.after.len() == dataset.keyset.columns.len() { &cursor.after[..] } else { &[] };
        conditions.extend(dataset.keyset.after(after)?);
        let columns = if stream.name == PERMITS_STREAM { permits::COLUMNS } else { rows::columns(stream.name) };
        let (select, order, limit) = (columns.join(","), dataset.keyset.order(), PAGE_ROWS.to_string());
        let condition = conditions.join(" AND ");
        let parameters = [("$select", &*select), ("$where", &*condition), ("$order", &*order), ("$limit", &*limit)];
        Ok(socrata::reasoned(socrata::request(ORIGIN, dataset.id, &parameters, settings)))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        if stream.name == PTAXSIM {
            return ptaxsim::map(&answer.body);
        }
        let (mut cursor, dataset): (Cursor, _) = (json::read_cursor(stream.name, cursor)?, dataset_of(stream)?);
        let mut page = Page::default();
        let body = socrata::rows_or_reason(stream.name, answer, &mut page.warnings)?;
        let read = match stream.name {
            PERMITS_STREAM => Rows { keys: permits::map(stream.name, &body, today, &mut page)?, counted: Vec::new() },
            _ => rows::map(stream.name, &body, &mut page)?,
        };
        for (neighborhood, year, stages) in &read.counted {
            cursor.counts.entry(neighborhood.clone()).or_default().entry(year.to_string()).or_default().add(stages);
        }
        let next = dataset.keyset.next(&read.keys, &cursor.after, PAGE_ROWS)?;
        if next.is_none() && dataset.has_townships {
            let township = cursor.township(stream)?;
            page.observations.extend(match stream.name {
                SALES_STREAM => vec![rolls::sales_read(stream.name, township)],
                _ => cycles(stream.name, township, &cursor.counts),
            });
        }
        let is_last = !dataset.has_townships || cursor.township + 1 >= TOWNSHIPS.len();
        page.next = match next {
            Some(after) => Some(Cursor { after, ..cursor }),
            None if is_last => None,
            None => Some(Cursor { township: cursor.township + 1, after: Vec::new(), counts: BTreeMap::new(), ..cursor }),
        }
        .map(json::write_cursor);
        Ok(page)
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { memory: Some(self), local_files: Some(self), ..Capabilities::default() }
    }
}

/// No run leaves anything to the next one. A run without a file has nothing to read.
impl RunMemory for Cook {
    fn start_after(&self, stream: &Stream, window: &Window, settings: &Settings, _: &UpstreamCursor, _: Timestamp) -> UpstreamCursor {
        self.start(stream, window, settings)
    }

    fn has_request(&self, stream: &Stream, cursor: &UpstreamCursor) -> bool {
        !self.has(stream) || ptaxsim::has_file(cursor)
    }
}

impl LocalFiles for Cook {
    fn has(&self, stream: &Stream) -> bool {
        stream.name == PTAXSIM
    }

    fn read(&self, _: &Stream, cursor: &UpstreamCursor, path: &Path) -> Result<Page, UpstreamError> {
        ptaxsim::read(cursor, path)
    }
}

impl Cursor {
    /// The code of the township that is read.
    fn township(&self, stream: &Stream) -> Result<&'static str, UpstreamError> {
        let unknown = || UpstreamError::Stop { stream: stream.name, field: "cursor".to_owned(), reason: "names no township".to_owned() };
        TOWNSHIPS.get(self.township).map(|(code, _)| *code).ok_or_else(unknown)
    }
}

fn dataset_of(stream: &Stream) -> Result<&'static Dataset, UpstreamError> {
    let unknown = || UpstreamError::Stop { stream: stream.name, field: "stream".to_owned(), reason: "has no dataset".to_owned() };
    DATASETS.iter().find(|dataset| dataset.stream == stream.name).ok_or_else(unknown)
}

/// The cycles of the neighbourhoods of a township and, after them, of the township.
fn cycles(stream: &'static str, township: &str, counts: &BTreeMap<String, Counts>) -> Vec<crate::Observation> {
    let mut whole = Counts::new();
    for counts in counts.values() {
        for (year, stages) in counts {
            whole.entry(year.clone()).or_default().add(stages);
        }
    }
    let areas = counts.iter().map(|(neighborhood, counts)| (neighborhood.as_str(), counts)).chain([("", &whole)]);
    areas.filter_map(|(neighborhood, counts)| Some(rolls::cycle(stream, township, neighborhood, closed(counts)?))).collect()
}

/// The last year and stage of which at least 99 of 100 parcels have a value; `None` if there is none. A year with far fewer parcels than the one before
/// is not published as a whole yet.
fn closed(counts: &Counts) -> Option<(i64, &'static str)> {
    counts.iter().rev().find_map(|(year, stages)| {
        let year: i64 = year.parse().ok()?;
        let before = counts.get(&(year - 1).to_string()).map_or(0, |before| before.parcels);
        let is_whole = stages.parcels > 0 && stages.parcels * 10 >= before * 9;
        stages.closed().filter(|_| is_whole).map(|stage| (year, stage))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(years: &[(i64, [u64; 4])]) -> Counts {
        years
            .iter()
            .map(|(year, [parcels, mailed, certified, board])| (year.to_string(), Stages::of(*parcels, [*mailed, *certified, *board])))
            .collect()
    }

    /// Proves which cycle is complete: the last stage of 99 of 100 parcels in the newest year that is published as a whole.
    #[test]
    fn cycles_close() {
        for (years, expected) in [
            (&[(2025, [100, 100, 100, 99]), (2026, [100, 40, 0, 0])][..], Some((2025, "board"))),
            (&[(2025, [100, 100, 100, 100]), (2026, [100, 99, 0, 0])], Some((2026, "mailed"))),
            (&[(2025, [100, 100, 100, 100]), (2026, [100, 100, 98, 0])], Some((2026, "mailed"))),
            (&[(2025, [100, 100, 100, 100]), (2026, [100, 100, 100, 0])], Some((2026, "certified"))),
            (&[(2025, [100, 100, 100, 98]), (2026, [89, 89, 89, 89])], Some((2025, "certified"))),
            (&[(2025, [100, 100, 100, 98]), (2026, [90, 90, 90, 90])], Some((2026, "board"))),
            (&[(2026, [100, 98, 98, 98])], None),
            (&[(2026, [0, 0, 0, 0])], None),
            (&[], None),
        ] {
            assert_eq!(closed(&counts(years)), expected, "{years:?}");
        }
    }

    /// Proves that a township closes only when its parcels as a whole have the stage, and that its fact comes after those of its neighbourhoods.
    #[test]
    fn a_township_closes_last() {
        let parts_of = |far: u64| {
            let areas = [("010", counts(&[(2026, [50, 50, 50, 50])])), ("020", counts(&[(2026, [50, far, 0, 0])]))];
            let areas = areas.into_iter().map(|(name, counts)| (name.to_owned(), counts)).collect();
            cycles(VALUES, "77", &areas).into_iter().map(|observation| observation.key).collect::<Vec<_>>()
        };
        assert_eq!(parts_of(10), ["cook.values/cycle/77/010"]);
        assert_eq!(parts_of(50), ["cook.values/cycle/77/010", "cook.values/cycle/77/020", "cook.values/cycle/77"]);
    }
}

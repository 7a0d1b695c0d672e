//! Motor carriers in the United States, from the open data of their regulator on Socrata: new carriers of the census, changes of operating authority,
//! and filings of insurance that are cancelled.
//!
//! An authority and a cancelled filing name a carrier by its USDOT number only. So each page of them is followed by look-ups of the carriers that it
//! names: their census rows, the amounts required and on file, and for cancelled filings the filings in force. The census is never read as a whole.
//!
//! What is unreliable: whole datasets are rebuilt daily, so `:updated_at` says nothing; rows arrive late, so days are read again; USDOT numbers are
//! padded with zeros in some rows, and a look-up asks for both spellings; a number is quoted only in columns of texts; fleets can be nonsense, and
//! are passed on as published. Only the fields that are mapped are requested: none with phone numbers, e-mail addresses, officers or tax numbers.

mod dataset;
mod rows;

use std::time::Duration;

use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::CARRIERS;
use serde::{Deserialize, Serialize};

use self::dataset::Dataset;
use crate::socrata::{self, KeyColumn, Keyset};
use crate::{
    Answer, Capabilities, Licence, Manifest, Observation, Page, Reject, Request, Settings, Stream, Upstream, UpstreamError, Window, json,
};

const ORIGIN: &str = "https://data.transportation.gov";
const CENSUS: &str = "fmcsa.census";
const AUTHORITY: &str = "fmcsa.authority";
const CANCELLATIONS: &str = "fmcsa.cancellations";
/// The rows of a page of a list.
const PAGE_ROWS: usize = 1_000;
/// The carriers of one look-up.
const LOOKUP_CARRIERS: usize = 50;
/// The most rows of the answer to a look-up. An answer with as many can be cut, so the look-up is repeated with half of the carriers.
const LOOKUP_ROWS_MAX: usize = 10_000;
/// How far back a full read goes, unless the settings say otherwise.
const FULL_READ_DAYS: u32 = 30;

const fn stream(name: &'static str) -> Stream {
    Stream {
        name,
        topic: &CARRIERS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 64 << 20,
        answer_timeout: Duration::from_secs(120),
    }
}

static MANIFEST: Manifest = Manifest {
    name: "fmcsa",
    licence: Licence::of_government("Federal Motor Carrier Safety Administration"),
    streams: &[stream(CENSUS), stream(AUTHORITY), stream(CANCELLATIONS)],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Fmcsa;

/// The list of a stream: its dataset, the column with the day by which it is read, and the columns by which it is paged.
struct List {
    stream: &'static str,
    dataset: Dataset,
    day: &'static str,
    keyset: Keyset,
}

const fn text(name: &'static str) -> KeyColumn {
    KeyColumn { name, is_number: false }
}

static LISTS: &[List] = &[
    List {
        stream: CENSUS,
        dataset: Dataset::Census,
        day: "add_date",
        keyset: Keyset { stream: CENSUS, columns: &[text("add_date"), KeyColumn { name: "dot_number", is_number: true }] },
    },
    List {
        stream: AUTHORITY,
        dataset: Dataset::Authority,
        day: "status_change_date",
        keyset: Keyset { stream: AUTHORITY, columns: &[text("status_change_date"), text(":id")] },
    },
    List {
        stream: CANCELLATIONS,
        dataset: Dataset::Cancellations,
        day: "cancl_effective_date",
        keyset: Keyset { stream: CANCELLATIONS, columns: &[text("cancl_effective_date"), text(":id")] },
    },
];

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// A page of the list.
    #[default]
    List,
    /// The census rows of carriers.
    Carriers,
    /// The filings in force of carriers.
    Filings,
    /// The amounts on file of carriers.
    OnFile,
}

impl Step {
    /// The dataset of a look-up; `None` for the list.
    fn lookup(self) -> Option<Dataset> {
        match self {
            Self::List => None,
            Self::Carriers => Some(Dataset::Census),
            Self::Filings => Some(Dataset::Filings),
            Self::OnFile => Some(Dataset::OnFile),
        }
    }
}

/// The position of a sync run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// The first day.
    from: Date,
    #[serde(default)]
    step: Step,
    /// The values of the columns of the row after which the page of the list begins; in a look-up, the next page. Empty for the first page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    /// In a look-up: whether the list has another page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_more: bool,
    /// In a look-up: the carriers that are still to be looked up, the first ones of them now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    carriers: Vec<String>,
    /// In a look-up: how many carriers are looked up at once, if fewer than [`LOOKUP_CARRIERS`] because more of them had too many rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_once: Option<usize>,
}

impl Cursor {
    /// The number of carriers that are looked up at once, where there are as many.
    fn at_once(&self) -> usize {
        self.at_once.map_or(LOOKUP_CARRIERS, |carriers| carriers.clamp(1, LOOKUP_CARRIERS))
    }

    /// The carriers of the look-up.
    fn batch(&self) -> &[String] {
        self.carriers.get(..self.at_once()).unwrap_or(&self.carriers)
    }

    /// The cursor of the same look-up with half of the carriers; `None` for a single one.
    fn halved(&self) -> Option<Self> {
        let half = self.batch().len() / 2;
        (half > 0).then(|| Self { at_once: Some(half), ..self.clone() })
    }

    /// The cursor after a look-up.
    fn after_lookup(&self, stream: &Stream) -> Option<Self> {
        let next = match (self.step, stream.name) {
            (Step::Carriers, CANCELLATIONS) => Step::Filings,
            (Step::Carriers, AUTHORITY) | (Step::Filings, _) => Step::OnFile,
            _ => Step::List,
        };
        if next != Step::List {
            return Some(Self { step: next, ..self.clone() });
        }
        self.after_batch()
    }

    /// The cursor after all look-ups of a batch, or after those of its carriers that were left out.
    fn after_batch(&self) -> Option<Self> {
        let rest = self.carriers.get(self.at_once()..).unwrap_or_default().to_vec();
        match (rest.is_empty(), self.has_more) {
            (false, _) => Some(Self { step: Step::Carriers, carriers: rest, at_once: None, ..self.clone() }),
            (true, true) => Some(Self { step: Step::List, carriers: rest, at_once: None, has_more: false, ..self.clone() }),
            (true, false) => None,
        }
    }
}

impl Upstream for Fmcsa {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor {
        let from = window.first_day(settings.full_read_days(FULL_READ_DAYS));
        json::write_cursor(Cursor { from, step: Step::List, after: Vec::new(), has_more: false, carriers: Vec::new(), at_once: None })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        if let Some(dataset) = cursor.step.lookup() {
            let (carriers, limit) = (carriers_condition(stream, dataset, cursor.batch())?, LOOKUP_ROWS_MAX.to_string());
            let select = rows::columns(dataset).join(",");
            let parameters = [("$select", &*select), ("$where", &*carriers), ("$order", ":id"), ("$limit", &*limit)];
            return Ok(socrata::reasoned(socrata::request(ORIGIN, dataset.id(), &parameters, settings)));
        }
        let list = list(stream)?;
        let since = format!("{} >= {}", list.day, socrata::quoted(&compact(cursor.from)));
        let condition = match list.keyset.after(&cursor.after)? {
            Some(after) => format!("{since} AND {after}"),
            None => since,
        };
        let (select, order, limit) = (rows::columns(list.dataset).join(","), list.keyset.order(), PAGE_ROWS.to_string());
        let parameters = [("$select", &*select), ("$where", &*condition), ("$order", &*order), ("$limit", &*limit)];
        Ok(socrata::reasoned(socrata::request(ORIGIN, list.dataset.id(), &parameters, settings)))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, _today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut page = Page::default();
        let body = socrata::rows_or_reason(stream.name, answer, &mut page.warnings)?;
        if let Some(dataset) = cursor.step.lookup() {
            let read = rows::map(stream.name, dataset, &body, &mut page, false)?;
            if read.len() >= LOOKUP_ROWS_MAX {
                return Ok(with_fewer_carriers(&cursor, dataset, page.warnings));
            }
            page.next = cursor.after_lookup(stream).map(json::write_cursor);
            return Ok(page);
        }
        let list = list(stream)?;
        let read = rows::map(stream.name, list.dataset, &body, &mut page, true)?;
        let keys: Vec<Vec<String>> = read.iter().map(|row| row.key.clone()).collect();
        let outside = read.iter().filter(|row| row.day.is_some_and(|day| day < cursor.from)).count();
        page.warnings.extend(crate::drift::outside(stream.name, "$where", outside, read.len())?);
        let next = list.keyset.next(&keys, &cursor.after, PAGE_ROWS)?;
        keep_last_of_each_key(&mut page.observations);
        let mut carriers: Vec<String> = read.into_iter().map(|row| row.dot).filter(|dot| !dot.is_empty()).collect();
        carriers.sort_unstable();
        carriers.dedup();
        let has_more = next.is_some();
        let after = next.unwrap_or_default();
        page.next = if list.dataset != Dataset::Census && !carriers.is_empty() {
            Some(Cursor { step: Step::Carriers, after, has_more, carriers, ..cursor })
        } else {
            has_more.then_some(Cursor { after, ..cursor })
        }
        .map(json::write_cursor);
        Ok(page)
    }

    fn capabilities(&self) -> Capabilities<'_> {
        // Of the changes of an authority the last one counts, and it comes last.
        Capabilities { ordered_streams: &[AUTHORITY], ..Capabilities::default() }
    }
}

/// The page of a look-up with so many rows that some can be missing: none of them, since a filing that is missing would look like none. The look-up is
/// repeated with half of the carriers. A single carrier is rejected, and the next ones are looked up.
fn with_fewer_carriers(cursor: &Cursor, dataset: Dataset, warnings: Vec<String>) -> Page {
    let mut page = Page { warnings, ..Page::default() };
    let next = match (cursor.halved(), cursor.batch().first()) {
        (None, Some(dot)) => {
            let reason = format!("{LOOKUP_ROWS_MAX} rows or more of the dataset {} are about the carrier", dataset.id());
            page.rejects.push(Reject { reference: dot.clone(), reason, raw: format!("{{\"usdot_number\":\"{dot}\"}}").into_bytes() });
            cursor.after_batch()
        }
        (halved, _) => halved,
    };
    page.next = next.map(json::write_cursor);
    page
}

/// Leaves the last observation of each key, since rows come in the order of their days.
fn keep_last_of_each_key(observations: &mut Vec<Observation>) {
    let mut known = std::collections::HashSet::new();
    observations.reverse();
    observations.retain(|observation| known.insert(observation.key.clone()));
    observations.reverse();
}

fn list(stream: &Stream) -> Result<&'static List, UpstreamError> {
    let unknown = || UpstreamError::Stop { stream: stream.name, field: "stream".to_owned(), reason: "has no list".to_owned() };
    LISTS.iter().find(|list| list.stream == stream.name).ok_or_else(unknown)
}

/// A day as the datasets spell it: `20261118`.
fn compact(day: Date) -> String {
    day.strftime("%Y%m%d").to_string()
}

/// The condition of the rows of some carriers. The census has numbers, the other datasets texts, some of which are padded.
fn carriers_condition(stream: &Stream, dataset: Dataset, carriers: &[String]) -> Result<String, UpstreamError> {
    if carriers.is_empty() || !carriers.iter().all(|dot| rows::dot(dot).as_deref() == Some(dot)) {
        let reason = "names no carriers to look up".to_owned();
        return Err(UpstreamError::Stop { stream: stream.name, field: "cursor".to_owned(), reason });
    }
    if dataset == Dataset::Census {
        return Ok(format!("dot_number in({})", carriers.join(",")));
    }
    let spellings = carriers.iter().flat_map(|dot| {
        let padded = format!("{dot:0>8}");
        let own = (padded != **dot).then(|| socrata::quoted(dot));
        own.into_iter().chain([socrata::quoted(&padded)])
    });
    Ok(format!("usdot_number in({})", spellings.collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(stream: &Stream, mut cursor: Cursor) -> Vec<(Step, usize)> {
        let mut steps = Vec::new();
        loop {
            steps.push((cursor.step, cursor.batch().len()));
            match cursor.after_lookup(stream) {
                Some(next) if next.step != Step::List => cursor = next,
                _ => return steps,
            }
        }
    }

    /// Proves that the carriers of a page are looked up in batches: each batch in two datasets, or for cancelled filings in three.
    #[test]
    fn carriers_are_looked_up_in_batches() {
        let carriers: Vec<String> = (1..=120).map(|dot: u32| dot.to_string()).collect();
        let cursor =
            Cursor { from: Date::constant(2026, 11, 1), step: Step::Carriers, after: Vec::new(), has_more: false, carriers, at_once: None };
        let two = |count| [(Step::Carriers, count), (Step::OnFile, count)];
        assert_eq!(walk(&stream(AUTHORITY), cursor.clone()), [two(50), two(50), two(20)].concat());
        let three = |count| [(Step::Carriers, count), (Step::Filings, count), (Step::OnFile, count)];
        assert_eq!(walk(&stream(CANCELLATIONS), cursor), [three(50), three(50), three(20)].concat());
    }

    /// Proves that numbers of carriers are asked for in both spellings where they are texts, and that nothing else gets into a condition.
    #[test]
    fn conditions_of_look_ups() {
        let condition_of = |dataset, dots: &[&str]| {
            carriers_condition(&stream(AUTHORITY), dataset, &dots.iter().map(|dot| (*dot).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(condition_of(Dataset::Census, &["344554", "4312345"]).unwrap(), "dot_number in(344554,4312345)");
        assert_eq!(condition_of(Dataset::OnFile, &["344554", "12345678"]).unwrap(), "usdot_number in('344554','00344554','12345678')");
        for bad in [&[][..], &["1) OR (1=1"], &[""], &["00344554"]] {
            assert!(matches!(condition_of(Dataset::Census, bad), Err(UpstreamError::Stop { .. })), "{bad:?}");
        }
    }
}

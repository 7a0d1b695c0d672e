//! Grants of the National Institutes of Health from the RePORTER API: one record per award and fiscal year.
//!
//! Records are read by `date_added`, the day on which an award was added to RePORTER, because no other field tells what is new. There is no
//! modification date. Amounts, dates and people change in place, and only a full read finds these changes. A full read covers the last
//! [`FISCAL_YEARS`] fiscal years, or as many days as configured, one month at a time. Records that two full reads in a row lack are withdrawn. Only the first
//! [`RECORDS_MAX`] records of a query can be reached, so a larger window is split in half, and a larger day is read one agency at a time.
//!
//! Pages are stable only with a total order, and even then a record that is added or removed moves the others. So records are counted: a
//! window that returned fewer records than it announced is read again in the opposite order.
//!
//! RePORTER ignores an unknown criterion without an error, so the answers are compared with the request.

mod fields;
pub(crate) mod live;
mod project;

use std::collections::HashSet;
use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::position::UpstreamCursor;
use schemas::topics::GRANTS;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::drift::FieldCounts;
use crate::json::{self, Field, Object, Records};
use crate::{
    Answer, Capabilities, FullReads, Incomplete, Licence, Manifest, Page, Request, Settings, Stream, Upstream, UpstreamError, Window,
    drift, text,
};
use project::{EXPECTED, Project, id_of, observe};

const ORIGIN: &str = "https://api.reporter.nih.gov";
/// The path of the search.
const SEARCH_PATH: &str = "/v2/projects/search";
/// How many fiscal years a full read covers: the current one and those before it.
pub const FISCAL_YEARS: i16 = 5;
/// Records per page: the server's maximum.
const LIMIT: usize = 500;
/// The last record that can be reached. Newer documentation allows more, older documentation allows this many; the code works with both.
pub const RECORDS_MAX: usize = 10_000;
/// How many times an incomplete window is read again.
const AGAIN_MAX: u8 = 2;
/// The agencies that administer awards. A day with too many records is read one agency at a time.
const AGENCIES: &[&str] = &[
    "NCI", "NIAID", "NHLBI", "NIGMS", "NINDS", "NIDDK", "NIMH", "NICHD", "NIA", "NIDA", "NEI", "NIAAA", "NIEHS", "NIDCD", "NIAMS", "NIDCR",
    "NHGRI", "NIBIB", "NIMHD", "NCATS", "NINR", "NLM", "NCCIH", "FIC", "OD", "CLC", "CIT", "CC", "CSR", "VA", "CDC", "NIOSH", "AHRQ",
    "FDA", "ACF", "HRSA", "SAMHSA",
];
/// The requested fields. RePORTER omits fields that are not requested.
const FIELDS: &[&str] = &[
    "ApplId",
    "SubprojectId",
    "FiscalYear",
    "ProjectNum",
    "CoreProjectNum",
    "ProjectTitle",
    "AwardType",
    "ActivityCode",
    "AwardAmount",
    "DirectCostAmt",
    "IndirectCostAmt",
    "AwardNoticeDate",
    "DateAdded",
    "BudgetStart",
    "BudgetEnd",
    "ProjectStartDate",
    "ProjectEndDate",
    "Organization",
    "OrganizationType",
    "PrincipalInvestigators",
    "ContactPiName",
    "AgencyIcAdmin",
    "PrefTerms",
    "SpendingCategoriesDesc",
    "AbstractText",
    "FundingMechanism",
    "OpportunityNumber",
    "ProjectDetailUrl",
];
static MANIFEST: Manifest = Manifest {
    name: "nih_reporter",
    licence: Licence::of_government("National Institutes of Health"),
    streams: &[Stream {
        name: "nih_reporter",
        topic: &GRANTS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 64 << 20,
        answer_timeout: Duration::from_secs(120),
    }],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct NihReporter;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cursor {
    /// The days that this request asks for.
    from: Date,
    to: Date,
    /// The last day of the sync run.
    stop: Date,
    /// The index of the agency, when a day is read one agency at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agency: Option<usize>,
    /// How many records to skip.
    offset: usize,
    /// How many records the first page of the window announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// The smallest and largest application id of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<(u64, u64)>,
    /// How many distinct records of this window were received.
    seen: usize,
    /// How many of them were outside the window.
    outside: usize,
    /// How many times this window was started again.
    again: u8,
}

impl Cursor {
    fn window(from: Date, to: Date, stop: Date, agency: Option<usize>) -> Self {
        Self { from, to, stop, agency, offset: 0, total: None, before: None, seen: 0, outside: 0, again: 0 }
    }

    fn month(from: Date, stop: Date) -> Self {
        Self::window(from, from.last_of_month().min(stop), stop, None)
    }

    fn next_window(&self) -> Option<Self> {
        if let Some(agency) = self.agency.map(|agency| agency + 1).filter(|agency| *agency < AGENCIES.len()) {
            return Some(Self::window(self.from, self.to, self.stop, Some(agency)));
        }
        (self.to < self.stop).then(|| Self::month(self.to.saturating_add(1.day()), self.stop))
    }

    /// The first part of this window. The cursor continues with the other parts.
    fn part(&self) -> Option<Self> {
        let days = (self.to - self.from).get_days();
        if days > 0 {
            return Some(Self::window(self.from, self.from.saturating_add((days / 2).days()), self.stop, None));
        }
        self.agency.is_none().then(|| Self::window(self.from, self.to, self.stop, Some(0)))
    }

    /// This window from its start, in the opposite order.
    fn begun_again(&self) -> Option<Self> {
        let again = self.again + 1;
        (self.again < AGAIN_MAX).then(|| Self { again, ..Self::window(self.from, self.to, self.stop, self.agency) })
    }

    fn is_ascending(&self) -> bool {
        self.again.is_multiple_of(2)
    }

    fn name(&self) -> String {
        let agency = self.agency.and_then(|agency| AGENCIES.get(agency)).map(|agency| format!(" ({agency})")).unwrap_or_default();
        format!("{} to {}{agency}", self.from, self.to)
    }
}

/// The first day of a full read.
fn first_day(to: Date) -> Date {
    let fiscal_year = to.year() + i16::from(to.month() >= 10);
    Date::new(fiscal_year.saturating_sub(FISCAL_YEARS), 10, 1).unwrap_or(Date::MIN)
}

impl Upstream for NihReporter {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, window: &Window, _settings: &Settings) -> UpstreamCursor {
        let from = window.from.unwrap_or_else(|| first_day(window.to));
        json::write_cursor(Cursor::month(from.min(window.to), window.to))
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut criteria = json!({"date_added": {"from_date": cursor.from, "to_date": cursor.to}, "exclude_subprojects": true});
        if let Some(agency) = cursor.agency.and_then(|agency| AGENCIES.get(agency)) {
            criteria["agencies"] = json!([agency]);
            criteria["is_agency_admin"] = json!(true);
        }
        let body = json!({
            "criteria": criteria,
            "include_fields": FIELDS,
            "offset": cursor.offset,
            "limit": LIMIT,
            "sort_field": "appl_id",
            "sort_order": if cursor.is_ascending() { "asc" } else { "desc" },
        });
        Ok(Request { body: Some(body.to_string()), ..json::request(ORIGIN, SEARCH_PATH) })
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let (total, records) = read(stream.name, &body)?;
        let (mut numbers, mut outside, mut subprojects) = (Vec::with_capacity(records.len()), 0, 0);
        let mut fields = FieldCounts::default();
        let (mapped, rejects) = records.map(stream.name, EXPECTED, |project: &Project<'_>| {
            let observation = observe(stream, project, today);
            project.count(&mut fields);
            numbers.extend(id_of(project).and_then(|id| id.parse::<u64>().ok()));
            let added = text::date(project.date_added.text());
            outside += usize::from(added.is_some_and(|day| day < cursor.from || day > cursor.to));
            let is_subproject = !project.subproject_id.clean().is_empty();
            subprojects += usize::from(is_subproject);
            observation.map(|observation| (!is_subproject).then_some(observation))
        })?;
        let counts = Counts { read: records.len(), total, numbers, outside, rejected: rejects.len() };
        if subprojects > 0 {
            drift::share(stream.name, "criteria.exclude_subprojects", subprojects, records.len())?;
            warnings.push(format!("{subprojects} of {} records are subprojects, which were not requested; skipped", records.len()));
        }
        let observations = mapped.into_iter().flatten().collect();
        let mut page = Page { observations, rejects, warnings, fields, ..Page::default() };
        page.next = follow(stream.name, &cursor, &counts, &mut page)?.map(json::write_cursor);
        Ok(page)
    }

    fn single(&self, _stream: &Stream, raw: &[u8]) -> Vec<u8> {
        [br#"{"meta":{"total":1},"results":["#, raw, b"]}"].concat()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { full_reads: Some(self), ..Capabilities::default() }
    }
}

impl FullReads for NihReporter {
    fn full_from(&self, _stream: &Stream, today: Date, settings: &Settings) -> Date {
        match settings.backfill_days {
            0 => first_day(today),
            days => today.saturating_sub(i64::from(days).days()),
        }
    }
}

/// What a page says about its position in the window.
struct Counts {
    read: usize,
    total: Option<usize>,
    numbers: Vec<u64>,
    outside: usize,
    rejected: usize,
}

impl Counts {
    /// Whether the ids are in the requested order.
    fn is_ordered(&self, cursor: &Cursor) -> bool {
        self.numbers.windows(2).all(|pair| if cursor.is_ascending() { pair[0] < pair[1] } else { pair[0] > pair[1] })
    }

    /// How many records of the page are new in this window, judged by their order.
    fn fresh(&self, cursor: &Cursor) -> usize {
        let distinct: HashSet<u64> = self.numbers.iter().copied().collect();
        let last = cursor.before.map(|(_, last)| last).filter(|_| self.is_ordered(cursor));
        let is_new = |number: u64| last.is_none_or(|last| if cursor.is_ascending() { number > last } else { number < last });
        distinct.into_iter().filter(|number| is_new(*number)).count() + self.rejected
    }

    /// The first and the last id.
    fn ends(&self) -> Option<(u64, u64)> {
        Some((*self.numbers.first()?, *self.numbers.last()?))
    }
}

/// Determines the cursor after a page. Adds warnings, and what stays incomplete, to the page.
fn follow(stream: &'static str, cursor: &Cursor, counts: &Counts, page: &mut Page) -> Result<Option<Cursor>, UpstreamError> {
    let seen = cursor.seen.saturating_add(counts.fresh(cursor));
    let outside = cursor.outside.saturating_add(counts.outside);
    let read = cursor.offset.saturating_add(counts.read);
    let is_last = counts.read == 0 || counts.total.map_or(counts.read < LIMIT, |total| read >= total);
    // A server that returns the same page for every request would return nothing new for further requests either.
    let is_repeated = counts.ends().is_some() && counts.ends() == cursor.before;
    if counts.total.map_or(!is_last && read >= RECORDS_MAX, |total| total > RECORDS_MAX) && !is_repeated {
        // An ignored criterion shows here first: the result is too large, and no record of it was requested.
        drift::share(stream, "criteria.date_added", counts.outside, counts.read)?;
        if let Some(part) = cursor.part() {
            page.warnings.push(format!("the window {} is too large to page through and is read in parts", cursor.name()));
            return Ok(Some(part));
        }
        if read >= RECORDS_MAX {
            let what = format!("the window {} has more than the {RECORDS_MAX} records that can be reached", cursor.name());
            page.incomplete = Some(Incomplete { what, from: Some(cursor.from) });
            return Ok(cursor.next_window());
        }
    }
    let warnings = &mut page.warnings;
    warnings.extend(drift::outside(stream, "criteria.date_added", outside, read)?);
    if counts.total.zip(cursor.total).is_some_and(|(now, before)| now != before)
        && let Some(again) = cursor.begun_again()
    {
        warnings.push(format!("the window {} changed while it was read, and is read again", cursor.name()));
        return Ok(Some(again));
    }
    if !is_last && !is_repeated {
        let (total, before) = (cursor.total.or(counts.total), counts.ends().or(cursor.before));
        return Ok(Some(Cursor { offset: read, total, before, seen, outside, ..*cursor }));
    }
    if let Some(total) = counts.total.filter(|total| seen < *total) {
        let again = cursor.begun_again().filter(|_| !is_repeated && read > 0 && counts.is_ordered(cursor));
        let then = if again.is_some() { "; it is read again" } else { "" };
        warnings.push(format!("the upstream counts {total} records in the window {} but sent {seen}{then}", cursor.name()));
        if again.is_some() {
            return Ok(again);
        }
        // What is not in this run may be at the upstream all the same, so nothing is withdrawn because of it.
        let what = format!("the upstream counts {total} records in the window {} but sent {seen}", cursor.name());
        page.incomplete = Some(Incomplete { what, from: None });
    }
    Ok(cursor.next_window())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(borrow)]
    meta: Object<Meta<'a>>,
    #[serde(borrow)]
    results: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    project_num: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta<'a> {
    #[serde(borrow)]
    total: Field<'a>,
}

/// Reads the announced total, if there is one, and the records. A single record stands for an answer that contains it.
fn read<'a>(stream: &'static str, body: &'a str) -> Result<(Option<usize>, Records<'a>), UpstreamError> {
    if body.trim_start().starts_with('[') {
        return Ok((None, Records::of_array(stream, body)?));
    }
    let Envelope { meta, results, project_num, message } =
        serde_json::from_str(body).map_err(|error| json::not_json(stream, body, &error))?;
    match results {
        Some(results) => {
            let total = meta.0.and_then(|meta| meta.total.integer()).and_then(|total| usize::try_from(total).ok());
            Ok((total, Records::of_list(results)))
        }
        None if project_num.is_text() => Ok((None, Records::of_one(stream, body)?)),
        None => Err(json::later(stream, format!("an answer without results: {}", text::cut(message.clean(), 200)))),
    }
}

//! `usaspending.totals`: what was obligated to the parents of the crosswalk in the fiscal years of their companies, contracts and vehicles apart.
//!
//! The answer lists the recipients of a parent; their sum is the total. A total is asked for again every month, since corrections come for years, and is
//! the same record then.

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::company_facts::{CompanyFact, GROUPS, TOTAL, VEHICLES};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use texts::crosswalk;

use super::parts::cents;
use super::plan::Group;
use super::search::{LIMIT, post};
use super::{Content, Envelope, TOTALS};
use crate::json::{self, Field};
use crate::{Answer, Observation, Page, Reject, Request, Stream, UpstreamError, text};

/// How many fiscal years that have ended are asked for: sums of three years, compared with those of the years before.
const YEARS: i16 = 6;
/// The most pages of one total. No parent has so many recipients; a server that always has a next page is not followed.
const PAGES_MAX: u32 = 100;
/// Contracts of the Department of Defense are published ninety days late, and reported up to thirty days late.
const SETTLED_DAYS: i64 = 120;

/// The position of a sync run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The last day of the run.
    to: Date,
    /// Whether the companies of the demo are asked about instead of the real ones.
    is_simulated: bool,
    /// The version of the crosswalk by which totals are numbered.
    version: u32,
    /// The number of the total.
    at: usize,
    /// The page of the total to request, from 1.
    page: u32,
    /// The sums over the pages before.
    obligated_cents: i64,
    outlays_cents: Option<i64>,
    recipients: i64,
}

/// One total.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Total {
    uei: &'static str,
    recipient_id: &'static str,
    year: i16,
    first: Date,
    last: Date,
    group: &'static str,
}

impl Total {
    fn key(&self) -> String {
        format!("{TOTALS}/{}/{}/{}", self.uei, self.last, self.group)
    }
}

impl Cursor {
    pub(super) fn new(to: Date, is_simulated: bool) -> Self {
        let version = crosswalk::version();
        Self { to, is_simulated, version, at: 0, page: 1, obligated_cents: 0, outlays_cents: Some(0), recipients: 0 }
    }

    /// All totals of a run: each parent's in each fiscal year of its company that has ended.
    fn totals(&self) -> Vec<Total> {
        let mut all = Vec::new();
        for company in crosswalk::companies(self.is_simulated) {
            let years = (self.to.year() - YEARS..=self.to.year()).filter_map(|year| Some((year, company.fiscal_year(year)?)));
            for (year, (first, last)) in years.filter(|(_, (_, last))| *last < self.to) {
                for parent in &company.parents {
                    let (uei, recipient_id) = (parent.uei.as_str(), parent.recipient_id.as_str());
                    all.extend(GROUPS.map(|group| Total { uei, recipient_id, year, first, last, group }));
                }
            }
        }
        all
    }

    /// The total that is asked for.
    fn total(&self, stream: &'static str) -> Result<Total, UpstreamError> {
        let stop = |reason: &str| UpstreamError::Stop { stream, field: "cursor".to_owned(), reason: reason.to_owned() };
        if self.version != crosswalk::version() {
            return Err(stop("it is of another version of the crosswalk"));
        }
        self.totals().into_iter().nth(self.at).ok_or_else(|| stop("it has no request to make"))
    }

    pub(super) fn request(&self, stream: &Stream) -> Result<Request, UpstreamError> {
        let total = self.total(stream.name)?;
        let group = if total.group == VEHICLES { Group::Idvs } else { Group::Contracts };
        let body = json!({
            "filters": {
                "recipient_id": total.recipient_id,
                "award_type_codes": group.codes(),
                "time_period": [{"start_date": total.first.to_string(), "end_date": total.last.to_string(), "date_type": "action_date"}],
            },
            "spending_level": "transactions",
            "limit": LIMIT,
            "page": self.page,
        });
        Ok(post("/api/v2/search/spending_by_category/recipient/".to_owned(), &body))
    }

    /// The cursor of the next total.
    fn next_total(&self) -> Option<Self> {
        let next = Self { at: self.at + 1, ..Self::new(self.to, self.is_simulated) };
        (next.at < self.totals().len()).then_some(next)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    amount: Field<'a>,
    #[serde(borrow)]
    total_outlays: Field<'a>,
}

pub(super) fn map(stream: &Stream, mut cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let mut page = Page::default();
    let total = cursor.total(stream.name)?;
    if answer.status == 404 {
        return Err(json::later(stream.name, "status 404 for sums: has the path changed?"));
    }
    let body = json::body_text(&answer.body, &mut page.warnings);
    let envelope = Envelope::read(stream, answer.status, &body)?;
    page.warnings.extend(envelope.warnings(stream)?);
    let Content::Rows(rows) = envelope.content(&body) else { return Err(json::later(stream.name, "an answer without results")) };
    let has_next = envelope.paging().has_next;
    if has_next && rows.is_empty() {
        return Err(json::later(stream.name, "a page without recipients that is not the last one"));
    }
    if let Err((reason, raw)) = add(&mut cursor, &rows) {
        // Without one recipient the sum is wrong, so there is none.
        let reference = total.key().split_once('/').map_or_else(String::new, |(_, key)| key.to_owned());
        page.rejects.push(Reject { reference, reason, raw: raw.into_bytes() });
        page.next = cursor.next_total().map(json::write_cursor);
        return Ok(page);
    }
    if has_next {
        if cursor.page >= PAGES_MAX {
            let reason = format!("{} has more than {PAGES_MAX} pages of recipients", total.key());
            return Err(UpstreamError::Stop { stream: stream.name, field: "page_metadata".to_owned(), reason });
        }
        page.next = Some(json::write_cursor(Cursor { page: cursor.page + 1, ..cursor }));
        return Ok(page);
    }
    let fact = CompanyFact {
        stream: stream.name.to_owned(),
        kind: TOTAL.to_owned(),
        fiscal_year: i64::from(total.year),
        start: total.first.to_string(),
        end: total.last.to_string(),
        parent_uei: total.uei.to_owned(),
        group: total.group.to_owned(),
        obligated_cents: Some(cursor.obligated_cents),
        outlays_cents: cursor.outlays_cents,
        recipients: cursor.recipients,
        is_settled: total.last.saturating_add(SETTLED_DAYS.days()) <= today,
        ..CompanyFact::default()
    };
    page.observations.push(Observation::new(total.key(), FactData::CompanyFact(Box::new(fact))));
    page.next = cursor.next_total().map(json::write_cursor);
    Ok(page)
}

/// Adds the recipients of a page to the sums of a cursor.
///
/// # Errors
/// Why one cannot be added, and its bytes.
fn add(cursor: &mut Cursor, rows: &[&RawValue]) -> Result<(), (String, String)> {
    for raw in rows {
        let failed = |reason: String| (reason, text::cut(raw.get().to_owned(), 2_000));
        let row: Row<'_> = serde_json::from_str(raw.get()).map_err(|error| failed(error.to_string()))?;
        let amount = cents(&row.amount).map_err(|reason| failed(format!("amount: {reason}")))?;
        let amount = amount.ok_or_else(|| failed("amount is absent".to_owned()))?;
        let outlays = cents(&row.total_outlays).map_err(|reason| failed(format!("total_outlays: {reason}")))?;
        let too_large = || failed("the sum of amounts is too large".to_owned());
        cursor.obligated_cents = cursor.obligated_cents.checked_add(amount).ok_or_else(too_large)?;
        cursor.outlays_cents = match (cursor.outlays_cents, outlays) {
            (Some(sum), Some(outlays)) => Some(sum.checked_add(outlays).ok_or_else(too_large)?),
            // Payments of one recipient are not known, so neither are those of all.
            _ => None,
        };
        cursor.recipients += 1;
    }
    Ok(())
}

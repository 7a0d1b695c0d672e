//! Live search for awards.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::json;

use super::search::{AWARD_FIELDS, LIMIT, PAGES_MAX, post};
use super::{Content, Envelope, rows};
use crate::live_page::{AwardAgency, LivePage};
use crate::{Answer, Request, Stream, UpstreamError, json};

/// The order of awards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AwardOrder {
    /// Latest action first.
    Newest,
    /// Largest amount first.
    Largest,
    /// Earliest end after a day first.
    EndingAfter(Date),
}

/// Separates id and sort value of a page that is given by the last record before it.
const AFTER: char = '|';

/// Requests one page of contracts with an action within a range of dates. A page is given by its number, or by the last record before it.
pub(crate) fn request(
    naics: &[String],
    recipient: &str,
    agencies: &[AwardAgency],
    (start, end): (Date, Date),
    order: AwardOrder,
    page: &str,
) -> Request {
    let mut filters = json!({
        "award_type_codes": ["A", "B", "C", "D"],
        "time_period": [{"start_date": start.to_string(), "end_date": end.to_string(), "date_type": "action_date"}],
    });
    if !naics.is_empty() {
        filters["naics_codes"] = json!({"require": naics});
    }
    if !recipient.is_empty() {
        filters["recipient_search_text"] = json!([recipient]);
    }
    if !agencies.is_empty() {
        let tier = |agency: &AwardAgency| if agency.is_within_department { "subtier" } else { "toptier" };
        let agency = |agency| json!({"type": "awarding", "tier": tier(agency), "name": agency.name});
        filters["agencies"] = agencies.iter().map(agency).collect();
    }
    let fields: Vec<&str> = AWARD_FIELDS.iter().copied().chain(["End Date"]).collect();
    let (sort, way) = match order {
        AwardOrder::Newest => ("Last Modified Date", "desc"),
        AwardOrder::Largest => ("Award Amount", "desc"),
        AwardOrder::EndingAfter(_) => ("End Date", "asc"),
    };
    let mut body = json!({"filters": filters, "fields": fields, "sort": sort, "order": way, "limit": LIMIT, "page": number(page)});
    if let Some((id, value)) = page.split_once(AFTER) {
        body["last_record_unique_id"] = json!(id.parse::<u64>().unwrap_or(0));
        body["last_record_sort_value"] = json!(value);
    } else if let AwardOrder::EndingAfter(day) = order
        && let Ok(begin) = day.to_zoned(TimeZone::UTC)
    {
        // As if the page before had ended there.
        body["last_record_unique_id"] = json!(0);
        body["last_record_sort_value"] = json!(begin.timestamp().as_millisecond().to_string());
    }
    post("/api/v2/search/spending_by_award/".to_owned(), &body)
}

/// Returns the number of a page; 1 for a page without one.
fn number(page: &str) -> u32 {
    page.parse().unwrap_or(1)
}

/// Reads one page. Its [`LivePage::total`] is unknown.
pub(crate) fn read(stream: &Stream, answer: &Answer, order: AwardOrder, page: &str) -> Result<LivePage, UpstreamError> {
    let body = json::body_text(&answer.body, &mut Vec::new());
    let envelope = Envelope::read(stream, answer.status, &body)?;
    envelope.warnings(stream)?;
    let Content::Rows(list) = envelope.content(&body) else { return Err(json::later(stream.name, "an answer without results")) };
    let paging = envelope.paging();
    let next = match order {
        AwardOrder::EndingAfter(_) => paging.after.map(|(id, value)| format!("{id}{AFTER}{value}")),
        AwardOrder::Newest | AwardOrder::Largest => Some(number(page) + 1).filter(|next| *next <= PAGES_MAX).map(|next| next.to_string()),
    };
    Ok(LivePage { facts: rows::awards(stream, list)?, next: next.filter(|_| paging.has_next), has_more: paging.has_next, total: None })
}

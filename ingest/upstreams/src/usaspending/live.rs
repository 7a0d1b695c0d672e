//! Live search for awards.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemas::facts::FactData;
use serde_json::json;

use super::search::{AWARD_FIELDS, LIMIT, post};
use super::{Content, Envelope, rows};
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

/// Requests one page of contracts with an action within a range of dates.
pub(crate) fn request(naics: &[String], recipient: &str, start: Date, end: Date, order: AwardOrder) -> Request {
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
    let fields: Vec<&str> = AWARD_FIELDS.iter().copied().chain(["End Date"]).collect();
    let (sort, way) = match order {
        AwardOrder::Newest => ("Last Modified Date", "desc"),
        AwardOrder::Largest => ("Award Amount", "desc"),
        AwardOrder::EndingAfter(_) => ("End Date", "asc"),
    };
    let mut body = json!({"filters": filters, "fields": fields, "sort": sort, "order": way, "limit": LIMIT, "page": 1});
    if let AwardOrder::EndingAfter(day) = order
        && let Ok(begin) = day.to_zoned(TimeZone::UTC)
    {
        // As if the page before had ended there.
        body["last_record_unique_id"] = json!(0);
        body["last_record_sort_value"] = json!(begin.timestamp().as_millisecond().to_string());
    }
    post("/api/v2/search/spending_by_award/".to_owned(), &body)
}

pub(crate) fn read(stream: &Stream, answer: &Answer) -> Result<Vec<FactData>, UpstreamError> {
    let body = json::body_text(&answer.body, &mut Vec::new());
    let envelope = Envelope::read(stream, answer.status, &body)?;
    envelope.warnings(stream)?;
    match envelope.content(&body) {
        Content::Rows(list) => rows::awards(stream, list),
        _ => Err(json::later(stream.name, "an answer without results")),
    }
}

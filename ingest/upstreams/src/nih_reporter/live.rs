//! Live search for grants by keyword.

use jiff::civil::Date;
use serde_json::json;

use super::project::{Project, observe};
use super::{FIELDS, ORIGIN, SEARCH_PATH, read as envelope};
use crate::live_page::{LivePage, offset};
use crate::{Answer, Request, Stream, UpstreamError, json};

/// The last offset that can be requested.
const OFFSET_MAX: usize = 14_999;

/// Requests grants whose title, abstract or terms contain all words, latest fiscal year first.
pub(crate) fn request(keyword: &str, limit: usize, page: &str) -> Request {
    let text = json!({"operator": "and", "search_field": "projecttitle,abstracttext,terms", "search_text": keyword});
    let body = json!({
        "criteria": {"advanced_text_search": text, "exclude_subprojects": true},
        "include_fields": FIELDS,
        "offset": offset(page),
        "limit": limit,
        "sort_field": "fiscal_year",
        "sort_order": "desc",
    });
    Request { body: Some(body.to_string()), ..json::request(ORIGIN, SEARCH_PATH) }
}

/// Reads one page. The order within a fiscal year is the upstream's.
pub(crate) fn read(stream: &Stream, answer: &Answer, today: Date, limit: usize, page: &str) -> Result<LivePage, UpstreamError> {
    let body = json::body_text(&answer.body, &mut Vec::new());
    let (total, records) = envelope(stream.name, &body)?;
    let (grants, _) = records.map(stream.name, &[], |project: &Project<'_>| observe(stream, project, today))?;
    let end = offset(page) + limit;
    let has_more = total.is_some_and(|total| end < total);
    let next = (has_more && end <= OFFSET_MAX).then(|| end.to_string());
    let facts = grants.into_iter().map(|grant| grant.data).collect();
    Ok(LivePage { facts, next, has_more, total: total.and_then(|total| u64::try_from(total).ok()) })
}

//! Live search for grants by keyword.

use jiff::civil::Date;
use schemas::facts::FactData;
use serde_json::json;

use super::{FIELDS, ORIGIN, Project, observe, read as envelope};
use crate::cpsc::JSON_MEDIA_TYPES;
use crate::{Answer, Request, Stream, UpstreamError, json};

/// Requests grants whose title, abstract or terms contain all words, latest fiscal year first.
pub(crate) fn request(keyword: &str, limit: usize) -> Request {
    let text = json!({"operator": "and", "search_field": "projecttitle,abstracttext,terms", "search_text": keyword});
    let body = json!({
        "criteria": {"advanced_text_search": text, "exclude_subprojects": true},
        "include_fields": FIELDS,
        "offset": 0,
        "limit": limit,
        "sort_field": "fiscal_year",
        "sort_order": "desc",
    });
    Request {
        origin: ORIGIN.to_owned(),
        path: "/v2/projects/search".to_owned(),
        body: Some(body.to_string()),
        headers: vec![("accept", "application/json".to_owned())],
        media_types: JSON_MEDIA_TYPES,
        ..Request::default()
    }
}

pub(crate) fn read(stream: &Stream, answer: &Answer, today: Date) -> Result<Vec<FactData>, UpstreamError> {
    let body = json::body_text(&answer.body, &mut Vec::new());
    let (_, records) = envelope(stream.name, &body)?;
    let (grants, _) = records.map(stream.name, &[], |project: &Project<'_>| observe(stream, project, today))?;
    Ok(grants.into_iter().map(|grant| grant.data).collect())
}

//! Live search for trials by keyword and sponsor class.

use jiff::civil::Date;
use schemas::facts::FactData;

use super::{FIELDS, FILTER, ORIGIN, Study, observe, read as envelope};
use crate::cpsc::JSON_MEDIA_TYPES;
use crate::json::Records;
use crate::{Answer, Request, Stream, UpstreamError, json};

/// Requests trials that contain all words, latest update first.
pub(crate) fn request(keyword: &str, class: &str, limit: usize) -> Request {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if !keyword.is_empty() {
        // In quotes a word is not an operator of the registry's query language.
        let words = keyword.split_whitespace().map(|word| format!("\"{}\"", word.replace(['"', '\\'], " ").trim()));
        query.append_pair("query.term", &words.collect::<Vec<_>>().join(" AND "));
    }
    if !class.is_empty() {
        query.append_pair(FILTER, &format!("AREA[LeadSponsorClass]{class}"));
    }
    query.append_pair("sort", "LastUpdatePostDate:desc").append_pair("fields", FIELDS).append_pair("pageSize", &limit.to_string());
    Request {
        origin: ORIGIN.to_owned(),
        path: format!("/api/v2/studies?{}", query.finish()),
        headers: vec![("accept", "application/json".to_owned())],
        media_types: JSON_MEDIA_TYPES,
        ..Request::default()
    }
}

pub(crate) fn read(stream: &Stream, answer: &Answer, today: Date) -> Result<Vec<FactData>, UpstreamError> {
    let body = json::body_text(&answer.body, &mut Vec::new());
    let studies = envelope(stream.name, &body)?.studies.ok_or_else(|| json::later(stream.name, "an answer without studies"))?;
    let (trials, _) = Records::of_list(studies).map(stream.name, &[], |study: &Study<'_>| observe(stream, study, today))?;
    Ok(trials.into_iter().map(|trial| trial.data).collect())
}

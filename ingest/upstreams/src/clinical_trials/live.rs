//! Trials by words and class of sponsor, asked now.

use jiff::civil::Date;
use schemas::facts::FactData;

use super::{FIELDS, FILTER, ORIGIN, Study, observe, read as envelope};
use crate::cpsc::JSON_MEDIA_TYPES;
use crate::json::Records;
use crate::{Answer, Door, Request, UpstreamError, json};

/// Trials that have all words, those changed last first.
pub(crate) fn request(keyword: &str, class: &str, limit: usize) -> Request {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if !keyword.is_empty() {
        // In quotes a word is no operator of the registry's language.
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

pub(crate) fn read(door: &Door, answer: &Answer, today: Date) -> Result<Vec<FactData>, UpstreamError> {
    let body = json::body_text(&answer.body, &mut Vec::new());
    let studies = envelope(door.name, &body)?.studies.ok_or_else(|| json::later(door.name, "an answer without studies"))?;
    let (trials, _) = Records::of_list(studies).map(door.name, &[], |study: &Study<'_>| observe(door, study, today))?;
    Ok(trials.into_iter().map(|trial| trial.data).collect())
}

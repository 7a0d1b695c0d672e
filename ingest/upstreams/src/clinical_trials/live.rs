//! Live search for trials by keyword and sponsor class.

use jiff::civil::Date;

use super::{Envelope, FIELDS, FILTER, ORIGIN, Study, observe, read as envelope};
use crate::json::Records;
use crate::live_page::LivePage;
use crate::{Answer, Request, Stream, UpstreamError, json};

/// The longest token of a page that is requested, in bytes.
const TOKEN_BYTES_MAX: usize = 200;

/// Requests trials that contain all words, latest update first.
pub(crate) fn request(keyword: &str, class: &str, limit: usize, page: &str) -> Request {
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
    if page.is_empty() {
        query.append_pair("countTotal", "true");
    } else {
        query.append_pair("pageToken", page);
    }
    json::request(ORIGIN, format!("/api/v2/studies?{}", query.finish()))
}

/// Reads one page. The registry counts all trials on the first page only.
pub(crate) fn read(stream: &Stream, answer: &Answer, today: Date) -> Result<LivePage, UpstreamError> {
    let body = json::body_text(&answer.body, &mut Vec::new());
    let Envelope { studies, next_page_token, total_count, .. } = envelope(stream.name, &body)?;
    let studies = studies.ok_or_else(|| json::later(stream.name, "an answer without studies"))?;
    let (trials, _) = Records::of_list(studies).map(stream.name, &[], |study: &Study<'_>| observe(stream, study, today))?;
    let next = Some(next_page_token.text().to_owned()).filter(|token| !token.is_empty() && token.len() <= TOKEN_BYTES_MAX);
    let total = total_count.integer().and_then(|total| u64::try_from(total).ok());
    let facts = trials.into_iter().map(|trial| trial.data).collect();
    Ok(LivePage { facts, has_more: !next_page_token.text().is_empty(), next, total })
}

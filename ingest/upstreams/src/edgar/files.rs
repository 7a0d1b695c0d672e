//! Requests of files, and what is no file.

use super::streams::{BACK_OFF, ORIGIN};
use crate::{Answer, Request, Settings, Stream, UpstreamError, json};

/// Media types of the archive's files; a missing file is reported as XML.
const FILE_MEDIA_TYPES: &[&str] = &["text/plain", "application/octet-stream", "binary/octet-stream", "application/xml", "text/xml"];

/// Builds the request for a file of the archive.
pub(super) fn file(path: String) -> Request {
    Request {
        origin: ORIGIN.to_owned(),
        path,
        body: None,
        headers: Vec::new(),
        accepts_statuses: &[403, 404],
        media_types: FILE_MEDIA_TYPES,
        conditional: false,
        back_off: Some(&BACK_OFF),
        download: None,
        local_file: None,
    }
}

/// Whether an answer says that the requested file does not exist.
///
/// # Errors
/// When an answer with such a status has other content.
pub(super) fn is_missing(stream: &'static str, answer: &Answer) -> Result<bool, UpstreamError> {
    if answer.status == 200 {
        return Ok(false);
    }
    let body = String::from_utf8_lossy(&answer.body);
    if ["AccessDenied", "NoSuchKey"].iter().any(|code| body.contains(&format!("<Code>{code}</Code>"))) {
        return Ok(true);
    }
    Err(json::later(stream, format!("status {} without the text that means that the file does not exist", answer.status)))
}

/// Whether a text is an HTML page instead of the requested file.
pub(super) fn is_page(text: &str) -> bool {
    let start = text.trim_start();
    ["<!doctype", "<html"].iter().any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

/// EDGAR requires that clients identify themselves.
pub(super) fn declared(stream: &Stream, settings: &Settings) -> Result<(), UpstreamError> {
    if settings.base_url.is_none() && !settings.user_agent.contains('@') {
        let reason = "the upstream requires a company name and an e-mail address in the user agent".to_owned();
        return Err(UpstreamError::Stop { stream: stream.name, field: "user_agent".to_owned(), reason });
    }
    Ok(())
}

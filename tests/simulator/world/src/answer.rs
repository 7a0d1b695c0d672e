//! The answer of a simulated upstream, before faults of the transport.

/// An answer of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The media type, if one is named.
    pub content_type: Option<&'static str>,
    /// The `Link` header.
    pub link: Option<String>,
    /// The `ETag` header.
    pub etag: Option<String>,
    /// The `Last-Modified` header.
    pub last_modified: Option<String>,
    /// The `Location` header.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A JSON text with status 200.
    #[must_use]
    pub fn json(body: Vec<u8>) -> Self {
        Self { status: 200, content_type: Some("application/json; charset=utf-8"), body, ..Self::default() }
    }

    /// A page of HTML that says some words.
    #[must_use]
    pub fn html(status: u16, words: &str) -> Self {
        let body = format!("<!DOCTYPE html>\n<html><head><title>{words}</title></head><body><h1>{words}</h1></body></html>\n").into_bytes();
        Self { status, content_type: Some("text/html; charset=utf-8"), body, ..Self::default() }
    }
}

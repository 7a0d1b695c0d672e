//! Errors as readers see them: RFC 9457 problem documents with a code from the closed table.

use schemas::error_code::ErrorCode;
use serde_json::{Value, json};

use crate::redaction::hide_keys;

/// An error for the caller. What is for us alone is logged where it is handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The code; gives status, title and type.
    pub code: ErrorCode,
    /// What is wrong with this request, in words for the caller.
    pub detail: String,
    /// The parameter or field it is about; empty for none.
    pub parameter: String,
    /// Seconds after which to ask again; 0 for none.
    pub retry_after_s: u64,
    /// Response headers that go with it (`Allow`, the `RateLimit` fields of a refused call): lower-case name, value.
    pub headers: Vec<(&'static str, String)>,
    /// The terms under which the call is answered, where it must be paid for.
    pub challenge: Option<Box<Challenge>>,
}

/// What an unpaid call is answered with beside the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// As version 1 of x402 has it: the body over REST.
    pub v1: Value,
    /// As version 2 has it: a header over REST, the result over MCP.
    pub v2: Value,
    /// What of the answer is free; null where the arguments give none.
    pub preview: Value,
}

impl Challenge {
    /// A body: the terms of a version, what is free, and the fields of the problem document, which no client of x402 looks at.
    #[must_use]
    pub fn body(&self, terms: &Value, document: &Value) -> Value {
        let mut body = terms.clone();
        if let (Some(fields), Some(document)) = (body.as_object_mut(), document.as_object()) {
            fields.insert("preview".to_owned(), self.preview.clone());
            fields.extend(document.clone());
        }
        body
    }
}

impl Problem {
    /// A problem without a parameter.
    #[must_use]
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self { code, detail: hide_keys(detail.into()), parameter: String::new(), retry_after_s: 0, headers: Vec::new(), challenge: None }
    }

    /// A problem of one parameter.
    #[must_use]
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { parameter: hide_keys(name.into()), ..Self::new(ErrorCode::ParameterInvalid, detail) }
    }

    /// The same with a pause.
    #[must_use]
    pub fn retry_after(self, retry_after_s: u64) -> Self {
        Self { retry_after_s, ..self }
    }
    /// The same with a response header; the name in lower case. An empty value adds none.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.headers.push((name, value));
        }
        self
    }

    /// The same about one parameter.
    #[must_use]
    pub fn about(self, parameter: impl Into<String>) -> Self {
        Self { parameter: hide_keys(parameter.into()), ..self }
    }

    /// The problem document; `base_url` is that of the service, empty for a `type` relative to this host.
    #[must_use]
    pub fn document(&self, base_url: &str) -> Value {
        let mut document = json!({
            "type": format!("{base_url}/docs/errors#{}", self.code.as_str()),
            "title": self.code.title().trim(),
            "status": self.code.status(),
            "detail": self.detail,
            "code": self.code.as_str(),
        });
        if let Some(fields) = document.as_object_mut() {
            if !self.parameter.is_empty() {
                fields.insert("parameter".to_owned(), self.parameter.as_str().into());
            }
            if self.retry_after_s > 0 {
                fields.insert("retryAfter".to_owned(), self.retry_after_s.into());
            }
        }
        document
    }
}

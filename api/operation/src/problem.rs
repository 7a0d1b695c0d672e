//! Errors of the API: RFC 9457 problem documents with a code from the closed table.

use schemas::error_code::ErrorCode;
use serde_json::{Value, json};

use crate::redaction::hide_keys;

/// An error for the caller. Details for operators are logged where the error happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The code. It determines status, title and type.
    pub code: ErrorCode,
    /// What is wrong with this request, for the caller.
    pub detail: String,
    /// The parameter that is wrong, or the path of a field within JSON (`filter.state`, `aircraft.0.tail`); empty if there is none.
    pub parameter: String,
    /// Seconds to wait before a retry; 0 if unknown.
    pub retry_after_s: u64,
    /// Response headers of the problem (`Allow`, the `RateLimit` fields of a refused call): lower-case name, value.
    pub headers: Vec<(&'static str, String)>,
    /// The payment terms, if the call must be paid for.
    pub challenge: Option<Box<Challenge>>,
}

/// The payment terms for an unpaid call, sent in addition to the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// In the format of x402 version 1: the body over REST.
    pub v1: Value,
    /// In the format of x402 version 2: a header over REST, the result over MCP.
    pub v2: Value,
    /// A free preview of the answer; null if there is none.
    pub preview: Value,
    /// Why there is no preview; empty if there is one, and in the refusal of a payment.
    pub preview_note: String,
}

impl Challenge {
    /// A body: the terms in one version, the preview or why there is none, and the fields of the problem document, which x402 clients ignore.
    #[must_use]
    pub fn body(&self, terms: &Value, document: &Value) -> Value {
        let mut body = terms.clone();
        if let (Some(fields), Some(document)) = (body.as_object_mut(), document.as_object()) {
            fields.insert("preview".to_owned(), self.preview.clone());
            if !self.preview_note.is_empty() {
                fields.insert("previewNote".to_owned(), self.preview_note.as_str().into());
            }
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

    /// A problem with one parameter.
    #[must_use]
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { parameter: hide_keys(name.into()), ..Self::new(ErrorCode::ParameterInvalid, detail) }
    }

    /// Sets the pause before a retry.
    #[must_use]
    pub fn retry_after(self, retry_after_s: u64) -> Self {
        Self { retry_after_s, ..self }
    }
    /// Adds a response header, with its name in lower case. An empty value is not added.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.headers.push((name, value));
        }
        self
    }

    /// Sets the parameter.
    #[must_use]
    pub fn about(self, parameter: impl Into<String>) -> Self {
        Self { parameter: hide_keys(parameter.into()), ..self }
    }

    /// The problem of a parameter as one of the field of that name within `outer`. A problem without a parameter stays as it is.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        if self.parameter.is_empty() {
            return self;
        }
        let path = format!("{outer}.{}", self.parameter);
        let detail = self.detail_about(&path).unwrap_or_else(|| format!("{path}: {}", self.detail));
        Self { detail, parameter: path, ..self }
    }

    /// The problem of the parameter `own`, or of a field within it, as one of the parameter `name`. A problem of another parameter stays as it is.
    #[must_use]
    pub fn renamed(self, own: &str, name: &str) -> Self {
        let fields = self.parameter.strip_prefix(own).filter(|fields| fields.is_empty() || fields.starts_with('.'));
        let Some(path) = fields.map(|fields| format!("{name}{fields}")) else { return self };
        let detail = self.detail_about(&path).unwrap_or_else(|| self.detail.clone());
        Self { detail, parameter: path, ..self }
    }

    /// The detail with `path` in place of the parameter, with which most details begin; `None` if this one does not.
    fn detail_about(&self, path: &str) -> Option<String> {
        let rest = self.detail.strip_prefix(&self.parameter)?;
        rest.starts_with([':', '.', ' ']).then(|| format!("{path}{rest}"))
    }

    /// The problem document. `base_url` is that of the service or of the listener, so that `type` is absolute.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a problem of a field within another one names the path once, in its detail too, and that one without a field stays as it is.
    #[test]
    fn paths() {
        for (detail, shown) in [
            ("state: \"ZZ\" is not one of CA, TX", "filter.state: \"ZZ\" is not one of CA, TX"),
            ("state is empty", "filter.state is empty"),
            ("states: too many", "filter.state: states: too many"),
            ("\"ZZ\" is no state", "filter.state: \"ZZ\" is no state"),
        ] {
            let problem = Problem::parameter("state", detail).within("filter");
            assert_eq!((problem.parameter.as_str(), problem.detail.as_str()), ("filter.state", shown));
        }
        let other = Problem::new(ErrorCode::Unavailable, "the store cannot be read");
        assert_eq!(other.clone().within("filter"), other);
    }

    /// Proves that a parameter that a surface calls otherwise has that name in its problems, in the paths of its fields and where details begin with it, and
    /// that other problems stay as they are.
    #[test]
    fn other_names() {
        for (parameter, detail, renamed, shown) in [
            ("name", "name: is too short", "drug", "drug: is too short"),
            ("name", "\"a\" is too short", "drug", "\"a\" is too short"),
            ("name.0.tail", "name.0.tail is empty", "drug.0.tail", "drug.0.tail is empty"),
            ("names", "names: is too short", "names", "names: is too short"),
            ("entity.name", "entity.name: is too short", "entity.name", "entity.name: is too short"),
        ] {
            let problem = Problem::parameter(parameter, detail).renamed("name", "drug");
            assert_eq!((problem.parameter.as_str(), problem.detail.as_str()), (renamed, shown));
        }
        let other = Problem::new(ErrorCode::Unavailable, "name: the store cannot be read");
        assert_eq!(other.clone().renamed("name", "drug"), other);
    }
}

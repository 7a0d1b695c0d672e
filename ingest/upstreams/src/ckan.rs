//! Open data on CKAN, by its action API: requests of a data store, and what an answer can be. Upstreams map the records themselves.
//!
//! What they must know: `_id` is the number of a row in one load of the data and is never an identity; a server lowers a limit without saying so; a
//! column can change from number to text between two loads.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use form_urlencoded::byte_serialize;

use crate::{Request, UpstreamError, json, text};

/// The most rows of a page that servers are known to send.
pub const PAGE_ROWS_MAX: usize = 32_000;

/// A query of a data store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query<'a> {
    /// The id of the resource.
    pub resource: &'a str,
    /// Columns with the values of which a record has one.
    pub filters: &'a [(&'a str, &'a [&'a str])],
    /// The columns to return; all if empty.
    pub fields: &'a [&'a str],
    /// The columns by which records are ordered, so that pages do not overlap (`_id asc`).
    pub sort: &'a str,
    /// How many records to ask for.
    pub limit: usize,
    /// How many records to skip.
    pub offset: usize,
}

impl Query<'_> {
    /// Builds the request.
    #[must_use]
    pub fn request(&self, origin: &str) -> Request {
        let mut parameters = vec![
            ("resource_id", self.resource.to_owned()),
            ("limit", self.limit.to_string()),
            ("offset", self.offset.to_string()),
            ("sort", self.sort.to_owned()),
        ];
        if !self.filters.is_empty() {
            let filters: serde_json::Map<String, Value> =
                self.filters.iter().map(|(column, values)| ((*column).to_owned(), Value::from(values.to_vec()))).collect();
            parameters.push(("filters", Value::Object(filters).to_string()));
        }
        if !self.fields.is_empty() {
            parameters.push(("fields", self.fields.join(",")));
        }
        action(origin, "datastore_search", &parameters)
    }
}

/// Builds the request for when a resource was changed last.
#[must_use]
pub fn resource_request(origin: &str, resource: &str) -> Request {
    action(origin, "resource_show", &[("id", resource.to_owned())])
}

fn action(origin: &str, action: &str, parameters: &[(&str, String)]) -> Request {
    let query: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={}", byte_serialize(value.as_bytes()).collect::<String>())).collect();
    // The bodies of these statuses say what is wrong.
    Request { accepts_statuses: &[400, 404, 409], ..json::request(origin, format!("/api/3/action/{action}?{}", query.join("&"))) }
}

/// The records of one answer.
#[derive(Debug)]
pub struct Records<'a> {
    /// The records.
    pub raw: Vec<&'a RawValue>,
    /// How many records the query has; `None` if the server only estimated it.
    pub total: Option<usize>,
}

impl Records<'_> {
    /// Returns how many records the next request skips; `None` after the last page. A server may send fewer records than were asked for although there
    /// are more, so only the total or a page without records ends the reading.
    #[must_use]
    pub fn next_offset(&self, offset: usize) -> Option<usize> {
        let next = offset.saturating_add(self.raw.len());
        (!self.raw.is_empty() && self.total.is_none_or(|total| next < total)).then_some(next)
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Envelope<T> {
    success: bool,
    #[serde(default = "Option::default")]
    result: Option<T>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Resource {
    last_modified: String,
}

#[derive(Deserialize)]
struct SearchResult<'a> {
    #[serde(borrow)]
    records: Vec<&'a RawValue>,
    #[serde(default)]
    total: Option<usize>,
    #[serde(default)]
    total_was_estimated: bool,
}

/// Reads the text of an answer.
///
/// # Errors
/// [`UpstreamError::Stop`] if the server refuses the query: the resource is gone, or has not the columns. [`UpstreamError::Later`] for every other answer
/// without records: it says nothing about them, so it must not be read as none.
pub fn records<'a>(stream: &'static str, body: &'a str) -> Result<Records<'a>, UpstreamError> {
    let found: SearchResult<'a> = result(stream, body)?;
    Ok(Records { raw: found.records, total: found.total.filter(|_| !found.total_was_estimated) })
}

/// Reads when a resource was changed last, as the server writes it. It is not empty: a reader would ask for it again and again.
///
/// # Errors
/// As [`records`].
pub fn last_modified(stream: &'static str, body: &str) -> Result<String, UpstreamError> {
    let shown: Resource = result(stream, body)?;
    if shown.last_modified.trim().is_empty() {
        return Err(json::later(stream, "last_modified is empty"));
    }
    Ok(shown.last_modified)
}

/// The result of an answer with success.
fn result<'a, T: Deserialize<'a>>(stream: &'static str, body: &'a str) -> Result<T, UpstreamError> {
    let envelope: Envelope<T> = serde_json::from_str(body).map_err(|error| json::not_json(stream, body, &error))?;
    if let Some(result) = envelope.result.filter(|_| envelope.success) {
        return Ok(result);
    }
    let reason = text::cut(format!("the server refuses the query: {}", envelope.error), 300);
    let kind = envelope.error.get("__type").and_then(Value::as_str).unwrap_or_default();
    if !envelope.success && matches!(kind, "Not Found Error" | "Validation Error") {
        return Err(UpstreamError::Stop { stream, field: "resource_id".to_owned(), reason });
    }
    Err(json::later(stream, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the path of a request, with filters as JSON.
    #[test]
    fn requests() {
        let query = Query {
            resource: "65855e14-549e",
            filters: &[("PARID", &["0028F00194000000", "x&y"])],
            fields: &[],
            sort: "_id asc",
            limit: 100,
            offset: 200,
        };
        assert_eq!(
            query.request("https://data.example.org").path,
            "/api/3/action/datastore_search?resource_id=65855e14-549e&limit=100&offset=200&sort=_id+asc&filters=%7B%22PARID%22%3A%5B%220028F00194000000%22%2C%22x%26y%22%5D%7D"
        );
        assert!(!Query { filters: &[], ..query.clone() }.request("https://data.example.org").path.contains("filters"));
        let some = Query { filters: &[], fields: &["PARID", "CLASS"], ..query };
        assert!(some.request("https://data.example.org").path.ends_with("&sort=_id+asc&fields=PARID%2CCLASS"));
        assert_eq!(resource_request("https://data.example.org", "65855e14").path, "/api/3/action/resource_show?id=65855e14");
    }

    /// Proves that an answer without success is an error, and which errors a person must look at.
    #[test]
    fn answers() {
        let kind = |body: &str| match records("s", body) {
            Ok(found) => format!("{} of {:?}", found.raw.len(), found.total),
            Err(UpstreamError::Later { .. }) => "later".to_owned(),
            Err(UpstreamError::Stop { field, .. }) => format!("stop {field}"),
        };
        for (body, expected) in [
            (r#"{"success":true,"result":{"records":[{"_id":1},{"_id":2}],"total":2,"limit":100}}"#, "2 of Some(2)"),
            (r#"{"success":true,"result":{"records":[],"total":0}}"#, "0 of Some(0)"),
            (r#"{"success":true,"result":{"records":[{}],"total":10000,"total_was_estimated":true}}"#, "1 of None"),
            (r#"{"success":false,"error":{"__type":"Not Found Error","message":"x"}}"#, "stop resource_id"),
            (r#"{"success":false,"error":{"__type":"Validation Error"}}"#, "stop resource_id"),
            (r#"{"success":false,"error":{"__type":"Search Error"}}"#, "later"),
            (r#"{"success":true}"#, "later"),
            (r#"{"success":true,"result":{}}"#, "later"),
            (r#"{"success":false,"result":{"records":[{}]}}"#, "later"),
            ("<html>", "later"),
            ("", "later"),
            ("[]", "later"),
        ] {
            assert_eq!(kind(body), expected, "{body}");
        }
    }

    /// Proves that the time of the last change is read, and that a resource without one says nothing.
    #[test]
    fn changes_of_resources() {
        let read = |body: &str| last_modified("s", body).map_err(|error| matches!(error, UpstreamError::Stop { .. }));
        assert_eq!(read(r#"{"success":true,"result":{"id":"x","last_modified":"2026-11-02T04:11:00"}}"#).unwrap(), "2026-11-02T04:11:00");
        for nothing in ["null", r#""""#, r#"" ""#] {
            let body = format!(r#"{{"success":true,"result":{{"id":"x","last_modified":{nothing}}}}}"#);
            assert_eq!(read(&body), Err(false), "{nothing}");
        }
        assert_eq!(read(r#"{"success":false,"error":{"__type":"Not Found Error"}}"#), Err(true));
    }

    /// Proves that reading ends at the total, or at a page without records if there is no total, also where a server lowers the limit.
    #[test]
    fn paging_ends() {
        let page = |count: usize, total: Option<usize>| {
            let body = format!(
                r#"{{"success":true,"result":{{"records":[{}],"total":{}}}}}"#,
                vec!["{}"; count].join(","),
                total.map_or("null".to_owned(), |total| total.to_string())
            );
            move |offset: usize| records("s", &body).unwrap().next_offset(offset)
        };
        assert_eq!(page(100, Some(250))(0), Some(100));
        assert_eq!(page(100, Some(250))(100), Some(200));
        assert_eq!(page(50, Some(250))(200), None);
        assert_eq!(page(0, Some(250))(200), None);
        assert_eq!((page(100, None)(0), page(0, None)(100)), (Some(100), None));
    }
}

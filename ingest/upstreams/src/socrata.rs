//! Open data on Socrata, by version 2 of its API (SODA 2): requests, paging by keys, and what an answer can be. Upstreams map the rows themselves.
//!
//! What they must know: numbers are sent as texts, a field without value is left out, and a page with as many rows as were asked for says that there
//! are more, never that these are all. `:updated_at` is new for every row when a publisher replaces a dataset, so it is no identity and no sign of a
//! change.

use std::borrow::Cow;

use form_urlencoded::byte_serialize;
use serde::Deserialize;

use crate::{Answer, Request, Settings, UpstreamError, json, text};

/// The most rows of a page.
pub const PAGE_ROWS_MAX: usize = 50_000;
/// The end of the code of the error that a column is not in the dataset: `query.soql.no-such-column`.
const NO_SUCH_COLUMN: &str = ".no-such-column";
/// The most characters of a value after which the next page begins.
const KEY_CHARS_MAX: usize = 200;

/// Builds the request of a dataset (`az4n-8mr2`) with parameters such as `$where`. A token is sent only if one is set, since a blank one is refused.
#[must_use]
pub fn request(origin: &str, dataset: &str, parameters: &[(&str, &str)], settings: &Settings) -> Request {
    let query: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let mut request = json::request(origin, format!("/resource/{dataset}.json?{}", query.join("&")));
    if let Some(token) = settings.api_key.as_ref().filter(|token| !token.trim().is_empty()) {
        request.headers.push(("x-app-token", token.clone()));
    }
    // The server is still working on the answer.
    request.accepts_statuses = &[202];
    request
}

/// Percent-encodes the value of a parameter; a blank is `%20`.
fn encoded(value: &str) -> String {
    byte_serialize(value.as_bytes()).collect::<String>().replace('+', "%20")
}

/// Returns the text of an answer with rows.
///
/// # Errors
/// [`UpstreamError::Later`] for an answer that is no array: it says nothing about rows, so it must not be read as none.
pub fn rows<'a>(stream: &'static str, answer: &'a Answer, warnings: &mut Vec<String>) -> Result<Cow<'a, str>, UpstreamError> {
    if answer.status == 202 {
        return Err(json::later(stream, "the server is still working on the answer (status 202)"));
    }
    let body = json::body_text(&answer.body, warnings);
    match body.trim_start().starts_with('{') {
        true => Err(json::later(stream, "the response is an object, not a list of rows")),
        false => Ok(body),
    }
}

/// Lets a request pass on the answer that refuses it (status 400), so that [`rows_or_reason`] can say why.
#[must_use]
pub fn reasoned(request: Request) -> Request {
    Request { accepts_statuses: &[202, 400], ..request }
}

/// What Socrata says about a request that it refuses.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Refusal {
    #[serde(rename = "errorCode")]
    error_code: String,
    /// The error code under the name that some servers use.
    code: String,
    message: String,
    data: RefusalData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RefusalData {
    column: String,
}

/// Returns the text of an answer with rows, to a request that [`reasoned`] was applied to.
///
/// # Errors
/// [`UpstreamError::Stop`] with the column if the request was refused because the dataset does not have it; [`UpstreamError::Later`] if it was refused for
/// another reason, which may be gone later; otherwise as [`rows`].
pub fn rows_or_reason<'a>(stream: &'static str, answer: &'a Answer, warnings: &mut Vec<String>) -> Result<Cow<'a, str>, UpstreamError> {
    if answer.status != 400 {
        return rows(stream, answer, warnings);
    }
    let refusal: Refusal = serde_json::from_slice(&answer.body).unwrap_or_default();
    let reason = format!("refused by the upstream (status 400): {}", text::cut(text::clean(&refusal.message), KEY_CHARS_MAX));
    let is_column_gone = [&refusal.error_code, &refusal.code].into_iter().any(|code| code.ends_with(NO_SUCH_COLUMN));
    if !is_column_gone {
        return Err(json::later(stream, reason));
    }
    let field = if refusal.data.column.is_empty() { "$select".to_owned() } else { text::cut(refusal.data.column, KEY_CHARS_MAX) };
    Err(UpstreamError::Stop { stream, field, reason })
}

/// Returns a text as SoQL spells it: in single quotes, which are doubled within it.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A column by which rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// The name of the column.
    pub name: &'static str,
    /// Whether its type is a number. A number is compared without quotes; a text is refused without them.
    pub is_number: bool,
}

/// The order of rows by which a dataset is paged: after the last row of a page, not by an offset, which is slow when it is large and skips rows when
/// some are removed. The columns together are unique.
#[derive(Clone, Copy, Debug)]
pub struct Keyset {
    /// The stream, for errors.
    pub stream: &'static str,
    /// The columns, the most significant first.
    pub columns: &'static [KeyColumn],
}

impl Keyset {
    /// Returns the parameter `$order`.
    #[must_use]
    pub fn order(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(",")
    }

    /// Returns the condition of the rows after a row, of which the values of the columns are given; `None` for no values, which is the first page.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`] for values that are not those of the columns.
    pub fn after(&self, values: &[String]) -> Result<Option<String>, UpstreamError> {
        if values.is_empty() {
            return Ok(None);
        }
        let literals = self.literals(values)?;
        let pairs: Vec<(&str, String)> = self.columns.iter().map(|column| column.name).zip(literals).collect();
        let mut alternatives = Vec::new();
        for (at, (column, value)) in pairs.iter().enumerate() {
            let equal = pairs.iter().take(at).map(|(column, value)| format!("{column} = {value} AND "));
            alternatives.push(format!("({}{column} > {value})", equal.collect::<String>()));
        }
        Ok(Some(format!("({})", alternatives.join(" OR "))))
    }

    /// Returns the values of the columns as SoQL spells them.
    fn literals(&self, values: &[String]) -> Result<Vec<String>, UpstreamError> {
        if values.len() != self.columns.len() {
            return Err(self.stop("cursor", format!("{} values for {} columns", values.len(), self.columns.len())));
        }
        let literal = |(column, value): (&KeyColumn, &String)| {
            let is_number = value.parse::<f64>().is_ok_and(f64::is_finite);
            if value.is_empty() || value.chars().nth(KEY_CHARS_MAX).is_some() || (column.is_number && !is_number) {
                return Err(self.stop(column.name, "no value to continue after".to_owned()));
            }
            Ok(if column.is_number { value.clone() } else { quoted(value) })
        };
        self.columns.iter().zip(values).map(literal).collect()
    }

    /// Returns the values after which the next page begins; `None` after the last page. `keys` are the values of the columns of each row of the page,
    /// `after` those of the row before it, and `limit` is how many rows were asked for.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`] if the page has the row again after which it should begin, so that paging would not end, or if the last row has no
    /// values.
    pub fn next(&self, keys: &[Vec<String>], after: &[String], limit: usize) -> Result<Option<Vec<String>>, UpstreamError> {
        if !after.is_empty() && keys.iter().any(|key| key == after) {
            return Err(self.stop("$where", format!("ignored by the upstream: the page has the row {} again", after.join(", "))));
        }
        match keys.last() {
            Some(last) if keys.len() >= limit => self.literals(last).map(|_| Some(last.clone())),
            _ => Ok(None),
        }
    }

    fn stop(&self, field: &str, reason: String) -> UpstreamError {
        UpstreamError::Stop { stream: self.stream, field: field.to_owned(), reason }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const KEYSET: Keyset = Keyset {
        stream: "s",
        columns: &[KeyColumn { name: "add_date", is_number: false }, KeyColumn { name: "dot_number", is_number: true }],
    };

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    /// Proves the path of a request, and that a blank token is not sent.
    #[test]
    fn requests() {
        let parameters = [("$where", "add_date >= '20261101' AND name = 'O''Neill & Söhne'"), ("$limit", "1000")];
        let with = |token: Option<&str>| {
            let settings = Settings { api_key: token.map(str::to_owned), ..Settings::default() };
            request("https://data.example.gov", "az4n-8mr2", &parameters, &settings)
        };
        let path = "/resource/az4n-8mr2.json?$where=add_date%20%3E%3D%20%2720261101%27%20AND%20name%20%3D%20%27O%27%27Neill%20%26%20S%C3%B6hne%27&$limit=1000";
        assert_eq!(with(None).path, path);
        for none in [None, Some(""), Some("  ")] {
            assert!(with(none).headers.iter().all(|(name, _)| *name != "x-app-token"), "{none:?}");
        }
        assert!(with(Some("t")).headers.contains(&("x-app-token", "t".to_owned())));
    }

    /// Proves that only an array is rows: an object, a page, an empty body and a 202 are errors that may be gone later, not an empty answer.
    #[test]
    fn answers() {
        let read = |status, body: &'static str| {
            let answer = Answer { status, body: Bytes::from_static(body.as_bytes()), ..Answer::default() };
            rows("s", &answer, &mut Vec::new()).map(|text| json::Records::of_array("s", &text).map(|records| records.len()))
        };
        assert_eq!(read(200, "[]").unwrap().unwrap(), 0);
        assert_eq!(read(200, " [{\"a\":\"1\"}]").unwrap().unwrap(), 1);
        for (status, body) in [(202, "[]"), (200, "{\"error\":true}")] {
            assert!(matches!(read(status, body), Err(UpstreamError::Later { .. })), "{status} {body}");
        }
        for body in ["", "<html>", "null", "\"text\""] {
            assert!(matches!(read(200, body), Ok(Err(UpstreamError::Later { .. }))), "{body}");
        }
    }

    /// Proves that a request that is refused because of a column stops the stream with the name of the column, and that a request that is refused for any
    /// other reason fails with the reason and can be sent again.
    #[test]
    fn refusals_name_the_column() {
        let read = |status, body: &'static str| {
            let answer = Answer { status, body: Bytes::from_static(body.as_bytes()), ..Answer::default() };
            rows_or_reason("s", &answer, &mut Vec::new()).map(|_| ())
        };
        for gone in [
            r#"{"message":"No such column: classdef","errorCode":"query.soql.no-such-column","data":{"column":"classdef"}}"#,
            r#"{"message":"No such column: classdef","code":"query.soql.no-such-column","error":true,"data":{"column":"classdef","position":{}}}"#,
        ] {
            let error = read(400, gone).unwrap_err();
            assert_eq!(error.to_string(), "s: field classdef: refused by the upstream (status 400): No such column: classdef");
        }
        let unnamed = read(400, r#"{"errorCode":"query.soql.no-such-column"}"#);
        assert!(matches!(unnamed, Err(UpstreamError::Stop { field, .. }) if field == "$select"));
        for (other, reason) in [
            (r#"{"message":"Could not parse SoQL query","errorCode":"query.compiler.malformed","data":{"column":""}}"#, "Could not parse"),
            (
                r#"{"message":"Type mismatch for op$=","errorCode":"query.soql.type-mismatch","data":{"column":"classdef"}}"#,
                "Type mismatch",
            ),
            (r#"{"message":"Query timed out","code":"query.execution.queryTimeout"}"#, "Query timed out"),
            ("<html>", "status 400"),
            ("", "status 400"),
        ] {
            assert!(matches!(read(400, other), Err(UpstreamError::Later { reason: given, .. }) if given.contains(reason)), "{other}");
        }
        assert!(read(200, "[]").is_ok() && read(202, "[]").is_err());
        assert_eq!(reasoned(Request::default()).accepts_statuses, [202, 400]);
    }

    /// Proves the condition of the next page: later in the first column, or equal there and later in the next; numbers without quotes, texts in quotes.
    #[test]
    fn pages_continue_after_a_row() {
        assert_eq!(KEYSET.order(), "add_date,dot_number");
        assert_eq!(KEYSET.after(&[]).unwrap(), None);
        let after = KEYSET.after(&texts(&["20261118", "4312345"])).unwrap();
        assert_eq!(after.as_deref(), Some("((add_date > '20261118') OR (add_date = '20261118' AND dot_number > 4312345))"));
        let name = Keyset { stream: "s", columns: &[KeyColumn { name: "name", is_number: false }] };
        assert_eq!(name.after(&texts(&["O'Neill' OR 1=1 --"])).unwrap().as_deref(), Some("((name > 'O''Neill'' OR 1=1 --'))"));
        for bad in [&["20261118"][..], &["20261118", ""], &["", "1"], &["20261118", "1 OR 1=1"], &["20261118", "inf"], &["1", "2", "3"]] {
            assert!(matches!(KEYSET.after(&texts(bad)), Err(UpstreamError::Stop { .. })), "{bad:?}");
        }
    }

    /// Proves when paging ends: at a page with fewer rows than were asked for. A page of exactly as many has a next one, which may be empty. A page with the
    /// row again after which it begins stops the stream.
    #[test]
    fn paging_ends() {
        let keys = |numbers: std::ops::Range<u32>| numbers.map(|number| texts(&["20261118", &number.to_string()])).collect::<Vec<_>>();
        assert_eq!(KEYSET.next(&keys(0..1_000), &[], 1_000).unwrap(), Some(texts(&["20261118", "999"])));
        assert_eq!(KEYSET.next(&keys(0..999), &[], 1_000).unwrap(), None);
        assert_eq!(KEYSET.next(&[], &texts(&["20261118", "999"]), 1_000).unwrap(), None);
        let error = KEYSET.next(&keys(0..1_000), &texts(&["20261118", "5"]), 1_000).unwrap_err();
        assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "$where"));
        let without = vec![texts(&["20261118", ""])];
        assert!(matches!(KEYSET.next(&without, &[], 1), Err(UpstreamError::Stop { field, .. }) if field == "dot_number"));
    }

    /// Proves that following the pages of a table reads each row once, whatever the size of a page.
    #[test]
    fn each_row_is_read_once() {
        let table: Vec<(u32, u32)> = (0..25).map(|at| (at / 7, at)).collect();
        for limit in [1, 3, 5, 25, 26] {
            let (mut after, mut read): (Vec<String>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
            loop {
                let last: Option<(u32, u32)> = (!after.is_empty()).then(|| (after[0].parse().unwrap(), after[1].parse().unwrap()));
                let page: Vec<(u32, u32)> = table.iter().filter(|row| last.is_none_or(|last| **row > last)).take(limit).copied().collect();
                read.extend(&page);
                let keys: Vec<Vec<String>> = page.iter().map(|(day, number)| vec![day.to_string(), number.to_string()]).collect();
                match KEYSET.next(&keys, &after, limit).unwrap() {
                    Some(next) => after = next,
                    None => break,
                }
            }
            assert_eq!(read, table, "{limit} rows a page");
        }
    }
}

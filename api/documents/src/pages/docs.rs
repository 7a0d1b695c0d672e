//! The page of all errors.

use maud::html;
use pages::{Page, inline, layout};
use schemas::error_code::ErrorCode;

/// `{prefix}/docs/errors`: the closed table of error codes, each with its own anchor.
#[must_use]
pub fn errors(site_url: &str) -> String {
    let main = html! {
        h1 { "Errors" }
        p {
            "Every error is a problem document (RFC 9457, " code { "application/problem+json" } ") whose " code { "code" } " is one of these. "
            code { "detail" } " says what is wrong with the request, " code { "parameter" } " names the parameter, or the path of a field within JSON."
        }
        p.soft { a href="/docs/errors.md" { "This page as Markdown" } }
        @for error in ErrorCode::ALL {
            section id=(error.as_str()) {
                h2 { code { (error.as_str()) } }
                p { (inline(error.title().trim())) }
                p { "What to do: " (inline(error.advice())) }
                p.soft {
                    "HTTP status " (error.status()) ". "
                    @if error.may_retry() {
                        "The same request may succeed later; wait for " code { "Retry-After" } " if it is given."
                    } @else {
                        "The same request will fail again."
                    }
                }
            }
        }
    };
    let description = "What each error code of the API means, and what to do.".to_owned();
    layout(&Page { title: "Errors".to_owned(), description, site_url, canonical: "/docs/errors".to_owned(), main, ..Page::default() })
}

/// `/docs/errors.md`: the same as Markdown.
#[must_use]
pub fn errors_as_markdown() -> String {
    let one = |error: &ErrorCode| {
        let retry = if error.may_retry() { "The same request may succeed later." } else { "The same request will fail again." };
        let (code, title, advice) = (error.as_str(), error.title().trim(), error.advice());
        format!("\n## {code}\n\n{title}\n\nWhat to do: {advice}\n\nHTTP status {}. {retry}\n", error.status())
    };
    let intro = "Every error is a problem document (RFC 9457) whose `code` is one of these. `detail` says what is wrong, `parameter` names the parameter, or \
                 the path of a field within JSON.";
    format!("# Errors\n\n{intro}\n{}", ErrorCode::ALL.iter().map(one).collect::<String>())
}

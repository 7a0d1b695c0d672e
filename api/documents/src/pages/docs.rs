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
            code { "detail" } " says what is wrong with the request, " code { "parameter" } " names the parameter."
        }
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

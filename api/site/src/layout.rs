//! What pages of every kind have: what they say about a problem and about the limits of an answer, and commands to copy.

use maud::{Markup, html};
use operation::problem::Problem;
use pages::{Page, inline};
use schemas::error_code::ErrorCode;

use crate::paths::{GUIDES, STATUS};

/// The guide that says how keys are got and used.
const API_KEYS: &str = "/guides/api-keys";

/// The page of a request that was refused.
pub(crate) fn problem(problem: &Problem) -> Page<'static> {
    let title = match problem.code {
        ErrorCode::NotFound => "Nothing here",
        ErrorCode::TierTooLow => "This needs a key",
        ErrorCode::KeyInvalid => "The key is not valid",
        ErrorCode::PaymentRequired => "This is paid for by the call",
        ErrorCode::MethodNotAllowed => "This address cannot do that",
        ErrorCode::RateLimited => "Too many requests",
        ErrorCode::Unavailable => "Not available at the moment",
        code if code.status() >= 500 => "Something went wrong",
        _ => "This cannot be shown",
    };
    let main = html! {
        h1 { (title) }
        (notice(&problem.detail, problem.code))
        @if problem.retry_after_s > 0 { p { "It may work again in " (problem.retry_after_s) " seconds." } }
        p { a href="/" { "All services" } " · " a href=(STATUS) { "Status" } " · " a href=(GUIDES) { "Guides" } }
    };
    Page { title: title.to_owned(), status: problem.code.status(), main, ..Page::default() }
}

/// Why something is not shown, and what to do about it.
pub(crate) fn notice(detail: &str, code: ErrorCode) -> Markup {
    let action = match code {
        ErrorCode::TierTooLow => "A key of that tier shows it over the API.",
        ErrorCode::NotFound => "Check the address, or search for a part of the name or the number.",
        ErrorCode::ParameterInvalid | ErrorCode::AsOfInvalid => "Change the filter, or reset all of them.",
        ErrorCode::RateLimited => "Wait a minute, then load the page again.",
        ErrorCode::Unavailable => "Load the page again in a few seconds.",
        ErrorCode::CursorInvalid | ErrorCode::FilterChanged => "Start again from the first page.",
        ErrorCode::MethodNotAllowed => {
            "Open the address again without sending anything to it; the reference of its service says what programs send."
        }
        code if code.status() >= 500 => "Load the page again later. If it stays like this, tell the operator of this server.",
        _ => "",
    };
    html! {
        p.notice role="status" {
            bdi { (sentence(detail)) } " "
            @if !action.is_empty() { (action) " " } @else { (inline(&sentence(code.advice()))) " " }
            @if matches!(code, ErrorCode::TierTooLow | ErrorCode::KeyInvalid) { a href=(API_KEYS) { "How to get a key" } " · " }
            a href={ "/docs/errors#" (code.as_str()) } { "What " code { (code.as_str()) } " means" }
        }
    }
}

/// The note of an answer, and what a key has to do with it.
pub(crate) fn note(answer: &serde_json::Value) -> Markup {
    html! {
        @if let Some(note) = answer["note"].as_str().filter(|note| !note.is_empty()) {
            div.notice.quiet {
                p { bdi { (sentence(note)) } }
                @if note.contains("key") {
                    details {
                        summary { "Why does a key matter?" }
                        p {
                            "These pages read the API as a caller without a key does, so they show and leave out the same. A call with a key of the tier that the "
                            "note names gets whole records, all of the history, more rows, and filters over changes. Nothing else differs: the order, the "
                            "numbers of the changes and the signed checkpoints are the same for all callers. The operator of this server issues keys: "
                            a href=(API_KEYS) { "how to get one" } "."
                        }
                    }
                }
            }
        }
    }
}

/// A command that the script gives a button to copy.
pub(crate) fn copyable(command: &str) -> Markup {
    html! { pre.copy tabindex="0" role="region" aria-label="Command" { code { (command) } } }
}

/// A detail of a problem or a note as a sentence.
fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that the page of every error says what to do.
    #[test]
    fn every_refusal_has_advice() {
        for code in ErrorCode::ALL {
            let page = problem(&Problem::new(*code, "<b>no</b>"));
            let html = page.main.into_string();
            let notice = html.split("</bdi> ").nth(1).and_then(|rest| rest.split(" <a href").next()).unwrap_or_default();
            assert_eq!(page.status, code.status());
            assert!(notice.len() > 20 && html.contains("&lt;b&gt;no"), "{}: {html}", code.as_str());
            let needs_key = matches!(code, ErrorCode::TierTooLow | ErrorCode::KeyInvalid);
            assert_eq!(html.contains("href=\"/guides/api-keys\">How to get a key"), needs_key, "{}", code.as_str());
        }
    }

    /// Proves that a note is one sentence, and that only a note about keys says why a key matters.
    #[test]
    fn notes() {
        let shown = note(&json!({ "note": "without a key only the last 7 days are shown" })).into_string();
        assert!(
            shown.contains("<bdi>Without a key only the last 7 days are shown.</bdi>") && shown.contains("Why does a key matter?"),
            "{shown}"
        );
        let shown = note(&json!({ "note": "the history is short." })).into_string();
        assert!(shown.contains("<bdi>The history is short.</bdi>") && !shown.contains("Why"), "{shown}");
        assert_eq!([note(&json!({})).into_string(), sentence("")], ["", ""]);
    }
}

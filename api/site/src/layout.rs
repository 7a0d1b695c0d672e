//! What all pages have in common: head, header, footer, and the page of a problem.

use maud::{DOCTYPE, Markup, html};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;

use crate::EXPLORE;
use crate::assets::{ICON, SCRIPT, STYLE};

/// The longest description of a page, in characters.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// A page before it is put into the layout.
pub struct Page<'a> {
    /// The title.
    pub title: String,
    /// One sentence for search engines and previews.
    pub description: String,
    /// The address under which the page is known, without a query; empty for a page without one.
    pub canonical: String,
    /// The words of the search field in the header.
    pub search: &'a str,
    /// The HTTP status.
    pub status: u16,
    /// The content of `main`.
    pub main: Markup,
}

/// The HTML of a page.
#[must_use]
pub fn layout(page: &Page<'_>) -> String {
    let description: String = page.description.chars().take(DESCRIPTION_CHARS_MAX).collect();
    let title = if page.canonical == "/" { page.title.clone() } else { format!("{} · Highwater", page.title) };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                @if !description.is_empty() { meta name="description" content=(description); }
                @if page.canonical.is_empty() {
                    meta name="robots" content="noindex";
                } @else {
                    link rel="canonical" href=(page.canonical);
                }
                meta name="color-scheme" content="light dark";
                link rel="icon" type="image/svg+xml" href=(ICON.path);
                link rel="stylesheet" href=(STYLE.path);
                script src=(SCRIPT.path) defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    div.wide {
                        a.brand href="/" { img src=(ICON.path) alt="" width="24" height="24"; "Highwater" }
                        // The home page has a search of its own.
                        @if page.canonical != "/" {
                            form.find role="search" action=(EXPLORE) method="get" {
                                label.hidden for="find" { "Search all services" }
                                input #find type="search" name="q" value=(page.search) placeholder="Search all services" maxlength="200" autocomplete="off";
                                button { "Search" }
                            }
                        }
                        nav aria-label="Site" {
                            a href="/#services" { "Services" }
                            a href="/#live" { "Live" }
                            a href="/#use" { "API" }
                        }
                    }
                }
                main #main .wide { (page.main) }
                footer {
                    div.wide {
                        p { "Public records as change feeds. Pages show what the API shows without a key." }
                        nav aria-label="More" {
                            a href="/webhooks" { "Your webhooks" }
                            a href="/docs/errors" { "Errors" }
                            a href="/asyncapi.json" { "AsyncAPI" }
                            a href="/schemas/" { "Avro schemas" }
                            a href="/llms.txt" { "llms.txt" }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

/// The page of a request that was refused.
pub(crate) fn problem(problem: &Problem) -> Page<'static> {
    let title = match problem.code {
        ErrorCode::NotFound => "Nothing here",
        ErrorCode::TierTooLow => "This needs a key",
        ErrorCode::RateLimited => "Too many requests",
        ErrorCode::Unavailable => "Not available at the moment",
        code if code.status() >= 500 => "Something went wrong",
        _ => "This cannot be shown",
    };
    let main = html! {
        h1 { (title) }
        (notice(&problem.detail, problem.code))
        p { a href="/" { "All services" } }
    };
    Page { title: title.to_owned(), description: String::new(), canonical: String::new(), search: "", status: problem.code.status(), main }
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
        _ => "",
    };
    html! {
        p.notice role="status" {
            bdi { (sentence(detail)) } " " @if !action.is_empty() { (action) " " }
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
                            "numbers of the changes and the signed checkpoints are the same for all callers. The operator of this server issues keys."
                        }
                    }
                }
            }
        }
    }
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

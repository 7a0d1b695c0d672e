//! A page of the portal: its frame, what came of a form, and tables.

use maud::{Markup, html};
use operation::problem::Problem;
use pages::{ACCOUNT, Page, layout};

use super::route::{SAVED, SIGN_OUT, WEBHOOKS};
use crate::layout::{copyable, notice};

/// A page of the portal.
pub struct Screen {
    /// The HTTP status.
    pub status: u16,
    /// The HTML.
    pub html: String,
    /// Why the request was refused, for callers that do not read HTML.
    pub problem: Option<Problem>,
}

impl Screen {
    pub(super) fn of(page: &Page<'_>, problem: Option<Problem>) -> Self {
        Self { status: page.status, html: layout(page), problem }
    }
}

/// What came of a form, shown on the page that answers it.
#[derive(Default)]
pub(crate) struct Outcome {
    /// What happened; empty for nothing.
    pub(super) words: String,
    /// The name of a secret and the secret, which is shown only this once.
    pub(super) secret: Option<(&'static str, String)>,
    /// Why the form was refused.
    pub(super) problem: Option<Problem>,
}

impl Outcome {
    pub(super) fn done(words: impl Into<String>) -> Self {
        Self { words: words.into(), ..Self::default() }
    }

    pub(super) fn refused(problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }

    pub(super) fn from(result: Result<Self, Problem>) -> Self {
        result.unwrap_or_else(Self::refused)
    }

    pub(super) fn render(&self) -> Markup {
        html! {
            @if !self.words.is_empty() { p.notice role="status" { bdi { (self.words) } } }
            @if let Some((name, secret)) = &self.secret {
                section.secret aria-labelledby="secret" {
                    h2 #secret { (name) }
                    p { strong { "It is shown only here. " } "Save it before you leave this page; nobody can read it again." }
                    (copyable(secret))
                }
            }
            @if let Some(problem) = &self.problem { (notice(&problem.detail, problem.code)) }
        }
    }
}

/// A page with the frame of the portal. `part` is the path of the tab that it belongs to.
pub(super) fn frame(part: &str, title: &str, outcome: Outcome, body: &Markup) -> Screen {
    let tabs = [(ACCOUNT, "Account"), (SAVED, "Saved"), (WEBHOOKS, "Webhooks")];
    let main = html! {
        div.portal {
            nav.tabs aria-label="Account" {
                @for (path, words) in tabs { a href=(path) aria-current=[(path == part).then_some("page")] { (words) } }
            }
            form method="post" action=(SIGN_OUT) { button { "Sign out" } }
        }
        h1 { bdi { (title) } }
        (outcome.render())
        (body)
    };
    let status = outcome.problem.as_ref().map_or(200, |problem| problem.code.status());
    Screen::of(&page(title, status, main), outcome.problem)
}

/// A table of the portal. On narrow screens each row is a card, so cells name their column. A column of buttons, whose heading is empty, is named for those
/// who do not see it.
pub(super) fn table(caption: &str, headings: &[&str], rows: &Markup) -> Markup {
    html! {
        table.rows.tight {
            caption.hidden { (caption) }
            thead { tr { @for words in headings { th scope="col" { @if words.is_empty() { span.hidden { "Actions" } } @else { (words) } } } } }
            tbody { (rows) }
        }
    }
}

/// The host of a webhook as pages name it.
pub(super) fn host_or_unknown(host: &str) -> &str {
    if host.is_empty() { "unreadable URL" } else { host }
}

/// A page that no search engine lists.
pub(super) fn page(title: &str, status: u16, main: Markup) -> Page<'static> {
    Page { title: title.to_owned(), status, main, ..Page::default() }
}

//! The portal of an account: what a key has, in pages. Quota, saved filters and watches, webhooks with their attempts, and the forms that change them.
//!
//! Promises: pages read and change through [`Calls`] only, which calls the operations with the key of the person who signed in, so nothing is possible here
//! that is not possible over REST. A secret is on the page that answers the form that made it, and on no other; no form and no address contains a key.

mod forms;
mod keys;
pub(crate) mod new_filter;
mod overview;
pub(crate) mod register;
mod saved;
mod sign_in;
#[cfg(test)]
mod tests;
mod webhook;
mod webhooks;

use futures_util::future::BoxFuture;
use maud::{Markup, html};
use operation::problem::Problem;
use pages::{Page, layout};
use schemas::error_code::ErrorCode;
use serde_json::{Map, Value};

use crate::layout::{copyable, notice};
use crate::{ACCOUNT, Pairs, Shown, url};

use register::Wanted;
pub use sign_in::{SignIn, sign_in};

/// Where the form to sign in is sent.
pub const SIGN_IN: &str = "/account/sign-in";
/// Where the form to sign out is sent.
pub const SIGN_OUT: &str = "/account/sign-out";
/// Where the form that creates a key is sent.
pub const KEYS: &str = "/account/keys";
/// The page of saved filters and watches.
const SAVED: &str = "/account/saved";
/// The page that saves a filter.
const NEW_FILTER: &str = "/account/filters/new";
/// The page that creates a watch, with or without a webhook.
const NEW_WATCH: &str = "/account/watches/new";
/// The page of the webhooks.
pub const WEBHOOKS: &str = "/account/webhooks";
/// The page that registers a webhook.
const REGISTER: &str = "/account/webhooks/new";

/// The arguments of a call.
pub type Arguments = Map<String, Value>;

/// The key of a person who signed in, and its quota of today.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The tier.
    pub tier: String,
    /// The id of the key.
    pub key_id: String,
    /// The id of the account.
    pub account: String,
    /// The most calls of a UTC day.
    pub calls_max: i64,
    /// How many of them are left.
    pub remaining: i64,
    /// Seconds until the next day begins.
    pub reset_s: u64,
}

/// What the pages call. The implementation calls the operations in this process with the key of the person who signed in, or without a key.
pub trait Calls: Send + Sync {
    /// The services that are served, in the order of the list.
    fn services(&self) -> Vec<Shown<'_>>;

    /// Calls an operation. Reads count against no quota; all other calls count as they do over REST. `once` is an idempotency key, or empty.
    fn call<'a>(
        &'a self,
        service: &'a str,
        operation: &'a str,
        arguments: Arguments,
        once: &'a str,
    ) -> BoxFuture<'a, Result<Value, Problem>>;

    /// Where keys of paid tiers come from, as a part of a sentence.
    fn paid_keys(&self) -> String;

    /// A random text of letters and digits, by which a form that is sent twice is recognized.
    fn nonce(&self) -> String;
}

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
    fn of(page: &Page<'_>, problem: Option<Problem>) -> Self {
        Self { status: page.status, html: layout(page), problem }
    }
}

/// A page of the portal that is only for a person who signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Tier, quota and keys.
    Overview,
    /// Saved filters and watches.
    Saved,
    /// All webhooks.
    Webhooks,
    /// The form that saves a filter.
    NewFilter,
    /// The form that creates a watch.
    NewWatch,
    /// The form that registers a webhook.
    Register,
    /// One webhook.
    Webhook {
        /// The name of the service.
        service: String,
        /// The id of the webhook.
        id: String,
    },
}

impl Route {
    /// The page at a path without a slash at the end; `None` if the portal has none there.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        match path {
            ACCOUNT => Some(Self::Overview),
            SAVED => Some(Self::Saved),
            WEBHOOKS => Some(Self::Webhooks),
            NEW_FILTER => Some(Self::NewFilter),
            NEW_WATCH => Some(Self::NewWatch),
            REGISTER => Some(Self::Register),
            _ => {
                let (service, id) = path.strip_prefix(WEBHOOKS)?.strip_prefix('/')?.split_once('/')?;
                let id = url::decoded(id).filter(|id| !id.is_empty() && !id.contains('/'))?;
                Some(Self::Webhook { service: url::decoded(service)?, id })
            }
        }
    }
}

/// What came of a form, shown on the page that answers it.
#[derive(Default)]
pub(crate) struct Outcome {
    /// What happened; empty for nothing.
    words: String,
    /// The name of a secret and the secret, which is shown only this once.
    secret: Option<(&'static str, String)>,
    /// Why the form was refused.
    problem: Option<Problem>,
}

impl Outcome {
    fn done(words: impl Into<String>) -> Self {
        Self { words: words.into(), ..Self::default() }
    }

    fn refused(problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }

    fn from(result: Result<Self, Problem>) -> Self {
        result.unwrap_or_else(Self::refused)
    }

    fn render(&self) -> Markup {
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
fn screen(part: &str, title: &str, outcome: Outcome, body: &Markup) -> Screen {
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
fn table(caption: &str, headings: &[&str], rows: &Markup) -> Markup {
    html! {
        table.rows.tight {
            caption.hidden { (caption) }
            thead { tr { @for words in headings { th scope="col" { @if words.is_empty() { span.hidden { "Actions" } } @else { (words) } } } } }
            tbody { (rows) }
        }
    }
}

/// The path of the page of a webhook.
fn webhook_path(service: &str, id: &str) -> String {
    format!("{WEBHOOKS}/{}/{}", url::segment(service), url::segment(id))
}

/// The host of a webhook as pages name it.
fn host_or_unknown(host: &str) -> &str {
    if host.is_empty() { "unreadable URL" } else { host }
}

/// A page that no search engine lists.
fn page(title: &str, status: u16, main: Markup) -> Page<'static> {
    Page { title: title.to_owned(), status, main, ..Page::default() }
}

/// The page at a route.
pub async fn show(calls: &dyn Calls, usage: &Usage, route: &Route, query: &Pairs) -> Screen {
    shown(calls, usage, route, query, Outcome::default()).await
}

async fn shown(calls: &dyn Calls, usage: &Usage, route: &Route, query: &Pairs, outcome: Outcome) -> Screen {
    match route {
        Route::Overview => overview::screen(calls, usage, outcome).await,
        Route::Saved => saved::screen(calls, outcome).await,
        Route::Webhooks => webhooks::screen(calls, outcome).await,
        Route::NewFilter => new_filter::screen(calls, query, outcome),
        Route::NewWatch => register::screen(calls, query, outcome, Wanted::Watch),
        Route::Register => register::screen(calls, query, outcome, Wanted::Webhook),
        Route::Webhook { service, id } => webhook::screen(calls, service, id, query, outcome).await,
    }
}

/// Does what a form asks for, and returns the page that says what came of it.
pub async fn submit(calls: &dyn Calls, usage: &Usage, route: &Route, form: &Pairs) -> Screen {
    let nothing = Pairs::new();
    let unknown = || Outcome::refused(Problem::new(ErrorCode::RequestInvalid, "this page has no such form"));
    match route {
        Route::Overview => match keys::act(calls, form).await {
            Ok(done) if done.has_ended_session => overview::ended(done.outcome),
            result => shown(calls, usage, route, &nothing, Outcome::from(result.map(|done| done.outcome))).await,
        },
        Route::Saved => {
            let outcome = Outcome::from(saved::delete(calls, form).await);
            shown(calls, usage, route, &nothing, outcome).await
        }
        Route::Webhooks => shown(calls, usage, route, &nothing, unknown()).await,
        Route::NewFilter => match new_filter::save(calls, form).await {
            Ok(outcome) => shown(calls, usage, &Route::Saved, &nothing, outcome).await,
            Err(problem) => new_filter::screen(calls, form, Outcome::refused(problem)),
        },
        Route::NewWatch => registered(calls, usage, form, Wanted::Watch).await,
        Route::Register => registered(calls, usage, form, Wanted::Webhook).await,
        Route::Webhook { service, id } => {
            let result = webhook::act(calls, service, id, form).await;
            let is_deleted = result.is_ok() && url::value(form, "act") == webhook::DELETE;
            let route = if is_deleted { &Route::Webhooks } else { route };
            shown(calls, usage, route, &nothing, Outcome::from(result)).await
        }
    }
}

/// Creates a watch or a webhook, and returns its page, or the form again.
async fn registered(calls: &dyn Calls, usage: &Usage, form: &Pairs, wanted: Wanted) -> Screen {
    match register::register(calls, form, wanted).await {
        Ok((made, outcome)) => shown(calls, usage, &made, &Pairs::new(), outcome).await,
        Err(problem) => register::screen(calls, form, Outcome::refused(problem), wanted),
    }
}

/// Creates a free key, and returns the page that shows it once. `usage` is that of the person who signed in, if somebody did.
pub async fn create_key(calls: &dyn Calls, usage: Option<&Usage>, form: &Pairs) -> Screen {
    match (overview::create_key(calls, form).await, usage) {
        (Ok(outcome), _) => overview::created(usage.is_some(), outcome),
        (Err(problem), Some(usage)) => overview::screen(calls, usage, Outcome::refused(problem)).await,
        (Err(problem), None) => sign_in(calls, ACCOUNT, SignIn::Refused(problem)),
    }
}

//! The portal of an account: what a key has, in pages. Quota, saved filters and watches, webhooks with their attempts, and the forms that change them.
//!
//! Promises: pages read and change through [`Calls`] only, which calls the operations with the key of the person who signed in, so nothing is possible here
//! that is not possible over REST. A secret is on the page that answers the form that made it, and on no other; no form and no address contains a key.

mod calls;
mod forms;
mod keys;
pub(crate) mod new_filter;
mod overview;
pub(crate) mod register;
mod route;
mod saved_items;
mod screen;
mod sign_in;
#[cfg(test)]
mod tests;
mod watch;
mod webhook;
mod webhooks;

use operation::problem::Problem;
use pages::ACCOUNT;
use schemas::error_code::ErrorCode;

use crate::url::{Pairs, value};

pub use calls::{Arguments, Calls, Usage};
use register::Wanted;
pub use route::{KEYS, Route, SIGN_IN, SIGN_OUT, WEBHOOKS};
use screen::Outcome;
pub use screen::Screen;
pub use sign_in::{SignIn, sign_in};

/// The page at a route.
pub async fn show(calls: &dyn Calls, usage: &Usage, route: &Route, query: &Pairs) -> Screen {
    shown(calls, usage, route, query, Outcome::default()).await
}

async fn shown(calls: &dyn Calls, usage: &Usage, route: &Route, query: &Pairs, outcome: Outcome) -> Screen {
    match route {
        Route::Overview => overview::screen(calls, usage, outcome).await,
        Route::Saved => saved_items::screen(calls, outcome).await,
        Route::Webhooks => webhooks::screen(calls, outcome).await,
        Route::NewFilter => new_filter::screen(calls, query, outcome),
        Route::NewWatch => register::screen(calls, query, outcome, Wanted::Watch),
        Route::Register => register::screen(calls, query, outcome, Wanted::Webhook),
        Route::Watch { service, id } => watch::screen(calls, service, id, query, outcome).await,
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
            let outcome = Outcome::from(saved_items::delete(calls, form).await);
            shown(calls, usage, route, &nothing, outcome).await
        }
        Route::Webhooks | Route::Watch { .. } => shown(calls, usage, route, &nothing, unknown()).await,
        Route::NewFilter => match new_filter::save(calls, form).await {
            Ok(outcome) => shown(calls, usage, &Route::Saved, &nothing, outcome).await,
            Err(problem) => new_filter::screen(calls, form, Outcome::refused(problem)),
        },
        Route::NewWatch => registered(calls, usage, form, Wanted::Watch).await,
        Route::Register => registered(calls, usage, form, Wanted::Webhook).await,
        Route::Webhook { service, id } => {
            let result = webhook::act(calls, service, id, form).await;
            let is_deleted = result.is_ok() && value(form, "act") == webhook::DELETE;
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

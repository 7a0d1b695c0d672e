//! The page for somebody who has not signed in.

use maud::html;
use operation::problem::Problem;

use super::calls::Calls;
use super::overview;
use super::route::SIGN_IN;
use super::screen::{Screen, page};
use crate::layout::notice;

/// Why the page is shown.
pub enum SignIn {
    /// Nobody signed in.
    Asked,
    /// Somebody signed in just before, but the browser sent no cookie.
    NoCookie,
    /// The session has ended, with the reason.
    Ended(Problem),
    /// The form was refused.
    Refused(Problem),
}

/// The page with the form. `to` is the page that is shown after signing in.
pub fn sign_in(calls: &dyn Calls, to: &str, why: SignIn) -> Screen {
    let main = html! {
        h1 { @if matches!(why, SignIn::Ended(_)) { "Your session has ended" } @else { "Sign in" } }
        @match &why {
            SignIn::Asked => {}
            SignIn::NoCookie => {
                p.notice role="status" {
                    "The browser did not keep the session. Allow cookies for this address, and use https: over plain http only an address of this machine works."
                }
            }
            SignIn::Ended(problem) | SignIn::Refused(problem) => { (notice(&problem.detail, problem.code)) }
        }
        p { "Quota, saved filters, watches and webhooks of the account of an API key." }
        form.stack method="post" action=(SIGN_IN) {
            input type="hidden" name="to" value=(to);
            div.field {
                label for="key" { "API key" }
                input #key type="password" name="key" required autocomplete="current-password" maxlength="100" spellcheck="false";
            }
            button.primary { "Sign in" }
        }
        p.soft {
            "The key is sent in the body of this form. A cookie keeps it, encrypted so that only this server can read it, until you sign out or close the browser, and "
            "never for more than 12 hours."
        }
        (overview::key_form(calls))
    };
    let problem = match why {
        SignIn::Asked | SignIn::NoCookie => None,
        SignIn::Ended(problem) | SignIn::Refused(problem) => Some(problem),
    };
    Screen::of(&page("Sign in", problem.as_ref().map_or(200, |problem| problem.code.status()), main), problem)
}

//! The page for an unknown path, for browsers.

use maud::html;
use operation::problem::Problem;
use pages::page;

/// The page for a problem. `base_url` is that of the service, or empty for a path outside the services.
pub(crate) fn render(base_url: &str, problem: &Problem) -> String {
    let body = html! {
        h1 { "Nothing here" }
        p { (problem.detail) }
        p {
            @if base_url.is_empty() {
                a href="/" { "All services" }
            } @else {
                a href={ (base_url) "/docs" } { "What this service offers" }
            }
        }
    };
    page("Nothing here", &body)
}

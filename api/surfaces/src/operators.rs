//! The endpoints for operators: metrics, liveness and readiness, on a listener of their own.
//!
//! Promises: metrics, which show revenue and cost work to render, are on no listener for readers. Scripts of other origins cannot read the answers:
//! there is no CORS, and on loopback a name that another site lets lead to this machine (DNS rebinding) is refused.

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Method};
use listener::Malformed;
use operation::context::{Context, Part};
use operation::metrics;
use operation::problem::Problem;
use operation::signing_state::SigningState;
use schemas::error_code::ErrorCode;
use warp::Filter;
use warp::reply::Response;

use crate::{Readiness, hosts, read_only, reply, response, unknown};

/// The paths of probes, which every listener answers.
pub(crate) const PROBES: [&str; 2] = ["/healthz", "/readyz"];
/// The path of the metrics.
const METRICS: &str = "/metrics";

/// The answer to a probe; `None` if the path is another one.
pub(crate) fn probe(context: &Context, readiness: &Readiness, path: &str) -> Option<Response> {
    let text = |text: String| Some(response::with_content_type(response::full_body(text.into()), "text/plain; charset=utf-8"));
    match path {
        "/healthz" => text("ok\n".to_owned()),
        "/readyz" => match readiness() {
            // A node that does not sign can still serve readers.
            Ok(()) => text(format!("ready\n{}", SigningState::of(context).notices())),
            Err(reason) => Some(reply::problem(context.settings.site_url(), &Problem::new(ErrorCode::Unavailable, reason).retry_after(1))),
        },
        _ => None,
    }
}

/// The warp filter of the endpoints for operators. `is_on_loopback`: only programs of this machine reach the listener, browsers among them.
pub(crate) fn filter(
    context: Arc<Context>,
    readiness: Readiness,
    is_on_loopback: bool,
) -> impl Filter<Extract = (Response,), Error = std::convert::Infallible> + Clone + Send + Sync + 'static {
    let request = warp::method().and(warp::path::full()).and(warp::header::headers_cloned()).and(warp::ext::optional::<Malformed>());
    request.map(move |method: Method, path: warp::path::FullPath, headers: HeaderMap, malformed: Option<Malformed>| {
        let configured = &context.settings.allowed_hosts;
        let mut response = match malformed {
            Some(malformed) => reply::malformed(context.settings.site_url(), &malformed),
            None if is_on_loopback && !names_this_machine(&headers, configured) => {
                let words = "this listener answers under addresses and local names; add other names of this machine to `api.allowed_hosts`";
                reply::problem(context.settings.site_url(), &Problem::new(ErrorCode::OriginRefused, words))
            }
            None => answer(&context, &readiness, &method, path.as_str()),
        };
        response::set(&mut response, CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response::set(&mut response, X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    })
}

/// Whether a request names this machine. Browsers always send a host; a request without one is of a program.
fn names_this_machine(headers: &HeaderMap, configured: &[String]) -> bool {
    !headers.contains_key(HOST)
        || hosts::host(headers).is_some_and(|host| hosts::is_local(&host) || hosts::is_configured(&host, configured))
}

fn answer(context: &Context, readiness: &Readiness, method: &Method, path: &str) -> Response {
    let found = if path == METRICS { Some(rendered_metrics(readiness)) } else { probe(context, readiness, path) };
    match found {
        Some(response) => read_only(method, context.settings.site_url(), response),
        None => reply::problem(context.settings.site_url(), &unknown("", path, PROBES.into_iter().chain([METRICS]))),
    }
}

fn rendered_metrics(readiness: &Readiness) -> Response {
    let (text, content_type) = metrics::render(readiness().is_ok());
    let mut response = response::full_body(text.into());
    response::set_text(&mut response, CONTENT_TYPE, &content_type);
    response
}

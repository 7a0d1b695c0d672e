//! The endpoints for operators: metrics, liveness and readiness, on a listener of their own.
//!
//! Promises: metrics, which show revenue and cost work to render, are on no listener for readers. Scripts of other origins cannot read the answers
//! (no CORS).

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method};
use operation::context::{Context, Part};
use operation::metrics;
use operation::problem::Problem;
use operation::signing_state::SigningState;
use schemas::error_code::ErrorCode;
use warp::Filter;
use warp::reply::Response;

use crate::{Malformed, Readiness, read_only, reply, response, unknown};

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

/// The warp filter of the endpoints for operators.
pub(crate) fn filter(
    context: Arc<Context>,
    readiness: Readiness,
) -> impl Filter<Extract = (Response,), Error = std::convert::Infallible> + Clone + Send + Sync + 'static {
    warp::method().and(warp::path::full()).and(warp::ext::optional::<Malformed>()).map(
        move |method: Method, path: warp::path::FullPath, malformed: Option<Malformed>| {
            let mut response = match malformed {
                Some(malformed) => malformed.response(context.settings.site_url()),
                None => answer(&context, &readiness, &method, path.as_str()),
            };
            response::set(&mut response, CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response::set(&mut response, X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            response
        },
    )
}

fn answer(context: &Context, readiness: &Readiness, method: &Method, path: &str) -> Response {
    let found = if path == METRICS { Some(rendered_metrics(readiness)) } else { probe(context, readiness, path) };
    match found {
        Some(response) => read_only(method, context.settings.site_url(), response),
        None => reply::problem(context.settings.site_url(), &unknown(path, PROBES.into_iter().chain([METRICS]))),
    }
}

fn rendered_metrics(readiness: &Readiness) -> Response {
    let (text, content_type) = metrics::render(readiness().is_ok());
    let mut response = response::full_body(text.into());
    response::set_text(&mut response, CONTENT_TYPE, &content_type);
    response
}

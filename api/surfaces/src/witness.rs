//! `/witness`: the witness that this process is for other logs (C2SP tlog-witness). `POST /witness/add-checkpoint` accepts checkpoints,
//! `GET /witness/ORIGIN-HASH/checkpoint` returns the newest cosigned one, `GET /witness/vkey` the public key.
//!
//! The statuses are those of the specification, with a line of plain text; rate limits are the same as elsewhere.

use std::sync::Arc;
use std::time::Duration;

use access::{Access, Open};
use bytes::Buf;
use futures_util::Stream;
use http::header::CACHE_CONTROL;
use http::{Method, StatusCode};
use operation::context::Context;
use operation::context::Part;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use transparency::witness::Witnessing;
use transparency::witness::{OwnWitness, Refusal};
use warp::reply::Response;

use super::reply::Document;
use super::{Request, body, if_none_match, not_allowed, read_only, reply, response};

/// The path prefix of the witness.
const PREFIX: &str = "/witness/";
/// The largest submission, a checkpoint with its proof, in bytes.
const BODY_BYTES_MAX: usize = 64 << 10;
/// The methods for submissions.
const METHODS: &str = "POST, OPTIONS";
const PLAIN: &str = "text/plain; charset=utf-8";
/// The content type of the size that a witness cosigned.
const SIZE: &str = "text/x.tlog.size";

/// The path below the witness's prefix; `None` if this process is not a witness, or for another path.
pub(super) fn below<'a>(context: &Context, path: &'a str) -> Option<&'a str> {
    path.strip_prefix(PREFIX).filter(|_| Witnessing::of(context).own_key().is_some())
}

/// Answers a request below the prefix.
pub(super) async fn answer<S, B>(context: &Arc<Context>, path: &str, request: &Request<'_>, stream: S) -> Response
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let witnessing = Witnessing::of(context);
    let Some(own) = witnessing.own() else { return reply::problem(context.settings.site_url(), &nothing_here()) };
    if path == "add-checkpoint" {
        return match *request.method {
            Method::POST => match handle_submission(context, own, request, stream).await {
                Ok(response) => response,
                Err(problem) => reply::problem(context.settings.site_url(), &problem),
            },
            Method::OPTIONS => reply::options(METHODS),
            _ => reply::problem(context.settings.site_url(), &not_allowed(request.method, METHODS)),
        };
    }
    let response = match file(context, own, path, request).await {
        Ok(document) => document.response(if_none_match(&request.headers).as_deref()),
        Err(problem) => reply::problem(context.settings.site_url(), &problem),
    };
    read_only(request.method, context.settings.site_url(), response)
}

/// Reads a document of the witness.
async fn file(context: &Context, own: &OwnWitness, path: &str, request: &Request<'_>) -> Result<Document, Problem> {
    Access::of(context).admit_open(context, Open::File, request.address)?;
    let text = match path.split_once('/') {
        None if path == "vkey" => Some(format!("{}\n", own.key())),
        Some((log, "checkpoint")) => own.newest_note(context, log).await?,
        _ => None,
    };
    text.map(Document::text).ok_or_else(nothing_here)
}

fn nothing_here() -> Problem {
    Problem::new(
        ErrorCode::NotFound,
        "there is nothing at this path; the witness serves /witness/vkey and, for each log that it cosigned, /witness/SHA-256-OF-ORIGIN/checkpoint",
    )
}

/// Accepts a checkpoint.
async fn handle_submission<S, B>(context: &Arc<Context>, own: &OwnWitness, request: &Request<'_>, stream: S) -> Result<Response, Problem>
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    Access::of(context).admit_open(context, Open::Checkpoint, request.address)?;
    let time_max = Duration::from_secs(context.settings.request_timeout_s);
    let body = body::read(stream, &request.headers, BODY_BYTES_MAX, time_max).await?;
    let (status, text, content_type) = match own.add_checkpoint(context, &body).await {
        Ok(lines) => (StatusCode::OK, lines, PLAIN),
        Err(Refusal::Malformed(why)) => (StatusCode::BAD_REQUEST, format!("{why}\n"), PLAIN),
        Err(Refusal::UnknownLog) => (StatusCode::NOT_FOUND, "this witness does not know a log with this origin\n".to_owned(), PLAIN),
        Err(Refusal::NotSigned) => (
            StatusCode::FORBIDDEN,
            "the checkpoint is not signed by a known key of this origin, or a signature is invalid\n".to_owned(),
            PLAIN,
        ),
        Err(Refusal::Conflict(size)) => (StatusCode::CONFLICT, format!("{size}\n"), SIZE),
        Err(Refusal::Inconsistent(why)) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{why}\n"), PLAIN),
        Err(Refusal::Failed(problem)) => return Err(problem),
    };
    let mut response = response::with_content_type(response::full_body(text.into()), content_type);
    *response.status_mut() = status;
    response::set_text(&mut response, CACHE_CONTROL, "no-store");
    Ok(response)
}

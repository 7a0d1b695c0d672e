//! The HTTP server: routes paths to endpoints, applies faults of the transport, and offers the control API `/_sim/` for tests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode};
use hyper_util::service::TowerToHyperService;
use simulated_world::answer::Answer;
use simulated_world::expected_changes::ndjson;
use simulated_world::faults::{Fault, Plan};
use simulated_world::query::Query;
use tokio::net::TcpListener;
use warp::{Filter, Reply};

use crate::connections;
use crate::render::{Endpoint, Request};
use crate::{Simulator, When};

/// The largest request body accepted, of faults or of a search.
const BODY_BYTES_MAX: u64 = 64 * 1024;
const SLOW_PIECES: u64 = 10;

type Served = warp::reply::Response;

/// The headers of a request that an upstream looks at.
#[derive(Debug, Default)]
struct Headers {
    known: Option<String>,
    host: String,
    key: Option<String>,
}

impl Simulator {
    /// Binds an address and serves until `shutdown` ends. Returns the bound address (port 0 chooses one) and the future that serves.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn bind(
        self: Arc<Self>,
        addr: SocketAddr,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<(SocketAddr, impl Future<Output = ()> + Send)> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        Ok((addr, self.serve(listener, shutdown)))
    }

    /// Serves on a listener until `shutdown` ends. Meanwhile changes are applied as [`When`] says.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) {
        let service = TowerToHyperService::new(warp::service(routes(Arc::clone(&self))));
        tokio::select! {
            () = connections::serve(listener, service, shutdown) => {}
            () = change(&self) => {}
        }
    }

    /// Answers a GET, or a POST if there is a body.
    async fn reply(self: Arc<Self>, path: String, query: String, headers: Headers, body: Option<Bytes>) -> Served {
        if let Some(side) = path.strip_prefix("/_sim/").filter(|_| body.is_none()) {
            return self.side(side, &query);
        }
        let Some(endpoint) = Endpoint::at(&path) else { return into_response(Answer::html(404, "Not Found")) };
        if endpoint.takes_body() != body.is_some() {
            return into_response(Answer::html(405, "Method Not Allowed"));
        }
        let plan = self.draw(endpoint);
        if let Some(served) = refusal(&plan) {
            return served;
        }
        let (this, faults) = (Arc::clone(&self), plan.clone());
        let Headers { known, host, key } = headers;
        let render = move || {
            let body = body.unwrap_or_default();
            this.render(
                endpoint,
                Request { path: &path, query: &query, body: &body, key: key.as_deref(), visit: this.visit(&host) },
                &faults,
            )
        };
        let Ok(mut answer) = tokio::task::spawn_blocking(render).await else {
            return into_response(Answer::html(500, "the simulator failed"));
        };
        self.count_bytes(answer.body.len());
        // Only this upstream is known to answer with 304.
        if endpoint == Endpoint::Fsis && plan.is_clean() && known.is_some() && known == answer.etag {
            (answer.status, answer.body) = (304, Vec::new());
        }
        apply_faults(answer, &plan)
    }

    fn side(&self, path: &str, query: &str) -> Served {
        let query = Query::new(query);
        match path {
            "expected" => {
                let after = query.get("after").and_then(|after| after.parse().ok()).unwrap_or(0);
                typed("application/x-ndjson", ndjson(&self.expected_changes_after(after)))
            }
            "records" => typed("application/x-ndjson", ndjson(&self.current(query.get("stream")))),
            "stats" => typed("application/json", serde_json::to_vec(&self.stats()).unwrap_or_default()),
            _ => into_response(Answer::html(404, "Not Found")),
        }
    }

    fn set_faults(&self, body: &[u8]) -> Served {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Value {
            Number(f64),
            Text(String),
        }
        let refuse = |error: String| {
            let body = serde_json::json!({ "error": error }).to_string().into_bytes();
            into_response(Answer { status: 400, ..Answer::json(body) })
        };
        let values: BTreeMap<String, Value> = match serde_json::from_slice(body) {
            Ok(values) => values,
            Err(error) => return refuse(error.to_string()),
        };
        // The body lists all faults from now on; faults that it does not name are removed.
        let mut faults = crate::Faults::default();
        for (name, value) in values {
            let set = match value {
                Value::Number(value) => faults.set(&name, value),
                Value::Text(text) => faults.set_text(&name, &text),
            };
            if let Err(error) = set {
                return refuse(error.to_string());
            }
        }
        self.replace_faults(faults);
        typed("application/json", b"{}".to_vec())
    }
}

fn routes(this: Arc<Simulator>) -> impl Filter<Extract = (impl Reply,), Error = warp::Rejection> + Clone + Send + Sync + 'static {
    let sim = warp::any().map(move || Arc::clone(&this));
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    let faults = warp::post()
        .and(warp::path!("_sim" / "faults"))
        .and(warp::body::content_length_limit(BODY_BYTES_MAX))
        .and(warp::body::aggregate().map(gathered))
        .and(sim.clone())
        .map(|body: Bytes, sim: Arc<Simulator>| sim.set_faults(&body));
    let advance =
        warp::post().and(warp::path!("_sim" / "advance")).and(query).and(sim.clone()).map(|query: String, sim: Arc<Simulator>| {
            let n = Query::new(&query).get("n").map_or(Some(1), |n| n.parse().ok());
            match n {
                Some(n) => typed("application/json", format!("{{\"entries\":{}}}", sim.advance(n)).into_bytes()),
                None => into_response(Answer::html(400, "n is a number")),
            }
        });
    let path = warp::path::full().map(|path: warp::path::FullPath| path.as_str().to_owned());
    let known = warp::header::optional::<String>("if-none-match");
    let host = warp::header::optional::<String>("host");
    let key = warp::header::optional::<String>("x-api-key");
    let token = warp::header::optional::<String>("x-app-token");
    let headers = known.and(host).and(key).and(token).map(
        |known: Option<String>, host: Option<String>, key: Option<String>, token: Option<String>| Headers {
            known,
            host: host.unwrap_or_default(),
            key: key.or(token),
        },
    );
    let get = warp::get().and(path).and(query).and(headers).and(sim.clone()).and_then(
        |path: String, query: String, headers: Headers, sim: Arc<Simulator>| async move {
            Ok::<_, Infallible>(sim.reply(path, query, headers, None).await)
        },
    );
    let body = warp::body::content_length_limit(BODY_BYTES_MAX).and(warp::body::aggregate().map(gathered));
    let post = warp::post().and(path).and(query).and(body).and(sim).and_then(
        |path: String, query: String, body: Bytes, sim: Arc<Simulator>| async move {
            Ok::<_, Infallible>(sim.reply(path, query, Headers::default(), Some(body)).await)
        },
    );
    faults.or(advance).unify().or(get).unify().or(post).unify()
}

fn gathered(mut body: impl Buf) -> Bytes {
    body.copy_to_bytes(body.remaining())
}

/// Applies changes over time; never returns.
async fn change(this: &Simulator) {
    match this.when() {
        When::Never | When::BetweenRuns { idle: None } => std::future::pending().await,
        When::Always { every } => {
            let mut ticks = tokio::time::interval(every.max(Duration::from_millis(1)));
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            // The first tick fires at once, before anything was read.
            ticks.tick().await;
            loop {
                ticks.tick().await;
                this.advance_by_rate();
            }
        }
        When::BetweenRuns { idle: Some(idle) } => {
            let mut changed_after = 0;
            loop {
                tokio::time::sleep((idle / 4).max(Duration::from_millis(1))).await;
                let (requests, quiet) = this.quiet();
                if requests > changed_after && quiet >= idle {
                    changed_after = requests;
                    this.advance_by_rate();
                }
            }
        }
    }
}

fn refusal(plan: &Plan) -> Option<Served> {
    if plan.has(Fault::TooManyRetryAfter) {
        let mut served = into_response(Answer::html(429, "Too Many Requests"));
        served.headers_mut().insert("retry-after", HeaderValue::from(plan.retry_after_s));
        return Some(served);
    }
    let status = [(Fault::TooMany, 429), (Fault::Error500, 500), (Fault::Error503, 503), (Fault::Html, 200)];
    let (_, status) = status.into_iter().find(|(fault, _)| plan.has(*fault))?;
    Some(into_response(Answer::html(status, if status == 200 { "Access Denied" } else { "Error" })))
}

/// Sends the body: truncated, slowly, or completely.
fn apply_faults(mut answer: Answer, plan: &Plan) -> Served {
    let whole = answer.body.len();
    let cut = plan.has(Fault::Truncated) || plan.has(Fault::TruncatedLength);
    if cut {
        answer.body.truncate(whole * 3 / 5);
    }
    let lies = plan.has(Fault::TruncatedLength);
    let pause = Duration::from_millis(if plan.has(Fault::Slow) { plan.slow_ms / SLOW_PIECES } else { 0 });
    if !lies && pause.is_zero() {
        return into_response(answer);
    }
    let body = Bytes::from(std::mem::take(&mut answer.body));
    let head = into_response(answer);
    let piece = (body.len() / SLOW_PIECES as usize).max(1);
    let pieces = stream::unfold((body, lies), move |(mut body, lies)| async move {
        if body.is_empty() {
            // Ends before the announced length, so the connection breaks.
            return lies.then(|| (Err(io::Error::from(io::ErrorKind::UnexpectedEof)), (body, false)));
        }
        tokio::time::sleep(pause).await;
        let part = body.split_to(piece.min(body.len()));
        Some((Ok::<Bytes, io::Error>(part), (body, lies)))
    });
    let mut served = warp::reply::stream(pieces).into_response();
    *served.status_mut() = head.status();
    *served.headers_mut() = head.headers().clone();
    if lies {
        served.headers_mut().insert("content-length", HeaderValue::from(whole));
    } else {
        served.headers_mut().remove("content-length");
    }
    served
}

fn typed(content_type: &'static str, body: Vec<u8>) -> Served {
    into_response(Answer { status: 200, content_type: Some(content_type), body, ..Answer::default() })
}

fn into_response(answer: Answer) -> Served {
    let mut served = Response::new(answer.body).into_response();
    *served.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let texts = [
        ("content-type", answer.content_type.map(str::to_owned)),
        ("link", answer.link),
        ("etag", answer.etag),
        ("last-modified", answer.last_modified),
        ("location", answer.location),
    ];
    for (name, text) in texts {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
            served.headers_mut().insert(name, value);
        }
    }
    served
}

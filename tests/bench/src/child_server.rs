//! Child processes of this program that serve HTTP, and the parts that their modes share.

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;

use access::Access;
use bytes::Bytes;
use http::Response;
use operation::context::{Context, Part as _, ServiceSettings};
use operation::secrets::Secrets;
use operation::signing_state::SigningState;
use operation::tiers::{Limits, Tiers};
use schemas::clock::Clock;
use schemas::views::accounts::Tier;
use serde_json::Value;

use crate::engine::Engine;
use crate::report::{memory_mib, spawn};
use crate::{Failure, Settings};

/// The environment variable with the mode of `serve-child`.
pub(crate) const MODE: &str = "BENCH_MODE";
/// The environment variable with the directory of PostgreSQL's socket, for the modes that need it.
pub(crate) const SOCKET: &str = "BENCH_SOCKET";
/// The number of keys: a key of the largest tier is limited to a million calls a day.
const KEYS: usize = 8;

/// A child process of this program that serves; killed when dropped.
pub(crate) struct ChildServer {
    child: Child,
    /// The first line of its output: its address and texts for the requests.
    pub(crate) report: Value,
}

impl ChildServer {
    /// Starts a server in a mode of `serve-child` and waits for its report.
    pub(crate) fn start(settings: &Settings, mode: &str, variables: &[(&str, String)]) -> Result<Self, Failure> {
        let variables: Vec<_> = [(MODE, mode.to_owned())].into_iter().chain(variables.iter().cloned()).collect();
        let mut child = spawn(settings, "serve-child", &variables)?;
        let mut first = String::new();
        if let Some(output) = child.stdout.take() {
            std::io::BufReader::new(output).read_line(&mut first)?;
        }
        match serde_json::from_str(&first) {
            Ok(report) => Ok(Self { child, report }),
            Err(error) => {
                child.kill()?;
                Err(format!("the server {mode} did not start: {error}").into())
            }
        }
    }

    /// Returns a list of texts from the report.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let items = self.report.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    /// Returns the peak memory of the process, in MiB.
    pub(crate) fn memory_mib(&self) -> Result<f64, Failure> {
        memory_mib(self.child.id())
    }

    /// Returns the address from the report.
    pub(crate) fn address(&self) -> String {
        self.report.get("address").and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an answer with a JSON body.
pub(crate) fn json_response(body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

/// Mints keys, which requests use in turn.
pub(crate) async fn mint_keys(context: &Context) -> Result<Vec<String>, Failure> {
    let mut keys = Vec::new();
    for _ in 0..KEYS {
        let minted = Access::of(context).mint(context, Tier::FleetPlus, "bench@example.com").await;
        keys.push(minted.map_err(|problem| format!("no key: {problem:?}"))?.key.reveal().to_owned());
    }
    Ok(keys)
}

/// Returns the context of an API that serves an engine at an address.
pub(crate) fn api_context(engine: &Engine, dir: &Path, address: SocketAddr) -> Result<Arc<Context>, Failure> {
    let service = |service: operation::Service| {
        let prefix = format!("/{}", service.name);
        (service.name.to_owned(), ServiceSettings::new(format!("http://{address}{prefix}"), prefix))
    };
    let settings = operation::context::Settings::new(
        services::all().into_iter().map(service).collect(),
        Tiers::of_two(Limits::new(100, 0, 25, 0, 0), Limits::new(1_000_000_000, 0, 200, 20, 50).with_fleets(1)),
    );
    // Files, which a stored fleet has, are written to the directory of caches before they are sent.
    let settings = operation::context::Settings { cache_dir: Some(dir.join("cache")), ..settings };
    let secrets = Secrets::load_or_create(&dir.join("master.key"))?;
    let (log, store) = (Arc::clone(&engine.log), Arc::clone(&engine.store));
    let context = Context::new(settings, Clock::System, secrets, log, store);
    Ok(Arc::new(services::with_parts(context).with(SigningState::new(Arc::clone(&engine.keys)))))
}

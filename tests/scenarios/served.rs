//! A service as callers see it over HTTP, with the simulated upstreams from which it is decided, under a clock that the test moves.

use std::sync::Arc;

use jiff::ToSpan;
use jiff::civil::{Date, date};
use schemas::clock::{Clock, SimulatedClock};
use schemas::views::accounts::Tier;
use serde_json::Value;
use tokio::sync::watch;

use crate::api::{HttpApi, LocalApi};
use crate::engine::{SimulatedUpstreams, noon};
use crate::process::{Answer, send};

/// The day of the first sync.
pub(crate) const FIRST: Date = date(2026, 11, 20);

/// A served engine. Callers who have to pay are offered terms.
pub(crate) struct Served {
    pub(crate) api: LocalApi,
    pub(crate) http_api: HttpApi,
    pub(crate) simulated: SimulatedUpstreams,
    pub(crate) clock: &'static SimulatedClock,
    /// A key of the tier pro.
    pub(crate) key: String,
    service: &'static str,
    upstreams: &'static [&'static str],
    stop: watch::Sender<bool>,
    _dir: tempfile::TempDir,
}

impl Served {
    /// Serves the state after the first sync of some upstreams.
    pub(crate) async fn begin(service: &'static str, upstreams: &'static [&'static str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = SimulatedClock::new(noon(FIRST), Clock::Fixed(noon(FIRST)));
        let simulated = SimulatedUpstreams::start(41, 60, Clock::Simulated(clock)).await;
        let mut api = LocalApi::open(dir.path(), Clock::Simulated(clock), None).await;
        let stop = crate::concurrent_processes::run_heads_only(&mut api.engine).await;
        let http_api = HttpApi::with_terms(&api.engine, Clock::Simulated(clock));
        let mut this = Self { api, http_api, simulated, clock, key: String::new(), service, upstreams, stop, _dir: dir };
        this.sync(0).await;
        let projector = Arc::clone(&this.api.engine.projector);
        this.api.engine.start(projector, "projector");
        this.key = this.http_api.key(Tier::Pro).await;
        this
    }

    /// Syncs the upstreams so many days after the first sync, one after another, and decides what they published.
    pub(crate) async fn sync(&self, days: i64) {
        let day = FIRST.saturating_add(days.days());
        self.clock.move_to(noon(day));
        self.simulated.sim.set_today(day);
        let mut settings = self.simulated.settings();
        settings.window_days = 30;
        for name in self.upstreams {
            for outcome in self.api.engine.run(name, &settings).await {
                outcome.unwrap();
            }
            self.api.decide().await;
        }
    }

    /// Sends a request to the service. The tasks of this thread run on another one meanwhile.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        tokio::task::block_in_place(|| send(self.http_api.address, method, &format!("/{}{path}", self.service), headers, &body))
    }

    /// Sends a request with a key, or without one if it is empty; returns status and JSON.
    pub(crate) fn ask(&self, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let headers = [("x-api-key", key)];
        let answer = self.send(method, path, if key.is_empty() { &[] } else { &headers }, body);
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Reads without a key.
    pub(crate) fn free(&self, path: &str) -> Value {
        self.ok(path, "")
    }

    /// Reads with a key of the tier pro.
    pub(crate) fn paid(&self, path: &str) -> Value {
        self.ok(path, &self.key)
    }

    fn ok(&self, path: &str, key: &str) -> Value {
        let (status, answer) = self.ask("GET", path, key, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Calls a tool without a key; returns the result.
    pub(crate) fn tool(&self, name: &str, arguments: &Value) -> Value {
        let params = serde_json::json!({ "name": name, "arguments": arguments });
        let call = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let answer = self.send("POST", "/mcp", &[("accept", "application/json, text/event-stream")], &call);
        serde_json::from_slice::<Value>(&answer.body).unwrap()["result"].take()
    }

    /// Reads all changes with the paid key.
    pub(crate) fn changes(&self) -> Vec<Value> {
        let (mut all, mut start) = (Vec::new(), "start=earliest".to_owned());
        loop {
            let page = self.paid(&format!("/v1/changes?limit=200&{start}"));
            all.extend(page["changes"].as_array().unwrap().iter().cloned());
            if page["hasMore"] != true {
                return all;
            }
            start = format!("cursor={}", page["cursor"].as_str().unwrap());
        }
    }

    pub(crate) async fn end(self) {
        self.stop.send_replace(true);
        self.http_api.stop().await;
        self.api.close().await;
    }
}

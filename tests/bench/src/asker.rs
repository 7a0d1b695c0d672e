//! A client with one connection that sends requests one after another, for answers that `wrk` cannot ask for: with bodies, in an order, or streamed.

use std::time::Instant;

use bytes::Bytes;

use crate::child_server::ChildServer;
use crate::{Failure, webhooks};

/// A client with one connection.
pub(crate) struct Asker {
    client: reqwest::Client,
    address: String,
    keys: Vec<String>,
}

/// The seconds of an answer.
#[derive(Clone, Copy)]
pub(crate) struct Streamed {
    /// Until the first part of its body.
    pub(crate) first: f64,
    /// Until its end.
    pub(crate) whole: f64,
    /// The bytes of its body.
    pub(crate) bytes: usize,
}

impl Asker {
    /// A client for a server. Requests use the keys in turn.
    pub(crate) fn new(server: &ChildServer, keys: Vec<String>) -> Result<Self, Failure> {
        Ok(Self { client: webhooks::client()?, address: server.address(), keys })
    }

    /// Gets paths one after another; returns the seconds of each.
    pub(crate) async fn ask(&self, prefix: &str, paths: &[String]) -> Result<Vec<f64>, Failure> {
        let mut seconds = Vec::with_capacity(paths.len());
        for (n, path) in paths.iter().enumerate() {
            seconds.push(self.get(n, &format!("{prefix}{path}")).await?.whole);
        }
        Ok(seconds)
    }

    /// Gets a path. `n` chooses the key.
    pub(crate) async fn get(&self, n: usize, path: &str) -> Result<Streamed, Failure> {
        self.send(n, path, self.client.get(format!("http://{}{path}", self.address))).await
    }

    /// Posts a JSON body. `n` chooses the key.
    pub(crate) async fn post(&self, n: usize, path: &str, body: Bytes) -> Result<Streamed, Failure> {
        let request = self.client.post(format!("http://{}{path}", self.address)).header("content-type", "application/json");
        self.send(n, path, request.body(body)).await
    }

    async fn send(&self, n: usize, path: &str, request: reqwest::RequestBuilder) -> Result<Streamed, Failure> {
        let key = self.keys.get(n % self.keys.len().max(1)).map_or("", String::as_str);
        let started = Instant::now();
        let mut answer = request.header("X-API-Key", key).send().await?;
        let status = answer.status();
        let (mut bytes, mut first, mut refused) = (0, 0.0, Vec::new());
        while let Some(part) = answer.chunk().await? {
            if bytes == 0 {
                first = started.elapsed().as_secs_f64();
            }
            bytes += part.len();
            if !status.is_success() {
                refused.extend_from_slice(&part);
            }
        }
        let whole = started.elapsed().as_secs_f64();
        if !status.is_success() || bytes == 0 {
            return Err(format!("{path}: {status} {}", String::from_utf8_lossy(&refused)).into());
        }
        Ok(Streamed { first, whole, bytes })
    }
}

//! A receiver of webhooks that stores the messages and answers as the test says.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use warp::Filter as _;
use warp::http::{HeaderMap, Response};

use crate::loopback::Loopback;

/// A message as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: String,
    at_s: i64,
    pub(crate) signatures: String,
    pub(crate) body: Bytes,
    /// The status that it was answered with.
    pub(crate) status: u16,
}

impl Message {
    /// Returns the expected signature of the message, according to the reference library.
    pub(crate) fn expected_signature(&self, secret: &str) -> String {
        Webhook::new(secret).unwrap().sign(&self.id, self.at_s, &self.body).unwrap()
    }

    /// Returns the message and a secret as JSON, for the reference libraries of other languages.
    pub(crate) fn to_example_json(&self, secret: &str) -> Value {
        let headers = json!({ "webhook-id": self.id, "webhook-timestamp": self.at_s.to_string(), "webhook-signature": self.signatures });
        json!({ "secret": secret, "headers": headers, "body": String::from_utf8_lossy(&self.body) })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The messages, by the path that they were posted to, without its slash.
#[derive(Default)]
struct Messages {
    by_path: BTreeMap<String, Vec<Message>>,
    count: usize,
    /// Paths and ids of accepted messages.
    accepted: HashSet<(String, String)>,
}

/// The receiver.
pub(crate) struct Receiver {
    server: Loopback,
    all: Arc<Mutex<Messages>>,
}

impl Receiver {
    /// Starts a receiver. `says` returns the status for a path and the number of earlier messages.
    pub(crate) fn open(says: impl Fn(&str, usize) -> u16 + Clone + Send + Sync + 'static) -> Self {
        let all = Arc::new(Mutex::new(Messages::default()));
        let own = Arc::clone(&all);
        let take = move |path: warp::path::FullPath, headers: HeaderMap, body: Bytes| {
            let header = |name: &str| headers[name].to_str().unwrap().to_owned();
            let mut all = own.lock().unwrap();
            let path = path.as_str().trim_start_matches('/');
            let status = says(path, all.count);
            let at_s = header("webhook-timestamp").parse().unwrap();
            let message = Message { id: header("webhook-id"), at_s, signatures: header("webhook-signature"), body, status };
            if status < 300 {
                all.accepted.insert((path.to_owned(), message.id.clone()));
            }
            all.by_path.entry(path.to_owned()).or_default().push(message);
            all.count += 1;
            Response::builder().status(status).body("").unwrap()
        };
        #[expect(clippy::disallowed_methods, reason = "only the server under test posts here")]
        let accepted = warp::post().and(warp::path::full()).and(warp::header::headers_cloned()).and(warp::body::bytes()).map(take);
        Self { server: Loopback::open(accepted), all }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.server.address)
    }

    /// Returns the messages that were posted to a path.
    pub(crate) fn messages(&self, path: &str) -> Vec<Message> {
        self.all.lock().unwrap().by_path.get(path).cloned().unwrap_or_default()
    }

    /// Returns the number of messages, including repeated ones.
    pub(crate) fn count(&self) -> usize {
        self.all.lock().unwrap().count
    }

    /// Returns the number of accepted messages, each counted once.
    pub(crate) fn accepted_count(&self) -> usize {
        self.all.lock().unwrap().accepted.len()
    }

    /// Asserts that the messages to a path are signed and that repeated ones are identical; returns the accepted ones, each at its first
    /// delivery, in order.
    pub(crate) fn accepted(&self, path: &str, secret: &str) -> Vec<Message> {
        let (mut bodies, mut accepted, mut order) = (HashMap::new(), HashSet::new(), Vec::new());
        for message in self.messages(path) {
            assert_eq!(message.signatures, message.expected_signature(secret), "{path}");
            let body = bodies.entry(message.id.clone()).or_insert_with(|| message.body.clone());
            assert_eq!(*body, message.body, "a repeated message differs");
            if message.status < 300 && accepted.insert(message.id.clone()) {
                order.push(message);
            }
        }
        order
    }
}

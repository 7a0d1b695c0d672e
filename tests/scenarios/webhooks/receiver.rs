//! Whoever takes messages of webhooks: keeps them as they came, and says what it was told to say.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use warp::Filter as _;
use warp::http::{HeaderMap, Response};

use crate::loopback::Loopback;

/// A message as it came.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) id: String,
    at_s: i64,
    pub(crate) signatures: String,
    pub(crate) body: Bytes,
    /// What was said to it.
    pub(crate) status: u16,
}

impl Got {
    /// The signature that it is to have, by the reference library.
    pub(crate) fn signed(&self, secret: &str) -> String {
        Webhook::new(secret).unwrap().sign(&self.id, self.at_s, &self.body).unwrap()
    }

    /// It and its secret, for other reference libraries.
    pub(crate) fn shown(&self, secret: &str) -> Value {
        let headers = json!({ "webhook-id": self.id, "webhook-timestamp": self.at_s.to_string(), "webhook-signature": self.signatures });
        json!({ "secret": secret, "headers": headers, "body": String::from_utf8_lossy(&self.body) })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What came, by the path that it was posted to, without its slash.
#[derive(Default)]
struct All {
    by_path: BTreeMap<String, Vec<Got>>,
    count: usize,
    /// Paths and ids of what was taken.
    taken: HashSet<(String, String)>,
}

/// The receiver.
pub(crate) struct Receiver {
    server: Loopback,
    all: Arc<Mutex<All>>,
}

impl Receiver {
    /// `says` is given the path and how many messages came before.
    pub(crate) fn open(says: impl Fn(&str, usize) -> u16 + Clone + Send + Sync + 'static) -> Self {
        let all = Arc::new(Mutex::new(All::default()));
        let own = Arc::clone(&all);
        let take = move |path: warp::path::FullPath, headers: HeaderMap, body: Bytes| {
            let header = |name: &str| headers[name].to_str().unwrap().to_owned();
            let mut all = own.lock().unwrap();
            let path = path.as_str().trim_start_matches('/');
            let status = says(path, all.count);
            let at_s = header("webhook-timestamp").parse().unwrap();
            let got = Got { id: header("webhook-id"), at_s, signatures: header("webhook-signature"), body, status };
            if status < 300 {
                all.taken.insert((path.to_owned(), got.id.clone()));
            }
            all.by_path.entry(path.to_owned()).or_default().push(got);
            all.count += 1;
            Response::builder().status(status).body("").unwrap()
        };
        #[expect(clippy::disallowed_methods, reason = "who posts is the server under test")]
        let taken = warp::post().and(warp::path::full()).and(warp::header::headers_cloned()).and(warp::body::bytes()).map(take);
        Self { server: Loopback::open(taken), all }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.server.address)
    }

    /// What came to a path.
    pub(crate) fn got(&self, path: &str) -> Vec<Got> {
        self.all.lock().unwrap().by_path.get(path).cloned().unwrap_or_default()
    }

    /// How many messages came, again and again or not.
    pub(crate) fn count(&self) -> usize {
        self.all.lock().unwrap().count
    }

    /// How many messages were taken, each counted once.
    pub(crate) fn taken_count(&self) -> usize {
        self.all.lock().unwrap().taken.len()
    }

    /// Asserts what came to a path so far: signed, and each message always the same; answers those that were taken, each at its first time, in order.
    pub(crate) fn taken(&self, path: &str, secret: &str) -> Vec<Got> {
        let (mut bodies, mut taken, mut order) = (HashMap::new(), HashSet::new(), Vec::new());
        for got in self.got(path) {
            assert_eq!(got.signatures, got.signed(secret), "{path}");
            let body = bodies.entry(got.id.clone()).or_insert_with(|| got.body.clone());
            assert_eq!(*body, got.body, "a message is the same each time");
            if got.status < 300 && taken.insert(got.id.clone()) {
                order.push(got);
            }
        }
        order
    }
}

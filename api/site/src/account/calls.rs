//! What the pages of the portal call, and who signed in.

use futures_util::future::BoxFuture;
use operation::problem::Problem;
use serde_json::{Map, Value};

use crate::reads::SiteService;

/// The arguments of a call.
pub type Arguments = Map<String, Value>;

/// The key of a person who signed in, and its quota of today.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The tier.
    pub tier: String,
    /// The id of the key.
    pub key_id: String,
    /// The id of the account.
    pub account: String,
    /// The most calls of a UTC day.
    pub calls_max: i64,
    /// How many of them are left.
    pub remaining: i64,
    /// Seconds until the next day begins.
    pub reset_s: u64,
}

/// What the pages call. The implementation calls the operations in this process with the key of the person who signed in, or without a key.
pub trait Calls: Send + Sync {
    /// The services that are served, in the order of the list.
    fn services(&self) -> Vec<SiteService<'_>>;

    /// Calls an operation. Reads count against no quota; all other calls count as they do over REST. `once` is an idempotency key, or empty.
    fn call<'a>(
        &'a self,
        service: &'a str,
        operation: &'a str,
        arguments: Arguments,
        once: &'a str,
    ) -> BoxFuture<'a, Result<Value, Problem>>;

    /// Where keys of paid tiers come from, as a part of a sentence.
    fn paid_keys(&self) -> String;

    /// A random text of letters and digits, by which a form that is sent twice is recognized.
    fn nonce(&self) -> String;
}

//! What an operation is: its name, route, types, price and errors, the problem documents it answers, and what its handler is given.
//!
//! Each operation is defined once, in the crate of the services; every surface renders that definition. This crate names no service and no
//! surface.

pub mod context;
pub mod metrics;
pub mod problem;
pub mod redaction;
pub mod schema;
pub mod secrets;
pub mod signing_state;
pub mod tiers;

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::{Context, ServiceSettings};
use crate::problem::Problem;

/// HTTP methods that operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Makes something.
    Post,
    /// Changes something.
    Patch,
    /// Takes something away.
    Delete,
}

impl Method {
    /// Its name: `GET`, `POST`, `PATCH` or `DELETE`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether its arguments come in a body.
    #[must_use]
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Patch)
    }
}

/// Who may call, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// Free, within the tier's limits.
    Free,
    /// Only from this tier on.
    Tier(Tier),
    /// Paid for by the call, or free with a key of a tier.
    PerCall {
        /// Millionths of a US dollar, unless `[prices]` says otherwise.
        micros: u64,
        /// The first tier whose keys need not pay.
        free_from: Tier,
    },
}

/// What a call of a priced operation is run for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Its caller need not pay.
    #[default]
    Whole,
    /// What is shown for free, with the terms.
    Preview,
    /// What is sold: a read answers as ever, a write with [`Body::Effect`] and does nothing yet.
    Order {
        /// The id of the payment.
        payment: String,
        /// The address that pays, in lower case.
        payer: String,
    },
    /// The payment with this id is claimed, and no money has moved: a write says whether it can still take effect. An error that may not be
    /// retried ends the sale, and nothing is settled. Reads are not run at this stage.
    Claimed(String),
    /// It is paid for: a write answers what its effect has made, under the id of the payment.
    Paid(String),
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The tier of the key, or anonymous.
    pub tier: Tier,
    /// Id of the key; empty without one.
    pub key_id: String,
    /// The account; empty without a key.
    pub account: String,
    /// The caller's address, as far as the proxies between are trusted.
    pub address: IpAddr,
}

/// In which form an answer is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A JSON object.
    #[default]
    Json,
    /// NDJSON: a list operation may answer [`Body::Lines`].
    Lines,
    /// Server-sent events: a feed answers [`Body::Events`].
    Events,
}

impl Form {
    /// Its name in ETags.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Lines => "ndjson",
            Self::Events => "events",
        }
    }
}

/// One item of a feed as an event of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The cursor that stands after it.
    pub id: String,
    /// The item as JSON, in one line.
    pub data: Bytes,
}

/// One call, whatever the surface it came by. Arguments are checked against the input schema before the handler sees them.
#[derive(Clone)]
pub struct Call {
    /// The engine.
    pub context: Arc<Context>,
    /// Who calls.
    pub caller: Caller,
    /// In which form the answer is wanted.
    pub form: Form,
    /// `Idempotency-Key`, if given.
    pub idempotency_key: Option<String>,
    /// What the call is run for; anything but the whole only where the operation is paid for by the call.
    pub stage: Stage,
    /// `If-None-Match`, if given: a handler that knows its ETag before the body answers [`Body::NotModified`].
    pub if_none_match: Option<String>,
}

/// A body, ready to be sent.
#[derive(Clone, Debug)]
pub enum Body {
    /// A JSON value.
    Json(Value),
    /// JSON text in pieces that are sent one after another, never joined or parsed (spliced pages).
    Parts(Vec<Bytes>),
    /// Lines of NDJSON, each without its end.
    Lines(Vec<Bytes>),
    /// Items of a feed, each with the cursor that stands after it.
    Events(Vec<Event>),
    /// The caller has it already.
    NotModified,
    /// The command that a write asks for once it is paid for, as JSON.
    Effect(String),
}

/// What a handler answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The body.
    pub body: Body,
    /// A strong ETag with its quotes, made from position, parameters and tier; empty for none.
    pub etag: String,
    /// The next cursor, for the header `Next-Cursor` of NDJSON answers; empty for none.
    pub next_cursor: String,
    /// 200, or 201 for a POST that made something.
    pub status: u16,
}

impl Answer {
    /// A value with status 200.
    ///
    /// # Errors
    /// `internal` when the value cannot be written as JSON.
    pub fn json<T: Serialize>(value: &T) -> Result<Self, Problem> {
        let value = serde_json::to_value(value).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written as JSON");
            Problem::new(ErrorCode::Internal, "the answer could not be written")
        })?;
        Ok(Self { body: Body::Json(value), etag: String::new(), next_cursor: String::new(), status: 200 })
    }
}

/// A handler's future.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send>>;

/// One operation, defined once.
pub struct Operation {
    /// Its name: the MCP tool's and the OpenAPI `operationId`.
    pub name: &'static str,
    /// Method of the route.
    pub method: Method,
    /// Path below the service's base address, with `{name}` for path parameters.
    pub path: &'static str,
    /// One sentence: what it gives.
    pub summary: &'static str,
    /// More words: limits, order, what is left out. Markdown.
    pub description: &'static str,
    /// Who may call it.
    pub price: Price,
    /// Whether MCP offers it as a tool.
    pub tool: bool,
    /// Whether a call counts against the quota.
    pub counted: bool,
    /// For list operations: the field of the result that holds the list (also offered as NDJSON); empty for others.
    pub list: &'static str,
    /// Errors it may answer beside those that every operation may.
    pub errors: &'static [ErrorCode],
    /// Example arguments that give an answer.
    pub example: Value,
    /// JSON Schema of the arguments (an object, draft 2020-12, no references).
    pub input: Value,
    /// JSON Schema of the result (an object).
    pub output: Value,
    /// Other names of parameters: (alias, name).
    pub aliases: &'static [(&'static str, &'static str)],
    /// The handler, given checked arguments.
    pub run: Arc<dyn Fn(Call, Value) -> Answering + Send + Sync>,
}

/// What a definition states beside its types and handler.
pub struct Words {
    /// See [`Operation::name`].
    pub name: &'static str,
    /// See [`Operation::method`].
    pub method: Method,
    /// See [`Operation::path`].
    pub path: &'static str,
    /// See [`Operation::summary`].
    pub summary: &'static str,
    /// See [`Operation::description`].
    pub description: &'static str,
    /// See [`Operation::price`].
    pub price: Price,
    /// See [`Operation::tool`].
    pub tool: bool,
    /// See [`Operation::counted`].
    pub counted: bool,
    /// See [`Operation::list`].
    pub list: &'static str,
    /// See [`Operation::errors`].
    pub errors: &'static [ErrorCode],
    /// See [`Operation::example`].
    pub example: Value,
    /// See [`Operation::aliases`].
    pub aliases: &'static [(&'static str, &'static str)],
}

impl Operation {
    /// Whether it is a feed: it can be waited for, and goes on from a cursor.
    #[must_use]
    pub fn is_feed(&self) -> bool {
        ["cursor", "wait"].iter().all(|name| self.input.pointer(&format!("/properties/{name}")).is_some())
    }

    /// What a call costs under a service's settings, in millionths of a US dollar; `None` for one that is not paid for by the call.
    #[must_use]
    pub fn price_under(&self, settings: &ServiceSettings) -> Option<u64> {
        let Price::PerCall { micros, .. } = self.price else { return None };
        Some(settings.price(self.name, micros))
    }

    /// Whether it may ask an upstream, and says so in its answer.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.output.pointer("/properties/live").is_some()
    }

    /// Defines an operation: its words, its argument type `P`, its result type `O` (for the schema; handlers may answer
    /// spliced bytes of the same shape) and its handler.
    pub fn define<P, O, H, F>(words: Words, handler: H) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        O: JsonSchema,
        H: Fn(Call, P) -> F + Send + Sync + Clone + 'static,
        F: Future<Output = Result<Answer, Problem>> + Send + 'static,
    {
        let Words { name, method, path, summary, description, price, tool, counted, list, errors, example, aliases } = words;
        let run = Arc::new(move |call: Call, arguments: Value| -> Answering {
            let handler = handler.clone();
            Box::pin(async move {
                let arguments: P =
                    serde_json::from_value(arguments).map_err(|error| Problem::new(ErrorCode::ParameterInvalid, error.to_string()))?;
                handler(call, arguments).await
            })
        });
        let (input, output) = (crate::schema::input::<P>(), crate::schema::output::<O>());
        Self { name, method, path, summary, description, price, tool, counted, list, errors, example, input, output, aliases, run }
    }
}

/// One service: what it is for, and its operations in order.
pub struct Service {
    /// Its name: path prefix, configuration key, view.
    pub name: &'static str,
    /// What it is called for people.
    pub title: &'static str,
    /// What it is for, in a few sentences.
    pub about: &'static str,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// What it serves beside them, by path: pages and files; `None` if nothing.
    pub files: Option<Files>,
}

/// A page or file of a service.
#[derive(Clone, Debug)]
pub struct File {
    /// Its bytes.
    pub bytes: Bytes,
    /// Its content type.
    pub content_type: &'static str,
    /// Whether nothing else will ever stand at its address.
    pub lasts: bool,
    /// The content security policy of a page; empty for none.
    pub policy: &'static str,
}

/// Finds what stands at a path below the service's base address, without its first slash; `None` for nothing.
pub type Files = fn(Arc<Context>, String) -> Pin<Box<dyn Future<Output = Result<Option<File>, Problem>> + Send>>;

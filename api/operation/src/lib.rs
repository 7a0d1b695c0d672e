//! The definition of an operation: its name, route, types, price and errors, the problem documents it returns, and what its handler receives.
//!
//! Each operation is defined once, in the crate of the services; every surface renders that definition. This crate depends on no service and no
//! surface.

pub mod call_times;
pub mod context;
pub mod document_receipt;
pub mod feed_start;
mod file_body;
pub mod known_values;
pub mod metrics;
mod price;
pub mod problem;
pub mod redaction;
pub mod schema;
pub mod secrets;
pub mod signing_state;
mod stream_body;
pub mod tiers;
pub mod tracking;

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
use texts::data_file::ShownFile;

use crate::context::{Context, ServiceSettings};
pub use crate::file_body::FileBody;
pub use crate::price::Price;
use crate::problem::Problem;
use crate::schema::NamedSchema;
pub use crate::stream_body::{PieceSender, StreamBody, StreamPieces};

/// How long a long poll of a durable stream waits for changes, in seconds.
pub const DURABLE_STREAM_WAIT_S: u64 = 20;

/// HTTP methods that operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads a resource.
    Get,
    /// Creates a resource, or starts an action.
    Post,
    /// Changes a resource.
    Patch,
    /// Deletes a resource.
    Delete,
}

impl Method {
    /// The name: `GET`, `POST`, `PATCH` or `DELETE`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether arguments are sent in a body.
    #[must_use]
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Patch)
    }
}

/// The surfaces that offer an operation. A route and a tool that differ, in their price for example, are two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// A route and an MCP tool.
    Both,
    /// A route only.
    Route,
    /// An MCP tool only. The operation has no path.
    Tool,
}

impl Surface {
    /// Whether REST offers the operation as a route.
    #[must_use]
    pub fn has_route(self) -> bool {
        matches!(self, Self::Both | Self::Route)
    }

    /// Whether MCP offers the operation as a tool.
    #[must_use]
    pub fn has_tool(self) -> bool {
        matches!(self, Self::Both | Self::Tool)
    }
}

/// The stage of a paid call that a handler runs for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The caller does not need to pay.
    #[default]
    Whole,
    /// The free preview that is shown with the payment terms.
    Preview,
    /// The sale itself: a read returns its normal answer; a write returns [`Body::Effect`] and has no effect yet.
    Order {
        /// The id of the payment.
        payment: String,
        /// The paying address, in lower case.
        payer: String,
    },
    /// The payment with this id is claimed, but not settled: a write checks whether it can still take effect. An error that must not be retried ends
    /// the sale without settlement. Reads do not run at this stage.
    Claimed(String),
    /// The payment is settled: a write returns the result of its effect, under the id of the payment.
    Paid(String),
}

/// The caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The tier of the key; anonymous without a key.
    pub tier: Tier,
    /// Id of the key; empty without a key.
    pub key_id: String,
    /// Id of the account; empty without a key.
    pub account: String,
    /// The caller's IP address, as far as trusted proxies report it.
    pub address: IpAddr,
}

impl Caller {
    /// The tier of the caller in the words of a refusal.
    #[must_use]
    pub fn tier_remark(&self) -> String {
        match self.tier {
            Tier::Anonymous => "this call has no key".to_owned(),
            tier => format!("this key has the tier {}", tier.as_str()),
        }
    }
}

/// The requested form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A JSON object.
    #[default]
    Json,
    /// NDJSON: list operations may return [`Body::Lines`].
    Lines,
    /// Server-sent events: feeds return [`Body::Events`].
    Events,
    /// An Atom document: feeds return [`Body::Events`].
    Atom,
}

impl Form {
    /// The name used in ETags.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Lines => "ndjson",
            Self::Events => "events",
            // Increase the number when the same changes make another document.
            Self::Atom => "atom-3",
        }
    }

    /// Whether feeds return [`Body::Events`].
    #[must_use]
    pub fn has_events(self) -> bool {
        matches!(self, Self::Events | Self::Atom)
    }
}

/// An item of a feed with its position, for server-sent events and Atom documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The cursor after the item.
    pub id: String,
    /// The item as JSON, in one line.
    pub data: Bytes,
}

/// One call, from any surface. Arguments are validated against the input schema before the handler runs.
#[derive(Clone)]
pub struct Call {
    /// The shared context.
    pub context: Arc<Context>,
    /// The caller.
    pub caller: Caller,
    /// The requested form of the answer.
    pub form: Form,
    /// `Idempotency-Key`, if given.
    pub idempotency_key: Option<String>,
    /// The stage that the handler runs for. Other values than `Whole` occur only for operations that are paid per call.
    pub stage: Stage,
    /// `X-Watch-Token`, if given.
    pub watch_token: Option<String>,
    /// `If-None-Match`, if given: a handler that computes its ETag before the body can return [`Body::NotModified`].
    pub if_none_match: Option<String>,
}

/// The body of an answer.
#[derive(Clone, Debug)]
pub enum Body {
    /// A JSON value.
    Json(Value),
    /// JSON text in pieces that are sent one after another without joining or parsing them (spliced pages).
    Parts(Vec<Bytes>),
    /// Items of a list as NDJSON.
    Lines {
        /// The lines, without line ends.
        items: Vec<Bytes>,
        /// Of a page with the last changes of a feed: the cursor at which the page before it ends; `None` if there is none.
        older: Option<String>,
        /// What to know about the answer; `None` if there is nothing.
        note: Option<String>,
    },
    /// Items of a feed, each with its position.
    Events {
        /// The cursor before the first item: reading after it gives the items again.
        from: String,
        /// Of a page with the last changes: the cursor at which the page before it ends; `None` if there is none.
        older: Option<String>,
        /// The items, each with the cursor after it.
        items: Vec<Event>,
        /// When the last change up to the end of the page was recorded, RFC 3339 in UTC: the time of an Atom document without items. `None` in other forms,
        /// and before the first change.
        updated: Option<String>,
        /// What to know about the answer; `None` if there is nothing.
        note: Option<String>,
    },
    /// The caller already has the current body.
    NotModified,
    /// The command that a write will append once it is paid for, as JSON.
    Effect(String),
    /// A file that is sent whole or in part.
    File(FileBody),
    /// A file that is made while it is sent.
    Stream(StreamBody),
}

impl Body {
    /// The value of a JSON body; `None` for a body of another kind, or one that cannot be parsed.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        match self {
            Self::Json(value) => Some(value),
            Self::Parts(parts) => serde_json::from_slice(&parts.concat()).ok(),
            _ => None,
        }
    }
}

/// The result of a handler.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The body.
    pub body: Body,
    /// A strong ETag in quotes, made from position, parameters and tier; empty if there is none.
    pub etag: String,
    /// The next cursor, for the header `Next-Cursor` of NDJSON answers; empty if there is none.
    pub next_cursor: String,
    /// Whether the answer is a page of a feed that more changes follow. From the same position, such a page never gets further changes.
    pub has_more: bool,
    /// 200, or 201 for a POST that created something.
    pub status: u16,
}

impl Answer {
    /// An answer with a JSON value and status 200.
    ///
    /// # Errors
    /// `internal` when the value cannot be encoded as JSON.
    pub fn json<T: Serialize>(value: &T) -> Result<Self, Problem> {
        let value = serde_json::to_value(value).map_err(|error| {
            tracing::error!(%error, "an answer cannot be encoded as JSON");
            Problem::new(ErrorCode::Internal, "the answer could not be encoded")
        })?;
        Ok(Self { body: Body::Json(value), etag: String::new(), next_cursor: String::new(), has_more: false, status: 200 })
    }
}

/// The future of a handler.
pub type AnswerFuture = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send>>;

/// An operation.
#[derive(Clone)]
pub struct Operation {
    /// The name: also the MCP tool's name and the OpenAPI `operationId`. Unique among the routes of a service, and among its tools.
    pub name: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below the service's base URL, with `{name}` for path parameters; empty for a tool without a route.
    pub path: &'static str,
    /// What the operation does, in one sentence.
    pub summary: &'static str,
    /// When an agent uses the operation, in one sentence. With the summary it is the whole description of the MCP tool.
    pub when: &'static str,
    /// Details: limits, order, what is left out. Markdown.
    pub description: &'static str,
    /// Who may call the operation, and what a call costs.
    pub price: Price,
    /// The surfaces that offer the operation.
    pub surface: Surface,
    /// Whether MCP offers the operation as an action of the tool `manage`, and not as a tool of its own.
    pub is_managed: bool,
    /// Whether the operation reads the header `X-Watch-Token`, which opens a watch without a key.
    pub takes_watch_token: bool,
    /// Whether calls count against the quota.
    pub counted: bool,
    /// For list operations: the field of the result that holds the list (also available as NDJSON, CSV and Parquet); empty for others.
    pub list: &'static str,
    /// Errors of the operation, in addition to those that every operation may return.
    pub errors: &'static [ErrorCode],
    /// Example arguments that give an answer.
    pub example: Value,
    /// JSON Schema of the arguments (an object, draft 2020-12, no references).
    pub input: Value,
    /// JSON Schema of the result (an object), without references.
    pub output: Value,
    /// JSON Schema of the result with references to named types.
    pub named_output: NamedSchema,
    /// The media types of the answer if it is a file, each with whether it is text; empty if the answer is JSON.
    pub files: &'static [(&'static str, bool)],
    /// Whether the answer is a file that is made while it is sent, and thus not sent in parts: [`Body::Stream`].
    pub is_streamed: bool,
    /// Other names of parameters: (alias, name).
    pub aliases: &'static [(&'static str, &'static str)],
    /// The argument of a query that names what is sold, for an operation that sells several things; empty for others. An unpaid call with an unknown value
    /// is refused, and gets no payment terms: they would be for something else.
    pub sold_by: &'static str,
    /// What a call costs by the value of that argument, in millionths of a US dollar, unless `[prices]` sets another price under that value. Of a value that
    /// is not named it is the price of the operation.
    pub sold_prices: &'static [(&'static str, u64)],
    /// Whether the operation is read by the Durable Streams protocol. Its answers are [`Body::Events`], and their `next_cursor` is the next offset.
    pub is_durable_stream: bool,
    /// The handler. It receives validated arguments.
    pub run: Arc<dyn Fn(Call, Value) -> AnswerFuture + Send + Sync>,
}

/// The parts of an operation's definition other than its types and handler.
pub struct Definition {
    /// See [`Operation::name`].
    pub name: &'static str,
    /// See [`Operation::method`].
    pub method: Method,
    /// See [`Operation::path`].
    pub path: &'static str,
    /// See [`Operation::summary`].
    pub summary: &'static str,
    /// See [`Operation::when`]. Empty for operations that are not tools.
    pub when: &'static str,
    /// See [`Operation::description`].
    pub description: &'static str,
    /// See [`Operation::price`].
    pub price: Price,
    /// See [`Operation::surface`].
    pub surface: Surface,
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

impl Definition {
    /// A free `GET` operation with `asOf`, which MCP offers as a tool and whose calls count. Its name, path and texts are still empty.
    #[must_use]
    pub fn read() -> Self {
        Self {
            name: "",
            method: Method::Get,
            path: "",
            summary: "",
            when: "",
            description: "",
            price: Price::Free,
            surface: Surface::Both,
            counted: true,
            list: "",
            errors: &[ErrorCode::AsOfInvalid],
            example: Value::Null,
            aliases: &[],
        }
    }
}

impl Operation {
    /// The operation, made an action of the MCP tool `manage`: for what accounts set up, which agents seldom use.
    #[must_use]
    pub fn managed(self) -> Self {
        Self { surface: Surface::Route, is_managed: true, ..self }
    }

    /// The operation, made to read the header `X-Watch-Token`.
    #[must_use]
    pub fn with_watch_token(self) -> Self {
        Self { takes_watch_token: true, ..self }
    }

    /// The operation, made to sell what an argument names: see [`Operation::sold_by`] and [`Operation::sold_prices`].
    #[must_use]
    pub fn sold_by(self, argument: &'static str, prices: &'static [(&'static str, u64)]) -> Self {
        Self { sold_by: argument, sold_prices: prices, ..self }
    }

    /// Whether an unpaid call is refused for a problem of its arguments, without the payment terms.
    #[must_use]
    pub fn refuses_unpaid(&self, problem: &Problem) -> bool {
        !matches!(self.price, Price::PerCall { .. }) || (!self.sold_by.is_empty() && problem.parameter == self.sold_by)
    }

    /// The operation, made to answer with a file of one of these media types, each with whether it is text.
    #[must_use]
    pub fn with_files(self, files: &'static [(&'static str, bool)]) -> Self {
        Self { files, ..self }
    }

    /// The operation, made to answer with a file of one of these media types that is made while it is sent.
    #[must_use]
    pub fn with_streams(self, files: &'static [(&'static str, bool)]) -> Self {
        Self { files, is_streamed: true, ..self }
    }

    /// Whether the operation is a feed: it takes a cursor and can wait for changes.
    #[must_use]
    pub fn is_feed(&self) -> bool {
        self.input.get("properties").is_some_and(|properties| ["cursor", "wait"].iter().all(|name| properties.get(name).is_some()))
    }

    /// The operation, made a durable stream: see [`Operation::is_durable_stream`].
    #[must_use]
    pub fn as_durable_stream(self) -> Self {
        Self { is_durable_stream: true, ..self }
    }

    /// The longest time that a call with these arguments waits for changes, in seconds.
    #[must_use]
    pub fn wait_s(&self, arguments: &Value) -> u64 {
        if self.is_durable_stream {
            return if arguments.get("live").is_some_and(|live| live == "long-poll") { DURABLE_STREAM_WAIT_S } else { 0 };
        }
        arguments.get("wait").and_then(Value::as_u64).unwrap_or(0)
    }

    /// The path of the feed as an Atom document; `None` if the operation is no feed with a route.
    #[must_use]
    pub fn atom_path(&self) -> Option<String> {
        (self.is_feed() && self.has_route() && self.method == Method::Get).then(|| format!("{}.atom", self.path))
    }

    /// The price of a call under the settings of a service, in millionths of a US dollar; `None` if the operation is not paid per call.
    #[must_use]
    pub fn price_micros(&self, settings: &ServiceSettings) -> Option<u64> {
        let Price::PerCall { micros, .. } = self.price else { return None };
        Some(settings.prices.get(self.name).copied().unwrap_or(micros))
    }

    /// The values of [`Self::sold_by`] that have a price of their own, each with that price in millionths of a US dollar.
    pub fn prices_of_sold(&self, settings: &ServiceSettings) -> impl Iterator<Item = (&'static str, u64)> + Clone {
        self.sold_prices.iter().map(move |(name, micros)| (*name, settings.prices.get(*name).copied().unwrap_or(*micros)))
    }

    /// The price of a call with this value of [`Self::sold_by`], see [`Self::price_micros`].
    #[must_use]
    pub fn price_of(&self, settings: &ServiceSettings, sold: Option<&str>) -> Option<u64> {
        match self.prices_of_sold(settings).find(|(name, _)| sold == Some(*name)) {
            Some((_, micros)) => Some(micros),
            None => self.price_micros(settings),
        }
    }

    /// Whether REST offers the operation as a route.
    #[must_use]
    pub fn has_route(&self) -> bool {
        self.surface.has_route()
    }

    /// Whether MCP offers the operation as a tool.
    #[must_use]
    pub fn has_tool(&self) -> bool {
        self.surface.has_tool()
    }

    /// Whether the operation may look data up at an upstream. Its answer then has the field `live`.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.output.pointer("/properties/live").is_some()
    }

    /// Defines an operation from its definition, its argument type `P`, its result type `O` (for the schema; handlers may return spliced bytes of the
    /// same shape) and its handler.
    pub fn define<P, O, H, F>(definition: Definition, handler: H) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        O: JsonSchema,
        H: Fn(Call, P) -> F + Send + Sync + Clone + 'static,
        F: Future<Output = Result<Answer, Problem>> + Send + 'static,
    {
        let Definition { name, method, path, summary, when, description, price, surface, counted, list, errors, example, aliases } =
            definition;
        let run = Arc::new(move |call: Call, arguments: Value| -> AnswerFuture {
            let handler = handler.clone();
            Box::pin(async move {
                let arguments: P =
                    serde_json::from_value(arguments).map_err(|error| Problem::new(ErrorCode::ParameterInvalid, error.to_string()))?;
                handler(call, arguments).await
            })
        });
        let (input, output, named_output) = (schema::input::<P>(), schema::output::<O>(), schema::named_output::<O>());
        Self {
            name,
            method,
            path,
            summary,
            when,
            description,
            price,
            surface,
            is_managed: false,
            takes_watch_token: false,
            counted,
            list,
            errors,
            example,
            input,
            output,
            named_output,
            files: &[],
            is_streamed: false,
            aliases,
            sold_by: "",
            sold_prices: &[],
            is_durable_stream: false,
            run,
        }
    }
}

/// A service and its operations.
#[derive(Clone)]
pub struct Service {
    /// The name: path prefix, configuration key and view.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// What the service offers, in a few sentences.
    pub about: &'static str,
    /// The operations, in the order of the documentation.
    pub operations: Vec<Operation>,
    /// Other pages and files of the service, by path; `None` if there are none.
    pub files: Option<Files>,
    /// The data files that the service's rules use, which the reference page shows.
    pub data: Vec<ShownFile>,
    /// How pages for browsers show its records.
    pub page: RecordPage,
    /// Which entities its records name.
    pub entities: &'static [EntityLink],
}

/// An entity that a record names: a company, an institution or a contractor, which an operation shows as all services know it.
#[derive(Clone, Copy, Debug)]
pub struct EntityLink {
    /// The name of the operation that shows the entity.
    pub kind: &'static str,
    /// The arguments of that operation, each with the field of the record that has its value. A record whose first field is empty names no such entity;
    /// other empty fields are left out.
    pub arguments: &'static [(&'static str, &'static str)],
}

/// How the pages for browsers show the records of a service, and how Atom entries name them. Everything that is not said here follows from the operations
/// and their schemas. Fields are named as in answers; a dot leads into an object: `body.action`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordPage {
    /// The operation that lists current records to a caller without a key, and without required arguments; empty if there is none. The explorer then
    /// lists changes.
    pub list: &'static str,
    /// The fields of that operation's answer that hold the records.
    pub rows: &'static [&'static str],
    /// The fields that can name a record. The first one that is not empty is its title.
    pub title: &'static [&'static str],
    /// What follows the title where a record is named outside of a table: fields, each with the words before it. Empty fields are left out.
    pub detail: &'static [(&'static str, &'static str)],
    /// The fields that are columns of tables and come first on the page of a record, in this order.
    pub columns: &'static [&'static str],
    /// The field by whose values the explorer counts changes; empty for none.
    pub facet: &'static str,
    /// The arguments that take the words of a search, the one that most visitors mean first: of `list`, or of the filtered feed if `list` is empty or takes
    /// none of them. Empty if no words find records.
    pub searches: &'static [&'static str],
    /// Arguments of the same operation that take words as well, for which there is no index: a search over all services tries them only if nothing else
    /// finds the words.
    pub slow_searches: &'static [&'static str],
    /// Further free operations that find records by words, each with its argument for them.
    pub lookups: &'static [(&'static str, &'static str)],
}

impl RecordPage {
    /// Says nothing: a service states what differs.
    pub const EMPTY: Self =
        Self { list: "", rows: &[], title: &[], detail: &[], columns: &[], facet: "", searches: &[], slow_searches: &[], lookups: &[] };
}

/// A page or file of a service.
#[derive(Clone, Debug)]
pub struct File {
    /// The content.
    pub bytes: Bytes,
    /// The content type.
    pub content_type: &'static str,
    /// Whether the content at this URL never changes.
    pub is_immutable: bool,
    /// The content security policy of a page; empty for none.
    pub policy: &'static str,
}

/// Finds the page or file at a path below the service's base URL, without the first slash; `None` if there is none.
pub type Files = Arc<dyn Fn(Arc<Context>, String) -> Pin<Box<dyn Future<Output = Result<Option<File>, Problem>> + Send>> + Send + Sync>;

//! The shell of the operation that gives a service's changes under a filter, from a cursor on. Its arguments are those of every feed, the fields of the
//! service's filter and the name of a saved filter.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use feed::filter::Filter;
use feed::page::PageInfo;
use feed::page_request::FilteredPageRequest;
use feed::query::Query;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use schemas::error_code::ErrorCode;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::filters::merged;
use super::read::{filter_properties, properties_of, read_filter};

/// What documents say about the operation in most services. A service adds a summary, when an agent uses it, and an example.
#[must_use]
pub fn definition() -> Definition {
    Definition {
        name: "whats_changed_since",
        path: "/v1/whats_changed_since",
        description: "Keep the `cursor` of each answer and send it with the next call: every matching change comes exactly once. A cursor \
            belongs to its filter. With another filter it is refused with `filter-changed`; with `rebase=true` the answers first list what \
            the new filter adds and removes. A page may be shorter than `limit`, or empty, while `hasMore` is true. With `start=newest` a page \
            ends at `cursor`, if it is given: the `older` of the page after it.",
        ..Definition::read()
    }
}

/// The operation of one service, with what documents say about it.
#[must_use]
pub fn operation<S: WatchableFeed>(definition: Definition) -> Operation {
    let definition = Definition {
        list: S::FEED.list,
        errors: &[ErrorCode::CursorInvalid, ErrorCode::FilterChanged, ErrorCode::AsOfInvalid, ErrorCode::TierTooLow, ErrorCode::NotFound],
        ..definition
    };
    let fields: Arc<[String]> = filter_properties::<S>(&mut SchemaGenerator::default()).into_iter().map(|(name, _)| name).collect();
    Operation::define::<Arguments<S>, Page<S>, _, _>(definition, move |call, arguments| answer::<S>(call, arguments, Arc::clone(&fields)))
}

async fn answer<S: WatchableFeed>(call: Call, arguments: Arguments<S>, fields: Arc<[String]>) -> Result<Answer, Problem> {
    let (given, asked): (Map<String, Value>, Map<String, Value>) = arguments.all.into_iter().partition(|(name, _)| fields.contains(name));
    let SharedArguments { request, filter } = serde_json::from_value(Value::Object(asked)).map_err(unreadable)?;
    let given = read_filter::<S>(given).map_err(unreadable)?;
    let given = given.normalize()?;
    // A cursor stays valid whatever becomes of what its filter names.
    if request.page.cursor.is_none() {
        S::check(&call.context, &given).await?;
    }
    let (filter, note) = merged::<S>(&call, filter.as_deref(), given).await?;
    S::FEED.answer(&call, Query { request, filter, notes: note.into_iter().collect() }, S::Shown::from).await
}

/// Arguments that passed the schema and cannot be read all the same.
fn unreadable(error: serde_json::Error) -> Problem {
    Problem::new(ErrorCode::ParameterInvalid, error.to_string())
}

/// The arguments that the operation has in every service.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SharedArguments {
    /// Where the feed starts or continues, and what each change includes.
    #[serde(flatten)]
    request: FilteredPageRequest,
    /// The name of a saved filter. Parameters of the request replace those of the filter.
    #[schemars(length(min = 1, max = 100))]
    filter: Option<String>,
}

/// The arguments of the operation, not yet read.
#[derive(Deserialize)]
#[serde(transparent, bound = "")]
struct Arguments<S> {
    all: Map<String, Value>,
    #[serde(skip)]
    service: PhantomData<S>,
}

impl<S: WatchableFeed> JsonSchema for Arguments<S> {
    fn schema_name() -> Cow<'static, str> {
        "Arguments".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = SharedArguments::json_schema(generator);
        properties_of(&mut schema).extend(filter_properties::<S>(generator));
        schema
    }
}

/// A page of changes.
struct Page<S>(PhantomData<S>);

impl<S: WatchableFeed> JsonSchema for Page<S> {
    fn schema_name() -> Cow<'static, str> {
        "Page".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = S::FEED.list;
        let items = generator.subschema_for::<S::Shown>();
        let mut schema = PageInfo::json_schema(generator);
        let changes = json_schema!({ "type": "array", "items": items, "description": "The changes, oldest first." });
        properties_of(&mut schema).insert(list.to_owned(), changes.to_value());
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.insert(0, list.into());
        }
        schema.insert("description".to_owned(), "A page of changes.".into());
        schema
    }
}

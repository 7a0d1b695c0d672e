//! The shell of an operation that reads a service at one position, such as a search, a digest or the view of one company. A service states which
//! filter fields the operation takes, its further arguments and how records become an answer. The shell declares the shared arguments (`asOf`,
//! `limit`, `days`), checks the filter, finds the position and adds the notes.

mod arguments;
mod free_rows;
pub mod pages;
mod reader;

use std::borrow::Cow;

use feed::filter::Filter;
use feed::watchable::WatchableFeed;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use arguments::Arguments;
pub use arguments::{filter_properties, properties_of, read_filter};
pub use free_rows::{FreeRows, order_by_shown};
pub use pages::Extent;
pub use reader::{Completeness, NewRecords, Period, Reader, Search, Searched, UpstreamRecords, Window, filled};

/// The filter of a service.
pub type FilterOf<S> = <S as WatchableFeed>::Filter;
/// The record of a service.
pub type RecordOf<S> = <FilterOf<S> as Filter>::Record;

/// An operation that reads a service at one position. The type holds the arguments that only this operation has.
pub trait Read: DeserializeOwned + JsonSchema + Send + 'static {
    /// The service.
    type Service: WatchableFeed;
    /// The answer without its note, which the shell adds.
    type Answer: Serialize + JsonSchema;

    /// The fields of the service's filter that are arguments of the operation.
    const FILTER: &'static [&'static str] = &[];
    /// The default of the argument `limit`; `None` if the operation has no such argument.
    const LIMIT: Option<usize> = None;
    /// Whether the operation has the argument `days`.
    const HAS_DAYS: bool = false;
    /// Whether the operation has the argument `after`, which continues an answer that is cut.
    const HAS_PAGES: bool = false;

    /// What the operation is called, and what documents say about it.
    fn definition() -> Definition;

    /// The filter that the arguments ask for.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the parameter.
    fn filter(&self, given: FilterOf<Self::Service>) -> Result<FilterOf<Self::Service>, Problem> {
        given.normalize()
    }

    /// The free preview that an unpaid call of a paid read gets with the payment terms; none by default.
    fn preview(
        self,
        _filter: FilterOf<Self::Service>,
        _reader: &mut Reader<Self::Service>,
    ) -> impl Future<Output = Result<Option<Value>, Problem>> + Send {
        std::future::ready(Ok(None))
    }

    /// Answers a call.
    fn answer(
        self,
        filter: FilterOf<Self::Service>,
        reader: &mut Reader<Self::Service>,
    ) -> impl Future<Output = Result<Self::Answer, Problem>> + Send;
}

/// The operation of a read.
///
/// # Panics
/// When [`Read::FILTER`] names a field that the filter does not have.
#[must_use]
pub fn operation<T: Read>() -> Operation {
    let fields = filter_properties::<T::Service>(&mut SchemaGenerator::default());
    let unknown = T::FILTER.iter().find(|name| !fields.contains_key(**name));
    assert_eq!(unknown, None, "a filter field of {} is unknown", T::definition().name);
    Operation::define::<Arguments<T>, Noted<T::Answer>, _, _>(T::definition(), answer::<T>)
}

async fn answer<T: Read>(call: Call, arguments: Arguments<T>) -> Result<Answer, Problem> {
    let Arguments { own, filter, shared, fingerprint } = arguments;
    let filter = own.filter(filter)?;
    let mut reader = Reader::new(call, shared, T::LIMIT, &format!("{}/{fingerprint}", T::definition().name)).await?;
    if reader.is_preview() {
        return Answer::json(&own.preview(filter, &mut reader).await?);
    }
    let answer = own.answer(filter, &mut reader).await?;
    Answer::json(&Noted { answer, note: reader.into_note() })
}

/// An answer with its note.
#[derive(Serialize)]
struct Noted<A> {
    #[serde(flatten)]
    answer: A,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl<A: JsonSchema> JsonSchema for Noted<A> {
    fn schema_name() -> Cow<'static, str> {
        A::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = A::json_schema(generator);
        let note = json_schema!({ "type": ["string", "null"], "description": "What to know about the answer: limits that apply to it, and upstreams that did not answer." });
        properties_of(&mut schema).insert("note".to_owned(), note.to_value());
        schema
    }
}

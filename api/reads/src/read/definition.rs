//! The trait of an operation that reads a service at one position.

use feed::filter::Filter;
use feed::watchable::WatchableFeed;
use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::difference::Difference;
use super::reader::Reader;
use super::row_texts::RowTexts;
use super::shared::FilterOf;

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
    /// How arguments of the type differ on the surface of this operation from what the type says of them.
    const DIFFERENCES: &'static [Difference] = &[];

    /// What the operation is called, and what documents say about it.
    fn definition() -> Definition;

    /// The filter that the arguments ask for.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the parameter.
    fn filter(&self, given: FilterOf<Self::Service>) -> Result<FilterOf<Self::Service>, Problem> {
        Filter::normalize(given)
    }

    /// The free preview that an unpaid call of a paid read gets with the payment terms; none by default.
    fn preview(
        self,
        _filter: FilterOf<Self::Service>,
        _reader: &mut Reader<Self::Service>,
    ) -> impl Future<Output = Result<Option<Value>, Problem>> + Send {
        std::future::ready(Ok(None))
    }

    /// Takes the rows of the answer's list out of it, if they are JSON text already; the field keeps an empty list. None by default.
    fn take_rows(_answer: &mut Self::Answer) -> Option<RowTexts> {
        None
    }

    /// Answers a call.
    fn answer(
        self,
        filter: FilterOf<Self::Service>,
        reader: &mut Reader<Self::Service>,
    ) -> impl Future<Output = Result<Self::Answer, Problem>> + Send;
}

/// A read whose tool differs from its route, which [`Read`] defines: in its definition (price, texts), its filter, what its arguments are called and default
/// to, or the fields of its answer. Where the answers differ in their rows, [`Reader::is_tool`] tells which one is wanted.
pub trait Tool: Read {
    /// The answer of the tool: that of the route, or the same with other fields.
    type ToolAnswer: From<Self::Answer> + Serialize + JsonSchema;

    /// The fields of the service's filter that are arguments of the tool.
    const TOOL_FILTER: &'static [&'static str] = Self::FILTER;
    /// How the arguments of the tool differ from what the type says of them.
    const TOOL_DIFFERENCES: &'static [Difference] = &[];
    /// What documents say of the arguments of the tool as a whole.
    const ABOUT_ARGUMENTS: &'static str;

    /// What the tool is called, and what documents say about it.
    fn tool() -> Definition;

    /// Takes the rows of the tool's answer out of it, see [`Read::take_rows`]. None by default.
    fn take_tool_rows(_answer: &mut Self::ToolAnswer) -> Option<RowTexts> {
        None
    }
}

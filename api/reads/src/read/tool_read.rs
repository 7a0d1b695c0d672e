//! The tool of a read that has a route as well, as a read of its own.

use std::borrow::Cow;

use operation::Definition;
use operation::problem::Problem;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::definition::{Read, Tool};
use super::difference::Difference;
use super::reader::Reader;
use super::row_texts::RowTexts;
use super::shared::FilterOf;

/// The tool of a read: it has the read's arguments, as the tool names them, and its answer with the fields of the tool.
pub(super) struct ToolOf<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ToolOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

impl<T: Tool> JsonSchema for ToolOf<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.insert("description".to_owned(), T::ABOUT_ARGUMENTS.into());
        schema
    }
}

impl<T: Tool> Read for ToolOf<T> {
    type Service = T::Service;
    type Answer = T::ToolAnswer;

    const FILTER: &'static [&'static str] = T::TOOL_FILTER;
    const LIMIT: Option<usize> = T::LIMIT;
    const HAS_DAYS: bool = T::HAS_DAYS;
    const HAS_PAGES: bool = T::HAS_PAGES;
    const DIFFERENCES: &'static [Difference] = T::TOOL_DIFFERENCES;

    fn definition() -> Definition {
        T::tool()
    }

    fn filter(&self, given: FilterOf<T::Service>) -> Result<FilterOf<T::Service>, Problem> {
        self.0.filter(given)
    }

    async fn preview(self, filter: FilterOf<T::Service>, reader: &mut Reader<T::Service>) -> Result<Option<Value>, Problem> {
        self.0.preview(filter, reader).await
    }

    fn take_rows(answer: &mut T::ToolAnswer) -> Option<RowTexts> {
        T::take_tool_rows(answer)
    }

    async fn answer(self, filter: FilterOf<T::Service>, reader: &mut Reader<T::Service>) -> Result<T::ToolAnswer, Problem> {
        self.0.answer(filter, reader).await.map(T::ToolAnswer::from)
    }
}

//! The shell of an operation that reads a service at one position, such as a search, a digest or the view of one company. A service states which
//! filter fields the operation takes, its further arguments and how records become an answer. The shell declares the shared arguments (`asOf`,
//! `limit`, `days`), checks the filter, finds the position and adds the notes.

mod arguments;
mod definition;
mod difference;
mod free_rows;
mod hidden_note;
mod leads_page;
mod new_records;
pub mod pages;
mod reader;
mod row_texts;
mod shared;
mod tool_read;
mod upstream_search;

use std::borrow::Cow;
use std::marker::PhantomData;

use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Operation};
use proofs::evidence::ARTIFACT_HASH;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use schemas::error_code::ErrorCode;
use serde_json::Value;

use arguments::Arguments;
pub use arguments::{filter_properties, properties_of, read_filter};
pub use definition::{Read, Tool};
pub use difference::Difference;
use difference::with_names;
pub use free_rows::{FreeRows, order_by_shown};
pub use hidden_note::hidden_note;
pub use leads_page::LeadsPage;
pub use new_records::NewRecords;
pub use pages::Extent;
pub use reader::{Completeness, Period, Reader, Window};
pub use row_texts::{RowTexts, text_around};
pub use shared::{FilterOf, RecordOf};
use tool_read::ToolOf;
pub use upstream_search::{Search, Searched, UpstreamRecords, filled};

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

/// The operation of the tool of a read, which differs from its route.
///
/// # Panics
/// When [`Tool::TOOL_FILTER`] names a field that the filter does not have.
#[must_use]
pub fn tool<T: Tool>() -> Operation {
    operation::<ToolOf<T>>()
}

/// Answers a call. A problem of an argument has the name that the argument has on the surface.
async fn answer<T: Read>(call: Call, arguments: Arguments<T>) -> Result<Answer, Problem> {
    run(call, arguments).await.map_err(|problem| with_names(T::DIFFERENCES, problem))
}

async fn run<T: Read>(call: Call, arguments: Arguments<T>) -> Result<Answer, Problem> {
    let Arguments { own, filter, shared, fingerprint } = arguments;
    let filter = own.filter(filter)?;
    let Definition { name, list, surface, .. } = T::definition();
    let mut reader = Reader::new(call, shared, T::LIMIT, &format!("{name}/{fingerprint}")).await?.on(surface, T::DIFFERENCES);
    if reader.is_preview() {
        let mut preview = own.preview(filter, &mut reader).await?;
        add_note(preview.as_mut(), reader.into_note(false));
        return Answer::json(&preview);
    }
    let form = reader.call().form;
    let (rows, mut answer) = {
        let mut answered = own.answer(filter.clone(), &mut reader).await?;
        (T::take_rows(&mut answered), Answer::json(&answered)?)
    };
    let Body::Json(body) = &mut answer.body else { return Err(Problem::new(ErrorCode::Internal, "the answer is not JSON")) };
    let count = rows.as_ref().map(RowTexts::count);
    reader.note_unknown(&filter, count.unwrap_or_default() == 0 && shows_nothing(body)).await?;
    let is_cut = is_cut(body, list, count, reader.rows_max());
    add_note(Some(&mut *body), reader.into_note(is_cut));
    if let Some(rows) = rows
        && let Value::Object(fields) = body.take()
    {
        answer.body = rows.body(fields, list, form)?;
    }
    Ok(answer)
}

/// Adds the note to an answer or a preview.
fn add_note(answer: Option<&mut Value>, note: Option<String>) {
    if let (Some(note), Some(fields)) = (note, answer.and_then(Value::as_object_mut)) {
        fields.insert("note".to_owned(), note.into());
    }
}

/// Whether an answer leaves out rows: it continues, it says so, or it has fewer rows than there are. One that says none of it may leave out rows if it
/// has as many as the tier allows. `count` is the number of rows, if they are not in the list.
fn is_cut(answer: &Value, list: &str, count: Option<usize>, rows_max: usize) -> bool {
    if let Some(next) = answer.get("next") {
        return !next.is_null();
    }
    if let Some(truncated) = answer.get("truncated").and_then(Value::as_bool) {
        return truncated;
    }
    let rows = count.or_else(|| answer.get(list).and_then(Value::as_array).map(Vec::len));
    match (answer.get("total").and_then(Value::as_u64), rows) {
        (Some(total), Some(rows)) => total > rows as u64,
        (None, Some(rows)) => rows >= rows_max,
        // Several lists, each of them limited.
        (_, None) => true,
    }
}

/// Whether every list of an answer is empty.
fn shows_nothing(answer: &Value) -> bool {
    let is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    answer.as_object().is_some_and(|fields| fields.values().all(is_empty))
}

/// The schema of an answer with its note.
struct Noted<A>(PhantomData<A>);

impl<A: JsonSchema> JsonSchema for Noted<A> {
    fn schema_name() -> Cow<'static, str> {
        A::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = A::json_schema(generator);
        // An answer that states its own hash is shown without its note, which is next to it.
        if properties_of(&mut schema).contains_key(ARTIFACT_HASH) {
            return schema;
        }
        let note = json_schema!({ "type": "string", "description": "What to know about the answer: limits that apply to it, values that nothing recorded has, and upstreams that did not answer. Left out if there is nothing to say." });
        properties_of(&mut schema).insert("note".to_owned(), note.to_value());
        schema
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that a note is a field of an object, and that without a note, or without an answer, nothing is added.
    #[test]
    fn notes_are_added() {
        let noted = |mut answer: Value, note: Option<&str>| {
            add_note(Some(&mut answer), note.map(str::to_owned));
            answer
        };
        assert_eq!(noted(json!({ "total": 3 }), Some("one")), json!({ "total": 3, "note": "one" }));
        assert_eq!(noted(json!({ "total": 3 }), None), json!({ "total": 3 }));
        assert_eq!(noted(Value::Null, Some("one")), Value::Null);
        add_note(None, Some("one".to_owned()));
    }

    /// Proves when an answer leaves out rows, by each sign that answers give.
    #[test]
    fn answers_that_leave_out_rows() {
        let rows = |count: usize| vec![json!({}); count];
        for (answer, expected) in [
            (json!({ "items": rows(25), "next": "x" }), true),
            (json!({ "items": rows(25), "next": null }), false),
            (json!({ "items": rows(3), "next": null, "total": 9 }), false),
            (json!({ "items": rows(25), "truncated": true }), true),
            (json!({ "items": rows(25), "truncated": false }), false),
            (json!({ "items": rows(25), "total": 26 }), true),
            (json!({ "items": rows(25), "total": 25 }), false),
            (json!({ "items": rows(25), "total": null }), true),
            (json!({ "items": rows(24) }), false),
            (json!({ "others": rows(1) }), true),
        ] {
            assert_eq!(is_cut(&answer, "items", None, 25), expected, "{answer}");
        }
        let without_rows = json!({ "items": [] });
        assert!(is_cut(&without_rows, "items", Some(25), 25) && !is_cut(&without_rows, "items", Some(24), 25));
    }
}

//! `GET /v1/records/{id}/sources`: which notices of upstreams a record is made of, which of its values each of them gave, and by which rule they were
//! merged. A service has it if it merges notices.
//!
//! Notices are stored as they are now, so only an answer about the current version of the record has them. It names no value that the record does not
//! show: a notice counts as the source of a field only if it has the value that the record has.

use std::collections::BTreeMap;

use feed::Source;
use feed::notes::notes;
use feed::position::{Position, position};
use feed::versions::version_at;
use futures_util::future::BoxFuture;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Addressed, etag_of_shown, json_of, missing, not_free, rendered, too_old};
use crate::numbers::{FindIds, id_at};

/// A notice of an upstream, with the values that it has for the fields of a record.
#[derive(Clone, Debug, Default)]
pub struct Notice {
    /// The number of the notice at its upstream.
    pub number: String,
    /// The stream in which it was published.
    pub stream: String,
    /// The page of the notice; empty if it has none.
    pub url: String,
    /// The values of the notice, by the names of the record's fields. A list gives the record some of its items.
    pub values: Map<String, Value>,
}

/// Finds the notices of a record at a position, in the order in which the rule takes values from them.
pub type FindNotices<R> = for<'a> fn(&'a Position, &'a R) -> BoxFuture<'a, Result<Vec<Notice>, Problem>>;

/// What an answer as of an earlier time says of notices, if the record has not changed since.
const SAME_VERSION: &str = "notices are those known now: some of them may have come after `asOf`, without changing the record";
/// What an answer as of an earlier time says of notices, if the record has changed since.
const EARLIER_VERSION: &str = "the record has changed since `asOf`, and notices are known for its current version only";

/// Arguments of `record_sources`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    /// The `id` of the record, as answers show it, or a number by which people know it. Percent-encode it in a path: `/` is `%2F`.
    #[schemars(length(min = 1, max = 500))]
    id: String,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    as_of: Option<String>,
}

/// A notice from which a record is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RecordNotice")]
struct RecordNotice {
    /// The number of the notice at its upstream.
    number: String,
    /// The stream in which it was published.
    stream: String,
    /// The page of the notice; empty if it has none.
    url: String,
    /// The fields of the record whose values, or items of lists, are from this notice, sorted; empty if other notices gave all that it states.
    fields: Vec<String>,
}

/// The notices from which a record is made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "RecordSources")]
struct RecordSources {
    /// The id of the record.
    id: String,
    /// The number of the change that made this version of the record.
    seq: Seq,
    /// The rule by which notices become one record, and by which the record takes its values from them.
    rule: &'static str,
    /// The notices, in the order in which the rule takes values from them.
    notices: Vec<RecordNotice>,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The operation of one service, whose records are `R`. `rule` says how notices are merged; `find_ids` finds records by their numbers.
#[must_use]
pub fn operation<R: Addressed>(source: Source, rule: &'static str, find_ids: FindIds, find_notices: FindNotices<R>) -> Operation {
    let words = Definition {
        name: "record_sources",
        path: "/v1/records/{id}/sources",
        summary: "The notices of upstreams that a record is made of, and which of its values each of them gave.",
        description: "`record_history` says since when the record has each value. A value that is computed from several notices, such as a sum, has no \
            notice. Notices are known for the current version of the record: with `asOf`, an answer about an earlier version has none and says so in \
            `note`.",
        surface: Surface::Route,
        errors: &[ErrorCode::AsOfInvalid, ErrorCode::NotFound, ErrorCode::TierTooLow],
        price: source.price_of_records(),
        example: json!({ "id": "ID" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, RecordSources, _, _>(words, move |call, arguments| {
        answer::<R>((source, rule), find_ids, find_notices, call, arguments)
    })
}

async fn answer<R: Addressed>(
    (source, rule): (Source, &'static str),
    find_ids: FindIds,
    find_notices: FindNotices<R>,
    call: Call,
    arguments: Arguments,
) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let Arguments { id, as_of } = arguments;
    let redaction = source.redaction_for(&call);
    let at = position(ctx, &source, as_of.as_deref()).await?;
    let mut notes = notes(&call, &source, &at).await?;
    let id = id_at::<R>(&call, &source, find_ids, &at, id).await?;
    let change = version_at::<R>(ctx, &source, &at, &id).await?.ok_or_else(|| missing(redaction, as_of.is_some()))?;
    if let Some(redaction) = redaction {
        return Err(not_free(redaction));
    }
    if change.seq <= notes.after {
        return Err(too_old(source));
    }
    let last = Position { seq: at.last, ..at.clone() };
    let is_current = at.is_latest() || version_at::<R>(ctx, &source, &last, &id).await?.is_some_and(|last| last.seq == change.seq);
    if as_of.is_some() {
        notes.add(Some(if is_current { SAME_VERSION } else { EARLIER_VERSION }.to_owned()));
    }
    let notices = if is_current { find_notices(&at, &change.record).await? } else { Vec::new() };
    let notices = attributed(&json_of(&change.record)?, notices);
    let count = notices.len();
    let answer = RecordSources { id, seq: change.seq, rule, notices, note: notes.note(false) };
    let shown = match json_of(&answer)? {
        Value::Object(shown) => shown,
        _ => Map::new(),
    };
    rendered(&call, source, etag_of_shown(&call, &at, &shown), count, || Ok(Value::Object(shown)))
}

/// The notices with the fields that they gave: each field is of the first notice that has the record's value, and a list is of all notices that have some
/// of its items.
fn attributed(record: &Value, notices: Vec<Notice>) -> Vec<RecordNotice> {
    let mut fields: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (name, value) in record.as_object().into_iter().flatten().filter(|(_, value)| is_stated(value)) {
        let gives = |notice: &Notice| match (notice.values.get(name), value) {
            (Some(Value::Array(own)), Value::Array(items)) => own.iter().any(|item| items.contains(item)),
            (own, value) => own == Some(value),
        };
        let giving = notices.iter().enumerate().filter(|(_, notice)| gives(notice)).map(|(at, _)| at);
        let most = if value.is_array() { notices.len() } else { 1 };
        for at in giving.take(most) {
            fields.entry(at).or_default().push(name.clone());
        }
    }
    let shown = |(at, notice): (usize, Notice)| {
        let Notice { number, stream, url, .. } = notice;
        let mut fields = fields.remove(&at).unwrap_or_default();
        fields.sort_unstable();
        RecordNotice { number, stream, url, fields }
    };
    notices.into_iter().enumerate().map(shown).collect()
}

/// Whether a value says something.
fn is_stated(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use feed::testing::{HOUR_MS, SOURCE, START_MS, World, ask, value};
    use schemas::clock::rfc3339;
    use schemas::views::recalls::Recall;

    use super::*;
    use crate::numbers::no_ids;

    /// One notice, which has the title of the record.
    fn one_notice<'a>(_: &'a Position, recall: &'a Recall) -> BoxFuture<'a, Result<Vec<Notice>, Problem>> {
        let values = Map::from_iter([("title".to_owned(), json!(recall.title))]);
        Box::pin(std::future::ready(Ok(vec![Notice { number: "1".to_owned(), values, ..Notice::default() }])))
    }

    /// Proves that an answer as of an earlier time is about the version of that time: with the notices if the record has not changed since, and otherwise
    /// without them, and that it says which; and that a record that was not known yet is not found.
    #[tokio::test]
    async fn notices_as_of_a_time() {
        let mut world = World::new().await;
        let recall = |id: &str, title: &str| Recall {
            id: id.to_owned(),
            title: title.to_owned(),
            date: "2026-10-10".to_owned(),
            ..Recall::default()
        };
        world.change(START_MS, &recall("FDA:1", "Milk"));
        world.change(START_MS + 2 * HOUR_MS, &recall("FDA:1", "Oat milk"));
        world.change(START_MS + 4 * HOUR_MS, &recall("FDA:2", "Nuts"));
        world.commit().await;
        let ctx = world.context(START_MS + 5 * HOUR_MS);
        let operation = operation::<Recall>(SOURCE, "Rule.", no_ids, one_notice);
        let at = |hours: i64| json!({ "id": "FDA:1", "asOf": rfc3339(START_MS + hours * HOUR_MS) });
        for (arguments, seq, notices, note) in
            [(json!({ "id": "FDA:1" }), 2, 1, ""), (at(3), 2, 1, SAME_VERSION), (at(1), 1, 0, EARLIER_VERSION)]
        {
            let answer = value(&ctx, &operation, arguments).await;
            assert_eq!(answer["seq"], seq, "{answer}");
            assert_eq!(answer["notices"].as_array().unwrap().len(), notices, "{answer}");
            assert!(answer["note"].as_str().unwrap_or_default().contains(note), "{answer}");
        }
        assert_eq!(ask(&ctx, &operation, at(-1)).await.unwrap_err().code, ErrorCode::NotFound);
    }

    /// Proves that a field is of the first notice that has its value, a list of each notice that has some of its items, and that a value which no notice
    /// has, or which is hidden, is of none.
    #[test]
    fn fields_have_notices() {
        let notice = |number: &str, values: Value| Notice {
            number: number.to_owned(),
            values: values.as_object().cloned().unwrap_or_default(),
            ..Notice::default()
        };
        let notices = vec![
            notice("1", json!({ "title": "Lamps", "hazard": "", "urls": ["a", "x"], "pi": "Ann", "sum": 5 })),
            notice("2", json!({ "title": "Lamps", "hazard": "Fire", "urls": ["b"], "remedy": "Other" })),
            notice("3", json!({ "hazard": "Fire", "urls": ["c"] })),
        ];
        let record =
            json!({ "title": "Lamps", "hazard": "Fire", "remedy": "Refund", "urls": ["a", "b"], "pi": "", "sum": 12, "none": null });
        let found: Vec<(String, Vec<String>)> =
            attributed(&record, notices).into_iter().map(|notice| (notice.number, notice.fields)).collect();
        let notice_of = |number: &str, fields: &[&str]| (number.to_owned(), fields.iter().map(|field| (*field).to_owned()).collect());
        assert_eq!(found, [notice_of("1", &["title", "urls"]), notice_of("2", &["hazard", "urls"]), notice_of("3", &[])]);
    }
}

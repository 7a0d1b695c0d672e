//! `GET /v1/records/{id}` and `GET /v1/records/{id}/history`: one record of a service, and its versions. Every service has both, and one MCP tool for
//! both.
//!
//! Below the paid tiers they show what the lists of the service show there: nothing that is older than the free window, and of a service with a
//! redacted form that form, of the records that its lists show on the day of the answer. A redacted row has no id.

pub mod sources;

use std::borrow::Cow;

use feed::Source;
use feed::changes::Change;
use feed::etag::{etag, matches_etag};
use feed::filter::Element;
use feed::notes::notes;
use feed::position::{Position, position};
use feed::redaction::Redaction;
use feed::unseen_versions::hide_unseen;
use feed::versions::{Version, changed_fields, version_at, versions_of};
use operation::metrics;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Operation, Surface};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::numbers::{FindIds, id_at};
use super::read::properties_of;

/// The version of the form of the answers, part of the ETag. Increase it when the same version of a record is answered with other bytes.
const RENDERING: &str = "2";
/// How many versions an answer holds by default.
const VERSIONS_DEFAULT: usize = 50;
/// The errors of both operations.
const ERRORS: &[ErrorCode] = &[ErrorCode::AsOfInvalid, ErrorCode::NotFound, ErrorCode::TierTooLow];

/// A record that has an address.
pub trait Addressed: ChangeRecord + Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static {}
impl<R: ChangeRecord + Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static> Addressed for R {}

/// Arguments of `record_history`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HistoryArguments {
    /// The `id` of the record, as answers show it, or a number by which people know it. Percent-encode it in a path: `/` is `%2F`.
    #[schemars(length(min = 1, max = 500))]
    id: String,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    as_of: Option<String>,
    /// How many versions to return at most.
    #[serde(default = "versions_default")]
    #[schemars(range(min = 1, max = 200))]
    limit: usize,
    /// The `next` of an earlier answer, to get earlier versions.
    #[schemars(range(min = 1))]
    after: Option<Seq>,
}

/// Arguments of `record`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    /// The `id` of the record, as answers show it, or a number by which people know it. Percent-encode it in a path: `/` is `%2F`.
    #[schemars(length(min = 1, max = 500))]
    id: String,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    as_of: Option<String>,
    /// Whether to return the versions of the record, newest first, instead of the record.
    #[serde(default)]
    history: bool,
    /// How many versions to return at most, with `history`; by default 50.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
    /// The `next` of an earlier answer with `history`, to get earlier versions.
    #[schemars(range(min = 1))]
    after: Option<Seq>,
}

fn versions_default() -> usize {
    VERSIONS_DEFAULT
}

/// A record as it is, or as it was at the time of `asOf`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(bound = "R: JsonSchema + ChangeRecord", rename = "{R}Record")]
struct ShownRecord<R: ChangeRecord> {
    /// The id of the record.
    id: String,
    /// The change that made this version of the record, and the record.
    #[serde(flatten)]
    version: Change<R>,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A version of a record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(bound = "R: JsonSchema + ChangeRecord", rename = "{R}Version")]
struct ShownVersion<R: ChangeRecord> {
    /// The change that made the version, and the record after it.
    #[serde(flatten)]
    version: Change<R>,
    /// The fields of the record that differ from the version before; none for the first version.
    changed: Vec<String>,
}

/// The versions of a record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(bound = "R: JsonSchema + ChangeRecord", rename = "{R}History")]
struct History<R: ChangeRecord> {
    /// The id of the record.
    id: String,
    /// The versions, newest first.
    versions: Vec<ShownVersion<R>>,
    /// Send it as `after` to get earlier versions; null if there are none.
    next: Option<Seq>,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The answer of `record`: a record, or its versions. Only for the schema.
struct Either<R>(std::marker::PhantomData<R>);

impl<R: ChangeRecord + JsonSchema> JsonSchema for Either<R> {
    fn schema_name() -> Cow<'static, str> {
        "RecordOrHistory".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ShownRecord::<R>::json_schema(generator);
        let mut history = std::mem::take(properties_of(&mut History::<R>::json_schema(generator)));
        history.retain(|name, _| matches!(name.as_str(), "versions" | "next"));
        properties_of(&mut schema).extend(history);
        schema.insert("required".to_owned(), json!(["id"]));
        schema.insert("description".to_owned(), "A record; with `history`, its versions.".into());
        schema
    }
}

/// The operations of one service, whose records are `R`. `find_ids` finds records by their numbers.
#[must_use]
pub fn operations<R: Addressed>(source: Source, find_ids: FindIds) -> Vec<Operation> {
    let words = || Definition { errors: ERRORS, price: source.price_of_records(), example: json!({ "id": "ID" }), ..Definition::read() };
    let record = Definition {
        name: "record",
        path: "/v1/records/{id}",
        summary: "One record by its id, as it is or as it was at any time since it was recorded.",
        when: "Use it with the `id` of a record from another answer; with `history` to see how the record changed.",
        description: "The record has all its fields, with the change that made this version. With `history` the answer lists every version of the \
            record instead, newest first, with the names of the fields that changed.",
        ..words()
    };
    let history = Definition {
        name: "record_history",
        path: "/v1/records/{id}/history",
        summary: "Every version of one record, newest first, with the names of the fields that changed.",
        description: "`seq` and `recordedAt` say which change made a version, and when. With the `recordedAt` of a version as `asOf`, the other reads \
            answer as of that moment.",
        surface: Surface::Route,
        list: "versions",
        ..words()
    };
    let mut operations = vec![
        Operation::define::<Arguments, Either<R>, _, _>(record, move |call, arguments| answer::<R>(source, find_ids, call, arguments)),
        Operation::define::<HistoryArguments, History<R>, _, _>(history, move |call, arguments| {
            versions::<R>(source, find_ids, call, arguments)
        }),
    ];
    if source.redaction.is_some_and(|redaction| !redaction.ids_are_public) {
        for operation in &mut operations {
            source.document_redaction(operation);
            // A history of redacted rows has no id, either.
            for schema in [&mut operation.output, &mut operation.named_output.schema] {
                if let Some(Value::Array(required)) = schema.get_mut("required") {
                    required.retain(|name| name != "id");
                }
            }
        }
    }
    operations
}

async fn answer<R: Addressed>(source: Source, find_ids: FindIds, call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let Arguments { id, as_of, history, limit, after } = arguments;
    if history {
        let limit = limit.unwrap_or(VERSIONS_DEFAULT);
        return versions::<R>(source, find_ids, call, HistoryArguments { id, as_of, limit, after }).await;
    }
    if let Some((name, _)) = [("limit", limit.is_some()), ("after", after.is_some())].into_iter().find(|(_, is_given)| *is_given) {
        return Err(Problem::parameter(name, format!("{name}: only with `history`")));
    }
    let ctx = &call.context;
    let redaction = source.redaction_for(&call);
    let at = position(ctx, &source, as_of.as_deref()).await?;
    let mut notes = notes(&call, &source, &at).await?;
    let id = id_at::<R>(&call, &source, find_ids, &at, id).await?;
    let change = version_at::<R>(ctx, &source, &at, &id).await?.ok_or_else(|| missing(redaction, as_of.is_some()))?;
    let mut change = Element { record: change.record.on_day(at.today()), ..change };
    // A list shows every record that is free on the day, whenever it changed.
    let redacted = match redaction {
        Some(redaction) => {
            notes.add(Some(redaction.note()));
            Some(redacted_by_id(redaction, &change.record, &at)?)
        }
        None => None,
    };
    let (after, note, day) = (notes.after, notes.note(false), day_of::<R>(&at));
    if change.seq <= after {
        return Err(too_old(source));
    }
    let is_without_before = hide_unseen(&source, &at, &id, &mut change, after).await?;
    if let Some(record) = redacted {
        let mut shown = redacted_change(&change, record);
        let note = note.map(|note| ("note".to_owned(), note.into()));
        shown.extend(id_of(&shown).map(|id| ("id".to_owned(), id)).into_iter().chain(note));
        return rendered(&call, source, etag_of_shown(&call, &at, &shown), 1, || Ok(Value::Object(shown)));
    }
    let etag = etag(
        &*at.view,
        &[
            RENDERING,
            source.service,
            "record",
            &id,
            &change.seq.to_string(),
            &day,
            if is_without_before { "without before" } else { "" },
            note.as_deref().unwrap_or_default(),
            call.caller.tier.as_str(),
            call.form.as_str(),
        ],
    );
    rendered(&call, source, etag, 1, || json_of(&ShownRecord { id, version: shown(change), note }))
}

/// The ETag of a redacted form, made from what it shows: one that is made from its record would differ between records that look alike.
fn etag_of_shown(call: &Call, at: &Position, shown: &serde_json::Map<String, Value>) -> String {
    etag(&*at.view, &[RENDERING, call.form.as_str(), &json!(shown).to_string()])
}

async fn versions<R: Addressed>(source: Source, find_ids: FindIds, call: Call, arguments: HistoryArguments) -> Result<Answer, Problem> {
    let HistoryArguments { id, as_of, limit, after: before } = arguments;
    let ctx = &call.context;
    let redaction = source.redaction_for(&call);
    let at = position(ctx, &source, as_of.as_deref()).await?;
    let mut notes = notes(&call, &source, &at).await?;
    if redaction.is_some() {
        notes.limit_to_free_window(&call, &source, &at).await?;
    }
    let id = id_at::<R>(&call, &source, find_ids, &at, id).await?;
    let limit = notes.limit(limit);
    let after = notes.after;
    let found = versions_of::<R>(ctx, &source, &at, &id, after, before, limit).await?.on_day(at.today())?;
    let note = notes.note(found.next.is_some());
    if redaction.is_some() || found.versions.is_empty() {
        let change = version_at::<R>(ctx, &source, &at, &id).await?.ok_or_else(|| missing(redaction, as_of.is_some()))?;
        match redaction {
            Some(redaction) => drop(redacted_by_id(redaction, &change.record, &at)?),
            None if change.seq <= after => return Err(too_old(source)),
            // The page before this one ended with the first version.
            None => {}
        }
    }
    if let Some(redaction) = redaction {
        let mut versions = Vec::with_capacity(found.versions.len());
        for Version { change, before, .. } in found.versions {
            let Some(record) = redacted(redaction, &change.record, &at)? else { continue };
            // Only the fields that the redacted form has; their values before the change are needed for no more than this.
            let before = before.map(|before| redaction.form(&json_bytes(&before)?)).transpose()?;
            let changed = before.map_or_else(|| Ok(Vec::new()), |before| changed_fields(&before, &record))?;
            let mut version = redacted_change(&change, record);
            version.insert("changed".to_owned(), json!(changed));
            versions.push(version);
        }
        let mut answer = serde_json::Map::from_iter([("versions".to_owned(), json!(versions)), ("next".to_owned(), json!(found.next))]);
        let note = note.map(|note| ("note".to_owned(), note.into()));
        answer.extend(versions.first().and_then(id_of).map(|id| ("id".to_owned(), id)).into_iter().chain(note));
        return rendered(&call, source, etag_of_shown(&call, &at, &answer), versions.len(), || Ok(Value::Object(answer)));
    }
    let day = day_of::<R>(&at);
    let [first, last] = [found.versions.first(), found.versions.last()].map(|version| version.map_or(Seq(0), |version| version.change.seq));
    let etag = etag(
        &*at.view,
        &[
            RENDERING,
            source.service,
            "history",
            &id,
            &first.to_string(),
            &last.to_string(),
            if found.next.is_some() { "more" } else { "end" },
            &day,
            note.as_deref().unwrap_or_default(),
            call.caller.tier.as_str(),
            call.form.as_str(),
        ],
    );
    let versions: Vec<ShownVersion<R>> =
        found.versions.into_iter().map(|Version { change, changed, .. }| ShownVersion { version: shown(change), changed }).collect();
    rendered(&call, source, etag, versions.len(), || json_of(&History { id, versions, next: found.next, note }))
}

/// The answer with a body, or without one if the caller has the current version.
fn rendered(
    call: &Call,
    source: Source,
    etag: String,
    count: usize,
    body: impl FnOnce() -> Result<Value, Problem>,
) -> Result<Answer, Problem> {
    if matches_etag(call.if_none_match.as_deref(), &etag) {
        return Ok(Answer { body: Body::NotModified, etag, next_cursor: String::new(), has_more: false, status: 200 });
    }
    metrics::count_published(source.service, count);
    Ok(Answer { body: Body::Json(body()?), etag, next_cursor: String::new(), has_more: false, status: 200 })
}

fn shown<R: ChangeRecord>(change: Element<R>) -> Change<R> {
    let backfill = mark(&change);
    let Element { event, seq, recorded_at, details, record, .. } = change;
    Change { event, seq, recorded_at, details, backfill, record }
}

/// Whether a change shows that it is late news, also one that an older version wrote without it.
fn mark<R: ChangeRecord>(change: &Element<R>) -> Option<bool> {
    change.backfill.or_else(|| change.is_backfill().then_some(true))
}

fn json_of<T: Serialize>(value: &T) -> Result<Value, Problem> {
    match Answer::json(value)?.body {
        Body::Json(value) => Ok(value),
        _ => Ok(Value::Null),
    }
}

/// The redacted form of a record; `None` if it is not within the free window.
fn redacted<R: Serialize>(redaction: &Redaction, record: &R, at: &Position) -> Result<Option<Value>, Problem> {
    redaction.record(&json_bytes(record)?, at.free_window())
}

/// The redacted form of a record that a caller asks for by its id.
fn redacted_by_id<R: Serialize>(redaction: &Redaction, record: &R, at: &Position) -> Result<Value, Problem> {
    if !redaction.is_shown_by_id(&json_bytes(record)?)? {
        return Err(not_free(redaction));
    }
    redacted(redaction, record, at)?.ok_or_else(|| not_free(redaction))
}

/// A change as callers see it who see redacted records: without details.
fn redacted_change<R: ChangeRecord>(change: &Element<R>, record: Value) -> serde_json::Map<String, Value> {
    let Element { event, seq, recorded_at, .. } = change;
    let fields = [("event", json!(event)), ("seq", json!(seq)), ("recordedAt", json!(recorded_at)), ("record", record)];
    let backfill = mark(change).map(|backfill| ("backfill", json!(backfill)));
    fields.into_iter().chain(backfill).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The id of a change's record, if the redacted form has one.
fn id_of(change: &serde_json::Map<String, Value>) -> Option<Value> {
    change.get("record")?.get("id").cloned()
}

/// What an answer depends on besides its change: the day for a record with fields that depend on the day.
fn day_of<R: ChangeRecord>(at: &Position) -> String {
    R::ON_DAY.map_or_else(String::new, |_| at.today().to_string())
}

fn json_bytes<R: Serialize>(record: &R) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(record).map_err(|error| {
        tracing::error!(%error, "a record cannot be written as JSON");
        Problem::new(ErrorCode::Internal, "a stored record cannot be read")
    })
}

/// The problem of an id that no record has. Who sees only a part of the records gets the same answer for it as for those outside of that part.
fn missing(redaction: Option<&Redaction>, is_as_of: bool) -> Problem {
    redaction.map_or_else(|| not_found(is_as_of), not_free)
}

/// The problem of a record that the lists of the service show to paid tiers only.
fn not_free(redaction: &Redaction) -> Problem {
    let detail = format!("no record with this id is shown to this caller: {}", redaction.note());
    Problem::new(ErrorCode::TierTooLow, detail).about("id")
}

fn not_found(is_as_of: bool) -> Problem {
    let detail = if is_as_of { "no record had this id at that time" } else { "no record has this id" };
    Problem::new(ErrorCode::NotFound, detail).about("id")
}

/// The problem of a record that has not changed within the free window.
fn too_old(source: Source) -> Problem {
    let days = source.sample_days.unwrap_or_default();
    let detail = format!("without a key only records that changed in the last {days} days are shown; a key gives access to the rest");
    Problem::new(ErrorCode::TierTooLow, detail).about("id")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::civil::Date;

    use feed::testing::{Chance, HOUR_MS, SOURCE, START_MS, World, ask, call, fill, value};
    use schemas::clock::rfc3339;
    use schemas::views::recalls::Recall;

    use super::*;
    use crate::numbers::no_ids;

    /// The names of the fields that differ, from the JSON of two versions.
    fn differing(before: &Value, after: &Value) -> Vec<String> {
        let (before, after) = (before.as_object().unwrap(), after.as_object().unwrap());
        after.keys().filter(|name| before[*name] != after[*name]).cloned().collect()
    }

    /// Proves that a record at any time and the pages of its history are those of the model: every version once, newest first, with the fields that
    /// changed.
    #[tokio::test]
    async fn versions_are_the_models() {
        let mut world = World::new().await;
        let mut chance = Chance(21);
        fill(&mut world, &mut chance, 600, 40).await;
        let ctx = world.context(START_MS + 24 * 30 * HOUR_MS);
        let operations = operations::<Recall>(SOURCE, no_ids);
        let mut model: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (_, element) in &world.elements {
            model.entry(element["record"]["id"].as_str().unwrap().to_owned()).or_default().push(element.clone());
        }
        let mut most = 0;
        for (id, versions) in &model {
            let mut shown = Vec::new();
            let mut arguments = json!({ "id": id, "limit": 3 });
            loop {
                let page = value(&ctx, &operations[1], arguments.clone()).await;
                assert_eq!(page["id"], *id);
                shown.extend(page["versions"].as_array().unwrap().clone());
                if page["next"].is_null() {
                    break;
                }
                arguments["after"] = page["next"].clone();
            }
            shown.reverse();
            for (at, version) in shown.iter_mut().enumerate() {
                // The model's elements are those of an older version, which did not write whether a change is late news.
                version.as_object_mut().unwrap().remove("backfill");
                let changed: Vec<String> = serde_json::from_value(version.as_object_mut().unwrap().remove("changed").unwrap()).unwrap();
                let expected =
                    at.checked_sub(1).map_or_else(Vec::new, |at| differing(&versions[at]["record"], &versions[at + 1]["record"]));
                assert_eq!(changed, expected, "{id}, version {at}");
            }
            assert_eq!(json!(shown), json!(versions), "{id}");
            most = most.max(versions.len());
            let which = chance.below(versions.len());
            let recorded_at = &versions[which]["recordedAt"];
            let mut then = value(&ctx, &operations[0], json!({ "id": id, "asOf": recorded_at })).await;
            assert_eq!(then.as_object_mut().unwrap().remove("id"), Some(json!(id)));
            then.as_object_mut().unwrap().retain(|name, _| !["note", "backfill"].contains(&name.as_str()));
            assert_eq!(then, versions[which], "{id} at {recorded_at}");
            let whole = value(&ctx, &operations[0], json!({ "id": id, "history": true, "asOf": recorded_at })).await;
            assert_eq!(whole["versions"].as_array().unwrap().len(), which + 1);
        }
        assert!(most > 10, "the records must have changed");
    }

    /// Proves that an unknown record and a record of a later time are not found, that arguments of the history need it, and that a read is
    /// revalidated by its ETag until its record changes.
    #[tokio::test]
    async fn unknown_and_unchanged() {
        let mut world = World::new().await;
        let first = Recall { id: "CPSC:1".to_owned(), title: "a".to_owned(), ..Recall::default() };
        world.change(START_MS, &first);
        world.change(START_MS + 1, &Recall { id: "CPSC:2".to_owned(), ..first.clone() });
        world.commit().await;
        let ctx = world.context(START_MS + HOUR_MS);
        let operations = operations::<Recall>(SOURCE, no_ids);
        for (at, arguments, code, parameter) in [
            (0, json!({ "id": "CPSC:3" }), ErrorCode::NotFound, "id"),
            (1, json!({ "id": "CPSC:3" }), ErrorCode::NotFound, "id"),
            (0, json!({ "id": "CPSC:1", "asOf": rfc3339(START_MS - 1) }), ErrorCode::NotFound, "id"),
            (1, json!({ "id": "CPSC:1", "asOf": rfc3339(START_MS - 1) }), ErrorCode::NotFound, "id"),
            (0, json!({ "id": "CPSC:1", "limit": 3 }), ErrorCode::ParameterInvalid, "limit"),
            (0, json!({ "id": "CPSC:1", "after": 3 }), ErrorCode::ParameterInvalid, "after"),
        ] {
            let problem = ask(&ctx, &operations[at], arguments.clone()).await.unwrap_err();
            assert_eq!((problem.code, problem.parameter.as_str()), (code, parameter), "{arguments}");
        }
        let beyond = value(&ctx, &operations[1], json!({ "id": "CPSC:1", "after": 1 })).await;
        assert_eq!((&beyond["versions"], &beyond["next"]), (&json!([]), &Value::Null));
        for (round, operation) in (1..).zip(&operations) {
            let arguments = json!({ "id": "CPSC:1" });
            let etag = ask(&ctx, operation, arguments.clone()).await.unwrap().etag;
            let again = async || {
                let call = Call { if_none_match: Some(etag.clone()), ..call(&ctx) };
                matches!((operation.run)(call, arguments.clone()).await.unwrap().body, Body::NotModified)
            };
            assert!(again().await);
            world.change(START_MS + 10 * round, &Recall { id: "CPSC:2".to_owned(), title: operation.name.to_owned(), ..first.clone() });
            world.commit().await;
            assert!(again().await, "another record changed");
            world.change(START_MS + 10 * round, &Recall { title: operation.name.to_owned(), ..first.clone() });
            world.commit().await;
            assert!(!again().await, "the record changed");
        }
    }

    /// A recall whose title depends on the day.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Dated {
        id: String,
        title: String,
        date: String,
    }

    impl ChangeRecord for Dated {
        type Details = schemas::details::NoDetails;

        const ON_DAY: Option<fn(&mut Self, Date)> = Some(|record, day| {
            if record.date < day.to_string() {
                record.title = "over".to_owned();
            }
        });
    }

    /// Proves that fields that depend on the day are those of the day of the answer, by id and in histories and at earlier times, that `changed` names
    /// what differs in the versions that are shown, and that an answer of yesterday is not revalidated.
    #[tokio::test]
    async fn fields_of_the_day() {
        let mut world = World::new().await;
        let recall_on = |date: &str| Recall { id: "CPSC:1".into(), title: "open".into(), date: date.into(), ..Recall::default() };
        world.change(START_MS, &recall_on("2026-11-02"));
        world.change(START_MS + 1, &recall_on("2026-11-04"));
        world.commit().await;
        let operations = operations::<Dated>(SOURCE, no_ids);
        let day_ms = 24 * HOUR_MS;
        for (days, expected, changed) in
            [(0, ["open", "open"], &["date"][..]), (2, ["open", "over"], &["date", "title"]), (4, ["over", "over"], &["date"])]
        {
            let ctx = world.context(START_MS + days * day_ms + HOUR_MS);
            let record = value(&ctx, &operations[0], json!({ "id": "CPSC:1" })).await;
            assert_eq!(record["record"]["title"], expected[0], "after {days} days");
            let history = value(&ctx, &operations[1], json!({ "id": "CPSC:1" })).await;
            let versions = history["versions"].as_array().unwrap();
            let titles: Vec<&str> = versions.iter().map(|version| version["record"]["title"].as_str().unwrap()).collect();
            assert_eq!((titles, &versions[0]["changed"]), (vec![expected[0], expected[1]], &json!(changed)), "after {days} days");
        }
        let late = world.context(START_MS + 4 * day_ms);
        let then = value(&late, &operations[0], json!({ "id": "CPSC:1", "asOf": "2026-11-01" })).await;
        assert_eq!(then["record"]["title"], "open");
        let etag = ask(&late, &operations[0], json!({ "id": "CPSC:1" })).await.unwrap().etag;
        let next_day = world.context(START_MS + 5 * day_ms);
        let again = Call { if_none_match: Some(etag), ..call(&next_day) };
        assert!(!matches!((operations[0].run)(again, json!({ "id": "CPSC:1" })).await.unwrap().body, Body::NotModified));
    }

    /// Proves that a caller without a key sees only what changed within the free window, as in the service's feeds.
    #[tokio::test]
    async fn the_free_window() {
        let mut world = World::new().await;
        let recall_with = |id: &str, title: &str| Recall { id: id.to_owned(), title: title.to_owned(), ..Recall::default() };
        let old_ms = START_MS - 24 * 8 * HOUR_MS;
        world.change(old_ms, &recall_with("CPSC:1", "a"));
        world.change(old_ms, &recall_with("CPSC:2", "a"));
        world.change(START_MS, &recall_with("CPSC:2", "b"));
        world.commit().await;
        let ctx = world.context(START_MS + HOUR_MS);
        let operations = operations::<Recall>(Source { sample_days: Some(7), ..SOURCE }, no_ids);
        for operation in &operations {
            let problem = ask(&ctx, operation, json!({ "id": "CPSC:1" })).await.unwrap_err();
            assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::TierTooLow, "id"));
        }
        let seen = value(&ctx, &operations[1], json!({ "id": "CPSC:2" })).await;
        let versions = seen["versions"].as_array().unwrap();
        assert_eq!(
            (versions.len(), &versions[0]["changed"], &seen["next"]),
            (1, &json!([]), &Value::Null),
            "the version before is not shown"
        );
        assert!(seen["note"].as_str().unwrap().contains("7 days"));
        let mut keyed = call(&ctx);
        keyed.caller.key_id = "key_test".to_owned();
        keyed.caller.tier = schemas::views::accounts::Tier::Free;
        assert!((operations[0].run)(keyed, json!({ "id": "CPSC:1" })).await.is_ok());
    }
}

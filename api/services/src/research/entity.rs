//! `GET /v1/entity_watch`: what became of one institution, sponsor, investigator or topic.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::records::Changed;
use super::{FEED, SOURCE};
use feed::notes::notes;
use feed::position::position;
use feed::query::{DIGEST_MAX, Item, newest};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Method, Operation, Price};

/// Arguments of `entity_watch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// What `value` names, in any case: `institution`, `sponsor`, `pi` or `topic`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 20))]
    pub kind: String,
    /// Part of the name of an institution, sponsor or investigator; the slug of a topic.
    #[schemars(length(min = 2, max = 200))]
    pub value: String,
    /// How many changes to give at most.
    #[serde(default = "feed::page_request::limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Answer as of this time: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now.
    pub as_of: Option<String>,
}

/// What is counted of an entity.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// New grants.
    pub new_grants: usize,
    /// Their dollars.
    pub new_amount: i64,
    /// New trials.
    pub new_trials: usize,
    /// Changes of grants and trials that were known.
    pub modified: usize,
}

/// What is watched.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Entity {
    /// `institution`, `sponsor`, `pi` or `topic`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// As asked for.
    pub value: String,
}

/// What became of an entity.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// What is watched.
    pub entity: Entity,
    /// What the changes looked at add up to.
    pub activity: Activity,
    /// Its changes, the last recorded first.
    pub changes: Vec<Changed>,
    /// What to know about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "entity_watch",
        method: Method::Get,
        path: "/v1/entity_watch",
        summary: "What became of one institution, sponsor, investigator or topic: counts and the latest changes.",
        description: "Names are matched by part, in any case. `activity` adds up the changes of the recorded history that were looked at (the \
            newest few thousand), `changes` are the latest of them.",
        price: Price::Free,
        tool: true,
        counted: true,
        list: "changes",
        errors: &[ErrorCode::AsOfInvalid],
        example: json!({ "type": "institution", "value": "university" }),
        aliases: &[],
    };
    Operation::define::<Arguments, Watch, _, _>(words, answer)
}

/// The filter that an entity means, and the name of its kind.
pub(crate) fn filter_of(kind: &str, value: &str) -> Result<(&'static str, Filter), Problem> {
    let value = Some(value.to_owned());
    Ok(match kind.trim().to_ascii_lowercase().as_str() {
        "institution" => ("institution", Filter { institution: value, ..Filter::default() }),
        "sponsor" => ("sponsor", Filter { sponsor: value, ..Filter::default() }),
        "pi" => ("pi", Filter { pi: value, ..Filter::default() }),
        "topic" => ("topic", Filter { topic: value, ..Filter::default() }),
        other => {
            let hint = schemas::names::hint(other, ["institution", "sponsor", "pi", "topic"]);
            return Err(Problem::parameter("type", format!("{kind:?} is none of institution, sponsor, pi, topic{hint}")));
        }
    })
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let (kind, filter) = filter_of(&arguments.kind, &arguments.value)?;
    let at = position(ctx, &SOURCE, arguments.as_of.as_deref()).await?;
    let mut told = notes(&call, &SOURCE, &at).await?;
    let found = newest(ctx, &FEED, &at, &filter, told.after, DIGEST_MAX).await?;
    told.add(found.sums_note());
    let mut changes = found.changes;
    let mut activity = Activity::default();
    for change in &changes {
        match (change.event.as_str(), change.record.kind.as_str()) {
            ("new", "grant") => {
                activity.new_grants += 1;
                activity.new_amount = activity.new_amount.saturating_add(change.record.amount.unwrap_or(0));
            }
            ("new", _) => activity.new_trials += 1,
            _ => activity.modified += 1,
        }
    }
    changes.truncate(told.limit(arguments.limit));
    let changes = changes.into_iter().map(|change| Item { change, before: None }.into()).collect();
    Answer::json(&Watch { entity: Entity { kind, value: arguments.value }, activity, changes, note: told.note() })
}

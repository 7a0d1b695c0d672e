//! `GET /v1/entity_watch`: the changes of one institution, sponsor, investigator or topic.

use schemars::JsonSchema;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::records::Changed;
use super::watchable_feed::{Entity, Research};
use feed::answer_changes::shown;
use feed::filter::Filter as _;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Read, Reader};

/// Arguments of `entity_watch`: the entity.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Arguments(Entity);

/// Counts of the changes of an entity.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// The number of new grants.
    pub new_grants: usize,
    /// The total of the new grants in dollars.
    pub new_amount: i64,
    /// The number of new trials.
    pub new_trials: usize,
    /// The number of later changes of grants and trials.
    pub modified: usize,
}

/// An entity.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Watched {
    /// `institution`, `sponsor`, `pi` or `topic`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The value, as given.
    pub value: String,
}

/// The changes of an entity.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// The entity.
    pub entity: Watched,
    /// Counts over the changes that were read.
    pub activity: Activity,
    /// The changes, the last recorded first.
    pub changes: Vec<Changed>,
}

impl Read for Arguments {
    type Service = Research;
    type Answer = Watch;

    const FILTER: &'static [&'static str] = &["includeBackfill"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "entity_watch",
            path: "/v1/entity_watch",
            summary: "The activity of one institution, sponsor, investigator or topic: counts and the latest changes.",
            when: "Use it for questions about one name.",
            description: "Names are matched by part, in any case. `activity` counts the changes that were read (the newest few thousand of the \
                recorded history), and `changes` are the latest of them. Grants and trials that were recorded more than 120 days after they were published \
                or awarded are late news and left out; `includeBackfill=true` includes them.",
            list: "changes",
            example: json!({ "type": "institution", "value": "university" }),
            ..Definition::read()
        }
    }

    fn filter(&self, given: Filter) -> Result<Filter, Problem> {
        self.0.filter("").map(|(_, filter)| Filter { include_backfill: given.include_backfill, ..filter })
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Research>) -> Result<Watch, Problem> {
        let mut changes = reader.count(filter.criteria(), Seq(0)).await?;
        let all = changes.len();
        changes.retain(|change| filter.selects(change));
        reader.note_backfill(all - changes.len());
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
        changes.truncate(reader.limit());
        let (kind, _) = self.0.filter("")?;
        Ok(Watch { entity: Watched { kind, value: self.0.value }, activity, changes: shown(changes) })
    }
}

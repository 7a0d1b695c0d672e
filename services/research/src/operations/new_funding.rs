//! `GET /v1/new_funding`: the newest grants and trials of a territory.

use crate::record::Funding;
use schemars::JsonSchema;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::records::{Either, Grant, Trial};
use super::watchable_feed::Research;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Read, Reader};

/// Arguments of `new_funding`: those of the filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The numbers of grants and trials.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Counts {
    /// Grants.
    pub grants: usize,
    /// Trials.
    pub trials: usize,
}

/// Grants and trials, with their numbers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fundings {
    /// Grants, newest first.
    pub grants: Vec<Grant>,
    /// Trials, newest first.
    pub trials: Vec<Trial>,
    /// How many of each are in this answer.
    pub counts: Counts,
}

/// The newest grants and trials.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct New {
    /// The grants and trials.
    #[serde(flatten)]
    pub found: Fundings,
    /// Whether there are more that match.
    pub truncated: bool,
}

impl Fundings {
    /// Separates grants from trials, each in the order of the records.
    pub(crate) fn of(records: impl IntoIterator<Item = Funding>) -> Self {
        let (mut grants, mut trials) = (Vec::new(), Vec::new());
        for record in records {
            match Either::from(record) {
                Either::Grant(grant) => grants.push(*grant),
                Either::Trial(trial) => trials.push(*trial),
            }
        }
        Self::new(grants, trials)
    }

    /// Grants and trials, counted.
    fn new(grants: Vec<Grant>, trials: Vec<Trial>) -> Self {
        let counts = Counts { grants: grants.len(), trials: trials.len() };
        Self { grants, trials, counts }
    }
}

impl Read for Arguments {
    type Service = Research;
    type Answer = New;

    const FILTER: &'static [&'static str] =
        &["topic", "state", "institution", "sponsorClass", "minAmount", "maxAmount", "pi", "ic", "phase", "includeBackfill"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "new_funding",
            path: "/v1/new_funding",
            summary: "Newly awarded grants and new clinical trials, the last recorded first.",
            when: "Use it for what was funded in the last days.",
            description: "Filters narrow by topic, state, institution, sponsor class, investigator, institute, phase and dollars; a record must \
                match all that are given, as it is now. A filter that only grants can match (dollars, `pi`, `ic`) excludes trials, and `phase` excludes \
                grants. Records that were recorded more than 120 days after they were published or awarded are late news and left out; `includeBackfill=true` \
                includes them. `limit` counts grants and trials together; `truncated` says whether there are more.",
            example: json!({ "topic": "oncology", "limit": 5 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Research>) -> Result<New, Problem> {
        let limit = reader.limit();
        let new = reader.new_records(&filter, Seq(0), limit).await?;
        reader.note_backfill(new.backfill);
        Ok(New { truncated: !new.is_complete, found: Fundings::of(new.records) })
    }
}

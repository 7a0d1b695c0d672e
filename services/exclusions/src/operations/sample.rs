//! `GET /sample`: excluded entities with running awards, the newest exclusions first.

use operation::problem::Problem;
use operation::{Definition, Surface};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::artifact::{Artifact, WHILE_ACTIVE};
use super::filter::Filter;
use super::findings::{Counted, Moment, Subject, hits_of_all_days};
use super::watchable_feed::Exclusions;
use crate::record::HITS;
use feed::places::Walk;
use reads::read::{Read, Reader, hidden_note};

/// The most awards of an artifact.
const AWARDS_MAX: usize = 3;
/// The most hits that are looked at.
const HITS_MAX: usize = 100;

/// Arguments of `sample`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// How many artifacts to show at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 10))]
    pub limit: usize,
}

fn limit_default() -> usize {
    5
}

/// A live sample of artifacts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ExclusionSample")]
pub struct Sample {
    /// The number of artifacts.
    pub count: usize,
    /// Artifacts whose signal is `EXCLUDED_WHILE_ACTIVE`, the newest active date first, without hash and permalink. Each shows at most 3 awards; the
    /// summary is of all.
    pub artifacts: Vec<Artifact>,
}

impl Read for Arguments {
    type Service = Exclusions;
    type Answer = Sample;

    fn definition() -> Definition {
        Definition {
            name: "sample",
            path: "/sample",
            surface: Surface::Route,
            summary: "Excluded entities with running awards, at most 10, the newest exclusions first.",
            when: "Use it to look at the service without a key.",
            description: "Joined by UEI or CAGE code alone, never by a name. `entity_watch` has the whole artifact of an entity, with its hash.",
            list: "artifacts",
            example: json!({ "limit": 3 }),
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Sample, Problem> {
        let moment = Moment::of(reader).await?;
        let walk = Walk { list: HITS, part: hits_of_all_days(), filter: "sample", limit: HITS_MAX, after: None };
        let page = reader.ranked(walk, None).await?;
        let has_more = page.next.is_some();
        let hits = Counted::of(page.items);
        reader.note(hidden_note("excluded entities", hits.hidden));
        let mut artifacts = Vec::new();
        for hit in hits.shown {
            if artifacts.len() == self.limit {
                break;
            }
            let mut artifact = moment.artifact(reader, &Subject::of_uei(hit.uei)).await?;
            if artifact.signal == WHILE_ACTIVE {
                artifact.federal_awards.truncate(AWARDS_MAX);
                artifacts.push(artifact);
            }
        }
        reader.note(cut_note(artifacts.len(), self.limit, has_more));
        Ok(Sample { count: artifacts.len(), artifacts })
    }
}

/// What an answer says if not all hits were looked at, although it could show more; `None` if it is full or no hit is left.
fn cut_note(shown: usize, limit: usize, has_more: bool) -> Option<String> {
    (shown < limit && has_more).then(|| format!("only the newest {HITS_MAX} excluded entities with awards were looked at; `scan` has all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a sample says that hits are left only if it could show more.
    #[test]
    fn samples_that_are_cut() {
        assert_eq!([cut_note(5, 5, true), cut_note(3, 5, false)], [None, None]);
        assert!(cut_note(3, 5, true).unwrap().contains("newest 100"));
    }
}

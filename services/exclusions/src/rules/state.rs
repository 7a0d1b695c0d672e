//! What the decision state remembers of exclusions, entities and CAGE codes.

use fold::records::State;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The rules of the service.
pub struct ExclusionsRules;

/// The most awards that are remembered of one entity: those with the latest actions.
const AWARDS_MAX: usize = 5;

/// What is remembered of an exclusion that can be a hit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Remembered {
    pub(super) name: String,
    pub(super) classification: String,
    pub(super) cage: String,
    pub(super) agency: String,
    pub(super) exclusion_type: String,
    pub(super) active_date: String,
    pub(super) creation_date: String,
    pub(super) termination_date: String,
}

/// What is remembered of an entity with a UEI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entity {
    /// Exclusions with the UEI of the entity, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) by_uei: BTreeMap<String, Remembered>,
    /// Exclusions without a UEI that have its CAGE code.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) by_cage: BTreeMap<String, Remembered>,
    /// The awards with the latest known actions, each with the day of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) awards: BTreeMap<String, String>,
    /// Day of the latest known action on any other award of the entity; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) latest_action: String,
}

impl Entity {
    /// Day of the latest known action on an award; empty if the entity has no award. Days in this form are in the order of their texts.
    pub(super) fn latest_action(&self) -> &str {
        self.awards.values().chain([&self.latest_action]).max().map_or("", String::as_str)
    }

    /// Remembers an award with the day of its latest action; without a day the award is withdrawn. Of awards that are not among the latest only the
    /// day is remembered, so that it remains if one of them is withdrawn.
    pub(super) fn set_award(&mut self, id: &str, day: Option<&str>) {
        match day {
            Some(day) => drop(self.awards.insert(id.to_owned(), day.to_owned())),
            None => drop(self.awards.remove(id)),
        }
        while self.awards.len() > AWARDS_MAX {
            let earliest = self.awards.iter().min_by_key(|(id, day)| (*day, *id)).map(|(id, _)| id.clone()).unwrap_or_default();
            let Some(day) = self.awards.remove(&earliest) else { break };
            self.latest_action = std::mem::take(&mut self.latest_action).max(day);
        }
    }
}

/// What is remembered of a CAGE code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Cage {
    /// The UEIs that exclusions give with the code, each with the ids of these exclusions.
    pub(super) entities: BTreeMap<String, BTreeSet<String>>,
    /// Exclusions that have the code and no UEI, by id.
    pub(super) exclusions: BTreeMap<String, Remembered>,
}

/// The decision state of the service.
pub(super) type Decision<'a, 'b> = &'a mut State<'b, ExclusionsRules>;

pub(super) fn uei_key(uei: &str) -> String {
    format!("uei/{uei}")
}

pub(super) fn cage_key(cage: &str) -> String {
    format!("cage/{cage}")
}

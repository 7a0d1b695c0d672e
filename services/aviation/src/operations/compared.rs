//! The directives that may apply to an aircraft, at a position.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use directives::{
    CannotDecide, Outcome, Reason, ResolvedAircraft, ResolvedModel, StoredDirective, Verdict, compare, is_known_make, keys_for,
};
use schemars::JsonSchema;
use schemas::views::aviation::{AirworthinessDirective, BUCKET};
use serde::Serialize;

use super::followed::Aviation;
use crate::FEED;
use feed::places::{PLACES_MAX, Segment, Walk};
use operation::problem::Problem;
use reads::read::Reader;

/// A directive that may apply to an aircraft.
pub struct Compared {
    /// The record.
    pub record: Arc<AirworthinessDirective>,
    /// The record as the rules read it.
    pub stored: Arc<StoredDirective>,
    /// The result of the comparison: matching or possible.
    pub outcome: Outcome,
}

impl Compared {
    /// The order of answers: the newest effective date first, then by number.
    fn order(&self, other: &Self) -> Ordering {
        let (one, two) = (&self.record, &other.record);
        two.effective_date.cmp(&one.effective_date).then_with(|| one.ad_number.cmp(&two.ad_number))
    }

    /// Whether it is for an engine or a propeller that the caller named.
    fn is_of_named_part(&self) -> bool {
        let reasons = &self.outcome.reasons;
        self.record.product != "aircraft" && ![Reason::InstalledOn, Reason::NoAircraftNamed].iter().any(|reason| reasons.contains(reason))
    }

    /// The text that names the model, or that could not be read.
    #[must_use]
    pub fn span(&self) -> String {
        self.outcome.span.map(|span| span.of(&self.stored.text).to_owned()).unwrap_or_default()
    }

    /// What the text cannot decide.
    #[must_use]
    pub fn cannot_decide(&self) -> &[CannotDecide] {
        &self.outcome.cannot_decide
    }
}

/// A directive as it was read, shared by the aircraft of a call and by calls.
type ReadDirective = (Arc<AirworthinessDirective>, Arc<StoredDirective>);

/// The lists of directives that a call has read, by key. Each is read once, however many aircraft it is for.
#[derive(Default)]
pub struct DirectiveLists {
    lists: HashMap<String, Vec<Arc<ReadDirective>>>,
}

impl DirectiveLists {
    /// Returns the directives that may apply to an aircraft, superseded ones included, in the order of answers.
    ///
    /// # Errors
    /// `unavailable`.
    pub async fn directives_for(&mut self, reader: &Reader<Aviation>, aircraft: &ResolvedAircraft) -> Result<Vec<Compared>, Problem> {
        let (mut known, mut found) = (HashSet::new(), Vec::new());
        for key in keys_for(aircraft) {
            if !self.lists.contains_key(&key) {
                let list = read(reader, &key).await?;
                self.lists.insert(key.clone(), list);
            }
            for (record, stored) in self.lists.get(&key).into_iter().flatten().map(|read| &**read) {
                if !known.insert(record.ad_number.clone()) {
                    continue;
                }
                let outcome = compare(&stored.directive, aircraft);
                if outcome.verdict > Verdict::None {
                    found.push(Compared { record: Arc::clone(record), stored: Arc::clone(stored), outcome });
                }
            }
        }
        found.sort_by(Compared::order);
        Ok(found)
    }
}

/// The directives of a list. Each record is decoded once for all calls, as long as it stays the same: a list of a common model has hundreds.
async fn read(reader: &Reader<Aviation>, key: &str) -> Result<Vec<Arc<ReadDirective>>, Problem> {
    let (mut list, mut after) = (Vec::new(), None);
    loop {
        let part = Segment { buckets: BUCKET..=BUCKET, ranks: i64::MIN..=i64::MAX };
        let walk = Walk { list: key, part, filter: "", limit: PLACES_MAX, after: after.as_deref() };
        let page = FEED.ranked_ids::<AirworthinessDirective>(reader.context(), &reader.at, walk).await?;
        let derive = |record: AirworthinessDirective| -> ReadDirective {
            let stored = StoredDirective::of(&record);
            (Arc::new(record), Arc::new(stored))
        };
        let read = FEED.derived_by_id(reader.context(), &reader.at, &page.items, derive).await?;
        for (id, read) in page.items.iter().zip(read) {
            match read {
                Some(read) => list.push(read),
                None => tracing::error!(id, seq = reader.at.seq.0, "a list names a directive that does not exist"),
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(list),
        }
    }
}

/// Returns the directives that may apply to one aircraft, superseded ones included, in the order of answers.
///
/// # Errors
/// `unavailable`.
pub async fn directives_for(reader: &Reader<Aviation>, aircraft: &ResolvedAircraft) -> Result<Vec<Compared>, Problem> {
    DirectiveLists::default().directives_for(reader, aircraft).await
}

/// Drops, for a make that nothing is known of, the directives that may be for any aircraft or that name only the model: the make of a question is probably
/// misspelt. An assessment of an aircraft shows them.
pub fn drop_of_unknown_make(found: &mut Vec<Compared>, aircraft: &ResolvedAircraft) {
    if !is_known_make(&aircraft.airframe.makes) && !has_make(found, aircraft) {
        found.retain(Compared::is_of_named_part);
    }
}

/// Whether a directive for aircraft is for the make of an aircraft, not for any.
pub fn has_make(found: &[Compared], aircraft: &ResolvedAircraft) -> bool {
    let is_of_make = |one: &Compared| one.record.makes.iter().any(|make| aircraft.airframe.makes.contains(make));
    found.iter().any(|one| one.record.product == "aircraft" && is_of_make(one))
}

/// How an aircraft was understood.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResolvedNames {
    /// The keys of the makes.
    pub makes: Vec<String>,
    /// The model in compact form: the designation; for a marketing name, the model that it means.
    pub model: String,
    /// The series of the model.
    pub series: String,
}

impl ResolvedNames {
    /// The names of a resolved model.
    #[must_use]
    pub fn of(model: &ResolvedModel) -> Self {
        let form = model.designation.clone();
        let series = model.series.iter().filter(|series| form.starts_with(series.as_str())).max_by_key(|series| series.len());
        Self { makes: model.makes.clone(), series: series.cloned().unwrap_or_default(), model: form }
    }
}

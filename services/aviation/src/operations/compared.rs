//! The directives that may apply to an aircraft, at a position.
//!
//! A directive is compared with a make and model once, whatever the number of aircraft and of calls: comparisons remain in memory as long as the lists that
//! they were made of are the same.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use directives::{CannotDecide, Outcome, Product, Reason, ResolvedAircraft, ResolvedModel, Verdict, compare, is_known_make, keys_for};
use operation::context::Part;
use schemars::JsonSchema;
use schemas::views::aviation::{AirworthinessDirective, BUCKET};
use serde::Serialize;

use super::followed::Aviation;
use super::next_due::NextDue;
use super::shared_directive::{FIELDS_OF_AIRCRAFT, SharedDirective};
use crate::FEED;
use operation::problem::Problem;
use reads::read::Reader;

/// The most bytes of comparisons in memory. When they are more, all of them are dropped.
const COMPARISONS_BYTES_MAX: usize = 16 << 20;
/// What a comparison needs in memory, in bytes.
const COMPARISON_BYTES: usize = 256;

/// A directive that may apply to an aircraft.
#[derive(Clone)]
pub struct Compared {
    /// The directive.
    pub directive: Arc<SharedDirective>,
    /// The result of the comparison: matching or possible.
    pub outcome: Arc<Outcome>,
}

impl Compared {
    /// The order of answers: the newest effective date first, then by number.
    fn order(&self, other: &Self) -> Ordering {
        let (one, two) = (&self.directive, &other.directive);
        two.effective_date.cmp(&one.effective_date).then_with(|| one.ad_number().cmp(two.ad_number()))
    }

    /// Whether it is for an engine or a propeller that the caller named.
    fn is_of_named_part(&self) -> bool {
        let reasons = &self.outcome.reasons;
        let is_found_by_name = ![Reason::InstalledOn, Reason::NoAircraftNamed].iter().any(|reason| reasons.contains(reason));
        self.directive.product() != Product::Aircraft && is_found_by_name
    }

    /// The text that names the model, or that could not be read.
    #[must_use]
    pub fn span(&self) -> &str {
        self.outcome.span.map(|span| span.of(&self.directive.stored.text)).unwrap_or_default()
    }

    /// Adds the JSON of the directive to a text: with when it is due, as a directive of an assessment, or without, as a match.
    pub(crate) fn write(&self, due: Option<&NextDue>, out: &mut Vec<u8>) {
        let outcome = &*self.outcome;
        for (at, field) in FIELDS_OF_AIRCRAFT.into_iter().enumerate() {
            out.extend_from_slice(self.directive.json(at));
            match (field, due) {
                ("cannotDecide", _) => write_field(field, &outcome.cannot_decide, out),
                ("match", _) => write_field(field, &outcome.verdict, out),
                ("reasons", _) => write_field(field, &outcome.reasons, out),
                ("span", _) => write_field(field, self.span(), out),
                (_, Some(due)) => write_field(field, &due.written(), out),
                (_, None) => {}
            }
        }
        out.extend_from_slice(self.directive.json(FIELDS_OF_AIRCRAFT.len()));
    }
}

/// Adds a field that is not the first one of its object.
fn write_field<T: Serialize + ?Sized>(name: &str, value: &T, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        tracing::error!(%error, name, "a field of a directive cannot be written");
    }
}

/// The directives of a list.
type List = Vec<Arc<SharedDirective>>;

/// The directives that may apply to an aircraft, in the order of answers.
pub type Found = Arc<Vec<Compared>>;

/// What a call has read and compared. Each list is read once, and each make and model compared once, however many aircraft they are for.
#[derive(Default)]
pub struct Comparisons {
    lists: HashMap<String, Arc<List>>,
    found: HashMap<ResolvedAircraft, Found>,
}

impl Comparisons {
    /// Returns the directives that may apply to an aircraft, superseded ones included, in the order of answers.
    ///
    /// # Errors
    /// `unavailable`.
    pub async fn directives_for(&mut self, reader: &Reader<Aviation>, aircraft: &ResolvedAircraft) -> Result<Found, Problem> {
        let names = aircraft.with_serial(None);
        let found = match self.found.get(&names) {
            Some(found) => Arc::clone(found),
            None => {
                let found = self.compared(reader, &names).await?;
                self.found.insert(names, Arc::clone(&found));
                found
            }
        };
        Ok(with_serial(&found, aircraft))
    }

    /// The directives for an aircraft without its serial number.
    async fn compared(&mut self, reader: &Reader<Aviation>, names: &ResolvedAircraft) -> Result<Found, Problem> {
        let mut lists = Vec::new();
        for key in keys_for(names) {
            let list = match self.lists.get(&key) {
                Some(list) => Arc::clone(list),
                None => {
                    let (ctx, place) = (reader.context(), (key.as_str(), BUCKET));
                    let list = FEED.derived_list::<AirworthinessDirective, SharedDirective>(ctx, &reader.at, place).await?;
                    self.lists.insert(key, Arc::clone(&list));
                    list
                }
            };
            lists.push(list);
        }
        // The lists of an earlier position are others in each call.
        if !reader.is_current() {
            return Ok(Arc::new(compare_all(&lists, names).into_iter().map(|known| known.compared).collect()));
        }
        Ok(KnownComparisons::of(reader.context()).found(&lists, names))
    }
}

/// The same directives, compared with the serial number of an aircraft where that can make a difference.
fn with_serial(found: &Found, aircraft: &ResolvedAircraft) -> Found {
    if aircraft.serial.is_none() {
        return Arc::clone(found);
    }
    let with_serial = |one: &Compared| {
        if !one.outcome.cannot_decide.contains(&CannotDecide::SerialRange) {
            return one.clone();
        }
        let outcome = compare(&one.directive.stored.directive, aircraft);
        Compared { directive: Arc::clone(&one.directive), outcome: Arc::new(outcome) }
    };
    Arc::new(found.iter().map(with_serial).collect())
}

/// A directive that was found, and where: the position of its list, and its position there.
struct FoundAt {
    at: (usize, usize),
    compared: Compared,
}

/// Compares the directives of some lists with an aircraft, each once, and sorts what is found.
fn compare_all(lists: &[Arc<List>], names: &ResolvedAircraft) -> Vec<FoundAt> {
    let (mut known, mut found) = (HashSet::new(), Vec::new());
    for (list_at, list) in lists.iter().enumerate() {
        for (at, directive) in list.iter().enumerate() {
            if lists.len() > 1 && !known.insert(directive.ad_number()) {
                continue;
            }
            let outcome = compare(&directive.stored.directive, names);
            if outcome.verdict > Verdict::None {
                let compared = Compared { directive: Arc::clone(directive), outcome: Arc::new(outcome) };
                found.push(FoundAt { at: (list_at, at), compared });
            }
        }
    }
    found.sort_by(|one, other| one.compared.order(&other.compared));
    found
}

/// The comparisons that were made with an aircraft. They hold no directive: the lists do, as long as they are current.
struct Known {
    lists: Vec<Weak<List>>,
    found: Vec<((usize, usize), Arc<Outcome>)>,
}

impl Known {
    /// What was found, if it was made of the same lists.
    fn found(&self, lists: &[Arc<List>]) -> Option<Found> {
        let is_same = |(known, list): (&Weak<List>, &Arc<List>)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(list));
        if self.lists.len() != lists.len() || !self.lists.iter().zip(lists).all(is_same) {
            return None;
        }
        let compared = |((list, at), outcome): &((usize, usize), Arc<Outcome>)| {
            let directive = lists.get(*list)?.get(*at)?;
            Some(Compared { directive: Arc::clone(directive), outcome: Arc::clone(outcome) })
        };
        self.found.iter().map(compared).collect::<Option<Vec<Compared>>>().map(Arc::new)
    }
}

/// The comparisons of all calls, by aircraft without serial numbers.
#[derive(Default)]
struct KnownComparisons {
    known: Mutex<HashMap<ResolvedAircraft, Arc<Known>>>,
}

impl Part for KnownComparisons {}

impl KnownComparisons {
    /// What is found in some lists, compared unless it was compared before.
    fn found(&self, lists: &[Arc<List>], names: &ResolvedAircraft) -> Found {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(names).map(Arc::clone);
        if let Some(found) = known.and_then(|known| known.found(lists)) {
            return found;
        }
        let all = compare_all(lists, names);
        let found = all.iter().map(|one| (one.at, Arc::clone(&one.compared.outcome))).collect();
        self.add(names, Known { lists: lists.iter().map(Arc::downgrade).collect(), found });
        Arc::new(all.into_iter().map(|one| one.compared).collect())
    }

    fn add(&self, names: &ResolvedAircraft, known: Known) {
        let bytes = |known: &Known| COMPARISON_BYTES * (8 + known.lists.len() + known.found.len());
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.values().map(|known| bytes(known)).sum::<usize>() + bytes(&known) > COMPARISONS_BYTES_MAX {
            all.clear();
        }
        all.insert(names.clone(), Arc::new(known));
    }
}

/// Returns the directives that may apply to one aircraft, superseded ones included, in the order of answers.
///
/// # Errors
/// `unavailable`.
pub async fn directives_for(reader: &Reader<Aviation>, aircraft: &ResolvedAircraft) -> Result<Vec<Compared>, Problem> {
    Comparisons::default().directives_for(reader, aircraft).await.map(Arc::unwrap_or_clone)
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
    let is_of_make = |one: &Compared| one.directive.makes().iter().any(|make| aircraft.airframe.makes.contains(make));
    found.iter().any(|one| one.directive.product() == Product::Aircraft && is_of_make(one))
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

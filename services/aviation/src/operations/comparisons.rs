//! The directives that may apply to an aircraft, at a position.
//!
//! A directive is compared with a make and model once, whatever the number of aircraft and of calls: comparisons remain in memory as long as the lists that
//! they were made of are the same.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use directives::{Outcome, Product, Reason, ResolvedAircraft, ResolvedModel, Verdict, compare, is_known_make, keys_for};
use operation::context::Part;
use schemars::JsonSchema;
use schemas::views::aviation::{AirworthinessDirective, BUCKET};
use serde::Serialize;

use super::next_due::{NextDue, write_json};
use super::pieces::Pieces;
use super::shared_directive::{FIELDS_OF_AIRCRAFT, SharedDirective};
use super::watchable_feed::Aviation;
use crate::rules::AviationRules;
use feed::RecordFeed;
use operation::problem::Problem;
use reads::read::Reader;

/// The most bytes of comparisons in memory. When they are more, all of them are dropped.
const COMPARISONS_BYTES_MAX: usize = 16 << 20;
/// What a comparison needs in memory without its text, in bytes.
const COMPARISON_BYTES: usize = 320;
/// How many bytes the JSON of when a directive is due has at most, with the comma after the directive.
const DUE_BYTES: usize = 320;

/// A directive that may apply to an aircraft.
#[derive(Clone)]
pub struct Compared {
    /// The directive.
    pub directive: Arc<SharedDirective>,
    /// The result of the comparison: matching or possible.
    pub outcome: Arc<WrittenOutcome>,
}

/// The result of a comparison with the JSON of its fields, which is written once for all aircraft and calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenOutcome {
    outcome: Outcome,
    /// The fields of [`FIELDS_OF_AIRCRAFT`] with their names; `due` is empty.
    fields: Pieces<{ FIELDS_OF_AIRCRAFT.len() }>,
}

impl WrittenOutcome {
    fn new(directive: &SharedDirective, outcome: Outcome) -> Self {
        let fields = Pieces::written(|at, text| match FIELDS_OF_AIRCRAFT.get(at).copied().unwrap_or_default() {
            field @ "cannotDecide" => write_field(field, &outcome.cannot_decide, text),
            field @ "match" => write_field(field, &outcome.verdict, text),
            field @ "reasons" => write_field(field, &outcome.reasons, text),
            field @ "span" => write_field(field, span(directive, &outcome), text),
            _ => {}
        });
        Self { outcome, fields }
    }
}

impl Deref for WrittenOutcome {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
}

/// The text of a directive that names the model, or that could not be read.
pub(crate) fn span<'a>(directive: &'a SharedDirective, outcome: &Outcome) -> &'a str {
    outcome.span.map(|span| span.of(&directive.stored.text)).unwrap_or_default()
}

impl Compared {
    /// A directive with the result of its comparison.
    pub(crate) fn new(directive: Arc<SharedDirective>, outcome: Outcome) -> Self {
        let outcome = Arc::new(WrittenOutcome::new(&directive, outcome));
        Self { directive, outcome }
    }

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

    /// Whether it names the model of an aircraft, or its series, wherever in its text. The series that one for an engine or a propeller names is not that of
    /// the aircraft if the caller named an engine or a propeller, too.
    pub(crate) fn is_naming(&self, aircraft: &ResolvedAircraft) -> bool {
        let directive = &self.directive.stored.directive;
        let is_own = |form: &String| aircraft.airframe.forms.contains(form);
        let is_of_aircraft = directive.product == Product::Aircraft || (aircraft.engine.is_none() && aircraft.propeller.is_none());
        (is_of_aircraft && self.outcome.reasons.contains(&Reason::SeriesNamed))
            || directive.applicability.models.iter().any(|model| is_own(&model.form) || model.also.iter().any(is_own))
            || directive.applicability.mentions.iter().chain(&directive.named_in_summary).any(|mention| is_own(&mention.form))
    }

    /// How many bytes the JSON of the directive has with when it is due, about.
    pub(crate) fn bytes(&self) -> usize {
        self.directive.json_bytes() + self.outcome.fields.bytes() + DUE_BYTES
    }

    /// Adds the JSON of the directive to a text: with when it is due, as a directive of an assessment, or without, as a match.
    pub(crate) fn write(&self, due: Option<&NextDue>, out: &mut Vec<u8>) {
        for (at, field) in FIELDS_OF_AIRCRAFT.into_iter().enumerate() {
            out.extend_from_slice(self.directive.json(at));
            match due {
                Some(due) if field == "due" => {
                    write_name(field, out);
                    due.write(out);
                }
                _ => out.extend_from_slice(self.outcome.fields.piece(at)),
            }
        }
        out.extend_from_slice(self.directive.json(FIELDS_OF_AIRCRAFT.len()));
    }
}

/// Adds a field that is not the first one of its object.
fn write_field<T: Serialize + ?Sized>(name: &str, value: &T, out: &mut Vec<u8>) {
    write_name(name, out);
    write_json(name, value, out);
}

/// Adds the name of a field that is not the first one of its object.
fn write_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// The directives of a list.
type List = Vec<Arc<SharedDirective>>;

/// The directives that may apply to an aircraft, in the order of answers.
pub type ComparedDirectives = Arc<Vec<Compared>>;

/// The results of comparisons with serial numbers, by the position of the directive among those that were found.
type WithSerials = HashMap<usize, Vec<Arc<WrittenOutcome>>>;

/// What a call has read and compared. Each list is read once, and each make and model compared once, however many aircraft they are for. The results with
/// serial numbers are few for each directive, and each is written once.
#[derive(Default)]
pub struct Comparisons {
    lists: HashMap<String, Arc<List>>,
    found: HashMap<ResolvedAircraft, (ComparedDirectives, WithSerials)>,
}

impl Comparisons {
    /// Returns the directives that may apply to an aircraft, superseded ones included, in the order of answers. Other tasks have their turn before: a call
    /// compares hundreds of aircraft and writes what was found of each, mostly without waiting for anything.
    ///
    /// # Errors
    /// `unavailable`.
    pub async fn directives_for(&mut self, reader: &Reader<Aviation>, aircraft: &ResolvedAircraft) -> Result<ComparedDirectives, Problem> {
        tokio::task::yield_now().await;
        let names = aircraft.with_serial(None);
        let (found, mut written) = match self.found.remove(&names) {
            Some(known) => known,
            None => (self.compared(reader, &names).await?, WithSerials::default()),
        };
        let of_aircraft = with_serial(&found, aircraft, &mut written);
        self.found.insert(names, (found, written));
        Ok(of_aircraft)
    }

    /// The directives for an aircraft without its serial number.
    async fn compared(&mut self, reader: &Reader<Aviation>, names: &ResolvedAircraft) -> Result<ComparedDirectives, Problem> {
        let mut lists = Vec::new();
        for key in keys_for(names) {
            let list = match self.lists.get(&key) {
                Some(list) => Arc::clone(list),
                None => {
                    let (ctx, place) = (reader.context(), (key.as_str(), BUCKET));
                    let list = AviationRules::FEED.derived_list::<AirworthinessDirective, SharedDirective>(ctx, &reader.at, place).await?;
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

/// The same directives, compared with the serial number of an aircraft where that can make a difference. Results that were written for another aircraft of
/// these names are taken from `written`.
fn with_serial(found: &ComparedDirectives, aircraft: &ResolvedAircraft, written: &mut WithSerials) -> ComparedDirectives {
    if aircraft.serial.is_none() {
        return Arc::clone(found);
    }
    let with_serial = |(at, one): (usize, &Compared)| {
        if !one.outcome.depends_on_serial() {
            return one.clone();
        }
        let outcome = compare(&one.directive.stored.directive, aircraft);
        let known = written.entry(at).or_default();
        if let Some(known) = known.iter().find(|known| known.outcome == outcome) {
            return Compared { directive: Arc::clone(&one.directive), outcome: Arc::clone(known) };
        }
        let compared = Compared::new(Arc::clone(&one.directive), outcome);
        known.push(Arc::clone(&compared.outcome));
        compared
    };
    Arc::new(found.iter().enumerate().map(with_serial).collect())
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
                found.push(FoundAt { at: (list_at, at), compared: Compared::new(Arc::clone(directive), outcome) });
            }
        }
    }
    found.sort_by(|one, other| one.compared.order(&other.compared));
    found
}

/// The comparisons that were made with an aircraft. They hold no directive: the lists do, as long as they are current.
struct AircraftComparisons {
    lists: Vec<Weak<List>>,
    found: Vec<((usize, usize), Arc<WrittenOutcome>)>,
}

impl AircraftComparisons {
    /// What it needs in memory, with its key, in bytes.
    fn bytes(&self) -> usize {
        let texts: usize = self.found.iter().map(|(_, outcome)| outcome.fields.bytes()).sum();
        COMPARISON_BYTES * (8 + self.lists.len() + self.found.len()) + texts
    }

    /// What was found, if it was made of the same lists.
    fn found(&self, lists: &[Arc<List>]) -> Option<ComparedDirectives> {
        let is_same = |(known, list): (&Weak<List>, &Arc<List>)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(list));
        if self.lists.len() != lists.len() || !self.lists.iter().zip(lists).all(is_same) {
            return None;
        }
        let compared = |((list, at), outcome): &((usize, usize), Arc<WrittenOutcome>)| {
            let directive = lists.get(*list)?.get(*at)?;
            Some(Compared { directive: Arc::clone(directive), outcome: Arc::clone(outcome) })
        };
        self.found.iter().map(compared).collect::<Option<Vec<Compared>>>().map(Arc::new)
    }
}

/// The comparisons of all calls, by aircraft without serial numbers.
#[derive(Default)]
struct KnownComparisons {
    known: Mutex<BoundedComparisons>,
}

/// Comparisons with the bytes that all of them need.
#[derive(Default)]
struct BoundedComparisons {
    by_aircraft: HashMap<ResolvedAircraft, Arc<AircraftComparisons>>,
    bytes: usize,
}

impl Part for KnownComparisons {}

impl KnownComparisons {
    /// What is found in some lists, compared unless it was compared before.
    fn found(&self, lists: &[Arc<List>], names: &ResolvedAircraft) -> ComparedDirectives {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).by_aircraft.get(names).map(Arc::clone);
        if let Some(found) = known.and_then(|known| known.found(lists)) {
            return found;
        }
        let all = compare_all(lists, names);
        let found = all.iter().map(|one| (one.at, Arc::clone(&one.compared.outcome))).collect();
        self.add(names, AircraftComparisons { lists: lists.iter().map(Arc::downgrade).collect(), found });
        Arc::new(all.into_iter().map(|one| one.compared).collect())
    }

    fn add(&self, names: &ResolvedAircraft, known: AircraftComparisons) {
        let (bytes, mut all) = (known.bytes(), self.known.lock().unwrap_or_else(PoisonError::into_inner));
        if all.bytes + bytes > COMPARISONS_BYTES_MAX {
            *all = BoundedComparisons::default();
        }
        all.bytes += bytes;
        if let Some(before) = all.by_aircraft.insert(names.clone(), Arc::new(known)) {
            all.bytes -= before.bytes();
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use directives::Aircraft;
    use feed::derived_lists::Derived as _;
    use feed::testing::{START_MS, World, call};
    use serde_json::json;

    use super::*;

    /// A directive for PA-28-140 airplanes, of all serial numbers, or of those from one to another one.
    fn directive(number: usize, serials: Option<(usize, usize)>) -> Arc<SharedDirective> {
        let number = format!("2026-{:02}-{:02}", number / 30 + 1, number % 30 + 1);
        let model = json!({ "name": "PA-28-140", "form": "PA28140", "series": "PA28", "role": "applies", "span": "PA-28-140" });
        let list = |(from, to): (usize, usize)| {
            let range = json!({ "from": from.to_string(), "to": to.to_string() });
            json!({ "ranges": [range], "isComplete": true, "models": [0], "span": "serial numbers" })
        };
        let serials: Vec<_> = serials.map(list).into_iter().collect();
        let record = json!({
            "id": number, "adNumber": number, "makes": ["PIPER"], "product": "aircraft", "layout": "lettered", "models": [model],
            "serials": serials, "recurring": "no", "status": "current", "scope": "certain", "effectiveDate": "2026-08-24",
        });
        Arc::new(SharedDirective::of(serde_json::from_value::<AirworthinessDirective>(record).unwrap()))
    }

    fn aircraft(model: &str, serial: Option<&str>) -> ResolvedAircraft {
        ResolvedAircraft::new(&Aircraft { make: "Piper", model, serial, ..Aircraft::default() })
    }

    fn numbers(found: &[Compared]) -> Vec<&str> {
        found.iter().map(|one| one.directive.ad_number()).collect()
    }

    /// Proves that a comparison without serial numbers, corrected for each serial number, is the comparison with it, for models that are named, of the same
    /// series, or others.
    #[test]
    fn serial_numbers_are_compared_afterwards() {
        let list: Arc<List> = Arc::new((0..40).map(|n| directive(n, (n % 4 > 0).then_some((4_000, 4_000 + n * 10)))).collect());
        let lists = [list];
        let mut listed = BTreeSet::new();
        for model in ["PA-28-140", "PA-28-180", "PA-46-350P"] {
            let names = aircraft(model, None);
            let found: ComparedDirectives = Arc::new(compare_all(&lists, &names).into_iter().map(|one| one.compared).collect());
            assert_eq!(found.is_empty(), model == "PA-46-350P");
            let mut written = WithSerials::default();
            for serial in [None, Some("3999"), Some("4000"), Some("4155"), Some("9000"), Some("28-4100A")] {
                let of_serial = aircraft(model, serial);
                assert_eq!((of_serial.with_serial(None), names.with_serial(serial)), (names.clone(), of_serial.clone()));
                let expected = compare_all(&lists, &of_serial);
                let given = with_serial(&found, &of_serial, &mut written);
                assert_eq!(given.len(), expected.len());
                for (given, expected) in given.iter().zip(&expected) {
                    assert_eq!(given.directive.ad_number(), expected.compared.directive.ad_number());
                    assert_eq!(given.outcome, expected.compared.outcome, "{model} {serial:?} {}", given.directive.ad_number());
                    listed.extend(given.outcome.reasons.iter().copied());
                }
                // A directive for another model of the series is not compared again: no list says to which model it belongs.
                let is_shared = |(given, one): (&Compared, &Compared)| Arc::ptr_eq(&given.outcome, &one.outcome);
                assert!(model != "PA-28-180" || given.iter().zip(found.iter()).all(is_shared));
            }
        }
        assert!(listed.contains(&Reason::SerialListed) && listed.contains(&Reason::SerialNotListed), "{listed:?}");
    }

    /// Proves that the same result for several serial numbers is written once.
    #[test]
    fn results_with_serial_numbers_are_written_once() {
        let lists: [Arc<List>; 1] = [Arc::new(vec![directive(0, Some((4_000, 4_100)))])];
        let names = aircraft("PA-28-140", None);
        let found: ComparedDirectives = Arc::new(compare_all(&lists, &names).into_iter().map(|one| one.compared).collect());
        let mut written = WithSerials::default();
        let outcomes: Vec<Arc<WrittenOutcome>> = ["4001", "4200", "4002", "4300"]
            .into_iter()
            .map(|serial| Arc::clone(&with_serial(&found, &aircraft("PA-28-140", Some(serial)), &mut written)[0].outcome))
            .collect();
        assert!(Arc::ptr_eq(&outcomes[0], &outcomes[2]) && Arc::ptr_eq(&outcomes[1], &outcomes[3]));
        assert_ne!(outcomes[0], outcomes[1]);
    }

    /// Proves that comparisons are made once as long as the lists are the same, again when one of them is another one, and that a directive in several lists is
    /// found once.
    #[test]
    fn comparisons_are_made_once() {
        let all: Vec<Arc<SharedDirective>> = (0..9).map(|n| directive(n, None)).collect();
        let list = |range: std::ops::Range<usize>| -> Arc<List> { Arc::new(all.get(range).unwrap().to_vec()) };
        let (known, names) = (KnownComparisons::default(), aircraft("PA-28-140", None));
        let lists = [list(0..5), list(3..8)];
        let first = known.found(&lists, &names);
        assert_eq!(first.len(), 8);
        let again = known.found(&lists, &names);
        assert_eq!(numbers(&again), numbers(&first));
        assert!(again.iter().zip(first.iter()).all(|(one, other)| Arc::ptr_eq(&one.outcome, &other.outcome)));
        let other = known.found(&[lists[0].clone(), list(3..9)], &names);
        assert_eq!(other.len(), 9);
        assert!(other.iter().zip(first.iter()).all(|(one, other)| !Arc::ptr_eq(&one.outcome, &other.outcome)));
        drop((first, again, lists));
        assert_eq!(known.found(&[list(0..2)], &names).len(), 2);
        assert_eq!(known.found(&[], &names).len(), 0);
    }

    /// Proves that other tasks have their turn for each aircraft, also if nothing is read for it.
    #[tokio::test]
    async fn other_tasks_have_their_turn() {
        let world = World::new().await;
        let ctx = world.context(START_MS);
        let reader = Reader::<Aviation>::as_of(call(&ctx), None).await.unwrap();
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let counting = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let (mut comparisons, names) = (Comparisons::default(), aircraft("PA-28-140", None));
        for _ in 0..3 {
            let before = turns.load(Relaxed);
            assert!(comparisons.directives_for(&reader, &names).await.unwrap().is_empty());
            assert!(turns.load(Relaxed) > before);
        }
        counting.abort();
    }
}

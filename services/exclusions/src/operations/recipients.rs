//! The names of recipients of awards that match the name of a company exactly. They are found by the keys that such names have in common, so that no
//! question compares every name. A name that awards brought after the position of a question may be among them: it finds no award up to that position, and
//! displaces no other name unless a company has more than [`NAMES_MAX`].
//!
//! A process keeps the names of one generation of the view of awards, in at most [`BYTES_MAX`] of memory, and adds those that awards brought since. An
//! answer that may lack a name says so.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use feed::Source;
use feed::names::values_of;
use feed::position::Position;
use matching::company::{CompanyName, Grade, compare};
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::topics::{AWARDS as AWARD_FACTS, CHANGES_AWARDS};
use schemas::views::awards::{Award, TABLES as AWARD_TABLES};

/// The changes of the awards service.
pub(super) const AWARDS: Source = Source::of_records("awards", &AWARD_TABLES, &CHANGES_AWARDS, &[AWARD_FACTS]);

/// The most names that one search of awards looks up.
pub(super) const NAMES_PER_SEARCH: usize = 48;
/// The most names of one company whose awards are searched.
const NAMES_MAX: usize = 10 * NAMES_PER_SEARCH;
/// The most bytes of the names that are kept; those of a million awards need less.
const BYTES_MAX: usize = 64 << 20;
/// What a name needs besides its letters: its place, its hash and its keys.
const NAME_BYTES: usize = 96;

/// The names of recipients that a process keeps.
#[derive(Default)]
struct Recipients(Mutex<Known>);

impl Part for Recipients {}

/// The names of the recipients of one generation.
#[derive(Default)]
struct Known {
    generation: Option<u64>,
    /// How many names the generation had when they were read last.
    count: usize,
    bytes: usize,
    /// Whether names were left out for their bytes.
    is_cut: bool,
    /// The hashes of the names that were read.
    seen: HashSet<u64>,
    names: Vec<Box<str>>,
    /// The hash of each exact key with the number of a name that has it, sorted.
    by_key: Vec<(u64, u32)>,
}

/// The names that match a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// The names as the index of awards has them, sorted.
    pub(super) names: Vec<String>,
    /// Whether there may be more.
    pub(super) is_cut: bool,
}

/// Whether the name of a recipient is exactly that of a company.
pub(super) fn is_named(company: &CompanyName, recipient: &str) -> bool {
    CompanyName::new(recipient).and_then(|other| compare(company, &other)).is_some_and(|found| found.grade == Grade::Exact)
}

/// The names of recipients that are exactly that of a company, at a position of the awards service. Names of later awards may be included.
///
/// # Errors
/// When the names cannot be read.
pub(super) async fn named(ctx: &Context, at: &Position, company: CompanyName) -> Result<Named, Problem> {
    let values = values_of::<Award>(ctx, &AWARDS, &AWARD_TABLES, at, "recipient").await?;
    let (recipients, generation) = (Recipients::of(ctx), at.view.generation());
    // Reading hundreds of thousands of names takes long and must not block other tasks.
    let found = tokio::task::spawn_blocking(move || {
        let mut known = recipients.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.take_in(generation, &values, BYTES_MAX);
        known.matching(&company)
    });
    found.await.map_err(|error| {
        tracing::error!(%error, "comparing the names of recipients panicked");
        Problem::new(ErrorCode::Internal, "the names of recipients could not be compared")
    })
}

impl Known {
    /// Reads the names of a generation that were not read yet.
    fn take_in(&mut self, generation: u64, values: &BTreeSet<String>, bytes_max: usize) {
        if self.generation != Some(generation) {
            *self = Self { generation: Some(generation), ..Self::default() };
        }
        // The names of a generation only become more.
        if values.len() <= self.count {
            return;
        }
        self.count = values.len();
        for value in values {
            let hash = hash_of(value);
            if self.seen.contains(&hash) {
                continue;
            }
            let bytes = self.bytes + value.len() + NAME_BYTES;
            if bytes > bytes_max {
                self.is_cut = true;
                break;
            }
            self.bytes = bytes;
            self.seen.insert(hash);
            // A name that is compared with none needs no key.
            if let Some(company) = CompanyName::new(value) {
                let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(value.as_str().into());
                self.by_key.extend(company.exact_keys().iter().map(|key| (hash_of(key), number)));
            }
        }
        self.by_key.sort_unstable();
    }

    /// The names that are exactly that of a company.
    fn matching(&self, company: &CompanyName) -> Named {
        let mut names = BTreeSet::new();
        for key in company.exact_keys() {
            let hash = hash_of(&key);
            let first = self.by_key.partition_point(|(known, _)| *known < hash);
            let numbers = self.by_key.iter().skip(first).take_while(|(known, _)| *known == hash).map(|(_, number)| *number);
            let found = numbers.filter_map(|number| self.names.get(usize::try_from(number).ok()?));
            names.extend(found.filter(|name| is_named(company, name)).map(|name| String::from(&**name)));
        }
        Named { is_cut: self.is_cut || names.len() > NAMES_MAX, names: names.into_iter().take(NAMES_MAX).collect() }
    }
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn found(known: &Known, name: &str) -> (String, bool) {
        let named = known.matching(&CompanyName::new(name).unwrap());
        (named.names.join(","), named.is_cut)
    }

    /// Proves that every name that is exactly the given one is found, in whatever words, order and legal form, and no other; and that names that awards
    /// bring later are found, those of another generation not.
    #[test]
    fn exact_names_are_found() {
        let mut known = Known::default();
        let first = values(&["bluestar inc.", "blue star llc", "star blue", "blue sky llc", "--", "blue stars"]);
        known.take_in(1, &first, BYTES_MAX);
        assert_eq!(found(&known, "BLUE STAR"), ("blue star llc,bluestar inc.,star blue".to_owned(), false));
        assert_eq!(found(&known, "Bluestar Ltd"), ("blue star llc,bluestar inc.".to_owned(), false));
        assert_eq!(found(&known, "BLUE").0, "");
        let later: BTreeSet<String> = first.into_iter().chain(values(&["b.l.u.e. star", "blue star corp"])).collect();
        known.take_in(1, &later, BYTES_MAX);
        assert!(found(&known, "BLUE STAR").0.contains("blue star corp,blue star llc"), "{:?}", found(&known, "BLUE STAR"));
        assert_eq!(known.names.len(), known.seen.len() - 1, "a name without words is read once and not kept");
        known.take_in(2, &values(&["blue star llc"]), BYTES_MAX);
        assert_eq!(found(&known, "BLUE STAR"), ("blue star llc".to_owned(), false));
    }

    /// Proves that spellings which later awards bring displace none of those that a company had, so that evidence of an earlier time stays the same.
    #[test]
    fn later_names_displace_none() {
        // A name with more blanks is earlier in the order.
        let spelled = |blanks: usize| format!("acme{}llc", " ".repeat(blanks));
        let mut known = Known::default();
        let earlier: BTreeSet<String> = (1..=NAMES_PER_SEARCH + 2).map(spelled).collect();
        known.take_in(1, &earlier, BYTES_MAX);
        let before = known.matching(&CompanyName::new("ACME").unwrap());
        assert_eq!((before.names.len(), before.is_cut), (NAMES_PER_SEARCH + 2, false));
        let later: BTreeSet<String> = (1..=2 * NAMES_PER_SEARCH).map(spelled).collect();
        known.take_in(1, &later, BYTES_MAX);
        let after = known.matching(&CompanyName::new("ACME").unwrap());
        assert!(after.names.len() > before.names.len() && before.names.iter().all(|name| after.names.contains(name)));
        assert!(!after.is_cut);
    }

    /// Proves that an answer says if a company has more names than are searched, or if names were left out for their bytes, which later names do
    /// not undo.
    #[test]
    fn what_is_left_out_is_said() {
        let forms = ["llc", "inc", "inc.", "ltd", "corp"];
        let many: BTreeSet<String> =
            (0..=NAMES_MAX).map(|at| format!("acme{}{}", " ".repeat(at / forms.len() + 1), forms[at % forms.len()])).collect();
        let mut known = Known::default();
        known.take_in(1, &many, BYTES_MAX);
        let named = known.matching(&CompanyName::new("ACME").unwrap());
        assert_eq!((named.names.len(), named.is_cut), (NAMES_MAX, true));

        let mut known = Known::default();
        known.take_in(1, &values(&["acme llc", "zenith llc"]), 2 * NAME_BYTES);
        assert_eq!((found(&known, "ACME"), found(&known, "ZENITH")), (("acme llc".to_owned(), true), (String::new(), true)));
        known.take_in(1, &values(&["acme llc", "yard llc", "zenith llc"]), 2 * NAME_BYTES);
        assert_eq!((known.names.len(), known.is_cut), (1, true));
    }
}

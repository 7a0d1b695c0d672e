//! The names of recipients of awards that match the name of a company exactly. They are found by the keys that such names have in common, so that no
//! question compares every name. A name that awards brought after the position of a question may be among them: it finds no award up to that position, and
//! displaces no other name unless a company has more than [`NAMES_MAX`].
//!
//! A process keeps the names of one generation of the view of awards, in at most [`BYTES_MAX`] of memory, and adds those that awards brought since. It reads
//! them before it is ready, and those of later awards in the background, so that questions rarely wait for them. An answer that may lack a name says so.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use feed::filter::Element;
use feed::follower::{Follower, Label, Structure, panicked};
use feed::names::stored_values;
use feed::position::{Position, position};
use feed::{Feeds, Source};
use matching::company::{CompanyName, Grade, compare};
use operation::context::{Context, Part};
use operation::problem::Problem;
use reads::registration::TaskContext;
use schemas::position::Seq;
use schemas::topics::{AWARDS as AWARD_FACTS, CHANGES_AWARDS};
use schemas::views::awards::{Award, TABLES as AWARD_TABLES};
use schemas::views::records::Record;
use view_store::View;

/// The changes of the awards service.
pub(super) const AWARDS: Source = Source::of_records(&AWARD_TABLES, &CHANGES_AWARDS, &[AWARD_FACTS]);

/// The most names that one search of awards looks up.
pub(super) const NAMES_PER_SEARCH: usize = 48;
/// The most names of one company whose awards are searched.
const NAMES_MAX: usize = 10 * NAMES_PER_SEARCH;
/// The most bytes of the names that are kept; those of a million awards need less.
const BYTES_MAX: usize = 64 << 20;
/// What a name needs besides its letters: its place, its hash and its keys.
const NAME_BYTES: usize = 96;
/// The dimension of the names.
const DIMENSION: &str = "recipient";

/// The names of recipients that a process keeps.
#[derive(Default)]
struct Recipients(Arc<Follower<SharedRecipients>>);

impl Part for Recipients {}

/// The names of recipients. They only become more, so that questions about earlier positions share them.
#[derive(Clone, Default)]
struct SharedRecipients(Arc<Mutex<KnownRecipients>>);

/// The names of the recipients of one generation.
#[derive(Default)]
struct KnownRecipients {
    bytes: usize,
    /// Whether names were left out for their bytes.
    is_cut: bool,
    /// The hashes of the names that were read.
    seen: HashSet<u64>,
    names: Vec<Box<str>>,
    /// The hash of each exact key with the number of a name that has it, sorted.
    by_key: Vec<(u64, u32)>,
}

impl Structure for SharedRecipients {
    type Origin = ();
    type Change = Vec<String>;

    const NAME: &'static str = "the list of recipients";
    const BYTES_MAX: usize = BYTES_MAX;

    async fn begin((): (), view: Arc<dyn View>, seq: Seq) -> Result<(Self, Label), Problem> {
        let stored = stored_values(&*view, &AWARD_TABLES, DIMENSION).await?;
        // Reading hundreds of thousands of names takes long and must not block other tasks.
        let read = tokio::task::spawn_blocking(move || {
            let this = Self::default();
            this.lock().take_in(stored.iter(), BYTES_MAX);
            this
        });
        Ok((read.await.map_err(|error| panicked::<Self>(&error))?, Label::of_rows(seq)))
    }

    fn read(_: Seq, element: &[u8]) -> Result<Option<Vec<String>>, serde_json::Error> {
        let change: Element<Award> = serde_json::from_slice(element)?;
        let terms = change.record.terms().into_iter().filter(|term| term.dimension == DIMENSION);
        Ok(Some(terms.map(|term| term.value).collect()))
    }

    /// Adds names. Those that do not fit are left out, so that the bytes are never more than they may be.
    fn add(&mut self, changes: Vec<Vec<String>>, _: Label, _: bool) -> Result<(), Problem> {
        self.lock().take_in(changes.iter().flatten().map(String::as_str), BYTES_MAX);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

impl SharedRecipients {
    fn lock(&self) -> MutexGuard<'_, KnownRecipients> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    let known = known_at(ctx, at).await?;
    // Comparing names takes long and must not block other tasks.
    let compared = tokio::task::spawn_blocking(move || known.lock().matching(&company));
    compared.await.map_err(|error| panicked::<SharedRecipients>(&error))
}

/// The names of recipients, which are read up to a position of the awards service before.
async fn known_at(ctx: &Context, at: &Position) -> Result<Arc<SharedRecipients>, Problem> {
    let reader = Feeds::of(ctx).reader(&AWARDS, Arc::clone(&at.view));
    Recipients::of(ctx).0.at(&reader, at.last, &()).await
}

/// Reads the names of recipients before the process is ready. After a failure the first question reads them.
pub(crate) async fn prepare(ctx: Arc<Context>) {
    let read = async { known_at(&ctx, &position(&ctx, &AWARDS, None).await?).await };
    if let Err(problem) = read.await {
        tracing::warn!(problem = problem.detail, "the names of recipients cannot be read now, the first question by name reads them");
    }
}

/// Reads the names of the recipients of new awards until the server stops.
pub(crate) async fn keep_names(given: Arc<TaskContext>) {
    let ctx = &given.context;
    let recipients = Recipients::of(ctx);
    tokio::select! {
        () = recipients.0.follow(&*ctx.store, AWARD_TABLES.view, AWARD_TABLES.feed, ()) => {}
        () = ctx.stopped() => {}
    }
}

impl KnownRecipients {
    /// Adds the names that were not read yet, as far as they fit.
    fn take_in<'a>(&mut self, names: impl Iterator<Item = &'a str>, bytes_max: usize) {
        for value in names {
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
                self.names.push(value.into());
                self.by_key.extend(company.exact_keys().iter().map(|key| (hash_of(key), number)));
            }
        }
        // Few are new, and the others are sorted.
        self.by_key.sort();
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
    use feed::testing::records::RecordView;
    use feed::testing::{START_MS, World};

    use super::*;

    /// Proves that names are known before a question asks for them, also those that later awards bring.
    #[tokio::test]
    async fn names_are_read_before_a_question() {
        let world = World::new().await;
        let ctx = world.context(START_MS);
        let mut awards = RecordView::<Award>::new(&*world.store, &AWARD_TABLES).await;
        let known = || {
            let (known, _) = Recipients::of(&ctx).0.now().unwrap();
            known.lock().names.iter().map(|name| String::from(&**name)).collect::<Vec<_>>()
        };
        for (id, recipient, expected) in [("A", "Acme LLC", &["acme llc"][..]), ("B", "Zenith Corp", &["acme llc", "zenith corp"])] {
            awards.change(START_MS, &Award { id: id.into(), recipient: recipient.into(), ..Award::default() });
            awards.commit().await;
            prepare(Arc::clone(&ctx)).await;
            assert_eq!(known(), expected);
        }
    }

    fn found(known: &KnownRecipients, name: &str) -> (String, bool) {
        let named = known.matching(&CompanyName::new(name).unwrap());
        (named.names.join(","), named.is_cut)
    }

    /// Proves that every name that is exactly the given one is found, in whatever words, order and legal form, and no other; and that names that awards
    /// bring later are found.
    #[test]
    fn exact_names_are_found() {
        let mut known = KnownRecipients::default();
        let first = ["bluestar inc.", "blue star llc", "star blue", "blue sky llc", "--", "blue stars"];
        known.take_in(first.into_iter(), BYTES_MAX);
        assert_eq!(found(&known, "BLUE STAR"), ("blue star llc,bluestar inc.,star blue".to_owned(), false));
        assert_eq!(found(&known, "Bluestar Ltd"), ("blue star llc,bluestar inc.".to_owned(), false));
        assert_eq!(found(&known, "BLUE").0, "");
        known.take_in(first.into_iter().chain(["b.l.u.e. star", "blue star corp"]), BYTES_MAX);
        assert!(found(&known, "BLUE STAR").0.contains("blue star corp,blue star llc"), "{:?}", found(&known, "BLUE STAR"));
        assert_eq!(known.names.len(), known.seen.len() - 1, "a name without words is read once and not kept");
    }

    /// Proves that spellings which later awards bring displace none of those that a company had, so that evidence of an earlier time stays the same.
    #[test]
    fn later_names_displace_none() {
        // A name with more blanks is earlier in the order.
        let spelled = |blanks: usize| format!("acme{}llc", " ".repeat(blanks));
        let mut known = KnownRecipients::default();
        let earlier: Vec<String> = (1..=NAMES_PER_SEARCH + 2).map(spelled).collect();
        known.take_in(earlier.iter().map(String::as_str), BYTES_MAX);
        let before = known.matching(&CompanyName::new("ACME").unwrap());
        assert_eq!((before.names.len(), before.is_cut), (NAMES_PER_SEARCH + 2, false));
        let later: Vec<String> = (1..=2 * NAMES_PER_SEARCH).map(spelled).collect();
        known.take_in(later.iter().map(String::as_str), BYTES_MAX);
        let after = known.matching(&CompanyName::new("ACME").unwrap());
        assert!(after.names.len() > before.names.len() && before.names.iter().all(|name| after.names.contains(name)));
        assert!(!after.is_cut);
    }

    /// Proves that an answer says if a company has more names than are searched, or if names were left out for their bytes, which later names do
    /// not undo.
    #[test]
    fn what_is_left_out_is_said() {
        let forms = ["llc", "inc", "inc.", "ltd", "corp"];
        let many: Vec<String> =
            (0..=NAMES_MAX).map(|at| format!("acme{}{}", " ".repeat(at / forms.len() + 1), forms[at % forms.len()])).collect();
        let mut known = KnownRecipients::default();
        known.take_in(many.iter().map(String::as_str), BYTES_MAX);
        let named = known.matching(&CompanyName::new("ACME").unwrap());
        assert_eq!((named.names.len(), named.is_cut), (NAMES_MAX, true));

        let mut known = KnownRecipients::default();
        known.take_in(["acme llc", "zenith llc"].into_iter(), 2 * NAME_BYTES);
        assert_eq!((found(&known, "ACME"), found(&known, "ZENITH")), (("acme llc".to_owned(), true), (String::new(), true)));
        known.take_in(["acme llc", "yard llc", "zenith llc"].into_iter(), 2 * NAME_BYTES);
        assert_eq!((known.names.len(), known.is_cut), (1, true));
    }
}

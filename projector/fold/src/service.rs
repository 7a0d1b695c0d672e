//! The interface of a service to the projector: two pure functions and the names of its topics and tables.

use async_trait::async_trait;
use bytes::Bytes;
use jiff::civil::Date;
use schemas::avro;
use schemas::change::{Change, ChangeKind};
use schemas::details::ChangeRecord;
use schemas::event::Fact;
use schemas::position::Seq;
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::Topic;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::rows::Rows;
pub use crate::undecided::Undecided;

/// A result of `decide`: a change without its position in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft<R, N> {
    /// What the change does.
    pub event: ChangeKind,
    /// The id of the record.
    pub id: String,
    /// The record after the change.
    pub after: Option<R>,
    /// The record before the change.
    pub before: Option<R>,
    /// Seq of the change that wrote `before`; 0 for none.
    pub before_seq: Seq,
    /// Seq since which `before` held its position in lists; 0 if it was in none.
    pub before_since: Seq,
    /// Decision state to remember for later decisions.
    pub note: Option<N>,
}

/// A draft of service `S`.
pub type DraftOf<S> = Draft<<S as Service>::Record, <S as Service>::Note>;

/// The result of `decide` for one fact.
pub type Decided<S> = Result<Vec<DraftOf<S>>, Undecided>;

/// A current record, with the seq that wrote it and the seq since which it has its position in lists.
pub type CurrentRecord<S> = (<S as Service>::Record, Seq, Seq);

/// Checks whether this process may sign. Called once before each batch of facts that may create signatures.
#[async_trait]
pub trait SigningCheck: Send + Sync {
    /// Checks whether this process may still sign, and sets or clears the refusal of its keys accordingly.
    async fn check(&self);
}

/// A service: how facts become changes, and how changes become rows.
pub trait Service: Sized + Send + Sync + 'static {
    /// The records of the input facts.
    type Fact: Send + Sync;
    /// The record that readers see.
    type Record: ChangeRecord + Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync;
    /// The decision state that changes carry.
    type Note: Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync;

    /// The name of the service.
    const NAME: &'static str;
    /// The tables of the service.
    const VIEW: &'static ViewDef;
    /// The topics that the service decides from.
    const INPUTS: &'static [Topic];
    /// The change topic of the service.
    const CHANGES: &'static Topic;
    /// The table of packed feed pages.
    const FEED: &'static Table;
    /// The table of current records.
    const RECORDS: &'static Table;
    /// The table of parked inputs: (key of fact, offset).
    const PARKED: &'static Table;
    /// The tables that `decide` reads. Only their rows are cached while a batch is decided.
    const DECISION_TABLES: &'static [&'static Table];

    /// Whether decisions are final because they were signed and published. Such a service is never decided again.
    const FINAL: bool = false;

    /// Decodes a fact of one of the input topics.
    ///
    /// # Errors
    /// When the value does not have the form that the topic holds.
    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<Self::Fact>, avro::Error>;

    /// Returns the rows that `decide` will read for a fact, as far as the fact tells, so that those of a whole batch are fetched at once. One that is not
    /// read after all does no harm.
    fn reads(fact: &Fact<Self::Fact>) -> Vec<(&'static Table, Key)>;

    /// Whether deciding a fact may create a signature. If so, [`SigningCheck`] is called before the batch.
    #[must_use]
    fn signs(_fact: &Fact<Self::Fact>) -> bool {
        false
    }

    /// Whether a row of a decision table is compared with the log before a decision that may sign relies on it.
    #[must_use]
    fn is_confirmed(_table: &Table, _key: &Key) -> bool {
        false
    }

    /// Decides what a fact means, given the rows after all previous facts. Deterministic.
    ///
    /// # Errors
    /// [`Undecided::Miss`] if a row has not been fetched; [`Undecided::Poison`] if the service cannot interpret the fact;
    /// [`Undecided::Blocked`] if this node cannot decide it.
    fn decide(rows: &mut Rows, fact: &Fact<Self::Fact>) -> Decided<Self>;

    /// Returns the rows that a change writes, without its feed entry. `record` is the record after the change as JSON, serialized once for
    /// rows and feed.
    fn apply(change: &Change<Self::Record, Self::Note>, record: &[u8]) -> Vec<Write>;

    /// Returns the change details: fields that the feed shows in addition to `record`, the record after the change.
    #[must_use]
    fn change_details(_record: &Self::Record, _change: &Change<Self::Record, Self::Note>) -> <Self::Record as ChangeRecord>::Details {
        <Self::Record as ChangeRecord>::Details::default()
    }

    /// Returns the mark `backfill` of a change with these details that was recorded on a day: true if it records only late what happened long before, see
    /// [`schemas::news`]. `None`: the feed shows no mark. Only changes that are no news are marked, unless a service marks all.
    #[must_use]
    fn backfill(
        record: &Self::Record,
        details: &<Self::Record as ChangeRecord>::Details,
        change: &Change<Self::Record, Self::Note>,
        recorded: Date,
    ) -> Option<bool> {
        record.is_backfill(details, change.event == ChangeKind::New, recorded).then_some(true)
    }

    /// Whether a record is a current one: it exists at its upstream, and it is a record of its own. The digest covers current records, and the
    /// checkpoint of the view counts them: a version that changes the answer for a record that exists needs a replay of the service.
    fn is_listed(record: &Self::Record) -> bool;

    /// Returns the part of a current row that the digest covers: the record alone. `None` for a row that is not a record of its own.
    fn digest_row(value: &Bytes) -> Option<Bytes>;

    /// Decodes a row of [`Self::RECORDS`].
    ///
    /// # Errors
    /// When the row does not have the form that this version writes.
    fn read_row(value: &[u8]) -> Result<CurrentRecord<Self>, serde_json::Error>;

    /// Returns the draft that turns one record into another (either may be absent), for a service that is decided again.
    fn difference(id: &str, before: Option<CurrentRecord<Self>>, after: Option<Self::Record>) -> Option<DraftOf<Self>>;

    /// Returns the draft that sets a row of a decision table (not [`Self::RECORDS`]) to a value, for a service that is decided again.
    ///
    /// # Errors
    /// When the row does not have the form that this version writes.
    fn remember(table: &'static Table, key: &Key, value: Option<&Bytes>) -> Result<Option<DraftOf<Self>>, serde_json::Error>;
}

/// Returns by how many a change raises the number of current records: 1 if it adds or restores one, -1 if it withdraws one, else 0.
#[must_use]
pub fn records_added<S: Service>(change: &Change<S::Record, S::Note>) -> i64 {
    let Some(after) = &change.after else { return 0 };
    let is_current = |record: &S::Record| i64::from(S::is_listed(record));
    is_current(after) - change.before.as_ref().map_or(0, is_current)
}

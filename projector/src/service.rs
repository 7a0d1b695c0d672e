//! What a service is to the projector: two pure functions and the names of its topics and tables.

use async_trait::async_trait;
use bytes::Bytes;
use schemas::avro;
use schemas::change::{Change, ChangeKind};
use schemas::event::Fact;
use schemas::tables::{Key, Table, ViewDef, Write};
use schemas::topics::Topic;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::rows::Rows;

/// Why a fact is not decided yet, or cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// Rows are needed that are not at hand; they are fetched and `decide` is asked again.
    Miss,
    /// The fact makes no sense to this service. It is parked with this reason, and so are later ones of its key.
    Poison(String),
    /// Something is missing on this node without which nothing can be decided, with what to do about it. Everything waits.
    Blocked(String),
}

/// What `decide` answers: a change without its place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft<R, N> {
    /// What happened.
    pub event: ChangeKind,
    /// The record's id.
    pub id: String,
    /// The record after it.
    pub after: Option<R>,
    /// The record before it.
    pub before: Option<R>,
    /// Seq of the change that wrote `before`; 0 for none.
    pub before_seq: i64,
    /// Seq since which `before` stood at its place in lists; 0 for nowhere.
    pub before_since: i64,
    /// What to remember for later decisions.
    pub note: Option<N>,
}

/// A draft of service `S`.
pub type DraftOf<S> = Draft<<S as Service>::Record, <S as Service>::Note>;

/// What `decide` answers for one fact.
pub type Decided<S> = Result<Vec<DraftOf<S>>, Undecided>;

/// A record as it stands, with the seq that wrote it and the seq since which it stands in lists.
pub type Standing<S> = (<S as Service>::Record, i64, i64);

/// Asked before a batch of facts is decided of which one may make a signature: once a batch, however many signatures it makes.
#[async_trait]
pub trait SigningCheck: Send + Sync {
    /// Looks whether this process may still sign, and sets the refusal of its keys accordingly, which decisions obey.
    async fn check(&self);
}

/// A service's two folds.
pub trait Service: Sized + Send + Sync + 'static {
    /// The records of its input facts.
    type Fact: Send + Sync;
    /// The record that readers see.
    type Record: Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync;
    /// What it remembers for later decisions.
    type Note: Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync;

    /// Its name.
    const NAME: &'static str;
    /// Its tables.
    const VIEW: &'static ViewDef;
    /// The topics it reads.
    const INPUTS: &'static [Topic];
    /// Its change topic.
    const CHANGES: &'static Topic;
    /// Its table of packed pages.
    const FEED: &'static Table;
    /// Its table of current records.
    const RECORDS: &'static Table;
    /// Its table of parked inputs: (key of fact, offset).
    const PARKED: &'static Table;
    /// The tables `decide` reads; only their rows are held while a batch is decided.
    const DECISION_TABLES: &'static [&'static Table];

    /// Whether what was decided was given out for good, signed: such a service is never decided again.
    const FINAL: bool = false;

    /// Reads a fact of one of its topics.
    ///
    /// # Errors
    /// When the value is not what that topic holds.
    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<Self::Fact>, avro::Error>;

    /// The rows that `decide` will surely read for a fact, so that a whole batch's are fetched at once.
    fn reads(fact: &Fact<Self::Fact>) -> Vec<(&'static Table, Key)>;

    /// Whether deciding a fact may make a signature: then [`SigningCheck`] is asked before the batch.
    #[must_use]
    fn signs(_fact: &Fact<Self::Fact>) -> bool {
        false
    }

    /// What a fact means, given the rows as all facts before it left them. Deterministic.
    ///
    /// # Errors
    /// [`Undecided::Miss`] when a row is not at hand; [`Undecided::Poison`] when the fact makes no sense; [`Undecided::Blocked`] when this node cannot
    /// decide it.
    fn decide(rows: &mut Rows, fact: &Fact<Self::Fact>) -> Decided<Self>;

    /// The rows that a change writes, without its feed entry. `record` is the record after it as JSON, written once for rows
    /// and feed alike.
    fn apply(change: &Change<Self::Record, Self::Note>, record: &[u8]) -> Vec<Write>;

    /// What readers of a change are told beside the record after it: members of a JSON object, each with a comma behind it.
    #[must_use]
    fn told(_change: &Change<Self::Record, Self::Note>) -> Option<String> {
        None
    }

    /// Of a current row's value, the record alone as its digest sees it; `None` for a row that is no record of its own.
    fn digest_row(value: &Bytes) -> Option<Bytes>;

    /// The record in a row of [`Self::RECORDS`], with the seq that wrote it and the seq since which it stands in lists.
    ///
    /// # Errors
    /// When the row is not what this version writes.
    fn read_row(value: &[u8]) -> Result<Standing<Self>, serde_json::Error>;

    /// The draft that makes one record out of another (either may be absent), for a service decided again.
    fn difference(id: &str, before: Option<Standing<Self>>, after: Option<Self::Record>) -> Option<DraftOf<Self>>;

    /// The draft that makes a row of a decision table (not [`Self::RECORDS`]) what it should be, for a service decided again.
    ///
    /// # Errors
    /// When the row is not what this version writes.
    fn remember(table: &'static Table, key: &Key, value: Option<&Bytes>) -> Result<Option<DraftOf<Self>>, serde_json::Error>;
}

//! The tables and topics that hold the changes of a service.

use operation::{Call, Operation, Price, Stage};
use schemas::tables::{Table, ViewDef};
use schemas::topics::Topic;
use schemas::views::records::RecordTables;

use super::redaction::Redaction;

/// How many days back callers without a key see of a service that says nothing else.
pub(crate) const SAMPLE_DAYS: i64 = 7;

/// The tables and topics that hold the changes of a service.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The name of the service.
    pub service: &'static str,
    /// The view of the service.
    pub view: &'static ViewDef,
    /// Current records: (id) to a row with `seq` and `record`.
    pub records: &'static Table,
    /// Earlier versions of records: (id, seq descending) to such a row.
    pub history: &'static Table,
    /// The feed table of the view.
    pub feed: &'static Table,
    /// The table of completed sync runs: (upstream, seq descending).
    pub through: &'static Table,
    /// The table of inputs that could not be decided: (key, offset).
    pub parked: &'static Table,
    /// The topic of the service's changes.
    pub topic: &'static Topic,
    /// The topics of the facts that the service is decided from. The upstreams of these topics determine its completeness.
    pub facts: &'static [Topic],
    /// How many days back callers without a key see; `None`: everything.
    pub sample_days: Option<i64>,
    /// How callers below some tier see the records, if not whole. Read it with [`Source::redaction_for`].
    pub redaction: Option<Redaction>,
}

impl Source {
    /// The source of a service of plain records, whose view has the name of the service. It shows the last 7 days to callers without a key.
    #[must_use]
    pub const fn of_records(tables: &RecordTables, topic: &'static Topic, facts: &'static [Topic]) -> Self {
        let RecordTables { view, records, history, feed, through, parked, .. } = *tables;
        Self {
            service: view.name,
            view,
            records,
            history,
            feed,
            through,
            parked,
            topic,
            facts,
            sample_days: Some(SAMPLE_DAYS),
            redaction: None,
        }
    }

    /// Whether the service is decided from the facts of a topic.
    #[must_use]
    pub fn reads(&self, topic: &Topic) -> bool {
        self.facts.iter().any(|fact| fact.name == topic.name)
    }

    /// Who may read single records, their histories and the feed of all changes.
    #[must_use]
    pub fn price_of_records(&self) -> Price {
        self.redaction.filter(|redaction| redaction.ids_are_public).map_or(Price::Free, |redaction| Price::Tier(redaction.whole_from))
    }

    /// Adds the redacted form to the documented answer of an operation over records or changes, if callers below the tier may call it.
    pub fn document_redaction(&self, operation: &mut Operation) {
        if let Some(redaction) = self.redaction.filter(|redaction| !redaction.ids_are_public) {
            redaction.add_to(operation);
        }
    }

    /// How many days back a caller without a key sees; `None`: the caller sees everything, or the redacted form of it.
    #[must_use]
    pub fn sample_days_for(&self, call: &Call) -> Option<i64> {
        self.sample_days.filter(|_| call.caller.key_id.is_empty())
    }

    /// The redaction that applies to a call; `None` if the caller sees whole records, because of a key or a payment.
    #[must_use]
    pub fn redaction_for(&self, call: &Call) -> Option<&Redaction> {
        self.redaction.as_ref().filter(|redaction| match call.stage {
            Stage::Whole => call.caller.tier < redaction.whole_from,
            Stage::Preview => true,
            Stage::Order { .. } | Stage::Claimed(_) | Stage::Paid(_) => false,
        })
    }
}

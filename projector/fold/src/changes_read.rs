//! Changes of another service as inputs of a service. They are read in the order of their chain; the engine's index says which records of the
//! topic belong to it (see `projector::heads`).

use proofs::hash::Hash32;
use schemas::avro;
use schemas::change::{Change, ChangeKind};
use schemas::event::{Fact, FactKind, Run, run_key};
use schemas::topics::Topic;
use serde::de::{DeserializeOwned, IgnoredAny};

/// Reads a change as a fact about its record, for [`crate::service::Service::read`].
///
/// - The fact's version is the `seq` of the change, its key the topic and the id of the record.
/// - `new` and `modified` are observations of the record after the change.
/// - `through` is the end of a run of its upstream: everything before it has been decided.
/// - `noted` and `parked` mean nothing to other services. They have neither a record nor a run, and are passed over (see [`is_silent`]).
///
/// # Errors
/// When the value is no change of the topic.
pub fn read_change<R: DeserializeOwned>(topic: &Topic, value: &[u8]) -> Result<Fact<R>, avro::Error> {
    let change: Change<R, IgnoredAny> = avro::decode(topic.name, value)?;
    let record = if change.event.is_shown() { change.after } else { None };
    let fact = Fact {
        id: avro::datum_hash(topic.name, value)?,
        kind: FactKind::Observed,
        key: format!("{}/{}", topic.name, change.id),
        version: change.seq.stored(),
        prev_hash: change.prev_hash,
        content_hash: Hash32::ZERO,
        upstream: String::new(),
        observed_at: change.recorded_at,
        superseded_by: String::new(),
        data: record,
        run: None,
    };
    Ok(match change.through {
        Some(through) if change.event == ChangeKind::Through => Fact {
            kind: FactKind::RunFinished,
            key: run_key(&through.upstream),
            observed_at: through.finished_at,
            run: Some(Run { through_date: through.through_date, ..Run::default() }),
            upstream: through.upstream,
            ..fact
        },
        _ => fact,
    })
}

/// Whether a fact that was read from a change topic means nothing to other services.
pub fn is_silent<D>(fact: &Fact<D>) -> bool {
    fact.data.is_none() && fact.run.is_none()
}

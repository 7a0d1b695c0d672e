//! Values as readers of Kafka know them from schema registries: a zero byte, the schema's id there, the datum.
//!
//! ```text
//! inside:    C3 01 | fingerprint, 8 bytes | datum           everywhere in this program
//! on Kafka:  00    | id, 4 bytes          | datum           where values are framed by a registry
//! ```
//!
//! Promises: only the frame differs, so hashes of datums, offsets and all that follows from values are the same in either framing;
//! a topic with values in both reads on; a schema that a newer version registered is asked for once; what was framed by a registry and
//! cannot be told from it is an error that names the record, never passed over.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use schemas::avro::{self, Fingerprint};
use schemas::position::LogOffset;
use schemas::topics::Topic;

use super::registry::{self, Registry};
use crate::{Append, Error, EventLog, Stored};

/// How values are framed on Kafka.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// As inside.
    #[default]
    SingleObject,
    /// By a registry.
    Confluent,
}

/// A log whose values are, or were, framed by a registry.
pub struct FramedLog {
    log: Arc<dyn EventLog>,
    framing: Framing,
    registry: Option<Registry>,
    /// What is registered: by schema for writing, by id for reading.
    ids: HashMap<Fingerprint, u32>,
    schemas: RwLock<HashMap<u32, Fingerprint>>,
}

impl FramedLog {
    /// Around a log without a registry: values that were framed by one are refused with the reason.
    #[must_use]
    pub fn unregistered(log: Arc<dyn EventLog>) -> Arc<Self> {
        Arc::new(Self { log, framing: Framing::SingleObject, registry: None, ids: HashMap::new(), schemas: RwLock::default() })
    }

    /// Around a log with a registry, in which every version of every topic's schema is registered under the topic's name with
    /// `prefix` before it and `-value` behind.
    ///
    /// # Errors
    /// When the registry does not answer or refuses a schema.
    pub async fn registered(
        log: Arc<dyn EventLog>,
        topics: &[Topic],
        prefix: &str,
        framing: Framing,
        options: registry::Options,
    ) -> Result<Arc<Self>, registry::Error> {
        let registry = Registry::new(options)?;
        let (mut ids, mut schemas) = (HashMap::new(), HashMap::new());
        for topic in topics {
            let subject = format!("{prefix}{}-value", topic.name);
            // Older ones first, so that a subject's versions ascend.
            for text in avro::ALL.iter().rev().filter(|text| text.topic == topic.name) {
                let Some(fingerprint) = text.fingerprint() else { continue };
                let id = registry.register(&subject, text.json).await?;
                ids.insert(fingerprint, id);
                schemas.insert(id, fingerprint);
            }
        }
        tracing::info!(url = registry.url(), schemas = ids.len(), "schemas are registered");
        Ok(Arc::new(Self { log, framing, registry: Some(registry), ids, schemas: RwLock::new(schemas) }))
    }

    /// As it stands on Kafka.
    fn outside(&self, value: &Bytes) -> Option<Bytes> {
        let (fingerprint, datum) = avro::split(value)?;
        let id = self.ids.get(&fingerprint)?;
        Some([&[0], &id.to_be_bytes()[..], datum].concat().into())
    }

    /// As it stands inside; `None` if the value is not framed by a registry, or none of ours.
    async fn inside(&self, topic: &'static Topic, partition: u32, stored: &Stored) -> Result<Option<Bytes>, Error> {
        let record = &stored.record;
        let Some((id, datum)) = record.value.strip_prefix(&[0]).and_then(|rest| rest.split_first_chunk::<4>()) else { return Ok(None) };
        if !record.headers.is_event() {
            return Ok(None);
        }
        let id = u32::from_be_bytes(*id);
        let known = self.schemas.read().unwrap_or_else(PoisonError::into_inner).get(&id).copied();
        let fingerprint = match known {
            Some(fingerprint) => fingerprint,
            None => self.learn(id).await.map_err(|(reason, source)| Error::Unavailable {
                what: format!("the schema {id} of {}/{partition} offset {} is not known: {reason}", topic.name, stored.offset.0),
                source,
            })?,
        };
        if !avro::is_of(&fingerprint, topic.name) {
            let reason = format!("its schema {id} is of something else: was the registry emptied, or is it another?");
            let (topic, offset) = (topic.name.to_owned(), stored.offset.0);
            return Err(Error::Damaged { topic, partition, offset, reason });
        }
        Ok(Some(avro::join(&fingerprint, datum).into()))
    }

    /// Asks for a schema that this version did not register.
    async fn learn(&self, id: u32) -> Result<Fingerprint, (String, Cause)> {
        let Some(registry) = &self.registry else {
            return Err(("it was framed by a schema registry; name it in avro.registry_url".to_owned(), None));
        };
        let found = registry.schema(id).await.map_err(|error| ("the registry was asked".to_owned(), Some(Box::new(error) as Box<_>)))?;
        let json = found.ok_or_else(|| (format!("the registry at {} has none of that id", registry.url()), None))?;
        let fingerprint = avro::learn(&json).map_err(|error| ("what the registry has is no schema".to_owned(), Some(error.into())))?;
        self.schemas.write().unwrap_or_else(PoisonError::into_inner).insert(id, fingerprint);
        tracing::info!(id, "a schema of another version was learnt");
        Ok(fingerprint)
    }
}

type Cause = Option<Box<dyn std::error::Error + Send + Sync>>;

#[async_trait]
impl EventLog for FramedLog {
    async fn append(&self, mut batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        if self.framing == Framing::Confluent {
            for append in &mut batch {
                if let Some(value) = self.outside(&append.record.value) {
                    append.record.value = value;
                }
            }
        }
        self.log.append(batch).await
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error> {
        let mut records = self.log.read(topic, partition, from, records_max, bytes_max).await?;
        for at in 0..records.len() {
            let Some(stored) = records.get_mut(at) else { break };
            match self.inside(topic, partition, stored).await {
                Ok(Some(value)) => stored.record.value = value,
                Ok(None) => {}
                // What was read before it is kept; the next read begins with it.
                Err(_) if at > 0 => {
                    records.truncate(at);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error> {
        self.log.end(topic, partition).await
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        self.log.wait_past(topic, partition, end).await
    }

    async fn ready(&self) -> Result<(), Error> {
        self.log.ready().await
    }

    async fn close(&self) -> Result<(), Error> {
        self.log.close().await
    }
}

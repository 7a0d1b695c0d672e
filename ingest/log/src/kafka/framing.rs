//! The form of records on Kafka: the schema-registry framing of values (a zero byte, the schema id, and the Avro datum), and headers that describe values.
//!
//! ```text
//! engine:    C3 01 | fingerprint, 8 bytes | datum           everywhere in this program
//! Kafka:     00    | id, 4 bytes          | datum           with a schema registry
//! ```
//!
//! Guarantees: only the framing differs, so content hashes, offsets and all derived data are equal with and without a registry. A topic may
//! contain values of both framings. A schema that a newer version registered is requested once. A value with an unknown schema is an error
//! that names the record; it is never skipped.
//!
//! CloudEvents of public topics have two more headers on Kafka than in this program: `content-type`, which names the framing of the value, and `ce_dataschema`
//! with the URL of its schema. They are added when a record is written and removed when it is read.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use schemas::avro::{self, Fingerprint};
use schemas::position::LogOffset;
use schemas::topics::Topic;

use super::registry::{self, Registry};
use crate::{Append, Error, EventLog, Headers, Record, Stored};

/// The framing of values on Kafka.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// The engine's own framing, without a registry.
    #[default]
    SingleObject,
    /// Confluent framing with a schema registry.
    Confluent,
}

/// A log whose values have, or had, the framing of a schema registry.
pub struct FramedLog {
    log: Arc<dyn EventLog>,
    framing: Framing,
    /// The URL under which the schemas are, by their fingerprints, with a slash at its end.
    schemas_url: String,
    registry: Option<Registry>,
    /// The known schemas: ids by schema for writing, schemas by id for reading.
    ids: HashMap<Fingerprint, u32>,
    schemas: RwLock<HashMap<u32, Fingerprint>>,
}

impl FramedLog {
    /// Wraps a log without a registry. Values that have registry framing are refused with an error that names the setting. Under `schemas_url`, with a slash at
    /// its end, are the schemas by their fingerprints.
    #[must_use]
    pub fn unregistered(log: Arc<dyn EventLog>, schemas_url: String) -> Arc<Self> {
        Arc::new(Self { log, framing: Framing::SingleObject, schemas_url, registry: None, ids: HashMap::new(), schemas: RwLock::default() })
    }

    /// Wraps a log with a registry. Registers every version of every topic's schema under the subject `{prefix}{topic}-value`. For `schemas_url` see
    /// [`unregistered`](Self::unregistered).
    ///
    /// # Errors
    /// When the registry does not answer or refuses a schema.
    pub async fn registered(
        log: Arc<dyn EventLog>,
        schemas_url: String,
        topics: &[Topic],
        prefix: &str,
        framing: Framing,
        options: registry::Options,
    ) -> Result<Arc<Self>, registry::Error> {
        let registry = Registry::new(options)?;
        let (mut ids, mut schemas) = (HashMap::new(), HashMap::new());
        for topic in topics {
            let subject = format!("{prefix}{}-value", topic.name);
            // Older versions first, so that the versions of a subject ascend.
            for text in avro::ALL.iter().rev().filter(|text| text.topic == topic.name) {
                let Some(fingerprint) = text.fingerprint() else { continue };
                let id = registry.register(&subject, text.json).await?;
                ids.insert(fingerprint, id);
                schemas.insert(id, fingerprint);
            }
        }
        tracing::info!(url = registry.url(), schemas = ids.len(), "schemas registered");
        Ok(Arc::new(Self { log, framing, schemas_url, registry: Some(registry), ids, schemas: RwLock::new(schemas) }))
    }

    /// The headers of a record on Kafka; `None` if they are the same: of a record that is no CloudEvent, and of private topics, whose schemas are not served.
    fn described(&self, topic: &Topic, record: &Record, media_type: &str) -> Option<Headers> {
        let (fingerprint, _) = avro::split(&record.value).filter(|_| record.headers.is_event() && !topic.private)?;
        Some(record.headers.with_schema(media_type, &format!("{}{}", self.schemas_url, avro::printed(&fingerprint))))
    }

    /// Converts a value to its framing on Kafka.
    fn outside(&self, value: &Bytes) -> Option<Bytes> {
        let (fingerprint, datum) = avro::split(value)?;
        let id = self.ids.get(&fingerprint)?;
        Some([&[0], &id.to_be_bytes()[..], datum].concat().into())
    }

    /// Converts a value to the engine's framing; `None` if the value has no registry framing or is not one of our records.
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
            None => self.fetch_schema(id).await.map_err(|(reason, source)| Error::Unavailable {
                what: format!("the schema {id} of {}/{partition} offset {} is not known: {reason}", topic.name, stored.offset.0),
                source,
            })?,
        };
        if !avro::is_of(&fingerprint, topic.name) {
            let reason = format!("its schema {id} is of something else: was the registry emptied, or is it another?");
            let (topic, offset) = (topic.name.to_owned(), stored.offset);
            return Err(Error::Damaged { topic, partition, offset, reason });
        }
        Ok(Some(avro::join(&fingerprint, datum).into()))
    }

    /// Requests a schema that this version did not register.
    async fn fetch_schema(&self, id: u32) -> Result<Fingerprint, (String, Cause)> {
        let Some(registry) = &self.registry else {
            return Err(("it has the framing of a schema registry; set avro.registry_url".to_owned(), None));
        };
        let found =
            registry.schema(id).await.map_err(|error| ("the registry did not return it".to_owned(), Some(Box::new(error) as Box<_>)))?;
        let json = found.ok_or_else(|| (format!("the registry at {} has no schema with that id", registry.url()), None))?;
        let fingerprint =
            avro::learn(&json).map_err(|error| ("the registry returned something that is not a schema".to_owned(), Some(error.into())))?;
        self.schemas.write().unwrap_or_else(PoisonError::into_inner).insert(id, fingerprint);
        tracing::info!(id, "loaded a schema of another version");
        Ok(fingerprint)
    }
}

type Cause = Option<Box<dyn std::error::Error + Send + Sync>>;

#[async_trait]
impl EventLog for FramedLog {
    async fn append(&self, mut batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        for append in &mut batch {
            // A value with a schema that is not registered stays a single object.
            let outside = if self.framing == Framing::Confluent { self.outside(&append.record.value) } else { None };
            let media_type = if outside.is_some() { avro::REGISTRY_FRAME_TYPE } else { avro::SINGLE_OBJECT_TYPE };
            if let Some(headers) = self.described(append.topic, &append.record, media_type) {
                append.record.headers = headers;
            }
            if let Some(value) = outside {
                append.record.value = value;
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
                Ok(value) => {
                    stored.record.headers = stored.record.headers.without_schema();
                    if let Some(value) = value {
                        stored.record.value = value;
                    }
                }
                // Records before the error are returned; the next read starts at the error.
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

    async fn last_at_ms(&self) -> Result<i64, Error> {
        self.log.last_at_ms().await
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

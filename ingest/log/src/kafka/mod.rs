//! The log on Apache Kafka, or any broker that speaks its protocol. [README.md](README.md) tells one record's whole way.
//!
//! Promises, beside those of [`EventLog`]:
//! - "Durable" is what the broker means by `acks=all`: every in-sync replica has the record.
//! - Topics are made with their partitions, never expire and are never compacted; one that is otherwise is refused at open.
//! - An append whose answer was lost fails, and may stand in the log all the same; what repeats does not chain.
//! - Read positions belong to the callers. No consumer group is ever joined.

mod ask;
mod connect;
mod fetch;
mod framed;
mod publish;
pub mod registry;
mod settings;
mod tail;
mod topics;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::consumer::BaseConsumer;
use schemas::position::LogOffset;
use schemas::topics::Topic;
use tokio::sync::watch;

use self::ask::Asker;
use self::fetch::Fetchers;
pub use self::framed::{FramedLog, Framing};
use self::publish::Publisher;
pub use self::settings::Options;
use self::settings::{Told, failed};
use self::tail::Tail;
use crate::{Append, Error, EventLog, Stored};

/// How long a call waits for a broker that does not answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long the question whether they answer at all waits.
const READY_MAX: Duration = Duration::from_secs(2);

/// Before a client is replaced that was lately made, and before it is told anew what to follow.
const ANEW_PAUSE: Duration = Duration::from_secs(1);

/// One partition.
struct Place {
    topic: &'static Topic,
    partition: u32,
    /// The topic's name on the broker.
    name: Arc<str>,
    /// The highest end known: acknowledged, seen or asked for.
    end: watch::Sender<u64>,
}

impl Place {
    /// Takes in that the partition ends at `end` at least.
    fn raise_end(&self, end: u64) {
        self.end.send_if_modified(|known| {
            let is_higher = end > *known;
            *known = (*known).max(end);
            is_higher
        });
    }

    fn partition_i32(&self) -> i32 {
        i32::try_from(self.partition).unwrap_or(i32::MAX)
    }
}

/// What all parts share.
struct Shared {
    options: Options,
    /// All partitions of all topics, in the order of `options.topics`.
    places: Vec<Place>,
    closed: watch::Sender<bool>,
}

impl Shared {
    fn place_index(&self, topic: &'static Topic, partition: u32) -> Result<usize, Error> {
        let found = self.places.iter().position(|place| place.topic.name == topic.name && place.partition == partition);
        found.ok_or(Error::NoPartition { topic: topic.name, partition })
    }

    /// A new client that reads or asks.
    fn consumer(&self) -> Result<BaseConsumer<Told>, Error> {
        let made = self.options.consumer().create_with_context(Told::default());
        made.map_err(|error| failed(&self.options, "the consumer cannot be made", Some(error)))
    }

    fn closed(&self) -> Error {
        Error::Unavailable { what: format!("the log on kafka at {} is closed", self.options.brokers), source: None }
    }
}

/// A log on Kafka.
pub struct KafkaLog {
    shared: Arc<Shared>,
    publisher: Publisher,
    asker: Arc<Asker>,
    tail: Tail,
    fetchers: Fetchers,
}

impl KafkaLog {
    /// Connects, makes the topics that are missing, and checks those that are there.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if no broker answers, credentials are refused, or a topic is not as it must be; the reason says which.
    pub async fn open(options: Options) -> Result<Arc<Self>, Error> {
        connect::reach(&options).await?;
        topics::make(&options).await?;
        let mut places = Vec::new();
        for topic in options.topics {
            let name: Arc<str> = options.name_of(topic).into();
            for partition in 0..topic.partitions {
                places.push(Place { topic, partition, name: Arc::clone(&name), end: watch::Sender::new(0) });
            }
        }
        let shared = Arc::new(Shared { options, places, closed: watch::Sender::new(false) });
        let publisher = Publisher::new(&shared)?;
        let asker = Asker::new(&shared)?;
        let tail = Tail::start(&shared, &asker)?;
        let fetchers = Fetchers::new(&shared);
        Ok(Arc::new(Self { shared, publisher, asker, tail, fetchers }))
    }

    fn place(&self, topic: &'static Topic, partition: u32) -> Result<(usize, &Place), Error> {
        let index = self.shared.place_index(topic, partition)?;
        let place = self.shared.places.get(index).ok_or(Error::NoPartition { topic: topic.name, partition })?;
        Ok((index, place))
    }

    /// The partition's end, as the broker says it now.
    async fn ask_end(&self, index: usize) -> Result<u64, Error> {
        let end = self.asker.end(index).await?;
        if let Some(place) = self.shared.places.get(index) {
            place.raise_end(end);
            // An acknowledged record is there, whatever an older answer says.
            return Ok(end.max(*place.end.borrow()));
        }
        Ok(end)
    }
}

#[async_trait]
impl EventLog for KafkaLog {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        self.publisher.append(batch).await
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error> {
        let (index, place) = self.place(topic, partition)?;
        self.tail.follow(index).await?;
        let mut end = *place.end.borrow();
        if from.0 >= end {
            end = self.ask_end(index).await?;
        }
        if from.0 >= end || records_max == 0 {
            return Ok(Vec::new());
        }
        let limits = fetch::Limits { from: from.0, end, records_max, bytes_max };
        let tailed = tokio::time::timeout(ANSWER_MAX, self.tail.read(index, limits)).await;
        match tailed.map_err(|_| failed(&self.shared.options, "reading the newest records: none came", None))?? {
            Some(records) => Ok(records),
            None => self.fetchers.read(index, limits).await,
        }
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error> {
        let (index, _) = self.place(topic, partition)?;
        self.ask_end(index).await.map(LogOffset)
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        let (index, place) = self.place(topic, partition)?;
        self.tail.follow(index).await?;
        let (mut known, mut closed) = (place.end.subscribe(), self.shared.closed.subscribe());
        tokio::select! {
            _ = known.wait_for(|known| *known > end.0) => Ok(()),
            _ = closed.wait_for(|closed| *closed) => Err(self.shared.closed()),
        }
    }

    async fn ready(&self) -> Result<(), Error> {
        if *self.shared.closed.borrow() {
            return Err(self.shared.closed());
        }
        self.asker.brokers().await
    }

    async fn close(&self) -> Result<(), Error> {
        if self.shared.closed.send_replace(true) {
            return Ok(());
        }
        self.tail.stop().await;
        self.publisher.close().await
    }
}

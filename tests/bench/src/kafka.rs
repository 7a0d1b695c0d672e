//! The log on Kafka compared with rdkafka alone: batches of realistic facts are appended and read back, by clients with the same settings,
//! on the same topic, in turn. The difference is the log's checks, limits, ordering within a batch, and bookkeeping records.

use std::sync::Arc;
use std::time::{Duration, Instant};

use event_log::kafka::{KafkaLog, Options};
use event_log::{Append, EventLog};
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use schemas::position::LogOffset;
use schemas::topics::{Topic, TopicKind};
use tokio::task::JoinSet;

use crate::report::{figure, heading, latency, median, number, processor_s, ratio};
use crate::{Failure, Settings, facts, servers};

/// Facts in a batch.
const BATCH: usize = 500;
/// Concurrent batches in the second comparison, as when several streams are synced.
const CONCURRENT_BATCHES: usize = 4;
/// Facts appended in one round of each side.
const APPENDED_MAX: usize = 50_000;
/// Facts read in one round of each side.
const READ_MAX: usize = 200_000;
/// The largest read, as in the projector.
const READ_RECORDS: usize = 2_000;
const READ_BYTES: usize = 4 << 20;
/// Facts appended one at a time.
const SINGLES: usize = 300;

/// Compares on topics with the given numbers of partitions, one after another.
pub(crate) fn run(settings: &Settings, brokers: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let facts = facts::of(settings, APPENDED_MAX).await?;
        for partitions in &settings.partitions {
            let topics: &'static [Topic] =
                Box::leak(Box::new([Topic { name: "facts", kind: TopicKind::Facts, partitions: *partitions, private: false }]));
            let [topic] = topics else { continue };
            let place = |append: &Append| Append { topic, partition: topic.partition_of(&append.record.key), ..append.clone() };
            let facts: Vec<Append> = facts.iter().map(place).collect();
            let options = servers::log_options(brokers, &engines::unique("bench"), topics, settings.replication);
            heading(&format!(
                "kafka: batches of {BATCH} facts, {partitions} partitions, replication {} on {} brokers",
                settings.replication,
                brokers.split(',').count()
            ));
            let compared = compare(settings, &options, topic, &facts).await;
            engines::remove_topics(brokers, &options.prefix).await?;
            compared?;
        }
        Ok(())
    })
}

/// Rates and processor times of one side.
#[derive(Default)]
struct Side {
    a_second: Vec<f64>,
    processor_us: Vec<f64>,
}

impl Side {
    async fn measure(&mut self, facts: usize, act: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
        let (started, before) = (Instant::now(), number(&processor_s(), "total"));
        act.await?;
        self.a_second.push(facts as f64 / started.elapsed().as_secs_f64());
        self.processor_us.push((number(&processor_s(), "total") - before) * 1e6 / facts as f64);
        Ok(())
    }
}

/// Both sides of one comparison.
#[derive(Default)]
struct Pair {
    ours: Side,
    theirs: Side,
}

impl Pair {
    /// Prints both sides; the first round of each is a warm-up and is not counted.
    fn show(self, what: &str) {
        let Self { ours, theirs } = self;
        let of_both = ours.a_second.iter().zip(&theirs.a_second).skip(1).map(|(ours, theirs)| ours / theirs).collect();
        for (name, side) in [(what, ours), ("  rdkafka alone", theirs)] {
            let counting = |values: Vec<f64>| median(values.into_iter().skip(1).collect());
            let (rate, processor_us) = (counting(side.a_second), counting(side.processor_us));
            figure(&format!("{name}, per second (processor us each)"), format!("{rate:.0} ({processor_us:.1})"));
        }
        let value = median(of_both);
        ratio("  ours / rdkafka's", value, value >= 0.5, ">= 0.5");
    }
}

async fn compare(settings: &Settings, options: &Options, topic: &'static Topic, facts: &[Append]) -> Result<(), Failure> {
    let log = KafkaLog::open(options.clone()).await?;
    let producer: Arc<FutureProducer> = Arc::new(options.producer().create()?);
    let batches: Vec<&[Append]> = facts.chunks(BATCH).collect();
    figure("facts a round", facts.len());
    figure("bytes of a fact", facts.iter().map(|fact| facts::bytes_of(&fact.record)).sum::<usize>() / facts.len().max(1));
    let (mut one, mut some, mut read) = (Pair::default(), Pair::default(), Pair::default());
    for _ in 0..=settings.rounds {
        for (pair, concurrency) in [(&mut one, 1), (&mut some, CONCURRENT_BATCHES)] {
            pair.ours.measure(facts.len(), append(&log, &batches, concurrency)).await?;
            pair.theirs.measure(facts.len(), send(&producer, options, &batches, concurrency)).await?;
        }
    }
    one.show("appended, one batch at a time");
    some.show(&format!("appended, {CONCURRENT_BATCHES} concurrent batches"));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for fact in facts.iter().take(SINGLES) {
        let started = Instant::now();
        log.append(vec![fact.clone()]).await?;
        ours.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        send(&producer, options, &[std::slice::from_ref(fact)], 1).await?;
        theirs.push(started.elapsed().as_secs_f64());
    }
    latency("one fact appended", &ours);
    latency("  rdkafka alone", &theirs);
    let mut ends = Vec::new();
    for partition in 0..topic.partitions {
        ends.push(log.end(topic, partition).await?.0.min((READ_MAX / topic.partitions as usize) as u64));
    }
    log.close().await?;
    let count = usize::try_from(ends.iter().sum::<u64>())?;
    for _ in 0..=settings.rounds {
        // A log as another process opens it, which has read nothing yet.
        let reader = KafkaLog::open(options.clone()).await?;
        read.ours.measure(count, read_back(&reader, topic, &ends)).await?;
        reader.close().await?;
        let (options, ends) = (options.clone(), ends.clone());
        let polled = tokio::task::spawn_blocking(move || poll(&options, topic, &ends));
        read.theirs.measure(count, async { polled.await? }).await?;
    }
    read.show("read back");
    Ok(())
}

/// Appends batches through the log with the given concurrency.
async fn append(log: &Arc<KafkaLog>, batches: &[&[Append]], concurrency: usize) -> Result<(), Failure> {
    let mut under_way = JoinSet::new();
    for batch in batches {
        while under_way.len() >= concurrency {
            under_way.join_next().await.transpose()?.transpose()?;
        }
        let (log, batch) = (Arc::clone(log), batch.to_vec());
        under_way.spawn(async move { log.append(batch).await.map(|_| ()) });
    }
    while let Some(done) = under_way.join_next().await {
        done??;
    }
    Ok(())
}

/// Sends the same batches with the client alone: all records of a batch are sent, then each delivery is awaited.
async fn send(producer: &Arc<FutureProducer>, options: &Options, batches: &[&[Append]], concurrency: usize) -> Result<(), Failure> {
    let mut under_way = JoinSet::new();
    for batch in batches {
        while under_way.len() >= concurrency {
            under_way.join_next().await.transpose()?.transpose()?;
        }
        let (producer, options, batch) = (Arc::clone(producer), options.clone(), batch.to_vec());
        under_way.spawn(async move { send_batch(&producer, &options, &batch).await });
    }
    while let Some(done) = under_way.join_next().await {
        done??;
    }
    Ok(())
}

async fn send_batch(producer: &FutureProducer, options: &Options, batch: &[Append]) -> Result<(), Failure> {
    let mut deliveries = Vec::with_capacity(batch.len());
    let Some(name) = batch.first().map(|append| options.name_of(append.topic)) else { return Ok(()) };
    for Append { partition, record, .. } in batch {
        let mut headers = OwnedHeaders::new();
        for (key, value) in record.headers.iter() {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        let message: FutureRecord<'_, [u8], [u8]> = FutureRecord::to(&name)
            .partition(i32::try_from(*partition)?)
            .key(&record.key[..])
            .payload(&record.value[..])
            .timestamp(record.at_ms)
            .headers(headers);
        deliveries.push(producer.send_result(message).map_err(|(error, _)| error)?);
    }
    for delivery in deliveries {
        delivery.await?.map_err(|(error, _)| error)?;
    }
    Ok(())
}

/// Reads all partitions up to their ends, in turn, as the latest-version index does.
async fn read_back(log: &Arc<KafkaLog>, topic: &'static Topic, ends: &[u64]) -> Result<(), Failure> {
    let mut next = vec![0; ends.len()];
    loop {
        let mut moved = false;
        for ((partition, next), end) in (0..).zip(&mut next).zip(ends) {
            if *next < *end {
                let most = READ_RECORDS.min(usize::try_from(*end - *next)?);
                let batch = log.read(topic, partition, LogOffset(*next), most, READ_BYTES).await?;
                *next = batch.last().ok_or("records are missing")?.offset.next().0;
                moved = true;
            }
        }
        if !moved {
            return Ok(());
        }
    }
}

/// Polls all partitions up to their ends with the client alone.
fn poll(options: &Options, topic: &'static Topic, ends: &[u64]) -> Result<(), Failure> {
    let consumer: BaseConsumer = options.consumer().create()?;
    let mut list = TopicPartitionList::new();
    for (partition, _) in (0..).zip(ends) {
        list.add_partition_offset(&options.name_of(topic), partition, Offset::Offset(0))?;
    }
    consumer.assign(&list)?;
    let (mut left, mut bytes) = (ends.iter().sum::<u64>(), 0);
    while left > 0 {
        let message = consumer.poll(Duration::from_secs(10)).ok_or("no record arrived within 10 seconds")??;
        let end = ends.get(usize::try_from(message.partition())?).copied().unwrap_or_default();
        if u64::try_from(message.offset())? < end {
            bytes += message.key_len() + message.payload_len();
            left -= 1;
        }
    }
    std::hint::black_box(bytes);
    Ok(())
}

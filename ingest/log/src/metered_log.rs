//! Wraps any log and counts the calls that go through it. The metrics are in the default registry of the process; their labels are topics
//! and calls.
//!
//! Guarantee: results are passed on unchanged. If the registry refuses a metric, the calls continue without it.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use prometheus::core::{Collector, Desc};
use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts};
use schemas::position::LogOffset;
use schemas::topics::Topic;

use crate::{Append, Error, EventLog, Stored};

static RECORDS: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("log_records_appended_total", "Records appended, by topic", "topic"));
static BYTES: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("log_bytes_appended_total", "Bytes of keys and values appended, by topic", "topic"));
static FAILURES: LazyLock<Option<IntCounterVec>> =
    LazyLock::new(|| counter("log_failures_total", "Calls that the log answered with an error, by call", "call"));
static WAITING: LazyLock<Option<IntGauge>> = LazyLock::new(|| {
    let gauge = IntGauge::new("log_appends_waiting", "Batches handed to the log and not yet durable").ok()?;
    prometheus::register(Box::new(gauge.clone())).ok()?;
    Some(gauge)
});
static SECONDS: LazyLock<Option<Histogram>> = LazyLock::new(|| {
    let opts = HistogramOpts::new("log_append_seconds", "Seconds from handing a batch over until it is durable")
        .buckets(vec![0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]);
    let histogram = Histogram::with_opts(opts).ok()?;
    prometheus::register(Box::new(histogram.clone())).ok()?;
    Some(histogram)
});

fn counter(name: &str, help: &str, label: &str) -> Option<IntCounterVec> {
    let counter = IntCounterVec::new(Opts::new(name, help), &[label]).ok()?;
    prometheus::register(Box::new(counter.clone())).ok()?;
    Some(counter)
}

/// Describes every metric of this module, for the generated table of metrics.
#[must_use]
pub fn described() -> Vec<Desc> {
    fn of<C: Collector>(metric: &Option<C>) -> Vec<Desc> {
        metric.iter().flat_map(Collector::desc).cloned().collect()
    }
    [of(&RECORDS), of(&BYTES), of(&FAILURES), of(&WAITING), of(&SECONDS)].concat()
}

/// A log with metrics.
pub struct Metered {
    log: Arc<dyn EventLog>,
}

impl Metered {
    /// Wraps a log.
    #[must_use]
    pub fn wrap(log: Arc<dyn EventLog>) -> Arc<dyn EventLog> {
        Arc::new(Self { log })
    }
}

/// Counts an error and passes the result on.
fn count_failure<T>(call: &str, result: Result<T, Error>) -> Result<T, Error> {
    if let (Err(_), Some(failures)) = (&result, FAILURES.as_ref()) {
        failures.with_label_values(&[call]).inc();
    }
    result
}

/// Counts a batch as waiting until it is dropped, also when its caller is cancelled.
struct Waiting;

impl Waiting {
    fn begin() -> Self {
        if let Some(waiting) = WAITING.as_ref() {
            waiting.inc();
        }
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(waiting) = WAITING.as_ref() {
            waiting.dec();
        }
    }
}

#[async_trait]
impl EventLog for Metered {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        // A batch has few topics; each has one entry here.
        let mut sums: Vec<(&'static str, u64, u64)> = Vec::new();
        for append in &batch {
            let bytes = (append.record.key.len() + append.record.value.len()) as u64;
            match sums.iter_mut().find(|(topic, _, _)| *topic == append.topic.name) {
                Some(sum) => (sum.1, sum.2) = (sum.1 + 1, sum.2 + bytes),
                None => sums.push((append.topic.name, 1, bytes)),
            }
        }
        let (_waiting, timer) = (Waiting::begin(), SECONDS.as_ref().map(Histogram::start_timer));
        let offsets = self.log.append(batch).await;
        if let Some(timer) = timer {
            timer.observe_duration();
        }
        let offsets = count_failure("append", offsets)?;
        for (topic, records, bytes) in sums {
            for (counter, amount) in [(&RECORDS, records), (&BYTES, bytes)] {
                if let Some(counter) = counter.as_ref() {
                    counter.with_label_values(&[topic]).inc_by(amount);
                }
            }
        }
        Ok(offsets)
    }

    async fn read(
        &self,
        topic: &'static Topic,
        partition: u32,
        from: LogOffset,
        records_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Error> {
        count_failure("read", self.log.read(topic, partition, from, records_max, bytes_max).await)
    }

    async fn end(&self, topic: &'static Topic, partition: u32) -> Result<LogOffset, Error> {
        count_failure("end", self.log.end(topic, partition).await)
    }

    async fn last_at_ms(&self) -> Result<i64, Error> {
        count_failure("last_at_ms", self.log.last_at_ms().await)
    }

    async fn ends(&self, topics: &[&'static Topic]) -> Result<Vec<Vec<LogOffset>>, Error> {
        count_failure("ends", self.log.ends(topics).await)
    }

    async fn wait_past(&self, topic: &'static Topic, partition: u32, end: LogOffset) -> Result<(), Error> {
        count_failure("wait_past", self.log.wait_past(topic, partition, end).await)
    }

    async fn ready(&self) -> Result<(), Error> {
        self.log.ready().await
    }

    async fn close(&self) -> Result<(), Error> {
        self.log.close().await
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use schemas::topics::{CHANGES_RECALLS, RECALLS};

    use super::*;
    use crate::Record;
    use crate::embedded::{EmbeddedLog, Options};

    fn counted(counter: &LazyLock<Option<IntCounterVec>>, label: &str) -> u64 {
        counter.as_ref().as_ref().unwrap().with_label_values(&[label]).get()
    }

    /// Proves that records and bytes are counted by topic once they are durable, and failures by call.
    #[tokio::test]
    async fn counts() {
        let dir = tempfile::tempdir().unwrap();
        let log = Metered::wrap(EmbeddedLog::open(dir.path(), Options::default()).unwrap());
        let append = |topic, partition, value: &'static [u8]| Append {
            topic,
            partition,
            record: Record { key: Bytes::from_static(b"k"), value: Bytes::from_static(value), ..Record::default() },
        };
        let batch = vec![append(&RECALLS, 0, b"12"), append(&CHANGES_RECALLS, 0, b"345"), append(&RECALLS, 1, b"6")];
        log.append(batch).await.unwrap();
        assert_eq!((counted(&RECORDS, "recalls"), counted(&BYTES, "recalls")), (2, 5));
        assert_eq!((counted(&RECORDS, "changes.recalls"), counted(&BYTES, "changes.recalls")), (1, 4));
        assert_eq!(WAITING.as_ref().unwrap().get(), 0);
        log.end(&RECALLS, 99).await.unwrap_err();
        log.append(vec![append(&RECALLS, 99, b"7")]).await.unwrap_err();
        assert_eq!((counted(&FAILURES, "end"), counted(&FAILURES, "append")), (1, 1));
        assert_eq!(counted(&RECORDS, "recalls"), 2);
        assert_eq!(described().len(), 5);
    }
}

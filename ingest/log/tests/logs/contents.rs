//! What a log holds, for the tests that copy logs.

use event_log::{EventLog, Stored};
use schemas::position::LogOffset;
use schemas::topics::Topic;

/// All records of some topics, by topic and partition.
pub(crate) async fn contents_of(
    log: &dyn EventLog,
    topics: impl IntoIterator<Item = &'static Topic>,
) -> Vec<(&'static str, u32, Vec<Stored>)> {
    let mut out = Vec::new();
    for topic in topics {
        for partition in 0..topic.partitions {
            let (mut records, mut from) = (Vec::new(), LogOffset(0));
            loop {
                let batch = log.read(topic, partition, from, 1_000, 1 << 20).await.unwrap();
                let Some(last) = batch.last() else { break };
                from = last.offset.next();
                records.extend(batch);
            }
            out.push((topic.name, partition, records));
        }
    }
    out
}

//! Figures for capacity planning: bytes per record in each topic, and rows and bytes in each table, of the data that `ingest` created.

use event_log::EventLog;
use event_log::embedded::EmbeddedLog;
use schemas::position::LogOffset;
use schemas::tables::{Datum, Key, ViewDef};
use schemas::topics::{CHANGES_RECALLS, RECALLS, Topic};
use schemas::views::{engine, recalls};
use view_store::ViewStore;
use view_store::embedded::EmbeddedStore;
use view_store::store::Span;

use crate::report::{figure, heading, line};
use crate::{Failure, Settings, facts, ingest};

/// The largest number of records and rows per read.
const READ_RECORDS: usize = 2_000;
const READ_BYTES: usize = 4 << 20;

/// Reads all topics and tables once.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    heading(&format!("sizes: topics and tables of {} simulated records", settings.records));
    ingest::prepare(settings)?;
    let dir = ingest::data_dir(settings);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let log = EmbeddedLog::open(&dir.join("log"), event_log::embedded::Options::default())?;
        line("  topic: records, bytes of one (mean of key, value and headers), the largest");
        for topic in [&RECALLS, &CHANGES_RECALLS] {
            topic_sizes(&*log, topic).await?;
        }
        log.close().await?;
        let store = EmbeddedStore::open(&dir.join("views"), view_store::embedded::Options::default())?;
        line("  table: rows, bytes of one (mean of key and value), the largest, rows in the largest partition");
        for def in [&engine::VIEW, &recalls::VIEW] {
            table_sizes(&store, def).await?;
        }
        store.close().await?;
        Ok(())
    })
}

async fn topic_sizes(log: &dyn EventLog, topic: &'static Topic) -> Result<(), Failure> {
    let (mut count, mut bytes, mut most) = (0, 0, 0);
    for partition in 0..topic.partitions {
        let mut next = LogOffset(0);
        loop {
            let batch = log.read(topic, partition, next, READ_RECORDS, READ_BYTES).await?;
            let Some(last) = batch.last() else { break };
            next = last.offset.next();
            for size in batch.iter().map(|stored| facts::bytes_of(&stored.record)) {
                (count, bytes, most) = (count + 1, bytes + size, most.max(size));
            }
        }
    }
    figure(topic.name, format!("{count}, {}, {most}", bytes / count.max(1)));
    Ok(())
}

async fn table_sizes(store: &EmbeddedStore, def: &'static ViewDef) -> Result<(), Failure> {
    let view = store.live(def).await?;
    for table in def.tables {
        let mut scan = view.scan(table, Span::default());
        let (mut count, mut bytes, mut most) = (0, 0, 0);
        let (mut partition, mut in_partition, mut in_largest) = (Key::new(), 0, 0);
        loop {
            let rows = scan.next(READ_RECORDS).await?;
            if rows.is_empty() {
                break;
            }
            for (key, value) in rows {
                let size = key.iter().map(datum_bytes).sum::<usize>() + value.len();
                (count, bytes, most) = (count + 1, bytes + size, most.max(size));
                let own = &key[..table.partition_columns];
                if own != partition {
                    (partition, in_partition) = (own.to_vec(), 0);
                }
                in_partition += 1;
                in_largest = in_largest.max(in_partition);
            }
        }
        figure(table.name, format!("{count}, {}, {most}, {in_largest}", bytes / count.max(1)));
    }
    Ok(())
}

fn datum_bytes(datum: &Datum) -> usize {
    match datum {
        Datum::Text(text) => text.len(),
        Datum::Int(_) => size_of::<i64>(),
    }
}

//! The lag of views, in records and in time.

use std::sync::Arc;

use async_trait::async_trait;
use event_log::{Append, Error, EventLog, Stored};
use projector::lag::{self, Lag};
use projector::metrics;
use schemas::position::LogOffset;
use schemas::topics::Topic;

use crate::harness::{Content, Engine, clock, recall};

async fn lag_of(engine: &Engine, view: &str) -> Lag {
    let lags = lag::measure(&engine.parts()).await.unwrap();
    lags.into_iter().find(|lag| lag.view == view).unwrap()
}

/// Proves that each view lags by the records that it has not passed, since the oldest of them was appended, and not at all once it has
/// passed them.
#[tokio::test]
async fn lag_counts_records_not_passed() {
    let mut engine = Engine::new().await;
    assert_eq!(lag_of(&engine, "recalls").await, Lag { view: "recalls", events: 0, seconds: 0 });
    let content: Vec<_> = (0..3)
        .map(|n| (format!("cpsc/{n}"), Content::Observed(recall("cpsc", "CPSC", &n.to_string(), "Title", "Brand", "2026-01-01"))))
        .collect();
    // The records of this harness have the append time 0.
    let seconds = u64::try_from(clock().now_ms() / 1_000).unwrap();
    engine.append_chained(&content).await;
    assert_eq!(lag_of(&engine, "engine").await, Lag { view: "engine", events: 0, seconds: 0 }, "the latest-version index must be current");
    assert_eq!(lag_of(&engine, "recalls").await, Lag { view: "recalls", events: 3, seconds });
    engine.catch_up().await;
    assert_eq!(lag_of(&engine, "recalls").await, Lag { view: "recalls", events: 0, seconds: 0 });
}

/// Proves that duplicates, which do not extend a chain, do not count as lag once they are passed.
#[tokio::test]
async fn duplicates_do_not_count_as_lag() {
    let mut engine = Engine::new().await;
    let fact = engine.fact("cpsc/1", &Default::default(), &Content::Observed(recall("cpsc", "CPSC", "1", "Title", "Brand", "2026-01-01")));
    engine.append(&[fact.clone(), fact]).await;
    assert_eq!(lag_of(&engine, "engine").await.events, 2);
    engine.catch_up().await;
    for view in ["engine", "recalls"] {
        assert_eq!(lag_of(&engine, view).await.events, 0, "{view}");
    }
}

/// A log whose broker is unreachable.
struct UnreachableLog;

fn gone<T>() -> Result<T, Error> {
    Err(Error::Unavailable { what: "no broker answers".to_owned(), source: None })
}

#[async_trait]
impl EventLog for UnreachableLog {
    async fn append(&self, _: Vec<Append>) -> Result<Vec<LogOffset>, Error> {
        gone()
    }

    async fn read(&self, _: &'static Topic, _: u32, _: LogOffset, _: usize, _: usize) -> Result<Vec<Stored>, Error> {
        gone()
    }

    async fn end(&self, _: &'static Topic, _: u32) -> Result<LogOffset, Error> {
        gone()
    }

    async fn wait_past(&self, _: &'static Topic, _: u32, _: LogOffset) -> Result<(), Error> {
        gone()
    }

    async fn close(&self) -> Result<(), Error> {
        gone()
    }
}

/// Returns the current value of a gauge, by the value of its label (empty for none).
fn gauge(name: &str, label: &str) -> Option<f64> {
    let family = prometheus::gather().into_iter().find(|family| family.name() == name)?;
    let metric = family.get_metric().iter().find(|metric| metric.get_label().first().map_or("", |pair| pair.value()) == label)?;
    Some(metric.get_gauge().get_value())
}

/// Proves that a sample records the lag, that a log which does not answer is down while the store is up, and that both are up again
/// afterwards.
#[tokio::test]
async fn unreachable_log_is_reported_as_down() {
    let mut engine = Engine::new().await;
    let content = Content::Observed(recall("cpsc", "CPSC", "1", "Title", "Brand", "2026-01-01"));
    engine.append_chained(&[("cpsc/1".to_owned(), content)]).await;
    let (parts, mut without) = (engine.parts(), engine.parts());
    without.log = Arc::new(UnreachableLog);
    metrics::sample(&without).await;
    assert_eq!((gauge("engine_log_up", ""), gauge("engine_store_up", "")), (Some(0.0), Some(1.0)));
    metrics::sample(&parts).await;
    assert_eq!((gauge("engine_log_up", ""), gauge("engine_store_up", "")), (Some(1.0), Some(1.0)));
    assert_eq!(gauge("projector_lag_events", "recalls"), Some(1.0));
    engine.catch_up().await;
    metrics::sample(&parts).await;
    assert_eq!(gauge("projector_lag_events", "recalls"), Some(0.0));
}

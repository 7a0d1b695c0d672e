//! How far the views are behind, in events and in time.

use std::sync::Arc;

use async_trait::async_trait;
use event_log::{Append, Error, EventLog, Stored};
use projector::lag::{self, Lag};
use projector::metrics;
use schemas::position::LogOffset;
use schemas::topics::Topic;

use crate::harness::{Engine, Said, clock, recall};

async fn of(engine: &Engine, view: &str) -> Lag {
    let lags = lag::measure(&engine.parts()).await.unwrap();
    lags.into_iter().find(|lag| lag.view == view).unwrap()
}

/// Proves that each view lags by what it has not passed, from the time at which the oldest of that was appended, and by nothing once it has.
#[tokio::test]
async fn what_is_not_passed() {
    let mut engine = Engine::new().await;
    assert_eq!(of(&engine, "recalls").await, Lag { view: "recalls", events: 0, seconds: 0 });
    let said: Vec<_> = (0..3)
        .map(|n| (format!("cpsc/{n}"), Said::Observed(recall("cpsc", "CPSC", &n.to_string(), "Title", "Brand", "2026-01-01"))))
        .collect();
    // The records of this harness are appended at the first moment of 1970.
    let seconds = u64::try_from(clock().now_ms() / 1_000).unwrap();
    engine.say_without_deciding(&said).await;
    assert_eq!(of(&engine, "engine").await, Lag { view: "engine", events: 0, seconds: 0 }, "its heads are kept");
    assert_eq!(of(&engine, "recalls").await, Lag { view: "recalls", events: 3, seconds });
    engine.catch_up().await;
    assert_eq!(of(&engine, "recalls").await, Lag { view: "recalls", events: 0, seconds: 0 });
}

/// Proves that what does not chain is no lag once it is passed.
#[tokio::test]
async fn repeats_are_no_lag() {
    let mut engine = Engine::new().await;
    let fact = engine.fact("cpsc/1", &Default::default(), &Said::Observed(recall("cpsc", "CPSC", "1", "Title", "Brand", "2026-01-01")));
    engine.append(&[fact.clone(), fact]).await;
    assert_eq!(of(&engine, "engine").await.events, 2);
    engine.catch_up().await;
    for view in ["engine", "recalls"] {
        assert_eq!(of(&engine, view).await.events, 0, "{view}");
    }
}

/// A log whose broker is gone.
struct Gone;

fn gone<T>() -> Result<T, Error> {
    Err(Error::Unavailable { what: "no broker answers".to_owned(), source: None })
}

#[async_trait]
impl EventLog for Gone {
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

/// What a gauge shows now, by the value of its label (empty for none).
fn shown(name: &str, label: &str) -> Option<f64> {
    let family = prometheus::gather().into_iter().find(|family| family.name() == name)?;
    let metric = family.get_metric().iter().find(|metric| metric.get_label().first().map_or("", |pair| pair.value()) == label)?;
    Some(metric.get_gauge().get_value())
}

/// Proves that a sample shows lag, that a log which does not answer is down while the store is up, and that both are up again afterwards.
#[tokio::test]
async fn a_log_that_is_gone_is_down() {
    let mut engine = Engine::new().await;
    let said = Said::Observed(recall("cpsc", "CPSC", "1", "Title", "Brand", "2026-01-01"));
    engine.say_without_deciding(&[("cpsc/1".to_owned(), said)]).await;
    let (parts, mut without) = (engine.parts(), engine.parts());
    without.log = Arc::new(Gone);
    metrics::sample(&without).await;
    assert_eq!((shown("engine_log_up", ""), shown("engine_store_up", "")), (Some(0.0), Some(1.0)));
    metrics::sample(&parts).await;
    assert_eq!((shown("engine_log_up", ""), shown("engine_store_up", "")), (Some(1.0), Some(1.0)));
    assert_eq!(shown("projector_lag_events", "recalls"), Some(1.0));
    engine.catch_up().await;
    metrics::sample(&parts).await;
    assert_eq!(shown("projector_lag_events", "recalls"), Some(0.0));
}

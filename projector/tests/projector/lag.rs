//! How far the views are behind, in events and in time.

use projector::lag::{self, Lag};

use crate::harness::{Engine, Said, clock, recall};

async fn of(engine: &Engine, view: &str) -> Lag {
    let lags = lag::of(&engine.parts()).await.unwrap();
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

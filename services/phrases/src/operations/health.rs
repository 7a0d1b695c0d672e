//! What `GET /health` of the phrases service says in addition: how far each source has been read, and the state of the register.

use feed::position::Position;
use operation::context::Context;
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;
use velocity::calendar::{DAY_HOURS, HOUR_MS, hour_text};
use velocity::measure::WINDOW_DEFAULT;
use velocity::rows::{DayEntry, LOWEST_TERM, week_of_day};

use super::clearance::{Registry, registry};
use super::index;
use super::ledger::Ledger;
use reads::health::HealthFields;

/// Stories are late from so many hours on. An hour is complete when it is two hours old.
const STORIES_LATE_HOURS: i64 = 6;
/// Page views are late from so many hours on. A day is published one or two days after its end.
const VIEWS_LATE_HOURS: i64 = 4 * DAY_HOURS;
/// The newest day of page views is searched in so many weeks.
const WEEKS_SEARCHED: i64 = 8;

/// The sources of the service.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sources {
    /// The sources.
    pub sources: Vec<Status>,
    /// The state of the register of trademarks.
    pub registry: Registry,
}

/// How far a source has been read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PhraseSource")]
pub struct Status {
    /// The name of the source.
    pub name: &'static str,
    /// The last hour that was read completely, such as `2026-11-20T14`; empty before the first.
    pub last_hour: String,
    /// How many hours ago that hour ended; null before the first.
    pub lag: Option<i64>,
    /// Whether the source is as recent as it usually is.
    pub ok: bool,
}

impl Status {
    fn new(name: &'static str, last: Option<i64>, now_hour: i64, late_hours: i64) -> Self {
        let lag = last.map(|last| (now_hour - last - 1).max(0));
        Self { name, last_hour: last.map_or_else(String::new, hour_text), lag, ok: lag.is_some_and(|lag| lag < late_hours) }
    }
}

impl HealthFields for Sources {
    async fn read(ctx: &Context, at: &Position) -> Result<Self, Problem> {
        let now_hour = at.now.as_millisecond().div_euclid(HOUR_MS);
        let stories = Ledger::of(ctx, at, WINDOW_DEFAULT).await?.map(|ledger| ledger.newest);
        let this_week = week_of_day(now_hour.div_euclid(DAY_HOURS));
        let days = index::entries::<DayEntry>(at, LOWEST_TERM, this_week - WEEKS_SEARCHED..=this_week).await?;
        let views = days.iter().map(|(day, _)| day * DAY_HOURS + DAY_HOURS - 1).max();
        Ok(Self {
            sources: vec![
                Status::new("hacker_news", stories, now_hour, STORIES_LATE_HOURS),
                Status::new("wikimedia", views, now_hour, VIEWS_LATE_HOURS),
            ],
            registry: registry(ctx, at, as_of(at).as_deref()).await?,
        })
    }
}

/// The time as of which the register is read: the one that `asOf` named; `None` for now. The register can have changed since then where no label has.
fn as_of(at: &Position) -> Option<String> {
    (at.now < at.clock_time).then(|| at.now.to_string())
}

#[cfg(test)]
mod tests {
    use feed::testing::World;
    use schemas::position::Seq;
    use view_store::ViewStore;

    use super::*;
    use crate::record::TABLES;

    /// Proves that the register is read as of the time of `asOf`, also if no label has changed since, and as of now without it.
    #[tokio::test]
    async fn the_register_is_of_the_same_time() {
        let world = World::new().await;
        let view = world.store.live(TABLES.view).await.unwrap();
        let clock_time = "2026-11-20T14:00:00Z".parse().unwrap();
        for (now, expected) in [("2026-11-20T14:00:00Z", None), ("2026-11-01T00:00:00Z", Some("2026-11-01T00:00:00Z"))] {
            let at = Position { view: view.clone(), seq: Seq(5), last: Seq(5), now: now.parse().unwrap(), clock_time };
            assert_eq!(as_of(&at).as_deref(), expected);
        }
    }

    /// Proves when a source is late.
    #[test]
    fn lags() {
        let status_after = |last| {
            let status = Status::new("hacker_news", last, 100, 6);
            (status.lag, status.ok)
        };
        assert_eq!(
            (status_after(None), status_after(Some(99)), status_after(Some(94)), status_after(Some(93))),
            ((None, false), (Some(0), true), (Some(5), true), (Some(6), false))
        );
        assert_eq!(status_after(Some(150)), (Some(0), true));
    }
}

//! Answers as of a time that is past: those of an engine that was fed only up to then.

use operation::context::Part;
use services::recalls::search::Search;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemas::clock::{Clock, SimulatedClock};
use schemas::views::accounts::Tier;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::chance::{Chance, seed};
use crate::engine::{Played, upstream_names};
use crate::fed::Fed;

const FIRST: Date = date(2026, 10, 28);
const DAYS: i64 = 16;
const QUESTIONS: usize = 1_000;
/// The hour at which a day's snapshot is taken, in UTC.
const SNAPSHOT_HOUR: i8 = 22;

/// When something is asked, and which day's snapshot was the last by then.
struct Moment {
    at: Timestamp,
    /// As it is asked for: a time, or a day for its end.
    text: String,
}

/// An engine that is fed a snapshot a day, under a clock that stands where it is put.
struct Story {
    fed: Fed,
    played: Played,
    clock: &'static SimulatedClock,
    stop: watch::Sender<bool>,
    indexing: JoinHandle<()>,
}

impl Story {
    async fn begin(dir: &Path) -> Self {
        let clock = SimulatedClock::new(at_hour(FIRST), Clock::Fixed(at_hour(FIRST)));
        let played = Played::start(61, 150, Clock::Simulated(clock)).await;
        let mut fed = Fed::open(dir, Clock::Simulated(clock), None).await;
        let stop = crate::rivals::undecided(&mut fed.engine).await;
        let indexing = tokio::spawn(Search::of(&fed.context).follow(Arc::clone(&fed.engine.store), None));
        Self { fed, played, clock, stop, indexing }
    }

    /// A day's snapshot. One upstream after another, and decided behind each, so that two stories are told in the same order.
    async fn live_through(&self, day: Date) {
        self.clock.move_to(at_hour(day));
        self.played.sim.set_today(day);
        if day > FIRST {
            self.played.sim.advance(8);
        }
        let mut settings = self.played.settings();
        settings.window_days = 10;
        for name in upstream_names() {
            for outcome in self.fed.engine.run(name, &settings).await {
                outcome.unwrap();
            }
            self.fed.decide().await;
        }
    }

    async fn end(self) {
        self.stop.send_replace(true);
        self.indexing.abort();
        drop(self.indexing.await);
        self.fed.close().await;
    }
}

fn at_hour(day: Date) -> Timestamp {
    day.at(SNAPSHOT_HOUR, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp()
}

/// A moment after a day's snapshot and before the next one.
fn moment(chance: &mut Chance, day: Date) -> Moment {
    // Until the day ends, the text may be the day itself.
    if chance.below(3) == 0 {
        let end = day.tomorrow().unwrap().to_zoned(TimeZone::UTC).unwrap().timestamp();
        return Moment { at: Timestamp::from_millisecond(end.as_millisecond() - 1).unwrap(), text: day.to_string() };
    }
    let at = at_hour(day) + Duration::from_millis(chance.below(86_400_000));
    Moment { at, text: format!("{at:.3}") }
}

/// What may be asked: the service, the operation, and arguments by chance.
fn question(chance: &mut Chance, today: Date) -> (&'static str, &'static str, Value) {
    let days = 1 + i64::try_from(chance.below(20)).unwrap();
    let limit = 1 + chance.below(60);
    let feed_of = |chance: &mut Chance, mut filter: Value| {
        filter["limit"] = json!(limit);
        let earlier = today.saturating_sub(i64::try_from(chance.below(12)).unwrap().days());
        match chance.below(4) {
            0 => {}
            1 => filter["start"] = json!("earliest"),
            2 => filter["start"] = json!("latest"),
            _ => filter["start"] = json!(earlier.to_string()),
        }
        filter
    };
    let topic = chance.of(&["oncology", "aging", "genomics", "cardiology"]);
    let state = chance.of(&["TX", "CA", "NY", "MA"]);
    let code = chance.of(&["54", "5415", "3364", "23", "33"]);
    let part = chance.of(&["university", "inc", "institute", "federal", "corp", "systems"]);
    let form = chance.of(&["8-K", "10-Q", "8-K,10-Q", "S-1"]);
    let cik = format!("{:010}", 900_001 + chance.below(13));
    let service = chance.of(&["recalls", "research", "filings", "awards"]);
    match chance.below(20) {
        0 => (service, "changes", feed_of(chance, json!({}))),
        1 => (service, "health", json!({})),
        2 => (
            "recalls",
            "search_recalls",
            json!({ "limit": limit, "category": chance.of(&["food", "drugs", "vehicles", "products", "baby"]) }),
        ),
        3 => {
            let agency = chance.of(&["FDA", "CPSC", "NHTSA", "USDA"]);
            ("recalls", "search_recalls", json!({ "agency": agency, "from": today.saturating_sub(days.days()).to_string() }))
        }
        4 => ("recalls", "search_recalls", json!({ "keyword": chance.of(&["fire", "salmonella", "risk", "the"]), "limit": limit })),
        5 => ("research", "whats_changed_since", feed_of(chance, json!({ "topic": topic, "before": true }))),
        6 => ("research", "whats_changed_since", feed_of(chance, json!({ "institution": part }))),
        7 => ("research", "new_funding", json!({ "state": state, "limit": limit })),
        8 => ("research", "delta_digest", json!({ "days": days })),
        9 => ("research", "entity_watch", json!({ "type": "institution", "value": part, "limit": limit })),
        10 => ("research", "search_records", json!({ "keyword": chance.of(&["cancer", "study", "cell", "of"]), "limit": limit })),
        11 => ("filings", "whats_new_since", feed_of(chance, json!({ "form": form }))),
        12 => ("filings", "filing_digest", json!({ "days": days })),
        13 => ("filings", "company_watch", json!({ "cik": cik, "limit": limit })),
        14 => ("filings", "insider_activity", json!({ "days": days, "limit": limit })),
        15 => ("filings", "search_filings", json!({ "form": chance.of(&["8-K", "10-Q", "3"]), "limit": limit })),
        16 => ("awards", "whats_changed_since", feed_of(chance, json!({ "naics": [code], "before": true }))),
        17 => ("awards", "delta_digest", json!({ "naics": [code], "days": days, "expiringDays": 1 + chance.below(365) })),
        18 => ("awards", "competitor_watch", json!({ "contractor": part, "limit": limit })),
        _ => ("awards", "search_awards", json!({ "naics": [code], "limit": limit })),
    }
}

/// An answer without what is no part of it: the cursor, and what is said beside it.
fn bare(mut answer: Value) -> Value {
    let fields = answer.as_object_mut().unwrap();
    fields.remove("note");
    // It names the filter and the place, which stand beside it.
    fields.remove("cursor");
    answer
}

/// Proves that what an operation answers as of a time is what an engine says that was fed only up to then: of every read operation of the
/// four services, of a thousand arguments and times by chance, with a key and without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_of_is_what_was_answered_then() {
    let seed = seed("PAST_SEED");
    println!("PAST_SEED={seed}");
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let days: Vec<Date> = (0..DAYS).map(|day| FIRST.saturating_add(day.days())).collect();
    let (whole, then) = tokio::join!(Story::begin(dirs[0].path()), Story::begin(dirs[1].path()));
    for day in &days {
        whole.live_through(*day).await;
    }
    whole.clock.move_to(at_hour(FIRST.saturating_add((DAYS + 10).days())));
    let mut chance = Chance(seed);
    let mut told: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for (n, day) in days.iter().enumerate() {
        then.live_through(*day).await;
        let share = (n + 1) * QUESTIONS / days.len() - n * QUESTIONS / days.len();
        let mut moments: Vec<Moment> = (0..share).map(|_| moment(&mut chance, *day)).collect();
        // Its clock does not go back.
        moments.sort_by_key(|moment| moment.at);
        for Moment { at, text } in moments {
            then.clock.move_to(at);
            let (service, operation, arguments) = question(&mut chance, at.to_zoned(TimeZone::UTC).date());
            let tier = chance.of(&[Tier::Anonymous, Tier::Free, Tier::Pro]);
            let mut past = arguments.clone();
            past["asOf"] = json!(text);
            let shown = format!("{service} {past} {operation} {tier:?}");
            let wanted = then.fed.ask(service, operation, &arguments, tier).await.unwrap_or_else(|problem| panic!("{shown}: {problem:?}"));
            let got = whole.fed.ask(service, operation, &past, tier).await.unwrap_or_else(|problem| panic!("{shown}: {problem:?}"));
            let (wanted, got) = (bare(wanted), bare(got));
            if wanted != got {
                for (name, value) in wanted.as_object().unwrap() {
                    assert_eq!(&got[name], value, "{name} of {shown}");
                }
            }
            assert_eq!(got, wanted, "{shown}");
            let says = wanted["changes"].as_u64().is_some_and(|changes| changes > 0)
                || wanted.as_object().unwrap().values().any(|value| value.as_array().is_some_and(|items| !items.is_empty()));
            let counts = told.entry((service, operation)).or_default();
            counts.0 += 1;
            counts.1 += usize::from(says);
        }
    }
    assert_eq!(told.values().map(|(all, _)| all).sum::<usize>(), QUESTIONS);
    // An operation that never says anything would prove nothing.
    assert!(told.values().all(|(_, says)| *says > 0), "{told:?}");
    let operations = whole.fed.services().flat_map(|service| service.operations.iter().map(|operation| (service.name, operation)));
    // No upstream tells of receipts.
    let reads = operations.filter(|(service, operation)| *service != "receipts" && operation.input.pointer("/properties/asOf").is_some());
    let missed: Vec<_> = reads.map(|(service, operation)| (service, operation.name)).filter(|name| !told.contains_key(name)).collect();
    assert!(missed.is_empty(), "{missed:?} were not asked for");
    whole.end().await;
    then.end().await;
}

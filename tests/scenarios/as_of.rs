//! Answers as of a past time: they equal the answers that the same engine gave when it had only the data up to that time.

use names::operations::register::Register;
use operation::context::Part;
use recalls::operations::search::Search;
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

use crate::api::LocalApi;
use crate::engine::{SimulatedUpstreams, upstream_names};
use crate::random::{Random, seed};

const FIRST: Date = date(2026, 10, 28);
const DAYS: i64 = 16;
const QUESTIONS: usize = 2_400;
/// How many kinds of questions there are.
const KINDS: usize = 86;
/// Operations that answer about something that the caller has: a stored fleet, the hash of an artifact, a watch.
const OF_THE_CALLER: [(&str, &str); 4] =
    [("aviation", "audit_csv"), ("exclusions", "artifact"), ("names", "get_watch_matches"), ("names", "watch_matches")];
/// Operations about what is stored as it is now. An answer about an earlier version of a record lacks it, and says so.
const OF_NOW: [(&str, &str); 2] = [("awards", "record_sources"), ("recalls", "record_sources")];
/// The hour at which a day's snapshot is taken, in UTC.
const SNAPSHOT_HOUR: i8 = 22;

/// The time of a question; the last snapshot before it is the state that the answer must show.
struct Moment {
    at: Timestamp,
    /// The value of `asOf`: a time, or a day, which means the end of the day.
    text: String,
}

/// An engine that syncs one snapshot a day, under a clock that the test moves.
struct SnapshotEngine {
    api: LocalApi,
    simulated: SimulatedUpstreams,
    clock: &'static SimulatedClock,
    stop: watch::Sender<bool>,
    /// Keep the indexes of recalls and of names.
    indexing: [JoinHandle<()>; 2],
}

impl SnapshotEngine {
    async fn begin(dir: &Path) -> Self {
        let clock = SimulatedClock::new(at_hour(FIRST), Clock::Fixed(at_hour(FIRST)));
        let simulated = SimulatedUpstreams::start(61, 150, Clock::Simulated(clock)).await;
        let api = LocalApi::open(dir, Clock::Simulated(clock), None).await;
        let stop = crate::concurrent_processes::run_heads_only(&api.engine).await;
        let (search, register) = (Search::of(&api.context), Register::of(&api.context));
        let indexing = [
            tokio::spawn(search.follow(Arc::clone(&api.engine.store), None)),
            tokio::spawn(register.follow(Arc::clone(&api.engine.store), None)),
        ];
        Self { api, simulated, clock, stop, indexing }
    }

    /// Syncs a day's snapshot: one upstream after another, each decided before the next.
    async fn sync_day(&self, day: Date) {
        self.clock.move_to(at_hour(day));
        self.simulated.sim.set_today(day);
        if day > FIRST {
            self.simulated.sim.advance(8);
        }
        let mut settings = self.simulated.settings();
        settings.window_days = 10;
        for name in upstream_names() {
            for outcome in self.api.engine.run(name, &settings).await {
                outcome.unwrap();
            }
            self.api.decide().await;
        }
    }

    async fn end(self) {
        self.stop.send_replace(true);
        for follower in self.indexing {
            follower.abort();
            drop(follower.await);
        }
        self.api.close().await;
    }
}

fn at_hour(day: Date) -> Timestamp {
    day.at(SNAPSHOT_HOUR, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp()
}

/// Returns a random time after a day's snapshot and before the next one.
fn moment(random: &mut Random, day: Date) -> Moment {
    // A third of the questions name a day.
    if random.below(3) == 0 {
        let end = day.tomorrow().unwrap().to_zoned(TimeZone::UTC).unwrap().timestamp();
        return Moment { at: Timestamp::from_millisecond(end.as_millisecond() - 1).unwrap(), text: day.to_string() };
    }
    let at = at_hour(day) + Duration::from_millis(random.below(86_400_000));
    Moment { at, text: format!("{at:.3}") }
}

/// Returns the `n`-th question: the service, the operation and the arguments. The operations take turns, so that none is left out; the rest is random.
fn question(random: &mut Random, n: usize, today: Date) -> (&'static str, &'static str, Value) {
    let days = 1 + i64::try_from(random.below(20)).unwrap();
    let limit = 1 + random.below(60);
    let feed_of = |random: &mut Random, mut filter: Value| {
        filter["limit"] = json!(limit);
        let earlier = today.saturating_sub(i64::try_from(random.below(12)).unwrap().days());
        match random.below(4) {
            0 => {}
            1 => filter["start"] = json!("earliest"),
            2 => filter["start"] = json!("latest"),
            _ => filter["start"] = json!(earlier.to_string()),
        }
        filter
    };
    let topic = random.pick(&["oncology", "aging", "genomics", "cardiology"]);
    let state = random.pick(&["TX", "CA", "NY", "MA"]);
    let code = random.pick(&["54", "5415", "3364", "23", "33"]);
    let part = random.pick(&["university", "inc", "institute", "federal", "corp", "systems"]);
    let form = random.pick(&["8-K", "10-Q", "8-K,10-Q", "S-1"]);
    let cik = format!("{:010}", 900_001 + random.below(13));
    let services = [
        "recalls",
        "research",
        "filings",
        "awards",
        "labs",
        "catalysts",
        "cadence",
        "exclusions",
        "coverage",
        "aviation",
        "parcels",
        "names",
        "phrases",
    ];
    let service = services[n / KINDS % services.len()];
    let category = random.pick(&["Computing", "Microscopy and imaging", "General laboratory", "Animal research"]);
    let (niche, word) = random.pick(&[("sneakers", "sole"), ("streetwear", "north"), ("collectibles", "vault")]);
    match n % KINDS {
        // Has changes, whatever the others draw.
        0 => (service, "changes", json!({ "start": "earliest", "limit": limit })),
        36 | 37 => (service, "changes", feed_of(random, json!({}))),
        1 => (service, "health", json!({})),
        2 => (
            "recalls",
            "search_recalls",
            json!({ "limit": limit, "category": random.pick(&["food", "drugs", "vehicles", "products", "baby"]) }),
        ),
        3 => {
            let agency = random.pick(&["FDA", "CPSC", "NHTSA", "USDA"]);
            ("recalls", "search_recalls", json!({ "agency": agency, "from": today.saturating_sub(days.days()).to_string() }))
        }
        4 => ("recalls", "search_recalls", json!({ "keyword": random.pick(&["fire", "salmonella", "risk", "the"]), "limit": limit })),
        5 => ("research", "whats_changed_since", feed_of(random, json!({ "topic": topic, "before": true }))),
        6 => ("research", "whats_changed_since", feed_of(random, json!({ "institution": part }))),
        7 => ("research", "new_funding", json!({ "state": state, "limit": limit })),
        8 => ("research", "delta_digest", json!({ "days": days })),
        9 => ("research", "entity_watch", json!({ "type": "institution", "value": part, "limit": limit })),
        10 => ("research", "search_records", json!({ "keyword": random.pick(&["cancer", "study", "cell", "of"]), "limit": limit })),
        11 => ("filings", "whats_new_since", feed_of(random, json!({ "form": form }))),
        12 => ("filings", "filing_digest", json!({ "days": days })),
        13 => ("filings", "company_watch", json!({ "cik": cik, "limit": limit })),
        14 => ("filings", "insider_activity", json!({ "days": days, "limit": limit })),
        15 => ("filings", "search_filings", json!({ "form": random.pick(&["8-K", "10-Q", "3"]), "limit": limit })),
        16 => ("awards", "whats_changed_since", feed_of(random, json!({ "naics": [code], "before": true }))),
        17 => ("awards", "delta_digest", json!({ "naics": [code], "days": days, "expiringDays": 1 + random.below(365) })),
        18 => ("awards", "competitor_watch", json!({ "contractor": part, "limit": limit })),
        19 => ("labs", "sample", json!({ "category": category })),
        20 => ("labs", "newly_funded_labs", json!({ "days": 1 + days % 14 })),
        21 => ("labs", "list_categories", json!({})),
        22 => ("labs", "whats_changed_since", feed_of(random, json!({ "category": category, "before": true }))),
        23 | 24 => {
            let least = 100_000 * random.below(5);
            ("labs", "lab_lead_feed", json!({ "category": category, "days": days * 10, "min_amount": least, "limit": limit }))
        }
        25 => ("catalysts", "upcoming", json!({ "days": days * 36, "limit": limit })),
        26 => ("catalysts", random.pick(&["upcoming_catalysts", "x402_pay"]), json!({ "days": days * 36, "limit": limit })),
        kind @ (27 | 28) => {
            // What names the company takes turns as well.
            let (field, value) = [("ticker", "CLDB"), ("company", "Calderbrook Therapeutics"), ("cik", "960001")][n / KINDS % 3];
            if kind == 27 {
                ("catalysts", "company", json!({ field: value, "days": 730 }))
            } else {
                ("catalysts", "catalyst_for_company", json!({ field: value }))
            }
        }
        29 => ("catalysts", "drug", json!({ "name": "calderinib", "days": 730 })),
        30 => ("catalysts", "catalyst_for_drug", json!({ "drug": "calderinib" })),
        31 => ("catalysts", "whats_changed_since", feed_of(random, json!({ "kind": "readout" }))),
        40 => ("cadence", "list_niches", json!({})),
        41 => ("cadence", random.pick(&["calibration", "list_stores"]), json!({})),
        // Nothing is ranked during the first 14 days, so it is asked more often.
        42..=44 => ("cadence", "cadence_board", json!({ "niche": niche, "limit": limit })),
        45 | 46 => ("cadence", "predict_restock", json!({ "niche": niche, "query": word })),
        47 => ("cadence", "predict_restock", json!({ "niche": niche, "query": "2", "variant": random.pick(&["S", "M", "L"]) })),
        48 => ("cadence", "whats_changed_since", feed_of(random, json!({ "niche": niche, "before": true }))),
        49 => ("cadence", "whats_changed_since", feed_of(random, json!({ "restocks": true, "query": word }))),
        50..=85 => listed_later(random, n % KINDS, &feed_of),
        // The caller fills in the id of a record.
        32 | 33 => (service, "record", json!({})),
        34 | 35 => (service, "record_history", json!({ "limit": limit })),
        _ => ("awards", "search_awards", json!({ "naics": [code], "limit": limit })),
    }
}

/// A question to one of the services from exclusions to phrases.
fn listed_later(random: &mut Random, kind: usize, feed_of: &impl Fn(&mut Random, Value) -> Value) -> (&'static str, &'static str, Value) {
    let limit = 1 + random.below(10);
    let uei = random.pick(&["SPPA4G7J3N91", "TMWF6K3R9D88", "MSWE3H9V8P34"]);
    let phrase = random.pick(&["agent mesh", "new york", "open source"]);
    let hours = random.pick(&[6, 24, 72]);
    let model = random.pick(&["PA-28-140", "PA-28-161"]);
    match kind {
        50 => ("exclusions", "exclusion_check", json!({ "uei": uei })),
        51 => ("exclusions", "exclusion_check", json!({ "entity": "Timberward Forestry" })),
        52 => ("exclusions", "sample", json!({ "limit": limit })),
        53 => ("exclusions", "scan", json!({ "limit": limit })),
        54 => ("exclusions", "entity_watch", json!({ "uei": uei })),
        55 => ("exclusions", "govcon_entity_watch", json!({ "uei": uei })),
        56 => ("exclusions", "recompete_flip", json!({ "naics": random.pick(&["54", "33", "23", "56"]), "limit": limit })),
        57 => ("exclusions", "whats_changed_since", feed_of(random, json!({ "kind": "exclusion" }))),
        58 => ("coverage", "coverage_sample", json!({})),
        59 => ("coverage", "coverage_feed", json!({ "state": "CO", "days": 90, "limit": limit })),
        60 => ("coverage", "coverage_pulse", json!({ "days": 30 })),
        61 => ("coverage", "coverage_sources", json!({})),
        62 => ("coverage", "whats_changed_since", feed_of(random, json!({ "state": "CO" }))),
        63 => ("aviation", "match_ads", json!({ "make": "Piper", "model": model, "limit": limit })),
        64 => ("aviation", "recurring_due", json!({ "make": "Piper", "model": model, "hoursTIS": 1262.5 })),
        65 | 66 => {
            let aircraft = json!([{ "tail": "N5432W", "make": "Piper", "model": model, "hoursTIS": 1262.5 }]);
            let arguments = json!({ "aircraft": aircraft, "store": false });
            if kind == 65 { ("aviation", "assess_fleet", arguments) } else { ("aviation", "assess", arguments) }
        }
        67 => ("aviation", "whats_changed_since", feed_of(random, json!({ "make": "Piper" }))),
        68 => ("parcels", "leads", json!({ "minTier": "low", "limit": limit })),
        69 => ("parcels", "overassessment_leads", json!({ "county": "cook-il", "limit": limit })),
        70 => ("parcels", "delta", json!({ "county": "cook-il" })),
        71 => ("parcels", "county_coverage", json!({})),
        72 => ("parcels", "parcel_overassessment", json!({ "pin": "16012160640000" })),
        73 => ("parcels", "whats_changed_since", feed_of(random, json!({ "minTier": "low" }))),
        74 => ("names", "check_name", json!({ "name": random.pick(&["Morvanda", "Kestrolin", "Veltraxen"]) })),
        75 => ("names", "whats_changed_since", feed_of(random, json!({ "class": [9] }))),
        76 => ("phrases", "rising_phrases", json!({ "windowHours": hours, "limit": limit })),
        77 => ("phrases", "phrase_velocity", json!({ "phrase": phrase, "windowHours": hours })),
        78 => ("phrases", "phrase_radar", json!({ "phrase": phrase })),
        79 => ("exclusions", "contradiction_check", json!({ "ticker": random.pick(&["DEMOA", "demob", "DEMOC"]) })),
        80 => ("parcels", "construction_window_leads", json!({ "days": random.pick(&[365, 730]), "limit": limit })),
        81 => ("parcels", "stalled_surety", json!({ "minAmount": random.pick(&[0, 250_000]), "limit": limit })),
        82 => ("parcels", "x402_pay", json!({ "tool": random.pick(&["construction_window_leads", "stalled_surety"]), "limit": limit })),
        83 => ("parcels", "lien_bundle_report", json!({ "pin": random.pick(&["0028F00194000000", "0028F00101000000"]) })),
        84 => ("parcels", "exemption_flags", json!({ "county": "allegheny-pa", "limit": limit })),
        _ => ("phrases", "whats_changed_since", feed_of(random, json!({}))),
    }
}

/// Removes from an answer what may differ: the cursor, the notes, and the count of records that only the newest health has.
fn without_cursor_and_notes(mut answer: Value) -> Value {
    let fields = answer.as_object_mut().unwrap();
    fields.remove("note");
    if fields.get("records").is_some_and(Value::is_number) {
        fields.remove("records");
    }
    // The cursor contains the filter and the position, which are also in the answer. So does the place where a search continues.
    fields.remove("cursor");
    fields.remove("next");
    answer
}

/// Whether an answer counts changes or rows.
fn counts_something(answer: &Value) -> bool {
    ["changes", "total"].into_iter().any(|count| answer[count].as_u64().is_some_and(|count| count > 0))
}

/// Whether an answer has a list with items, at any depth.
fn lists_something(answer: &Value) -> bool {
    match answer {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => members.values().any(lists_something),
        _ => false,
    }
}

/// A question that was asked without `asOf`.
struct PastQuestion {
    service: &'static str,
    operation: &'static str,
    /// The arguments, and the time of the question as `asOf`.
    past: Value,
    tier: Tier,
    answer: Value,
}

/// Proves that the answer as of a time equals the answer that was given at that time, when there were no later data: for every read operation of
/// the services, with many random arguments and times, for callers who see the whole history.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_of_equals_the_answer_at_that_time() {
    let seed = seed("PAST_SEED", 1);
    let dir = tempfile::tempdir().unwrap();
    let days: Vec<Date> = (0..DAYS).map(|day| FIRST.saturating_add(day.days())).collect();
    let engine = SnapshotEngine::begin(dir.path()).await;
    let mut random = Random(seed);
    let mut asked: Vec<PastQuestion> = Vec::with_capacity(QUESTIONS);
    for (n, day) in days.iter().enumerate() {
        engine.sync_day(*day).await;
        let share = (n + 1) * QUESTIONS / days.len() - n * QUESTIONS / days.len();
        let mut moments: Vec<Moment> = (0..share).map(|_| moment(&mut random, *day)).collect();
        // The clock must not go back.
        moments.sort_by_key(|moment| moment.at);
        for Moment { at, text } in moments {
            engine.clock.move_to(at);
            let (service, operation, mut arguments) = question(&mut random, asked.len(), at.to_zoned(TimeZone::UTC).date());
            // Below these tiers the free window is counted from the clock, which is another one at the second question.
            let tiers = match service {
                "labs" | "catalysts" | "coverage" | "parcels" => &[Tier::Pro][..],
                "research" | "filings" | "awards" => &[Tier::Free, Tier::Pro],
                _ => &[Tier::Anonymous, Tier::Free, Tier::Pro],
            };
            let tier = tiers[usize::try_from(random.below(tiers.len() as u64)).unwrap()];
            if operation.starts_with("record") {
                let recorded = json!({ "start": "earliest", "limit": 200 });
                let page = engine.api.ask(service, "changes", &recorded, Tier::Pro).await.unwrap_or_else(|problem| panic!("{problem:?}"));
                let changes = page["changes"].as_array().unwrap();
                arguments["id"] = changes[usize::try_from(random.below(changes.len() as u64)).unwrap()]["record"]["id"].clone();
            }
            let mut past = arguments.clone();
            past["asOf"] = json!(text);
            let answer = engine.api.ask(service, operation, &arguments, tier).await;
            let answer = answer.unwrap_or_else(|problem| panic!("{service} {arguments} {operation} {tier:?}: {problem:?}"));
            asked.push(PastQuestion { service, operation, past, tier, answer: without_cursor_and_notes(answer) });
        }
    }
    assert_eq!(asked.len(), QUESTIONS);
    engine.clock.move_to(at_hour(FIRST.saturating_add((DAYS + 10).days())));
    let mut counted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for PastQuestion { service, operation, past, tier, answer: wanted } in asked {
        let shown = format!("{service} {past} {operation} {tier:?}");
        let got = engine.api.ask(service, operation, &past, tier).await.unwrap_or_else(|problem| panic!("{shown}: {problem:?}"));
        let got = without_cursor_and_notes(got);
        if wanted != got {
            for (name, value) in wanted.as_object().unwrap() {
                assert_eq!(&got[name], value, "{name} of {shown}");
            }
        }
        assert_eq!(got, wanted, "{shown}");
        let says = wanted["record"].is_object() || counts_something(&wanted) || lists_something(&wanted);
        *counted.entry((service, operation)).or_default() += usize::from(says);
    }
    // An operation whose answers are always empty would prove nothing.
    assert!(counted.values().all(|says| *says > 0), "{counted:?}");
    let operations = engine.api.services().flat_map(|service| service.operations.iter().map(|operation| (service.name, operation)));
    // Receipts have no upstream.
    let reads = operations.filter(|(service, operation)| *service != "receipts" && operation.input.pointer("/properties/asOf").is_some());
    let names =
        reads.map(|(service, operation)| (service, operation.name)).filter(|name| !OF_THE_CALLER.contains(name) && !OF_NOW.contains(name));
    let missed: Vec<_> = names.filter(|name| !counted.contains_key(name)).collect();
    assert!(missed.is_empty(), "{missed:?} were never called");
    engine.end().await;
}

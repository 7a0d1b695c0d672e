//! A server that simulates the upstreams: their paths, formats, limits and bugs. The caller sets volume and faults.
//!
//! Guarantees: the same options and the same calls give the same bytes. Records are generated when they are requested, so a million of them
//! need no memory. A list of expected changes says what a reader of the upstreams should find.
//!
//! It does not use the engine's types: the simulation is based only on the descriptions of the upstreams.

mod allegheny;
mod businesses;
mod connections;
mod cook;
mod hacker_news;
mod iowa;
mod permits;
mod render;
mod server;
mod shopify;
mod soda;
#[cfg(test)]
mod tests;
mod wikimedia;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jiff::civil::Date;
use schemas::clock::Clock;
use serde::Serialize;
use tokio::time::Instant;

pub use hacker_news::ShownStory;
use render::{Endpoint, Request};
use shopify::Visit;
pub use shopify::{NICHES, STORES, StoreFault};
use simulated_agencies::changes;
pub use simulated_agencies::sam_exclusions::{CAST as EXCLUSIONS, SimulatedExclusion};
pub use simulated_agencies::uspto_trademarks::{CAST as TRADEMARKS, CastMark};
pub use simulated_world::KEY;
pub use simulated_world::answer::Answer;
pub use simulated_world::expected_changes::{ExpectedChange, Kind};
use simulated_world::faults::Plan;
pub use simulated_world::faults::{Faults, NAMES as FAULT_NAMES, PARAMETERS as FAULT_PARAMETERS, UnknownFault};
pub use simulated_world::options::{Options, When};
use simulated_world::random::Random;
pub use simulated_world::script::Burst;
use simulated_world::script::Script;
pub use simulated_world::world::Round;
use simulated_world::world::{Feed, World};

/// The simulated upstreams whose facts a service reads, by the engine's names. Callers that sync simulated upstreams sync these.
pub const UPSTREAMS: &[&str] = &[
    "allegheny",
    "chicago",
    "clinical_trials",
    "cook",
    "cpsc",
    "edgar",
    "faa_drs",
    "federal_register",
    "fmcsa",
    "fsis",
    "hacker_news",
    "nhtsa",
    "nih_reporter",
    "openfda",
    "sam_exclusions",
    "shopify",
    "sos",
    "usaspending",
    "uspto_trademarks",
    "wikimedia",
];

/// The simulated upstreams that answer only to a key, which is [`KEY`].
pub const UPSTREAMS_WITH_KEY: &[&str] = &["faa_drs", "sam_exclusions", "uspto_trademarks"];

const HOUR_MS: i64 = 3_600_000;

/// Counters of a simulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Requests to the upstreams' paths.
    pub requests: u64,
    /// Bytes of the bodies generated for them.
    pub bytes: u64,
    /// Changes applied.
    pub changes: u64,
    /// Entries in the list of expected changes.
    pub entries: u64,
    /// The current number of records, counted like `records`, by upstream or dataset.
    pub records: Vec<(&'static str, u64)>,
}

/// The simulated upstreams.
pub struct Simulator {
    world: RwLock<World>,
    faults: Mutex<Faults>,
    last_request: Mutex<Instant>,
    requests: AtomicU64,
    bytes: AtomicU64,
    builds: AtomicU64,
    seed: u64,
    change_rate: u64,
    change: When,
    clock: Clock,
    /// What callers set for single stores: a fault, or none whatever the day.
    store_faults: Mutex<BTreeMap<String, Option<StoreFault>>>,
}

impl Simulator {
    /// Sets up the upstreams. Takes no time and no memory, however many records there are.
    #[must_use]
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            world: RwLock::new(World::new(&options)),
            faults: Mutex::new(options.faults),
            last_request: Mutex::new(Instant::now()),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            builds: AtomicU64::new(0),
            seed: options.seed,
            change_rate: options.change_rate,
            change: options.change,
            clock: options.clock,
            store_faults: Mutex::default(),
        })
    }

    /// Sets what a simulated store does from now on, whatever the day: a fault, or none.
    pub fn set_store_fault(&self, host: &str, fault: Option<StoreFault>) {
        lock(&self.store_faults).insert(host.to_owned(), fault);
    }

    /// Adds stories about a phrase to the site of stories, and views of its article.
    pub fn add_burst(&self, burst: Burst) {
        self.edit_script(|script| script.bursts.push(burst));
    }

    /// Gives the hour of a time, in milliseconds since 1970, more stories than an answer shows.
    pub fn add_flood(&self, at_ms: i64) {
        self.edit_script(|script| _ = script.floods.insert(at_ms.div_euclid(HOUR_MS)));
    }

    /// Lets the site of stories answer nothing from a time on, in milliseconds since 1970, for some hours.
    pub fn add_outage(&self, from_ms: i64, hours: i64) {
        self.edit_script(|script| script.outages.push((from_ms, from_ms.saturating_add(hours.saturating_mul(HOUR_MS)))));
    }

    /// Lets nobody publish stories from a time on, in milliseconds since 1970, for some hours.
    pub fn add_silence(&self, from_ms: i64, hours: i64) {
        self.edit_script(|script| script.silences.push((from_ms, from_ms.saturating_add(hours.saturating_mul(HOUR_MS)))));
    }

    /// Removes a published story.
    pub fn remove_story(&self, id: u64) {
        self.edit_script(|script| _ = script.removed.insert(id));
    }

    /// Gives a published story another title.
    pub fn edit_story(&self, id: u64, title: &str) {
        self.edit_script(|script| _ = script.edited.insert(id, title.to_owned()));
    }

    /// Returns the stories that are shown now, of those published from `from_ms` to before `to_ms`, the newest first.
    #[must_use]
    pub fn stories(&self, from_ms: i64, to_ms: i64) -> Vec<ShownStory> {
        let world = self.world.read().unwrap_or_else(PoisonError::into_inner);
        hacker_news::shown(&world, from_ms, to_ms, self.clock.now_ms())
    }

    fn edit_script(&self, edit: impl FnOnce(&mut Script)) {
        edit(&mut self.world.write().unwrap_or_else(PoisonError::into_inner).script);
    }

    /// Applies `n` random changes (new record, edit, change of status, assigned number, withdrawal). Returns how many entries they added to
    /// the expected changes.
    pub fn advance(&self, n: u64) -> u64 {
        let at_ms = self.clock.now_ms();
        changes::advance(&mut self.world.write().unwrap_or_else(PoisonError::into_inner), n, at_ms)
    }

    /// Lets an upstream of every service publish something on its current day, except of the services of recalls ([`Self::advance`]) and receipts, which
    /// has none: a filing, an award of research money, a new date of a trial, a modification of a contract or its correction, a store that sells out or
    /// restocks, a new business, a changed permit, a changed subject of a directive, a new status of a trademark, and stories about a phrase that appear or
    /// disappear. Without rounds only the days change these upstreams. Returns the round.
    pub fn publish_round(&self) -> Round {
        let at_ms = self.clock.now_ms();
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        let round = Round { day: world.today, at_ms };
        world.rounds.push(round);
        round
    }

    /// Adds the rounds of an earlier simulator with the same options, oldest first, so that this one continues after them. To be called before the first
    /// round of its own.
    pub fn restore_rounds(&self, rounds: Vec<Round>) {
        self.world.write().unwrap_or_else(PoisonError::into_inner).rounds = rounds;
    }

    /// Moves the upstreams' day forward. New recalls get this date; data that is added by day (filings, grants, trials, awards) is there up
    /// to this day. An earlier day is ignored.
    pub fn set_today(&self, today: Date) {
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        world.today = world.today.max(today);
    }

    /// Returns all expected changes in order.
    #[must_use]
    pub fn expected_changes(&self) -> Vec<ExpectedChange> {
        self.expected_changes_after(0)
    }

    /// Returns the expected changes after the entry with a number.
    #[must_use]
    pub fn expected_changes_after(&self, n: u64) -> Vec<ExpectedChange> {
        let world = self.world.read().unwrap_or_else(PoisonError::into_inner);
        world.expected.get(usize::try_from(n).unwrap_or(usize::MAX)..).unwrap_or_default().to_vec()
    }

    /// Returns what a reader should find now, for one stream (`openfda.food`) or all: one entry per fact, of [`Kind::Current`]. Holds all
    /// of them in memory.
    #[must_use]
    pub fn current(&self, stream: Option<&str>) -> Vec<ExpectedChange> {
        let world = self.world.read().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::new();
        for feed in Feed::ALL {
            for index in 0..world.len(feed) {
                let gone = feed == Feed::Fsis && world.fate(feed, index).withdrawn;
                if !gone {
                    out.extend(
                        changes::entries(&world, feed, index)
                            .into_iter()
                            .filter(|entry| stream.is_none_or(|stream| stream == entry.stream)),
                    );
                }
            }
        }
        out
    }

    /// Replaces all faults.
    pub fn replace_faults(&self, faults: Faults) {
        *lock(&self.faults) = faults;
    }

    /// Changes the faults.
    ///
    /// # Errors
    /// The error of the change; see [`Faults::set`].
    pub fn with_faults(&self, change: impl FnOnce(&mut Faults) -> Result<(), UnknownFault>) -> Result<(), UnknownFault> {
        change(&mut lock(&self.faults))
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let world = self.world.read().unwrap_or_else(PoisonError::into_inner);
        let names = ["cpsc", "openfda.food", "openfda.drug", "openfda.device", "nhtsa", "fsis"];
        Stats {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            changes: world.changes(),
            entries: world.expected.len() as u64,
            records: names.into_iter().zip(Feed::ALL.map(|feed| world.len(feed))).collect(),
        }
    }

    /// The time of the last request.
    #[must_use]
    pub fn last_request_at(&self) -> std::time::Instant {
        lock(&self.last_request).into_std()
    }

    /// Answers a path and an encoded query, without network and faults; `None` for a path that no upstream has.
    #[must_use]
    pub fn answer(&self, path: &str, query: &str) -> Option<Answer> {
        Some(self.render(Endpoint::at(path)?, Request { path, query, body: &[], key: Some(KEY), visit: self.visit("") }, &Plan::default()))
    }

    /// Answers a path and an encoded query of a simulated store, without network and faults; `None` for a path that no upstream has.
    #[must_use]
    pub fn store_answer(&self, host: &str, path: &str, query: &str) -> Option<Answer> {
        Some(self.render(Endpoint::at(path)?, Request { path, query, body: &[], key: None, visit: self.visit(host) }, &Plan::default()))
    }

    /// Answers a body posted to a path, without network and faults; `None` for a path that no upstream has.
    #[must_use]
    pub fn answer_posted(&self, path: &str, body: &[u8]) -> Option<Answer> {
        Some(self.render(Endpoint::at(path)?, Request { path, query: "", body, key: None, visit: self.visit("") }, &Plan::default()))
    }

    fn visit<'a>(&self, host: &'a str) -> Visit<'a> {
        let world = self.world.read().unwrap_or_else(PoisonError::into_inner);
        let rounds = (world.rounds.len(), world.rounds.last().map_or(0, |round| round.at_ms));
        Visit { host, at_ms: self.clock.now_ms(), fault: lock(&self.store_faults).get(host).copied(), rounds }
    }

    fn render(&self, endpoint: Endpoint, request: Request<'_>, plan: &Plan) -> Answer {
        let build = if endpoint.is_counted() { self.builds.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let mut answer = render::answer(&self.world.read().unwrap_or_else(PoisonError::into_inner), endpoint, request, plan, build);
        if matches!(endpoint, Endpoint::FlatPost | Endpoint::FlatPre) {
            answer.last_modified = Some(self.clock.now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        }
        answer
    }

    fn draw(&self, endpoint: Endpoint) -> Plan {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        *lock(&self.last_request) = Instant::now();
        lock(&self.faults).draw(endpoint.name(), endpoint.date_field(), Random::new(self.seed, 99, number))
    }

    fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn when(&self) -> When {
        self.change
    }

    fn advance_by_rate(&self) {
        let entries = self.advance(self.change_rate);
        tracing::debug!(entries, "upstreams changed");
    }

    /// Returns the number of requests so far, and the time since the last one.
    fn quiet(&self) -> (u64, Duration) {
        (self.requests.load(Ordering::Relaxed), lock(&self.last_request).elapsed())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

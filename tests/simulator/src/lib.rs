//! Upstreams played by one server: their paths, forms, caps and bugs, with volume and faults in the caller's hand.
//!
//! Promises: the same options and the same calls give the same bytes; records are made when they are asked for, so that a million
//! of them need no memory; and an account of every change says what a reader of the upstreams should find.
//!
//! It knows nothing of the engine's own types: what it plays is written from the upstreams' descriptions alone.

mod account;
mod chance;
mod clinical_trials;
mod cpsc;
mod days;
mod edgar;
mod faults;
mod fsis;
mod json;
mod nhtsa;
mod nih_reporter;
mod openfda;
mod query;
mod render;
mod science;
mod server;
#[cfg(test)]
mod tests;
mod usaspending;
mod words;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jiff::civil::Date;
use schemas::clock::Clock;
use serde::Serialize;
use tokio::time::Instant;

pub use account::{Entry, Kind};
use chance::Dice;
use faults::Plan;
pub use faults::{Faults, NAMES as FAULT_NAMES, PARAMETERS as FAULT_PARAMETERS, UnknownFault};
pub use render::Answer;
use render::{Asked, Door};
use world::{Feed, World};

/// The upstreams that are played, by the engine's names for them. Whoever runs upstreams on a simulator runs these.
pub const UPSTREAMS: &[&str] = &["clinical_trials", "cpsc", "edgar", "fsis", "nhtsa", "nih_reporter", "openfda", "usaspending"];

/// When changes happen by themselves. [`Simulator::advance`] works always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Never.
    #[default]
    Never,
    /// `change_rate` of them each time this has passed.
    Always {
        /// The time between.
        every: Duration,
    },
    /// Between two runs only, so that no page moves while it is read.
    BetweenRuns {
        /// `change_rate` of them when no request came for this long after some came; `None`: only when called for.
        idle: Option<Duration>,
    },
}

/// What to play.
#[derive(Clone, Debug)]
pub struct Options {
    /// From which everything follows.
    pub seed: u64,
    /// Recalls at the beginning, over all upstreams that have recalls: a campaign seen by two doors or a recall in two languages counts once.
    pub records: u64,
    /// The upstreams' day.
    pub today: Date,
    /// Changes each time that changes happen by themselves.
    pub change_rate: u64,
    /// When they do.
    pub change: When,
    /// Changes strike records of the last so many days, where readers look again; 0: any record.
    pub edit_days: u32,
    /// What goes wrong.
    pub faults: Faults,
    /// Dates the entries of the account.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            records: 600,
            today: Clock::System.now().to_zoned(jiff::tz::TimeZone::UTC).date(),
            change_rate: 1,
            change: When::Never,
            edit_days: 30,
            faults: Faults::default(),
            clock: Clock::System,
        }
    }
}

/// What was done so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Requests to the upstreams' paths.
    pub requests: u64,
    /// Bytes of bodies made for them.
    pub bytes: u64,
    /// Changes applied.
    pub changes: u64,
    /// Entries of the account.
    pub entries: u64,
    /// Records now, as `records` counts them, by upstream or endpoint.
    pub records: Vec<(&'static str, u64)>,
}

/// The upstreams.
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
}

impl Simulator {
    /// Sets up the upstreams; takes no time and no memory, however many records.
    #[must_use]
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            world: RwLock::new(World::new(options.seed, options.records, options.today, options.edit_days)),
            faults: Mutex::new(options.faults),
            last_request: Mutex::new(Instant::now()),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            builds: AtomicU64::new(0),
            seed: options.seed,
            change_rate: options.change_rate,
            change: options.change,
            clock: options.clock,
        })
    }

    /// Applies `n` changes of chance (new record, edit, change of status, number given, withdrawal) and gives the number of entries that
    /// they added to the account.
    pub fn advance(&self, n: u64) -> u64 {
        let at_ms = self.clock.now_ms();
        self.world.write().unwrap_or_else(PoisonError::into_inner).advance(n, at_ms)
    }

    /// Moves the upstreams' day forward. Recalls that come from now on bear it; what comes and moves by the day alone (filings, grants, trials,
    /// awards) is there as of it. An earlier day is ignored.
    pub fn set_today(&self, today: Date) {
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        world.today = world.today.max(today);
    }

    /// The account of all changes, in their order.
    #[must_use]
    pub fn account(&self) -> Vec<Entry> {
        self.account_after(0)
    }

    /// The entries of the account after the one of that number.
    #[must_use]
    pub fn account_after(&self, n: u64) -> Vec<Entry> {
        let world = self.world.read().unwrap_or_else(PoisonError::into_inner);
        world.account.get(usize::try_from(n).unwrap_or(usize::MAX)..).unwrap_or_default().to_vec()
    }

    /// What a reader should find now, of one door (`openfda.food`) or of all: one entry a fact, of [`Kind::Current`]. Needs memory for all of it.
    #[must_use]
    pub fn current(&self, door: Option<&str>) -> Vec<Entry> {
        let world = self.world.read().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::new();
        for feed in Feed::ALL {
            for index in 0..world.len(feed) {
                let gone = feed == Feed::Fsis && world.fate(feed, index).withdrawn;
                if !gone {
                    out.extend(world.entries(feed, index).into_iter().filter(|entry| door.is_none_or(|door| door == entry.door)));
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
    /// What the change says; see [`Faults::set`].
    pub fn with_faults(&self, change: impl FnOnce(&mut Faults) -> Result<(), UnknownFault>) -> Result<(), UnknownFault> {
        change(&mut lock(&self.faults))
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let world = self.world.read().unwrap_or_else(PoisonError::into_inner);
        let names = ["cpsc", "openfda.food", "openfda.drug", "openfda.device", "nhtsa", "fsis"];
        Stats {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            changes: world.changes(),
            entries: world.account.len() as u64,
            records: names.into_iter().zip(Feed::ALL.map(|feed| world.len(feed))).collect(),
        }
    }

    /// When the last request came.
    #[must_use]
    pub fn last_request_at(&self) -> std::time::Instant {
        lock(&self.last_request).into_std()
    }

    /// The answer to a path and an encoded query, without a network and without faults; `None` for a path that no upstream has.
    #[must_use]
    pub fn answer(&self, path: &str, query: &str) -> Option<Answer> {
        Some(self.render(Door::at(path)?, Asked { path, query, body: &[] }, &Plan::default()))
    }

    /// The answer to a body posted to a path, without a network and without faults; `None` for a path that no upstream has.
    #[must_use]
    pub fn answer_posted(&self, path: &str, body: &[u8]) -> Option<Answer> {
        Some(self.render(Door::at(path)?, Asked { path, query: "", body }, &Plan::default()))
    }

    fn render(&self, door: Door, asked: Asked<'_>, plan: &Plan) -> Answer {
        let build = if door.is_counted() { self.builds.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let mut answer = render::answer(&self.world.read().unwrap_or_else(PoisonError::into_inner), door, asked, plan, build);
        if matches!(door, Door::FlatPost | Door::FlatPre) {
            answer.last_modified = Some(self.clock.now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        }
        answer
    }

    fn draw(&self, door: Door) -> Plan {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        *lock(&self.last_request) = Instant::now();
        lock(&self.faults).draw(door.name(), door.date_field(), Dice::new(self.seed, 99, number))
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

    /// Requests so far, and how long ago the last one came.
    fn quiet(&self) -> (u64, Duration) {
        (self.requests.load(Ordering::Relaxed), lock(&self.last_request).elapsed())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! `highwater demo` and `highwater simulate`: simulated upstreams, with and without an engine that polls them.

mod first_signatures;
mod rounds;

use std::collections::{BTreeSet, HashMap};
use std::error::Error as StdError;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemas::clock::{Clock, SimulatedClock};
use schemas::views::engine::VIEW as ENGINE_VIEW;
use simulator::{Burst, Options, Simulator, When};
use upstreams::shopify::Options as ShopifyOptions;
use upstreams::{OwnOptions, Settings, Stream};

use crate::api_settings::public_url;
use crate::config::{Config, NicheEntry, ShopifySection, StoreEntry, socket_address};
use crate::data_dir::Records;
use crate::engine::Engine;
use crate::role::Role;
use crate::serve::{self, DemoTask};

/// An address whose key nobody has.
const BURN_ADDRESS: &str = "0x000000000000000000000000000000000000dEaD";
/// Days before today that a demo simulates.
const HISTORY_DAYS: i64 = 28;
/// Days before today that a demo simulates of stores, whose restocks are predicted from a long history.
const STORE_HISTORY_DAYS: i64 = 120;
/// The upstream of these stores.
const STORES_UPSTREAM: &str = "shopify";
/// How often the simulated stores are polled: once on each simulated day.
const STORE_POLL_INTERVAL_S: u32 = 86_400;
/// Changes of simulated recalls on each of these days.
const CHANGES_PER_DAY: u64 = 6;
/// The hour at which the upstreams are synced on each of these days, in UTC.
const SNAPSHOT_HOUR: i8 = 22;
/// The most ordinary stories, and the articles of the list of page views, on a simulated day. Each hour of stories needs a request anyway.
const STORIES_A_DAY_MAX: u64 = 120;
const ARTICLES_MAX: u64 = 100;
/// The upstreams of stories and page views. Their history is that of the demo, so the first sync need not go further back.
const MENTIONS_UPSTREAMS: [&str; 2] = ["hacker_news", "wikimedia"];
/// They are synced on each of so many days before today. Until then one run reads several days, whatever their schedules say, because each hour is a
/// request and runs read hours again.
const MENTIONS_DAILY_DAYS: i32 = 7;
const MENTIONS_RUN_DAYS: i32 = 3;
/// Phrases that rise, one a day in turn, and how many stories each has.
const RISING: [&str; 5] = ["agent mesh", "paper batteries", "glass compiler", "tidal kernels", "quiet radar"];
const RISING_STORIES: u64 = 36;
/// The hour at which a phrase begins to rise, in UTC, and for how many hours. At any time of a day one of the last 24 hours has such stories.
const RISING_HOUR: i8 = 4;
const RISING_HOURS: i64 = 12;
/// For how many days of a running demo phrases rise.
const RUNNING_DAYS_MAX: i64 = 60;
/// How often a changing demo syncs the simulated upstreams of recalls.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);
/// A changing demo publishes the filings, grants, trials and awards of the last days during its first minutes. All upstreams read at least this many
/// days again.
const HELD_BACK_DAYS: i64 = 5;
/// Syncs from one of these days to the next.
const SYNCS_PER_DAY: u32 = 12;
/// The upstreams of recalls.
const RECALLS_UPSTREAMS: [&str; 4] = ["cpsc", "fsis", "nhtsa", "openfda"];
/// Syncs from one round to the next. In a round a receipt is issued, and an upstream of every other service publishes something. A round and its syncs take
/// less than a minute.
const SYNCS_PER_ROUND: u32 = 5;
/// A stream that is synced in each round although its own minimum interval is longer: a round adds a small file to it, and the files before are not read again.
const STREAM_OF_FILES: &str = "uspto_trademarks.annual";
/// Streams whose own minimum interval is shorter than this are synced in each round. The others are read whole, and some upstreams limit how often a file is
/// downloaded on a day: they are synced when the day of the upstreams changes.
const ROUND_EVERY_MAX: Duration = Duration::from_secs(12 * 3_600);

/// The arguments of `highwater simulate`.
#[derive(Args)]
#[command(after_help = format!(
    "Simulated: {}. With the key {:?}: {}.",
    simulator::UPSTREAMS.join(", "),
    simulator::KEY,
    simulator::UPSTREAMS_WITH_KEY.join(", ")
))]
pub(crate) struct Simulate {
    /// The address to listen on; port 0 selects a free port. The address is printed.
    #[arg(long, value_parser = socket_address)]
    listen: SocketAddr,
    /// The seed of the simulation.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of recalls. The number of other records depends on the days.
    #[arg(long, default_value_t = 600)]
    records: u64,
    /// The number of changes at a time.
    #[arg(long, default_value_t = 1)]
    change_rate: u64,
    /// When records change: never, always (every second), or between-runs (after two seconds without a request).
    #[arg(long, default_value = "never", value_parser = ["never", "always", "between-runs"])]
    change: String,
    /// A fault as NAME=VALUE, where the value is a probability or the parameter of the fault. Can be repeated.
    #[arg(long = "fault", value_name = "NAME=VALUE")]
    faults: Vec<String>,
}

/// Runs `highwater simulate`.
///
/// # Errors
/// A fault is unknown, the address is not available, or signals cannot be received.
pub(crate) async fn simulate(arguments: Simulate) -> Result<(), Box<dyn StdError>> {
    let mut options =
        Options { seed: arguments.seed, records: arguments.records, change_rate: arguments.change_rate, ..Options::default() };
    options.change = match arguments.change.as_str() {
        "always" => When::Always { every: Duration::from_secs(1) },
        "between-runs" => When::BetweenRuns { idle: Some(Duration::from_secs(2)) },
        _ => When::Never,
    };
    for fault in &arguments.faults {
        let Some((name, value)) = fault.split_once('=') else {
            return Err(format!("--fault {fault}: must be NAME=VALUE").into());
        };
        let result = match value.parse::<f64>() {
            Ok(value) => options.faults.set(name, value),
            Err(_) => options.faults.set_text(name, value),
        };
        result.map_err(|error| {
            let known = simulator::FAULT_NAMES.into_iter().chain(simulator::FAULT_PARAMETERS);
            format!("--fault {fault}: {error}{}", schemas::names::hint(name, known))
        })?;
    }
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopping.await;
    };
    let (bound, serving) = Simulator::new(options).bind(arguments.listen, shutdown).await?;
    // Before the address is printed: who reads it may stop this process at once.
    let stopped = serve::signals()?;
    {
        use std::io::Write;
        writeln!(std::io::stdout(), "http://{bound}")?;
        std::io::stdout().flush()?;
    }
    let serving = tokio::spawn(serving);
    stopped.await;
    let _ = stop.send(());
    serving.await?;
    Ok(())
}

/// Runs `highwater demo`.
///
/// # Errors
/// The server or the simulator cannot start, or the log or the store fails.
pub(crate) async fn demo(mut config: Config, still: bool, records: u64, seed: u64) -> Result<(), Box<dyn StdError>> {
    let listeners = serve::bind(&config)?;
    let history = History::load(&config, config.clock().today());
    let simulated_clock = SimulatedClock::new(snapshot_time(history.next)?, config.clock());
    if history.next == history.today {
        simulated_clock.end();
    }
    config.set_simulated_clock(simulated_clock);
    let clock = config.clock();
    let simulator = simulated_upstreams(&config, history.first, records, seed);
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopping.await;
    };
    let (bound, serving) = Arc::clone(&simulator).bind(SocketAddr::from(([127, 0, 0, 1], 0)), shutdown).await?;
    let serving = tokio::spawn(serving);
    adapt(&mut config, bound);
    let address = listeners.readers.address();
    let engine = Engine::open(config, Some(address), Some(Records::Simulated), Role::All).await?;
    let task: DemoTask = Box::new(move |engine, is_ready| {
        Box::pin(async move {
            // A sync compares records with the latest-version index, which is completed from the log first.
            engine.store.served(&[ENGINE_VIEW.name]).await;
            let day = history.simulate(&engine, &simulator, simulated_clock, still).await;
            first_signatures::sign(&engine).await;
            is_ready.store(true, Ordering::Relaxed);
            tracing::info!(page = %format!("{}/", public_url(&engine.config, Some(address))), "the demo is ready");
            if still {
                return;
            }
            let mut changing = Changing { engine, simulator, clock, day, syncs: 0, appended: 0 };
            // Records change between two syncs, as at a real upstream.
            loop {
                tokio::time::sleep(SYNC_INTERVAL).await;
                changing.step().await;
            }
        })
    });
    // No upstream has a schedule: the demo's task syncs them.
    serve::run(engine, listeners, Vec::new(), Role::All, Some(task)).await?;
    let _ = stop.send(());
    serving.await?;
    Ok(())
}

/// The upstreams of a demo whose first day is `first`, with the rounds of earlier processes.
fn simulated_upstreams(config: &Config, first: Date, records: u64, seed: u64) -> Arc<Simulator> {
    let simulator = Simulator::new(Options {
        seed,
        records,
        today: first,
        clock: config.clock(),
        stories_a_day_max: STORIES_A_DAY_MAX,
        articles_max: ARTICLES_MAX,
        has_bad_files: false,
        ..Options::default()
    });
    add_rising_phrases(&simulator, first);
    simulator.restore_rounds(rounds::load(config));
    simulator
}

/// A demo whose records change.
struct Changing {
    engine: Arc<Engine>,
    simulator: Arc<Simulator>,
    clock: Clock,
    /// The last day whose dated records are published.
    day: Date,
    /// How often the upstreams were synced.
    syncs: u32,
    /// How many facts were appended since the last message.
    appended: i64,
}

impl Changing {
    /// Lets the upstreams change and syncs them, as in each [`SYNC_INTERVAL`].
    async fn step(&mut self) {
        self.syncs = self.syncs.wrapping_add(1);
        let last_day = self.day;
        if self.syncs.is_multiple_of(SYNCS_PER_DAY) {
            self.day = self.day.saturating_add(1.day()).min(self.clock.today());
            self.simulator.set_today(self.day);
            tracing::info!(
                seconds = (SYNC_INTERVAL * SYNCS_PER_DAY).as_secs(),
                appended = self.appended,
                "the simulated upstreams changed"
            );
            self.appended = 0;
        }
        self.simulator.advance(3);
        let is_round = self.syncs.is_multiple_of(SYNCS_PER_ROUND);
        if is_round {
            rounds::store(&self.engine.config, self.simulator.publish_round());
            first_signatures::issue_another(&self.engine).await;
        }
        let facts = sync(&self.engine, &due_streams(self.day > last_day, is_round), is_round).await;
        tracing::debug!(appended = facts, "synced the simulated upstreams");
        self.appended += facts;
    }
}

/// Lets a phrase rise on each day from the first one of a demo on, as long as a demo may run.
fn add_rising_phrases(simulator: &Simulator, first: Date) {
    let days = (0..HISTORY_DAYS + RUNNING_DAYS_MAX).map(|n| first.saturating_add(n.days()));
    for (day, phrase) in days.zip(RISING.into_iter().cycle()) {
        let Ok(from) = day.at(RISING_HOUR, 0, 0, 0).to_zoned(TimeZone::UTC) else { continue };
        let burst = Burst {
            phrase: phrase.to_owned(),
            from_ms: from.timestamp().as_millisecond(),
            hours: RISING_HOURS,
            stories: RISING_STORIES,
            authors: 12,
            views: 40_000,
        };
        simulator.add_burst(burst);
    }
}

/// Changes the configuration for a demo, whose simulator is at this address.
fn adapt(config: &mut Config, simulator: SocketAddr) {
    let sections = &mut config.sections;
    // Also upstreams that are not simulated: a demo sends nothing to real ones, not even a live look-up.
    for (name, upstream) in &mut sections.upstreams {
        upstream.base_url = Some(format!("http://{simulator}"));
        upstream.requests_per_second = 1_000.0;
        if simulator::UPSTREAMS_WITH_KEY.contains(&name.as_str()) {
            upstream.api_key = Some(simulator::KEY.to_owned());
        }
        if MENTIONS_UPSTREAMS.contains(&name.as_str()) {
            upstream.backfill_days = 0;
        }
    }
    let niche = |(key, label): (&str, &str)| NicheEntry { key: key.to_owned(), label: label.to_owned() };
    let store =
        |(host, niche): (&str, &str)| StoreEntry { host: host.to_owned(), niche: niche.to_owned(), interval_s: STORE_POLL_INTERVAL_S };
    config.shopify = ShopifySection { niches: simulator::NICHES.map(niche).to_vec(), stores: simulator::STORES.map(store).to_vec() };
    if sections.payments.pay_to.is_empty() {
        // Prices are shown, but no payment can be settled.
        BURN_ADDRESS.clone_into(&mut sections.payments.pay_to);
    }
}

/// The days that a demo simulates before today, so that there is a history to query. A stream is synced on the first day, and then once on each day on which
/// its schedule says so, with a time on that day. The progress is stored with the data: a demo that is started again has the same upstreams, and simulates
/// only the remaining days. On the earliest days only stores are synced.
struct History {
    file: PathBuf,
    /// The first day of all upstreams but the stores.
    first: Date,
    /// The next day to simulate.
    next: Date,
    today: Date,
    /// For each simulated stream: the days from the first one on, before today, on which its schedule says that it is synced.
    scheduled: HashMap<&'static str, BTreeSet<Date>>,
}

impl History {
    fn load(config: &Config, today: Date) -> Self {
        let file = config.sections.data_dir.join("demo-days");
        let stored = std::fs::read_to_string(&file).unwrap_or_default();
        let mut days = stored.split_whitespace().map(str::parse::<Date>);
        let (first, next) = match (days.next(), days.next()) {
            (Some(Ok(first)), Some(Ok(next))) if Self::first_of_stores(first) <= next && next <= today => (first, next),
            _ => {
                let first = today.saturating_sub(HISTORY_DAYS.days());
                (first, Self::first_of_stores(first))
            }
        };
        Self { file, first, next, today, scheduled: scheduled(config, first, today) }
    }

    /// The first day of the stores.
    fn first_of_stores(first: Date) -> Date {
        first.saturating_sub((STORE_HISTORY_DAYS - HISTORY_DAYS).days())
    }

    fn store(&self) {
        let created = self.file.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = created.and_then(|()| std::fs::write(&self.file, format!("{} {}\n", self.first, self.next))) {
            tracing::warn!(%error, "the progress of the demo's history could not be stored");
        }
    }

    /// The streams that are synced on a day before today.
    fn synced_on(&self, day: Date) -> Vec<&'static str> {
        let (days, days_left) = ((day - self.first).get_days(), (self.today - day).get_days());
        let has_mentions = days_left <= MENTIONS_DAILY_DAYS || days % MENTIONS_RUN_DAYS == 0;
        let mentions = streams_of(&MENTIONS_UPSTREAMS);
        let is_synced = |(stream, scheduled): (&&'static str, &BTreeSet<Date>)| {
            (scheduled.contains(&day) && (has_mentions || !mentions.contains(stream))).then_some(*stream)
        };
        self.scheduled.iter().filter_map(is_synced).collect()
    }

    /// Simulates the days before today, then today, and returns the last day whose dated records are published. If `still`, that is today; otherwise
    /// the records of the last days are published while the demo runs.
    async fn simulate(mut self, engine: &Arc<Engine>, simulator: &Simulator, clock: &SimulatedClock, still: bool) -> Date {
        self.store();
        let published = if still { self.today } else { self.today.saturating_sub(HELD_BACK_DAYS.days()).max(self.next) };
        while self.next < self.first {
            move_clock(clock, self.next);
            sync(engine, &streams_of(&[STORES_UPSTREAM]), false).await;
            self.next = self.next.saturating_add(1.day());
            self.store();
        }
        let mut day = self.first;
        while day < self.today {
            simulator.set_today(day.min(published));
            simulator.advance(CHANGES_PER_DAY);
            if day == self.next {
                move_clock(clock, day);
                let appended = sync(engine, &self.synced_on(day), false).await;
                tracing::info!(day = %day, appended, "simulated a day of the demo's history");
                self.next = day.saturating_add(1.day());
                self.store();
            }
            day = day.saturating_add(1.day());
        }
        clock.end();
        simulator.set_today(published);
        simulator.advance(CHANGES_PER_DAY);
        let appended = sync(engine, &streams_of(simulator::UPSTREAMS), false).await;
        tracing::info!(day = %self.today, appended, "simulated the present day of the demo");
        if published < self.today {
            tracing::info!(after = %published, "dated records after this day are held back, will be published while the demo runs");
        }
        published
    }
}

/// All streams of some upstreams.
fn streams(names: &[&str]) -> impl Iterator<Item = &'static Stream> {
    let upstreams = names.iter().filter_map(|name| upstreams::by_name(name));
    upstreams.flat_map(|upstream| upstream.manifest().streams)
}

/// The names of all streams of some upstreams.
fn streams_of(names: &[&str]) -> Vec<&'static str> {
    streams(names).map(|stream| stream.name).collect()
}

/// The names of the streams that a changing demo syncs: all of them when the day of the upstreams has changed, in a round those that are read often, and
/// otherwise those of recalls.
fn due_streams(is_new_day: bool, is_round: bool) -> Vec<&'static str> {
    if is_new_day {
        streams_of(simulator::UPSTREAMS)
    } else if is_round {
        let is_read = |stream: &&Stream| stream.every < ROUND_EVERY_MAX || stream.name == STREAM_OF_FILES;
        streams(simulator::UPSTREAMS).filter(is_read).map(|stream| stream.name).collect()
    } else {
        streams_of(&RECALLS_UPSTREAMS)
    }
}

/// For each simulated stream: the days from `first` to before `end` on which it is synced by the schedule of its upstream in the settings, and by its own
/// minimum interval.
fn scheduled(config: &Config, first: Date, end: Date) -> HashMap<&'static str, BTreeSet<Date>> {
    let of_upstream = |name: &&str| {
        let (upstream, section) = (upstreams::by_name(name)?, config.sections.upstreams.get(*name)?);
        let streams = upstream.manifest().streams.iter();
        Some(streams.map(move |stream| (stream.name, ingest::schedule::days(&section.schedule, stream.every, first, end))))
    };
    simulator::UPSTREAMS.iter().filter_map(of_upstream).flatten().collect()
}

/// The time on a day at which the upstreams are synced.
fn snapshot_time(day: Date) -> Result<Timestamp, jiff::Error> {
    Ok(day.at(SNAPSHOT_HOUR, 0, 0, 0).to_zoned(TimeZone::UTC)?.timestamp())
}

/// Moves the clock to the time on a day at which the upstreams are synced.
fn move_clock(clock: &SimulatedClock, day: Date) {
    match snapshot_time(day) {
        Ok(at) => clock.move_to(at),
        Err(error) => tracing::error!(%error, "a day of the demo's history has no snapshot time"),
    }
}

/// Syncs some streams of simulated upstreams once and waits until the records are projected. Returns how many facts were appended. `is_every_store_due`:
/// stores are polled although they were polled today. Their interval stays a day, so that their history has no holes.
async fn sync(engine: &Arc<Engine>, streams: &[&'static str], is_every_store_due: bool) -> i64 {
    let upstreams = simulator::UPSTREAMS.iter().filter_map(|name| upstreams::by_name(name));
    let with_streams = upstreams.filter(|upstream| upstream.manifest().streams.iter().any(|stream| streams.contains(&stream.name)));
    let syncs = with_streams.map(|upstream| async move {
        let name = upstream.manifest().name;
        match engine.upstream_settings(name) {
            Ok(settings) => {
                // A run reads the days since the last one in any case.
                let window_days = if MENTIONS_UPSTREAMS.contains(&name) { 0 } else { settings.window_days };
                let of_stores = settings.own.get::<ShopifyOptions>().cloned();
                let of_stores = of_stores.map(|options| OwnOptions::new(ShopifyOptions { is_every_store_due, ..options }));
                let own = of_stores.unwrap_or_else(|| settings.own.clone());
                let settings = Settings { own, window_days, ..settings };
                match engine.runner.sync_streams(upstream, &settings, streams).await {
                    Ok(results) => results.iter().flatten().map(|outcome| outcome.run.appended).sum::<i64>(),
                    Err(error) => {
                        tracing::error!(upstream = name, error = ingest::reason(&error), "sync could not run");
                        0
                    }
                }
            }
            Err(error) => {
                tracing::error!(upstream = name, %error, "sync skipped: the upstream has no settings");
                0
            }
        }
    });
    let appended = futures_util::future::join_all(syncs).await.into_iter().sum();
    if let Err(error) = engine.wait_all_projected().await {
        tracing::error!(error = ingest::reason(&*error), "waiting for the views failed");
    }
    appended
}

#[cfg(test)]
mod tests;

//! `demo` and `simulate`: the upstreams played by a server of ours, with or without the engine on them.

use std::error::Error as StdError;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemas::clock::{Clock, SimulatedClock};
use simulator::{Options, Simulator, When};

use crate::cli::{Role, address};
use crate::config::Config;
use crate::engine::{self, Engine};

/// An address of which nobody has the key.
const NOBODY: &str = "0x000000000000000000000000000000000000dEaD";
/// Days that a demo plays before today.
const HISTORY_DAYS: i64 = 28;
/// Changes of the recalls' upstreams on each of them.
const CHANGES_A_DAY: u64 = 6;
/// The hour at which a day's snapshot is taken, in UTC.
const SNAPSHOT_HOUR: i8 = 22;
/// Between two looks at the simulated upstreams, in a demo that changes.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The last days, few enough that every upstream is still asked for them, come within the first minutes of a demo that changes: filings, grants,
/// trials and awards come by the day.
const HELD_BACK_DAYS: i64 = 5;
/// Looks at upstreams from one of these days to the next.
const LOOKS_A_DAY: u32 = 12;

/// Plays the upstreams alone.
#[derive(Args)]
#[command(after_help = format!("Simulated: {}.", simulator::UPSTREAMS.join(", ")))]
pub(crate) struct Simulate {
    /// Where to listen; port 0 takes a free one. The address is printed.
    #[arg(long, value_parser = address)]
    listen: SocketAddr,
    /// The seed of everything.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many recalls; of all else there is as much as days bring.
    #[arg(long, default_value_t = 600)]
    records: u64,
    /// Changes at a time.
    #[arg(long, default_value_t = 1)]
    change_rate: u64,
    /// When they happen: never, always (each second), between-runs (when no request came for two seconds).
    #[arg(long, default_value = "never", value_parser = ["never", "always", "between-runs"])]
    change: String,
    /// A fault as NAME=VALUE (a probability, or what the fault takes); may be repeated.
    #[arg(long = "fault", value_name = "NAME=VALUE")]
    faults: Vec<String>,
}

/// `highwater simulate`.
pub(crate) async fn simulate(asked: Simulate) -> Result<(), Box<dyn StdError>> {
    let mut options = Options { seed: asked.seed, records: asked.records, change_rate: asked.change_rate, ..Options::default() };
    options.change = match asked.change.as_str() {
        "always" => When::Always { every: Duration::from_secs(1) },
        "between-runs" => When::BetweenRuns { idle: Some(Duration::from_secs(2)) },
        _ => When::Never,
    };
    for fault in &asked.faults {
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
    let (bound, serving) = Simulator::new(options).bind(asked.listen, shutdown).await?;
    {
        use std::io::Write;
        writeln!(std::io::stdout(), "http://{bound}")?;
        std::io::stdout().flush()?;
    }
    let serving = tokio::spawn(serving);
    tokio::signal::ctrl_c().await?;
    let _ = stop.send(());
    serving.await?;
    Ok(())
}

/// `highwater demo`.
pub(crate) async fn demo(mut config: Config, still: bool, records: u64, seed: u64) -> Result<(), Box<dyn StdError>> {
    let server = engine::bind(&config)?;
    let history = History::of(&config, today(config.clock()?));
    let played = SimulatedClock::new(snapshot_at(history.next)?, config.clock()?);
    if history.next == history.today {
        played.end();
    }
    config.set_clock(Clock::Simulated(played));
    let clock = config.clock()?;
    let simulator = Simulator::new(Options { seed, records, today: history.first, clock, ..Options::default() });
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopping.await;
    };
    let (bound, serving) = Arc::clone(&simulator).bind(SocketAddr::from(([127, 0, 0, 1], 0)), shutdown).await?;
    let serving = tokio::spawn(serving);
    for name in simulator::UPSTREAMS {
        let section = ["upstreams", *name];
        config.set(&section, "base_url", format!("http://{bound}"));
        config.set(&section, "requests_per_second", 1_000.0);
    }
    let address = server.address();
    if config.text("payments.pay_to").is_empty() {
        // Terms are shown, nothing is ever settled.
        config.set(&["payments"], "pay_to", NOBODY);
    }
    if config.text("checkpoints.memory").is_empty() {
        // Next to the data directory: a demo leaves nothing in the user's state directory.
        let memory = format!("{}.signer", config.text("data_dir").trim_end_matches('/'));
        config.set(&["checkpoints"], "memory", memory);
    }
    let engine = Engine::open(config, Some(address), Some(true), Role::All).await?;
    let beside: engine::Beside = Box::new(move |engine, ready| {
        Box::pin(async move {
            let mut day = history.play(&engine, &simulator, played, still).await;
            ready.store(true, Ordering::Relaxed);
            tracing::info!(page = %format!("http://{address}/"), "the demo is ready");
            if still {
                return;
            }
            // A demo that changes does so between two looks, as a real upstream does between two polls.
            for looks in 1_u32.. {
                tokio::time::sleep(LOOK_EVERY).await;
                if looks.is_multiple_of(LOOKS_A_DAY) {
                    day = day.saturating_add(1.day()).min(today(clock));
                    simulator.set_today(day);
                }
                simulator.advance(3);
                look(&engine).await;
            }
        })
    });
    // No schedule: the demo looks by itself.
    engine::run(engine, server, Vec::new(), Role::All, Some(beside)).await?;
    let _ = stop.send(());
    serving.await?;
    Ok(())
}

fn today(clock: Clock) -> Date {
    clock.now().to_zoned(TimeZone::UTC).date()
}

/// The days that a demo plays before today, so that there is a past to ask for: daily snapshots that bear the times of those days. Kept with the
/// data: a demo that is started again has the same upstreams, and plays the days that it has not played yet.
struct History {
    file: PathBuf,
    first: Date,
    /// The next day to play.
    next: Date,
    today: Date,
}

impl History {
    fn of(config: &Config, today: Date) -> Self {
        let file = Path::new(config.text("data_dir")).join("demo-days");
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        let mut days = kept.split_whitespace().map(str::parse::<Date>);
        let (first, next) = match (days.next(), days.next()) {
            (Some(Ok(first)), Some(Ok(next))) if first <= next && next <= today => (first, next),
            _ => (today.saturating_sub(HISTORY_DAYS.days()), today.saturating_sub(HISTORY_DAYS.days())),
        };
        Self { file, first, next, today }
    }

    fn keep(&self) {
        let kept = self.file.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = kept.and_then(|()| std::fs::write(&self.file, format!("{} {}\n", self.first, self.next))) {
            tracing::warn!(%error, "the days of the demo are not kept");
        }
    }

    /// Plays the days before today, then today. Unless all is to be there at once, what comes by the day comes up to the day that is answered.
    async fn play(mut self, engine: &Arc<Engine>, simulator: &Simulator, played: &SimulatedClock, is_whole: bool) -> Date {
        self.keep();
        let come = if is_whole { self.today } else { self.today.saturating_sub(HELD_BACK_DAYS.days()).max(self.next) };
        let mut day = self.first;
        while day < self.today {
            simulator.set_today(day.min(come));
            simulator.advance(CHANGES_A_DAY);
            if day == self.next {
                match snapshot_at(day) {
                    Ok(at) => played.move_to(at),
                    Err(error) => tracing::error!(%error, "a day of the demo has no time"),
                }
                look(engine).await;
                tracing::info!(day = %day, "a day of the demo's history is there");
                self.next = day.saturating_add(1.day());
                self.keep();
            }
            day = day.saturating_add(1.day());
        }
        played.end();
        simulator.set_today(come);
        simulator.advance(CHANGES_A_DAY);
        look(engine).await;
        come
    }
}

/// When a day's snapshot is taken.
fn snapshot_at(day: Date) -> Result<Timestamp, jiff::Error> {
    Ok(day.at(SNAPSHOT_HOUR, 0, 0, 0).to_zoned(TimeZone::UTC)?.timestamp())
}

/// Runs every upstream that is played once and waits until what came is projected.
async fn look(engine: &Arc<Engine>) {
    let played = simulator::UPSTREAMS.iter().filter_map(|name| upstreams::by_name(name));
    let runs = played.map(|upstream| async move {
        let name = upstream.manifest().name;
        match engine.upstream_settings(name) {
            Ok(settings) => match engine.runner.sync(upstream, &settings).await {
                Ok(_) => {}
                Err(error) => tracing::error!(upstream = name, error = ingest::reason(&error), "an upstream cannot be run"),
            },
            Err(error) => tracing::error!(upstream = name, %error, "an upstream has no settings"),
        }
    });
    futures_util::future::join_all(runs).await;
    for topic in schemas::topics::fact_topics() {
        if let Err(error) = engine.wait_projected(topic).await {
            tracing::error!(error = ingest::reason(&*error), "the views do not catch up");
        }
    }
}

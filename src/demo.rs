//! `demo` and `simulate`: the upstreams played by a server of ours, with or without the engine on them.

use std::error::Error as StdError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemas::clock::Clock;
use simulator::{Options, Simulator, When};

use crate::cli::{Role, address};
use crate::config::Config;
use crate::engine::{self, Engine};

/// Between two looks at the simulated upstreams, in a demo that changes.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Plays the upstreams alone.
#[derive(Args)]
#[command(after_help = format!("Played are: {}.", simulator::UPSTREAMS.join(", ")))]
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
    let clock = config.clock()?;
    let simulator = Simulator::new(Options { seed, records, today: today(clock), clock, ..Options::default() });
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
    let engine = Engine::open(config, Some(address), Some(true)).await?;
    let beside: engine::Beside = Box::new(move |engine, ready| {
        Box::pin(async move {
            look(&engine).await;
            ready.store(true, Ordering::Relaxed);
            tracing::info!(page = %format!("http://{address}/"), "the demo is ready");
            if still {
                return;
            }
            // A demo that changes does so between two looks, as a real upstream does between two polls.
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                simulator.set_today(today(clock));
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

/// Runs every upstream that is played once and waits until what came is projected.
async fn look(engine: &Arc<Engine>) {
    let played = simulator::UPSTREAMS.iter().filter_map(|name| upstreams::by_name(name));
    let runs = played.map(|upstream| async move {
        let name = upstream.manifest().name;
        match engine.upstream_settings(name) {
            Ok(settings) => match engine.runner.run(upstream, &settings).await {
                Ok(_) => {}
                Err(error) => tracing::error!(upstream = name, error = ingest::reason(&error), "an upstream cannot be run"),
            },
            Err(error) => tracing::error!(upstream = name, %error, "an upstream has no settings"),
        }
    });
    futures_util::future::join_all(runs).await;
    for topic in projector::heads::fact_topics() {
        if let Err(error) = engine.wait_projected(topic).await {
            tracing::error!(error = ingest::reason(&*error), "the views do not catch up");
        }
    }
}

//! Load and comparison programs. Each prints the engine's result divided by that of a limit or a peer **in the same run**. Both sides
//! alternate, so that other load on the machine slows both.
//!
//! ```text
//! cargo run --release -p bench -- all|append|ingest|replay|page|filters|labs|catalysts|sizes|stream|receipts|kafka|cql|visible|webhooks|cadence|names|archives|coverage|parcels|aviation|exclusions|phrases|serve
//!     [--records N] [--dir DIR] [--quick] [--json FILE]
//! cargo run --release -p bench -- compare BEFORE.json AFTER.json
//! ```
//!
//! `kafka`, `cql`, `visible` and `webhooks` need a broker and a CQL node: those of `--kafka` and `--cql`, or of `HIGHWATER_TEST_KAFKA` and
//! `HIGHWATER_TEST_CQL`, or those that `ops/engines` starts.
//!
//! `ops/docs/operations/performance.md` has the figures and says how they are measured. The hidden commands are the measured processes:
//! each measurement has its own process, so that time and memory can be attributed to it.

mod append;
mod archives;
mod asker;
mod aviation;
mod cadence;
mod catalysts;
mod child_server;
mod coverage;
mod cql;
mod engine;
mod exclusions;
mod facts;
mod filters;
mod ingest;
mod json_server;
mod kafka;
mod labs;
mod lists;
mod load;
mod loads;
mod names;
mod page;
mod pages;
mod parcels;
mod phrases;
mod postgres;
mod receipts;
mod register;
mod replay;
mod report;
mod sample;
mod serve;
mod servers;
mod settings;
mod sizes;
mod start_time;
mod stream;
mod summary;
mod visible;
mod webhooks;

use std::path::PathBuf;

use self::settings::{Failure, QUICK_RECORDS, Settings};
use clap::{Parser, Subcommand};

/// The allocator that the `highwater` binary uses.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Compares the engine with its limits and peers, within one run.
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The number of simulated records.
    #[arg(long, global = true, default_value_t = 100_000)]
    records: u64,
    /// 20,000 records, one round of one second, and nothing that needs servers: shows in under five minutes whether something is much slower.
    #[arg(long, global = true)]
    quick: bool,
    /// A file that receives all figures as JSON, for `compare`.
    #[arg(long, global = true)]
    json: Option<PathBuf>,
    /// The directory of data and pages, which a later run uses again; a temporary directory by default.
    #[arg(long, global = true)]
    dir: Option<PathBuf>,
    /// Seconds of load in each round of `page`.
    #[arg(long, global = true, default_value_t = 4)]
    seconds: u64,
    /// `HOST:PORT,…` of Kafka brokers for `kafka` and `visible`.
    #[arg(long, global = true)]
    kafka: Option<String>,
    /// `HOST:PORT` of a CQL node for `cql` and `visible`.
    #[arg(long, global = true)]
    cql: Option<String>,
    /// Numbers of partitions that `kafka` compares with, one after another.
    #[arg(long, global = true, value_delimiter = ',', default_value = "4")]
    partitions: Vec<u32>,
    /// The replication factor of the topics of `kafka` and `visible`.
    #[arg(long, global = true, default_value_t = 1)]
    replication: i32,
    /// Restricts `filters` to one service, `awards` or `filings` (ten million records of each take some 30 GB), or `webhooks` to one part,
    /// `singles` or `crowd`.
    #[arg(long, global = true)]
    only: Option<String>,
    /// The number of rounds; figures are medians.
    #[arg(long, global = true, default_value_t = 5)]
    rounds: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
enum Command {
    /// Prints the figures that two files of `--json` have in common, and how much they differ.
    Compare {
        /// The file of the earlier run.
        before: PathBuf,
        /// The file of the later run.
        after: PathBuf,
    },
    /// All of the following.
    All,
    /// Durable appends of 500 records of 300 bytes, compared with write and fdatasync of the same bytes.
    Append,
    /// Ingest of simulated pages up to the last row, compared with parsing the same bytes by serde_json; and opening the data again.
    Ingest,
    /// `replay recalls`, compared with reading the topic of changes.
    Replay,
    /// Pages of 200 changes over HTTP, compared with a ready-made body and with PostgreSQL behind the same HTTP server.
    Page,
    /// Pages of feeds and of selective filters, with a tenth of the records and with all.
    Filters,
    /// Leads of one category and state, compared with PostgreSQL; grants classified on one core; all grants decided again. The targets are for
    /// 500,000 records.
    Labs,
    /// Upcoming events and searches for a drug, compared with PostgreSQL; trials decided from nothing; documents read on one core. One trial in
    /// thirty has an event: the targets are for 600,000 records.
    Catalysts,
    /// Bytes of records and rows, for capacity planning.
    Sizes,
    /// Thousands of idle readers of events at one node: their memory, and the time until a change has reached all of them.
    Stream,
    /// Receipts issued by 64 concurrent callers, compared with bare Ed25519 signatures on one core.
    Receipts,
    /// Appends and reads of facts through Kafka, compared with rdkafka alone.
    Kafka,
    /// The view store on a CQL node, compared with the driver alone.
    Cql,
    /// The time from the append of a fact to its change in the feed, and the throughput of one projector.
    Visible,
    /// The time from a change at an upstream to its delivery, and the effect of a thousand bad targets on nine thousand others.
    Webhooks,
    /// Predictions and boards of restocks, the scores of past forecasts, and a poll of a large store, compared with PostgreSQL. `--records` is
    /// the number of items, at most 200,000.
    Cadence,
    /// The index of names: build, memory, checks, snapshot, the changes of a day and watches, compared with PostgreSQL's trigrams. Ten simulated marks a
    /// record: a million by default.
    Names,
    /// One large archive of trademarks: mapped and loaded, compared with unpacking and parsing it alone.
    Archives,
    /// Leads of a state and a line of insurance and counts of leads, compared with PostgreSQL; the load, and a day of 10,000 facts. `--records` is the
    /// number of leads: the targets are for 2,000,000.
    Coverage,
    /// Over-assessed parcels, the check of one parcel and the liens of one, compared with PostgreSQL; the load, and a cycle of a township. `--records` is
    /// the number of parcels of both counties: the targets are for 2,500,000.
    Parcels,
    /// Directives for a model, a fleet of 200 and its file, compared with PostgreSQL; documents read on one core. Five records are a directive: the
    /// targets are for 20,000 directives, which is also the most.
    Aviation,
    /// Evidence by number and by name, the scan and the check of names, compared with PostgreSQL and a comparison with all; the load, and a daily
    /// file. `--records` is the number of exclusions: the targets are for 170,000.
    Exclusions,
    /// Phrases that rise and the velocity of one, compared with PostgreSQL; the load, and an hour of 5,000 stories. `--records` is the number of
    /// stories in 90 days: 108,000 are those of the site; the targets are for 200,000, whose phrases have about a million rows.
    Phrases,
    /// `highwater serve` with all services and `--records` records in total: seconds until it is ready, memory, and the first byte of pages. Not part of `all`,
    /// because it starts the binary. The targets are for 1,000,000.
    Serve,
    /// The process that loads all services, for `serve`.
    #[command(hide = true)]
    ServeLoadChild,
    /// The process that maps an archive, measured by `archives`.
    #[command(hide = true)]
    MapArchiveChild,
    /// The process that loads an archive, measured by `archives`.
    #[command(hide = true)]
    LoadArchiveChild,
    /// The process that decides grants, measured by `labs`.
    #[command(hide = true)]
    LabsChild,
    /// The process that decides trials, measured by `catalysts`.
    #[command(hide = true)]
    CatalystsChild,
    /// The process that loads leads, measured by `coverage`.
    #[command(hide = true)]
    CoverageChild,
    /// The process that loads parcels, measured by `parcels`.
    #[command(hide = true)]
    ParcelsChild,
    /// The process that loads directives, measured by `aviation`.
    #[command(hide = true)]
    AviationChild,
    /// The process that loads exclusions, measured by `exclusions`.
    #[command(hide = true)]
    ExclusionsChild,
    /// The process that reads a daily file of exclusions, measured by `exclusions`.
    #[command(hide = true)]
    ExclusionsDailyChild,
    /// The process that loads stories, measured by `phrases`.
    #[command(hide = true)]
    PhrasesChild,
    /// The process that polls a store, measured by `cadence`.
    #[command(hide = true)]
    CadencePollChild,
    /// The process that ingests, measured by `ingest`.
    #[command(hide = true)]
    IngestChild,
    /// The process that opens the data again, measured by `ingest`.
    #[command(hide = true)]
    OpenChild,
    /// The process that serves pages of upstreams.
    #[command(hide = true)]
    PagesChild,
    /// The process that replays, measured by `replay`.
    #[command(hide = true)]
    ReplayChild,
    /// The process that projects on Kafka and CQL, measured by `visible`.
    #[command(hide = true)]
    ProjectChild,
    /// The process that issues receipts, measured by `receipts`.
    #[command(hide = true)]
    ReceiptsChild,
    /// The process whose feed is followed, measured by `stream`.
    #[command(hide = true)]
    StreamChild,
    /// The process that serves changes, a ready-made body or PostgreSQL's rows, measured by `page` and `filters`.
    #[command(hide = true)]
    ServeChild,
}

impl Command {
    /// Whether the benchmark loads servers by `wrk`.
    fn needs_wrk(&self) -> bool {
        let lists = matches!(
            self,
            Self::Labs | Self::Catalysts | Self::Coverage | Self::Parcels | Self::Aviation | Self::Exclusions | Self::Phrases
        );
        lists || matches!(self, Self::All | Self::Page | Self::Filters | Self::Receipts)
    }
}

fn main() -> Result<(), Failure> {
    let cli = Cli::parse();
    let temporary = if cli.dir.is_none() { Some(tempfile::tempdir()?) } else { None };
    let dir = cli.dir.or_else(|| temporary.as_ref().map(|dir| dir.path().to_owned())).unwrap_or_default();
    std::fs::create_dir_all(&dir)?;
    let settings = Settings {
        records: if cli.quick { QUICK_RECORDS } else { cli.records },
        dir,
        seconds: if cli.quick { 1 } else { cli.seconds.max(1) },
        rounds: if cli.quick { 1 } else { cli.rounds.max(1) },
        partitions: cli.partitions.clone(),
        replication: cli.replication,
        only: cli.only.clone(),
        is_quick: cli.quick,
    };
    match cli.command {
        Command::MapArchiveChild => archives::map_child(&settings),
        Command::LoadArchiveChild => archives::load_child(&settings),
        Command::CadencePollChild => cadence::poll_child(&settings),
        Command::IngestChild => ingest::child(&settings),
        Command::OpenChild => ingest::open_child(&settings),
        Command::PagesChild => pages::child(&settings),
        Command::ReplayChild => replay::child(&settings),
        Command::ProjectChild => visible::child(),
        Command::ServeChild => page::child(&settings),
        Command::ServeLoadChild => serve::load_child(&settings),
        Command::LabsChild => labs::child(&settings),
        Command::CatalystsChild => catalysts::child(&settings),
        Command::CoverageChild => coverage::child(&settings),
        Command::ParcelsChild => parcels::child(&settings),
        Command::AviationChild => aviation::child(&settings),
        Command::ExclusionsChild => exclusions::child(&settings),
        Command::ExclusionsDailyChild => exclusions::daily_child(&settings),
        Command::PhrasesChild => phrases::child(&settings),
        Command::StreamChild => stream::child(&settings),
        Command::ReceiptsChild => receipts::child(&settings),
        Command::Compare { before, after } => {
            summary::compare(&before, &after)?.iter().for_each(|line| report::line(line));
            Ok(())
        }
        command => {
            if command.needs_wrk() {
                load::check_installed()?;
            }
            let machine = report::machine();
            let wanted = |this| command == Command::All || command == this;
            // A quick run of all benchmarks starts no servers.
            let on_servers = |this| command == this || command == Command::All && !cli.quick;
            if wanted(Command::Append) {
                append::run(&settings)?;
            }
            if wanted(Command::Ingest) {
                ingest::run(&settings)?;
            }
            if wanted(Command::Replay) {
                replay::run(&settings)?;
            }
            if wanted(Command::Page) {
                page::run(&settings)?;
            }
            if wanted(Command::Filters) {
                filters::run(&settings)?;
            }
            if on_servers(Command::Labs) {
                labs::run(&settings)?;
            }
            if on_servers(Command::Catalysts) {
                catalysts::run(&settings)?;
            }
            if wanted(Command::Sizes) {
                sizes::run(&settings)?;
            }
            if wanted(Command::Stream) {
                stream::run(&settings)?;
            }
            if wanted(Command::Receipts) {
                receipts::run(&settings)?;
            }
            if on_servers(Command::Kafka) {
                kafka::run(&settings, &servers::kafka(cli.kafka.as_ref())?)?;
            }
            if on_servers(Command::Cql) {
                cql::run(&settings, &servers::cql(cli.cql.as_ref())?)?;
            }
            if on_servers(Command::Visible) {
                visible::embedded(&settings)?;
                visible::on_servers(&settings, &servers::kafka(cli.kafka.as_ref())?, &servers::cql(cli.cql.as_ref())?)?;
            }
            if on_servers(Command::Webhooks) {
                webhooks::embedded(&settings)?;
                webhooks::on_servers(&settings, &servers::kafka(cli.kafka.as_ref())?, &servers::cql(cli.cql.as_ref())?)?;
            }
            if on_servers(Command::Cadence) {
                cadence::run(&settings)?;
            }
            if wanted(Command::Names) {
                names::run(&settings)?;
            }
            if wanted(Command::Archives) {
                archives::run(&settings)?;
            }
            if wanted(Command::Coverage) {
                coverage::run(&settings)?;
            }
            if wanted(Command::Parcels) {
                parcels::run(&settings)?;
            }
            if wanted(Command::Aviation) {
                aviation::run(&settings.with_quick_records(5_000))?;
            }
            if wanted(Command::Exclusions) {
                exclusions::run(&settings.with_quick_records(4_000))?;
            }
            if wanted(Command::Phrases) {
                phrases::run(&settings.with_quick_records(6_000))?;
            }
            if command == Command::Serve {
                serve::run(&settings)?;
            }
            report::line("");
            summary::table().iter().for_each(|line| report::line(line));
            match &cli.json {
                Some(file) => summary::write(&machine, settings.records, file),
                None => Ok(()),
            }
        }
    }
}

//! The options of a simulator.

use std::time::Duration;

use jiff::civil::Date;
use schemas::clock::Clock;

use crate::faults::Faults;

/// When changes are applied automatically. Callers may apply changes at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Never.
    #[default]
    Never,
    /// `change_rate` changes each time this interval has passed.
    Always {
        /// The interval.
        every: Duration,
    },
    /// Only between two sync runs, so that no page changes while it is read.
    BetweenRuns {
        /// `change_rate` changes are applied when no request has arrived for this long after some arrived. `None`: only when called.
        idle: Option<Duration>,
    },
}

/// The options of a simulator.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed that determines everything.
    pub seed: u64,
    /// The initial number of recalls, over all upstreams with recalls. A campaign that two streams show, or a recall in two languages,
    /// counts once.
    pub records: u64,
    /// The current day of the upstreams.
    pub today: Date,
    /// How many changes are applied at a time.
    pub change_rate: u64,
    /// When changes are applied.
    pub change: When,
    /// Changes affect records of the last this many days, which readers read again; 0: any record.
    pub edit_days: u32,
    /// The most ordinary stories that are published on a day; less than 24 means 24.
    pub stories_a_day_max: u64,
    /// The most articles of a list of page views; less than 50 means 50.
    pub articles_max: u64,
    /// Whether some upstreams also publish what a reader must refuse: a damaged archive, half a list, a document that is not what it is listed as.
    pub has_bad_files: bool,
    /// The faults.
    pub faults: Faults,
    /// The clock for the entries of the expected changes.
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
            stories_a_day_max: 1_200,
            articles_max: 1_000,
            has_bad_files: true,
            faults: Faults::default(),
            clock: Clock::System,
        }
    }
}

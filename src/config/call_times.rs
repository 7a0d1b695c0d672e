//! How long calls may take, as settings in seconds.

use std::ops::RangeInclusive;
use std::time::Duration;

use operation::call_times::CallTimes;
use serde::{Deserialize, Deserializer};

use super::durations::seconds;

/// The times that can be configured, in seconds. The waits inside a call are shares of its time, for which less than a second is too little.
const CALL_S: RangeInclusive<f64> = 1.0..=600.0;

/// `[call_times]`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallTimesSection {
    #[serde(deserialize_with = "call_time")]
    read_s: Duration,
    #[serde(deserialize_with = "call_time")]
    live_read_s: Duration,
    #[serde(deserialize_with = "call_time")]
    file_s: Duration,
    #[serde(deserialize_with = "call_time")]
    command_s: Duration,
    #[serde(deserialize_with = "call_time")]
    sale_s: Duration,
}

impl CallTimesSection {
    /// How long calls may take.
    pub(crate) fn times(self) -> CallTimes {
        CallTimes { read: self.read_s, live_read: self.live_read_s, file: self.file_s, command: self.command_s, sale: self.sale_s }
    }
}

fn call_time<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    seconds(CALL_S, value)
}

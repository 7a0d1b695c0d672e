//! Durations as settings in seconds: how often tasks look for work again, and what other settings need to read theirs.

use std::ops::RangeInclusive;
use std::time::Duration;

use access::KEY_CACHED_FOR_MAX;
use serde::{Deserialize, Deserializer};

/// The shortest round, in seconds.
const ROUND_MIN_S: f64 = 0.1;
/// The longest round, in seconds.
const ROUND_MAX_S: f64 = 60.0;

/// Reads the length of a round.
pub(super) fn round<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    seconds(ROUND_MIN_S..=ROUND_MAX_S, value)
}

/// Reads how long a process may use a key before it notices that another process revoked it.
pub(super) fn revoked_keys_round<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    seconds(ROUND_MIN_S..=KEY_CACHED_FOR_MAX.as_secs_f64(), value)
}

/// Reads a number of seconds within bounds.
pub(super) fn seconds<'de, D: Deserializer<'de>>(allowed: RangeInclusive<f64>, value: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(value)?;
    let reason = || serde::de::Error::custom(format_args!("must be {} to {}", allowed.start(), allowed.end()));
    if allowed.contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(reason()) }
}

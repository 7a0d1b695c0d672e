//! How often tasks look for work again, as settings in seconds.

use std::time::Duration;

use access::KEY_CACHED_FOR_MAX;
use serde::{Deserialize, Deserializer};

/// The shortest round, in seconds.
const MIN_S: f64 = 0.1;
/// The longest round.
const MAX: Duration = Duration::from_secs(60);

/// Reads the length of a round.
pub(super) fn round<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    up_to(MAX, value)
}

/// Reads how long a process may use a key before it notices that another process revoked it.
pub(super) fn revoked_keys_round<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    up_to(KEY_CACHED_FOR_MAX, value)
}

fn up_to<'de, D: Deserializer<'de>>(longest: Duration, value: D) -> Result<Duration, D::Error> {
    let (seconds, max_s) = (f64::deserialize(value)?, longest.as_secs_f64());
    let reason = || serde::de::Error::custom(format_args!("must be {MIN_S} to {max_s}"));
    if (MIN_S..=max_s).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(reason()) }
}

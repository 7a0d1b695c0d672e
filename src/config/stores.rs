//! The stores that an upstream of many hosts polls, and the niches that they belong to.

use serde::{Deserialize, Deserializer};

use super::{Config, Error};

/// The intervals between two polls of a store that can be configured, in seconds.
const INTERVAL_S: std::ops::RangeInclusive<u32> = 600..=604_800;
const INTERVAL_DEFAULT_S: u32 = 3_600;
/// The longest key of a niche, and the longest label, in characters.
const KEY_CHARS_MAX: usize = 60;
const LABEL_CHARS_MAX: usize = 120;
/// The most stores and niches.
const ENTRIES_MAX: usize = 5_000;

/// A niche: a group of stores whose items are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NicheEntry {
    #[serde(deserialize_with = "key")]
    pub(crate) key: String,
    pub(crate) label: String,
}

/// A store that is polled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreEntry {
    #[serde(deserialize_with = "host")]
    pub(crate) host: String,
    pub(crate) niche: String,
    #[serde(default = "interval_default", deserialize_with = "interval")]
    pub(crate) interval_s: u32,
}

fn interval_default() -> u32 {
    INTERVAL_DEFAULT_S
}

fn interval<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
    let seconds = u32::deserialize(value)?;
    let reason = || serde::de::Error::custom(format_args!("must be {} to {}", INTERVAL_S.start(), INTERVAL_S.end()));
    if INTERVAL_S.contains(&seconds) { Ok(seconds) } else { Err(reason()) }
}

fn key<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let key = String::deserialize(value)?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !key.is_empty() && key.len() <= KEY_CHARS_MAX && key.chars().all(is_plain) {
        return Ok(key);
    }
    Err(serde::de::Error::custom(format_args!("\"{key}\" is not 1 to {KEY_CHARS_MAX} lower-case letters, digits and hyphens")))
}

fn host<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let host = String::deserialize(value)?.trim().trim_end_matches('.').to_lowercase();
    let is_label = |label: &str| !label.is_empty() && label.len() <= 63 && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if host.len() <= 253 && host.contains('.') && host.split('.').all(is_label) {
        return Ok(host);
    }
    Err(serde::de::Error::custom(format_args!("\"{host}\" is not a host name such as shop.example, without scheme and path")))
}

impl Config {
    /// The niches and stores of all upstreams.
    pub(crate) fn niches_and_stores(&self) -> (Vec<NicheEntry>, Vec<StoreEntry>) {
        let sections = || self.sections.upstreams.values();
        let niches = sections().flat_map(|section| section.niches.iter().cloned()).collect();
        (niches, sections().flat_map(|section| section.stores.iter().cloned()).collect())
    }

    /// Checks that every store belongs to a niche and that none is named twice.
    ///
    /// # Errors
    /// The error of the first upstream with wrong stores.
    pub(super) fn check_stores(&self) -> Result<(), Error> {
        for (name, section) in &self.sections.upstreams {
            let wrong = |list: &str, reason: String| Err(self.invalid(&format!("upstreams.{name}.{list}"), reason));
            let (niches, stores) = (&section.niches, &section.stores);
            if niches.len().max(stores.len()) > ENTRIES_MAX {
                return wrong("stores", format!("more than {ENTRIES_MAX} entries"));
            }
            for (at, niche) in niches.iter().enumerate() {
                if niches.iter().take(at).any(|other| other.key == niche.key) {
                    return wrong("niches", format!("\"{}\" is named twice", niche.key));
                }
                if niche.label.trim().is_empty() || niche.label.chars().count() > LABEL_CHARS_MAX {
                    return wrong("niches", format!("the label of \"{}\" must have 1 to {LABEL_CHARS_MAX} characters", niche.key));
                }
            }
            for (at, store) in stores.iter().enumerate() {
                if stores.iter().take(at).any(|other| other.host == store.host) {
                    return wrong("stores", format!("\"{}\" is named twice", store.host));
                }
                if !niches.iter().any(|niche| niche.key == store.niche) {
                    let hint = schemas::names::hint(&store.niche, niches.iter().map(|niche| niche.key.as_str()));
                    return wrong("stores", format!("\"{}\" of {} is not a niche{hint}", store.niche, store.host));
                }
            }
        }
        Ok(())
    }
}

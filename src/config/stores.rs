//! What only the upstream of stores has: the stores that it polls, and the niches that they belong to.

use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

/// The intervals between two polls of a store that can be configured, in seconds.
const INTERVAL_S: std::ops::RangeInclusive<u32> = 600..=604_800;
const INTERVAL_DEFAULT_S: u32 = 3_600;
/// The longest key of a niche, and the longest label, in characters.
const KEY_CHARS_MAX: usize = 60;
const LABEL_CHARS_MAX: usize = 120;
/// The most stores and niches.
const ENTRIES_MAX: usize = 5_000;

/// What `[upstreams.shopify]` has in addition to the keys of every upstream.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShopifySection {
    pub(crate) niches: Vec<NicheEntry>,
    pub(crate) stores: Vec<StoreEntry>,
}

impl ShopifySection {
    /// The upstream that has the section.
    pub(crate) const UPSTREAM: &'static str = "shopify";
    /// The keys of the section.
    const KEYS: [&'static str; 2] = ["niches", "stores"];

    /// Takes the keys of this section out of all sections.
    pub(super) fn take(sections: &mut Table) -> Table {
        let upstreams = sections.get_mut("upstreams").and_then(Value::as_table_mut);
        let section = upstreams.and_then(|upstreams| upstreams.get_mut(Self::UPSTREAM)).and_then(Value::as_table_mut);
        let Some(section) = section else { return Table::new() };
        Self::KEYS.into_iter().filter_map(|key| Some((key.to_owned(), section.remove(key)?))).collect()
    }

    /// Checks that every store belongs to a niche and that none is named twice.
    ///
    /// # Errors
    /// The key of the list with the first wrong entry, and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let Self { niches, stores } = self;
        if niches.len().max(stores.len()) > ENTRIES_MAX {
            return Err(("stores", format!("more than {ENTRIES_MAX} entries")));
        }
        for (at, niche) in niches.iter().enumerate() {
            if niches.iter().take(at).any(|other| other.key == niche.key) {
                return Err(("niches", format!("\"{}\" is named twice", niche.key)));
            }
            if niche.label.trim().is_empty() || niche.label.chars().count() > LABEL_CHARS_MAX {
                return Err(("niches", format!("the label of \"{}\" must have 1 to {LABEL_CHARS_MAX} characters", niche.key)));
            }
        }
        for (at, store) in stores.iter().enumerate() {
            if stores.iter().take(at).any(|other| other.host == store.host) {
                return Err(("stores", format!("\"{}\" is named twice", store.host)));
            }
            if !niches.iter().any(|niche| niche.key == store.niche) {
                let hint = schemas::names::hint(&store.niche, niches.iter().map(|niche| niche.key.as_str()));
                return Err(("stores", format!("\"{}\" of {} is not a niche{hint}", store.niche, store.host)));
            }
        }
        Ok(())
    }
}

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

//! The configuration: built-in defaults, then a file, then the environment, read into typed sections before anything starts.
//!
//! Promises: an unknown key and a value of the wrong type or out of range are errors that name the key and where it was set. A value that may hold a
//! secret is not repeated in an error.

mod call_times;
mod durations;
mod sections;
mod stores;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schemas::clock::{Clock, SimulatedClock};
use schemas::names;
use serde::de::DeserializeOwned;
use services::Selection;
use toml::{Table, Value};

pub(crate) use sections::{
    KAFKA_SCHEME, Kafka, KnownLogEntry, LogBackend, LogFormat, SCYLLA_SCHEME, Scylla, Sections, StoreBackend, WitnessEntry, socket_address,
};
pub(crate) use stores::{NicheEntry, ShopifySection, StoreEntry};

/// The defaults, which also list all keys and their types.
const DEFAULTS: &str = include_str!("default.toml");
/// The section of the defaults that every service has under its own name.
const ANY_SERVICE: &str = "NAME";
/// How errors name the defaults.
const DEFAULTS_ORIGIN: &str = "built-in defaults";
/// The file that is read when `--config` names none.
const DEFAULT_FILE: &str = "highwater.toml";
/// The prefix of our environment variables.
const PREFIX: &str = "HIGHWATER_";

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("configuration file {path} cannot be read")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("configuration file {path} is not TOML")]
    Toml {
        /// The file.
        path: PathBuf,
        /// The place in the file, and the reason.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The key does not exist.
    #[error("unknown configuration key {key} ({origin}){hint}")]
    Unknown {
        /// The key with its sections.
        key: String,
        /// The file or environment variable that sets it.
        origin: String,
        /// The nearest known key.
        hint: String,
    },
    /// The value has the wrong type, or cannot be used.
    #[error("configuration key {key} ({origin}): {reason}")]
    Value {
        /// The key with its sections.
        key: String,
        /// The file, environment variable or flag that sets it.
        origin: String,
        /// What is wrong with the value.
        reason: String,
    },
}

/// Settings from flags of the command line, which override all other sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    /// `--data-dir`
    pub(crate) data_dir: Option<PathBuf>,
    /// `--listen`
    pub(crate) listen: Option<SocketAddr>,
}

impl Flags {
    /// The flags that are set: the flag, its key and the value.
    fn set(&self) -> Result<Vec<(&'static str, &'static str, String)>, Error> {
        let mut set = Vec::new();
        if let Some(dir) = &self.data_dir {
            let (key, origin) = ("data_dir", "--data-dir");
            let is_usable = dir.to_str().filter(|text| !text.is_empty());
            let reason = || format!("\"{}\" is empty or not UTF-8", dir.display());
            let text = is_usable.ok_or_else(|| Error::Value { key: key.to_owned(), origin: origin.to_owned(), reason: reason() })?;
            set.push((origin, key, text.to_owned()));
        }
        if let Some(address) = self.listen {
            set.push(("--listen", "listen", address.to_string()));
        }
        Ok(set)
    }
}

/// A configuration that was read and checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The settings by section.
    pub(crate) sections: Sections,
    /// What only `[upstreams.shopify]` has.
    pub(crate) shopify: ShopifySection,
    /// For each key that is not at its default: the file or environment variable that sets it.
    origins: BTreeMap<String, String>,
    /// The clock of `[clock]`.
    configured_clock: Clock,
    /// The clock of a demo, which replaces the configured one.
    simulated_clock: Option<&'static SimulatedClock>,
}

impl Config {
    /// Reads the defaults, a file, the environment and the flags of the command line. Without `file` it is `highwater.toml` in the working directory, if
    /// that exists.
    ///
    /// # Errors
    /// The file cannot be read, a key is unknown, or a value cannot be used.
    pub(crate) fn load(file: Option<&Path>, environment: impl Iterator<Item = (String, String)>, flags: &Flags) -> Result<Self, Error> {
        let defaults = defaults().map_err(|source| Error::Toml { path: "default.toml".into(), source: Box::new(source) })?;
        let mut layers = Layers { merged: defaults.clone(), origins: BTreeMap::new() };
        let path = file.map_or_else(|| PathBuf::from(DEFAULT_FILE), Path::to_path_buf);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let layer: Table = text.parse().map_err(|source| Error::Toml { path: path.clone(), source: Box::new(source) })?;
                layers.add(&defaults, layer, &path.display().to_string())?;
            }
            Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::File { path, source }),
        }
        let mut variables: Vec<(String, String)> = environment.filter(|(name, _)| name.starts_with(PREFIX)).collect();
        variables.sort();
        for (name, text) in variables {
            layers.add(&defaults, layer_of_variable(&defaults, &name, &text)?, &name)?;
        }
        for (flag, key, value) in flags.set()? {
            layers.add(&defaults, Table::from_iter([(key.to_owned(), Value::String(value))]), flag)?;
        }
        let Layers { mut merged, origins } = layers;
        let of_shopify = ShopifySection::take(&mut merged);
        let sections: Sections = typed(merged, "", &origins)?;
        let shopify = typed(of_shopify, &format!("upstreams.{}.", ShopifySection::UPSTREAM), &origins)?;
        let configured_clock = match (sections.clock.fixed, sections.clock.start) {
            (Some(at), _) => Clock::Fixed(at),
            (None, Some(start)) => Clock::starting_at(start),
            (None, None) => Clock::System,
        };
        let config = Self { sections, shopify, origins, configured_clock, simulated_clock: None };
        if config.sections.clock.fixed.is_some() && config.sections.clock.start.is_some() {
            return Err(config.invalid("clock.start", "not together with clock.fixed: a fixed clock does not move"));
        }
        let wrong = |(list, reason): (&str, String)| config.invalid(&format!("upstreams.{}.{list}", ShopifySection::UPSTREAM), reason);
        config.shopify.check().map_err(wrong)?;
        Ok(config)
    }

    /// Whether a key has its default.
    pub(crate) fn is_default(&self, key: &str) -> bool {
        !self.origins.contains_key(key)
    }

    /// Which services are projected, and which are disabled.
    pub(crate) fn selection(&self) -> Selection {
        services::selected(|name| self.sections.services.get(name).is_some_and(|section| section.enabled))
    }

    /// The clock: that of a demo, that of a test, or the system's.
    pub(crate) fn clock(&self) -> Clock {
        self.simulated_clock.map_or(self.configured_clock, Clock::Simulated)
    }

    /// Whether this is the configuration of a demo.
    pub(crate) fn is_demo(&self) -> bool {
        self.simulated_clock.is_some()
    }

    /// Replaces the configured clock.
    pub(crate) fn set_simulated_clock(&mut self, clock: &'static SimulatedClock) {
        self.simulated_clock = Some(clock);
    }

    /// An error about the value of a key.
    pub(crate) fn invalid(&self, key: &str, reason: impl Into<String>) -> Error {
        Error::Value { key: key.to_owned(), origin: origin_of(&self.origins, key), reason: reason.into() }
    }
}

/// Reads keys into a typed section. `above` is what their names have before them, `upstreams.shopify.`.
fn typed<T: DeserializeOwned>(keys: Table, above: &str, origins: &BTreeMap<String, String>) -> Result<T, Error> {
    serde_path_to_error::deserialize::<_, T>(keys).map_err(|error| {
        let (key, reason) = (format!("{above}{}", error.path()), error.inner().message().to_owned());
        Error::Value { origin: origin_of(origins, &key), key, reason }
    })
}

/// The defaults with a section for each service.
fn defaults() -> Result<Table, toml::de::Error> {
    let mut defaults: Table = DEFAULTS.parse()?;
    if let Some(Value::Table(sections)) = defaults.get_mut("services")
        && let Some(section) = sections.remove(ANY_SERVICE)
    {
        sections.extend(services::names().map(|name| (name.to_owned(), section.clone())));
    }
    Ok(defaults)
}

/// Where a key is set. A list has one origin for all of its items.
fn origin_of(origins: &BTreeMap<String, String>, key: &str) -> String {
    let is_part = |set: &str| key.strip_prefix(set).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let found = origins.iter().find(|(set, _)| is_part(set));
    found.map_or_else(|| DEFAULTS_ORIGIN.to_owned(), |(_, origin)| origin.clone())
}

/// The layers read so far: a later one overrides an earlier one.
struct Layers {
    merged: Table,
    origins: BTreeMap<String, String>,
}

impl Layers {
    /// Adds a layer whose keys and types are compared with those of the defaults.
    fn add(&mut self, defaults: &Table, layer: Table, origin: &str) -> Result<(), Error> {
        merge(&mut self.merged, &mut self.origins, defaults, layer, "", origin)
    }
}

fn merge(
    merged: &mut Table,
    origins: &mut BTreeMap<String, String>,
    defaults: &Table,
    layer: Table,
    section: &str,
    origin: &str,
) -> Result<(), Error> {
    for (name, value) in layer {
        let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        let Some(default) = defaults.get(&name) else {
            let hint = names::hint(&name, defaults.keys().map(String::as_str));
            return Err(Error::Unknown { key, origin: origin.to_owned(), hint });
        };
        let value = match (default, value) {
            (Value::Table(defaults), Value::Table(layer)) => {
                if let Some(Value::Table(merged)) = merged.get_mut(&name) {
                    merge(merged, origins, defaults, layer, &key, origin)?;
                }
                continue;
            }
            (Value::Float(_), Value::Integer(int)) => Value::Float(int as f64),
            (default, value) if default.same_type(&value) => value,
            (default, value) => {
                let reason = format!("must be of type {}, not {}", default.type_str(), value.type_str());
                return Err(Error::Value { key, origin: origin.to_owned(), reason });
            }
        };
        merged.insert(name, value);
        origins.insert(key, origin.to_owned());
    }
    Ok(())
}

/// An environment variable as a layer with one key: `HIGHWATER_SECTION__KEY` sets `section.key`.
fn layer_of_variable(defaults: &Table, name: &str, text: &str) -> Result<Table, Error> {
    let parts: Vec<String> = name[PREFIX.len()..].split("__").map(str::to_lowercase).collect();
    let Some((last, sections)) = parts.split_last() else { return Ok(Table::new()) };
    let table = sections.iter().try_fold(defaults, |table, section| table.get(section).and_then(Value::as_table));
    let value = match table.and_then(|table| table.get(last)) {
        Some(Value::String(_)) | None => Value::String(text.to_owned()),
        Some(default) => {
            let parsed = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
            let reason = || format!("\"{text}\" is not a TOML value of type {}", default.type_str());
            parsed.ok_or_else(|| Error::Value { key: parts.join("."), origin: name.to_owned(), reason: reason() })?
        }
    };
    let layer = Table::from_iter([(last.clone(), value)]);
    Ok(sections.iter().rev().fold(layer, |layer, section| Table::from_iter([(section.clone(), Value::Table(layer))])))
}

#[cfg(test)]
mod compose;
#[cfg(test)]
mod tests;

//! Configuration: the built-in manual, then a file, then the environment; checked against the manual before anything starts.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use schemas::clock::Clock;
use schemas::names;
use toml::{Table, Value};

/// The manual, which is also the list of all keys and their types.
const DEFAULTS: &str = include_str!("default.toml");
/// The file read when `--config` names none.
const FILE: &str = "highwater.toml";
/// What environment variables of ours begin with.
const PREFIX: &str = "HIGHWATER_";

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("configuration file {path} cannot be read")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("configuration file {path} is not TOML")]
    Toml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The key is not in the manual.
    #[error("unknown configuration key {key} ({origin}){hint}")]
    Unknown {
        /// The key, with its sections.
        key: String,
        /// Where it was given.
        origin: String,
        /// The nearest known one.
        hint: String,
    },
    /// The value is of another type or out of range.
    #[error("configuration key {key} ({origin}): {reason}")]
    Value {
        /// The key, with its sections.
        key: String,
        /// Where it was given.
        origin: String,
        /// What is wrong.
        reason: String,
    },
}

/// A checked configuration: every key of the manual has a value of the manual's type.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    table: Table,
    /// The clock of a demo, which is in no file.
    played: Option<Clock>,
}

impl Config {
    /// Reads all layers.
    pub(crate) fn load(file: Option<&Path>, environment: impl Iterator<Item = (String, String)>) -> Result<Self, Error> {
        let mut table: Table = DEFAULTS.parse().map_err(|source| Error::Toml { path: "default.toml".into(), source: Box::new(source) })?;
        let manual = table.clone();
        let path = file.map_or_else(|| PathBuf::from(FILE), Path::to_path_buf);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let layer: Table = text.parse().map_err(|source| Error::Toml { path: path.clone(), source: Box::new(source) })?;
                merge(&mut table, &manual, layer, "", &path.display().to_string())?;
            }
            Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::File { path, source }),
        }
        let mut variables: Vec<(String, String)> = environment.filter(|(name, _)| name.starts_with(PREFIX)).collect();
        variables.sort();
        for (name, text) in variables {
            let parts: Vec<String> = name[PREFIX.len()..].split("__").map(str::to_lowercase).collect();
            let layer = layer_of(&parts, &text, &manual, &name)?;
            merge(&mut table, &manual, layer, "", &name)?;
        }
        Ok(Self { table, played: None })
    }

    /// Sets a key that the program itself decides (a demo's upstreams).
    pub(crate) fn set(&mut self, section: &[&str], key: &str, value: impl Into<Value>) {
        let mut table = &mut self.table;
        for name in section {
            let Some(Value::Table(inner)) = table.get_mut(*name) else { return };
            table = inner;
        }
        table.insert(key.to_owned(), value.into());
    }

    fn value(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let first = self.table.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }

    /// A text; `""` where there is none.
    pub(crate) fn text(&self, path: &str) -> &str {
        self.value(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// A whole number above 0.
    pub(crate) fn count(&self, path: &str) -> Result<u64, Error> {
        let value = self.value(path).and_then(Value::as_integer).unwrap_or_default();
        u64::try_from(value).ok().filter(|value| *value > 0).ok_or_else(|| self.wrong(path, "must be a whole number above 0"))
    }

    /// A whole number, or 0.
    pub(crate) fn number(&self, path: &str) -> Result<u64, Error> {
        let value = self.value(path).and_then(Value::as_integer).unwrap_or_default();
        u64::try_from(value).map_err(|_| self.wrong(path, "must be a whole number, not below 0"))
    }

    /// A number above 0.
    pub(crate) fn rate(&self, path: &str) -> Result<f64, Error> {
        let value = self.value(path);
        let number = value.and_then(|value| value.as_float().or_else(|| value.as_integer().map(|int| int as f64)));
        number.filter(|number| number.is_finite() && *number > 0.0).ok_or_else(|| self.wrong(path, "must be a number above 0"))
    }

    /// A switch.
    pub(crate) fn flag(&self, path: &str) -> bool {
        self.value(path).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A list of texts.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Error> {
        let items = self.value(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(|| self.wrong(path, "must be a list of texts"))).collect()
    }

    /// A list of tables that have all these keys, with a text each, and no others: the texts in the order of the keys.
    pub(crate) fn tables<const KEYS: usize>(&self, path: &str, keys: [&str; KEYS]) -> Result<Vec<[String; KEYS]>, Error> {
        let items = self.value(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut all = Vec::new();
        for item in items {
            let table =
                item.as_table().ok_or_else(|| self.wrong(path, &format!("must be a list of tables with {}", keys.join(" and "))))?;
            if let Some(unknown) = table.keys().find(|name| !keys.contains(&name.as_str())) {
                return Err(self.wrong(path, &format!("unknown key {unknown}{}", names::hint(unknown, keys))));
            }
            let mut texts = keys.map(str::to_owned);
            for text in &mut texts {
                let value = table.get(text.as_str()).ok_or_else(|| self.wrong(path, &format!("{text} is missing")))?;
                *text = value.as_str().ok_or_else(|| self.wrong(path, &format!("{text} must be a text")))?.to_owned();
            }
            all.push(texts);
        }
        Ok(all)
    }

    /// The clock.
    pub(crate) fn clock(&self) -> Result<Clock, Error> {
        if let Some(played) = self.played {
            return Ok(played);
        }
        match self.text("clock.fixed") {
            "" => Ok(Clock::System),
            at => at.parse::<Timestamp>().map(Clock::Fixed).map_err(|error| self.wrong("clock.fixed", &error.to_string())),
        }
    }

    /// Sets the clock.
    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.played = Some(clock);
    }

    /// An error about a key.
    pub(crate) fn wrong(&self, path: &str, reason: &str) -> Error {
        Error::Value { key: path.to_owned(), origin: "configuration".to_owned(), reason: reason.to_owned() }
    }
}

/// A variable as a layer of one key.
fn layer_of(parts: &[String], text: &str, manual: &Table, origin: &str) -> Result<Table, Error> {
    let Some((last, sections)) = parts.split_last() else { return Ok(Table::new()) };
    let mut known = Some(manual);
    for section in sections {
        known = known.and_then(|table| table.get(section)).and_then(Value::as_table);
    }
    let value = match known.and_then(|table| table.get(last)) {
        Some(Value::String(_)) | None => Value::String(text.to_owned()),
        Some(_) => {
            let parsed: Result<Table, _> = format!("value = {text}").parse();
            let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
            parsed.ok_or_else(|| Error::Value {
                key: parts.join("."),
                origin: origin.to_owned(),
                reason: format!("\"{text}\" is no value"),
            })?
        }
    };
    let mut layer = Table::from_iter([(last.clone(), value)]);
    for section in sections.iter().rev() {
        layer = Table::from_iter([(section.clone(), Value::Table(layer))]);
    }
    Ok(layer)
}

fn merge(into: &mut Table, manual: &Table, layer: Table, path: &str, origin: &str) -> Result<(), Error> {
    for (name, value) in layer {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let Some(known) = manual.get(&name) else {
            let hint = names::hint(&name, manual.keys().map(String::as_str));
            return Err(Error::Unknown { key, origin: origin.to_owned(), hint });
        };
        match (known, value) {
            (Value::Table(manual), Value::Table(layer)) => {
                if let Some(Value::Table(into)) = into.get_mut(&name) {
                    merge(into, manual, layer, &key, origin)?;
                }
            }
            (Value::Float(_), Value::Integer(int)) => {
                into.insert(name, Value::Float(int as f64));
            }
            (known, value) if known.same_type(&value) => {
                into.insert(name, value);
            }
            (known, value) => {
                let reason = format!("must be a {}, not a {}", known.type_str(), value.type_str());
                return Err(Error::Value { key, origin: origin.to_owned(), reason });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::load(Some(file.path()), variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    /// Proves that the file goes over the manual and the environment over the file, in any section and type.
    #[test]
    fn layers_go_over_each_other() {
        let config = load(
            "listen = \"127.0.0.1:1\"\n[upstreams.cpsc]\nrequests_per_second = 4\nwindow_days = 3",
            &[
                ("HIGHWATER_LISTEN", "127.0.0.1:2"),
                ("HIGHWATER_UPSTREAMS__CPSC__WINDOW_DAYS", "9"),
                ("HIGHWATER_SERVICES__RECALLS__ENABLED", "false"),
                ("PATH", "x"),
            ],
        )
        .unwrap();
        assert_eq!(config.text("listen"), "127.0.0.1:2");
        assert_eq!(config.rate("upstreams.cpsc.requests_per_second").unwrap(), 4.0);
        assert_eq!(config.count("upstreams.cpsc.window_days").unwrap(), 9);
        assert!(!config.flag("services.recalls.enabled"));
        assert_eq!(config.text("log"), "embedded");
    }

    /// Proves that unknown keys are refused with the nearest known one, wherever they stand, and wrong types with the key.
    #[test]
    fn unknown_keys_and_wrong_types_are_refused() {
        let error = |text, variables: &[(&str, &str)]| load(text, variables).unwrap_err().to_string();
        assert!(error("lisen = \"x\"", &[]).contains("did you mean \"listen\"?"));
        assert!(error("[upstreams.cpcs]\nenabled = true", &[]).contains("upstreams.cpcs"));
        assert!(error("[upstreams.cpcs]\nenabled = true", &[]).contains("did you mean \"cpsc\"?"));
        assert!(error("", &[("HIGHWATER_UPSTREAMS__CPSC__BASE", "x")]).contains("did you mean \"base_url\"?"));
        assert!(error("listen = 8080", &[]).contains("listen"));
        assert!(error("", &[("HIGHWATER_UPSTREAMS__CPSC__WINDOW_DAYS", "many")]).contains("window_days"));
    }
}

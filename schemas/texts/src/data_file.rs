//! Versioned data files: rules that are data and not code, such as a lexicon. A file has a version, says where its entries come from, and is
//! shown at `/docs` of the services that use it.
//!
//! A test of each file calls [`DataFile::check`]. If decisions depend on a file, a new version takes effect on recorded data with
//! `highwater redecide SERVICE`.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A versioned data file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataFile<T> {
    /// The version; each change of the entries increases it.
    pub version: u32,
    /// What the entries mean, in a sentence.
    pub about: String,
    /// Where the entries come from, each a sentence.
    pub sources: Vec<String>,
    /// The entries, in the order of the rules that use them.
    pub entries: Vec<T>,
}

/// An entry of a data file.
pub trait DataEntry {
    /// The name of the entry, unique in the file.
    fn name(&self) -> &str;

    /// The values of the entry: sorted, each once.
    fn values(&self) -> &[String];
}

/// An entry that lists words under a name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordGroup {
    /// The name of the group.
    pub name: String,
    /// The words, or short phrases, as the program compares them: sorted, each once.
    pub words: Vec<String>,
}

impl DataEntry for WordGroup {
    fn name(&self) -> &str {
        &self.name
    }

    fn values(&self) -> &[String] {
        &self.words
    }
}

/// A data file as documents show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFile {
    /// The name of the file.
    pub name: &'static str,
    /// The version.
    pub version: u32,
    /// What the entries mean.
    pub about: String,
    /// Where the entries come from.
    pub sources: Vec<String>,
    /// The entries: name and values.
    pub entries: Vec<(String, Vec<String>)>,
}

impl<T: DeserializeOwned + DataEntry> DataFile<T> {
    /// Reads a file that is part of the program.
    ///
    /// # Errors
    /// When the text does not have the form of the file. A test of each file finds that before a release.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Checks the rules of all data files: a version, a sentence about the entries, sources, unique names, and values that are sorted, unique
    /// and not empty.
    ///
    /// # Errors
    /// The first rule that the file breaks.
    pub fn check(&self) -> Result<(), String> {
        if self.version == 0 || self.about.is_empty() || self.sources.is_empty() || self.sources.iter().any(String::is_empty) {
            return Err("a data file has a version from 1 on, says what it is about and names its sources".to_owned());
        }
        let mut names = BTreeSet::new();
        for entry in &self.entries {
            if entry.name().is_empty() || !names.insert(entry.name()) {
                return Err(format!("the name {:?} is empty or occurs twice", entry.name()));
            }
            if let Some([one, other]) = entry.values().windows(2).find(|pair| pair[0] >= pair[1]) {
                return Err(format!("{}: {one:?} is not before {other:?}", entry.name()));
            }
            if entry.values().iter().any(String::is_empty) {
                return Err(format!("{}: a value is empty", entry.name()));
            }
        }
        Ok(())
    }

    /// The file as documents show it.
    #[must_use]
    pub fn shown(&self, name: &'static str) -> ShownFile {
        let entries = self.entries.iter().map(|entry| (entry.name().to_owned(), entry.values().to_vec())).collect();
        ShownFile { name, version: self.version, about: self.about.clone(), sources: self.sources.clone(), entries }
    }
}

impl<T> Default for DataFile<T> {
    fn default() -> Self {
        Self { version: 0, about: String::new(), sources: Vec::new(), entries: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a file without version or source, with a name or value twice, or with unsorted values is refused, and that names keep
    /// their order.
    #[test]
    fn files_are_checked() {
        let file_of = |version: u32, sources: &str, entries: &str| {
            DataFile::<WordGroup>::parse(&format!(
                r#"{{"version": {version}, "about": "Words.", "sources": [{sources}], "entries": [{entries}]}}"#
            ))
            .unwrap()
        };
        let good = file_of(1, r#""a""#, r#"{"name": "z", "words": ["a", "b"]}, {"name": "b", "words": []}"#);
        assert_eq!(good.check(), Ok(()));
        assert_eq!(good.shown("words").entries[0], ("z".to_owned(), vec!["a".to_owned(), "b".to_owned()]));
        for (version, sources, entries) in [
            (0, r#""a""#, ""),
            (1, "", ""),
            (1, r#""a""#, r#"{"name": "z", "words": []}, {"name": "z", "words": []}"#),
            (1, r#""a""#, r#"{"name": "z", "words": ["b", "a"]}"#),
            (1, r#""a""#, r#"{"name": "z", "words": ["a", "a"]}"#),
            (1, r#""a""#, r#"{"name": "z", "words": [""]}"#),
        ] {
            assert!(file_of(version, sources, entries).check().is_err(), "{version} {sources} {entries}");
        }
        assert!(DataFile::<WordGroup>::parse(r#"{"version": 1}"#).is_err());
    }
}

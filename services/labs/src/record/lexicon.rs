//! The categories of laboratory purchases and the phrases that speak for each: a data file (`lexicon.json`). After a change of the file,
//! `highwater redecide labs` applies it to recorded leads.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use texts::data_file::{DataEntry, DataFile};

/// The name of the category of grants whose words name no other one clearly.
pub const GENERAL: &str = "General laboratory";

/// A category of purchases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// The name.
    pub name: String,
    /// What laboratories buy in it, in a sentence.
    pub about: String,
    /// The phrases, sorted.
    pub words: Vec<String>,
}

impl DataEntry for Category {
    fn name(&self) -> &str {
        &self.name
    }

    fn values(&self) -> &[String] {
        &self.words
    }
}

/// The lexicon of this version of the program.
pub static LEXICON: LazyLock<DataFile<Category>> = LazyLock::new(|| {
    // A file that does not parse is a bug in this crate. A test parses it, so that it is found before a release.
    DataFile::parse(include_str!("../../data/lexicon.json")).unwrap_or_default()
});

/// Returns the name of a category as the lexicon spells it, ignoring case.
#[must_use]
pub fn category(name: &str) -> Option<&'static str> {
    let same = |category: &&Category| category.name.eq_ignore_ascii_case(name.trim());
    LEXICON.entries.iter().find(same).map(|category| category.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the lexicon has the 15 categories of the contract in their order, obeys the rules of data files, and that no phrase speaks
    /// for two categories.
    #[test]
    fn the_file_is_sound() {
        assert_eq!(LEXICON.check(), Ok(()));
        let names: Vec<&str> = LEXICON.entries.iter().map(|category| category.name.as_str()).collect();
        let expected = [
            "Sequencing and genomics",
            "Microscopy and imaging",
            "Mass spectrometry and proteomics",
            "Flow cytometry and cell sorting",
            "Cell culture and biosafety",
            "Animal research",
            "Molecular biology and PCR",
            "Chromatography and chemistry",
            "Electrophysiology",
            "Structural biology and NMR",
            "MRI and PET",
            "Computing",
            "Cold storage and biobanking",
            "Bioprocessing and tissue engineering",
            GENERAL,
        ];
        assert_eq!(names, expected);
        let mut words: Vec<&String> = LEXICON.entries.iter().flat_map(|category| &category.words).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
        assert!(LEXICON.entries.iter().all(|category| category.words.is_empty() == (category.name == GENERAL)));
        assert_eq!((category(" computing "), category("Compute")), (Some("Computing"), None));
    }
}

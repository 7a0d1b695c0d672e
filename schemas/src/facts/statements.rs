//! A statement that a company made in a filing, or the ticker symbols that the regulator lists for it.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// A sentence of a document of a filing (`edgar.pdufa`), or the tickers of a company (`edgar.tickers`). Texts are trimmed and white space is
/// collapsed; `""` means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatementFact {
    /// The stream: `edgar.pdufa` or `edgar.tickers`.
    pub stream: String,
    /// CIK of the company: 10 digits.
    pub cik: String,
    /// Name of the company.
    pub company: String,
    /// Sentence: accession number of the filing.
    pub accession: String,
    /// Sentence: file name of the document.
    pub file: String,
    /// Sentence: its number in the document, from 1; 0 says that the document was read and has none.
    pub n: i64,
    /// Sentence: form type as published.
    pub form: String,
    /// Sentence: filing date, `YYYY-MM-DD`.
    pub filed: String,
    /// The sentence, with tags removed, entities resolved and white space collapsed; a hash of it is published.
    pub sentence: String,
    /// The text before the sentence; at most 300 characters.
    pub before: String,
    /// Tickers: all of the company, sorted.
    pub tickers: Vec<String>,
}

impl StatementFact {
    /// Returns the canonical form for the content hash, with every field.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }

    /// Returns the URL of the document with the sentence.
    #[must_use]
    pub fn url(&self) -> String {
        let (cik, plain) = (self.cik.trim_start_matches('0'), self.accession.replace('-', ""));
        format!("https://www.sec.gov/Archives/edgar/data/{cik}/{plain}/{}", self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{FactData, testing};

    /// Proves that a change of any field changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(StatementFact::canonical, &[]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record = StatementFact {
            stream: "a".into(),
            cik: "b".into(),
            company: "c".into(),
            accession: "d".into(),
            file: "e".into(),
            n: 6,
            form: "f".into(),
            filed: "g".into(),
            sentence: "h".into(),
            before: "i".into(),
            tickers: vec!["j".into(), "k".into()],
        };
        let data = FactData::Statement(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}

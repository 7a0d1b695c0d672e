//! A filing with the securities regulator, as one stream showed it for one of its filers.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// Forms that were renamed: the newer name, and the name that this engine uses for both.
const ALIASES: &[(&str, &str)] = &[("SCHEDULE 13D", "SC 13D"), ("SCHEDULE 13G", "SC 13G")];

/// A filing of one filer, as published in one stream. A filing never changes under its number; a correction is a filing of its own, whose
/// form ends in `/A`. Strings are trimmed, white space collapsed; `""` and empty lists mean unknown. Item scores are not part of the fact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilingFact {
    /// The stream: `edgar.index`, `edgar.current`, `edgar.submissions`.
    #[serde(rename = "door")]
    pub stream: String,
    /// Accession number, `0001683168-26-000199`. With `cik` it identifies the record.
    pub accession: String,
    /// CIK of the filer, subject, issuer or owner: 10 digits.
    pub cik: String,
    /// Name of that company or person.
    pub company: String,
    /// Form type as published: `8-K`, `SC 13D/A`, `SCHEDULE 13D`.
    pub form: String,
    /// The form without its amendment suffix, under one name if it was renamed; see [`base_form`].
    pub base_form: String,
    /// Whether it amends an earlier filing of the base form.
    pub amendment: bool,
    /// Filing date `YYYY-MM-DD`, as the regulator counts it; not the day of acceptance in UTC.
    pub filing_date: String,
    /// Item codes of an 8-K in their order (`2.02`, `9.01`; whole numbers before August 2004). The index does not contain them.
    pub items: Vec<String>,
    /// The roles of the filer in this filing, sorted: `Filed by`, `Filer`, `Issuer`, `Reporting`, `Subject`. Only the feed contains them.
    pub roles: Vec<String>,
    /// The day or period that the filing reports on, `YYYY-MM-DD`; only in `edgar.submissions`.
    pub report_date: String,
    /// File name of the main document, without the folder of its styled form; only in `edgar.submissions`.
    pub primary_document: String,
}

impl FilingFact {
    /// Returns the canonical form that is hashed.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }

    /// Returns the identity of the record in every stream, `accession/cik`.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}/{}", self.accession, self.cik)
    }

    /// Returns the URL of the filing's page, for this filer.
    #[must_use]
    pub fn url(&self) -> String {
        let (cik, plain) = (self.cik.trim_start_matches('0'), self.accession.replace('-', ""));
        format!("https://www.sec.gov/Archives/edgar/data/{cik}/{plain}/{}-index.htm", self.accession)
    }
}

/// Returns a form without its amendment suffix and under its older name if it was renamed: `SC 13D` for `SCHEDULE 13D/A` and `SC 13D`.
#[must_use]
pub fn base_form(form: &str) -> &str {
    let base = form.strip_suffix("/A").unwrap_or(form);
    ALIASES.iter().find(|(newer, _)| *newer == base).map_or(base, |(_, known)| known)
}

/// Whether the items of a form are those of a current report. Form D uses the same word for its exemptions.
#[must_use]
pub fn has_items(form: &str) -> bool {
    form.starts_with("8-K")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing;

    /// Proves that every field is hashed: changing it changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(FilingFact::canonical, &[]);
    }

    /// Proves which names are one form, and the URL of a filing's page.
    #[test]
    fn forms_and_pages() {
        for (form, base) in [
            ("8-K/A", "8-K"),
            ("SCHEDULE 13D", "SC 13D"),
            ("SCHEDULE 13G/A", "SC 13G"),
            ("SC 13D/A", "SC 13D"),
            ("SC 13E3", "SC 13E3"),
            ("NT 10-K", "NT 10-K"),
            ("", ""),
        ] {
            assert_eq!(base_form(form), base);
        }
        let fact = FilingFact { cik: "0000736012".into(), accession: "0001683168-26-000199".into(), ..FilingFact::default() };
        assert_eq!(fact.url(), "https://www.sec.gov/Archives/edgar/data/736012/000168316826000199/0001683168-26-000199-index.htm");
        assert_eq!(fact.identity(), "0001683168-26-000199/0000736012");
    }
}

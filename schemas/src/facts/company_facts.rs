//! What a company reported in an annual report, or what was obligated to it in a fiscal year.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// The kind of a record that is an annual report.
pub const REPORT: &str = "report";
/// The kind of a record that is the sum of obligations of a parent and fiscal year.
pub const TOTAL: &str = "total";
/// The group of contracts (award types A to D) of a total.
pub const CONTRACTS: &str = "contracts";
/// The group of indefinite delivery vehicles of a total.
pub const VEHICLES: &str = "idvs";
/// The groups of a total.
pub const GROUPS: [&str; 2] = [CONTRACTS, VEHICLES];

/// An annual report (`edgar.xbrl`), or the sum of obligations of a parent (`usaspending.totals`). Texts are trimmed and white space is collapsed; `""`
/// means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompanyFact {
    /// The stream: `edgar.xbrl` or `usaspending.totals`.
    pub stream: String,
    /// What it is: [`REPORT`] or [`TOTAL`].
    pub kind: String,
    /// Report: CIK of the company, 10 digits.
    pub cik: String,
    /// Report: name of the company.
    pub company: String,
    /// Report: accession number of the filing.
    pub accession: String,
    /// Report: form type as published.
    pub form: String,
    /// Report: filing date, `YYYY-MM-DD`.
    pub filed: String,
    /// Report: file name of the instance; empty if the filing has none.
    pub file: String,
    /// The fiscal year, as the report names it; of a total the year in which it ends.
    pub fiscal_year: i64,
    /// First day of a total, `YYYY-MM-DD`.
    pub start: String,
    /// Last day of the fiscal year, `YYYY-MM-DD`.
    pub end: String,
    /// Report: its facts about revenue and customers, in the order of the instance.
    pub facts: Vec<ReportedFact>,
    /// Report: how many such facts were left out, since there are more than are kept.
    pub left_out: i64,
    /// Total: unique entity id of the parent.
    pub parent_uei: String,
    /// Total: the group of award types, [`CONTRACTS`] or [`VEHICLES`].
    pub group: String,
    /// Total: the obligations in US cents.
    pub obligated_cents: Option<i64>,
    /// Total: the payments in US cents; `None` if those of a recipient are not known.
    pub outlays_cents: Option<i64>,
    /// Total: of how many recipients it is the sum.
    pub recipients: i64,
    /// Total: whether it was read at least 120 days after its last day. Before, contracts of the Department of Defense are missing.
    pub is_settled: bool,
}

/// A fact of an annual report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedFact {
    /// Id of its context in the instance.
    pub context: String,
    /// First day, `YYYY-MM-DD`.
    pub start: String,
    /// Last day.
    pub end: String,
    /// The tag with its prefix: `us-gaap:Revenues`.
    pub tag: String,
    /// The value as published, a decimal number.
    pub value: String,
    /// The measure of its unit, without prefix: `USD`, `pure`.
    pub unit: String,
    /// Its dimensions, each as `axis=member`, sorted and separated by blanks.
    pub dimensions: String,
    /// Labels of its customer in the label file of the filing, separated by ` | `.
    pub label: String,
}

impl ReportedFact {
    /// Returns the dimensions as pairs of axis and member.
    pub fn dimensions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.dimensions.split(' ').filter_map(|pair| pair.split_once('='))
    }
}

impl CompanyFact {
    /// Returns the canonical form for the content hash, with every field.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::{FactData, testing};

    fn with_other(field: &Value) -> Value {
        match field {
            Value::String(_) => json!("x"),
            Value::Array(_) => json!([{ "tag": "x" }]),
            Value::Null => json!(0),
            Value::Number(_) => json!(1),
            _ => json!(true),
        }
    }

    /// Proves that a change of any field changes the canonical form, also of a fact of a report.
    #[test]
    fn every_field_is_hashed() {
        let empty = serde_json::to_value(CompanyFact::default()).unwrap();
        for (name, value) in empty.as_object().unwrap() {
            let mut other = empty.clone();
            other[name] = with_other(value);
            let fact: CompanyFact = serde_json::from_value(other).unwrap();
            assert_ne!(fact.canonical(), CompanyFact::default().canonical(), "{name}");
        }
        let canonical_of =
            |fact: Value| CompanyFact { facts: vec![serde_json::from_value(fact).unwrap()], ..CompanyFact::default() }.canonical();
        let fields = serde_json::to_value(ReportedFact::default()).unwrap();
        let mut forms: Vec<_> = fields.as_object().unwrap().keys().map(|name| canonical_of(json!({ name.as_str(): "x" }))).collect();
        forms.push(canonical_of(fields));
        let all = forms.len();
        forms.sort();
        forms.dedup();
        assert_eq!(forms.len(), all);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let facts: Vec<ReportedFact> = vec![testing::with_every_field(), ReportedFact::default()];
        let mut given = serde_json::to_value(CompanyFact::default()).unwrap();
        for (name, value) in given.as_object_mut().unwrap() {
            *value = if name == "facts" { json!(facts) } else { with_other(value) };
        }
        let record: CompanyFact = serde_json::from_value(given).unwrap();
        let data = FactData::CompanyFact(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }

    /// Proves how dimensions are read.
    #[test]
    fn dimensions() {
        let fact =
            ReportedFact { dimensions: "srt:ConsolidationItemsAxis=a:B srt:MajorCustomersAxis=a:C".into(), ..ReportedFact::default() };
        assert_eq!(fact.dimensions().collect::<Vec<_>>(), [("srt:ConsolidationItemsAxis", "a:B"), ("srt:MajorCustomersAxis", "a:C")]);
        assert_eq!(ReportedFact::default().dimensions().count(), 0);
    }
}

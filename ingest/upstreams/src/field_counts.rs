//! Counts of the mapped fields of a run's records, from which [`crate::drift`] finds fields that vanished.

use std::collections::BTreeMap;

use schemas::event::FieldCount;

/// The counts of the runs before are halved when a field was counted in more documents than this, so that they follow the upstream slowly and
/// stay small.
pub const COUNTED_MAX: i64 = 50_000;

/// In how many documents each mapped field has a value of the type that the mapping reads. The names are the upstream's own. A document is what
/// one author writes at once: usually a record, but a filing with several rows is one document ([`FieldCounts::into_document`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldCounts(BTreeMap<&'static str, Counts>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The documents in which the field has a value.
    pub(crate) filled: i64,
    /// All documents.
    pub(crate) records: i64,
}

impl FieldCounts {
    /// The counts of a field, if it was counted.
    pub(crate) fn get(&self, name: &str) -> Option<&Counts> {
        self.0.get(name)
    }

    /// Counts one document: its mapped fields, and whether each of them has a value.
    pub fn count<const N: usize>(&mut self, fields: [(&'static str, bool); N]) {
        for (name, is_filled) in fields {
            let counts = self.0.entry(name).or_default();
            counts.records += 1;
            counts.filled += i64::from(is_filled);
        }
    }

    /// Adds the counts of another page of the same run.
    pub fn add(&mut self, other: &Self) {
        for (name, counts) in &other.0 {
            let own = self.0.entry(name).or_default();
            own.filled += counts.filled;
            own.records += counts.records;
        }
    }

    /// Counts all rows that were counted as one document, which has a field if a row has it.
    #[must_use]
    pub fn into_document(mut self) -> Self {
        for counts in self.0.values_mut() {
            *counts = Counts { filled: counts.filled.min(1), records: counts.records.min(1) };
        }
        self
    }

    /// Adds the counts of a finished run to those of the runs before it. `touched` says how many records of the run were new or changed.
    #[must_use]
    pub fn added_to(&self, before: &[FieldCount], touched: i64) -> Vec<FieldCount> {
        let mut sums: BTreeMap<&str, FieldCount> = before.iter().map(|field| (field.name.as_str(), field.clone())).collect();
        for (name, counts) in &self.0 {
            let sum = sums.entry(name).or_insert_with(|| FieldCount { name: (*name).to_owned(), ..FieldCount::default() });
            sum.filled = sum.filled.saturating_add(counts.filled);
            sum.records = sum.records.saturating_add(counts.records);
            sum.absent = if counts.filled > 0 { 0 } else { sum.absent.saturating_add(touched.min(counts.records)) };
            while sum.records > COUNTED_MAX {
                (sum.filled, sum.records, sum.absent) = (sum.filled / 2, sum.records / 2, sum.absent / 2);
            }
        }
        sums.into_values().collect()
    }
}

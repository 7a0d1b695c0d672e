//! Counts of the mapped fields of a run's records, from which [`crate::drift`] finds fields that vanished.

use std::collections::BTreeMap;

use schemas::event::FieldCount;

/// The counts of the runs before are halved when a field was counted in more records than this, so that they follow the upstream slowly and
/// stay small.
pub const COUNTED_MAX: i64 = 50_000;

/// In how many records each mapped field has a value of the type that the mapping reads. The names are the upstream's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldCounts(BTreeMap<&'static str, Counts>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The records in which the field has a value.
    pub(crate) filled: i64,
    /// All records.
    pub(crate) records: i64,
}

impl FieldCounts {
    /// The counts of a field, if it was counted.
    pub(crate) fn get(&self, name: &str) -> Option<&Counts> {
        self.0.get(name)
    }

    /// Counts one record: its mapped fields, and whether each of them has a value.
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

    /// Adds the counts of a finished run to those of the runs before it.
    #[must_use]
    pub fn added_to(&self, before: &[FieldCount]) -> Vec<FieldCount> {
        let mut sums: BTreeMap<&str, Counts> =
            before.iter().map(|field| (field.name.as_str(), Counts { filled: field.filled, records: field.records })).collect();
        for (name, counts) in &self.0 {
            let sum = sums.entry(name).or_default();
            sum.filled = sum.filled.saturating_add(counts.filled);
            sum.records = sum.records.saturating_add(counts.records);
            while sum.records > COUNTED_MAX {
                (sum.filled, sum.records) = (sum.filled / 2, sum.records / 2);
            }
        }
        sums.into_iter().map(|(name, Counts { filled, records })| FieldCount { name: name.to_owned(), filled, records }).collect()
    }
}

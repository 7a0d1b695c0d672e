//! Detects that an upstream has changed its format, with one rule for all upstreams. A single record may be malformed. If many records are
//! malformed in the same way, the format has changed and a person must look at it; accepting them would overwrite good records with empty
//! fields.
//!
//! There are two guards. [`Tally`] judges one answer by itself: fields that every record has must be there in their type. [`FieldCounts`]
//! counts, for every field that is mapped, in how many records it has a value; [`vanished`] compares the counts of a sync run with those of
//! the runs before, so that an optional field that was renamed stops the stream, too, however few records came.

use schemas::event::FieldCount;

use crate::UpstreamError;
pub use crate::field_counts::{COUNTED_MAX, FieldCounts};

/// A page with fewer records than this is not judged.
pub const RECORDS_MIN: usize = 20;
/// From this many records on, a field that all of them have counts as one that every record has.
const ALWAYS_MIN: i64 = 10;
/// A field is missed when the chance that so many records lack it by accident is below this.
const CHANCE_MAX: f64 = 0.01;
/// If an answer has more records than this, most of them outside the requested window, the filter was ignored.
pub const OUTSIDE_MIN: usize = 500;

/// An expected field: its name at the upstream, and a check whether a record has it in the expected type.
pub type Expected<R> = (&'static str, fn(&R) -> bool);

/// Counts the records in which an expected field is missing or has another type.
pub struct Tally<'e, R> {
    expected: &'e [Expected<R>],
    missing: Vec<usize>,
    unread: usize,
    total: usize,
}

impl<'e, R> Tally<'e, R> {
    /// Starts with no records.
    #[must_use]
    pub fn new(expected: &'e [Expected<R>]) -> Self {
        Self { expected, missing: vec![0; expected.len()], unread: 0, total: 0 }
    }

    /// Counts a record. One that could not be parsed (`None`) counts as a record without any field.
    pub fn take(&mut self, record: Option<&R>) {
        self.total += 1;
        self.unread += usize::from(record.is_none());
        for ((_, holds), missing) in self.expected.iter().zip(&mut self.missing) {
            *missing += usize::from(!record.is_some_and(holds));
        }
    }

    /// Checks that no expected field is missing on more than half of the records.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`], which names the first such field.
    pub fn check(&self, stream: &'static str) -> Result<(), UpstreamError> {
        share(stream, "record", self.unread, self.total)?;
        self.expected.iter().zip(&self.missing).try_for_each(|((field, _), missing)| share(stream, field, *missing, self.total))
    }
}

/// Applies the rule to counts, for upstreams that do not hold all records at once: `missing` of `total` records lack the field.
///
/// # Errors
/// [`UpstreamError::Stop`], which names the field.
pub fn share(stream: &'static str, field: &str, missing: usize, total: usize) -> Result<(), UpstreamError> {
    if total >= RECORDS_MIN && missing > total / 2 {
        let reason = format!("absent or of another type on {missing} of {total} records");
        return Err(UpstreamError::Stop { stream, field: field.to_owned(), reason });
    }
    Ok(())
}

/// Finds a field that most of the records of earlier runs had and that no record of this run has. `touched` says how many records this run
/// would append because they are new or, with most of their neighbours, have changed: when nothing would change, nothing can be blanked.
/// A field that not every record has may be absent from a few records by accident; it is missed when that is improbable.
///
/// # Errors
/// [`UpstreamError::Stop`], which names the field.
pub fn vanished(stream: &'static str, before: &[FieldCount], run: &FieldCounts, touched: i64) -> Result<(), UpstreamError> {
    for FieldCount { name, filled, records } in before {
        let Some(now) = run.get(name).filter(|now| now.filled == 0) else { continue };
        let judged = touched.min(now.records);
        if judged == 0 || filled.saturating_mul(2) <= *records {
            continue;
        }
        let lacking = records - filled;
        let share = if lacking == 0 && *records >= ALWAYS_MIN { 0.0 } else { (lacking as f64 + 0.5) / (*records as f64 + 1.0) };
        if share.powi(i32::try_from(judged).unwrap_or(i32::MAX)) < CHANCE_MAX {
            let reason = format!("present in {filled} of {records} records of the runs before, absent in all {} of this run", now.records);
            return Err(UpstreamError::Stop { stream, field: name.clone(), reason });
        }
    }
    Ok(())
}

/// Judges how many records are outside the requested window: none, some (a warning), or so many that the filter was ignored (an error).
///
/// # Errors
/// [`UpstreamError::Stop`], which names the parameter.
pub fn outside(stream: &'static str, parameter: &str, outside: usize, total: usize) -> Result<Option<String>, UpstreamError> {
    if total > OUTSIDE_MIN && outside > total / 2 {
        let reason = format!("ignored by the upstream: {outside} of {total} records lie outside the window asked for");
        return Err(UpstreamError::Stop { stream, field: parameter.to_owned(), reason });
    }
    Ok((outside > 0).then(|| format!("{outside} of {total} records lie outside the window asked for by {parameter}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the threshold: half of the records may lack a field, one more stops the stream; small pages are not judged.
    #[test]
    fn more_than_half_of_twenty_stops() {
        let check = |missing: usize, total: usize| {
            let mut tally = Tally::<bool>::new(&[("Title", |has| *has)]);
            (0..total).for_each(|at| tally.take(Some(&(at >= missing))));
            tally.check("d")
        };
        assert!(check(10, 20).is_ok());
        assert!(check(19, 19).is_ok());
        let error = check(11, 20).unwrap_err();
        assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "Title"));
    }

    /// Counts `filled` of `records` records that have a field.
    fn counts(filled: i64, records: i64) -> FieldCounts {
        let mut counts = FieldCounts::default();
        (0..records).for_each(|at| counts.count([("Hazards", at < filled)]));
        counts
    }

    /// Proves that a field that every stored record has is missed in a single record; that one that most have is missed when chance does
    /// not explain it; and that one that few have, or one that a record of the run has, is not.
    #[test]
    fn a_field_that_most_records_had_is_missed() {
        let misses = |before: (i64, i64), run: (i64, i64), touched: i64| {
            let before = counts(before.0, before.1).added_to(&[]);
            vanished("d", &before, &counts(run.0, run.1), touched).is_err()
        };
        assert!(misses((10, 10), (0, 1), 1) && misses((5, 5), (0, 2), 2) && misses((5_000, 5_000), (0, 1), 1));
        assert!(misses((900, 1_000), (0, 3), 3) && misses((600, 1_000), (0, 10), 10));
        assert!(!misses((900, 1_000), (0, 1), 1) && !misses((600, 1_000), (0, 3), 3) && !misses((2, 2), (0, 1), 1));
        assert!(!misses((500, 1_000), (0, 500), 500), "half of the records are not most of them");
        assert!(!misses((1_000, 1_000), (1, 500), 500), "one record has it");
        assert!(!misses((1_000, 1_000), (0, 50), 0), "nothing would be appended");
        assert!(vanished("d", &[], &counts(0, 50), 50).is_ok(), "nothing is known");
        let error = vanished("d", &counts(20, 20).added_to(&[]), &counts(0, 4), 4).unwrap_err();
        assert!(error.to_string().contains("field Hazards: present in 20 of 20 records of the runs before, absent in all 4"), "{error}");
    }

    /// Proves that counts stay small however many runs there are, and that they follow the upstream.
    #[test]
    fn counts_are_bounded() {
        let mut sums = counts(1_000, 1_000).added_to(&[]);
        for _ in 0..200 {
            sums = counts(0, 1_000).added_to(&sums);
        }
        assert!(sums[0].records <= COUNTED_MAX && sums[0].filled * 2 < sums[0].records, "{sums:?}");
    }

    /// Proves that a few records outside a window give a warning, and that an answer with all records is refused.
    #[test]
    fn a_filter_that_is_ignored_stops() {
        assert_eq!(outside("d", "p", 0, 9_000).unwrap(), None);
        assert!(outside("d", "p", 400, 500).unwrap().is_some());
        assert!(outside("d", "p", 400, 900).unwrap().is_some());
        assert!(matches!(outside("d", "p", 600, 900), Err(UpstreamError::Stop { field, .. }) if field == "p"));
    }
}

//! Detects that an upstream has changed its format, with one rule for all upstreams. A single record may be malformed. If many records are
//! malformed in the same way, the format has changed and a person must look at it; accepting them would overwrite good records with empty
//! fields.

use crate::UpstreamError;

/// A page with fewer records than this is not judged.
pub const RECORDS_MIN: usize = 20;
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

    /// Proves that a few records outside a window give a warning, and that an answer with all records is refused.
    #[test]
    fn a_filter_that_is_ignored_stops() {
        assert_eq!(outside("d", "p", 0, 9_000).unwrap(), None);
        assert!(outside("d", "p", 400, 500).unwrap().is_some());
        assert!(outside("d", "p", 400, 900).unwrap().is_some());
        assert!(matches!(outside("d", "p", 600, 900), Err(UpstreamError::Stop { field, .. }) if field == "p"));
    }
}

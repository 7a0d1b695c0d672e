//! When an upstream's form has changed: one rule for all. A record may be odd; many odd in the same way are a change that a
//! person must look at, and taking them would spoil good records with empty fields.

use crate::UpstreamError;

/// A page with fewer records than this proves nothing.
pub const RECORDS_MIN: usize = 20;
/// An answer with more records than this, most of them outside the window asked for, comes from a filter that was ignored.
pub const OUTSIDE_MIN: usize = 500;

/// An expected field: its name at the upstream, and whether a record has it in the expected type.
pub type Expected<R> = (&'static str, fn(&R) -> bool);

/// Counts the records that lack an expected field, or have it in another type.
pub struct Tally<'e, R> {
    expected: &'e [Expected<R>],
    missing: Vec<usize>,
    unread: usize,
    total: usize,
}

impl<'e, R> Tally<'e, R> {
    /// Before the first record.
    #[must_use]
    pub fn new(expected: &'e [Expected<R>]) -> Self {
        Self { expected, missing: vec![0; expected.len()], unread: 0, total: 0 }
    }

    /// Takes in a record. One that could not be read at all (`None`) counts as one without any field.
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
    /// [`UpstreamError::Stop`] naming the first such field.
    pub fn check(&self, door: &'static str) -> Result<(), UpstreamError> {
        share(door, "record", self.unread, self.total)?;
        self.expected.iter().zip(&self.missing).try_for_each(|((field, _), missing)| share(door, field, *missing, self.total))
    }
}

/// The rule on counts, for upstreams whose records are not held together: `missing` of `total` lack the field.
///
/// # Errors
/// [`UpstreamError::Stop`] naming the field.
pub fn share(door: &'static str, field: &str, missing: usize, total: usize) -> Result<(), UpstreamError> {
    if total >= RECORDS_MIN && missing > total / 2 {
        let reason = format!("absent or of another type on {missing} of {total} records");
        return Err(UpstreamError::Stop { door, field: field.to_owned(), reason });
    }
    Ok(())
}

/// What it means that so many records lie outside the window asked for: nothing, a warning, or a filter that is ignored.
///
/// # Errors
/// [`UpstreamError::Stop`] naming the parameter.
pub fn outside(door: &'static str, parameter: &str, outside: usize, total: usize) -> Result<Option<String>, UpstreamError> {
    if total > OUTSIDE_MIN && outside > total / 2 {
        let reason = format!("ignored by the upstream: {outside} of {total} records lie outside the window asked for");
        return Err(UpstreamError::Stop { door, field: parameter.to_owned(), reason });
    }
    Ok((outside > 0).then(|| format!("{outside} of {total} records lie outside the window asked for by {parameter}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves where the line is: half may lack a field, one more stops; and small pages prove nothing.
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

    /// Proves that a few records outside a window are taken with a warning, and that a whole corpus is not.
    #[test]
    fn a_filter_that_is_ignored_stops() {
        assert_eq!(outside("d", "p", 0, 9_000).unwrap(), None);
        assert!(outside("d", "p", 400, 500).unwrap().is_some());
        assert!(outside("d", "p", 400, 900).unwrap().is_some());
        assert!(matches!(outside("d", "p", 600, 900), Err(UpstreamError::Stop { field, .. }) if field == "p"));
    }
}

//! When an upstream's form has changed: one rule for all. A record may be odd; many odd in the same way are a change that a
//! person must look at, and taking them would spoil good records with empty fields.

use crate::UpstreamError;

/// A page with fewer records than this proves nothing.
pub const RECORDS_MIN: usize = 20;
/// An answer with more records than this, most of them outside the window asked for, comes from a filter that was ignored.
pub const OUTSIDE_MIN: usize = 500;

/// An expected field: its name at the upstream, and whether a record has it in the expected type.
pub type Expected<R> = (&'static str, fn(&R) -> bool);

/// Checks that no expected field is missing, or of another type, on more than half of the records. A record that could not
/// be read at all (`Err`) counts as one without any field.
///
/// # Errors
/// [`UpstreamError::Stop`] naming the first such field.
pub fn check<R, E>(door: &'static str, records: &[Result<R, E>], expected: &[Expected<R>]) -> Result<(), UpstreamError> {
    let total = records.len();
    if total < RECORDS_MIN {
        return Ok(());
    }
    let unread = records.iter().filter(|record| record.is_err()).count();
    share(door, "record", unread, total)?;
    for (field, holds) in expected {
        let missing = records.iter().filter(|record| !record.as_ref().is_ok_and(holds)).count();
        share(door, field, missing, total)?;
    }
    Ok(())
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
        let page = |missing: usize, total: usize| (0..total).map(|at| Ok::<_, ()>(at >= missing)).collect::<Vec<_>>();
        let expected: &[Expected<bool>] = &[("Title", |has| *has)];
        assert!(check("d", &page(10, 20), expected).is_ok());
        assert!(check("d", &page(19, 19), expected).is_ok());
        let error = check("d", &page(11, 20), expected).unwrap_err();
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

//! The names of places at which a feed starts: values of its argument `start`. The other values are days and times.

/// From the first change that the caller sees on.
pub const EARLIEST: &str = "earliest";
/// The last changes.
pub const NEWEST: &str = "newest";
/// From now on.
pub const LATEST: &str = "latest";

/// Whether a value of `start` is one of the names, in any case.
#[must_use]
pub fn is_start(text: &str, name: &str) -> bool {
    text.trim().eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the case of a name and the spaces around it do not matter, and that a part of a name is none.
    #[test]
    fn names_are_read_in_any_case() {
        assert!([" Newest", "NEWEST\t", NEWEST].iter().all(|text| is_start(text, NEWEST)));
        assert!(["", "new", LATEST, EARLIEST, "2026-11-20"].iter().all(|text| !is_start(text, NEWEST)));
    }
}

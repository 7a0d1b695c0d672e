//! What answers say of records that are hidden on request.

/// Says how many records an answer leaves out because they are hidden; `None` if there are none. `what` names them in the plural.
#[must_use]
pub fn hidden_note(what: &str, hidden: usize) -> Option<String> {
    (hidden > 0).then(|| format!("{what} that are hidden on request and left out: {hidden}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a note has the number of hidden records, and that nothing is said of none.
    #[test]
    fn hidden_records_are_counted() {
        assert_eq!(hidden_note("exclusions", 0), None);
        assert_eq!(hidden_note("exclusions", 2).unwrap(), "exclusions that are hidden on request and left out: 2");
    }
}

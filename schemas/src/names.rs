//! The nearest known name, for errors about unknown ones.

/// The known name most like the given one, if any is alike enough to be meant.
#[must_use]
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.chars().count().max(given.chars().count()) / 2).max(1))
        .min()
        .map(|(_, name)| name)
}

/// `, did you mean "x"?`, or nothing; to stand at the end of an error's words.
#[must_use]
pub fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or_else(String::new, |name| format!(", did you mean \"{name}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a typing error finds its name and that a stranger finds none.
    #[test]
    fn nearest_known_name() {
        assert_eq!(nearest("categry", ["category", "agency"]), Some("category"));
        assert_eq!(nearest("zzzzzz", ["category", "agency"]), None);
    }
}

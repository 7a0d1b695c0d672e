//! The address of an item: its id in any case, as host names are written.

/// The id that a text can mean. Host names have no case, and the numbers of products have no letters.
pub(crate) fn ids_of(text: &str) -> Vec<String> {
    vec![text.trim().to_lowercase()]
}

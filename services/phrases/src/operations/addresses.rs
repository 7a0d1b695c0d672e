//! The address of a phrase: the phrase itself, or its id in any case.

use feed::position::Position;
use velocity::rows::record_id;

use super::question::normal_phrase;
use super::samples::is_hidden;

/// The ids that a text can mean: the text as an id, and that of the phrase in any spelling. A phrase that operators hide is not found by its words.
pub(crate) fn ids_of(at: &Position, text: &str) -> Vec<String> {
    let phrase = normal_phrase(text).ok().filter(|phrase| !is_hidden(&*at.view, phrase));
    std::iter::once(text.trim().to_lowercase()).chain(phrase.map(|phrase| record_id(&phrase))).collect()
}

//! Names and values of a request in the words of a problem.

use std::borrow::Cow;

/// The most characters of a caller's value that an error repeats.
const ECHO_CHARS_MAX: usize = 64;

/// Whether a name is the other spelling of a name of several words: in snake_case of one in camelCase, and the reverse. Capitals in a row are one word:
/// `hours_tis` is `hoursTIS`.
pub(super) fn is_other_spelling(given: &str, name: &str) -> bool {
    match (name.contains('_'), name.bytes().any(|byte| byte.is_ascii_uppercase())) {
        (true, false) => given == camel_case(name),
        (false, true) => given == snake_case(name),
        _ => false,
    }
}

/// A name in camelCase in snake_case.
fn snake_case(camel: &str) -> String {
    let (mut out, mut is_after_capital) = (String::with_capacity(camel.len() + 4), false);
    for c in camel.chars() {
        let is_capital = c.is_ascii_uppercase();
        if is_capital && !is_after_capital {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        is_after_capital = is_capital;
    }
    out
}

/// A name in snake_case in camelCase.
fn camel_case(snake: &str) -> String {
    let (mut out, mut begins_word) = (String::with_capacity(snake.len()), false);
    for c in snake.chars() {
        if c == '_' {
            begins_word = true;
        } else {
            out.push(if begins_word { c.to_ascii_uppercase() } else { c });
            begins_word = false;
        }
    }
    out
}

/// Shortens a caller's text for an error.
#[must_use]
pub fn echo(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

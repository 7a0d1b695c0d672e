//! Names and values of a request in the words of a problem.

use std::borrow::Cow;

/// The most characters of a caller's value that an error repeats.
const ECHO_CHARS_MAX: usize = 64;

/// A name of several words in the other one of camelCase and snake_case; `None` if it is in neither.
pub(super) fn other_case(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len() + 4);
    match (name.contains('_'), name.bytes().any(|byte| byte.is_ascii_uppercase())) {
        (true, false) => {
            let mut words = name.split('_');
            out.push_str(words.next()?);
            for word in words {
                out.push(word.chars().next()?.to_ascii_uppercase());
                out.push_str(word.get(1..)?);
            }
        }
        (false, true) => {
            for c in name.chars() {
                if c.is_ascii_uppercase() {
                    out.push('_');
                }
                out.push(c.to_ascii_lowercase());
            }
        }
        _ => return None,
    }
    Some(out)
}

/// Shortens a caller's text for an error.
#[must_use]
pub fn echo(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

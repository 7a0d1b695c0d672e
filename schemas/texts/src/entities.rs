//! Tags and character references in texts that people paste: titles come without them, queries may not.

/// The longest character reference, in characters.
const REFERENCE_CHARS_MAX: usize = 10;

/// Returns a text with tags replaced by a blank and character references resolved, once.
pub(crate) fn resolved(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (resolved, length) = if from.starts_with('<') { tag(from) } else { reference(from) }.unwrap_or_else(|| {
            let length = from.chars().next().map_or(0, char::len_utf8);
            (from.chars().next(), length)
        });
        out.extend(resolved);
        rest = from.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// A tag at the beginning of a text: what it becomes, and its length in bytes.
fn tag(text: &str) -> Option<(Option<char>, usize)> {
    let inside = text.strip_prefix('<')?;
    let name = inside.strip_prefix('/').unwrap_or(inside);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let end = inside.find(['<', '>']).filter(|end| inside[*end..].starts_with('>'))?;
    Some((Some(' '), end + 2))
}

/// A character reference at the beginning of a text: the character, and the length of the reference in bytes.
fn reference(text: &str) -> Option<(Option<char>, usize)> {
    let inside = text.strip_prefix('&')?;
    let end = inside.char_indices().take(REFERENCE_CHARS_MAX).find(|(_, c)| *c == ';')?.0;
    let name = inside.get(..end)?;
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" | "lsquo" | "rsquo" => '\'',
        "ldquo" | "rdquo" => '"',
        "mdash" | "ndash" => '-',
        "hellip" => '…',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((Some(character), end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what becomes of tags and references, and that anything else is left as it is.
    #[test]
    fn tags_and_references() {
        for (text, expected) in [
            ("a &amp; b", "a & b"),
            ("TCP&#x2F;IP &#47; &quot;x&quot;", "TCP/IP / \"x\""),
            ("Acme&rsquo;s &ldquo;plan&rdquo;&mdash;it&hellip;", "Acme's \"plan\"-it…"),
            ("a<b>bold</b>c", "a bold c"),
            ("1 < 2 > 0", "1 < 2 > 0"),
            ("a<b", "a<b"),
            ("&unknown; &#xZZ; &#1114112; &", "&unknown; &#xZZ; &#1114112; &"),
            ("&amp;lt;", "&lt;"),
            ("<é> &é;", "<é> &é;"),
        ] {
            assert_eq!(resolved(text), expected, "{text}");
        }
    }
}

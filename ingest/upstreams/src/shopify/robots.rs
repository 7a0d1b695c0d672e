//! The rules for crawlers in `robots.txt` (RFC 9309), as far as they concern one path.

/// The name that a group of rules can address.
const OWN_NAME: &str = "highwater";
/// The most bytes that are read, as the standard allows.
const BYTES_MAX: usize = 500 << 10;

/// Whether the rules allow a path. The groups for this program count if there are any, or else those for all. The longest matching rule
/// decides; of an `allow` and a `disallow` of one length the `allow`.
pub(super) fn allows(text: &str, path: &str) -> bool {
    let text = text.get(..text.floor_char_boundary(BYTES_MAX)).unwrap_or_default();
    let (own, all) = (best_rule(text, path, |name| name == OWN_NAME), best_rule(text, path, |name| name == "*"));
    let verdict = if own.is_addressed { own } else { all };
    verdict.allow >= verdict.disallow
}

/// The lengths of the longest rules that match; 0 for none.
#[derive(Default)]
struct Verdict {
    is_addressed: bool,
    allow: usize,
    disallow: usize,
}

fn best_rule(text: &str, path: &str, is_addressed: impl Fn(&str) -> bool) -> Verdict {
    let mut verdict = Verdict::default();
    let (mut is_in_group, mut is_after_rule) = (false, true);
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let name = name.trim().to_ascii_lowercase();
        match name.as_str() {
            "user-agent" => {
                // Consecutive lines address one group.
                is_in_group = (is_in_group && !is_after_rule) || is_addressed(&value.to_ascii_lowercase());
                is_after_rule = false;
                verdict.is_addressed |= is_in_group;
            }
            "allow" | "disallow" => {
                is_after_rule = true;
                if is_in_group && !value.is_empty() && matches(value, path) {
                    let longest = if name == "allow" { &mut verdict.allow } else { &mut verdict.disallow };
                    *longest = (*longest).max(value.len());
                }
            }
            _ => {}
        }
    }
    verdict
}

/// Whether a pattern matches the beginning of a path. `*` stands for any characters; `$` at the end for the end of the path.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, is_whole) = pattern.strip_suffix('$').map_or((pattern, false), |pattern| (pattern, true));
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let found = if is_last && is_whole { rest.ends_with(part).then(|| rest.len() - part.len()) } else { rest.find(part) };
        let Some(found) = found else { return false };
        rest = rest.get(found + part.len()..).unwrap_or_default();
    }
    !is_whole || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/products.json?limit=250&page=1";

    /// Proves which rules forbid the list of products.
    #[test]
    fn rules() {
        for (text, expected) in [
            ("", true),
            ("<!DOCTYPE html><html></html>", true),
            ("User-agent: *\nDisallow: /admin\nDisallow: /cart\n", true),
            ("User-agent: *\nDisallow: /\n", false),
            ("user-agent: *\ndisallow: /products.json # closed\n", false),
            ("User-agent: *\nDisallow: /*.json\n", false),
            ("User-agent: *\nDisallow: /*.json$\n", true),
            ("User-agent: *\nDisallow: /\nAllow: /products.json\n", true),
            ("User-agent: *\nDisallow: /products\nAllow: /products\n", true),
            ("User-agent: *\nDisallow:\n", true),
            ("User-agent: other\nDisallow: /\n", true),
            ("User-agent: other\nUser-agent: *\nDisallow: /\n", false),
            ("User-agent: Highwater\nAllow: /\n\nUser-agent: *\nDisallow: /\n", true),
            ("User-agent: highwater\nDisallow: /\n\nUser-agent: *\nAllow: /\n", false),
            ("User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /\n", true),
            ("User-agent: *\nDisallow: /*?*page=1$\n", false),
        ] {
            assert_eq!(allows(text, PATH), expected, "{text:?}");
        }
    }
}

//! ETags: made of what an answer follows from, not of its body.

/// A strong ETag from what an answer follows from.
#[must_use]
pub fn etag(parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    let hash = schemas::hash::Hash32::of_parts(&parts);
    format!("\"{}\"", schemas::hash::hex(&hash.0[..12]))
}

/// Whether `If-None-Match` names the ETag.
#[must_use]
pub fn has_it(if_none_match: Option<&str>, etag: &str) -> bool {
    if_none_match
        .is_some_and(|given| given.trim() == "*" || given.split(',').any(|one| one.trim().strip_prefix("W/").unwrap_or(one.trim()) == etag))
}

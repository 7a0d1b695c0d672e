//! ETags, made from the inputs of an answer and not from its body.

/// Makes a strong ETag from the inputs of an answer.
#[must_use]
pub fn etag(parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    let hash = schemas::hash::Hash32::of_parts(&parts);
    format!("\"{}\"", schemas::hash::hex(&hash.0[..12]))
}

/// Whether the header `If-None-Match` contains the ETag.
#[must_use]
pub fn matches_etag(if_none_match: Option<&str>, etag: &str) -> bool {
    if_none_match
        .is_some_and(|given| given.trim() == "*" || given.split(',').any(|one| one.trim().strip_prefix("W/").unwrap_or(one.trim()) == etag))
}

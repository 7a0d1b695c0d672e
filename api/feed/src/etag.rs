//! ETags, made from the inputs of an answer and not from its body.

use view_store::View;

/// Makes a strong ETag from the inputs of an answer, and from what the view that it is read from hides.
#[must_use]
pub fn etag(view: &dyn View, parts: &[&str]) -> String {
    let hidden = Some(view.rendition()).filter(|rendition| *rendition != 0).map(|rendition| rendition.to_string());
    let parts: Vec<&[u8]> = parts.iter().copied().chain(hidden.as_deref()).map(str::as_bytes).collect();
    let hash = proofs::hash::Hash32::of_parts(&parts);
    format!("\"{}\"", proofs::hash::hex(&hash.0[..12]))
}

/// Whether the header `If-None-Match` contains the ETag.
#[must_use]
pub fn matches_etag(if_none_match: Option<&str>, etag: &str) -> bool {
    if_none_match
        .is_some_and(|given| given.trim() == "*" || given.split(',').any(|one| one.trim().strip_prefix("W/").unwrap_or(one.trim()) == etag))
}

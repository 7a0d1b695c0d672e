//! Hides API keys in texts that repeat what a caller sent.

/// The prefix of every API key.
pub const PREFIX: &str = "hw_live_";

/// Replaces API keys in a text that may repeat what a caller sent, since a key may have been sent in a wrong place.
#[must_use]
pub fn hide_keys(text: String) -> String {
    if !text.contains(PREFIX) {
        return text;
    }
    let mut parts = text.split(PREFIX);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += PREFIX;
        out += "…";
        out += part.trim_start_matches(|character: char| character.is_ascii_alphanumeric());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that keys in a text are hidden, and nothing else.
    #[test]
    fn hidden_keys() {
        let key = format!("{PREFIX}{}", "Aa0".repeat(12));
        let text = format!("limit: \"{}\" and {}; hw_live_", key, key);
        assert_eq!(hide_keys(text), "limit: \"hw_live_…\" and hw_live_…; hw_live_…");
        assert_eq!(hide_keys("hw_test".to_owned()), "hw_test");
    }
}

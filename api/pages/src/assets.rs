//! The files of the pages: one style sheet, one script, the script that verifies receipts and the icon. Each has the fingerprint of its content in its
//! path, so a browser may keep it for ever.

use std::sync::LazyLock;

use proofs::hash::Hash32;

/// How many hex digits of the hash are in a path.
const FINGERPRINT_DIGITS: usize = 16;

/// A file of the pages.
pub struct Asset {
    /// The path on the server.
    pub path: String,
    /// The content.
    pub bytes: &'static [u8],
    /// The content type.
    pub content_type: &'static str,
}

impl Asset {
    fn new(name: &str, bytes: &'static [u8], content_type: &'static str) -> Self {
        let hash = Hash32::of(bytes).to_string();
        Self { path: format!("/assets/{}/{name}", hash.get(..FINGERPRINT_DIGITS).unwrap_or(&hash)), bytes, content_type }
    }
}

/// The style sheet.
pub static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("site.css", include_bytes!("../assets/site.css"), "text/css; charset=utf-8"));
/// The script.
pub static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("site.js", include_bytes!("../assets/site.js"), "text/javascript; charset=utf-8"));
/// The script that verifies receipts, and the places of changes, in the browser.
pub static VERIFY: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("verify.js", include_bytes!("../assets/verify.js"), "text/javascript; charset=utf-8"));
/// The icon.
pub static ICON: LazyLock<Asset> = LazyLock::new(|| Asset::new("icon.svg", include_bytes!("../assets/icon.svg"), "image/svg+xml"));

/// All files.
pub fn all() -> impl Iterator<Item = &'static Asset> {
    [&*STYLE, &*SCRIPT, &*VERIFY, &*ICON].into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most JavaScript of a page, in bytes as they are sent.
    const SCRIPT_BYTES_MAX: usize = 60_000;

    /// Proves that a page with every script has little JavaScript even where it is not compressed, and that a path has the fingerprint of its file.
    #[test]
    fn scripts_are_small() {
        let scripts: Vec<&Asset> = all().filter(|asset| asset.content_type.starts_with("text/javascript")).collect();
        let bytes: usize = scripts.iter().map(|script| script.bytes.len()).sum();
        assert!(scripts.len() == 2 && bytes <= SCRIPT_BYTES_MAX, "{bytes} bytes in {} scripts", scripts.len());
        for asset in all() {
            let hash = Hash32::of(asset.bytes).to_string();
            assert!(asset.path.starts_with(&format!("/assets/{}/", &hash[..FINGERPRINT_DIGITS])), "{}", asset.path);
        }
    }
}

//! The example programs that guides show.

use crate::text;

/// Proves that the guide to webhooks shows the example programs as they are. `ops/checks/webhooks` and the webhook scenarios run them.
#[test]
fn webhook_guide_shows_the_examples() {
    let guide = text("ops/docs/guides/webhooks.md");
    for (language, extension) in [("python", "py"), ("ts", "ts"), ("rust", "rs")] {
        let path = format!("ops/examples/verify_webhook.{extension}");
        assert!(guide.contains(&format!("```{language}\n{}```\n", text(&path))), "the guide does not show {path}");
    }
}

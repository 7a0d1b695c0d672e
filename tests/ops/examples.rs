//! The example programs that guides show.

use crate::links::collect_pages;
use crate::{file, text};

/// Proves that the guide to webhooks shows the example programs as they are. `ops/checks/webhooks` and the webhook scenarios run them.
#[test]
fn webhook_guide_shows_the_examples() {
    let guide = text("ops/docs/guides/webhooks.md");
    for (language, extension) in [("python", "py"), ("ts", "ts"), ("rust", "rs")] {
        let path = format!("ops/examples/verify_webhook.{extension}");
        assert!(guide.contains(&format!("```{language}\n{}```\n", text(&path))), "the guide does not show {path}");
    }
}

/// Proves that the guide to agents shows the example programs as they are. `ops/checks/http-clients` runs them.
#[test]
fn agents_guide_shows_the_examples() {
    let guide = text("ops/docs/guides/agents.md");
    for (language, extension) in [("python", "py"), ("js", "mjs")] {
        let path = format!("ops/examples/agent.{extension}");
        assert!(guide.contains(&format!("```{language}\n{}```\n", text(&path))), "the guide does not show {path}");
    }
}

/// Whether a text contains a date in the form YYYY-MM-DD.
fn has_date(text: &str) -> bool {
    let is_date =
        |window: &[u8]| window.iter().enumerate().all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    text.as_bytes().windows(10).any(is_date)
}

/// Proves that no command on a page has a fixed date: it would ask for a day that is in no log of a reader who tries it later.
#[test]
fn commands_on_pages_compute_their_dates() {
    let mut pages = Vec::new();
    collect_pages(&file("ops/docs"), &mut pages);
    pages.push(file("README.md"));
    let mut commands = 0;
    for page in pages {
        let mut is_command = false;
        for line in std::fs::read_to_string(&page).unwrap().lines() {
            if line.starts_with("```") {
                is_command = line == "```sh";
            } else if is_command {
                commands += 1;
                assert!(!has_date(line), "{}: {line}", page.display());
            }
            assert!(!line.contains("asOf=20"), "{}: {line}", page.display());
        }
    }
    assert!(commands > 50, "{commands}");
}

/// Proves that the guide to analysing records shows the query that `ops/checks/exports` runs.
#[test]
fn guide_to_analysis_shows_the_query() {
    let query = text("ops/examples/recalls_by_month.sql");
    assert!(text("ops/docs/guides/analyse.md").contains(&format!("```sql\n{query}```\n")));
}

//! `/status.atom`: the times during which sync runs of a stream failed, as an Atom feed (RFC 4287). It shows what `health` of each service says.

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use super::{Stream, answered, read_states, streams};
use crate::{Reads, Rendered, STATUS, STATUS_FEED};

/// The content type of the feed.
const ATOM: &str = "application/atom+xml";
/// The most entries.
const ENTRIES_MAX: usize = 100;
/// The time of a feed without entries, which must have one.
const NEVER: &str = "1970-01-01T00:00:00Z";

/// An outage of a stream.
struct Outage<'a> {
    stream: &'a str,
    from: &'a str,
    /// Empty while it lasts.
    until: &'a str,
    services: Vec<&'a str>,
}

impl Outage<'_> {
    /// When it was last changed.
    fn updated(&self) -> &str {
        if self.until.is_empty() { self.from } else { self.until }
    }
}

/// The feed.
pub(crate) async fn feed(reads: &dyn Reads) -> Rendered {
    let states = read_states(reads).await;
    let streams = streams(answered(&states));
    let mut entries: Vec<Outage<'_>> = streams.iter().flat_map(|(name, stream)| entries(name, stream)).collect();
    // Times in this form are in the order of their texts.
    entries.sort_by(|one, other| other.updated().cmp(one.updated()).then_with(|| one.stream.cmp(other.stream)));
    entries.truncate(ENTRIES_MAX);
    let site_url = reads.site_url();
    let document = html! {
        feed xmlns="http://www.w3.org/2005/Atom" {
            id { (site_url) (STATUS_FEED) }
            title { "Highwater: outages of upstreams" }
            updated { (entries.first().map_or(NEVER, Outage::updated)) }
            author { name { "Highwater" } }
            link rel="self" type=(ATOM) href={ (site_url) (STATUS_FEED) } {}
            link rel="alternate" type="text/html" href={ (site_url) (STATUS) } {}
            @for entry in &entries { (shown(entry, site_url)) }
        }
    };
    Rendered { status: 200, html: format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n{}", document.into_string()), content_type: ATOM }
}

/// The outages of a stream.
fn entries<'a>(name: &'a str, stream: &'a Stream<'a>) -> impl Iterator<Item = Outage<'a>> {
    let outages = stream.state["outages"].as_array().into_iter().flatten();
    outages.filter_map(move |outage: &'a Value| {
        let from = outage["from"].as_str()?;
        let services = stream.services.iter().map(|shown| shown.service.name).collect();
        Some(Outage { stream: name, from, until: outage["until"].as_str().unwrap_or_default(), services })
    })
}

fn shown(entry: &Outage<'_>, site_url: &str) -> Markup {
    let is_over = !entry.until.is_empty();
    html! {
        (PreEscaped("\n"))
        entry {
            // The id stays when the outage ends, so that readers update the entry.
            id { (site_url) (STATUS) "#" (entry.stream) "/" (entry.from) }
            title { (entry.stream) @if is_over { ": synced again" } @else { ": sync runs fail" } }
            published { (entry.from) }
            updated { (entry.updated()) }
            link rel="alternate" type="text/html" href={ (site_url) (STATUS) "#stream-" (entry.stream) } {}
            content {
                "Sync runs of " (entry.stream) " failed from " (entry.from)
                @if is_over { " until " (entry.until) ". " } @else { " on, and are tried again by themselves. " }
                "Services that read it: " (entry.services.join(", ")) ". What was recorded before stays and is shown."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Made;

    /// Proves that each outage is one entry whose id stays when it ends, the last changed first, and that texts cannot break the document.
    #[test]
    fn outages_are_entries() {
        let mut made = Made::new();
        let mut feed = |outages: &serde_json::Value| {
            made.answers.get_mut("health").unwrap()["streams"] = json!([
                { "stream": "cpsc", "outages": outages },
                { "stream": "a<b", "outages": [{ "from": "2026-11-20T00:00:00Z", "until": "2026-11-20T01:00:00Z" }] },
            ]);
            let page = made.page("/status.atom");
            assert_eq!((page.status, page.content_type), (200, "application/atom+xml"));
            page.html
        };
        let lasting = feed(&json!([{ "from": "2026-11-28T10:00:00Z", "until": "" }]));
        assert!(lasting.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">"));
        assert!(lasting.contains("<updated>2026-11-28T10:00:00Z</updated><author>"), "{lasting}");
        let id = "<id>http://api.example/status#cpsc/2026-11-28T10:00:00Z</id>";
        assert!(lasting.contains(&format!("{id}<title>cpsc: sync runs fail</title>")), "{lasting}");
        assert!(lasting.find("cpsc: sync").unwrap() < lasting.find("a&lt;b: synced again").unwrap(), "{lasting}");
        assert!(!lasting.contains("a<b") && lasting.matches("<entry>").count() == 2, "{lasting}");
        let over = feed(&json!([{ "from": "2026-11-28T10:00:00Z", "until": "2026-11-28T11:00:00Z" }]));
        assert!(over.contains(&format!("{id}<title>cpsc: synced again</title>")) && over.contains("until 2026-11-28T11:00:00Z"), "{over}");
        let none = feed(&json!([]));
        assert!(none.contains("<updated>2026-11-20T01:00:00Z</updated><author>"), "{none}");
    }
}

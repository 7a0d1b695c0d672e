//! Markdown to HTML, and to Markdown whose links work where it is served.

use pulldown_cmark::{Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html::push_html};

use super::list::path_of;

/// Tables are the only extension that the documents use.
const OPTIONS: Options = Options::ENABLE_TABLES;

/// Where a link of a document leads.
enum Target {
    /// A page, or a place on it.
    Page(String),
    /// A file that is not served, by its path in the repository.
    File(String),
}

/// Resolves a link in a document below `ops/docs`.
fn target(file: &str, link: &str) -> Target {
    if link.starts_with('#') || link.starts_with("http://") || link.starts_with("https://") {
        return Target::Page(link.to_owned());
    }
    let (to, anchor) = link.split_once('#').map_or((link, ""), |(to, anchor)| (to, anchor));
    let mut parts: Vec<&str> = vec!["ops", "docs"];
    parts.extend(file.split('/'));
    parts.pop();
    for part in to.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let whole = parts.join("/");
    let page = whole.strip_prefix("ops/docs/").and_then(|file| file.strip_suffix(".md")).and_then(path_of);
    match page {
        Some(page) if anchor.is_empty() || page.contains('#') => Target::Page(page),
        Some(page) => Target::Page(format!("{page}#{anchor}")),
        None => Target::File(whole),
    }
}

/// The id of a heading: its words in lower case with hyphens, as repositories make them.
fn id_of(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The text of a heading or paragraph that begins after some event.
fn text_of<'a>(events: impl Iterator<Item = &'a Event<'a>>) -> String {
    let until_end = events.take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_) | TagEnd::Paragraph)));
    until_end
        .map(|event| match event {
            Event::Text(text) | Event::Code(text) => &**text,
            Event::SoftBreak | Event::HardBreak => " ",
            _ => "",
        })
        .collect()
}

/// The first paragraph as plain text. The rest of the document is not parsed.
pub(super) fn first_paragraph(source: &str) -> String {
    let block = source.split("\n\n").map(str::trim).find(|block| !block.is_empty() && !block.starts_with('#')).unwrap_or_default();
    let events: Vec<Event<'_>> = Parser::new_ext(block, OPTIONS).collect();
    text_of(events.iter())
}

/// The parts of a document: the id and the words of each heading of the second level.
pub(super) fn parts(source: &str) -> Vec<(String, String)> {
    let events: Vec<Event<'_>> = Parser::new_ext(source, OPTIONS).collect();
    let is_part = |event: &Event<'_>| matches!(event, Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }));
    let words = events.iter().enumerate().filter(|(_, event)| is_part(event)).map(|(at, _)| text_of(events.iter().skip(at + 1)));
    words.map(|words| (id_of(&words), words)).collect()
}

/// The HTML of a document: every text escaped, headings with ids, and no style.
pub(super) fn html(file: &str, source: &str) -> String {
    let events: Vec<Event<'_>> = Parser::new_ext(source, OPTIONS).collect();
    let (mut out, mut unlinked, mut tables, mut blocks) = (Vec::with_capacity(events.len()), Vec::new(), 0, 0);
    for (index, event) in events.iter().enumerate() {
        let event = match event.clone() {
            // Raw HTML is shown, not used.
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let id = id_of(&text_of(events.iter().skip(index + 1)));
                Event::Start(Tag::Heading { level, id: Some(id.into()), classes, attrs })
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => match target(file, &dest_url) {
                Target::Page(page) => Event::Start(Tag::Link { link_type, dest_url: page.into(), title, id }),
                Target::File(path) => {
                    unlinked.push(path);
                    continue;
                }
            },
            Event::End(TagEnd::Link) if !unlinked.is_empty() => {
                let path = unlinked.pop().unwrap_or_default();
                out.push(Event::Text(CowStr::Borrowed(" (")));
                out.push(Event::Code(path.into()));
                Event::Text(CowStr::Borrowed(")"))
            }
            // The alignment of a column would be written as a style.
            Event::Start(Tag::Table(columns)) => {
                tables += 1;
                let name = format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table {tables}\">");
                out.push(Event::Html(name.into()));
                Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))
            }
            Event::End(TagEnd::Table) => {
                out.push(Event::End(TagEnd::Table));
                Event::Html(CowStr::Borrowed("</div>\n"))
            }
            Event::Start(Tag::CodeBlock(_)) => {
                blocks += 1;
                let begin = format!("<pre class=\"copy\" tabindex=\"0\" role=\"region\" aria-label=\"Example {blocks}\"><code>");
                Event::Html(begin.into())
            }
            Event::End(TagEnd::CodeBlock) => Event::Html(CowStr::Borrowed("</code></pre>\n")),
            // An image of the documents is not served; its words are.
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => continue,
            event => event,
        };
        out.push(event);
    }
    let mut html = String::with_capacity(source.len() * 2);
    push_html(&mut html, out.into_iter());
    // Texts are escaped, so these are elements of the renderer.
    html.replace("<table>", "<table class=\"grid\">").replace("<th>", "<th scope=\"col\">")
}

/// The Markdown of a document with links from the root of the server.
pub(super) fn markdown(file: &str, source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut copied = 0;
    for (event, range) in Parser::new_ext(source, OPTIONS).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. }) = event else { continue };
        let Target::Page(page) = target(file, &dest_url) else { continue };
        let written = source.get(range.clone()).unwrap_or_default();
        // An inline link ends with its address; a link of another form is left as it is.
        let Some(at) = written.rfind(&format!("]({dest_url}")).map(|at| range.start + at + 2) else { continue };
        if !page.starts_with('/') || at < copied {
            continue;
        }
        let page = if page.starts_with("/docs/") {
            page
        } else {
            page.split_once('#').map_or_else(|| format!("{page}.md"), |(page, anchor)| format!("{page}.md#{anchor}"))
        };
        out += source.get(copied..at).unwrap_or_default();
        out += &page;
        copied = at + dest_url.len();
    }
    out + source.get(copied..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that raw HTML is shown as text, that code is escaped, and that tables and code need no style.
    #[test]
    fn documents_are_inert() {
        let source = "# One `two`\n\n<script>alert(1)</script>\n\nA <b onclick=x>b</b>.\n\n| a | b |\n|--:|---|\n| <i> | `<x>` |\n\n```html\n<script>\n```\n";
        let html = html("guides/x", source);
        assert!(html.contains("<h1 id=\"one-two\">One <code>two</code></h1>"), "{html}");
        assert!(!html.contains("<script") && !html.contains("<b ") && !html.contains("<i>") && !html.contains("style"), "{html}");
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && html.contains("<code>&lt;x&gt;</code>"), "{html}");
        assert!(html.contains("<table class=\"grid\">") && html.contains("<th scope=\"col\">a</th>"), "{html}");
        assert!(html.contains("aria-label=\"Example 1\"><code>&lt;script&gt;"), "{html}");
    }

    /// Proves where links lead: to pages of documents, to headings, to other sites, and nowhere if the file is not served.
    #[test]
    fn links() {
        let source = "[a](webhooks.md#x) [b](../reference/limits.md) [c](../errors/internal.md) [d](../../examples/topics.py) [e](https://x.org/) [f](#g)";
        let html = html("guides/agents", source);
        for link in ["/guides/webhooks#x", "/guides/reference/limits", "/docs/errors#internal", "https://x.org/", "#g"] {
            assert!(html.contains(&format!("href=\"{link}\"")), "{link}: {html}");
        }
        assert!(html.contains("d (<code>ops/examples/topics.py</code>)"), "{html}");
        assert_eq!(
            markdown("guides/agents", source),
            "[a](/guides/webhooks.md#x) [b](/guides/reference/limits.md) [c](/docs/errors#internal) [d](../../examples/topics.py) [e](https://x.org/) [f](#g)"
        );
        assert_eq!(
            parts("# T\n\n## One `two`\n\n### x\n\n## `<b>`\n"),
            [("one-two", "One two"), ("b", "<b>")].map(|(id, words)| (id.to_owned(), words.to_owned()))
        );
        assert_eq!(first_paragraph("# T\n\nOne `two`\nthree.\n\nFour."), "One two three.");
    }
}

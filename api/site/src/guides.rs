//! The guides and reference pages of `ops/docs`, embedded at build, as pages and as Markdown.
//!
//! Raw HTML in a document is shown as text. A relative link leads to the page of the document; where the document is not served, such as a source file, its
//! path is shown instead of a link.

mod list;
mod render;

use maud::{Markup, PreEscaped, html};
use operation::problem::Problem;
use pages::Page;
use schemas::error_code::ErrorCode;

use self::list::{ALL, Part};
pub use self::list::{Guide, all};
pub use crate::paths::GUIDES as PATH;
use crate::response::{Rendered, respond};

/// The path of the index as Markdown.
pub const MARKDOWN_INDEX: &str = "/guides.md";
/// The content type of Markdown.
const MARKDOWN: &str = "text/markdown; charset=utf-8";
/// The most characters of the first paragraph that an index shows.
const SUMMARY_CHARS_MAX: usize = 240;

/// A document with so many parts has a list of them on its page.
const PARTS_MIN: usize = 3;

/// Renders the index, or the document at a path. A document is rendered when it is asked for, so that a server starts without.
pub(crate) fn render(path: &str, site_url: &str) -> Rendered {
    if path == PATH {
        return respond(Ok(index()), site_url);
    }
    if path == MARKDOWN_INDEX {
        return Rendered { status: 200, html: markdown_index(site_url), content_type: MARKDOWN };
    }
    if let Some(guide) = ALL.iter().find(|guide| path.strip_suffix(".md").is_some_and(|path| path == guide.path())) {
        return Rendered { status: 200, html: guide.markdown(), content_type: MARKDOWN };
    }
    let guide = ALL.iter().find(|guide| guide.path() == path);
    respond(guide.map(Guide::page).ok_or_else(|| Problem::new(ErrorCode::NotFound, "there is no such guide")), site_url)
}

impl Guide {
    /// The beginning of its first paragraph, as plain text.
    #[must_use]
    pub fn summary(&self) -> String {
        let whole = render::first_paragraph(self.source);
        let sentence = whole.split_inclusive(". ").next().unwrap_or_default().trim();
        sentence.chars().take(SUMMARY_CHARS_MAX).collect()
    }

    /// The document as Markdown, with links that work at its path.
    fn markdown(&self) -> String {
        render::markdown(self.file, self.source)
    }

    /// The page of the document.
    fn page(&self) -> Page<'static> {
        let parts = render::parts(self.source);
        let main = html! {
            nav.crumbs aria-label="Breadcrumb" { a href=(PATH) { "Guides" } " / " span aria-current="page" { (self.title()) } }
            div.split {
                // The renderer escapes every text.
                article.prose { (PreEscaped(render::html(self.file, self.source))) }
                aside {
                    @if parts.len() >= PARTS_MIN {
                        nav aria-label="On this page" {
                            h2 { "On this page" }
                            ul.plain { @for (id, words) in &parts { li { a href={ "#" (id) } { (words) } } } }
                        }
                    }
                    nav aria-label="Guides" {
                        h2 { (self.part.title()) }
                        (links(self.part, Some(self)))
                    }
                    p.soft { a href={ (self.path()) ".md" } { "This page as Markdown" } }
                }
            }
        };
        // Some guides have the names of services, whose explorers have these titles.
        let title = format!("{}: {}", self.title(), self.part.kind());
        Page { title, description: self.summary(), canonical: self.path(), main, ..Page::default() }
    }
}

fn links(part: Part, current: Option<&Guide>) -> Markup {
    html! {
        ul.plain {
            @for guide in ALL.iter().filter(|guide| guide.part == part) {
                @let is_current = current.is_some_and(|current| current.file == guide.file);
                li { a href=(guide.path()) aria-current=[is_current.then_some("page")] { (guide.title()) } }
            }
        }
    }
}

/// The index of all documents.
fn index() -> Page<'static> {
    let main = html! {
        h1 { "Guides" }
        p.lead { "How to use the services, how to run them, and where to look things up. Each operation is in the reference of its service." }
        @for part in Part::ALL {
            h2 { (part.title()) }
            ul.plain.hits {
                @for guide in ALL.iter().filter(|guide| guide.part == part) {
                    li { a href=(guide.path()) { (guide.title()) } p.soft { (guide.summary()) } }
                }
            }
        }
        p.soft { a href=(MARKDOWN_INDEX) { "This page as Markdown" } }
    };
    let description = "Guides to the change feeds: pages, streams, webhooks, agents, receipts, payments, and running a server.".to_owned();
    Page { title: "Guides".to_owned(), description, canonical: PATH.to_owned(), main, ..Page::default() }
}

/// The list of documents for `llms.txt`, with whole addresses: its readers often have nothing to resolve others against.
#[must_use]
pub fn llms(site_url: &str) -> String {
    ALL.iter().map(|guide| entry(guide, site_url)).collect()
}

fn entry(guide: &Guide, site_url: &str) -> String {
    format!("- [{}]({site_url}{}.md): {}\n", guide.title(), guide.path(), guide.summary())
}

/// The index as Markdown.
fn markdown_index(site_url: &str) -> String {
    let part = |part: Part| {
        let entries: String = ALL.iter().filter(|guide| guide.part == part).map(|guide| entry(guide, site_url)).collect();
        format!("\n## {}\n\n{entries}", part.title())
    };
    Part::ALL.into_iter().fold("# Guides\n".to_owned(), |index, one| index + &part(one))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::list::path_of;
    use super::*;

    /// Proves that every guide and reference page is served.
    #[test]
    fn every_document_is_listed() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/docs");
        for folder in ["guides", "reference", "operations/runbooks"] {
            for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let file = format!("{folder}/{}", name.trim_end_matches(".md"));
                assert!(path_of(&file).is_some(), "{file} is not in the list of guides");
            }
        }
    }

    /// Proves that a document is also served as Markdown, and that another path is a page that says so.
    #[test]
    fn markdown_and_unknown_guides() {
        let markdown = render("/guides/troubleshooting.md", "");
        assert_eq!((markdown.status, markdown.content_type), (200, "text/markdown; charset=utf-8"));
        assert!(markdown.html.starts_with("# Troubleshooting") && markdown.html.contains("(/guides/payments.md)"), "{}", markdown.html);
        let index = render("/guides.md", "http://a.example");
        assert_eq!((index.status, index.content_type), (200, MARKDOWN));
        assert!(
            index.html.contains("\n## Use it\n\n- [") && index.html.contains("](http://a.example/guides/troubleshooting.md): "),
            "{}",
            index.html
        );
        for unknown in ["/guides/none", "/guides/none.md", "/guides/.md"] {
            assert_eq!(render(unknown, "").status, 404, "{unknown}");
        }
    }

    /// Proves that the title of a page says that it is a guide or a reference, and not the explorer or the page of the same name.
    #[test]
    fn titles_say_what_a_page_is() {
        for (path, title) in [("/guides/parcels", "Parcels: guide"), ("/guides/reference/errors", "Errors: reference")] {
            let html = render(path, "").html;
            assert!(html.contains(&format!("<title>{title} · Highwater</title>")), "{html}");
        }
    }

    /// Proves that every document has a title, a summary and one first heading, that nothing in it runs, and that each of its links leads to a page,
    /// another site or a heading that exists.
    #[test]
    fn pages_are_whole() {
        let pages: Vec<(String, String)> = all().map(|guide| (guide.path(), render(&guide.path(), "").html)).collect();
        for (guide, (path, page)) in all().zip(&pages) {
            assert!(!guide.summary().is_empty() && !guide.title().is_empty(), "{path}");
            assert_eq!(page.matches("<h1").count(), 1, "{path}");
            for inline in ["<style", " style=", "<script>", " onclick="] {
                assert!(!page.contains(inline), "{path} has {inline}");
            }
            for (id, _) in render::parts(guide.source) {
                assert!(page.contains(&format!("id=\"{id}\"")), "{path} has no part {id}");
            }
            let article = page.split("<article").nth(1).and_then(|rest| rest.split("</article>").next()).unwrap();
            for link in article.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let (to, anchor) = link.split_once('#').map_or((link, None), |(to, anchor)| (to, Some(anchor)));
                let to = if to.is_empty() { path.as_str() } else { to };
                if to.starts_with("https://") || to.starts_with("http://") || to == "/docs/errors" {
                    continue;
                }
                let target = pages.iter().find(|(path, _)| path == to);
                assert!(target.is_some(), "{path} links to {link}");
                let has_anchor = anchor.is_none_or(|anchor| target.is_some_and(|(_, page)| page.contains(&format!("id=\"{anchor}\""))));
                assert!(has_anchor, "{path} links to {link}, which has no such heading");
            }
        }
        let troubleshooting = render("/guides/troubleshooting", "").html;
        assert!(
            troubleshooting.contains("On this page</h2>")
                && troubleshooting.contains("<li><a href=\"#i-get-0-rows\">I get 0 rows</a></li>")
        );
        let index = render(PATH, "").html;
        assert!(
            all()
                .all(|guide| index.contains(&format!("href=\"{}\"", guide.path())) && llms("").contains(&format!("({}.md)", guide.path())))
        );
    }
}

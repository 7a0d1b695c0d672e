//! The shell of all pages for browsers: head, header and footer, and the files that they use.
//!
//! Promises: every text in a page is escaped, because pages are written with maud's [`html!`]. No page has a script or style of its own: both are files
//! with a fingerprint in their path, so that the content security policy can forbid everything else.

use maud::{DOCTYPE, Markup, html};

pub mod assets;

use assets::{ICON, SCRIPT, STYLE};

/// The path of the portal of an account. All its pages are below, and so is the path of its cookie.
pub const ACCOUNT: &str = "/account";
/// The path below which the explorers of the site are, and its search.
pub const EXPLORE: &str = "/explore";
/// The path of the page that finds and verifies receipts.
pub const RECEIPTS: &str = "/verify";
/// The content security policy of the pages: scripts, styles, images and requests of this server only, and none inline.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
                          form-action 'self'; frame-ancestors 'none'";
/// The longest description of a page, in characters.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// Renders a text with the two marks that descriptions use: empty lines between paragraphs, backticks around code.
#[must_use]
pub fn paragraphs(text: &str) -> Markup {
    html! {
        @for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            p { (inline(paragraph)) }
        }
    }
}

/// Renders the inside of a paragraph.
#[must_use]
pub fn inline(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// A text in single quotes, for a shell.
#[must_use]
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A page before it is put into the layout.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// The title.
    pub title: String,
    /// One sentence for search engines and previews.
    pub description: String,
    /// The public URL of the server, without a slash at the end.
    pub site_url: &'a str,
    /// The address under which the page is known, after `site_url` and without a query; empty for a page without one.
    pub canonical: String,
    /// The address of the Atom feed that has what the page shows, for feed readers that are given the page; empty for a page without one.
    pub feed: String,
    /// The words of the search field in the header.
    pub search: &'a str,
    /// The HTTP status.
    pub status: u16,
    /// The content of `main`.
    pub main: Markup,
}

impl Default for Page<'_> {
    fn default() -> Self {
        let [title, description, canonical, feed] = [const { String::new() }; 4];
        Self { title, description, site_url: "", canonical, feed, search: "", status: 200, main: html! {} }
    }
}

/// A text without the marks that turn the direction of what follows. Titles and descriptions have no element that ends them, as `bdi` does in a page, so a mark
/// in the title of a record would turn around the rest of the title in tabs, bookmarks and search engines.
fn undirected(text: &str) -> String {
    let is_mark = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| !is_mark(*c)).collect()
}

/// The HTML of a page.
#[must_use]
pub fn layout(page: &Page<'_>) -> String {
    let description: String = undirected(&page.description).chars().take(DESCRIPTION_CHARS_MAX).collect();
    let named = undirected(&page.title);
    let title = if page.canonical == "/" { named.clone() } else { format!("{named} · Highwater") };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                @if !description.is_empty() { meta name="description" content=(description); }
                @if page.canonical.is_empty() {
                    meta name="robots" content="noindex";
                } @else {
                    // Search engines take no relative address here.
                    link rel="canonical" href={ (page.site_url) (page.canonical) };
                }
                @if !page.feed.is_empty() { link rel="alternate" type="application/atom+xml" title=(named) href=(page.feed); }
                meta name="color-scheme" content="light dark";
                link rel="icon" type="image/svg+xml" href=(ICON.path);
                link rel="stylesheet" href=(STYLE.path);
                script src=(SCRIPT.path) defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    div.wide {
                        a.brand href="/" { img src=(ICON.path) alt="" width="24" height="24"; "Highwater" }
                        // The home page has a search of its own.
                        @if page.canonical != "/" {
                            form.find role="search" action=(EXPLORE) method="get" {
                                label.hidden for="find" { "Search all services" }
                                input #find type="search" name="q" value=(page.search) placeholder="Search all services" maxlength="200" autocomplete="off";
                                button { "Search" }
                            }
                        }
                        nav aria-label="Site" {
                            a href="/#services" { "Services" }
                            a href="/#live" { "Live" }
                            a href="/#use" { "API" }
                            a href="/guides" { "Guides" }
                            a href="/status" { "Status" }
                            a href=(ACCOUNT) { "Account" }
                        }
                    }
                }
                main #main .wide { (page.main) }
                footer {
                    div.wide {
                        p { "Public records as change feeds. Pages show what the API shows without a key." }
                        nav aria-label="More" {
                            a href="/account/webhooks" { "Webhooks" }
                            a href="/docs/errors" { "Errors" }
                            a href="/asyncapi.json" { "AsyncAPI" }
                            a href="/schemas/" { "Avro schemas" }
                            a href="/llms.txt" { "llms.txt" }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

/// A table with the headings of its columns. It scrolls on its own where it is wider than the page; `name` says what it holds.
#[must_use]
pub fn table(name: &str, headings: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) {
            table.grid {
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody { (rows) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a shell reads a quoted text as one word, also one with quotes and what a shell would replace.
    #[test]
    fn texts_are_quoted_for_a_shell() {
        assert_eq!(shell_quoted("a $b `c`"), "'a $b `c`'");
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
    }

    /// Proves that marks of direction do not leave the title of a record, whose letters of any script stay.
    #[test]
    fn titles_have_no_direction() {
        let marked = "\u{202e}a\u{2066}\u{5d0}\u{200f}\u{61c}\u{1f98a}";
        let page = Page { title: marked.to_owned(), description: marked.to_owned(), feed: "/x".to_owned(), ..Page::default() };
        let html = layout(&page);
        assert!(html.contains("<title>a\u{5d0}\u{1f98a} · Highwater</title>") && html.contains("content=\"a\u{5d0}\u{1f98a}\""), "{html}");
        assert!(html.contains("title=\"a\u{5d0}\u{1f98a}\"") && !html.contains('\u{202e}'), "{html}");
    }

    /// Proves that texts cannot break out of their place in a page.
    #[test]
    fn texts_are_escaped() {
        let main = paragraphs("a `<b>` \"c\" & d\n\n<img src=x>");
        let page = layout(&Page { title: "<script>".to_owned(), main, ..Page::default() });
        assert!(page.contains("<title>&lt;script&gt; · Highwater</title>"));
        assert!(page.contains("noindex") && !page.contains("canonical") && !page.contains("alternate"));
        let known = Page { site_url: "http://a.example", canonical: "/x".to_owned(), ..Page::default() };
        assert!(layout(&known).contains("<link rel=\"canonical\" href=\"http://a.example/x\">"));
        assert!(page.contains("<p>a <code>&lt;b&gt;</code> &quot;c&quot; &amp; d</p><p>&lt;img src=x&gt;</p>"), "{page}");
    }
}

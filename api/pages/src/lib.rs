//! Pages for browsers: rendered by the server, without scripts and without external resources.
//!
//! Promise: every text in a page is escaped, because pages are written with maud's [`html!`].

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#17212b;--soft:#5b6b7a;--line:#d9e0e6;--ground:#fff;--shade:#f4f7f9;--link:#0b62a4}\
@media(prefers-color-scheme:dark){:root{--ink:#e4eaf0;--soft:#9aa9b7;--line:#33404c;--ground:#12181e;--shade:#1a222a;--link:#6db8f2}}\
*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,sans-serif}\
main,header,footer{max-width:60rem;margin:0 auto;padding:1.25rem}header{border-bottom:1px solid var(--line)}\
header a{font-weight:600;text-decoration:none}footer{color:var(--soft);border-top:1px solid var(--line);font-size:.875rem}\
a{color:var(--link)}h1{font-size:1.75rem;margin:.5rem 0}h2{margin-top:2.25rem;font-size:1.25rem}h3{margin-bottom:.25rem;font-size:1.05rem}\
code,pre{font:.875em/1.5 ui-monospace,monospace;background:var(--shade);border-radius:.25rem}code{padding:.1em .3em}\
pre{padding:.75rem;overflow-x:auto}pre code{padding:0}.soft{color:var(--soft)}.verb{font-weight:700}\
table{border-collapse:collapse;width:100%;margin:.75rem 0}th,td{text-align:left;vertical-align:top;padding:.4rem .6rem .4rem 0;border-bottom:1px solid var(--line)}\
th{font-size:.8rem;color:var(--soft);font-weight:600}section{margin:1.5rem 0}.card{border:1px solid var(--line);border-radius:.5rem;padding:1rem 1.25rem}";

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

/// A page with a title around a body.
#[must_use]
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { a href="/" { "Highwater" } }
                main { (body) }
                footer { "Change feeds of public records. " a href="/llms.txt" { "llms.txt" } }
            }
        }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that texts cannot break out of their place in a page.
    #[test]
    fn texts_are_escaped() {
        let page = page("<script>", &paragraphs("a `<b>` \"c\" & d\n\n<img src=x>"));
        assert!(page.contains("<title>&lt;script&gt;</title>"));
        assert!(page.contains("<p>a <code>&lt;b&gt;</code> &quot;c&quot; &amp; d</p><p>&lt;img src=x&gt;</p>"), "{page}");
    }
}

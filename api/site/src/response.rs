//! A page as it is answered.

use operation::problem::Problem;
use pages::{Page, layout};

use crate::layout::problem;

/// The content type of a page.
const HTML: &str = "text/html; charset=utf-8";

/// A rendered page.
pub struct Rendered {
    /// The HTTP status.
    pub status: u16,
    /// The HTML, or the text of another type.
    pub html: String,
    /// The content type.
    pub content_type: &'static str,
}

pub(crate) fn respond(page: Result<Page<'_>, Problem>, site_url: &str) -> Rendered {
    let page = Page { site_url, ..page.unwrap_or_else(|refused| problem(&refused)) };
    Rendered { status: page.status, html: layout(&page), content_type: HTML }
}

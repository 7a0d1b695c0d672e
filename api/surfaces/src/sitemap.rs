//! `robots.txt` and `sitemap.xml`: which pages search engines read.

use operation::Service;
use operation::context::ServiceSettings;

/// `robots.txt`: all pages, without searches and filters, of which there is no end.
pub(crate) fn robots(site_url: &str) -> String {
    format!(
        "User-agent: *\nDisallow: {explore}?\nDisallow: {explore}/*?\nDisallow: {live}\nAllow: /\n\nSitemap: {site_url}/sitemap.xml\n",
        explore = site::EXPLORE,
        live = site::live::PATH
    )
}

/// `sitemap.xml`: the pages that do not depend on records.
pub(crate) fn sitemap<'a>(site_url: &str, services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>) -> String {
    let fixed = ["", site::EXPLORE, site::ENTITIES, site::VERIFY, site::STATUS, site::guides::PATH, "/docs/errors"]
        .map(|path| format!("{site_url}{path}"));
    let guides = site::guides::all().map(|guide| format!("{site_url}{}", guide.path()));
    let of_services = services
        .flat_map(|(service, settings)| [format!("{site_url}{}/{}", site::EXPLORE, service.name), format!("{}/docs", settings.base_url)]);
    let mut document =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n".to_owned();
    // A sitemap lists pages of its own site only.
    for url in fixed.into_iter().chain(guides).chain(of_services).filter(|url| url.starts_with(site_url)) {
        document += &format!("<url><loc>{}</loc></url>\n", url.replace('&', "&amp;").replace('<', "&lt;"));
    }
    document + "</urlset>\n"
}

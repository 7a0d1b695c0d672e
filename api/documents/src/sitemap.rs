//! `robots.txt` and `sitemap.xml`: which pages search engines read.

use operation::Service;
use operation::context::ServiceSettings;

/// `robots.txt`: all pages, without searches and filters, of which there is no end.
#[must_use]
pub fn robots(site_url: &str) -> String {
    format!(
        "User-agent: *\nDisallow: {explore}?\nDisallow: {explore}/*?\nDisallow: {entities}/*?\nDisallow: {verify}?\nDisallow: {live}\nAllow: /\n\n\
         Sitemap: {site_url}/sitemap.xml\n",
        explore = site::EXPLORE,
        entities = site::ENTITIES,
        verify = site::VERIFY,
        live = site::live::PATH
    )
}

/// `sitemap.xml`: the pages that do not depend on records, and only those that this server has.
pub fn sitemap<'a>(site_url: &str, services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>) -> String {
    let services: Vec<(&Service, &ServiceSettings)> = services.collect();
    let issues_receipts = services.iter().any(|(service, _)| service.operations.iter().any(|operation| operation.name == "verify_receipt"));
    let fixed = ["/", site::EXPLORE, site::ENTITIES, site::VERIFY, site::STATUS, site::guides::PATH, "/docs/errors"];
    let fixed = fixed.into_iter().filter(|path| *path != site::VERIFY || issues_receipts).map(|path| format!("{site_url}{path}"));
    let guides = site::guides::all().map(|guide| format!("{site_url}{}", guide.path()));
    let of_services = services
        .iter()
        .flat_map(|(service, settings)| [format!("{site_url}{}/{}", site::EXPLORE, service.name), format!("{}/docs", settings.base_url)]);
    let mut document =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n".to_owned();
    // A sitemap lists pages of its own site only.
    for url in fixed.chain(guides).chain(of_services).filter(|url| url.starts_with(site_url)) {
        document += &format!("<url><loc>{}</loc></url>\n", url.replace('&', "&amp;").replace('<', "&lt;"));
    }
    document + "</urlset>\n"
}

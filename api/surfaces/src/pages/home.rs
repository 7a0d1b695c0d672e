//! `GET /`: the services of this listener.

use operation::Service;
use operation::context::ServiceSettings;
use pages::{escape, page, words};

/// The home page: every service with its links.
pub(crate) fn render<'a>(services: impl Iterator<Item = (&'a Service, &'a ServiceSettings)>) -> String {
    let mut body =
        "<h1>Highwater</h1><p>Public records as change feeds: what the agencies publish, in one order, over REST, MCP and NDJSON.</p>"
            .to_owned();
    let mut any = false;
    for (service, settings) in services {
        any = true;
        let base = escape(&settings.base_url);
        let reads = service.operations.len();
        body += &format!(
            "<section class=\"card\"><h2 style=\"margin-top:0\"><a href=\"{base}/docs\">{}</a></h2>{}<p class=\"soft\">{reads} operations · \
             <a href=\"{base}/docs\">Reference</a> · <a href=\"{base}/openapi.json\">OpenAPI</a> · <a href=\"{base}/llms.txt\">llms.txt</a> · \
             MCP at <code>{base}/mcp</code></p></section>",
            escape(service.title),
            words(service.about),
        );
    }
    if !any {
        body += "<p>No service is enabled on this server.</p>";
    }
    body += "<p>The same data as Kafka topics: <a href=\"/asyncapi.json\">AsyncAPI</a>, <a href=\"/schemas/\">Avro schemas</a>.</p>";
    body += "<p>With a key: <a href=\"/webhooks\">your webhooks</a> with their status and attempts.</p>";
    body += "<p class=\"soft\">For operators: <a href=\"/healthz\">liveness</a>, <a href=\"/readyz\">readiness</a>, <a href=\"/metrics\">metrics</a>.</p>";
    page("Highwater", &body)
}

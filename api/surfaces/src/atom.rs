//! A page of a feed as an Atom document (RFC 4287), for feed readers.
//!
//! Promises: a document shows what the same page shows as JSON, and nothing else: each entry is made from the change that the feed's operation returned
//! for this caller. It is well-formed whatever the texts of records contain. The id of an entry never changes; it follows from what the feed shows to
//! everybody, so it tells nothing about hidden fields. No link contains an API key.

use std::borrow::Cow;

use documents::plain_text::plain_text;
use documents::wire::ATOM;
use operation::feed_start::NEWEST;
use operation::{Event, Operation, Price};
use proofs::hash::Hash32;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event as Xml};
use serde_json::{Map, Value};

use crate::mounted_service::Mounted;

const NAMESPACE: &str = "http://www.w3.org/2005/Atom";
/// The path of a record by its id, which services with such a route have.
const RECORD_PATH: &str = "/v1/records/{id}";
/// The arguments that select a page of a feed. The others select the feed.
const PAGE_ARGUMENTS: [&str; 6] = ["cursor", "start", "limit", "wait", "asOf", "rebase"];
/// The time of a document before the first change: every document must have one.
const NEVER: &str = "1970-01-01T00:00:00Z";

/// What a document needs to know of its feed and of the request.
pub(crate) struct Document<'a> {
    pub(crate) mounted: &'a Mounted,
    pub(crate) operation: &'a Operation,
    /// The public URL of the site, without a slash at the end.
    pub(crate) site_url: &'a str,
    /// The validated arguments of the request, without the API key.
    pub(crate) arguments: Map<String, Value>,
}

impl Document<'_> {
    /// Renders the items of a page. `updated`: the time of the document if it has no items. `older`: the cursor at which the page before it ends, if it has the
    /// last changes and there are some before them. `next`: the cursor after it, if there are more changes.
    pub(crate) fn render(&self, items: &[Event], updated: Option<&str>, older: Option<&str>, next: Option<&str>) -> Vec<u8> {
        let mut out = Elements(Writer::new(Vec::new()));
        let changes: Vec<(Value, &[u8])> =
            items.iter().filter_map(|item| Some((serde_json::from_slice(&item.data).ok()?, item.data.as_ref()))).collect();
        let service = &self.mounted.service;
        let updated = changes.last().and_then(|(change, _)| text_of(change, "recordedAt")).or(updated).unwrap_or(NEVER);
        let title = match self.arguments.get("filter").and_then(Value::as_str) {
            Some(filter) => format!("{}: {filter}", service.title),
            None => service.title.to_owned(),
        };
        let is_of_feed = |name: &str| !PAGE_ARGUMENTS.contains(&name);
        out.write(Xml::Decl(BytesDecl::new("1.0", Some("utf-8"), None)));
        out.write(Xml::Start(BytesStart::new("feed").with_attributes([("xmlns", NAMESPACE)])));
        out.text("id", &self.url(is_of_feed, &[]));
        out.text("title", &title);
        out.text("updated", updated);
        out.write(Xml::Start(BytesStart::new("author")));
        out.text("name", service.title);
        out.write(Xml::End(BytesEnd::new("author")));
        out.link("self", ATOM, &self.url(|_| true, &[]));
        out.link("alternate", "text/html", &format!("{}/docs", self.mounted.settings.base_url));
        if let Some(older) = older {
            // A page that ends at a cursor has nothing to wait for.
            let is_kept = |name: &str| !["cursor", "start", "rebase", "wait"].contains(&name);
            out.link("previous", ATOM, &self.url(is_kept, &[("cursor", older), ("start", NEWEST)]));
        }
        if let Some(next) = next {
            out.link("next", ATOM, &self.url(|name| !["cursor", "start", "rebase"].contains(&name), &[("cursor", next)]));
        }
        for (change, text) in &changes {
            self.entry(&mut out, change, &String::from_utf8_lossy(text));
        }
        out.write(Xml::End(BytesEnd::new("feed")));
        out.0.into_inner()
    }

    /// The URL of the document, with those arguments of the request that `is_wanted` selects, and those that say which page it is.
    fn url(&self, is_wanted: impl Fn(&str) -> bool, page: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.arguments.iter().filter(|(name, _)| is_wanted(name)) {
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            query.extend_pairs(values.iter().map(|value| (name, plain_text(value))));
        }
        query.extend_pairs(page);
        let (query, path) = (query.finish(), self.operation.atom_path().unwrap_or_default());
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{path}{mark}{query}", self.mounted.settings.base_url)
    }

    /// Writes the entry of one change. `text` is the change as JSON.
    fn entry(&self, out: &mut Elements, change: &Value, text: &str) {
        let record = change.get("record").unwrap_or(change);
        let (event, recorded_at) = (text_of(change, "event").unwrap_or_default(), text_of(change, "recordedAt").unwrap_or(NEVER));
        out.write(Xml::Start(BytesStart::new("entry")));
        out.text("id", &entry_id(self.mounted.service.name, change));
        out.text("title", &format!("{event}: {}", self.name(change, record)));
        out.text("updated", recorded_at);
        out.text("published", recorded_at);
        out.category(event);
        if change.get("backfill") == Some(&Value::Bool(true)) {
            out.category("backfill");
        }
        if let Some((id, operation)) = site::page_id(record).zip(self.record_operation()) {
            // The site shows what callers without a key see.
            if operation.price == Price::Free {
                let path = site::record_path(self.mounted.service.name, id);
                out.link("alternate", "text/html", &format!("{}{path}", self.site_url));
            }
            let path = RECORD_PATH.replace("{id}", &site::url::segment(id));
            out.link("alternate", "application/json", &format!("{}{path}", self.mounted.settings.base_url));
        }
        if let Some(url) = text_of(record, "url").filter(|url| site::url::followed_host(url).is_some()) {
            out.link("related", "text/html", url);
        }
        out.text("content", text);
        out.write(Xml::End(BytesEnd::new("entry")));
    }

    /// The operation that answers with a record by its id; `None` if the service has none.
    fn record_operation(&self) -> Option<&Operation> {
        self.mounted.service.operations.iter().find(|operation| operation.has_route() && operation.path == RECORD_PATH)
    }

    /// The words that name a change's record, from the fields that the caller sees.
    fn name(&self, change: &Value, record: &Value) -> String {
        let unnamed = || format!("change {}", change.get("seq").map(plain_text).unwrap_or_default());
        site::record_name(record, &self.mounted.service.page).unwrap_or_else(unnamed)
    }
}

/// The id of an entry: a UUID (version 8, RFC 9562) from the hash of what identifies the change and every caller sees of it. The hash that links the change
/// into the service's log is not used: it would confirm guesses about fields that are hidden from the caller.
fn entry_id(service: &str, change: &Value) -> String {
    let seq = change.get("seq").map(plain_text).unwrap_or_default();
    let shown = ["event", "recordedAt"].map(|name| text_of(change, name).unwrap_or_default());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Hash32::of_parts(&[service.as_bytes(), seq.as_bytes(), shown[0].as_bytes(), shown[1].as_bytes()]).0[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = proofs::hash::hex(&bytes);
    format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The text in a field of an object.
fn text_of<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

/// Leaves out the characters that XML 1.0 forbids, even escaped.
fn allowed(text: &str) -> Cow<'_, str> {
    let is_forbidden = |c: char| matches!(c, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(is_forbidden) { Cow::Owned(text.replace(is_forbidden, "")) } else { Cow::Borrowed(text) }
}

/// The elements of a document.
struct Elements(Writer<Vec<u8>>);

impl Elements {
    fn write(&mut self, event: Xml<'_>) {
        if let Err(error) = self.0.write_event(event) {
            // Writing to memory does not fail.
            tracing::error!(%error, "an Atom document cannot be written");
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        self.write(Xml::Start(BytesStart::new(name)));
        self.write(Xml::Text(BytesText::new(&allowed(text))));
        self.write(Xml::End(BytesEnd::new(name)));
    }

    fn link(&mut self, relation: &str, media_type: &str, url: &str) {
        let url = allowed(url);
        let attributes = [("rel", relation), ("type", media_type), ("href", &*url)];
        self.write(Xml::Empty(BytesStart::new("link").with_attributes(attributes)));
    }

    fn category(&mut self, term: &str) {
        self.write(Xml::Empty(BytesStart::new("category").with_attributes([("term", &*allowed(term))])));
    }
}

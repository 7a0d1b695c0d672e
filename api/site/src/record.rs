//! The page of a record: its fields with the change that gave each value, its upstream pages, and every version with what differs.

use std::collections::{BTreeMap, HashMap};

use futures_util::future::join;
use maud::{Markup, html};
use operation::problem::Problem;
use pages::{Page, assets};
use serde_json::Value;

use crate::account::register;
use crate::difference::difference;
use crate::entities;
use crate::fields::{at, count, day_of, detail, grouped, is_empty, is_internal, label, link_words, name, time, title, whole};
use crate::layout::{note, notice};
use crate::row::event;
use crate::this_view::{View, address, this_view};
use crate::url::followed_host;
use crate::{Pairs, Reads, SiteService, filters, meanings, receipts, sources, url};

/// The versions that one page shows.
const VERSIONS: u64 = 25;
/// The most upstream pages that are listed.
const LINKS_MAX: usize = 20;
/// How deep links are looked for in a record.
const LINK_DEPTH_MAX: usize = 4;

/// The page.
pub(crate) async fn page<'a>(reads: &'a dyn Reads, shown: SiteService<'a>, id: &str, pairs: &Pairs) -> Result<Page<'a>, Problem> {
    let as_of: Pairs = pairs.iter().filter(|(name, _)| name == "asOf").cloned().collect();
    let by_id = || [vec![("id".to_owned(), id.to_owned())], as_of.clone()].concat();
    let answer = reads.read(shown.service.name, "record", by_id()).await?;
    let earlier: Pairs = pairs.iter().filter(|(name, _)| name == "after").cloned().collect();
    let arguments = [by_id(), vec![("limit".to_owned(), VERSIONS.to_string())], earlier.clone()].concat();
    let merged = async {
        if earlier.is_empty()
            && let Some(operation) = shown.operation(sources::OPERATION)
        {
            reads.read(shown.service.name, operation.name, by_id()).await.ok()
        } else {
            None
        }
    };
    let (history, merged) = join(reads.read(shown.service.name, "record_history", arguments), merged).await;
    let is_current = as_of.is_empty() && earlier.is_empty();
    // A change between the two reads would attribute the values of another version.
    let merged = merged.filter(|merged| merged["seq"] == answer["seq"]).unwrap_or_default();
    let (history, refusal) = match history {
        Ok(history) => (history, None),
        Err(problem) => (Value::Null, Some(problem)),
    };
    let record = &answer["record"];
    let (title, detail) = (title(record, shown.service.page.title), detail(record, &shown.service.page));
    let named = name(record, &shown.service.page);
    // The answer has the id under which the record is known now, which may differ from a number that was asked for.
    let known = answer["id"].as_str().unwrap_or(id);
    let path = shown.record(known);
    let origins = if earlier.is_empty() { origins(&history) } else { BTreeMap::new() };
    let links = links(record);
    let entities = entities::links(reads, &shown, record);
    let operation = shown.operation("record");
    let webhook = register::of_record(&shown, record);
    let main = html! {
        nav.crumbs aria-label="Breadcrumb" {
            a href="/" { "Home" } " / " a href=(shown.explorer()) { (shown.service.title) } " / " span aria-current="page" { bdi { (known) } }
        }
        h1 {
            bdi { (title) }
            @if !detail.is_empty() { " " span.detail { bdi { (detail) } } }
        }
        p.state {
            (event(answer["event"].as_str().unwrap_or_default())) " "
            "Last changed " (time(answer["recordedAt"].as_str().unwrap_or_default())) " by "
            a href="#versions" { "change " span.number { (grouped(answer["seq"].as_i64().unwrap_or(0))) } }
        }
        (note(&answer))
        @if let Some((_, day)) = as_of.first() { p.notice { "This is the record as of " bdi { (day) } ". " a href=(path) { "Show it as it is now" } } }
        div.split {
            section aria-labelledby="fields" {
                h2 #fields { "Fields" }
                (fields(&shown, record, &origins, &sources::by_field(&merged)))
                (sources::section(&merged))
                @if !sources::has_notices(&merged) && !is_current && shown.operation(sources::OPERATION).is_some() {
                    p.soft { "Which notice gave each value is known for the current version. " a href=(path) { "Show it" } }
                }
            }
            aside aria-label="About this record" {
                @if !links.is_empty() {
                    h2 { "Upstream pages" }
                    ul.plain.links {
                        @for (name, link) in &links {
                            li { a href=(link) rel="noopener noreferrer nofollow ugc" title=(label(name)) { bdi { (link_words(link)) } } }
                        }
                    }
                }
                @if !entities.is_empty() {
                    h2 { "In all services" }
                    ul.plain { @for (words, link) in &entities { li { a href=(link) { bdi { (words) } } } } }
                }
                h2 { "Place in the chain" }
                dl.nested {
                    div { dt { "Change" } dd.number { (grouped(answer["seq"].as_i64().unwrap_or(0))) } }
                    @for name in ["contentHash", "verifyHash"] {
                        @if let Some(hash) = record[name].as_str() { div { dt { (label(name)) } dd { code { bdi { (hash) } } } } }
                    }
                    div { dt { "Signed checkpoint" } dd { a href={ (shown.settings.base_url) "/checkpoint" } { "checkpoint" } } }
                }
                (proof(reads, &shown, known, answer["seq"].as_u64().unwrap_or(0)))
                h2 { "Follow it" }
                ul.plain {
                    @if let Some(webhook) = &webhook {
                        li { a href=(webhook.form) { "Watch this" } " " span.soft { "with a key" } }
                    }
                    @if let Some(operation) = operation {
                        li { a href=(address(&shown, &View { operation, arguments: by_id() })) { "This record as JSON" } }
                    }
                    @if let Some(operation) = shown.operation("record_history") {
                        li { a href=(address(&shown, &View { operation, arguments: by_id() })) { "Its versions as JSON" } }
                    }
                }
                form.as-of method="get" action=(path) {
                    label for="as-of" { "As of" }
                    input #as-of type="date" name="asOf" value=(as_of.first().map_or("", |(_, time)| filters::day(time)));
                    button { "Show" }
                }
            }
        }
        section aria-labelledby="versions" {
            h2 #versions { "Versions" }
            @if let Some(problem) = &refusal { (notice(&problem.detail, problem.code)) }
            (timeline(&history))
            @if let Some(next) = history["next"].as_u64() {
                nav.pager aria-label="Versions" { a href={ (path) (url::query(&[("after", next.to_string())])) } { "Earlier versions" } }
            }
        }
        @if let Some(operation) = operation { (this_view(&shown, &View { operation, arguments: by_id() }, webhook.as_ref(), "")) }
    };
    let description = format!("{named}. {}: fields, sources and every version.", shown.service.title);
    Ok(Page { title: named, description, canonical: path, main, ..Page::default() })
}

/// The proof of the place in the chain, which the script checks: that the change is a leaf of the signed tree of its service. Receipts have a tree of their
/// own, and a page that checks them.
fn proof(reads: &dyn Reads, shown: &SiteService<'_>, id: &str, seq: u64) -> Markup {
    let issuer = receipts::issuer(reads);
    if issuer.is_some_and(|issuer| issuer.service.name == shown.service.name) {
        return html! { p { a href=(receipts::receipt_page(shown, id)) { "Verify this receipt in your browser" } } };
    }
    if shown.operation("prove_consistency").is_none() {
        return html! {};
    }
    let keys = issuer.map(|issuer| format!("{}/pubkey", issuer.settings.prefix));
    html! {
        // Without the script, the button does nothing.
        div #proof hidden data-seq=(seq) data-tree={ (shown.settings.prefix) "/" } data-keys=[keys] {
            p.soft {
                "The checkpoint signs a tree whose leaves are the hashes of all changes of this service, this one included: nobody can alter or remove it later "
                "without being found out. Readers of Kafka compute the same hash from the change itself."
            }
            button type="button" { "Check the proof in this browser" }
            p.verdict.small #verdict role="status" {}
            ul.plain #checks {}
        }
        script src=(assets::VERIFY.path) defer {}
    }
}

/// Since when a field has its value.
struct Origin<'a> {
    seq: u64,
    recorded_at: &'a str,
    /// Whether an earlier version that is not shown may already have had the value.
    is_at_latest: bool,
}

impl<'a> Origin<'a> {
    fn of(version: &'a Value, is_at_latest: bool) -> Self {
        let (seq, recorded_at) = (version["seq"].as_u64().unwrap_or(0), version["recordedAt"].as_str().unwrap_or_default());
        Self { seq, recorded_at, is_at_latest }
    }
}

/// The version that gave each field the value which it has, from the versions of a record, newest first.
fn origins(history: &Value) -> BTreeMap<String, Origin<'_>> {
    let versions = history["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_cut = !history["next"].is_null() || history["note"].is_string();
    let mut out = BTreeMap::new();
    for version in versions {
        for name in version["changed"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            out.entry(name.to_owned()).or_insert_with(|| Origin::of(version, false));
        }
    }
    if let Some(first) = versions.last() {
        for name in first["record"].as_object().into_iter().flatten().map(|(name, _)| name) {
            // The first version that is shown may not be the first that there is.
            let is_at_latest = is_cut && first["event"] != "new";
            out.entry(name.to_owned()).or_insert_with(|| Origin::of(first, is_at_latest));
        }
    }
    out
}

/// The fields of a record, those that matter first, each with the change that gave its value and the notices that have it. Empty ones are named together.
fn fields(
    shown: &SiteService<'_>,
    record: &Value,
    origins: &BTreeMap<String, Origin<'_>>,
    notices: &HashMap<&str, Vec<(usize, &str)>>,
) -> Markup {
    let hints = shown.service.page;
    let titled = hints.title.iter().find(|path| !is_empty(at(record, path)));
    let first = titled.into_iter().chain(hints.columns).filter_map(|path| path.split('.').next());
    let last = ["id", "url", "urls"];
    let mut names: Vec<&str> = Vec::new();
    let all = record.as_object();
    for name in first.chain(all.into_iter().flatten().map(|(name, _)| name.as_str())) {
        if !names.contains(&name) && !is_internal(name) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| last.contains(name) && titled != Some(name));
    let (empty, names): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| is_empty(at(record, name)));
    let is_known = |name: &&str| all.is_some_and(|fields| fields.contains_key(*name));
    let empty: Vec<String> = empty.into_iter().filter(is_known).map(|name| label(name).to_lowercase()).collect();
    html! {
        dl.fields {
            @for name in names {
                div {
                    dt { (label(name)) }
                    dd { (whole(name, at(record, name))) }
                    @if let Some(origin) = origins.get(name) {
                        dd.since {
                            "since " (day_of(origin.recorded_at)) @if origin.is_at_latest { " or earlier" } ", "
                            a href={ "#change-" (origin.seq) } { "change " (count(origin.seq)) }
                            @for (index, (at, number)) in notices.get(name).into_iter().flatten().enumerate() {
                                @if index == 0 { ", from " } @else { " and " }
                                a href={ "#" (sources::anchor(*at)) } { bdi { (number) } }
                            }
                        }
                    }
                }
            }
        }
        @if !empty.is_empty() { p.soft { "Not stated: " (empty.join(", ")) "." } }
        (meanings::of_record(shown, record))
    }
}

/// Every link of a record to a page, with the name of its field, each once.
fn links(record: &Value) -> Vec<(&str, &str)> {
    let mut out = Vec::new();
    collect_links("", record, 0, &mut out);
    out
}

fn collect_links<'a>(name: &'a str, value: &'a Value, depth: usize, out: &mut Vec<(&'a str, &'a str)>) {
    if depth > LINK_DEPTH_MAX || out.len() >= LINKS_MAX {
        return;
    }
    match value {
        Value::String(text) if followed_host(text).is_some() && !out.iter().any(|(_, known)| known == text) => out.push((name, text)),
        Value::Array(items) => items.iter().for_each(|item| collect_links(name, item, depth + 1, out)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| collect_links(name, value, depth + 1, out)),
        _ => {}
    }
}

/// The versions of a record, newest first, each with what differs from the one before.
fn timeline(history: &Value) -> Markup {
    let versions = history["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        (note(history))
        ol.timeline {
            @for (index, version) in versions.iter().enumerate() {
                @let changed: Vec<&str> = version["changed"].as_array().into_iter().flatten().filter_map(Value::as_str).filter(|name| !is_internal(name)).collect();
                @let before = versions.get(index + 1).map(|before| &before["record"]);
                li id={ "change-" (version["seq"].as_u64().unwrap_or(0)) } {
                    p {
                        (event(version["event"].as_str().unwrap_or_default())) " "
                        (time(version["recordedAt"].as_str().unwrap_or_default())) " "
                        span.soft { "change " (count(version["seq"].as_u64().unwrap_or(0))) }
                        @if version["backfill"] == true { " " span.soft { "recorded late" } }
                    }
                    @if changed.is_empty() {
                        p.soft { @if version["event"] == "new" { "The first version." } @else { "No field differs that is shown." } }
                    } @else {
                        dl.diff {
                            @for name in changed {
                                div {
                                    dt { (label(name)) }
                                    dd {
                                        (difference(name, before.map(|before| &before[name]), &version["record"][name]))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that a field has its value since the newest version that changed it, and that nothing is claimed about versions that are not shown.
    #[test]
    fn fields_know_their_version() {
        let version = |seq: u64, changed: &[&str], event: &str| json!({ "seq": seq, "recordedAt": format!("2026-11-0{seq}T00:00:00Z"), "event": event, "changed": changed, "record": {"a": 1, "b": 2, "c": 3} });
        let versions = vec![version(9, &["a"], "modified"), version(5, &["a", "b"], "modified"), version(2, &[], "new")];
        let whole = json!({ "versions": versions, "next": null });
        let found = origins(&whole);
        assert_eq!(["a", "b", "c"].map(|name| (found[name].seq, found[name].is_at_latest)), [(9, false), (5, false), (2, false)]);
        let cut = json!({ "versions": &versions[..2], "next": 5 });
        let found = origins(&cut);
        assert_eq!(["a", "b", "c"].map(|name| (found[name].seq, found[name].is_at_latest)), [(9, false), (5, false), (5, true)]);
        assert!(origins(&Value::Null).is_empty());
    }

    /// Proves that links are found wherever they are in a record, each once, and only those that are followed.
    #[test]
    fn links_of_a_record() {
        let record =
            json!({ "url": "https://a.example/1", "urls": ["https://a.example/1", "http://b.example"], "x": {"y": "javascript:alert(1)"} });
        assert_eq!(links(&record), [("url", "https://a.example/1"), ("urls", "http://b.example")]);
    }

    /// Proves that a version shows the value before and after, both escaped.
    #[test]
    fn differences() {
        let history = json!({ "versions": [
            { "seq": 2, "event": "modified", "recordedAt": "2026-11-02T00:00:00Z", "changed": ["title"], "record": {"title": "<b>new</b>"} },
            { "seq": 1, "event": "new", "recordedAt": "2026-11-01T00:00:00Z", "changed": [], "record": {"title": "<i>old"} },
        ], "next": null });
        let shown = timeline(&history).into_string();
        assert!(
            shown.contains("<bdi>&lt;i&gt;old</bdi></del><ins>") && shown.contains("<bdi>&lt;b&gt;new&lt;/b&gt;</bdi></ins>"),
            "{shown}"
        );
        assert!(shown.contains("id=\"change-2\"") && shown.contains("The first version."), "{shown}");
    }
}

//! Entity pages: what all services have about a company, an institution or a contractor. Each shows the answer of one operation, whose sections link to the
//! explorers of their services.

use maud::{Markup, html};
use operation::Operation;
use operation::problem::Problem;
use pages::{Page, table};
use schemas::error_code::ErrorCode;
use serde_json::Value;

use crate::fields::{at, cell, is_empty, label, time, whole};
use crate::filters::{has_filter, help, late_news};
use crate::layout::{note, notice};
use crate::list_kind::ListKind;
use crate::row::{Row, named};
use crate::this_view::{View, this_view};
use crate::{ENTITIES, Pairs, Reads, SiteService, meanings, page_id, url};

/// The most columns of a table, besides the name of a record.
const COLUMNS_MAX: usize = 5;
/// The most names of one field that a record links to.
const NAMES_MAX: usize = 4;
/// The shortest name that the operations of entities take, in characters.
const NAME_CHARS_MIN: usize = 2;
/// The longest value of a field of the form, in characters.
const VALUE_CHARS_MAX: usize = 200;

/// The operations that show entities, with their services: those whose answers have sections.
fn kinds<'a>(reads: &'a dyn Reads) -> Vec<(SiteService<'a>, &'a Operation)> {
    let is_entity = |operation: &&Operation| operation.has_route() && operation.output.pointer("/properties/sections").is_some();
    let entities_of = |shown: SiteService<'a>| {
        shown.service.operations.iter().filter(is_entity).map(move |operation| (shown, operation)).collect::<Vec<_>>()
    };
    reads.services().into_iter().flat_map(entities_of).collect()
}

/// Whether some operation shows entities.
pub(crate) fn are_served(reads: &dyn Reads) -> bool {
    !kinds(reads).is_empty()
}

/// The links from a record to the entities that it names: for each the words and the address.
pub(crate) fn links(reads: &dyn Reads, shown: &SiteService<'_>, record: &Value) -> Vec<(String, String)> {
    let is_served = |kind: &str| kinds(reads).iter().any(|(_, operation)| operation.name == kind);
    let mut links = Vec::new();
    for link in shown.service.entities {
        let value = |field: &str| at(record, field).as_str().unwrap_or_default().trim().to_owned();
        let given: Pairs =
            link.arguments.iter().map(|(name, field)| ((*name).to_owned(), value(field))).filter(|(_, value)| !value.is_empty()).collect();
        let has_first = link.arguments.first().is_some_and(|(name, _)| given.iter().any(|(given, _)| given == name));
        if !has_first || !is_served(link.kind) {
            continue;
        }
        // Several owners are one text.
        for name in url::value(&given, "name").split("; ").take(NAMES_MAX).filter(|name| name.chars().count() <= VALUE_CHARS_MAX) {
            let value = |key: &str, value: &str| if key == "name" { name.to_owned() } else { value.to_owned() };
            let named: Pairs = given.iter().map(|(key, given)| (key.clone(), value(key, given))).collect();
            if !name.is_empty() {
                links.push((format!("{} {name}", label(link.kind)), format!("{ENTITIES}/{}{}", link.kind, url::query(&named))));
            }
        }
    }
    links
}

/// The links from a name that somebody searches for to the entities of that name. Nothing if no such page takes the name.
pub(crate) fn of_name(reads: &dyn Reads, name: &str) -> Markup {
    let kinds = kinds(reads);
    let is_name = (NAME_CHARS_MIN..=VALUE_CHARS_MAX).contains(&name.chars().count());
    html! {
        @if is_name && !kinds.is_empty() {
            section aria-labelledby="as-a-whole" {
                h2 #as-a-whole { "As one party" }
                p { "If this is the name of one, these pages have what all services record about it:" }
                p.shortcuts {
                    @for (_, operation) in &kinds {
                        a href={ (ENTITIES) "/" (operation.name) (url::query(&[("name", name)])) } { (label(operation.name)) " " bdi { "“" (name) "”" } }
                    }
                }
            }
        }
    }
}

/// The page of all kinds of entities: a form for each.
pub(crate) fn overview(reads: &dyn Reads) -> Page<'static> {
    let kinds = kinds(reads);
    let main = html! {
        h1 { "Companies, institutions and contractors" }
        p.lead { "What all services have about one of them, on one page." }
        @if kinds.is_empty() { p.empty { "No service of this server shows entities." } }
        @for (_, operation) in &kinds {
            section {
                h2 { a href={ (ENTITIES) "/" (operation.name) } { (label(operation.name)) } }
                p { (operation.summary) }
                (form(operation, &Pairs::new()))
            }
        }
    };
    let description = "Public records about one company, institution or contractor, from all services.".to_owned();
    Page {
        title: "Companies, institutions and contractors".to_owned(),
        description,
        canonical: ENTITIES.to_owned(),
        main,
        ..Page::default()
    }
}

/// The page of one entity, or the form for its kind.
///
/// # Errors
/// `not-found` for a kind that is not served.
pub(crate) async fn page<'a>(reads: &'a dyn Reads, kind: &str, pairs: &Pairs) -> Result<Page<'a>, Problem> {
    let unknown = || Problem::new(ErrorCode::NotFound, "this server shows no such entities");
    let (shown, operation) = kinds(reads).into_iter().find(|(_, operation)| operation.name == kind).ok_or_else(unknown)?;
    let name = url::value(pairs, "name").to_owned();
    let path = format!("{ENTITIES}/{kind}");
    // The operation says what is wrong with a query, also with one without a name or with a field that it does not take.
    let answer = if pairs.is_empty() { None } else { Some(reads.read(shown.service.name, operation.name, pairs.clone()).await) };
    let status = answer.as_ref().and_then(|answer| answer.as_ref().err()).map_or(200, |problem| problem.code.status());
    let title = if name.is_empty() { label(kind) } else { name.clone() };
    let main = html! {
        nav.crumbs aria-label="Breadcrumb" {
            a href="/" { "Home" } " / " a href=(ENTITIES) { "Entities" } " / " span aria-current="page" { (label(kind)) }
        }
        h1 { bdi { (title) } @if !name.is_empty() { " " span.detail { (label(kind)) } } }
        @if name.is_empty() { p.lead { (operation.summary) } }
        (form(operation, pairs))
        @match &answer {
            None => {}
            Some(Err(problem)) => {
                (notice(&problem.detail, problem.code))
                @if name.is_empty() { p { "This page needs a name. Numbers and tickers are given in addition to it, each in its own field." } }
            }
            Some(Ok(answer)) => {
                (facts(answer))
                (note(answer))
                p.soft {
                    "The lists show what a caller without a key sees: redacted forms where a service has them, and the free window of each service."
                }
                @for section in answer["sections"].as_array().into_iter().flatten() { (part(reads, section)) }
                (this_view(&shown, &View { operation, arguments: pairs.clone() }, None, ""))
            }
        }
    };
    let description = if name.is_empty() { operation.summary.to_owned() } else { format!("{name}: {}", operation.summary) };
    // There is no end of names, so only the form is for search engines.
    let canonical = if name.is_empty() { path } else { String::new() };
    Ok(Page { title, description, canonical, status, main, ..Page::default() })
}

/// The arguments that a visitor gives, with their schemas.
fn properties(operation: &Operation) -> impl Iterator<Item = (&String, &Value)> {
    let properties = operation.input.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.filter(|(name, _)| !["limit", "asOf"].contains(&name.as_str()))
}

/// The form of a kind: the name first.
fn form(operation: &Operation, pairs: &Pairs) -> Markup {
    let mut fields: Vec<(&String, &Value)> = properties(operation).collect();
    fields.sort_by_key(|(name, _)| name.as_str() != "name");
    let required = operation.input["required"].as_array();
    let meant = meanings::of_fields("What the fields mean", fields.iter().map(|(name, schema)| (name.as_str(), help(schema))));
    html! {
        form.filters method="get" action={ (ENTITIES) "/" (operation.name) } aria-label=(label(operation.name)) {
            @for (name, schema) in fields {
                @let id = format!("{}-{name}", operation.name);
                div.field {
                    label for=(id) title=(help(schema)) { (label(name)) }
                    input id=(id) type="text" name=(name) value=(url::value(pairs, name)) maxlength=(VALUE_CHARS_MAX)
                        required[required.is_some_and(|required| required.iter().any(|one| one == name))];
                }
            }
            div.actions { button.primary { "Show" } }
        }
        (meant)
    }
}

/// The numbers by which the entity is known.
fn facts(answer: &Value) -> Markup {
    let known = ["ticker", "cik", "uei"].into_iter().filter(|name| !is_empty(&answer[*name]));
    html! {
        dl.facts {
            @for name in known { div { dt { (label(name)) } dd { (cell(name, &answer[name])) } } }
            div { dt { "As of" } dd { (time(answer["asOf"].as_str().unwrap_or_default())) } }
        }
    }
}

/// What one service has.
fn part(reads: &dyn Reads, section: &Value) -> Markup {
    let text = |name: &str| section[name].as_str().unwrap_or_default();
    let shown = reads.services().into_iter().find(|shown| shown.service.name == text("service"));
    let mut rows: Vec<Row> = section["rows"].as_array().into_iter().flatten().map(row).collect();
    // Some operations list changes, of which a record has several.
    Row::first_of_each(&mut rows);
    let id = format!("section-{}", text("topic").replace(' ', "-"));
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (label(text("topic"))) }
            @match (text("problem"), shown) {
                ("", Some(shown)) => {
                    p.soft { "Found by " (text("foundBy")) "." }
                    (note(section))
                    @if rows.is_empty() { p.empty { "None that is shown without a key." } } @else { (list(&shown, text("topic"), &rows)) }
                    p { a href=(explorer(&shown, section)) { @if section["truncated"] == true { "All" } @else { "More" } " in " (shown.service.title) } }
                }
                (problem, shown) => {
                    p.empty { bdi { (problem) } }
                    @if let Some(shown) = shown { p { a href=(explorer(&shown, section)) { "Look in " (shown.service.title) } } }
                }
            }
        }
    }
}

/// A row of an operation: a change with its record, or a record.
fn row(row: &Value) -> Row {
    let record = if row["record"].is_object() { row["record"].clone() } else { row.clone() };
    Row::of_record(record)
}

/// The rows as a table: their names, and the fields by which the explorer shows such records, or the first ones that they have.
fn list(shown: &SiteService<'_>, topic: &str, rows: &[Row]) -> Markup {
    let page = &shown.service.page;
    let has = |column: &str| rows.iter().any(|row| !is_empty(at(&row.record, column)));
    let hinted = page.columns.iter().copied().filter(|column| has(column) && !page.title.contains(column));
    let own = rows.first().and_then(|row| row.record.as_object()).into_iter().flatten().map(|(name, _)| name.as_str());
    let is_plain = |column: &str| rows.iter().all(|row| !at(&row.record, column).is_object() && !at(&row.record, column).is_array());
    let others = own.filter(|column| has(column) && is_plain(column) && !["id", "url"].contains(column) && !page.title.contains(column));
    let mut columns: Vec<&str> = hinted.collect();
    for column in others {
        if columns.len() < COLUMNS_MAX && !columns.contains(&column) {
            columns.push(column);
        }
    }
    columns.truncate(COLUMNS_MAX);
    let labels: Vec<String> = columns.iter().map(|column| label(column)).collect();
    let headings: Vec<&str> = std::iter::once("Record").chain(labels.iter().map(String::as_str)).collect();
    table(
        &format!("Rows of {topic}"),
        &headings,
        &html! {
            @for row in rows {
                tr {
                    th scope="row" {
                        (named(shown, row))
                        // Without an id, the page of the upstream is the only one.
                        @if page_id(&row.record).is_none() && !is_empty(&row.record["url"]) { " " (whole("url", &row.record["url"])) }
                    }
                    @for column in &columns { td { (cell(column, at(&row.record, column))) } }
                }
            }
        },
    )
}

/// The explorer with the filter of a section, as far as a visitor may use it.
fn explorer(shown: &SiteService<'_>, section: &Value) -> String {
    let filter: Pairs = section["filter"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let takes_all = |operation: &Operation| filter.iter().all(|(name, _)| has_filter(operation, name));
    let Some((kind, operation)) = shown.free_list(takes_all) else { return shown.explorer() };
    let late_news = late_news(operation).filter(|_| kind == ListKind::Changes);
    shown.explorer_of(kind, filter.into_iter().chain(late_news))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{HOSTILE, Made};

    /// Proves that an entity page has a section for each service, also for one that does not answer, with links to the explorers and to the records,
    /// that its texts are inert, and that without a name it is a form.
    #[test]
    fn sections() {
        let mut made = Made::new();
        let rows = json!([{ "id": "A/1", "title": HOSTILE, "kind": "a" }, { "record": { "id": "A/2", "title": "Two", "kind": "b" } },
                           { "record": { "id": "A/2", "title": "Two before", "kind": "b" } }]);
        let section = |topic: &str| json!({ "topic": topic, "service": "made", "foundBy": "the ticker", "rows": rows, "truncated": true, "filter": { "keyword": "x y" } });
        let mut silent = section("trials");
        silent["problem"] = json!("this server does not serve <b>");
        made.answers.insert(
            "company",
            json!({ "name": HOSTILE, "ticker": "ACME", "asOf": "2026-11-28T12:00:00Z", "note": "names can differ",
                    "sections": [section("insider trades"), silent] }),
        );
        let html = made.page("/entities/company?name=Acme&utm_source=x").html;
        assert!(html.contains("id=\"section-insider-trades\">Insider trades</h2>") && html.contains("Found by the ticker."), "{html}");
        assert!(html.contains("href=\"/explore/made?view=records&amp;keyword=x+y\">All in Made &lt;up&gt;"), "{html}");
        assert!(!html.contains("Two before"), "each record is shown once, as it is now: {html}");
        assert!(html.contains("href=\"/explore/made/A%2F1\"") && html.contains("href=\"/explore/made/A%2F2\""), "{html}");
        assert!(html.contains("this server does not serve &lt;b&gt;") && !html.contains("<script>alert"), "{html}");
        let read = made.read.lock().unwrap().iter().find(|(name, _)| name == "company").unwrap().1.clone();
        assert_eq!(read, [("name".to_owned(), "Acme".to_owned())]);
        let form = made.page("/entities/company").html;
        assert!(form.contains("What the fields mean</summary>") && form.contains("<dt>Name</dt><dd>Words.</dd>"), "{form}");
        assert!(form.contains("name=\"name\"") && form.contains(" required") && !form.contains("Insider trades"), "{form}");
        assert!(made.page("/entities").html.contains("action=\"/entities/company\""));
        assert_eq!(made.page("/entities/none").status, 404);
    }

    /// Proves that a query without a name, or with a field that the operation does not take, reaches the operation, whose refusal the page shows with its
    /// status.
    #[test]
    fn refused_queries() {
        let made = Made::new();
        for (query, is_named) in [("ticker=MAPL", false), ("nam=x", false), ("name=Acme&uei=x", true)] {
            // The made service has no answer for this operation.
            let page = made.page(&format!("/entities/company?{query}"));
            assert!(page.status == 404 && page.html.contains("No &lt;record&gt; has this id"), "{query}: {}", page.html);
            assert_eq!(page.html.contains("This page needs a name."), !is_named, "{query}");
            let asked = made.read.lock().unwrap().iter().rfind(|(name, _)| name == "company").unwrap().1.clone();
            assert_eq!(asked, crate::url::pairs(query), "{query}");
        }
        assert_eq!(made.page("/entities/company?utm_source=x").status, 200);
    }

    /// Proves that a record links to the entities that it names, with the fields that it has, and that an empty first field links to none.
    #[test]
    fn records_link_to_entities() {
        let mut made = Made::new();
        let html = made.page("/explore/made/A%2F1").html;
        assert!(html.contains("href=\"/entities/company?name=a\">"), "{html}");
        made.answers.get_mut("record").unwrap()["record"]["kind"] = json!("Hill Foods LLC; Bo <b>");
        let html = made.page("/explore/made/A%2F1").html;
        assert!(html.contains("?name=Hill+Foods+LLC\"><bdi>Company Hill Foods LLC<") && html.contains("?name=Bo+%3Cb%3E\">"), "{html}");
        made.answers.get_mut("record").unwrap()["record"]["kind"] = json!("");
        assert!(!made.page("/explore/made/A%2F1").html.contains("/entities/company?"));
    }
}

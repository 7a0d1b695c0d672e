//! The explorer of a service: its records or changes under the filters of the API, with what happened over time.

use std::cmp::Ordering;
use std::collections::HashMap;

use futures_util::future::join3;
use maud::{Markup, html};
use operation::feed_start::{EARLIEST, NEWEST, is_start};
use operation::problem::Problem;
use operation::{Operation, Price};
use pages::Page;
use serde_json::Value;

use crate::account::{new_filter, register};
use crate::chart::{COUNTED, Share, breakdown, histogram};
use crate::fields::{at, cell, grouped, is_empty, label, text, time, title, today};
use crate::last_sync::last_sync;
use crate::layout::{note, notice};
use crate::list_kind::ListKind;
use crate::pulse::{Pulse, pulse};
use crate::row::{Row, event, linked};
use crate::this_view::{View, atom, this_view};
use crate::url::value;
use crate::{Pairs, Reads, SiteService, filters, meanings, url};

/// The rows of a page: as many as a caller without a key gets.
const ROWS: u64 = 25;
/// How many parts of the feed are read for counts.
const PARTS_MAX: u64 = 4;
/// The column of the titles of records, and that of the times of changes, as `sort` names them. No record has fields of these names.
const TITLE_COLUMN: &str = "record";
const TIME_COLUMN: &str = "recordedAt";
/// The parameters of a page that say where it continues.
const CONTINUED: [&str; 3] = ["after", "cursor", "until"];
/// The most values that a breakdown shows.
const SHARES_MAX: usize = 8;

/// The rows of a page, and how to get on.
#[derive(Default)]
struct Listing {
    rows: Vec<Row>,
    note: Option<Markup>,
    /// The arguments that continue, with their values; empty at the end.
    next: Vec<(&'static str, String)>,
}

/// The page.
pub(crate) async fn page<'a>(reads: &'a dyn Reads, shown: SiteService<'a>, pairs: &Pairs) -> Result<Page<'a>, Problem> {
    let hints = shown.service.page;
    let list = shown.operation(hints.list);
    let wanted = value(pairs, "view");
    let kind = if list.is_some() && wanted != ListKind::Changes.name() { ListKind::Records } else { ListKind::Changes };
    let feed = shown.filtered_feed().filter(|feed| feed.price == Price::Free);
    let (start, cursor) = (value(pairs, "start"), value(pairs, "cursor"));
    let is_placed = !(start.is_empty() && cursor.is_empty());
    let is_filtered = feed.is_some_and(|feed| !filters::given(feed, pairs).is_empty()) || is_placed;
    let changes = shown.operation("changes");
    let (operation, mut arguments) = match kind {
        ListKind::Records => (list, arguments_of(pairs)),
        ListKind::Changes if is_filtered || unknown(changes, pairs) => (feed.or(changes), arguments_of(pairs)),
        ListKind::Changes => (changes, arguments_of(pairs)),
    };
    let Some(operation) = operation else { return Err(Problem::new(schemas::error_code::ErrorCode::NotFound, "this service has no feed")) };
    if filters::takes(operation, "limit") {
        arguments.push(("limit".to_owned(), ROWS.to_string()));
    }
    let is_unfiltered = operation.name == "changes";
    let newest = kind == ListKind::Changes && is_unfiltered && cursor.is_empty() && (start.is_empty() || is_newest(pairs));
    if kind == ListKind::Changes && !is_unfiltered && !is_placed {
        arguments.push(("start".to_owned(), NEWEST.to_owned()));
    }
    let finding = async {
        if newest {
            newest_changes(reads, shown, pairs).await.map(|(listing, end)| (listing, Some(end)))
        } else {
            listed(reads, shown, kind, operation, &arguments).await.map(|listing| (listing, None))
        }
    };
    let counting = async { if newest && value(pairs, "until").is_empty() { None } else { recent_changes(reads, shown).await.ok() } };
    let (pulse, found, recent) = join3(pulse(reads, shown, Vec::new()), finding, counting).await;
    let pulse = pulse?;
    let (mut listing, refusal) = match found {
        Ok((listing, end)) => {
            if let Some(end) = end {
                arguments.retain(|(name, _)| !["asOf", "start"].contains(&name.as_str()));
                arguments.push(("start".to_owned(), NEWEST.to_owned()));
                arguments.extend(end);
            }
            (listing, None)
        }
        Err(problem) => (Listing::default(), Some(problem)),
    };
    let sort = value(pairs, "sort");
    if !sort.is_empty() {
        sort_rows(&mut listing.rows, sort, hints.title);
    }
    let counted = recent.as_deref().unwrap_or(&listing.rows);
    let shares = shares(&shown, counted, if kind == ListKind::Records { Some(operation) } else { feed });
    let form_of = match kind {
        ListKind::Records => Some(operation),
        ListKind::Changes => feed,
    };
    let path = shown.explorer();
    let day = today(reads.now_ms()).yesterday().map(|day| day.to_string()).unwrap_or_default();
    let view = View { operation, arguments };
    let is_filter = |(name, _): &&(String, String)| !filters::is_control(name);
    let given: Pairs = view.arguments.iter().filter(is_filter).cloned().collect();
    let webhook = register::of_filters(&shown, &given);
    // A feed reader has no key.
    let followed = atom(&shown, &view).filter(|(feed, _)| feed.price == Price::Free).map(|(_, address)| address).unwrap_or_default();
    let main = html! {
        nav.crumbs aria-label="Breadcrumb" { a href="/" { "Home" } " / " span aria-current="page" { (shown.service.title) } }
        h1 { (shown.service.title) }
        (about(shown.service.about))
        (facts(&shown, &pulse, reads.now_ms()))
        div.charts {
            (histogram(&pulse.days, &pulse.summary()))
            @if !shares.is_empty() {
                (breakdown(&format!("Newest changes by {}", label(hints.facet).to_lowercase()), counted.len(), &shares))
            }
        }
        @if list.is_some() && (kind == ListKind::Changes || shown.has_free_changes()) {
            nav.tabs aria-label="View" {
                @for (tab, words) in [(ListKind::Records, "Records"), (ListKind::Changes, "Changes")] {
                    a href=(shown.explorer_of(tab, [])) aria-current=[(tab == kind).then_some("page")] { (words) }
                }
            }
        } @else if list.is_some() { p.soft { "A key is needed to read the changes." } }
        @if kind == ListKind::Changes && feed.is_none() && shown.filtered_feed().is_some() {
            p.soft { "Without a key the changes are shown in their free form. Filters over changes need a key." }
        }
        (filters::form(&path, kind.name(), form_of, &[hints.searches, hints.slow_searches].concat(), kind == ListKind::Changes && feed.is_some(), pairs))
        @if let Some(address) = new_filter::address(&shown, pairs) {
            p { a href=(address) { "Save this filter" } " " span.soft { "for feeds, with a key" } }
        }
        @if let Some(note) = &listing.note { (note) }
        @if let Some(problem) = &refusal { (notice(&problem.detail, problem.code)) }
        @if kind == ListKind::Changes && !newest && !listing.rows.is_empty() { (order(&path, pairs, is_newest(&view.arguments))) }
        @if listing.rows.is_empty() { (nothing(&shown, kind, feed, pairs, !listing.next.is_empty())) } @else { (table(&shown, kind, &listing.rows, list, pairs)) }
        (pager(&path, pairs, &listing.next))
        (this_view(&shown, &view, webhook.as_ref(), &day))
    };
    Ok(Page {
        title: shown.service.title.to_owned(),
        description: shown.service.about.to_owned(),
        canonical: path,
        feed: followed,
        status: refusal.map_or(200, |problem| problem.code.status()),
        main,
        ..Page::default()
    })
}

/// Whether a query has arguments that an operation does not take, so that the filtered feed has to say what is wrong with them.
fn unknown(operation: Option<&Operation>, pairs: &Pairs) -> bool {
    arguments_of(pairs).iter().any(|(name, _)| operation.is_some_and(|operation| !filters::takes(operation, name)))
}

/// The arguments for the operation: everything in the query that is not the page's own.
fn arguments_of(pairs: &Pairs) -> Pairs {
    let own = ["view", "sort", "until", "limit"];
    pairs.iter().filter(|(name, _)| !own.contains(&name.as_str())).cloned().collect()
}

/// The answer of a list or of the filtered feed.
async fn listed(
    reads: &dyn Reads,
    shown: SiteService<'_>,
    kind: ListKind,
    operation: &Operation,
    arguments: &Pairs,
) -> Result<Listing, Problem> {
    let mut answer = reads.read(shown.service.name, operation.name, arguments.clone()).await?;
    let mut rows = Row::of_answer(&shown, operation, Some(kind), &mut answer);
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    let next = match kind {
        ListKind::Records => text("next").map(|next| vec![("after", next)]),
        ListKind::Changes if is_newest(arguments) && operation.name == "changes" => {
            Some(change_before(&answer)).filter(|before| *before > 0).map(|before| vec![("until", before.to_string())])
        }
        ListKind::Changes if is_newest(arguments) => text("older").map(|older| vec![("cursor", older), ("start", NEWEST.to_owned())]),
        ListKind::Changes => text("cursor").filter(|_| answer["hasMore"] == true).map(|next| vec![("cursor", next)]),
    }
    .unwrap_or_default();
    if kind == ListKind::Changes && is_newest(arguments) {
        rows.reverse();
    }
    Ok(Listing { rows, note: Some(note(&answer)), next })
}

/// The newest changes up to `until`, the newest first, and the arguments of the call that has them.
async fn newest_changes(reads: &dyn Reads, shown: SiteService<'_>, pairs: &Pairs) -> Result<(Listing, Pairs), Problem> {
    let (as_of, until) = (value(pairs, "asOf"), value(pairs, "until").parse::<u64>().ok());
    let mut end = Vec::new();
    end.extend(until.map(|until| ("cursor".to_owned(), reads.cursor_after(shown.service.name, until))));
    end.extend((!as_of.is_empty()).then(|| ("asOf".to_owned(), as_of.to_owned())));
    let part = newest_part(reads, shown, &end, ROWS).await?;
    let next = (part.after > 0).then(|| ("until", part.after.to_string())).into_iter().collect();
    Ok((Listing { rows: part.rows, note: Some(part.note), next }, end))
}

/// Changes of a feed, the newest first.
pub(crate) struct Part {
    pub(crate) rows: Vec<Row>,
    /// The change before them; 0 if there is none.
    after: u64,
    note: Markup,
}

/// The last changes of a feed up to `end`, which is a cursor or a time, or up to now.
///
/// # Errors
/// The errors of the operation `changes`.
pub(crate) async fn newest_part(reads: &dyn Reads, shown: SiteService<'_>, end: &Pairs, limit: u64) -> Result<Part, Problem> {
    let mut arguments = vec![("start".to_owned(), NEWEST.to_owned()), ("limit".to_owned(), limit.to_string())];
    arguments.extend(end.iter().cloned());
    let mut answer = reads.read(shown.service.name, "changes", arguments).await?;
    let note = note(&answer);
    let changes = match answer["changes"].take() {
        Value::Array(changes) => changes,
        _ => Vec::new(),
    };
    let after = change_before(&answer);
    Ok(Part { rows: changes.into_iter().rev().map(|change| Row::of_change(&shown, change)).collect(), after, note })
}

/// The change before the range that a page of `changes` covers; 0 if there is none. An empty range ends before the free window.
fn change_before(answer: &Value) -> u64 {
    let (from, to) = (answer["from"].as_u64().unwrap_or(0), answer["to"].as_u64().unwrap_or(0));
    if from > to { 0 } else { from.saturating_sub(1) }
}

/// The newest changes, for counts. Feeds are read backwards in a few parts.
async fn recent_changes(reads: &dyn Reads, shown: SiteService<'_>) -> Result<Vec<Row>, Problem> {
    let (mut rows, mut end) = (Vec::new(), Vec::new());
    for _ in 0..PARTS_MAX {
        let part = newest_part(reads, shown, &end, ROWS).await?;
        rows.extend(part.rows);
        if part.after == 0 {
            break;
        }
        end = vec![("cursor".to_owned(), reads.cursor_after(shown.service.name, part.after))];
    }
    Ok(rows)
}

/// How often the values of the service's facet occur, the most frequent first.
fn shares(shown: &SiteService<'_>, rows: &[Row], linked: Option<&Operation>) -> Vec<Share> {
    let facet = shown.service.page.facet;
    if facet.is_empty() {
        return Vec::new();
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let value = at(&row.record, facet);
        if !is_empty(value) {
            *counts.entry(text(value, 60)).or_default() += 1;
        }
    }
    let mut all: Vec<(String, usize)> = counts.into_iter().collect();
    all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let is_linked = linked.is_some_and(|operation| filters::has_filter(operation, facet));
    let is_of_list = linked.is_some_and(|operation| operation.name == shown.service.page.list);
    let kind = if is_of_list { ListKind::Records } else { ListKind::Changes };
    let link = |name: &str| {
        if is_linked { shown.explorer_of(kind, [(facet.to_owned(), name.to_owned())]) } else { String::new() }
    };
    all.into_iter().take(SHARES_MAX).map(|(name, count)| Share { link: link(&name), name, count }).collect()
}

/// The description of a service: its first sentence, and the rest on request.
fn about(text: &str) -> Markup {
    let (first, rest) = text.split_once(". ").map_or((text, ""), |(first, rest)| (first, rest));
    html! {
        p.lead { (first.trim_end_matches('.')) "." }
        @if !rest.is_empty() { details.about { summary { "More about this service" } p { (rest) } } }
    }
}

fn facts(shown: &SiteService<'_>, pulse: &Pulse, now_ms: i64) -> Markup {
    let health = &pulse.health;
    let count = |changes: u64| grouped(i64::try_from(changes).unwrap_or(i64::MAX));
    html! {
        dl.facts {
            div { dt { "Changes today" } dd { (count(pulse.today())) } }
            div { dt { "Changes recorded" } dd { (count(pulse.changes())) } }
            div { dt { "Last complete sync" } dd { (last_sync(shown, health, now_ms)) } }
            div { dt { "Complete through" } dd { (cell("", &health["throughDate"])) } }
            div { dt { "History since" } dd { (cell("", &Value::from(health["historyFrom"].as_str().and_then(|at| at.get(..10)).unwrap_or_default()))) } }
        }
        p.soft { (COUNTED) }
    }
}

/// Sorts the rows of a page by a column; `-` before its name means the largest first. `titles` are the fields that can name a record.
fn sort_rows(rows: &mut [Row], sort: &str, titles: &[&str]) {
    let (column, is_descending) = sort.strip_prefix('-').map_or((sort, false), |column| (column, true));
    let is_own = [TITLE_COLUMN, TIME_COLUMN].contains(&column);
    let compare = |one: &Row, other: &Row| -> Ordering {
        let words = |row: &Row| title(&row.record, titles).to_lowercase();
        match column {
            TITLE_COLUMN => return words(one).cmp(&words(other)),
            TIME_COLUMN => return one.recorded_at.cmp(&other.recorded_at),
            _ => {}
        }
        let (one, other) = (at(&one.record, column), at(&other.record, column));
        match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => text(one, 200).to_lowercase().cmp(&text(other, 200).to_lowercase()),
        }
    };
    rows.sort_by(|one, other| {
        // What is unknown comes last in both directions.
        let unknown = |row: &Row| !is_own && is_empty(at(&row.record, column));
        let order = if is_descending { compare(other, one) } else { compare(one, other) };
        unknown(one).cmp(&unknown(other)).then(order)
    });
}

/// A query with one pair replaced, or left out if its value is empty.
fn with(pairs: &Pairs, name: &str, value: &str, without: &[&str]) -> String {
    let mut all: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    all.retain(|(given, _)| *given != name && !without.contains(given));
    if !value.is_empty() {
        all.push((name, value));
    }
    url::query(&all)
}

/// The rows, and what their columns mean. `list` is the operation of the list of records.
fn table(shown: &SiteService<'_>, kind: ListKind, rows: &[Row], list: Option<&Operation>, pairs: &Pairs) -> Markup {
    let hints = shown.service.page;
    // A column in which nothing is known, or which repeats the titles, says nothing.
    let says = |row: &Row, column: &str| {
        let value = at(&row.record, column);
        !is_empty(value) && text(value, 400) != title(&row.record, hints.title)
    };
    let columns: Vec<&str> = hints.columns.iter().copied().filter(|column| rows.iter().any(|row| says(row, column))).collect();
    let is_number = |column: &str| rows.iter().any(|row| at(&row.record, column).is_number());
    let sort = value(pairs, "sort");
    let heading = |column: &str, words: &str| {
        let (is_up, is_down) = (sort == column, sort.strip_prefix('-') == Some(column));
        let next = if is_up { format!("-{column}") } else { column.to_owned() };
        let order = if is_up { Some("ascending") } else { is_down.then_some("descending") };
        html! {
            th scope="col" role="columnheader" aria-sort=[order] class=[is_number(column).then_some("number")] {
                a href=(with(pairs, "sort", &next, &[])) title="Sorts the rows of this page" {
                    (words) @if is_up { span aria-hidden="true" { " ↑" } } @if is_down { span aria-hidden="true" { " ↓" } }
                }
            }
        }
    };
    html! {
        table.rows role="table" {
            caption.hidden { (shown.service.title) ", " (kind.name()) }
            thead role="rowgroup" {
                tr role="row" {
                    (heading(TITLE_COLUMN, "Record"))
                    @for column in &columns { (heading(column, &label(column))) }
                    @if kind == ListKind::Changes { (heading(TIME_COLUMN, "Recorded")) }
                }
            }
            tbody role="rowgroup" {
                @for row in rows {
                    tr role="row" {
                        th scope="row" role="rowheader" {
                            (link(shown, row))
                            @if kind == ListKind::Changes && !row.details.is_empty() { span.what { bdi { (row.details) } } }
                        }
                        @for column in &columns {
                            @let value = at(&row.record, column);
                            td role="cell" data-label=(label(column)) class=[class_of(is_number(column), value)] { (cell(column, value)) }
                        }
                        @if kind == ListKind::Changes { td.recorded role="cell" data-label="Recorded" { (event(&row.event)) " " (time(&row.recorded_at)) } }
                    }
                }
            }
        }
        (meanings::of_columns(shown, list.filter(|_| kind == ListKind::Records), &columns))
    }
}

/// The class of a cell: numbers are aligned, and where a table has no columns, unknown values are left out.
fn class_of(is_number: bool, value: &Value) -> Option<&'static str> {
    if is_empty(value) { Some("unknown") } else { is_number.then_some("number") }
}

/// In which order a filtered feed has its changes, and the way to the other end of it.
fn order(path: &str, pairs: &Pairs, is_newest: bool) -> Markup {
    let other = if is_newest { EARLIEST } else { "" };
    html! {
        p.soft {
            @if is_newest { "The newest changes come first. " } @else { "The oldest changes come first. " }
            a href={ (path) (with(pairs, "start", other, &CONTINUED)) } {
                @if is_newest { "Show from the oldest on" } @else { "Show the newest first" }
            }
        }
    }
}

/// Whether a query asks for the last changes of a feed.
fn is_newest(pairs: &Pairs) -> bool {
    is_start(value(pairs, "start"), NEWEST)
}

/// Whether a query asks for a later page of a list.
fn is_continued(pairs: &Pairs) -> bool {
    pairs.iter().any(|(name, _)| CONTINUED.contains(&name.as_str()))
}

/// Why a table has no rows, and what to do. `feed` is the filtered feed, if it is free. A search reads a part of a feed, so there can be a next page.
fn nothing(shown: &SiteService<'_>, kind: ListKind, feed: Option<&Operation>, pairs: &Pairs, has_next: bool) -> Markup {
    let is_continued = is_continued(pairs);
    let is_filtered = filters::selects(pairs);
    let feed = feed.filter(|_| kind == ListKind::Changes && !is_continued);
    let late_news = feed.and_then(filters::late_news).filter(|(name, _)| value(pairs, name).is_empty());
    html! {
        p.empty {
            @if is_filtered || has_next {
                @if has_next {
                    "No " (kind.name()) " to show in this part. The next page continues the search. "
                } @else if is_continued {
                    "There are no further " (kind.name()) " to show. "
                } @else {
                    "No " (kind.name()) " here under these filters. "
                }
                @if let Some((name, on)) = &late_news {
                    "Late news is left out: what was recorded long after its day, such as all that the first sync of a register found. "
                    a href={ (shown.explorer()) (with(pairs, name, on, &CONTINUED)) } { "Include late news" } " · "
                }
                a href=(shown.explorer_of(kind, [])) { "Show all " (kind.name()) }
            } @else {
                "No " (kind.name()) " to show yet. They appear here when the upstreams publish some, and with a key there may be more."
            }
        }
    }
}

/// The title of a record for a table, whose columns say the rest. It leads to the record's page if the record has an id.
fn link(shown: &SiteService<'_>, row: &Row) -> Markup {
    linked(shown, row, &title(&row.record, shown.service.page.title))
}

fn pager(path: &str, pairs: &Pairs, next: &[(&'static str, String)]) -> Markup {
    // A feed from its oldest change on has its first page there.
    let start = if value(pairs, "cursor").is_empty() || is_newest(pairs) { "" } else { EARLIEST };
    let kept = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut all: Vec<(&str, &str)> = kept.filter(|(name, _)| *name != "start" && !CONTINUED.contains(name)).collect();
    all.extend(next.iter().map(|(name, value)| (*name, value.as_str())));
    html! {
        nav.pager aria-label="Pages" {
            @if is_continued(pairs) { a href={ (path) (with(pairs, "start", start, &CONTINUED)) } { "First page" } }
            @if !next.is_empty() { a.next rel="next" href={ (path) (url::query(&all)) } { "Next page" } }
        }
    }
}

//! One search over all services: by the words that each service's own search takes, and by the numbers by which people know records.

use futures_util::future::join_all;
use maud::html;
use operation::Price;
use operation::problem::Problem;
use pages::Page;
use serde_json::Value;

use crate::explorer::{Row, named};
use crate::fields::{at, cell, is_empty};
use crate::{EXPLORE, Pairs, Reads, Shown, filters, url};

/// The longest search, in characters.
const WORDS_CHARS_MAX: usize = 200;
/// The records that are shown of each service.
const SHOWN_MAX: usize = 5;
/// The fields that are shown with each record.
const COLUMNS_MAX: usize = 4;

/// The page.
///
/// # Errors
/// None: a service that cannot search for these words shows nothing.
pub(crate) async fn page<'a>(reads: &'a dyn Reads, pairs: &'a Pairs) -> Result<Page<'a>, Problem> {
    let words = url::value(pairs, "q");
    let is_asked = !words.is_empty() && words.chars().count() <= WORDS_CHARS_MAX;
    let services = reads.services();
    let found: Vec<Found<'_>> = if is_asked { join_all(services.iter().map(|shown| find(reads, *shown, words))).await } else { Vec::new() };
    let hits: Vec<&Found<'_>> = found.iter().filter(|found| !found.rows.is_empty()).collect();
    let main = html! {
        h1 { "Search" }
        @if !is_asked && !words.is_empty() {
            p.empty { "A search has at most " (WORDS_CHARS_MAX) " characters. Try one word of the name, or a number." }
        } @else if !is_asked {
            p.lead { "Search for a product, a company, a person or the number of a record, in all services at once." }
            p { "A number leads to its record, such as that of an award, a trial, a trademark or an airworthiness directive." }
        } @else if hits.is_empty() {
            p.empty { "Nothing is recorded for " bdi { "“" (words) "”" } " in the recent changes and lists that are free. Try one word of the name, or a number." }
        } @else {
            p { bdi { "“" (words) "”" } " in " (hits.len()) @if hits.len() == 1 { " service" } @else { " services" } "." }
        }
        @for found in &hits {
            section.hits {
                h2 { (found.shown.service.title) }
                ul.plain {
                    @for row in &found.rows {
                        li {
                            (named(&found.shown, row))
                            p.soft {
                                @for (index, column) in columns(&found.shown, row).enumerate() {
                                    @if index > 0 { " · " }
                                    (cell(column, at(&row.record, column)))
                                }
                            }
                        }
                    }
                }
                p { a href=(found.all) { "All in " (found.shown.service.title) } }
            }
        }
    };
    let description =
        "Search public records of all services: by words, by names of companies and people, and by the numbers of records.".to_owned();
    // There is no end of searches, so only the empty one is for search engines.
    let canonical = if words.is_empty() { EXPLORE.to_owned() } else { String::new() };
    Ok(Page { title: "Search".to_owned(), description, canonical, search: words, main, ..Page::default() })
}

/// The columns of a hit that its name does not have already.
fn columns<'a>(shown: &Shown<'a>, row: &'a Row) -> impl Iterator<Item = &'a str> {
    let page = shown.service.page;
    let all = page.columns.iter().copied().filter(move |column| !page.detail.iter().any(|(_, named)| named == column));
    all.filter(move |column| !is_empty(at(&row.record, column))).take(COLUMNS_MAX)
}

/// What a service found.
struct Found<'a> {
    shown: Shown<'a>,
    rows: Vec<Row>,
    /// Where all of it is.
    all: String,
}

async fn find<'a>(reads: &dyn Reads, shown: Shown<'a>, words: &str) -> Found<'a> {
    let hints = shown.service.page;
    let list = shown.operation(hints.list).filter(|list| filters::takes(list, hints.search)).map(|list| (list, "records"));
    let feed = shown.filtered_feed().filter(|feed| filters::takes(feed, hints.search)).map(|feed| (feed, "changes"));
    let searched = list.or(feed).filter(|(operation, _)| operation.price == Price::Free && !hints.search.is_empty());
    let mut rows: Vec<Row> = Vec::new();
    let mut all = shown.explorer();
    if let Ok(answer) = reads.read(shown.service.name, "record", vec![("id".to_owned(), words.to_owned())]).await {
        rows.push(Row::of_change(answer));
    }
    if let Some((operation, view)) = searched {
        all = format!("{all}{}", url::query(&[("view", view), (hints.search, words)]));
        let arguments = vec![(hints.search.to_owned(), words.to_owned()), ("limit".to_owned(), SHOWN_MAX.to_string())];
        if let Ok(mut answer) = reads.read(shown.service.name, operation.name, arguments).await {
            let lists = if view == "records" { hints.rows.to_vec() } else { vec![operation.list] };
            for list in lists {
                let Some(Value::Array(items)) = answer.get_mut(list).map(Value::take) else { continue };
                rows.extend(items.into_iter().map(|item| if view == "changes" { Row::of_change(item) } else { Row::of_record(item) }));
            }
        }
    }
    let mut seen = Vec::new();
    rows.retain(|row| {
        let id = row.record["id"].as_str().unwrap_or_default().to_owned();
        let is_new = id.is_empty() || !seen.contains(&id);
        seen.push(id);
        is_new
    });
    rows.truncate(SHOWN_MAX);
    Found { shown, rows, all }
}

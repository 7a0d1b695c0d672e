//! One search over all services: by the words that each service's own search takes, and by the numbers by which people know records.

use futures_util::future::{join, join_all};
use maud::{Markup, html};
use operation::problem::Problem;
use operation::{Operation, Price};
use pages::Page;
use serde_json::Value;

use crate::explorer::{Row, named};
use crate::fields::{at, cell, is_empty, label};
use crate::{EXPLORE, Pairs, Reads, Shown, entities, filters, url};

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
            p.empty {
                "No service finds " bdi { "“" (words) "”" } " in what is shown without a key. Try one word of the name, the whole legal name, or a number."
            }
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
                p.shortcuts { @for (words, address) in &found.all { a href=(address) { (words) } } }
            }
        }
        @if is_asked { (entities::of_name(reads, words)) (unsearched(&found)) }
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
    /// Where all of it is: the words and the address of each link.
    all: Vec<(String, String)>,
    /// Why the service could not search for the words; empty if it could.
    unsearched: String,
}

/// How a service is searched without a key: the operation, the view of its explorer that shows the same, and the arguments that take the words.
fn search_of<'a>(shown: &Shown<'a>) -> Option<(&'a Operation, &'static str, Vec<&'static str>)> {
    let hints = shown.service.page;
    let taken = |operation: &Operation| -> Vec<&'static str> {
        hints.searches.iter().copied().filter(|argument| filters::takes(operation, argument)).collect()
    };
    let list = shown.operation(hints.list).map(|list| (list, "records", taken(list)));
    let feed = shown.filtered_feed().map(|feed| (feed, "changes", taken(feed)));
    let searched = list.filter(|(_, _, arguments)| !arguments.is_empty()).or(feed);
    searched.filter(|(operation, _, arguments)| operation.price == Price::Free && !arguments.is_empty())
}

async fn find<'a>(reads: &dyn Reads, shown: Shown<'a>, words: &str) -> Found<'a> {
    let by_number = reads.read(shown.service.name, "record", vec![("id".to_owned(), words.to_owned())]);
    let (by_number, mut found) = join(by_number, find_by_words(reads, shown, words)).await;
    if let Ok(answer) = by_number {
        found.rows.insert(0, Row::of_change(&shown, answer));
    }
    Row::first_of_each(&mut found.rows);
    found.rows.truncate(SHOWN_MAX);
    let all = format!("All in {}", shown.service.title);
    if found.all.is_empty() {
        found.all.push((all, shown.explorer()));
    } else if let [(words, _)] = &mut found.all[..] {
        *words = all;
    }
    found
}

/// What a service finds by the arguments of its own search.
async fn find_by_words<'a>(reads: &dyn Reads, shown: Shown<'a>, words: &str) -> Found<'a> {
    let mut found = Found { shown, rows: Vec::new(), all: Vec::new(), unsearched: String::new() };
    let Some((operation, view, arguments)) = search_of(&shown) else {
        found.unsearched = "it has no search by words without a key".to_owned();
        return found;
    };
    let is_feed = view == "changes";
    let answers = join_all(arguments.iter().map(|argument| {
        let mut given = vec![((*argument).to_owned(), words.to_owned()), ("limit".to_owned(), SHOWN_MAX.to_string())];
        if is_feed {
            given.push(("start".to_owned(), "newest".to_owned()));
            given.extend(filters::late_news(operation));
        }
        reads.read(shown.service.name, operation.name, given)
    }))
    .await;
    let mut refusals = Vec::new();
    for (argument, answer) in arguments.iter().zip(answers) {
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(problem) => {
                refusals.push(problem.detail);
                continue;
            }
        };
        let lists = if is_feed { vec![operation.list] } else { shown.service.page.rows.to_vec() };
        let mut rows: Vec<Row> = Vec::new();
        for list in lists {
            let Some(Value::Array(items)) = answer.get_mut(list).map(Value::take) else { continue };
            rows.extend(items.into_iter().map(|item| if is_feed { Row::of_change(&shown, item) } else { Row::of_record(item) }));
        }
        // A feed has its oldest changes first.
        if is_feed {
            rows.reverse();
        }
        if !rows.is_empty() {
            let mut query = vec![("view".to_owned(), view.to_owned()), ((*argument).to_owned(), words.to_owned())];
            query.extend(filters::late_news(operation).filter(|_| is_feed));
            let heading = format!("All by {} in {}", label(argument).to_lowercase(), shown.service.title);
            found.all.push((heading, format!("{}{}", shown.explorer(), url::query(&query))));
        }
        found.rows.extend(rows);
    }
    if refusals.len() == arguments.len() {
        found.unsearched = refusals.swap_remove(0);
    }
    found
}

/// The services that could not search for the words, so that nobody takes their silence for an answer.
fn unsearched(found: &[Found<'_>]) -> Markup {
    let silent: Vec<&Found<'_>> = found.iter().filter(|found| !found.unsearched.is_empty() && found.rows.is_empty()).collect();
    html! {
        @if !silent.is_empty() {
            section aria-labelledby="unsearched" {
                h2 #unsearched { "Not searched" }
                p { "These services could not search for the words, so nothing about them follows from this page. Their explorers have other filters." }
                ul {
                    @for found in &silent {
                        li { a href=(found.shown.explorer()) { (found.shown.service.title) } ": " bdi { (found.unsearched) } "." }
                    }
                }
            }
        }
    }
}

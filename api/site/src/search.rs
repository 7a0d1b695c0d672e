//! One search over all services: by the words that each service's own search takes, and by the numbers by which people know records.

use futures_util::future::{join, join_all};
use maud::{Markup, html};
use operation::feed_start::NEWEST;
use operation::problem::Problem;
use operation::{Operation, Price};
use pages::Page;

use crate::fields::{at, cell, is_empty, label};
use crate::list_kind::ListKind;
use crate::row::{Row, named};
use crate::{EXPLORE, Pairs, Reads, SiteService, entities, filters, url};

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
    let mut found: Vec<ServiceHits<'_>> =
        if is_asked { join_all(services.iter().map(|shown| find(reads, *shown, words))).await } else { Vec::new() };
    if found.iter().all(|found| found.rows.is_empty()) {
        found = join_all(found.into_iter().map(|found| find_slowly(reads, found, words))).await;
    }
    let hits: Vec<&ServiceHits<'_>> = found.iter().filter(|found| !found.rows.is_empty()).collect();
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
                p.shortcuts { @for (words, address) in found.all.iter().chain(&found.slow) { a href=(address) { (words) } } }
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
fn columns<'a>(shown: &SiteService<'a>, row: &'a Row) -> impl Iterator<Item = &'a str> {
    let page = shown.service.page;
    let all = page.columns.iter().copied().filter(move |column| !page.detail.iter().any(|(_, named)| named == column));
    all.filter(move |column| !is_empty(at(&row.record, column))).take(COLUMNS_MAX)
}

/// What a service found.
struct ServiceHits<'a> {
    shown: SiteService<'a>,
    rows: Vec<Row>,
    /// Where all of it is: the words and the address of each link.
    all: Vec<(String, String)>,
    /// Searches that were not made, because there is no index for them: the words and the address of each link.
    slow: Vec<(String, String)>,
    /// Why the service could not search for the words; empty if it could.
    unsearched: String,
}

/// A search of one service: an operation, its argument for words, and what the explorer lists that shows the same; `None` if none does.
#[derive(Clone, Copy)]
struct Question<'a> {
    operation: &'a Operation,
    argument: &'static str,
    kind: Option<ListKind>,
}

/// How a service is searched without a key by some arguments of its list, or of its filtered feed if the list takes none of them.
fn questions<'a>(shown: &SiteService<'a>, arguments: &[&'static str]) -> Vec<Question<'a>> {
    let takes_any = |operation: &Operation| arguments.iter().any(|argument| filters::takes(operation, argument));
    let Some((kind, operation)) = shown.free_list(takes_any) else { return Vec::new() };
    let taken = arguments.iter().filter(|argument| filters::takes(operation, argument));
    taken.map(|&argument| Question { operation, argument, kind: Some(kind) }).collect()
}

/// The further operations of a service that find records by words, without a key.
fn lookups<'a>(shown: &SiteService<'a>) -> Vec<Question<'a>> {
    let question_of = |&(name, argument): &(&'static str, &'static str)| {
        let operation = shown.operation(name).filter(|operation| operation.price == Price::Free)?;
        Some(Question { operation, argument, kind: None })
    };
    shown.service.page.lookups.iter().filter_map(question_of).collect()
}

async fn find<'a>(reads: &dyn Reads, shown: SiteService<'a>, words: &str) -> ServiceHits<'a> {
    let by_number = reads.read(shown.service.name, "record", vec![("id".to_owned(), words.to_owned())]);
    let (by_number, mut found) = join(by_number, find_by_words(reads, shown, words)).await;
    if let Ok(answer) = by_number {
        found.rows.insert(0, Row::of_change(&shown, answer));
    }
    finished(found)
}

/// What is shown of a service: few records, each once, and a link to the others.
fn finished(mut found: ServiceHits<'_>) -> ServiceHits<'_> {
    Row::first_of_each(&mut found.rows);
    found.rows.truncate(SHOWN_MAX);
    let (shown, all) = (found.shown, &mut found.all);
    let heading = format!("All in {}", shown.service.title);
    if all.is_empty() {
        all.push((heading, shown.explorer()));
    } else if let [(words, _)] = &mut all[..] {
        *words = heading;
    }
    found
}

/// What a service finds by the arguments of its own search that have an index.
async fn find_by_words<'a>(reads: &dyn Reads, shown: SiteService<'a>, words: &str) -> ServiceHits<'a> {
    let found = ServiceHits { shown, rows: Vec::new(), all: Vec::new(), slow: Vec::new(), unsearched: String::new() };
    let page = shown.service.page;
    let asked = [questions(&shown, page.searches), lookups(&shown)].concat();
    let slow = questions(&shown, page.slow_searches);
    let mut found = ask(reads, found, &asked, words).await;
    found.slow = slow.iter().filter_map(|question| link(&shown, question, words, "Search")).collect();
    if asked.is_empty() {
        let none = "it has no search by words without a key";
        let later = "it has no index of words, and is searched if no other service finds them";
        found.unsearched = if slow.is_empty() { none } else { later }.to_owned();
    }
    found
}

/// What a service finds by the arguments of its own search that have no index.
async fn find_slowly<'a>(reads: &dyn Reads, mut found: ServiceHits<'a>, words: &str) -> ServiceHits<'a> {
    let asked = questions(&found.shown, found.shown.service.page.slow_searches);
    if asked.is_empty() {
        return found;
    }
    found.all.clear();
    found.slow.clear();
    found.unsearched.clear();
    finished(ask(reads, found, &asked, words).await)
}

/// The link to the explorer that shows what a question finds: "All by recipient in Contract awards"; `None` if none does.
fn link(shown: &SiteService<'_>, question: &Question<'_>, words: &str, verb: &str) -> Option<(String, String)> {
    let Question { operation, argument, kind } = *question;
    let kind = kind?;
    let late_news = filters::late_news(operation).filter(|_| kind == ListKind::Changes);
    let filter = std::iter::once((argument.to_owned(), words.to_owned())).chain(late_news);
    let heading = format!("{verb} by {} in {}", label(argument).to_lowercase(), shown.service.title);
    Some((heading, shown.explorer_of(kind, filter)))
}

/// Adds what a service answers to some questions, and why if it refuses all of them.
async fn ask<'a>(reads: &dyn Reads, mut found: ServiceHits<'a>, asked: &[Question<'a>], words: &str) -> ServiceHits<'a> {
    let shown = found.shown;
    let answers = join_all(asked.iter().map(|Question { operation, argument, kind }| {
        let mut given = vec![((*argument).to_owned(), words.to_owned()), ("limit".to_owned(), SHOWN_MAX.to_string())];
        if *kind == Some(ListKind::Changes) {
            given.push(("start".to_owned(), NEWEST.to_owned()));
            given.extend(filters::late_news(operation));
        }
        reads.read(shown.service.name, operation.name, given)
    }))
    .await;
    let mut refusals = Vec::new();
    for (question, answer) in asked.iter().zip(answers) {
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(problem) => {
                refusals.push(problem.detail);
                continue;
            }
        };
        let mut rows = Row::of_answer(&shown, question.operation, question.kind, &mut answer);
        // A feed has its oldest changes first.
        if question.kind == Some(ListKind::Changes) {
            rows.reverse();
        }
        if !rows.is_empty() {
            found.all.extend(link(&shown, question, words, "All"));
        }
        found.rows.extend(rows);
    }
    if refusals.len() == asked.len() {
        found.unsearched = refusals.pop().unwrap_or_default();
    }
    found
}

/// The services that could not search for the words, so that nobody takes their silence for an answer.
fn unsearched(found: &[ServiceHits<'_>]) -> Markup {
    let silent: Vec<&ServiceHits<'_>> = found.iter().filter(|found| !found.unsearched.is_empty() && found.rows.is_empty()).collect();
    html! {
        @if !silent.is_empty() {
            section aria-labelledby="unsearched" {
                h2 #unsearched { "Not searched" }
                p { "These services could not search for the words, so nothing about them follows from this page. Their explorers have other filters." }
                ul {
                    @for found in &silent {
                        li {
                            a href=(found.shown.explorer()) { (found.shown.service.title) } ": " bdi { (found.unsearched) } "."
                            @for (words, address) in &found.slow { " " a href=(address) { (words) } }
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

    use crate::Pairs;
    use crate::testing::{Made, operation, searched_by_feed};

    /// Proves that a search that is too long is not made, and that the page says why.
    #[test]
    fn long_searches_are_refused() {
        let made = Made::new();
        let search = |chars: usize| made.page(&format!("/explore?q={}", "x".repeat(chars))).html;
        assert!(search(201).contains("A search has at most 200 characters."));
        assert!(made.read.lock().unwrap().is_empty(), "nothing is read for it");
        assert!(!search(200).contains("at most 200 characters"));
    }

    /// Proves that a search asks a feed by each of its arguments for words, for the newest changes and with late news; that the links show the same; and that
    /// the page leads to the entities of the name.
    #[test]
    fn searches_by_each_argument() {
        let made = searched_by_feed();
        let html = made.page("/explore?q=Acme+Freight").html;
        assert!(html.find("Title fresh").unwrap() < html.find("Title old").unwrap(), "{html}");
        assert_eq!(html.matches("Title old").count(), 1, "{html}");
        for argument in ["recipient", "keyword"] {
            let link = format!(
                "href=\"/explore/made?view=changes&amp;{argument}=Acme+Freight&amp;includeBackfill=true\">All by {argument} in Made"
            );
            assert!(html.contains(&link), "{html}");
            let read = made.read.lock().unwrap();
            let wanted = [(argument, "Acme Freight"), ("start", "newest"), ("includeBackfill", "true")];
            let has = |pairs: &Pairs| wanted.iter().all(|(name, value)| crate::url::value(pairs, name) == *value);
            assert!(read.iter().any(|(name, pairs)| name == "whats_changed_since" && has(pairs)), "{read:?}");
        }
        assert!(html.contains("href=\"/entities/company?name=Acme+Freight\"") && !html.contains("Not searched"), "{html}");
        assert!(!made.page("/explore").html.contains("/entities/company?name="));
    }

    /// Proves that a search names the services that could not search for the words, with the reason, and that their silence is no answer.
    #[test]
    fn unsearched_services_are_named() {
        let mut made = searched_by_feed();
        made.answers.remove("whats_changed_since");
        let html = made.page("/explore?q=Acme").html;
        assert!(html.contains("Not searched</h2>") && html.contains("<bdi>no &lt;record&gt; has this id</bdi>."), "{html}");
        made.service.page.searches = &[];
        let html = made.page("/explore?q=Acme").html;
        assert!(html.contains("<bdi>it has no search by words without a key</bdi>."), "{html}");
        assert!(!made.page("/explore").html.contains("Not searched"));
    }

    /// Proves that arguments without an index are tried only if nothing else is found, and that the page leads to the search that it left out.
    #[test]
    fn slow_searches_come_last() {
        let mut made = searched_by_feed();
        made.service.page.searches = &["recipient"];
        made.service.page.slow_searches = &["keyword"];
        let link = "href=\"/explore/made?view=changes&amp;keyword=Acme&amp;includeBackfill=true\">";
        let asked = |made: &Made| {
            let read = made.read.lock().unwrap();
            read.iter().any(|(name, pairs)| name == "whats_changed_since" && !crate::url::value(pairs, "keyword").is_empty())
        };
        let html = made.page("/explore?q=Acme").html;
        assert!(html.contains("Title fresh") && html.contains(&format!("{link}Search by keyword in Made")) && !asked(&made), "{html}");
        // Nothing has an index: the page tries what is left.
        made.service.page.searches = &[];
        let html = made.page("/explore?q=Acme").html;
        assert!(html.contains("Title fresh") && html.contains(&format!("{link}All in Made")) && asked(&made), "{html}");
    }

    /// Proves that further operations that take words are asked, and that their records are linked.
    #[test]
    fn lookups_are_asked() {
        let mut made = searched_by_feed();
        made.service.page.searches = &[];
        made.service.page.lookups = &[("drug", "name")];
        made.service.operations.push(operation("drug", "/v1/drug", "found", json!({ "name": { "type": "string" } })));
        made.answers.insert("drug", json!({ "found": [{ "id": "D/1", "title": "Calderinib" }] }));
        let html = made.page("/explore?q=calder").html;
        assert!(html.contains("href=\"/explore/made/D%2F1\"><bdi>Calderinib"), "{html}");
        assert!(html.contains("href=\"/explore/made\">All in Made") && !html.contains("Not searched"), "{html}");
        let read = made.read.lock().unwrap();
        assert!(read.iter().any(|(name, pairs)| name == "drug" && crate::url::value(pairs, "name") == "calder"), "{read:?}");
    }
}

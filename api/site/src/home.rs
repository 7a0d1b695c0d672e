//! The home page: what changed today, in every service.

use futures_util::future::{join, join_all};
use maud::{Markup, html};
use operation::problem::Problem;
use pages::Page;

use crate::chart::{COUNTED, sparkline};
use crate::explorer::newest_part;
use crate::fields::{grouped, time};
use crate::last_sync::last_sync;
use crate::layout::copyable;
use crate::pulse::{Pulse, pulse_with_streams};
use crate::row::{Row, event, named};
use crate::{ENTITIES, EXPLORE, Pairs, Reads, STATUS, SiteService, VERIFY, entities, guides, live, receipts, status};

/// The changes that the list shows.
const SHOWN_MAX: usize = 12;

/// The page.
///
/// # Errors
/// None: a service that does not answer is shown as such.
pub(crate) async fn page(reads: &dyn Reads) -> Result<Page<'_>, Problem> {
    let services = reads.services();
    let few = first_rows(services.len());
    let mut states = join_all(services.iter().map(|shown| async move {
        let (pulse, newest) = join(pulse_with_streams(reads, *shown), newest_rows(reads, *shown, few)).await;
        (*shown, pulse, newest)
    }))
    .await;
    let found: Vec<usize> = states.iter().map(|(_, _, rows)| rows.len()).collect();
    for at in with_more(&found, few) {
        let (shown, _, rows) = &mut states[at];
        *rows = newest_rows(reads, *shown, SHOWN_MAX).await;
    }
    let answers = states.iter().filter_map(|(shown, pulse, _)| Some((*shown, &pulse.as_ref().ok()?.health)));
    let freshness = status::freshness(answers, reads.now_ms());
    let count = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    let known = || states.iter().filter_map(|(_, pulse, _)| pulse.as_ref().ok());
    let (today, all): (u64, u64) = (known().map(Pulse::today).sum(), known().map(Pulse::changes).sum());
    let newest = in_turn(states.iter().map(|(shown, _, rows)| rows.iter().map(|row| (*shown, row)).collect()).collect());
    let first = services.first();
    let main = html! {
        section.hero {
            h1 { "What changed in public records" }
            p.lead {
                strong.number { (count(today)) } " changes today (UTC), " span.number { (count(all)) } " recorded in " (services.len()) " services. "
                "Each change is kept, numbered and signed, so that every record can say since when it says what it says."
            }
            p.soft { (COUNTED) }
            form.big role="search" action=(EXPLORE) method="get" {
                label.hidden for="q" { "Search all services" }
                input #q type="search" name="q" placeholder="A product, a company, a number" maxlength="200";
                button.primary { "Search" }
            }
            p.shortcuts {
                @if entities::are_served(reads) { a href=(ENTITIES) { "Companies, institutions and contractors" } }
                @if receipts::issuer(reads).is_some() { a href=(VERIFY) { "Receipts" } }
                a href=(STATUS) { "Status of all upstreams" }
            }
        }
        div.split.home {
            section #services aria-labelledby="services-title" {
                h2 #services-title { "Services" }
                @if services.is_empty() { p { "No service is enabled on this server." } }
                ul.cards.plain {
                    @for (shown, pulse, _) in &states { li { (card(shown, pulse.as_ref().ok(), reads.now_ms())) } }
                }
            }
            section #live aria-labelledby="live-title" {
                div.row {
                    h2 #live-title { "Live" }
                    button #pause type="button" hidden { "Pause" }
                }
                p.soft #live-state { "The newest changes when this page was loaded." }
                ol.ticker.plain #ticker data-source=(live::PATH) data-shown=(SHOWN_MAX) {
                    @for (shown, row) in newest {
                        li {
                            span.row { span.soft { (shown.service.title) } (event(&row.event)) }
                            (named(&shown, row))
                            @if !row.details.is_empty() { span.what { bdi { (row.details) } } }
                            span.soft { (time(&row.recorded_at)) }
                        }
                    }
                }
            }
        }
        section #upstreams aria-labelledby="upstreams-title" {
            h2 #upstreams-title { "Upstreams" }
            p.soft { "When each stream of public records was last read completely. " a href=(STATUS) { "More about each" } }
            (freshness)
        }
        @if let Some(shown) = first {
            section #use aria-labelledby="use-title" {
                h2 #use-title { "The same over the API" }
                p { "Every page shows what an operation answers. The first call needs no key:" }
                (copyable(&format!("curl '{}/v1/changes?start=earliest&limit=1'", shown.settings.base_url)))
                p.soft {
                    "Each service has its reference, OpenAPI document and MCP endpoint: "
                    @for (index, shown) in services.iter().enumerate() {
                        @if index > 0 { ", " }
                        a href={ (shown.settings.base_url) "/docs" } { (shown.service.name) }
                    }
                    "."
                }
                p.shortcuts {
                    a href={ (guides::PATH) "/consume-changes" } { "Follow a feed without gaps" }
                    a href={ (guides::PATH) "/agents" } { "Connect an agent over MCP" }
                    a href={ (guides::PATH) "/analyse" } { "Load records into a table" }
                    a href={ (guides::PATH) "/api-keys" } { "Get a key" }
                }
            }
        }
    };
    Ok(Page {
        title: "Highwater: what changed in public records".to_owned(),
        description: "Public records as change feeds: recalls, filings, awards, trials and more, with every version and its proof."
            .to_owned(),
        canonical: "/".to_owned(),
        main,
        ..Page::default()
    })
}

/// How many changes of each service are read first. Most of a list of all services are the newest ones of each, so few are enough.
fn first_rows(services: usize) -> usize {
    SHOWN_MAX.min(SHOWN_MAX.div_ceil(services.max(1)) + 1)
}

/// The services that may have more changes for the list: those of which as many were found as were read, if the list is not full. `found` are the numbers of
/// changes that were found, `few` is how many were read of each.
fn with_more(found: &[usize], few: usize) -> Vec<usize> {
    let is_full = found.iter().sum::<usize>() >= SHOWN_MAX || few >= SHOWN_MAX;
    found.iter().enumerate().filter(|(_, count)| !is_full && **count >= few).map(|(at, _)| at).collect()
}

/// The newest changes of a service, the newest first; none if it does not answer.
async fn newest_rows(reads: &dyn Reads, shown: SiteService<'_>, limit: usize) -> Vec<Row> {
    newest_part(reads, shown, &Pairs::new(), limit as u64).await.map(|part| part.rows).unwrap_or_default()
}

/// The changes of the list: services take turns, so that the list shows many of them also if one records most; then the newest come first.
fn in_turn<'a>(services: Vec<Vec<(SiteService<'a>, &'a Row)>>) -> Vec<(SiteService<'a>, &'a Row)> {
    let mut turns: Vec<(usize, (SiteService<'a>, &'a Row))> = services.into_iter().flat_map(|rows| rows.into_iter().enumerate()).collect();
    let newest_first = |one: &Row, other: &Row| other.recorded_at.cmp(&one.recorded_at);
    turns.sort_by(|(turn, (_, one)), (other_turn, (_, other))| turn.cmp(other_turn).then_with(|| newest_first(one, other)));
    turns.truncate(SHOWN_MAX);
    turns.sort_by(|(_, (_, one)), (_, (_, other))| newest_first(one, other));
    turns.into_iter().map(|(_, change)| change).collect()
}

fn card(shown: &SiteService<'_>, pulse: Option<&Pulse>, now_ms: i64) -> Markup {
    let count = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    html! {
        article.card {
            h3 { a href=(shown.explorer()) { (shown.service.title) } }
            @match pulse {
                Some(pulse) => {
                    p.row {
                        @if let Some(records) = pulse.records() {
                            span.soft { span.number { (count(records)) } @if records == 1 { " record" } @else { " records" } " ·" }
                        }
                        span {
                            strong.number { (count(pulse.today())) }
                            span.soft { @if pulse.today() == 1 { " change today" } @else { " changes today" } }
                        }
                    }
                    (sparkline(&pulse.days, &pulse.summary()))
                    p.row.soft {
                        @if pulse.records().is_none() { span.number { (count(pulse.changes())) " changes in all" } }
                        span {
                            @if pulse.health["lastSnapshot"].as_str().is_some_and(|at| !at.is_empty()) { "synced " }
                            (last_sync(shown, &pulse.health, now_ms))
                        }
                    }
                }
                None => { p.soft { "Not available at the moment." } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use operation::context::ServiceSettings;
    use operation::{RecordPage, Service};
    use serde_json::json;

    use super::*;
    use crate::testing::Made;

    /// Proves that each service is in the list, also if one of them has all of the newest changes, or if all have the same time; and that a service on
    /// its own fills it.
    #[test]
    fn services_take_turns() {
        let service = |name| Service {
            name,
            title: name,
            about: "",
            operations: vec![],
            files: None,
            data: vec![],
            page: RecordPage::default(),
            entities: &[],
        };
        let services = [service("a"), service("b"), service("c")];
        let settings = ServiceSettings::new(String::new(), String::new());
        let row = |at: usize| Row { recorded_at: format!("{at:02}"), ..Row::default() };
        let list = |times: [Vec<usize>; 3]| {
            let rows: Vec<Vec<Row>> = times.into_iter().map(|times| times.into_iter().map(row).collect()).collect();
            let shown = services.iter().zip(&rows);
            let shown = shown.map(|(service, rows)| rows.iter().map(|row| (SiteService { service, settings: &settings }, row)).collect());
            in_turn(shown.collect()).iter().map(|(shown, row)| format!("{}{}", shown.service.name, row.recorded_at)).collect::<String>()
        };
        assert_eq!(list([vec![9; 12], vec![9; 12], vec![9; 12]]), "a09b09c09a09b09c09a09b09c09a09b09c09");
        let busy: Vec<usize> = (20..32).rev().collect();
        let newest: String = busy.iter().take(10).map(|at| format!("a{at}")).collect();
        assert_eq!(list([busy.clone(), vec![7], vec![8]]), format!("{newest}c08b07"));
        let all: String = busy.iter().map(|at| format!("a{at}")).collect();
        assert_eq!(list([busy, vec![], vec![]]), all);
    }

    /// Proves that few changes of each service are read if they fill the list, and more only of those that have more if they do not.
    #[test]
    fn few_changes_are_read_first() {
        assert_eq!([0, 1, 2, 5, 14, 100].map(first_rows), [12, 12, 7, 4, 2, 2]);
        assert_eq!(with_more(&[2; 14], 2), Vec::<usize>::new());
        assert_eq!(with_more(&[2, 0, 1, 2], 2), [0, 3]);
        assert_eq!(with_more(&[0, 0], 7), Vec::<usize>::new());
        assert_eq!(with_more(&[12], 12), Vec::<usize>::new());
    }

    /// Proves that a card says how many records a service has and how many changes today; and how many changes in all where records are not counted.
    #[test]
    fn cards_count_records() {
        let mut made = Made::new();
        let today = "<span><strong class=\"number\">5</strong><span class=\"soft\"> changes today</span></span>";
        let html = made.page("/").html;
        assert!(html.contains(today) && html.contains("<span class=\"number\">7 changes in all</span>"), "{html}");
        assert!(!html.contains("record ·") && !html.contains("records ·"), "{html}");
        for (records, words) in
            [(1_234, "1,234</span> records ·</span>"), (1, "1</span> record ·</span>"), (0, "0</span> records ·</span>")]
        {
            made.answers.get_mut("health").unwrap()["records"] = json!(records);
            let html = made.page("/").html;
            assert!(html.contains(&format!("<span class=\"soft\"><span class=\"number\">{words}{today}")), "{html}");
            assert!(!html.contains("changes in all"), "{html}");
        }
    }

    /// Proves that each page with numbers of changes says that internal ones count.
    #[test]
    fn pages_say_which_changes_count() {
        let made = Made::new();
        for path in ["/", "/explore/made", "/status"] {
            assert!(made.page(path).html.contains(COUNTED), "{path}");
        }
    }

    /// Proves that a service whose first sync is not complete is not said to be recorded by callers, whatever it has recorded already: receipts are.
    #[test]
    fn first_syncs_are_not_complete() {
        let mut made = Made::new();
        made.answers.get_mut("health").unwrap()["lastSnapshot"] = json!("");
        for path in ["/", "/explore/made", "/status"] {
            assert!(made.page(path).html.contains("recorded by callers"), "{path}");
        }
        made.remove_operation("verify_receipt");
        for path in ["/", "/explore/made", "/status"] {
            let html = made.page(path).html;
            assert!(html.contains("no complete sync yet") && !html.contains("recorded by callers"), "{path}: {html}");
        }
    }

    /// Proves that the list of a server with many services reads two changes of each, and says what a change tells in addition to its record, with inert
    /// texts.
    #[test]
    fn the_list_of_many_services() {
        let mut made = Made::new();
        made.copies = 14;
        made.answers.get_mut("changes").unwrap()["changes"][0]["slipDays"] = json!(1_234);
        made.answers.get_mut("changes").unwrap()["changes"][0]["statusBefore"] = json!("<b>pending");
        let html = made.page("/").html;
        assert!(html.contains("<span class=\"what\"><bdi>Slip days 1,234 · Status before &lt;b&gt;pending</bdi></span>"), "{html}");
        let read = made.read.lock().unwrap();
        let of_lists: Vec<_> = read.iter().filter(|(name, _)| name == "changes").collect();
        assert_eq!(of_lists.len(), 14);
        assert!(of_lists.iter().all(|(_, pairs)| pairs.contains(&("limit".to_owned(), "2".to_owned()))), "{of_lists:?}");
        assert_eq!(read.iter().filter(|(name, _)| name == "health").count(), 14, "the state of each service is read once");
    }
}

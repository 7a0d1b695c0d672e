//! The home page: what changed today, in every service.

use futures_util::future::join_all;
use maud::{Markup, html};
use operation::problem::Problem;

use crate::activity::{Pulse, pulse};
use crate::chart::sparkline;
use crate::explorer::{Row, changes_before, event, named};
use crate::fields::{ago, grouped, time};
use crate::layout::Page;
use crate::this_view::copyable;
use crate::{EXPLORE, Reads, Shown, live};

/// The newest changes of each service that are read for the list.
const EACH: u64 = 3;
/// The changes that the list shows.
const SHOWN_MAX: usize = 12;

/// The page.
///
/// # Errors
/// None: a service that does not answer is shown as such.
pub(crate) async fn page(reads: &dyn Reads) -> Result<Page<'_>, Problem> {
    let services = reads.services();
    let states = join_all(services.iter().map(|shown| async move {
        let pulse = pulse(reads, *shown).await;
        let newest = match &pulse {
            Ok(pulse) => changes_before(reads, *shown, pulse.changes(), EACH).await.map(|found| found.0).unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        (*shown, pulse, newest)
    }))
    .await;
    let count = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    let known = || states.iter().filter_map(|(_, pulse, _)| pulse.as_ref().ok());
    let (today, all): (u64, u64) = (known().map(Pulse::today).sum(), known().map(Pulse::changes).sum());
    let mut newest: Vec<(Shown<'_>, &Row)> = states.iter().flat_map(|(shown, _, rows)| rows.iter().map(|row| (*shown, row))).collect();
    newest.sort_by(|(_, one), (_, other)| other.recorded_at.cmp(&one.recorded_at));
    let first = services.first();
    let main = html! {
        section.hero {
            h1 { "What changed in public records" }
            p.lead {
                strong.number { (count(today)) } " changes today, " span.number { (count(all)) } " recorded in " (services.len()) " services. "
                "Each change is kept, numbered and signed, so that every record can say since when it says what it says."
            }
            form.big role="search" action=(EXPLORE) method="get" {
                label.hidden for="q" { "Search all services" }
                input #q type="search" name="q" placeholder="A product, a company, a number" maxlength="200";
                button.primary { "Search" }
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
                    @for (shown, row) in newest.iter().take(SHOWN_MAX) {
                        li {
                            span.row { span.soft { (shown.service.title) } (event(&row.event)) }
                            (named(shown, row))
                            span.soft { (time(&row.recorded_at)) }
                        }
                    }
                }
            }
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
            }
        }
    };
    Ok(Page {
        title: "Highwater: what changed in public records".to_owned(),
        description: "Public records as change feeds: recalls, filings, awards, trials and more, with every version and its proof."
            .to_owned(),
        canonical: "/".to_owned(),
        search: "",
        status: 200,
        main,
    })
}

fn card(shown: &Shown<'_>, pulse: Option<&Pulse>, now_ms: i64) -> Markup {
    let count = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    html! {
        article.card {
            h3 { a href=(shown.explorer()) { (shown.service.title) } }
            @match pulse {
                Some(pulse) => {
                    p.row { strong.number { (count(pulse.today())) } span.soft { "today" } span.number.soft { (count(pulse.changes())) " in all" } }
                    (sparkline(&pulse.days, &pulse.summary()))
                    p.soft {
                        @match pulse.health["lastSnapshot"].as_str().filter(|at| !at.is_empty()) {
                            Some(at) => { "Synced " (ago(at, now_ms)) }
                            None => { @if pulse.changes() == 0 { "No complete sync yet" } @else { "Changes come from callers" } }
                        }
                    }
                }
                None => { p.soft { "Not available at the moment." } }
            }
        }
    }
}

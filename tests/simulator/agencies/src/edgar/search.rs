//! The full-text search. Its results are documents, so a filing with two documents is found twice.

use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::query::Query;
use simulated_world::world::World;

use super::{Filing, newest, symbol};

/// Documents per page.
const PAGE: usize = 100;

/// Handles a search for documents of filings by form (including amendments) and date, newest first.
pub(super) fn answer(world: &World, query: &Query<'_>) -> Answer {
    let forms: Vec<&str> = query.get("forms").map(|forms| forms.split(',').collect()).unwrap_or_default();
    let day = |name: &str| query.get(name).and_then(|day| day.parse::<Date>().ok());
    let (first, last) = (day("startdt"), day("enddt"));
    let fits = |filing: &Filing| {
        let root = filing.form.trim_end_matches("/A");
        (forms.is_empty() || forms.contains(&filing.form) || forms.contains(&root))
            && first.is_none_or(|first| filing.day >= first)
            && last.is_none_or(|last| filing.day <= last)
    };
    let found: Vec<Value> = newest(world).filter(fits).flat_map(|filing| documents(world, &filing)).collect();
    let from = query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0);
    let page: Vec<&Value> = found.iter().skip(from).take(PAGE).collect();
    let body = json!({
        "took": 7,
        "timed_out": false,
        "hits": {"total": {"value": found.len(), "relation": "eq"}, "max_score": null, "hits": page},
    });
    Answer::json(body.to_string().into_bytes())
}

/// Returns the documents of a filing: its form and, for filings with items, an exhibit.
fn documents(world: &World, filing: &Filing) -> Vec<Value> {
    let parties = filing.parties(world);
    let has_items = filing.form.starts_with("8-K");
    let items: Vec<&str> = filing.events.iter().map(|(code, _)| *code).filter(|_| has_items).collect();
    let name = |(cik, name, role): &(u64, String, &str)| {
        let symbol = symbol(world, filing.company);
        let ticker = if *role == "Reporting" || symbol == "NONE" { String::new() } else { format!("({symbol})  ") };
        format!("{name}  {ticker}(CIK {cik:010})")
    };
    let source = |kind: &str, sequence: u64| {
        json!({
            "ciks": parties.iter().map(|(cik, ..)| format!("{cik:010}")).collect::<Vec<_>>(),
            "display_names": parties.iter().map(name).collect::<Vec<_>>(),
            "adsh": filing.accession(),
            "form": filing.form,
            "root_forms": [filing.form.trim_end_matches("/A")],
            "file_type": kind,
            "file_date": filing.day.to_string(),
            "period_ending": if has_items { filing.day.to_string() } else { String::new() },
            "items": items,
            "sequence": sequence,
            "sics": [],
            "biz_states": [],
        })
    };
    let hit =
        |file: &str, source: Value| json!({"_index": "edgar_file", "_id": format!("{}:{file}", filing.accession()), "_source": source});
    let mut out = vec![hit("a.htm", source(filing.form, 1))];
    if has_items {
        out.push(hit("ex99.htm", source("EX-99.1", 2)));
    }
    out
}

//! The service's operations, compared with a simple model of the same changes.

use operation::context::Part;
use std::sync::Arc;
use std::time::Duration;

use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::facts::recalls::RecallFact;
use schemas::key;
use schemas::position::Seq;
use schemas::views::recalls::{AGENCIES, CATEGORIES, Recall, RememberedFact, SETS, SOURCES};
use serde_json::{Map, Value, json};

use crate::operations::list;
use crate::operations::search::Search;
use crate::operations::search::words::{query_words, words};
use crate::operations::webhook::NewRecalls;
use feed::testing::{Chance, HOUR_MS, START_MS, World, ask, call, fill, text, value};
use operation::context::Context;
use operation::{Body, Call, Form};
use reads::health;
use schemas::views::deliveries::Delivery;
use schemas::views::watches::SavedItem;
use webhooks::matchers::{NextMessage, matcher};

const DAY_MS: i64 = 24 * HOUR_MS;

fn urls(answer: &Value) -> Vec<&str> {
    answer["recalls"].as_array().unwrap().iter().map(|recall| recall["url"].as_str().unwrap()).collect()
}

/// Whether every word of the keyword is a prefix of a word of title, brand or hazard.
fn has(record: &Recall, keyword: &str) -> bool {
    let all: Vec<String> = [&record.title, &record.brand, &record.hazard].into_iter().flat_map(|text| words(text)).collect();
    query_words(keyword).unwrap().words.iter().all(|wanted| all.iter().any(|word| word.starts_with(wanted.as_str())))
}

/// The answer of the model to these arguments.
fn expected<'a>(world: &'a World, seq: Seq, arguments: &Map<String, Value>) -> Vec<&'a str> {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str);
    let fits = |record: &&Recall| {
        given("category").is_none_or(|category| record.category == category)
            && given("agency").is_none_or(|agency| record.agency == agency)
            && given("from").is_none_or(|from| !record.date.is_empty() && record.date.as_str() >= from)
            && given("to").is_none_or(|to| !record.date.is_empty() && record.date.as_str() <= to)
            && given("keyword").is_none_or(|keyword| has(record, keyword))
    };
    let limit = usize::try_from(arguments["limit"].as_u64().unwrap()).unwrap();
    world.standing(seq).into_iter().filter(fits).take(limit).map(|record| record.url.as_str()).collect()
}

/// Compares the operation with the model for many random arguments.
async fn compare(world: &World, ctx: &Arc<Context>, chance: &mut Chance, rounds: usize, keywords: &[&str]) {
    let operation = list::operation();
    let mut found = 0;
    for _ in 0..rounds {
        let mut arguments = Map::new();
        let mut seq = world.checkpoint.seq;
        if chance.below(2) == 0 {
            arguments.insert("category".to_owned(), json!(chance.one_of(&CATEGORIES)));
        }
        if chance.below(2) == 0 {
            arguments.insert("agency".to_owned(), json!(chance.one_of(&AGENCIES)));
        }
        let mut dates =
            [chance.below(3), chance.below(3)].map(|year| format!("202{}-{:02}-0{}", 4 + year, 1 + chance.below(12), 1 + chance.below(9)));
        dates.sort();
        if chance.below(3) == 0 {
            arguments.insert("from".to_owned(), json!(dates[0]));
        }
        if chance.below(3) == 0 {
            arguments.insert("to".to_owned(), json!(dates[1]));
        }
        if chance.below(3) == 0 {
            seq = Seq(1 + chance.below(usize::try_from(seq.0).unwrap()) as u64);
            arguments.insert("asOf".to_owned(), json!(rfc3339(START_MS + seq.previous().stored() * 600_000)));
        }
        if !keywords.is_empty() {
            arguments.insert("keyword".to_owned(), json!(chance.one_of(keywords)));
        }
        arguments.insert("limit".to_owned(), json!([1, 5, 50, 300][chance.below(4)]));
        let answer = value(ctx, &operation, Value::Object(arguments.clone())).await;
        let wanted = expected(world, seq, &arguments);
        assert_eq!(urls(&answer), wanted, "{arguments:?}");
        assert_eq!(answer["count"], wanted.len());
        found += wanted.len();
        // The pages that follow.
        let mut whole = arguments.clone();
        whole.insert("limit".to_owned(), json!(1_000_000));
        let whole = expected(world, seq, &whole);
        let (mut shown, mut next) = (wanted.len(), answer["next"].clone());
        for _ in 0..4 {
            assert_eq!(next.is_null(), shown == whole.len(), "{arguments:?}");
            if next.is_null() {
                break;
            }
            arguments.insert("after".to_owned(), next);
            arguments.insert("limit".to_owned(), json!([1, 7, 90][chance.below(3)]));
            let page = value(ctx, &operation, Value::Object(arguments.clone())).await;
            let urls = urls(&page);
            assert_eq!(urls, whole[shown..whole.len().min(shown + urls.len())], "{arguments:?}");
            (shown, next) = (shown + urls.len(), page["next"].clone());
        }
    }
    assert!(found > rounds, "the comparison must compare something");
}

/// Proves that lists by category, agency, dates and time are those of the model, ties and records without a date included.
#[tokio::test]
async fn lists_are_the_models() {
    let mut world = World::new().await;
    let mut chance = Chance(11);
    fill(&mut world, &mut chance, 3_000, 2_000).await;
    let ctx = world.context(START_MS + 30 * DAY_MS);
    compare(&world, &ctx, &mut chance, 300, &[]).await;
}

const KEYWORDS: [&str; 12] =
    ["choc", "chocolate", "BAT", "batteries", "éclair", "ÉC", "fire bat", "burn haz", "1", "18650 choco", "zzz", "firefly salmonella 180"];

/// Proves that keyword answers are those of the model: while documents are uncommitted, after commits, at earlier times, from an index
/// opened again, over a swap of generations, and after the index met another log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keywords_are_the_models() {
    let mut world = World::new().await;
    let mut chance = Chance(12);
    let ctx = world.context(START_MS + 60 * DAY_MS);
    let following = tokio::spawn(Search::of(&ctx).follow(world.store.clone(), ctx.settings.cache_dir.clone()));
    for _ in 0..4 {
        fill(&mut world, &mut chance, 700, 1_000).await;
        compare(&world, &ctx, &mut chance, 60, &KEYWORDS).await;
    }
    Search::of(&ctx).wait_committed(world.checkpoint.seq).await;
    compare(&world, &ctx, &mut chance, 60, &KEYWORDS).await;
    following.abort();
    assert!(following.await.unwrap_err().is_cancelled());

    let label = std::fs::read_to_string(world.dir.path().join("cache/meta.json")).unwrap();
    assert!(label.contains("origin") && !label.contains("\\\"seq\\\":0,"), "{label}");
    // The index is closed with its context.
    drop(ctx);
    let ctx = world.context(START_MS + 60 * DAY_MS);
    let following = tokio::spawn(Search::of(&ctx).follow(world.store.clone(), ctx.settings.cache_dir.clone()));
    Search::of(&ctx).wait_committed(world.checkpoint.seq).await;
    compare(&world, &ctx, &mut chance, 60, &KEYWORDS).await;
    fill(&mut world, &mut chance, 100, 1_000).await;
    compare(&world, &ctx, &mut chance, 60, &KEYWORDS).await;
    world.rebuild().await;
    compare(&world, &ctx, &mut chance, 20, &KEYWORDS).await;
    fill(&mut world, &mut chance, 100, 1_000).await;
    compare(&world, &ctx, &mut chance, 60, &KEYWORDS).await;
    following.abort();
    assert!(following.await.unwrap_err().is_cancelled());
    drop(ctx);

    let mut other = World::new().await;
    fill(&mut other, &mut chance, 333, 100).await;
    let ctx = other.context(START_MS + 60 * DAY_MS);
    let following = tokio::spawn(Search::of(&ctx).follow(other.store.clone(), Some(world.dir.path().join("cache"))));
    compare(&other, &ctx, &mut chance, 60, &KEYWORDS).await;
    following.abort();
}

/// Proves that a search continues with earlier days where all hits of the newest ones are earlier versions of a recall.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_versions_hide_no_recall() {
    let mut world = World::new().await;
    let version_on = |number: usize, day: usize| Recall {
        id: format!("FDA:{number:05}"),
        agency: "FDA".to_owned(),
        category: "food".to_owned(),
        title: "Almond bars".to_owned(),
        date: format!("2026-10-{day:02}"),
        url: format!("https://www.fda.gov/{number}"),
        ..Recall::default()
    };
    let versions = (2..=28).rev().map(|day| version_on(1, day));
    for (at, record) in (0..).zip([version_on(2, 1)].into_iter().chain(versions)) {
        world.change(START_MS + at * HOUR_MS, &record);
    }
    world.commit().await;
    let ctx = world.context(START_MS + 60 * HOUR_MS);
    let following = tokio::spawn(Search::of(&ctx).follow(world.store.clone(), ctx.settings.cache_dir.clone()));
    let operation = list::operation();
    let first = value(&ctx, &operation, json!({ "keyword": "almond", "limit": 1 })).await;
    assert_eq!(urls(&first), ["https://www.fda.gov/1"]);
    let second = value(&ctx, &operation, json!({ "keyword": "almond", "limit": 1, "after": first["next"] })).await;
    assert_eq!((urls(&second), second.get("next")), (vec!["https://www.fda.gov/2"], None));
    following.abort();
}

/// Proves that a keyword is refused with 503 while no index is there, and that other lists are not held up.
#[tokio::test]
async fn no_index_yet() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(13), 50, 20).await;
    let ctx = world.context_with(START_MS + DAY_MS, |settings| settings.call_times.read = Duration::from_secs(1));
    let problem = ask(&ctx, &list::operation(), json!({ "keyword": "bat" })).await.unwrap_err();
    assert_eq!((problem.code, problem.retry_after_s), (ErrorCode::Unavailable, 2));
    assert!(ask(&ctx, &list::operation(), json!({})).await.is_ok());
}

/// Proves that an answer without recalls says why, also as lines, and that one with recalls has no note.
#[tokio::test]
async fn empty_answers_say_why() {
    let mut world = World::new().await;
    let empty = world.context(START_MS);
    let operation = list::operation();
    assert_eq!(value(&empty, &operation, json!({})).await["note"], "nothing is recorded yet");
    fill(&mut world, &mut Chance(19), 50, 20).await;
    let ctx = world.context(START_MS + 30 * DAY_MS);
    assert!(value(&ctx, &operation, json!({})).await.get("note").is_none());
    for (arguments, expected) in [
        (json!({ "asOf": "2020-01-01", "category": "food" }), "nothing is recorded yet"),
        (json!({ "from": "2090-01-01" }), "nothing recorded fits from \"2090-01-01\""),
        (
            json!({ "category": "food", "from": "2090-01-01", "to": "2090-12-31" }),
            "nothing recorded fits category \"food\", from \"2090-01-01\", to \"2090-12-31\"",
        ),
    ] {
        let answer = value(&ctx, &operation, arguments.clone()).await;
        assert_eq!((&answer["count"], &answer["note"]), (&json!(0), &json!(expected)), "{arguments}");
        let lines = (operation.run)(Call { form: Form::Lines, ..call(&ctx) }, arguments).await.unwrap();
        let Body::Lines { note, .. } = &lines.body else { panic!("{:?}", lines.body) };
        assert_eq!(note.as_deref(), Some(expected));
    }
    let following = tokio::spawn(Search::of(&ctx).follow(world.store.clone(), ctx.settings.cache_dir.clone()));
    Search::of(&ctx).wait_committed(world.checkpoint.seq).await;
    assert_eq!(value(&ctx, &operation, json!({ "keyword": "zzzzz" })).await["note"], "nothing recorded has the keyword \"zzzzz\"");
    following.abort();
}

/// Proves that the pages of a list show the state of the first one while records change, that lines name the next page in their cursor, and that
/// an `after` of other arguments, of another kind or altered is refused by name.
#[tokio::test]
async fn pages_show_the_state_of_the_first() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(16), 600, 200).await;
    let ctx = world.context(START_MS + 30 * DAY_MS);
    let operation = list::operation();
    let whole = value(&ctx, &operation, json!({ "category": "food", "limit": 300 })).await;
    let (whole, mut shown) = (urls(&whole), Vec::new());
    let mut arguments = json!({ "category": "food", "limit": 5 });
    let mut chance = Chance(17);
    loop {
        let page = value(&ctx, &operation, arguments.clone()).await;
        shown.extend(urls(&page).into_iter().map(str::to_owned));
        let lines = (operation.run)(Call { form: Form::Lines, ..call(&ctx) }, arguments.clone()).await.unwrap();
        let next = page.get("next").and_then(Value::as_str);
        assert_eq!(lines.next_cursor, next.unwrap_or_default());
        let Some(next) = next else { break };
        arguments["after"] = json!(next);
        fill(&mut world, &mut chance, 20, 200).await;
    }
    assert_eq!(shown, whole);
    let after = arguments["after"].as_str().unwrap().to_owned();
    let cursor = feed::cursor::encode(&ctx.secrets, "recalls", Seq(1), "");
    for (category, after) in [("drugs", after.as_str()), ("food", &after[1..]), ("food", &cursor), ("food", "x")] {
        let problem = ask(&ctx, &operation, json!({ "category": category, "after": after })).await.unwrap_err();
        assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::CursorInvalid, "after"), "{category} {after}");
    }
}

/// Proves that wrong arguments are refused and named.
#[tokio::test]
async fn wrong_arguments() {
    let world = World::new().await;
    let ctx = world.context(START_MS);
    for (arguments, parameter) in [
        (json!({ "from": "2026-02-01", "to": "2026-01-31" }), "from"),
        (json!({ "from": "2026-13-01" }), "from"),
        (json!({ "to": "2026-02-30" }), "to"),
        (json!({ "to": "20260201" }), "to"),
        (json!({ "from": "2026-02-01T00:00:00" }), "from"),
        (json!({ "from": "2026-02-01T23:00:00-02:00", "to": "2026-02-01" }), "from"),
        (json!({ "agency": "FAA" }), "agency"),
        (json!({ "limit": 0 }), "limit"),
        (json!({ "limit": 301 }), "limit"),
        (json!({ "keyword": "--" }), "keyword"),
        (json!({ "asOf": "2026-11-01T00:00:01Z" }), "asOf"),
    ] {
        let shown = arguments.to_string();
        assert_eq!(ask(&ctx, &list::operation(), arguments).await.unwrap_err().parameter, parameter, "{shown}");
    }
    let problem = ask(&ctx, &list::operation(), json!({ "agency": "FDAA" })).await.unwrap_err();
    assert!(problem.detail.contains("did you mean \"FDA\""), "{}", problem.detail);
    let nothing = value(&ctx, &list::operation(), json!({ "agency": "fda", "from": "0001-01-01", "to": "9999-12-31" })).await;
    let empty =
        json!({ "updated": "", "count": 0, "tier": "free", "schema": nothing["schema"], "recalls": [], "note": "nothing is recorded yet" });
    assert_eq!(nothing, empty);
}

/// Proves the form of the feed response: fields in the contract's order, last refresh, lines, ETag.
#[tokio::test]
async fn form_of_the_answer() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(14), 200, 100).await;
    let ctx = world.context(START_MS + 2 * DAY_MS);
    let operation = list::operation();
    let answer = ask(&ctx, &operation, json!({ "agency": "CPSC", "limit": 2 })).await.unwrap();
    let etag = answer.etag.clone();
    let shown = text(answer);
    let order =
        ["updated", "count", "tier", "schema", "recalls", "agency", "category", "title", "brand", "hazard", "date", "url", "remedy"];
    let recalls = shown.find("\"recalls\":").unwrap();
    let at = |(n, name): (usize, &&str)| {
        shown[if n > 4 { recalls } else { 0 }..].find(&format!("\"{name}\":")).unwrap() + if n > 4 { recalls } else { 0 }
    };
    let places: Vec<usize> = order.iter().enumerate().map(at).collect();
    assert!(places.is_sorted(), "{shown}");
    let read: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(read["recalls"][0].as_object().unwrap().len(), 10);
    assert!(read["recalls"][0]["id"].as_str().unwrap().starts_with("CPSC:"));
    assert_eq!(read["recalls"][0]["agency"], "CPSC");
    assert_eq!(read["schema"], json!(["agency", "category", "title", "brand", "hazard", "date", "url", "remedy"]));
    assert_eq!(read["updated"], "2026-11-02");
    let lines = (operation.run)(Call { form: Form::Lines, ..call(&ctx) }, json!({ "agency": "CPSC", "limit": 2 })).await.unwrap();
    let Body::Lines { items: lines, .. } = lines.body else { panic!() };
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert_eq!(json!(lines), read["recalls"]);
    let again = Call { if_none_match: Some(etag), ..call(&ctx) };
    let same = (operation.run)(again.clone(), json!({ "agency": "CPSC", "limit": 2 })).await.unwrap();
    assert!(matches!(same.body, Body::NotModified));
    fill(&mut world, &mut Chance(15), 1, 100).await;
    let changed = (operation.run)(again, json!({ "agency": "CPSC", "limit": 2 })).await.unwrap();
    assert!(matches!(changed.body, Body::Parts(_)));
}

/// Proves that a recall of two agencies is one record, and that each agency's list shows the title, URL and date of that agency's own notice, found by
/// that date: whether the notice was a record of its own once or is known from its fact only.
#[tokio::test]
async fn an_agency_shows_its_own_notice() {
    let mut world = World::new().await;
    let recall = |id: &str, date: &str| Recall {
        id: id.to_owned(),
        agency: id.split(':').next().unwrap().to_owned(),
        category: "food".to_owned(),
        title: format!("title of {id}"),
        date: date.to_owned(),
        url: format!("https://example.org/{id}"),
        agencies: vec![id.split(':').next().unwrap().to_owned()],
        numbers: vec![id.to_owned()],
        urls: vec![format!("https://example.org/{id}")],
        ..Recall::default()
    };
    let joint = |one: &Recall, other: &Recall| Recall {
        agencies: [one.agencies.clone(), other.agencies.clone()].concat(),
        numbers: [one.numbers.clone(), other.numbers.clone()].concat(),
        urls: [one.urls.clone(), other.urls.clone()].concat(),
        ..one.clone()
    };
    // The notice of USDA was a record before that of FDA came.
    let (fda, usda) = (recall("FDA:1", "2026-10-10"), recall("USDA:1", "2026-10-04"));
    world.change(START_MS, &usda);
    world.change(START_MS, &Recall { merged_into: "FDA:1".to_owned(), ..usda.clone() });
    world.change(START_MS, &joint(&fda, &usda));
    // The notice of USDA came second, so it has no row.
    let (fda, usda) = (recall("FDA:2", "2026-10-10"), recall("USDA:2", "2026-10-13"));
    let own = RecallFact {
        agency: usda.agency.clone(),
        number: "2".to_owned(),
        title: usda.title.clone(),
        url: usda.url.clone(),
        date: usda.date.clone(),
        ..RecallFact::default()
    };
    let note = RememberedFact { key: "fsis/2".to_owned(), recall: Some(own), ..RememberedFact::default() };
    world.put(&SETS, key!["member/USDA:2"], br#"["fsis/2"]"#.to_vec());
    world.put(&SOURCES, key!["fsis/2"], serde_json::to_vec(&note).unwrap());
    world.change(START_MS, &joint(&fda, &usda));
    world.commit().await;
    let ctx = world.context(START_MS + DAY_MS);
    let shown = async |arguments: Value| -> Vec<Value> {
        let answer = value(&ctx, &list::operation(), arguments).await;
        let recalls = answer["recalls"].as_array().unwrap();
        recalls.iter().map(|one| json!([one["agency"], one["title"], one["date"], one["url"], one["id"], one["agencies"]])).collect()
    };
    let row = |shown: &str, date: &str, id: &str| {
        let agency = shown.split(':').next().unwrap();
        json!([agency, format!("title of {shown}"), date, format!("https://example.org/{shown}"), id, ["FDA", "USDA"]])
    };
    let fda = [row("FDA:1", "2026-10-10", "FDA:1"), row("FDA:2", "2026-10-10", "FDA:2")];
    let usda = [row("USDA:2", "2026-10-13", "FDA:2"), row("USDA:1", "2026-10-04", "FDA:1")];
    assert_eq!(shown(json!({})).await, fda);
    assert_eq!(shown(json!({ "agency": "FDA" })).await, fda);
    assert_eq!(shown(json!({ "agency": "USDA" })).await, usda);
    assert_eq!(shown(json!({ "agency": "USDA", "from": "2026-10-11" })).await, usda[..1]);
    for (from, to) in [("2026-10-11T23:59:59Z", "2026-12-31"), ("2026-10-12T01:00:00+02:00", "2026-12-31T00:00:00Z")] {
        assert_eq!(shown(json!({ "agency": "USDA", "from": from, "to": to })).await, usda[..1], "a time names its day in UTC");
    }
    assert_eq!(shown(json!({ "agency": "USDA", "category": "food", "to": "2026-10-12" })).await, usda[1..]);
    assert_eq!(shown(json!({ "agency": "USDA", "from": "2026-10-05", "to": "2026-10-12" })).await, [] as [Value; 0]);
    assert_eq!(shown(json!({ "agency": "FDA", "from": "2026-10-11" })).await, [] as [Value; 0]);
}

/// Proves that the sources of a recall of two agencies are its notices in the order of the rule, each with the values that it gave, and that a notice that
/// is gone gave none.
#[tokio::test]
async fn values_have_notices() {
    let mut world = World::new().await;
    let fact_of = |agency: &str, stream: &str, hazard: &str, url: &str| RecallFact {
        stream: stream.to_owned(),
        agency: agency.to_owned(),
        number: "1".to_owned(),
        title: "Milk".to_owned(),
        hazard: hazard.to_owned(),
        date: "2026-10-10".to_owned(),
        url: url.to_owned(),
        ..RecallFact::default()
    };
    let (fda, usda) = ("https://fda.example/1", "https://fsis.example/1");
    for (key, recall, gone) in [
        ("openfda.food/1", fact_of("FDA", "openfda.food", "", fda), false),
        ("fsis/1", fact_of("USDA", "fsis", "Listeria", usda), false),
        ("fsis/old", fact_of("USDA", "fsis", "Listeria", "https://fsis.example/old"), true),
    ] {
        let note = RememberedFact { key: key.to_owned(), gone, recall: Some(recall), ..RememberedFact::default() };
        world.put(&SOURCES, key![key], serde_json::to_vec(&note).unwrap());
    }
    world.put(&SETS, key!["member/FDA:1"], br#"["openfda.food/1"]"#.to_vec());
    world.put(&SETS, key!["member/USDA:1"], br#"["fsis/1","fsis/old"]"#.to_vec());
    let list = |items: [&str; 2]| items.map(str::to_owned).to_vec();
    let merged = Recall {
        id: "FDA:1".to_owned(),
        agency: "FDA".to_owned(),
        category: "food".to_owned(),
        title: "Milk".to_owned(),
        hazard: "Listeria".to_owned(),
        date: "2026-10-10".to_owned(),
        url: fda.to_owned(),
        agencies: list(["FDA", "USDA"]),
        numbers: list(["FDA:1", "USDA:1"]),
        urls: list([fda, usda]),
        ..Recall::default()
    };
    world.change(START_MS, &merged);
    world.commit().await;
    let ctx = world.context(START_MS + DAY_MS);
    let service = super::service().service;
    let operation = service.operations.iter().find(|operation| operation.name == "record_sources").unwrap();
    let answer = value(&ctx, operation, json!({ "id": "FDA:1" })).await;
    let notices: Vec<Value> =
        answer["notices"].as_array().unwrap().iter().map(|one| json!([one["number"], one["stream"], one["fields"]])).collect();
    let own = ["agencies", "agency", "alert", "category", "date", "numbers", "title", "url", "urls"];
    let expected = [json!(["FDA:1", "openfda.food", own]), json!(["USDA:1", "fsis", ["agencies", "hazard", "numbers", "urls"]])];
    assert_eq!(notices, expected, "{answer}");
}

/// Proves what `health` says before the first change, of a shallow history, and of a deeper one.
#[tokio::test]
async fn health_of_the_history() {
    let mut world = World::new().await;
    let ctx = world.context(START_MS + 2 * DAY_MS);
    let empty = value(&ctx, &health::operation::<health::NoFields>(super::SOURCE), json!({})).await;
    assert_eq!((&empty["status"], &empty["changes"], &empty["historyFrom"]), (&json!("ok"), &json!(0), &json!("")));
    assert_eq!(empty["records"], 0);
    fill(&mut world, &mut Chance(16), 200, 100).await;
    let shallow = value(&ctx, &health::operation::<health::NoFields>(super::SOURCE), json!({})).await;
    assert_eq!(shallow["historyDays"], 2);
    assert!(shallow["note"].as_str().unwrap().contains("shallow"));
    assert_eq!(
        (&shallow["changes"], &shallow["snapshotCount"], &shallow["historyFrom"]),
        (&json!(200), &json!(4), &json!("2026-11-01T00:00:00.000Z"))
    );
    let deep = value(&world.context(START_MS + 8 * DAY_MS), &health::operation::<health::NoFields>(super::SOURCE), json!({})).await;
    assert_eq!((&deep["historyDays"], deep.get("note")), (&json!(8), None));
    let before = value(&ctx, &health::operation::<health::NoFields>(super::SOURCE), json!({ "asOf": "2026-10-31" })).await;
    assert_eq!((&before["changes"], &before["snapshotCount"]), (&json!(0), &json!(0)));
}

/// Proves that `health` says how many records there are if the view has counted them, and never as of an earlier time.
#[tokio::test]
async fn health_counts_records() {
    let mut world = World::new().await;
    let ctx = world.context(START_MS + 2 * DAY_MS);
    fill(&mut world, &mut Chance(16), 20, 10).await;
    let records =
        async |arguments| value(&ctx, &health::operation::<health::NoFields>(super::SOURCE), arguments).await.get("records").cloned();
    assert_eq!(records(json!({})).await, None, "a version that did not count wrote the view");
    world.checkpoint.records = Some(7);
    world.commit().await;
    assert_eq!(records(json!({})).await, Some(json!(7)));
    for as_of in ["2026-10-31", "2026-11-02", "2026-11-03T00:00:00Z"] {
        assert_eq!(records(json!({ "asOf": as_of })).await, None, "{as_of}");
    }
}

/// Proves that a recall is found by each of its numbers, as a keyword and as an address, in any form; that a part of a number finds nothing; and that a
/// number is found as of the time of the recall only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_find_recalls() {
    let mut world = World::new().await;
    let recall_of = |id: &str, numbers: &[&str], title: &str| Recall {
        id: id.to_owned(),
        agency: id.split(':').next().unwrap().to_owned(),
        category: "vehicles".to_owned(),
        title: title.to_owned(),
        date: "2026-10-20".to_owned(),
        url: format!("https://www.nhtsa.gov/{id}"),
        numbers: numbers.iter().map(|number| (*number).to_owned()).collect(),
        ..Recall::default()
    };
    world.change(START_MS, &recall_of("NHTSA:26V360000", &["NHTSA:26V360000"], "Brakes"));
    world.change(START_MS + HOUR_MS, &recall_of("FDA:Z-0315-2026", &["FDA:Z-0315-2026", "FDA:Z-0316-2026"], "Pumps"));
    world.commit().await;
    let ctx = world.context(START_MS + 2 * HOUR_MS);
    let following = tokio::spawn(Search::of(&ctx).follow(world.store.clone(), None));
    let service = super::service().service;
    let operation = |name: &str| service.operations.iter().find(|operation| operation.name == name).unwrap();
    for (number, id) in [
        ("26V360000", "NHTSA:26V360000"),
        ("26v-360", "NHTSA:26V360000"),
        ("nhtsa:26v360000", "NHTSA:26V360000"),
        ("Z-0315-2026", "FDA:Z-0315-2026"),
        ("z-0316-2026", "FDA:Z-0315-2026"),
    ] {
        let found = value(&ctx, operation("search_recalls"), json!({ "keyword": number, "limit": 5 })).await;
        assert_eq!((&found["count"], &found["recalls"][0]["id"]), (&json!(1), &json!(id)), "{number}");
        for name in ["record", "record_history"] {
            let found = value(&ctx, operation(name), json!({ "id": number })).await;
            assert_eq!(found["id"], id, "{name} {number}");
        }
    }
    for number in ["26V36", "Z-0315", "Z-0317-2026"] {
        assert_eq!(value(&ctx, operation("search_recalls"), json!({ "keyword": number, "limit": 5 })).await["count"], 0, "{number}");
        assert_eq!(ask(&ctx, operation("record"), json!({ "id": number })).await.unwrap_err().code, ErrorCode::NotFound, "{number}");
    }
    let early = rfc3339(START_MS + HOUR_MS / 2);
    let then = json!({ "keyword": "Z-0315-2026", "asOf": early, "limit": 5 });
    assert_eq!(value(&ctx, operation("search_recalls"), then).await["count"], 0);
    let then = json!({ "keyword": "26v360000", "asOf": early, "limit": 5 });
    assert_eq!(value(&ctx, operation("search_recalls"), then).await["count"], 1);
    following.abort();
}

/// Proves that a webhook is sent each new recall once and none that was published long ago, be it old by its date or by its number alone; and that the
/// feed has them all.
#[tokio::test]
async fn webhooks_are_sent_no_late_news() {
    let mut world = World::new().await;
    let recall = |id: &str, date: &str| Recall {
        id: id.to_owned(),
        numbers: vec![id.to_owned()],
        title: id.to_owned(),
        date: date.to_owned(),
        ..Recall::default()
    };
    // Recorded in November 2026.
    for (id, date) in [
        ("CPSC:01123", "2001-05-02"),
        ("CPSC:27001", "2026-10-30"),
        ("USDA:077-2009", "2026-10-31"),
        ("FDA:F-0123-2013", "2026-10-31"),
        ("FDA:F-0123-2013", "2026-10-30"),
        ("FDA:F-0001-2027", "2026-09-02"),
        ("NHTSA:09V123000", ""),
        ("FDA:F-0002-2027", "2026-09-01"),
    ] {
        world.change(START_MS, &recall(id, date));
    }
    world.commit().await;
    let ctx = world.context(START_MS);
    let (mut matcher, watch) = (matcher::<NewRecalls>(), SavedItem { id: "watch_1".to_owned(), ..SavedItem::default() });
    assert!(matcher.add(&watch));
    let (mut after, upto, mut sent) = (Seq(0), world.checkpoint.seq, Vec::new());
    while after < upto {
        after = match matcher.next(&ctx, &watch.id, after, upto).await.unwrap() {
            NextMessage::NoneUpTo(to) => to,
            NextMessage::NotBefore(due_ms) => panic!("the message is due at {due_ms}"),
            NextMessage::Span(_, last) => {
                let message = Delivery { done: after, upto: last, ..Delivery::default() };
                let body: Value = serde_json::from_slice(&matcher.body(&ctx, &watch, &message).await.unwrap().unwrap()).unwrap();
                sent.push(body["recall"]["title"].as_str().unwrap().to_owned());
                last
            }
        };
    }
    assert_eq!(sent, ["CPSC:27001", "FDA:F-0001-2027"]);
    let waiting = matcher.matching_watches(&ctx, world.view.clone(), Seq(2), Seq(5), &|_| true).await.unwrap();
    assert_eq!(waiting, (Vec::new(), Seq(5)), "a page with late news and a correction of it concerns no watch");
}

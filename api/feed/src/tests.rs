//! The operation `changes` over a filled view.

use std::sync::Arc;
use std::time::Duration;

use operation::context::{Context, Part as _};
use operation::problem::Problem;
use operation::signing_state::SigningState;
use operation::{Answer, Body, Call, Form, Operation};
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::accounts::Tier;
use schemas::views::recalls::Recall;
use serde_json::{Value, json};

use super::testing::SOURCE;
use super::testing::{Chance, HOUR_MS, START_MS, World, call as anonymous, fill, record_by_chance};
use super::{Source, changes, cursor, days, position};

/// A call with a paid key, whose pages have full length.
fn call(ctx: &Arc<Context>) -> Call {
    let mut call = anonymous(ctx);
    call.caller.tier = Tier::Pro;
    call
}

async fn ask(ctx: &Arc<Context>, operation: &Operation, arguments: Value) -> Result<Answer, Problem> {
    (operation.run)(call(ctx), arguments).await
}

async fn value(ctx: &Arc<Context>, operation: &Operation, arguments: Value) -> Value {
    match ask(ctx, operation, arguments).await.unwrap().body {
        Body::Parts(parts) => serde_json::from_slice(&parts.concat()).unwrap(),
        body => panic!("{body:?}"),
    }
}

const DAY_MS: i64 = 24 * HOUR_MS;

fn operation() -> Operation {
    changes::operation::<Recall>(SOURCE, changes::example())
}

/// Proves that a page says that its changes are not signed while the checkpoints of its service are withheld, that it is another page for caches then, and
/// that a refusal of another service's tree changes nothing.
#[tokio::test]
async fn unsigned_changes_say_so() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(2), 10, 10).await;
    let ctx = world.context(START_MS + 30 * DAY_MS);
    let (operation, state) = (operation(), SigningState::of(&ctx));
    let page = async || {
        let etag = ask(&ctx, &operation, changes::example()).await.unwrap().etag;
        (value(&ctx, &operation, changes::example()).await["note"].as_str().unwrap_or_default().to_owned(), etag)
    };
    let signed = page().await;
    state.refuse_tree("awards", Some("secret".to_owned()));
    assert_eq!(page().await, signed);
    state.refuse_tree("recalls", Some("secret".to_owned()));
    let unsigned = page().await;
    assert!(unsigned.0.contains("not signed") && !unsigned.0.contains("secret") && unsigned.1 != signed.1, "{unsigned:?}");
    state.refuse_tree("recalls", None);
    assert_eq!(page().await, signed);
}

/// Proves that pages of any size join without a gap and give every change once, as JSON and as NDJSON.
#[tokio::test]
async fn pages_join() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(1), 1_000, 300).await;
    let ctx = world.context(START_MS + 30 * DAY_MS);
    let operation = operation();
    for limit in [1, 7, 50, 199, 200] {
        let (mut got, mut lines, mut to) = (Vec::new(), Vec::new(), 0);
        let mut arguments = json!({ "start": "earliest", "limit": limit });
        loop {
            let answer = (operation.run)(Call { form: Form::Lines, ..call(&ctx) }, arguments.clone()).await.unwrap();
            let page = value(&ctx, &operation, arguments).await;
            assert_eq!(page["cursor"], answer.next_cursor);
            let Body::Lines { items: page_lines, .. } = answer.body else { panic!() };
            lines.extend(page_lines.iter().map(|line| serde_json::from_slice::<Value>(line).unwrap()));
            assert_eq!(page["from"], to + 1);
            to = page["to"].as_u64().unwrap();
            assert_eq!(page["hasMore"], to < 1_000);
            assert_eq!(page["snapshotCount"], to / 50);
            got.extend(page["changes"].as_array().unwrap().clone());
            arguments = json!({ "cursor": page["cursor"], "limit": limit });
            if page["hasMore"] == false {
                assert_eq!(page.get("note"), None);
                break;
            }
        }
        assert_eq!(got, world.elements.iter().map(|(_, element)| element.clone()).collect::<Vec<_>>());
        assert_eq!(lines, got);
        let end = value(&ctx, &operation, arguments).await;
        assert_eq!((&end["from"], &end["to"], &end["hasMore"]), (&json!(1_001), &json!(1_000), &json!(false)));
        assert_eq!(end["changes"], json!([]));
    }
}

/// Proves where feeds without a cursor start, and that invalid arguments are named.
#[tokio::test]
async fn starts() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(2), 1_500, 300).await;
    let operation = operation();
    // One change every ten minutes: change n is recorded (n - 1) * 10 minutes after the start.
    let ctx = world.context(START_MS + 10 * DAY_MS);
    assert_eq!(value(&ctx, &operation, json!({})).await["from"], 3 * 144 + 1);
    assert_eq!(value(&ctx, &operation, json!({ "start": "2026-11-02" })).await["from"], 145);
    for (time, from) in [
        ("2026-11-02T00:00:00Z", 145),
        ("2026-11-02T00:00:00.0001Z", 146),
        ("2026-11-01T23:50:00.001Z", 145),
        ("2026-11-01T23:50:00Z", 144),
        ("2026-11-02T02:00:00+02:00", 145),
    ] {
        assert_eq!(value(&ctx, &operation, json!({ "start": time })).await["from"], from, "{time}");
    }
    let latest = value(&ctx, &operation, json!({ "start": "latest" })).await;
    assert_eq!((&latest["from"], &latest["to"], &latest["hasMore"]), (&json!(1_501), &json!(1_500), &json!(false)));
    let as_of = value(&ctx, &operation, json!({ "start": "latest", "asOf": "2026-11-01" })).await;
    assert_eq!(as_of["to"], 144);
    assert!(as_of["note"].is_string());
    let as_of = value(&ctx, &operation, json!({ "asOf": "2026-11-01T00:10:00Z" })).await;
    assert_eq!((&as_of["from"], &as_of["to"], &as_of["hasMore"]), (&json!(1), &json!(2), &json!(false)));
    for (arguments, parameter) in [
        (json!({ "start": "2026-13-01" }), "start"),
        (json!({ "start": "now" }), "start"),
        (json!({ "limit": 0 }), "limit"),
        (json!({ "limit": 201 }), "limit"),
        (json!({ "asOf": "2026-11-11" }), "asOf"),
        (json!({ "asOf": "soon" }), "asOf"),
        (json!({ "cursor": "" }), "cursor"),
        (json!({ "cursor": latest["cursor"], "start": "latest" }), "start"),
    ] {
        let shown = arguments.to_string();
        assert_eq!(ask(&ctx, &operation, arguments).await.unwrap_err().parameter, parameter, "{shown}");
    }
}

/// Proves that the newest changes can be read backwards, page by page, and that a day's changes are those recorded on it, also as of an earlier time.
#[tokio::test]
async fn newest_changes_and_changes_by_day() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(2), 300, 300).await;
    let (ctx, operation) = (world.context(START_MS + 3 * DAY_MS), operation());
    let mut arguments = json!({ "start": "newest", "limit": 120 });
    // Every fiftieth change is internal.
    for (from, to, shown, has_more) in [(178_u64, 300, 120, false), (56, 177, 120, true), (1, 55, 54, true)] {
        let page = value(&ctx, &operation, arguments.clone()).await;
        assert_eq!((&page["from"], &page["to"], &page["hasMore"]), (&json!(from), &json!(to), &json!(has_more)));
        assert_eq!(page["changes"].as_array().unwrap().len(), shown);
        let before = (from > 1).then(|| cursor::encode(&ctx.secrets, "recalls", Seq(from - 1), ""));
        assert_eq!(page["older"].as_str(), before.as_deref());
        let lines = (operation.run)(Call { form: Form::Lines, ..call(&ctx) }, arguments.clone()).await.unwrap();
        let Body::Lines { items, older, .. } = &lines.body else { panic!("{:?}", lines.body) };
        assert_eq!((items.len(), older), (shown, &before));
        if let Some(before) = before {
            arguments["cursor"] = json!(before);
        }
    }
    let forwards = value(&ctx, &operation, json!({ "cursor": arguments["cursor"] })).await;
    assert!(forwards.get("older").is_none(), "{forwards}");
    arguments["wait"] = json!(1);
    assert_eq!(ask(&ctx, &operation, arguments).await.unwrap_err().parameter, "start");

    // One change every ten minutes, 144 a day.
    let counts = async |as_of: Option<&str>, days: i64| {
        let at = position::position(&ctx, &SOURCE, as_of).await.unwrap();
        let days = days::changes_by_day(&ctx, &SOURCE, &at, days).await.unwrap();
        days.into_iter().map(|day| format!("{} {}", day.day, day.changes)).collect::<Vec<_>>()
    };
    assert_eq!(counts(None, 5).await, ["2026-10-31 0", "2026-11-01 144", "2026-11-02 144", "2026-11-03 12", "2026-11-04 0"]);
    assert_eq!(counts(Some("2026-11-02T00:10:00Z"), 2).await, ["2026-11-01 144", "2026-11-02 2"]);
}

/// Proves that a caller without a key is led backwards to the first change of the free window, and not beyond it.
#[tokio::test]
async fn newest_changes_lead_back_to_the_free_window() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(4), 300, 300).await;
    let ctx = world.context(START_MS + 8 * DAY_MS);
    let operation = changes::operation::<Recall>(Source { sample_days: Some(7), ..SOURCE }, changes::example());
    let page = async |arguments: Value| -> Value {
        match (operation.run)(anonymous(&ctx), arguments).await.unwrap().body {
            Body::Parts(parts) => serde_json::from_slice(&parts.concat()).unwrap(),
            body => panic!("{body:?}"),
        }
    };
    let first = page(json!({ "start": "earliest" })).await["from"].as_u64().unwrap();
    assert!(first > 1);
    let (mut arguments, mut end) = (json!({ "start": "newest" }), 300_u64);
    loop {
        let page = page(arguments.clone()).await;
        assert_eq!(page["to"], end);
        end = page["from"].as_u64().unwrap() - 1;
        match page["older"].as_str() {
            Some(older) => arguments["cursor"] = json!(older),
            None => break,
        }
    }
    assert_eq!(end + 1, first);
}

/// Proves that completeness is the earliest day of all upstreams, at the position of the page.
#[tokio::test]
async fn completeness() {
    let mut world = World::new().await;
    let record = record_by_chance(&mut Chance(3), 1);
    world.change(START_MS, &record);
    world.through(START_MS + 1, "cpsc", "2026-10-31");
    world.change(START_MS + 2, &record);
    world.through(START_MS + 3, "nhtsa", "2026-10-20");
    world.commit().await;
    let ctx = world.context(START_MS + HOUR_MS);
    let operation = operation();
    let page = value(&ctx, &operation, json!({ "start": "earliest", "limit": 1 })).await;
    assert_eq!((&page["to"], &page["throughDate"], &page["snapshotCount"]), (&json!(2), &json!("2026-10-31"), &json!(1)));
    let page = value(&ctx, &operation, json!({ "start": "earliest" })).await;
    assert_eq!((&page["to"], &page["throughDate"], &page["snapshotCount"]), (&json!(4), &json!("2026-10-20"), &json!(2)));
    world.through(START_MS + 4, "nhtsa", "2026-11-01");
    world.commit().await;
    let page = value(&ctx, &operation, json!({ "cursor": page["cursor"] })).await;
    assert_eq!((&page["from"], &page["throughDate"], &page["snapshotCount"]), (&json!(5), &json!("2026-10-31"), &json!(3)));
}

/// Proves that a cursor ahead of a lagging view waits and then gets 503; a cursor beyond the end of the log is refused.
#[tokio::test]
async fn lagging_view() {
    let mut world = World::new().await;
    let record = record_by_chance(&mut Chance(4), 1);
    world.change(START_MS, &record);
    world.commit().await;
    let ctx = world.context(START_MS + HOUR_MS);
    let impatient = world.context_with(START_MS + HOUR_MS, |settings| settings.call_times.read = Duration::from_secs(1));
    let operation = Arc::new(operation());
    let ahead = |seq| json!({ "cursor": cursor::encode(&ctx.secrets, "recalls", Seq(seq), "") });
    assert_eq!(ask(&ctx, &operation, ahead(2)).await.unwrap_err().code, ErrorCode::CursorInvalid);
    world.change(START_MS + 1, &record);
    world.log_only().await;
    assert_eq!(ask(&ctx, &operation, ahead(3)).await.unwrap_err().code, ErrorCode::CursorInvalid);
    let waiting = tokio::spawn({
        let (ctx, operation, arguments) = (Arc::clone(&ctx), Arc::clone(&operation), ahead(2));
        async move { ask(&ctx, &operation, arguments).await }
    });
    tokio::task::yield_now().await;
    world.view_only().await;
    assert!(waiting.await.unwrap().is_ok());
    world.change(START_MS + 2, &record);
    world.log_only().await;
    let problem = ask(&impatient, &operation, ahead(3)).await.unwrap_err();
    assert_eq!((problem.code, problem.retry_after_s), (ErrorCode::Unavailable, 2));
    let problem = ask(&impatient, &operation, json!({ "asOf": "2026-11-01T00:30:00Z" })).await.unwrap_err();
    assert_eq!(problem.code, ErrorCode::Unavailable);
}

/// Proves that a record at the end of the log that extends no chain does not block readers.
#[tokio::test]
async fn records_that_extend_no_chain_are_ignored() {
    let mut world = World::new().await;
    world.change(START_MS, &record_by_chance(&mut Chance(4), 1));
    world.commit().await;
    world.zombie().await;
    let ctx = world.context(START_MS + HOUR_MS);
    let page = value(&ctx, &operation(), json!({ "start": "earliest", "asOf": "2026-11-01T00:30:00Z" })).await;
    assert_eq!(page["to"], 1);
    world.change(START_MS + 1, &record_by_chance(&mut Chance(4), 1));
    world.commit().await;
    let page = value(&ctx, &operation(), json!({ "start": "earliest", "asOf": "2026-11-01T00:30:00Z" })).await;
    assert_eq!(page["to"], 2);
}

/// Proves that an unchanged page is answered without a body, and that the ETag changes with the answer.
#[tokio::test]
async fn unchanged_pages() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(5), 60, 20).await;
    let ctx = world.context(START_MS + 30 * DAY_MS);
    let operation = operation();
    let arguments = json!({ "start": "earliest" });
    let first = ask(&ctx, &operation, arguments.clone()).await.unwrap();
    assert!(!first.etag.is_empty());
    let again = Call { if_none_match: Some(format!("\"x\", W/{}", first.etag)), ..call(&ctx) };
    let answer = (operation.run)(again.clone(), arguments.clone()).await.unwrap();
    assert!(matches!(answer.body, Body::NotModified));
    let answer = (operation.run)(again.clone(), json!({ "start": "earliest", "limit": 9 })).await.unwrap();
    assert!(matches!(answer.body, Body::Parts(_)));
    fill(&mut world, &mut Chance(6), 1, 20).await;
    let answer = (operation.run)(again, json!({ "start": "earliest", "limit": 200 })).await.unwrap();
    assert!(matches!(answer.body, Body::Parts(_)));
}

/// Proves that pages with the newest changes reach the end, and join the pages before them to the first change, also where more changes that no reader sees
/// come in a row than a block has.
#[tokio::test]
async fn pages_join_backwards() {
    let mut world = World::new().await;
    for (part, hidden) in [60, 1, 130, 49].into_iter().enumerate() {
        fill(&mut world, &mut Chance(10 + part as u64), 35, 20).await;
        for _ in 0..hidden {
            world.through(START_MS + world.checkpoint.seq.stored() * 600_000, "cpsc", "2026-11-02");
        }
        world.commit().await;
    }
    let (ctx, operation) = (world.context(START_MS + 30 * DAY_MS), operation());
    for limit in [1, 2, 49, 50, 120] {
        let (mut seqs, mut end) = (Vec::new(), world.checkpoint.seq.0);
        let mut arguments = json!({ "start": "newest", "limit": limit });
        loop {
            let page = value(&ctx, &operation, arguments).await;
            assert_eq!((&page["to"], &page["hasMore"]), (&json!(end), &json!(end < world.checkpoint.seq.0)), "{limit}: {page}");
            let shown = page["changes"].as_array().unwrap().iter().rev().map(|change| change["seq"].as_u64().unwrap());
            seqs.extend(shown);
            end = page["from"].as_u64().unwrap() - 1;
            let Some(older) = page.get("older") else { break };
            arguments = json!({ "start": "newest", "limit": limit, "cursor": older });
        }
        assert_eq!(end, 0, "{limit}");
        assert_eq!(seqs, world.elements.iter().rev().map(|(seq, _)| seq.0).collect::<Vec<u64>>(), "{limit}");
    }
}

/// Proves that a caller without a paid key gets shorter pages, with a note where more follows, and misses nothing.
#[tokio::test]
async fn free_pages_are_shorter() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(7), 60, 20).await;
    let ctx = world.context(START_MS + 30 * DAY_MS);
    let mut free = call(&ctx);
    free.caller.tier = Tier::Free;
    let mut arguments = json!({ "start": "earliest", "limit": 200 });
    for (from, to) in [(1, 25), (26, 51), (52, 60)] {
        let answer = (operation().run)(free.clone(), arguments.clone()).await.unwrap();
        let Body::Parts(parts) = answer.body else { panic!() };
        let page: Value = serde_json::from_slice(&parts.concat()).unwrap();
        assert_eq!((&page["from"], &page["to"]), (&json!(from), &json!(to)));
        let is_limited = page["note"].as_str().is_some_and(|note| note.contains("25"));
        assert_eq!(page["hasMore"], is_limited, "{page}");
        for form in [Form::Lines, Form::Events] {
            let other = (operation().run)(Call { form, ..free.clone() }, arguments.clone()).await.unwrap();
            let (Body::Lines { note, .. } | Body::Events { note, .. }) = other.body else { panic!("{form:?}") };
            assert_eq!(note.as_deref(), page["note"].as_str(), "{form:?} {page}");
        }
        arguments = json!({ "cursor": page["cursor"], "limit": 200 });
    }
}

/// Proves that an Atom document without a position has the newest changes, oldest first, also if changes that no reader sees follow them.
#[tokio::test]
async fn atom_documents_begin_with_the_newest() {
    let mut world = World::new().await;
    fill(&mut world, &mut Chance(8), 300, 40).await;
    let (ctx, operation) = (world.context(START_MS + 30 * DAY_MS), operation());
    for hidden in [0, 70] {
        for n in 0..hidden {
            world.through(START_MS + 3 * DAY_MS + n, "cpsc", "2026-11-02");
        }
        world.commit().await;
        let all: Vec<Seq> = world.elements.iter().map(|(seq, _)| *seq).collect();
        for limit in [1, 7, 50, 120] {
            let answer = (operation.run)(Call { form: Form::Atom, ..call(&ctx) }, json!({ "limit": limit })).await.unwrap();
            let Body::Events { items, .. } = answer.body else { panic!("{:?}", answer.body) };
            let seqs = items.iter().map(|item| cursor::decode(&ctx.secrets, "recalls", "", &item.id).unwrap());
            let seqs: Vec<Seq> = seqs.collect();
            assert!(!seqs.is_empty() && all.ends_with(&seqs), "{limit} {hidden}: {seqs:?}");
            assert!(hidden > 0 || seqs.len() == limit, "{limit}: {seqs:?}");
        }
    }
}

//! Ranked lists and redacted changes, over the view of things: what pages hold, what totals say, and what callers below a tier see.

use std::sync::Arc;

use operation::context::Context;
use operation::{Body, Call, Form};
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::views::accounts::Tier;
use serde_json::{Value, json};

use super::Source;
use super::changes;
use super::places::{PLACES_MAX, Ranked, Segment, Total, Walk};
use super::position::{Position, position};
use super::query::Feed;
use super::redaction::Redaction;
use super::testing::{Chance, call};
use super::things::{LARGE, SMALL, Thing, Things, keyed, query};

/// A part that holds every place.
fn whole() -> Segment {
    Segment { buckets: 0..=10, ranks: 0..=100 }
}

async fn position_at(ctx: &Context, feed: &Feed, seq: Seq) -> Position {
    Position { seq, ..position(ctx, &feed.source, None).await.unwrap() }
}

/// Proves that records are read by their ids as they were at any change, in the order of the ids, also if they changed since or came later, and that an id
/// which is not recorded has none.
#[tokio::test]
async fn records_by_id_are_those_of_the_position() {
    let things = Things::filled(&SMALL, 33, 400).await;
    let (ctx, feed, last) = (things.context(), things.feed(None), things.checkpoint.seq);
    let mut ids: Vec<String> = things.standing(last).into_keys().rev().map(str::to_owned).collect();
    ids.insert(1, "thing/none".to_owned());
    for seq in [Seq(0), Seq(1), Seq(90), Seq(250), last] {
        let (at, standing) = (position_at(&ctx, &feed, seq).await, things.standing(seq));
        let found = feed.records_by_id::<Thing>(&at, &ids).await.unwrap();
        let expected: Vec<Option<Thing>> = ids.iter().map(|id| standing.get(id.as_str()).map(|thing| (*thing).clone())).collect();
        assert_eq!(found, expected, "at {seq}");
    }
}

/// Reads all pages of a list. Returns the ids, and the total of every page.
async fn read_all(
    (ctx, feed, at): (&Context, &Feed, &Position),
    (list, part): (&str, &Segment),
    least: Option<i64>,
    mut limit: impl FnMut() -> usize,
) -> (Vec<String>, Vec<Option<u64>>) {
    let (mut ids, mut totals, mut after): (_, _, Option<String>) = (Vec::new(), Vec::new(), None);
    loop {
        let filter = format!("{least:?}");
        let limit = limit();
        let walk = Walk { list, part: part.clone(), filter: &filter, limit, after: after.as_deref() };
        let selects = |thing: &Thing| least.is_none_or(|least| thing.name.len() as i64 >= least);
        let page: Ranked<Thing> = feed.ranked(ctx, at, walk, least.is_some().then_some(&selects), Total::Counted).await.unwrap();
        assert!(page.items.len() <= limit);
        ids.extend(page.items.into_iter().map(|thing| thing.id));
        totals.push(page.total);
        match page.next {
            Some(next) => after = Some(next),
            None => return (ids, totals),
        }
    }
}

/// Proves that pages of any size, under any condition and as of any change, hold each matching record of a list once, in the order of rank
/// and id, and that each page has the exact total.
#[tokio::test]
async fn pages_hold_the_list_as_of_any_change() {
    let things = Things::filled(&SMALL, 31, 900).await;
    let (ctx, feed, mut chance) = (things.context(), things.feed(None), Chance(32));
    for _ in 0..40 {
        let seq = Seq(chance.below(usize::try_from(things.checkpoint.seq.0).unwrap() + 1) as u64);
        let at = position_at(&ctx, &feed, seq).await;
        let kind = ["", "a", "b", "rare", "none"][chance.below(5)];
        let low = [0, 17, 30][chance.below(3)];
        let part = Segment { buckets: low / 10..=9, ranks: low..=[40, 59, 100][chance.below(3)] };
        let least = [None, Some(7), Some(8), Some(100)][chance.below(4)];
        let mut expected: Vec<&Thing> = things.standing(seq).into_values().collect();
        expected.retain(|thing| {
            (kind.is_empty() || thing.kind == kind)
                && thing.size < 95
                && part.ranks.contains(&thing.size)
                && least.is_none_or(|least| thing.name.len() as i64 >= least)
        });
        expected.sort_by(|one, other| (one.size, &one.id).cmp(&(other.size, &other.id)));
        let list = if kind.is_empty() { "all".to_owned() } else { format!("kind/{kind}") };
        let (ids, totals) = read_all((&ctx, &feed, &at), (&list, &part), least, || 1 + chance.below(60)).await;
        assert_eq!(ids, expected.iter().map(|thing| thing.id.clone()).collect::<Vec<_>>(), "{list} {part:?} {least:?} at {seq}");
        assert!(totals.iter().all(|total| *total == Some(expected.len() as u64)), "{totals:?}");
        let count = feed.count_places(&at, &list, &part, 1_000).await.unwrap();
        assert!(least.is_some() || count == Some(expected.len() as u64), "{count:?}");
    }
}

/// Reads all pages of a list without totals. Returns the ids.
async fn read_pages(
    (ctx, feed, at): (&Context, &Feed, &Position),
    (list, part): (&str, &Segment),
    least: Option<i64>,
    mut limit: impl FnMut() -> usize,
) -> Vec<String> {
    let (mut ids, mut after): (_, Option<String>) = (Vec::new(), None);
    loop {
        let limit = limit();
        let walk = Walk { list, part: part.clone(), filter: "", limit, after: after.as_deref() };
        let selects = |thing: &Thing| least.is_none_or(|least| thing.name.len() as i64 >= least);
        let page: Ranked<Thing> = feed.ranked(ctx, at, walk.clone(), least.is_some().then_some(&selects), Total::Omitted).await.unwrap();
        assert!(page.items.len() <= limit && page.total.is_none());
        let found: Vec<String> = page.items.into_iter().map(|thing| thing.id).collect();
        if least.is_none() {
            let of_ids = feed.ranked_ids::<Thing>(ctx, at, walk, Total::Omitted).await.unwrap();
            assert_eq!((&of_ids.items, &of_ids.next, of_ids.total), (&found, &page.next, None));
        }
        ids.extend(found);
        match page.next {
            Some(next) => after = Some(next),
            None => return ids,
        }
    }
}

/// Proves that pages without totals hold the same records as those with totals, under any condition, as of any change, and whether a list is longer than one
/// walk or not; and that each continues the other.
#[tokio::test]
async fn pages_without_totals_hold_the_same() {
    let things = Things::filled(&SMALL, 35, 900).await;
    let (ctx, feed, mut chance) = (things.context(), things.feed(None), Chance(36));
    for _ in 0..20 {
        let seq = Seq(chance.below(usize::try_from(things.checkpoint.seq.0).unwrap() + 1) as u64);
        let at = position_at(&ctx, &feed, seq).await;
        let list = ["all", "kind/a", "kind/rare", "kind/none"][chance.below(4)];
        let part = Segment { ranks: [0, 17][chance.below(2)]..=[59, 100][chance.below(2)], ..whole() };
        let least = [None, Some(7), Some(8), Some(100)][chance.below(4)];
        let (ids, _) = read_all((&ctx, &feed, &at), (list, &part), least, || 50).await;
        let found = read_pages((&ctx, &feed, &at), (list, &part), least, || 1 + chance.below(60)).await;
        assert_eq!(found, ids, "{list} {part:?} {least:?} at {seq}");
    }
    let mut long = Things::new(&LARGE).await;
    for n in 0..PLACES_MAX + 300 {
        long.change(&Thing { id: format!("thing/{n:05}"), kind: "a".into(), name: "n".into(), size: 20 + (n % 60) as i64 });
    }
    long.commit().await;
    let (ctx, feed) = (long.context(), long.feed(None));
    let at = position_at(&ctx, &feed, long.checkpoint.seq).await;
    let (ids, _) = read_all((&ctx, &feed, &at), ("all", &whole()), None, || 190).await;
    for least in [None, Some(1)] {
        assert_eq!(read_pages((&ctx, &feed, &at), ("all", &whole()), least, || 700).await, ids);
    }
    let walk = |after| Walk { list: "all", part: whole(), filter: "", limit: 150, after };
    let first: Ranked<Thing> = feed.ranked(&ctx, &at, walk(None), None, Total::Omitted).await.unwrap();
    let counted: Ranked<Thing> = feed.ranked(&ctx, &at, walk(first.next.as_deref()), None, Total::Counted).await.unwrap();
    let second: Ranked<Thing> = feed.ranked(&ctx, &at, walk(first.next.as_deref()), None, Total::Omitted).await.unwrap();
    let ids_of = |page: Ranked<Thing>| page.items.into_iter().map(|thing| thing.id).collect::<Vec<_>>();
    let (counted, second) = (ids_of(counted), ids_of(second));
    assert_eq!((&counted[..], &second[..]), (&ids[150..300], &ids[150..300]));
}

/// Proves that buckets without rows before, between and after those of a list change nothing, however many rows the next bucket has.
#[tokio::test]
async fn gaps_between_buckets_change_nothing() {
    let mut things = Things::new(&LARGE).await;
    for n in 0..700 {
        let size = if n < 450 { 20 } else { 90 };
        things.change(&Thing { id: format!("thing/{n:05}"), kind: "a".into(), name: "n".into(), size });
    }
    things.commit().await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let at = position_at(&ctx, &feed, things.checkpoint.seq).await;
    let wanted: Vec<String> = (0..700).map(|n| format!("thing/{n:05}")).collect();
    for buckets in [2..=9, -300..=9, 1..=300] {
        let part = Segment { buckets, ranks: 0..=100 };
        let (ids, totals) = read_all((&ctx, &feed, &at), ("all", &part), None, || 190).await;
        assert_eq!(ids, wanted, "{part:?}");
        assert!(totals.iter().all(|total| *total == Some(700)), "{totals:?}");
    }
}

/// Proves that a list longer than one walk has no total, that its pages still hold every record once, and that entries added in front while
/// a reader pages neither repeat nor hide others.
#[tokio::test]
async fn long_lists_are_walked_in_parts() {
    let mut things = Things::new(&LARGE).await;
    let thing = |n: usize, size: i64| Thing { id: format!("thing/{n:05}"), kind: "a".into(), name: "n".into(), size };
    let count = PLACES_MAX + 700;
    for n in 0..count {
        things.change(&thing(n, 20 + (n % 60) as i64));
    }
    things.commit().await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let at = position_at(&ctx, &feed, things.checkpoint.seq).await;
    for least in [None, Some(0)] {
        let (ids, totals) = read_all((&ctx, &feed, &at), ("all", &whole()), least, || 190).await;
        assert_eq!((ids.len(), totals.iter().all(Option::is_none)), (count, true));
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), count);
    }
    assert_eq!(feed.count_places(&at, "all", &whole(), 2_000).await.unwrap(), None);
    let mut seen = std::collections::BTreeSet::new();
    let mut after: Option<String> = None;
    for round in 0.. {
        if round == 9 {
            for n in 0..1_500 {
                things.change(&thing(10_000 + n, 1));
            }
            things.commit().await;
        }
        let at = position_at(&ctx, &feed, things.checkpoint.seq).await;
        let walk = Walk { list: "all", part: whole(), filter: "", limit: 150, after: after.as_deref() };
        let page: Ranked<Thing> = feed.ranked(&ctx, &at, walk, None, Total::Counted).await.unwrap();
        assert!(page.items.iter().all(|thing| thing.size >= 20 && seen.insert(thing.id.clone())), "round {round}");
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), count);
}

/// Proves that after the first walk at a position, pages of any size read their own places alone and say what the walk found, and that a later position is
/// walked again.
#[tokio::test]
async fn further_pages_of_a_position_do_not_walk_again() {
    let mut things = Things::new(&LARGE).await;
    let thing = |n: i64| Thing { id: format!("thing/{n:05}"), kind: "a".into(), name: "n".into(), size: 20 + n / 10 };
    let seqs: Vec<Seq> = (0..300).map(|n| things.change(&thing(n))).collect();
    things.commit().await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let ask = async |at: &Position, limit: usize, after: Option<&str>| {
        let walk = Walk { list: "all", part: whole(), filter: "", limit, after };
        let page: Ranked<Thing> = feed.ranked(&ctx, at, walk, None, Total::Counted).await.unwrap();
        (page.items.into_iter().map(|thing| thing.id).collect::<Vec<_>>(), page.total, page.next)
    };
    let at = position_at(&ctx, &feed, things.checkpoint.seq).await;
    let walked = ask(&at, 20, None).await;
    assert_eq!((walked.0.len(), walked.1, walked.2.is_some()), (20, Some(300), true));
    // The row of a place behind the pages is taken away, so that a walk would count one less.
    let row = key!["all", 4_i64, 49_i64, "thing/00290", seqs[290]];
    things.view.commit(vec![Write::delete(LARGE.places.unwrap(), row)], &things.checkpoint).await.unwrap();
    assert_eq!(ask(&at, 20, None).await, walked);
    let all: Vec<String> = (0..300).map(|n| thing(n).id).collect();
    let second = ask(&at, 100, walked.2.as_deref()).await;
    assert_eq!((&second.0[..], second.1), (&all[20..120], Some(300)));
    let third = ask(&at, 200, second.2.as_deref()).await;
    assert_eq!((third.0.len(), third.1, third.2), (179, Some(300), None));
    things.change(&thing(300));
    things.commit().await;
    let later = position_at(&ctx, &feed, things.checkpoint.seq).await;
    assert_eq!(ask(&later, 20, None).await.1, Some(300), "299 places and the new one");
}

/// Adds rows of places of a list without records: bucket, rank, how many, and until which seq they hold. Their ids are numbers after a letter.
async fn add_places(things: &Things, list: &str, (bucket, rank): (i64, i64), letter: char, count: usize, until: u64) {
    let write = |n: usize| {
        let row = key![list, bucket, rank, format!("{letter}{n:05}"), Seq(1)];
        Write::put(LARGE.places.unwrap(), row, format!("{{\"until\":{until}}}").into())
    };
    things.view.commit((0..count).map(write).collect(), &things.checkpoint).await.unwrap();
}

/// A view with a few changes, so that places that begin with the first one hold.
async fn with_changes() -> Things {
    let mut things = Things::new(&LARGE).await;
    for n in 0..3 {
        things.change(&Thing { id: format!("thing/{n}"), kind: "a".into(), name: "n".into(), size: 20 });
    }
    things.commit().await;
    things
}

/// The ids of all pages of a list, with totals and without.
async fn ids_of(ctx: &Context, feed: &Feed, at: &Position, list: &str, limit: usize) -> [Vec<String>; 2] {
    let mut out = [Vec::new(), Vec::new()];
    for (total, ids) in [Total::Counted, Total::Omitted].into_iter().zip(&mut out) {
        let mut after: Option<String> = None;
        for _ in 0..1_000 {
            let walk = Walk { list, part: whole(), filter: "", limit, after: after.as_deref() };
            let page = feed.ranked_ids::<Thing>(ctx, at, walk, total).await.unwrap();
            ids.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    out
}

/// Proves that a list whose places have all the same rank is read to its end, also if it has more rows than one call reads.
#[tokio::test]
async fn places_of_one_rank_are_read_to_the_end() {
    let (things, count) = (with_changes().await, 3 * PLACES_MAX + 700);
    add_places(&things, "flat", (0, 0), 'p', count, 0).await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let at = position_at(&ctx, &feed, things.checkpoint.seq).await;
    let wanted: Vec<String> = (0..count).map(|n| format!("p{n:05}")).collect();
    for ids in ids_of(&ctx, &feed, &at, "flat", 500).await {
        assert_eq!((ids.len(), ids == wanted), (count, true));
    }
}

/// Proves that places behind more rows than one call reads are found, if the rows in front of them are of places that no record has any more.
#[tokio::test]
async fn places_behind_former_ones_are_found() {
    let (things, former) = (with_changes().await, 3 * PLACES_MAX + 700);
    add_places(&things, "moved", (0, 0), 'a', 2, 0).await;
    add_places(&things, "moved", (0, 1), 'b', former, 2).await;
    add_places(&things, "moved", (1, 10), 'c', 3, 0).await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let at = position_at(&ctx, &feed, things.checkpoint.seq).await;
    for _ in 0..2 {
        for ids in ids_of(&ctx, &feed, &at, "moved", 2).await {
            assert_eq!(ids, ["a00000", "a00001", "c00000", "c00001", "c00002"]);
        }
    }
}

/// Proves that a page continues at the start of its part if `after` is before it, as it is in a list of days to come when a day has ended.
#[tokio::test]
async fn pages_begin_with_their_part() {
    let mut things = Things::new(&LARGE).await;
    for n in 0..9 {
        things.change(&Thing { id: format!("thing/{n}"), kind: "a".into(), name: "n".into(), size: 20 + n / 3 });
    }
    things.commit().await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let at = position_at(&ctx, &feed, things.checkpoint.seq).await;
    let walk = |first: i64, after| Walk { list: "all", part: Segment { buckets: 2..=3, ranks: first..=100 }, filter: "", limit: 2, after };
    let next = feed.ranked_ids::<Thing>(&ctx, &at, walk(20, None), Total::Counted).await.unwrap().next.unwrap();
    for _ in 0..2 {
        let page = feed.ranked_ids::<Thing>(&ctx, &at, walk(21, Some(&next)), Total::Counted).await.unwrap();
        assert_eq!((page.items, page.total), (vec!["thing/3".to_owned(), "thing/4".to_owned()], Some(6)));
    }
    let page = feed.ranked_ids::<Thing>(&ctx, &at, walk(21, Some(&next)), Total::Omitted).await.unwrap();
    assert_eq!(page.items, ["thing/3", "thing/4"]);
}

/// Proves that `after` of another list, another filter or another kind, and altered ones, are refused by name.
#[tokio::test]
async fn after_belongs_to_its_query() {
    let things = Things::filled(&SMALL, 33, 200).await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let at = position_at(&ctx, &feed, things.checkpoint.seq).await;
    let ask = async |list: &str, filter: &str, after: Option<&str>| {
        feed.ranked::<Thing>(&ctx, &at, Walk { list, part: whole(), filter, limit: 2, after }, None, Total::Counted).await
    };
    let next = ask("all", "", None).await.unwrap().next.unwrap();
    assert_eq!(ask("all", "", Some(&next)).await.unwrap().items.len(), 2);
    let cursor = super::cursor::encode(&ctx.secrets, "things", Seq(1), "");
    let altered = format!("{}{}", &next[..next.len() - 1], if next.ends_with('A') { 'B' } else { 'A' });
    for (list, filter, after) in
        [("kind/a", "", &next), ("all", "x", &next), ("all", "", &cursor), ("all", "", &altered), ("all", "", &String::new())]
    {
        let problem = ask(list, filter, Some(after)).await.unwrap_err();
        assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::CursorInvalid, "after"), "{list} {filter}");
    }
    assert_eq!(super::cursor::decode(&ctx.secrets, "things", "", &next).unwrap_err().code, ErrorCode::CursorInvalid);
}

/// Runs `changes` of a redacted source to its end. Returns the shown changes.
async fn follow(call: &Call, source: Source) -> Vec<Value> {
    let operation = changes::operation::<Thing>(source, json!({}));
    let (mut shown, mut arguments) = (Vec::new(), json!({ "start": "earliest", "limit": 40 }));
    loop {
        let answer = (operation.run)(call.clone(), arguments).await.unwrap();
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let is_over = match answer.body {
            Body::Parts(parts) => {
                let page = parse(&parts.concat());
                shown.extend(page["changes"].as_array().unwrap().clone());
                page["hasMore"] == false
            }
            Body::Lines { items, .. } if items.is_empty() => true,
            Body::Lines { items, .. } => {
                shown.extend(items.iter().map(|line| parse(line)));
                false
            }
            Body::Events { items, .. } if items.is_empty() => true,
            Body::Events { items: events, .. } => {
                shown.extend(events.iter().map(|event| parse(&event.data)));
                false
            }
            body => panic!("{body:?}"),
        };
        if is_over {
            return shown;
        }
        arguments = json!({ "cursor": answer.next_cursor, "limit": 40 });
    }
}

/// Proves that below the tier every form of `changes` shows the redacted form of what is free today, within the free window, without id and
/// without a value of another field; and that a key of the tier shows whole records.
#[tokio::test]
async fn changes_are_redacted_below_the_tier() {
    let things = Things::filled(&SMALL, 34, 900).await;
    let (ctx, feed): (Arc<Context>, _) = (things.context(), things.feed(None));
    let source = Source { redaction: Some(Redaction::of::<Thing>()), ..feed.source };
    // One change every ten minutes: the last two days begin 288 changes before now.
    let first = things.checkpoint.seq.next().minus(2 * 144);
    let today = position(&ctx, &source, None).await.unwrap().today();
    let expected: Vec<Value> = things
        .changes
        .iter()
        .filter(|change| change.seq >= first && change.after.size < 95 && (change.after.size % 2 == 1 || today.day() % 2 == 0))
        .map(|change| json!({ "seq": change.seq, "kind": change.after.kind }))
        .collect();
    assert!(expected.len() > 50);
    let free = call(&ctx);
    for form in [Form::Json, Form::Lines, Form::Events, Form::Atom] {
        for tier in [Tier::Anonymous, Tier::Free] {
            let mut call = Call { form, ..free.clone() };
            call.caller.tier = tier;
            let shown = follow(&call, source).await;
            let brief: Vec<Value> = shown.iter().map(|change| json!({ "seq": change["seq"], "kind": change["record"]["kind"] })).collect();
            if form == Form::Json {
                assert_eq!(brief, expected);
            } else {
                // A page without a shown change ends these loops early.
                assert!(!brief.is_empty() && expected.starts_with(&brief));
            }
            for change in &shown {
                let names: Vec<&String> = change.as_object().unwrap().keys().collect();
                assert_eq!(names, ["event", "record", "recordedAt", "seq"]);
                assert_eq!(change["record"].as_object().unwrap().len(), 1);
            }
        }
    }
    let whole = follow(&keyed(&ctx), source).await;
    assert_eq!(whole.len(), things.changes.len());
    assert!(whole.iter().all(|change| change["record"]["id"].is_string()));
    let feed = Feed { source, ..feed };
    let refused = super::things::answer(&free, &feed, query(super::things::Wants::default())).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::TierTooLow);
}
